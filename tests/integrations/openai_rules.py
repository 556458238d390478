"""The rules by which OpenAI's APIs refuse a request, as far as a client can break them.

`chat_refusal` and `responses_refusal` return the first rule that a request body breaks. The texts
are like those of the API.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from openai.types.chat.completion_create_params import CompletionCreateParamsBase
from openai.types.responses.response_create_params import ResponseCreateParamsBase

Body = dict[str, Any]

_CHAT_FIELDS = {*CompletionCreateParamsBase.__annotations__, "stream"}
_RESPONSES_FIELDS = {*ResponseCreateParamsBase.__annotations__, "stream"}

# The fields of each message of a chat: those that it must have, and those that it may have.
_MESSAGES: dict[str, tuple[str, str]] = {
    "system": ("content", "name"),
    "developer": ("content", "name"),
    "user": ("content", "name"),
    "assistant": ("", "content name refusal annotations audio tool_calls function_call"),
    "tool": ("content tool_call_id", ""),
}
# The fields of each part of a content, without `type`.
_CHAT_PARTS = {
    "text": ("text", ""),
    "image_url": ("image_url", ""),
    "file": ("file", ""),
    "refusal": ("refusal", ""),
}
_CHAT_PARTS_OF = {
    "user": {"text", "image_url", "file"},
    "assistant": {"text", "refusal"},
}
# The fields of each item of the Responses API, without `type`.
_ITEMS = {
    "message": ("role content", "id status phase"),
    "function_call": ("call_id name arguments", "id status namespace"),
    "function_call_output": ("call_id output", "id status"),
    "custom_tool_call": ("call_id name input", "id status namespace"),
    "custom_tool_call_output": ("call_id output", "id"),
    "reasoning": ("id summary", "content encrypted_content status"),
    "web_search_call": ("id status action", ""),
    "item_reference": ("id", ""),
    "compaction": ("encrypted_content", "id"),
}
_PARTS = {
    "input_text": ("text", ""),
    "input_image": ("", "image_url file_id detail"),
    "input_file": ("", "file_id file_data file_url filename"),
    "output_text": ("text", "annotations logprobs"),
    "refusal": ("refusal", ""),
}
_PARTS_OF_REPLY = {"output_text", "refusal"}
_CALLS = {"function_call", "custom_tool_call"}


def sealed(item: str) -> str:
    """Return the encrypted content that the API gives the reasoning with this id."""
    return hashlib.sha256(item.encode()).hexdigest() * 4


def chat_refusal(body: Body) -> str | None:
    """Return why Chat Completions refuses this body, None if it accepts it."""
    return next(_chat_problems(body), None)


def responses_refusal(body: Body, made: Mapping[str, Body] | None = None) -> str | None:
    """Return why Responses refuses this body, None if it accepts it.

    `made` holds the items of earlier responses by their ids. An item that followed from reasoning
    has the reasoning's id in `_reasoning`.
    """
    return next(_responses_problems(body, made or {}), None)


def _fields(
    where: str, given: Mapping[str, Any], rule: tuple[str, str], *always: str
) -> Iterator[str]:
    required, optional = (set(names.split()) for names in rule)
    for name in sorted(given.keys() - required - optional - {*always}):
        yield f"Unknown parameter: '{where}.{name}'."
    for name in sorted(required - given.keys()):
        yield f"Missing required parameter: '{where}.{name}'."


def _chat_problems(body: Body) -> Iterator[str]:
    for name in sorted(body.keys() - _CHAT_FIELDS):
        yield f"Unrecognized request argument supplied: {name}"
    for name in sorted({"model", "messages"} - body.keys()):
        yield f"Missing required parameter: '{name}'."
    if "stream_options" in body and not body.get("stream"):
        yield "The 'stream_options' parameter is only allowed when 'stream' is enabled."
    if not body["messages"]:
        yield "Invalid 'messages': empty array."
    for i, message in enumerate(body["messages"]):
        yield from _chat_message_problems(f"messages[{i}]", message)
    yield from _chat_pair_problems(body["messages"])


def _chat_message_problems(where: str, message: Body) -> Iterator[str]:
    role = message.get("role")
    if role not in _MESSAGES:
        yield f"Invalid value: '{role}'. ({where}.role)"
        return
    yield from _fields(where, message, _MESSAGES[role], "role")
    if "tool_calls" in message:
        yield from _chat_call_problems(f"{where}.tool_calls", message["tool_calls"])
    content = message.get("content")
    if content is None:
        if not message.get("tool_calls"):
            yield f"Invalid value for 'content': expected a string, got null. ({where})"
    elif isinstance(content, list):
        if not content:
            yield f"Invalid '{where}.content': empty array."
        for j, part in enumerate(content):
            kind = part.get("type")
            if kind not in _CHAT_PARTS_OF.get(role, {"text"}):
                yield f"Invalid value: '{kind}'. ({where}.content[{j}].type)"
            else:
                yield from _fields(f"{where}.content[{j}]", part, _CHAT_PARTS[kind], "type")
    elif not isinstance(content, str):
        yield f"Invalid type for '{where}.content'."


def _chat_call_problems(where: str, calls: Sequence[Body]) -> Iterator[str]:
    if not calls:
        yield f"Invalid '{where}': empty array. Expected an array with minimum length 1."
    for j, call in enumerate(calls):
        yield from _fields(f"{where}[{j}]", call, ("id type function", ""))
        yield from _fields(f"{where}[{j}].function", call["function"], ("name arguments", ""))
        if not isinstance(call["function"]["arguments"], str):
            yield f"Invalid type for '{where}[{j}].function.arguments'."


def _chat_pair_problems(messages: Sequence[Body]) -> Iterator[str]:
    pending: list[str] = []
    for i, message in enumerate(messages):
        if message["role"] == "tool":
            if message["tool_call_id"] not in pending:
                yield (
                    f"messages[{i}]: messages with role 'tool' must be a response to a preceeding"
                    " message with 'tool_calls'."
                )
            else:
                pending.remove(message["tool_call_id"])
            continue
        if pending:
            break
        pending = [call["id"] for call in message.get("tool_calls") or ()]
    if pending:
        yield (
            "An assistant message with 'tool_calls' must be followed by tool messages responding to"
            f" each 'tool_call_id'. The following did not have response messages: {pending}"
        )


def _responses_problems(body: Body, made: Mapping[str, Body]) -> Iterator[str]:
    for name in sorted(body.keys() - _RESPONSES_FIELDS):
        yield f"Unknown parameter: '{name}'."
    if "model" not in body:
        yield "Missing required parameter: 'model'."
    given = body.get("input")
    if isinstance(given, str):
        return
    if not given:
        yield "Invalid 'input': empty array."
        return
    for i, item in enumerate(given):
        yield from _item_problems(f"input[{i}]", item)
    if not body.get("previous_response_id") and not body.get("conversation"):
        yield from _item_pair_problems(given)
    yield from _made_problems(given, made)


def _item_problems(where: str, item: Body) -> Iterator[str]:
    kind = item.get("type", "message")
    if kind not in _ITEMS:
        yield f"Invalid value: '{kind}'. ({where}.type)"
        return
    yield from _fields(where, item, _ITEMS[kind], "type")
    if kind in _CALLS and not isinstance(item.get("arguments", item.get("input")), str):
        yield f"Invalid type for '{where}.arguments'."
    if kind == "message" and item["role"] not in {"system", "developer", "user", "assistant"}:
        yield f"Invalid value: '{item['role']}'. ({where}.role)"
    content = item.get("content") if kind == "message" else item.get("output", "x")
    if content is None:
        yield f"Invalid type for '{where}.content': expected a string or an array, got null."
    if isinstance(content, list):
        if not content:
            yield f"Invalid '{where}.content': empty array."
        is_reply = item.get("role") == "assistant"
        for j, part in enumerate(content):
            name = part.get("type")
            if name not in _PARTS or (name in _PARTS_OF_REPLY) != is_reply:
                yield f"Invalid value: '{name}'. ({where}.content[{j}].type)"
            else:
                yield from _fields(f"{where}.content[{j}]", part, _PARTS[name], "type")


def _item_pair_problems(items: Sequence[Body]) -> Iterator[str]:
    calls: set[str] = set()
    answered: set[str] = set()
    for item in items:
        kind = item.get("type", "message")
        if kind in _CALLS:
            calls.add(item["call_id"])
        elif kind.endswith("_output"):
            if item["call_id"] not in calls - answered:
                yield f"No tool call found for function call output with call_id {item['call_id']}."
            answered.add(item["call_id"])
    for call in sorted(calls - answered):
        yield f"No tool output found for function call {call}."


def _made_problems(items: Sequence[Body], made: Mapping[str, Body]) -> Iterator[str]:
    """Yield what is wrong with items that the API made: their bytes, and their reasoning."""
    before: str | None = None
    for i, item in enumerate(items):
        kind = item.get("type", "message")
        known = made.get(item.get("id", ""), {})
        if kind == "reasoning":
            follower = items[i + 1] if i + 1 < len(items) else {}
            if made.get(follower.get("id", ""), {}).get("_reasoning") != item["id"]:
                yield (
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required"
                    " following item."
                )
            if item.get("encrypted_content") != sealed(item["id"]):
                yield f"The encrypted content of item {item['id']} could not be verified."
        needed = known.get("_reasoning")
        if needed is not None and before != needed:
            yield (
                f"Item '{item['id']}' of type '{kind}' was provided without its required"
                f" 'reasoning' item: '{needed}'."
            )
        if kind == "web_search_call":
            same = {name: value for name, value in known.items() if name != "_reasoning"}
            if json.dumps(same, sort_keys=True) != json.dumps(item, sort_keys=True):
                yield f"Item '{item['id']}' of type 'web_search_call' was changed."
        before = item.get("id") if kind == "reasoning" else None
