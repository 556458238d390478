"""Capabilities of Pydantic AI's harness, in an agent."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

SUMMARY = "What was done so far."
SUMMARISER = FunctionModel(lambda messages, info: ModelResponse([TextPart(SUMMARY)]))  # noqa: ARG005


class InAgent:
    """A capability in an agent, whose history goes on from call to call."""

    def __init__(self, capability: Any) -> None:
        self._agent = Agent(FunctionModel(self._answered), capabilities=[capability])
        self._history: list[Any] = []
        self._asked: list[Any] = []

    def _answered(self, messages: list[Any], _: object) -> ModelResponse:
        self._asked = messages
        return ModelResponse([TextPart("unused")])

    def sent(self, new: list[Any]) -> list[Any]:
        run = self._agent.run_sync(message_history=[*self._history, *new])
        self._history = run.all_messages()[:-1]
        return self._asked
