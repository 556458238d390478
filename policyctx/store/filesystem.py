"""`ContextFileSystem`: where offloaded content lives, and how it is read back."""

from __future__ import annotations

import errno
import stat
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from policyctx.errors import AmbiguousSessionError, StoreError
from policyctx.planning.paths import EXTENSIONS, File, path_parts, relative_path, safe_part
from policyctx.store.content import STATE_FOLDER, Content, Origin, Saved
from policyctx.store.index import Index
from policyctx.store.journal import JOURNAL, Event, events
from policyctx.store.local.tree import Tree
from policyctx.store.naming import absolute_root, check_inside
from policyctx.store.read import ContentReader, Verification, matches, verify_entries
from policyctx.store.retain import CollectionReport, Collector, Terms
from policyctx.store.save import Rules, commit, prepare
from policyctx.store.sessions import INDEX, lines_in, session_of, snapshot_path, state_folders
from policyctx.store.state import Rebuilt, State
from policyctx.store.transfer import export_session, import_session

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from policyctx.messages.items import Item
    from policyctx.store.content import JSON
    from policyctx.store.files import Format
    from policyctx.store.index import IndexEntry
    from policyctx.store.read import TextMatch


@contextmanager
def failing_as(verb: str, root: Path, path: str = "") -> Iterator[None]:
    """Raise `StoreError` in the place of `OSError` and `ValueError`: what cannot be `verb`, why."""
    try:
        yield
    except (OSError, ValueError, RecursionError) as error:
        where = str(getattr(error, "filename", None) or path or root)
        if getattr(error, "errno", None) == errno.ELOOP:
            raise StoreError(f"{where} is a link and leads out of {root}", path=where) from error
        reason = getattr(error, "strerror", None) or error
        raise StoreError(f"{where} cannot be {verb}: {reason}", path=where) from error


_Files: TypeAlias = list[File]
_Saved: TypeAlias = list[Saved]
_Records: TypeAlias = "list[dict[str, JSON]]"
# How often a file may vanish that a save counts on, before that is an error.
_RACES = 100


class Storage:
    """A folder of saved contents, one text a file, bytes as they are in UTF-8.

    Nothing is created before the first `save`. Lone surrogates, which UTF-8 does not have, are
    written as CPython's `surrogatepass` does, so that every text reads back as it was. Threads and
    processes may use one folder together, each with a store of its own or not.

    `session` is given where several sessions share the root: each then has an index and records
    of its own. With `state: none` there are neither, and contents are read by path alone. `clock`
    returns the seconds since 1970.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        on_conflict: Literal["suffix", "overwrite", "error"] = "suffix",
        sync: Literal["always", "never"] = "always",
        mode: str = "0600",
        state: Literal["kept", "none"] = "kept",
        session: str | None = None,
        format: Format = "text",  # noqa: A002 - the policy's word
        compress: Literal["none", "zstd"] = "zstd",
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root = absolute_root(root)
        self._mode = int(mode, 8)
        self._format = format
        self._packs = compress == "zstd"
        self._clock = clock
        self._session = session
        folder = STATE_FOLDER if session is None else f"{STATE_FOLDER}/{safe_part(session)}"
        snapshot = snapshot_path(folder, format)
        self._rules = Rules(
            on_conflict,
            flush=sync == "always",
            mode=self._mode,
            shares=state == "kept",
            trusts=state == "kept" and session is None and on_conflict == "suffix",
            reserved=frozenset({snapshot} if state == "kept" else ()),
        )
        self._state = (
            State(
                self.root,
                folder=folder,
                snapshot=snapshot,
                mode=self._mode,
                flush=self._rules.flush,
                form=format,
                owns_root=session is None,
            )
            if state == "kept"
            else None
        )

    @property
    def notices(self) -> tuple[str, ...]:
        """What was found harmed so far, and what became of it, a sentence each."""
        return tuple(self._state.notices) if self._state else ()

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> _Files:
        """Write all contents, or raise, and return the file of each.

        When this returns, each file is complete under its name, and with `sync: always` on stable
        storage. A file that holds the very content already is used again.

        Raises `StoreError`. All files are written before the first one gets its name. After an
        error those that have their names stay, complete, and the next try uses them again; the
        others are removed.

        `recorded: True` says that `remember` follows before any placeholder is handed out. The
        index then waits for the disk together with the records, and `collect`, in any process,
        leaves the files alone until records name them.
        """
        return [saved.file for saved in self.saved(contents, recorded=recorded)]

    def saved(self, contents: Sequence[Content], *, recorded: bool = False) -> _Saved:
        """`save`, with what became of each content."""
        if not contents:
            return []
        ready = [prepare(content, self._format, packs=self._packs) for content in contents]
        with (
            self._tree("written", making=True) as tree,
            self._in_flight(tree, contents, recorded=recorded) as batch,
        ):
            for _ in range(_RACES):
                now = self._clock()
                written = commit(tree, self._state, self._rules, ready, now, batch=batch)
                if written is not None:
                    return [*written.saved]
        raise StoreError(f"files vanish from {self.root} as they are saved", path=str(self.root))

    def remember(self, records: Sequence[Mapping[str, JSON]], *, flush: bool = True) -> None:
        """Append records of the session, whose meaning is the caller's, and wait for the disk.

        One with `path` and `state` says what is left of a content in the context; `collect` goes
        by it. Without `flush`, a crash of the machine may lose them. With `state: none` nothing is
        kept. Raises `StoreError`, after which none of them is kept.
        """
        if self._state is None or not records:
            return
        kept = [dict(record) for record in records]
        with self._tree("written", making=True) as tree:
            self._state.remember(tree, kept, flush=flush)

    def records(self) -> _Records:
        """Return every record of the session, oldest first, those of other processes included."""
        if self._state is None:
            return []
        with self._tree("read") as tree:
            try:
                return [*self._state.refresh(tree).records]
            except NotADirectoryError:  # below a file there is nothing; `save` says what is wrong
                return []

    def close(self) -> None:
        """Bring `index.json` up to date, so that it lists every item, and release all locks.

        Nothing is written where nothing was ever saved or recorded, or where the index is complete.
        A closed store can be used and closed again. Raises `StoreError` when the index cannot be
        written; the journal then holds what it lacks.
        """
        if self._state is None:
            return
        with self._tree("written") as tree, suppress(NotADirectoryError):
            self._state.close(tree)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _tree(self, verb: str, path: str = "", *, making: bool = False) -> Iterator[Tree]:
        """Give the folders of the store; what fails is told as `path` that cannot be `verb`."""
        mode = self._mode if making else None
        with failing_as(verb, self.root, path), Tree(self.root, mode=mode) as tree:
            yield tree

    def _in_flight(
        self, tree: Tree, contents: Sequence[Content], *, recorded: bool
    ) -> AbstractContextManager[str | None]:
        """Announce the files in the journal, where records that name them follow."""
        if self._state is None or not recorded:
            return nullcontext()
        for content in contents:
            check_inside(content.relative_path, tree)
        return self._state.in_flight(tree, {content.relative_path for content in contents})

    @classmethod
    def sessions(cls, root: str | os.PathLike[str]) -> tuple[str, ...]:
        """Return the id of each session that keeps a journal in a folder, sorted.

        "" stands for a store that owns the folder. A folder that is not there has none. Raises
        `StoreError` when it cannot be read.
        """
        path = absolute_root(root)
        with failing_as("read", path), Tree(path) as tree:
            return tuple(sorted(map(session_of, state_folders(tree))))

    def _choose_session(self, tree: Tree) -> None:
        """Raise `AmbiguousSessionError` where only sessions have an index, and none is chosen."""
        if self._state is None or self._session is not None:
            return
        names = sorted(map(session_of, state_folders(tree)))
        if names and "" not in names:
            raise AmbiguousSessionError(None, names, path=str(self.root))

    def _reader(self, tree: Tree) -> ContentReader:
        reserved = self._rules.reserved if self._state else None
        index = Index() if self._state is None else self._state.refresh(tree)
        return ContentReader(tree, index, self._format, reserved=reserved)

    def _index(self, tree: Tree) -> Index:
        """The index of this session. Raises `AmbiguousSessionError` as `_choose_session` does."""
        self._choose_session(tree)
        return Index() if self._state is None else self._state.refresh(tree)


# Called with how many of how many are done.
Progress: TypeAlias = "Callable[[int, int], object]"


def _silently(_done: int, _of: int) -> None:
    """Show no progress."""


class Upkeep(Storage):
    """A storage that can be looked after. `progress` gets how many of how many are done."""

    def verify(self, *, progress: Progress = _silently) -> Verification:
        """Read every content and compare it with its hash; what is harmed is named."""
        with self._tree("verified") as tree:
            found = verify_entries(tree, tuple(self._index(tree)), progress)
            now = self._index(tree)
            left = (h for h in found.harmed if now.of(h.entry.path, h.entry.item_id) is not None)
            return Verification(found.checked, tuple(left))

    def rebuild(self) -> Rebuilt:
        """Read journal and files again: take up what no index tells of, forget what is gone.

        Raises `StoreError`, for a folder without a store too.
        """
        if self._state is None:
            return Rebuilt(0, (), ())
        with self._tree("rebuilt") as existing:
            existing.folder()
        with self._tree("rebuilt", making=True) as tree:
            return self._state.rebuild(tree)

    def collect(
        self,
        *,
        max_age: float | None = None,
        max_bytes: int | None = None,
        ended: bool = False,
        only_own: bool = False,
        dry_run: bool = False,
        progress: Progress = _silently,
    ) -> CollectionReport:
        """Remove what is older than `max_age` seconds, then the oldest until `max_bytes` are left.

        What a live placeholder names stays, by the records of every session in this root, and so
        does what was saved in the last hour. What a living writer saved and has not recorded yet
        stays whatever the clocks say. `ended` says that none of the sessions goes on. `only_own`
        keeps the contents of all sessions but this one; `ended` then says it of this one alone.
        What stays and is not named is packed, with `compress: zstd`. Raises `StoreError`.
        """
        own = self._state.folder if only_own and self._state is not None else None
        terms = Terms(max_age, max_bytes, packs=self._packs, ended=ended, only=own)
        with self._tree("collected") as tree:
            collector = Collector(tree, self._states(tree), self._rules, self._clock)
            return collector.collected(terms, dry_run=dry_run, progress=progress)

    def export(self, target: str | os.PathLike[str], *, progress: Progress = _silently) -> int:
        """Write the session to one file and return the number of its contents.

        Raises `StoreError`, and `CorruptContentError` when a content is not what was saved.
        """
        path = Path(target)
        with self._tree("exported") as tree:
            reader = self._reader(tree)
            return export_session(
                self._index(tree), reader, path, mode=self._mode, progress=progress
            )

    def import_from(self, source: str | os.PathLike[str], *, progress: Progress = _silently) -> int:
        """Take up an exported session and return the number of its contents.

        This store must hold nothing yet. Raises `StoreError`, after which it holds nothing still.
        """
        if self._state is None:
            raise StoreError("a store without state cannot take a session up", path=str(self.root))
        with self._tree("imported", making=True) as tree:
            return self._state.take_over(
                tree, lambda: import_session(tree, Path(source), self._rules, progress)
            )

    def _states(self, tree: Tree) -> list[State]:
        """The state of every session in this root, this one's as it is in memory."""
        return [
            self._state
            if self._state is not None and self._state.folder == folder
            else State(
                self.root,
                folder=folder,
                snapshot=snapshot_path(folder, self._format),
                mode=self._mode,
                flush=self._rules.flush,
                form=self._format,
                owns_root=folder == STATE_FOLDER,
            )
            for folder in state_folders(tree)
        ]


__all__ = ["Content", "ContextFileSystem"]

# Where `offload` puts an item: as a policy that says nothing else.
PATH = "{item_type}/{tool_name}/{item_id}.{ext}"


class ContextFileSystem(Upkeep):
    """Everything that left a context: saved for good, and read back by path, id or text."""

    def offload(
        self,
        item: Item,
        *,
        tokens: int | None = None,
        block: JSON = None,
        path: str = PATH,
    ) -> Saved:
        """Save one item; a placeholder may name its file until `release` says otherwise.

        `block` is the item's original block, or message, for `restore`; `path` the form of its
        path, as a policy's `store.path`. Raises `StoreError`.
        """
        values = {
            "item_id": item.item_id,
            "item_type": item.type,
            "tool_name": item.tool,
            "tool_use_id": item.tool_use_id,
            "session_id": self._session or "",
            "ext": EXTENSIONS[self._format],
        }
        origin = Origin(
            item.item_id,
            item.type,
            item.tool_use_id,
            item.tool,
            item.role,
            item.message,
            item.turn,
            tokens,
            block,
        )
        wanted = relative_path(path_parts(path), values, item.text)
        [saved] = self.saved([Content(wanted, item.text, origin=origin)], recorded=True)
        self._refer(item.item_id, saved.file.relative_path, saved.sha256, "offloaded")
        return saved

    def release(self, key: str | os.PathLike[str]) -> None:
        """Say that no placeholder names a content any longer, so that `collect` may take it."""
        with self._reading(key) as reader:
            entry = reader.known(key)
        self._refer(entry.item_id, entry.path, entry.sha256, "dropped")

    def read(self, key: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> str:
        """Return the saved text: by path, absolute or below the root, by item id or tool-use id.

        `lines` are the first and last wanted, from 1 on. Of an id that was used twice, the newest
        is meant. Raises `CorruptContentError` when the file holds another text than was saved,
        `AmbiguousSessionError` for an id where only sessions with an id share the root and this
        store has none, and `StoreError` when there is no file, it cannot be read, or it is not in
        this store.
        """
        with self._reading(key) as reader:
            return reader.text(key, lines)

    def restore(self, key: str | os.PathLike[str]) -> JSON:
        """Return the original block, or message where its content is a string, as it was.

        `key` and errors are those of `read`; it is an error too when the block was not given.
        """
        with self._reading(key) as reader:
            return reader.block(key)

    def find(self, key: str | os.PathLike[str]) -> IndexEntry | None:
        """Return what the index knows of a path, item id or tool-use id; None for nothing.

        Raises `AmbiguousSessionError` as `read` does.
        """
        with self._reading(key) as reader:
            return reader.entry(key)

    def list(self) -> tuple[IndexEntry, ...]:
        """Return what the index knows, oldest first; nothing with `state: none`.

        Raises `AmbiguousSessionError` where sessions share the root and this store is none of them;
        `sessions` lists their ids.
        """
        with self._tree("read") as tree:
            return tuple(self._index(tree))

    def search(
        self,
        text: str,
        *,
        ignore_case: bool = False,
        item_type: str | None = None,
        tool: str | None = None,
    ) -> Iterator[TextMatch]:
        """Yield each line that has the text, oldest content first, in memory that does not grow.

        Tells where something is; `read` then hands it out, checked. `item_type` and `tool` are
        exact. Raises `StoreError`, for an empty text too, and `AmbiguousSessionError` as `list`.
        """
        with self._tree("read") as tree:
            entries = tuple(self._index(tree))
            chosen = (entry for entry in entries if _is_of(entry, item_type, tool))
            yield from matches(tree, chosen, text, ignore_case=ignore_case)

    def history(self) -> tuple[Event, ...]:
        """Return what was saved, packed and removed, in the order in which it happened.

        It goes back to when the journal was written anew last: at a rebuild, or when most of it
        told of what is gone.
        """
        if self._state is None:
            return ()
        with self._tree("read") as tree:
            self._index(tree)
            return tuple(events(self._state.lines(tree)))

    @contextmanager
    def _reading(self, key: str | os.PathLike[str]) -> Iterator[ContentReader]:
        """Give a reader, where it is clear in which session it looks for the key."""
        with self._tree("read", str(key)) as tree:
            reader = self._reader(tree)
            if not reader.has(key):
                self._choose_session(tree)
            yield reader

    def _refer(self, item_id: str | None, path: str, sha256: str, state: str) -> None:
        self.remember([{"item_id": item_id, "path": path, "sha256": sha256, "state": state}])


def _is_of(entry: IndexEntry, item_type: str | None, tool: str | None) -> bool:
    origin = entry.origin
    found = (origin.item_type, origin.tool_name) if origin else (None, None)
    return item_type in {None, found[0]} and tool in {None, found[1]}


def stores_in(
    root: str | os.PathLike[str],
    *,
    session: str | None = None,
    compress: Literal["none", "zstd"] = "zstd",
) -> dict[str, ContextFileSystem]:
    """Return every store of a folder by its session's id, "" for that of the folder itself.

    Only that of `session`, where it is given. Raises `StoreError` when there is none, and names
    the folders below that hold one.
    """
    path = Path(root).expanduser().absolute()
    with failing_as("read", path, str(path)), Tree(path) as tree:
        found = {
            session_of(folder): (folder, _newest_format(tree, folder))
            for folder in state_folders(tree)
        }
    stores = {
        name: ContextFileSystem(
            path,
            session=name or None,
            format=form,
            compress=compress,
            mode=_mode_of(path / folder / JOURNAL),
        )
        for name, (folder, form) in found.items()
        if session in {None, name}
    }
    if not stores:
        raise StoreError(_nothing_found(path, session, sorted(found)), path=str(path))
    return stores


def _newest_format(tree: Tree, folder: str) -> Format:
    """The format of a session's newest content; without any, that of the snapshot's place."""
    index = Index()
    with suppress(OSError):  # harmed; the session mends it when it is opened
        for line in lines_in(tree, folder):
            index.apply(line)
    has_open_index = folder == STATE_FOLDER and (tree.root / INDEX).is_file()
    form: Format = "envelope" if has_open_index else "text"
    for entry in index:
        form = entry.format
    return form


def _mode_of(journal: Path) -> str:
    """The permissions that the store's files have, as a policy writes them."""
    return f"{stat.S_IMODE(journal.lstat().st_mode) | 0o600:04o}"


def _nothing_found(path: Path, session: str | None, others: list[str]) -> str:
    if others:
        known = ", ".join(name or "one without an id" for name in others)
        return f"{path} holds no session {session!r}; there is {known}"
    below = sorted(folder.parent.name for folder in path.glob(f"*/{STATE_FOLDER}"))
    if below:
        return f"{path} holds no store; the folders in it do: {', '.join(below)}"
    return f"{path} holds no store"
