"""A server on the loopback address that answers as two of OpenAI's endpoints do.

They are chat completions and responses.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.serving import Answer, Server, serving


def calling(*calls: tuple[str, str, str], content: str | None = None) -> dict[str, Any]:
    """Return a message with a call for each (id, tool, arguments), as the endpoint sends it."""
    made = [
        {"id": id_, "type": "function", "function": {"name": tool, "arguments": arguments}}
        for id_, tool, arguments in calls
    ]
    message: dict[str, Any] = {
        "role": "assistant",
        "content": content,
        "refusal": None,
        "annotations": [],
    }
    return {**message, "tool_calls": made} if made else message


def response_of(*items: dict[str, Any]) -> dict[str, Any]:
    """Return a response with these items, as the responses endpoint sends it."""
    usage = {
        "input_tokens": 300,
        "input_tokens_details": {"cached_tokens": 200, "cache_write_tokens": 0},
        "output_tokens": 9,
        "output_tokens_details": {"reasoning_tokens": 5},
        "total_tokens": 309,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "model": "gpt-some",
        "status": "completed",
        "output": list(items),
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": usage,
    }


class ChatServer(Server):
    """Gives the messages and responses of `script` in order, then the message `done` for ever."""

    def __init__(self) -> None:
        super().__init__(_Answer)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.script: list[dict[str, Any]] = []
        self.url += "/v1"


class _Answer(Answer):
    server: ChatServer

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.received())
        self.server.requests.append(body)
        self.server.headers.append({name.lower(): text for name, text in self.headers.items()})
        message = self.server.script.pop(0) if self.server.script else calling(content="done")
        if self.path.endswith("/responses"):
            self.send_json(200, json.dumps(message).encode())
            return
        stopped = "tool_calls" if message.get("tool_calls") else "stop"
        stopped = message.pop("finish_reason", stopped)
        choice = {"index": 0, "message": message, "finish_reason": stopped, "logprobs": None}
        usage = {"prompt_tokens": 9, "completion_tokens": 9, "total_tokens": 18}
        completion = {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt-some",
            "choices": [choice],
            "usage": usage,
        }
        self.send_json(200, json.dumps(completion).encode())


@contextmanager
def chat_server() -> Iterator[ChatServer]:
    """Serve in a thread until the block ends."""
    with serving(ChatServer()) as server:
        yield server
