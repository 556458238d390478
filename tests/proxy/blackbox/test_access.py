"""Who may ask the proxy what: requests that servers read differently, hosts, origins, tokens."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import aiohttp
import pytest

from tests.proxy.blackbox.proxies import NOTHING, Proxy, process, proxied
from tests.proxy.blackbox.scripts import task
from tests.proxy.blackbox.upstream import Upstream

pytestmark = pytest.mark.slow
MODULE_POLICY = NOTHING
POST = "POST /v1/messages HTTP/1.1"
# A second request that hides in the body of the first.
HIDDEN = "GET /v1/models HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
LENGTH = f"Content-Length: {len(HIDDEN)}"


def sent(port: int, raw: bytes) -> list[int]:
    """Send raw bytes; return the status of each answer until the connection is quiet."""

    async def exchange() -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(raw)
        await writer.drain()
        got = b""
        try:
            while part := await asyncio.wait_for(reader.read(65_536), 1):
                got += part
        except (TimeoutError, ConnectionError):
            pass
        writer.close()
        return got

    got = asyncio.run(exchange())
    return [int(status) for status in re.findall(rb"HTTP/1\.[01] (\d{3}) [A-Z]", got)]


@pytest.mark.parametrize(
    "lines",
    [
        (POST, LENGTH, "Transfer-Encoding: chunked"),
        (POST, "Transfer-Encoding: chunked", LENGTH),
        (POST, LENGTH, "Content-Length: 5"),
        (POST, f"{LENGTH}, 5"),
        (POST, "Content-Length: +5"),
        (POST, "Content-Length: -1"),
        (POST, "Content-Length: 0x10"),
        (POST, "Content-Length : 5"),
        (POST, "Transfer-Encoding: chunked, identity"),
        (POST, "Transfer-Encoding: xchunked"),
        (POST, "Transfer-Encoding : chunked"),
        (POST, "X-Folded: a\r\n b", LENGTH),
        (POST, "Bad Name: x", LENGTH),
        (POST, "X-Nul: a\x00b", LENGTH),
        (POST, "Host: other.example", LENGTH),
        ("POST http://127.0.0.1:1/v1/messages HTTP/1.1", LENGTH),
        ("GET http://other.example/v1/models HTTP/1.1",),
        ("CONNECT other.example:443 HTTP/1.1",),
    ],
)
def test_a_request_that_servers_read_differently_is_refused(
    provider: Upstream, proxy: Proxy, lines: tuple[str, ...]
) -> None:
    first, *others = lines
    head = "\r\n".join([first, f"Host: 127.0.0.1:{proxy.port}", *others])
    # What follows a request without a body is another request, and nothing to refuse.
    rest = HIDDEN if first.startswith("POST") else ""
    statuses = sent(proxy.port, f"{head}\r\n\r\n{rest}".encode("latin-1"))
    assert len(statuses) == 1
    assert 400 <= statuses[0] < 500
    assert provider.requests == []


@pytest.mark.parametrize(
    "target",
    ["//other.example/v1/models", "/\\other.example/v1/models", "/@other.example/v1/models"],
)
def test_a_path_that_looks_like_a_host_goes_nowhere_else(
    provider: Upstream, proxy: Proxy, target: str
) -> None:
    raw = f"GET {target} HTTP/1.1\r\nHost: 127.0.0.1:{proxy.port}\r\n\r\n".encode()
    (status,) = sent(proxy.port, raw)
    assert status < 500
    hosts = {request.header("host") for request in provider.requests}
    assert hosts <= {provider.url.removeprefix("http://")}


def page(proxy: Proxy, headers: dict[str, str], path: str = "/_policyctx/") -> Any:
    async def get() -> tuple[int, dict[str, str]]:
        async with (
            aiohttp.ClientSession() as session,
            session.get(proxy.url + path, headers=headers) as answer,
        ):
            return answer.status, {k.lower(): v for k, v in answer.headers.items()}

    return asyncio.run(get())


@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "other.example"},
        {"Host": "127.0.0.1.other.example"},
        {"Origin": "http://other.example"},
        {"Origin": "null"},
    ],
)
def test_the_proxys_own_pages_are_for_its_own_host(
    provider: Upstream, proxy: Proxy, headers: dict[str, str]
) -> None:
    assert page(proxy, {})[0] in {200, 404}
    status, answered = page(proxy, headers)
    assert status == 403
    assert "access-control-allow-origin" not in answered
    assert provider.requests == []


def test_the_proxys_own_paths_never_reach_the_provider(provider: Upstream, proxy: Proxy) -> None:
    for path in ("/_policyctx", "/_policyctx/nothing", "/_policyctx/../_policyctx/x"):
        page(proxy, {}, path)
    assert provider.requests == []


def test_the_second_line_is_the_address_of_the_page(own_provider: Upstream, tmp_path: Path) -> None:
    with proxied(own_provider.url, tmp_path / "proxy", policy=NOTHING) as proxy:
        assert proxy.process.stdout is not None
        address = proxy.process.stdout.readline().split()[-1]
        with urlopen(address) as answer:  # noqa: S310 - http
            assert b"<html" in answer.read()


def test_a_public_address_needs_a_token(tmp_path: Path) -> None:
    with process("http://127.0.0.1:1", tmp_path, "--host", "0.0.0.0") as running:  # noqa: S104
        assert running.wait(30) not in {0, None}
        assert running.stdout is not None
        printed = running.stdout.read()
    said = printed + (tmp_path / "log.txt").read_text()
    assert "token" in said
    assert "listens on" not in said
    assert "Traceback" not in said


def test_a_public_address_serves_those_with_the_token(
    own_provider: Upstream, tmp_path: Path
) -> None:
    token = tmp_path / "token"
    token.write_text("a-token-of-some-length\n")
    token.chmod(0o600)
    own_provider.script = task(0)
    options = ("--host", "0.0.0.0", "--token-file", str(token))  # noqa: S104
    body = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}

    async def statuses(url: str) -> list[int]:
        found = []
        async with aiohttp.ClientSession() as session:
            for headers in ({}, {"x-policyctx-token": "wrong"}, {"x-policyctx-token": secret}):
                own = {"x-api-key": "k", **headers}
                async with session.post(f"{url}/v1/messages", json=body, headers=own) as answer:
                    found.append(answer.status)
        return found

    secret = token.read_text().strip()
    with proxied(own_provider.url, tmp_path / "proxy", *options, policy=NOTHING) as proxy:
        first, second, third = asyncio.run(statuses(f"http://127.0.0.1:{proxy.port}"))
    assert {first, second} <= {401, 403}
    assert third == 200
    (request,) = own_provider.requests
    assert request.header("x-policyctx-token") is None
    assert secret not in proxy.logged


def test_a_policy_that_does_not_load_refuses_to_start(tmp_path: Path) -> None:
    wrong = "apiVersion: policyctx/v1\nname: wrong\nstep: []\n"
    with process("http://127.0.0.1:1", tmp_path, policy=wrong) as running:
        assert running.wait(30) not in {0, None}
        assert running.stdout is not None
        printed = running.stdout.read()
    said = printed + (tmp_path / "log.txt").read_text()
    assert "step" in said
    assert "listens on" not in said
    assert "Traceback" not in said
