"""`Shapes`: how sessions are distributed, as quantiles; numbers only, read from `shapes.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

FILE = Path(__file__).with_name("shapes.json")
POINTS = 20


@dataclass(frozen=True, slots=True)
class Quantiles:
    """The values at 0 %, 5 %, … 100 % of a distribution."""

    values: tuple[float, ...]

    @classmethod
    def of(cls, found: Iterable[float]) -> Quantiles:
        """Return the quantiles of values; of none, those of a zero."""
        ordered = sorted(found) or [0.0]
        last = len(ordered) - 1
        points = (_between(ordered, last * i / POINTS) for i in range(POINTS + 1))
        return cls(tuple(round(point, 3) for point in points))

    def drawn(self, chance: Random) -> float:
        """Return a random value of the distribution, between the quantiles by a straight line."""
        return _between(self.values, chance.random() * (len(self.values) - 1))


def _between(ordered: tuple[float, ...] | list[float], at: float) -> float:
    low = int(at)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (at - low)


@dataclass(frozen=True, slots=True)
class ToolShape:
    """The calls of one kind of tool, and what they return; sizes in characters."""

    calls: int
    """How many were found."""
    arguments: Quantiles
    result: Quantiles
    errors: float
    """The share of results that are errors."""
    kinds: Mapping[str, float]
    """The share of each kind of text among the results."""
    ratio: float
    """Characters of a result over its bytes when zlib has packed it: the median."""
    fresh: float
    """The share of a generated text's lines that repeat no earlier line, to reach `ratio`."""


@dataclass(frozen=True, slots=True)
class FamilyShape:
    """Sessions of one kind, such as those of coding agents."""

    sessions: int
    """How many were found."""
    calls: Quantiles
    """Of the model, in a session."""
    tools_per_reply: Quantiles
    """Calls of tools in a reply that has any."""
    ends_turn: float
    """The share of replies without a call of a tool, which end the turn."""
    said: Quantiles
    """Characters that a reply says beside its calls of tools."""
    asked: Quantiles
    """Characters of what a user writes."""
    pause: Quantiles
    """Seconds from one call to the next in a turn."""
    pause_of_turn: Quantiles
    """Seconds from the last call of a turn to the first one of the next."""
    head: Quantiles
    """Tokens that were billed for the first prompt beside what its messages show."""
    tools: Mapping[str, ToolShape]


Shapes = dict[str, FamilyShape]


@cache
def shapes() -> Shapes:
    """Return the shipped shapes by the family of sessions."""
    found = json.loads(FILE.read_text(encoding="utf-8"))
    return {name: _family(values) for name, values in found.items()}


def written(found: Shapes) -> str:
    """Return shapes as the text of a file."""
    values = {name: _plain(asdict(family)) for name, family in found.items()}
    return json.dumps(values, indent=1) + "\n"


def _plain(value: Any) -> Any:  # noqa: ANN401 - JSON
    if isinstance(value, dict):
        if value.keys() == {"values"}:
            return " ".join(f"{number:g}" for number in value["values"])
        return {key: _plain(one) for key, one in value.items()}
    return value


def _family(values: dict[str, Any]) -> FamilyShape:
    tools = {name: ToolShape(**_read(one)) for name, one in values.pop("tools").items()}
    return FamilyShape(**_read(values), tools=tools)


def _read(values: dict[str, Any]) -> dict[str, Any]:
    return {
        key: Quantiles(tuple(map(float, value.split()))) if isinstance(value, str) else value
        for key, value in values.items()
    }
