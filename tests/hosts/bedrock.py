"""Messages of Bedrock's Converse API, which Strands keeps: dicts whose blocks have no `type`."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from policyctx import Shape
from policyctx.integrations.bedrock_shape import BedrockShape
from tests.hosts.hosts import Host

Message = dict[str, Any]
PNG = base64.b64decode("iVBORw0KGgo=")


class Bedrock(Host):
    joins_results = True

    def __init__(self) -> None:
        self.shape: Shape = BedrockShape()

    def user(self, text: str) -> Message:
        return {"role": "user", "content": [{"text": text}, {"cachePoint": {"type": "default"}}]}

    def reply(
        self,
        text: str = "",
        calls: Sequence[tuple[str, str, dict[str, Any]]] = (),
        *,
        opaque: str = "",
    ) -> Message:
        blocks: list[dict[str, Any]] = []
        if opaque:
            thought = {"text": "hm", "signature": opaque}
            blocks.append({"reasoningContent": {"reasoningText": thought}})
        if text:
            blocks.append({"text": text})
        for call_id, tool, given in calls:
            use = {"toolUseId": call_id, "name": tool, "input": given}
            blocks.append({"toolUse": use})
        return {"role": "assistant", "content": blocks}

    def results(self, *results: tuple[str, str, str]) -> list[Message]:
        blocks = [
            {"toolResult": {"toolUseId": id_, "content": [{"text": text}], "status": "success"}}
            for id_, _, text in results
        ]
        return [{"role": "user", "content": blocks}]

    def picture(self, text: str) -> Message:
        return {"role": "user", "content": [{"text": text}, picture()]}

    def opaque(self, message: Message) -> object:
        return message["content"][0]["reasoningContent"]["reasoningText"]["signature"]


def picture() -> dict[str, Any]:
    return {"image": {"format": "png", "source": {"bytes": PNG}}}
