"""The prompt cache of Anthropic's API."""

from __future__ import annotations

from policyctx.pricing.cache_rules import CacheRules
from policyctx.replay.cache.entries import Entries
from policyctx.replay.cache.requests import Breakpoint, CacheRequest, CacheSplit

HOUR = 3600


class AnthropicCache:
    """An entry for each breakpoint of a completed request, found by walking back from breakpoints.

    Tokens behind the last breakpoint are plain input. Of more breakpoints than the rules allow the
    last ones count. What is written up to the last breakpoint for an hour is an hour's write, the
    rest one of five minutes.
    """

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._entries = Entries()

    def split(self, request: CacheRequest) -> CacheSplit:
        """Return what a request reads, writes and leaves, and take it into the cache."""
        rules = self._rules
        breakpoints = [
            one
            for one in request.breakpoints[-rules.most_breakpoints :]
            if request.until(one.block) >= rules.min_tokens
        ]
        if not breakpoints:
            return CacheSplit(input=request.tokens)
        found = self._found(request, breakpoints)
        read = 0
        if found >= 0 and (entry := self._entries.serving(request, found)) is not None:
            read = min(entry.tokens, request.until(breakpoints[-1].block))
            self._entries.refresh(request, found)
        hours = [request.until(one.block) for one in breakpoints if one.ttl >= HOUR]
        end = max(read, request.until(breakpoints[-1].block))
        hour_end = max([read, *hours])
        for one in breakpoints:
            if one.block <= found and self._entries.serving(request, one.block) is not None:
                self._entries.refresh(request, one.block)
            else:
                self._entries.write(request, one.block, one.ttl)
        return CacheSplit(read, end - hour_end, hour_end - read, max(0, request.tokens - end))

    def _found(self, request: CacheRequest, breakpoints: list[Breakpoint]) -> int:
        """Return the last block of the longest entry that a walk back finds; -1 for none."""
        positions, tried = request.positions, len(request.keys)
        for one in reversed(breakpoints):
            last = positions[one.block] - self._rules.lookback
            block = min(one.block, tried - 1)
            while block >= 0 and positions[block] > last:
                if self._entries.serving(request, block) is not None:
                    return block
                block -= 1
            tried = block + 1
        return -1
