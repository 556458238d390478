"""The proxy's MCP server, asked by a real client over HTTP."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from io import BytesIO
from typing import Any

import aiohttp
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.conversations import session_of
from tests.proxy.running import Running, Upstream, post, posted, proxy, upstream

pytestmark = pytest.mark.slow
_PATH = re.compile(r"Path: (\S+)\nUse read_offloaded tool")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
ACCEPTS = {"accept": "application/json, text/event-stream"}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Upstream, Running]]:
    """An upstream, and a proxy in front of it for clients on another machine."""
    folder = tmp_path_factory.mktemp("mcp")
    options = ("--read-back", "mcp", "--client", "other")
    with upstream() as to, proxy(folder, to.url, *options) as running:
        yield to, running


@asynccontextmanager
async def asking(url: str, **options: Any) -> AsyncIterator[Client]:
    """Run a client of the MCP server of a proxy, with these options of its HTTP client."""
    async with httpx2.AsyncClient(**options) as http:
        transport = streamable_http_client(f"{url}/_policyctx/mcp", http_client=http)
        async with Client(transport) as client:
            yield client


async def called(client: Client, tool: str, **given: Any) -> tuple[str, bool]:
    result: Any = await client.call_tool(tool, given)
    [text] = result.content
    return text.text, bool(result.is_error)


def offloaded(pair: tuple[Upstream, Running], text: str, **credential: str) -> str:
    """Send a list with this result as an old one; return the path in its placeholder."""
    to, running = pair
    path, body = "/v1/messages", {"messages": session_of(text, "x" * 400)}
    headers = {"x_claude_code_session_id": "one-id", **credential}
    assert posted(running.url + path, body, **headers)[0] == 200
    [result] = to.seen[-1].body["messages"][2]["content"]
    found = _PATH.search(result["content"])
    assert found is not None, result
    return found[1]


MODERN = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "some", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@pytest.mark.parametrize(
    ("method", "given", "expected"),
    [
        ("server/discover", {}, {"listChanged": False}),
        ("subscriptions/listen", {"notifications": {"toolsListChanged": True}}, -32601),
    ],
)
def test_no_client_waits_for_changes_of_the_tools(
    pair: tuple[Upstream, Running], method: str, given: dict[str, Any], expected: object
) -> None:
    """Nothing ever changes, so a client that listens would wait until it gives up."""

    async def ask() -> Any:
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**given, "_meta": MODERN}}
        headers = {
            **ACCEPTS, "x-api-key": "sk-one", "mcp-protocol-version": "2026-07-28",
            "mcp-method": method,
        }  # fmt: skip
        async with httpx2.AsyncClient(headers=headers, timeout=10) as http:
            found = await http.post(f"{pair[1].url}/_policyctx/mcp", json=body)
        return found.json()

    answer = asyncio.run(ask())
    found = (
        answer["error"]["code"] if "error" in answer else answer["result"]["capabilities"]["tools"]
    )
    assert found == expected


def test_each_client_reads_what_was_offloaded_for_its_credential(
    pair: tuple[Upstream, Running],
) -> None:
    keys = {"one": {"x-api-key": "sk-one"}, "two": {"Authorization": "Bearer sk-two"}}
    texts = {name: f"a line of {name}\n" * 100 for name in keys}
    paths = {
        name: offloaded(pair, texts[name], **{k.replace("-", "_"): v for k, v in key.items()})
        for name, key in keys.items()
    }

    async def run(own: str, other: str) -> None:
        async with asking(pair[1].url, headers=keys[own]) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert set(tools) == {"read_offloaded", "search_offloaded"}
            given = [set(tool.input_schema["properties"]) for tool in tools.values()]
            assert given == [{"path", "offset", "limit", "char"}, {"query", "path"}]
            found = await called(client, "read_offloaded", path=paths[own])
            assert found == (texts[own], False)
            lines, _ = await called(client, "search_offloaded", query=own, path=paths[own])
            assert lines.startswith(f"{paths[own]}:1: a line of {own}")
            for path in (paths[other], "../" + paths[other], "proxy.key", "\0"):
                text, is_error = await called(client, "read_offloaded", path=path)
                assert (is_error, f"line of {other}" in text) == (True, False)
                text, is_error = await called(client, "search_offloaded", query="line", path=path)
                assert (is_error, f"line of {other}" in text) == (True, False)

    async def both() -> None:
        await asyncio.gather(run("one", "two"), run("two", "one"))

    asyncio.run(both())
    to, running = pair
    assert {seen.path for seen in to.seen} == {"/v1/messages"}
    assert "sk-one" not in running.log.read_text()


def asked(running: Running, body: Any = PING, **headers: str) -> tuple[int, bytes]:
    return asyncio.run(post(f"{running.url}/_policyctx/mcp", body, **{**ACCEPTS, **headers}))


@pytest.mark.parametrize(
    "headers", [{}, {"authorization": ""}, {"authorization": "Bearer "}, {"x_api_key": " "}]
)
def test_a_request_without_a_credential_is_refused(
    pair: tuple[Upstream, Running], headers: dict[str, str]
) -> None:
    status, text = asked(pair[1], **headers)
    assert status == 403
    assert b"send the credential" in text
    assert asked(pair[1], x_api_key="k")[0] == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"host": "other.example"},
        {"host": "127.0.0.1"},
        {"origin": "http://other.example"},
        {"origin": "null"},
    ],
)
def test_a_request_to_another_name_or_from_a_page_is_refused(
    pair: tuple[Upstream, Running], headers: dict[str, str]
) -> None:
    status, text = asked(pair[1], x_api_key="k", **headers)
    assert (status, b"jsonrpc" in text) == (403, False)


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"{", 400),
        (b"[]", 400),
        (b'{"jsonrpc":"2.0","id":1,"method":"nothing"}', 200),
        (b"[" * 900, 400),
        (b"[" * 100_000, 413),
    ],
)
def test_a_wrong_request_gets_an_error(
    pair: tuple[Upstream, Running], body: bytes, status: int
) -> None:
    found, text = asked(pair[1], body, x_api_key="sk-secret")
    assert found == status
    assert b"error" in text
    assert "sk-secret" not in pair[1].log.read_text()


@pytest.mark.parametrize("value", ["[]", '{"a":{}}', "1", '""', '"\\""'])
def test_a_request_of_many_values_is_refused_before_it_is_read(
    pair: tuple[Upstream, Running], value: str
) -> None:
    """The server reads a request in the event loop, so all others would wait."""
    raw = json.dumps({**PING, "params": {"a": "VALUES"}})
    body = raw.replace('"VALUES"', "[" + ",".join([value] * 90_000) + "]").encode()
    status, text = asked(pair[1], body, x_api_key="k")
    assert (status, b"too many values" in text) == (413, True)
    signs = raw.replace("VALUES", "f(a, [b], {c}) " * 9_000).encode()
    assert asked(pair[1], signs, x_api_key="k")[0] == 200


def test_a_large_request_is_refused(pair: tuple[Upstream, Running]) -> None:
    async def ask() -> tuple[int, str]:
        url, headers = f"{pair[1].url}/_policyctx/mcp", {"x-api-key": "k", **ACCEPTS}
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=BytesIO(b" " * 2**21), headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    status, text = asyncio.run(ask())
    assert (status, "1,048,576 bytes" in text) == (413, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/_policyctx/mcp", 405),
        ("DELETE", "/_policyctx/mcp", 405),
        ("PUT", "/_policyctx/mcp", 405),
        ("GET", "/.well-known/oauth-protected-resource/_policyctx/mcp", 404),
        ("GET", "/.well-known/oauth-authorization-server", 404),
    ],
)
def test_there_is_no_stream_no_session_and_no_login_of_the_protocol(
    pair: tuple[Upstream, Running], method: str, path: str, status: int
) -> None:
    async def ask() -> int:
        headers = {"x-api-key": "k", **ACCEPTS}
        async with (
            aiohttp.ClientSession() as session,
            session.request(method, pair[1].url + path, headers=headers) as answer,
        ):
            return answer.status

    assert asyncio.run(ask()) == status
    assert {seen.path for seen in pair[0].seen} <= {"/v1/messages"}


def test_a_text_is_read_from_another_process_with_its_token(
    pair: tuple[Upstream, Running],
) -> None:
    text = "a line\n" * 100
    path = offloaded(pair, text, x_api_key="k")
    folder = pair[1].log.parent
    token = folder / "token"
    token.write_text("a-token-of-some-length")
    options = ("--read-back", "mcp", "--token-file", str(token))
    with proxy(folder, pair[0].url, *options) as running:

        async def read() -> None:
            url = f"{running.url}/_policyctx/token/{token.read_text()}"
            async with asking(url, headers={"x-api-key": "k"}) as client:
                assert await called(client, "read_offloaded", path=path) == (text, False)

        asyncio.run(read())
        secret = {"x_api_key": "k", "x_policyctx_token": token.read_text()}
        named = {"host": "proxy.example:80"}
        assert asked(running, **secret, **named)[0] == 200
        assert asked(running, **secret, **named, origin="http://proxy.example:80")[0] == 403
        assert asked(running, x_api_key="k", **named)[0] == 401
