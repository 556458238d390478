from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from time import monotonic

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.tokens.counter import SPLIT_CHARS, MemoCounter, counter_for, pieces

TOKENIZERS = ("o200k_base", "cl100k_base", "approximate")

each_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS)


class Measure:
    """Counts the characters, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text)


@each_tokenizer
def test_an_empty_text_has_no_tokens(tokenizer: str) -> None:
    assert counter_for(tokenizer).count("") == 0


@pytest.mark.parametrize(("text", "tokens"), [("a", 1), ("abcd", 1), ("abcde", 2), ("字字字字", 1)])
def test_approximate_is_a_quarter_of_the_characters_rounded_up(text: str, tokens: int) -> None:
    assert counter_for("approximate").count(text) == tokens


def test_a_process_has_one_counter_for_a_tokenizer() -> None:
    assert counter_for("o200k_base") is counter_for("o200k_base")
    assert counter_for("o200k_base") is not counter_for("cl100k_base")


def test_a_text_is_measured_once() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    assert [counter.count("hello"), counter.count("hello")] == [5, 5]
    assert measure.asked == ["hello"]


def test_an_equal_text_read_anew_is_known() -> None:
    measure = Measure()
    counter = MemoCounter(measure)
    counter.count("hello there")
    counter.count("hello there")
    assert len(measure.asked) == 1


def test_a_full_memo_forgets_the_oldest_first() -> None:
    measure = Measure()
    counter = MemoCounter(measure, memo_chars=10)
    for text in ("first", "other", "third", "other", "first"):
        counter.count(text)
    assert measure.asked == ["first", "other", "third", "first"]


def test_a_text_larger_than_the_memo_is_counted_and_not_held() -> None:
    measure = Measure()
    counter = MemoCounter(measure, memo_chars=10)
    assert [counter.count("x" * 11), counter.count("x" * 11)] == [11, 11]
    assert len(measure.asked) == 2


@given(st.lists(st.text(max_size=8), max_size=30))
def test_the_memo_never_holds_more_than_it_may(texts: list[str]) -> None:
    counter = MemoCounter(len, memo_chars=20)
    for text in texts:
        assert counter.count(text) == len(text)
        assert sum(map(len, counter._memo)) <= 20


def test_threads_share_a_counter() -> None:
    counter = MemoCounter(len, memo_chars=50)
    texts = ["x" * (i % 17) for i in range(2000)]
    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(counter.count, texts)) == [len(text) for text in texts]


@each_tokenizer
@pytest.mark.parametrize("text", ["\ud800", "a\udfffb", "\ud83d\ude00", "\0", "\uffff", "👩‍👩‍👧"])
def test_any_text_can_be_counted(tokenizer: str, text: str) -> None:
    assert counter_for(tokenizer).count(text) > 0


@each_tokenizer
def test_the_names_of_special_tokens_are_plain_text(tokenizer: str) -> None:
    assert counter_for(tokenizer).count("<|endoftext|>") > 1


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base"])
@pytest.mark.parametrize("run", [" ", "\t", "a", "字", "\n"])
def test_a_run_of_a_million_characters_is_counted_quickly(tokenizer: str, run: str) -> None:
    counter_for(tokenizer).count("built before the clock starts")
    before = monotonic()
    assert 1_000 < counter_for(tokenizer).count(run * 1_000_000) <= 1_000_000
    assert monotonic() - before < 20


@given(st.text(st.sampled_from("ab\n字"), max_size=30).map(lambda text: text * 700))
def test_a_cut_text_loses_nothing(text: str) -> None:
    cut = list(pieces(text))
    assert "".join(cut) == text
    assert all(len(piece) <= SPLIT_CHARS for piece in cut)


def test_a_text_is_cut_after_its_last_newline_that_fits() -> None:
    lines = "x" * 2999 + "\n" + "y" * 2999 + "\n"
    assert list(pieces(lines)) == ["x" * 2999 + "\n", "y" * 2999 + "\n"]


def test_a_text_without_newlines_is_cut_at_the_most() -> None:
    assert [len(piece) for piece in pieces("x" * 10_000)] == [4_096, 4_096, 1_808]


def test_a_text_of_the_most_is_whole() -> None:
    assert list(pieces("\n" * SPLIT_CHARS)) == ["\n" * SPLIT_CHARS]


def test_nothing_is_loaded_before_the_first_count() -> None:
    program = (
        "import sys; from policyctx.tokens.counter import counter_for; "
        "counter_for('approximate').count('hello'); counter_for('o200k_base'); "
        "sys.exit('tiktoken' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
