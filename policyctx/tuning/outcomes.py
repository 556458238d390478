"""The figures of one setting in one session, and in several: the numbers that settings compete in.

`outcome_of` is the only place that knows how a replay is priced.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.common import Common
from policyctx.replay.net import DEARER_DOLLARS, DEARER_SHARE
from policyctx.replay.recording import Recording
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import figures_of
from policyctx.replay.terms import PricesOf


@dataclass(frozen=True, slots=True)
class Outcome:
    """One session under one setting."""

    without: float
    """$ without a policy."""
    net: float
    """$ with the setting less `without`, re-reads and summaries included; below 0 where it
    saves."""
    regret_tokens: int
    """Tokens of what was removed and must be read again."""
    over_window_without: int
    """Calls over the context window without a policy."""
    over_window_with: int
    acted: bool
    """Whether the policy removed anything."""
    calls: int

    @property
    def margin(self) -> float:
        """The $ within which two costs of this session count as the same."""
        return max(DEARER_DOLLARS, DEARER_SHARE * self.without)

    @property
    def is_dearer(self) -> bool:
        """Whether the session costs more than without a policy."""
        return self.net > self.margin

    @property
    def raises_over_window(self) -> bool:
        """Whether more calls are over the context window than without a policy."""
        return self.over_window_with > self.over_window_without

    @property
    def unedited(self) -> Outcome:
        """The same session without a policy."""
        over = self.over_window_without
        return Outcome(self.without, 0.0, 0, over, over, acted=False, calls=self.calls)


@dataclass(frozen=True, slots=True)
class Sums:
    """One setting over several sessions."""

    sessions: int
    without: float
    net: float
    regret_tokens: int
    dearer: int
    """Sessions that cost more than without a policy."""
    idle: int
    """Sessions in which the policy never acted."""
    over_window: int
    """Sessions with more calls over the context window than without a policy."""

    @property
    def saved(self) -> float:
        """The share of the cost that is saved; below 0 where it costs more."""
        return -self.net / self.without if self.without and self.net else 0.0


def sums(outcomes: Iterable[Outcome]) -> Sums:
    """Return the sums over the sessions."""
    found = list(outcomes)
    return Sums(
        sessions=len(found),
        without=math.fsum(one.without for one in found),
        net=math.fsum(one.net for one in found),
        regret_tokens=sum(one.regret_tokens for one in found),
        dearer=sum(one.is_dearer for one in found),
        idle=sum(not one.acted for one in found),
        over_window=sum(one.raises_over_window for one in found),
    )


@dataclass(frozen=True, slots=True)
class Unpriced:
    """A session with calls that have no price."""

    models: tuple[str, ...]
    """The language models of these calls."""


def outcome_of(
    recording: Recording,
    policy: OffloadPolicy,
    prices: PricesOf = "recorded",
    *,
    common: Common | None = None,
) -> Outcome | Unpriced:
    """Return the figures of a recording under a policy, net of re-reads and summaries.

    Only the breakpoints that are sent are priced. `common` is kept from one policy to the next.
    Raises as `simulated` does.
    """
    common = common or Common(recording)
    session = simulated(recording, policy, prices=prices, layouts=(), common=common)
    figures = figures_of(session, unedited=common.unedited)
    if not figures.priced:
        return Unpriced(tuple(sorted(figures.unpriced)))
    return Outcome(
        without=figures.net.without.dollars.prompt,
        net=figures.net.dollars,
        regret_tokens=figures.regretted_tokens,
        over_window_without=figures.unedited.over_window,
        over_window_with=figures.edited.over_window,
        acted=figures.removed > 0 or figures.compactions > 0,
        calls=figures.calls,
    )
