"""A scripted provider on the loopback address: Anthropic's Messages, Chat Completions, Responses.

It refuses what the providers' rules name and prompts over its window, bills a prompt by its bytes,
records the bytes of each request, and answers from a script, plain or as server-sent events. It
runs in a thread with an event loop of its own, so it serves a thousand streams at once.
"""

from __future__ import annotations

import asyncio
import json
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock, Thread
from typing import Any

import zstandard
from aiohttp import web

from tests.integrations import anthropic_rules, openai_api, openai_rules, scripted
from tests.integrations.anthropic_api import events_of
from tests.proxy.blackbox.recorded import LISTS, Body, Recorded
from tests.proxy.blackbox.scripts import DONE, Reply, Script, always

# The bytes of a prompt that are billed as one token.
BYTES_PER_TOKEN = 4
_LARGEST = 256 * 2**20
_MESSAGES, _COUNT = "/v1/messages", "/v1/messages/count_tokens"
_CHAT, _RESPONSES = "/v1/chat/completions", "/v1/responses"


class Upstream:
    """The provider's state: what it answers, and what it has seen.

    `requests` are all requests that came, in order; `refused` says why some were refused. `prompts`
    are the billed tokens of each accepted prompt. `cancelled` counts the streams whose client went
    away. `accepted` names fields, at any depth, that a client sends beyond those of the rules.
    """

    def __init__(self, window: int | None = None) -> None:
        self.open = 0
        """The streams that are being sent."""
        self.url = ""
        self._lock = Lock()
        self._ids = 0
        self.reset(window)

    def reset(self, window: int | None = None) -> None:
        """Forget what has come, and answer as at first."""
        self.window = window
        self.script: Script = always(DONE)
        self.requests: list[Recorded] = []
        self.refused: list[str] = []
        self.prompts: list[int] = []
        self.cancelled = 0
        self.most_open = 0
        self.accepted: frozenset[str] = frozenset()
        self.made: dict[str, Body] = {}
        self._answered: dict[str, int] = {}

    def new_id(self, kind: str) -> str:
        """Return an id that no other item has."""
        with self._lock:
            self._ids += 1
            return f"{kind}_{self._ids}"

    def billed(self, body: Body) -> int:
        """Return the tokens that a prompt is billed for."""
        return tokens_of(body)

    def of(self, path: str) -> list[Recorded]:
        """Return the requests for a path that came, in order."""
        return [request for request in self.requests if request.path == path]

    def conversation(self, request: Recorded) -> list[Recorded]:
        """Return the requests of the same conversation as this one, in order."""
        name = conversation_of(request)
        return [one for one in self.requests if conversation_of(one) == name]

    def reply_to(self, request: Recorded) -> Reply:
        """Return the next reply of the script for the request's conversation."""
        name = conversation_of(request)
        number = self._answered.get(name, 0)
        reply = self.script(request, number)
        self._answered[name] = number + 1
        return reply

    def forget(self, answers: int = 0) -> None:
        """Go on in each conversation as if it had had so many answers."""
        self._answered = dict.fromkeys(self._answered, answers)

    def refusal(self, request: Recorded) -> str | None:
        """Return why the provider refuses a request, None if it accepts it."""
        body = self._known(request.body)
        if not body:
            return "We could not parse the JSON body of your request."
        if request.path == _MESSAGES:
            reason = anthropic_rules.refusal(body)
        elif request.path == _COUNT:
            return anthropic_rules.refusal(body, is_count=True)
        elif request.path == _CHAT:
            reason = openai_rules.chat_refusal(body)
        else:
            reason = openai_rules.responses_refusal(body, self.made)
        tokens = tokens_of(body)
        if reason is None and self.window is not None and tokens > self.window:
            return f"prompt is too long: {tokens} tokens > {self.window} maximum"
        return reason

    def _known(self, body: Body) -> Body:
        """Return the body without the fields that are accepted beyond the rules, at any depth."""

        def known(block: Body) -> Body:
            return {name: value for name, value in block.items() if name not in self.accepted}

        if not self.accepted:
            return body
        found: Body = json.loads(json.dumps(body), object_hook=known)
        return found


def conversation_of(request: Recorded) -> str:
    """Return the conversation that a request names by a header of the tests; one without it.

    A request without tools, such as one for a title, is none of the task's.
    """
    name = request.header("x-scripted-conversation") or ""
    return name if request.body.get("tools") else f"{name}, without tools"


def tokens_of(body: Body) -> int:
    """Return the tokens that the provider bills for a prompt: by the bytes of all its parts."""
    names = ("tools", "system", "instructions", "messages", "input")
    prompt = [body[name] for name in names if body.get(name)]
    text = json.dumps(prompt, ensure_ascii=False, separators=(",", ":"))
    return len(text.encode(errors="surrogatepass")) // BYTES_PER_TOKEN


@contextmanager
def upstream(window: int | None = None) -> Iterator[Upstream]:
    """Serve in a thread until the block ends."""
    server = Upstream(window)
    with in_thread(lambda: _started(server)):
        yield server


@contextmanager
def in_thread(start: Callable[[], Any]) -> Iterator[Any]:
    """Run an event loop in a thread until the block ends; `start` returns what is cleaned up."""
    loop = asyncio.new_event_loop()
    thread = Thread(target=loop.run_forever)
    thread.start()
    runner: web.AppRunner | None = None
    try:
        runner = asyncio.run_coroutine_threadsafe(start(), loop).result(10)
        yield loop
    finally:
        if runner is not None:
            asyncio.run_coroutine_threadsafe(runner.cleanup(), loop).result(10)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _started(server: Upstream) -> web.AppRunner:
    runner = web.AppRunner(
        application(server),
        handler_cancellation=True,
        auto_decompress=False,
        shutdown_timeout=0.1,
        access_log=None,
    )
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=2048)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    return runner


def application(server: Upstream) -> web.Application:
    """Return the provider as a web application."""
    app = web.Application(client_max_size=_LARGEST)

    async def answer(request: web.Request) -> web.StreamResponse:
        return await _answer(server, request)

    app.router.add_route("*", "/{path:.*}", answer)
    return app


async def _answer(server: Upstream, request: web.Request) -> web.StreamResponse:
    # aiohttp decodes a body; the tests look at what was sent.
    headers = tuple((k.decode(), v.decode("latin-1")) for k, v in request.raw_headers)
    recorded = Recorded(request.method, request.path_qs, headers, await request.read())
    server.requests.append(recorded)
    if recorded.path in LISTS:
        return await _answer_list(server, request, recorded)
    if recorded.path == "/v1/models":
        return web.json_response({"object": "list", "data": [{"id": "m", "object": "model"}]})
    echo = {"path": recorded.target, "method": recorded.method, "bytes": len(recorded.raw)}
    return web.json_response(echo)


async def _answer_list(
    server: Upstream, request: web.Request, recorded: Recorded
) -> web.StreamResponse:
    is_anthropic = recorded.path.startswith(_MESSAGES)
    try:
        reason = server.refusal(recorded)
    except (AttributeError, KeyError, TypeError, ValueError):
        reason = "a field has a value of the wrong type"
    except (OSError, zlib.error, zstandard.ZstdError):
        reason = "the body is not encoded as its header says"
    if reason is not None:
        server.refused.append(reason)
        return _error(is_anthropic, 400, reason, {})
    if recorded.path == _COUNT:
        return web.json_response({"input_tokens": tokens_of(recorded.body)})
    reply = server.reply_to(recorded)
    if reply.status != 200:
        return _error(is_anthropic, reply.status, "scripted", dict(reply.headers))
    server.prompts.append(tokens_of(recorded.body))
    whole, frames = _spoken(server, recorded, reply)
    if recorded.body.get("stream"):
        return await _streamed(server, request, reply, frames)
    response = web.json_response(whole, headers=dict(reply.headers))
    if reply.gzip:
        response.enable_compression(web.ContentCoding.gzip)
    return response


def _error(is_anthropic: bool, status: int, text: str, headers: dict[str, str]) -> web.Response:
    kind = {429: "rate_limit_error", 529: "overloaded_error"}.get(status, "invalid_request_error")
    error: Body = {"type": kind, "message": text}
    body = {"type": "error", "error": error} if is_anthropic else {"error": error}
    return web.json_response(body, status=status, headers=headers)


def _spoken(server: Upstream, request: Recorded, reply: Reply) -> tuple[Body, Iterator[str]]:
    """Return the whole answer in the request's API, and the frames of a stream of it."""
    if request.path == _MESSAGES:
        message = _message(server, request.body, reply)
        events = events_of(message)
        return message, (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
    said = scripted.Reply(
        reply.text or None,
        tuple((id_, name, json.dumps(given)) for id_, name, given in reply.calls),
        reasons=reply.thinks and request.path == _RESPONSES,
    )
    speak = openai_api.completion if request.path == _CHAT else openai_api.response
    whole, parts = speak(server, request.body, said)
    return whole, map(openai_api.frame, parts)


def _message(server: Upstream, body: Body, reply: Reply) -> Body:
    content: list[Body] = []
    if body.get("thinking", {}).get("type") in {"enabled", "adaptive"}:
        thought = f"I think about it: {reply.text}"
        signature = anthropic_rules.signed(thought)
        content.append({"type": "thinking", "thinking": thought, "signature": signature})
    if reply.text:
        content.append({"type": "text", "text": reply.text})
    for id_, name, given in reply.calls:
        content.append({"type": "tool_use", "id": id_, "name": name, "input": given})
    return {
        "id": server.new_id("msg"),
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": content,
        "stop_reason": "tool_use" if reply.calls else "end_turn",
        "stop_sequence": None,
        "usage": {
            "input_tokens": reply.tokens or tokens_of(body),
            "output_tokens": max(1, len(json.dumps(content)) // BYTES_PER_TOKEN),
        },
    }


async def _streamed(
    server: Upstream, request: web.Request, reply: Reply, frames: Iterator[str]
) -> web.StreamResponse:
    headers = {"content-type": "text/event-stream; charset=utf-8", **reply.headers}
    packer = zlib.compressobj(wbits=31) if reply.gzip else None
    if packer is not None:
        headers["content-encoding"] = "gzip"
    response = web.StreamResponse(headers=headers)
    await response.prepare(request)
    server.open += 1
    server.most_open = max(server.most_open, server.open)
    try:
        for number, frame in enumerate(frames):
            if number and reply.pause:
                await asyncio.sleep(reply.pause)
            if number == reply.cut_after and request.transport is not None:
                request.transport.abort()
                return response
            raw = frame.encode()
            if packer is not None:
                raw = packer.compress(raw) + packer.flush(zlib.Z_SYNC_FLUSH)
            await response.write(raw)
        if packer is not None:
            await response.write(packer.flush())
        await response.write_eof()
    except (asyncio.CancelledError, ConnectionError):
        server.cancelled += 1
        raise
    finally:
        server.open -= 1
    return response
