"""`CacheRequest`: what a prompt cache sees of a request, and simulators of providers' caches."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from policyctx.messages.markers import BlockKind
from policyctx.pricing.rows import CacheRules

_RUNS = frozenset({"tool_use", "tool_result"})
LayoutName: TypeAlias = Literal["recorded", "last", "auto", "ideal"]
LAYOUTS: tuple[LayoutName, ...] = get_args(LayoutName)
HOUR = 3600


class Block(NamedTuple):
    """One block of a prompt: tools, system prompt, or a part of a message."""

    identity: int
    """Equal for two blocks with the same content, whatever their `cache_control`."""
    tokens: int
    """As the policy counts them."""
    kind: BlockKind = "other"


class CacheBreakpoint(NamedTuple):
    """A place up to which a request asks for its prompt to be cached."""

    block: int
    """The index of the last block before it."""
    ttl: int
    """For how long, in seconds."""


class PrefixKeys:
    """Numbers for prefixes: two lists of blocks have the same number if they are equal."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], int] = {}

    def after(self, prefix: int, identity: int) -> int:
        """Return the number of a prefix followed by a block; the empty prefix is 0."""
        return self._known.setdefault((prefix, identity), len(self._known) + 1)


class Prefixes:
    """The prefixes of one list, request after request; a request costs what is new in it."""

    def __init__(self, keys: PrefixKeys) -> None:
        self._keys = keys
        self.keys: list[int] = []
        """The number of the prefix that ends with each block."""
        self.tokens: list[int] = []
        """Its tokens, as the policy counts them."""
        self.positions: list[int] = []
        """The position of each block; blocks of a run of calls or of results have the same."""
        self.beside: list[float] = []
        """The provider's tokens that nobody shows in it, as they were when it was first sent."""
        self._kinds: list[BlockKind] = []

    def markable(self, block: int) -> int | None:
        """Return the last block at or before this one that may have a breakpoint."""
        while block >= 0 and self._kinds[block] == "unmarkable":
            block -= 1
        return block if block >= 0 else None

    def replace(self, kept: int, new: Iterable[Block], beside: float = 0.0) -> None:
        """Keep the first blocks of the list, and put these behind them.

        What nobody shows of the request has grown to `beside` since: it came with the new blocks.
        """
        del self.keys[kept:], self.tokens[kept:], self.positions[kept:], self._kinds[kept:]
        del self.beside[kept:]
        key = self.keys[-1] if kept else 0
        tokens = self.tokens[-1] if kept else 0
        position = self.positions[-1] if kept else -1
        before = self._kinds[-1] if kept else None
        for block in new:
            key = self._keys.after(key, block.identity)
            tokens += block.tokens
            position += block.kind not in _RUNS or block.kind != before
            before = block.kind
            self.keys.append(key)
            self.tokens.append(tokens)
            self.positions.append(position)
            self._kinds.append(before)
            self.beside.append(beside)
        self.beside[-1:] = [beside] * bool(self.beside)


def scaled(factor: float, beside: float, counted: int) -> int:
    """Return the provider's tokens of a prompt, on a line from the counted ones."""
    return max(0, round(factor * counted + beside))


class Scale(NamedTuple):
    """A line from counted tokens to those of the provider."""

    factor: float = 1.0
    beside: float = 0.0
    """What no message shows."""

    def __call__(self, counted: int) -> int:
        """Return the provider's tokens of a prompt."""
        return scaled(self.factor, self.beside, counted)


class Told(NamedTuple):
    """What the bill of a recorded call says of the cache that it found."""

    least: int = 0
    """So many tokens of the prompt's head were in it, whoever wrote them."""
    most: int | None = None
    """What was written behind so many tokens was lost; None if nothing was."""
    kept: bool = False
    """No entry had expired."""


UNTOLD = Told()


class CacheRequest(NamedTuple):
    """One request. The sequences have an element for each block, at least one, tools first."""

    keys: Sequence[int]
    counted: Sequence[int]
    """Tokens of the prefix that ends with each block, as the policy counts them."""
    beside: Sequence[float]
    """The provider's tokens in it that nobody shows."""
    positions: Sequence[int]
    breakpoints: tuple[CacheBreakpoint, ...] = ()
    """In the order of their blocks; a cache without breakpoints ignores them."""
    at: float | None = None
    """When it was made, in seconds; None where nobody knows, and then nothing expires."""
    factor: float = 1.0
    """The provider's tokens for each counted one."""
    told: Told = UNTOLD

    @property
    def tokens(self) -> int:
        """The provider's tokens of the whole prompt."""
        return self.until(len(self.counted) - 1)

    def until(self, block: int) -> int:
        """Return the provider's tokens of the prefix that ends with a block."""
        return scaled(self.factor, self.beside[block], self.counted[block])

    def reads(self, found: int) -> int:
        """Return the tokens that it reads where so many were found."""
        least, most, _ = self.told
        found = found if most is None else min(found, most)
        return max(found, min(least, self.tokens))


class CacheSplit(NamedTuple):
    """The tokens of one prompt by what a prompt cache makes of them; each is in one of these."""

    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    input: int = 0
    """Neither read nor written."""


class Life(NamedTuple):
    """Until when a cached prefix can be read."""

    ttl: int
    """How long it lives after its last use, in seconds."""
    used: float | None

    def serves(self, request: CacheRequest) -> bool:
        """Return whether a request finds it; where a time is unknown, it does."""
        if request.at is None or self.used is None or request.told.kept:
            return True
        return request.at - self.used <= self.ttl

    def used_by(self, request: CacheRequest) -> Life:
        """Return its life after a request that reads it."""
        now = request.at
        return self if now is None else self._replace(used=max(now, self.used or now))


class PrefixCache:
    """Every prefix of a request is cached; a read takes the longest, in whole steps.

    With `by_breakpoint` a prefix lives as long as the last breakpoint of its request says, as if
    there were a breakpoint at every block; without it as long as the rules say.
    """

    def __init__(self, rules: CacheRules, *, by_breakpoint: bool = False) -> None:
        self._rules = rules
        self._by_breakpoint = by_breakpoint
        self._lives: dict[int, Life] = {}
        self._ttls: set[int] = set()

    def read(self, request: CacheRequest) -> int:
        """Return the tokens that a request would read."""
        # A prefix is served at least as long as any that begins with it, so the longest one that
        # is served is found by halves.
        blocks = range(len(request.keys))
        end = bisect_left(blocks, 1, key=lambda block: self._served(request, block) is None)
        found = min(request.until(end - 1), request.tokens) if end else 0
        whole = found - found % self._rules.step
        return request.reads(whole if whole >= self._rules.min_tokens else 0)

    def split(self, request: CacheRequest) -> CacheSplit:
        """Return what a request reads, writes and leaves, and take it into the cache."""
        rules, tokens = self._rules, request.tokens
        if tokens < rules.min_tokens:
            return CacheSplit(input=tokens)
        ttl = rules.ttl
        if self._by_breakpoint and request.breakpoints:
            ttl = request.breakpoints[-1].ttl
        read = self.read(request)
        self._take(request, ttl)
        rest = tokens - read
        if not rules.bills_writes:
            return CacheSplit(read, input=rest)
        return CacheSplit(read, 0, rest) if ttl >= HOUR else CacheSplit(read, rest)

    def _take(self, request: CacheRequest, ttl: int) -> None:
        """Take in all prefixes of a request; one that is served keeps its own TTL."""
        new = Life(ttl, request.at)
        self._ttls.add(ttl)
        if len(self._ttls) == 1:
            self._lives.update(dict.fromkeys(request.keys, new))
            return
        for block, key in enumerate(request.keys):
            known = self._served(request, block)
            self._lives[key] = new if known is None else known.used_by(request)

    def _served(self, request: CacheRequest, block: int) -> Life | None:
        life = self._lives.get(request.keys[block])
        return life if life is not None and life.serves(request) else None


class Entry(NamedTuple):
    """A cached prefix."""

    tokens: int
    """The provider's, as they were when it was written."""
    life: Life


class BreakpointCache:
    """An entry for each breakpoint of a request; the longest one that matches is read.

    Of more breakpoints than the rules allow the last ones count. By the rules `breakpoints` a
    prompt matches wherever an earlier request had a breakpoint, and all entries live as long as
    the rules say. By the rules `anthropic` an entry is found by walking back from breakpoints, and
    tokens behind the last one are plain input. What is written up to the last breakpoint for an
    hour is an hour's write, the rest one of five minutes.
    """

    def __init__(self, rules: CacheRules) -> None:
        self._rules = rules
        self._walks = rules.kind == "anthropic"
        self._entries: dict[int, Entry] = {}

    def split(self, request: CacheRequest) -> CacheSplit:
        """Return what a request reads, writes and leaves, and take it into the cache."""
        breakpoints, read = self._breakpoints(request), self.read(request)
        if (found := self._found(request, breakpoints)) >= 0:
            self._refresh(request, found)
        ends = [(request.until(one.block), one.ttl) for one in breakpoints]
        # What nobody shows of a request may shrink, so a later breakpoint may have fewer tokens.
        end = max([read, *(tokens for tokens, _ in ends)])
        hour_end = max([read, *(tokens for tokens, ttl in ends if ttl >= HOUR)])
        for one in breakpoints:
            if one.block <= found and self._serving(request, one.block) is not None:
                self._refresh(request, one.block)
            else:
                written = Entry(request.until(one.block), Life(one.ttl, request.at))
                self._entries[request.keys[one.block]] = written
        return CacheSplit(read, end - hour_end, hour_end - read, max(0, request.tokens - end))

    def read(self, request: CacheRequest) -> int:
        """Return the tokens that a request would read."""
        breakpoints = self._breakpoints(request)
        if self._walks and not breakpoints:
            return 0
        found = self._found(request, breakpoints)
        entry = self._serving(request, found) if found >= 0 else None
        last = request.until(breakpoints[-1].block) if self._walks else request.tokens
        return request.reads(0 if entry is None else min(entry.tokens, last))

    def _breakpoints(self, request: CacheRequest) -> list[CacheBreakpoint]:
        rules = self._rules
        return [
            one if self._walks else one._replace(ttl=rules.ttl)
            for one in request.breakpoints[-rules.most_breakpoints :]
            if request.until(one.block) >= rules.min_tokens
        ]

    def _found(self, request: CacheRequest, breakpoints: list[CacheBreakpoint]) -> int:
        """Return the last block of the longest entry that a walk back finds; -1 for none."""
        positions, tried = request.positions, len(request.keys)
        starts, lookback = [one.block for one in breakpoints], self._rules.lookback
        if not self._walks:
            starts, lookback = [tried - 1], tried
        for start in reversed(starts):
            last = positions[start] - lookback
            block = min(start, tried - 1)
            while block >= 0 and positions[block] > last:
                if self._serving(request, block) is not None:
                    return block
                block -= 1
            tried = block + 1
        return -1

    def _serving(self, request: CacheRequest, block: int) -> Entry | None:
        """Return the entry of the prefix that ends with a block, None where none serves."""
        entry = self._entries.get(request.keys[block])
        return entry if entry is not None and entry.life.serves(request) else None

    def _refresh(self, request: CacheRequest, block: int) -> None:
        """Let the entry of a prefix live on, because a request reads it."""
        entry = self._entries[request.keys[block]]
        self._entries[request.keys[block]] = entry._replace(life=entry.life.used_by(request))


CacheSimulator: TypeAlias = BreakpointCache | PrefixCache
"""The prompt cache of one language model, empty at first. Requests come in their order."""


def simulator_of(rules: CacheRules, layout: LayoutName = "recorded") -> CacheSimulator:
    """Return an empty cache that works as the rules say.

    For the layout `ideal` it works as if a request had a breakpoint at every block.
    """
    if layout == "ideal":
        return PrefixCache(rules, by_breakpoint=rules.kind == "anthropic")
    return PrefixCache(rules) if rules.kind == "prefix" else BreakpointCache(rules)
