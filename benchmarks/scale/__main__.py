"""The command: makes many sessions, and measures what they cost.

python -m benchmarks.scale generate --sessions 20000 OUT
python -m benchmarks.scale fit RECORDINGS
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.scale.fitting import fitted
from benchmarks.scale.generating import CODING, sessions
from benchmarks.scale.shapes import FILE, written
from benchmarks.scale.writing import PER_FILE, write_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; return 0."""
    given = _parser().parse_args(arguments)
    code: int = given.run(given)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
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
    fit = commands.add_parser("fit", help=f"write {FILE.name} anew, from recorded sessions")
    fit.add_argument("recordings", type=Path, nargs="+", metavar="RECORDINGS")
    fit.set_defaults(run=_fit)
    return parser


def _generate(given: argparse.Namespace) -> int:
    for layout in ("lines", "files") if given.layout == "both" else (given.layout,):
        made = sessions(given.sessions, seed=given.seed, coding=given.coding)
        count = write_sessions(made, given.folder / layout, layout, per_file=given.per_file)
        print(f"{count:,} sessions in {given.folder / layout}")
    return 0


def _fit(given: argparse.Namespace) -> int:
    FILE.write_text(written(fitted(given.recordings)), encoding="utf-8")
    print(f"{FILE} is written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
