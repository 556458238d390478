"""Messages of OpenAI's chat API: content parts, `tool_calls`, and results of the role `tool`.

A message of the role `tool` or `function` is one result, unless it contains `tool_result` blocks,
as in the PRD tool-direct-offload (F-001). Images and documents may be in either.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from policyctx.definitions.items import Message, Path
from policyctx.messages.json_text import as_mapping, json_text
from policyctx.messages.shapes import blocks
from policyctx.messages.shapes.anthropic import AnthropicShape, edit_content, has_result_blocks
from policyctx.messages.shapes.shape import RESULT_ROLES, Part

# A call of OpenAI has an id, a type and the function.
_CALL_FIELDS = 3


class ChatShape(AnthropicShape):
    """Reads and edits messages that have calls beside their content, or are results."""

    takes_markers = False

    def recognises(self, message: object) -> bool:
        """Return whether this is a result, or has a field that only the chat API has."""
        return isinstance(message, dict) and (
            message.get("role") in RESULT_ROLES or not blocks.BESIDE_CONTENT.isdisjoint(message)
        )

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with the role, the content or the calls."""
        return (
            blocks.wrong_with_role(message)
            or blocks.wrong_with_content(message)
            or (None if _is_result(message) else blocks.wrong_with_blocks(message))
            or _wrong_with_calls(message)
        )

    def parts(self, message: Message) -> list[Part]:
        """Return the result that the message is, or the parts of its content and its calls."""
        if _is_result(message):
            call_id, tool = message.get("tool_call_id"), message.get("name")
            return blocks.result_parts(
                ("content",), message.get("content"), blocks.word(call_id), blocks.word(tool)
            )
        parts = super().parts(message)
        for i, call in enumerate(message.get("tool_calls") or ()):
            parts.append(_call(("tool_calls", i), as_mapping(call)))
        if call := message.get("function_call"):
            parts.append(_call(("function_call",), as_mapping(call)))
        return parts

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a deep copy with the parts at these paths edited; None if it is empty then."""
        is_result = _is_result(message)
        if is_result and texts.get(("content",), "") is None:
            return None
        new = blocks.copied(message)
        for path in sorted(texts, reverse=True):  # so that a removal moves no later block
            if path[0] == "content":
                edit_content(new, path, texts[path], is_result=is_result)
            else:
                _edit_call(new, path, texts[path])
        if message.get("content") and not new.get("content") and not is_result:
            if message["role"] in RESULT_ROLES:
                return None
            new["content"] = None  # the only empty content that is allowed beside calls
        return None if self.is_empty(new) else new

    def is_empty(self, message: Message) -> bool:
        """Return whether nothing is said and nothing called; a result may be empty."""
        if message["role"] in RESULT_ROLES or message.get("content"):
            return False
        return not any(message.get(key) for key in blocks.BESIDE_CONTENT)


def _is_result(message: Message) -> bool:
    """Return whether the message as a whole is the result of one call."""
    if message["role"] not in RESULT_ROLES:
        return False
    return message.get("tool_call_id") is not None or not has_result_blocks(message)


def _call(path: Path, call: Mapping[str, Any]) -> Part:
    *holders, field = input_path(call)
    function = call[holders[0]] if holders else call
    given = function.get(field)
    text = given if isinstance(given, str) else json_text(given)
    tool, call_id = blocks.word(function.get("name")), blocks.word(call.get("id"))
    part = Part(path, "tool_call", text, text, (), tool, call_id)
    return part._replace(signed=True) if len(call) > _CALL_FIELDS and _is_signed(call) else part


def _is_signed(call: Mapping[str, Any]) -> bool:
    """Return whether Gemini signed a call: as Google's API writes it, or as LiteLLM does."""
    for field in ("extra_content", "provider_specific_fields"):
        held = as_mapping(call.get(field) or {})
        if "thought_signature" in {**held, **as_mapping(held.get("google") or {})}:
            return True
    return False


def input_path(call: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the path of the input within a call."""
    for holder, field in (("function", "arguments"), ("custom", "input")):
        held = call.get(holder)
        if type(held) is dict or isinstance(held, Mapping):  # the first test is the quick one
            return holder, field
    return ("arguments",)


def _edit_call(message: Message, path: Path, text: str | None) -> None:
    """Give a call a new input, in the form of the old one: a JSON text or a value; or remove it."""
    if text is not None:
        inner = (*path, *input_path(as_mapping(blocks.at(message, path))))
        given = blocks.at(message, inner)
        new = text if isinstance(given, str) else blocks.new_input(given, text)
        blocks.put(message, inner, new)
    elif path == ("function_call",):
        del message["function_call"]
    else:
        calls = blocks.list_at(message, path[:1])
        del calls[int(path[1])]
        if not calls:
            del message["tool_calls"]


def _wrong_with_calls(message: Mapping[str, Any]) -> str | None:
    calls, call = message.get("tool_calls"), message.get("function_call")
    if call is not None and blocks.is_no_object(call):
        return f'expected "function_call" to be an object, got {blocks.named(call)}'
    if calls is None:
        return None
    if isinstance(calls, str | Mapping) or not isinstance(calls, Sequence):
        return f'expected "tool_calls" to be a list of objects, got {blocks.named(calls)}'
    odd = next((call for call in calls if blocks.is_no_object(call)), ...)
    return None if odd is ... else f'expected "tool_calls" to hold objects, got {blocks.named(odd)}'
