"""LangChain's middleware, driven through what an agent calls."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

MODEL = FakeListChatModel(responses=["unused"])
SUMMARY = "What was done so far."
_CHARS, _MESSAGE = 4, 3


def by_chars(messages: Iterable[Any]) -> int:
    """Count a list as `tokenizer: {chars_per_token: 4, round: up, per_message: 3}` does."""
    total = 0
    for one in messages:
        calls = getattr(one, "tool_calls", ())
        texts = [one.text, *(json.dumps(call["args"], ensure_ascii=False) for call in calls)]
        total += _MESSAGE + sum(-(-len(text) // _CHARS) for text in texts)
    return total


class Clearing:
    """The middleware that edits a copy of the conversation for each call."""

    def __init__(self, token_counter: Any = None, **options: Any) -> None:
        self._middleware = ContextEditingMiddleware(
            edits=[ClearToolUsesEdit(**options)], token_counter=token_counter
        )
        self._messages: list[Any] = []

    def sent(self, new: list[Any]) -> list[Any]:
        self._messages += new
        sent: list[Any] = []
        request = ModelRequest(model=MODEL, messages=list(self._messages))
        self._middleware.wrap_model_call(request, lambda edited: sent.extend(edited.messages))
        return sent


class Summarising:
    """The middleware that replaces the messages in the agent's state."""

    def __init__(self, **options: Any) -> None:
        self._middleware = SummarizationMiddleware(
            MODEL, summarizer=lambda _: SUMMARY, trim_tokens_to_summarize=None, **options
        )
        self._messages: list[Any] = []

    def sent(self, new: list[Any]) -> list[Any]:
        self._messages += new
        update = self._middleware.before_model({"messages": self._messages}, None)
        if update is not None:
            self._messages = update["messages"][1:]
        return self._messages
