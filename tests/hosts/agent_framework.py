"""The messages of Microsoft's Agent Framework."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agent_framework import Content, Message

from policyctx import Shape
from policyctx.integrations.agent_framework import AgentFrameworkShape
from tests.hosts.hosts import Host


class AgentFramework(Host):
    joins_results = False

    def __init__(self) -> None:
        self.shape: Shape = AgentFrameworkShape()

    def user(self, text: str) -> Any:
        return Message("user", [Content.from_text(text)])

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> Any:
        made = [Content.from_text_reasoning(text="hm", protected_data=opaque)] if opaque else []
        made += [Content.from_text(text)] if text else []
        for id_, tool, given in calls:
            made.append(Content.from_function_call(id_, tool, arguments=json.dumps(given)))
        return Message("assistant", made, message_id="m")

    def results(self, *results: tuple[str, str, str]) -> list[Any]:
        return [
            Message("tool", [Content.from_function_result(id_, result=text)])
            for id_, _, text in results
        ]

    def picture(self, text: str) -> Any:
        image = Content.from_data(b"\x89PNG", "image/png")
        return Message("user", [Content.from_text(text), image])

    def opaque(self, message: Any) -> object:
        return message.contents[0].protected_data

    def loaded(self, messages: Sequence[Any]) -> list[Any]:
        saved = json.loads(json.dumps([message.to_dict() for message in messages]))
        return [Message.from_dict(message) for message in saved]
