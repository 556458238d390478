"""The settings that a study may try: the values of each knob, and the coarse grid of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, get_args

from policyctx.policy.nodes import type_at
from policyctx.tuning.settings import (
    BREAKPOINTS,
    GATE,
    KEEP_RECENT,
    MIN_TOKENS,
    NONE,
    OFFLOADING,
    SUMMARIES,
    TOOL,
    Space,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.tuning.settings import Incumbent, Value

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
    coarse_gates = (*_COARSE_GATES, *(("pays_back 5",) if has_price else ()))
    return Space(
        knobs=knobs,
        coarse={
            MIN_TOKENS: (200, 800, 3000),
            KEEP_RECENT: (1, 3, 10),
            GATE: coarse_gates,
            **({BREAKPOINTS: placements[-1:]} if placements else {}),
        },
        alone={SUMMARIES: _SUMMARIES, GATE: coarse_gates, BREAKPOINTS: placements},
    )


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
