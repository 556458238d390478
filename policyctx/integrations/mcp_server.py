"""The MCP server with which an agent reads offloaded content back, over stdio or the proxy's HTTP.

The folder and the session are fixed when the server starts. No tool takes either, so a model cannot
read another session.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from threading import Lock
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Protocol

from policyctx import __version__
from policyctx.definitions.items import READ_TOOL, SEARCH_TOOL
from policyctx.errors import AmbiguousSessionError, MissingExtraError, StoreError
from policyctx.integrations.tools import CHAR, LIMIT, OFFSET, PATH, QUERY, READ, SEARCH
from policyctx.store.backend import store_root
from policyctx.store.excerpts import MOST_LINES, Answer, read_offloaded, search_offloaded
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import filled_in, stores_below, stores_in

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

# What the parameters of `read_offloaded` mean.
READING = {"path": PATH, "offset": OFFSET, "limit": LIMIT, "char": CHAR}
_NOTHING_YET = Answer("nothing is offloaded yet", is_error=True)
SHOWN_PATH = "The path that the placeholder shows, as it is."
BESIDE = (
    "The path that any placeholder of this conversation shows; its other texts are searched too."
)
# The key of a request's texts among what is known of the request.
_TEXTS = "policyctx.texts"


class FixedStore:
    """The store of one session, opened once the session has saved something.

    `root` may contain `{session_id}`, or be the folder above that of the session. Without a
    `session`, the folder has to hold the store of one session alone. Raises
    `AmbiguousSessionError` if it holds several, or only folders below it do.
    """

    def __init__(self, root: str | os.PathLike[str], session: str | None = None) -> None:
        given, self._session = filled_in(str(root), session)
        self._root = store_root(given)
        self._lock = Lock()
        self._store = self._opened()
        if self._store is None and session is None and (below := stores_below(self._root)):
            raise AmbiguousSessionError(None, below, path=str(self._root))

    def answer(self, ask: Callable[[ContextFileSystem], Answer]) -> Answer:
        """Return what `ask` answers from the store, an error while there is none."""
        with self._lock:
            self._store = self._store or self._opened()
            store = self._store
        return _NOTHING_YET if store is None else ask(store)

    def _opened(self) -> ContextFileSystem | None:
        try:
            stores = stores_in(self._root, session=self._session)
        except StoreError:
            return None
        if len(stores) > 1:
            raise AmbiguousSessionError(None, sorted(stores), path=str(self._root))
        return next(iter(stores.values()))


def read_back_server(root: str | os.PathLike[str], session: str | None = None) -> MCPServer:
    """Return the server with the tools `read_offloaded` and `search_offloaded`.

    Raises `MissingExtraError` without the package `mcp`, and `AmbiguousSessionError`.
    """
    store = FixedStore(root, session)

    def read(path: str, offset: int = 1, limit: int = MOST_LINES, char: int = 1) -> str:
        return shown(store.answer(lambda s: read_offloaded(s, path, offset, limit, char)))

    def search(query: str) -> str:
        return shown(store.answer(lambda s: search_offloaded(s, query)))

    return server_of(ServedTool(read, READING), ServedTool(search, {"query": QUERY}))


class ServedTool(NamedTuple):
    """A function that is served as a tool."""

    function: Callable[..., str]
    parameters: Mapping[str, str]
    """What each parameter means, by name. One that is not here gets the `Context` of a call."""


def server_of(read: ServedTool, search: ServedTool) -> MCPServer:
    """Return a server with the tools `read_offloaded` and `search_offloaded`.

    Raises `MissingExtraError` without the package `mcp`.
    """
    try:
        from mcp.server import MCPServer  # noqa: PLC0415 - takes long, and few need it
        from mcp.server.mcpserver import Context  # noqa: PLC0415
        from mcp.types import ToolAnnotations  # noqa: PLC0415
        from pydantic import Field  # noqa: PLC0415
    except ImportError as error:
        raise MissingExtraError("the MCP server", extra="mcp") from error
    # The tools never change, and a client that may listen for it waits for an answer.
    server = MCPServer("policyctx", version=__version__, log_level="ERROR", subscriptions=False)
    for tool, name, text in ((read, READ_TOOL, READ), (search, SEARCH_TOOL, SEARCH)):
        types: dict[str, object] = dict.fromkeys(tool.function.__annotations__, Context)
        for parameter, meaning in tool.parameters.items():
            whole = Annotated[int, Field(description=meaning, ge=1)]
            is_text = parameter in {"path", "query"}
            types[parameter] = Annotated[str, Field(description=meaning)] if is_text else whole
        # The server reads these at run time, where the types of a module are texts.
        tool.function.__annotations__ = {**types, "return": str}
        only_reads = ToolAnnotations(read_only_hint=True, open_world_hint=False)
        add = server.tool(name, description=text, annotations=only_reads, structured_output=False)
        add(tool.function)
    return server


def shown(answer: Answer) -> str:
    """Return the text of an answer, and raise an error for the model if it is one."""
    if answer.is_error:
        from mcp.server.mcpserver.exceptions import ToolError  # noqa: PLC0415 - see `server_of`

        raise ToolError(answer.text)
    return answer.text


class ClientTexts(Protocol):
    """The texts that one client may read. Any thread may ask for them."""

    def read(self, path: object, offset: object, limit: object, char: object) -> Answer:
        """Return lines of the text at a path."""

    def search(self, query: object, path: object) -> Answer:
        """Return the lines with the query, in the texts of the session that a path names."""


class McpOverHttp:
    """The tools `read_offloaded` and `search_offloaded` for many clients, each with its own texts.

    Raises `MissingExtraError` without the package `mcp`.
    """

    def __init__(self) -> None:
        if find_spec("mcp") is None:
            raise MissingExtraError("the MCP server", extra="mcp")
        self._manager: Any = None

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run what requests need, until the block ends."""
        # Its log may have a part of a request.
        logging.getLogger("mcp").setLevel(logging.CRITICAL)
        from mcp.server.transport_security import (  # noqa: PLC0415 - takes long
            TransportSecuritySettings,
        )

        server = _server()
        # The proxy checks host and origin itself, and knows what its addresses are.
        unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        server.streamable_http_app(
            json_response=True, stateless_http=True, transport_security=unchecked
        )
        self._manager = server.session_manager
        async with self._manager.run():
            yield

    async def answer(
        self, headers: Sequence[tuple[bytes, bytes]], body: bytes, texts: ClientTexts
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Answer a POST request of a client that may read these texts.

        Returns the status, the headers and the body of the response.
        """
        request = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "POST",
            "scheme": "http",
            "path": "/",
            "raw_path": b"/",
            "query_string": b"",
            "root_path": "",
            "headers": [(name.lower(), value) for name, value in headers],
            _TEXTS: texts,
        }
        coming = [{"type": "http.request", "body": body, "more_body": False}]
        going: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            # A client that goes away cancels this whole call.
            return coming.pop() if coming else await asyncio.Future()

        async def send(message: dict[str, Any]) -> None:
            going.append(message)

        await self._manager.handle_request(request, receive, send)
        begun = going[0]
        return begun["status"], begun["headers"], b"".join(one.get("body", b"") for one in going)


def _server() -> MCPServer:
    """Return the server; its tools read the texts of the request that calls them."""

    def texts_of(context: Context) -> ClientTexts:
        request: Any = context.request_context.request
        found: ClientTexts = request.scope[_TEXTS]
        return found

    def read(
        context: Context, path: str, offset: int = 1, limit: int = MOST_LINES, char: int = 1
    ) -> str:
        return shown(texts_of(context).read(path, offset, limit, char))

    def search(context: Context, query: str, path: str) -> str:
        return shown(texts_of(context).search(query, path))

    return server_of(
        ServedTool(read, {**READING, "path": SHOWN_PATH}),
        ServedTool(search, {"query": QUERY, "path": BESIDE}),
    )
