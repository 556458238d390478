"""Many sessions replayed with `policyctx replay`: time, memory, and how both grow.

Sessions are generated, then replayed as a user does, each number of them with each number of
processes. What all runs over the same sessions print must be equal, except the time. The
exponent of the growth is the slope of the line through the logarithms of sessions and processor
time, of which what the smallest run takes for no session is subtracted.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from benchmarks.runner import markdown_table
from benchmarks.scale.generating import CODING, sessions
from benchmarks.scale.processes import Ran, ran
from benchmarks.scale.writing import Layout, write_sessions

POLICY = "small-context"
GROWTH = 1.05
MILLION = 1_000_000
# Large files are cut so that every process has some of them.
_FILES = 16


@dataclass(frozen=True, slots=True)
class Replayed:
    """One run of the command."""

    layout: Layout
    sessions: int
    bytes: int
    jobs: int
    run: Ran
    figures: str
    """What was printed, without the time: equal in all runs over the same sessions."""


def measured(
    folder: Path,
    counts: Sequence[int],
    jobs: Sequence[int],
    layouts: Sequence[Layout],
    *,
    seed: int = 1,
    coding: float = CODING,
) -> Iterator[Replayed]:
    """Yield a run for each layout, number of sessions and number of processes.

    The sessions stay in `folder`, and are made only if they are not there. Raises `RuntimeError` if
    a run fails, or if its figures differ from those of the run before over the same sessions.
    """
    for layout in layouts:
        for count in counts:
            place = folder / f"{layout}-{count}-{seed}-{coding:g}"
            if not place.exists():
                made = sessions(count, seed=seed, coding=coding)
                write_sessions(made, place, layout, per_file=math.ceil(count / _FILES))
            figures = ""
            for number in jobs:
                found = _replayed(place, layout, count, number)
                if figures not in {"", found.figures}:
                    raise RuntimeError(f"{number} jobs come to other figures in {place}")
                figures = found.figures
                yield found


def _replayed(place: Path, layout: Layout, count: int, jobs: int) -> Replayed:
    command = [sys.executable, "-m", "policyctx", "replay", POLICY, str(place)]
    run = ran([*command, "--jobs", str(jobs)])
    if run.code or f"{count:,} sessions of " not in run.output:
        raise RuntimeError(f"{' '.join(command)} ended with {run.code}: {run.output[-2_000:]}")
    size = sum(path.stat().st_size for path in place.rglob("*.jsonl"))
    shown = [line for line in run.output.splitlines() if not line.startswith("time ")]
    return Replayed(layout, count, size, jobs, run, "\n".join(shown))


def exponent(found: Sequence[Replayed]) -> float | None:
    """Return the exponent of processor time over sessions; None for fewer than three runs."""
    if len(found) < 3:  # noqa: PLR2004 - two runs give the slope of a line, not its bend
        return None
    # What starting takes is the same in all runs: the line through the first two gives it.
    first, second = sorted(found, key=lambda one: one.sessions)[:2]
    slope = (second.run.cpu - first.run.cpu) / (second.sessions - first.sessions)
    start = max(0.0, first.run.cpu - slope * first.sessions)
    points = [(math.log(one.sessions), math.log(one.run.cpu - start)) for one in found]
    mean_x, mean_y = fmean(x for x, _ in points), fmean(y for _, y in points)
    over = sum((x - mean_x) * (y - mean_y) for x, y in points)
    return over / sum((x - mean_x) ** 2 for x, _ in points)


def table(found: Sequence[Replayed]) -> str:
    """Return the runs as a Markdown table."""
    columns = (
        "sessions",
        "in",
        "MB",
        "jobs",
        "time",
        "processor",
        "a session",
        "memory",
        "of a worker",
    )
    rows = [
        (
            f"{one.sessions:,}",
            "large files" if one.layout == "lines" else "a file each",
            f"{one.bytes / 1e6:,.0f}",
            f"{one.jobs}",
            f"{one.run.seconds:,.0f} s",
            f"{one.run.cpu:,.0f} s",
            f"{1e3 * one.run.cpu / one.sessions:,.0f} ms",
            f"{one.run.memory / 1e6:,.0f} MB",
            f"{one.run.memory_of_others / 1e6:,.0f} MB" if one.jobs > 1 else "-",
        )
        for one in found
    ]
    return markdown_table(columns, rows, numeric=(0, 2, 3, 4, 5, 6, 7, 8))


def growth(found: Sequence[Replayed]) -> list[str]:
    """Return a sentence on the growth for each layout and number of jobs, and on a million."""
    sentences = []
    for layout, jobs in sorted({(one.layout, one.jobs) for one in found}):
        runs = [one for one in found if (one.layout, one.jobs) == (layout, jobs)]
        slope = exponent(runs)
        largest = max(runs, key=lambda one: one.sessions)
        times = MILLION / largest.sessions
        power = 1.0 if slope is None else max(1.0, slope)
        least = min(runs, key=lambda one: one.sessions)
        hours = MILLION * _cpu_of_session(least, largest) * times ** (power - 1) / 3_600
        added = _added_memory(least, largest)
        said = "not known" if slope is None else f"{slope:.3f} (goal: at most {GROWTH})"
        sentences.append(
            f"{layout}, {jobs} jobs: exponent {said}; 1,000,000 sessions are"
            f" {times * largest.bytes / 1e9:,.0f} GB and would take {hours:,.1f} hours of"
            f" processor time; the first process grows by {added / 1e3:.1f} KB a session"
        )
    return sentences


def _cpu_of_session(least: Replayed, largest: Replayed) -> float:
    """Return the processor time of one session, without what starting takes."""
    more = largest.sessions - least.sessions
    if not more:
        return largest.run.cpu / largest.sessions
    return (largest.run.cpu - least.run.cpu) / more


def _added_memory(least: Replayed, largest: Replayed) -> float:
    more = largest.sessions - least.sessions
    return (largest.run.memory - least.run.memory) / more if more else 0.0


def holds(found: Sequence[Replayed]) -> bool:
    """Whether the exponent of each layout and number of jobs that is known is small enough."""
    keys: set[tuple[Any, ...]] = {(one.layout, one.jobs) for one in found}
    slopes = [exponent([o for o in found if (o.layout, o.jobs) == key]) for key in keys]
    return all(slope is None or slope <= GROWTH for slope in slopes)
