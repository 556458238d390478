"""The messages of Pydantic AI: requests and responses, which are dataclasses with parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from policyctx import Shape
from policyctx.integrations.pydantic_ai import PydanticAIShape
from tests.hosts.hosts import Host


class PydanticAI(Host):
    joins_results = True

    def __init__(self) -> None:
        self.shape: Shape = PydanticAIShape()

    def user(self, text: str) -> Any:
        return ModelRequest([UserPromptPart(text)])

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> Any:
        parts: list[Any] = [ThinkingPart("hm", signature=opaque)] if opaque else []
        parts += [TextPart(text)] if text else []
        parts += [ToolCallPart(tool, given, id_) for id_, tool, given in calls]
        return ModelResponse(parts)

    def results(self, *results: tuple[str, str, str]) -> list[Any]:
        return [ModelRequest([ToolReturnPart(tool, text, id_) for id_, tool, text in results])]

    def picture(self, text: str) -> Any:
        image = BinaryContent(data=b"\x89PNG", media_type="image/png")
        return ModelRequest([UserPromptPart([text, image])])

    def opaque(self, message: Any) -> object:
        return message.parts[0].signature

    def loaded(self, messages: Sequence[Any]) -> list[Any]:
        text = ModelMessagesTypeAdapter.dump_json(list(messages))
        return list(ModelMessagesTypeAdapter.validate_json(text))
