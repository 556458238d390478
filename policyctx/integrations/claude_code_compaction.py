"""The hook of Claude Code around a compaction that Claude Code makes by itself.

Before it, the user's orders and exact values go into the instructions of the summary. Right after
it, when nobody has the summary yet, come the prohibitions and the user's newest message. The next
result of a tool, or the next prompt, finds the summary in the transcript and delivers once what it
lacks. A policy without `carry` adds nothing.

The transcript is read by a pass of its own: a result keeps its two ends, since only its success
matters here, and no line of a sub-agent is kept. The user's words on a branch that was taken back
stay out; an agent's calls stay, since the files that they changed do. What was before a compaction
stays in the file.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from policyctx.compaction.assembly import History
from policyctx.compaction.points import (
    HistoryPoint,
    after_compaction,
    before_compaction,
    carried,
    delivery,
    points_of,
)
from policyctx.definitions.items import Message, written_by
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.readers.claude_code import as_text, is_of_user
from policyctx.replay.readers.values import mapping, objects, texts, word
from policyctx.tokens.counter import counter_for

# Characters that are kept of each end of a result.
_END = 400
# Bytes of a line that is read. One with several pictures is shorter.
_LONGEST_LINE = 16 << 20


class Line(NamedTuple):
    """A message, and its line in the transcript."""

    message: Message
    number: int
    """From 1."""
    byte: int
    """Where it begins."""
    uuid: str
    is_summary: bool = False


class Since(NamedTuple):
    """What a conversation has since a compaction."""

    start: int
    """The position of the summary in `lines`."""
    texts: list[str]


class Transcript:
    """A conversation of Claude Code, as its file has it now."""

    def __init__(self, path: str) -> None:
        """Read the file. Raises `OSError`, also for what is no file."""
        self.path = path
        self._links: dict[str, str] = {}
        """By uuid, the uuid of the record that one follows."""
        self._kept: frozenset[str] = frozenset()
        """The uuids of what the newest compaction left behind its summary."""
        found = list(self._lines())
        alive = self._alive(found)
        self.lines = [line for line in found if _is_kept(line, alive)]

    def newest(self, until: int | None = None) -> str:
        """Return the user's newest message before a position in `lines`; empty for none."""
        said = (_said(line.message).strip() for line in reversed(self.lines[:until]))
        # What begins with a tag is a command of the program, or what it printed.
        return next((text for text in said if text and text[0] != "<"), "")

    def points(self) -> list[HistoryPoint]:
        """Return the points of the whole conversation."""
        return points_of(History([line.message for line in self.lines]))

    def since_summary(self, behind: int = 0) -> Since | None:
        """Return what is there from the newest summary on, and what it kept; None without one.

        `behind` is the byte of the file from which on it is looked for.
        """
        starts = [i for i, one in enumerate(self.lines) if one.is_summary and one.byte >= behind]
        if not starts:
            return None
        kept = (line for line in self.lines[: starts[-1]] if line.uuid in self._kept)
        new = chain(kept, self.lines[starts[-1] :])
        return Since(starts[-1], [text for line in new for text in _texts(line.message)])

    def is_answered(self, behind: int) -> bool:
        """Return whether the agent has said something from a byte of the file on."""
        return any(one.message["role"] == "assistant" for one in self.lines if one.byte >= behind)

    def _lines(self) -> Iterator[Line]:
        before, byte = "", 0
        if not Path(self.path).is_file():  # to open a pipe would wait
            raise FileNotFoundError(f"{self.path} is no file")
        with Path(self.path).open("rb") as file:
            for number, raw in enumerate(file, 1):
                record, begin = _record(raw), byte
                byte += len(raw)
                if record.get("isSidechain") is True or not record:
                    continue
                uuid, parent = word(record.get("uuid")), word(record.get("parentUuid"))
                if is_cut := record.get("subtype") == "compact_boundary":
                    self._kept = frozenset(_kept_by(record))
                # A compaction begins a new tree behind what was before it; a record whose parent
                # is not there, such as one that was half written, follows the one before it.
                if uuid:
                    follows = parent or is_cut or _is_summary(record)
                    known = parent if parent in self._links else before
                    self._links[uuid] = known if follows else ""
                    before = uuid
                if (message := _message(record)) is not None:
                    yield Line(message, number, begin, uuid, _is_summary(record))

    def _alive(self, lines: Sequence[Line]) -> set[str]:
        """Return the records that the newest message follows from."""
        alive = set[str]()
        at = lines[-1].uuid if lines else ""
        while at and at not in alive:
            alive.add(at)
            at = self._links.get(at, "")
        return alive


def _record(raw: bytes) -> dict[str, Any]:
    if len(raw) > _LONGEST_LINE:
        return {}
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _kept_by(boundary: Mapping[str, Any]) -> list[str]:
    kept = mapping(mapping(boundary.get("compactMetadata")).get("preservedMessages"))
    return texts(kept.get("uuids"))


def _is_summary(record: Mapping[str, Any]) -> bool:
    return record.get("isCompactSummary") is True


def _message(record: Mapping[str, Any]) -> Message | None:
    """Return the message of a record; what a program wrote and what errors show is marked so."""
    kind = record.get("type")
    if kind == "attachment" and (text := as_text(dict(record))):
        said = {"role": "user", "content": text}
        return said if is_of_user(dict(record)) else written_by("program", said)
    if kind not in {"user", "assistant"} or record.get("isApiErrorMessage"):
        return None
    content = mapping(record.get("message")).get("content")
    if not isinstance(content, str | list) or not content:
        return None
    if isinstance(content, list):
        content = [_shortened(block) for block in objects(content)]
    message: Message = {"role": kind, "content": content}
    if _is_summary(record):
        return written_by("summary", message)
    return written_by("program", message) if record.get("isMeta") is True else message


def _shortened(block: dict[str, Any]) -> dict[str, Any]:
    """Return a block without what a picture holds and what is in the middle of a result."""
    if block.get("type") != "tool_result":
        is_plain = block.get("type") in {"text", "tool_use", "thinking"}
        return block if is_plain else {"type": "text", "text": ""}
    content = block.get("content")
    if isinstance(content, list):
        content = "\n".join(word(one.get("text")) for one in objects(content))
    text = word(content)
    if len(text) > 2 * _END:
        text = f"{text[:_END]}\n{text[-_END:]}"
    return {**block, "content": text}


def _is_kept(line: Line, alive: set[str]) -> bool:
    return line.uuid in alive or not _said(line.message)


def _said(message: Message) -> str:
    """Return what the user wrote in a message; empty for results and what a program wrote."""
    if message["role"] != "user" or getattr(message, "author", ""):
        return ""
    return "\n".join(_texts(message)) if not _has_results(message) else ""


def _has_results(message: Message) -> bool:
    return any(one.get("type") == "tool_result" for one in objects(message["content"]))


def _texts(message: Message) -> Iterator[str]:
    content = message["content"]
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block.get("type") == "tool_use":
            yield json.dumps(block.get("input"), ensure_ascii=False)
        else:
            yield word(block.get("text")) or word(block.get("content"))


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


def missing(event: Mapping[str, Any], policy: str, before: int) -> str | None:
    """Return what the summary of the newest compaction lacks; empty for nothing.

    None if the summary is still to come. `before` is the size of the transcript at the compaction.
    """
    loaded = OffloadPolicy.load(policy)
    settings = loaded.policy.carry
    if settings is None:
        return ""
    transcript = _transcript(event)
    # A summary is written before the agent goes on; by then it may be before the mark.
    is_late = transcript.is_answered(before)
    since = transcript.since_summary(0 if is_late else before)
    if since is None:
        return "" if is_late else None
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
