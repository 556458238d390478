"""A prompt cache that keeps the prefixes at breakpoints, as recent models of OpenAI have it."""

from __future__ import annotations

from policyctx.pricing.cache_rules import CacheRules
from policyctx.replay.cache.entries import Entries
from policyctx.replay.cache.requests import CacheRequest, CacheSplit


class BreakpointCache:
    """An entry for each breakpoint of a completed request; the longest one that matches is read.

    A prompt matches at the breakpoints of earlier requests and nowhere else. All entries live as
    long as the rules say. Of more breakpoints than the rules allow the last ones count.
    """

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._entries = Entries()

    def split(self, request: CacheRequest) -> CacheSplit:
        """Return what a request reads, writes and leaves, and take it into the cache."""
        rules, read = self._rules, 0
        for block in range(len(request.keys) - 1, -1, -1):
            if (entry := self._entries.serving(request, block)) is not None:
                read = min(entry.tokens, request.tokens)
                self._entries.refresh(request, block)
                break
        end = read
        for one in request.breakpoints[-rules.most_breakpoints :]:
            if request.until(one.block) >= rules.min_tokens:
                self._entries.write(request, one.block, rules.ttl)
                end = max(end, request.until(one.block))
        rest = request.tokens - end
        if not rules.bills_writes:
            return CacheSplit(read, input=end - read + rest)
        return CacheSplit(read, end - read, 0, rest)
