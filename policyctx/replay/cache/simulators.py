"""`CacheSimulator`: what every kind of prompt cache answers, and the kind that rules ask for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from policyctx.pricing.cache_rules import CacheKind, CacheRules
from policyctx.replay.cache.anthropic import AnthropicCache
from policyctx.replay.cache.at_breakpoints import BreakpointCache
from policyctx.replay.cache.prefix import PrefixCache
from policyctx.replay.cache.requests import CacheRequest, CacheSplit


class CacheSimulator(Protocol):
    """A prompt cache that is empty at first. Requests come in the order of their completion."""

    def split(self, request: CacheRequest) -> CacheSplit:
        """Return what a request reads, writes and leaves, and take it into the cache."""
        ...


_KINDS: Mapping[CacheKind, Callable[[CacheRules], CacheSimulator]] = {
    "anthropic": AnthropicCache,
    "breakpoints": BreakpointCache,
    "prefix": PrefixCache,
}


def simulator_of(rules: CacheRules) -> CacheSimulator:
    """Return an empty cache that works as the rules say."""
    return _KINDS[rules.kind](rules)


def ideal_simulator_of(rules: CacheRules) -> CacheSimulator:
    """Return an empty cache that works as if a request had a breakpoint at every block."""
    return PrefixCache(rules, by_breakpoint=rules.kind == "anthropic")
