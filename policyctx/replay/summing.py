"""Figures of a session, and of many: what `policyctx replay` shows in a line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import reduce
from itertools import accumulate, chain
from operator import add
from typing import Any, NamedTuple, TypeVar

from policyctx.errors import present
from policyctx.pricing.dollars import CallPrices, Dollars, dollars
from policyctx.replay.accuracy import Check, Checks, checked, checks_of
from policyctx.replay.cost import (
    BilledCall,
    Cost,
    Costs,
    UneditedCosts,
    billed_calls,
    costs_of,
)
from policyctx.replay.simulated import Regret, SimulatedSession, StepUse, SummaryCall, TypeTokens
from policyctx.replay.terms import Contradiction
from policyctx.tokens.usage import HOUR, Summable, Usage

T = TypeVar("T")
K = TypeVar("K")


def margin(without: float) -> float:
    """Return the $ within which two costs count as the same, by the $ without a policy."""
    return max(0.01, 0.01 * without)


@dataclass(frozen=True, slots=True)
class Charge(Summable):
    """One line of the net: what some calls take."""

    number: int = 0
    """How many calls."""
    tokens: int = 0
    """Of their prompts, as the provider bills them."""
    output: int = 0
    """Tokens of their replies; 0 for recorded calls, since no policy changes their output."""
    dollars: Dollars = field(default_factory=Dollars)
    """Of a session with prices."""


@dataclass(frozen=True, slots=True)
class Net(Summable):
    """The lines of the net of one session, or of several together."""

    without: Charge = Charge()
    """The recorded calls without the policy, under the client's own breakpoints."""
    edited: Charge = Charge()
    """The recorded calls with the policy, under the breakpoints that are sent with it."""
    summaries: Charge = Charge()
    """The calls that write its summaries; none where no model is asked."""
    re_reads: Charge = Charge()
    """What the agent would have read again because it used it."""

    @property
    def tokens(self) -> int:
        """Tokens of prompts: below 0 when the policy takes fewer."""
        return self.edited.tokens - self.without.tokens + self._more.tokens

    @property
    def dollars(self) -> float:
        """The net in $, output of summaries and re-reads included: below 0 when it saves."""
        return self.edited.dollars.prompt - self.without.dollars.prompt + self._more.dollars.total

    @property
    def output(self) -> int:
        """Tokens of output in it."""
        return self._more.output

    @property
    def output_dollars(self) -> float:
        """The $ of output in it."""
        return self._more.dollars.output

    @property
    def share(self) -> float:
        """The net as a share of the cost without the policy."""
        whole = self.without.dollars.prompt
        return self.dollars / whole if whole else 0.0

    @property
    def is_dearer(self) -> bool:
        """Whether the policy makes one session dearer, by more than a cent and a hundredth."""
        return self.dollars > margin(self.without.dollars.prompt)

    @property
    def _more(self) -> Charge:
        return self.summaries + self.re_reads


def net_of(session: SimulatedSession, billed: Sequence[BilledCall]) -> Net:
    """Return the net of one session, whose calls are `billed`; without prices it has no $."""
    sides = [call.costs.unedited for call in billed], [call.costs.edited for call in billed]
    without, edited = (
        Charge(len(billed), cost.prompt, 0, replace(cost.dollars, output=0.0))
        for cost in map(Cost.sum_of, sides)
    )
    is_priced = all(call.call.terms.prices is not None for call in billed)
    # The provider's tokens for each counted one.
    factors = [call.scale.factor for call in billed]
    summaries = [_summary(one, factors, is_priced=is_priced) for one in session.summaries]
    reads = ReReads(session, billed, factors, is_priced=is_priced)
    re_reads = (charge for _, charge in reads.charges(session.regrets))
    return Net(without, edited, sum(summaries, Charge()), sum(re_reads, Charge()))


def _summary(call: SummaryCall, factors: Sequence[float], *, is_priced: bool) -> Charge:
    """Return what one summary takes: a request with what is cached of it."""
    factor = factors[call.call - 1]
    read, written = round(factor * call.read), round(factor * call.written)
    rest = max(0, round(factor * call.prompt) - read - written)
    usage = Usage(rest, read, written, round(factor * call.output))
    paid = dollars(usage, call.prices) if is_priced and call.prices is not None else Dollars()
    return Charge(1, usage.prompt, usage.output, paid)


def used_ranges(regret: Regret) -> Iterator[tuple[int, int]]:
    """Yield what must be read again: the number of the call that first used it, and the tokens.

    Each range is there once, together no more than the item took. What the recording itself asks
    for again is left out: it has paid for that call.
    """
    left = regret.removal.tokens
    for need in regret.needs:
        tokens = min(need.tokens, left)
        left -= tokens
        if need.kind == "used" and tokens > 0:
            yield need.call, tokens


class ReReads:
    """The re-reads of one session."""

    def __init__(
        self,
        session: SimulatedSession,
        billed: Sequence[BilledCall],
        factors: Sequence[float],
        *,
        is_priced: bool,
    ) -> None:
        self._session, self._billed, self._factors = session, billed, factors
        self._is_priced = is_priced
        # What a token of a range costs to read from the call with this index on, until the end.
        read = [self._paid(call, 1, 0, 0).prompt if is_priced else 0.0 for call in billed]
        self._read_from = [*accumulate(reversed(read), initial=0.0)][::-1]

    def charges(self, regrets: Iterable[Regret]) -> Iterator[tuple[int, Charge]]:
        """Yield the number of each call whose reply used ranges, and what they cost together."""
        tokens = Counter[int]()
        for call, used in chain.from_iterable(map(used_ranges, regrets)):
            tokens[call] += used
        for call in sorted(tokens):
            yield call, self._charge(call, tokens[call])

    def _charge(self, call: int, used: int) -> Charge:
        """Charge one extra call, and the tokens that a call used in it and in each later one."""
        billed = self._billed[call - 1]
        tokens = round(self._factors[call - 1] * used)
        later = len(self._billed) - call
        output = self._session.tool_call_output
        prompt = billed.edited + tokens * (1 + later)
        if not self._is_priced:
            return Charge(1, prompt, output)
        extra = self._paid(billed, billed.edited, tokens, output)
        read = Dollars(cache_read=tokens * self._read_from[call])
        return Charge(1, prompt, output, extra + read)

    def _paid(self, billed: BilledCall, read: int, written: int, output: int) -> Dollars:
        """Return what is paid at the rates of a call; a model without a cache takes input."""
        terms = billed.call.terms
        rates = present(terms.prices).rates(billed.edited)
        usage = Usage(0, read, written, output, written if terms.ttl >= HOUR else 0)
        if terms.cache is None:
            usage = Usage(read + written, output=output)
        elif not terms.cache.bills_writes:
            usage = Usage(written, cache_read=read, output=output)
        return dollars(usage, CallPrices(rates))


@dataclass(frozen=True, slots=True)
class SentTokens:
    """Prompts, in tokens as a provider bills them; without usage, as they were counted."""

    tokens: int = 0
    """Of all calls together."""
    largest: int = 0
    """Of the largest one."""
    over_window: int = 0
    """Calls that were sent more than the context window holds."""

    def __add__(self, other: SentTokens) -> SentTokens:
        return SentTokens(
            self.tokens + other.tokens,
            max(self.largest, other.largest),
            self.over_window + other.over_window,
        )


@dataclass(frozen=True, slots=True)
class _SummedFrom:
    """One replayed session, with what several of its figures are made from."""

    session: SimulatedSession
    billed: Sequence[BilledCall]
    check: Check | None
    net: Net
    removed: Mapping[tuple[int, int], int]
    """The tokens of each removed item, by its part and its position."""

    @classmethod
    def of(cls, session: SimulatedSession, unedited: UneditedCosts | None) -> _SummedFrom:
        billed = billed_calls(session, known=unedited)
        removed = {(r.part, r.position): r.tokens for r in session.removals}
        return cls(session, billed, checked(billed), net_of(session, billed), removed)


def _figure(
    value: Callable[[_SummedFrom], T],
    of_many: Callable[[Sequence[T]], T] | None = None,
    *,
    none: Callable[[], Any] = int,
) -> T:
    """Return the field of a figure: its value for one session, and that of many together.

    `none` makes the value for no session at all. By default many values are added up.
    """

    def added(values: Sequence[T]) -> T:
        found: T = reduce(add, values, none())
        return found

    metadata = {"value": value, "of_many": of_many or added}
    made: T = field(default_factory=none, metadata=metadata)
    return made


def _counter(value: Callable[[_SummedFrom], Mapping[K, int]]) -> Mapping[K, int]:
    """Return the field of a figure that counts; counts of several sessions are added up."""
    return _figure(value, lambda many: sum(map(Counter, many), Counter[K]()), none=dict)


def _merged(many: Sequence[Mapping[str, T]]) -> dict[str, T]:
    merged: dict[str, T] = {}
    for one in many:
        for name, value in one.items():
            merged[name] = add(merged[name], value) if name in merged else value
    return merged


def _totals(many: Sequence[Mapping[str, Figures]]) -> dict[str, Figures]:
    found: dict[str, list[Figures]] = {}
    for one in many:
        for name, figures in one.items():
            found.setdefault(name, []).append(figures)
    return {name: total(figures) for name, figures in found.items()}


def _names(many: Sequence[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sorted(set(chain.from_iterable(many))))


class Worst(NamedTuple):
    """The session in which a policy does worst."""

    dollars: float
    """The net of the session."""
    share: float
    """Of what it costs without the policy."""
    name: str
    path: str


def _worst(one: _SummedFrom) -> Worst | None:
    if not _is_priced(one.session):
        return None
    return Worst(one.net.dollars, one.net.share, one.session.name, one.session.path)


def _worst_of(many: Sequence[Worst | None]) -> Worst | None:
    found = (one for one in many if one is not None)
    return max(found, key=lambda one: one.dollars, default=None)


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures of one session under a policy, or several of them together.

    Each figure is defined here only: its value for one session, and that of many together.
    """

    sessions: int = _figure(lambda _: 1)
    calls: int = _figure(lambda s: len(s.billed))
    billed: int = _figure(
        lambda s: sum(c.usage is not None and c.usage.prompt > 0 for c in s.session.calls)
    )
    """Calls of which the recording has the usage."""
    summed: int = _figure(lambda s: _summed(s.session))
    """Calls of which it has no more than the usage of several together."""
    unedited: SentTokens = _figure(  # noqa: RUF009 - makes a field
        lambda s: _sent((one.unedited, one.call.terms.window) for one in s.billed), none=SentTokens
    )
    edited: SentTokens = _figure(  # noqa: RUF009 - makes a field
        lambda s: _sent((one.edited, one.call.terms.window) for one in s.billed), none=SentTokens
    )
    windows: tuple[int, ...] = _figure(
        lambda s: tuple(sorted({call.terms.window for call in s.session.calls})), _names, none=tuple
    )
    assumed_windows: Mapping[str, int] = _counter(
        lambda s: Counter(
            c.terms.language_model for c in s.session.calls if c.terms.window_is_assumed
        )
    )
    """Calls whose window nobody knows, by model."""
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
    removed_tokens: int = _figure(lambda s: sum(s.removed.values()))
    regretted: int = _figure(lambda s: len(s.session.regretted_items))
    """Items of these that were needed afterwards."""
    regretted_tokens: int = _figure(lambda s: s.session.regretted_tokens)
    """The tokens of what of these must be read again."""
    regretted_item_tokens: int = _figure(lambda s: sum(s.session.regretted_items.values()))
    """The tokens of these as a whole."""
    seconds: float = _figure(lambda s: s.session.seconds, none=float)
    costs: Costs = _figure(  # noqa: RUF009 - makes a field
        lambda s: costs_of(s.billed), Costs.sum_of, none=Costs
    )
    priced: int = _figure(lambda s: int(_is_priced(s.session)))
    """Sessions of which every call has prices; only these have dollars."""
    net: Net = _figure(lambda s: s.net, none=Net)  # noqa: RUF009 - makes a field
    """The cost with the policy less the one without, and what else it causes."""
    dearer: int = _figure(lambda s: int(_is_priced(s.session) and s.net.is_dearer))
    """Priced sessions that the policy makes dearer."""
    idle: int = _figure(lambda s: int(_is_priced(s.session) and not s.session.removals))
    """Priced sessions in which the policy never acted."""
    worst: Worst | None = _figure(  # noqa: RUF009 - makes a field
        _worst, _worst_of, none=lambda: None
    )
    """The priced session with the highest net."""
    untouched: Mapping[str, int] = _counter(
        lambda s: {s.session.untouched: 1} if s.session.untouched else {}
    )
    """Why the policy took nothing, and in how many sessions."""
    baselines: Mapping[str, Figures] = _figure(lambda _: {}, _totals, none=dict)
    """The figures of the sessions under other policies, by their name."""
    priced_by_policy: int = _figure(lambda s: int(s.session.is_priced_by_policy))
    """Sessions whose prices are those of the policy."""
    unpriced: Mapping[str, int] = _counter(
        lambda s: Counter(c.terms.language_model for c in s.session.calls if not c.terms.prices)
    )
    """Calls without prices, by language model."""
    tiers: Mapping[str, int] = _counter(
        lambda s: Counter(
            c.usage.tier for c in s.session.calls if c.usage and c.terms.tier_is_assumed
        )
    )
    """Calls at service tiers whose prices are not known, which have the standard prices here."""
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
    contradictions: Mapping[Contradiction, int] = _counter(lambda s: s.session.contradictions)
    checks: Checks = _figure(  # noqa: RUF009 - makes a field
        lambda s: Checks({} if s.check is None else {s.session.format: (s.check,)}),
        checks_of,
        none=Checks,
    )
    """Of the sessions whose usage speaks of a cache."""
    records: int = _figure(lambda s: s.session.records)
    not_prompt: Mapping[str, int] = _counter(lambda s: s.session.not_prompt)
    not_understood: Mapping[str, int] = _counter(lambda s: s.session.not_understood)
    warnings: Mapping[str, int] = _counter(lambda s: s.session.warnings)
    unmarked: Mapping[str, int] = _counter(lambda s: s.session.unmarked)
    """Why `breakpoints: auto` would set no marker, and in how many calls."""

    @property
    def saved(self) -> float:
        """The share of tokens that was not sent; below 0 when more was."""
        whole = self.unedited.tokens
        return (whole - self.edited.tokens) / whole if whole else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SummedSession(SimulatedSession):
    """A replayed session with its figures."""

    figures: Figures


def summed(
    session: SimulatedSession, found: Figures, baselines: Mapping[str, Figures] | None = None
) -> SummedSession:
    """Return the session with its figures, and in them those of other policies by their names."""
    known = {one.name: getattr(session, one.name) for one in fields(SimulatedSession)}
    return SummedSession(**known, figures=replace(found, baselines=baselines or {}))


def figures_of(session: SimulatedSession, *, unedited: UneditedCosts | None = None) -> Figures:
    """Return the figures of one session, which may have them already.

    `unedited` are the costs without a policy that other replays of its recording found.
    """
    if isinstance(session, SummedSession):
        return session.figures
    replayed = _SummedFrom.of(session, unedited)
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


def _bill(session: SimulatedSession) -> Dollars:
    """Return the dollars of all recorded usage of a session; 0 if a call has no prices."""
    if not _is_priced(session):
        return Dollars()
    billed = (call.terms.dollars(call.usage) for call in session.calls if call.usage is not None)
    return sum((paid for paid in billed if paid is not None), Dollars())


def _sent(sizes: Iterable[tuple[int, int]]) -> SentTokens:
    """Sum up prompts, each beside its window."""
    found = list(sizes)
    tokens, over = [size for size, _ in found], sum(size > window for size, window in found)
    return SentTokens(sum(tokens), max(tokens, default=0), over)
