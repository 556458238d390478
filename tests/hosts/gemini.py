"""The contents of Gemini's API as dicts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from policyctx import Shape
from policyctx.messages.shapes.google import GeminiShape
from tests.hosts.hosts import Host


class Gemini(Host):
    joins_results = True

    def __init__(self) -> None:
        self.shape: Shape = GeminiShape()

    def user(self, text: str) -> dict[str, Any]:
        return {"role": "user", "parts": [{"text": text}]}

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> dict[str, Any]:
        parts: list[dict[str, Any]] = [{"text": text}] if text else []
        for call_id, tool, given in calls:
            parts.append({"functionCall": {"id": call_id, "name": tool, "args": given}})
        if opaque:
            parts[0]["thoughtSignature"] = opaque
        return {"role": "model", "parts": parts}

    def results(self, *results: tuple[str, str, str]) -> list[dict[str, Any]]:
        parts = [
            {"functionResponse": {"id": id_, "name": tool, "response": {"output": text}}}
            for id_, tool, text in results
        ]
        return [{"role": "user", "parts": parts}]

    def picture(self, text: str) -> dict[str, Any]:
        blob = {"data": "iVBO/w==", "mimeType": "image/png"}
        return {"role": "user", "parts": [{"text": text}, {"inlineData": blob}]}

    def opaque(self, message: dict[str, Any]) -> object:
        return message["parts"][0]["thoughtSignature"]
