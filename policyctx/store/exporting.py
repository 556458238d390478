"""A session as one file: a tar archive, compressed with zstd, of its journal and its contents."""

from __future__ import annotations

import io
import os
import secrets
import tarfile
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

from policyctx.store import journal
from policyctx.store.encoding import encoded
from policyctx.store.folders import NEW_FILE, set_mode
from policyctx.store.packing import packing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from policyctx.store.index import Index
    from policyctx.store.reading import Reader

CONTENTS = "contents/"


def export(
    index: Index, reader: Reader, target: Path, *, mode: int, progress: Callable[[int, int], object]
) -> int:
    """Write a session to `target`, in one step, and return the number of its contents.

    Equal contents are in it once. Raises `OSError`, and `CorruptContentError` for what is harmed.
    """
    contents = {entry.sha256: entry for entry in index}
    with _replacing(target, mode) as file, packing(file) as packed:  # noqa: SIM117 - in this order
        with tarfile.open(fileobj=packed, mode="w|", format=tarfile.PAX_FORMAT) as archive:
            raw = [journal.new_head(), *journal.numbered(index.lines())]
            _add(archive, journal.JOURNAL, b"".join(raw))
            for done, (sha256, entry) in enumerate(contents.items()):
                progress(done, len(contents))
                _add(archive, CONTENTS + sha256, encoded(reader.of(entry)))
    progress(len(contents), len(contents))
    return len(index)


def _add(archive: tarfile.TarFile, name: str, content: bytes) -> None:
    member = tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o600
    archive.addfile(member, io.BytesIO(content))


@contextmanager
def _replacing(target: Path, mode: int) -> Iterator[IO[bytes]]:
    """Give a file that takes the place of `target` when it is complete, and is removed if not."""
    temporary = target.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        descriptor = os.open(temporary, NEW_FILE, mode)
        with open(descriptor, "wb") as file:  # noqa: PTH123 - an open descriptor, not a path
            set_mode(descriptor, mode)
            yield file
            file.flush()
            os.fsync(descriptor)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
