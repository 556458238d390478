"""The command: runs the benchmarks, or those named, and prints a table."""

from __future__ import annotations

import argparse
import importlib
import json
import pkgutil
import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from types import ModuleType

from rich.console import Console
from rich.progress import Progress

import benchmarks
from benchmarks.runner import Clock, Measurement, markdown, measured, report

ROUNDS = 15


def main(
    arguments: Sequence[str] | None = None,
    *,
    package: ModuleType = benchmarks,
    clock: Clock = perf_counter_ns,
) -> int:
    """Run the command; return 0, or 1 when a bound is missed.

    Exits with 2 when the arguments are wrong.
    """
    found = benchmark_modules(package)
    parser = _parser(found)
    given = parser.parse_args(arguments)
    if unknown := [name for name in given.names if name not in found]:
        parser.error(_unknown(unknown[0], found))
    names = list(dict.fromkeys(given.names)) or list(found)
    results = _results({name: found[name] for name in names}, given.rounds, clock)
    print(markdown(results))
    if given.json:
        text = json.dumps(report(results), indent=2)
        given.json.write_text(f"{text}\n", encoding="utf-8")
    return int(any(one.holds is False for of_module in results.values() for one in of_module))


def benchmark_modules(package: ModuleType) -> dict[str, ModuleType]:
    """Return, by name and in that order, the modules of the package that have `ratios`."""
    names = (info.name for info in pkgutil.iter_modules(package.__path__))
    modules = {
        name: importlib.import_module(f"{package.__name__}.{name}")
        for name in sorted(names)
        if not name.startswith("_")
    }
    return {name: module for name, module in modules.items() if hasattr(module, "ratios")}


def _parser(found: Mapping[str, ModuleType]) -> argparse.ArgumentParser:
    summaries = (f"  {name:10} {_summary(module)}" for name, module in found.items())
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Measure policyctx against what it cannot do without.",
        epilog="\n".join(["benchmarks:", *summaries, "", "Exits with 1 when a bound is missed."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="a benchmark; all by default")
    parser.add_argument(
        "--rounds",
        type=_positive,
        default=ROUNDS,
        metavar="N",
        help="timings of each side (default: %(default)s)",
    )
    parser.add_argument(
        "--json", type=_writable, metavar="FILE", help="write the numbers there as well"
    )
    return parser


def _summary(module: ModuleType) -> str:
    return (module.__doc__ or "").partition("\n")[0]


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def _writable(text: str) -> Path:
    path = Path(text)
    if path.is_dir() or not path.absolute().parent.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is no file in an existing folder")
    return path


def _unknown(name: str, found: Mapping[str, ModuleType]) -> str:
    nearest = get_close_matches(name, found, 1)
    meant = f" Did you mean {nearest[0]!r}?" if nearest else ""
    return f"no benchmark {name!r}.{meant} There are {', '.join(found)}."


def _results(
    modules: Mapping[str, ModuleType], rounds: int, clock: Clock
) -> dict[str, list[Measurement]]:
    """Measure everything, with a bar on a terminal that is only drawn between timings."""
    err = Console(stderr=True)
    results: dict[str, list[Measurement]] = {}
    with Progress(
        console=err, auto_refresh=False, transient=True, disable=not err.is_terminal
    ) as bar:
        for name, module in modules.items():
            task = bar.add_task(name, total=None)
            ratios = module.ratios()
            bar.update(task, total=rounds * len(ratios))
            results[name] = [
                measured(
                    ratio,
                    rounds=rounds,
                    clock=clock,
                    after_round=partial(bar.update, task, advance=1, refresh=True),
                )
                for ratio in ratios
            ]
    return results


if __name__ == "__main__":
    sys.exit(main())
