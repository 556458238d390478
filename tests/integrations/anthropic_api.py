"""A server on the loopback address that checks and answers requests as Anthropic's Messages API.

It refuses what `anthropic_rules` names and prompts over its window, bills a prompt by its bytes,
and answers from a script, plain or as server-sent events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from threading import Event, Lock
from typing import Any

from tests.integrations.anthropic_rules import (
    Block,
    Body,
    marked_blocks,
    prompt_bytes,
    refusal,
    signed,
)
from tests.serving import Answer, serving

# The bytes of a prompt that are billed as one token, and the tokens that no request shows.
BYTES_PER_TOKEN = 3
HIDDEN_TOKENS = 300
_CHUNK = 40


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer.

    `cut_after` ends the connection after so many events of a stream. Another `status` than 200
    answers with an error instead of the content.
    """

    content: tuple[Block, ...] = ()
    status: int = 200
    cut_after: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    @property
    def stop_reason(self) -> str:
        """The reason that the API gives for the end of the answer."""
        calls = any(block["type"] == "tool_use" for block in self.content)
        return "tool_use" if calls else "end_turn"

    def cut(self, after: int) -> Reply:
        """Return this reply, cut off after some events of the stream."""
        return replace(self, cut_after=after)


def saying(text: str) -> Reply:
    """Return a reply with one text."""
    return Reply(({"type": "text", "text": text},))


def calling(*calls: tuple[str, str, dict[str, Any]], thinking: str = "") -> Reply:
    """Return a reply with a call for each (id, tool, input), after signed thinking if any."""
    thought = {"type": "thinking", "thinking": thinking, "signature": signed(thinking)}
    made = [{"type": "tool_use", "id": i, "name": name, "input": given} for i, name, given in calls]
    return Reply((*([thought] if thinking else []), *made))


# The SDK waits for as long as the header says, and then tries again.
OVERLOADED = Reply(status=529, headers={"retry-after-ms": "1"})


class AnthropicAPI(ThreadingHTTPServer):
    """Answers with `script`: replies in order, then `Done.`, or a function of the request's body.

    `bodies` holds each body that came to `/v1/messages`, `raw` their bytes, `counted` the bodies
    for `count_tokens`, and `refused` the reasons for which requests were refused. `prompts` are
    the billed tokens of each accepted prompt.
    """

    def __init__(self, window: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.window = window
        self.script: list[Reply] | Callable[[Body], Reply] = []
        self.bodies: list[Body] = []
        self.raw: list[bytes] = []
        self.headers: list[dict[str, str]] = []
        self.counted: list[Body] = []
        self.refused: list[str] = []
        self.prompts: list[int] = []
        self.holds: Event | None = None
        """If set, a stream waits for it after its first event."""
        self.bills_late = False
        """Whether a stream has the tokens of the prompt in `message_delta`, as gateways do."""
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self._lock = Lock()
        self._cached: set[str] = set()

    def reply_to(self, body: Body) -> Reply:
        """Return the next reply of the script."""
        with self._lock:
            if not isinstance(self.script, list):
                return self.script(body)
            return self.script.pop(0) if self.script else saying("Done.")

    def usage(self, body: Body) -> dict[str, int]:
        """Return the billed tokens of a prompt: all of it, parted by the cache markers in it."""
        total = tokens_of(body)
        if not marked_blocks(body):
            return {"input_tokens": total}
        messages = _unmarked(body["messages"])
        prefixes = [json.dumps(messages[:i]) for i in range(len(messages) + 1)]
        with self._lock:
            known = max(i for i, text in enumerate(prefixes) if text in self._cached or i == 0)
            self._cached.add(prefixes[-1])
        read = tokens_of({"messages": body["messages"][:known]}) - HIDDEN_TOKENS if known else 0
        # What the last marker does not cover is left out: a token or two.
        written = max(0, total - read - 2)
        return {
            "input_tokens": total - read - written,
            "cache_read_input_tokens": read,
            "cache_creation_input_tokens": written,
        }


def _unmarked(messages: list[Body]) -> list[Body]:
    """Return the messages without cache markers, which are not part of the cached prefix."""

    def without(block: Body) -> Body:
        return {name: value for name, value in block.items() if name != "cache_control"}

    found: list[Body] = json.loads(json.dumps(messages), object_hook=without)
    return found


def tokens_of(body: Body) -> int:
    """Return the tokens that the server bills for a prompt."""
    return HIDDEN_TOKENS + prompt_bytes(body) // BYTES_PER_TOKEN


class _Answer(Answer):
    server: AnthropicAPI

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        self.close_connection = True
        raw = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(raw)
        api, path = self.server, self.path.partition("?")[0]
        if path not in {"/v1/messages", "/v1/messages/count_tokens"}:
            self._fail(404, "not_found_error", path)
            return
        is_count = path.endswith("count_tokens")
        if is_count:
            api.counted.append(body)
        else:
            api.bodies.append(body)
            api.raw.append(raw)
            api.headers.append({name.lower(): text for name, text in self.headers.items()})
        if (reason := self._refusal(body, is_count=is_count)) is not None:
            api.refused.append(reason)
            self._fail(400, "invalid_request_error", reason)
        elif is_count:
            self.send_json(200, json.dumps({"input_tokens": tokens_of(body)}).encode())
        else:
            self._answer(body, api.reply_to(body))

    def _refusal(self, body: Body, *, is_count: bool) -> str | None:
        window, tokens = self.server.window, tokens_of(body) if "messages" in body else 0
        if reason := refusal(body, is_count=is_count):
            return reason
        if window is not None and tokens > window and not is_count:
            return f"prompt is too long: {tokens} tokens > {window} maximum"
        return None

    def _answer(self, body: Body, reply: Reply) -> None:
        if reply.status != 200:
            self._fail(reply.status, "overloaded_error", "scripted", reply.headers)
            return
        usage = self.server.usage(body)
        self.server.prompts.append(sum(usage.values()))
        output = max(1, len(json.dumps(reply.content)) // BYTES_PER_TOKEN)
        message = {
            "id": f"msg_{len(self.server.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": list(reply.content),
            "stop_reason": reply.stop_reason,
            "stop_sequence": None,
            "usage": {**usage, "output_tokens": output},
        }
        if body.get("stream"):
            events = events_of(message, self.server.bills_late)
            frames = (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
            self.send_events(frames, cut_after=reply.cut_after, holds=self.server.holds)
        else:
            self.send_json(200, json.dumps(message).encode(), reply.headers)

    def _fail(
        self, status: int, kind: str, text: str, headers: dict[str, str] | None = None
    ) -> None:
        error = {"type": "error", "error": {"type": kind, "message": text}}
        self.send_json(status, json.dumps(error).encode(), headers or {})


def events_of(message: Body, bills_late: bool = False) -> Iterator[Body]:  # noqa: FBT002
    """Yield the events of a stream whose sum is this message."""
    usage = message["usage"]
    first = {"input_tokens": 0} if bills_late else usage
    begun: Body = {"content": [], "stop_reason": None, "usage": {**first, "output_tokens": 1}}
    yield {"type": "message_start", "message": {**message, **begun}}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        empty, deltas = _parts(block)
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": usage,
    }
    yield {"type": "message_stop"}


def _parts(block: Block) -> tuple[Block, list[Block]]:
    """Return a block as a stream begins it, and the deltas that complete it."""
    if block["type"] == "text":
        texts = _chunks(block["text"])
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in texts]
    if block["type"] == "tool_use":
        texts = _chunks(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": text} for text in texts]
        return {**block, "input": {}}, deltas
    if block["type"] == "thinking":
        texts = _chunks(block["thinking"])
        deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    return block, []


def _chunks(text: str) -> list[str]:
    return [text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK)]


@contextmanager
def anthropic_api(window: int | None = None) -> Iterator[AnthropicAPI]:
    """Serve in a thread until the block ends."""
    with serving(AnthropicAPI(window)) as server:
        yield server
