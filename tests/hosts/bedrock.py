"""Messages of Bedrock's Converse API, which Strands keeps: dicts whose blocks have no `type`."""

from __future__ import annotations

import base64
import copy
import json
from typing import TYPE_CHECKING, Any

from policyctx import Medium, Part, Shape

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.definitions.items import Path
    from policyctx.messages.json_text import JSON

Message = dict[str, Any]
PNG = base64.b64decode("iVBORw0KGgo=")


class BedrockShape(Shape):
    def recognises(self, message: object) -> bool:
        blocks = message.get("content") if isinstance(message, dict) else None
        return isinstance(blocks, list) and all(
            isinstance(block, dict) and "type" not in block for block in blocks
        )

    def role(self, message: Message) -> str:
        role: str = message["role"]
        return role

    def parts(self, message: Message) -> Iterator[Part]:
        kind = "user_message" if message["role"] == "user" else "assistant_message"
        for i, block in enumerate(message["content"]):
            if "text" in block:
                yield Part((i,), kind, block["text"])
            elif call := block.get("toolUse"):
                text, tool = json.dumps(call["input"]), call["name"]
                yield Part((i,), "tool_call", text, tool=tool, call_id=call["toolUseId"])
            elif result := block.get("toolResult"):
                yield from self._result((i,), result)
            elif thought := block.get("reasoningContent"):
                yield Part((i,), "thinking", thought.get("reasoningText", {}).get("text", ""))
            elif "image" in block:
                yield Part((i,), "image", _text(block), "", (Medium("image", "anthropic"),))
            elif "cachePoint" not in block:  # it is a mark, and says nothing
                yield Part((i,), "unknown", _text(block))

    def _result(self, path: Path, result: dict[str, Any]) -> Iterator[Part]:
        blocks, call_id = result["content"], result["toolUseId"]
        images = {j: Medium("image", "anthropic") for j, b in enumerate(blocks) if "image" in b}
        text = counted = _text(blocks)
        if images:
            counted = _text([block for j, block in enumerate(blocks) if j not in images])
        if len(blocks) == 1 and "text" in blocks[0]:
            text = counted = blocks[0]["text"]
        error = result.get("status") == "error"
        media = tuple(images.values())
        yield Part(path, "tool_result", text, counted, media, call_id=call_id, error=error)
        for number, (j, medium) in enumerate(images.items(), 1):
            block = _text(blocks[j])
            yield Part((*path, j), "image", block, "", (medium,), call_id=call_id, number=number)

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        new = copy.deepcopy(message)
        for path in sorted(texts, reverse=True):
            *inside, last = path
            blocks, text = new["content"], texts[path]
            if inside:
                blocks = blocks[inside[0]]["toolResult"]["content"]
            if text is None:
                del blocks[last]
            elif "toolUse" in blocks[last]:
                blocks[last]["toolUse"]["input"] = json.loads(text)
            elif "toolResult" in blocks[last]:
                blocks[last]["toolResult"]["content"] = [{"text": text}]
            else:
                blocks[last] = {"text": text}
        return new if any("cachePoint" not in block for block in new["content"]) else None

    def written(self, role: str, text: str) -> Message:
        return {"role": role, "content": [{"text": text}]}

    def plain(self, message: Message) -> JSON:
        found: JSON = json.loads(_text(message))
        return found

    def block(self, message: Message, path: Path) -> JSON:
        block = message["content"][path[0]]
        return self.plain(block["toolResult"]["content"][path[1]] if len(path) > 1 else block)


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=lambda b: base64.b64encode(b).decode())


class Bedrock:
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

    def loaded(self, messages: Sequence[Message]) -> list[Message]:
        return copy.deepcopy(list(messages))


def picture() -> dict[str, Any]:
    return {"image": {"format": "png", "source": {"bytes": PNG}}}
