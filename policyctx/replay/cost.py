"""The cost of a replay's prompts under the prompt cache of their language model.

What a call reads from the cache, writes to it, and leaves depends on where its breakpoints stand,
so every call has a cost for each layout. A policy that changes what was already sent pays for it
here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import NamedTuple, TypeAlias

from policyctx.definitions.items import Ttl
from policyctx.planning.facts import Facts
from policyctx.pricing.dollars import Dollars
from policyctx.pricing.rows import CacheRules
from policyctx.replay import cache
from policyctx.replay.recording import ClientLayout, Recording, SummedBill
from policyctx.replay.sent_list import MessageBlocks, Prompt, SentList
from policyctx.replay.simulated import SimulatedCall, SimulatedSession
from policyctx.tokens.usage import MOST_TOKENS, Correction, Summable, Usage
from policyctx.turns.breakpoints import BreakpointPlace, anchors, breakpoints

_UNTAUGHT = Correction()
LAYOUT_MEANINGS: dict[cache.LayoutName, str] = {
    "recorded": "the breakpoints of the client, which move with its newest message",
    "last": "one breakpoint at the end of the request, as automatic caching sets it",
    "auto": "the breakpoints that a policy with `breakpoints: auto` sets",
    "ideal": "a breakpoint at every block, which no provider allows",
}
_MINUTES = 300
_SECONDS = {"5m": _MINUTES, "1h": cache.HOUR}
# A model without a prompt cache: no prefix is long enough for it.
_NO_CACHE = CacheRules("prefix", min_tokens=MOST_TOKENS, bills_writes=False)
# A difference of fewer tokens, or of a smaller share of the bill, may be one of counting.
_UNTOLD_TOKENS, _UNTOLD_SHARE = 500, 0.02


def scales_of(calls: Sequence[SimulatedCall]) -> list[cache.Scale]:
    """Return for each call of a session the line from counted tokens to the provider's.

    It goes through the bill of the call, and otherwise through the last one of the same language
    model. Without any usage the provider's tokens are taken to be the counted ones.
    """
    lines = _lines(calls)
    overheads: dict[str | None, float] = {}
    scales = []
    for call in calls:
        model = call.language_model
        line = lines[model]
        if (bill := call.bill) is not None and bill.prompt:
            overheads[model] = bill.prompt - line.scale * call.unedited.tokens
        scales.append(cache.Scale(line.scale, overheads.setdefault(model, line.overhead)))
    return scales


def call_shares(recording: Recording, blocks: MessageBlocks, facts: Facts) -> list[Usage | None]:
    """Return each call's share of what the calls were billed together, None where it has none.

    `blocks` have measured the messages of the whole recording.
    """
    if recording.bill is None:
        return [None] * len(recording.calls)
    counted, messages = [], 0
    for call in recording.calls:
        new = sum(blocks.tokens(message, facts) for message in call.new)
        messages = new if call.anew else messages + new
        beside = tuple(part for part in (call.system, call.tools) if part is not None)
        counted.append(messages + replace(facts, beside=beside).tokens_beside)
    return [*shares_of(counted, recording.bill)]


def shares_of(counted: Sequence[int], bill: SummedBill) -> list[Usage]:
    """Return the share of each call, by what is counted for its prompt, in tokens.

    Calls that the bill is not for have the same scale. Without a billed prompt the scale is 1.
    """
    together = sum(counted[: bill.calls])
    beside, rest = bill.beside, bill.usage.prompt - bill.beside * min(bill.calls, len(counted))
    if bill.usage.prompt and rest <= 0:
        beside, rest = 0, bill.usage.prompt
    scale = rest / together if bill.usage.prompt and together else 1.0
    prompts = _rounded([scale * tokens for tokens in counted])
    outputs = _rounded([bill.usage.output / bill.calls if bill.calls else 0.0] * len(counted))
    return [
        Usage(max(1, prompt + beside), output=output)
        for prompt, output in zip(prompts, outputs, strict=True)
    ]


def _rounded(parts: Sequence[float]) -> list[int]:
    """Return whole numbers whose sums, from the first on, are those of the parts."""
    ends = [round(end) for end in accumulate(parts)]
    return [end - before for end, before in zip(ends, [0, *ends], strict=False)]


def _lines(calls: Iterable[SimulatedCall]) -> dict[str | None, Correction]:
    """Return what the whole session has taught of each language model."""
    lines: dict[str | None, Correction] = {}
    for call in calls:
        line = lines.get(call.language_model, _UNTAUGHT)
        if (bill := call.bill) is not None:
            line = line.observed(call.unedited.tokens, bill)
        lines[call.language_model] = line
    return lines


def learnt(recording: Recording, calls: int, facts: Facts) -> Correction:
    """Return what `Session.observe` would have learnt from the first `calls` calls.

    `recording` is whole: where only a sum was billed, each call has its share of it. The lists are
    counted as they were recorded, with the counter and the scale of `facts`; each message is
    counted once. Without usage the result is a new `Correction`.
    """
    made = recording.calls[:calls]
    correction = Correction()
    if recording.bill is None and all(call.usage is None for call in made):
        return correction
    counted = made if recording.bill is None else recording.calls
    blocks = MessageBlocks()
    blocks.measure((message for call in counted for message in call.new), facts)
    shares = call_shares(recording, blocks, facts)
    whole = SentList(blocks)
    for call, context, share in zip(
        made, islice(recording.contexts(), calls), shares, strict=False
    ):
        beside = tuple(part for part in (call.system, call.tools) if part)
        sent = whole.sent(context, replace(facts, beside=beside))
        billed = call.usage if call.usage is not None and call.usage.prompt else share
        if billed is not None and billed.prompt:
            correction = correction.observed(sent.tokens, billed)
    return correction


class Ttls(NamedTuple):
    """How long a call keeps what it writes, in seconds."""

    head: int
    """Tools and system prompt."""
    rest: int
    is_assumed: bool = False
    """Whether neither the call nor one before it says so."""


def ttls_of(calls: Sequence[SimulatedCall]) -> Iterator[Ttls]:
    """Yield the TTLs of the writes of each call: those of its terms.

    Where a call was billed for writes of both TTLs, the longer one comes first, as the provider
    demands, so it is that of tools and system prompt, there and in the calls after it.
    """
    head: dict[str | None, int] = {}
    for call in calls:
        usage, terms = call.usage, call.terms
        if usage is not None and usage.cache_write and usage.cache_write_1h is not None:
            hour = usage.cache_write_1h > 0 and terms.ttl == usage.write_ttl
            head[call.language_model] = cache.HOUR if hour else terms.ttl
        yield Ttls(
            max(terms.ttl, head.get(call.language_model, 0)), terms.ttl, terms.ttl_is_assumed
        )


def breakpoints_of(
    layout: cache.LayoutName, prompt: Prompt, client: ClientLayout, ttls: Ttls
) -> tuple[cache.CacheBreakpoint, ...]:
    """Return the breakpoints of a request under any layout but `auto`, in order.

    `ideal` has the last one only, for the TTL; its cache matches everywhere.
    """
    last = cache.CacheBreakpoint(prompt.end - 1, ttls.rest)
    if layout != "recorded":
        return (last,)
    if prompt.marks is not None:
        return tuple(
            cache.CacheBreakpoint(mark.block, mark.ttl or _MINUTES) for mark in prompt.marks
        )
    found = [cache.CacheBreakpoint(prompt.head - 1, ttls.head)] if client.head else []
    if client.newest and last.block >= prompt.head:
        found.append(last)
    return tuple(found)


class SentPrefix(NamedTuple):
    """A prefix that ended with a breakpoint."""

    block: int
    key: int


class AnchorLayout:
    """The breakpoints that a policy with `breakpoints: auto` sets, request after request.

    See `policyctx.turns.breakpoints`. Tools and system prompt have one at their end.
    """

    def __init__(self) -> None:
        self._anchor: SentPrefix | None = None
        self._last: SentPrefix | None = None

    def of(
        self, prompt: Prompt, prefixes: cache.Prefixes, ttls: Ttls
    ) -> tuple[cache.CacheBreakpoint, ...]:
        """Return the breakpoints of the next request, whose blocks `prefixes` hold."""
        head = prompt.head - 1
        found = anchors(prompt.end, prompt.removable, prefixes.markable)
        old, before = (_there(one, prefixes) for one in (self._anchor, self._last))
        self._anchor, self._last = (
            None if block is None else SentPrefix(block, prefixes.keys[block])
            for block in found[:2]
        )
        found = found._replace(old=old, before=before)
        ttl: Ttl = "1h" if ttls.rest >= cache.HOUR else "5m"
        chosen = breakpoints(found, ttl, system=BreakpointPlace(head))
        blocks = {one.place: _SECONDS[one.ttl] for one in chosen}
        return tuple(cache.CacheBreakpoint(block, blocks[block]) for block in sorted(blocks))


def _there(prefix: SentPrefix | None, prefixes: cache.Prefixes) -> int | None:
    """Return the last block of a prefix, None if the list does not begin with it."""
    if prefix is None or prefix.block >= len(prefixes.keys):
        return None
    return prefix.block if prefixes.keys[prefix.block] == prefix.key else None


@dataclass(frozen=True, slots=True)
class Cost(Summable):
    """Tokens by what a provider takes for them; sums of some calls."""

    cache_read: int = 0
    cache_write: int = 0
    input: int = 0
    """Neither read from the cache nor written to it."""
    output: int = 0
    """As far as the recording knows; a policy does not change it."""
    cache_write_1h: int = 0
    """How many of `cache_write` are written for an hour."""
    dollars: Dollars = field(default_factory=Dollars)
    """Of each call at its own price; nothing for a session with a call without prices."""

    @property
    def uncached(self) -> int:
        """Tokens of the prompts that were not read from the cache."""
        return self.cache_write + self.input

    @property
    def prompt(self) -> int:
        """Tokens of the prompts."""
        return self.cache_read + self.uncached

    @property
    def usage(self) -> Usage:
        """What a provider would bill for one call."""
        return Usage(
            self.input, self.cache_read, self.cache_write, self.output, self.cache_write_1h
        )

    def with_read(self, tokens: int) -> Cost:
        """Return the tokens, without $, when so many more of them are read from the cache."""
        written, hour = min(tokens, self.cache_write), min(tokens, self.cache_write_1h)
        return Cost(
            self.cache_read + tokens,
            self.cache_write - written,
            self.input - (tokens - written),
            self.output,
            self.cache_write_1h - hour,
        )


class CostPair(NamedTuple):
    """What calls cost without a policy, and with it."""

    unedited: Cost = Cost()
    edited: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Costs:
    """What one session or many cost, and the same side by side under each layout asked for."""

    unedited: Cost = field(default_factory=Cost)
    """Without the policy, under the client's own breakpoints."""
    edited: Cost = field(default_factory=Cost)
    """With the policy, under the breakpoints that are sent with it."""
    layouts: Mapping[cache.LayoutName, CostPair] = field(default_factory=dict)

    def of(self, layout: cache.LayoutName) -> CostPair:
        """Return the costs under one layout."""
        return self.layouts.get(layout, CostPair())

    @classmethod
    def sum_of(cls, many: Iterable[Costs]) -> Costs:
        """Return what several sums come to together."""
        found = list(many)
        pairs = {
            name: CostPair(*map(Cost.sum_of, zip(*(one.of(name) for one in found), strict=True)))
            for name in dict.fromkeys(name for one in found for name in one.layouts)
        }
        unedited, edited = (
            [getattr(one, name) for one in found] for name in ("unedited", "edited")
        )
        return cls(Cost.sum_of(unedited), Cost.sum_of(edited), pairs)


class BilledCall(NamedTuple):
    """A call with its two prompts as a provider would bill them."""

    call: SimulatedCall
    unedited: int
    """The provider's tokens of the prompt as it was recorded."""
    edited: int
    """Those of the prompt under the policy."""
    head: int
    """Those of its tools and system prompt, and of what nobody shows."""
    is_first: bool
    """Whether the session has not called this language model before."""
    ttls: Ttls
    scale: cache.Scale
    costs: Costs
    foreseen: int
    """The tokens that it would have read by the rules alone, whatever its bill says."""

    @property
    def is_expired(self) -> bool:
        """Whether the session called the model before, and nothing of it is in the cache."""
        return not self.is_first and self.foreseen == 0


_PricedCalls: TypeAlias = Sequence[tuple[SimulatedCall, cache.Scale, Ttls]]


class CallCosts(NamedTuple):
    """What the calls of a session cost, each under each layout that was asked for."""

    costs: Sequence[Mapping[cache.LayoutName, Cost]]
    foreseen: Sequence[int]
    """The tokens that each reads by the rules alone, under the first layout."""
    told: Sequence[cache.Told]


class UneditedCosts:
    """The costs of one recording without a policy: found once, and shared by all its replays."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], CallCosts] = {}

    def of(
        self, calls: _PricedCalls, layouts: Sequence[cache.LayoutName], client: ClientLayout
    ) -> CallCosts:
        """Return the costs of each call of a replay of the recording, as it was recorded."""
        prompts = tuple(
            (call.terms, call.unedited.kept, call.unedited.blocks, call.unedited.marks)
            for call, *_ in calls
        )
        key = tuple(layouts), prompts
        if key not in self._known:
            self._known[key] = _costs(calls, [c.unedited for c, *_ in calls], layouts, client)
        return self._known[key]


def billed_calls(
    session: SimulatedSession,
    *,
    layouts: Sequence[cache.LayoutName] | None = None,
    known: UneditedCosts | None = None,
) -> tuple[BilledCall, ...]:
    """Return the calls of a session as a provider would bill them.

    Costs are those without the policy, those with it, and both under each of `layouts`; by default
    these are the ones that the session was simulated for. Without a policy the breakpoints are the
    client's, also for `auto`. What the bill of a call says of the cache is believed, and holds for
    its prompt under the policy too: what others had left in it, what was lost, and what was kept
    longer than its TTL. `known` has what earlier replays of the same recording found.
    """
    calls, sent, client = session.calls, session.sent_layout, session.layout
    shown = session.layouts if layouts is None else layouts
    apart = shown
    if not any(call.terms.has_breakpoints for call in calls):
        sent, apart = "recorded", ()  # to such a cache breakpoints are nothing
    priced = list(zip(calls, scales_of(calls), ttls_of(calls), strict=True))
    of_client = _in_order("recorded", *(name for name in apart if name != "auto"))
    unedited = (known or UneditedCosts()).of(priced, of_client, client)
    edited = unedited.costs
    done = () if session.is_edited else of_client
    if others := [name for name in _in_order(sent, *apart) if name not in done]:
        prompts = [call.edited for call in calls]
        found = _costs(priced, prompts, others, client, unedited).costs
        edited = [{**one, **other} for one, other in zip(edited, found, strict=True)]
    billed, called = [], set[str | None]()
    for (call, scale, ttls), before, after, foreseen in zip(
        priced, unedited.costs, edited, unedited.foreseen, strict=True
    ):
        prompt = call.unedited
        if prompt.kept == 0:
            head = scale(sum(block.tokens for block in prompt.blocks[: prompt.head]))
        is_first = call.language_model not in called
        called.add(call.language_model)
        recorded, now = before["recorded"], after[sent]
        pairs = {n: CostPair(before.get(n, recorded), after.get(n, now)) for n in shown}
        costs = Costs(recorded, now, pairs)
        sizes = scale(prompt.tokens), scale(call.edited.tokens), head
        billed.append(BilledCall(call, *sizes, is_first, ttls, scale, costs, foreseen))
    return tuple(billed)


def _in_order(*names: cache.LayoutName) -> tuple[cache.LayoutName, ...]:
    return tuple(name for name in cache.LAYOUTS if name in names)


def costs_of(calls: Sequence[BilledCall]) -> Costs:
    """Return what calls of one session cost together."""
    return Costs.sum_of(call.costs for call in calls)


def _costs(
    calls: _PricedCalls,
    prompts: Sequence[Prompt],
    layouts: Sequence[cache.LayoutName],
    client: ClientLayout,
    unedited: CallCosts | None = None,
) -> CallCosts:
    """Return what each prompt of a session costs under each of the layouts.

    Without `unedited`, the prompts are the billed ones. What their bills tell of the cache is used
    for edited prompts too.
    """
    tells = unedited is None and any(
        call.usage is not None and (call.usage.cache_read or call.usage.cache_write)
        for call, *_ in calls
    )
    prefixes = cache.Prefixes(cache.PrefixKeys())
    anchored = AnchorLayout()
    is_priced = all(call.terms.prices is not None for call, *_ in calls)
    called: set[str | None] = set()
    caches: dict[tuple[str | None, CacheRules, cache.LayoutName], cache.CacheSimulator] = {}
    found, foreseen, heard = [], [], [] if unedited is None else [*unedited.told]
    for i, ((call, scale, ttls), prompt) in enumerate(zip(calls, prompts, strict=True)):
        prefixes.replace(prompt.kept, prompt.blocks, scale.beside)
        model, rules = call.language_model, call.terms.cache or _NO_CACHE
        costs: dict[cache.LayoutName, Cost] = {}
        for layout in layouts:
            if (model, rules, layout) not in caches:
                caches[model, rules, layout] = cache.simulator_of(rules, layout)
            simulator = caches[model, rules, layout]
            request = cache.CacheRequest(
                prefixes.keys,
                prefixes.tokens,
                prefixes.beside,
                prefixes.positions,
                anchored.of(prompt, prefixes, ttls)
                if layout == "auto"
                else breakpoints_of(layout, prompt, client, ttls),
                call.at,
                scale.factor,
            )
            if layout == layouts[0] and unedited is None:
                foreseen.append(simulator.read(request))
                head = request.until(prompt.head - 1) if model in called else request.tokens
                heard.append(
                    _told(call, simulator, request, head, foreseen[i]) if tells else cache.UNTOLD
                )
            if heard[i] is not cache.UNTOLD:
                request = request._replace(told=heard[i])
            costs[layout] = _cost(simulator.split(request), call, is_priced=is_priced)
        found.append(costs)
        called.add(model)
    return CallCosts(found, foreseen, heard)


def _told(
    call: SimulatedCall,
    simulator: cache.CacheSimulator,
    request: cache.CacheRequest,
    head: int,
    foreseen: int,
) -> cache.Told:
    """Return what the bill of a call says of the cache, beside what the rules foresee."""
    usage = call.usage
    if usage is None or not usage.prompt:
        return cache.UNTOLD
    read = usage.cache_read
    most = read + max(_UNTOLD_TOKENS, round(_UNTOLD_SHARE * read))
    if foreseen > most:
        return cache.Told(least=min(read, head), most=read)
    kept = cache.Told(kept=True)
    if foreseen < (found := simulator.read(request._replace(told=kept))) <= most:
        return kept
    if head < read < found and foreseen == 0:
        return kept._replace(most=read)
    return cache.Told(least=min(read, head)) if foreseen == 0 else cache.UNTOLD


def _cost(split: cache.CacheSplit, call: SimulatedCall, *, is_priced: bool) -> Cost:
    written = split.write_5m + split.write_1h
    usage = Usage(split.input, split.read, written, call.output, split.write_1h)
    paid = call.terms.dollars(usage) if is_priced else None
    return Cost(split.read, written, split.input, call.output, split.write_1h, paid or Dollars())
