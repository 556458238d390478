"""What the hook of Claude Code adds around a compaction that Claude Code makes by itself.

Before it, the user's orders and exact values go into the instructions of the summary. Right after
it, when nobody has the summary yet, come the prohibitions and the user's newest message. The next
result of a tool, or the next prompt, finds the summary in the transcript and delivers once what it
lacks. A policy without `carry` adds nothing.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from policyctx.compaction.points import after_compaction, before_compaction, carried, delivery
from policyctx.integrations.arrival_bounds import keep_pass, kept_pass
from policyctx.integrations.claude_code_transcript import Pass, Transcript
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.readers.values import word
from policyctx.tokens.counter import counter_for


def asked_of_summary(event: Mapping[str, Any], policy: str) -> str:
    """Return what is added to the instructions of a summary (`PreCompact`); empty for nothing."""
    if OffloadPolicy.load(policy).policy.carry is None:
        return ""
    return before_compaction(_transcript(event).points)


def reminder(event: Mapping[str, Any], policy: str) -> str:
    """Return what a session begins with (`SessionStart`) after a compaction; empty for nothing.

    A session that is resumed has its own words, unless a summary replaced them.
    """
    source = event.get("source")
    carries = OffloadPolicy.load(policy).policy.carry is not None
    if source not in {"compact", "resume"} or not carries:
        return ""
    transcript = _transcript(event) if source == "compact" else Transcript(_path(event))
    if source == "resume" and transcript.since_summary() is None:
        return ""
    return after_compaction(transcript.points, transcript.newest(), transcript.path)


def missing(event: Mapping[str, Any], policy: str, before: int) -> str | None:
    """Return what the summary of the newest compaction lacks; empty for nothing.

    None if the summary is still to come. `before` is the size of the transcript at the compaction.
    """
    loaded = OffloadPolicy.load(policy)
    settings = loaded.policy.carry
    if settings is None:
        return ""
    transcript = _transcript(event, is_summarised=True)
    # A summary is written before the agent goes on; by then it may be before the mark.
    is_late = transcript.is_answered(before)
    since = transcript.since_summary(0 if is_late else before)
    if since is None:
        return "" if is_late else None
    line = transcript.lines[since.start].number
    points = [point for point in transcript.points if point.message < line]
    reminded = after_compaction(points, transcript.newest(since.start), transcript.path)
    seen = "\n".join(chain(since.texts, (reminded, word(event.get("prompt")))))
    found = carried(points, seen, settings, counter_for(loaded.model.tokenizer).count)
    return delivery(found, lambda point: f"line {point.message}", transcript.path)


def _transcript(event: Mapping[str, Any], *, is_summarised: bool = False) -> Transcript:
    """Return the transcript: what an earlier event of the compaction found and what is new, or all.

    Keeps what is found before the summary for the next events.
    """
    path, session_id = _path(event), word(event.get("session_id"))
    known = _known(session_id, path)
    if known is not None:
        found = Transcript(path, known)
        since = found.since_summary() if is_summarised else None
        if is_summarised == (since is not None) and found.goes_on(since.start if since else None):
            return found
    found = Transcript(path)
    if not is_summarised and session_id and (new := found.as_pass()) is not None:
        keep_pass(session_id, new.as_json())
    return found


def _known(session_id: str, path: str) -> Pass | None:
    try:
        found = Pass.from_json(kept_pass(session_id))
        return found if found.is_of(path) else None
    except (OSError, ValueError, TypeError):
        return None


def _path(event: Mapping[str, Any]) -> str:
    return word(event.get("transcript_path"))
