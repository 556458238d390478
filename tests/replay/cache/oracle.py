"""Anthropic's prompt cache by brute force, straight from the provider's rules.

Every request looks at every entry. An entry holds the blocks of its prefix themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

from policyctx.replay.cache import CacheSplit


@dataclass
class WrittenEntry:
    prefix: list[tuple[str, str]]
    ttl: int
    used: float


@dataclass(frozen=True)
class Asked:
    """A request: its blocks as (content, kind), their sizes, its breakpoints and time."""

    blocks: list[tuple[str, str]]
    sizes: list[int]
    breakpoints: list[tuple[int, int]]
    """(index of the block, seconds), in order."""
    at: float


def position(blocks: list[tuple[str, str]], block: int) -> int:
    """Blocks up to this one, where a run of calls or a run of results counts once."""
    count = 0
    for i in range(block + 1):
        kind = blocks[i][1]
        goes_on = i > 0 and kind in ("tool_use", "tool_result") and blocks[i - 1][1] == kind
        count += not goes_on
    return count


class Oracle:
    def __init__(self, min_tokens: int, lookback: int) -> None:
        self.min_tokens, self.lookback = min_tokens, lookback
        self.entries: list[WrittenEntry] = []

    def ask(self, asked: Asked) -> CacheSplit:
        blocks, total = asked.blocks, sum(asked.sizes)
        marks = [
            (i, ttl) for i, ttl in asked.breakpoints if sum(asked.sizes[: i + 1]) >= self.min_tokens
        ]
        read_blocks = 0
        for mark, _ in marks:
            for length in range(1, mark + 2):
                far = position(blocks, mark) - position(blocks, length - 1)
                if far < self.lookback and self.live(asked, length):
                    read_blocks = max(read_blocks, length)
        for entry in self.live(asked, read_blocks):
            entry.used = asked.at
        read = sum(asked.sizes[:read_blocks])
        hour = five = read
        for i, ttl in marks:
            end = sum(asked.sizes[: i + 1])
            if ttl == 3600:
                hour = five = max(hour, end)
            five = max(five, end)
        for i, ttl in marks:
            known = self.live(asked, i + 1)
            if i < read_blocks and known:
                for entry in known:
                    entry.used = asked.at
            else:
                self.entries.append(WrittenEntry(blocks[: i + 1], ttl, asked.at))
        return CacheSplit(read, five - hour, hour - read, total - five)

    def live(self, asked: Asked, length: int) -> list[WrittenEntry]:
        """Return the entries for the first blocks that this request can find."""
        return [
            entry
            for entry in self.entries
            if entry.prefix == asked.blocks[:length] and asked.at <= entry.used + entry.ttl
        ]
