"""`Counts`: the figures of the proxy, and their text in the format of Prometheus."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import TypeAlias, TypeVar

from policyctx.planning.plan import Plan
from policyctx.turns.money import Spent

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_PREFIX = "policyctx_proxy_"
Sample: TypeAlias = "tuple[dict[str, str], float]"
K = TypeVar("K", str, tuple[str, str])


@dataclass(slots=True)
class Counts:
    """What happened since the proxy was started. Any thread may add to it."""

    requests: Counter[str] = field(default_factory=Counter)
    """By outcome: `edited`, `unchanged`, `repeated`, `untouchable`, `held`, `reapplied`, …"""
    errors: Counter[str] = field(default_factory=Counter)
    """Internal errors, by the class of the exception."""
    responses: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By upstream, and by status or by what failed: `529`, `cut`, `ClientConnectorError`."""
    decisions: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By what was done with an item, and by step: `offloaded`, `retire`."""
    ruled: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Decisions by step and rule."""
    freed: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Tokens of these items, less those of their placeholders, by step and rule."""
    failed_writes: int = 0
    """Writes to the stores of sessions that failed."""
    spent: Spent = field(default_factory=Spent)
    _guard: Lock = field(default_factory=Lock)

    def request(self, outcome: str) -> None:
        """Count a request."""
        with self._guard:
            self.requests[outcome] += 1

    def error(self, name: str) -> None:
        """Count an internal error."""
        with self._guard:
            self.errors[name] += 1

    def response(self, upstream: str, outcome: str) -> None:
        """Count what an upstream answered, or that it did not."""
        with self._guard:
            self.responses[upstream, outcome] += 1

    def decided(self, plan: Plan, freed: Sequence[int]) -> None:
        """Count the decisions of a turn; each freed so many tokens."""
        with self._guard:
            self.decisions.update((one.action.past, one.step) for one in plan.new)
            for one, tokens in zip(plan.new, freed, strict=True):
                self.ruled[one.step, one.rule] += 1
                self.freed[one.step, one.rule] += tokens

    def fail_writes(self, number: int) -> None:
        """Count writes that failed."""
        with self._guard:
            self.failed_writes += number

    def spend(self, spent: Spent) -> None:
        """Add what a call or a summary took."""
        with self._guard:
            self.spent += spent


def metrics(counts: Counts, *, sessions: int, reloads: int, stopped: int = 0) -> str:
    """Return all metrics. No label has an id of a session, and none has text of a message."""
    spent, usage = counts.spent, counts.spent.usage
    kinds = {
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "output": usage.output,
    }
    families: dict[str, tuple[str, float | Iterable[Sample]]] = {
        "sessions": ("Sessions in memory.", sessions),
        "sessions_stopped": (
            "Of these, sessions whose last write to the store failed: nothing leaves their lists.",
            stopped,
        ),
        "failed_writes_total": (
            "Writes to the stores of sessions that failed.",
            counts.failed_writes,
        ),
        "requests_total": (
            "Requests with a list of messages, by outcome.",
            [({"outcome": name}, n) for name, n in _sorted(counts.requests)],
        ),
        "failures_open_total": (
            "Requests that were sent although the policy failed for them.",
            [
                ({"sent": "unchanged"}, counts.requests["failed_open"]),
                ({"sent": "with earlier decisions"}, counts.requests["reapplied"]),
            ],
        ),
        "errors_total": (
            "Internal errors, by exception.",
            [({"exception": name}, n) for name, n in _sorted(counts.errors)],
        ),
        "responses_total": (
            "What the upstreams answered, by status, or what failed.",
            [({"upstream": u, "status": s}, n) for (u, s), n in _sorted(counts.responses)],
        ),
        "decisions_total": (
            "Items that left a list, by what was done with them and by step.",
            [({"action": a, "step": s}, n) for (a, s), n in _sorted(counts.decisions)],
        ),
        "freed_tokens_total": (
            "Tokens of these items, less those of their placeholders.",
            counts.freed.total(),
        ),
        "calls_total": ("Model calls with a known usage.", spent.calls),
        "tokens_total": (
            "Tokens that providers billed, by kind.",
            [({"kind": name}, n) for name, n in kinds.items()],
        ),
        "spared_tokens_total": (
            "Tokens that prompts would have had in addition without the policy.",
            spent.spared,
        ),
        "billed_dollars_total": (
            "Prompts at list prices, and the summaries of compactions.",
            spent.billed + spent.summaries,
        ),
        "net_dollars": (
            "The bill less an estimate without the policy: below 0 if the policy saves.",
            spent.net,
        ),
        "unpriced_calls_total": (
            "Calls of models whose price is not known.",
            spent.calls - spent.priced,
        ),
        "reloads_total": ("Readings of the policies on SIGHUP.", reloads),
    }
    lines = (line for name, family in families.items() for line in _family(name, *family))
    return "".join(line + "\n" for line in lines)


def _family(name: str, text: str, samples: float | Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {'counter' if name.endswith('_total') else 'gauge'}"
    for labels, value in [({}, samples)] if isinstance(samples, int | float) else samples:
        shown = ",".join(f'{label}="{one.translate(_ESCAPES)}"' for label, one in labels.items())
        yield f"{_PREFIX}{name}{f'{{{shown}}}' if shown else ''} {value!r}"


def _sorted(counter: Mapping[K, int]) -> list[tuple[K, int]]:
    return sorted(counter.items())
