"""Which files an agent worked on, the last accessed first, and which of their lines it saw."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, get_args

from policyctx.definitions.items import Item, Message
from policyctx.messages.reading import items_of, listed
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.messages.shapes.responses import INPUT_FIELDS, OF_TEXT
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.superseded import (
    PATCHED,
    ShownLines,
    lines_read,
    path_in,
    paths_in,
)
from policyctx.policy.models.compaction import FileSource
from policyctx.policy.models.rules import LineFields

# What the field for a file's path is called, what is in it, and the names of tools that read.
_PATH_FIELD = re.compile(r"(?:path|file|file_?name)$", re.IGNORECASE)
_FILE_PATH = re.compile(r"(?!\w+://)[^\r\n]{0,300}[^\s/\\.]\.\w{1,8}")
_READS = re.compile(r"read|view|open|cat|show|get|fetch|load", re.IGNORECASE)
# OpenAI's tools that a client runs; none has the path of a file that it reads.
_BUILT_IN_TOOLS = {kind.removesuffix("_call") for kind in INPUT_FIELDS.keys() - {*OF_TEXT}}
# A shorter text of an edit says too little about its place.
_LEAST_TEXT = 8
_HEADER = re.compile(r"^\[lines (\d+)-(\d+) of \d+\]$", re.MULTILINE)


def header(lines: ShownLines, count: int) -> str:
    """Return the line that leads a range of lines of a file that has `count` lines."""
    return f"[lines {lines.first}-{lines.last} of {count}]"


def lines_shown(text: str) -> tuple[ShownLines, ...]:
    """Return the ranges that a message with lines of a large file shows."""
    return tuple(ShownLines(int(one[1]), int(one[2])) for one in _HEADER.finditer(text))


class FileAccess(NamedTuple):
    """A file that was accessed, and what of it the agent saw or changed, the newest first."""

    path: str
    """As the newest call gave it."""
    seen: tuple[ShownLines | str, ...] = ()
    """Lines that were read, and texts that were put in by edits."""


def accesses(
    messages: Sequence[Message],
    policy: OffloadPolicy,
    restored: Callable[[Message], str | None],
    shapes: Shapes = BUILT_IN,
    sources: Sequence[FileSource] = ("read",),
) -> list[FileAccess]:
    """Return the files that the agent accessed in one of the ways of `sources`, each path once.

    The file that was accessed last comes first. `restored` returns the path of the file that an
    earlier compaction restored in a message, which counts as access. A value that is not a path is
    skipped.

    Raises `MessagesError` if `messages` is no message list.
    """
    found: dict[str, tuple[ShownLines | str, ...]] = {}
    for message in reversed(listed(messages)):
        path = restored(message)
        here = (
            [FileAccess(path, lines_shown(shapes.text(message) or ""))]
            if path
            else [
                one for call in _calls(message, shapes) for one in _accessed(call, policy, sources)
            ]
        )
        for access in reversed(here):
            found[access.path] = (*found.get(access.path, ()), *access.seen)
    return [FileAccess(path, seen) for path, seen in found.items()]


def _calls(message: Message, shapes: Shapes) -> Iterator[Item]:
    """Yield the calls in a message of the agent; what looks like one in another was none.

    Each message is read by itself, so that the texts of all are not in memory once more.
    """
    shape, checked = shapes.checked(message, 0)
    if shape.role(checked) == "assistant":
        yield from (item for item in items_of((message,), shapes) if item.kind == "tool_call")


def _accessed(
    call: Item, policy: OffloadPolicy, sources: Sequence[FileSource]
) -> Iterator[FileAccess]:
    """Yield the files that a call accessed; it does one thing, the first of `sources` that fits."""
    if call.tool is None:
        return
    given: dict[str, Any] | None = None
    for source in sources:
        fields = policy.path_fields(call.tool, source)
        if not fields:
            continue
        given = call.input if given is None else given
        if value := path_in(given, fields):
            seen = tuple(_seen(given, value, source, policy.line_fields(call.tool)))
            yield from (FileAccess(path, seen) for path in paths_in(value))
            return


def _seen(
    given: Mapping[str, Any], path: str, source: FileSource, fields: LineFields | None
) -> Iterator[ShownLines | str]:
    command = given.get("command")
    if source == "read" and (not isinstance(command, str) or _READS.search(command)):
        yield lines_read(given, fields)
    elif source != "written":
        yield from (text for text in _texts(given) if text != path and len(text) >= _LEAST_TEXT)


def _texts(value: object) -> Iterator[str]:
    """Yield the texts in the input of a call; of a patch, each run of added lines."""
    if isinstance(value, str):
        if PATCHED.search(value):
            added = re.findall(r"(?:^\+(?!\+\+ ).*\n?)+", value, re.MULTILINE)
            yield from (re.sub(r"^\+", "", run, flags=re.MULTILINE) for run in added)
        else:
            yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)


def unknown_readers(
    messages: Sequence[Message], policy: OffloadPolicy, shapes: Shapes = BUILT_IN
) -> dict[str, str]:
    """Return the tools that may read files although nothing says so, with the field of the path.

    Those are the tools that are called with a path to a file, as far as the field's name and its
    value tell. Tools whose name says that they read come first. Those that are known to work on
    files are left out, and so are OpenAI's built-in tools.
    """
    found: dict[str, str] = {}
    for item in (call for message in listed(messages) for call in _calls(message, shapes)):
        if not item.tool or item.tool in found or item.tool in _BUILT_IN_TOOLS:
            continue
        if not any(policy.path_fields(item.tool, source) for source in get_args(FileSource)):
            given = item.input
            found.update((item.tool, name) for name in given if _is_path(name, given[name]))
    return dict(sorted(found.items(), key=lambda pair: not _READS.search(pair[0])))


def _is_path(name: str, value: object) -> bool:
    is_named_so = _PATH_FIELD.search(name) is not None
    return is_named_so and isinstance(value, str) and _FILE_PATH.fullmatch(value) is not None
