from __future__ import annotations

import pytest

from policyctx.compaction.prompt import problem
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for

COUNTER = counter_for("approximate")  # a token for four characters
FIFTH = Summary.model_validate({"must_shrink_to": "20%"})


@pytest.mark.parametrize("text", ["", " \n\t", "\u3000"])
def test_a_blank_summary_is_rejected(text: str) -> None:
    assert problem(text, 1000, Summary(), COUNTER) == "the summary is empty"


def test_without_a_limit_any_size_is_accepted() -> None:
    settings = Summary.model_validate({"must_shrink_to": False})
    assert problem("word " * 1000, 1, settings, COUNTER) is None


def test_a_summary_larger_than_what_it_replaces_is_rejected_by_default() -> None:
    assert problem("x" * 4000, 1000, Summary(), COUNTER) is None
    said = problem("x" * 4004, 1000, Summary(), COUNTER)
    assert said == "the summary's 1001 tokens are more than 100% of the 1000 replaced"


def test_a_summary_of_exactly_the_share_is_accepted() -> None:
    assert problem("x" * 800, 1000, FIFTH, COUNTER) is None


def test_a_summary_one_token_above_the_share_is_rejected_with_the_numbers() -> None:
    said = problem("x" * 804, 1000, FIFTH, COUNTER)
    assert said == "the summary's 201 tokens are more than 20% of the 1000 replaced"


def test_a_share_is_not_rounded_up() -> None:
    assert problem("x" * 804, 1001, FIFTH, COUNTER) is not None  # 20 % are 200.2 tokens


def test_a_pinned_text_must_be_present_verbatim() -> None:
    said = problem("Deploy on Monday.", 1000, Summary(), COUNTER, ["never  deploy\non Friday"])
    assert said == "the summary lacks what is pinned: never deploy on Friday"


def test_a_summary_with_all_pinned_texts_is_accepted() -> None:
    pinned = ["never deploy", "ask Jonas"]
    assert problem("So: never deploy; ask Jonas.", 9, Summary(), COUNTER, pinned) is None


def test_a_long_pinned_text_is_shown_shortened() -> None:
    said = problem("x", 9, Summary(), COUNTER, ["long " * 50])
    assert said is not None
    assert said.endswith("…")
    assert len(said) < 120
