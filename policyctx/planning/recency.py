"""Recency: which candidates of a step `keep_recent` counts among the newest.

Every candidate has a mark on a scale that only grows: its number among those counted together, its
message, its turn, the replies up to it, the number of its turn or reply among those with a
candidate, or the tokens. It is recent while fewer than `kept` lie between its mark and the end of
the scale.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import partial
from heapq import merge
from typing import Literal, TypeAlias, get_args

from policyctx.definitions.items import Item
from policyctx.planning.compiled import Treatment
from policyctx.planning.conversation import Checkpoint, Conversation
from policyctx.planning.decisions import Decision
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import KeepRecent, Step

Shape: TypeAlias = Literal["items", "messages", "turns", "replies", "tokens", "max_tokens"]
# What `of: candidates` counts only where an item is counted.
_WITH_ITEMS = frozenset({"turns", "replies"})
# The fate of the item at a position, None while it stands.
FateOf: TypeAlias = "Callable[[int], Decision | None]"


class RecentGroup:
    """The candidates of a step that are counted together, in the order of the list.

    They share the key that gives their `keep_recent`, and what it counts per: a tool, a type, or
    all. Positions are those of items in their list.
    """

    def __init__(self, step: Step, keep: KeepRecent, rule: RulePath, kept: int, among: str) -> None:
        self.shape = shape_of(keep)
        self.counts_those_with_candidates = keep.of == "candidates" and self.shape in _WITH_ITEMS
        self.rule = rule
        self.kept = kept
        self.among = among
        default = "split" if step.select.ephemeral else "whole"
        # What leaves nothing takes pairs out of a reply, so its batches are never split.
        splits = (keep.batches or default) == "split"
        self.splits_batches = splits and step.action.leaves_placeholder
        self._positions: list[int] = []
        self._marks: list[int] = []
        self._ends: list[int] = []  # the end of the scale behind each
        self._newest: int | None = None  # the newest turn or reply with a candidate
        self._aged = 0

    def add(self, position: int, item: Item, tokens: int, replies: int) -> None:
        """Count one more; `tokens` are the item's own, and only count in the shapes of tokens.

        `replies` is the number of the model's replies up to the item.
        """
        last = self._ends[-1] if self._ends else 0
        marks = {
            "items": last + 1,
            "messages": item.message,
            "turns": item.turn,
            "replies": replies,
        }
        mark = marks.get(self.shape, last + tokens)
        if self.counts_those_with_candidates:
            mark, self._newest = last + (mark != self._newest), mark
        self._positions.append(position)
        self._ends.append(mark)
        # At most so many tokens: the item's own are among those that are compared.
        self._marks.append(last + 1 if self.shape == "max_tokens" else mark)

    def aged(self, at: Checkpoint) -> Iterator[int]:
        """Yield each candidate once, as soon as it is no longer recent."""
        end = self._end(len(self._marks), at)
        while self._aged < len(self._marks) and end - self._marks[self._aged] >= self.kept:
            self._aged += 1
            yield self._positions[self._aged - 1]

    def first_recent(self, at: Checkpoint) -> int:
        """Return the first candidate that was recent at a point, or the number of items then."""
        end = self._end(bisect_left(self._positions, at.items), at)
        first = bisect_right(self._marks, end - self.kept)
        return self._positions[first] if first < len(self._positions) else at.items

    def distance(self, position: int, at: Checkpoint) -> int:
        """Return how far from the end a candidate stood at a point."""
        end = self._end(bisect_left(self._positions, at.items), at)
        return end - self._marks[bisect_left(self._positions, position)]

    def values(self, distance: int) -> dict[str, str | int]:
        """Return a distance as the values of a reason."""
        counted = "newer" if self.shape == "tokens" else "rank"
        number = distance if self.shape == "tokens" else distance + 1
        of = {"of": "candidates"} if self.counts_those_with_candidates else {}
        return {"shape": self.shape, counted: number, "among": self.among, "kept": self.kept, **of}

    def _end(self, counted: int, at: Checkpoint) -> int:
        if self.shape == "messages":
            return at.messages - 1
        if self.shape in _WITH_ITEMS and not self.counts_those_with_candidates:
            return at.turns if self.shape == "turns" else at.replies
        return self._ends[counted - 1] if counted else 0


def shape_of(keep: KeepRecent) -> Shape:
    """Return the key of a `keep_recent` that says what is counted."""
    return next(shape for shape in get_args(Shape) if getattr(keep, shape) is not None)


def among(item: Item, keep: KeepRecent) -> str:
    """Return among whom an item is counted: its tool, its type, or `all`."""
    return {"tool": item.tool or item.type, "type": item.type, "all": "all"}[keep.per]


class Recency:
    """The candidates of a step that `keep_recent` counts, and those that were called together."""

    def __init__(self, step: Step, conversation: Conversation) -> None:
        self._step, self._in = step, conversation
        self._groups: dict[tuple[RulePath, str], RecentGroup] = {}
        self._group_of: dict[int, RecentGroup] = {}
        # The candidates of each message with calls, by their group: a reply may have a thousand.
        self._batches: defaultdict[int, defaultdict[RecentGroup, list[int]]]
        self._batches = defaultdict(partial(defaultdict, list))

    def add(self, position: int, treatment: Treatment, keep_recent: KeepRecent) -> None:
        """Count a candidate whose treatment has this `keep_recent`."""
        item = self._in.items[position]
        name = among(item, keep_recent)
        key = (treatment.keep_recent_rule, name)
        group = self._groups.get(key)
        if group is None:
            group = RecentGroup(self._step, keep_recent, key[0], treatment.kept, name)
            self._groups[key] = group
        counts_tokens = group.shape in {"tokens", "max_tokens"}
        tokens = self._in.own_tokens(position) if counts_tokens else 0
        replies = self._replies(item) if group.shape == "replies" else 0
        group.add(position, item, tokens, replies)
        self._group_of[position] = group
        if item.call_message is not None:
            self._batches[item.call_message][group].append(position)

    def aged(self) -> Iterator[int]:
        """Yield each candidate once, as soon as it is no longer recent."""
        now = self._in.checkpoint()
        for group in self._groups.values():
            yield from group.aged(now)

    def is_recent(self, position: int, at: Checkpoint) -> bool:
        """Return whether a candidate was among the newest."""
        group = self._group_of.get(position)
        return group is not None and group.distance(position, at) < group.kept

    def is_recent_by_candidates(self, position: int, at: Checkpoint) -> bool:
        """Return whether a recent candidate is too old if all turns or replies count."""
        group, item = self._group_of.get(position), self._in.items[position]
        if group is None or not group.counts_those_with_candidates:
            return False
        newer = at.turns - item.turn if group.shape == "turns" else at.replies - self._replies(item)
        return newer >= group.kept

    def _replies(self, item: Item) -> int:
        """Return the number of the model's replies up to an item."""
        return bisect_right(self._in.reading.reply_starts, item.message)

    def recent_in_batch(self, position: int, at: Checkpoint, fate_of: FateOf) -> int | None:
        """Return a recent candidate that holds this item, with which it was called together.

        None if there is none that still stands.
        """
        batch = self._recent_beside(position, at, fate_of)
        return next((other for other in batch if not self._splits(other)), None)

    def split_by(self, position: int, at: Checkpoint, fate_of: FateOf) -> RulePath | None:
        """Return the key that lets the item leave while one that was called with it is recent."""
        batch = self._recent_beside(position, at, fate_of)
        return next((self._group_of[i].rule for i in batch if self._splits(i)), None)

    def _recent_beside(self, position: int, at: Checkpoint, fate_of: FateOf) -> Iterator[int]:
        """Yield the recent candidates, not gone, that were called together with this item."""
        call = self._in.items[position].call_message
        groups = None if call is None else self._batches.get(call)
        recent = list[list[int]]()
        for group, batch in (groups or {}).items():
            # Most are called alone, and most batches are old.
            if batch != [position] and batch[-1] >= (first := group.first_recent(at)):
                recent.append(batch[bisect_left(batch, first) : bisect_left(batch, at.items)])
        for other in merge(*recent) if recent else ():
            if other != position and self._stands(other, fate_of):
                yield other

    def _splits(self, position: int) -> bool:
        return self._group_of[position].splits_batches

    def values(self, position: int, at: Checkpoint) -> dict[str, str | int]:
        """Return the values of a reason for a candidate's age; none where nothing counts it."""
        group = self._group_of.get(position)
        return {} if group is None else group.values(group.distance(position, at))

    def _stands(self, position: int, fate_of: FateOf) -> bool:
        """Whether an item is there; one inside another has no placeholder that stands for it."""
        fate, inside = fate_of(position), self._in.items[position].inside
        if inside is not None:
            return fate is None and fate_of(inside) is None
        return fate is None or not fate.action.leaves_nothing
