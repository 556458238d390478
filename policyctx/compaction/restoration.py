"""Which files return after a compaction, and what they contain now (PRD context-compact F-005)."""

from __future__ import annotations

import errno
import json
import os
import re
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from policyctx.compaction.assembly import path_in
from policyctx.errors import UnrestorableFileError, in_words
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from policyctx.compaction.assembly import PathFields
    from policyctx.definitions.items import Item, Message
    from policyctx.messages.shapes.built_in import Shapes
    from policyctx.policy.models.compaction import Restore
    from policyctx.tokens.counter import TokenCounter

# A pipe must not be waited for, and a link that came since it was looked at not followed.
_READING = os.O_RDONLY
for _flag in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
    _READING |= getattr(os, _flag, 0)

_REPLACED = "it was replaced while it was opened"
_WHY = {
    errno.ENOENT: "there is no such file",
    errno.ENOTDIR: "there is no such file",
    errno.EACCES: "there is no permission to read it",
    errno.EPERM: "there is no permission to read it",
    errno.ELOOP: _REPLACED,
}


class WorkingFiles:
    """The `FileReader` of a real disk."""

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the absolute path that `path` leads to; raises `UnrestorableFileError`."""
        try:
            folder = os.path.realpath(work_dir)
            resolved = os.path.realpath(os.path.join(folder, path))  # noqa: PTH118 - for realpath
            is_inside = os.path.commonpath((folder, resolved)) == folder
        except (OSError, ValueError) as error:
            raise UnrestorableFileError(path, f"it is no path: {error}") from error
        if not is_inside:
            raise UnrestorableFileError(path, f"it is outside of {folder}")
        return resolved

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of a regular file of UTF-8; raises `UnrestorableFileError`.

        What was swapped for a link, at the end of its path or before it, since `resolve` looked at
        it is not read.
        """
        try:
            raw = _file_content(resolved, most_bytes)
        except OSError as error:
            why = _WHY.get(error.errno or 0, f"it cannot be read: {error.strerror}")
            raise UnrestorableFileError(resolved, why) from error
        if b"\0" in raw:
            raise UnrestorableFileError(resolved, "it is no text: there is a NUL byte in it")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnrestorableFileError(resolved, "it is no text in UTF-8") from error


def _file_content(resolved: str, most_bytes: int) -> bytes:
    _check_regular(resolved, os.lstat(resolved))
    with open(os.open(resolved, _READING), "rb") as file:  # noqa: PTH123 - a descriptor
        opened = os.fstat(file.fileno())
        _check_regular(resolved, opened)
        if not _is_at(resolved, opened):
            raise UnrestorableFileError(resolved, _REPLACED)
        raw = b"" if opened.st_size > most_bytes else file.read(most_bytes + 1)
    if max(opened.st_size, len(raw)) > most_bytes:
        size = max(opened.st_size, len(raw))
        raise UnrestorableFileError(resolved, f"it is too large, {size} bytes")
    return raw


def _is_at(resolved: str, opened: os.stat_result) -> bool:
    """Is what was opened the file at this very path, with no link on the way."""
    return os.path.realpath(resolved) == resolved and os.path.samestat(os.lstat(resolved), opened)


def _check_regular(resolved: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnrestorableFileError(resolved, _REPLACED)
    if stat.S_ISDIR(found.st_mode):
        raise UnrestorableFileError(resolved, "it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise UnrestorableFileError(resolved, "it is no regular file")


# No known vocabulary has a token of more bytes, so a file of more than that many bytes a token is
# over its limit for certain, and need not be read.
_MOST_BYTES_PER_TOKEN = 128
# What the field for a file's path is called, what stands in it, and the names of tools that read.
_PATH_FIELD = re.compile(r"(?:path|file|file_?name)$", re.IGNORECASE)
_FILE_PATH = re.compile(r"(?!\w+://)[^\r\n]{0,300}[^\s/\\.]\.\w{1,8}")
_READS = re.compile(r"read|view|open|cat|show|get|fetch|load", re.IGNORECASE)


class FileReader(Protocol):
    """Reads the files of an agent's working directory.

    A file for which a method raises `UnrestorableFileError` or `OSError` is skipped with a warning
    that says why. Any other exception is a bug of the reader: the file is skipped as well, since
    the summary has been made and paid for, and the warning names the exception.
    """

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the absolute path that `path` leads to, all symlinks followed.

        A relative path is one below `work_dir`. The file need not be there. Raises
        `UnrestorableFileError` for a path that leads out of `work_dir`, or that cannot be one.
        """
        ...

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of a file, by a path that `resolve` gave.

        Raises `UnrestorableFileError` for what is not there, no regular file, not readable, no
        UTF-8 text, or larger than `most_bytes`, which is then not read whole; an `OSError` of the
        disk or the network may pass through.
        """
        ...


@dataclass(frozen=True, slots=True)
class RestoredFile:
    """A file that comes back."""

    path: str
    """As the newest call gave it."""
    content: str
    tokens: int
    """Of the content alone."""


@dataclass(frozen=True, slots=True)
class Restoration:
    """The files that come back, newest access first, and a sentence for each that does not."""

    files: tuple[RestoredFile, ...] = ()
    warnings: tuple[str, ...] = ()


def accesses(
    messages: Sequence[Message],
    reads_file: Callable[[str], PathFields | None],
    restored: Callable[[Message], str | None],
    shapes: Shapes = BUILT_IN,
) -> list[str]:
    """Return the paths that were read, each once, the one last accessed first.

    `reads_file` gives, for a tool's name, the field or fields of its input that hold a
    path, and nothing for a tool that reads no file. `restored` gives the path of the file that an
    earlier compaction brought back in a message, which is an access at its place. What is no path
    is passed over.

    Raises `MessagesError` for what is no message list.
    """
    calls: dict[int, list[Item]] = {}
    for item in items_of(messages, shapes):
        if item.kind == "tool_call":
            calls.setdefault(item.message, []).append(item)
    found: dict[str, None] = {}
    for position in reversed(range(len(messages))):
        path = restored(messages[position])
        paths = (
            [path] if path else [_path_read(call, reads_file) for call in calls.get(position, ())]
        )
        found.update(dict.fromkeys(path for path in reversed(paths) if path))
    return list(found)


def _path_read(call: Item, reads_file: Callable[[str], PathFields | None]) -> str | None:
    fields = None if call.tool is None else reads_file(call.tool)
    return path_in(_input(call), fields) if fields else None


def _input(call: Item) -> dict[str, Any]:
    """Return the input of a call; empty if it is not an object."""
    try:
        given = json.loads(call.text)
    except (ValueError, RecursionError):
        return {}
    return given if isinstance(given, dict) else {}


def unknown_readers(
    messages: Sequence[Message],
    reads_file: Callable[[str], PathFields | None],
    shapes: Shapes = BUILT_IN,
) -> dict[str, str]:
    """Return the tools that may read files although nothing says so, with the field of the path.

    Those are the tools that are called with a path to a file, as far as the field's name and its
    value tell. Tools whose name says that they read come first.
    """
    found: dict[str, str] = {}
    for item in items_of(messages, shapes):
        if item.kind != "tool_call" or not item.tool or item.tool in found:
            continue
        if not reads_file(item.tool):
            given = _input(item)
            found.update((item.tool, name) for name in given if _is_path(name, given[name]))
    return dict(sorted(found.items(), key=lambda pair: not _READS.search(pair[0])))


def _is_path(name: str, value: object) -> bool:
    is_named_so = _PATH_FIELD.search(name) is not None
    return is_named_so and isinstance(value, str) and _FILE_PATH.fullmatch(value) is not None


def restore(
    paths: Iterable[str],
    settings: Restore,
    reader: FileReader,
    counter: TokenCounter,
    visible: Collection[str] = frozenset(),
) -> Restoration:
    """Return what comes back of the files at `paths`, the newest access first.

    The newest `max_files` different files are the candidates, two paths to one file being one;
    none that is skipped makes room for an older. A file over `max_tokens_per_file` is skipped, and
    where the sum would be over `max_tokens_total` restoration stops. `visible` are the paths whose
    content still stands in the list: they are candidates, and do not come back. Each other
    candidate that does not has a warning of its own.
    """
    shown = {_resolved(path, settings, reader)[0] for path in visible}
    filling = _Filling(settings, reader, counter)
    for path, resolved, why_not in _candidates(paths, settings, reader):
        if resolved not in shown:
            filling.take(path, resolved, why_not)
    return Restoration(tuple(filling.files), tuple(filling.warnings))


def _candidates(
    paths: Iterable[str], settings: Restore, reader: FileReader
) -> list[tuple[str, str, str]]:
    """The path, what it resolves to, and why it does not, of each candidate."""
    found: dict[str, tuple[str, str, str]] = {}
    for path in paths:
        if len(found) >= settings.max_files:
            break
        resolved, why_not = _resolved(path, settings, reader)
        found.setdefault(resolved, (path, resolved, why_not))
    return list(found.values())


def _resolved(path: str, settings: Restore, reader: FileReader) -> tuple[str, str]:
    """Return what a path resolves to and ""; if it does not resolve, the path and why."""
    try:
        resolved: object = reader.resolve(path, settings.work_dir)
    except Exception as error:  # noqa: BLE001 - a reader's bug must not cost the summary
        return path, _why(error)
    if not isinstance(resolved, str):
        return path, f"the reader returned {type(resolved).__name__}, not a path"
    return resolved, ""


def _content(resolved: str, most_bytes: int, reader: FileReader) -> str:
    """Return what a reader reads; raises `UnrestorableFileError` whatever is wrong with it."""
    try:
        content: object = reader.read(resolved, most_bytes)
    except Exception as error:
        raise UnrestorableFileError(resolved, _why(error)) from error
    if not isinstance(content, str):
        why = f"the reader returned {type(content).__name__}, not a text"
        raise UnrestorableFileError(resolved, why)
    try:
        content.encode()
    except UnicodeEncodeError as error:
        why = "it holds a character that cannot be encoded as UTF-8"
        raise UnrestorableFileError(resolved, why) from error
    return content


def _why(error: Exception) -> str:
    """Say why a reader gave no file."""
    if isinstance(error, UnrestorableFileError):
        return error.why
    if isinstance(error, OSError):
        return error.strerror or " ".join(str(error).split()) or type(error).__name__
    return f"the reader raised {in_words(error)}"


class _Filling:
    """What is brought back, and what it takes so far."""

    def __init__(self, settings: Restore, reader: FileReader, counter: TokenCounter) -> None:
        self.files: list[RestoredFile] = []
        self.warnings: list[str] = []
        self._settings = settings
        self._reader = reader
        self._counter = counter
        self._tokens = 0
        self._stopped = False

    def take(self, path: str, resolved: str, why_not: str) -> None:
        """Bring a file back, or say why not."""
        if self._stopped and not why_not:
            why_not = f"restoration stopped at {self._settings.max_tokens_total} tokens"
        try:
            file = None if why_not else self._file(path, resolved)
        except UnrestorableFileError as error:
            file, why_not = None, error.why
        if file is None:
            self.warnings.append(f"{path!r} is not restored: {why_not}")
        else:
            self._tokens += file.tokens
            self.files.append(file)

    def _file(self, path: str, resolved: str) -> RestoredFile:
        limit, total = self._settings.max_tokens_per_file, self._settings.max_tokens_total
        content = _content(resolved, limit * _MOST_BYTES_PER_TOKEN, self._reader)
        tokens = self._counter.count(content)
        if tokens > limit:
            raise UnrestorableFileError(path, f"its {tokens} tokens are more than {limit}")
        if self._tokens + tokens > total:
            self._stopped = True
            sum_ = f"{self._tokens + tokens} tokens with the files before it"
            raise UnrestorableFileError(path, f"{sum_} are more than {total}")
        return RestoredFile(path, content, tokens)
