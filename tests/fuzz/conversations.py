"""Random conversations in every shape, and in several at once; each text has its own marker."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from policyctx.definitions.items import Message
from tests.fuzz.hosted import (
    BedrockWriter,
    GeminiWriter,
    GoogleWriter,
    anthropic_pair,
    client_call,
    client_output,
    responses_pair,
)

Shape = Literal["anthropic", "chat", "legacy", "responses", "mixed", "bedrock", "google", "gemini"]
SHAPES_OF_MESSAGES: tuple[Shape, ...] = ("anthropic", "anthropic", "chat", "legacy")
SHAPES: tuple[Shape, ...] = (*SHAPES_OF_MESSAGES, "responses", "responses", "responses", "mixed")
_WRITERS = {"bedrock": BedrockWriter, "google": GoogleWriter, "gemini": GeminiWriter}
ALL_SHAPES: tuple[Shape, ...] = (
    *SHAPES, "bedrock", "bedrock", "google", "google", "gemini", "gemini",
)  # fmt: skip
_MIXED: tuple[Shape, ...] = ("anthropic", "chat", "responses", "responses")
Block = dict[str, Any]

# How Gemini's signature comes with the first of parallel calls: from Google, and from LiteLLM.
_SIGNATURES: tuple[Block, ...] = (
    {"extra_content": {"google": {"thought_signature": "c2ln"}}},
    {"provider_specific_fields": {"thought_signature": "c2ln"}},
)
TOOLS = ("read", "read", "search", "mcp__web__fetch")
_REPEATED = ("go on", "ok", "the very same words")


@dataclass(slots=True)
class Writer:
    """Writes one conversation.

    With `repeats`, texts, pictures and tool-use ids come again; without, all of them differ. With
    `hosted`, there are tools of the provider, replies that pause, and results that come late. With
    `files`, most calls have the path of one of two files.
    """

    rng: random.Random
    shape: Shape
    repeats: bool
    hosted: bool = False
    files: bool = False
    written: int = 0
    ids: int = 0
    _later: list[Message] = field(default_factory=list)
    _now: Shape = field(init=False)
    """The shape of the next messages; of a mixed conversation, one of the others."""

    def __post_init__(self) -> None:
        self._now = self.shape

    def conversation(self, rounds: int) -> list[Message]:
        """Return the messages of so many rounds of a prompt, replies, calls and results."""
        messages: list[Message] = []
        if (of_host := _WRITERS.get(self.shape)) is not None:
            writer = of_host(self.rng, self._text, self._id, lambda: self.rng.choice(TOOLS))
            return [message for _ in range(rounds) for message in writer.round()]
        self._turn_to_another_shape()
        if self._now != "anthropic" and self._chance(0.3):
            messages.append({"role": "system", "content": self._text()})
        for _ in range(rounds):
            messages += self._round()
        return messages

    def _round(self) -> Iterator[Message]:
        self._turn_to_another_shape()
        if self._chance(0.9):
            yield self._user_message()
        if self._later and self._chance(0.5):
            yield self._later.pop()
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            self._turn_to_another_shape()
            calls = [(self._id(), self.rng.choice(TOOLS)) for _ in range(self._calls())]
            if self._now == "responses":
                yield from _ItemWriter(self).reply(calls)
                continue
            if self.hosted and self._now == "anthropic" and self._chance(0.4):
                yield from self._served_reply(calls)
                continue
            yield self._reply(calls)
            if self.shape == "mixed" and self._chance(0.3):
                self._turn_to_another_shape()
            yield from self._answers(calls)

    def _served_reply(self, calls: list[tuple[str, str]]) -> Iterator[Message]:
        """Yield a reply with a tool of Anthropic's, which may pause, and the results of its calls.

        The result of that tool is with its call, behind a pause, or behind the other results.
        """
        asked, answered = anthropic_pair(self.rng, self._id(), self._text())
        made = [
            {"type": "tool_use", "id": call_id, "name": tool, "input": self._input()}
            for call_id, tool in calls
        ]
        form = self.rng.choice(("whole", "paused", "deferred"))
        first = [self._text_block(self._text()), asked]
        if form == "paused":
            yield {"role": "assistant", "content": first}
            first = []
        blocks = [*first, *made] if form == "deferred" else [*first, answered, *made]
        yield {"role": "assistant", "content": blocks}
        yield from self._answers(calls)
        if form == "deferred":
            text = self._text_block(self._text())
            yield {"role": "assistant", "content": [answered, text]}

    def _turn_to_another_shape(self) -> None:
        if self.shape == "mixed":
            self._now = self.rng.choice(_MIXED)

    def _user_message(self) -> Message:
        message: Message = {"role": "user", "content": self._prompt()}
        is_easy = self._now != "responses" or (
            isinstance(message["content"], str) and self._chance(0.5)
        )
        if is_easy:
            return message
        if isinstance(message["content"], str):
            message["content"] = [self._text_block(message["content"])]
        return {"type": "message", **message}

    def _calls(self) -> int:
        return self.rng.choice((0, 1) if self._now == "legacy" else (0, 1, 1, 2, 3))

    def _reply(self, calls: list[tuple[str, str]]) -> Message:
        if self._now == "anthropic":
            return {"role": "assistant", "content": self._reply_blocks(calls)}
        content = self._text() if not calls or self._chance(0.4) else None
        message: Message = {"role": "assistant", "content": content}
        made = [{"name": tool, "arguments": json.dumps(self._input())} for _, tool in calls]
        if self._now == "legacy" and made:
            message["function_call"] = made[0]
        elif made:
            message["tool_calls"] = [
                {"id": call_id, "type": "function", "function": function}
                for (call_id, _), function in zip(calls, made, strict=True)
            ]
            if self.hosted and self._chance(0.3):
                message["tool_calls"][0] |= self.rng.choice(_SIGNATURES)
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
        if self._now == "anthropic":
            blocks = [self._result(call_id) for call_id, _ in answered]
            if blocks and self._chance(0.15):
                blocks.append({"type": "text", "text": self._text()})
            if blocks:
                only_results = all(block["type"] == "tool_result" for block in blocks)
                is_hybrid = self.shape == "mixed" and only_results and self._chance(0.3)
                yield {"role": "tool" if is_hybrid else "user", "content": blocks}
            return
        for call_id, tool in answered:
            if self._now == "legacy":
                yield {"role": "function", "name": tool, "content": self._text()}
            elif self._now == "responses":
                yield _ItemWriter(self).output(call_id)
            else:
                yield {"role": "tool", "tool_call_id": call_id, "content": self._content()}

    def _result(self, call_id: str) -> Block:
        block = {"type": "tool_result", "tool_use_id": call_id, "content": self._content()}
        return block | {"is_error": True} if self._chance(0.15) else block

    def _prompt(self) -> str | list[Block]:
        if self._chance(0.7):
            return self._text()
        pictures = [self._picture()] if self._chance(0.5) else []
        return [self._text_block(self._text()), *pictures]

    def _content(self) -> str | list[Block]:
        if self._chance(0.4):
            return self._text()
        texts: list[Block] = [
            self._text_block(self._text()) for _ in range(self.rng.choice((0, 1, 1, 2)))
        ]
        pictures = [self._picture() for _ in range(self.rng.choice((0, 1, 1, 2)))]
        blocks = texts + pictures
        self.rng.shuffle(blocks)
        return blocks or self._text()

    def _picture(self) -> Block:
        data = "QUJD" if self.repeats and self._chance(0.3) else f"QUJD{self._marker()}"
        if self._now == "responses":
            if self._chance(0.3):
                return {"type": "input_file", "file_data": f"data:application/pdf;base64,{data}"}
            return {"type": "input_image", "image_url": f"data:image/png;base64,{data}"}
        if self._now != "anthropic":
            return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{data}"}}
        kind, media_type = self.rng.choice(
            (("image", "image/png"), ("image", "image/png"), ("document", "application/pdf"))
        )
        source = {"type": "base64", "media_type": media_type, "data": data}
        return {"type": kind, "source": source}

    def _text_block(self, text: str) -> Block:
        return {"type": "input_text" if self._now == "responses" else "text", "text": text}

    def _input(self) -> Block:
        if self.files and self._chance(0.9):
            return {"path": self.rng.choice(("a.py", "a.py", "b.py"))}
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


_KINDS = ("function_call",) * 4 + ("custom_tool_call", "local_shell_call")
_OPAQUE = ("mcp_call", "item_reference", "compaction", "image_generation_call")


@dataclass(slots=True)
class _ItemWriter:
    """Writes the items of one reply of the Responses API, and the outputs of its calls.

    A reply is one or several stretches of reasoning with what it led to.
    """

    of: Writer
    _kinds: dict[str, str] = field(default_factory=dict)
    _items: dict[str, str] = field(default_factory=dict)
    """The id of the item, by the id of its call."""

    def reply(self, calls: list[tuple[str, str]]) -> Iterator[Message]:
        """Yield the items of a reply with these calls, and the outputs that arrived."""
        chance = self.of._chance
        if calls and chance(0.2):  # as some clients record it
            for call in calls:
                yield from self._stretch([call])
                yield from self._outputs([call])
        else:
            cut = len(calls) // 2 if chance(0.3) else 0
            if cut:
                yield from self._stretch(calls[:cut])
            yield from self._stretch(calls[cut:])
            late = calls.pop() if len(calls) > 1 and chance(0.05) else None
            yield from self._outputs(calls)
            if late is not None:
                if self.of.hosted and chance(0.5):
                    self.of._later += self._outputs([late])
                    return
                yield {"role": "user", "content": self.of._text()}
                yield from self._outputs([late])
        if chance(0.05):
            yield self._opaque()

    def _stretch(self, calls: list[tuple[str, str]]) -> Iterator[Message]:
        chance = self.of._chance
        if chance(0.5):
            yield from (self._reasoning() for _ in range(2 if chance(0.1) else 1))
        if chance(0.1):
            yield {"type": "web_search_call", "id": self._id("ws"), "status": "completed"}
        if chance(0.1):
            yield self._opaque()
        if self.of.hosted and chance(0.2):
            yield from responses_pair(self.of.rng, self._id("pair"), self.of._text())
        if not calls or chance(0.3):
            yield self._message()
        yield from (self._call(*call) for call in calls)

    def _message(self) -> Message:
        text = self.of._text()
        if self.of._chance(0.2):
            return {"role": "assistant", "content": text}
        content = [{"type": "output_text", "text": text, "annotations": []}]
        return {
            "type": "message", "id": self._id("msg"), "role": "assistant", "content": content,
        }  # fmt: skip

    def _call(self, call_id: str, tool: str) -> Message:
        kind = self._kinds[call_id] = self.of.rng.choice(_KINDS)
        item_id = self._items[call_id] = self._id("fc")
        item = {"type": kind, "id": item_id, "call_id": call_id, "status": "completed"}
        text = self.of._text()
        if self.of.hosted and self.of._chance(0.3):
            call = client_call(self.of.rng, item, text)
            self._kinds[call_id] = call["type"]
            return call
        if kind == "custom_tool_call":
            return item | {"name": tool, "input": text}
        if kind == "local_shell_call":
            return item | {"action": {"type": "exec", "command": ["cat", text]}}
        return item | {"name": tool, "arguments": json.dumps({"path": text})}

    def _outputs(self, calls: list[tuple[str, str]]) -> Iterator[Message]:
        answered = (call_id for call_id, _ in calls if self.of._chance(0.93))
        return map(self.output, answered)

    def output(self, call_id: str) -> Message:
        """Return the output of a call."""
        kind = self._kinds.get(call_id, "function_call")
        if kind in {"shell_call", "apply_patch_call", "computer_call"}:
            return client_output(self.of.rng, kind, call_id, self.of._text())
        names: tuple[Block, ...] = ({"call_id": call_id},)
        if kind == "local_shell_call" and self.of.hosted:
            names += {"id": call_id}, {"id": self._items[call_id]}
        name = self.of.rng.choice(names) if len(names) > 1 else names[0]
        return {"type": f"{kind}_output", **name, "output": self.of._content()}

    def _reasoning(self) -> Message:
        text = self.of._text()
        item = {"type": "reasoning", "id": self._id("rs"), "summary": []}
        if self.of._chance(0.5):
            return item | {"encrypted_content": f"gAAAA{text}"}
        return item | {"summary": [{"type": "summary_text", "text": text}]}

    def _opaque(self) -> Message:
        kind = self.of.rng.choice(_OPAQUE)
        return {"type": kind, "id": self._id("op"), "encrypted_content": self.of._text()}

    def _id(self, kind: str) -> str:
        self.of.written += 1
        return f"{kind}_{self.of.written}"
