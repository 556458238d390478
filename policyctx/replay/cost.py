"""The cost of a replay's prompts under the prompt cache of their language model.

What a call reads from the cache, writes to it, and leaves depends on where its breakpoints stand,
so every call has a cost for each layout. A policy that changes what was already sent pays for it
here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from policyctx.planning.prices import dollars
from policyctx.pricing.cache_rules import CacheRules
from policyctx.replay.cache.requests import CacheRequest, Prefixes, PrefixKeys
from policyctx.replay.cache.simulators import ideal_simulator_of, simulator_of
from policyctx.replay.layouts import LAYOUTS, breakpoints_of, ttls_of
from policyctx.replay.provider_tokens import scales_of
from policyctx.tokens.usage import Usage

if TYPE_CHECKING:
    from policyctx.policy.models import Model, Prices
    from policyctx.replay.cache.requests import CacheSplit, Scale
    from policyctx.replay.cache.simulators import CacheSimulator
    from policyctx.replay.layouts import LayoutName, Ttls
    from policyctx.replay.sent_list import Prompt
    from policyctx.replay.simulated import SimulatedCall, SimulatedSession

RulesOf: TypeAlias = Callable[[str | None], CacheRules]
"""The rules of the prompt cache of a language model, by the name that the recording gives."""


@dataclass(frozen=True, slots=True)
class Cost:
    """Tokens by what a provider takes for them; sums of some calls."""

    cache_read: int = 0
    cache_write: int = 0
    input: int = 0
    """Neither read from the cache nor written to it."""
    output: int = 0
    """As far as the recording knows; a policy does not change it."""
    cache_write_1h: int = 0
    """How many of `cache_write` are written for an hour."""

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
        """Return the cost when so many tokens more are read from the cache."""
        written, hour = min(tokens, self.cache_write), min(tokens, self.cache_write_1h)
        return Cost(
            self.cache_read + tokens,
            self.cache_write - written,
            self.input - (tokens - written),
            self.output,
            self.cache_write_1h - hour,
        )

    def dollars(self, price: Prices) -> float:
        """Return what it comes to, in $."""
        return dollars(self.usage, price)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.cache_read + other.cache_read,
            self.cache_write + other.cache_write,
            self.input + other.input,
            self.output + other.output,
            self.cache_write_1h + other.cache_write_1h,
        )


class CostPair(NamedTuple):
    """What calls cost without a policy, and with it."""

    unedited: Cost = Cost()
    edited: Cost = Cost()


@dataclass(frozen=True, slots=True)
class Costs:
    """What one session or many cost under each layout."""

    layouts: Mapping[LayoutName, CostPair] = field(default_factory=dict)
    """Empty for no session."""

    @property
    def unedited(self) -> Cost:
        """The cost without the policy, under the client's own breakpoints."""
        return self.of("recorded").unedited

    @property
    def edited(self) -> Cost:
        """The cost with the policy, under the breakpoints that are sent with it."""
        return self.of("recorded").edited

    def of(self, layout: LayoutName) -> CostPair:
        """Return the costs under one layout."""
        return self.layouts.get(layout, CostPair())

    def __add__(self, other: Costs) -> Costs:
        names = {**self.layouts, **other.layouts}
        return Costs(
            {
                name: CostPair(*(a + b for a, b in zip(self.of(name), other.of(name), strict=True)))
                for name in names
            }
        )


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
    costs: Costs

    @property
    def is_expired(self) -> bool:
        """Whether the session called the model before, and nothing of it is in the cache."""
        return not self.is_first and self.costs.unedited.cache_read == 0


def policy_rules(model: Model) -> CacheRules:
    """Return the prompt cache that a policy describes."""
    cache = model.cache
    return CacheRules("anthropic", min_tokens=cache.min_tokens, ttl=cache.ttl.seconds)


def billed_session(session: SimulatedSession, model: Model) -> tuple[BilledCall, ...]:
    """Return the calls of a session under the prompt cache that the policy's model describes."""
    rules = policy_rules(model)
    return billed_calls(session, lambda _: rules)


def billed_calls(session: SimulatedSession, rules_of: RulesOf) -> tuple[BilledCall, ...]:
    """Return the calls of a session as a provider would bill them, under every layout.

    A session begins with an empty cache: what other sessions left in it is not known.
    """
    calls = session.calls
    scales = scales_of(calls)
    default = rules_of(calls[0].language_model).ttl if calls else 0
    ttls = list(ttls_of(calls, default))
    unedited = _costs(session, [call.unedited for call in calls], scales, ttls, rules_of)
    is_same = all(call.edited is call.unedited for call in calls)
    edited = (
        unedited
        if is_same
        else _costs(session, [call.edited for call in calls], scales, ttls, rules_of)
    )
    billed, called = [], set[str | None]()
    for call, scale, ttl, before, after in zip(calls, scales, ttls, unedited, edited, strict=True):
        prompt = call.unedited
        if prompt.kept == 0:
            head = scale(sum(block.tokens for block in prompt.blocks[: prompt.head]))
        is_first = call.language_model not in called
        called.add(call.language_model)
        costs = Costs({name: CostPair(before[name], after[name]) for name in LAYOUTS})
        sizes = scale(prompt.tokens), scale(call.edited.tokens), head
        billed.append(BilledCall(call, *sizes, is_first, ttl, costs))
    return tuple(billed)


def costs_of(calls: Sequence[BilledCall]) -> Costs:
    """Return what calls of one session cost together."""
    total = Costs()
    for call in calls:
        total += call.costs
    return total


def _costs(
    session: SimulatedSession,
    prompts: Sequence[Prompt],
    scales: Sequence[Scale],
    ttls: Sequence[Ttls],
    rules_of: RulesOf,
) -> list[dict[LayoutName, Cost]]:
    """Return what each prompt of a session costs under each layout."""
    prefixes = Prefixes(PrefixKeys())
    caches: dict[tuple[str | None, LayoutName], CacheSimulator] = {}
    found = []
    for call, prompt, scale, ttl in zip(session.calls, prompts, scales, ttls, strict=True):
        prefixes.replace(prompt.kept, prompt.blocks, scale.beside)
        model = call.language_model
        costs: dict[LayoutName, Cost] = {}
        for layout in LAYOUTS:
            if (model, layout) not in caches:
                simulator = ideal_simulator_of if layout == "ideal" else simulator_of
                caches[model, layout] = simulator(rules_of(model))
            request = CacheRequest(
                prefixes.keys,
                prefixes.tokens,
                prefixes.beside,
                prefixes.positions,
                breakpoints_of(layout, prompt, session.layout, ttl),
                language_model=model,
                ended=call.at,
                factor=scale.factor,
            )
            costs[layout] = _cost(caches[model, layout].split(request), call.output)
        found.append(costs)
    return found


def _cost(split: CacheSplit, output: int) -> Cost:
    written = split.write_5m + split.write_1h
    return Cost(split.read, written, split.input, output, split.write_1h)
