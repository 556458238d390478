"""Requests to a prompt cache, written as lists of short texts."""

from __future__ import annotations

from collections.abc import Sequence

from policyctx.messages.markers import BlockKind
from policyctx.replay.cache import (
    Block,
    CacheBreakpoint,
    CacheRequest,
    Prefixes,
    PrefixKeys,
)

MINUTES, HOUR = 300, 3600
_KINDS: dict[str, BlockKind] = {"u": "tool_use", "r": "tool_result"}


class Requests:
    """Makes requests whose equal blocks are known as equal."""

    def __init__(self) -> None:
        self._keys = PrefixKeys()
        self._identities: dict[str, int] = {}

    def of(
        self,
        blocks: Sequence[str],
        *breakpoints: int | tuple[int, int],
        at: float | None = None,
        size: int = 1_000,
    ) -> CacheRequest:
        """A request of blocks of one size; `u…` is a call and `r…` a result.

        A breakpoint is the index of a block, or such an index and a TTL.
        """
        prefixes = Prefixes(self._keys)
        prefixes.replace(0, [self._block(text, size) for text in blocks])
        marks = (one if isinstance(one, tuple) else (one, MINUTES) for one in breakpoints)
        return CacheRequest(
            prefixes.keys,
            prefixes.tokens,
            prefixes.beside,
            prefixes.positions,
            tuple(CacheBreakpoint(block % len(blocks), ttl) for block, ttl in marks),
            at=at,
        )

    def _block(self, text: str, size: int) -> Block:
        identity = self._identities.setdefault(text, len(self._identities))
        return Block(identity, size, _KINDS.get(text[0], "other"))
