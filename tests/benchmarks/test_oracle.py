"""The oracle finds the best edits: those that trying all of them finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.oracle import Rates, Removable, best_edits, main, paying_edits
from benchmarks.presets import FOLDERS
from tests.drawing import IS_LONG

READ, WRITE = 0.1, 1.25
# An edit: a call, and the first token that it changes.
Edit = tuple[int, float]


def warm(cached: int) -> Rates:
    return Rates(READ, WRITE, cached)


def item(position: int, first: int, *saved: float, freed: float = 100) -> Removable:
    return Removable(position, first, position * 100.0, freed, saved)


def test_an_edit_is_made_when_what_it_saves_is_more_than_what_is_written_anew() -> None:
    # Two items of 100 tokens each, and 100 tokens behind them that stay: 115 to write them anew.
    rates = [warm(100), warm(200), warm(300)]
    assert best_edits([item(0, 2, 110), item(1, 2, 0)], rates, range(3)) == (0, {})
    saved, leaves = best_edits([item(0, 2, 120), item(1, 2, 0)], rates, range(3))
    assert saved == pytest.approx(120 + 0 - 115)
    assert leaves == {0: 2, 1: 2}


def test_an_item_that_is_needed_stays_behind_an_edit_and_is_written_anew() -> None:
    rates = [warm(100), warm(200), warm(300)]
    saved, leaves = best_edits([item(0, 2, 500), item(1, 2, -300)], rates, range(3))
    assert saved == pytest.approx(500 - 2 * 115)
    assert leaves == {0: 2}


def test_an_item_leaves_for_nothing_where_the_cache_is_empty() -> None:
    rates = [warm(400), warm(0), warm(300)]
    assert best_edits([item(0, 0, 30, 20, 10)], rates, range(3)) == (20, {0: 1})


@given(st.data())
def test_no_other_edits_save_more(data: st.DataObject) -> None:
    calls = range(data.draw(st.integers(1, 4)))
    rates = [warm(data.draw(st.sampled_from([0, 100, 250, 400]))) for _ in calls]
    firsts = sorted(data.draw(st.lists(st.sampled_from(calls), max_size=4)))
    amounts = st.integers(-100, 400)
    items = [
        item(at, first, *(data.draw(amounts) for _ in range(first, calls.stop)))
        for at, first in enumerate(firsts)
    ]
    saved, leaves = best_edits(items, rates, calls)
    assert saved == pytest.approx(max(value(items, rates, e) for e in all_edits(items, calls)))
    assert all(items[position].first <= call for position, call in leaves.items())


def all_edits(items: Sequence[Removable], calls: range) -> Iterator[tuple[Edit, ...]]:
    cuts = [one.offset for one in items]
    for number in range(len(calls) + 1):
        for chosen in combinations(calls, number):
            for where in product(cuts, repeat=number):
                yield tuple(zip(chosen, where, strict=True))


def value(items: Sequence[Removable], rates: Sequence[Rates], edits: Sequence[Edit]) -> float:
    """Return what edits save, each of which takes items that are newer than the one before it."""
    total = 0.0
    before = -1
    for call, cut in edits:
        rewritten = max(0.0, rates[call].cached - cut) * rates[call].anew
        new = [one for one in items if before < one.first <= call]
        total -= rewritten
        for one in new:
            kept = one.alone(rates)[call - one.first].saved
            taken = one.at(call, rates).saved
            total += max(kept, taken) if one.offset >= cut else kept
        before = call
    return total + sum(one.alone(rates)[0].saved for one in items if one.first > before)


@pytest.mark.traces
@pytest.mark.slow
@pytest.mark.skipif(not FOLDERS[0].is_dir(), reason="no recordings in shared/traces")
def test_the_oracle_saves_29_percent_on_the_recordings(capsys: pytest.CaptureFixture[str]) -> None:
    """CI asks it of the recordings of Codex, where it saves more, and the long profile of all.

    On Codex it was 44.3 % with earlier rules for needs, and is 42.9 % with those of today, which
    find more needs, of older items too, and charge more lines of each.
    """
    folder, least = (FOLDERS[0], 29) if IS_LONG else (FOLDERS[0] / "codex", 42)
    assert main([str(folder)]) == 0
    [total] = [line for line in capsys.readouterr().out.splitlines() if line.startswith(" all ")]
    assert float(total.split()[-1].removesuffix("%")) >= least


def test_edits_that_know_all_are_made_as_soon_as_they_pay_and_save_no_more_than_the_best() -> None:
    rates = [warm(100), warm(200), warm(300)]
    items = [item(0, 1, 150, 120), item(1, 2, 10)]
    saved, leaves = paying_edits(items, rates, range(3), knows_end=True)
    # Item 0 pays at once at call 1, since its own tokens are not written either.
    assert saved <= best_edits(items, rates, range(3))[0]
    assert leaves.get(0) == 1


def test_without_the_end_as_many_calls_are_expected_as_there_were() -> None:
    # Nothing is written anew; 100 tokens at 0.1 are 10 a call, and the last one expects more calls.
    rates = [warm(100), warm(200), warm(200)]
    one = item(0, 2, -5)
    assert paying_edits([one], rates, range(3), knows_end=True)[1] == {}
    saved, leaves = paying_edits([one], [*rates[:2], warm(0)], range(3), knows_end=False)
    assert leaves == {0: 2}
    assert saved == -5
