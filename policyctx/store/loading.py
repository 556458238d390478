"""An index as its journal, its snapshot, or at the worst its files tell it.

The journal is the truth. The snapshot spares reading a long one, and is a second copy should the
journal be harmed. Of both, only what could have been written here is believed.
"""

from __future__ import annotations

import logging
import os
import threading
from typing import TYPE_CHECKING

from policyctx.store import journal
from policyctx.store.folders import NO_FILE_OF_OURS
from policyctx.store.index import Index
from policyctx.store.rebuilding import adopted
from policyctx.store.snapshot import Snapshots

if TYPE_CHECKING:
    from pathlib import Path

    from policyctx.store.files import Format
    from policyctx.store.opening import Tree
    from policyctx.store.snapshot import Snapshot

_LOG = logging.getLogger("policyctx.store")


class LoadedIndex:
    """The index of one session in `folder`, its snapshot at `snapshot`; both below the root.

    `owns_root` says that no other session keeps its contents in this root. `notices` says what was
    found harmed, and what became of it.
    """

    def __init__(
        self,
        root: Path,
        *,
        folder: str,
        snapshot: str,
        mode: int,
        flush: bool,
        form: Format,
        owns_root: bool,
    ) -> None:
        self.index = Index()
        self.folder = folder
        self.snapshot = snapshot
        self.notices: list[str] = []
        self._root = root
        self._mode = mode
        self._flush = flush
        self._format = form
        self._owns_root = owns_root
        self._threads = threading.RLock()
        self._position: journal.Position | None = None
        self._open: int | None = None
        self._torn = 0
        self._is_loaded = False
        self._is_harmed = False
        self._snapshots = Snapshots(snapshot, folder=folder, mode=mode)

    def refresh(self, tree: Tree) -> Index:
        """Take up what was appended since, by this process or another, and return the index."""
        with self._threads:
            try:
                self._read(tree)
            finally:
                self._close()
            return self.index

    def loaded(self, tree: Tree) -> Index:
        """Return the index as it was read last; what others appended since may be missing."""
        return self.index if self._is_loaded else self.refresh(tree)

    def _read(self, tree: Tree, *, writing: bool = False) -> int:
        """Take up what is new in the journal; return the bytes of a torn line at its end."""
        copy = None if self._is_loaded else self._second_copy(tree)
        self._is_loaded, was_loaded = True, self._is_loaded
        try:
            self._open = journal.opened(tree.folder(self.folder), writing=writing)
            fold = copy.fold if copy else None
            read = journal.read(self._open, self._position, folded=fold)
        except FileNotFoundError:
            if was_loaded:
                self._miss()
            elif copy is not None or self._owns_root:
                self._mend(tree, copy, "the journal was missing")
            return 0
        except OSError as error:
            if error.errno not in NO_FILE_OF_OURS:
                raise
            self._mend(tree, copy, f"the journal is no file of this store: {error.strerror}")
            return 0
        if read.is_new:
            self._replace(tree, read, copy)
        else:
            self._take_up(tree, read, copy)
        return read.torn

    def _close(self) -> None:
        if self._open is not None:
            os.close(self._open)
            self._open = None

    def _replace(self, tree: Tree, read: journal.Read, copy: Snapshot | None) -> None:
        """Take up a journal that was not read before, or that is another than the one known."""
        before, known = self.index, self._position
        self.index = copy.index if copy and read.passed_over else Index()
        self._snapshots.begin(copy if read.passed_over else None)
        self._take_up(tree, read, copy)
        ids = journal.head_ids(read.position.head)
        if not ids:
            self._mend(tree, copy, "the first line of the journal could not be read")
        elif copy and copy.fold.journal_id == ids[0] and read.position.bytes < copy.fold.bytes:
            self._mend(tree, copy, "the journal was cut off")
        if known is not None and not journal.goes_on(known, read.position):
            self.index = self.index.with_missing(before)
            self._harm("the journal was replaced by another; what that one lacked was kept")

    def _take_up(self, tree: Tree, read: journal.Read, copy: Snapshot | None) -> None:
        unknown = sum(not self.index.apply(line) for line in read.lines)
        self._position = read.position
        damage = [*read.damage]
        if unknown:
            damage.append(f"{unknown} of the journal's lines are not valid entries")
        if damage:
            self._mend(tree, copy, " and ".join(damage))

    def _miss(self) -> None:
        if self._position is not None:
            self._position = None
            self._harm("the journal was removed while in use, and is written anew from memory")

    def _mend(self, tree: Tree, copy: Snapshot | None, harm: str) -> None:
        """Fill what a harmed journal no longer says from the snapshot, then from the files."""
        if copy is not None:
            self.index = self.index.with_missing(copy.index)
        before = len(self.index)
        for entry in adopted(tree, self.index, self._format, but={self.snapshot}):
            self.index.add(entry)
        if len(self.index) or self._position is not None:
            found = len(self.index) - before
            files = {0: "no file", 1: "1 file"}.get(found, f"{found} files")
            self._harm(f"{harm}; the index was rebuilt, and {files} recovered from the disk")

    def _harm(self, notice: str) -> None:
        self._is_harmed = True
        self._notice(notice)

    def _notice(self, notice: str) -> None:
        said = f"{self._root}/{self.folder}: {notice}"
        self.notices.append(said)
        _LOG.warning("%s", said)

    def _second_copy(self, tree: Tree) -> Snapshot | None:
        found, harm = self._snapshots.read(tree)
        if harm:
            self._notice(harm)
        return found
