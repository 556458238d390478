"""The generator of sessions: the same for a seed, read whole, distributed as the shapes say."""

from __future__ import annotations

import json
import sys
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

import pytest

from benchmarks.scale.generating import GeneratedSession, session, sessions
from benchmarks.scale.processes import Ran, ran
from benchmarks.scale.replays import GROWTH, Replayed, exponent
from benchmarks.scale.shapes import FILE, Quantiles, shapes, written
from benchmarks.scale.texts import KINDS, packing, text_of
from benchmarks.scale.writing import write_sessions
from policyctx.replay.reading import files_in, recordings_in
from policyctx.replay.recording import Recording

SEED = 3
COUNT = 24


@cache
def made() -> tuple[GeneratedSession, ...]:
    return tuple(sessions(COUNT, seed=SEED))


def recordings(folder: Path) -> list[Recording]:
    return [one for path in files_in([folder]) for one in recordings_in(path)]


def test_a_session_depends_on_its_seed_and_number_alone() -> None:
    assert session(7, seed=SEED) == made()[7]
    assert [*sessions(2, seed=SEED, first=7)] == [*made()[7:9]]
    assert session(7, seed=SEED + 1) != made()[7]


def test_both_layouts_are_read_whole_and_hold_the_same_messages(tmp_path: Path) -> None:
    assert write_sessions(made(), tmp_path / "lines", "lines", per_file=10) == COUNT
    assert write_sessions(made(), tmp_path / "files", "files") == COUNT
    lines, files = recordings(tmp_path / "lines"), recordings(tmp_path / "files")
    assert len([*files_in([tmp_path / "lines"])]) == 3
    for one, of_lines, of_files in zip(made(), lines, files, strict=True):
        assert of_lines.messages() == one.messages
        assert of_files.messages() == one.messages
        assert {**of_lines.not_understood, **of_files.not_understood} == {}
        assert [call.at for call in of_files.calls] == pytest.approx(
            [exchange.at for exchange in one.exchanges]
        )
        assert all(call.usage for call in of_files.calls)


def test_the_shapes_hold_numbers_and_the_names_of_kinds_only() -> None:
    assert written(shapes()) == FILE.read_text(encoding="utf-8")
    found = {*KINDS, *shapes()} | {tool for family in shapes().values() for tool in family.tools}
    for value in _leaves(json.loads(FILE.read_text(encoding="utf-8"))):
        numbers = map(float, value.split()) if isinstance(value, str) else [value]
        assert all(number >= 0 for number in numbers)
    assert found == {*KINDS, "coding", "service", *_TOOLS}


_TOOLS = {"edit", "lookup", "note", "read", "search", "shell", "web"}


def _leaves(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [leaf for one in value.values() for leaf in _leaves(one)]
    return [value]


def test_sizes_are_drawn_from_the_quantiles() -> None:
    chance = Random(1)  # noqa: S311 - no secret
    drawn = sorted(shapes()["coding"].tools["shell"].result.drawn(chance) for _ in range(4_000))
    for share, expected in ((5, 5), (10, 10), (15, 15)):
        of_shape = shapes()["coding"].tools["shell"].result.values[expected]
        assert drawn[share * 200] == pytest.approx(of_shape, rel=0.2)


def test_quantiles_are_the_values_at_every_twentieth() -> None:
    assert Quantiles.of(range(101)).values == tuple(map(float, range(0, 101, 5)))


def test_texts_pack_about_as_well_as_the_recorded_ones() -> None:
    for family in shapes().values():
        for name, tool in family.tools.items():
            mean = sum(tool.result.values) / len(tool.result.values)
            chars = max(400, int(mean))
            chance = Random(9)  # noqa: S311 - no secret
            found = sum(
                share * packing(text_of(chance, kind, chars, tool.fresh))
                for kind, share in tool.kinds.items()
            )
            assert found == pytest.approx(tool.ratio, rel=0.35), name


@pytest.mark.parametrize(("power", "holds"), [(1.0, True), (1.3, False)])
def test_the_exponent_of_growth_is_found_beside_what_starting_takes(
    power: float, holds: bool
) -> None:
    runs = [of_seconds(count, 3.0 + 0.02 * count**power) for count in (500, 1_000, 4_000, 16_000)]
    found = exponent(runs)
    assert found is not None
    assert found == pytest.approx(power, abs=0.05)
    assert (found <= GROWTH) == holds


def test_two_runs_have_no_exponent() -> None:
    assert exponent([of_seconds(1, 1.0), of_seconds(2, 2.0)]) is None


def of_seconds(count: int, cpu: float) -> Replayed:
    return Replayed("lines", count, 0, 1, Ran(0, "", cpu, cpu, 0, 0), "")


def test_a_command_is_watched_to_its_end() -> None:
    text = "import time; big = b'x' * 60_000_000; time.sleep(0.3); print('done')"
    found = ran([sys.executable, "-S", "-c", text])
    assert (found.code, found.output) == (0, "done\n")
    assert found.memory > 60_000_000
    assert found.seconds >= 0.3
