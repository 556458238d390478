"""What other than messages, calls and results is in a conversation, and the shapes of two hosts.

Tools that the provider runs, answers that come late or twice, and replies that pause; and messages
of Bedrock's Converse API and contents of Gemini's API, as objects of Google's SDK and as dicts.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from google.genai import types

from policyctx.definitions.items import Message

Block = dict[str, Any]
Served = tuple[Block, Block]

_OF_ANTHROPIC = (
    ("server_tool_use", "web_search"),
    ("server_tool_use", "web_fetch"),
    ("server_tool_use", "code_execution"),
    ("server_tool_use", "bash_code_execution"),
    ("server_tool_use", "tool_search"),
    ("mcp_tool_use", "mcp"),
)


def anthropic_pair(rng: random.Random, call_id: str, text: str) -> Served:
    """Return the call of a tool that Anthropic runs, and its result."""
    kind, name = rng.choice(_OF_ANTHROPIC)
    call = {"type": kind, "id": call_id, "name": name, "input": {"query": text}}
    result = {"type": f"{name}_tool_result", "tool_use_id": call_id, "content": [{"text": text}]}
    return call, result


def responses_pair(rng: random.Random, call_id: str, text: str) -> tuple[Message, Message]:
    """Return two items of the Responses API that stay together."""
    pairs: tuple[tuple[Message, Message], ...] = (
        (
            {"type": "mcp_approval_request", "id": call_id, "name": "rm", "arguments": text},
            {"type": "mcp_approval_response", "approval_request_id": call_id, "approve": True},
        ),
        (
            {"type": "tool_search_call", "id": f"t{call_id}", "call_id": call_id, "arguments": {}},
            {"type": "tool_search_output", "call_id": call_id, "tools": [{"name": text}]},
        ),
        (
            {"type": "program", "id": f"p{call_id}", "call_id": call_id, "code": text},
            {"type": "program_output", "id": f"o{call_id}", "call_id": call_id, "result": text},
        ),
        (
            {"type": "shell_call", "call_id": call_id, "action": {"commands": [text]}},
            {"type": "shell_call_output", "id": f"o{call_id}", "call_id": call_id, "output": []},
        ),
    )
    return rng.choice(pairs)


def client_call(rng: random.Random, item: Message, text: str) -> Message:
    """Return the call of a tool of OpenAI's that the client runs."""
    kind = rng.choice(("shell_call", "apply_patch_call", "computer_call"))
    if kind == "shell_call":
        return item | {"type": kind, "action": {"commands": ["cat", text]}}
    if kind == "apply_patch_call":
        operation = {"type": "update_file", "path": "a.py", "diff": text}
        return item | {"type": kind, "operation": operation}
    return item | {"type": kind, "action": {"type": "type", "text": text}}


def client_output(rng: random.Random, kind: str, call_id: str, text: str) -> Message:
    """Return the output of such a call."""
    item = {"type": f"{kind}_output", "call_id": call_id}
    if kind == "shell_call":
        outcome = rng.choice(({"type": "exit", "exit_code": 1}, {"type": "timeout"}))
        said = {"stdout": text, "stderr": rng.choice(("", "warning")), "outcome": outcome}
        return item | {"output": [said] * rng.choice((1, 1, 2))}
    if kind == "apply_patch_call":
        return item | {"status": "completed", "output": text}
    picture = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{text}"}
    return item | {"output": picture}


class HostWriter:
    """Writes rounds in the shape of a host; subclasses write its messages.

    `text`, `call_id` and `tool` return the next text, id and name of a tool.
    """

    def __init__(
        self,
        rng: random.Random,
        text: Callable[[], str],
        call_id: Callable[[], str],
        tool: Callable[[], str],
    ) -> None:
        self.rng, self.text, self.call_id, self.tool = rng, text, call_id, tool
        self._later: list[Message] = []

    def round(self) -> Iterator[Message]:
        """Yield a prompt and what follows it; an answer may come in a later round."""
        if self.chance(0.9):
            yield self.message("user", [self.said()])
        if self._later and self.chance(0.5):
            yield self._later.pop()
        for _ in range(self.rng.choice((1, 1, 2, 3))):
            yield from self._reply()

    def _reply(self) -> Iterator[Message]:
        calls = [(self.call_id(), self.tool()) for _ in range(self.rng.choice((0, 1, 1, 2, 3)))]
        blocks = [self.thought()] if self.chance(0.2) else []
        blocks += [self.said()] if not calls or self.chance(0.5) else []
        pair = self.served(self.call_id()) if self.chance(0.3) else None
        form = self.rng.choice(("whole", "whole", "paused", "deferred"))
        if pair is not None:
            blocks += pair if form == "whole" else pair[:1]
        if pair is not None and form == "paused":
            yield self.message("assistant", blocks)
            blocks = [pair[1]]
        blocks += [
            self.call(call_id, tool, is_first=place == 0)
            for place, (call_id, tool) in enumerate(calls)
        ]
        yield self.message("assistant", blocks)
        answered = [self.result(*call) for call in calls if self.chance(0.93)]
        if answered:
            yield self.message("user", answered)
        if calls and self.chance(0.1):
            self._later.append(self.message("user", [self.result(*calls[0])]))
        if pair is not None and form == "deferred":
            yield self.message("assistant", [pair[1], self.said()])

    def chance(self, probability: float) -> bool:
        """Return true as often as the probability says."""
        return self.rng.random() < probability

    def message(self, role: str, blocks: list[Any]) -> Message:
        """Return a message."""
        raise NotImplementedError

    def said(self) -> Any:
        """Return a text."""
        raise NotImplementedError

    def thought(self) -> Any:
        """Return thinking."""
        raise NotImplementedError

    def call(self, call_id: str, tool: str, *, is_first: bool) -> Any:
        """Return a call; `is_first` says whether none is before it in its message."""
        raise NotImplementedError

    def result(self, call_id: str, tool: str) -> Any:
        """Return a result."""
        raise NotImplementedError

    def served(self, call_id: str) -> tuple[Any, Any]:
        """Return the call of a tool that the provider runs, and its result."""
        raise NotImplementedError


class BedrockWriter(HostWriter):
    """Writes messages of Bedrock's Converse API."""

    def message(self, role: str, blocks: list[Any]) -> Message:
        marks = [{"cachePoint": {"type": "default"}}] if self.chance(0.1) else []
        return {"role": role, "content": [*blocks, *marks]}

    def said(self) -> Block:
        return {"text": self.text()}

    def thought(self) -> Block:
        return {"reasoningContent": {"reasoningText": {"text": self.text(), "signature": "s"}}}

    def call(self, call_id: str, tool: str, *, is_first: bool = False) -> Block:
        del is_first
        return {"toolUse": {"toolUseId": call_id, "name": tool, "input": {"path": self.text()}}}

    def result(self, call_id: str, tool: str) -> Block:
        del tool
        content: list[Block] = [{"text": self.text()}]
        if self.chance(0.2):
            content.append({"image": {"format": "png", "source": {"bytes": "QUJD"}}})
        return {"toolResult": {"toolUseId": call_id, "content": content, "status": "success"}}

    def served(self, call_id: str) -> tuple[Block, Block]:
        call = self.call(call_id, "nova_grounding")
        call["toolUse"]["type"] = "server_tool_use"
        result = self.result(call_id, "")
        result["toolResult"]["type"] = "nova_grounding_result"
        return call, result


class GoogleWriter(HostWriter):
    """Writes contents of Google's SDK; in one of four conversations, calls have no ids.

    In two of four, only the first call of a message has a signature; in one, none has.
    """

    _has_ids: bool | None = None
    _signs: str | None = None

    def _given(self, call_id: str) -> str | None:
        if self._has_ids is None:
            self._has_ids = not self.chance(0.25)
        return call_id if self._has_ids else None

    def message(self, role: str, blocks: list[Any]) -> Message:
        return types.Content(role="model" if role == "assistant" else role, parts=blocks)

    def said(self) -> types.Part:
        return types.Part(text=self.text())

    def thought(self) -> types.Part:
        return types.Part(text=self.text(), thought=True)

    def call(self, call_id: str, tool: str, *, is_first: bool) -> types.Part:
        if self._signs is None:
            self._signs = self.rng.choice(("first", "first", "all", "none"))
        call = types.FunctionCall(id=self._given(call_id), name=tool, args={"path": self.text()})
        signed = self._signs == "all" or (self._signs == "first" and is_first)
        signature = b"\xff" + call_id.encode() if signed else None
        return types.Part(function_call=call, thought_signature=signature)

    def result(self, call_id: str, tool: str) -> types.Part:
        response = types.FunctionResponse(
            id=self._given(call_id), name=tool, response={"result": self.text()}
        )
        return types.Part(function_response=response)

    def served(self, call_id: str) -> tuple[types.Part, types.Part]:
        if self.chance(0.5):
            call = types.ToolCall(id=call_id, args={"query": self.text()})
            answer = types.ToolResponse(id=call_id, response={"result": self.text()})
            return types.Part(tool_call=call), types.Part(tool_response=answer)
        code = types.ExecutableCode(code=self.text(), language=types.Language.PYTHON)
        ran = types.CodeExecutionResult(output=self.text(), outcome=types.Outcome.OUTCOME_OK)
        return types.Part(executable_code=code), types.Part(code_execution_result=ran)


class GeminiWriter(GoogleWriter):
    """Writes the same contents as dicts, with the names of the API or those of its SDK."""

    _by_alias: bool | None = None

    def message(self, role: str, blocks: list[Any]) -> Message:
        if self._by_alias is None:
            self._by_alias = self.chance(0.5)
        content = super().message(role, blocks)
        return content.model_dump(mode="json", by_alias=self._by_alias, exclude_none=True)
