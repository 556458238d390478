"""Actions: what a step makes of the items that it takes, and which keys its step may have."""

from __future__ import annotations

from dataclasses import dataclass
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
    selection_without_use: tuple[tuple[str, str], ...] = ()


class Action(StrEnum):
    """What happens to an item; the value is its name in plans, records and reports."""

    _definition: _Definition

    def __new__(cls, name: str, definition: _Definition) -> Self:
        """Make a member from its name and its definition."""
        member = str.__new__(cls, name)
        member._value_ = name
        member._definition = definition  # noqa: SLF001 - its own
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
            keys_without_use=("compaction",),
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
            keys_without_use=("compaction",),
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
            selection_without_use=(("with_input", "a call goes with its result"),),
        ),
    )
    SUMMARISE = (
        "summarise",
        _Definition(
            past="summarised",
            leaves=Leaves.SUMMARY,
            do="compact",
            meaning="summarise; must be last",
            keys_without_use=("select", "must_shrink"),
        ),
    )

    @property
    def past(self) -> str:
        """The past tense: `offloaded`."""
        return self._definition.past

    @property
    def do(self) -> Do | None:
        """The word of `do:` for it; None for what no step does."""
        return self._definition.do

    @property
    def meaning(self) -> str:
        """What it does, for the reference."""
        return self._definition.meaning

    @property
    def saves(self) -> bool:
        """Whether the content of each item is saved before the item leaves the list."""
        return self._definition.saves

    @property
    def leaves(self) -> Leaves:
        """What it leaves in the message list."""
        return self._definition.leaves

    @property
    def leaves_placeholder(self) -> bool:
        """Whether it leaves a placeholder for each item."""
        return self.leaves is Leaves.PLACEHOLDER

    @property
    def leaves_nothing(self) -> bool:
        """Whether it leaves nothing of an item, and takes what a placeholder stands for too."""
        return self.leaves is Leaves.NOTHING

    @property
    def keeps_place(self) -> bool:
        """Whether an item after it, or its placeholder, still stands at its place in the list."""
        return self.leaves in {Leaves.ITEM, Leaves.PLACEHOLDER}

    @property
    def takes_messages(self) -> bool:
        """Whether it takes whole messages: it ends the pipeline and is not for arrival."""
        return self.leaves is Leaves.SUMMARY

    @property
    def is_bound_by_rules(self) -> bool:
        """Whether the rules of items and tools bind it: `offload: true` and the thresholds."""
        return self._definition.is_bound_by_rules

    @property
    def text(self) -> str | None:
        """The text of its placeholder where the policy gives none; None for that of the policy."""
        return self._definition.text

    @property
    def keys_without_use(self) -> tuple[str, ...]:
        """The keys that a step with this action must not have."""
        return self._definition.keys_without_use

    @property
    def selection_without_use(self) -> dict[str, str]:
        """The keys that its `select` must not have, each with the reason."""
        return dict(self._definition.selection_without_use)


# Each action by its past tense, which names the state of an item in the store's records.
BY_STATE: dict[str, Action] = {action.past: action for action in Action}
# The actions of steps, by the word of `do:`.
STEP_ACTIONS: dict[str, Action] = {action.do: action for action in Action if action.do}
# The actions of steps that take items.
ITEM_ACTIONS: tuple[Action, ...] = tuple(a for a in STEP_ACTIONS.values() if not a.takes_messages)
