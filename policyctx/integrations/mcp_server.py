"""The MCP server with which an agent of any host reads offloaded content back, over stdio.

The folder and the session are fixed when the server starts. No tool takes either, so a model cannot
read another session.
"""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING, Annotated

from policyctx import __version__
from policyctx.definitions.recalling import READ_TOOL, SEARCH_TOOL
from policyctx.errors import AmbiguousSessionError, MissingExtraError, StoreError
from policyctx.integrations.tools import CHAR, LIMIT, OFFSET, PATH, QUERY, READ, SEARCH
from policyctx.planning.paths import safe_part
from policyctx.store.excerpts import MOST_LINES, Answer, read_offloaded, search_offloaded
from policyctx.store.filesystem import stores_in
from policyctx.store.roots import store_root

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from mcp.server import MCPServer

    from policyctx.store.filesystem import ContextFileSystem

_NOTHING_YET = Answer("nothing is offloaded yet", is_error=True)


class FixedStore:
    """The store of one session, opened once the session has saved something.

    `root` may contain `{session_id}`. Without a `session`, the folder has to hold the store of one
    session alone. Raises `AmbiguousSessionError` if it holds several.
    """

    def __init__(self, root: str | os.PathLike[str], session: str | None = None) -> None:
        name = "" if session is None else safe_part(session)
        self._root = store_root(str(root).replace("{session_id}", name))
        self._session = session
        self._store: ContextFileSystem | None = None
        self._lock = Lock()
        self.answer(lambda _: _NOTHING_YET)

    def answer(self, ask: Callable[[ContextFileSystem], Answer]) -> Answer:
        """Return what `ask` answers from the store, an error while there is none."""
        with self._lock:
            self._store = self._store or self._opened()
            store = self._store
        return _NOTHING_YET if store is None else ask(store)

    def _opened(self) -> ContextFileSystem | None:
        try:
            stores = stores_in(self._root)
        except StoreError:
            return None
        if self._session is None and len(stores) > 1:
            raise AmbiguousSessionError(None, sorted(stores), path=str(self._root))
        if self._session is None:
            return next(iter(stores.values()))
        owns_root = str(self._root).rpartition("/")[2] == safe_part(self._session)
        return stores.get(self._session) or (stores.get("") if owns_root else None)


def read_back_server(root: str | os.PathLike[str], session: str | None = None) -> MCPServer:
    """Return the server with the tools `read_offloaded` and `search_offloaded`.

    Raises `MissingExtraError` without the package `mcp`, and `AmbiguousSessionError`.
    """
    try:
        from mcp.server import MCPServer  # noqa: PLC0415 - takes long, and few need it
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415
        from mcp.types import ToolAnnotations  # noqa: PLC0415
        from pydantic import Field  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("the MCP server", extra="mcp") from error
    store = FixedStore(root, session)

    def shown(answer: Answer) -> str:
        if answer.is_error:
            raise ToolError(answer.text)
        return answer.text

    def read(path: str, offset: int = 1, limit: int = MOST_LINES, char: int = 1) -> str:
        return shown(store.answer(lambda s: read_offloaded(s, path, offset, limit, char)))

    def search(query: str) -> str:
        return shown(store.answer(lambda s: search_offloaded(s, query)))

    # The server reads these at run time, where the types of this module are texts.
    read.__annotations__ = {
        "path": Annotated[str, Field(description=PATH)],
        "offset": Annotated[int, Field(description=OFFSET, ge=1)],
        "limit": Annotated[int, Field(description=LIMIT, ge=1)],
        "char": Annotated[int, Field(description=CHAR, ge=1)],
        "return": str,
    }
    search.__annotations__ = {
        "query": Annotated[str, Field(description=QUERY)],
        "return": str,
    }
    server = MCPServer("policyctx", version=__version__, log_level="ERROR")
    for function, name, text in ((read, READ_TOOL, READ), (search, SEARCH_TOOL, SEARCH)):
        only_reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        add = server.tool(name, description=text, annotations=only_reads, structured_output=False)
        add(function)
    return server
