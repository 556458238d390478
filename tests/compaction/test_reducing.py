from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.record import PromptPart, Speaker, reduced
from policyctx.tokens.counter import counter_for

COUNTER = counter_for("approximate")  # a token for four characters
AROUND = 16


def part(speaker: Speaker, tokens: int, letter: str = "x") -> PromptPart:
    return PromptPart(speaker, speaker, letter * 4 * tokens)


def size(parts: list[PromptPart]) -> int:
    return sum(COUNTER.count(one.text) + AROUND for one in parts)


def speakers(parts: list[PromptPart]) -> list[Speaker]:
    return [one.speaker for one in parts]


def test_parts_that_fit_are_unchanged() -> None:
    parts = [part("user", 100), part("result", 800)]
    assert reduced(parts, size(parts), COUNTER) == parts


def test_the_oldest_result_is_shortened_first() -> None:
    parts = [part("result", 800, "a"), part("result", 800, "b"), part("user", 9)]
    found = reduced(parts, size(parts) - 300, COUNTER)
    assert found[1:] == parts[1:]
    assert size(found) <= size(parts) - 300


def test_only_the_necessary_amount_is_cut() -> None:
    parts = [part("result", 8000)]
    assert size(reduced(parts, 5000, COUNTER)) > 4950


def test_a_shortened_part_keeps_both_ends_and_reports_the_omitted_size() -> None:
    text = "begin" + "x" * 40_000 + "end!"
    (found,) = reduced([PromptPart("result", "Result", text)], 1000, COUNTER)
    assert found.text.startswith("begin")
    assert found.text.endswith("end!")
    assert "tokens left out]" in found.text


def test_results_are_shortened_before_assistant_text() -> None:
    parts = [part("assistant", 900), part("call", 900), part("result", 900)]
    found = reduced(parts, size(parts) - 700, COUNTER)
    assert found[:2] == parts[:2]


def test_user_text_is_kept_while_other_text_can_be_shortened() -> None:
    parts = [
        part("user", 900, "a"),
        part("result", 900),
        part("assistant", 900),
        part("earlier", 900),
    ]
    found = reduced(parts, 900 + AROUND + 500, COUNTER)
    assert found[0] == parts[0]
    assert size(found) <= 900 + AROUND + 500


def test_the_oldest_user_text_is_shortened_first() -> None:
    parts = [part("user", 3000, "a"), part("user", 3000, "b")]
    found = reduced(parts, 5000, COUNTER)
    assert found[1] == parts[1]
    assert size(found) <= 5000


def test_a_single_huge_message_is_shortened() -> None:
    (found,) = reduced([part("user", 100_000)], 1000, COUNTER)
    assert found.speaker == "user"
    assert 900 < size([found]) <= 1000


def test_many_small_parts_are_left_out_oldest_first() -> None:
    parts = [part("result", 10, "a") for _ in range(100)] + [part("result", 10, "b")]
    found = reduced(parts, 52, COUNTER)
    assert found == [parts[99], parts[100]]


PARTS = st.lists(
    st.builds(
        part,
        st.sampled_from(["user", "assistant", "call", "result", "earlier", "other"]),
        st.integers(0, 3000),
    ),
    max_size=12,
)


@given(PARTS, st.integers(0, 6000))
def test_the_reduced_parts_fit_and_keep_their_order(parts: list[PromptPart], room: int) -> None:
    found = reduced(parts, room, COUNTER)
    assert size(found) <= room + len(found)
    left = iter(speakers(parts))
    assert all(speaker in left for speaker in speakers(found))
