"""The rules of OpenAI's Responses API for a list of items, without the project's own code.

Source: OpenAI's API reference, "Create a response", and the errors of the API: an output needs its
call, a call its output, reasoning the item that it led to, and that item its reasoning. A client
returns encrypted reasoning, and items that it does not know, as it received them.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any

Item = dict[str, Any]

_CALLS = (
    "function_call",
    "custom_tool_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
    "computer_call",
)
_OUTPUTS = tuple(f"{kind}_output" for kind in _CALLS)
_CARRIED_OUT = ("web_search_call", "file_search_call", "code_interpreter_call", "mcp_call")
_KNOWN = (*_CALLS, *_OUTPUTS, *_CARRIED_OUT, "message", "reasoning")
# What a client leaves unchanged although it is half of a pair, and the field of its id.
_ASKING = {"mcp_approval_request": "id", "tool_search_call": "call_id", "program": "call_id"}
_ANSWERING = {
    "mcp_approval_response": "approval_request_id",
    "tool_search_output": "call_id",
    "program_output": "call_id",
}


def type_of(message: Item) -> str | None:
    """Return the type of an item; None for a message of another API, and for an easy message."""
    kind = message.get("type")
    return str(kind) if kind == "message" or (kind and "role" not in message) else None


def role_of(message: Item) -> str:
    """Return the role of a message of any API; what the model made is the assistant's."""
    if "role" in message:
        return "assistant" if message["role"] == "model" else str(message["role"])
    of_client = type_of(message) in (*_OUTPUTS, "mcp_approval_response", "tool_search_output")
    return "tool" if of_client and not is_hosted(message) else "assistant"


def is_hosted(message: Item) -> bool:
    """Return whether an item is the output of a shell of the provider's, which has an id."""
    return type_of(message) == "shell_call_output" and "id" in message


def served_in(message: Item) -> list[str]:
    """Return the id of a question or of a call that the provider carries out."""
    field = _ASKING.get(str(type_of(message)))
    return [message[field]] if field else []


def answers_in(message: Item) -> list[str]:
    """Return the id of what an item answers that is no output of a call."""
    field = _ANSWERING.get(str(type_of(message)))
    return [message[field]] if field else []


def calls_in(message: Item) -> list[str]:
    """Return the id of the call that an item is."""
    return [message["call_id"]] if type_of(message) in _CALLS else []


def results_in(message: Item) -> list[str]:
    """Return the id of the call whose output an item is; a local shell's may lack a `call_id`."""
    if type_of(message) not in _OUTPUTS:
        return []
    return [message["call_id"] if "call_id" in message else message["id"]]


def named_by_call(messages: Sequence[Any]) -> list[Any]:
    """Return a list in which each output of a local shell names its call by the `call_id`.

    OpenAI's types give such an output an `id` only; it may be that of the call's item.
    """
    ids: dict[str, str] = {}
    found: list[Any] = []
    for message in messages:
        kind = type_of(message) if isinstance(message, dict) else None
        if kind == "local_shell_call" and "id" in message:
            ids[message["id"]] = message["call_id"]
        by_item = kind == "local_shell_call_output" and "call_id" not in message
        known = ids.get(message["id"]) if by_item else None
        found.append(message if known is None else message | {"call_id": known})
    return found


def refused(messages: Sequence[Item]) -> Counter[str]:
    """Count what the API refuses in the items of a list: calls and reasoning that stand alone."""
    found: Counter[str] = Counter()
    follows: Item | None = None  # what is behind the reasoning
    for message in reversed(messages):
        if type_of(message) != "reasoning":
            follows = message
        elif follows is None or role_of(follows) != "assistant":
            found["reasoning without the item that it led to"] += 1
    return found


def broken_promises(before: Sequence[Item], after: Sequence[Item]) -> Counter[str]:
    """Count what an edit may never do to the items of a list."""
    lost = Counter(map(_json, _not_known(before)))
    lost.subtract(map(_json, _not_known(after)))
    new = Counter(map(_json, _of_type("reasoning", after)))
    new.subtract(map(_json, _of_type("reasoning", before)))
    bonds = dict(_bonds(before))
    parted = [led for led, reasons in _bonds(after) if not bonds.get(led, set()) <= reasons]
    return +Counter(
        {
            "an item of an unknown type changed or is gone": sum(map(abs, lost.values())),
            "the bytes of reasoning changed": sum((+new).values()),
            "an item without the reasoning that led to it": len(parted),
        }
    )


def _of_type(kind: str, messages: Sequence[Item]) -> Iterator[Item]:
    return (message for message in messages if type_of(message) == kind)


def _not_known(messages: Sequence[Item]) -> Iterator[Item]:
    kinds = ((type_of(message), message) for message in messages)
    return (
        message
        for kind, message in kinds
        if kind is not None and (kind not in _KNOWN or is_hosted(message))
    )


def _bonds(messages: Sequence[Item]) -> Iterator[tuple[str, set[str]]]:
    """Yield the id of each item that the model made, with the reasoning right before it."""
    for i, message in enumerate(messages):
        is_led = type_of(message) not in {None, "reasoning"} and _is_models(message)
        if is_led and "id" in message:
            reply = [*takewhile(_is_models, reversed(messages[:i]))]
            while reply and type_of(reply[0]) != "reasoning":
                del reply[0]
            reasons = takewhile(lambda one: type_of(one) == "reasoning", reply)
            yield message["id"], set(map(_json, reasons))


def _is_models(message: Item) -> bool:
    return role_of(message) == "assistant"


def _json(value: object) -> str:
    return json.dumps(value, sort_keys=True)
