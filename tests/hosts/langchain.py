"""The messages of LangChain, which LangGraph and Deep Agents keep."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    message_to_dict,
    messages_from_dict,
    messages_to_dict,
)

from policyctx import Medium, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.definitions.items import Path
    from policyctx.messages.json_text import JSON

ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}
KINDS = {"system": "system_prompt", "human": "user_message", "ai": "assistant_message"}


class LangChainShape(Shape):
    def recognises(self, message: object) -> bool:
        return isinstance(message, BaseMessage)

    def role(self, message: BaseMessage) -> str:
        return ROLES[message.type]

    def parts(self, message: BaseMessage) -> Iterator[Part]:
        content = message.content
        if isinstance(message, ToolMessage):
            text = content if isinstance(content, str) else json.dumps(content)
            error = message.status == "error"
            yield Part((), "tool_result", text, call_id=message.tool_call_id, error=error)
        elif isinstance(content, str):
            if content:
                yield Part((), KINDS[message.type], content)
        else:
            for i, block in enumerate(content):
                yield from (
                    self._block(i, {"type": "text", "text": block}, message.type)
                    if (isinstance(block, str))
                    else self._block(i, block, message.type)
                )
        for i, call in enumerate(getattr(message, "tool_calls", ())):
            text = json.dumps(call["args"])
            path = ("tool_calls", i)
            yield Part(path, "tool_call", text, tool=call["name"], call_id=call["id"])

    def _block(self, i: int, block: dict[str, Any], kind: str) -> Iterator[Part]:
        if block["type"] == "text":
            yield Part((i,), KINDS[kind], block["text"])
        elif block["type"] == "thinking":
            yield Part((i,), "thinking", block["thinking"])
        elif block["type"] == "image":
            medium = Medium("image", "anthropic", block["base64"])
            yield Part((i,), "image", json.dumps(block), "", (medium,))
        elif block["type"] != "tool_use":  # it repeats one of `tool_calls`
            yield Part((i,), "unknown", json.dumps(block))

    def replaced(
        self, message: BaseMessage, texts: Mapping[Path, str | None]
    ) -> BaseMessage | None:
        new = message.model_copy(deep=True)
        for path in sorted(texts, key=str, reverse=True):
            text = texts[path]
            if not path:
                new.content = text or ""
            elif path[0] == "tool_calls":
                self._edit_call(new, path[1], text)
            elif text is None:
                del new.content[path[0]]
            else:
                new.content[path[0]] = {"type": "text", "text": text}
        return new if any(True for _ in self.parts(new)) and texts.get((), "") is not None else None

    def _edit_call(self, message: Any, i: int | str, text: str | None) -> None:
        call, blocks = message.tool_calls[i], message.content
        twin = [b for b in blocks if isinstance(b, dict) and b.get("id") == call["id"]]
        if text is None:
            del message.tool_calls[i]
            if twin:
                blocks.remove(twin[0])
        else:
            call["args"] = json.loads(text)
            if twin:
                twin[0]["input"] = json.loads(text)

    def written(self, role: str, text: str) -> BaseMessage:
        return AIMessage(text) if role == "assistant" else HumanMessage(text)

    def plain(self, message: BaseMessage) -> JSON:
        found: JSON = json.loads(json.dumps(message_to_dict(message)))
        return found

    def block(self, message: BaseMessage, path: Path) -> JSON:
        if not path:
            return self.plain(message)
        holder: Any = message.content if len(path) == 1 else getattr(message, str(path[0]))
        found: JSON = copy.deepcopy(holder[path[-1]])
        return found


class LangChain:
    joins_results = False

    def __init__(self) -> None:
        self.shape: Shape = LangChainShape()

    def user(self, text: str) -> BaseMessage:
        return HumanMessage(text)

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> BaseMessage:
        made = [{"id": id_, "name": tool, "args": given} for id_, tool, given in calls]
        if not opaque:
            return AIMessage(text, tool_calls=made)
        content: list[dict[str, Any]] = [
            {"type": "thinking", "thinking": "hm", "signature": opaque}
        ]
        if text:
            content.append({"type": "text", "text": text})
        uses = [{"type": "tool_use", "input": c["args"], **c} for c in copy.deepcopy(made)]
        for use in uses:
            del use["args"]
        return AIMessage([*content, *uses], tool_calls=made)

    def results(self, *results: tuple[str, str, str]) -> list[BaseMessage]:
        return [ToolMessage(text, tool_call_id=id_, name=tool) for id_, tool, text in results]

    def picture(self, text: str) -> BaseMessage:
        image = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
        return HumanMessage([{"type": "text", "text": text}, image])

    def opaque(self, message: BaseMessage) -> object:
        return message.content[0]["signature"]

    def loaded(self, messages: Sequence[BaseMessage]) -> list[BaseMessage]:
        return list(messages_from_dict(json.loads(json.dumps(messages_to_dict(messages)))))
