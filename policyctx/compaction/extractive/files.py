"""The files of a conversation: which were read, written, edited, and what is last known of each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import FileState
from policyctx.compaction.extractive.sentences import one_line
from policyctx.compaction.history import path_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from policyctx.compaction.extractive.calls import Call
    from policyctx.compaction.history import PathFields

# What tools that work on files are called; a tool of another name is known by its input's shape.
VERBS: Mapping[str, frozenset[str]] = {
    "deleted": frozenset(("delete", "remove", "rm", "unlink")),
    "edited": frozenset(
        ("append", "apply", "edit", "insert", "modify", "multiedit", "patch", "replace", "update")
    ),
    "written": frozenset(("create", "save", "write", "overwrite")),
    "read": frozenset(("cat", "load", "open", "read", "show", "view")),
}
CHANGED = ("written", "edited", "deleted")

_NAME_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
# A field of an input that holds this many characters, or a line break, is text, not a name.
_LONG = 80

_PATCH = re.compile(r"\*\*\* (Add|Update|Delete) File: ([^\n\\\"]+)")
_PATCH_VERBS = {"Add": "written", "Update": "edited", "Delete": "deleted"}
_SHELL_PATH = r"(?:-\S+\s+|'[^']*'\s+|\d\S*\s+)*([\w~.@+-]*[/.][\w~./@+-]*\w)"
_SHELL_WORD = r"(?:'[^']*'|\"[^\"]*\"|\S+)"
_SHELL = (
    ("read", re.compile(rf"(?<![\w/])(?:cat|head|tail|less|nl|bat|sed -n)\s+{_SHELL_PATH}")),
    ("edited", re.compile(rf"(?<![\w/])sed -i\S*\s+{_SHELL_WORD}\s+{_SHELL_PATH}")),
    ("written", re.compile(rf"(?:(?<![-=0-9&])>>?\s*|(?<![\w/])(?:tee|touch)\s+){_SHELL_PATH}")),
    ("deleted", re.compile(rf"(?<![\w/])rm\s+{_SHELL_PATH}")),
)
_SHELL_FIELDS = ("command", "cmd", "script")
# Of a longer command only the beginning is looked through.
_LONGEST_COMMAND = 4_000


class _Use(NamedTuple):
    path: str
    verb: str
    lines: int | None = None


def files_of(
    earlier: Iterable[FileState], calls: Iterable[Call], reads_file: Mapping[str, PathFields]
) -> tuple[FileState, ...]:
    """Return the files that calls worked on, those of earlier summaries included, last used first.

    `reads_file` names by tool the field, or fields, with the path that it reads.
    """
    files: dict[str, FileState] = {}
    for file in reversed(tuple(earlier)):
        before = dict(files.pop(file.path, FileState(file.path, ())).counts)
        counts = before | {verb: before.get(verb, 0) + count for verb, count in file.counts}
        files[file.path] = file._replace(counts=tuple(counts.items()))
    for call in calls:
        for use in _uses(call, reads_file):
            # Taken out and put in again, since the last used comes last.
            files[use.path] = _after(files.pop(use.path, FileState(use.path, ())), use, call)
    return tuple(_without_names(file) for file in reversed(files.values()))


def _without_names(file: FileState) -> FileState:
    """Leave out how often a file was only named where more was done with it."""
    counts = tuple(pair for pair in file.counts if pair[0] != "named")
    return file._replace(counts=counts) if counts else file


def _after(file: FileState, use: _Use, call: Call) -> FileState:
    counts = dict(file.counts)
    counts[use.verb] = counts.get(use.verb, 0) + 1
    last = f"{use.verb} failed" if call.failed else use.verb
    if use.verb == "named" and file.last:
        last = file.last
    lines = None if use.verb in ("edited", "deleted") and not call.failed else file.lines
    if use.lines is not None and not call.failed:
        lines = use.lines
    return FileState(file.path, tuple(counts.items()), last, lines)


def _uses(call: Call, reads_file: Mapping[str, PathFields]) -> Iterator[_Use]:
    # An editor reads by one of its commands; the others are taken as those of any other tool.
    if call.tool in reads_file and _commanded(call) in {None, "read"}:
        if path := path_in(call.fields, reads_file[call.tool]):
            yield _Use(one_line(path), "read", _lines_read(call))
        return
    for verb, path in _PATCH.findall(call.text):
        yield _Use(one_line(path), _PATCH_VERBS[verb])
    if (path := call.path) is not None:
        yield _use_of(call, one_line(path))
    else:
        yield from _uses_in_command(call)


def _use_of(call: Call, path: str) -> _Use:
    long = [
        value
        for value in call.fields.values()
        if isinstance(value, str) and value != path and (len(value) > _LONG or "\n" in value)
    ]
    verb = _verb(call) or {0: "named", 1: "written"}.get(len(long), "edited")
    if verb == "written" and len(long) == 1:
        return _Use(path, verb, long[0].count("\n") + (not long[0].endswith("\n")))
    return _Use(path, verb, _lines_read(call) if verb == "read" else None)


def _verb(call: Call) -> str | None:
    """Return what a call does to its file, by its command where it has one, and its tool's name."""
    return _commanded(call) or _verb_in(call.tool)


def _commanded(call: Call) -> str | None:
    """Return what a call's command does to its file; None without a command that says so."""
    command = call.fields.get("command")
    return _verb_in(command) if isinstance(command, str) else None


def _verb_in(name: str) -> str | None:
    words = {word.lower() for word in _NAME_WORD.findall(name)}
    return next((verb for verb, names in VERBS.items() if words & names), None)


def _lines_read(call: Call) -> int | None:
    """Return the lines of a file that was read whole: nothing but its path was asked for."""
    if call.result is None or len(call.fields) != 1:
        return None
    return call.result.count("\n") + (not call.result.endswith("\n"))


def _uses_in_command(call: Call) -> Iterator[_Use]:
    for field in _SHELL_FIELDS:
        command = call.fields.get(field)
        if isinstance(command, list):
            command = " ".join(part for part in command if isinstance(part, str))
        if isinstance(command, str):
            command = command[:_LONGEST_COMMAND]
            for verb, pattern in _SHELL:
                for found in pattern.finditer(command):
                    if not found[1].startswith("/dev/"):
                        yield _Use(found[1], verb)
