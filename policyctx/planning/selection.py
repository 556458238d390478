"""Which items a step takes, and why it leaves the others, in the language's order of evaluation.

First the candidates (types, tools), then the recent ones among them, then what takes away:
excepted tools, failed results, pins, `offload: false`, thresholds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from policyctx.planning.decisions import Reason
from policyctx.planning.offload_policy import matches

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.messages.items import Item
    from policyctx.planning.facts import Facts
    from policyctx.planning.offload_policy import ItemRule, OffloadPolicy
    from policyctx.policy.models import KeepRecent, Step


@dataclass(frozen=True, slots=True)
class Verdict:
    """One step's word on one candidate: taken or left, why, and by which key of the policy."""

    taken: bool
    reason: Reason
    rule: str


class Selection:
    """One step over one list of items; `verdicts` has a word on each candidate, by position."""

    def __init__(
        self,
        step: Step,
        policy: OffloadPolicy,
        items: Sequence[Item],
        protected: Mapping[int, Reason],
        facts: Facts,
    ) -> None:
        self._step = step
        self._facts = facts
        self._items = items
        self._protected = protected
        tools = step.select.tools
        self._rules: dict[int, ItemRule] = {
            i: policy.rule(step, item.type, item.tool)
            for i, item in enumerate(items)
            if policy.selects(step, item.type) and (tools is None or matches(item.tool, tools))
        }

    def verdicts(self) -> dict[int, tuple[Verdict, ItemRule]]:
        """Judge every candidate; the answer is in the order of the items."""
        ranks = self._ranks()
        recent_batches = {
            self._items[i].call_message: self._rules[i].keep_recent_rule
            for i, rank in ranks.items()
            if rank.is_recent
        }
        recent_batches.pop(None, None)
        return {
            i: (self._judged(self._items[i], i, ranks.get(i), recent_batches), rule)
            for i, rule in self._rules.items()
        }

    def _judged(
        self, item: Item, i: int, rank: _Rank | None, recent_batches: Mapping[int | None, str]
    ) -> Verdict:
        rule = self._rules[i]
        if rank is not None and rank.is_recent:
            return _left(Reason("recent", rank.values), rule.keep_recent_rule)
        if item.call_message in recent_batches:
            return _left(Reason("batch_recent"), recent_batches[item.call_message])
        if i in self._protected:
            return _left(self._protected[i], "")
        return self._taken_away(item, rule) or self._against_threshold(item, rule, rank)

    def _taken_away(self, item: Item, rule: ItemRule) -> Verdict | None:
        select, name = self._step.select, f"steps.{self._step.name}.select"
        if matches(item.tool, select.except_tools):
            return _left(Reason("excluded_tool", {"tool": item.tool or ""}), f"{name}.except_tools")
        if item.error and not select.errors:
            return _left(Reason("failed_result"), f"{name}.errors")
        if rule.pin:
            return _left(Reason("pinned"), rule.pin_rule)
        if not rule.offload:
            return _left(Reason("offload_off"), rule.offload_rule)
        return None

    def _against_threshold(self, item: Item, rule: ItemRule, rank: _Rank | None) -> Verdict:
        amount, unit, name = rule.threshold
        size = self._facts.size(item, unit)
        values: dict[str, str | int] = {"size": size, "threshold": amount, "unit": unit}
        if size < amount:
            return _left(Reason("below_threshold", values), name)
        if rank is None:
            return Verdict(taken=True, reason=Reason("large", values), rule=name)
        return Verdict(taken=True, reason=Reason("old_and_large", values | rank.values), rule=name)

    def _ranks(self) -> dict[int, _Rank]:
        """Count the candidates from the newest back, small and decided ones included."""
        counted: dict[tuple[str, str], int] = defaultdict(int)
        ranks: dict[int, _Rank] = {}
        for i in reversed(self._rules):
            keep = self._rules[i].keep_recent
            if keep is not None:
                group = _group(self._items[i], keep)
                counted[group] += 1
                ranks[i] = _Rank(counted[group], group[1], keep.items or 0)
        return ranks


class _Rank(NamedTuple):
    """An item's place among the newest of its group, 1 for the newest."""

    rank: int
    among: str
    kept: int

    @property
    def is_recent(self) -> bool:
        return self.rank <= self.kept

    @property
    def values(self) -> dict[str, str | int]:
        return self._asdict()


def _left(reason: Reason, rule: str) -> Verdict:
    return Verdict(taken=False, reason=reason, rule=rule)


def _group(item: Item, keep: KeepRecent) -> tuple[str, str]:
    """Among whom an item's rank is counted: the scope, and its name for people."""
    names = {"tool": item.tool or item.type, "type": item.type, "all": "all"}
    return keep.per, names[keep.per]
