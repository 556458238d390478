"""Clients that mean harm: what they take from the proxy, and how long others wait meanwhile."""

from __future__ import annotations

import asyncio
import gzip
import json
import os
import resource
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from threading import Event

import pytest
import zstandard

from tests.conversations import session_of
from tests.drawing import rotated
from tests.proxy.blackbox.proxies import EAGER, Proxy, proxied
from tests.proxy.blackbox.test_connections import (
    CLOSE,
    OK,
    RawUpstream,
    answered,
    request,
    statuses,
)
from tests.proxy.blackbox.test_faults import body, posted
from tests.proxy.blackbox.upstream import Upstream

pytestmark = pytest.mark.slow
MODULE_POLICY = EAGER


def test_a_proxy_without_files_left_logs_a_few_lines_and_recovers(
    own_provider: Upstream, tmp_path: Path
) -> None:
    with proxied(own_provider.url, tmp_path / "proxy", policy=EAGER) as proxy:
        used = len([*Path(f"/proc/{proxy.process.pid}/fd").iterdir()]) + 10
        resource.prlimit(proxy.process.pid, resource.RLIMIT_NOFILE, (used, used))
        clients = [socket.create_connection(("127.0.0.1", proxy.port)) for _ in range(60)]
        time.sleep(3)
        assert "out of system resource" in proxy.logged
        assert len(proxy.logged) < 10_000
        for client in clients:
            client.close()
        assert asyncio.run(posted(proxy.url, json.dumps(body()).encode()))[0] == 200


def test_a_proxy_that_is_flooded_while_it_starts_goes_on(tmp_path: Path) -> None:
    """A process of its own, which loads each module by itself."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    command = [sys.executable, "-m", "policyctx", "proxy", "--policy", "coding-agent"]
    command += ["--root", str(tmp_path), "--port", str(port)]
    with (tmp_path / "log").open("w") as log, subprocess.Popen(command, stderr=log) as running:
        resource.prlimit(running.pid, resource.RLIMIT_NOFILE, (60, 60))
        clients: list[socket.socket] = []
        while running.poll() is None and len(clients) < 100:
            with suppress(ConnectionRefusedError):
                clients.append(socket.create_connection(("127.0.0.1", port)))
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(6)
        for client in clients:
            client.close()
        running.terminate()


MANY = 5_000_000
HEAD = b'{"model":"m","max_tokens":9,"messages":['
BLOCKS = HEAD + b'{"role":"user","content":['
HOSTILE = {
    "messages": HEAD + b"{}," * MANY + b"{}]}",
    "blocks": BLOCKS + b"[]," * MANY + b"[]]}]}",
    "numbers": BLOCKS + b"1," * MANY + b"1]}]}",
    "strings": BLOCKS + b'"",' * MANY + b'""]}]}',
    "fields": HEAD + b"]," + b",".join(b'"%d":1' % i for i in range(MANY // 5)) + b"}",
    "tools": HEAD + b'],"tools":[' + b"{}," * MANY + b"{}]}",
    "quotes": HEAD + b'"' + b'\\"' * MANY,
    "depth": HEAD + b"[" * MANY,
}
ENCODINGS: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    "gzip": gzip.compress,
    "zstd": zstandard.compress,
}


@pytest.fixture(scope="module")
def raw_pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RawUpstream, Proxy]]:
    """An upstream that reads nothing in what it gets, and a proxy in front of it."""

    def answer(connection: socket.socket, _: int) -> bool:
        connection.sendall(OK)
        return True

    made = RawUpstream()
    made.answer = answer
    with proxied(made.url, tmp_path_factory.mktemp("raw"), policy=EAGER) as running:
        yield made, running
    made.listening.close()


@pytest.mark.parametrize(("name", "encoding"), rotated(HOSTILE, ENCODINGS, one_in=3))
def test_a_body_of_many_values_is_sent_as_it_came_while_others_are_answered(
    raw_pair: tuple[RawUpstream, Proxy], name: str, encoding: str
) -> None:
    """5 to 15 MB of JSON with millions of values, which in gzip or zstd are a few KB."""
    api, proxy = raw_pair
    api.seen.clear()
    before = proxy.peak_memory()
    raw = ENCODINGS[encoding](HOSTILE[name])
    headers = b"Content-Encoding: %b\r\n" % encoding.encode() if encoding else b""
    hostile = request(b"POST", b"/v1/messages", raw, CLOSE + headers)
    small = request(b"POST", b"/v1/messages", json.dumps(body()).encode())
    latencies = []
    with ThreadPoolExecutor(1) as threads:
        sending = threads.submit(answered, proxy.port, hostile)
        while not sending.done():
            begun = time.monotonic()
            assert statuses(answered(proxy.port, small)) == [200]
            latencies.append(time.monotonic() - begun)
        assert statuses(sending.result()) == [200]
    assert max(latencies, default=0) < 5
    assert raw in [sent for _, _, sent in api.seen]
    # The body is there once as it came, once decoded, and in pieces.
    assert proxy.peak_memory() - before < 100 * 2**20


KEYS = b",".join(b'"k%d":1' % i for i in range(290_000))
ALLOWED = b",".join(b'"k%d":1' % i for i in range(48_000))
LISTS = b",".join(b'{"k":[%d]}' % i for i in range(90_000))
CALL = HEAD + b'{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use",'
LARGE = {
    "keys of a message": HEAD + b'{"role":"user","content":"x",' + KEYS + b"}]}",
    "keys of a block": BLOCKS + b'{"type":"text","text":"x",' + KEYS + b"}]}]}",
    "keys of an input": CALL + b'"id":"a","name":"t","input":{' + KEYS + b"}}]}]}",
    "lists in an input": CALL + b'"id":"a","name":"t","input":{"x":[' + LISTS + b"]}}]}]}",
    "keys of a tool": HEAD + b'{"role":"user","content":"x"}],"tools":[{' + KEYS + b"}]}",
    "keys of messages": HEAD
    + b",".join(b'{"role":"user","content":"x",%b}' % ALLOWED for _ in range(6))
    + b"]}",
}


@pytest.mark.parametrize("name", LARGE)
def test_a_body_of_values_just_below_the_bound_takes_little_time(
    raw_pair: tuple[RawUpstream, Proxy], name: str
) -> None:
    """A message that is read or written holds all threads, and so the other clients."""
    _, proxy = raw_pair
    before, started = cpu_seconds(proxy), time.process_time()
    for _ in range(2):
        json.loads(LARGE[name])
    parsing = time.process_time() - started
    for _ in range(2):
        answer = answered(proxy.port, request(b"POST", b"/v1/messages", LARGE[name]))
        assert statuses(answer) == [200]
    assert cpu_seconds(proxy) - before < 5 * parsing


def cpu_seconds(proxy: Proxy) -> float:
    """Return the processor time of the proxy up to now, however busy the machine is."""
    fields = Path(f"/proc/{proxy.process.pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


CHUNKED = b"Transfer-Encoding: chunked\r\n"


def test_many_large_bodies_at_once_take_bounded_memory(
    raw_pair: tuple[RawUpstream, Proxy], tmp_path: Path
) -> None:
    """Clients stop in the middle of bodies, of 800 MB together; others are answered."""
    api, _ = raw_pair
    head = request(b"POST", b"/v1/messages", headers=b"Content-Length: 99000000\r\n")
    clients = []
    # A proxy of its own: the peak of another test does not count.
    with proxied(api.url, tmp_path, policy=EAGER) as proxy:
        for _ in range(40):
            client = socket.create_connection(("127.0.0.1", proxy.port), timeout=20)
            clients.append(client)
            client.sendall(head + b" " * 20_000_000)
        small = request(b"POST", b"/v1/messages", json.dumps(body()).encode())
        assert statuses(answered(proxy.port, small)) == [200]
        for client in clients:
            client.close()
        assert proxy.peak_memory() < 850 * 2**20


FIELDS = b"".join(b"X-%d: %b\r\n" % (number, b"v" * 60_000) for number in range(120))
LARGE_HEADS = {
    "a head": b"GET /v1/models HTTP/1.1\r\nHost: h\r\n" + FIELDS,
    "a second head": request(b"GET", b"/v1/models", b"", b"") + b"GET / HTTP/1.1\r\n" + FIELDS,
    "whole heads that wait": request(b"GET", b"/late", b"", FIELDS[: len(FIELDS) // 60]) * 60,
    "trailers": request(b"POST", b"/v1/messages", b"", CHUNKED) + b"1\r\na\r\n0\r\n" + FIELDS,
    "a chunk": request(b"POST", b"/v1/messages", b"", CHUNKED) + b"1;a=" + b"v" * len(FIELDS),
}


@pytest.mark.parametrize("what", LARGE_HEADS)
def test_many_large_heads_at_once_take_bounded_memory(
    raw_pair: tuple[RawUpstream, Proxy],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    """30 clients send 7 MB each of which nothing is a body; others are answered."""
    api, _ = raw_pair
    is_over = Event()
    soon = api.answer

    def answer(connection: socket.socket, number: int) -> bool:
        return (b"/late" in api.seen[-1][1] and is_over.wait(20)) or soon(connection, number)

    monkeypatch.setattr(api, "answer", answer)
    small = request(b"POST", b"/v1/messages", json.dumps(body()).encode())
    with ExitStack() as open_ones, proxied(api.url, tmp_path, policy=EAGER) as proxy:
        open_ones.callback(is_over.set)
        assert statuses(answered(proxy.port, small)) == [200]
        before = proxy.memory()
        for _ in range(30):
            client = socket.create_connection(("127.0.0.1", proxy.port), timeout=0.3)
            open_ones.enter_context(client)
            with suppress(OSError):  # the proxy ends the connection, or reads no more
                client.sendall(LARGE_HEADS[what])
        assert statuses(answered(proxy.port, small)) == [200]
        assert proxy.memory() - before < 40 * 2**20


@pytest.mark.parametrize(
    ("wide", "encoding"),
    rotated(["\N{GRINNING FACE}", "\\ud83d\\ude00", "\N{SNOWMAN}"], ["", "zstd"], one_in=2),
)
def test_a_text_that_is_wide_in_memory_is_sent_as_it_came(
    raw_pair: tuple[RawUpstream, Proxy], wide: str, encoding: str
) -> None:
    """One character makes the others four times as wide, in each of the copies of a long text."""
    api, proxy = raw_pair
    api.seen.clear()
    before = proxy.peak_memory()
    text = wide.encode() + os.urandom(500_000).hex().encode() + b"a b " * 10_000_000
    raw = ENCODINGS[encoding](
        b'{"model": "m", "messages": [{"role": "user", "content": "%b"}]}' % text
    )
    headers = b"Content-Encoding: %b\r\n" % encoding.encode() if encoding else b""
    answer = answered(proxy.port, request(b"POST", b"/v1/messages", raw, CLOSE + headers))
    assert statuses(answer) == [200]
    assert raw in [sent for _, _, sent in api.seen]
    assert proxy.peak_memory() - before < 150 * 2**20


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_a_wide_text_just_below_its_bound_takes_about_ten_times_its_bytes(
    raw_pair: tuple[RawUpstream, Proxy], tmp_path: Path, separators: tuple[str, str]
) -> None:
    api, _ = raw_pair
    api.seen.clear()
    messages = session_of("\N{GRINNING FACE}" + "a line of a log\n" * 1_800_000, "second")
    raw = json.dumps({"messages": messages}, ensure_ascii=False, separators=separators).encode()
    # A proxy of its own: the peak of another test does not count.
    with proxied(api.url, tmp_path, policy=EAGER) as proxy:
        before = proxy.peak_memory()
        assert statuses(answered(proxy.port, request(b"POST", b"/v1/messages", raw))) == [200]
        assert len(api.seen[-1][2]) < 1_000
        assert proxy.peak_memory() - before < 11 * len(raw)
