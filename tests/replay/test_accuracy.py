from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from policyctx.replay.accuracy import Accuracy, Prediction, accuracy, predictions
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import ModelCall, Recording
from policyctx.tokens.counter import counter_for
from policyctx.tokens.usage import Correction, Usage
from tests.recordings import each_recording

COUNTER = counter_for("o200k_base")


def recording(path: Path) -> Recording:
    return next(recordings_in(path))


def call(words: int, billed: int) -> ModelCall:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "word " * words}]
    return ModelCall(tuple(messages), anew=True, usage=Usage(billed))


def test_a_call_is_predicted_from_the_earlier_calls() -> None:
    calls = (call(100, 5_000), ModelCall((), anew=True), call(300, 5_200))
    first, second = predictions(Recording("r", "some", calls), COUNTER)
    assert first == Prediction(1, 108, 108, 5_000)
    assert second == Prediction(2, 308, 5_200, 5_200)


def test_an_error_is_a_share_of_the_bill() -> None:
    assert Prediction(1, 100, 150, 200).error == -0.25


def test_only_settled_calls_are_summed_up() -> None:
    made = [Prediction(i, 0, 100 + i, 100) for i in range(1, 31)]
    assert accuracy(made) == Accuracy(calls=21, median=0.2, within=0.29, largest=0.3)
    assert accuracy(made[:9]) is None


@each_recording("claude-code")
def test_the_next_prompt_of_a_recorded_session_is_predicted(path: Path) -> None:
    reached = accuracy(list(predictions(recording(path), COUNTER)))
    if reached is not None:
        assert reached.median < 0.05
        assert reached.within < 0.15


@each_recording("claude-code")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_side_calls_and_missing_responses_do_not_break_the_prediction(
    path: Path, seed: int
) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    points = [(one.counted, one.billed) for one in predictions(recording(path), COUNTER)]
    correction = Correction()
    made = []
    for i, (counted, billed) in enumerate(points, 1):
        made.append(Prediction(i, counted, correction.corrected(counted), billed))
        if chance.random() < 0.2:
            continue  # the response never came, or without usage
        if chance.random() < 0.2:
            correction = correction.observed(counted, Usage(chance.randrange(1, 3_000)))
        correction = correction.observed(counted, Usage(billed))
    assert_reached(made)


@each_recording("claude-code")
def test_a_compaction_that_the_count_does_not_show_does_not_break_the_prediction(
    path: Path,
) -> None:
    points = [(one.counted, one.billed) for one in predictions(recording(path), COUNTER)]
    half = len(points) // 2
    lost = points[half][1] // 2 if points else 0
    correction, made = Correction(), []
    for i, (counted, billed) in enumerate(points, 1):
        now = billed - (lost if i > half else 0)
        made.append(Prediction(i, counted, correction.corrected(counted), now))
        correction = correction.observed(counted, Usage(now))
    # The two responses that it takes to believe it are wrong, and no more.
    assert_reached([one for one in made if not half < one.call <= half + 2])


def assert_reached(made: Sequence[Prediction]) -> None:
    reached = accuracy(made)
    if reached is not None:
        assert reached.median < 0.05
        assert reached.within < 0.15
