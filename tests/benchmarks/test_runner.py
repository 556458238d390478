from __future__ import annotations

import gc
import importlib
import json
import platform
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import benchmarks
from benchmarks import imports
from benchmarks.__main__ import benchmark_modules, main
from benchmarks.planning import conversation, settled_session
from benchmarks.runner import TIMING_NS, Measurement, Ratio, markdown, measured, report
from tests.replay.synthetic import encoded_lines, line_records


class FakeClock:
    """Stands still except what the sides spend; keeps the order of their calls."""

    def __init__(self) -> None:
        self.now = 0
        self.calls: list[str] = []

    def __call__(self) -> int:
        return self.now

    def side(self, name: str, *costs: int) -> Callable[[], None]:
        """A side whose calls take `costs` nanoseconds one after another, the last for ever."""
        left = list(costs)

        def call() -> None:
            self.calls.append(name)
            self.now += left.pop(0) if len(left) > 1 else left[0]

        return call


SLOW = TIMING_NS


def test_the_two_sides_are_timed_alternately() -> None:
    clock = FakeClock()
    ratio = Ratio("a / b", clock.side("ours", SLOW), clock.side("baseline", SLOW))

    measured(ratio, rounds=3, clock=clock)

    # One call to warm up and one to see how long it takes, then the rounds.
    preparation = ["ours", "ours", "baseline", "baseline"]
    assert clock.calls == preparation + ["ours", "baseline"] * 3


def test_a_quick_side_is_called_often_enough_for_one_timing() -> None:
    clock = FakeClock()
    ratio = Ratio("a / b", clock.side("ours", SLOW // 3), clock.side("baseline", SLOW))

    found = measured(ratio, rounds=2, clock=clock)

    assert clock.calls[-10:] == (["ours"] * 4 + ["baseline"]) * 2
    assert found.ours == pytest.approx((SLOW / 3 / 1e9,) * 2)


def test_a_side_that_does_twice_the_work_has_the_ratio_two() -> None:
    clock = FakeClock()
    ratio = Ratio("a / b", clock.side("ours", 2 * SLOW), clock.side("baseline", SLOW))

    found = measured(ratio, rounds=3, clock=clock)

    assert found.values == (2, 2, 2)
    assert found.ours == (2 * SLOW / 1e9,) * 3
    assert found.value == 2


def test_the_first_call_of_a_side_does_not_count() -> None:
    clock = FakeClock()
    ratio = Ratio("a / b", clock.side("ours", 100 * SLOW, SLOW), clock.side("baseline", SLOW))

    assert measured(ratio, rounds=3, clock=clock).values == (1, 1, 1)


def test_the_ratio_is_the_median_of_neighbours_not_the_ratio_of_medians() -> None:
    found = Measurement(Ratio("a / b", int, int), ours=(1, 6, 8), baseline=(1, 2, 4))

    assert found.values == (1, 3, 2)
    assert found.value == 2


def test_setup_runs_before_each_call_and_is_not_timed() -> None:
    clock = FakeClock()

    @contextmanager
    def setup() -> Iterator[None]:
        clock.calls.append("made")
        clock.now += 1_000 * SLOW
        yield
        clock.calls.append("removed")

    quick = clock.side("ours", 10), clock.side("baseline", 5)
    found = measured(Ratio("a / b", *quick, setup=setup), rounds=2, clock=clock)

    assert clock.calls[-6:] == ["made", "ours", "removed", "made", "baseline", "removed"]
    assert found.values == (2, 2)


def test_the_garbage_collector_waits_until_a_timing_is_over() -> None:
    clock = FakeClock()
    seen = []

    def side() -> None:
        seen.append(gc.isenabled())
        clock.now += SLOW

    after_rounds: list[bool] = []
    measured(
        Ratio("a / b", side, side),
        rounds=1,
        clock=clock,
        after_round=lambda: after_rounds.append(gc.isenabled()),
    )

    assert not any(seen)
    assert after_rounds == [True]


def test_the_garbage_collector_is_on_again_after_a_side_that_raises() -> None:
    def side() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"):
        measured(Ratio("a / b", side, side), rounds=1)
    assert gc.isenabled()


@pytest.mark.parametrize(("bound", "holds"), [(None, None), (2, True), (1.9, False)])
def test_a_bound_is_inclusive(bound: float | None, *, holds: bool | None) -> None:
    found = Measurement(Ratio("a / b", int, int, bound), ours=(4, 4), baseline=(2, 2))

    assert found.holds is holds


RESULTS = {
    "one": [
        Measurement(Ratio("a / b", int, int, bound=1.5), (0.002, 0.002, 0.003), (0.001,) * 3),
        Measurement(Ratio("c / d", int, int, bound=0.5), (1e-5, 1e-5), (2.5, 2.5)),
    ],
    "other": [Measurement(Ratio("e / f", int, int), (1.2345,), (0.00012345,))],
}


TABLE = """\
| module | measured |   ours | baseline |  ratio | lowest - highest | bound                   |
| ------ | -------- | -----: | -------: | -----: | ---------------: | ----------------------- |
| one    | a / b    |   2 ms |     1 ms |      2 |            2 - 3 | at most 1.5, **missed** |
| one    | c / d    |  10 µs |    2.5 s |  4e-06 |    4e-06 - 4e-06 | at most 0.5, kept       |
| other  | e / f    | 1.23 s |   123 µs | 10,000 |  10,000 - 10,000 | none                    |"""


def test_the_table_shows_medians_spread_and_missed_bounds() -> None:
    assert markdown(RESULTS) == TABLE


def test_the_report_has_the_same_numbers_and_their_origin() -> None:
    found = json.loads(json.dumps(report(RESULTS)))

    first, *_, last = found.pop("measurements")
    assert first == {
        "module": "one",
        "name": "a / b",
        "rounds": 3,
        "ours_seconds": 0.002,
        "baseline_seconds": 0.001,
        "ratio": 2,
        "lowest": 2,
        "highest": 3,
        "bound": 1.5,
        "holds": False,
    }
    assert (last["module"], last["bound"], last["holds"]) == ("other", None, None)
    assert found == {
        "python": platform.python_version(),
        "implementation": platform.python_implementation(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


ROOM_CLOCK = """
spent = [0]

def clock():
    return spent[0]

def side(nanoseconds):
    def call():
        spent[0] += nanoseconds
    return call
"""
ROOM_BENCHMARK = """'''What is {name}.'''
from benchmarks.runner import TIMING_NS, Ratio
from room.clocks import side

def ratios():
    return [Ratio("a / b", side({times} * TIMING_NS), side(TIMING_NS), bound=2)]
"""


@pytest.fixture
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """A package with two benchmarks, of which `slow` misses its bound, and a module without."""
    package = tmp_path / "room"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "clocks.py").write_text(ROOM_CLOCK)
    (package / "quick.py").write_text(ROOM_BENCHMARK.format(name="quick", times=1))
    (package / "slow.py").write_text(ROOM_BENCHMARK.format(name="slow", times=3))
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("room")
    for name in [name for name in sys.modules if name.partition(".")[0] == "room"]:
        del sys.modules[name]


def run_in(room: ModuleType, *arguments: str) -> int:
    clock = importlib.import_module("room.clocks").clock
    return main(arguments, package=room, clock=clock)


def test_every_module_with_ratios_is_a_benchmark(room: ModuleType) -> None:
    assert list(benchmark_modules(room)) == ["quick", "slow"]


def test_all_benchmarks_run_by_default_and_a_missed_bound_fails(
    room: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_in(room, "--rounds", "2") == 1

    out, err = capsys.readouterr()
    *_, quick, slow = out.splitlines()
    assert quick.startswith("| quick ")
    assert quick.endswith("at most 2, kept       |")
    assert slow.startswith("| slow ")
    assert slow.endswith("at most 2, **missed** |")
    assert not err


def test_a_named_benchmark_runs_alone_and_writes_json_to_a_file(
    room: ModuleType, tmp_path: Path
) -> None:
    file = tmp_path / "figures.json"

    assert run_in(room, "quick", "--json", str(file)) == 0

    (only,) = json.loads(file.read_text(encoding="utf-8"))["measurements"]
    assert (only["module"], only["ratio"], only["rounds"]) == ("quick", 1, 15)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["tokns"], "no benchmark 'tokns'. Did you mean 'tokens'? There are "),
        (["tokens", "zzz"], "no benchmark 'zzz'. There are "),
        (["--rounds", "0"], "argument --rounds: '0' is not a whole number above 0"),
        (["--json", "no-folder/x.json"], "'no-folder/x.json' is no file in an existing folder"),
    ],
)
def test_wrong_arguments_are_rejected_before_anything_runs(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        main(arguments)

    out, err = capsys.readouterr()
    assert exit_.value.code == 2
    assert message in err
    assert not out


def test_help_describes_each_benchmark(
    room: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as exit_:
        run_in(room, "-h")

    assert exit_.value.code == 0
    assert "  slow       What is slow.\n" in capsys.readouterr().out


def no_wait(_: float) -> None:
    """Take the place of `wait`, which keeps the processor busy."""


# Sizes with which a benchmark runs, and measures nothing.
SMALL: dict[str, dict[str, Any]] = {
    "compaction": {
        "TURNS": 4,
        "PROSE_TURNS": 9,
        "CHINESE_TURNS": 8,
        "ROWS": 20,
        "REQUESTS": 5,
        "UPDATES": 5,
        "TALKS": 2,
        "wait": no_wait,
    },
    "continuation": {"LENGTHS": (40, 80)},
    "features": {"SCENARIOS": 3},
    "planning": {
        "MESSAGES": 40,
        "LENGTHS": (20, 40, 80),
        "TURN_BY_TURN": 40,
        "NEW_ITEMS": 40,
        "wait": no_wait,
    },
    "replay": {"RESULTS": 8, "TIMES": (2, 4)},
    "sessions": {"MESSAGES": 60, "TIMES": 2},
    "storing": {
        "FILES": 20,
        "FILES_OF_A_PLAN": 5,
        "MANY": 100,
        "FEW": 10,
        "SEARCHED_BYTES": 1 << 20,
    },
    "imports": {"_PROGRAMS": {"all of the programs": (imports._TURN, None)}},
    "proxy": {"SIZES": ((10_000, 20, 1, "10 KB"),)},
    "tokens": {"REPEATED": 1},
}
# Each call of a side starts a process anew, so one call shows what three would show.
STARTING = {"features", "hook", "imports"}


@pytest.mark.slow
@pytest.mark.parametrize("name", benchmark_modules(benchmarks))
def test_every_benchmark_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = benchmark_modules(benchmarks)[name]
    for constant, size in SMALL.get(name, {}).items():
        monkeypatch.setattr(module, constant, size)
    if name == "replay":
        (tmp_path / "session.jsonl").write_bytes(encoded_lines(line_records()["claude-code"]))
        monkeypatch.setattr(module, "TRACES", tmp_path)
    # The pytest processes of a benchmark load only these plugins, which saves most of their start.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-p pytest-bdd -p policyctx")
    # A benchmark compiles all modules into a folder of its own; here they are compiled already.
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "")
    clock = FakeClock()

    def spent() -> int:
        clock.now += SLOW
        return clock.now

    ratios = module.ratios()

    assert len({ratio.name for ratio in ratios}) == len(ratios) > 0
    for ratio in ratios:
        if name in STARTING:
            with (ratio.setup or nullcontext)():
                ratio.ours()
                ratio.baseline()
        else:
            assert measured(ratio, rounds=1, clock=spent).values == (1,)


@pytest.mark.slow
def test_a_settled_session_really_has_nothing_new() -> None:
    messages = conversation()

    result = settled_session(messages).apply(messages)

    assert len(messages) == 1_000
    assert result.offloaded_count == 0
    assert result.messages is not messages
