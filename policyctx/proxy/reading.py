"""`OwnTexts`: the offloaded texts of the sessions of one client, which it names by path.

A placeholder shows the folder of its session and the path below it. A client may read a session if
the session's own record says that it belongs to the same upstream and credential. Of any other
session it does not even learn whether there is one.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from policyctx.errors import StoreError
from policyctx.proxy.history import owner_of
from policyctx.store.excerpts import Answer, read_offloaded, search_offloaded
from policyctx.store.filesystem import ContextFileSystem, stores_in

# The names of sessions, as `session_name` makes them. No folder above the root has such a name.
_SESSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]{0,200}")
_SHOWN_CHARS = 200


class Endpoint(Protocol):
    """A server that is asked over HTTP, one request at a time, by whoever may read some texts."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run what requests need, until the block ends."""
        ...

    async def answer(
        self, headers: Sequence[tuple[bytes, bytes]], body: bytes, texts: OwnTexts
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Answer a POST request of a client that may read these texts.

        Returns the status, the headers and the body of the response.
        """
        ...


class OwnTexts:
    """The texts that the sessions of some scopes have offloaded below a root.

    Any thread may use it. Each method answers any input that a model may give, and raises nothing.
    """

    def __init__(self, root: Path, scopes: Collection[str]) -> None:
        self._root, self._scopes = root, frozenset(filter(None, scopes))

    def read(self, path: object, offset: object, limit: object, char: object) -> Answer:
        """Return lines of the text at a path, as `read_offloaded` does."""
        session, below = self._parts(path)
        store = self._store(session)
        if store is None or not below:
            return _unknown(path)
        return self._shown(
            read_offloaded(store, below, offset, limit, char, before=f"{session}/"), session
        )

    def search(self, query: object, path: object) -> Answer:
        """Return the lines that contain the query, in the texts of the session that a path names.

        The path may be that of the session's folder alone.
        """
        session, _ = self._parts(path)
        store = self._store(session)
        if store is None:
            return _unknown(path)
        return self._shown(search_offloaded(store, query, before=f"{session}/"), session)

    def _parts(self, path: object) -> tuple[str, str]:
        """Return the session that a path names, and the path below its folder."""
        plain = path.strip() if isinstance(path, str) else ""
        plain = plain.removeprefix(f"{self._root}/").removeprefix("./")
        session, _, below = plain.partition("/")
        return session, below

    def _store(self, session: str) -> ContextFileSystem | None:
        """Return the store of a session, None if it is not one of these scopes."""
        if _SESSION.fullmatch(session) is None:
            return None
        folder = self._root / session
        if folder.is_symlink():
            return None
        try:
            store = stores_in(folder, session=session)[session]
            return store if owner_of(store.records()) in self._scopes else None
        except StoreError:
            return None

    def _shown(self, answer: Answer, session: str) -> Answer:
        """Return an answer whose errors do not tell where the root is."""
        if not answer.is_error:
            return answer
        return answer._replace(text=answer.text.replace(f"{self._root}/{session}", session))


def _unknown(path: object) -> Answer:
    shown = str(path)[:_SHOWN_CHARS]
    text = f"no offloaded content {shown!r}: path must be the path in a placeholder, as it is"
    return Answer(text, is_error=True)
