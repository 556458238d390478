"""`keep_recent`: which of the newest stay, in each of its shapes.

Every candidate stands at a mark on a scale that only grows: its number among those counted
together, its message, its turn, or the tokens up to it. It is recent while fewer than `kept` lie
between its mark and the end of the scale.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.messages.items import Item
    from policyctx.policy.models import KeepRecent

Shape: TypeAlias = Literal["items", "messages", "turns", "tokens"]


class RecentGroup:
    """The candidates of a step that are counted together, in the order of the list.

    They share the key that gives their `keep_recent`, and what it counts per: a tool, a type, or
    all. Positions are those of items in their list.
    """

    def __init__(self, keep: KeepRecent, kept: int, among: str) -> None:
        self.shape = shape_of(keep)
        self.kept = kept
        self.among = among
        self._positions: list[int] = []
        self._marks: list[int] = []
        self._aged = 0

    def add(self, position: int, item: Item, tokens: int) -> None:
        """Count one more; `tokens` are the item's own, and only count in the shape of tokens."""
        last = self._marks[-1] if self._marks else 0
        marks = {"items": last + 1, "messages": item.message, "turns": item.turn}
        self._positions.append(position)
        self._marks.append(marks.get(self.shape, last + tokens))

    def aged(self, messages: int, turns: int) -> Iterator[int]:
        """Yield each candidate that is no longer recent and was not yielded before.

        `messages` and `turns` are how many the whole list has.
        """
        end = self._end(len(self._marks), messages, turns)
        while self._aged < len(self._marks) and end - self._marks[self._aged] >= self.kept:
            self._aged += 1
            yield self._positions[self._aged - 1]

    def distance(self, position: int, items: int, messages: int, turns: int) -> int:
        """Return how far from the end a candidate stood when the list had so many items."""
        end = self._end(bisect_left(self._positions, items), messages, turns)
        return end - self._marks[bisect_left(self._positions, position)]

    def values(self, distance: int) -> dict[str, str | int]:
        """Return a distance as the values of a reason."""
        counted = "newer" if self.shape == "tokens" else "rank"
        number = distance if self.shape == "tokens" else distance + 1
        return {"shape": self.shape, counted: number, "among": self.among, "kept": self.kept}

    def _end(self, counted: int, messages: int, turns: int) -> int:
        if self.shape == "messages":
            return messages - 1
        if self.shape == "turns":
            return turns
        return self._marks[counted - 1] if counted else 0


def shape_of(keep: KeepRecent) -> Shape:
    """Return the key of a `keep_recent` that says what is counted."""
    shapes: tuple[Shape, ...] = ("items", "messages", "turns", "tokens")
    return next(shape for shape in shapes if getattr(keep, shape) is not None)


def among(item: Item, keep: KeepRecent) -> str:
    """Return among whom an item is counted: its tool, its type, or `all`."""
    return {"tool": item.tool or item.type, "type": item.type, "all": "all"}[keep.per]
