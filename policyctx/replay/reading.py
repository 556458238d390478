"""From files to recordings: which reader knows a file, by what is in it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Protocol

from policyctx.errors import UnreadableRecordingError
from policyctx.replay.readers import claude_code, codex, pi
from policyctx.replay.readers.source import Source

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from policyctx.replay.recording import Recording


class Reader(Protocol):
    """Knows one format; a module with these names is one."""

    FORMAT: str
    """What its recordings say that they are, such as `claude-code`."""

    def recognises(self, record: object) -> bool:
        """Is this one record enough to know the format by."""
        ...

    def recordings(self, source: Source) -> Iterator[Recording]:
        """Yield what the file holds."""
        ...


READERS: tuple[Reader, ...] = (claude_code, codex, pi)


def recordings_in(path: Path, *, name: str | None = None) -> Iterator[Recording]:
    """Yield the recordings of a file; their names begin with `name`, by default the file's own.

    The format shows in the content. Raises `UnreadableRecordingError`.
    """
    yield from _recordings(str(path), Source(name or path.name, lambda: path.open("rb")))


def recordings_of(content: bytes, name: str) -> Iterator[Recording]:
    """Yield the recordings of what was read already, as `recordings_in` does of a file."""
    yield from _recordings(name, Source(name, lambda: io.BytesIO(content)))


def _recordings(path: str, source: Source) -> Iterator[Recording]:
    found = False
    try:
        reader = _reader(path, source)
        for recording in reader.recordings(source):
            found = True
            yield recording
    except OSError as error:
        raise UnreadableRecordingError(path, error.strerror or str(error)) from error
    if not found:
        raise UnreadableRecordingError(path, "no message is in it", format_=reader.FORMAT)


def _reader(path: str, source: Source) -> Reader:
    for record in source.records():
        for reader in READERS:
            if reader.recognises(record):
                return reader
    formats = ", ".join(reader.FORMAT for reader in READERS)
    raise UnreadableRecordingError(path, f"none of the known formats: {formats}")


def files_in(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the files among `paths` and in the folders among them, sorted within each folder."""
    for path in paths:
        if path.is_dir():
            yield from files_in(sorted(path.iterdir()))
        else:
            yield path
