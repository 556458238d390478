"""The stores of a folder: a session's, all that are in it, and what waits there for a URL."""

import os
import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from policyctx.definitions.names import ROOT_FIELDS, SESSION_FIELDS, is_url
from policyctx.errors import InputError, StoreError, nearest
from policyctx.messages.json_text import JSON
from policyctx.paths import safe_part
from policyctx.policy.models.steps import Store
from policyctx.policy.values import TemplateError, parsed_template
from policyctx.store import journal
from policyctx.store.backend import Backend, Root, absolute_root, failing_as, store_root
from policyctx.store.content import STATE_FOLDER, URL_FILE
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem, reading_at
from policyctx.store.index import IndexEntry
from policyctx.store.local.backend import LocalBackend
from policyctx.store.snapshot import whole_index

SESSION_FIELD = "{session_id}"
_RANDOM = "abcdefghijklmnopqrstuvwxyz0123456789"
# How many stores below a root are named in an error; of a URL, how many prefixes are looked at.
_MOST_BELOW = 20
# How like `session_id` a misspelling of it is; `version_id` is another word.
_LIKE = 0.85


def names_session(path: str) -> bool:
    """Return whether a path has the field `{session_id}`, right, misspelt or with more in it."""
    fields = re.findall(r"\{\s*([\w-]+)", path)
    return any(
        field in ROOT_FIELDS or nearest(field.lower(), ROOT_FIELDS, _LIKE) is not None
        for field in fields
    )


def written_root(template: str, session_id: str) -> str:
    """Return the root of a session's store as a policy writes it; `~` is not expanded."""
    return parsed_template(template, ROOT_FIELDS).render({"session_id": safe_part(session_id)})


def new_session_id(form: str) -> str:
    """Return the id of a new session, from the template of its policy."""
    now = datetime.now(UTC)
    values = {
        "date": f"{now:%Y%m%d}",
        "time": f"{now:%H%M%S}",
        "random": "".join(secrets.choice(_RANDOM) for _ in range(6)),
    }
    return parsed_template(form, SESSION_FIELDS).render(values)


def session_store(
    settings: Store,
    session_id: str,
    *,
    root: str | os.PathLike[str] | None = None,
    clock: Callable[[], float] = time.time,
) -> ContextFileSystem:
    """Return the store of a session; `root` replaces the folder of the settings.

    A session whose root has the field `{session_id}` owns the folder. A `root` without this field
    is literal, also where it has braces. Raises `InputError` for one with wrong fields beside it,
    and for a field such as `{session_id:>3}` or `{sesion_id}`.
    """
    folder = settings.spill_to
    given = settings.root if root is None else os.fspath(root)
    shared = True
    if root is None or names_session(given):
        root, shared = _rendered("root", given, session_id)
    return ContextFileSystem(
        root,
        on_conflict=settings.on_conflict,
        sync=settings.sync,
        mode=settings.mode,
        state=settings.state,
        session=session_id if shared else None,
        format=settings.format,
        compress=settings.compress,
        timeout=settings.timeout.seconds,
        spill_to=None if folder is None else absolute_root(folder) / safe_part(session_id),
        clock=clock,
    )


def _rendered(what: str, given: str, session_id: str) -> tuple[str, bool]:
    """Return a path for a session, and whether it is that of other sessions too."""
    try:
        template = parsed_template(given, ROOT_FIELDS)
    except TemplateError as error:
        raise InputError(f"the {what} {given!r}: {error}") from error
    return template.render({"session_id": safe_part(session_id)}), not template.fields


def path_of(what: str, given: object, session_id: str) -> Path:
    """Return the absolute path of a session's file, which may have the field `{session_id}`.

    Raises `InputError` for wrong fields beside it, and for what is not a path of this machine.
    """
    if not isinstance(given, str | os.PathLike) or is_url(str(given)):
        raise InputError(f"{what}: expected the path of a file, got {given!r}")
    path = os.fspath(given)
    return absolute_root(_rendered(what, path, session_id)[0] if names_session(path) else path)


class Stores(Mapping[str, ContextFileSystem]):
    """The stores of a folder by their session's id, each opened when it is asked for."""

    def __init__(
        self,
        root: Root,
        folders: Mapping[str, str],
        compress: Literal["none", "zstd"],
        clock: Callable[[], float],
    ) -> None:
        self.root = root
        self.opened: dict[str, ContextFileSystem] = {}
        self._folders, self._compress, self._clock = folders, compress, clock

    def __iter__(self) -> Iterator[str]:
        return iter(self._folders)

    def __len__(self) -> int:
        return len(self._folders)

    def __getitem__(self, session: str) -> ContextFileSystem:
        """Return the store of a session. Raises `StoreError` where its state cannot be read."""
        if session not in self.opened:
            folder = self._folders[session]
            with failing_as("read", self.root), reading_at(self.root) as backend:
                form, mode = _newest_format(backend, folder), _mode_of(backend, folder)
            self.opened[session] = ContextFileSystem(
                self.root,
                session=session or None,
                format=form,
                compress=self._compress,
                mode=mode,
                clock=self._clock,
            )
        return self.opened[session]

    def contents(self) -> Iterator[tuple[str, Sequence[IndexEntry], Sequence[Mapping[str, JSON]]]]:
        """Yield each session with its entries and records, oldest first.

        A store is only opened where its snapshot does not hold all of its journal.
        """
        with failing_as("read", self.root), reading_at(self.root) as backend:
            for session, folder in self._folders.items():
                index = None if backend.is_remote else whole_index(backend, folder)
                if index is not None:
                    yield session, [one for one in index if not one.is_rest], index.records
                else:
                    yield session, self[session].list(), self[session].records()


def stores_in(
    root: str | os.PathLike[str],
    *,
    session: str | None = None,
    compress: Literal["none", "zstd"] = "zstd",
    clock: Callable[[], float] = time.time,
) -> Stores:
    """Return every store of a folder by its session's id, "" for that of the folder itself.

    With `session`, only that store: in this folder, which may have the session's name, or in the
    one of its name below. Raises `StoreError` when there is none, and names the folders below that
    hold one.
    """
    place, name = store_root(root), safe_part(session or "")
    is_named = bool(session) and str(place).rpartition("/")[2] == name
    with failing_as("read", place, str(place)), reading_at(place) as backend:
        folders = {journal.session_of(folder): folder for folder in journal.state_folders(backend)}
        own = "" if is_named and session not in folders else session
        chosen = {one: at for one, at in folders.items() if session is None or one == own}
        if chosen:
            return Stores(place, chosen, compress, clock)
        lacking = _nothing_found(backend, session, sorted(folders))
    if session and not is_named:
        with suppress(StoreError):
            return stores_in(f"{place}/{name}", session=session, compress=compress, clock=clock)
    raise StoreError(lacking, path=str(place))


def stores_below(root: str | os.PathLike[str]) -> list[str]:
    """Return the names of folders in a folder that hold a store, the first twenty, sorted.

    There are none where it cannot be read.
    """
    with suppress(OSError, StoreError), reading_at(store_root(root)) as backend:
        return _stores_below(backend)
    return []


def filled_in(root: str, session: str | None) -> tuple[str, str | None]:
    """Return a root for `stores_in` with the session in place of `{session_id}`, and the session.

    It is None if it was filled in, since the folder is that session's own. Raises `StoreError` for
    a root that needs a session where none is given.
    """
    if SESSION_FIELD not in root:
        return root, session
    if session is None:
        raise StoreError(f"{root}: choose a session with `session` (--session)", path=root)
    return root.replace(SESSION_FIELD, safe_part(session)), None


def newest_record(root: Path, session: str, kind: str) -> dict[str, Any] | None:
    """Return the newest record of a kind of a session in a folder, None if there is none.

    Of its journal only that is parsed. Raises `StoreError`.
    """
    state = journal.StateFolder.of_session(session, "text")
    with failing_as("read", root), reading_at(root) as backend:
        records = journal.newest_first(backend, state.path, "record")
        found = (one for one in records if isinstance(one, dict) and one.get("record") == kind)
        return next(found, None)


def _newest_format(backend: Backend, folder: str) -> Format:
    """Return the format of a session's newest content; without any, by the snapshot's place."""
    with suppress(OSError):  # damaged; the session repairs it when it is opened
        saved = journal.newest_first(backend, folder, "saved")
        if newest := next((one for one in saved if isinstance(one, dict)), None):
            return "envelope" if newest.get("format") == "envelope" else "text"
    with suppress(FileNotFoundError):
        if folder == STATE_FOLDER and backend.status(journal.INDEX).is_file:
            return "envelope"
    return "text"


def _mode_of(backend: Backend, folder: str) -> str:
    """Return the permissions that the store's files have, as a policy writes them."""
    if not isinstance(backend, LocalBackend):
        return "0600"
    return f"{backend.mode(f'{folder}/{journal.JOURNAL}') | 0o600:04o}"


def _nothing_found(backend: Backend, session: str | None, others: list[str]) -> str:
    root = backend.root
    if others:
        known = ", ".join(name or "one without an id" for name in others)
        return f"{root} holds no session {session!r}; there is {known}"
    if below := _stores_below(backend):
        return f"{root} holds no store; the folders in it do: {', '.join(below)}"
    return f"{root} holds no store"


def _stores_below(backend: Backend) -> list[str]:
    if isinstance(backend.root, Path):
        below = (folder.parent.name for folder in backend.root.glob(f"*/{STATE_FOLDER}"))
        return sorted(islice(below, _MOST_BELOW))
    found = []
    for name in islice(backend.names(""), _MOST_BELOW):
        with suppress(NotADirectoryError):  # an object, where folders stand for prefixes
            if backend.names(f"{name}/{STATE_FOLDER}"):
                found.append(name)
    return found


class Upload(NamedTuple):
    """What was uploaded from the folder of one session."""

    folder: str
    url: str
    objects: int
    """Uploaded now; segments of the journal count too."""
    left: int
    """What still waits."""
    error: str = ""
    """Why something is left, or was set aside."""


def upload_below(folder: str | os.PathLike[str], *, timeout: float) -> Iterator[Upload]:
    """Upload what waits in a folder and in those below it, and yield what was done in each.

    The session may run meanwhile, here or in another process. `timeout` is that of a request, in
    seconds. Raises `StoreError` for a folder in which nothing ever waited.
    """
    found = [*_folders(absolute_root(folder))]
    if not found:
        raise StoreError(f"nothing ever waited in {folder}", path=os.fspath(folder))
    for place, url in found:
        store = ContextFileSystem(url, spill_to=place, state="none", timeout=timeout)
        before, error = store.waiting, ""
        try:
            store.upload()
        except StoreError as failed:
            error = str(failed)
        left = store.waiting
        yield Upload(str(place), url, max(0, before - left), left, error)


def _folders(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each folder that has waited for a store, with the URL of that store."""
    for folder, below, _ in os.walk(root):
        below.sort()
        path = absolute_root(folder)
        try:
            url = (path / URL_FILE).read_text("utf-8")
        except (OSError, ValueError):
            continue
        below.clear()
        yield path, url
