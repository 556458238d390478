from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.tokens.counter import Bounds, counter_for, new_counter, reaches

TOKENIZERS = ("o200k_base", "cl100k_base", "approximate")

each_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS)
any_text = st.text(st.characters() | st.sampled_from("ab \n字\ud800"), max_size=300)


@each_tokenizer
def test_an_empty_text_has_no_tokens(tokenizer: str) -> None:
    assert counter_for(tokenizer).count("") == 0


def test_a_process_has_one_counter_for_a_tokenizer() -> None:
    with ThreadPoolExecutor(8) as threads:
        counters = set(threads.map(counter_for, ["o200k_base"] * 50))
    assert counters == {counter_for("o200k_base")}
    assert counter_for("o200k_base") is not counter_for("cl100k_base")


@each_tokenizer
@given(text=any_text)
def test_a_count_is_within_its_bounds(tokenizer: str, text: str) -> None:
    counter = counter_for(tokenizer)
    least, most = counter.bounds(text)
    assert least <= counter.count(text) <= most


@each_tokenizer
@pytest.mark.parametrize("text", [" " * 5_000, "-" * 5_000, "a" * 9_000, "\ud800" * 50, "字" * 9])
def test_long_tokens_are_within_their_bounds_too(tokenizer: str, text: str) -> None:
    counter = counter_for(tokenizer)
    least, most = counter.bounds(text)
    assert least <= counter.count(text) <= most


def test_bounds_are_returned_without_counting() -> None:
    counter = new_counter("o200k_base")
    assert counter.bounds("x" * 129) == Bounds(2, 129)
    assert counter.bounds("字") == Bounds(1, 3)
    assert (counter.stats.hits, counter.stats.misses) == (0, 0)


def test_the_bounds_of_an_approximation_are_the_count() -> None:
    assert counter_for("approximate").bounds("abcde") == Bounds(2, 2)


@pytest.mark.parametrize(
    ("text", "tokens", "reached", "measured"),
    [
        ("word " * 10, 51, False, 0),  # 50 bytes
        ("x" * 1_281, 11, True, 0),  # more than ten tokens of 128 bytes
        ("word " * 10, 11, True, 1),
        ("word " * 10, 12, False, 1),
        ("", 0, True, 0),
    ],
)
def test_a_threshold_is_counted_only_where_the_bounds_leave_it_open(
    text: str, tokens: int, reached: bool, measured: int
) -> None:
    counter = new_counter("o200k_base")
    assert reaches(counter, text, tokens) is reached
    assert counter.stats.misses == measured


@each_tokenizer
@given(text=any_text, tokens=st.integers(-1, 60), end=st.booleans())
def test_a_cut_text_fits_and_is_where_it_was(
    tokenizer: str, text: str, tokens: int, end: bool
) -> None:
    counter = counter_for(tokenizer)
    cut = counter.truncate(text, tokens, end=end)
    assert text.endswith(cut) if end else text.startswith(cut)
    assert counter.count(cut) <= max(tokens, 0)


@each_tokenizer
@pytest.mark.parametrize("end", [True, False])
def test_a_text_that_fits_is_left_whole(tokenizer: str, end: bool) -> None:
    counter = counter_for(tokenizer)
    text = "a few words, 字か " * 900
    assert counter.truncate(text, counter.count(text), end=end) == text


@each_tokenizer
@pytest.mark.parametrize("end", [True, False])
@pytest.mark.parametrize("text", ["word, " * 5_000, "1234567890" * 2_000, "字か。" * 4_000])
def test_a_long_text_is_cut_close_to_the_limit(tokenizer: str, end: bool, text: str) -> None:
    counter = counter_for(tokenizer)
    assert 2_990 <= counter.count(counter.truncate(text, 3_000, end=end)) <= 3_000


def test_a_character_is_never_cut() -> None:
    counter = counter_for("o200k_base")
    assert counter.count("🧠") == 3
    assert counter.truncate("ab 🧠", 2) == "ab "


def test_nothing_is_loaded_before_the_first_count() -> None:
    program = (
        "import sys; from policyctx.tokens.counter import counter_for\n"
        "counter_for('approximate').count('hello')\n"
        "counter_for('o200k_base').bounds('hello')\n"
        "print({'tiktoken', 'toktok', 'anthropic', 'httpx'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.strip() == b"set()"


@pytest.mark.slow
def test_counting_with_toktok_does_not_import_tiktoken() -> None:
    pytest.importorskip("toktok")
    program = (
        "import sys; from policyctx.tokens.counter import counter_for\n"
        "counter_for('o200k_base').count_many(['hello', '字' * 5000])\n"
        "print({'tiktoken', 'toktok'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert run.stdout.strip() == b"{'toktok'}"
