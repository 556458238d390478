"""The files that calls worked on: what was done with each, how often, and what last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from policyctx.compaction.extractive.calls import Call, bare_command, command_parts
from policyctx.compaction.extractive.texts import one_line
from policyctx.compaction.file_access import PathFields, path_in

# What tools that work on files are called; a tool of another name is known by its input's shape.
_VERBS: Mapping[str, frozenset[str]] = {
    "deleted": frozenset(("delete", "remove", "rm", "unlink")),
    "edited": frozenset(
        ("append", "apply", "edit", "insert", "modify", "multiedit", "patch", "replace", "update")
    ),
    "written": frozenset(("create", "save", "write", "overwrite")),
    "read": frozenset(("cat", "load", "open", "read", "show", "view")),
}

# A field of an input that holds this many characters, or a line break, is text, not a name.
_LONG = 80
_ABSOLUTE = re.compile(r"[/~]|[A-Za-z]:[\\/]")
_LINES_OF_PATH = re.compile(r"(?<=[A-Za-z0-9]):\d+(?:-\d+)?$")
_PATCH = re.compile(r"\*\*\* (Add|Update|Delete) File: ([^\n\\\"]+)")
_PATCH_VERBS = {"Add": "written", "Update": "edited", "Delete": "deleted"}
_SHELL_PATH = r"(?:-\S+\s+|'[^']*'\s+|\d\S*\s+)*([\w~.@+-]*[/.][\w~./@+-]*\w)"
_SHELL_WORD = r"(?:'[^']*'|\"[^\"]*\"|\S+)"
_SHELL = (
    ("read", re.compile(rf"(?<![\w/-])(?:cat|head|tail|less|nl|bat|sed -n)\s+{_SHELL_PATH}")),
    ("edited", re.compile(rf"(?<![\w/])sed -i\S*\s+{_SHELL_WORD}\s+{_SHELL_PATH}")),
    ("written", re.compile(rf"(?:(?<![-=0-9&])>>?\s*|(?<![\w/])(?:tee|touch)\s+){_SHELL_PATH}")),
    ("written", re.compile(rf"(?<![\w/])mv\s+(?:-\S+\s+)*\S+\s+{_SHELL_PATH}")),
    ("moved", re.compile(rf"(?<![\w/])mv\s+{_SHELL_PATH}")),
    ("deleted", re.compile(rf"(?<![\w/])rm\s+{_SHELL_PATH}")),
)


class FileState(NamedTuple):
    """A file: how often each thing was done with it, and what last."""

    path: str
    counts: tuple[tuple[str, int], ...]
    """By verb (`read`, `written`, `edited`, `deleted`, `moved`, `named`): how many calls."""
    last: str = ""
    """The last verb, with ` failed` after it if that failed."""
    message: int = -1
    """0-based position of the last call's message; -1 if it is of an earlier summary."""

    @property
    def is_changed(self) -> bool:
        """Whether anything edited or wrote it, and it is where it was."""
        is_gone = self.last in {"deleted", "moved"}
        return not is_gone and any(verb in {"edited", "written"} for verb, _ in self.counts)


def files_of(
    earlier: Iterable[FileState], calls: Iterable[Call], reads_file: Mapping[str, PathFields]
) -> tuple[FileState, ...]:
    """Return the files that calls worked on, those of earlier summaries included.

    Edited and written files come first, each kind last used first. `reads_file`
    names by tool the field, or fields, with the path that it reads.
    """
    files: dict[str, FileState] = {}
    for file in reversed(tuple(earlier)):
        before = files.pop(file.path, None)
        files[file.path] = file if before is None else _both(before, file)
    used = False
    for call in calls:
        # Of several commands any may be the one that failed.
        is_one = call.command is None or len(command_parts(call.command)) == 1
        for path, verb in _uses(call, reads_file):
            used = True
            failed = call.failed and is_one and verb != "named"
            last = f"{verb} failed" if failed else verb
            new = FileState(path, () if failed else ((verb, 1),), last, call.message)
            # Taken out and put in again, since the last used comes last.
            before = files.pop(path, None)
            files[path] = new if before is None else _both(before, new)
    once = [one for one in (_each_once(files) if used else files).values() if one.counts]
    once.reverse()
    return tuple(sorted(once, key=lambda file: not file.is_changed))


def _both(before: FileState, after: FileState) -> FileState:
    counts = dict(before.counts)
    for verb, count in after.counts:
        counts[verb] = counts.get(verb, 0) + count
    last = before.last if after.last == "named" and before.last else after.last
    return FileState(before.path, tuple(counts.items()), last, max(before.message, after.message))


def _each_once(files: Mapping[str, FileState]) -> dict[str, FileState]:
    """Return the files, a relative path and the only absolute path that ends with it as one."""
    absolute: dict[str, list[str]] = {}
    for path in files:
        if _ABSOLUTE.match(path):
            absolute.setdefault(path.rpartition("/")[2], []).append(path)
    names = {path: path.removeprefix("./") for path in files}
    for path in [path for path in names.values() if not _ABSOLUTE.match(path)]:
        named_alike = absolute.get(path.rpartition("/")[2], ())
        ends = [one for one in named_alike if one.endswith(f"/{path}")]
        if len(ends) == 1:
            names |= {ends[0]: path} if "/" in path else {path: ends[0], f"./{path}": ends[0]}
    once: dict[str, FileState] = {}
    for path, file in files.items():
        before = once.pop(names[path], None)
        named = file._replace(path=names[path])
        once[names[path]] = named if before is None else _both(before, named)
    return once


def _uses(call: Call, reads_file: Mapping[str, PathFields]) -> Iterator[tuple[str, str]]:
    """Yield each path that a call works on, with the verb."""
    commanded = _verb_in(str(call.fields.get("command") or "")) if call.path else None
    if call.tool in reads_file and commanded in {None, "read"}:
        if path := path_in(call.fields, reads_file[call.tool]):
            yield _LINES_OF_PATH.sub("", one_line(path)), "read"
        return
    for verb, path in _PATCH.findall(call.text):
        yield one_line(path), _PATCH_VERBS[verb]
    if (path := call.path) is not None:
        long = sum(
            isinstance(value, str) and value != path and (len(value) > _LONG or "\n" in value)
            for value in call.fields.values()
        )
        verb = commanded or _verb_in(call.tool, call.name_words)
        verb = verb or {0: "named", 1: "written"}.get(long, "edited")
        # A call that only names a folder says nothing of a file.
        if verb != "named" or "." in path.rpartition("/")[2]:
            yield _LINES_OF_PATH.sub("", one_line(path)), verb
    elif call.command is not None:
        yield from _uses_in(bare_command(call.command))


def _verb_in(name: str, words: Iterable[str] | None = None) -> str | None:
    found = set(words if words is not None else re.findall(r"[a-z]+", name.lower()))
    return next((verb for verb, names in _VERBS.items() if found & names), None)


def _uses_in(command: str) -> Iterator[tuple[str, str]]:
    uses = [
        (found.start(1), found[1], verb)
        for verb, pattern in _SHELL
        for found in pattern.finditer(command)
    ]
    for _, path, verb in sorted(uses):
        if not path.startswith("/dev/"):
            yield path, verb
