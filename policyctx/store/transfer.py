"""A session as one file, and from one store to another.

The file is a tar archive, compressed with zstd, of the session's journal and its contents.
"""

from __future__ import annotations

import io
import os
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from policyctx import lazy
from policyctx.store.backend import Backend, Progress, WriteBatch, random_name
from policyctx.store.content import PACKED, STATE_FOLDER, Content, decoded, encoded, sha256_of
from policyctx.store.files import packing, prepare, sha256_in, unpacking
from policyctx.store.index import Index, IndexEntry
from policyctx.store.journal import JOURNAL, head_ids, new_head, numbered, parse_lines
from policyctx.store.read import ContentReader

CONTENTS = "contents/"
# Contents that are in memory together while a session is copied.
_AT_A_TIME = 32
_CONTENT = re.compile(rf"{CONTENTS}([0-9a-f]{{64}})")


def export_session(
    index: Index, reader: ContentReader, target: Path, *, mode: int, progress: Progress
) -> int:
    """Write a session to `target`, in one step, and return the number of its contents.

    Equal contents are in it once. Raises `OSError`, and `CorruptContentError` for damaged contents.
    """
    contents = {entry.sha256: entry for entry in index}
    with _replacing(target, mode) as file, packing(file) as packed:  # noqa: SIM117 - in this order
        with lazy.tarfile.open(
            fileobj=packed, mode="w|", format=lazy.tarfile.PAX_FORMAT
        ) as archive:
            _add_member(archive, JOURNAL, b"".join([new_head(), *numbered(index.lines())]))
            for done, (sha256, entry) in enumerate(contents.items()):
                progress(done, len(contents))
                _add_member(archive, CONTENTS + sha256, encoded(reader.of(entry)))
    progress(len(contents), len(contents))
    return index.contents


def copy_session(index: Index, reader: ContentReader, target: Backend, progress: Progress) -> Index:
    """Write every content of a session to the same path in another store; return its index.

    A content that is there already, as its hash says, is not read from the source. So a copy that
    was cut off goes on where it was. Raises `OSError`, `FileExistsError` where another content has
    a path, and `CorruptContentError`.
    """
    entries = [*{entry.path: entry for entry in index}.values()]
    there = _paths_in(target)
    for begin in range(0, len(entries), _AT_A_TIME):
        progress(begin, len(entries))
        wanted = entries[begin : begin + _AT_A_TIME]
        left = [one for one in wanted if one.path not in there or not _holds(target, one)]
        _copy(left, reader, target)
    progress(len(entries), len(entries))
    copied = Index()
    for line in index.lines():
        if "in_flight" not in line:
            copied.apply(line)
    return copied


def _paths_in(target: Backend) -> set[str]:
    try:
        found = target.files(without=frozenset({STATE_FOLDER}))
        return {path.removesuffix(PACKED) for path in found}
    except FileNotFoundError:
        return set()


def _holds(target: Backend, entry: IndexEntry) -> bool:
    try:
        return sha256_in(target, entry.path, entry.format) == entry.sha256
    except (FileNotFoundError, ValueError):
        return False


def _copy(entries: Sequence[IndexEntry], reader: ContentReader, target: Backend) -> None:
    with target.batch() as batch:
        staged = []
        for entry, text in zip(entries, reader.texts(entries), strict=True):
            staged.append((_stage(batch, entry, text), entry.path))
        batch.flush()
        for temporary, path in staged:
            batch.publish(temporary, path)
        batch.flush_folders()


def _stage(batch: WriteBatch, entry: IndexEntry, text: str) -> str:
    one = prepare(Content(entry.path, text, origin=entry.origin), entry.format, packs=False)
    return batch.stage(entry.path, one.document(entry.saved_at))


def _add_member(archive: lazy.tarfile.TarFile, name: str, content: bytes) -> None:
    member = lazy.tarfile.TarInfo(name)
    member.size = len(content)
    member.mode = 0o600
    archive.addfile(member, io.BytesIO(content))


@contextmanager
def _replacing(target: Path, mode: int) -> Iterator[IO[bytes]]:
    """Provide a file that replaces `target` when it is complete, and is removed otherwise."""
    temporary = target.parent / f".{random_name()}.tmp"
    try:
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            os.fchmod(file.fileno(), mode)
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def import_session(backend: Backend, source: Path, progress: Progress) -> Index:
    """Write every content of an exported session to its place, and return its index.

    Nothing gets its name before all is read, whole and as its hash says. Raises `ValueError` for
    another file, `FileExistsError` where a path is taken, and `OSError`.
    """
    try:
        with (
            source.open("rb") as file,
            unpacking(file) as raw,
            lazy.tarfile.open(fileobj=raw, mode="r|") as archive,
            backend.batch() as batch,
        ):
            index = _read_index(archive)
            _write_contents(batch, archive, index, progress)
            batch.flush_folders()
    except lazy.tarfile.TarError as error:
        raise ValueError(f"no exported session: {error}") from error
    return index


def _read_index(archive: lazy.tarfile.TarFile) -> Index:
    member = archive.next()
    file = archive.extractfile(member) if member and member.name == JOURNAL else None
    if file is None:
        raise ValueError("no exported session: it does not begin with a journal")
    head, *lines = file.read().split(b"\n")[:-1]
    index = Index()
    found = parse_lines(lines)
    if not head_ids(head) or found.damage or not all(map(index.apply, found.values)):
        raise ValueError("no exported session: its journal holds what was not written here")
    return index


def _write_contents(
    batch: WriteBatch, archive: lazy.tarfile.TarFile, index: Index, progress: Progress
) -> None:
    wanted: dict[str, list[IndexEntry]] = defaultdict(list)
    for entry in index:
        wanted[entry.sha256].append(entry)
    number = len(wanted)
    staged: list[tuple[str, str]] = []
    while member := archive.next():
        progress(number - len(wanted), number)
        found = _CONTENT.fullmatch(member.name)
        file = archive.extractfile(member)
        entries = wanted.pop(found[1], []) if found else []
        if not entries or file is None or member.size != entries[0].size:
            raise ValueError(f"no exported session: {member.name} is none of its contents")
        staged += _stage_copies(batch, file, entries)
    if wanted:
        raise ValueError(f"{len(wanted)} of {number} contents are missing; it is cut off")
    batch.flush()
    for temporary, path in staged:
        batch.publish(temporary, path)
    progress(number, number)


def _stage_copies(
    batch: WriteBatch, file: IO[bytes], entries: list[IndexEntry]
) -> list[tuple[str, str]]:
    raw = file.read()
    if sha256_of(raw) != entries[0].sha256:
        raise ValueError(f"a content no longer has the sha256 {entries[0].sha256}")
    by_path = {entry.path: entry for entry in entries}
    return [(_stage(batch, entry, decoded(raw)), path) for path, entry in by_path.items()]
