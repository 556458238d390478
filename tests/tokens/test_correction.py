from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.errors import UsageError
from policyctx.tokens.usage import Correction, Usage, correction_of

points = st.tuples(st.integers(0, 1_000_000), st.integers(0, 1_000_000))


def learnt(responses: Iterable[tuple[int, int]], start: Correction | None = None) -> Correction:
    correction = start or Correction()
    for counted, billed in responses:
        correction = correction.observed(counted, Usage(billed))
    return correction


def billed(counted: int, *, scale: float = 1.5, overhead: int = 20_000) -> int:
    return round(scale * counted + overhead)


def growing(*totals: int, scale: float = 1.5, overhead: int = 20_000) -> list[tuple[int, int]]:
    return [(total, billed(total, scale=scale, overhead=overhead)) for total in totals]


SESSION = growing(*range(1_000, 60_000, 3_000))


def test_without_a_response_the_count_is_not_corrected() -> None:
    assert Correction().corrected(1_234) == 1_234


def test_the_first_response_reveals_tokens_beside_the_messages() -> None:
    assert learnt([(1_000, 21_000)]).corrected(1_500) == 21_500


def test_growth_teaches_the_scale() -> None:
    correction = learnt(SESSION)
    assert correction.scale == pytest.approx(1.5, abs=0.02)
    assert correction.corrected(70_000) == pytest.approx(billed(70_000), rel=0.01)


def test_cached_tokens_are_part_of_the_prompt() -> None:
    usage = Usage(5, cache_read=19_000, cache_write=1_995, output=400)
    assert Correction().observed(1_000, usage) == learnt([(1_000, 21_000)])


def test_a_compaction_visible_in_the_count_is_predicted() -> None:
    assert learnt(SESSION).corrected(2_000) == pytest.approx(billed(2_000), rel=0.06)


def test_after_a_compaction_the_next_sizes_are_right_again() -> None:
    correction = learnt([*SESSION, *growing(2_000, overhead=26_000)])
    assert correction.corrected(3_000) == pytest.approx(billed(3_000, overhead=26_000), rel=0.01)


def test_an_unreported_compaction_is_accepted_when_it_persists() -> None:
    correction = learnt([*SESSION, (58_500, 24_000), (59_000, 24_750)])
    assert correction.corrected(60_000) == pytest.approx(26_250, rel=0.01)


def test_a_single_response_out_of_line_changes_nothing() -> None:
    before = learnt(SESSION)
    correction = learnt([(58_100, 900)], before)
    assert correction.corrected(60_000) == before.corrected(60_000)
    afterwards = learnt(growing(59_000), correction)
    assert afterwards.corrected(60_000) == pytest.approx(billed(60_000), rel=0.001)


def test_side_calls_between_the_responses_change_nothing() -> None:
    with_side_calls = [one for pair in SESSION for one in (pair, (pair[0], 700))]
    assert learnt(with_side_calls).corrected(70_000) == learnt(SESSION).corrected(70_000)


def test_a_response_that_was_never_reported_is_not_missed() -> None:
    assert learnt(SESSION[::3]).corrected(70_000) == pytest.approx(billed(70_000), rel=0.01)


def test_a_usage_without_a_prompt_teaches_nothing() -> None:
    before = learnt(SESSION)
    assert before.observed(58_000, Usage(0, output=20)) is before


def test_an_edit_that_frees_much_is_predicted() -> None:
    assert learnt(SESSION).corrected(40_000) == pytest.approx(billed(40_000), rel=0.01)


def test_hidden_growth_moves_the_overhead_and_not_the_scale() -> None:
    hidden = [(58_000 + 10 * i, billed(58_000) + 2_000 * i) for i in range(1, 6)]
    correction = learnt([*SESSION, *hidden])
    assert correction.scale == pytest.approx(1.5, abs=0.02)
    assert correction.corrected(58_050) == billed(58_000) + 10_000


def test_the_scale_of_another_language_model_is_learnt() -> None:
    later = growing(*range(60_000, 120_000, 3_000), scale=1.1, overhead=44_000)
    assert learnt([*SESSION, *later]).scale == pytest.approx(1.2, abs=0.1)


@given(st.lists(points, max_size=30), st.integers(0, 10**9))
def test_the_correction_stays_within_bounds_for_any_responses(
    responses: list[tuple[int, int]], counted: int
) -> None:
    correction = learnt(responses)
    assert 0.5 <= correction.scale <= 4.0
    assert 0 <= correction.corrected(counted) <= 4 * counted + 5_000_000


@given(st.lists(points, max_size=12), st.integers(0, 500_000))
def test_two_agreeing_responses_are_always_accepted(
    responses: list[tuple[int, int]], counted: int
) -> None:
    correction = learnt([*responses, *growing(counted, counted, counted)])
    assert correction.corrected(counted) == billed(counted)


@given(st.lists(points, max_size=12))
def test_a_record_in_json_is_the_correction(responses: list[tuple[int, int]]) -> None:
    correction = learnt(responses)
    assert correction_of(json.loads(json.dumps(correction.as_record()))) == correction


@pytest.mark.parametrize(
    "change", [{"scale": "much"}, {"last": {"counted": 1}}, {"doubted": 5}, {"overhead": None}]
)
def test_a_damaged_record_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="no record of a correction"):
        correction_of({**Correction().as_record(), **change})


def test_an_empty_record_is_refused() -> None:
    with pytest.raises(UsageError):
        correction_of({})
