"""Measures on labelled pairs how well an update takes the old value back.

    python -m benchmarks.revisions FILE [--json] [--wrong]

`FILE` has one pair a line; see `benchmarks.revisions.pairs`. Three figures, each with its 95 %
interval after Wilson, for all pairs, for each language and for each label:

- nothing lost: what has to be kept is in a statement that stands; of the pairs that are not
  `supersedes`, none of the first is taken back wrongly.
- nothing stale: what no longer holds is gone; of `supersedes` only.
- correct: taken back if it is superseded; both stand if not.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Sequence
from math import sqrt
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from benchmarks.revisions.pairs import LABELS, SUPERSEDES, Judged, judged, pairs_in

_Z = 1.959964


class Share(NamedTuple):
    """So many of all, and the 95 % interval of their share."""

    held: int
    of: int
    low: float
    high: float


def share(holds: Iterable[bool]) -> Share:
    """Return how many hold, with the interval after Wilson; of none it is from 0 to 1."""
    values = list(holds)
    count, n = sum(values), len(values)
    if not n:
        return Share(0, 0, 0.0, 1.0)
    middle = (count / n + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    p = count / n
    half = _Z * sqrt(p * (1 - p) / n + _Z**2 / (4 * n**2)) / (1 + _Z**2 / n)
    return Share(count, n, max(0.0, middle - half), min(1.0, middle + half))


def figures(results: Sequence[Judged]) -> dict[str, dict[str, Share]]:
    """Return the three figures for all pairs and for each language and label."""
    groups = {"all": list(results)}
    for one in sorted(results, key=lambda one: (one.pair.language, LABELS.index(one.pair.label))):
        groups.setdefault(one.pair.language, []).append(one)
    for label in LABELS:
        groups[label] = [one for one in results if one.pair.label == label]
    return {
        name: {
            "nothing lost": share(not one.lost for one in group),
            "nothing stale": share(not one.stale for one in group if one.pair.label == SUPERSEDES),
            "correct": share(one.correct for one in group),
        }
        for name, group in groups.items()
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0, or 2 if the file has a wrong line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.revisions",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", type=Path, help="JSON lines, one pair each")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--wrong", action="store_true", help="list what is not correct")
    given = parser.parse_args(arguments)
    try:
        results = [judged(pair) for pair in pairs_in(given.file)]
    except (OSError, ValueError) as error:
        print(f"{given.file}: {error}", file=sys.stderr)
        return 2
    found = figures(results)
    if given.json:
        print(json.dumps({n: {k: s._asdict() for k, s in of.items()} for n, of in found.items()}))
        return 0
    _print(found)
    if given.wrong:
        for one in results:
            if not one.correct or one.lost:
                pair, flags = one.pair, "LOST " * one.lost + "STALE " * one.stale
                print(f"{pair.id} {pair.label} -> {flags}{one.outcome}")
                print(f"    {pair.first}\n    {pair.second}")
    return 0


def _print(found: dict[str, dict[str, Share]]) -> None:
    table = Table("pairs", *found["all"])
    for name, shares in found.items():
        cells = [f"{s.held}/{s.of} ({s.low:.3f} to {s.high:.3f})" for s in shares.values()]
        table.add_row(name, *cells)
    Console(width=110).print(table)


if __name__ == "__main__":
    sys.exit(main())
