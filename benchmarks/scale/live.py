"""A root that many live sessions share: 200 in one process, and sessions in 20 processes.

Each session takes turns: it gets a new result of 2 KB and offloads an older one. In one process the
sessions take a turn each, round after round, as those of a service do. Processes are started before
they are timed. Files are flushed (`sync: always`) or not.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from benchmarks.runner import markdown_table
from benchmarks.scale.restarts import conversation
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.session import Session

SESSIONS, PROCESSES, TURNS = 200, 20, 40
_POLICY = """\
apiVersion: policyctx/v1
name: live
min_tokens: 200
items: {{tool_result: {{offload: true}}}}
store: {{sync: {sync}}}
steps: [{{name: retire, do: offload, select: {{keep_recent: {{items: 3, per: all}}}}}}]
"""


@dataclass(frozen=True, slots=True)
class Lived:
    """What sessions of one root came to."""

    sessions: int
    processes: int
    sync: str
    turns: int
    """Of all sessions together."""
    seconds: float
    slowest: float
    """Seconds of the slowest turn."""
    memory: float
    """Bytes that each session added to its process."""
    descriptors: int
    """Most open files of a process, beyond those before its sessions."""
    left: int
    """Open files after all sessions of the process were closed, beyond those before."""


def measured(
    sessions: int = SESSIONS, processes: int = PROCESSES, turns: int = TURNS
) -> Iterator[Lived]:
    """Yield the figures of sessions in one process, and of the same number in several."""
    for sync in ("never", "always"):
        for count in (1, processes):
            with TemporaryDirectory(prefix="policyctx-bench-") as root:
                yield lived(Path(root), sessions, count, turns, sync)


def lived(root: Path, sessions: int, processes: int, turns: int, sync: str) -> Lived:
    """Return the figures of one run in a root."""
    spawning = multiprocessing.get_context("spawn")
    own = sessions // processes
    begin, results = spawning.Barrier(processes + 1), spawning.Queue()
    workers = [
        spawning.Process(target=_live, args=(root, i * own, own, turns, sync, begin, results))
        for i in range(processes)
    ]
    for worker in workers:
        worker.start()
    begin.wait()
    started = time.perf_counter()
    found = [results.get() for _ in workers]
    seconds = time.perf_counter() - started
    for worker in workers:
        worker.join()
    return Lived(
        own * processes,
        processes,
        sync,
        own * processes * turns,
        seconds,
        max(one["slowest"] for one in found),
        sum(one["memory"] for one in found) / (own * processes),
        max(one["descriptors"] for one in found),
        max(one["left"] for one in found),
    )


def _live(  # noqa: PLR0917 - the arguments of a process
    root: Path,
    first: int,
    count: int,
    turns: int,
    sync: str,
    begin: Any,  # noqa: ANN401 - a barrier
    results: Any,  # noqa: ANN401 - a queue
) -> None:
    text = _POLICY.format(sync=sync)
    policy = OffloadPolicy(parsed_policy(PolicySource("live.yaml", text), variables={}))
    messages = conversation(turns)
    with Session(policy, root=root, session_id=f"warm-{first}") as warm:
        for end in range(1, len(messages) + 1, 2):
            warm.apply(messages[:end])
    before, memory = _descriptors(), _memory()
    begin.wait()
    slowest, most = 0.0, 0
    sessions = [Session(policy, root=root, session_id=f"s-{first + i}") for i in range(count)]
    lists = [conversation_of(i, messages) for i in range(first, first + count)]
    for end in range(3, len(messages) + 1, 2):
        for session, whole in zip(sessions, lists, strict=True):
            started = time.perf_counter()
            session.apply(whole[:end])
            slowest = max(slowest, time.perf_counter() - started)
        most = max(most, _descriptors() - before)
    added = _memory() - memory
    for session in sessions:
        session.close()
    results.put(
        {
            "slowest": slowest,
            "memory": max(0, added),
            "descriptors": most,
            "left": _descriptors() - before,
        }
    )


def conversation_of(number: int, messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages of one session: the same, with its number in each id."""
    written = json.dumps(messages).replace('": "toolu_', f'": "toolu_{number}_')
    found: list[dict[str, Any]] = json.loads(written)
    return found


def _descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _memory() -> int:
    """Return the resident set of this process in bytes."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def table(found: Sequence[Lived]) -> str:
    """Return the figures as a Markdown table."""
    columns = (
        "sessions",
        "processes",
        "`sync`",
        "turns a second",
        "slowest turn",
        "memory a session",
        "open files",
        "after closing",
    )
    rows = [
        (
            f"{one.sessions}",
            f"{one.processes}",
            one.sync,
            f"{one.turns / one.seconds:,.0f}",
            f"{1e3 * one.slowest:,.0f} ms",
            f"{one.memory / 1e3:,.0f} KB",
            f"{one.descriptors}",
            f"{one.left}",
        )
        for one in found
    ]
    return markdown_table(columns, rows, numeric=(0, 1, 3, 4, 5, 6, 7))
