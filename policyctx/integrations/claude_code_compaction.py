"""What the hook of Claude Code adds around a compaction that Claude Code makes by itself.

Before it, the user's orders and exact values go into the instructions of the summary. Right after
it, when nobody has the summary yet, come the prohibitions and the user's newest message. The next
result of a tool, or the next prompt, finds the summary in the transcript and delivers once what it
lacks. A policy without `carry` adds nothing.

Of the transcript a result keeps its two ends, since only its success matters here, and no line of a
sub-agent is kept. The user's words on a branch that was taken back stay out; an agent's calls stay,
since the files that they changed do. What was before a compaction stays in the file.

What a pass found is kept for the next events of the same compaction, which read only what came
after it. A `Transcript` of that part says by `goes_on` whether the whole file would say the same.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import astuple, replace
from functools import cached_property
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from policyctx.compaction.assembly import History
from policyctx.compaction.points import (
    HistoryPoint,
    PointKind,
    after_compaction,
    before_compaction,
    carried,
    delivery,
    points_of,
)
from policyctx.definitions.items import Message, author_of, written_by
from policyctx.integrations.arrival_bounds import keep_pass, kept_pass
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.readers.claude_attachments import as_text, is_of_user
from policyctx.replay.readers.values import mapping, objects, texts, word
from policyctx.tokens.counter import counter_for

# Characters that are kept of each end of a result.
_END = 400
# Bytes of a line that is read. One with several pictures is shorter.
_LONGEST_LINE = 16 << 20
# Bytes before the end of a pass by which a file that was rewritten is known.
_TAIL = 4096
# Records that a new one may follow, and messages that a compaction may keep.
_NEWEST = 100


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


class Pass(NamedTuple):
    """What was found in a transcript up to the end of a line."""

    path: str = ""
    inode: int = 0
    byte: int = 0
    """The end of the line."""
    digest: str = ""
    """Of the bytes before the end."""
    line: int = 0
    """The number of the line."""
    tips: tuple[str, ...] = ()
    """The uuids of the newest records since the user's last words, the newest first."""
    places: tuple[tuple[str, int], ...] = ()
    """The uuids of the newest messages, and the byte at which the line of each begins."""
    newest: str = ""
    """The user's newest message."""
    points: tuple[HistoryPoint, ...] = ()

    def is_of(self, path: str) -> bool:
        """Return whether a file begins with what was read. Raises `OSError`."""
        status = Path(path).stat()
        is_longer = status.st_ino == self.inode and status.st_size >= self.byte
        return self.path == path and is_longer and _digest(path, self.byte) == self.digest

    def as_json(self) -> str:
        """Return it as JSON."""
        return json.dumps([*self[:-1], [astuple(point) for point in self.points]])

    @classmethod
    def from_json(cls, text: str) -> "Pass":
        """Return what `as_json` wrote. Raises `ValueError`, `TypeError`."""
        path, inode, byte, digest, line, tips, places, newest, points = json.loads(text)
        found = (
            HistoryPoint(PointKind(kind), said, at, tuple(values), tuple(forbidden), state)
            for kind, said, at, values, forbidden, state in points
        )
        newest_at = tuple((uuid, int(begin)) for uuid, begin in places)
        return cls(path, inode, byte, digest, line, tuple(tips), newest_at, newest, tuple(found))


_NOTHING = Pass()


class Transcript:
    """A conversation of Claude Code, as its file has it now behind what a pass knows."""

    def __init__(self, path: str, known: Pass = _NOTHING) -> None:
        """Read the file. Raises `OSError`, also if the path is not a file."""
        self.path = path
        self._known = known
        self._links = dict.fromkeys(known.tips, "")
        """By uuid, the uuid of the record that one follows."""
        self._newest = next(iter(known.tips), "")
        self._is_apart = False
        """Whether a record follows one that was not read."""
        self._kept: frozenset[str] = frozenset()
        """The uuids of what the newest compaction left behind its summary."""
        self._byte, self._line = known.byte, known.line
        self._is_ended = True
        """Whether the last line is complete."""
        self._found = list(self._lines())
        self._alive = self._chain(self._found[-1].uuid if self._found else self._newest)
        self.lines = [line for line in self._found if _is_kept(line, self._alive)]

    def newest(self, until: int | None = None) -> str:
        """Return the user's newest message before a position in `lines`; empty for none."""
        said = (_said(line.message).strip() for line in reversed(self.lines[:until]))
        # What begins with a tag is a command of the program, or what it printed.
        return next((text for text in said if text and text[0] != "<"), self._known.newest)

    @cached_property
    def points(self) -> list[HistoryPoint]:
        """The points of the whole conversation; the message of each is its line in the file."""
        found = points_of(History([line.message for line in self.lines]))
        new = (replace(one, message=self.lines[one.message].number) for one in found)
        return [*self._known.points, *new]

    def since_summary(self, behind: int = 0) -> Since | None:
        """Return what is there from the newest summary on, and what it kept; None without one.

        `behind` is the byte of the file from which on it is looked for.
        """
        starts = [i for i, one in enumerate(self.lines) if one.is_summary and one.byte >= behind]
        if not starts:
            return None
        before = (one.message for one in self.lines[: starts[-1]] if one.uuid in self._kept)
        new = (one.message for one in self.lines[starts[-1] :])
        found = chain(self._known_and_kept(), before, new)
        return Since(starts[-1], [text for message in found for text in _texts(message)])

    def _known_and_kept(self) -> Iterator[Message]:
        with Path(self.path).open("rb") as file:
            for uuid, byte in self._known.places:
                if uuid in self._kept:
                    file.seek(byte)
                    message = _message(_record(file.readline()))
                    yield from [] if message is None else [message]

    def is_answered(self, behind: int) -> bool:
        """Return whether the agent has said something from a byte of the file on."""
        return any(one.message["role"] == "assistant" for one in self.lines if one.byte >= behind)

    def goes_on(self, until: int | None = None) -> bool:
        """Return whether the whole file has the same points before a position in `lines`.

        What a program wrote before it has none. A call behind it may end a task.
        """
        before, behind = self.lines[:until], self.lines[len(self.lines[:until]) :]
        return (
            not self._is_apart
            and not self._alive.keys().isdisjoint(self._known.tips)
            and all(author_of(one.message) for one in before)
            and self._kept <= {*dict(self._known.places), *(one.uuid for one in self.lines)}
            and not any(_is_on_tasks(one.message) for one in behind)
        )

    def as_pass(self) -> Pass | None:
        """Return what the next pass may begin with; None if it has to read the whole file."""
        alive = self._chain(self._newest)
        is_same = all(_is_kept(one, alive) == _is_kept(one, self._alive) for one in self._found)
        if not (alive and is_same and self._is_ended):
            return None
        last = next((one.uuid for one in reversed(self.lines) if _said(one.message)), "")
        tips = (
            *islice(takewhile(lambda uuid: uuid != last, alive), _NEWEST),
            *filter(None, [last]),
        )
        digest, inode = _digest(self.path, self._byte), Path(self.path).stat().st_ino
        places = tuple((one.uuid, one.byte) for one in self.lines[-_NEWEST:] if one.uuid)
        return Pass(
            self.path, inode, self._byte, digest, self._line, tips, places, self.newest(),
            (*self.points,),
        )  # fmt: skip

    def _lines(self) -> Iterator[Line]:
        if not Path(self.path).is_file():  # to open a pipe would wait
            raise FileNotFoundError(f"{self.path} is no file")
        with Path(self.path).open("rb") as file:
            file.seek(self._byte)
            for raw in file:
                record, begin = _record(raw), self._byte
                self._byte += len(raw)
                self._line += 1
                self._is_ended = raw.endswith(b"\n")
                if record.get("isSidechain") is True or not record:
                    continue
                uuid, parent = word(record.get("uuid")), word(record.get("parentUuid"))
                if is_cut := record.get("subtype") == "compact_boundary":
                    self._kept = frozenset(_kept_by(record))
                # A compaction begins a new tree behind what was before it; a record whose parent
                # is not there, such as one that was half written, follows the one before it.
                if uuid:
                    self._is_apart |= bool(parent) and parent not in self._links
                    follows = parent or is_cut or _is_summary(record)
                    known = parent if parent in self._links else self._newest
                    self._links[uuid] = known if follows else ""
                    self._newest = uuid
                if (message := _message(record)) is not None:
                    yield Line(message, self._line, begin, uuid, _is_summary(record))

    def _chain(self, uuid: str) -> dict[str, str]:
        """Return the records that one follows from, itself first."""
        found = dict[str, str]()
        while uuid and uuid not in found:
            found[uuid] = self._links.get(uuid, "")
            uuid = found[uuid]
        return found


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


def _is_kept(line: Line, alive: Mapping[str, str]) -> bool:
    return line.uuid in alive or not _said(line.message)


def _said(message: Message) -> str:
    """Return what the user wrote in a message; empty for results and what a program wrote."""
    if message["role"] != "user" or getattr(message, "author", ""):
        return ""
    has_results = any(one.get("type") == "tool_result" for one in objects(message["content"]))
    return "" if has_results else "\n".join(_texts(message))


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


def _is_on_tasks(message: Message) -> bool:
    calls = (one for one in objects(message["content"]) if one.get("type") == "tool_use")
    names = (word(one.get("name")).casefold() for one in calls)
    return any("task" in name or "todo" in name for name in names)


def _digest(path: str, end: int) -> str:
    with Path(path).open("rb") as file:
        file.seek(max(0, end - _TAIL))
        return hashlib.sha256(file.read(min(end, _TAIL))).hexdigest()


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
