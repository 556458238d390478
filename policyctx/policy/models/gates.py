"""Conditions: when a step runs, and when it has done enough."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from pydantic import Strict

from policyctx.policy.models.base import (
    EVERY_KEY,
    Amount,
    Calls,
    Count,
    IdleTime,
    Names,
    OneOrMore,
    Ratio,
    Section,
    such,
)

# What kind of number a gate compares, which decides how it is shown and how it may be written.
# `calls` are model calls, and may be written as a share of those that were made.
Kind: TypeAlias = Literal["tokens", "count", "calls", "ratio", "seconds"]


@dataclass(frozen=True, slots=True)
class Gate:
    """What is special about one gate.

    No number is above `highest`, and `why_highest` says why; for `kind="tokens"` the limit is the
    context window. `why_never_zero` says why the gate stays closed where its number would be 0.
    `sizes` names what planning sums up for it over all that the step selects: the tokens `freed`,
    or the unit that the gate's own key `of` gives. `holds_gates` says that its keys are gates
    themselves; its own kind then means nothing.
    """

    kind: Kind
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
    Nothing.CALLED: "the time since the last model call is not known",
    Nothing.SAVED: "nothing would be saved",
}
T = TypeVar("T")


class Limits(Section, Generic[T]):
    """What a number is held against; each one given must hold."""

    at_least_one: ClassVar = ("at_least", "over", "under", "at_most")

    at_least: Annotated[T | None, Comparison(">=", "<", is_lower=True, is_open=False)] = None
    """The number is this or more."""
    over: Annotated[T | None, Comparison(">", "<=", is_lower=True, is_open=True)] = None
    """The number is more than this."""
    under: Annotated[T | None, Comparison("<", ">=", is_lower=False, is_open=True)] = None
    """The number is less than this."""
    at_most: Annotated[T | None, Comparison("<=", ">", is_lower=False, is_open=False)] = None
    """The number is this or less."""


class TokensGate(Limits[Amount]):
    """Tokens; `80%` is of the context window."""


class CountGate(Limits[Count]):
    """A count."""


class CallsGate(Limits[Calls]):
    """Model calls; `25%` is of those that were made so far."""


class ItemsGate(Limits[Count]):
    """The number of items of certain types."""

    types: Annotated[Names, such(["tool_result"])] = ("*",)
    """The item types counted."""


class RatioGate(Limits[Ratio]):
    """What is selected, divided by all messages."""

    of: Literal["chars", "tokens"] = "tokens"
    """What is measured."""


class IdleGate(Limits[IdleTime]):
    """The time since the last model call; `cache_ttl` is that of `model.cache`."""


class SinceLast(Section):
    """What has come since the step last took something; all must hold."""

    at_least_one: ClassVar = EVERY_KEY

    messages: Annotated[CountGate | None, Gate("count"), such({"at_least": 20})] = None
    """The number of messages that came since."""
    turns: Annotated[CountGate | None, Gate("count"), such({"at_least": 5})] = None
    """The number of turns that began since."""
    tokens: Annotated[TokensGate | None, Gate("tokens"), such({"at_least": 20000})] = None
    """The tokens of the messages that came since."""


class Gates(Section):
    """Conditions on a whole step; all must hold."""

    at_least_one: ClassVar = EVERY_KEY

    tokens: Annotated[TokensGate | None, Gate("tokens"), such({"at_least": "80%"})] = None
    """The tokens of the list, with the system prompt and tool schemas that are sent along."""
    messages: Annotated[CountGate | None, Gate("count"), such({"over": 400})] = None
    """The number of messages."""
    turns: Annotated[CountGate | None, Gate("count"), such({"at_least": 20})] = None
    """The number of turns."""
    items: Annotated[
        ItemsGate | None, Gate("count"), such({"at_least": 10, "types": ["tool_result"]})
    ] = None
    """The number of items of these types."""
    ratio: Annotated[
        RatioGate | None,
        Gate(
            "ratio",
            highest=1,
            why_highest="no part is more than the whole",
            why_never_zero="it is closed where nothing is selected",
            sizes="of",
        ),
        such({"at_least": "20%", "of": "chars"}),
    ] = None
    """The size of what the step would take, divided by that of all messages."""
    frees: Annotated[TokensGate | None, Gate("tokens", sizes="freed"), such({"at_least": 5000})] = (
        None
    )
    """The tokens that the step would free, net of placeholders."""
    idle: Annotated[IdleGate | None, Gate("seconds"), such({"over": "cache_ttl"})] = None
    """The time since the last model call."""
    pays_back: Annotated[
        CallsGate | None, Gate("calls", sizes="freed"), such({"at_most": "25%"}, {"at_most": 5})
    ] = None
    """Model calls until the saving has paid for writing the changed prefix anew."""
    failed: Annotated[str | None, Gate("count"), such("summarise")] = None
    """The name of a `compact` step before this one that was due in this turn and made no summary:
    the attempts failed, it could not be saved, or it cannot help."""
    since_last: Annotated[
        SinceLast | None, Gate("count", holds_gates=True), such({"messages": {"at_least": 20}})
    ] = None
    """What has come since the step last took something, or since the list began."""


COMPARISONS: Mapping[str, Comparison] = Limits.noted(Comparison)
# Every gate by its name, those inside of `since_last` as `since_last.messages`.
GATES: dict[str, Gate] = {
    name: gate for name, gate in Gates.noted(Gate).items() if not gate.holds_gates
} | {f"since_last.{name}": gate for name, gate in SinceLast.noted(Gate).items()}


class BelowTokens(Section):
    """A number of tokens to come under."""

    under: Amount
    """Less than this; `60%` is of the context window."""


class FreedTokens(Section):
    """A number of tokens to free."""

    at_least: Amount
    """This many or more."""


class BelowCount(Section):
    """A number of messages to come under."""

    under: Count
    """Less than this."""


class Until(Section):
    """When a step has done enough; all must hold."""

    at_least_one: ClassVar = ("tokens", "messages", "frees")

    tokens: Annotated[BelowTokens | None, such({"under": "60%"})] = None
    """The list is this small."""
    messages: Annotated[BelowCount | None, such({"under": 40})] = None
    """The list has few enough messages; for `drop`, since a placeholder keeps its message."""
    frees: Annotated[FreedTokens | None, such({"at_least": 20000})] = None
    """This much has been freed."""


# A map means all of its conditions, a list of maps any of them.
When = Annotated[tuple[Gates, ...], Strict(strict=False), OneOrMore]
Untils = Annotated[tuple[Until, ...], Strict(strict=False), OneOrMore]


def gates_in(gates: Section) -> Iterator[tuple[str, Any, Gate]]:
    """Yield the name, the value and the definition of each gate that a map gives.

    A gate in a gate that holds gates is named `outer.inner`.
    """
    for name, gate in gates.noted(Gate).items():
        given = getattr(gates, name)
        if given is not None and gate.holds_gates:
            for inner, value, definition in gates_in(given):
                yield f"{name}.{inner}", value, definition
        elif given is not None:
            yield name, given, gate
