"""`BedrockShape`: the messages of Bedrock's Converse API, which Strands uses for all models.

They are dicts with a `role` and a list of blocks that have no `type`. The module needs no package.
"""

import base64
import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from policyctx.definitions.items import HostObject, Message, Path, joined
from policyctx.messages.json_text import JSON, SPACED, Text, json_text
from policyctx.messages.shapes.block_texts import BlockList, joined_text, shown_texts, texts_in
from policyctx.messages.shapes.blocks import file_part, shown_files
from policyctx.messages.shapes.shape import REMOVED, Part, Shape, kind_of_text

_ROLES = frozenset({"user", "assistant"})
# What Strands adds to a message for itself and does not send.
_NOT_SENT = ("metadata", "tracking_id")
# The blocks of media, which have the names of those of the APIs as which they are sized.
_MEDIA = ("image", "document", "audio", "video")
_PDF = "pdf"
# The type of a call that the provider carries out.
_SERVED = "server_tool_use"


class BedrockShape(Shape):
    """The shape of messages of Bedrock's Converse API."""

    alternates = True

    def recognises(self, message: object) -> bool:
        """Return whether a value is a dict with a list of blocks, none of which has a `type`."""
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            return False
        blocks = message.get("content")
        return isinstance(blocks, list) and all(
            isinstance(block, dict) and "type" not in block for block in blocks
        )

    def role(self, message: Message) -> str:
        """Return the role."""
        role: str = message["role"]
        return role

    def parts(self, message: Message) -> Iterator[Part]:
        """Yield the blocks, and the media in a result after it.

        A tool that the provider runs has its result in a message of the assistant.
        """
        role = message["role"]
        kind = kind_of_text(role)
        answered = {
            result["toolUseId"]: i
            for i, block in enumerate(message["content"] if role == "assistant" else ())
            if (result := block.get("toolResult"))
        }
        for i, block in enumerate(message["content"]):
            if isinstance(text := block.get("text"), str):
                if text:
                    yield Part((i,), kind, text)
            elif call := block.get("toolUse"):
                is_served = call.get("type") == _SERVED or answered.get(call["toolUseId"], -1) > i
                text = _json(block if is_served else call["input"])
                kind_of_call, tool = "unknown" if is_served else "tool_call", call["name"]
                yield Part((i,), kind_of_call, text, tool=tool, call_id=call["toolUseId"])
            elif result := block.get("toolResult"):
                if role == "assistant":
                    yield Part((i,), "unknown", _json(block), call_id=result["toolUseId"])
                else:
                    yield from _result((i,), result)
            elif thought := block.get("reasoningContent"):
                said = thought.get("reasoningText", {}).get("text")
                yield Part((i,), "thinking", said or _json(thought))
            elif "cachePoint" not in block:  # it is a mark, and says nothing
                plain = _plain(block)
                yield _medium((i,), plain) or Part((i,), "unknown", json_text(plain, SPACED))

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a copy of the message with these parts replaced or removed."""
        new = copy.deepcopy(message)
        for path in sorted(texts, reverse=True):
            *inside, last = path
            blocks, text = new["content"], texts[path]
            if inside:
                blocks = blocks[inside[0]]["toolResult"]["content"]
            if text is None:
                del blocks[last]
                if inside and not blocks:
                    blocks.append({"text": REMOVED})
            elif "toolUse" in blocks[last]:
                blocks[last]["toolUse"]["input"] = json.loads(text)
            elif "toolResult" in blocks[last]:
                blocks[last]["toolResult"]["content"] = [{"text": text}]
            else:
                blocks[last] = {"text": text}
        return new if any(True for _ in self.parts(new)) else None

    def written(self, role: str, text: str) -> Message:
        """Return a message with one text."""
        return {"role": role, "content": [{"text": text}]}

    def written_with(self, text: str, message: Message, path: Path) -> Message:
        """Return a message with a text and the blocks of the result; one of JSON is a text."""
        held = copy.deepcopy(message["content"][path[0]]["toolResult"]["content"])
        said = [{"text": _json(block["json"])} if "json" in block else block for block in held]
        return {"role": "user", "content": [{"text": text}, *said]}

    def plain(self, message: Message) -> JSON:
        """Return the message without what is not sent; bytes have the form of Strands' sessions."""
        sent = {name: value for name, value in message.items() if name not in _NOT_SENT}
        plain: JSON = _plain(sent)
        return plain

    def block(self, message: Message, path: Path) -> JSON:
        """Return the block at a path."""
        block = message["content"][path[0]]
        if len(path) > 1:
            block = block["toolResult"]["content"][path[1]]
        plain: JSON = _plain(block)
        return plain


def _result(path: Path, result: Mapping[str, Any]) -> Iterator[Part]:
    blocks, call_id = result["content"], result["toolUseId"]
    error = result.get("status") == "error"
    plain = [_plain(block) for block in blocks]
    media = [part for j, block in enumerate(plain) if (part := _medium((*path, j), block))]
    seen = {int(part.path[-1]) for part in media}
    as_json, listed = json_text(plain, SPACED), None
    texts = shown_texts(plain, {j for j in seen if not any(texts_in(plain[j]))})
    if texts is None:
        text = as_json
        counted = json_text([b for j, b in enumerate(plain) if j not in seen], SPACED)
    else:
        text = joined(texts)
        counted = (joined_text(plain, seen) or "") if seen else text
        listed = BlockList(as_json, texts) if len(blocks) > 1 or seen else None
    held = tuple(medium for part in media for medium in part.media)
    found = Part(
        path, "tool_result", text, counted, held, call_id=call_id, error=error, blocks=listed
    )
    yield from (found, *shown_files(found, media))


def _medium(path: Path, block: Mapping[str, Any]) -> Part | None:
    """Return the part of an image, a document or a sound, None for another plain block."""
    name = next((name for name in _MEDIA if name in block), None)
    if name is None:
        return None
    given = block[name]
    suffix = str(given.get("format") or ("png" if name == "image" else _PDF))
    media_type = f"application/{suffix}" if name == "document" else f"{name}/{suffix}"
    seen = {"type": name, "source": _source(given.get("source", {}), media_type)}
    return file_part(path, seen, json_text(block, SPACED), media_type)


def _source(given: Mapping[str, Any], media_type: str) -> dict[str, Any]:
    """Return the source of a medium in the form of Anthropic's API."""
    if isinstance(given.get("text"), str):
        return {"type": "text", "data": given["text"]}
    if isinstance(given.get("content"), list):
        return {"type": "content", "content": given["content"]}
    data = given.get("bytes") or ""
    text = data if isinstance(data, str) else data["data"]
    return {"type": "base64", "media_type": media_type, "data": text}


def _plain(value: HostObject) -> HostObject:
    """Return a value with bytes as Strands saves them, and with the same strings."""
    if isinstance(value, dict):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [*map(_plain, value)]
    if isinstance(value, bytes):
        return {"__bytes_encoded__": True, "data": base64.b64encode(value).decode()}
    return value


def _json(value: object) -> Text:
    return json_text(_plain(value), SPACED)
