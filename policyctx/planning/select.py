"""Which items a step may take, and why the others stay.

`keep_recent` keeps the newest candidates, in each of its shapes. Every candidate has a mark on a
scale that only grows: its number among those counted together, its message, its turn, or the tokens
up to it. It is recent while fewer than `kept` lie between its mark and the end of the scale.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, defaultdict
from dataclasses import replace
from heapq import heappop, heappush
from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.planning.decisions import ItemVerdict, Reason
from policyctx.planning.take import Draft, drafted, freed_tokens, protection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from policyctx.messages.items import Item
    from policyctx.planning.compiled import SizeThreshold, Treatment
    from policyctx.planning.conversation import Checkpoint, Conversation
    from policyctx.planning.decisions import Decision
    from policyctx.planning.facts import Unit
    from policyctx.policy.lookup import RulePath
    from policyctx.policy.models import KeepRecent, Step

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


# What became of the item at a position, None while it stands.
FateOf: TypeAlias = "Callable[[int], Decision | None]"


class Candidates:
    """The items that one step may take from a conversation that grows.

    An item is judged when it stops being recent and nothing holds it back any more; from then on
    it is ready, until a step takes it.
    """

    def __init__(
        self, step: Step, conversation: Conversation, sizes: frozenset[str] = frozenset()
    ) -> None:
        self.step = step
        self.ready: dict[int, Draft] = {}
        """What the step would take if its gates were open, by position."""
        self.sums: Counter[str] = Counter()
        """The sizes of all that is ready which the step's gates ask for."""
        self._measures = sizes
        self._first: list[int] = []
        self._in = conversation
        self._groups: dict[tuple[RulePath, str], RecentGroup] = {}
        self._group_of: dict[int, RecentGroup] = {}
        self._batches: defaultdict[int, list[int]] = defaultdict(list)
        self._waiting: list[int] = []
        self._below: set[int] = set()

    def add(self, position: int, item: Item) -> None:
        """Look at an item that is new in the list."""
        treatment = self._in.policy.treatment(self.step, item.type, item.tool)
        if treatment is None:
            return
        if treatment.keep_recent is not None:
            self._count(position, item, treatment)
        else:
            self._await(position, item, treatment)

    def settle(self) -> None:
        """Make ready what is old enough and not held back; what it was before makes no matter."""
        messages, turns = self._in.reading.message_count, len(self._in.reading.turn_starts)
        for group in self._groups.values():
            for position in group.aged(messages, turns):
                item = self._in.items[position]
                self._await(position, item, self.treatment(position))
        if not self._waiting:
            return
        now = self._in.checkpoint()
        waiting, self._waiting = self._waiting, []
        for position in waiting:
            if self._is_held(position, now, self._in.fates.get):
                self._waiting.append(position)
            else:
                self._make_ready(position)

    def note(self, position: int, fate: Decision) -> None:
        """Take notice that a step took an item."""
        was_ready = self._forget(position)
        for inner in self._in.inside(position):
            self._forget(inner)
        if was_ready:
            self._make_ready(position)
        elif position in self._below and self._may_take(position, fate):
            self._waiting.append(position)
        around = self._in.items[position].inside
        if around is not None and self._forget(around):
            self._make_ready(around)

    def first(self) -> int | None:
        """Return the position of the first item that is ready."""
        while self._first and self._first[0] not in self.ready:
            heappop(self._first)
        return self._first[0] if self._first else None

    def verdict(self, position: int, at: Checkpoint, fate_of: FateOf) -> ItemVerdict | None:
        """Judge one item as the list stood `at` that moment; None for what is no candidate.

        `fate_of` says what had become of each item then.
        """
        item = self._in.items[position]
        treatment = self._in.policy.treatment(self.step, item.type, item.tool)
        if treatment is None:
            return None
        draft = drafted(self._in, position, self.step, treatment)
        return (
            self._held_by_recency(position, treatment, at, fate_of)
            or _protected(protection(self._in, position, self.step, at))
            or self.refusal(item, treatment)
            or self._undrafted(draft)
            or self._taken(item, treatment, self._recency(position, at))
        )

    def refusal(self, item: Item, treatment: Treatment) -> ItemVerdict | None:
        """Return why the policy takes away an item whatever its age; None when it does not."""
        if treatment.refusal is not None:
            return _left(*treatment.refusal)
        if item.error and not self.step.select.errors:
            return _left(Reason("failed_result"), ("steps", self.step.name, "select", "errors"))
        if treatment.threshold is not None and self._is_below(item, treatment.threshold):
            rule = treatment.threshold.rule
            return _left(Reason("below_threshold", self._sizes(item, treatment.threshold)), rule)
        return None

    def treatment(self, position: int) -> Treatment:
        """Return how the step treats a candidate."""
        item = self._in.items[position]
        treatment = self._in.policy.treatment(self.step, item.type, item.tool)
        assert treatment is not None  # noqa: S101 - only candidates are asked about
        return treatment

    def taken(self, position: int, at: Checkpoint) -> ItemVerdict:
        """Return the verdict on an item that is ready."""
        item = self._in.items[position]
        return self._taken(item, self.treatment(position), self._recency(position, at))

    def grown(self, taken: Mapping[int, Decision], fate_of: FateOf) -> Iterator[int]:
        """Yield what was below the threshold before a placeholder larger than it was left."""
        if self.step.action.leaves_nothing:
            yield from self._free(sorted(self._below.intersection(taken)), fate_of)

    def released(self, fate_of: FateOf) -> Iterator[int]:
        """Yield what nothing but a recent one held back that `fate_of` says is gone."""
        yield from self._free(self._waiting, fate_of)

    def draft(self, position: int) -> Draft | Reason:
        """Return the draft for a candidate, or why nothing is to be gained by it."""
        ready = self.ready.get(position)
        return ready or drafted(self._in, position, self.step, self.treatment(position))

    def is_small(self, position: int, fate: Decision | None) -> bool:
        """Is what is left of a candidate, a placeholder, below the step's threshold."""
        threshold = self.treatment(position).threshold
        if fate is None or fate.placeholder is None or threshold is None:
            return False
        return self._in.facts.length(fate.placeholder, threshold.unit) < threshold.amount

    def _held_by_recency(
        self, position: int, treatment: Treatment, at: Checkpoint, fate_of: FateOf
    ) -> ItemVerdict | None:
        if self._is_recent(position, at):
            return _left(Reason("recent", self._recency(position, at)), treatment.keep_recent_rule)
        if (batch := self._recent_in_batch(position, at, fate_of)) is not None:
            rule = self.treatment(batch).keep_recent_rule
            return _left(Reason("batch_recent"), rule)
        return None

    def _undrafted(self, draft: Draft | Reason) -> ItemVerdict | None:
        if isinstance(draft, Draft):
            return None
        is_rule = draft.code != "placeholder"
        return _left(draft, ("steps", self.step.name, "must_shrink") if is_rule else ())

    def _taken(
        self, item: Item, treatment: Treatment, recency: dict[str, str | int]
    ) -> ItemVerdict:
        if treatment.threshold is None:
            rule = treatment.keep_recent_rule if recency else ("steps", self.step.name, "select")
            return ItemVerdict(True, Reason("old" if recency else "selected", recency), rule)  # noqa: FBT003
        values = self._sizes(item, treatment.threshold) | recency
        reason = Reason("old_and_large" if recency else "large", values)
        return ItemVerdict(True, reason, treatment.threshold.rule)  # noqa: FBT003

    def _sizes(self, item: Item, threshold: SizeThreshold) -> dict[str, str | int]:
        amount, unit, _ = threshold
        return {"size": self._in.facts.size(item, unit), "threshold": amount, "unit": unit}

    def _count(self, position: int, item: Item, treatment: Treatment) -> None:
        assert treatment.keep_recent is not None  # noqa: S101 - the caller has seen to it
        name = among(item, treatment.keep_recent)
        key = (treatment.keep_recent_rule, name)
        group = self._groups.get(key)
        if group is None:
            group = RecentGroup(treatment.keep_recent, treatment.kept, name)
            self._groups[key] = group
        counts_tokens = group.shape == "tokens"
        group.add(position, item, self._in.own_tokens(position) if counts_tokens else 0)
        self._group_of[position] = group
        if item.call_message is not None:
            self._batches[item.call_message].append(position)

    def _await(self, position: int, item: Item, treatment: Treatment) -> None:
        if treatment.refusal is not None or (item.error and not self.step.select.errors):
            return
        fate = self._in.fates.get(position)
        if treatment.threshold is not None and self._is_below(item, treatment.threshold):
            self._below.add(position)
            if fate is None:
                return
        if self._may_take(position, fate):
            self._waiting.append(position)

    def _make_ready(self, position: int) -> None:
        if not self._may_take(position, self._in.fates.get(position)):
            return
        treatment = self.treatment(position)
        draft = drafted(self._in, position, self.step, treatment)
        if isinstance(draft, Reason):
            return
        self.ready[position] = draft
        if self._measures:
            self._measure(position, treatment)
            heappush(self._first, position)

    def _measure(self, position: int, treatment: Treatment) -> None:
        """Add what the gates ask for to the sums; one inside of another is a part of that one."""
        if self._in.items[position].inside in self.ready:
            return
        for inner in self._in.inside(position):
            if (part := self.ready.get(inner)) is not None:
                self.sums.subtract(part.sizes)
                self.ready[inner] = replace(part, sizes={})
        draft = self.ready[position]
        draft = replace(draft, sizes=self._sizes_now(position, treatment, draft.wanted_path))
        self.ready[position] = draft
        self.sums.update(draft.sizes)

    def _sizes_now(self, position: int, treatment: Treatment, path: str) -> dict[str, int]:
        units: tuple[Unit, ...] = ("tokens", "chars")
        sizes = {
            str(unit): self._in.size(position, unit) for unit in units if unit in self._measures
        }
        if "freed" in self._measures:
            sizes["freed"] = freed_tokens(self._in, position, self.step, treatment, path)
        return sizes

    def _forget(self, position: int) -> bool:
        draft = self.ready.pop(position, None)
        if draft is not None:
            self.sums.subtract(draft.sizes)
        return draft is not None

    def _may_take(self, position: int, fate: Decision | None) -> bool:
        """Is there a state above the one that the item is in, and enough left of it."""
        if fate is None:
            return True
        is_above = self.step.action.leaves_nothing and not fate.action.leaves_nothing
        return is_above and not self.is_small(position, fate)

    def _free(self, positions: Iterable[int], fate_of: FateOf) -> Iterator[int]:
        """Yield those that nothing holds and of which enough is left."""
        now = self._in.checkpoint()
        for position in positions:
            is_held = self._is_held(position, now, fate_of)
            if not is_held and self._may_take(position, fate_of(position)):
                yield position

    def _is_held(self, position: int, at: Checkpoint, fate_of: FateOf) -> bool:
        if protection(self._in, position, self.step, at) is not None:
            return True
        return self._recent_in_batch(position, at, fate_of) is not None

    def _is_below(self, item: Item, threshold: SizeThreshold) -> bool:
        amount, unit, _ = threshold
        return not self._in.facts.reaches(item, amount, unit)

    def _recent_in_batch(self, position: int, at: Checkpoint, fate_of: FateOf) -> int | None:
        """A recent one, not gone, among the candidates called together with this one."""
        call = self._in.items[position].call_message
        if call is None:
            return None
        for other in self._batches.get(call, ()):
            is_other = other != position and other < at.items
            if is_other and self._is_recent(other, at) and self._stands(other, fate_of):
                return other
        return None

    def _stands(self, position: int, fate_of: FateOf) -> bool:
        """Is an item there; of one inside of another no placeholder tells that it was."""
        fate, inside = fate_of(position), self._in.items[position].inside
        if inside is not None:
            return fate is None and fate_of(inside) is None
        return fate is None or not fate.action.leaves_nothing

    def _is_recent(self, position: int, at: Checkpoint) -> bool:
        group = self._group_of.get(position)
        return group is not None and self._distance(group, position, at) < group.kept

    def _recency(self, position: int, at: Checkpoint) -> dict[str, str | int]:
        group = self._group_of.get(position)
        return {} if group is None else group.values(self._distance(group, position, at))

    def _distance(self, group: RecentGroup, position: int, at: Checkpoint) -> int:
        return group.distance(position, at.items, at.messages, at.turns)


def _left(reason: Reason, rule: RulePath = ()) -> ItemVerdict:
    return ItemVerdict(taken=False, reason=reason, rule=rule)


def _protected(reason: Reason | None) -> ItemVerdict | None:
    return None if reason is None else _left(reason)
