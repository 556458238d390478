"""The hook of Claude Code around a compaction that Claude Code makes by itself.

Before it, the user's orders and exact values go into the instructions of the summary. Right after
it, when nobody has the summary yet, come the prohibitions and the user's newest message. The next
result of a tool, or the next prompt, finds the summary in the transcript and delivers once what it
lacks. A policy without `carry` adds nothing.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from policyctx.compaction.carrying import (
    after_compaction,
    before_compaction,
    carried,
    delivery,
)
from policyctx.integrations.arrival_bounds import claim_compaction, mark_compaction
from policyctx.integrations.claude_code_transcript import Transcript
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.readers.values import word
from policyctx.tokens.counter import counter_for


def asked_of_summary(event: Mapping[str, Any], policy: str) -> str:
    """Return what is added to the instructions of a summary (`PreCompact`); empty for nothing."""
    if OffloadPolicy.load(policy).policy.carry is None:
        return ""
    return before_compaction(_transcript(event).points())


def reminder(event: Mapping[str, Any], policy: str) -> str:
    """Return what a session begins with (`SessionStart`) after a compaction; empty for nothing.

    A session that is resumed has its own words, unless a summary replaced them.
    """
    source = event.get("source")
    carries = OffloadPolicy.load(policy).policy.carry is not None
    if source not in {"compact", "resume"} or not carries:
        return ""
    transcript = _transcript(event)
    if source == "resume" and transcript.since_summary() is None:
        return ""
    return after_compaction(transcript.points(), transcript.newest(), transcript.path)


def missing(event: Mapping[str, Any], policy: str) -> str:
    """Return what the summary of the newest compaction lacks, once; empty for nothing."""
    session_id = word(event.get("session_id"))
    loaded = OffloadPolicy.load(policy)
    settings, before = loaded.policy.carry, claim_compaction(session_id)
    if before is None or settings is None:
        return ""
    transcript = _transcript(event)
    since = transcript.since_summary(behind=before)
    if since is None:
        mark_compaction(session_id, before)  # the summary is not in the transcript yet
        return ""
    points = [one for one in transcript.points() if one.message < since.start]
    reminded = after_compaction(points, transcript.newest(since.start), transcript.path)
    seen = "\n".join(chain(since.texts, (reminded, word(event.get("prompt")))))
    counter = counter_for(loaded.model.tokenizer)
    found = carried(points, seen, settings, counter.count)
    return delivery(
        found, lambda point: f"line {transcript.lines[point.message].number}", transcript.path
    )


def _transcript(event: Mapping[str, Any]) -> Transcript:
    return Transcript(word(event.get("transcript_path")))
