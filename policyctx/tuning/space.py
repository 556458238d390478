"""The settings that a study may try: the values of each knob, and the coarse grid of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import get_args

from policyctx.policy.nodes import type_at
from policyctx.tuning.evaluating import tried
from policyctx.tuning.settings import (
    BREAKPOINTS,
    GATE,
    KEEP_RECENT,
    MIN_TOKENS,
    NONE,
    OFFLOADING,
    SUMMARIES,
    SUMMARISE_ONLY,
    TOOL,
    Incumbent,
    Setting,
    Value,
)

_MIN_TOKENS = (0, 100, 200, 400, 800, 1500, 3000, 6000)
_KEEP_RECENT = (1, 2, 3, 4, 5, 7, 10)
_SUMMARIES = ("60%", "70%", "80%", "90%", NONE)
_PAYING = ("pays_back 20", "pays_back 5", "pays_back 2")
_FREEING = ("frees 10000", "frees 20000", "frees 50000")
_FILLING = ("tokens 50%", "tokens 70%")
_COARSE_GATES = (NONE, "idle", "idle or frees 20000", "frees 50000", "tokens 50%")
# A rule for one tool keeps its results, or has a threshold of its own.
_TOOL_RULES = ("keep", "0", "6000")
# A tool is worth a rule of its own if so many sessions have it.
_TOOL_SESSIONS = 3
_MOST_TOOLS = 8


@dataclass(frozen=True, slots=True)
class Space:
    """The values of each knob in order, and where its coarse grid has points."""

    knobs: Mapping[str, tuple[Value, ...]]
    coarse: Mapping[str, tuple[Value, ...]]
    alone: Mapping[str, tuple[Value, ...]]
    """Values that are first tried with nothing else changed."""
    current: Mapping[str, Value] = field(default_factory=dict)
    """The values that the incumbent has, of the knobs of which it has one."""

    def grid(self) -> list[Setting]:
        """Return the coarse grid: the incumbent, each value alone, and their combinations."""
        found = [Setting()]
        found += [
            self._normal(Setting().with_(knob, value))
            for knob, values in self.alone.items()
            for value in values
        ]
        found += [SUMMARISE_ONLY.with_(SUMMARIES, v) for v in self.alone.get(SUMMARIES, ())]
        found.append(SUMMARISE_ONLY)
        combined = [Setting()]
        for knob, values in self.coarse.items():
            combined = [one.with_(knob, value) for one in combined for value in values]
        return list(dict.fromkeys(chain(found, map(self._normal, combined))))

    def neighbours(self, setting: Setting, more: Mapping[str, tuple[Value, ...]]) -> list[Setting]:
        """Return the settings one step away: a value beside it, or the incumbent's.

        `more` are the knobs of which any value is one step away.
        """
        found: list[Setting] = []
        for knob, values in self.knobs.items():
            value = setting.get(knob)
            beside = _beside(knob, values, self.current.get(knob) if value is None else value)
            found += [setting.with_(knob, one) for one in (*beside, None)]
        for knob, values in more.items():
            found += [setting.with_(knob, one) for one in (*values, None)]
        return [one for one in dict.fromkeys(map(self._normal, found)) if one != setting]

    def _normal(self, setting: Setting) -> Setting:
        """Return the setting without the values that change nothing."""
        is_idle = setting.get(OFFLOADING) == NONE
        return Setting(
            tuple(
                (knob, value)
                for knob, value in setting.values
                if self.current.get(knob) != value and not (is_idle and knob in _OF_OFFLOADING)
            )
        )


# What means nothing for a policy that offloads nothing.
_OF_OFFLOADING = frozenset({MIN_TOKENS, KEEP_RECENT, GATE, TOOL})


def _beside(knob: str, values: tuple[Value, ...], value: Value | None) -> Iterable[Value]:
    """Return the values one step away from a value; all of them from one that is not there."""
    if value not in values:
        return values
    if knob == GATE:
        return [one for one in values if _is_near(str(one), str(value))]
    at = values.index(value)
    return (*values[max(0, at - 1) : at], *values[at + 1 : at + 2])


def _is_near(one: str, other: str) -> bool:
    """Whether two gates differ in a limit, or by one condition that only one of them has."""
    first, second = (set() if w == NONE else set(w.split(" or ")) for w in (one, other))
    if one == other:
        return False
    return len(first ^ second) == 1 or _kinds(first) == _kinds(second)


def _kinds(conditions: set[str]) -> set[str]:
    return {condition.split()[0] for condition in conditions}


def space_for(incumbent: Incumbent) -> Space:
    """Return the space of the settings that change an incumbent.

    The gate `pays_back` is tried only if the policy has the prices that it needs.
    """
    has_price = bool((incumbent.document.get("model") or {}).get("price"))
    gates = (*_FREEING, *_FILLING, *(_PAYING if has_price else ()))
    # Where an edit ends up in the prompt cache changes what every other value is worth.
    placements: tuple[Value, ...] = get_args(type_at(("model", "cache", BREAKPOINTS)))
    knobs: dict[str, tuple[Value, ...]] = {
        OFFLOADING: (NONE,),
        MIN_TOKENS: _MIN_TOKENS,
        KEEP_RECENT: _KEEP_RECENT,
        GATE: (NONE, *gates, *(f"idle or {gate}" for gate in gates), "idle"),
        SUMMARIES: _SUMMARIES,
    }
    if placements:
        knobs[BREAKPOINTS] = placements
    coarse: dict[str, tuple[Value, ...]] = {
        MIN_TOKENS: (200, 800, 3000),
        KEEP_RECENT: (1, 3, 10),
        GATE: (*_COARSE_GATES, *(("pays_back 5",) if has_price else ())),
    }
    return Space(
        knobs=knobs,
        coarse={**coarse, **({BREAKPOINTS: placements[-1:]} if placements else {})},
        alone={**coarse, SUMMARIES: _SUMMARIES, BREAKPOINTS: placements},
        current=dict(_current(incumbent, knobs)),
    )


def _current(
    incumbent: Incumbent, knobs: Mapping[str, tuple[Value, ...]]
) -> Iterator[tuple[str, Value]]:
    """Yield each knob of which a value makes the incumbent's own policy, with that value."""
    own = tried(incumbent.text(Setting(), name=incumbent.name))
    for knob, values in knobs.items():
        for value in values:
            setting = Setting().with_(knob, value)
            same = tried(incumbent.text(setting, name=incumbent.name))
            if own is not None and same is not None and same.digest == own.digest:
                yield knob, value


def has_prices_for(space: Space) -> bool:
    """Return whether the space has the gate `pays_back`."""
    return any(str(value).startswith("pays_back") for value in space.knobs[GATE])


def tool_rules(tools_of_sessions: Iterable[frozenset[str]]) -> dict[str, tuple[Value, ...]]:
    """Return the rules for one tool that may be tried; each tool is in three sessions or more."""
    counts: dict[str, int] = {}
    for tools in tools_of_sessions:
        for tool in tools:
            counts[tool] = counts.get(tool, 0) + 1
    seen = sorted((-count, tool) for tool, count in counts.items() if count >= _TOOL_SESSIONS)
    rules = (f"{tool} {rule}" for _, tool in seen[:_MOST_TOOLS] for rule in _TOOL_RULES)
    return {TOOL: tuple(rules)} if seen else {}
