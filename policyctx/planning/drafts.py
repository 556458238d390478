"""What would be left in an item's place, before anything is decided or written."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from policyctx.messages.editing import shortened_input
from policyctx.planning.paths import EXTENSIONS, File, relative_path
from policyctx.planning.placeholders import named_path, rendered_placeholder
from policyctx.planning.reasons import Reason

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.messages.items import Item
    from policyctx.planning.conversation import Conversation
    from policyctx.planning.facts import Facts, Unit
    from policyctx.planning.offload_policy import OffloadPolicy, Treatment
    from policyctx.planning.placeholders import Wording
    from policyctx.policy.models import Step

NO_FILE = File("", "")


@dataclass(frozen=True, slots=True)
class Draft:
    """An item that a step would take.

    `wanted_path` is where its file would like to be, below the root, before names that are taken
    are passed over; empty where nothing is saved. `sizes` are those that the step's gates ask for:
    what it takes now in `tokens` and `chars`, and the tokens `freed` without it.
    """

    wanted_path: str
    sizes: Mapping[str, int] = field(default_factory=dict)


def drafted(
    conversation: Conversation, position: int, step: Step, treatment: Treatment
) -> Draft | Reason:
    """Return the draft for an item, or why nothing is to be gained by it."""
    item, facts = conversation.items[position], conversation.facts
    path = wanted_path(item, conversation.policy, facts) if step.action.saves else ""
    if step.action.leaves_nothing:
        return Draft(path)
    file = expected_file(path, facts)
    if path and (named := named_path(treatment.wording, item, file, facts)) is not None:
        return Reason("placeholder", {"path": named})
    if not may_be_kept(item, step):
        return Draft(path)
    unit = unit_of(treatment)
    text = left_in_place(item, treatment.wording, file, facts, unit)
    return not_shrinking(item, step, text, unit, facts) or Draft(path)


def freed_tokens(
    conversation: Conversation, position: int, step: Step, treatment: Treatment, path: str
) -> int:
    """Return the tokens that the list loses when the step takes this item."""
    now = conversation.size(position, "tokens")
    if step.action.leaves_nothing:
        return now
    item, facts = conversation.items[position], conversation.facts
    file = expected_file(path, facts)
    text = left_in_place(item, treatment.wording, file, facts, unit_of(treatment))
    return now - (0 if text is None else facts.length(text, "tokens"))


def may_be_kept(item: Item, step: Step) -> bool:
    """May an item stay for the sake of its size; see `not_shrinking`."""
    return item.kind == "tool_call" or step.must_shrink


def not_shrinking(
    item: Item, step: Step, text: str | None, unit: Unit, facts: Facts
) -> Reason | None:
    """Return why an item stays that gains nothing by a text in its place, None when it may go."""
    if not may_be_kept(item, step):
        return None
    if text is None:
        return Reason("nothing_long")
    size, placeholder = facts.size(item, unit), facts.length(text, unit)
    if placeholder < size or not step.must_shrink:
        return None
    return Reason("would_not_shrink", {"size": size, "placeholder": placeholder, "unit": unit})


def left_in_place(
    item: Item,
    wording: Wording,
    file: File,
    facts: Facts,
    unit: Unit,
    *,
    planned: File | None = None,
) -> str | None:
    """Return the text that takes the item's place; of a call, the JSON of its input.

    Every string of an input that is longer than the placeholder gives way to it, or longer than
    the one that names the `planned` file, where the file became another. None when there is no
    such string.
    """
    text = rendered_placeholder(wording, item, file, facts)
    if item.kind != "tool_call":
        return text
    expected = text if planned is None else rendered_placeholder(wording, item, planned, facts)
    length = facts.length(expected, unit)
    return shortened_input(
        item.text, lambda value: text if facts.length(value, unit) > length else None
    )


def unit_of(treatment: Treatment) -> Unit:
    """Return the unit of the threshold that selects an item, tokens without one."""
    return "tokens" if treatment.threshold is None else treatment.threshold.unit


def wanted_path(item: Item, policy: OffloadPolicy, facts: Facts) -> str:
    """Return the path of an item's file below the root, whether or not the name is free."""
    values = {
        "item_id": item.item_id,
        "item_type": item.type,
        "tool_name": item.tool,
        "tool_use_id": item.tool_use_id,
        "session_id": facts.session_id,
        "ext": EXTENSIONS[policy.policy.store.format],
    }
    return relative_path(policy.path_parts, values, item.text)


def expected_file(path: str, facts: Facts) -> File:
    """Return the file at a path below the root; none for an empty path."""
    return File(path, f"{facts.root}/{path}") if path else NO_FILE
