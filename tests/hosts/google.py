"""The contents of Google's SDK, with its shape and with the one that the page of shapes shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.genai import types

from policyctx import Shape
from policyctx.integrations.google_contents import GoogleShape
from tests.hosts.hosts import Host

PAGE = Path(__file__).parents[2] / "policyctx" / "messages" / "shapes" / "README.md"


def example() -> str:
    """The shape in the document, as it is printed there."""
    found = re.search(r"^```python\n(.*?)^```", PAGE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    assert found
    return found[1]


class Google(Host):
    joins_results = True

    def __init__(self) -> None:
        self.shape: Shape = GoogleShape()

    def user(self, text: str) -> types.Content:
        return types.Content(role="user", parts=[types.Part(text=text)])

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> types.Content:
        parts = [types.Part(text=text)] if text else []
        for call_id, tool, given in calls:
            call = types.FunctionCall(id=call_id, name=tool, args=given)
            parts.append(types.Part(function_call=call))
        if opaque:
            parts[0].thought_signature = opaque.encode() + b"\xff\x00"
        return types.Content(role="model", parts=parts)

    def results(self, *results: tuple[str, str, str]) -> list[types.Content]:
        answers = [
            types.FunctionResponse(id=id_, name=tool, response={"output": text})
            for id_, tool, text in results
        ]
        parts = [types.Part(function_response=answer) for answer in answers]
        return [types.Content(role="user", parts=parts)]

    def picture(self, text: str) -> types.Content:
        blob = types.Blob(data=b"\x89PNG\xff", mime_type="image/png")
        return types.Content(
            role="user", parts=[types.Part(text=text), types.Part(inline_data=blob)]
        )

    def opaque(self, message: types.Content) -> object:
        return message.parts[0].thought_signature

    def loaded(self, messages: Sequence[types.Content]) -> list[types.Content]:
        return [types.Content.model_validate_json(m.model_dump_json()) for m in messages]


class DocumentedGoogle(Google, Host):
    def __init__(self) -> None:
        names: dict[str, Any] = {}
        exec(compile(example(), PAGE, "exec"), names)  # noqa: S102 - the document is ours
        self.shape = names["GoogleShape"]()
