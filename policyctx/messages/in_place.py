"""A summary that is asked for at the end of the session's own request.

The request has the session's model, system prompt, tools and messages, and an instruction behind
them. So the provider reads the conversation from its cache instead of processing it again. Neither
`tool_choice` nor other options are set, since a change of them would lose the cache.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from policyctx.definitions.items import Message
from policyctx.errors import SummaryError
from policyctx.messages.cache_blocks import cache_blocks, marked_beside
from policyctx.messages.markers import (
    is_plain,
    marked_with,
    markers_of,
    new_marker,
    unmarked,
    with_markers,
)

# The breakpoints that a request may have.
_MOST_MARKERS = 4
_SYSTEM_ROLES = ("system", "developer")


@dataclass(frozen=True, slots=True)
class SessionRequest:
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
    head = _leading(messages)
    if head and system is None:
        system = "\n\n".join(str(message.get("content") or "") for message in messages[:head])
    messages = messages[head:]
    if not messages or any(not _is_anthropic(message) for message in messages):
        raise _unsendable("anthropic", "Anthropic's messages API")
    beside = len(marked_beside(system)) + len(marked_beside(request.tools))
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


def _leading(messages: Sequence[Message]) -> int:
    """Return how many system messages a list begins with."""
    for i, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in _SYSTEM_ROLES:
            return i
    return len(messages)


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
        elif there := len(markers_of(messages[i])):
            kept += there
            messages[i] = messages[i] if kept <= room else unmarked(messages[i])
    return messages


def _markable(message: Message) -> list[int]:
    """Return the indices of the blocks of a message that may have a marker."""
    if not isinstance(message.get("content"), str | list):
        return []
    return [i for i, block in enumerate(cache_blocks(message)) if block.kind != "unmarkable"]


def _marked(message: Message) -> Message:
    """Return a message with one marker, on the last block that may have one."""
    at, content = _markable(message)[-1], message["content"]
    if isinstance(content, str):
        block = {"type": "text", "text": content, "cache_control": new_marker("5m")}
        return {**message, "content": [block]}
    if is_plain(message):
        return with_markers(message, {("content", at): new_marker("5m")})
    blocks = [marked_with(block, "5m") if i == at else block for i, block in enumerate(content)]
    return {**message, "content": blocks}
