"""`McpOverHttp`: the MCP server of the proxy. It keeps no sessions, and answers in JSON.

The server of the package `mcp` does the protocol (Streamable HTTP). It is asked by a request and
answers by a response that are both in memory, so it needs no web server of its own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from policyctx.errors import MissingExtraError
from policyctx.integrations.mcp_server import READING, Tool, server_of, shown
from policyctx.integrations.tools import QUERY
from policyctx.store.excerpts import MOST_LINES, Answer

if TYPE_CHECKING:
    from mcp.server import MCPServer
    from mcp.server.mcpserver import Context

PATH = "The path that the placeholder shows, as it is."
BESIDE = (
    "The path that any placeholder of this conversation shows; its other texts are searched too."
)
# The key of a request's texts among what is known of the request.
_TEXTS = "policyctx.texts"


class Texts(Protocol):
    """The texts that one client may read. Any thread may ask for them."""

    def read(self, path: object, offset: object, limit: object, char: object) -> Answer:
        """Return lines of the text at a path."""
        ...

    def search(self, query: object, path: object) -> Answer:
        """Return the lines with the query, in the texts of the session that a path names."""
        ...


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
        self, headers: Sequence[tuple[bytes, bytes]], body: bytes, texts: Texts
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

    def texts_of(context: Context) -> Texts:
        request: Any = context.request_context.request
        found: Texts = request.scope[_TEXTS]
        return found

    def read(
        context: Context, path: str, offset: int = 1, limit: int = MOST_LINES, char: int = 1
    ) -> str:
        return shown(texts_of(context).read(path, offset, limit, char))

    def search(context: Context, query: str, path: str) -> str:
        return shown(texts_of(context).search(query, path))

    return server_of(
        Tool(read, {**READING, "path": PATH}), Tool(search, {"query": QUERY, "path": BESIDE})
    )
