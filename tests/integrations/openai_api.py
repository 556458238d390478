"""A server on the loopback address that checks and answers requests as OpenAI's APIs.

It serves Chat Completions and Responses. It refuses what `openai_rules` names and prompts over its
window, bills a prompt by its bytes, and answers from a script, plain or as server-sent events.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import ThreadingHTTPServer
from threading import Event, Lock
from typing import Any, Protocol

from tests.integrations.openai_rules import Body, chat_refusal, responses_refusal, sealed
from tests.serving import Answer, serving

# The bytes of a prompt that are billed as one token, and the tokens that no request shows.
BYTES_PER_TOKEN = 3
HIDDEN_TOKENS = 300
_CHUNK = 40
_CHAT, _RESPONSES = "/v1/chat/completions", "/v1/responses"


@dataclass(frozen=True, slots=True)
class Reply:
    """One scripted answer: a text, calls of (id, tool, arguments), or both.

    `reasons` puts reasoning before it and `searches` a hosted search, in the Responses API only.
    `cut_after` ends the connection after so many events of a stream. Another `status` than 200
    answers with an error.
    """

    text: str | None = None
    calls: tuple[tuple[str, str, str], ...] = ()
    reasons: bool = False
    searches: bool = False
    status: int = 200
    cut_after: int | None = None
    headers: dict[str, str] = field(default_factory=dict)

    def cut(self, after: int) -> Reply:
        """Return this reply, cut off after some events of the stream."""
        return replace(self, cut_after=after)


def saying(text: str) -> Reply:
    """Return a reply with one text."""
    return Reply(text)


def calling(*calls: tuple[str, str, dict[str, Any]], reasons: bool = False) -> Reply:
    """Return a reply with a call for each (id, tool, arguments), after reasoning if wanted."""
    made = tuple((i, name, json.dumps(given)) for i, name, given in calls)
    return Reply(None, made, reasons=reasons)


# The SDK waits for as long as the header says, and then tries again.
OVERLOADED = Reply(status=529, headers={"retry-after-ms": "1"})
BROKEN = Reply(status=500, headers={"retry-after-ms": "1"})


class Items(Protocol):
    """Gives ids, keeps the items of all responses by theirs, and bills prompts."""

    made: dict[str, Body]

    def new_id(self, kind: str) -> str:
        """Return an id that no other item has."""

    def billed(self, body: Body) -> int:
        """Return the tokens that a prompt is billed for."""


class OpenAIAPI(ThreadingHTTPServer):
    """Answers with `script`: replies in order, then `Done.`, or a function of the request's body.

    `bodies` holds each body that came, `raw` their bytes, `paths` their paths, and `refused` the
    reasons for which requests were refused. `prompts` are the billed tokens of each accepted
    prompt. `made` are the items of all responses by their ids.
    """

    def __init__(self, window: int | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.window = window
        self.script: list[Reply] | Callable[[Body], Reply] = []
        self.bodies: list[Body] = []
        self.raw: list[bytes] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.refused: list[str] = []
        self.prompts: list[int] = []
        self.made: dict[str, Body] = {}
        self.holds: Event | None = None
        """If set, a stream waits for it after its first event."""
        self.url = f"http://127.0.0.1:{self.server_address[1]}/v1"
        self._lock = Lock()
        self._ids = 0

    def reply_to(self, body: Body) -> Reply:
        """Return the next reply of the script."""
        with self._lock:
            if not isinstance(self.script, list):
                return self.script(body)
            return self.script.pop(0) if self.script else saying("Done.")

    def billed(self, body: Body) -> int:
        """Return the tokens that a prompt is billed for."""
        return tokens_of(body)

    def new_id(self, kind: str) -> str:
        """Return an id that no other item has."""
        with self._lock:
            self._ids += 1
            return f"{kind}_{self._ids}"


def tokens_of(body: Body) -> int:
    """Return the tokens that the server bills for a prompt."""
    prompt = [body.get(name) for name in ("messages", "input", "instructions", "tools")]
    size = sum(len(json.dumps(part, ensure_ascii=False).encode()) for part in prompt if part)
    return HIDDEN_TOKENS + size // BYTES_PER_TOKEN


class _Answer(Answer):
    server: OpenAIAPI

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        self.close_connection = True
        raw = self.rfile.read(int(self.headers["content-length"]))
        api, path = self.server, self.path.partition("?")[0]
        body = json.loads(raw)
        if path not in {_CHAT, _RESPONSES}:
            self.send_json(404, b'{"error": {"message": "Invalid URL"}}')
            return
        api.bodies.append(body)
        api.raw.append(raw)
        api.paths.append(path)
        api.headers.append({name.lower(): text for name, text in self.headers.items()})
        if (reason := self._refusal(path, body)) is not None:
            api.refused.append(reason)
            self._fail(400, reason)
            return
        reply = api.reply_to(body)
        if reply.status != 200:
            self._fail(reply.status, "scripted", reply.headers)
            return
        api.prompts.append(tokens_of(body))
        answer, events = (completion if path == _CHAT else response)(api, body, reply)
        if body.get("stream"):
            frames = map(frame, events)
            self.send_events(frames, cut_after=reply.cut_after, holds=self.server.holds)
        else:
            self.send_json(200, json.dumps(answer).encode(), reply.headers)

    def _refusal(self, path: str, body: Body) -> str | None:
        made = self.server.made
        if reason := chat_refusal(body) if path == _CHAT else responses_refusal(body, made):
            return reason
        window, tokens = self.server.window, tokens_of(body)
        if window is not None and tokens > window:
            return f"This model's maximum context length is {window} tokens, got {tokens}."
        return None

    def _fail(self, status: int, text: str, headers: dict[str, str] | None = None) -> None:
        error = {"message": text, "type": "invalid_request_error", "param": None, "code": None}
        self.send_json(status, json.dumps({"error": error}).encode(), headers or {})


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
        for text in _chunks(reply.text or ""):
            yield chunk({"content": text})
        for index, call in enumerate(made):
            empty = {"name": call["function"]["name"], "arguments": ""}
            yield chunk({"tool_calls": [{**call, "index": index, "function": empty}]})
            for text in _chunks(call["function"]["arguments"]):
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
            for text in _chunks(part["text"]):
                delta = {"delta": text, "logprobs": []}
                yield {"type": "response.output_text.delta", **at_part, **delta}
            done = {"text": part["text"], "logprobs": []}
            yield {"type": "response.output_text.done", **at_part, **done}
            yield {"type": "response.content_part.done", **at_part, "part": part}
        elif item["type"] == "function_call":
            added = {**empty, "arguments": ""}
            yield {"type": "response.output_item.added", "output_index": index, "item": added}
            for text in _chunks(item["arguments"]):
                yield {"type": "response.function_call_arguments.delta", **at, "delta": text}
            done = {"arguments": item["arguments"], "name": item["name"]}
            yield {"type": "response.function_call_arguments.done", **at, **done}
        else:
            yield {"type": "response.output_item.added", "output_index": index, "item": empty}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    yield {"type": "response.completed", "response": whole}


def _output_tokens(reply: Reply) -> int:
    return max(1, len(json.dumps([reply.text, reply.calls])) // BYTES_PER_TOKEN)


def _chunks(text: str) -> list[str]:
    return [text[i : i + _CHUNK] for i in range(0, len(text), _CHUNK)]


@contextmanager
def openai_api(window: int | None = None) -> Iterator[OpenAIAPI]:
    """Serve in a thread until the block ends."""
    with serving(OpenAIAPI(window)) as server:
        yield server
