"""Which files and lines return after a compaction, as they are now (PRD context-compact F-005)."""

import errno
import os
import stat
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TypeAlias

from policyctx.compaction.assembly import FileReader, RestoredFile
from policyctx.compaction.file_access import FileAccess, header
from policyctx.errors import UnrestorableFileError, in_words
from policyctx.planning.superseded import ShownLines
from policyctx.policy.models.compaction import Restore
from policyctx.resources import open_at_once
from policyctx.tokens.counter import TokenCounter

# Lines shown before and behind an edit.
_AROUND_EDIT = 5
# Tokens of the line that leads a range, about.
_HEADER_TOKENS = 16
# No known vocabulary has a token of more bytes, so a file of more than that many bytes a token is
# over its limit for certain, and need not be read.
_MOST_BYTES_PER_TOKEN = 128
# A larger file has no windows either: it would have to be read whole for them.
_MOST_BYTES_FOR_WINDOWS = 16_000_000
# A candidate, what its path resolves to, and why it does not.
_Candidate: TypeAlias = tuple[FileAccess, str, str]


class Windows(NamedTuple):
    """Ranges of the lines of a file, as text."""

    text: str
    """Each range behind a line with its numbers; "" for none."""
    ranges: tuple[tuple[int, int], ...] = ()
    """In the order of the file; first and last line, from 1."""


def windows(
    content: str, seen: Iterable[ShownLines | str], max_tokens: int, counter: TokenCounter
) -> Windows:
    """Return the lines of `content` that were seen, the newest of them, in `max_tokens` tokens.

    `seen` has the newest first: ranges of lines, and texts whose place is looked up. A range that
    does not fit is cut at its end; what is older is left out.
    """
    lines = content.splitlines(keepends=True)
    chosen: set[int] = set()
    left = max_tokens
    for range_ in _ranges(content, len(lines), seen):
        new = [at for at in range_ if at not in chosen]
        if not new:
            continue
        left -= _HEADER_TOKENS
        taken = _fitting(new, lines, left, counter)
        chosen.update(taken)
        left -= sum(counter.count_many([lines[at] for at in taken]))
        if len(taken) < len(new):
            break
    return _shown(lines, chosen, max_tokens, counter)


def _ranges(content: str, count: int, seen: Iterable[ShownLines | str]) -> Iterator[range]:
    """Yield the indices of the lines of each piece that is in the file."""
    for one in seen:
        if isinstance(one, ShownLines):
            yield range(
                min(one.first - 1, count), count if one.last is None else min(one.last, count)
            )
        elif (at := content.find(one)) >= 0:
            first = content.count("\n", 0, at)
            last = first + one.rstrip("\n").count("\n")
            yield range(max(0, first - _AROUND_EDIT), min(count, last + 1 + _AROUND_EDIT))


def _fitting(
    indices: Sequence[int], lines: Sequence[str], room: int, counter: TokenCounter
) -> list[int]:
    """Return the first of these lines, as many as fit into a number of tokens."""
    taken: list[int] = []
    step = 200  # a range may be a whole large file: only as many lines are counted as may fit
    for start in range(0, len(indices), step):
        part = indices[start : start + step]
        for at, tokens in zip(part, counter.count_many([lines[i] for i in part]), strict=True):
            if tokens > room:
                return taken
            taken.append(at)
            room -= tokens
    return taken


def _shown(
    lines: Sequence[str], chosen: set[int], max_tokens: int, counter: TokenCounter
) -> Windows:
    """Return the chosen lines; lines counted together may have a few tokens more than alone."""
    while chosen:
        ranges = _runs(chosen)
        text = "".join(_written(lines, first, last) for first, last in ranges).removesuffix("\n")
        if counter.count(text) <= max_tokens:
            return Windows(text, tuple(ranges))
        chosen = chosen - {max(chosen)}
    return Windows("")


def _runs(chosen: set[int]) -> list[tuple[int, int]]:
    """Return the runs of consecutive indices, as first and last line from 1."""
    runs = groupby(enumerate(sorted(chosen)), key=lambda pair: pair[1] - pair[0])
    found = ([at for _, at in run] for _, run in runs)
    return [(run[0] + 1, run[-1] + 1) for run in found]


def _written(lines: Sequence[str], first: int, last: int) -> str:
    text = "".join(lines[first - 1 : last])
    end = "" if text.endswith("\n") else "\n"
    return f"{header(ShownLines(first, last), len(lines))}\n{text}{end}"


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
            raise UnrestorableFileError(path, f"it is not a path: {error}") from error
        if not is_inside:
            raise UnrestorableFileError(path, f"it is outside of {folder}")
        if _is_loop(resolved):
            raise UnrestorableFileError(path, "it is a link that leads back to itself")
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
            raise UnrestorableFileError(resolved, "it is not text: there is a NUL byte in it")
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise UnrestorableFileError(resolved, "it is not text in UTF-8") from error


def _is_loop(resolved: str) -> bool:
    """Whether links on the way of a resolved path lead nowhere but to themselves."""
    try:
        os.stat(resolved)  # noqa: PTH116 - a path of text
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


def _file_content(resolved: str, most_bytes: int) -> bytes:
    _check_regular(resolved, os.lstat(resolved))
    with open_at_once(resolved, _READING) as file:
        opened = os.fstat(file.fileno())
        _check_regular(resolved, opened)
        is_at_path = os.path.samestat(os.lstat(resolved), opened)
        if not is_at_path or os.path.realpath(resolved) != resolved:
            raise UnrestorableFileError(resolved, _REPLACED)
        raw = b"" if opened.st_size > most_bytes else file.read(most_bytes + 1)
    if (size := max(opened.st_size, len(raw))) > most_bytes:
        raise UnrestorableFileError(resolved, f"it is too large, {size} bytes")
    return raw


def _check_regular(resolved: str, found: os.stat_result) -> None:
    if stat.S_ISLNK(found.st_mode):
        raise UnrestorableFileError(resolved, _REPLACED)
    if stat.S_ISDIR(found.st_mode):
        raise UnrestorableFileError(resolved, "it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise UnrestorableFileError(resolved, "it is not a regular file")


class Restoration(NamedTuple):
    """The files that come back, newest access first, and a sentence for each that does not."""

    files: tuple[RestoredFile, ...] = ()
    warnings: tuple[str, ...] = ()


def restore(
    accessed: Iterable[FileAccess],
    settings: Restore,
    reader: FileReader,
    counter: TokenCounter,
    visible: Collection[str] = frozenset(),
) -> Restoration:
    """Return what comes back of the files that were accessed, the newest access first.

    The files of `always` are the first candidates. The newest `max_files` different other files
    follow, two paths to one file being one; none that is skipped makes room for an older.
    A file over `max_tokens_per_file` is skipped, or
    comes back by its windows, as `large_files` says. Where the sum would be over
    `max_tokens_total` restoration stops. `visible` are the paths whose
    content is still in the list: they are candidates, and do not come back. Each other
    candidate that does not has a warning of its own.
    """
    shown = {_resolved(path, settings, reader)[0] for path in visible}
    filling = _Filling(settings, reader, counter)
    always: dict[str, _Candidate] = {}
    for path in settings.always:
        resolved, why_not = _resolved(path, settings, reader)
        always.setdefault(resolved, (FileAccess(path), resolved, why_not))
    others = _candidates(accessed, settings, reader, always)
    for access, resolved, why_not in (*always.values(), *others):
        if resolved not in shown:
            filling.take(access, resolved, why_not, must_exist=resolved not in always)
    return Restoration(tuple(filling.files), tuple(filling.warnings))


def _candidates(
    accessed: Iterable[FileAccess],
    settings: Restore,
    reader: FileReader,
    beside: Collection[str],
) -> list[_Candidate]:
    """Return each candidate whose path does not resolve to one of `beside`."""
    found: dict[str, _Candidate] = {}
    for access in accessed:
        if len(found) >= settings.max_files and settings.large_files == "skip":
            break
        resolved, why_not = _resolved(access.path, settings, reader)
        if resolved in found:
            first = found[resolved][0]
            merged = FileAccess(first.path, (*first.seen, *access.seen))
            found[resolved] = merged, resolved, why_not
        elif len(found) < settings.max_files and resolved not in beside:
            found.setdefault(resolved, (access, resolved, why_not))
    return list(found.values())


def _resolved(path: str, settings: Restore, reader: FileReader) -> tuple[str, str]:
    """Return what a path resolves to and ""; if it does not resolve, the path and why."""
    try:
        resolved: object = reader.resolve(path, settings.work_dir)
    except Exception as error:  # noqa: BLE001 - a reader's bug must not cost the summary
        return path, _why(error)
    if not isinstance(resolved, str):
        return path, f"the reader returned {type(resolved).__name__}, not a path as a str"
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
    if isinstance(error, UnrestorableFileError):
        return error.why
    if isinstance(error, OSError):
        return error.strerror or " ".join(str(error).split()) or type(error).__name__
    return f"the reader raised {in_words(error)}"


def _is_missing(error: BaseException | None) -> bool:
    """Whether a file was not read because it is not there."""
    if error is None or isinstance(error, FileNotFoundError | NotADirectoryError):
        return error is not None
    return _is_missing(error.__cause__)


class _Filling:
    """What is brought back, and what it takes so far."""

    def __init__(self, settings: Restore, reader: FileReader, counter: TokenCounter) -> None:
        self.files: list[RestoredFile] = []
        self.warnings: list[str] = []
        self._settings, self._reader, self._counter = settings, reader, counter
        self._tokens = 0
        self._stopped = False

    def take(
        self, access: FileAccess, resolved: str, why_not: str, *, must_exist: bool = True
    ) -> None:
        """Bring a file back, or say why not; unless it must exist, a missing one is skipped."""
        if self._stopped and not why_not:
            why_not = f"restoration stopped at {self._settings.max_tokens_total} tokens"
        try:
            file = None if why_not else self._file(access, resolved)
        except UnrestorableFileError as error:
            if not must_exist and _is_missing(error):
                return
            file, why_not = None, error.why
        if file is None:
            self.warnings.append(f"{access.path!r} is not restored: {why_not}")
        else:
            self._tokens += file.tokens
            self.files.append(file)

    def _file(self, access: FileAccess, resolved: str) -> RestoredFile:
        limit, total = self._settings.max_tokens_per_file, self._settings.max_tokens_total
        in_windows = self._settings.large_files == "windows"
        most_bytes = limit * _MOST_BYTES_PER_TOKEN
        if in_windows:
            most_bytes = max(most_bytes, _MOST_BYTES_FOR_WINDOWS)
        content = _content(resolved, most_bytes, self._reader)
        # Text of so many characters is over the limit for certain: no token has more bytes.
        is_large = len(content) > limit * _MOST_BYTES_PER_TOKEN
        tokens = 0 if is_large else self._counter.count(content)
        file = RestoredFile(access.path, content, tokens)
        if is_large or tokens > limit:
            why = f"its {tokens} tokens are more than {limit}"
            if is_large:
                why = f"it has more than {limit} tokens"
            if not in_windows:
                raise UnrestorableFileError(access.path, why)
            file = self._windowed(access, content)
        if self._tokens + file.tokens > total:
            self._stopped = True
            sum_ = f"{self._tokens + file.tokens} tokens with the files before it"
            raise UnrestorableFileError(access.path, f"{sum_} are more than {total}")
        return file

    def _windowed(self, access: FileAccess, content: str) -> RestoredFile:
        limit = self._settings.max_tokens_per_file
        shown = windows(content, access.seen, limit, self._counter)
        if not shown.text:
            why = f"it has more than {limit} tokens, and no lines of it that were read are known"
            raise UnrestorableFileError(access.path, why)
        return RestoredFile(access.path, shown.text, self._counter.count(shown.text), shown.ranges)
