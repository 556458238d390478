"""The policies of LangChain's middleware against the middleware."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents.middleware import (
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    SummarizationMiddleware,
)
from langchain.agents.middleware.types import ModelRequest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from policyctx.integrations.langchain import LangChainShape
from tests.peers.comparing import Ours, changed, tally
from tests.peers.langchain_messages import plain, written
from tests.peers.said import conversations

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tests.peers.comparing import Tally
    from tests.peers.said import Plain, Said

MODEL = FakeListChatModel(responses=["unused"])
SUMMARY = "What was done so far."


class Clearing:
    """The middleware that edits a copy of the conversation for each call."""

    def __init__(self, **options: Any) -> None:
        self._middleware = ContextEditingMiddleware(edits=[ClearToolUsesEdit(**options)])
        self._messages: list[Any] = []

    def sent(self, new: Sequence[Said]) -> list[Plain]:
        self._messages += written(new)
        sent: list[Any] = []
        request = ModelRequest(model=MODEL, messages=list(self._messages))
        self._middleware.wrap_model_call(request, lambda edited: sent.append(edited.messages))
        return plain(sent[0])


class Summarising:
    """The middleware that replaces the messages in the agent's state."""

    def __init__(self, **options: Any) -> None:
        self._middleware = SummarizationMiddleware(
            MODEL, summarizer=lambda _: SUMMARY, trim_tokens_to_summarize=None, **options
        )
        self._messages: list[Any] = []

    def sent(self, new: Sequence[Said]) -> list[Plain]:
        self._messages += written(new)
        update = self._middleware.before_model({"messages": self._messages}, None)
        if update is not None:
            self._messages = update["messages"][1:]
        return plain(self._messages)


def compared(
    library: type[Clearing | Summarising], name: str, case: tuple[Any, Any], root: Path
) -> Tally:
    options, passages = case
    policy = changed(name, passages)

    def ours(number: int) -> Ours:
        return Ours(
            policy,
            root / str(number),
            written,
            plain,
            shape=LangChainShape(),
            summarizer=lambda _: SUMMARY,
        )

    return tally(
        conversations(),
        lambda: library(**options),
        ours,
        lambda said: plain(written(said)),
    )


ALWAYS = "tokens: {over: 100000}", "tokens: {over: 0}"
INPUTS = "batches: split}}", 'batches: split}, with_input: {tools: "*", leave: empty}}'


@pytest.mark.parametrize(
    ("options", "passages"),
    [
        ({"trigger": 0}, dict([ALWAYS])),
        ({"trigger": 0, "keep": 0}, dict([ALWAYS, ("items: 3", "items: 0")])),
        (
            {"trigger": 0, "exclude_tools": ["Bash", "exec_command"]},
            dict([ALWAYS, ("batches: split}}", "batches: split}, except_tools: [Bash, exec_command]}")]),
        ),
    ],
    ids=["always", "keep nothing", "exclude tools"],
)
def test_clearing_is_equal_at_every_call(
    options: dict[str, Any], passages: dict[str, str], tmp_path: Path
) -> None:
    found = compared(Clearing, "peers/langchain-clear-tool-uses", (options, passages), tmp_path)
    assert found.edited > found.calls / 2
    assert (found.different, found.first) == (0, "")
