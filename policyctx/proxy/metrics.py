"""The figures of the proxy in the text format of Prometheus."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, TypeVar

from policyctx.proxy.turning import Counts

_ESCAPES = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})
_PREFIX = "policyctx_proxy_"
Sample: TypeAlias = "tuple[dict[str, str], float]"
K = TypeVar("K", str, tuple[str, str])


def metrics(counts: Counts, *, sessions: int, reloads: int, stopped: int = 0) -> str:
    """Return all metrics. No label has an id of a session, and none has text of a message."""
    spent, usage = counts.spent, counts.spent.usage
    kinds = {
        "input": usage.input,
        "cache_read": usage.cache_read,
        "cache_write": usage.cache_write,
        "output": usage.output,
    }
    families = [
        _family("sessions", "gauge", "Sessions in memory.", [({}, sessions)]),
        _family(
            "sessions_stopped",
            "gauge",
            "Of these, sessions whose last write to the store failed: their lists are sent whole.",
            [({}, stopped)],
        ),
        _family(
            "failed_writes_total",
            "counter",
            "Writes to the stores of sessions that failed.",
            [({}, counts.failed_writes)],
        ),
        _family(
            "requests_total",
            "counter",
            "Requests with a list of messages, by outcome.",
            [({"outcome": name}, n) for name, n in _sorted(counts.requests)],
        ),
        _family(
            "failures_open_total",
            "counter",
            "Requests that were sent although the policy failed for them.",
            [
                ({"sent": "unchanged"}, counts.requests["failed_open"]),
                ({"sent": "with earlier decisions"}, counts.requests["reapplied"]),
            ],
        ),
        _family(
            "errors_total",
            "counter",
            "Internal errors, by exception.",
            [({"exception": name}, n) for name, n in _sorted(counts.errors)],
        ),
        _family(
            "responses_total",
            "counter",
            "What the upstreams answered, by status, or what failed.",
            [({"upstream": u, "status": s}, n) for (u, s), n in _sorted(counts.responses)],
        ),
        _family(
            "decisions_total",
            "counter",
            "Items that left a list, by what was done with them and by step.",
            [({"action": a, "step": s}, n) for (a, s), n in _sorted(counts.decisions)],
        ),
        _family(
            "freed_tokens_total",
            "counter",
            "Tokens of these items, less those of their placeholders.",
            [({}, counts.freed)],
        ),
        _family("calls_total", "counter", "Model calls with a known usage.", [({}, spent.calls)]),
        _family(
            "tokens_total",
            "counter",
            "Tokens that providers billed, by kind.",
            [({"kind": name}, n) for name, n in kinds.items()],
        ),
        _family(
            "spared_tokens_total",
            "counter",
            "Tokens that prompts would have had in addition without the policy.",
            [({}, spent.spared)],
        ),
        _family(
            "billed_dollars_total",
            "counter",
            "Prompts at list prices, and the summaries of compactions.",
            [({}, spent.billed + spent.summaries)],
        ),
        _family(
            "net_dollars",
            "gauge",
            "The bill less an estimate without the policy: below 0 if the policy saves.",
            [({}, spent.net)],
        ),
        _family(
            "unpriced_calls_total",
            "counter",
            "Calls of models whose price is not known.",
            [({}, spent.calls - spent.priced)],
        ),
        _family("reloads_total", "counter", "Readings of the policies on SIGHUP.", [({}, reloads)]),
    ]
    return "".join(line + "\n" for family in families for line in family)


def _family(name: str, kind: str, text: str, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {_PREFIX}{name} {text}"
    yield f"# TYPE {_PREFIX}{name} {kind}"
    for labels, value in samples:
        shown = ",".join(f'{label}="{one.translate(_ESCAPES)}"' for label, one in labels.items())
        yield f"{_PREFIX}{name}{f'{{{shown}}}' if shown else ''} {value!r}"


def _sorted(counter: Mapping[K, int]) -> list[tuple[K, int]]:
    return sorted(counter.items())
