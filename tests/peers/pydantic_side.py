"""Capabilities of Pydantic AI's harness, in an agent."""

from __future__ import annotations

from typing import Any

from pydantic_ai import Agent, RunContext, Tool
from pydantic_ai.messages import ModelRequest, ModelResponse, TextPart, ToolCallPart, ToolReturnPart
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


class RunningTools:
    """A capability in an agent that runs the tools, which return what they did then."""

    def __init__(self, capability: Any) -> None:
        self._capability = capability
        self._history: list[Any] = []

    def sent(self, new: list[Any]) -> list[Any]:
        for reply, answer in zip([None, *new], [*new, None], strict=True):
            if answer is None or not isinstance(answer, ModelRequest):
                continue
            results = [part for part in answer.parts if isinstance(part, ToolReturnPart)]
            if reply is None or not results:
                self._history += [answer] if reply is None else [reply, answer]
            else:
                more = [part for part in answer.parts if part not in results]
                self._history = [
                    *self._run(reply, results),
                    *([ModelRequest(more)] if more else []),
                ]
        return list(self._history)

    def _run(self, reply: Any, results: list[ToolReturnPart]) -> list[Any]:
        """Return the history after the agent has run the calls of a reply."""
        returned = {part.tool_call_id: part.content for part in results}

        def run(ctx: RunContext[None], **_: Any) -> Any:
            return returned[ctx.tool_call_id or ""]

        calls = [part for part in reply.parts if isinstance(part, ToolCallPart)]
        schema = {"type": "object", "additionalProperties": True}
        tools = [
            Tool.from_schema(run, name=name, description="", json_schema=schema, takes_ctx=True)
            for name in {call.tool_name for call in calls}
        ]
        replies = iter([reply, ModelResponse([TextPart("unused")])])
        agent = Agent(
            FunctionModel(lambda *_: next(replies)), tools=tools, capabilities=[self._capability]
        )
        history: list[Any] = agent.run_sync(message_history=self._history).all_messages()[:-1]
        return history
