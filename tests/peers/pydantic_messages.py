"""Conversations as messages of Pydantic AI, and back."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import (
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import _sendable_request_parts

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the messages, adjacent requests as one, which is how an agent keeps them."""
    found: list[Any] = []
    for one in _written(said):
        if found and isinstance(one, ModelRequest) and isinstance(found[-1], ModelRequest):
            found[-1] = ModelRequest([*found[-1].parts, *one.parts])
        else:
            found.append(one)
    return found


def _written(said: Sequence[Said]) -> list[Any]:
    found: list[Any] = []
    for one in said:
        if one.role == "user":
            found.append(ModelRequest([UserPromptPart(one.text)]))
        elif one.role == "assistant":
            text = [TextPart(one.text)] if one.text else []
            calls = [
                ToolCallPart(c.tool, json.dumps(c.arguments, ensure_ascii=False), c.id)
                for c in one.calls
            ]
            found.append(ModelResponse([*text, *calls]))
        else:
            results = [ToolReturnPart(each.tool, each.text, each.id) for each in one.results]
            found.append(ModelRequest(results))
    return found


def plain(messages: Sequence[Any]) -> list[Plain]:
    """Return messages as they are compared; each part of a request is one."""
    found: list[Plain] = []
    for one in messages:
        if isinstance(one, ModelResponse):
            found.append(("assistant", tuple(_block(part) for part in one.parts)))
            continue
        # The models of providers send the parts of a request so, a summary as a text of the user.
        for part in _sendable_request_parts(one.parts):
            if isinstance(part, ToolReturnPart):
                found.append(("tool", (("result", part.tool_call_id, str(part.content)),)))
            else:
                found.append(("user", _texts(part.content)))
    return found


def _texts(content: Any) -> tuple[tuple[str, str], ...]:
    """Return the texts of a part; the harness keeps what a user wrote as a list of them."""
    items = [content] if isinstance(content, str) else content
    return tuple(("text", item if isinstance(item, str) else item.content) for item in items)


def _block(part: Any) -> tuple[str, ...]:
    if isinstance(part, ToolCallPart):
        return "call", part.tool_call_id, part.tool_name, arguments(part.args_as_dict())
    return "text", part.content
