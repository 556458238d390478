"""A server on the loopback address that checks and answers requests as OpenAI's APIs.

It serves Chat Completions and Responses, and refuses what `openai_rules` names.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from tests.integrations.openai_rules import Body, chat_refusal, responses_refusal, sealed
from tests.integrations.scripted import BYTES_PER_TOKEN, Reply, ScriptedAPI, billed, chunks
from tests.serving import serving

_CHAT, _RESPONSES = "/v1/chat/completions", "/v1/responses"


class Items(Protocol):
    """Gives ids, keeps the items of all responses by theirs, and bills prompts."""

    made: dict[str, Body]

    def new_id(self, kind: str) -> str:
        """Return an id that no other item has."""

    def billed(self, body: Body) -> int:
        """Return the tokens that a prompt is billed for."""


class OpenAIAPI(ScriptedAPI):
    """Chat Completions and Responses. `made` are the items of all responses by their ids."""

    def __init__(self, window: int | None = None) -> None:
        super().__init__(window)
        self.made: dict[str, Body] = {}
        self.url += "/v1"
        self._ids = 0

    def serves(self, path: str) -> bool:
        return path in {_CHAT, _RESPONSES}

    def refusal(self, path: str, body: Body) -> str | None:
        return chat_refusal(body) if path == _CHAT else responses_refusal(body, self.made)

    def tokens_of(self, body: Body) -> int:
        return billed(body.get(name) for name in ("messages", "input", "instructions", "tools"))

    def over(self, tokens: int) -> str:
        return f"This model's maximum context length is {self.window} tokens, got {tokens}."

    def failure(self, status: int, text: str) -> Body:  # noqa: ARG002
        error = {"message": text, "type": "invalid_request_error", "param": None, "code": None}
        return {"error": error}

    def answer(self, path: str, body: Body, reply: Reply) -> Body | Iterable[str]:
        whole, events = (completion if path == _CHAT else response)(self, body, reply)
        return map(frame, events) if body.get("stream") else whole

    def billed(self, body: Body) -> int:
        """Return the tokens that a prompt is billed for."""
        return self.tokens_of(body)

    def new_id(self, kind: str) -> str:
        """Return an id that no other item has."""
        with self.lock:
            self._ids += 1
            return f"{kind}_{self._ids}"


def frame(event: Body | str) -> str:
    """Return an event as server-sent events have it."""
    kind = event.get("type") if isinstance(event, dict) else None
    text = event if isinstance(event, str) else json.dumps(event)
    return (f"event: {kind}\n" if kind else "") + f"data: {text}\n\n"


def completion(api: Items, body: Body, reply: Reply) -> tuple[Body, Iterator[Body | str]]:
    """Return the answer of Chat Completions, and the events of a stream whose sum it is."""
    made: list[Any] = [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for id_, tool, arguments in reply.calls
    ]
    message: Body = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
    reason = "tool_calls" if made else "stop"
    choice = {"index": 0, "finish_reason": reason, "logprobs": None}
    head = {"id": api.new_id("chatcmpl"), "created": 1, "model": body["model"]}
    prompt, output = api.billed(body), _output_tokens(reply)
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": prompt // 2, "audio_tokens": 0},
    }
    said = {**message, "tool_calls": made} if made else message
    choices = [{**choice, "message": said}]
    whole = {**head, "object": "chat.completion", "choices": choices, "usage": usage}

    def chunk(delta: Body, finish: str | None = None) -> Body:
        part = {**choice, "delta": delta, "finish_reason": finish}
        return {**head, "object": "chat.completion.chunk", "choices": [part]}

    def events() -> Iterator[Body | str]:
        yield chunk({"role": "assistant", "content": "" if reply.text else None})
        for text in chunks(reply.text or ""):
            yield chunk({"content": text})
        for index, call in enumerate(made):
            empty = {"name": call["function"]["name"], "arguments": ""}
            yield chunk({"tool_calls": [{**call, "index": index, "function": empty}]})
            for text in chunks(call["function"]["arguments"]):
                yield chunk({"tool_calls": [{"index": index, "function": {"arguments": text}}]})
        yield chunk({}, reason)
        if (body.get("stream_options") or {}).get("include_usage"):
            yield {**head, "object": "chat.completion.chunk", "choices": [], "usage": usage}
        yield "[DONE]"

    return whole, events()


def response(api: Items, body: Body, reply: Reply) -> tuple[Body, Iterator[Body | str]]:
    """Return the answer of Responses, and the events of a stream whose sum it is."""
    items = _items(api, reply)
    prompt, output = api.billed(body), _output_tokens(reply)
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": prompt // 2, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + output,
    }
    whole: Body = {
        "id": api.new_id("resp"),
        "object": "response",
        "created_at": 1,
        "model": body["model"],
        "status": "completed",
        "output": items,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": body.get("tools") or [],
        "error": None,
        "incomplete_details": None,
        "instructions": body.get("instructions"),
        "metadata": {},
        "usage": usage,
    }
    begun = {**whole, "status": "in_progress", "output": [], "usage": None}

    def events() -> Iterator[Body | str]:
        for number, event in enumerate(_response_events(begun, items, whole)):
            yield {**event, "sequence_number": number}

    return whole, events()


def _items(api: Items, reply: Reply) -> list[Body]:
    """Return the items of a response, and keep them with the reasoning that each followed."""
    items: list[Body] = []
    if reply.searches:
        action = {"type": "search", "query": "the query " * 50}
        search = {"type": "web_search_call", "id": api.new_id("ws"), "status": "completed"}
        items.append({**search, "action": action})
    if reply.text is not None:
        text = {"type": "output_text", "text": reply.text, "annotations": [], "logprobs": []}
        said = {"type": "message", "id": api.new_id("msg"), "role": "assistant"}
        items.append({**said, "status": "completed", "content": [text]})
    for call_id, tool, arguments in reply.calls:
        call = {"type": "function_call", "id": api.new_id("fc"), "call_id": call_id}
        # A tool in a namespace is written with it: `namespace/name`.
        namespace, _, name = tool.rpartition("/")
        call |= {"namespace": namespace} if namespace else {}
        items.append({**call, "name": name, "arguments": arguments, "status": "completed"})
    reasoning = api.new_id("rs") if reply.reasons else None
    api.made.update({item["id"]: {**item} for item in items})
    if reasoning is not None:
        api.made[items[0]["id"]]["_reasoning"] = reasoning
        summary = [{"type": "summary_text", "text": "Thought about it. " * 20}]
        thought = {"type": "reasoning", "id": reasoning, "summary": summary}
        items.insert(0, {**thought, "encrypted_content": sealed(reasoning)})
    return items


def _response_events(begun: Body, items: list[Body], whole: Body) -> Iterator[Body]:
    yield {"type": "response.created", "response": begun}
    yield {"type": "response.in_progress", "response": begun}
    for index, item in enumerate(items):
        at = {"output_index": index, "item_id": item["id"]}
        empty = {**item, **({"status": "in_progress"} if "status" in item else {})}
        if item["type"] == "message":
            part = item["content"][0]
            at_part = {**at, "content_index": 0}
            added: Body = {**empty, "content": []}
            yield {"type": "response.output_item.added", "output_index": index, "item": added}
            blank = {**part, "text": ""}
            yield {"type": "response.content_part.added", **at_part, "part": blank}
            for text in chunks(part["text"]):
                delta = {"delta": text, "logprobs": []}
                yield {"type": "response.output_text.delta", **at_part, **delta}
            done = {"text": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **at_part, **done}
            yield {"type": "response.content_part.done", **at_part, "part": part}
        elif item["type"] == "function_call":
            added = {**empty, "arguments": ""}
            yield {"type": "response.output_item.added", "output_index": index, "item": added}
            for text in chunks(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": text}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield {"type": "response.function_call_arguments.done", **at, **done}
        else:
            yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def _output_tokens(reply: Reply) -> int:
    return max(1, len(json.dumps([reply.text, reply.calls])) // BYTES_PER_TOKEN)


@contextmanager
def openai_api(window: int | None = None) -> Iterator[OpenAIAPI]:
    """Serve in a thread until the block ends."""
    with serving(OpenAIAPI(window)) as server:
        yield server
