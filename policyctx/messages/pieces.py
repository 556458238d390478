"""The pieces of a message that have a size, for counting the tokens of a request.

Messages of Anthropic and of OpenAI's chat API contain blocks and `tool_calls`. An item of OpenAI's
Responses API is a message with a `role`, or has none: a call, a result, reasoning. In the chat API
a result is a message of its own, and so it is here for an item that is a result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from policyctx.definitions.items import Medium, Provider
from policyctx.definitions.request_content import Mark, Piece, RequestContent
from policyctx.messages.json_text import text_of
from policyctx.messages.shapes.media import DOCUMENTS, IMAGES, blocks_of, medium_of
from policyctx.messages.shapes.sdk_objects import as_message
from policyctx.messages.shapes.shape import RESULT_ROLES, SYSTEM_ROLES

Fields: TypeAlias = Mapping[str, Any]

_OPENAI_ROLES = (*SYSTEM_ROLES, *RESULT_ROLES)
_OPENAI_PARTS = ("image_url", "input_image", "file", "input_file", "input_text", "output_text")


def request_content(messages: Sequence[Fields], system: object = None) -> RequestContent:
    """Return the content of a request with these messages and this system prompt.

    `system` is a text or a list of blocks. The messages are not checked; SDK objects are accepted.
    """
    given = [as_message(message) for message in messages]
    pieces = [piece for message in given for piece in pieces_of(message)]
    pieces += _content(system)
    body = None if any(map(_is_item, given)) else _body(given, system)
    return RequestContent(pieces, provider_of(given), body)


def pieces_of(message: Fields) -> Iterator[Piece]:
    """Yield everything of a message that has a size; its order is that of the message."""
    message = as_message(message)
    if _is_item(message):
        yield from _ITEMS.get(message["type"], _other_item)(message)
    else:
        yield from _message(message)


def provider_of(messages: Sequence[Fields]) -> Provider:
    """Return the provider in whose shape the messages are; `anthropic` if they do not tell."""
    seen = map(as_message, messages)
    return "openai" if any(map(_is_openai, seen)) else "anthropic"


def _is_openai(message: Fields) -> bool:
    if message.get("role") in _OPENAI_ROLES or "tool_calls" in message or _is_item(message):
        return True
    return any(block.get("type") in _OPENAI_PARTS for block in blocks_of(message.get("content")))


def _is_item(message: Fields) -> bool:
    """Whether this is an item of the Responses API without a role."""
    return message.get("role") is None and isinstance(message.get("type"), str)


def _body(messages: Sequence[Fields], system: object) -> Fields:
    body: dict[str, Any] = {"messages": [dict(message) for message in messages]}
    return body | {"system": system} if system else body


def _message(message: Fields) -> Iterator[Piece]:
    yield Mark.MESSAGE
    if message.get("role") in RESULT_ROLES:
        yield Mark.TOOL_RESULT
    if name := message.get("name"):
        yield Mark.SPEAKER
        yield text_of(name)
    content = message.get("content")
    yield from _content(_with_refusals(content) if message.get("type") == "message" else content)
    for call in blocks_of(message.get("tool_calls")):
        function = call.get("function")
        function = function if isinstance(function, Mapping) else call
        yield Mark.TOOL_CALL
        yield text_of(function.get("name"))
        yield text_of(function.get("arguments"))


def _with_refusals(content: object) -> object:
    """Return the content of a Responses message with the text of each refusal in its place."""
    if not isinstance(content, list | tuple):
        return content
    return [
        text_of(part.get("refusal")) if part.get("type") == "refusal" else part
        for part in blocks_of(content)
    ]


def _content(content: object) -> Iterator[Piece]:
    if isinstance(content, str):
        yield content
    for block in blocks_of(content):
        yield from _block(block)


def _block(block: Fields) -> Iterator[Piece]:
    kind = block.get("type")
    if kind in IMAGES or kind in DOCUMENTS:
        yield medium_of(block)
    elif kind == "tool_use":
        yield from _call(block.get("name"), block.get("input"))
    elif kind == "tool_result":
        yield Mark.TOOL_RESULT
        yield from _content(block.get("content"))
    elif kind in {"thinking", "redacted_thinking"}:
        yield text_of(block.get("thinking") or block.get("data"))
    elif isinstance(block.get("text"), str):
        yield block["text"]
    else:
        yield text_of(block)


def _call(*texts: object) -> Iterator[Piece]:
    yield Mark.TOOL_CALL
    yield from map(text_of, texts)


def _function_call(item: Fields) -> Iterator[Piece]:
    return _call(item.get("name"), item.get("arguments"))


def _custom_call(item: Fields) -> Iterator[Piece]:
    return _call(item.get("name"), item.get("input"))


def _shell_call(item: Fields) -> Iterator[Piece]:
    return _call(item.get("action"))


def _output(item: Fields) -> Iterator[Piece]:
    output = item.get("output")
    yield Mark.MESSAGE
    yield Mark.TOOL_RESULT
    yield from _content(output if isinstance(output, list | tuple) else text_of(output))


def _screenshot(item: Fields) -> Iterator[Piece]:
    output = item.get("output")
    if isinstance(output, Mapping) and isinstance(url := output.get("image_url"), str):
        yield Mark.MESSAGE
        yield Mark.TOOL_RESULT
        yield medium_of({"type": "input_image", "image_url": url})
    else:
        yield from _other_item(item)


def _reasoning(item: Fields) -> Iterator[Piece]:
    """Yield the texts of the reasoning, which stand for the encrypted content if there are any."""
    holders = (item.get("summary"), item.get("content"))
    texts = [piece for held in holders for piece in _content(held) if piece]
    yield from texts or _encrypted(item)


def _compaction(item: Fields) -> Iterator[Piece]:
    encrypted = list(_encrypted(item))
    yield from encrypted or _other_item(item)


def _encrypted(item: Fields) -> Iterator[Piece]:
    if isinstance(encrypted := item.get("encrypted_content"), str):
        yield Medium("reasoning", "openai", encrypted)


def _other_item(item: Fields) -> Iterator[Piece]:
    yield text_of(item)


_ITEMS: dict[str, Callable[[Fields], Iterator[Piece]]] = {
    "message": _message,
    "function_call": _function_call,
    "custom_tool_call": _custom_call,
    "local_shell_call": _shell_call,
    "shell_call": _shell_call,
    "function_call_output": _output,
    "custom_tool_call_output": _output,
    "local_shell_call_output": _output,
    "shell_call_output": _output,
    "apply_patch_call_output": _output,
    "computer_call_output": _screenshot,
    "reasoning": _reasoning,
    "compaction": _compaction,
    "compaction_summary": _compaction,
    "context_compaction": _compaction,
}
