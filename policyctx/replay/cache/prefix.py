"""A prompt cache that finds the longest prefix by itself, without breakpoints."""

from __future__ import annotations

from bisect import bisect_left

from policyctx.pricing.cache_rules import CacheRules
from policyctx.replay.cache.anthropic import HOUR
from policyctx.replay.cache.entries import Life
from policyctx.replay.cache.requests import CacheRequest, CacheSplit


class PrefixCache:
    """Every prefix of a completed request is cached; a read takes the longest, in whole steps.

    With `by_breakpoint` a prefix lives as long as the last breakpoint of its request says, as if
    there were a breakpoint at every block; without it as long as the rules say.
    """

    def __init__(self, rules: CacheRules, *, by_breakpoint: bool = False) -> None:
        self._rules = rules
        self._by_breakpoint = by_breakpoint
        self._prefixes: dict[str | None, _Prefixes] = {}

    def split(self, request: CacheRequest) -> CacheSplit:
        """Return what a request reads, writes and leaves, and take it into the cache."""
        rules = self._rules
        if request.tokens < rules.min_tokens:
            return CacheSplit(input=request.tokens)
        ttl = rules.ttl
        if self._by_breakpoint and request.breakpoints:
            ttl = request.breakpoints[-1].ttl
        prefixes = self._prefixes.setdefault(request.language_model, _Prefixes(ttl))
        found = min(prefixes.found(request), request.tokens)
        whole = found - found % rules.step
        read = whole if whole >= rules.min_tokens else 0
        prefixes.take(request, ttl)
        rest = request.tokens - read
        if not rules.bills_writes:
            return CacheSplit(read, input=rest)
        return CacheSplit(read, 0, rest) if ttl >= HOUR else CacheSplit(read, rest)


class _Prefixes:
    """The prefixes of the requests to one language model.

    A prefix is served at least as long as any that begins with it, so the longest one that is
    served is found by halves.
    """

    def __init__(self, ttl: int) -> None:
        self._lives: dict[int, Life] = {}
        self._ttl = ttl
        self._is_plain = True
        """Whether all had one TTL, and each request began after the one before was completed."""

    def found(self, request: CacheRequest) -> int:
        """Return the tokens of the longest prefix that is served."""
        blocks = range(len(request.keys))
        end = bisect_left(blocks, 1, key=lambda block: self._served(request, block) is None)
        return request.until(end - 1) if end else 0

    def take(self, request: CacheRequest, ttl: int) -> None:
        """Take in all prefixes of a request; one that is served keeps its own TTL."""
        new = Life(ttl, request.ended, request.ended)
        self._is_plain &= ttl == self._ttl and request.began is None
        if self._is_plain:
            self._lives.update(dict.fromkeys(request.keys, new))
            return
        for block, key in enumerate(request.keys):
            known = self._served(request, block)
            self._lives[key] = new if known is None else known.used_by(request)

    def _served(self, request: CacheRequest, block: int) -> Life | None:
        life = self._lives.get(request.keys[block])
        return life if life is not None and life.serves(request) else None
