"""`ContextFileSystem`: where offloaded content lives, and how it is read back."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, Self, TypeAlias

from policyctx.definitions.actions import Action
from policyctx.definitions.items import Item
from policyctx.errors import AmbiguousSessionError, StoreError
from policyctx.messages.json_text import JSON
from policyctx.paths import File, item_path, path_parts
from policyctx.store.backend import (
    AwayError,
    Backend,
    Progress,
    Root,
    StoreUrl,
    absolute_root,
    failing_as,
    store_root,
)
from policyctx.store.content import Content, Origin, Saved
from policyctx.store.files import Format
from policyctx.store.index import CollectionReport, Index, IndexEntry, StoredFile
from policyctx.store.journal import JOURNAL, Event, StateFolder, events, session_ids, state_folders
from policyctx.store.local.backend import LocalBackend, release_kept
from policyctx.store.read import ContentReader, FoundLine, Verification, matches, verify_entries
from policyctx.store.save import Saver, SaveRules
from policyctx.store.state import Rebuilt, State
from policyctx.store.transfer import copy_session, export_session, import_session

if TYPE_CHECKING:
    from policyctx.store.remote.backend import RemoteBackend

__all__ = ["Content", "ContextFileSystem"]

# The path that `offload` gives an item: the default of a policy's `store.path`.
PATH = "{item_type}/{tool_name}/{item_id}.{ext}"

# Seconds that a request to a URL may take, with its retries.
TIMEOUT_S = 30.0

# `list` is a method of the class that needs these.
_Files: TypeAlias = list[File]
_Saved: TypeAlias = list[Saved]
_Records: TypeAlias = "list[dict[str, JSON]]"
_States: TypeAlias = list[State]


def silently(_done: int, _of: int) -> None:
    """Show no progress."""


class ContextFileSystem:
    """Everything that left a context: saved for good, and read back by path, id or text.

    It is a folder of saved contents, or a prefix of an object store that a URL such as
    `s3://bucket/prefix` names, one text a file, in UTF-8. Nothing is created before the first
    `save`. Lone surrogates, which UTF-8 does not have, are written as CPython's `surrogatepass`
    does, so that every text reads back as it was. Threads and processes may use one folder
    together, with one store or with several.

    `session` is given where several sessions share the root: each then has an index and records
    of its own. With `state: none` there are neither, and contents are read by path alone. `clock`
    returns the seconds since 1970. `progress` is called with the number done and the total.

    At a URL `sync` and `mode` have no effect, and a request, its retries included, takes `timeout`
    seconds at most. One store at a time writes a session there: where another one has written it,
    saving raises `StoreError`. `on_conflict: overwrite` raises it at once.

    `spill_to` is a folder of this store alone. While the service is away, contents and records wait
    there, on stable storage; they are read from there, and uploaded by the next call that writes
    and reaches the service, by `close`, or by the next store with this root and folder.
    """

    keeps_blocks = True
    """Whether it saves what `origin.block` holds beside the text; see `SessionStore`."""

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
        timeout: float = TIMEOUT_S,
        spill_to: str | os.PathLike[str] | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.root: Root = store_root(root)
        self.is_remote = isinstance(self.root, StoreUrl)
        """Whether the files are at a URL, where an agent cannot open them by itself."""
        if self.is_remote and on_conflict == "overwrite":
            raise StoreError(
                f"{self.root}: `on_conflict: overwrite` is for folders; objects are created once",
                path=str(self.root),
            )
        self._timeout = timeout
        self._spill_to = None if spill_to is None else absolute_root(spill_to)
        self._remote: RemoteBackend | None = None
        self._mode = int(mode, 8)
        self._flushes = sync == "always"
        self._clock, self._session = clock, session
        place = StateFolder.of_session(session, format)
        self._state = _state_at(self.root, place) if state == "kept" else None
        rules = SaveRules(
            on_conflict,
            format,
            compresses=compress == "zstd",
            shares=self._state is not None,
            # An object is only ever created, so a name that is taken shows by itself.
            trusts=self._state is not None
            and (place.owns_root or self.is_remote)
            and on_conflict == "suffix",
            reserved=frozenset() if self._state is None else frozenset(place.snapshots),
        )
        self._saver = Saver(rules, self._state, clock)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def notices(self) -> tuple[str, ...]:
        """The damage found so far and what was done about it, a sentence each."""
        return tuple(self._state.notices) if self._state else ()

    @property
    def keeps_index(self) -> bool:
        """Whether the store knows its contents; not with `state: none`."""
        return self._state is not None

    @property
    def journal(self) -> str:
        """The path of the session's journal, at a URL a prefix; empty with `state: none`."""
        return f"{self.root}/{self._state.folder}/{JOURNAL}" if self._state else ""

    @classmethod
    def sessions(cls, root: str | os.PathLike[str]) -> tuple[str, ...]:
        """Return the id of each session that keeps a journal in a folder, sorted.

        "" stands for a store that owns the folder. A missing folder has none. Raises `StoreError`
        when it cannot be read.
        """
        place = store_root(root)
        with failing_as("read", place), reading_at(place) as backend:
            return tuple(session_ids(backend))

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> _Files:
        """Write all contents, or raise, and return the file of each.

        When this returns, each file is complete under its name, and with `sync: always` on stable
        storage. A file that already holds the very content is used again.

        Raises `StoreError`. All files are written before the first one gets its name. After an
        error, files that have their names stay, complete, and the next attempt uses them again; the
        others are removed.

        `recorded: True` says that `remember` follows before any placeholder is handed out. The
        index then waits for the disk together with the records, and `collect`, in any process,
        leaves the files alone until records name them.
        """
        return [saved.file for saved in self.saved(contents, recorded=recorded)]

    def saved(self, contents: Sequence[Content], *, recorded: bool = False) -> _Saved:
        """Save as `save` does, and return the full result for each content."""
        if not contents:
            return []
        ready = self._saver.prepare(contents)
        with self._backend("written", making=True) as backend:
            try:
                saved = self._saver.save(backend, ready, recorded=recorded)
            except AwayError:
                remote = self._remote if self._may_spill else None
                if remote is None or not remote.begin_spilling():
                    raise
                saved = self._saver.save(backend, ready, recorded=recorded)
            return [*saved[: len(contents)]]

    def offload(
        self, item: Item, *, tokens: int | None = None, block: JSON = None, path: str = PATH
    ) -> Saved:
        """Save one item; a placeholder may name its file until `release` is called.

        `block` is the item's original block, or message, for `restore`; `path` is the template of
        its path, as a policy's `store.path`. Raises `StoreError`.
        """
        origin = Origin.of(item, tokens=tokens, block=block)
        form = self._saver.rules.format
        wanted = item_path(item, path_parts(path), session_id=self._session or "", file_format=form)
        [saved] = self.saved([Content(wanted, item.text, origin=origin)], recorded=True)
        self._record(item.item_id, saved.file.relative_path, saved.sha256, Action.OFFLOAD.past)
        return saved

    def release(self, key: str | os.PathLike[str]) -> None:
        """Record that no placeholder names a content any longer; `collect` may then remove it."""
        with self._reading(key) as reader:
            entry = reader.known(key)
        self._record(entry.item_id, entry.path, entry.sha256, Action.DROP.past)

    def remember(self, records: Sequence[Mapping[str, JSON]], *, flush: bool = True) -> None:
        """Append records of the session, whose meaning is the caller's, and wait for the disk.

        A record with `path` and `state` says what is left of a content in the context; `collect`
        uses it. Without `flush`, a crash of the machine may lose them. With `state: none` nothing
        is kept. Raises `StoreError`, after which none of them is kept.
        """
        if self._state is None or not records:
            return
        kept = [dict(record) for record in records]
        with self._backend("written", making=True) as backend:
            self._state.remember(backend, kept, flush=flush)

    def records(self) -> _Records:
        """Return every record of the session, oldest first, those of other processes included."""
        if self._state is None:
            return []
        with self._backend("read") as backend:
            self._state.follow()
            try:
                return self._state.records(backend)
            except NotADirectoryError:  # a file is in the way; `save` reports it
                return []

    def read(self, key: str | os.PathLike[str], *, lines: tuple[int, int] | None = None) -> str:
        """Return the saved text: by path, absolute or below the root, by item id or tool-use id.

        `lines` are the first and the last line wanted, counted from 1. An id that was used twice
        means the newest content. Raises `CorruptContentError` when the file holds another text than
        was saved, `AmbiguousSessionError` for an id where only sessions with an id share the root
        and this store has none, and `StoreError` when there is no file, it cannot be read, or it is
        not in this store.
        """
        with self._reading(key) as reader:
            return reader.text(key, lines)

    def restore(self, key: str | os.PathLike[str]) -> JSON:
        """Return the original block, or message where its content is a string, as it was.

        `key` and errors are those of `read`; a block that was not given is an error too.
        """
        with self._reading(key) as reader:
            return reader.block(key)

    def find(self, key: str | os.PathLike[str]) -> IndexEntry | None:
        """Return the entry of a path, item id or tool-use id; None for an unknown key.

        Raises `AmbiguousSessionError` as `read` does.
        """
        with self._reading(key) as reader:
            return reader.entry(key)

    def list(self) -> tuple[IndexEntry, ...]:
        """Return all entries of the index, oldest first; none with `state: none`.

        Raises `AmbiguousSessionError` where sessions share the root and this store is none of them;
        `sessions` lists their ids.
        """
        with self._backend("read") as backend:
            return tuple(entry for entry in self._index(backend) if not entry.is_rest)

    def search(
        self,
        text: str,
        *,
        ignore_case: bool = False,
        item_type: str | None = None,
        tool: str | None = None,
        in_parts: bool = False,
    ) -> Iterator[FoundLine]:
        """Yield each line that contains the text, oldest content first, in constant memory.

        With `in_parts`, a long line comes once for each part of it that contains the text.
        A match says where the text is; `read` returns it, verified. `item_type` and `tool` are
        exact. Raises `StoreError`, for an empty text and with `state: none` too, and
        `AmbiguousSessionError` as `list`.
        """
        if self._state is None:
            raise StoreError(
                "with `state: none` no list of the texts is kept, so they cannot be searched; read"
                " the file that a placeholder names",
                path=str(self.root),
            )
        with self._backend("read") as backend:
            entries = tuple(self._index(backend))
            chosen = (e for e in entries if e.is_of(item_type, tool) and not e.is_rest)
            yield from matches(backend, chosen, text, ignore_case=ignore_case, in_parts=in_parts)

    def history(self) -> tuple[Event, ...]:
        """Return what was saved, compressed and removed, in the order in which it happened.

        It begins where the journal was last written anew: at a rebuild, or when most of its lines
        were obsolete.
        """
        if self._state is None:
            return ()
        with self._backend("read") as backend:
            self._index(backend)
            return tuple(events(self._state.lines(backend)))

    def verify(self, *, progress: Progress = silently) -> Verification:
        """Read every content, compare it with its hash, and list the damaged ones."""
        with self._backend("verified") as backend:
            found = verify_entries(backend, tuple(self._index(backend)), progress)
            now = self._index(backend)
            left = (h for h in found.harmed if now.of(h.entry.path, h.entry.item_id) is not None)
            return Verification(found.checked, tuple(left))

    def rebuild(self) -> Rebuilt:
        """Read journal and files again: add unknown contents, remove entries without a file.

        Raises `StoreError`, for a folder without a store too.
        """
        if self._state is None:
            return Rebuilt(0, (), ())
        with self._backend("rebuilt") as existing:
            if not existing.names("") and existing.is_remote:
                raise StoreError(f"{self.root} holds no store", path=str(self.root))
        with self._backend("rebuilt", making=True) as backend:
            self._check_reachable(backend)
            return self._state.rebuild(backend)

    def collect(
        self,
        *,
        max_age: float | None = None,
        max_bytes: int | None = None,
        max_contents: int | None = None,
        idle: float | None = None,
        ended: bool = False,
        only_own: bool = False,
        picked: Mapping[str, str] | None = None,
        dry_run: bool = False,
        progress: Progress = silently,
    ) -> CollectionReport:
        """Remove what is older than `max_age` seconds, then the oldest until `max_bytes` are left.

        `max_contents` is the same for the number of contents. A content that a live placeholder
        names stays, by the records of every session in this root, and so does one that was saved in
        the last hour. What a living writer saved and has not recorded yet stays whatever the clocks
        say. With `ended` no session continues, and neither of these two stays. `idle` means this
        for a session that wrote nothing for so many seconds. `only_own` keeps the contents of all
        sessions but this one; `ended` then means this one alone. `picked` are paths, each with a
        rule for the report: they are removed in place of what the limits say. With
        `compress: zstd`, contents that stay and are not named are compressed. Raises `StoreError`.
        """
        with self._backend("collected", making=self.is_remote) as backend:
            from policyctx.store.collector import Collector, RetentionLimits, Terms

            terms = Terms(
                RetentionLimits(max_age, max_bytes, max_contents),
                packs=self._saver.rules.compresses,
                ended=ended,
                idle=idle,
                only=self._state.folder if only_own and self._state is not None else None,
                picked=picked,
            )
            self._check_reachable(backend)
            collector = Collector(backend, self._states(backend), self._clock)
            shared = backend.is_remote and not ended and len(state_folders(backend)) > 1
            if shared and not collector.have_ended(terms):
                raise StoreError(
                    f"{self.root}: several sessions share this prefix, and nothing keeps them from"
                    " using a content that is about to be removed; when they have ended, collect"
                    " with `ended` (--ended)",
                    path=str(self.root),
                )
            return collector.collect(terms, dry_run=dry_run, progress=progress)

    def stored_files(
        self, *, idle: float | None = None, ended: bool = False
    ) -> tuple[StoredFile, ...]:
        """Return the file of each content of every session in this root, oldest first.

        Each says whether a placeholder may name it, by the rules of `collect`.
        """
        with self._backend("read") as backend:
            from policyctx.store.collector import Collector, RetentionLimits, Terms

            terms = Terms(RetentionLimits(), packs=False, ended=ended, idle=idle)
            states = self._states(backend)
            for state in states:
                state.refresh(backend)
            return tuple(Collector(backend, states, self._clock).files(terms))

    def export(self, target: str | os.PathLike[str], *, progress: Progress = silently) -> int:
        """Write the session to one file and return the number of its contents.

        Raises `StoreError`, and `CorruptContentError` when a content is not what was saved.
        """
        path = Path(target)
        with self._backend("exported") as backend:
            reader, index = self._reader(backend), self._index(backend)
            return export_session(index, reader, path, mode=self._mode, progress=progress)

    def import_from(
        self, source: str | os.PathLike[str] | ContextFileSystem, *, progress: Progress = silently
    ) -> int:
        """Import a session from its exported file, or from another store; return its contents.

        This store must be empty. Raises `StoreError`; then no session is there yet. Contents that
        were copied from a store stay, and the next call with it uses them again.
        """
        if self._state is None:
            raise StoreError("a store without state cannot take a session up", path=str(self.root))
        with self._backend("imported", making=True) as backend:
            self._check_reachable(backend)
            if isinstance(source, ContextFileSystem):
                copied = source._copied  # noqa: SLF001 - another store of this class
                return self._state.take_over(backend, lambda: copied(backend, progress))
            path = Path(source)
            return self._state.take_over(backend, lambda: import_session(backend, path, progress))

    def _check_reachable(self, backend: Backend) -> None:
        if backend.is_spilling:
            raise StoreError(f"{self.root} is away; texts wait to be uploaded", path=str(self.root))

    def _copied(self, target: Backend, progress: Progress) -> Index:
        """Copy every content to another store, and return its index."""
        with self._backend("read") as backend:
            reader, index = self._reader(backend), self._index(backend)
            return copy_session(index, reader, target, progress)

    @property
    def waiting(self) -> int:
        """The number of objects that wait in `spill_to`; segments of the journal count too."""
        if not isinstance(self.root, StoreUrl) or self._spill_to is None:
            return 0
        with failing_as("read", self.root, str(self._spill_to)):
            return (self._remote or _remote_at(self.root, self._timeout, self._spill_to)).waiting

    def upload(self) -> None:
        """Upload what waits in `spill_to`; each request is made once.

        Raises `StoreError` when the service is away, and when another process has written the
        session meanwhile: its contents are uploaded then, and its segments are set aside.
        """
        if isinstance(self.root, StoreUrl):
            with failing_as("uploaded", self.root):
                remote = self._remote or _remote_at(self.root, self._timeout, self._spill_to)
                remote.upload()

    def close(self) -> None:
        """Bring `index.json` up to date, so that it lists every item, and release all locks.

        Nothing is written where nothing was ever saved or recorded, or where the index is complete.
        No folder and no connection stays open. A closed store can be used and closed again. Raises
        `StoreError` when the index cannot be written; the journal then holds what it lacks.
        """
        try:
            self._complete()
        finally:
            if self._remote is not None:
                self._remote.close()
            for folder in (self.root, self._spill_to):
                if isinstance(folder, Path):
                    release_kept(folder)

    def _complete(self) -> None:
        """Write what is kept back, the index, and what waits to be uploaded."""
        if isinstance(self.root, StoreUrl) and self._remote is None:
            return
        with self._backend("written") as backend, suppress(NotADirectoryError):
            if self._state is not None:
                self._state.close(backend)
            if self._remote is not None:
                self._remote.upload_waiting(at_once=True)

    @contextmanager
    def _backend(self, verb: str, path: str = "", *, making: bool = False) -> Iterator[Backend]:
        """Provide the store's files; an error says that `path` cannot be `verb`."""
        with failing_as(verb, self.root, path):
            if isinstance(self.root, StoreUrl):
                try:
                    yield self._remote_backend(self.root, making=making)
                finally:
                    self._report_news()
                return
            with LocalBackend(
                self.root, mode=self._mode, flushes=self._flushes, making=making
            ) as backend:
                yield backend

    def _remote_backend(self, url: StoreUrl, *, making: bool) -> RemoteBackend:
        """Return the backend of a URL, which is kept, since it knows what was read."""
        if self._remote is None:
            self._remote = _remote_at(url, self._timeout, self._spill_to)
            self._remote.upload_waiting(at_once=True)
        if making and self._state is None:
            self._remote.forget_created()  # nothing would say that they were removed
        if making:
            self._remote.prepare_to_write(may_spill=self._may_spill)
        return self._remote

    @property
    def _may_spill(self) -> bool:
        """Whether new contents may wait in a folder: what the session had before is known."""
        return self._state is None or self._state.is_loaded

    def _report_news(self) -> None:
        if self._remote is not None and self._state is not None:
            while self._remote.news:
                self._state.report(self._remote.news.pop(0))

    @contextmanager
    def _reading(self, key: str | os.PathLike[str]) -> Iterator[ContentReader]:
        """Provide a reader, where it is clear in which session to look for the key."""
        with self._backend("read", str(key)) as backend:
            reader = self._reader(backend)
            if not reader.has(key):
                self._check_session(backend)
            yield reader

    def _reader(self, backend: Backend) -> ContentReader:
        rules = self._saver.rules
        reserved = rules.reserved if self._state else None
        index = Index() if self._state is None else self._state.refresh(backend)
        return ContentReader(backend, index, rules.format, reserved=reserved)

    def _index(self, backend: Backend) -> Index:
        """Return the index of this session. Raises `AmbiguousSessionError`."""
        self._check_session(backend)
        return Index() if self._state is None else self._state.refresh(backend)

    def _check_session(self, backend: Backend) -> None:
        """Raise `AmbiguousSessionError` where only sessions have an index, and none is chosen."""
        if self._state is None or self._session is not None:
            return
        if backend.is_spilling:  # which it only does after it read this session's journal
            return
        names = session_ids(backend)
        if names and "" not in names:
            raise AmbiguousSessionError(None, names, path=str(self.root))

    def _states(self, backend: Backend) -> _States:
        """Return the state of every session in this root, and of this one the loaded state."""
        return [
            self._state
            if self._state is not None and self._state.folder == folder
            else _state_at(self.root, StateFolder(folder, self._saver.rules.format))
            for folder in state_folders(backend)
        ]

    def _record(self, item_id: str | None, path: str, sha256: str, state: str) -> None:
        self.remember([{"item_id": item_id, "path": path, "sha256": sha256, "state": state}])


def _state_at(root: Root, place: StateFolder) -> State:
    if isinstance(root, Path):
        return State(root, place)
    with failing_as("opened", root):
        from policyctx.store.remote.state import RemoteState

    return RemoteState(root, place)


def _remote_at(url: StoreUrl, timeout: float, spill_to: Path | None = None) -> RemoteBackend:
    from policyctx.store.remote.backend import RemoteBackend
    from policyctx.store.remote.spill import Spill

    if spill_to is None:
        return RemoteBackend(url, timeout=timeout)
    spill = Spill(spill_to, url, partial(LocalBackend, spill_to))
    return RemoteBackend(url, timeout=timeout, spill=spill)


@contextmanager
def reading_at(root: Root) -> Iterator[Backend]:
    """Provide the files at a root, to look at them."""
    if isinstance(root, StoreUrl):
        yield _remote_at(root, TIMEOUT_S)
        return
    with LocalBackend(root) as backend:
        yield backend
