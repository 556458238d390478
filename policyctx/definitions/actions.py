"""The actions of steps: what each does with an item, and what it leaves in the list."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Literal, Self, TypeAlias

# The words of `do:`.
Do: TypeAlias = Literal["offload", "clear", "drop", "compact"]


class Leaves(Enum):
    """What an action leaves in the message list."""

    ITEM = "the item"
    PLACEHOLDER = "a placeholder"
    NOTHING = "nothing"
    SUMMARY = "a summary in place of all messages that it takes"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition:
    past: str
    leaves: Leaves
    do: Do | None
    meaning: str = ""
    saves: bool = False
    is_bound_by_rules: bool = False
    text: str | None = None
    keys_without_use: tuple[str, ...] = ()
    selection_without_use: Mapping[str, str] = field(default_factory=dict)


class Action(StrEnum):
    """What happens to an item; the value is its name in plans, records and reports."""

    past: str
    """The past tense, which names the state of an item: `offloaded`."""
    do: Do | None
    """The word of `do:` for it; None for what no step does."""
    meaning: str
    """What it does, for the reference."""
    saves: bool
    """Whether the content of each item is saved before the item leaves the list."""
    leaves: Leaves
    """What it leaves in the message list."""
    leaves_placeholder: bool
    """Whether it leaves a placeholder for each item."""
    leaves_nothing: bool
    """Whether it leaves nothing of an item, and takes what a placeholder stands for too."""
    keeps_place: bool
    """Whether an item after it, or its placeholder, is still at its place in the list."""
    takes_messages: bool
    """Whether it takes whole messages: it ends the pipeline and is not for arrival."""
    is_bound_by_rules: bool
    """Whether the rules of items and tools bind it: `offload: true` and the thresholds."""
    text: str | None
    """The text of its placeholder where the policy gives none; None for that of the policy."""
    keys_without_use: tuple[str, ...]
    """The keys that a step with this action must not have."""
    selection_without_use: Mapping[str, str]
    """The keys that its `select` must not have, each with the reason."""

    def __new__(cls, name: str, definition: _Definition) -> Self:
        """Make a member from its name and its definition."""
        member = str.__new__(cls, name)
        member._value_ = name
        for key in _Definition.__slots__:
            setattr(member, key, getattr(definition, key))
        left = definition.leaves
        member.leaves_placeholder = left is Leaves.PLACEHOLDER
        member.leaves_nothing = left is Leaves.NOTHING
        member.keeps_place = left in {Leaves.ITEM, Leaves.PLACEHOLDER}
        member.takes_messages = left is Leaves.SUMMARY
        return member

    KEEP = "keep", _Definition(past="kept", leaves=Leaves.ITEM, do=None)
    OFFLOAD = (
        "offload",
        _Definition(
            past="offloaded",
            leaves=Leaves.PLACEHOLDER,
            do="offload",
            meaning="save, leave the placeholder",
            saves=True,
            is_bound_by_rules=True,
            keys_without_use=("compaction", "save"),
        ),
    )
    CLEAR = (
        "clear",
        _Definition(
            past="cleared",
            leaves=Leaves.PLACEHOLDER,
            do="clear",
            meaning="leave the placeholder, save nothing",
            is_bound_by_rules=True,
            text="[Old tool result cleared; make the call again if you need it]",
            keys_without_use=("compaction", "save"),
            selection_without_use={"placeholders": "it would not name the file"},
        ),
    )
    DROP = (
        "drop",
        _Definition(
            past="dropped",
            leaves=Leaves.NOTHING,
            do="drop",
            meaning="save, remove",
            saves=True,
            keys_without_use=("compaction", "placeholder", "must_shrink"),
            selection_without_use={
                "with_input": "a call goes with its result",
                "placeholders": "it takes what is left of an item anyway",
            },
        ),
    )
    SUMMARISE = (
        "summarise",
        _Definition(
            past="summarised",
            leaves=Leaves.SUMMARY,
            do="compact",
            meaning="summarise; must be last",
            keys_without_use=("select", "must_shrink", "save"),
        ),
    )


# Each action by its past tense, which names the state of an item in the store's records.
BY_STATE: dict[str, Action] = {action.past: action for action in Action}
# The actions of steps, by the word of `do:`.
STEP_ACTIONS: dict[str, Action] = {action.do: action for action in Action if action.do}
# The actions of steps that take items.
ITEM_ACTIONS: tuple[Action, ...] = tuple(a for a in STEP_ACTIONS.values() if not a.takes_messages)
