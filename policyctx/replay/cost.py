"""What the calls of a session cost under a provider's prompt cache.

The beginning that a call shares with the call before is read from the cache when that was not too
long ago and it is long enough to be cached; what comes behind it is written to the cache. A policy
that keeps changing what was sent pays for it here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.planning.prices import dollars
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.policy.models import Model, Prices
    from policyctx.replay.billing import BilledCall, Size


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens by what a provider takes for them; sums of some calls."""

    cache_read: int = 0
    cache_write: int = 0
    input: int = 0
    """Neither read from the cache nor written to it, being too short to be cached."""
    output: int = 0
    """As far as the recording knows; a policy does not change it."""

    @property
    def uncached(self) -> int:
        """Tokens of the prompts that were not read from the cache."""
        return self.cache_write + self.input

    @property
    def prompt(self) -> int:
        """Tokens of the prompts."""
        return self.cache_read + self.uncached

    def dollars(self, price: Prices) -> float:
        """Return what it comes to, in $."""
        return dollars(Usage(self.input, self.cache_read, self.cache_write, self.output), price)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.input + other.input,
            self.output + other.output,
        )


@dataclass(frozen=True, slots=True)
class Costs:
    """What one session or many cost without a policy, and with it."""

    unedited: Cost = Cost()
    edited: Cost = Cost()

    def __add__(self, other: Costs) -> Costs:
        return Costs(self.unedited + other.unedited, self.edited + other.edited)


def costs_of(calls: Sequence[BilledCall], model: Model) -> Costs:
    """Return what calls of one session cost, under the cache that the policy describes."""
    output = sum(one.call.output for one in calls)
    return Costs(
        _together([_parts(one.unedited, one.idle, model) for one in calls], output),
        _together([_parts(one.edited, one.idle, model) for one in calls], output),
    )


def cost_of(size: Size, idle: float | None, model: Model) -> Cost:
    """Return what a prompt costs; when nobody knows the time, the cache is still there."""
    return Cost(*_parts(size, idle, model))


def _parts(size: Size, idle: float | None, model: Model) -> tuple[int, int, int]:
    """Return the tokens that are read from the cache, written to it, and neither."""
    cache = model.cache
    if size.tokens < cache.min_tokens:
        return 0, 0, size.tokens
    expired = idle is not None and idle > cache.ttl.seconds
    read = 0 if expired or size.shared < cache.min_tokens else size.shared
    return read, size.tokens - read, 0


def _together(prompts: Sequence[tuple[int, int, int]], output: int) -> Cost:
    read, written, neither = map(sum, zip(*prompts, strict=True)) if prompts else (0, 0, 0)
    return Cost(read, written, neither, output)
