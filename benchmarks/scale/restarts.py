"""A session of 10,000 turns that is made again: how soon it knows its decisions.

The session is built turn by turn: each turn adds a reply with a call and its result of 2 KB, and
one older result is offloaded. Then its objects are made anew, as after a restart of the process.
The time until it knows its decisions does not depend on the list; the first `apply` reads the whole
list as well.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from benchmarks.runner import markdown_table
from benchmarks.sessions import compiled
from policyctx.definitions.items import Message
from policyctx.session import Session

TURNS = (1_000, 3_000, 10_000)
GOAL_S = 0.2
REPEATS = 5
_SESSION = "long"
_OUTPUT = "line {i} of what the tool printed, with a few words\n" * 40


@dataclass(frozen=True, slots=True)
class Restarted:
    """What restarts of a session came to; times are medians, in seconds."""

    turns: int
    closed: bool
    bytes: int
    """Of the journal and its snapshot."""
    known: float
    """Until the session knows its decisions, by the clock."""
    known_cpu: float
    """The same in processor time."""
    first_apply_cpu: float
    """Processor time of the first `apply`, with the whole list."""


def measured(turns: Sequence[int] = TURNS) -> Iterator[Restarted]:
    """Yield the figures of sessions with the given numbers of turns, not closed and closed."""
    for count in turns:
        messages = conversation(count)
        with TemporaryDirectory(prefix="policyctx-bench-") as root:
            session = _session(root)
            for end in range(1, len(messages) + 1, 2):
                session.apply(messages[:end])
            yield _restarted(root, messages, closed=False)
            session.close()
            yield _restarted(root, messages, closed=True)


def conversation(turns: int) -> list[Message]:
    """Return a list with the given number of tool calls, and their results."""
    found: list[Message] = [{"role": "user", "content": "Find out why it fails, and repair it."}]
    for i in range(turns):
        call = f"toolu_{i:06}"
        use = {"type": "tool_use", "id": call, "name": "Bash", "input": {"command": f"make {i}"}}
        result = {"type": "tool_result", "tool_use_id": call, "content": _OUTPUT.format(i=i)}
        found += [
            {"role": "assistant", "content": [use]},
            {"role": "user", "content": [result]},
        ]
    return found


def _session(root: str | os.PathLike[str]) -> Session:
    return Session(compiled("offload"), root=root, session_id=_SESSION)


def _restarted(root: str, messages: Sequence[Message], *, closed: bool) -> Restarted:
    known, known_cpu, first = [], [], []
    for _ in range(REPEATS):
        started, cpu = time.perf_counter(), time.process_time()
        session = _session(root)
        decided = len(session.ledger)
        known_cpu.append(time.process_time() - cpu)
        known.append(time.perf_counter() - started)
        cpu = time.process_time()
        result = session.apply(messages)
        first.append(time.process_time() - cpu)
        if result.plan.new or not decided:
            raise RuntimeError("the session forgot what it had decided")
    state = Path(root) / ".policyctx" / _SESSION
    size = sum(file.stat().st_size for file in state.iterdir())
    turns = len(messages) // 2
    return Restarted(turns, closed, size, median(known), median(known_cpu), median(first))


def table(found: Sequence[Restarted]) -> str:
    """Return the figures as a Markdown table."""
    columns = ("turns", "closed before", "state", "knows its decisions", "processor", "first apply")
    rows = [
        (
            f"{one.turns:,}",
            "yes" if one.closed else "no",
            f"{one.bytes / 1e6:.1f} MB",
            f"{1e3 * one.known:,.0f} ms",
            f"{1e3 * one.known_cpu:,.0f} ms",
            f"{1e3 * one.first_apply_cpu:,.0f} ms",
        )
        for one in found
    ]
    return markdown_table(columns, rows, numeric=range(2, 6))
