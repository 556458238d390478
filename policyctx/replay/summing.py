"""Figures of a session, and of many: what `policyctx replay` shows in a line."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import reduce
from operator import add
from typing import TYPE_CHECKING

from policyctx.replay.accuracy import Check, checked
from policyctx.replay.cost import Costs, billed_calls, costs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import TypeVar

    from policyctx.policy.models import Model
    from policyctx.replay.simulated import SimulatedSession, StepUse, TypeTokens

    T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Sent:
    """Prompts, in tokens as a provider bills them; without usage, as they were counted."""

    tokens: int = 0
    """Of all calls together."""
    largest: int = 0
    """Of the largest one."""
    over_window: int = 0
    """Calls that were sent more than the context window holds."""

    def __add__(self, other: Sent) -> Sent:
        return Sent(
            self.tokens + other.tokens,
            max(self.largest, other.largest),
            self.over_window + other.over_window,
        )


@dataclass(frozen=True, slots=True)
class Figures:
    """What one session comes to under a policy, or several of them together."""

    sessions: int = 0
    calls: int = 0
    billed: int = 0
    """Calls of which the recording has the usage."""
    summed: int = 0
    """Calls of which it has no more than the usage of several together."""
    unedited: Sent = field(default_factory=Sent)
    edited: Sent = field(default_factory=Sent)
    steps: Mapping[str, StepUse] = field(default_factory=dict)
    types: Mapping[str, TypeTokens] = field(default_factory=dict)
    files: int = 0
    bytes: int = 0
    compactions: int = 0
    not_asked: tuple[str, ...] = ()
    begun_anew: int = 0
    removed: int = 0
    """Items that left the context."""
    removed_tokens: int = 0
    """What they had taken."""
    regretted: int = 0
    """Items of those that were needed afterwards."""
    regretted_tokens: int = 0
    seconds: float = 0.0
    costs: Costs = field(default_factory=Costs)
    check: Check | None = None
    """Over the sessions of which every call has its usage."""
    checked_sessions: int = 0
    records: int = 0
    not_prompt: Mapping[str, int] = field(default_factory=dict)
    not_understood: Mapping[str, int] = field(default_factory=dict)
    warnings: Mapping[str, int] = field(default_factory=dict)

    @property
    def saved(self) -> float:
        """The share of tokens that was not sent; below 0 when more was."""
        whole = self.unedited.tokens
        return (whole - self.edited.tokens) / whole if whole else 0.0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            sessions=self.sessions + other.sessions,
            calls=self.calls + other.calls,
            billed=self.billed + other.billed,
            summed=self.summed + other.summed,
            unedited=self.unedited + other.unedited,
            edited=self.edited + other.edited,
            steps=_merged(self.steps, other.steps, add),
            types=_merged(self.types, other.types, add),
            files=self.files + other.files,
            bytes=self.bytes + other.bytes,
            compactions=self.compactions + other.compactions,
            not_asked=tuple(sorted({*self.not_asked, *other.not_asked})),
            begun_anew=self.begun_anew + other.begun_anew,
            removed=self.removed + other.removed,
            removed_tokens=self.removed_tokens + other.removed_tokens,
            regretted=self.regretted + other.regretted,
            regretted_tokens=self.regretted_tokens + other.regretted_tokens,
            seconds=self.seconds + other.seconds,
            costs=self.costs + other.costs,
            check=_both(self.check, other.check),
            checked_sessions=self.checked_sessions + other.checked_sessions,
            records=self.records + other.records,
            not_prompt=Counter(self.not_prompt) + Counter(other.not_prompt),
            not_understood=Counter(self.not_understood) + Counter(other.not_understood),
            warnings=Counter(self.warnings) + Counter(other.warnings),
        )


def figures_of(session: SimulatedSession, model: Model) -> Figures:
    """Return the figures of one session; `model` is the policy's."""
    billed = billed_calls(session.calls)
    check = checked(billed, model, session.bill)
    removed = {(r.part, r.position): r.tokens for r in session.removals}
    return Figures(
        sessions=1,
        calls=len(billed),
        billed=sum(call.usage is not None and call.usage.prompt > 0 for call in session.calls),
        summed=_summed(session),
        unedited=_sent((one.unedited.tokens for one in billed), session.window),
        edited=_sent((one.edited.tokens for one in billed), session.window),
        steps=session.steps,
        types=session.types,
        files=session.files,
        bytes=session.bytes,
        compactions=session.compactions,
        not_asked=session.not_asked,
        begun_anew=session.begun_anew,
        removed=len(removed),
        removed_tokens=sum(removed.values()),
        regretted=len(session.regrets),
        regretted_tokens=session.regretted_tokens,
        seconds=session.seconds,
        costs=costs_of(billed, model),
        check=check,
        checked_sessions=check is not None,
        records=session.records,
        not_prompt=session.not_prompt,
        not_understood=session.not_understood,
        warnings=session.warnings,
    )


def total(figures: Iterable[Figures]) -> Figures:
    """Return the figures of several sessions together."""
    return reduce(add, figures, Figures())


def _summed(session: SimulatedSession) -> int:
    """Return how many calls have no more than a share of a sum."""
    if session.bill is None or not session.bill.usage.prompt:
        return 0
    calls = session.calls[: session.bill.calls]
    return sum(call.usage is None or not call.usage.prompt for call in calls)


def _sent(sizes: Iterable[int], window: int) -> Sent:
    found = list(sizes)
    return Sent(sum(found), max(found, default=0), sum(size > window for size in found))


def _both(one: Check | None, other: Check | None) -> Check | None:
    if one is None or other is None:
        return one or other
    return one + other


def _merged(
    one: Mapping[str, T], other: Mapping[str, T], together: Callable[[T, T], T]
) -> dict[str, T]:
    merged = dict(one)
    for name, value in other.items():
        merged[name] = together(merged[name], value) if name in merged else value
    return merged
