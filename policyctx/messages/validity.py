"""What a provider would refuse, compared before and after a plan.

What the input already suffered from is no reason to refuse the output.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from policyctx.messages.blocks import RESULT_ROLES, SYSTEM_ROLES
from policyctx.messages.items import compact_json
from policyctx.messages.reading import items_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.messages.items import Item, Message


def new_problems(
    before: Sequence[Message], after: Sequence[Message], *, items: Sequence[Item] | None = None
) -> list[str]:
    """Return a sentence for each rule that `after` breaks and `before` kept.

    `items` are those of `before`, for callers who have them already.
    """
    items_before, items_after = items_of(before) if items is None else items, items_of(after)
    broken = Counter(_broken(after, items_after)) - Counter(_broken(before, items_before))
    changed = _thinking(after, items_after) - _thinking(before, items_before)
    return [*broken.elements(), *["the bytes of a thinking block changed"] * changed.total()]


def _broken(messages: Sequence[Message], items: Sequence[Item]) -> Iterator[str]:
    first = next((m["role"] for m in messages if m["role"] not in SYSTEM_ROLES), "user")
    if first == "assistant":
        yield "the list begins with an assistant message"
    for message in messages:
        if message.get("content") in ("", []) and not message.get("tool_calls"):
            yield f"a message of role {message['role']} is empty"
    answered = {
        (item.tool_use_id, item.call_message) for item in items if item.kind == "tool_result"
    }
    other = _last_without_results(messages)
    for item in items:
        if item.kind == "tool_call" and (item.tool_use_id, item.message) not in answered:
            yield f"the call {item.tool_use_id} has no result"
        if item.kind == "tool_result" and item.call_message is None:
            yield f"the result {item.tool_use_id} has no call"
        elif item.kind == "tool_result" and (item.call_message or 0) < other[item.message]:
            yield f"the result {item.tool_use_id} does not follow its call"


def _last_without_results(messages: Sequence[Message]) -> list[int]:
    """For each message, where the last one before it stands that does not only hold a result."""
    found, last = [], -1
    for index, message in enumerate(messages):
        found.append(last)
        if message["role"] not in RESULT_ROLES:
            last = index
    return found


def _thinking(messages: Sequence[Message], items: Sequence[Item]) -> Counter[str]:
    blocks = (messages[i.message]["content"][i.path[1]] for i in items if i.kind == "thinking")
    return Counter(compact_json(block) for block in blocks)
