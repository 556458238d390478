"""The command: makes many sessions, and measures what they cost.

python -m benchmarks.scale generate --sessions 20000 OUT
python -m benchmarks.scale fit RECORDINGS
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.scale import live, opening, replays, restarts
from benchmarks.scale.fitting import fitted
from benchmarks.scale.generating import CODING, sessions
from benchmarks.scale.shapes import FILE, written
from benchmarks.scale.writing import PER_FILE, Layout, write_sessions


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0."""
    given = _parser().parse_args(arguments)
    code: int = given.run(given)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/bench scale", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    commands = parser.add_subparsers(required=True)
    made = commands.add_parser("generate", help="write generated sessions below a folder")
    made.add_argument("folder", type=Path, metavar="OUT")
    made.add_argument("--sessions", type=int, default=1_000, metavar="N")
    made.add_argument("--layout", choices=("lines", "files", "both"), default="both")
    made.add_argument("--per-file", type=int, default=PER_FILE, help="sessions of a large file")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--coding", type=float, default=CODING, help="share of coding agents")
    made.set_defaults(run=_generate)
    again = commands.add_parser("replay", help="replay generated sessions")
    again.add_argument("--sessions", type=int, nargs="+", default=[200, 400, 800], metavar="N")
    again.add_argument("--jobs", type=int, nargs="+", default=[1, 2, 4], metavar="N")
    again.add_argument("--layout", choices=("lines", "files", "both"), default="both")
    again.add_argument("--folder", type=Path, help="where the sessions are kept, or made")
    again.add_argument("--seed", type=int, default=1)
    again.add_argument("--coding", type=float, default=CODING, help="share of coding agents")
    again.set_defaults(run=_replay)
    restart = commands.add_parser("restart", help="restart a session of many turns")
    restart.add_argument("--turns", type=int, nargs="+", default=[*restarts.TURNS], metavar="N")
    restart.set_defaults(run=_restart)
    many = commands.add_parser("live", help="let many sessions share a root")
    many.add_argument("--sessions", type=int, default=live.SESSIONS)
    many.add_argument("--processes", type=int, default=live.PROCESSES)
    many.add_argument("--turns", type=int, default=live.TURNS)
    many.set_defaults(run=_live)
    fit = commands.add_parser("fit", help=f"write {FILE.name} anew, from recorded sessions")
    fit.add_argument("recordings", type=Path, nargs="+", metavar="RECORDINGS")
    fit.set_defaults(run=_fit)
    return parser


def _layouts(given: argparse.Namespace) -> list[Layout]:
    return ["lines", "files"] if given.layout == "both" else [given.layout]


def _generate(given: argparse.Namespace) -> int:
    for layout in _layouts(given):
        made = sessions(given.sessions, seed=given.seed, coding=given.coding)
        count = write_sessions(made, given.folder / layout, layout, per_file=given.per_file)
        print(f"{count:,} sessions in {given.folder / layout}")
    return 0


def _replay(given: argparse.Namespace) -> int:
    with TemporaryDirectory(prefix="policyctx-bench-") as temporary:
        runs = replays.measured(
            given.folder or Path(temporary),
            sorted(given.sessions),
            given.jobs,
            _layouts(given),
            seed=given.seed,
            coding=given.coding,
        )
        found = [_announced(run) for run in runs]
    print(replays.table(found))
    print("\nThe figures of all runs over the same sessions are equal.\n")
    print("\n".join(f"- {sentence}." for sentence in replays.growth(found)))
    return int(not replays.holds(found))


def _announced(run: replays.Replayed) -> replays.Replayed:
    said = f"{run.sessions:,} sessions, {run.layout}, {run.jobs} jobs: {run.run.seconds:,.0f} s"
    print(said, file=sys.stderr, flush=True)
    return run


def _restart(given: argparse.Namespace) -> int:
    found = [*restarts.measured(sorted(given.turns))]
    print(restarts.table(found))
    print("\nA journal at a URL, with 30 ms before each request:\n")
    print(opening.table([*opening.measured(sorted(given.turns))]))
    return int(any(one.known > restarts.GOAL_S for one in found))


def _live(given: argparse.Namespace) -> int:
    print(live.table([*live.measured(given.sessions, given.processes, given.turns)]))
    return 0


def _fit(given: argparse.Namespace) -> int:
    FILE.write_text(written(fitted(given.recordings)), encoding="utf-8")
    print(f"{FILE} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
