"""Gates: what is special about the number of each, how it is compared, and why there is none."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, TypeAlias

# What kind of number a gate compares, which decides how it is shown and how it may be written.
# `calls` are model calls, and may be written as a share of those that were made.
Kind: TypeAlias = Literal["tokens", "count", "calls", "ratio", "seconds"]


@dataclass(frozen=True, slots=True)
class Gate:
    """What is special about one gate.

    `whole` says that its number is an integer. No number is above `highest`, and `why_highest` says
    why; for `kind="tokens"` the limit is the context window. `why_never_zero` says why the gate
    stays closed where its number would be 0. `sizes` names what planning sums up for it over all
    that the step selects: the tokens `freed`, or the unit that the gate's own key `of` gives.
    `holds_gates` says that its keys are gates themselves; its own kind then means nothing.
    """

    kind: Kind
    whole: bool = False
    highest: int | None = None
    why_highest: str = ""
    why_never_zero: str = ""
    sizes: Literal["", "freed", "of"] = ""
    holds_gates: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """One key of a gate: its sign, and its sign when it does not hold.

    `is_lower` says that the number must be above the limit, `is_open` that the limit itself does
    not count.
    """

    sign: str
    opposite: str
    is_lower: bool
    is_open: bool


class Nothing(StrEnum):
    """Why a gate had no number to compare; the value is in reports."""

    MEASURED = "nothing_measured"
    SELECTED = "nothing_selected"
    CALLED = "no_call_yet"
    SAVED = "never"

    @property
    def sentence(self) -> str:
        """The reason in words."""
        return _SENTENCES[self]


_SENTENCES = {
    Nothing.MEASURED: "there is nothing in the messages",
    Nothing.SELECTED: "nothing is selected",
    Nothing.CALLED: "no model was called yet",
    Nothing.SAVED: "nothing would be saved",
}
