from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.planning.placeholders import Excerpt, excerpt, line_count
from policyctx.policy.models.rules import Placeholder
from policyctx.tokens.counter import MemoCounter, counter_for

APPROXIMATE = counter_for("approximate")
EXACT = counter_for("o200k_base")
FIVE = "one\ntwo\nthree\nfour\nfive\n"

TEXTS = st.text(st.sampled_from("ab \n\r\t.字é👩\u200d\u2028\x0b"), max_size=60)
EXTENTS = st.none() | st.builds(
    lambda unit, n: {unit: n}, st.sampled_from(["lines", "chars", "tokens"]), st.integers(0, 12)
)


def shown(text: str, **keys: Any) -> Excerpt:
    return excerpt(text, Placeholder.model_validate(keys), APPROXIMATE)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n", 1), ("\n\n\n", 3), ("a\r\nb\r\n", 2),
        ("a\rb", 1), ("a\x0bb\x0cc\x1cd\x85e\u2028f\u2029g", 1),
    ],
)  # fmt: skip
def test_only_a_newline_ends_a_line(text: str, lines: int) -> None:
    assert line_count(text) == lines


def test_a_number_of_lines_is_whole_lines_with_their_newlines() -> None:
    found = shown(FIVE, head={"lines": 2}, tail={"lines": 1})
    assert found == Excerpt("one\ntwo\n", "five\n", 2, len("three\nfour\n"))


def test_the_last_line_needs_no_newline() -> None:
    assert shown("one\ntwo\nthree", tail={"lines": 2}) == Excerpt("", "two\nthree", 1, 4)


def test_empty_lines_are_lines() -> None:
    found = shown("\n\n\n\n\n", head={"lines": 2}, tail={"lines": 1})
    assert found == Excerpt("\n\n", "\n", 2, 2)


def test_a_number_of_characters_is_code_points() -> None:
    found = shown("读👩‍👩‍👧写字", head={"chars": 2}, tail={"chars": 1})
    assert found == Excerpt("读👩", "字", 0, 5)


def test_a_number_of_tokens_is_the_most_that_fit() -> None:
    found = shown("x" * 100, head={"tokens": 3}, tail={"tokens": 2})
    assert found == Excerpt("x" * 12, "x" * 8, 0, 80)


@pytest.mark.parametrize("unit", ["lines", "chars", "tokens"])
def test_a_text_no_longer_than_the_head_is_shown_once_and_whole(unit: str) -> None:
    most = {unit: 1000}
    assert shown(FIVE, head=most, tail=most) == Excerpt(FIVE, "", 0, 0)
    assert shown(FIVE, tail=most) == Excerpt("", FIVE, 0, 0)
    assert shown("", head=most, tail=most) == Excerpt("", "", 0, 0)


@pytest.mark.parametrize("unit", ["lines", "chars", "tokens"])
def test_an_empty_request_shows_nothing(unit: str) -> None:
    nothing = Excerpt("", "", 5, len(FIVE))
    assert shown(FIVE, head={unit: 0}, tail={unit: 0}) == nothing
    assert shown(FIVE) == nothing


def test_the_tail_begins_where_the_head_ends_even_within_a_line() -> None:
    assert shown("one\ntwo\nthree", head={"chars": 5}, tail={"lines": 9}) == Excerpt(
        "one\nt", "wo\nthree", 0, 0
    )


@pytest.mark.parametrize(
    ("head", "tail", "lines"),
    [(3, 0, 4), (4, 0, 4), (5, 0, 3), (2, 5, 3), (2, 6, 2), (0, 5, 4), (9, 9, 0), (24, 0, 0)],
)
def test_an_omitted_line_is_one_of_which_nothing_is_shown(head: int, tail: int, lines: int) -> None:
    found = shown(FIVE, head={"chars": head}, tail={"chars": tail})
    assert found.omitted_lines == lines


def test_the_omitted_part_of_one_long_line_is_counted_in_characters() -> None:
    found = shown("x" * 1000, head={"chars": 10}, tail={"chars": 10})
    assert (found.omitted_lines, found.omitted_chars) == (0, 980)


def test_a_long_line_is_cut_and_marked_and_its_newline_stays() -> None:
    text = "a" * 9 + "\r\n" + "b" * 5 + "\n" + "c" * 6
    found = shown(text, head={"lines": 2}, tail={"lines": 1}, max_line_chars=5)
    assert found == Excerpt("aaaaa…\r\nbbbbb\n", "ccccc…", 0, 5)


def test_the_tail_of_a_line_is_cut_like_a_line() -> None:
    found = shown("a" * 20, head={"chars": 4}, tail={"chars": 8}, max_line_chars=5)
    assert found == Excerpt("aaaa", "aaaaa…", 0, 11)


def test_lines_are_numbered_as_in_the_whole_text_in_one_width() -> None:
    text = "".join(f"line {i}\n" for i in range(1, 13))
    found = shown(text, head={"lines": 1}, tail={"lines": 2}, line_numbers=True)
    assert found.head == " 1\tline 1\n"
    assert found.tail == "11\tline 11\n12\tline 12\n"


def test_numbers_are_no_wider_than_those_shown() -> None:
    assert shown("\n" * 1000, head={"lines": 2}, line_numbers=True).head == "1\t\n2\t\n"


def test_a_line_shown_in_two_parts_has_its_number_twice() -> None:
    found = shown("one\ntwo", head={"chars": 5}, tail={"chars": 1}, line_numbers=True)
    assert (found.head, found.tail) == ("1\tone\n2\tt", "2\to")


def test_numbers_and_marks_are_not_counted() -> None:
    text = "abcdefgh\n" * 30
    found = shown(text, head={"tokens": 9}, max_line_chars=4, line_numbers=True)
    assert found.head == "".join(f"{i}\tabcd…\n" for i in range(1, 5))
    assert found.omitted_chars == len(text) - 4 * len("abcd\n")


@given(TEXTS, EXTENTS, EXTENTS)
def test_head_omitted_characters_and_tail_add_up_to_the_text(
    text: str, head: Any, tail: Any
) -> None:
    found = shown(text, head=head, tail=tail)
    assert text.startswith(found.head)
    assert text.endswith(found.tail)
    assert len(found.head) + found.omitted_chars + len(found.tail) == len(text)


@given(TEXTS, EXTENTS, EXTENTS)
def test_omitted_lines_are_those_that_neither_head_nor_tail_touches(
    text: str, head: Any, tail: Any
) -> None:
    found = shown(text, head=head, tail=tail)
    numbers = [text[:i].count("\n") for i in range(len(text))]
    touched = {*numbers[: len(found.head)], *numbers[len(text) - len(found.tail) :]}
    assert found.omitted_lines == len(set(numbers) - touched)


@given(TEXTS, EXTENTS, EXTENTS, st.integers(1, 5))
def test_cut_lines_count_the_characters_that_they_hide(
    text: str, head: Any, tail: Any, most: int
) -> None:
    whole = shown(text, head=head, tail=tail)
    cut = shown(text, head=head, tail=tail, max_line_chars=most)
    marks = (cut.head + cut.tail).count("…")
    hidden = cut.omitted_chars - whole.omitted_chars
    assert len(cut.head + cut.tail) == len(whole.head + whole.tail) - hidden + marks
    lines = [line.removesuffix("\r") for line in (cut.head + "\n" + cut.tail).split("\n")]
    assert all(len(line.removesuffix("…")) <= most for line in lines)
    assert cut.omitted_lines == whole.omitted_lines


@given(TEXTS, EXTENTS, EXTENTS)
def test_without_their_numbers_lines_are_as_they_were(text: str, head: Any, tail: Any) -> None:
    plain = shown(text, head=head, tail=tail)
    numbered = shown(text, head=head, tail=tail, line_numbers=True)
    for with_numbers, without in ((numbered.head, plain.head), (numbered.tail, plain.tail)):
        rows = with_numbers.split("\n")
        bare = [row.partition("\t")[2] for row in rows]
        assert "\n".join(bare) == without
        assert len({len(row.partition("\t")[0]) for row in rows if row}) <= 1


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "approximate"])
@given(st.text(max_size=120), st.integers(0, 40))
def test_one_character_more_than_a_number_of_tokens_would_be_too_many(
    tokenizer: str, text: str, most: int
) -> None:
    counter = counter_for(tokenizer)
    head = excerpt(text, Placeholder.model_validate({"head": {"tokens": most}}), counter).head
    tail = excerpt(text, Placeholder.model_validate({"tail": {"tokens": most}}), counter).tail
    assert counter.count(head) <= most
    assert counter.count(tail) <= most
    assert head == text or counter.count(text[: len(head) + 1]) > most
    assert tail == text or counter.count(text[-len(tail) - 1 :]) > most


@pytest.mark.parametrize("text", ["x" * 1_000_000, "\n" * 1_000_000, "字" * 1_000_000])
def test_only_a_small_part_of_a_long_text_is_counted(text: str) -> None:
    asked: list[int] = []

    def measure(parts: Sequence[str]) -> list[int]:
        asked.extend(map(len, parts))
        return [len(part) for part in parts]

    wording = Placeholder.model_validate({"head": {"tokens": 100}, "tail": {"tokens": 100}})
    found = excerpt(text, wording, MemoCounter(measure))
    assert len(found.head) == len(found.tail) == 100
    assert sum(asked) < 25_000


@pytest.mark.parametrize("text", ["a" * 20_000, " " * 20_000, "字" * 20_000, "👩‍👩‍👧\n" * 3_000])
def test_a_run_is_shown_to_its_last_token(text: str) -> None:
    wording = Placeholder.model_validate({"head": {"tokens": 60}, "tail": {"tokens": 60}})
    found = excerpt(text, wording, EXACT)
    assert EXACT.count(found.head) == EXACT.count(found.tail) == 60


def test_a_cut_line_has_the_mark_of_the_policy_or_none() -> None:
    for mark in (" [cut]", ""):
        found = shown("abcdef\nxy\n", head={"lines": 2}, max_line_chars=3, cut_mark=mark)
        assert (found.head, found.omitted_chars) == (f"abc{mark}\nxy\n", 3)


def test_numbers_are_as_wide_as_asked_and_wider_where_they_must_be() -> None:
    numbers = {"width": 2, "separator": ": "}
    found = shown("x\n" * 100, head={"lines": 1}, tail={"lines": 2}, line_numbers=numbers)
    assert (found.head, found.tail) == (" 1: x\n", "99: x\n100: x\n")


def test_the_width_of_the_numbers_alone_keeps_the_tab() -> None:
    assert shown("a\nb", head={"lines": 2}, line_numbers={"width": 6}).head == (
        "     1\ta\n     2\tb"
    )
