"""The messages of LangChain, which LangGraph and Deep Agents keep."""

from __future__ import annotations

import copy
import json
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    ToolMessage,
    messages_from_dict,
    messages_to_dict,
)

from policyctx import Shape
from policyctx.integrations.langchain import LangChainShape
from tests.hosts.hosts import Host


class LangChain(Host):
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
