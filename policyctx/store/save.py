"""Saving: write all files, wait for the disk once, name them, then append their entries."""

from __future__ import annotations

import io
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from policyctx.planning.paths import File
from policyctx.store.content import Encoding, Saved, hollow
from policyctx.store.files import PACKED, enveloped, packed, packed_pieces, sha256_in
from policyctx.store.index import GRACE_S, Index, IndexEntry
from policyctx.store.local.write import Batch
from policyctx.store.naming import PathAllocator, check_inside

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from policyctx.store.content import Content
    from policyctx.store.files import Format
    from policyctx.store.local.tree import Tree
    from policyctx.store.state import State


@dataclass(frozen=True, slots=True)
class Prepared:
    """A content with what was found as its text was encoded."""

    content: Content
    format: Format
    raw: bytes
    """The text in UTF-8, compressed in a packed file of the format `text`."""
    sha256: str
    size: int
    """Bytes of the text in UTF-8."""
    chars: int
    lines: int
    is_packed: bool

    @property
    def wanted(self) -> str:
        """The path without a number."""
        return self.content.wanted_path or self.content.relative_path

    @property
    def item_id(self) -> str | None:
        """The id of the item, None where the content came without."""
        return self.content.origin.item_id if self.content.origin else None

    def document(self, now: float) -> bytes:
        """Return the bytes of its file."""
        if self.format == "text":
            return self.raw
        document = enveloped(self.content.text, self.content.origin, now)
        return packed(document) if self.is_packed else document

    def stored_path(self, path: str) -> str:
        """Return where its file is that is read by `path`."""
        return path + PACKED if self.is_packed else path

    def entry(
        self, path: str, now: float, *, same_as: str | None = None, replaces: str | None = None
    ) -> IndexEntry:
        """Return what the index says of it."""
        origin = self.content.origin
        block = origin.block if origin else None
        return IndexEntry(
            path=path,
            sha256=self.sha256,
            size=self.size,
            chars=self.chars,
            lines=self.lines,
            saved_at=now,
            wanted="" if path == self.wanted else self.wanted,
            format=self.format,
            origin=origin.without_block() if origin else None,
            hollow=None if block is None else hollow(block, self.content.text),
            same_as=same_as,
            replaces=replaces,
        )

    def saved(self, path: str, root: str, *, reused: bool, same_as: str | None = None) -> Saved:
        """Return what is answered to the caller."""
        path = self.stored_path(path)
        return Saved(
            File(path, f"{root}/{path}"),
            sha256=self.sha256,
            chars=self.chars,
            lines=self.lines,
            size=self.size,
            reused=reused,
            same_as=same_as,
        )


def prepare(content: Content, form: Format, *, packs: bool) -> Prepared:
    """Encode and hash a content; `packs` says whether the store compresses at all.

    The pieces of a text are walked once: what is hashed is what will be written.
    """
    is_packed = packs and content.packed
    if form == "envelope":  # which is made of the whole text
        content = replace(content, source=content.text)
    encoding = Encoding(content.pieces)
    raw = packed_pieces(encoding) if is_packed and form == "text" else _joined(iter(encoding))
    return Prepared(
        content,
        form,
        raw,
        encoding.sha256,
        size=encoding.size,
        chars=encoding.chars,
        lines=encoding.lines,
        is_packed=is_packed,
    )


def _joined(raws: Iterator[bytes]) -> bytes:
    """The pieces as one; a single one is not copied."""
    file = io.BytesIO(next(raws, b""))
    file.seek(0, io.SEEK_END)
    file.writelines(raws)
    return file.getvalue()


@dataclass(frozen=True, slots=True)
class Rules:
    """How a store writes."""

    on_conflict: Literal["suffix", "overwrite", "error"]
    flush: bool
    mode: int
    shares: bool
    """Is equal content stored once; that needs an index."""
    trusts: bool
    """Does the index know every name, packed ones too, as no other session uses the root."""
    reserved: frozenset[str] = frozenset()
    """Paths that no content may have."""


@dataclass(frozen=True, slots=True)
class SaveResult:
    """What saving came to: answers for the caller, entries for the index."""

    saved: tuple[Saved, ...]
    entries: tuple[IndexEntry, ...]
    reused: tuple[str, ...]
    """Paths of files that were there before."""


@dataclass(frozen=True, slots=True)
class _Placed:
    """A content with its path. It is there already, equal to another, or lies in `temporary`."""

    one: Prepared
    path: str
    reused: bool = False
    same_as: str | None = None
    """The path of an equal content in the store."""
    twin: int | None = None
    """The position of an equal content in this call."""
    temporary: str = ""


class Saving:
    """One call of `save`, without `overwrite`. Raises `OSError` and `StoreError`."""

    def __init__(
        self, tree: Tree, index: Index, rules: Rules, now: float, batch: str | None = None
    ) -> None:
        self._id = batch
        self._tree = tree
        self._index = index
        self._rules = rules
        self._now = now
        self._names = PathAllocator(tree, index, reserved=set(rules.reserved), trusts=rules.trusts)
        self._twins: dict[str, int] = {}

    def written(self, contents: Sequence[Prepared]) -> SaveResult:
        """Write every content and return what became of each, in their order."""
        rules = self._rules
        with Batch(self._tree, mode=rules.mode, flush=rules.flush, of=self._id) as batch:
            placed = [self._placed(batch, i, one) for i, one in enumerate(contents)]
            batch.flush()
            named: list[_Placed] = []
            for one in placed:
                named.append(self._named(batch, one, named))
            batch.flush_folders()
        root = str(self._tree.root)
        return SaveResult(
            tuple(p.one.saved(p.path, root, reused=p.reused, same_as=p.same_as) for p in named),
            tuple(p.one.entry(p.path, self._now, same_as=p.same_as) for p in named),
            tuple(p.one.stored_path(p.path) for p in named if p.reused or p.same_as),
        )

    def _placed(self, batch: Batch, position: int, one: Prepared) -> _Placed:
        check_inside(one.content.relative_path, self._tree)
        if one.content.wanted_path:
            check_inside(one.wanted, self._tree)
        exactly = self._rules.on_conflict == "error"
        path, occupant = (self._names.take_exactly if exactly else self._names.take)(one)
        if occupant == "itself" or (occupant == "itself packed" and one.is_packed):
            batch.expect(one.stored_path(path))
            return _Placed(one, path, reused=True)
        if self._rules.shares and one.format == "text" and not one.is_packed:
            twin = self._twins.setdefault(one.sha256, position)
            if twin != position:
                return _Placed(one, path, twin=twin)
            equal = self._index.equal(one.sha256)
            if equal is not None and self._names.occupant(equal, one) == "itself":
                batch.expect(equal)
                return _Placed(one, path, same_as=equal)
        return self._staged(batch, one, path)

    def _staged(self, batch: Batch, one: Prepared, path: str) -> _Placed:
        temporary = batch.stage(one.stored_path(path), one.document(self._now))
        return _Placed(one, path, temporary=temporary)

    def _named(self, batch: Batch, placed: _Placed, before: Sequence[_Placed]) -> _Placed:
        if placed.reused:
            return placed
        if placed.twin is not None:
            placed = replace(placed, same_as=before[placed.twin].path)
        while not placed.reused:
            try:
                self._name(batch, placed)
            except FileExistsError:
                placed = self._elsewhere(placed)
            except OSError as error:
                if placed.same_as is None:
                    raise
                placed = self._unlinked(batch, placed, error)
            else:
                break
        return placed

    def _name(self, batch: Batch, placed: _Placed) -> None:
        if placed.same_as is None:
            batch.name(placed.temporary, placed.one.stored_path(placed.path))
        else:
            batch.link(placed.same_as, placed.path)

    def _unlinked(self, batch: Batch, placed: _Placed, error: OSError) -> _Placed:
        """No link is to be had: the equal content's own file, or where that has gone, another."""
        if not isinstance(error, FileNotFoundError):
            return replace(placed, path=placed.same_as or placed.path, reused=True)
        placed = self._staged(batch, placed.one, placed.path)
        batch.flush()
        return placed

    def _elsewhere(self, placed: _Placed) -> _Placed:
        """Another writer was faster: the next name, or its file where that holds this very text."""
        self._names.lose(placed.path)
        exactly = self._rules.on_conflict == "error"
        path, occupant = (self._names.take_exactly if exactly else self._names.take)(placed.one)
        return replace(placed, path=path, reused=occupant == "itself")


class Overwriting:
    """One call of `save` with `overwrite`. Raises `OSError` and `StoreError`.

    `announce` takes the entries up before the files change: a crash in between leaves the earlier
    content, which its entry names as what it replaces.
    """

    def __init__(
        self,
        tree: Tree,
        rules: Rules,
        now: float,
        announce: Callable[[Sequence[IndexEntry]], object],
        batch: str | None = None,
    ) -> None:
        self._id = batch
        self._tree = tree
        self._rules = rules
        self._now = now
        self._announce = announce

    def written(self, contents: Sequence[Prepared]) -> SaveResult:
        """Write every content and return what became of each, in their order."""
        root = str(self._tree.root)
        rules = self._rules
        with Batch(self._tree, mode=rules.mode, flush=rules.flush, of=self._id) as batch:
            staged = self._staged(batch, contents)
            batch.flush()
            self._announce([self._entry(path, one) for path, (one, _) in staged.items()])
            for path, (one, temporary) in staged.items():
                batch.put(temporary, one.stored_path(path))
            batch.flush_folders()
        saved = (one.saved(one.content.relative_path, root, reused=False) for one in contents)
        return SaveResult(tuple(saved), (), ())

    def _staged(
        self, batch: Batch, contents: Sequence[Prepared]
    ) -> dict[str, tuple[Prepared, str]]:
        """The last content of each path, with the temporary file that it lies in."""
        last = {one.content.relative_path: one for one in contents}
        for path in last:
            check_inside(path, self._tree)
            if path in self._rules.reserved:
                check_inside("", self._tree)
        return {
            path: (one, batch.stage(one.stored_path(path), one.document(self._now)))
            for path, one in last.items()
        }

    def _entry(self, path: str, one: Prepared) -> IndexEntry:
        try:
            before = sha256_in(self._tree, path, one.format)
        except (OSError, ValueError):
            before = None
        return one.entry(path, self._now, replaces=before)


def commit(
    tree: Tree,
    state: State | None,
    rules: Rules,
    contents: Sequence[Prepared],
    now: float,
    *,
    batch: str | None,
) -> SaveResult | None:
    """Save all contents; None when others changed what was counted on, and all is to be redone.

    The files of a `batch` are in flight: the index need not wait for the disk, since the records
    that name them will. Raises `OSError` and `StoreError`. What has its name by then stays.
    """
    if rules.on_conflict == "overwrite":
        return _overwrite(tree, state, rules, contents, now, batch=batch)
    index = Index() if state is None else state.loaded(tree)
    written = Saving(tree, index, rules, now, batch).written(contents)
    if state is None:
        return written
    with state.writing(tree) as index:
        # `collect` may have removed an older file of this name, and with it the new one.
        if not all(_is_there(tree, one.file.relative_path) for one in written.saved):
            return None
        taken = [entry.path for entry in written.entries if _is_taken(entry, index)]
        if taken:
            _withdraw(tree, set(taken) - set(written.reused))
            return None
        new = [entry for entry in written.entries if _is_new(entry, index)]
        moved = _changed_batch(batch, index, written.entries)
        if new or moved:
            state.append(tree, entries=new, in_flight=moved, flush=batch is None)
    return written


def _overwrite(
    tree: Tree,
    state: State | None,
    rules: Rules,
    contents: Sequence[Prepared],
    now: float,
    *,
    batch: str | None,
) -> SaveResult:
    if state is None:
        return Overwriting(tree, rules, now, lambda _: None).written(contents)

    def announce(entries: Sequence[IndexEntry]) -> None:
        state.append(tree, entries=entries)

    with state.writing(tree):  # or another could name its own files between ours
        return Overwriting(tree, rules, now, announce, batch).written(contents)


def _is_there(tree: Tree, path: str) -> bool:
    folder, name = tree.place(path)
    try:
        folder.stat(name)
    except FileNotFoundError:
        return False
    return True


def _is_taken(entry: IndexEntry, index: Index) -> bool:
    """Has another process given the name to a content that lies packed, or was removed by hand."""
    known = index.at(entry.path)
    return known is not None and known.sha256 != entry.sha256


def _changed_batch(
    batch: str | None, index: Index, entries: Iterable[IndexEntry]
) -> dict[str, list[str]]:
    """Return the paths of a batch where they are not those that it was about to use."""
    paths = {entry.path for entry in entries}
    if batch is None or paths == index.in_flight.paths(batch):
        return {}
    return {batch: sorted(paths)}


def _withdraw(tree: Tree, paths: Iterable[str]) -> None:
    for path in paths:
        folder, name = tree.place(path)
        folder.remove(name)


def _is_new(entry: IndexEntry, index: Index) -> bool:
    """Does an entry tell something new, or renew what `collect` might soon take for left over."""
    known = index.of(entry.path, entry.item_id)
    if known is None or known.sha256 != entry.sha256:
        return True
    return abs(entry.saved_at - known.saved_at) > GRACE_S / 2
