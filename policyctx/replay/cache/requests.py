"""`CacheRequest`: what a prompt cache sees of a request: the prefixes that end with its blocks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypeAlias, get_args

from policyctx.messages.markers import BlockKind

_RUNS = frozenset({"tool_use", "tool_result"})


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


class Scale(NamedTuple):
    """A line from counted tokens to those of the provider."""

    factor: float = 1.0
    beside: float = 0.0
    """What no message shows."""

    def __call__(self, counted: int) -> int:
        """Return the provider's tokens of a prompt."""
        return max(0, round(self.factor * counted + self.beside))


@dataclass(frozen=True, slots=True)
class CacheRequest:
    """One request. The sequences have an element for each block, at least one, tools first."""

    keys: Sequence[int]
    counted: Sequence[int]
    """Tokens of the prefix that ends with each block, as the policy counts them."""
    beside: Sequence[float]
    """The provider's tokens in it that nobody shows."""
    positions: Sequence[int]
    breakpoints: tuple[CacheBreakpoint, ...] = ()
    """In the order of their blocks; a cache without breakpoints ignores them."""
    language_model: str | None = None
    """A cache belongs to one of them."""
    began: float | None = None
    """When it was sent, in seconds; None where nobody knows, and then it began after the last."""
    ended: float | None = None
    """When it was completed, in seconds; None where nobody knows, and then nothing expires."""
    factor: float = 1.0
    """The provider's tokens for each counted one."""

    @property
    def time(self) -> float | None:
        """When it used the cache."""
        return self.ended if self.began is None else self.began

    @property
    def tokens(self) -> int:
        """The provider's tokens of the whole prompt."""
        return self.until(len(self.counted) - 1)

    def until(self, block: int) -> int:
        """Return the provider's tokens of the prefix that ends with a block."""
        return Scale(self.factor, self.beside[block])(self.counted[block])


class CacheSplit(NamedTuple):
    """The tokens of one prompt by what a prompt cache makes of them; each is in one of these."""

    read: int = 0
    write_5m: int = 0
    write_1h: int = 0
    input: int = 0
    """Neither read nor written."""


LayoutName: TypeAlias = Literal["recorded", "last", "auto", "ideal"]


LAYOUTS: tuple[LayoutName, ...] = get_args(LayoutName)
