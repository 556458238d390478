"""The messages of Pydantic AI: requests and responses, which are dataclasses with parts."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from policyctx import Medium, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.definitions.items import Path
    from policyctx.messages.json_text import JSON

KINDS = {
    SystemPromptPart: "system_prompt",
    UserPromptPart: "user_message",
    TextPart: "assistant_message",
    ThinkingPart: "thinking",
    ToolReturnPart: "tool_result",
}
START = datetime(2026, 1, 1, tzinfo=UTC)


class PydanticAIShape(Shape):
    def recognises(self, message: object) -> bool:
        return isinstance(message, ModelRequest | ModelResponse)

    def role(self, message: Any) -> str:
        return "user" if isinstance(message, ModelRequest) else "assistant"

    def parts(self, message: Any) -> Iterator[Part]:
        for i, part in enumerate(message.parts):
            kind = KINDS.get(type(part), "unknown")
            call_id = getattr(part, "tool_call_id", None)
            if isinstance(part, ToolCallPart):
                text = json.dumps(part.args_as_dict())
                yield Part((i,), "tool_call", text, tool=part.tool_name, call_id=call_id)
            elif isinstance(part, ToolReturnPart):
                error = part.outcome != "success"
                text = part.model_response_str()
                yield Part((i,), kind, text, call_id=call_id, error=error)
            elif kind == "unknown":
                yield Part((i,), kind, json.dumps(self.block(message, (i,))))
            elif isinstance(part.content, str):
                yield Part((i,), kind, part.content)
            else:
                yield from map(
                    self._piece, ((i, j) for j in range(len(part.content))), part.content
                )

    def _piece(self, path: Path, piece: Any) -> Part:
        if isinstance(piece, str):
            return Part(path, "user_message", piece)
        if isinstance(piece, BinaryContent) and piece.is_image:
            medium = Medium("image", "anthropic", piece.base64)
            return Part(path, "image", piece.data_uri, "", (medium,), media_type=piece.media_type)
        return Part(path, "unknown", repr(piece))

    def replaced(self, message: Any, texts: Mapping[Path, str | None]) -> Any:
        parts = copy.deepcopy(list(message.parts))
        for path in sorted(texts, reverse=True):
            i, text = int(path[0]), texts[path]
            if len(path) > 1:
                pieces = list(parts[i].content)
                pieces[int(path[1]) : int(path[1]) + 1] = [] if text is None else [text]
                parts[i] = replace(parts[i], content=pieces)
            elif text is None:
                del parts[i]
            elif isinstance(parts[i], ToolCallPart):
                parts[i] = replace(parts[i], args=json.loads(text))
            else:
                parts[i] = replace(parts[i], content=text)
        parts = [part for part in parts if getattr(part, "content", "x") != []]
        return replace(copy.deepcopy(message), parts=parts) if parts else None

    def written(self, role: str, text: str) -> Any:
        if role == "user":
            return ModelRequest([UserPromptPart(text, timestamp=START)])
        return ModelResponse([TextPart(text)], timestamp=START)

    def plain(self, message: Any) -> JSON:
        found: JSON = ModelMessagesTypeAdapter.dump_python([message], mode="json")[0]
        return found

    def block(self, message: Any, path: Path) -> JSON:
        found: Any = self.plain(message)
        part = found["parts"][path[0]]
        block: JSON = part["content"][path[1]] if len(path) > 1 else part
        return block

    def stays(self, message: Any) -> bool:
        return any(isinstance(part, SystemPromptPart) for part in message.parts)


class PydanticAI:
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
