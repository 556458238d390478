"""`MessageBuilder`: messages made from pieces, in the shape of either API."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from policyctx.testing.filler import compact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.testing.pieces import Pieces

Message = dict[str, Any]
Shape = Literal["Anthropic", "OpenAI"]


@dataclass(frozen=True, slots=True)
class ToolResult:
    """A result and, where its tool is known, the call that it answers."""

    id: str
    content: Any
    tool: str | None = None
    failed: bool = False


@dataclass(slots=True)
class MessageBuilder:
    """Turns pieces into new messages; it only counts, so that no two pieces are alike."""

    shape: Shape = "Anthropic"
    _serial: int = field(default=0, init=False)

    def serial(self) -> int:
        """Return the next number: 1, 2, 3, …"""
        self._serial += 1
        return self._serial

    def messages(self, pieces: Pieces) -> list[Message]:
        """Return the messages that the pieces are; a result with a tool comes after its call."""
        if pieces.noun != "result":
            role = pieces.noun.removesuffix(" message")
            return [self.message(role, pieces.content(self.serial())) for _ in range(pieces.count)]
        results = self.results(pieces)
        batches = [results] if pieces.in_parallel else [[result] for result in results]
        return [message for batch in batches for message in self.exchange(batch)]

    def results(self, pieces: Pieces) -> list[ToolResult]:
        """Return the results that the pieces are, each with an id of its own."""
        made = []
        for _ in range(pieces.count):
            serial = self.serial()
            id_ = f"call_{serial}" if pieces.id is None else pieces.id
            made.append(ToolResult(id_, pieces.content(serial), pieces.tool, pieces.failed))
        return made

    def exchange(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return the message that makes the calls, where tools are known, and the results."""
        return [*self.calls(results), *self.answers(results)]

    def calls(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return one assistant message that calls what gave these results; none without tools."""
        known = [(result.id, result.tool) for result in results if result.tool is not None]
        return [self.call(known)] if known else []

    def call(self, calls: Sequence[tuple[str, str]], arguments: object = None) -> Message:
        """Return an assistant message that calls each (id, tool) with these arguments."""
        given = {} if arguments is None else arguments
        if self.shape == "Anthropic":
            blocks = [
                {"type": "tool_use", "id": id_, "name": tool, "input": given} for id_, tool in calls
            ]
            return {"role": "assistant", "content": blocks}
        made = [
            {"id": id_, "type": "function", "function": {"name": t, "arguments": compact(given)}}
            for id_, t in calls
        ]
        return {"role": "assistant", "content": None, "tool_calls": made}

    def answers(self, results: Sequence[ToolResult]) -> list[Message]:
        """Return the results: in one message of blocks, or each as its own."""
        if self.shape == "Anthropic":
            return [{"role": "user", "content": [_result_block(result) for result in results]}]
        return [
            {"role": "tool", "tool_call_id": result.id, "content": result.content}
            for result in results
        ]

    def message(self, role: str, content: Any) -> Message:  # noqa: ANN401 - a text, or blocks
        """Return a message with text; its content is as given."""
        return {"role": role, "content": content}


def _result_block(result: ToolResult) -> Message:
    block = {"type": "tool_result", "tool_use_id": result.id, "content": result.content}
    return {**block, "is_error": True} if result.failed else block
