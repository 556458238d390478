"""Conversations as contents of Google's SDK, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from google.genai import types

from tests.peers.said import Plain, Said, arguments


def written(said: Sequence[Said]) -> list[Any]:
    """Return the contents; adjacent messages of the user are one, as an invocation has one.

    An invocation ends with what the model says, so it says "…" between a result and the user.
    """
    found: list[Any] = []
    for one in said:
        content = _written(one)
        if one.role == "user" and found and found[-1].parts[0].function_response:
            found.append(types.Content(role="model", parts=[types.Part(text="…")]))
        if one.role == "user" and found and found[-1].role == "user" and found[-1].parts[0].text:
            found[-1] = types.Content(role="user", parts=[*found[-1].parts, *content.parts])
        else:
            found.append(content)
    return found


def _written(one: Said) -> Any:
    parts = [types.Part(text=one.text)] if one.text else []
    parts += [
        types.Part(
            function_call=types.FunctionCall(id=call.id, name=call.tool, args=call.arguments)
        )
        for call in one.calls
    ]
    parts += [
        types.Part(
            function_response=types.FunctionResponse(
                id=each.id, name=each.tool, response={"result": each.text}
            )
        )
        for each in one.results
    ]
    return types.Content(role="model" if one.role == "assistant" else "user", parts=parts)


def plain(contents: Sequence[Any]) -> list[Plain]:
    """Return contents as they are compared."""
    return [(one.role, tuple(_block(part) for part in one.parts)) for one in contents]


def _block(part: Any) -> tuple[str, ...]:
    if part.function_call:
        call = part.function_call
        return "call", call.id, call.name, arguments(call.args)
    if part.function_response:
        answer = part.function_response
        return "result", answer.id, str(answer.response["result"])
    return "text", part.text
