"""`Storage`: a folder of contents, with the index and the records of one session beside them."""

from __future__ import annotations

import os
import time
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from policyctx.errors import AmbiguousSessionError, StoreError
from policyctx.planning.paths import File, safe_part
from policyctx.store.committing import committed
from policyctx.store.content import Saved
from policyctx.store.entries import STATE_FOLDER
from policyctx.store.failures import failing_as
from policyctx.store.index import Index
from policyctx.store.naming import check_inside
from policyctx.store.opening import Tree
from policyctx.store.prepared import prepared
from policyctx.store.reading import Reader
from policyctx.store.rebuilding import session_of, state_folders
from policyctx.store.saving import Rules
from policyctx.store.state import State

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from policyctx.store.content import JSON, Content
    from policyctx.store.files import Format

INDEX = "index.json"

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
        ready = [prepared(content, self._format, packs=self._packs) for content in contents]
        with (
            self._tree("written", making=True) as tree,
            self._in_flight(tree, contents, recorded=recorded) as batch,
        ):
            for _ in range(_RACES):
                now = self._clock()
                written = committed(tree, self._state, self._rules, ready, now, batch=batch)
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

    def _reader(self, tree: Tree) -> Reader:
        reserved = self._rules.reserved if self._state else None
        index = Index() if self._state is None else self._state.refresh(tree)
        return Reader(tree, index, self._format, reserved=reserved)

    def _index(self, tree: Tree) -> Index:
        """The index of this session. Raises `AmbiguousSessionError` as `_choose_session` does."""
        self._choose_session(tree)
        return Index() if self._state is None else self._state.refresh(tree)


def snapshot_path(folder: str, form: Format) -> str:
    """Return where a session's snapshot is: at the root for envelopes of the only one there."""
    return INDEX if form == "envelope" and folder == STATE_FOLDER else f"{folder}/{INDEX}"


def absolute_root(root: str | os.PathLike[str]) -> Path:
    """Return the folder that `root` names, with `~` filled in; it need not be there.

    Raises `StoreError` for the home of an unknown user.
    """
    try:
        return Path(root).expanduser().absolute()
    except RuntimeError as error:
        raise StoreError(f"{root}: {error}", path=os.fspath(root)) from error
