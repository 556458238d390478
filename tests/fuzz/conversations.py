"""Random conversations in the shapes of both providers, each text with a marker of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from policyctx.definitions.items import Message

Shape = Literal["anthropic", "chat", "legacy"]
SHAPES: tuple[Shape, ...] = ("anthropic", "anthropic", "chat", "legacy")
Block = dict[str, Any]

TOOLS = ("read", "read", "search", "mcp__web__fetch")
_REPEATED = ("go on", "ok", "the very same words")


@dataclass(slots=True)
class Writer:
    """Writes one conversation.

    With `repeats`, texts, pictures and tool-use ids come again; without, all of them differ.
    """

    rng: random.Random
    shape: Shape
    repeats: bool
    written: int = 0
    ids: int = 0

    def conversation(self, rounds: int) -> list[Message]:
        """Return the messages of so many rounds of a prompt, replies, calls and results."""
        messages: list[Message] = []
        if self.shape != "anthropic" and self._chance(0.3):
            messages.append({"role": "system", "content": self._text()})
        for _ in range(rounds):
            messages += self._round()
        return messages

    def _round(self) -> Iterator[Message]:
        if self._chance(0.9):
            yield {"role": "user", "content": self._prompt()}
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            calls = [(self._id(), self.rng.choice(TOOLS)) for _ in range(self._calls())]
            yield self._reply(calls)
            yield from self._answers(calls)

    def _calls(self) -> int:
        return self.rng.choice((0, 1) if self.shape == "legacy" else (0, 1, 1, 2, 3))

    def _reply(self, calls: list[tuple[str, str]]) -> Message:
        if self.shape == "anthropic":
            return {"role": "assistant", "content": self._reply_blocks(calls)}
        content = self._text() if not calls or self._chance(0.4) else None
        message: Message = {"role": "assistant", "content": content}
        made = [{"name": tool, "arguments": json.dumps(self._input())} for _, tool in calls]
        if self.shape == "legacy" and made:
            message["function_call"] = made[0]
        elif made:
            message["tool_calls"] = [
                {"id": call_id, "type": "function", "function": function}
                for (call_id, _), function in zip(calls, made, strict=True)
            ]
        return message

    def _reply_blocks(self, calls: list[tuple[str, str]]) -> str | list[Block]:
        if not calls and self._chance(0.4):
            return self._text()
        blocks: list[Block] = []
        if self._chance(0.3):
            blocks.append({"type": "thinking", "thinking": self._text(), "signature": "EqoB"})
        if not calls or self._chance(0.5):
            blocks.append({"type": "text", "text": self._text()})
        return blocks + [
            {"type": "tool_use", "id": call_id, "name": tool, "input": self._input()}
            for call_id, tool in calls
        ]

    def _answers(self, calls: list[tuple[str, str]]) -> Iterator[Message]:
        answered = [call for call in calls if self._chance(0.93)]
        if self.shape == "anthropic":
            blocks = [self._result(call_id) for call_id, _ in answered]
            if blocks and self._chance(0.15):
                blocks.append({"type": "text", "text": self._text()})
            if blocks:
                yield {"role": "user", "content": blocks}
            return
        for call_id, tool in answered:
            if self.shape == "legacy":
                yield {"role": "function", "name": tool, "content": self._text()}
            else:
                yield {"role": "tool", "tool_call_id": call_id, "content": self._content()}

    def _result(self, call_id: str) -> Block:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": self._content()}
        return block | {"is_error": True} if self._chance(0.15) else block

    def _prompt(self) -> str | list[Block]:
        if self._chance(0.7):
            return self._text()
        pictures = [self._picture()] if self._chance(0.5) else []
        return [{"type": "text", "text": self._text()}, *pictures]

    def _content(self) -> str | list[Block]:
        if self._chance(0.4):
            return self._text()
        texts: list[Block] = [
            {"type": "text", "text": self._text()} for _ in range(self.rng.choice((0, 1, 1, 2)))
        ]
        pictures = [self._picture() for _ in range(self.rng.choice((0, 1, 1, 2)))]
        blocks = texts + pictures
        self.rng.shuffle(blocks)
        return blocks or self._text()

    def _picture(self) -> Block:
        data = "QUJD" if self.repeats and self._chance(0.3) else f"QUJD{self._marker()}"
        if self.shape != "anthropic":
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        kind, media_type = self.rng.choice(
            (("image", "image/png"), ("image", "image/png"), ("document", "application/pdf"))
        )
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": kind, "source": source}

    def _input(self) -> Block:
        return {"path": self._text()}

    def _text(self) -> str:
        if self.repeats and self._chance(0.3):
            return self.rng.choice(_REPEATED)
        return f"{self._marker()} " + "word " * self.rng.choice((0, 1, 5, 20, 60))

    def _marker(self) -> str:
        self.written += 1
        return f"m{self.written}z"

    def _id(self) -> str:
        if self.repeats and self._chance(0.2):
            return "again"
        self.ids += 1
        return f"call_{self.ids}"

    def _chance(self, probability: float) -> bool:
        return self.rng.random() < probability
