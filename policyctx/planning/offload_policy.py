"""`OffloadPolicy`: the compiled policy, tables keyed by type and tool, ready to plan with."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

from policyctx.planning.item_types import TypeTable
from policyctx.planning.paths import path_parts
from policyctx.planning.placeholders import Wording
from policyctx.policy.loading import load_policy
from policyctx.policy.values import Share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.messages.items import Item
    from policyctx.policy.models import KeepRecent, Policy, Step
    from policyctx.policy.sources import PolicyName

Unit = Literal["tokens", "chars"]
# A map of the policy that may give a rule key, and its dotted name.
Level: TypeAlias = tuple[str, Any]


class Threshold(NamedTuple):
    """From which size on an item is taken, and the key that says so."""

    amount: int
    unit: Unit
    rule: str


@dataclass(frozen=True, slots=True)
class ItemRule:
    """How one step treats the items of one type and tool: the nearest of every key.

    Each `…_rule` is the dotted name of the key that decided, such as `tools.Bash.keep_recent`.
    """

    offload: bool
    offload_rule: str
    threshold: Threshold
    keep_recent: KeepRecent | None
    keep_recent_rule: str
    pin: bool
    pin_rule: str
    placeholder: Wording


class OffloadPolicy:
    """A policy compiled for planning; its only state is the rules already looked up."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.path_parts = path_parts(policy.store.path)
        self._types = TypeTable(policy.items)
        self._rules: dict[tuple[str, str, str | None], ItemRule] = {}
        self._selected: dict[tuple[str, str], bool] = {}

    @classmethod
    def load(cls, name: PolicyName) -> OffloadPolicy:
        """Compile the preset or file called `name`; raises `PolicyError`."""
        return cls(load_policy(name))

    def steps(self, moment: str) -> tuple[Step, ...]:
        """The steps that run at `arrival` or before a `model_call`, in order."""
        return tuple(step for step in self.policy.steps if step.on == moment)

    def typed(self, item: Item) -> Item:
        """Return the item with the type that the policy gives it: the first of its own that fits.

        A policy's own types are tried in the order written; an item that fits none is its kind.
        """
        found = self._types.type_of(item)
        return item if found == item.type else item._replace(type=found)

    def selects(self, step: Step, item_type: str) -> bool:
        """Does the step select items of this type.

        It names the type or the one that it refines, or names none and the type is offloaded.
        """
        key = (step.name, item_type)
        if key not in self._selected:
            named = step.select.types
            if named is None:
                named = tuple(t for t, rule in self.policy.items.items() if rule.offload)
            names = {"*", item_type, self._types.parent(item_type)}
            self._selected[key] = not names.isdisjoint(named)
        return self._selected[key]

    def rule(self, step: Step, item_type: str, tool: str | None) -> ItemRule:
        """Look up how `step` treats items of this type and tool."""
        key = (step.name, item_type, tool)
        if key not in self._rules:
            self._rules[key] = self._looked_up(step, item_type, tool)
        return self._rules[key]

    def _looked_up(self, step: Step, item_type: str, tool: str | None) -> ItemRule:
        of_tools, of_types = self._tool_levels(tool), self._type_levels(item_type)
        select = (f"steps.{step.name}.select", step.select)
        levels = [select, *of_tools, *of_types, ("", self.policy)]
        # What arrives is the newest: recency is a matter of the steps before a model call.
        recency = levels if step.on == "model_call" else []
        keep_recent, keep_recent_rule = _nearest(recency, "keep_recent")
        pin, pin_rule = _nearest(levels, "pin")
        offload, offload_rule = _offload(of_tools, of_types)
        wording = step.placeholder or _nearest(levels, "placeholder")[0]
        return ItemRule(
            offload=offload,
            offload_rule=offload_rule,
            threshold=self._threshold(levels),
            keep_recent=keep_recent,
            keep_recent_rule=keep_recent_rule,
            pin=bool(pin),
            pin_rule=pin_rule,
            placeholder=Wording.of(wording),
        )

    def _tool_levels(self, tool: str | None) -> list[Level]:
        """The rules for this tool, nearest first: the exact name, then globs in order."""
        tools = self.policy.tools
        matching = [] if tool is None else [g for g in tools if g != tool and matches(tool, [g])]
        if tool in tools:
            matching.insert(0, tool)
        return [(f"tools.{glob}", tools[glob]) for glob in matching]

    def _type_levels(self, item_type: str) -> list[Level]:
        """The rules for this type, nearest first: its own, then that of the type it refines."""
        names = dict.fromkeys((item_type, self._types.parent(item_type)))
        items = self.policy.items
        return [(f"items.{name}", items[name]) for name in names if name in items]

    def _threshold(self, levels: list[Level]) -> Threshold:
        for name, level in levels:
            prefix = f"{name}." if name else ""
            if level.min_chars is not None:
                return Threshold(level.min_chars, "chars", f"{prefix}min_chars")
            if level.min_tokens is not None:
                amount = level.min_tokens
                if isinstance(amount, Share):
                    amount = amount.of(self.policy.model.context_window)
                return Threshold(amount, "tokens", f"{prefix}min_tokens")
        return Threshold(0, "tokens", "min_tokens")


def matches(tool: str | None, globs: Iterable[str]) -> bool:
    """Does the tool's name match one of the globs; an item without a tool matches none."""
    return tool is not None and any(fnmatchcase(tool, glob) for glob in globs)


def _nearest(levels: list[Level], key: str) -> tuple[Any, str]:
    """Return the first value given for `key`, and the key's full name; (None, key) for none."""
    for name, level in levels:
        value = getattr(level, key, None)
        if value is not None:
            return value, f"{name}.{key}" if name else key
    return None, key


def _offload(of_tools: list[Level], of_types: list[Level]) -> tuple[bool, str]:
    """`false` on a tool or on the nearest type is absolute; else the nearest; by default off."""
    tools = [found for level in of_tools if (found := _nearest([level], "offload"))[0] is not None]
    of_type = _nearest(of_types, "offload")
    given = tools if of_type[0] is None else [*tools, of_type]
    refused = next((rule for value, rule in given if value is False), None)
    if refused or not given:
        return False, refused or "offload"
    return True, given[0][1]
