"""The sessions that share one root: where each keeps its state, and what its journal says."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import unquote_to_bytes

from policyctx.paths import safe_part
from policyctx.store.backend import Backend
from policyctx.store.content import STATE_FOLDER, decoded
from policyctx.store.files import Format
from policyctx.store.index import Index
from policyctx.store.journal import JOURNAL, open_journal, read_journal

INDEX = "index.json"


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder below the root in which one session keeps its state."""

    path: str
    format: Format
    """The format of the session's contents."""

    @classmethod
    def of_session(cls, session: str | None, form: Format) -> StateFolder:
        """Return the folder of a session; None for the store that owns the root."""
        below = "" if session is None else f"/{safe_part(session)}"
        return cls(STATE_FOLDER + below, form)

    @property
    def owns_root(self) -> bool:
        """Whether no other session keeps its contents in this root."""
        return self.path == STATE_FOLDER

    @property
    def snapshots(self) -> tuple[str, ...]:
        """Where the snapshot may be, the best place first: in the root for envelopes.

        A session that shares the root takes that place if no other session has it; see `Snapshots`.
        """
        own = f"{self.path}/{INDEX}"
        if self.format != "envelope":
            return (own,)
        return (INDEX,) if self.owns_root else (INDEX, own)


def state_folders(backend: Backend) -> list[str]:
    """Return the folder of each session that keeps a journal in this root."""
    try:
        names = backend.names(STATE_FOLDER)
    except FileNotFoundError:
        return []
    found = [STATE_FOLDER] if JOURNAL in names else []
    for name in names:
        if name == JOURNAL and backend.is_remote:  # the journal itself is a folder there
            continue
        folder = f"{STATE_FOLDER}/{name}"
        with contextlib.suppress(OSError):  # a file
            if JOURNAL in backend.names(folder):
                found.append(folder)
    return found


def session_of(folder: str) -> str:
    """Return the id of the session that keeps its state in a folder; "" for the root's own."""
    name = folder.removeprefix(STATE_FOLDER).removeprefix("/")
    return decoded(unquote_to_bytes(name))


def session_ids(backend: Backend) -> list[str]:
    """Return the id of each session that keeps a journal in this root, sorted."""
    return sorted(map(session_of, state_folders(backend)))


def lines_in(backend: Backend, folder: str) -> tuple[object, ...]:
    """Return every line of the journal in a folder, oldest first; () when there is none."""
    try:
        log = open_journal(backend, folder, writing=False)
    except FileNotFoundError:
        return ()
    with contextlib.closing(log):
        return read_journal(log).lines


def all_indexes(backend: Backend) -> Iterator[Index]:
    """Yield what the journal of each session in this root says."""
    for folder in state_folders(backend):
        index = Index()
        try:
            lines = lines_in(backend, folder)
        except OSError:
            continue  # damaged; its own session repairs it
        for line in lines:
            index.apply(line)
        yield index
