from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from policyctx.replay.regret.strings import Lines, Range, without

TEXT = "\n".join(f"line {number}" for number in range(1, 101))


def test_characters_are_read_with_their_lines() -> None:
    lines = Lines(TEXT)
    start = TEXT.index("line 7\n")
    found = lines.around(start + 2, start + 9)
    assert TEXT[found.start : found.end] == "line 7\nline 8"
    assert found[:2] == (7, 8)


def test_of_a_long_line_only_what_is_around_is_read() -> None:
    lines = Lines("x" * 5_000)
    found = lines.around(2_000, 2_010)
    assert found[:2] == (1, 1)
    assert found.start < 2_000
    assert found.end > 2_010
    assert found.end - found.start < 500


def test_ranges_near_each_other_are_one_and_others_stay_apart() -> None:
    lines = Lines("\n".join("word " * 40 for _ in range(200)))
    found = lines.joined([lines.between(90, 91), lines.between(1, 2), lines.between(9, 9)])
    assert [(one.first, one.last) for one in found] == [(1, 9), (90, 91)]


def test_the_whole_of_a_text_is_its_first_to_its_last_line() -> None:
    assert Lines(TEXT).whole() == Range(1, 100, 0, len(TEXT))


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=5),
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), max_size=5),
)
def test_what_is_left_of_ranges_is_what_others_do_not_have(
    some: list[tuple[int, int]], others: list[tuple[int, int]]
) -> None:
    def ranges(pairs: list[tuple[int, int]]) -> list[Range]:
        return [Range(1, 1, min(pair), max(pair)) for pair in pairs]

    def chars(pairs: list[tuple[int, int]]) -> set[int]:
        return {at for pair in pairs for at in range(min(pair), max(pair))}

    assert chars(without(ranges(some), ranges(others))) == chars(some) - chars(others)
