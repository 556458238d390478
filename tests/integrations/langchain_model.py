"""A scripted chat model of LangChain that refuses what a provider's API would refuse."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tests.integrations.scripted import BYTES_PER_TOKEN, HIDDEN_TOKENS, Reply

SIGNATURE = "EqoB" * 50


class RefusedError(Exception):
    """The API would refuse the request."""


class ScriptedModel(BaseChatModel):  # type: ignore[misc]
    """Answers by `script`: a list of replies, or a function from the messages to one.

    An exception in the script is raised, and so is a refusal. `bodies` are the messages of each
    accepted request, and `prompts` their billed tokens.
    """

    script: Any
    window: int = 1_000_000
    bodies: list[list[Any]] = []  # noqa: RUF012 - pydantic copies it
    prompts: list[int] = []  # noqa: RUF012
    refused: tuple[()] = ()

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self.bind(tools=[*tools], **options)

    def _generate(self, messages: list[Any], *_: Any, **options: Any) -> ChatResult:
        reply = self.script(messages) if callable(self.script) else self.script.pop(0)
        if isinstance(reply, Exception):
            raise reply
        prompt = tokens_of(messages, options.get("tools"))
        if prompt > self.window:
            raise RefusedError(f"prompt is too long: {prompt} tokens > {self.window} maximum")
        if wrong := problem(messages):
            raise RefusedError(wrong)
        self.bodies.append(messages)
        self.prompts.append(prompt)
        message = message_of(reply)
        message.usage_metadata = {
            "input_tokens": prompt,
            "output_tokens": 10,
            "total_tokens": prompt + 10,
            "input_token_details": {"cache_read": prompt // 2, "cache_creation": 5},
        }
        return ChatResult(generations=[ChatGeneration(message=message)])


def tokens_of(messages: Sequence[Any], tools: object = None) -> int:
    """What is billed for a prompt, by its size."""
    said = [[m.type, m.content, getattr(m, "tool_calls", None)] for m in messages]
    size = len(json.dumps(said)) + len(json.dumps(tools, default=lambda tool: tool.description))
    return HIDDEN_TOKENS + size // BYTES_PER_TOKEN


def problem(messages: Sequence[Any]) -> str | None:
    """Why an API would refuse the messages, None if it would not."""
    rest = [m for i, m in enumerate(messages) if not (i == 0 and isinstance(m, SystemMessage))]
    return next(problems(rest), None)


def problems(messages: Sequence[Any]) -> Iterator[str]:
    if not messages or not isinstance(messages[0], HumanMessage):
        yield "the first message is not one of the user"
    if isinstance(messages[-1], AIMessage):
        yield "the last message is one of the model"
    waiting: set[str] = set()
    for message in messages:
        calls = {call["id"] for call in getattr(message, "tool_calls", ())}
        if not (calls or message.content):
            yield "a message is empty"
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                yield f"the result {message.tool_call_id} has no call"
            waiting.discard(message.tool_call_id)
            continue
        if waiting:
            yield f"the calls {sorted(waiting)} have no result"
        waiting = calls
        blocks = message.content if isinstance(message.content, list) else []
        if not {block["id"] for block in blocks if block["type"] == "tool_use"} <= calls:
            yield "a block repeats a call that is gone"
    if waiting:
        yield f"the calls {sorted(waiting)} have no result"


def message_of(reply: Reply) -> AIMessage:
    """Return a reply as a message; one with reasoning repeats its calls as blocks."""
    calls = [(id_, name, json.loads(given)) for id_, name, given in reply.calls]
    made = [{"id": id_, "name": name, "args": given} for id_, name, given in calls]
    if not reply.reasons:
        return AIMessage(reply.text or "", tool_calls=made)
    uses = [{"type": "tool_use", "id": i, "name": n, "input": dict(g)} for i, n, g in calls]
    thinking = {"type": "thinking", "thinking": "hm", "signature": SIGNATURE}
    text = {"type": "text", "text": "Let me see."}
    return AIMessage([thinking, text, *uses], tool_calls=made)


def results(messages: Sequence[Any]) -> list[str]:
    """The texts of the results in a list."""
    return [str(m.content) for m in messages if isinstance(m, ToolMessage)]
