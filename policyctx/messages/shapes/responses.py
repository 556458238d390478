"""Items of OpenAI's Responses API: messages, calls, results and reasoning, each an item of its own.

Source: OpenAI's API reference, "Create a response", `input`. Reasoning keeps its bytes and its
place before what it led to. The outputs of tools that the client runs are results. Items that the
provider itself carries out, and items of other types, are left unchanged; what no summary could
tell survives a compaction.
"""

from collections.abc import Mapping
from itertools import chain
from typing import Any

from policyctx.definitions.items import Medium, Message, Path, PlainValue
from policyctx.messages.json_text import Text, json_text
from policyctx.messages.shapes import blocks
from policyctx.messages.shapes.anthropic import edit_content
from policyctx.messages.shapes.block_texts import medium_of
from policyctx.messages.shapes.shape import EMPTY_INPUT, Part

# The field with the input of a call of the client's tools, by type of item; the type of its result
# ends with `_output`.
INPUT_FIELDS = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
}
# The calls whose input is text; that of the built-in tools is an object with a fixed form.
OF_TEXT = ("function_call", "custom_tool_call")
# What an input of this form is without its content, as the API takes it; it reads as `{}`.
_EMPTIED: dict[str, dict[str, Any]] = {
    "local_shell_call": {"command": []},
    "shell_call": {"commands": []},
    "apply_patch_call": {"diff": ""},
}
# The calls whose outputs have no `call_id`, but an `id` that may be that of the call's item.
_OF_ITEM_ID = ("local_shell_call",)
OUTPUT_TYPES = frozenset(f"{kind}_output" for kind in INPUT_FIELDS)
# The two halves of what stays together and is left unchanged, by type of item: the field with the
# id that the other half has too.
_ASKING = {"mcp_approval_request": "id", "tool_search_call": "call_id", "program": "call_id"}
_ANSWERING = {
    "mcp_approval_response": "approval_request_id",
    "tool_search_output": "call_id",
    "program_output": "call_id",
    "shell_call_output": "call_id",
}
# Answers that come from the client although their type does not say so.
_OF_CLIENT = "mcp_approval_response"
# The place of a picture, as base64 text or a data URL, by the type of an item that the provider or
# the computer of the agent makes.
_PICTURES: dict[str, tuple[str, ...]] = {
    "image_generation_call": ("result",),
    "computer_call_output": ("output", "image_url"),
}
# Calls that the provider has carried out, whole in one item.
_CARRIED_OUT = ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call")
_KNOWN = frozenset({*INPUT_FIELDS, *OUTPUT_TYPES, *_CARRIED_OUT, "message", "reasoning"})
# A message is one where it has a role.
ITEM_TYPES = (_KNOWN - {"message"}).union(_ASKING, _ANSWERING, ("image_generation_call",))
# Types of items that no model writes, though they may come with its reply.
BESIDE_REPLIES = frozenset({
    "additional_tools", "compaction", "compaction_trigger", "configuration_update",
    "item_reference", "mcp_list_tools",
})  # fmt: skip
# What Anthropic's API adds to a message of this type in a response.
_OF_ANTHROPIC = frozenset({"usage", "stop_reason"})
_ENDED = {"type": "exit", "exit_code": 0}


class ResponsesShape(blocks.DictShape):
    """Reads and edits the items of the Responses API; a reply of the model is several of them."""

    splits_replies = True

    def recognises(self, message: object) -> bool:
        """Return whether this is a dict with the type of an item rather than of a block."""
        if not isinstance(message, dict) or not isinstance(kind := message.get("type"), str):
            return False
        if kind == "message":
            return "role" in message and _OF_ANTHROPIC.isdisjoint(message)
        return "role" not in message and kind not in blocks.BLOCK_TYPES

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with a message's role or content, or with the input of a call."""
        kind = message["type"]
        if kind == "message":
            return blocks.wrong_with_message(message)
        field = INPUT_FIELDS.get(kind) if kind in OF_TEXT else None
        given = None if field is None else message.get(field)
        if given is not None and not isinstance(given, str):
            return f'expected "{field}" to be a string, got {blocks.named(given)}'
        return None

    def role(self, message: Message) -> str:
        """Return the role of a message; a result has the role `tool`, any other `assistant`."""
        kind: str = message["type"]
        if kind == "message":
            role: str = message["role"]
            return role
        is_clients = kind == _OF_CLIENT or (kind.endswith("_output") and not _is_hosted(message))
        return "tool" if is_clients else "assistant"

    def parts(self, message: Message) -> list[Part]:
        """Return the parts of a message; any other item is one part, with the media in a result."""
        kind = message["type"]
        if kind == "message":
            return blocks.content_parts(message.get("content"), message["role"])
        if kind in INPUT_FIELDS:
            return [_call(message)]
        if kind in OUTPUT_TYPES and not _is_hosted(message):
            return _result(message)
        if kind == "reasoning":
            return [_reasoning(message)]
        if kind in _PICTURES:
            return [_picture(message)]
        asks = _ASKING.get(kind)
        call_id = blocks.word(message.get(asks or _ANSWERING.get(kind, "")))
        tool = kind if asks and call_id else None
        return [blocks.unknown_part((), message)._replace(tool=tool, call_id=call_id)]

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a deep copy with the parts at these paths edited; None if nothing is left."""
        kind = message["type"]
        new = blocks.copied(message)
        for path in sorted(texts, reverse=True):  # so that a removal moves no later block
            text = texts[path]
            if len(path) > 1:
                edit_content(new, path, text, is_result=path[0] == "output")
            elif text is None:
                return None
            elif kind in INPUT_FIELDS and kind not in OF_TEXT:
                new[path[0]] = _new_input(kind, new[path[0]], text)
            elif _shell_outputs(new) is not None:
                new["output"] = _new_outputs(new["output"], text)
            else:
                new[path[0]] = text
        return None if self.is_empty(new) else new

    def written(self, role: str, text: str) -> Message:
        """Return an item of the type `message` with one part."""
        kind = "output_text" if role == "assistant" else "input_text"
        return {"type": "message", "role": role, "content": [{"type": kind, "text": text}]}

    def written_with(self, text: str, message: Message, path: Path) -> Message | None:  # noqa: ARG002
        """Return a message with a text and the parts of the output; a screenshot is an image."""
        held = blocks.copied(message).get("output")
        new = self.written("user", text)
        new["content"] += held if isinstance(held, list) else [{**held, "type": "input_image"}]
        return new

    def is_empty(self, message: Message) -> bool:
        """Return whether this is a message without content."""
        return message["type"] == "message" and not message.get("content")

    def stays(self, message: Message) -> bool:
        """Return whether the item is of another type, such as a reference or a compaction.

        A call that was approved stays with the approval, which would ask for it again.
        """
        is_approved = message["type"] == "mcp_call" and bool(message.get("approval_request_id"))
        return message["type"] not in _KNOWN or _is_hosted(message) or is_approved


def is_plain_item(item: Message) -> bool:
    """Return whether a quick test shows a correct call of a function or its result."""
    kind = item.get("type")
    if kind == "function_call":
        return type(item.get("arguments")) is str and "role" not in item
    return kind == "function_call_output" and "role" not in item


def _call(item: Message) -> Part:
    kind: str = item["type"]
    field = INPUT_FIELDS[kind]
    given = item.get(field)
    text: Text
    if kind == "computer_call" or _is_deletion(given):  # a list: none of its fields is content
        text = json_text(item.get("actions") or [given])
    elif isinstance(given, str):
        text = given
    else:
        is_emptied = isinstance(given, dict) and _EMPTIED[kind].items() <= given.items()
        text = EMPTY_INPUT if is_emptied else json_text(given)
    of_text = kind in OF_TEXT
    tool = blocks.word(item.get("name")) if of_text else kind.removesuffix("_call")
    call_id, item_id = _call_id(item), blocks.word(item.get("id"))
    other_id = item_id if kind in _OF_ITEM_ID and item_id != call_id else None
    return Part((field,), "tool_call", text, text, (), tool, call_id, other_id=other_id)


def _new_input(kind: str, given: PlainValue, text: str) -> PlainValue:
    """Return the new input of a built-in tool; an empty one keeps the form of the old one."""
    new = blocks.new_input(given, text)
    return new if new or not isinstance(given, dict) else given | _EMPTIED[kind]


def _is_deletion(given: object) -> bool:
    """Whether the input of an `apply_patch_call` deletes a file, and so has no `diff`."""
    return isinstance(given, dict) and given.get("type") == "delete_file"


def _is_hosted(item: Message) -> bool:
    """Whether an output is of a tool that the provider ran; the client's outputs have no id."""
    kind: str = item["type"]
    has_id = kind in {"shell_call_output", "program_output"} and bool(item.get("id"))
    return has_id or (kind == "tool_search_output" and item.get("execution") == "server")


def _result(item: Message) -> list[Part]:
    """Return the result that an item is, with the media in it."""
    call_id, output = _call_id(item), item.get("output")
    if item["type"] in _PICTURES:
        picture = _picture(item)
        return [picture._replace(kind="tool_result", call_id=call_id, takes_text=False)]
    outputs = _shell_outputs(item)
    if outputs is None:
        error = item.get("status") == "failed"
        return blocks.result_parts(("output",), output, call_id, error=error)
    said = [text for one in outputs for text in (one.get("stdout"), one.get("stderr")) if text]
    ends = [one.get("outcome") for one in outputs]
    error = any(isinstance(end, dict) and end.get("exit_code") != 0 for end in ends)
    text = "\n".join(map(str, said))
    return [Part(("output",), "tool_result", text, text, call_id=call_id, error=error)]


def _shell_outputs(item: Message) -> list[dict[str, Any]] | None:
    """Return what the commands of a shell call said, None for an item of another form."""
    output = item.get("output")
    if item["type"] != "shell_call_output" or not isinstance(output, list):
        return None
    return output if all(isinstance(one, dict) for one in output) else None


def _new_outputs(outputs: list[dict[str, Any]], text: str) -> list[dict[str, Any]]:
    """Return the outputs of a shell call with one text for all; how each command ended stays."""
    ends = [one.get("outcome", _ENDED) for one in outputs] or [_ENDED]
    return [
        {"stdout": "" if i else text, "stderr": "", "outcome": end} for i, end in enumerate(ends)
    ]


def _picture(item: Message) -> Part:
    """Return an item that no text can replace; a picture counts by its pixels, not by its bytes."""
    *outer, name = _PICTURES[item["type"]]
    part, bare = blocks.unknown_part((), item), blocks.copied(item)
    holder = bare
    for key in outer:
        holder = holder.get(key)
        if not isinstance(holder, dict):
            return part
    picture = holder.pop(name, None)
    if not isinstance(picture, str) or not picture:
        return part
    medium = medium_of({"type": "input_image", "image_url": picture})
    return part._replace(counted=blocks.unknown_part((), bare).text, media=(medium,))


def _call_id(item: Mapping[str, Any]) -> str | None:
    given = blocks.word(item.get("call_id"))
    return blocks.word(item.get("id")) if given is None else given


def _reasoning(item: Mapping[str, Any]) -> Part:
    """Return the readable reasoning as the text, or its encrypted form if none is readable.

    The text that is billed cannot be read; without a summary its size is estimated.
    """
    given = (item.get("summary"), item.get("content"))
    shown = chain.from_iterable(parts for parts in given if isinstance(parts, list | tuple))
    texts = [str(part.get("text") or "") for part in shown if isinstance(part, dict)]
    words = "\n".join(text for text in texts if text)
    encrypted = str(item.get("encrypted_content") or "")
    media = () if words or not encrypted else (Medium("reasoning", "openai", encrypted),)
    return Part((), "thinking", words or encrypted, words, media)
