"""The proxy from end to end: what an upstream gets for what a client sent, and what comes back."""

from __future__ import annotations

import asyncio
import errno
import gzip
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from threading import Event
from typing import Any

import aiohttp
import pytest
import zstandard
from aiohttp import web

from tests.conversations import session_of, user
from tests.proxy.running import OFFLOADS_OLD, Running, Upstream, post, posted, proxy, upstream

pytestmark = pytest.mark.slow
TEXTS = [f"line {i}\n" * 40 for i in range(6)]
_numbers = count()


@pytest.fixture(scope="module")
def provider() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


@pytest.fixture
def api(provider: Upstream) -> Upstream:
    """The provider, which has seen nothing and answers in the usual way."""
    provider.seen.clear()
    provider.answer = None
    return provider


@pytest.fixture(scope="module")
def shared(provider: Upstream, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with proxy(tmp_path_factory.mktemp("proxy"), provider.url) as made:
        yield made


@pytest.fixture
def running(api: Upstream, shared: Running) -> Running:
    del api
    return shared


@pytest.fixture
def name() -> str:
    """The name of a session that no other test uses."""
    return f"session-{next(_numbers)}"


def body_of(count: int, **fields: Any) -> dict[str, Any]:
    return {"model": "m", "messages": session_of(*TEXTS[:count]), "max_tokens": 5, **fields}


def turn(running: Running, body: Any, name: str, **headers: str) -> None:
    headers = {"x_claude_code_session_id": name, "x_api_key": "k1", **headers}
    status, _ = posted(running.url + "/v1/messages?beta=true", body, **headers)
    assert status == 200


def results_of(body: Any) -> list[str]:
    return [
        block["content"]
        for message in body["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]


def test_old_results_leave_and_the_prefix_stays(running: Running, api: Upstream, name: str) -> None:
    for n in (1, 2, 3, 4):
        turn(running, body_of(n), name)
    lists = [results_of(seen.body) for seen in api.seen]
    assert [len(found) for found in lists] == [1, 2, 3, 4]
    assert lists[0] == TEXTS[:1]
    for n, found in enumerate(lists, 1):
        assert found[-1] == TEXTS[n - 1]
        assert set(found[:-1]).isdisjoint(TEXTS)
    assert lists[3][:2] == lists[2][:2]
    assert api.seen[3].path == "/v1/messages?beta=true"


def test_a_request_without_a_decision_keeps_its_bytes_and_headers(
    running: Running, api: Upstream, name: str
) -> None:
    raw = b'{ "model":"m",\n "messages" : [ {"role":"user","content":"caf\\u00e9 1.0"} ], "n":1.50}'
    turn(
        running,
        raw,
        name,
        authorization="Bearer t",
        anthropic_beta="a,b",
        anthropic_version="2023-06-01",
        connection="x-mine",
        x_mine="1",
        x_other="2",
    )
    [seen] = api.seen
    assert seen.raw == raw
    kept = ("authorization", "anthropic-beta", "anthropic-version", "x-other", "x-api-key")
    assert [seen.headers[header] for header in kept] == ["Bearer t", "a,b", "2023-06-01", "2", "k1"]
    assert "x-mine" not in seen.headers
    assert "user-agent" in seen.headers  # aiohttp's, as this client sent it


@pytest.mark.parametrize(
    ("path", "key"), [("/v1/chat/completions", "messages"), ("/v1/responses", "input")]
)
def test_the_apis_of_openai_are_edited_too(
    running: Running, api: Upstream, name: str, path: str, key: str
) -> None:
    def listed(n: int) -> list[Any]:
        found: list[Any] = [{"role": "user", "content": "the task"}]
        for i in range(n):
            if key == "input":
                found += [
                    {
                        "type": "function_call",
                        "call_id": f"c{i}",
                        "name": "Bash",
                        "arguments": "{}",
                    },
                    {"type": "function_call_output", "call_id": f"c{i}", "output": TEXTS[i]},
                ]
                continue
            call = {"id": f"c{i}", "type": "function"}
            call |= {"function": {"name": "Bash", "arguments": "{}"}}  # type: ignore[dict-item]
            found += [
                {"role": "assistant", "content": None, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": f"c{i}", "content": TEXTS[i]},
            ]
        return found

    for n in (1, 2, 3):
        body = {"model": "m", key: listed(n), "prompt_cache_key": name}
        assert posted(running.url + path, body, authorization="Bearer k")[0] == 200
    texts = [seen.raw.decode() for seen in api.seen]
    assert json.dumps(TEXTS[0])[1:-1] in texts[0]
    assert json.dumps(TEXTS[0])[1:-1] not in texts[1]
    assert json.dumps(TEXTS[1])[1:-1] in texts[1]
    assert json.dumps(TEXTS[1])[1:-1] not in texts[2]


def test_two_credentials_share_nothing(running: Running, api: Upstream, name: str) -> None:
    for key in ("k1", "k2"):
        for n in (1, 2):
            turn(running, body_of(n), name, x_api_key=key)
    placeholders = [results_of(seen.body)[0] for seen in api.seen[1::2]]
    folders = {text for text in " ".join(placeholders).split() if name in text}
    assert len(set(placeholders)) == 2
    assert len(folders) == 2


def test_a_request_that_only_another_user_has_decided_for_is_sent_as_it_came(
    running: Running, api: Upstream
) -> None:
    """Two users without any name of a session have lists that begin alike."""
    url = running.url + "/v1/messages"
    for key, n in (("k1", 1), ("k1", 2), ("k2", 1)):
        assert posted(url, body_of(n, tag="fingerprint"), x_api_key=key)[0] == 200
    assert set(results_of(api.seen[1].body)).isdisjoint(TEXTS[:1])
    assert results_of(api.seen[2].body) == TEXTS[:1]


def test_counting_uses_the_edited_list_and_decides_nothing(
    running: Running, api: Upstream, name: str
) -> None:
    headers = {"x_claude_code_session_id": name, "x_api_key": "k1"}
    url = running.url + "/v1/messages"
    posted(url, body_of(2), **headers)
    for _ in range(2):
        posted(url + "/count_tokens", body_of(3), **headers)
    posted(url, body_of(2), **headers)
    posted(url, body_of(3), **headers)
    first, counted, again, same, last = api.seen
    assert counted.path.endswith("/count_tokens")
    assert counted.raw == again.raw
    assert first.raw == same.raw
    assert results_of(counted.body) == results_of(last.body)


@pytest.mark.parametrize(
    ("path", "held"),
    [
        ("/v1/messages", {"thread": {"type": "continue"}}),
        ("/v1/messages", {"previous_message_id": "m1"}),
        ("/v1/messages", {"compaction": {"type": "summarize"}}),
        ("/v1/responses", {"previous_response_id": "r1"}),
        ("/v1/responses", {"conversation": "c1"}),
    ],
)
def test_a_list_that_is_not_the_whole_history_is_left_alone(
    running: Running, api: Upstream, name: str, path: str, held: Any
) -> None:
    body = body_of(3, **held)
    body["input"] = body["messages"]
    raw = json.dumps(body).encode()
    posted(running.url + path, raw, x_claude_code_session_id=name)
    assert api.seen[0].raw == raw


REDACTING = """\
apiVersion: policyctx/v1
name: careful
redact: {ticket: 'tkt_[0-9]{8}'}
steps: [{name: s, do: clear, when: {tokens: {over: 100000}}}]
"""


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/responses", {"input": "use tkt_12345678"}),
        ("/v1/responses", {"input": [user("tkt_12345678")], "previous_response_id": "r1"}),
        ("/v1/responses/compact", {"input": [user("tkt_12345678")]}),
        ("/v1/embeddings", {"input": "tkt_12345678"}),
        ("/v1/messages", {"messages": [user("tkt_12345678")], "seed": 2**70}),
        ("/v1/messages", {"messages": [{"role": "critic", "content": "tkt_12345678"}]}),
    ],
)
def test_the_log_warns_of_a_request_that_is_not_redacted(
    tmp_path: Path, api: Upstream, path: str, body: Any
) -> None:
    read = {"messages": [user("tkt_12345678")]}
    with proxy(tmp_path, api.url, policy=REDACTING) as running:
        posted(running.url + "/v1/messages", read)
        assert b"tkt_" not in api.seen[-1].raw
        assert "redacted" not in running.log.read_text()
        posted(running.url + path, body)
        assert b"tkt_" in api.seen[-1].raw
        lines = running.log.read_text().splitlines()
    [line] = [one for one in lines if "sent unchanged" in one]
    assert "WARNING" in line
    assert line.endswith("; nothing in it is redacted")


def test_other_fields_and_blocks_of_the_server_keep_their_bytes(
    running: Running, api: Upstream, name: str
) -> None:
    kept = [
        b'{"role":"assistant","content":[{"type":"thinking","thinking":"\\u0068m","signature":"E=="},'
        b'{"type":"server_tool_use","id":"s","name":"web_search","input":{"q":1.0}},'
        b'{"type":"web_search_tool_result","tool_use_id":"s","content":[]}]}',
        b'"context_management":{"edits":[{"type":"clear_thinking_20251015","keep":"all"}]}',
    ]
    messages = b",".join(json.dumps(message).encode() for message in session_of(*TEXTS[:2]))
    raw = b'{"model":"m","messages":[%b,%b],%b}' % (messages, *kept)
    turn(running, raw, name)
    assert set(results_of(api.seen[0].body)) != set(TEXTS[:2])
    assert all(part in api.seen[0].raw for part in kept)


def test_the_markers_of_the_client_stay(running: Running, api: Upstream, name: str) -> None:
    marker = {"cache_control": {"type": "ephemeral"}}
    for n in (2, 3):
        body = body_of(n, system=[{"type": "text", "text": "s", **marker}])
        body["messages"][-1]["content"][-1] |= marker
        turn(running, body, name)
    assert [json.dumps(seen.body).count("cache_control") for seen in api.seen] == [2, 2]


def test_a_policy_that_fails_for_a_message_applies_what_was_decided(
    running: Running, api: Upstream, name: str
) -> None:
    for n in (2, 3):
        turn(running, body_of(n), name)
    body = body_of(4)
    body["messages"].append({"role": "user", "content": 7})
    turn(running, body, name)
    turn(running, body_of(5), name)
    lists = [seen.body["messages"] for seen in api.seen]
    assert lists[2][: len(lists[1])] == lists[1]
    assert lists[2][len(lists[1]) :] == body["messages"][len(lists[1]) :]
    assert results_of(api.seen[3].body)[:2] == results_of(api.seen[1].body)[:2]
    found = asyncio.run(get(running.url + "/_policyctx/health"))
    assert json.loads(found[1])["requests"]["reapplied"] >= 1
    assert TEXTS[3].split("\n")[0] not in running.log.read_text()


@pytest.mark.parametrize(
    "raw", [b'{"messages":[{"foo":1}]}', b'{"messages":', b"\xff", b"", b'{"messages":[1]}']
)
def test_what_cannot_be_read_is_sent_as_it_came(
    running: Running, api: Upstream, name: str, raw: bytes
) -> None:
    turn(running, raw, name)
    assert api.seen[0].raw == raw


def test_a_repeated_request_is_sent_alike(running: Running, api: Upstream, name: str) -> None:
    async def limited(_: web.Request) -> web.StreamResponse:
        return web.json_response({"e": 1}, status=429, headers={"retry-after": "7", "x-a": "b"})

    turn(running, body_of(2), name)
    api.answer = limited
    headers = {"x_claude_code_session_id": name, "x_api_key": "k1"}
    answer = posted(running.url + "/v1/messages?beta=true", body_of(3), **headers)
    assert answer == (429, b'{"e": 1}')
    api.answer = None
    turn(running, body_of(3), name)
    assert api.seen[1].raw == api.seen[2].raw


def test_compressed_bodies_are_edited_and_sent_plain(
    running: Running, api: Upstream, name: str
) -> None:
    raw = json.dumps(body_of(3)).encode()
    turn(running, gzip.compress(raw), name, content_encoding="gzip")
    turn(running, zstandard.compress(raw), name, content_encoding="zstd")
    assert api.seen[0].raw == api.seen[1].raw
    assert len(results_of(api.seen[0].body)) == 3
    assert "content-encoding" not in api.seen[0].headers


def test_a_compressed_body_that_is_too_large_is_refused(running: Running, name: str) -> None:
    bomb = zstandard.compress(b" " * 200_000_000)
    headers = {"content_encoding": "zstd", "x_claude_code_session_id": name}
    assert posted(running.url + "/v1/messages", bomb, **headers)[0] == 413


async def get(url: str, **headers: str) -> tuple[int, bytes]:
    async with (
        aiohttp.ClientSession() as session,
        session.get(url, headers={k.replace("_", "-"): v for k, v in headers.items()}) as response,
    ):
        return response.status, await response.read()


def test_a_stream_comes_piece_by_piece_and_its_usage_is_observed(
    running: Running, api: Upstream, name: str
) -> None:
    events = [
        b'event: message_start\ndata: {"type":"message_start","message":{"usage":'
        b'{"input_tokens":12345,"output_tokens":1}}}\n\n',
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    ]
    may_go_on = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []

    async def streamed(request: web.Request) -> web.StreamResponse:
        loops.append(asyncio.get_running_loop())
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(events[0])
        await may_go_on.wait()
        await response.write(events[1])
        return response

    async def read() -> list[bytes]:
        headers = {"x-claude-code-session-id": name}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                running.url + "/v1/messages", json=body_of(2), headers=headers
            ) as response,
        ):
            first = await response.content.readexactly(len(events[0]))
            loops[0].call_soon_threadsafe(may_go_on.set)
            return [first, await response.read()]

    api.answer = streamed
    assert asyncio.run(read()) == events


def test_a_stream_that_is_cut_is_cut_for_the_client(
    running: Running, api: Upstream, name: str
) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: 1\n\n")
        assert request.transport is not None
        request.transport.close()
        return response

    api.answer = cut
    with pytest.raises(aiohttp.ClientPayloadError):
        asyncio.run(post(running.url + "/v1/messages", body_of(2), x_claude_code_session_id=name))


def test_a_client_that_leaves_cancels_the_request(
    running: Running, api: Upstream, name: str
) -> None:
    left = asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(request)
        try:
            for _ in range(600):
                await response.write(b": ping\n\n")
                await asyncio.sleep(0.05)
        except (asyncio.CancelledError, ConnectionError):
            left.set()
            raise
        return response

    async def leave() -> None:
        headers = {"x-claude-code-session-id": name}
        async with (
            aiohttp.ClientSession() as session,
            session.post(
                running.url + "/v1/messages", json=body_of(2), headers=headers
            ) as response,
        ):
            await response.content.readany()
        for _ in range(200):
            if left.is_set():
                return
            await asyncio.sleep(0.05)

    api.answer = slow
    asyncio.run(leave())
    assert left.is_set()


def raw_answer(running: Running, request: bytes) -> bytes:
    """Send bytes over a connection, and return what comes back."""
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection:
        connection.sendall(request)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


@pytest.mark.parametrize(
    "head",
    [
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n",
        b"POST /v1/messages HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 3\r\n",
        b"POST http://other.example/v1/messages HTTP/1.1\r\nContent-Length: 0\r\n",
        b"CONNECT other.example:443 HTTP/1.1\r\n",
    ],
)
def test_requests_with_two_readings_or_other_targets_are_refused(
    running: Running, api: Upstream, head: bytes
) -> None:
    answer = raw_answer(running, head + b"Host: a\r\nConnection: close\r\n\r\n0\r\n\r\n")
    assert answer.split()[1] in {b"400", b"404"}
    assert api.seen == []


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("http://127.0.0.1:{free}", os.strerror(errno.ECONNREFUSED)),
        ("http://no-such-host.invalid", "its host is not known"),
        ("https://127.0.0.1:{plain}", "TLS failed: WRONG_VERSION_NUMBER"),
    ],
)
def test_an_upstream_that_is_away_is_an_error_that_says_why(
    tmp_path: Path, api: Upstream, url: str, why: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        free = listening.getsockname()[1]
    with proxy(tmp_path, url.format(free=free, plain=api.url.rpartition(":")[2])) as running:
        status, answer = posted(running.url + "/v1/messages", body_of(2))
    said = f"policyctx proxy: the upstream cannot be reached: {why}"
    assert (status, json.loads(answer)["error"]["message"]) == (502, said)


def test_a_websocket_is_refused_with_a_reason(running: Running) -> None:
    status, text = asyncio.run(
        get(running.url + "/v1/responses", connection="upgrade", upgrade="websocket")
    )
    assert status == 426
    assert b"WebSocket" in text


def test_own_pages_answer_to_their_own_address_alone(running: Running, api: Upstream) -> None:
    for path in ("/_policyctx/nothing", "/_policyctx/..%2f", "/_policyctxx", "/_policyctx//"):
        assert asyncio.run(get(running.url + path))[0] == 404
    for path in ("/_policyctx", "/_policyctx/", "/_policyctx?a"):
        status, text = asyncio.run(get(running.url + path))
        assert (status, text[:15]) == (200, b"<!doctype html>")
    assert posted(running.url + "/_policyctx/", b"")[0] == 404
    assert api.seen == []
    port = running.url.rpartition(":")[2]
    asked: list[tuple[int, dict[str, str]]] = [
        (200, {}),
        (200, {"host": f"localhost:{port}"}),
        (200, {"origin": f"http://127.0.0.1:{port}"}),
        (403, {"host": f"evil.example:{port}"}),
        (403, {"host": "127.0.0.1:1"}),
        (403, {"origin": "http://evil.example"}),
        (403, {"origin": "null"}),
    ]
    for page in ("", "health", "decisions.json", "metrics"):
        for status, headers in asked:
            found = asyncio.run(get(f"{running.url}/_policyctx/{page}", **headers))
            assert found[0] == status, headers
            assert b"k1" not in found[1]


def test_every_decision_of_a_journal_is_in_decisions_json(running: Running, name: str) -> None:
    for n in (1, 2, 4):
        turn(running, body_of(n), name)
    url = running.url + "/_policyctx/decisions.json"
    found = json.loads(asyncio.run(get(url))[1])["decisions"]
    own = [one for one in found if name in one["session"]]
    assert [(one["call"], one["item"]) for one in own] == [(2, "c0"), (3, "c1"), (3, "c2")]
    [session] = {one["session"] for one in own}
    filtered = json.loads(asyncio.run(get(f"{url}?session={session}"))[1])["decisions"]
    assert filtered == own
    shown = asyncio.run(get(f"{running.url}/_policyctx/?session={session}"))[1].decode()
    assert shown.count('<td data-label="Item"') == 3
    assert TEXTS[0][:6] not in shown + json.dumps(found)
    assert (
        b'responses_total{upstream="anthropic",status="200"}'
        in (asyncio.run(get(running.url + "/_policyctx/metrics"))[1])
    )


def test_other_paths_pass_to_the_upstream_of_their_headers(api: Upstream, tmp_path: Path) -> None:
    given = f"anthropic={api.url}/a,openai={api.url}/o/v1"
    asked: list[tuple[str, dict[str, str]]] = [
        ("/v1/models", {"x_api_key": "k"}),
        ("/v1/models", {"authorization": "Bearer k"}),
        ("/v1/files?limit=1", {"anthropic_version": "1"}),
    ]
    with proxy(tmp_path, api.url, "--upstream", given) as running:
        for path, headers in asked:
            assert asyncio.run(get(running.url + path, **headers))[0] == 200
    found = ["/a/v1/models", "/o/v1/models", "/a/v1/files?limit=1"]
    assert [seen.path for seen in api.seen] == found


@pytest.mark.parametrize("named", ["header", "cache key", "beginning"])
def test_a_session_goes_on_after_the_proxy_was_killed(
    api: Upstream, tmp_path: Path, named: str
) -> None:
    headers = {"x_claude_code_session_id": "s"} if named == "header" else {}
    fields = {"prompt_cache_key": "s"} if named == "cache key" else {}
    for turns in ((1, 2, 3), (4, 5)):
        with proxy(tmp_path, api.url) as running:
            for n in turns:
                url = running.url + "/v1/messages"
                assert posted(url, body_of(n, **fields), x_api_key="k", **headers)[0] == 200
            running.kill()
    before, after = api.seen[2], api.seen[3]
    [*kept, _] = results_of(before.body)
    assert results_of(after.body)[:2] == kept
    end = before.raw.index(json.dumps(TEXTS[2])[:20].encode())
    assert after.raw[:end] == before.raw[:end]


def test_a_proxy_that_others_reach_wants_a_token(api: Upstream, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("a-long-enough-secret\n")
    options = ("--host", "0.0.0.0", "--token-file", str(token), "--client", "same")  # noqa: S104
    with proxy(tmp_path, api.url, *options) as running:
        url = running.url.replace("0.0.0.0", "127.0.0.1")  # noqa: S104
        assert asyncio.run(get(url + "/v1/models"))[0] == 401
        assert asyncio.run(get(url + "/v1/models", x_policyctx_token="wrong"))[0] == 401  # noqa: S106
        good = "a-long-enough-secret"
        assert asyncio.run(get(url + "/v1/models", x_policyctx_token=good))[0] == 200
        assert asyncio.run(get(f"{url}/_policyctx/token/{good}/v1/models"))[0] == 200
        for page in ("_policyctx", "_policyctx/", "_policyctx/metrics"):
            assert asyncio.run(get(f"{url}/{page}"))[0] == 401
            assert asyncio.run(get(f"{url}/_policyctx/token/{good}/{page}"))[0] == 200
    assert [seen.path for seen in api.seen] == ["/v1/models", "/v1/models"]
    assert all("x-policyctx-token" not in seen.headers for seen in api.seen)


def test_a_stopped_proxy_ends_well_and_keeps_its_secrets(api: Upstream, tmp_path: Path) -> None:
    with proxy(tmp_path, api.url) as running:
        for n in (1, 2):
            turn(running, body_of(n), "s", x_api_key="the-secret-key")
        assert running.stop() == 0
    key = tmp_path / "root" / "proxy.key"
    assert key.stat().st_mode & 0o777 == 0o600
    files = [path for path in (tmp_path / "root").rglob("*") if path.is_file()]
    assert any(path.read_text(errors="replace") == TEXTS[0] for path in files)
    assert all(b"the-secret-key" not in path.read_bytes() for path in files)


def test_a_request_without_an_answer_has_five_seconds_when_the_proxy_is_stopped(
    api: Upstream, tmp_path: Path
) -> None:
    arrived = Event()

    async def never(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await asyncio.sleep(60)
        return web.json_response({})

    api.answer = never
    with proxy(tmp_path, api.url) as running, socket.socket() as client:
        client.connect(("127.0.0.1", int(running.url.rpartition(":")[2])))
        client.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
        assert arrived.wait(20)
        assert running.stop(9.5) == 0  # twice five seconds would be more


def test_a_request_that_is_answered_in_that_time_has_its_answer(
    api: Upstream, tmp_path: Path
) -> None:
    arrived = Event()

    async def slow(_: web.Request) -> web.StreamResponse:
        arrived.set()
        await asyncio.sleep(1.5)
        return web.json_response({"late": True})

    api.answer = slow
    with proxy(tmp_path, api.url) as running, socket.socket() as client:
        client.settimeout(20)
        client.connect(("127.0.0.1", int(running.url.rpartition(":")[2])))
        client.sendall(b"GET /v1/models HTTP/1.1\r\nhost: x\r\n\r\n")
        assert arrived.wait(20)
        assert running.stop() == 0
        assert client.makefile("rb").read().endswith(b'{"late": true}')


def test_a_dry_run_changes_nothing(api: Upstream, tmp_path: Path) -> None:
    with proxy(tmp_path, api.url, "--dry-run") as running:
        for n in (1, 2, 3):
            turn(running, body_of(n), "s")
        assert "1 items would leave the context" in running.log.read_text()
        found = json.loads(asyncio.run(get(running.url + "/_policyctx/decisions.json"))[1])
        page = asyncio.run(get(running.url + "/_policyctx/"))[1].decode()
    assert found["dry_run"]
    assert results_of(api.seen[2].body) == TEXTS[:3]
    assert [(one["call"], one["item"]) for one in found["decisions"]] == [(2, "c0"), (3, "c1")]
    assert "A dry run" in page
    assert [path.name for path in (tmp_path / "root").rglob("*")] == ["proxy.key"]


def test_a_policy_is_read_again_on_sighup_unless_it_is_wrong(api: Upstream, tmp_path: Path) -> None:
    with proxy(tmp_path, api.url) as running:
        for n, keep in ((2, "kept_recent: 3"), (3, "keep_recent: 3")):
            turn(running, body_of(n), "s")
            new = OFFLOADS_OLD.replace("keep_recent: 1", keep)
            (tmp_path / "p.yaml").write_text(new)
            running.process.send_signal(signal.SIGHUP)
            wait_for_reload(running, n - 1)
        turn(running, body_of(4), "s")
        turn(running, body_of(4), "s2")
        assert "the policy was not read again" in running.log.read_text()
    last, other = (results_of(seen.body) for seen in api.seen[2:])
    assert results_of(api.seen[1].body)[:2] == last[:2]  # decided is decided
    assert last[2:] == TEXTS[2:4]
    assert other[1:] == TEXTS[1:4]


def wait_for_reload(running: Running, number: int) -> None:
    for _ in range(600):
        found = json.loads(asyncio.run(get(running.url + "/_policyctx/health"))[1])
        if found["reloads"] == number:
            return
        time.sleep(0.05)
    raise AssertionError


def test_a_slow_connection_is_closed(running: Running) -> None:
    host, port = running.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(b"POST /v1/messages HTTP/1.1\r\nHost: a\r\nX-Slow: ")
        with suppress(ConnectionResetError):
            assert connection.recv(100) == b""
