"""Figures of a session, and of many: what `policyctx replay` shows in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeVar

from policyctx.pricing.dollars import Dollars
from policyctx.replay.accuracy import Check, Checks, checked, checks_of
from policyctx.replay.cost import BilledCall, Costs, UneditedCosts, billed_calls, costs_of
from policyctx.replay.net import Net, net_of
from policyctx.replay.simulated import SimulatedSession, StepUse, TypeTokens
from policyctx.replay.terms import Contradiction

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
class _Session:
    """One replayed session, with what several of its figures are made from."""

    session: SimulatedSession
    billed: Sequence[BilledCall]
    check: Check | None
    net: Net
    removed: Mapping[tuple[int, int], int]
    """The tokens of each removed item, by its part and its position."""

    @classmethod
    def of(cls, session: SimulatedSession, unedited: UneditedCosts | None) -> _Session:
        billed = billed_calls(session, known=unedited)
        removed = {(r.part, r.position): r.tokens for r in session.removals}
        return cls(session, billed, checked(billed), net_of(session, billed), removed)


def _figure(
    value: Callable[[_Session], T],
    together: Callable[[T, T], T] = add,
    *,
    none: Callable[[], Any] = int,
    of_many: Callable[[Sequence[T]], T] | None = None,
) -> T:
    """Return the field of a figure: its value for one session, and how two values combine.

    `none` makes the value for no session at all. `of_many` combines many values, where that is
    faster than one after the other.
    """

    def joined(values: Sequence[T]) -> T:
        found: T = reduce(together, values, none())
        return found

    metadata = {"value": value, "together": together, "of_many": of_many or joined}
    made: T = field(default_factory=none, metadata=metadata)
    return made


def _counts(one: Mapping[str, int], other: Mapping[str, int]) -> Mapping[str, int]:
    return Counter(one) + Counter(other)


def _merged(one: Mapping[str, T], other: Mapping[str, T]) -> dict[str, T]:
    merged = dict(one)
    for name, value in other.items():
        merged[name] = add(merged[name], value) if name in merged else value
    return merged


def _totals(many: Sequence[Mapping[str, Figures]]) -> dict[str, Figures]:
    found: dict[str, list[Figures]] = {}
    for one in many:
        for name, figures in one.items():
            found.setdefault(name, []).append(figures)
    return {name: total(figures) for name, figures in found.items()}


def _sums(
    one: Mapping[Contradiction, int], other: Mapping[Contradiction, int]
) -> Mapping[Contradiction, int]:
    return Counter(one) + Counter(other)


class Worst(NamedTuple):
    """The session in which a policy does worst."""

    dollars: float
    """The net of the session."""
    share: float
    """Of what it costs without the policy."""
    name: str
    path: str


def _worst(one: _Session) -> Worst | None:
    if not _is_priced(one.session):
        return None
    return Worst(one.net.dollars, one.net.share, one.session.name, one.session.path)


def _worse(one: Worst | None, other: Worst | None) -> Worst | None:
    found = [each for each in (one, other) if each is not None]
    return max(found, key=lambda each: each.dollars, default=None)


def _nothing() -> None:
    return None


def _names(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(sorted({*one, *other}))


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one session under a policy, or several of them together.

    Each figure is defined here only: its value for one session, and how two sessions add up.
    """

    sessions: int = _figure(lambda _: 1)
    calls: int = _figure(lambda s: len(s.billed))
    billed: int = _figure(
        lambda s: sum(c.usage is not None and c.usage.prompt > 0 for c in s.session.calls)
    )
    """Calls of which the recording has the usage."""
    summed: int = _figure(lambda s: _summed(s.session))
    """Calls of which it has no more than the usage of several together."""
    unedited: Sent = _figure(  # noqa: RUF009 - makes a field
        lambda s: _sent((one.unedited, one.call.terms.window) for one in s.billed), none=Sent
    )
    edited: Sent = _figure(  # noqa: RUF009 - makes a field
        lambda s: _sent((one.edited, one.call.terms.window) for one in s.billed), none=Sent
    )
    windows: tuple[int, ...] = _figure(
        lambda s: tuple(sorted({call.terms.window for call in s.session.calls})), _names, none=tuple
    )
    """The context windows of the calls, in tokens."""
    steps: Mapping[str, StepUse] = _figure(lambda s: s.session.steps, _merged, none=dict)
    types: Mapping[str, TypeTokens] = _figure(lambda s: s.session.types, _merged, none=dict)
    files: int = _figure(lambda s: s.session.files)
    bytes: int = _figure(lambda s: s.session.bytes)
    compactions: int = _figure(lambda s: s.session.compactions)
    not_asked: tuple[str, ...] = _figure(lambda s: s.session.not_asked, _names, none=tuple)
    begun_anew: int = _figure(lambda s: s.session.begun_anew)
    """How often the recordings themselves had another list, for whatever reason."""
    own_compactions: int = _figure(
        lambda s: sum(call.why_anew == "compaction" for call in s.session.calls)
    )
    """How often the recordings themselves replaced history by a summary."""
    removed: int = _figure(lambda s: len(s.removed))
    """Items that left the context."""
    removed_tokens: int = _figure(lambda s: sum(s.removed.values()))
    """The tokens of these items."""
    regretted: int = _figure(lambda s: s.session.regretted_items)
    """Items of these that were needed afterwards."""
    regretted_tokens: int = _figure(lambda s: s.session.regretted_tokens)
    """The tokens of what of these must be read again."""
    regretted_item_tokens: int = _figure(lambda s: s.session.regretted_item_tokens)
    """The tokens of these as a whole."""
    seconds: float = _figure(lambda s: s.session.seconds, none=float)
    costs: Costs = _figure(  # noqa: RUF009 - makes a field
        lambda s: costs_of(s.billed), none=Costs
    )
    priced: int = _figure(lambda s: int(_is_priced(s.session)))
    """Sessions of which every call has prices; only these have dollars."""
    net: Net = _figure(lambda s: s.net, none=Net)  # noqa: RUF009 - makes a field
    """The cost with the policy less the one without, and what else it causes."""
    dearer: int = _figure(lambda s: int(_is_priced(s.session) and s.net.is_dearer))
    """Priced sessions that the policy makes dearer."""
    idle: int = _figure(lambda s: int(_is_priced(s.session) and not s.session.removals))
    """Priced sessions in which the policy never acted."""
    worst: Worst | None = _figure(_worst, _worse, none=_nothing)  # noqa: RUF009 - makes a field
    """The priced session with the highest net."""
    untouched: Mapping[str, int] = _figure(
        lambda s: {s.session.untouched: 1} if s.session.untouched else {}, _counts, none=dict
    )
    """Why the policy took nothing, and in how many sessions."""
    baselines: Mapping[str, Figures] = _figure(
        lambda s: s.session.baselines if isinstance(s.session, SummedSession) else {},
        _merged,
        none=dict,
        of_many=_totals,
    )
    """The figures of the sessions under other policies, by their name."""
    priced_by_policy: int = _figure(lambda s: int(s.session.is_priced_by_policy))
    """Sessions whose prices are those of the policy."""
    unpriced: Mapping[str, int] = _figure(lambda s: _unpriced(s.session), _counts, none=dict)
    """Calls without prices, by language model."""
    bill: Dollars = _figure(lambda s: _bill(s.session), none=Dollars)  # noqa: RUF009 - makes a field
    """What the usage of these sessions' calls comes to, as it was recorded."""
    writes: int = _figure(
        lambda s: sum(
            c.usage is not None and c.usage.write_ttl is not None for c in s.session.calls
        )
    )
    """Calls that wrote to the cache, and for how long is recorded."""
    ttl_assumed: int = _figure(lambda s: sum(c.terms.ttl_is_assumed for c in s.session.calls))
    """Calls of which the recording does not say for how long they wrote to the cache."""
    contradictions: Mapping[Contradiction, int] = _figure(
        lambda s: s.session.contradictions, _sums, none=dict
    )
    checks: Checks = _figure(  # noqa: RUF009 - makes a field
        lambda s: Checks({} if s.check is None else {s.session.format: (s.check,)}),
        none=Checks,
        of_many=checks_of,
    )
    """Of the sessions whose usage speaks of a cache."""
    records: int = _figure(lambda s: s.session.records)
    not_prompt: Mapping[str, int] = _figure(lambda s: s.session.not_prompt, _counts, none=dict)
    not_understood: Mapping[str, int] = _figure(
        lambda s: s.session.not_understood, _counts, none=dict
    )
    warnings: Mapping[str, int] = _figure(lambda s: s.session.warnings, _counts, none=dict)

    @property
    def saved(self) -> float:
        """The share of tokens that was not sent; below 0 when more was."""
        whole = self.unedited.tokens
        return (whole - self.edited.tokens) / whole if whole else 0.0

    def __add__(self, other: Figures) -> Figures:
        return Figures(
            **{
                one.name: one.metadata["together"](
                    getattr(self, one.name), getattr(other, one.name)
                )
                for one in fields(self)
            }
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedSession(SimulatedSession):
    """A replayed session with its figures, and those under other policies."""

    figures: Figures
    baselines: Mapping[str, Figures] = field(default_factory=dict)
    """By the name of the policy."""


def summed(
    session: SimulatedSession, found: Figures, baselines: Mapping[str, Figures] | None = None
) -> SummedSession:
    """Return the session with its figures, and with those of other policies in them."""
    others = dict(baselines or {})
    known = {one.name: getattr(session, one.name) for one in fields(SimulatedSession)}
    return SummedSession(**known, figures=replace(found, baselines=others), baselines=others)


def figures_of(session: SimulatedSession, *, unedited: UneditedCosts | None = None) -> Figures:
    """Return the figures of one session, which may have them already.

    `unedited` are the costs without a policy that other replays of its recording found.
    """
    if isinstance(session, SummedSession):
        return session.figures
    replayed = _Session.of(session, unedited)
    return Figures(**{one.name: one.metadata["value"](replayed) for one in fields(Figures)})


def total(figures: Iterable[Figures]) -> Figures:
    """Return the figures of several sessions together.

    What is kept of each session is joined once, so that the time grows as the sessions do.
    """
    many = list(figures)
    return Figures(
        **{
            one.name: one.metadata["of_many"]([getattr(each, one.name) for each in many])
            for one in fields(Figures)
        }
    )


def contradicting(figures: Figures) -> list[str]:
    """Return a sentence on each key of the policy that contradicts the recordings."""
    return [
        one.sentence(number, figures.writes if one.is_of_writes else figures.calls)
        for one, number in sorted(figures.contradictions.items())
    ]


def _summed(session: SimulatedSession) -> int:
    """Return how many calls have no more than a share of a sum."""
    if session.bill is None or not session.bill.usage.prompt:
        return 0
    calls = session.calls[: session.bill.calls]
    return sum(call.usage is None or not call.usage.prompt for call in calls)


def _is_priced(session: SimulatedSession) -> bool:
    return bool(session.calls) and all(call.terms.prices is not None for call in session.calls)


def _unpriced(session: SimulatedSession) -> Mapping[str, int]:
    return Counter(c.terms.language_model for c in session.calls if c.terms.prices is None)


def _bill(session: SimulatedSession) -> Dollars:
    """Return the dollars of all recorded usage of a session; 0 if a call has no prices."""
    if not _is_priced(session):
        return Dollars()
    billed = (call.terms.dollars(call.usage) for call in session.calls if call.usage is not None)
    return sum((paid for paid in billed if paid is not None), Dollars())


def _sent(sizes: Iterable[tuple[int, int]]) -> Sent:
    """Sum up prompts, each beside its window."""
    found = list(sizes)
    tokens = [size for size, _ in found]
    return Sent(sum(tokens), max(tokens, default=0), sum(size > window for size, window in found))
