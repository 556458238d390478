"""What goes together when an item is dropped, and what cannot go without breaking the list.

A call goes with its result; thinking goes with the last of what it led to, since no message may
hold nothing but thinking. A removal that would leave an assistant message first or last, or no
message at all, is not made.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.messages.blocks import SYSTEM_ROLES
from policyctx.planning.protection import protection
from policyctx.planning.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from policyctx.planning.outlook import Outlook
    from policyctx.planning.snapshot import Checkpoint
    from policyctx.policy.models import Step

_FIRST = Reason("without_it", {"what": "an assistant message would come first"})
_LAST = Reason("without_it", {"what": "an assistant message would come last"})
_NONE_LEFT = Reason("without_it", {"what": "no message would be left"})
_LONE_THINKING = Reason("without_it", {"what": "only thinking would be left of its message"})


def removed_with(
    position: int, step: Step, outlook: Outlook, at: Checkpoint
) -> dict[int, Reason | None] | Reason:
    """Return the items that go when one is dropped, each with why; or why it has to stay.

    The item itself comes first, and its reason is None: it is the step's.
    """
    unit: dict[int, Reason | None] = {position: None}
    conversation = outlook.conversation
    partner = conversation.reading.partners.get(position)
    if partner is not None and not outlook.is_out(partner, even_of_placeholders=True):
        is_result = conversation.items[position].kind == "tool_result"
        unit[partner] = Reason("with_result" if is_result else "with_call")
    for member in list(unit):
        rest = [i for i in _left_of_message(member, outlook) if i not in unit]
        if rest and all(conversation.items[i].kind == "thinking" for i in rest):
            if conversation.items[member].kind == "thinking":
                continue
            unit.update(dict.fromkeys(rest, Reason("with_call")))
    return _why_not(unit, step, outlook, at) or unit


def _left_of_message(position: int, outlook: Outlook) -> Iterator[int]:
    for i in outlook.conversation.of_message(position):
        if not outlook.is_out(i, even_of_placeholders=True):
            yield i


def _why_not(
    unit: dict[int, Reason | None], step: Step, outlook: Outlook, at: Checkpoint
) -> Reason | None:
    conversation = outlook.conversation
    for member, reason in unit.items():
        item = conversation.items[member]
        held = protection(conversation, member, step, at)
        if held is not None:
            return _LONE_THINKING if item.kind == "thinking" and reason is not None else held
        if conversation.policy.pinned(item.type, item.tool) is not None:
            return Reason("pinned")
    gone = set(messages_without(unit, outlook))
    if not gone:
        return None
    if not _leaves_any(gone, outlook):
        return _NONE_LEFT
    roles = conversation.roles
    forwards, backwards = range(len(roles)), range(len(roles) - 1, -1, -1)
    if _turns_to_assistant(forwards, gone, outlook):
        return _FIRST
    return _LAST if _turns_to_assistant(backwards, gone, outlook) else None


def messages_without(unit: Iterable[int], outlook: Outlook) -> Iterator[int]:
    """Yield the messages of which nothing is left without these items."""
    going = set(unit)
    for message, member in {outlook.conversation.items[i].message: i for i in going}.items():
        if outlook.conversation.items[member].inside is None and all(
            i in going for i in _left_of_message(member, outlook)
        ):
            yield message


def _leaves_any(gone: set[int], outlook: Outlook) -> bool:
    """Is there a message that stays, beside those of the system."""
    roles = outlook.conversation.roles
    return any(
        roles[i] not in SYSTEM_ROLES and i not in gone and not outlook.is_removed(i)
        for i in range(len(roles) - 1, -1, -1)
    )


def _turns_to_assistant(messages: Iterable[int], gone: set[int], outlook: Outlook) -> bool:
    """Would the first of these that stays be an assistant's, where it was not before."""
    roles, is_changed = outlook.conversation.roles, False
    for message in messages:
        if roles[message] in SYSTEM_ROLES or outlook.is_removed(message):
            continue
        if message not in gone:
            return is_changed and roles[message] == "assistant"
        if not is_changed and roles[message] == "assistant":
            return False
        is_changed = True
    return False
