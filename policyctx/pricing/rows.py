"""`ModelRow`: the prices of a language model at one time, its window and the rules of its cache.

The rows are in `models.json` beside this module: facts with a date and a source, and nothing that
this library decides. `scripts/prices.py` writes the file anew.
"""

import importlib.resources
import json
import re
from calendar import timegm
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from policyctx.pricing.dollars import CallPrices, Rates

CacheKind: TypeAlias = Literal["anthropic", "breakpoints", "prefix"]


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of a prompt cache; sizes in tokens of the provider, times in seconds."""

    kind: CacheKind
    """`anthropic`: an entry for each breakpoint of a completed request, found by walking back from
    the breakpoints of a later one. `breakpoints`: a prefix matches at breakpoints only. `prefix`:
    the longest common prefix in whole steps, without breakpoints."""
    min_tokens: int
    """A shorter prefix is not cached."""
    ttl: int = 300
    """How long an entry lives after its last use, where a request says nothing else."""
    step: int = 1
    """`prefix` only: a match is a multiple of this."""
    lookback: int = 20
    """`anthropic` only: the positions that a read tries at each breakpoint, itself included. A run
    of `tool_use` blocks or of `tool_result` blocks is one position."""
    most_breakpoints: int = 4
    """A request may have no more."""
    bills_writes: bool = True
    """Whether a write has a price of its own; otherwise it is billed as input."""


@dataclass(frozen=True, slots=True)
class ModelRow:
    """One language model, as it was sold in one period."""

    name: str
    """As its provider spells it, without a date."""
    provider: str
    sources: tuple[str, ...]
    """The pages on which the provider publishes the figures."""
    context_window: int
    """In tokens."""
    cache: CacheRules | None
    """None where nothing is sold at a lower price because it is cached."""
    prices: CallPrices
    since: str = ""
    """The first day of the period, `2026-03-13`; empty where no earlier price is known."""
    until: str = ""
    """The day on which the next period begins; empty for the one in force."""


_Price = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Day = Annotated[str, StringConstraints(pattern=r"^\d{4}-\d{2}-\d{2}$")]


class _Written(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Prices(_Written):
    input: _Price
    write_5m: _Price
    write_1h: _Price
    read: _Price
    output: _Price

    def rates(self) -> Rates:
        return Rates(self.input, self.write_5m, self.write_1h, self.read, self.output)


class _Tier(_Prices):
    tokens: Annotated[int, Field(gt=0)]


class _Period(_Prices):
    since: _Day | None = Field(None, alias="from")
    until: _Day | None = None
    context_window: Annotated[int, Field(gt=0)] | None = None
    above: tuple[_Tier, ...] = ()


class _Cache(_Written):
    kind: CacheKind
    min_tokens: Annotated[int, Field(gt=0)]
    ttl: Annotated[int, Field(gt=0)]
    step: Annotated[int, Field(gt=0)] = 1
    lookback: Annotated[int, Field(gt=0)] = 20
    most_breakpoints: Annotated[int, Field(gt=0)] = 4
    bills_writes: bool = True


class _Provider(_Written):
    sources: Annotated[tuple[str, ...], Field(min_length=1)]
    hosts: tuple[str, ...]
    """What may come before `/` in a name that is billed at these prices."""


class _Model(_Written):
    name: Annotated[str, Field(min_length=1)]
    provider: str
    also: tuple[str, ...] = ()
    context_window: Annotated[int, Field(gt=0)]
    cache: str | None
    periods: Annotated[tuple[_Period, ...], Field(min_length=1)]


class _File(_Written):
    date: _Day
    providers: dict[str, _Provider]
    caches: dict[str, _Cache]
    models: tuple[_Model, ...]


@dataclass(frozen=True, slots=True)
class _Known:
    """The periods of one model, the oldest first, and where its name may come from."""

    hosts: frozenset[str]
    rows: tuple[ModelRow, ...]

    def row(self, at: float | None) -> ModelRow:
        if at is not None:
            for row in self.rows:
                if not row.until or at < _seconds(row.until):
                    return row
        return self.rows[-1]


def row_of(name: str | None, *, at: float | None = None) -> ModelRow | None:
    """Return the row of a language model, as a request or a recording spells its name.

    `at` is a time in seconds since 1970, whose prices are wanted; without it they are those of
    `prices_date`. Prefixes of gateways (`openai/gpt-4o`, `us.anthropic.claude-…-v1:0`), dates
    (`-20250929`, `@20250929`, `-2025-08-07`) and upper case make no difference. None for a model
    that is not known, and for one that another host sells at a price of its own.
    """
    if not name:
        return None
    hosts, keys = _spelt(name)
    known = next((found for key in keys if (found := _table().get(key)) is not None), None)
    return known.row(at) if known is not None and hosts <= known.hosts else None


def prices_date() -> str:
    """Return the day on which the prices were read, such as `2026-11-23`."""
    return _file().date


def rows() -> tuple[ModelRow, ...]:
    """Return all rows, in the order of the file."""
    file = _file()
    return tuple(row for model in file.models for row in _periods(model, file))


_BEDROCK = re.compile(r"^(?:(?P<region>[a-z-]+)\.)?anthropic\.(?P<model>claude.*)$")
_VERSION = re.compile(r"(-v\d+)?(:\d+)?$")
_DATES = re.compile(r"(-\d{8}|-\d{4}-\d{2}-\d{2}|-\d{2}-\d{2,4})$")
_LATEST = re.compile(r"-latest$")
# A window or a way to think that is asked for in the name, at the model's own price.
_WAYS = re.compile(r"(\[1m\]|:thinking|:beta|:extended)$")


@lru_cache(maxsize=256)  # a client names the same model in every call
def _spelt(name: str) -> tuple[frozenset[str], list[str]]:
    """Return the hosts before a model's name, and the keys to look for, the most exact first."""
    *before, last = name.strip().lower().split("/")
    hosts = frozenset(one.lstrip("~") for one in before if not one.startswith("arn:aws:bedrock"))
    last = _WAYS.sub("", last)
    if found := _BEDROCK.match(last):
        bare = found["model"]
        last = bare if found["region"] == "global" else f"regional.anthropic.{bare}"
    whole = _key(last.partition("@")[0])
    keys = [whole]
    for pattern in (_VERSION, _DATES, _LATEST):
        if (shorter := pattern.sub("", keys[-1])) != keys[-1]:
            keys.append(shorter)
    return hosts, keys


def _key(name: str) -> str:
    return name.lower().replace(".", "-")


@cache
def _table() -> dict[str, _Known]:
    file = _file()
    table: dict[str, _Known] = {}
    for model in file.models:
        known = _Known(
            frozenset(file.providers[model.provider].hosts), tuple(_periods(model, file))
        )
        for name in (model.name, *model.also):
            if table.setdefault(_key(name), known) is not known:
                raise ValueError(f"two rows of models.json have the name {name!r}")
    return table


def _periods(model: _Model, file: _File) -> list[ModelRow]:
    rules = None if model.cache is None else CacheRules(**file.caches[model.cache].model_dump())
    return [
        ModelRow(
            name=model.name,
            provider=model.provider,
            sources=file.providers[model.provider].sources,
            context_window=period.context_window or model.context_window,
            cache=rules if period.read < period.input else None,
            prices=CallPrices(
                period.rates(), tuple((tier.tokens, tier.rates()) for tier in period.above)
            ),
            since=period.since or "",
            until=period.until or "",
        )
        for period in model.periods
    ]


@cache
def _file() -> _File:
    path = importlib.resources.files(__package__) / "models.json"
    written: Any = json.loads(path.read_text(encoding="utf-8"))
    return _File.model_validate(written)


@cache
def _seconds(day: str) -> int:
    """Return when a day begins, in UTC, in seconds since 1970."""
    year, month, date = map(int, day.split("-"))
    return timegm((year, month, date, 0, 0, 0))
