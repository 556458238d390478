"""A session read back from the one file that it was exported to."""

from __future__ import annotations

import re
import tarfile
from collections import defaultdict
from typing import IO, TYPE_CHECKING

from policyctx.store import journal
from policyctx.store.content import Content
from policyctx.store.encoding import decoded, sha256_of
from policyctx.store.exporting import CONTENTS
from policyctx.store.index import Index
from policyctx.store.packing import unpacking
from policyctx.store.prepared import prepared
from policyctx.store.writing import Batch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from policyctx.store.entries import Entry
    from policyctx.store.opening import Tree
    from policyctx.store.saving import Rules

_CONTENT = re.compile(rf"{CONTENTS}([0-9a-f]{{64}})")


def imported(
    tree: Tree, source: Path, rules: Rules, progress: Callable[[int, int], object]
) -> Index:
    """Write every content of an exported session to its place, and return its index.

    Nothing gets its name before all is read, whole and as its hash says. Raises `ValueError` for
    another file, `FileExistsError` where a path is taken, and `OSError`.
    """
    try:
        with (
            source.open("rb") as file,
            unpacking(file) as raw,
            tarfile.open(fileobj=raw, mode="r|") as archive,
            Batch(tree, mode=rules.mode, flush=rules.flush) as batch,
        ):
            index = _index(archive)
            _write(batch, archive, index, progress)
            batch.flush_folders()
    except tarfile.TarError as error:
        raise ValueError(f"no exported session: {error}") from error
    return index


def _index(archive: tarfile.TarFile) -> Index:
    member = archive.next()
    file = archive.extractfile(member) if member and member.name == journal.JOURNAL else None
    if file is None:
        raise ValueError("no exported session: it does not begin with a journal")
    head, *lines = file.read().split(b"\n")[:-1]
    index = Index()
    found = journal.parsed(lines)
    if not journal.head_ids(head) or found.damage or not all(map(index.apply, found.values)):
        raise ValueError("no exported session: its journal holds what was not written here")
    return index


def _write(
    batch: Batch, archive: tarfile.TarFile, index: Index, progress: Callable[[int, int], object]
) -> None:
    wanted: dict[str, list[Entry]] = defaultdict(list)
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
        staged += _staged(batch, file, entries)
    if wanted:
        raise ValueError(f"{len(wanted)} of {number} contents are missing; it is cut off")
    batch.flush()
    for temporary, path in staged:
        batch.name(temporary, path)
    progress(number, number)


def _staged(batch: Batch, file: IO[bytes], entries: list[Entry]) -> list[tuple[str, str]]:
    raw = file.read()
    if sha256_of(raw) != entries[0].sha256:
        raise ValueError(f"a content no longer has the sha256 {entries[0].sha256}")
    text = decoded(raw)
    staged = []
    for path, entry in {entry.path: entry for entry in entries}.items():
        one = prepared(Content(path, text, origin=entry.origin), entry.format, packs=False)
        staged.append((batch.stage(path, one.document(entry.saved_at)), path))
    return staged
