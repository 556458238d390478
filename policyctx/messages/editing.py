"""From decided edits back to messages: what changes is copied, or edited in place.

The input of a call is edited as a JSON text: long strings in it are replaced, and it stays an
object.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from policyctx.definitions.items import (
    MEDIA_TYPES,
    UNKNOWN,
    Item,
    Medium,
    Message,
    Piece,
    PlainValue,
    Provider,
    RequestContent,
    RequestMark,
)
from policyctx.errors import MessagesError, ShapeError, SummaryError
from policyctx.messages import markers
from policyctx.messages.json_text import JSON, as_message, compact_json, text_of
from policyctx.messages.shapes.block_texts import DOCUMENTS, IMAGES, blocks_of, medium_of
from policyctx.messages.shapes.built_in import BUILT_IN, Shaped, Shapes
from policyctx.messages.shapes.responses import INPUT_FIELDS, OF_TEXT, OUTPUT_TYPES
from policyctx.messages.shapes.shape import RESULT_ROLES, SYSTEM_ROLES, head_of

# A string in a JSON text, and whether it is a key.
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"(?P<is_key>\s*:)?')
# The breakpoints that a request may have.
_MOST_MARKERS = 4
Fields: TypeAlias = Mapping[str, Any]

_OPENAI_ROLES = (*SYSTEM_ROLES, *RESULT_ROLES)
_OPENAI_PARTS = ("image_url", "input_image", "file", "input_file", "input_text", "output_text")


@dataclass(frozen=True, slots=True)
class Edit:
    """The edit of one item: a new text, or its removal.

    A text, the content of a result, and the whole block of an image or document are replaced by the
    text; a block that is replaced keeps its `cache_control`. For a call, `text` is the compact JSON
    of its new input.
    """

    item: Item
    text: str | None
    """The text that replaces the item; None removes it."""


def edited_message(
    message: Message, edits: Sequence[Edit], shapes: Shapes = BUILT_IN
) -> Message | None:
    """Return a new message with the edits made; None if nothing of it is left.

    Of an SDK's message object it is the dict that the SDK sends. There is at least one edit, and at
    most one for each item of this message. Raises `MessagesError` for a message that cannot be
    copied, `ShapeError` for a mistake of a host's shape, and `ValueError` for an edit that gives
    thinking a new text, changes a block of an unknown type, or gives a call an input that is not
    JSON.
    """
    return edited_shaped(shapes.shaped(message), edits)


def edited_shaped(shaped: Shaped, edits: Sequence[Edit]) -> Message | None:
    """Return what `edited_message` returns for a message whose shape is known."""
    for item, text in ((edit.item, edit.text) for edit in edits):
        if item.kind == UNKNOWN or (item.kind == "thinking" and text is not None):
            raise ValueError(f"an item of kind {item.kind} keeps its bytes: {item.item_id}")
    index = edits[0].item.message
    try:
        return shaped.shape.replaced(shaped.message, {edit.item.path: edit.text for edit in edits})
    except ShapeError as error:
        raise error.at(index) from error.__cause__
    except RecursionError as error:
        raise MessagesError(f"message {index}: nested too deeply", index=index) from error
    except TypeError as error:
        raise MessagesError(f"message {index}: cannot be copied: {error}", index=index) from error


def keep_structure(items: Iterable[Item], edits: Sequence[Edit]) -> bool:
    """Return whether edits of a message with these items replace nothing but texts by other texts.

    Such an edit breaks no rule of a provider: every part stays in its place, with its kind and its
    id. A text that may count as none does not count, and neither does a message with thinking.
    """
    for edit in edits:
        text, item = edit.text, edit.item
        if not text or text.isspace() or (item.kind in MEDIA_TYPES and not item.number):
            return False
    return all(item.kind != "thinking" for item in items)


def block_of(message: Message, item: Item, shapes: Shapes = BUILT_IN) -> JSON:
    """Return the block of an item as plain JSON; for the content of a message, the message."""
    shape, shaped = shapes.shaped(message)
    return shape.block(shaped, item.path)


def shortened_input(text: str, replacement: Callable[[str], str | None]) -> str | None:
    """Return the JSON text of a call's input with long strings replaced.

    `replacement` is called with each string value at any depth, in the order of `text`. If it
    returns a text, this replaces the string. Keys and all other bytes stay. Returns None if `text`
    is not a JSON object, or if nothing was replaced.
    """
    if not is_object(text):
        return None
    changed = False

    def replaced(found: re.Match[str]) -> str:
        nonlocal changed
        if found["is_key"] or (new := replacement(json.loads(found[0]))) is None:
            return found[0]
        changed = True
        return compact_json(new)

    new_text = _STRING.sub(replaced, text)
    return new_text if changed else None


def strings_in(call: Item) -> Iterator[str]:
    """Yield the string values of a call's input at any depth; the text if it is not an object."""
    return _strings(call.input or call.text)


def _strings(value: PlainValue) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def is_object(text: str) -> bool:
    """Return whether a text is a JSON object."""
    try:
        return text.lstrip()[:1] == "{" and isinstance(json.loads(text), dict)
    except (RecursionError, ValueError):
        return False


class SessionRequest(NamedTuple):
    """The request that the session would send up to the end of what is summarised."""

    messages: Sequence[Message]
    system: object = None
    """What the caller sends beside the messages; None for nothing."""
    tools: object = None


def in_place_anthropic(request: SessionRequest, instruction: str) -> dict[str, Any]:
    """Return `system`, `tools` and `messages` of a request to Anthropic's endpoint.

    The last block of the conversation has a cache breakpoint, so that the provider looks for what
    it has cached from there on back. Raises `SummaryError` for messages of another API.
    """
    messages, system = [*request.messages], request.system
    head = head_of(one.get("role", "") if isinstance(one, Mapping) else "" for one in messages)
    if head and system is None:
        system = "\n\n".join(str(message.get("content") or "") for message in messages[:head])
    messages = messages[head:]
    if not messages or any(not _is_anthropic(message) for message in messages):
        raise _unsendable("anthropic", "Anthropic's messages API")
    beside = len(markers.marked_beside(system)) + len(markers.marked_beside(request.tools))
    messages = _with_breakpoint(messages, _MOST_MARKERS - beside)
    found: dict[str, Any] = {"messages": [*messages, {"role": "user", "content": instruction}]}
    found |= {} if system in (None, "", []) else {"system": system}
    return found | ({"tools": request.tools} if request.tools else {})


def in_place_chat(request: SessionRequest, instruction: str) -> dict[str, Any]:
    """Return `messages` and `tools` of a request to OpenAI's chat completions endpoint.

    Raises `SummaryError` for messages of another API.
    """
    messages = [*request.messages]
    if any(not _is_chat(message) for message in messages):
        raise _unsendable("openai", "OpenAI's chat API")
    if isinstance(request.system, str) and request.system:
        messages.insert(0, {"role": "system", "content": request.system})
    asked = {"role": "user", "content": instruction}
    found: dict[str, Any] = {"messages": [*messages, asked]}
    return found | ({"tools": request.tools} if request.tools else {})


def _unsendable(by: str, api: str) -> SummaryError:
    why = f"`reuse_cache: true` with `by: {by}` sends the session's messages as they are, and these"
    return SummaryError(f"{why} are not messages of {api}", is_final=True)


def _is_anthropic(message: Message) -> bool:
    return (
        isinstance(message, Mapping)
        and message.get("role") in ("user", "assistant")
        and not message.get("tool_calls")
    )


def _is_chat(message: Message) -> bool:
    if not isinstance(message, Mapping) or not isinstance(message.get("role"), str):
        return False
    content = message.get("content")
    blocks = content if isinstance(content, list | tuple) else ()
    kinds = {block.get("type") for block in blocks if isinstance(block, Mapping)}
    return not kinds & {"tool_use", "tool_result", "input_text", "output_text"}


def _with_breakpoint(messages: list[Message], room: int) -> list[Message]:
    """Return the messages with a marker on the last block that may have one.

    Of the markers that there are, those of the newest messages stay, as far as there is room.
    """
    last = next((i for i in reversed(range(len(messages))) if _markable(messages[i])), None)
    if last is None or room < 1:
        return messages
    kept = 1
    for i in reversed(range(len(messages))):
        if i == last:
            messages[i] = _marked(messages[i])
        elif there := len(markers.markers_of(messages[i])):
            kept += there
            messages[i] = messages[i] if kept <= room else markers.unmarked(messages[i])
    return messages


def _markable(message: Message) -> list[int]:
    """Return the indices of the blocks of a message that may have a marker."""
    if not isinstance(message.get("content"), str | list):
        return []
    return [
        i for i, block in enumerate(markers.cache_blocks(message)) if block.kind != "unmarkable"
    ]


def _marked(message: Message) -> Message:
    """Return a message with one marker, on the last block that may have one."""
    at, content = _markable(message)[-1], message["content"]
    if isinstance(content, str):
        block = {"type": "text", "text": content, "cache_control": markers.new_marker("5m")}
        return {**message, "content": [block]}
    if markers.is_plain(message):
        return markers.with_markers(message, {("content", at): markers.new_marker("5m")})
    blocks = [
        markers.marked_with(block, "5m") if i == at else block for i, block in enumerate(content)
    ]
    return {**message, "content": blocks}


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
    yield RequestMark.MESSAGE
    if message.get("role") in RESULT_ROLES:
        yield RequestMark.TOOL_RESULT
    if name := message.get("name"):
        yield RequestMark.SPEAKER
        yield text_of(name)
    content = message.get("content")
    yield from _content(_with_refusals(content) if message.get("type") == "message" else content)
    for call in blocks_of(message.get("tool_calls")):
        function = call.get("function")
        function = function if isinstance(function, Mapping) else call
        yield RequestMark.TOOL_CALL
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
        yield RequestMark.TOOL_RESULT
        yield from _content(block.get("content"))
    elif kind in {"thinking", "redacted_thinking"}:
        yield text_of(block.get("thinking") or block.get("data"))
    elif isinstance(block.get("text"), str):
        yield block["text"]
    else:
        yield text_of(block)


def _call(*texts: object) -> Iterator[Piece]:
    yield RequestMark.TOOL_CALL
    yield from map(text_of, texts)


def _client_call(item: Fields) -> Iterator[Piece]:
    kind = item["type"]
    given = item.get(INPUT_FIELDS[kind])
    if kind in OF_TEXT:
        return _call(item.get("name"), given)
    return _call(item.get("actions") if given is None else given)


def _output(item: Fields) -> Iterator[Piece]:
    output = item.get("output")
    yield RequestMark.MESSAGE
    yield RequestMark.TOOL_RESULT
    yield from _content(output if isinstance(output, list | tuple) else text_of(output))


def _screenshot(item: Fields) -> Iterator[Piece]:
    output = item.get("output")
    if isinstance(output, Mapping) and isinstance(url := output.get("image_url"), str):
        yield RequestMark.MESSAGE
        yield RequestMark.TOOL_RESULT
        yield medium_of({"type": "input_image", "image_url": url})
    else:
        yield from _other_item(item)


def _reasoning(item: Fields) -> Iterator[Piece]:
    """Yield the texts of the reasoning, which stand for the encrypted content if there are any."""
    holders = (item.get("summary"), item.get("content"))
    texts = [piece for held in holders for piece in _content(held) if piece]
    yield from texts or _encrypted(item)


def _compaction(item: Fields) -> Iterator[Piece]:
    yield from list(_encrypted(item)) or _other_item(item)


def _encrypted(item: Fields) -> Iterator[Piece]:
    if isinstance(encrypted := item.get("encrypted_content"), str):
        yield Medium("reasoning", "openai", encrypted)


def _other_item(item: Fields) -> Iterator[Piece]:
    yield text_of(item)


_ITEMS: dict[str, Callable[[Fields], Iterator[Piece]]] = {
    "message": _message,
    **dict.fromkeys(INPUT_FIELDS, _client_call),
    **dict.fromkeys(OUTPUT_TYPES, _output),
    "computer_call_output": _screenshot,
    "reasoning": _reasoning,
    "compaction": _compaction,
    "compaction_summary": _compaction,
    "context_compaction": _compaction,
}
