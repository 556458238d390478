"""A proxy as a user runs it, and a small upstream on the loopback address."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread
from typing import Any

import aiohttp
from aiohttp import web

from tests.cli.running import Started, started

OFFLOADS_OLD = """\
apiVersion: policyctx/v1
name: old
min_tokens: 20
items: {tool_result: {offload: true, keep_recent: 1}}
steps: [{name: retire, do: offload}]
"""


@dataclass
class Seen:
    """A request that reached the upstream."""

    method: str
    path: str
    headers: dict[str, str]
    raw: bytes

    @property
    def body(self) -> Any:
        return json.loads(self.raw)


@dataclass
class Upstream:
    """Answers every request with `answer`, and keeps what it got."""

    url: str = ""
    seen: list[Seen] = field(default_factory=list)
    answer: Callable[[web.Request], Awaitable[web.StreamResponse]] | None = None

    async def handle(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        headers = {name.lower(): value for name, value in request.headers.items()}
        self.seen.append(Seen(request.method, request.raw_path, headers, raw))
        if self.answer is not None:
            return await self.answer(request)
        usage = {"input_tokens": 1000, "output_tokens": 5}
        return web.json_response({"ok": True, "usage": usage}, headers={"x-request-id": "r1"})


@contextmanager
def upstream() -> Iterator[Upstream]:
    """Serve in a thread until the block ends."""
    made, ready, stop = Upstream(), Event(), Event()

    async def serve() -> None:
        app = web.Application(client_max_size=2**30)
        app.router.add_route("*", "/{path:.*}", made.handle)
        runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        ready.set()
        await asyncio.to_thread(stop.wait)
        await runner.cleanup()

    thread = Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    ready.wait()
    try:
        yield made
    finally:
        stop.set()
        thread.join()


@dataclass
class Running:
    """A proxy in a process of its own."""

    url: str
    process: Started | subprocess.Popen[str]
    log: Path

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 20) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=seconds)


@contextmanager
def proxy(folder: Path, to: str, *options: str, policy: str = OFFLOADS_OLD) -> Iterator[Running]:
    """Run the command with a policy, until the block ends."""
    (folder / "p.yaml").write_text(policy)
    log = folder / "log.txt"
    words = ["proxy", "--policy", str(folder / "p.yaml"), "--port", "0"]
    words += ["--root", str(folder / "root"), "--upstream", f"anthropic={to},openai={to}", *options]
    process = started(words, log, {**os.environ, "PYTHONUNBUFFERED": "1"})
    assert process.stdout is not None
    with process.stdout:
        try:
            line = process.stdout.readline()
            assert line.startswith("policyctx proxy listens on http://"), log.read_text()
            yield Running(line.split()[-1], process, log)
        finally:
            process.kill()
            process.wait()


async def post(url: str, body: Any, **headers: str) -> tuple[int, bytes]:
    """Send a body, bytes as they are and anything else as JSON."""
    raw = body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()
    sent = {
        "content-type": "application/json",
        **{k.replace("_", "-"): v for k, v in headers.items()},
    }
    async with (
        aiohttp.ClientSession(auto_decompress=False) as session,
        session.post(url, data=raw, headers=sent) as response,
    ):
        return response.status, await response.read()


def posted(url: str, body: Any, **headers: str) -> tuple[int, bytes]:
    """Send a body as `post` does."""
    return asyncio.run(post(url, body, **headers))
