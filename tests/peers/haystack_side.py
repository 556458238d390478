"""A compactor of Haystack, as the hook of an agent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from haystack import component
from haystack.components.agents import Agent
from haystack.dataclasses import ChatMessage, ToolCall, ToolCallResult
from haystack.hooks.compaction import CompactionHook

_CHARS = 4


class ByChars:
    """Counts a list as `tokenizer: {chars_per_token: 4, round: up}` does."""

    def count(self, messages: list[ChatMessage], tools: Any = None) -> int:  # noqa: ARG002 - the library's protocol
        """Return the tokens of the messages."""
        return sum(-(-len(text) // _CHARS) for one in messages for text in _texts(one))


def _texts(message: ChatMessage) -> list[str]:
    if message.tool_call_result is not None:
        return [str(message.tool_call_result.result)]
    calls = [json.dumps(call.arguments, ensure_ascii=False) for call in message.tool_calls]
    return [*([message.text] if message.text else []), *calls]


def _message(given: dict[str, Any]) -> ChatMessage:
    # The library's own reader refuses an empty result.
    if given["role"] != "tool":
        return ChatMessage.from_openai_dict_format(given)
    call = ToolCall(tool_name="", arguments={}, id=given["tool_call_id"])
    return ChatMessage.from_tool(given["content"], origin=call)


class Results:
    """A store that names a file of a result by the id of its call."""

    supports_binary_content = False

    def __init__(self) -> None:
        self.whole: list[ToolCallResult] = []
        """The results of a list that a compactor may write, oldest first."""

    def write(self, *, key: str, content: str | bytes) -> str:  # noqa: ARG002 - the library's protocol
        found = next(one for one in self.whole if one.result == content)
        self.whole.remove(found)
        return f"tool_results/{found.origin.id}"

    def read(self, reference: str) -> str | bytes:
        raise FileNotFoundError(reference)


@component
class _Model:
    """Answers one word and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: Sequence[ChatMessage] = ()
        component.set_output_types(self, replies=list[ChatMessage])

    def run(self, messages: list[ChatMessage], **_: Any) -> dict[str, list[ChatMessage]]:
        self.asked = list(messages)
        return {"replies": [ChatMessage.from_assistant("unused")]}


class Compacting:
    """The hook in an agent, whose messages go on from call to call."""

    def __init__(
        self, compactor: Any, results: Results, counter: ByChars | None = None, **options: Any
    ) -> None:
        self._results = results
        hook = CompactionHook(compactor, token_counter=counter, **options)
        self._model = _Model()
        self._agent = Agent(chat_generator=self._model, hooks={"before_llm": [hook]})
        self._messages: list[ChatMessage] = []

    def sent(self, new: list[Any]) -> list[Any]:
        self._messages += [_message(one) for one in new]
        results = (one.tool_call_result for one in self._messages)
        self._results.whole = [one for one in results if one is not None]
        self._agent.run(messages=self._messages)
        self._messages = list(self._model.asked)
        return [one.to_openai_dict_format() for one in self._messages]
