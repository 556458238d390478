"""A server on the loopback address that checks and answers requests as Anthropic's Messages API.

It refuses what `anthropic_rules` names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from tests.integrations.anthropic_rules import (
    Block,
    Body,
    marked_blocks,
    prompt_bytes,
    refusal,
    signed,
)
from tests.integrations.scripted import (
    BYTES_PER_TOKEN,
    HIDDEN_TOKENS,
    Reply,
    ScriptedAnswer,
    ScriptedAPI,
    chunks,
)
from tests.serving import serving

_MESSAGES, _COUNT = "/v1/messages", "/v1/messages/count_tokens"
_ERRORS = {400: "invalid_request_error", 404: "not_found_error"}


class _Answer(ScriptedAnswer):
    server: AnthropicAPI

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        if self.path.partition("?")[0] != _COUNT:
            super().do_POST()
            return
        self.close_connection = True
        body = json.loads(self.received())
        self.server.counted.append(body)
        if (reason := refusal(body, is_count=True)) is not None:
            self.refuse(reason)
        else:
            self.send_json(200, json.dumps({"input_tokens": tokens_of(body)}).encode())


class AnthropicAPI(ScriptedAPI):
    """The Messages API; `counted` holds the bodies for `count_tokens`."""

    answers = _Answer

    def __init__(self, window: int | None = None) -> None:
        super().__init__(window)
        self.counted: list[Body] = []
        self.bills_late = False
        """Whether a stream has the tokens of the prompt in `message_delta`, as gateways do."""
        self._cached: set[str] = set()

    def serves(self, path: str) -> bool:
        return path == _MESSAGES

    def refusal(self, path: str, body: Body) -> str | None:  # noqa: ARG002
        return refusal(body)

    def tokens_of(self, body: Body) -> int:
        return tokens_of(body)

    def over(self, tokens: int) -> str:
        return f"prompt is too long: {tokens} tokens > {self.window} maximum"

    def failure(self, status: int, text: str) -> Body:
        error = {"type": _ERRORS.get(status, "overloaded_error"), "message": text}
        return {"type": "error", "error": error}

    def answer(self, path: str, body: Body, reply: Reply) -> Body | Iterable[str]:  # noqa: ARG002
        content = _content(reply)
        usage = {
            **self.usage(body),
            "output_tokens": max(1, len(json.dumps(content)) // BYTES_PER_TOKEN),
        }
        message = {
            "id": f"msg_{len(self.bodies)}",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": content,
            "stop_reason": "tool_use" if reply.calls else "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        if not body.get("stream"):
            return message
        events = events_of(message, self.bills_late)
        return (f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)

    def usage(self, body: Body) -> dict[str, int]:
        """Return the billed tokens of a prompt: all of it, parted by the cache markers in it."""
        total = tokens_of(body)
        if not marked_blocks(body):
            return {"input_tokens": total}
        messages = _unmarked(body["messages"])
        prefixes = [json.dumps(messages[:i]) for i in range(len(messages) + 1)]
        with self.lock:
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


def _content(reply: Reply) -> list[Block]:
    content: list[Block] = []
    if reply.reasons:
        thinking = str(reply.reasons)
        content.append({"type": "thinking", "thinking": thinking, "signature": signed(thinking)})
    if reply.text is not None:
        content.append({"type": "text", "text": reply.text})
    for id_, tool, arguments in reply.calls:
        content.append(
            {"type": "tool_use", "id": id_, "name": tool, "input": json.loads(arguments)}
        )
    return content


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
        texts = chunks(block["text"])
        return {**block, "text": ""}, [{"type": "text_delta", "text": text} for text in texts]
    if block["type"] == "tool_use":
        texts = chunks(json.dumps(block["input"]))
        deltas = [{"type": "input_json_delta", "partial_json": text} for text in texts]
        return {**block, "input": {}}, deltas
    if block["type"] == "thinking":
        texts = chunks(block["thinking"])
        deltas = [{"type": "thinking_delta", "thinking": text} for text in texts]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
        return {**block, "thinking": "", "signature": ""}, deltas
    return block, []


@contextmanager
def anthropic_api(window: int | None = None) -> Iterator[AnthropicAPI]:
    """Serve in a thread until the block ends."""
    with serving(AnthropicAPI(window)) as server:
        yield server
