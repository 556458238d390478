"""`Recorder`: writes the calls of a session to a file that `policyctx replay` reads.

A line is one call: the request as it was sent, and its usage. It says how many messages of the line
`previous_id` it begins with, and has only those after them. The system prompt and the tools are
left out where they are those of that line. Sessions and processes may share a file.
"""

from __future__ import annotations

import fcntl
import json
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field, replace
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

from policyctx.definitions.items import Medium, Message
from policyctx.messages.json_text import JSON, compact_json
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import RESULT_ROLES, Part, Shape
from policyctx.planning.facts import Request
from policyctx.store.local.folder import Descriptor, wait_for
from policyctx.tokens.usage import Usage
from policyctx.turns.effects import Effect, SessionStore, Turn
from policyctx.turns.result import Result

_FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK
# An append takes milliseconds; a process that hangs must not make each call wait for long.
_PATIENCE_S = 2.0
_START = b'{"session_id":'
_PIECE = 2**16


class _OneCall(NamedTuple):
    """A request that was sent."""

    messages: list[Message]
    request: Request
    sent: list[JSON]
    """The messages as they are written; nobody changes them in place."""
    changed: bool
    """Whether a message may be another one in the same object."""

    def repeats(self, other: _OneCall) -> bool:
        """Return whether the other call was sent the same."""
        same = not self.changed and _same_head(self.request, other.request)
        return same and self.messages == other.messages


class _Written(NamedTuple):
    """What was written last, and where."""

    call: _OneCall
    id: str
    process: int
    head: bytes
    """How the line begins, with its id."""
    start: int
    end: int

    def is_in(self, file: int, size: int) -> bool:
        """Return whether the line is still there, and a line can follow it.

        Somebody may have emptied or replaced the file; a forked process goes on by itself.
        """
        there = os.pread(file, len(self.head), self.start) == self.head
        return there and self.end <= size and self.process == os.getpid()


@dataclass(slots=True)
class Recorder:
    """The recording of one session; nothing that goes wrong here fails a call."""

    path: Path
    session_id: str
    shapes: Shapes
    clock: Callable[[], float]
    model: str | None = None
    """The model of a request that names none."""
    failed: int = 0
    """Number of calls that could not be written."""
    _problem: str = ""
    _said: str = ""
    _sent: _OneCall | None = None
    """The last request, whose usage has not come."""
    _process: int = field(default_factory=os.getpid)
    _last: _Written | None = None

    def turn(self, turn: Turn[Result], request: Request, *, changed: bool) -> Turn[Result]:
        """Run a turn, take what it sends, and add to its warnings what failed.

        The request before it is written without a usage, unless this one repeats it.
        """
        result = yield from turn
        request = replace(request, system=result.system, tools=result.tools)
        due, messages = self._taken(), [*result.messages]
        before = due or (self._last and self._last.call)
        kept = 0 if before is None or changed else _shared(before.messages, messages)
        sent = [self._held(one) for one in messages[kept:]]
        sent = [*before.sent[:kept], *sent] if before else sent
        call = _OneCall(messages, request, sent, changed)
        if due is not None and not call.repeats(due):
            yield from _Write(self, due, None).ask()
        self._sent, self._process = call, os.getpid()
        news = (*self._news(),)
        return replace(result, warnings=(*result.warnings, *news)) if news else result

    def _held(self, message: Message) -> JSON:
        """Return a message as it is written; one that cannot be copied fails when it is written."""
        form: JSON = message
        with suppress(Exception):
            form = deepcopy(recorded(message, self.shapes))
        return form

    def billed(self, usage: Usage) -> Turn[None]:
        """Write the request that a usage is for."""
        if (call := self._taken()) is not None:
            yield from _Write(self, call, usage).ask()

    def finish(self) -> None:
        """Write the last request if no usage has come for it; a forked process leaves it."""
        if (call := self._taken()) is not None and self._process == os.getpid():
            self.write(call, None)

    def _news(self) -> Iterator[str]:
        """Yield a warning if the recording began to fail, fails otherwise, or works again."""
        before, self._said = self._said, self._problem
        if before != self._problem:
            failed = f"a call was not recorded in {self.path}: {self._problem}"
            yield failed if self._problem else f"calls are recorded in {self.path} again"

    def _taken(self) -> _OneCall | None:
        call, self._sent = self._sent, None
        return call

    def write(self, call: _OneCall, usage: Usage | None) -> None:
        """Append the line of a call; what goes wrong is counted."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            opened = Descriptor(str(self.path), _FLAGS)
            try:
                # Excludes threads, too, and unlike their locks, a fork copies it free.
                wait_for(opened.number, str(self.path), _PATIENCE_S)
                self._append(opened.number, call, usage)
            finally:
                fcntl.flock(opened.number, fcntl.LOCK_UN)
                opened.close()
            self._problem = ""
        except Exception as error:  # noqa: BLE001 - the call goes on, whatever a message holds
            self.failed += 1
            self._problem = str(error) or type(error).__name__

    def _append(self, file: int, call: _OneCall, usage: Usage | None) -> None:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{self.path} is not a file")
        if status.st_mode & 0o077:
            os.fchmod(file, 0o600)
        size, last = status.st_size, self._last
        if last is not None and not last.is_in(file, size):
            last = None
        number = f"{secrets.token_hex(6)}-1"
        if last is not None:
            writer, _, before = last.id.partition("-")
            number = f"{writer}-{int(before) + 1}"
        fields = self._fields(call, last, usage)
        names = {"session_id": self.session_id, "id": number}
        head, line, between = _encoded(names)[:-1], _encoded({**names, **fields}) + b"\n", b""
        if (end := _whole_end(file, size)) != size:
            if _is_cut_off(os.pread(file, size - end, end)):
                os.ftruncate(file, size := end)  # a process was killed in the middle of its line
            else:
                between = b"\n"  # the file had other content before
        try:
            _write_all(file, between + line)
        except OSError:
            with suppress(OSError):
                os.ftruncate(file, size)
            raise
        start = size + len(between)
        self._last = _Written(call, number, os.getpid(), head, start, start + len(line))

    def _fields(self, call: _OneCall, last: _Written | None, usage: Usage | None) -> dict[str, Any]:
        request, before = call.request, None if last is None else last.call
        kept = 0 if before is None or call.changed else _shared(before.messages, call.messages)
        fields: dict[str, Any] = {"previous_id": "" if last is None else last.id, "kept": kept}
        fields |= {"timestamp": self.clock(), "model": request.model or self.model}
        if before is None or call.changed or not _same_head(before.request, request):
            fields |= {"system": request.system, "tools": request.tools}
        fields["messages"] = call.sent[kept:]
        return fields if usage is None else fields | {"usage": usage.as_record()}


@dataclass(frozen=True, slots=True)
class _Write(Effect[None]):
    """Write a call to the recording."""

    recorder: Recorder
    call: _OneCall
    usage: Usage | None

    def perform(self, store: SessionStore) -> None:
        """Append the line."""
        del store
        self.recorder.write(self.call, self.usage)


def _whole_end(file: int, size: int) -> int:
    """Return where the last line of a file ends that has an end."""
    end = size
    while end:
        start = max(0, end - _PIECE)
        if (found := os.pread(file, end - start, start).rfind(b"\n")) >= 0:
            return start + found + 1
        end = start
    return 0


def _encoded(record: dict[str, Any]) -> bytes:
    """Return a record as JSON; a lone surrogate becomes its escape."""
    return compact_json(record).encode("utf-8", "backslashreplace")


def _is_cut_off(line: bytes) -> bool:
    """Return whether a line without an end is of a recorder, and not whole."""
    try:
        json.loads(line if line.startswith(_START) else "0")
    except RecursionError:
        return False
    except ValueError:
        return True
    return False


def _write_all(file: int, content: bytes) -> None:
    rest = memoryview(content)
    while rest:
        rest = rest[os.write(file, rest) :]


def _same_head(one: Request, other: Request) -> bool:
    return bool(one.system == other.system and one.tools == other.tools)


def _shared(before: list[Message], now: list[Message]) -> int:
    """Return how many messages at the beginning are the same."""
    shorter = min(len(before), len(now))
    if before[:shorter] == now[:shorter]:  # in C, and objects that are the same are not compared
        return shorter
    pairs = zip(before, now, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] is pair[1] or pair[0] == pair[1], pairs))


def recorded(given: Message, shapes: Shapes) -> JSON:
    """Return a message as it is sent, or one of a host's shape as blocks of Anthropic's API."""
    shape, message = shapes.shaped(given)
    if isinstance(message, dict) and shape not in shapes.host:
        return message
    role, blocks = shape.role(message), list[dict[str, Any]]()
    in_result: list[dict[str, Any]] | None = None
    for part in shape.parts(message):
        block = _block(part, shape, message)
        if part.number and in_result is not None:
            in_result.append(block)  # an image inside of the result
            continue
        blocks.append(block)
        in_result = None
        if part.kind == "tool_result":
            in_result = [{"type": "text", "text": str(part.text)}]
            block["content"] = in_result
    return {"role": "user" if role in RESULT_ROLES else role, "content": [*blocks]}


def _block(part: Part, shape: Shape, message: Message) -> dict[str, Any]:
    text = str(part.text)
    if part.kind == "tool_call":
        return {"type": "tool_use", "id": _id(part), "name": part.tool, "input": _input(text)}
    if part.kind == "tool_result":
        result = {"type": "tool_result", "tool_use_id": _id(part)}
        return result | ({"is_error": True} if part.error else {})
    if part.kind == "thinking":
        return {"type": "thinking", "thinking": text, "signature": ""}
    if part.media and part.media[0].data:
        return {"type": part.kind, "source": _source(part.media[0], part.media_type)}
    block = shape.block(message, part.path) if part.kind == "unknown" else None
    known = isinstance(block, dict) and isinstance(block.get("type"), str)
    return dict(block) if known and isinstance(block, dict) else {"type": "text", "text": text}


def _id(part: Part) -> str:
    return part.call_id or part.tool or ""


def _input(text: str) -> JSON:
    try:
        given: JSON = json.loads(text)
    except ValueError:
        given = text
    return given if isinstance(given, dict) else {"input": given}


def _source(medium: Medium, media_type: str | None) -> JSON:
    data = medium.data[medium.data_start :]
    return {"type": "base64", "media_type": media_type or "image/png", "data": data}
