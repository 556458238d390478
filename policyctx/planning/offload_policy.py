"""`OffloadPolicy`: the compiled policy, tables keyed by type and tool, ready to plan with."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from policyctx.planning.paths import path_parts
from policyctx.policy.loading import load_policy
from policyctx.policy.models import ITEM_TYPES
from policyctx.policy.template import Template, parsed_template
from policyctx.policy.values import PLACEHOLDER_FIELDS, Share

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.policy.models import KeepRecent, Policy, Step
    from policyctx.policy.sources import PolicyName

Unit = Literal["tokens", "chars"]


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
    placeholder: Template


class OffloadPolicy:
    """A policy compiled for planning; its only state is the rules already looked up."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.path_parts = path_parts(policy.store.path)
        self._rules: dict[tuple[str, str, str | None], ItemRule] = {}

    @classmethod
    def load(cls, name: PolicyName) -> OffloadPolicy:
        """Compile the preset or file called `name`; raises `PolicyError`."""
        return cls(load_policy(name))

    def steps(self, moment: str) -> tuple[Step, ...]:
        """The steps that run at `arrival` or before a `model_call`, in order."""
        return tuple(step for step in self.policy.steps if step.on == moment)

    def types(self, step: Step) -> tuple[str, ...]:
        """The item types that the step names, else every type with `offload: true`."""
        named = step.select.types
        if named is None:
            return tuple(t for t, rule in self.policy.items.items() if rule.offload)
        return ITEM_TYPES if "*" in named else named

    def rule(self, step: Step, item_type: str, tool: str | None) -> ItemRule:
        """Look up how `step` treats items of this type and tool."""
        key = (step.name, item_type, tool)
        if key not in self._rules:
            self._rules[key] = self._looked_up(step, item_type, tool)
        return self._rules[key]

    def _looked_up(self, step: Step, item_type: str, tool: str | None) -> ItemRule:
        named = self._levels(item_type, tool)
        levels = [(f"steps.{step.name}.select", step.select), *named, ("", self.policy)]
        keep_recent, keep_recent_rule = _nearest(levels, "keep_recent")
        pin, pin_rule = _nearest(levels, "pin")
        offload, offload_rule = _offload(named)
        wording = step.placeholder or _nearest(levels, "placeholder")[0]
        return ItemRule(
            offload=offload,
            offload_rule=offload_rule,
            threshold=self._threshold(levels),
            keep_recent=keep_recent,
            keep_recent_rule=keep_recent_rule,
            pin=bool(pin),
            pin_rule=pin_rule,
            placeholder=parsed_template(wording, PLACEHOLDER_FIELDS),
        )

    def _levels(self, item_type: str, tool: str | None) -> list[tuple[str, Any]]:
        """The rules for this type and tool, nearest first: exact name, globs, the type."""
        tools = self.policy.tools
        matching = [] if tool is None else [g for g in tools if g != tool and matches(tool, [g])]
        if tool in tools:
            matching.insert(0, tool)
        levels: list[tuple[str, Any]] = [(f"tools.{glob}", tools[glob]) for glob in matching]
        rule = next((r for t, r in self.policy.items.items() if t == item_type), None)
        return levels if rule is None else [*levels, (f"items.{item_type}", rule)]

    def _threshold(self, levels: list[tuple[str, Any]]) -> Threshold:
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


def _nearest(levels: list[tuple[str, Any]], key: str) -> tuple[Any, str]:
    """Return the first value given for `key`, and the key's full name; (None, key) for none."""
    for name, level in levels:
        value = getattr(level, key, None)
        if value is not None:
            return value, f"{name}.{key}" if name else key
    return None, key


def _offload(levels: list[tuple[str, Any]]) -> tuple[bool, str]:
    """`false` on a type or a tool is absolute; else the nearest; by default it is off."""
    given = [(level.offload, f"{name}.offload") for name, level in levels]
    given = [(value, rule) for value, rule in given if value is not None]
    refused = next((rule for value, rule in given if value is False), None)
    if refused or not given:
        return False, refused or "offload"
    return given[0]
