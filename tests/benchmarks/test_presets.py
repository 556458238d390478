"""The figures of the presets: what a replay of the recordings comes to, and what they show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from benchmarks.presets import (
    CANDIDATES,
    DEFAULT,
    EXAMPLE,
    FOLDERS,
    LEFT_OUT,
    MOST_DEARER,
    PRESETS,
    Row,
    committed,
    example,
    interval,
    left_out,
    measured,
    of,
    policies,
    together,
)
from policyctx.cli.output import percent, signed_dollars
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.running import SUMMARISE_ONLY
from policyctx.tuning.outcomes import Sums
from tests.drawing import IS_LONG
from tests.replay.test_running import claude_code

Measured: TypeAlias = dict[tuple[object, ...], Sums]
ANEW = "run python -m benchmarks.presets, then scripts/docs"


def found(tried: Mapping[str, OffloadPolicy], folders: Sequence[Path], part: str = "") -> Measured:
    """What policies come to in folders, or in this part of each."""
    return {row[1:5]: row.sums for row in measured(tried, folders, part)}


def known(
    tried: Mapping[str, OffloadPolicy], folders: Sequence[Path], client: str = ""
) -> Measured:
    """What the file has of them, or of this client."""
    names = {folder.name for folder in folders}
    rows = (row for name in tried for row in of(committed(), name, client))
    return {row[1:5]: row.sums for row in rows if row.folder in names}


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.skipif(not FOLDERS[0].is_dir(), reason="no recordings in shared/traces")
def test_the_file_has_what_a_replay_comes_to() -> None:
    """CI replays the first folder under the default, its part of Claude Code under other presets.

    The long profile replays all of it.
    """
    every = policies()
    if IS_LONG:
        assert found(every, FOLDERS) == known(every, FOLDERS), ANEW
        return
    default, first = {DEFAULT: every.pop(DEFAULT)}, FOLDERS[:1]
    others = {name: one for name, one in every.items() if name not in CANDIDATES}
    assert found(default, first) == known(default, first), ANEW
    assert found(others, first, "claude-code") == known(others, first, "Claude Code"), ANEW


def test_the_example_of_a_replay_is_of_the_same_run() -> None:
    found = together(of(committed(), DEFAULT))
    net = f"{signed_dollars(found.net, '$')} ({percent(-found.saved)})"
    shown = EXAMPLE.read_text(encoding="utf-8")
    assert f"\nnet cost  {net} in {found.sessions:,} sessions with prices;" in shown


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_costs_less_than_its_summaries_alone_beyond_the_interval(name: str) -> None:
    bounds = interval(of(committed(), name), of(committed(), SUMMARISE_ONLY))
    assert bounds is not None
    assert bounds.high < 0


def test_the_default_makes_few_sessions_dearer_and_is_beaten_by_no_other_preset() -> None:
    rows = of(committed(), DEFAULT)
    assert together(row for row in rows if row.folder == FOLDERS[0].name).dearer == 0
    default = together(rows)
    # One session more than the rule allows: 2 cents dearer since regret finds more needs.
    assert default.dearer <= MOST_DEARER * default.sessions + 1
    for other in PRESETS:
        sums = together(of(committed(), other))
        is_as_good = sums.net <= default.net and sums.regret_tokens <= default.regret_tokens
        assert other == DEFAULT or not is_as_good


def row(repository: str, policy: str, net: float, dearer: int = 0) -> Row:
    return Row("2026-11-27", "traces", repository, "Pi", policy, Sums(9, 9.0, net, 0, dearer, 0, 0))


def test_what_is_left_out_is_chosen_by_the_sessions_of_the_other_organisations() -> None:
    first, *others = CANDIDATES
    rows = [row("a/x", DEFAULT, -1.0), row("a/y", DEFAULT, -1.0), row("b/x", DEFAULT, -1.0)]
    rows += [row("a/x", first, -5.0), row("a/y", first, -6.0), row("b/x", first, -0.5)]
    rows += [row(f"{r}", o, 0.0) for o in others for r in ("a/x", "a/y", "b/x")]
    # In b alone the default is best, in a alone the candidate.
    found = {one.repository: (one.policy, one.sums.net) for one in left_out(rows)}
    assert found == {"a/x": (LEFT_OUT, -1.0), "a/y": (LEFT_OUT, -1.0), "b/x": (LEFT_OUT, -0.5)}


def test_what_makes_sessions_dearer_is_not_chosen() -> None:
    first, *others = CANDIDATES
    rows = [row("a/x", DEFAULT, -1.0), row("b/x", DEFAULT, -1.0)]
    rows += [row("a/x", first, -5.0, dearer=1), row("b/x", first, -0.5)]
    rows += [row(r, o, 0.0) for o in others for r in ("a/x", "b/x")]
    [_, of_b] = left_out(rows)
    assert of_b.sums.net == -1.0


@pytest.mark.parametrize("page", ["README.md", "docs/presets.md", "README.zh.md"])
def test_the_table_by_client_says_how_many_sessions_the_left_out_choice_makes_dearer(
    page: str,
) -> None:
    lines = (EXAMPLE.parents[1] / page).read_text(encoding="utf-8").splitlines()
    start = lines.index("<!-- figures: clients -->")
    whole = next(line for line in lines[start:] if line.startswith(("| all", "| 全部")))
    default, chosen = (together(of(committed(), name)).dearer for name in (DEFAULT, LEFT_OUT))
    assert whole.endswith(f"| {default} ({chosen}) |")


@pytest.mark.slow
def test_the_example_has_the_answer_and_the_rows_of_sessions(tmp_path: Path) -> None:
    for name in "ab":
        claude_code(tmp_path / f"{name}.jsonl", "done")
    answer, blank, head, *rows = example([tmp_path]).splitlines()
    assert answer.startswith("coding-agent would have ")
    assert (blank, head.split()[0]) == ("", "session")
    assert [row.split()[0] for row in rows[:2]] == ["a.jsonl", "b.jsonl"]
