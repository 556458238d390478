"""What the library's own presets come to in recorded sessions, held to what they say themselves.

    python -m benchmarks.presets [FOLDER]

A line for each preset whose description has figures, and for its summaries alone: net dollars with
their 95 % interval (bootstrap over projects), sessions that get dearer, tokens that must be read
again. It exits with 1 when a description says something else than what is measured.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.sources import preset_names
from policyctx.replay.common import Common
from policyctx.replay.places import files
from policyctx.replay.recording import Recording
from policyctx.replay.running import SUMMARISE_ONLY, summarise_only, worked
from policyctx.tuning.outcomes import (
    Interval,
    SessionOutcome,
    Sums,
    bootstrap_interval,
    outcome_of,
    sums,
)
from policyctx.tuning.recordings import project_of
from policyctx.tuning.search import by_project, differences

TRACES = Path(__file__).parents[2] / "shared" / "traces"
# What a description may be off by: a share of the cost without a policy, and of the tokens.
NET, TOKENS = 0.005, 0.05

_STATED = re.compile(
    r"On (?P<sessions>[\d,]+) recordings \((?P<date>\d{4}-\d{2}-\d{2})\): net "
    r"(?P<net>[+−]\$[\d.]+) of \$(?P<without>[\d.]+) \([+−]\d+ %\), (?P<dearer>\d+) dearer, "
    r"(?P<regret>[\d,]+) tokens read again"
)


class Stated(NamedTuple):
    """The figures in the description of a preset."""

    sessions: int
    date: str
    net: float
    without: float
    dearer: int
    regret_tokens: int

    def agrees(self, found: Sums) -> bool:
        """Return whether measured figures are those that are stated, except the tolerance."""
        return (
            (self.sessions, self.dearer) == (found.sessions, found.dearer)
            and abs(self.without - found.without) <= NET * found.without
            and abs(self.net - found.net) <= NET * found.without
            and abs(self.regret_tokens - found.regret_tokens) <= TOKENS * found.regret_tokens
        )


@dataclass(frozen=True, slots=True)
class Measured:
    """A policy over all recordings with prices."""

    outcomes: tuple[SessionOutcome, ...]
    projects: tuple[str, ...]

    @property
    def sums(self) -> Sums:
        """The figures of all sessions together."""
        return sums(self.outcomes)

    def against(self, other: Sequence[SessionOutcome]) -> Interval | None:
        """Return the interval of what it costs more than another policy, in $, by project."""
        found = by_project(differences(self.outcomes, other), self.projects)
        return bootstrap_interval(found, seed=0)


def stated() -> dict[str, Stated]:
    """Return the figures in the descriptions of the presets, of those that have any."""
    found = {}
    for name in preset_names():
        description = OffloadPolicy.load(name).policy.description
        if (match := _STATED.search(" ".join((description or "").split()))) is not None:
            found[name] = Stated(
                int(match["sessions"].replace(",", "")),
                match["date"],
                float(match["net"].replace("$", "").replace("−", "-")),
                float(match["without"]),
                int(match["dearer"]),
                int(match["regret"].replace(",", "")),
            )
    return found


class _Priced(NamedTuple):
    """What policies come to in a session, by their names, where it has prices."""

    project: str
    outcomes: dict[str, SessionOutcome]


def _priced(policies: Mapping[str, OffloadPolicy], recording: Recording, path: str) -> _Priced:
    common = Common(recording)
    found = {
        name: outcome_of(recording, policy, common=common)
        for name, policy in policies.items()
        if recording.calls
    }
    priced = {name: each for name, each in found.items() if isinstance(each, SessionOutcome)}
    return _Priced(project_of(recording, path), priced)


def measured(policies: Mapping[str, OffloadPolicy], folder: Path = TRACES) -> dict[str, Measured]:
    """Return what policies come to, by their names, over the recordings with prices in a folder."""
    outcomes: dict[str, list[SessionOutcome]] = {name: [] for name in policies}
    projects: list[str] = []
    for one in worked(files([folder]), partial(_priced, policies)):
        if isinstance(one, _Priced) and len(one.outcomes) == len(policies):
            projects.append(one.project)
            for name, outcome in one.outcomes.items():
                outcomes[name].append(outcome)
    return {name: Measured(tuple(of_one), tuple(projects)) for name, of_one in outcomes.items()}


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 when a description does not agree."""
    said = stated()
    policies = {name: OffloadPolicy.load(name) for name in said}
    policies[SUMMARISE_ONLY] = summarise_only(next(iter(policies.values())))
    found = measured(policies, Path(arguments[0]) if arguments else TRACES)
    alone = found[SUMMARISE_ONLY]
    columns = ("net, $", "without, $", "against summarise-only, $", "dearer", "read again", "says")
    table = Table("preset", *columns, box=None)
    for name, one in found.items():
        total = one.sums
        agrees = name not in said or said[name].agrees(total)
        table.add_row(
            name,
            f"{total.net:+.2f} {_interval(one.against([o.unedited for o in one.outcomes]))}",
            f"{total.without:.2f} in {total.sessions}",
            _interval(one.against(alone.outcomes)),
            f"{total.dearer}",
            f"{total.regret_tokens:,}",
            "-" if name not in said else "the same" if agrees else "something else",
        )
    Console(width=140).print(table)
    return int(not all(said[name].agrees(found[name].sums) for name in said))


def _interval(found: Interval | None) -> str:
    return "" if found is None else f"[{found.low:+.2f}, {found.high:+.2f}]"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
