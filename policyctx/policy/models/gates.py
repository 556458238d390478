"""Conditions: when a step runs, and when it has done enough."""

from __future__ import annotations

from typing import Annotated, ClassVar, Generic, Literal, TypeVar

from pydantic import Field, Strict

from policyctx.policy.models.base import Amount, Count, IdleTime, OneOrMore, Ratio, Section

T = TypeVar("T")

COMPARISONS = ("at_least", "over", "under", "at_most")


class Comparison(Section, Generic[T]):
    """What a number is held against; each one given must hold."""

    at_least_one: ClassVar = COMPARISONS

    at_least: T | None = None
    """The number is this or more."""
    over: T | None = None
    """The number is more than this."""
    under: T | None = None
    """The number is less than this."""
    at_most: T | None = None
    """The number is this or less."""


class TokensGate(Comparison[Amount]):
    """Tokens; `80%` is of the context window."""


class CountGate(Comparison[Count]):
    """A count."""


class ItemsGate(Comparison[Count]):
    """The number of items of certain types."""

    types: Annotated[tuple[str, ...], Strict(strict=False), Field(examples=[["tool_result"]])] = (
        "*",
    )
    """The item types counted."""


class RatioGate(Comparison[Ratio]):
    """What is selected, divided by all messages."""

    of: Literal["chars", "tokens"] = "tokens"
    """What is measured."""


class IdleGate(Comparison[IdleTime]):
    """The time since the last model call; `cache_ttl` is that of `model.cache`."""


class Gates(Section):
    """Conditions on a whole step; all must hold."""

    at_least_one: ClassVar = (
        "tokens", "messages", "turns", "items", "ratio", "frees", "idle", "pays_back",
    )  # fmt: skip

    tokens: Annotated[TokensGate | None, Field(examples=[{"at_least": "80%"}])] = None
    """The tokens of the list, with the system prompt and tool schemas that are sent along."""
    messages: Annotated[CountGate | None, Field(examples=[{"over": 400}])] = None
    """The number of messages."""
    turns: Annotated[CountGate | None, Field(examples=[{"at_least": 20}])] = None
    """The number of turns."""
    items: Annotated[
        ItemsGate | None, Field(examples=[{"at_least": 10, "types": ["tool_result"]}])
    ] = None
    """The number of items of these types."""
    ratio: Annotated[RatioGate | None, Field(examples=[{"at_least": "20%", "of": "chars"}])] = None
    """The size of what the step would take, divided by that of all messages."""
    frees: Annotated[TokensGate | None, Field(examples=[{"at_least": 5000}])] = None
    """The tokens that the step would free, net of placeholders."""
    idle: Annotated[IdleGate | None, Field(examples=[{"over": "cache_ttl"}])] = None
    """The time since the last model call."""
    pays_back: Annotated[CountGate | None, Field(examples=[{"at_most": 5}])] = None
    """Model calls until the saving has paid for writing the changed prefix anew."""


class BelowTokens(Section):
    """A number of tokens to come under."""

    under: Amount
    """Less than this; `60%` is of the context window."""


class FreedTokens(Section):
    """A number of tokens to free."""

    at_least: Amount
    """This many or more."""


class Until(Section):
    """When a step has done enough; all must hold."""

    at_least_one: ClassVar = ("tokens", "frees")

    tokens: Annotated[BelowTokens | None, Field(examples=[{"under": "60%"}])] = None
    """The list is this small."""
    frees: Annotated[FreedTokens | None, Field(examples=[{"at_least": 20000}])] = None
    """This much has been freed."""


# A map means all of its conditions, a list of maps any of them.
When = Annotated[tuple[Gates, ...], Strict(strict=False), OneOrMore]
Untils = Annotated[tuple[Until, ...], Strict(strict=False), OneOrMore]
