"""The tokens of a whole request: its texts, and what the provider's API adds to them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from policyctx.tokens.blocks import blocks_of, text_of
from policyctx.tokens.media import DOCUMENTS, IMAGES, media_parts, total
from policyctx.tokens.provider_models import provider_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.tokens.blocks import Block, Message
    from policyctx.tokens.counter import TokenCounter
    from policyctx.tokens.media import Part
    from policyctx.tokens.provider_models import ProviderModel, ToolMarks


def request_tokens(
    counter: TokenCounter,
    messages: Sequence[Message],
    tools: object = None,
    system: object = None,
    *,
    model: ProviderModel | None = None,
) -> int:
    """Return the tokens of a request, by the documented constants of its provider.

    `tools` are the schemas on offer and `system` the prompt beside the messages, as either API
    takes them. `model` is found by the shape of the messages where it is not given.
    """
    if model is None:
        model = provider_model(messages)
    return total(_request_parts(messages, tools, system, model), counter)


def message_tokens(counter: TokenCounter, message: Message, model: ProviderModel) -> int:
    """Return what one message adds to a request; the request's own parts come once on top."""
    return total(_message_parts(message, model), counter)


def _request_parts(
    messages: Sequence[Message], tools: object, system: object, model: ProviderModel
) -> Iterator[Part]:
    yield model.request
    for message in messages:
        yield from _message_parts(message, model)
    yield from _content(system, model)
    if tools:
        yield model.tools
        for tool in blocks_of(tools):
            yield from _tool(tool, model)


def _message_parts(message: Message, model: ProviderModel) -> Iterator[Part]:
    yield model.message
    if message.get("role") in {"tool", "function"}:
        yield model.tool_result
    if name := message.get("name"):
        yield model.speaker
        yield text_of(name)
    yield from _content(message.get("content"), model)
    for call in blocks_of(message.get("tool_calls")):
        function = call.get("function")
        function = function if isinstance(function, Mapping) else call
        yield model.tool_call
        yield text_of(function.get("name"))
        yield text_of(function.get("arguments"))


def _content(content: object, model: ProviderModel) -> Iterator[Part]:
    if isinstance(content, str):
        yield content
    for block in blocks_of(content):
        yield from _block(block, model)


def _block(block: Block, model: ProviderModel) -> Iterator[Part]:
    kind = block.get("type")
    if kind in IMAGES or kind in DOCUMENTS:
        yield from media_parts(block, model)
    elif kind == "tool_use":
        yield model.tool_call
        yield text_of(block.get("name"))
        yield text_of(block.get("input"))
    elif kind == "tool_result":
        yield model.tool_result
        yield from _content(block.get("content"), model)
    elif kind in {"thinking", "redacted_thinking"}:
        yield text_of(block.get("thinking") or block.get("data"))
    elif isinstance(block.get("text"), str):
        yield block["text"]
    else:
        yield text_of(block)


def _tool(tool: Block, model: ProviderModel) -> Iterator[Part]:
    marks = model.tool_marks
    if marks is None:
        yield text_of(tool)
        return
    function = tool.get("function")
    function = function if isinstance(function, Mapping) else tool
    yield marks.tool
    yield f"{function.get('name', '')}:{_words(function)}"
    yield from _properties(function.get("parameters"), marks)


def _properties(schema: object, marks: ToolMarks) -> Iterator[Part]:
    """Yield what an object's schema says, its inner objects as well."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not properties or not isinstance(properties, Mapping):
        return
    yield marks.properties
    for name, value in properties.items():
        inner = value if isinstance(value, Mapping) else {}
        yield marks.property
        yield f"{name}:{text_of(inner.get('type'))}:{_words(inner)}"
        choices = inner.get("enum")
        if isinstance(choices, list) and choices:
            yield marks.enum
            for choice in choices:
                yield marks.value
                yield text_of(choice)
        yield from _properties(inner, marks)
        yield from _properties(inner.get("items"), marks)


def _words(schema: Block) -> str:
    return text_of(schema.get("description")).removesuffix(".")
