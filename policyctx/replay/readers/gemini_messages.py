"""What Gemini CLI's records put into the context, as messages in the form of Anthropic's API."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.items import compact_json
from policyctx.replay.readers.fields import Record, mapping, number, objects, word
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Collection

    from policyctx.messages.items import Message


def prompt_of(record: Record, answered: Collection[str]) -> list[Message]:
    """Return what the user said; results of calls that are `answered` are left out."""
    content = record.get("content")
    if isinstance(content, list):
        blocks = [block for block in _blocks(content) if block.get("tool_use_id") not in answered]
        content = _alone(blocks)
    return [] if content == [] else [{"role": "user", "content": content}]


def reply_of(record: Record) -> list[Message]:
    """Return a reply with its calls, and what these gave, as far as there is either."""
    calls = objects(record.get("toolCalls"))
    said = _blocks(record.get("content"))
    if calls:
        said = [block for block in said if block["type"] != "tool_use"]
    content = [*said, *map(_call, calls)]
    results = [_result(call) for call in calls if call.get("result") is not None]
    messages = [{"role": "assistant", "content": content}, {"role": "user", "content": results}]
    return [message for message in messages if message["content"]]


def answered_by(record: Record) -> list[str]:
    """Return the ids of the calls whose results a reply carries."""
    calls = objects(record.get("toolCalls"))
    return [word(call.get("id")) for call in calls if call.get("result") is not None]


def billed(reply: Record) -> Usage | None:
    """Return the usage of a reply, None where nothing was billed."""
    tokens = mapping(reply.get("tokens"))
    prompt, cached = number(tokens.get("input")), number(tokens.get("cached"))
    output = number(tokens.get("output")) + number(tokens.get("thoughts"))
    cached = min(prompt, cached)
    return Usage(prompt - cached, cached, 0, output) if prompt else None


def _blocks(content: object) -> list[Record]:
    """Return parts as blocks; a text alone is one."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}] if content else []
    return [_block(part) for part in objects(content)]


def _block(part: Record) -> Record:
    if isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if call := mapping(part.get("functionCall")):
        return _call(call)
    if answer := mapping(part.get("functionResponse")):
        return _result({"id": answer.get("id"), "result": part})
    data = mapping(part.get("inlineData"))
    if data:
        source = {"type": "base64", "media_type": data.get("mimeType"), "data": data.get("data")}
        kind = "image" if word(data.get("mimeType")).startswith("image/") else "document"
        return {"type": kind, "source": source}
    return {**part, "type": next(iter(part), "part")}


def _call(call: Record) -> Record:
    name, call_id = word(call.get("name")), word(call.get("id"))
    return {"type": "tool_use", "id": call_id, "name": name, "input": call.get("args")}


def _result(call: Record) -> Record:
    call_id = word(call.get("id"))
    content = _result_content(call.get("result"), call_id)
    result = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return result | ({"is_error": True} if call.get("status") == "error" else {})


def _result_content(result: object, call_id: str) -> object:
    """Return what the tool gave; results of other calls may stand with it."""
    if isinstance(result, str):
        return result
    blocks: list[Record] = []
    for part in objects(result if isinstance(result, list) else [result]):
        if "functionResponse" not in part:
            blocks.append(_block(part))
            continue
        answer = mapping(part["functionResponse"])
        if word(answer.get("id")) in ("", call_id):
            blocks.append({"type": "text", "text": _response_text(mapping(answer.get("response")))})
    return _alone(blocks)


def _response_text(response: Record) -> str:
    said = response.get("output", response.get("error"))
    return said if isinstance(said, str) else compact_json(response)


def _alone(blocks: list[Record]) -> object:
    """Return a text where that is all there is, else the blocks."""
    alone = blocks[0].get("text") if len(blocks) == 1 else None
    return alone if isinstance(alone, str) else blocks
