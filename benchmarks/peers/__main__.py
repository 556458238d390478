"""Times other libraries and our policies of them, each library in an environment of its own.

    scripts/bench peers [LIBRARY …] [--rounds N] [--json FILE]

Both sides get the same made-up session in the library's own messages, in one process and in turns,
so the ratio holds where the seconds do not. Prints the versions and a table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.peers.cases import LIBRARIES
from tests.integrations.heavy.environments import ROOT, environments
from tests.integrations.heavy.run import VERSIONS, environment

ENVIRONMENTS = ROOT / "tests" / "peers" / "environments.toml"
_HEAD = (
    "| library | case | measured | theirs | ours | ratio | of processor time |\n"
    "|---|---|---|--:|--:|--:|--:|"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code."""
    parser = argparse.ArgumentParser(prog="scripts/bench peers", description=__doc__)
    parser.add_argument("libraries", nargs="*", metavar="LIBRARY", help="default: all of them")
    parser.add_argument("--rounds", type=int, default=7, metavar="N", help="timings of each side")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures as JSON too")
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.libraries if name not in LIBRARIES]:
        parser.error(f"no such library: {unknown[0]}; there are {', '.join(LIBRARIES)}")
    found: dict[str, Any] = {}
    for one in environments(ENVIRONMENTS):
        if one.host not in (given.libraries or LIBRARIES) or one.host not in LIBRARIES:
            continue
        python = environment(one.requires, cache(), layered=False)
        versions = _output([python, "-c", VERSIONS, *one.packages]).split()
        name = " ".join(f"{p} {v}" for p, v in zip(one.packages, versions, strict=True))
        timing: list[str | Path] = [
            python,
            "-m",
            "benchmarks.peers.timing",
            one.host,
            str(given.rounds),
        ]
        found[name] = json.loads(_output(timing).splitlines()[-1])
        print(name, "done", file=sys.stderr, flush=True)
    print(_HEAD, *(_row(name, one) for name, all_ in found.items() for one in all_), sep="\n")
    if given.json:
        given.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    return 0


def cache() -> Path:
    """Return the folder of the environments."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    named = os.environ.get("POLICYCTX_ENVIRONMENTS")
    return Path(named or Path(home) / "policyctx-environments")


def _row(name: str, one: dict[str, Any]) -> str:
    theirs, ours = one["theirs"] * 1000, one["ours"] * 1000
    cells = name, one["case"], one["measured"], f"{theirs:.3g} ms", f"{ours:.3g} ms"
    ratios = f"{one['ratio']:.2f}", f"{one['processor']:.2f}"
    return f"| {' | '.join((*cells, *ratios))} |"


def _output(command: Sequence[str | Path]) -> str:
    done = subprocess.run(  # noqa: S603 - our own program
        command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    )
    return done.stdout


if __name__ == "__main__":
    sys.exit(main())
