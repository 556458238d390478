from __future__ import annotations

import json
import subprocess
import sys
import unicodedata
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.tokens.encoders import (
    SPLIT_CHARS,
    VOCABULARIES,
    ByRanks,
    approximate,
    encoding,
    exact_counts,
    measure_for,
)
from tests.drawing import in_profile, rotated
from tests.recordings import each_recording

each_name = pytest.mark.parametrize("name", VOCABULARIES)

# What the patterns tell apart: numbers, cases, endings, runs of space, scripts.
CHUNKS = (
    "12345", "7", "word", "Word", "WORD", "'s", "'LL", " ", "  ", "\t", "\n", "\r\n", "//", "._-",
    "é", "e\u0301", "字か", "한국", "\u0661\u0662", "👩\u200d👧", "\0", "\u2028", "ſ", "\u212a",
)  # fmt: skip
# Every plane, and the letters of the newest Unicode, which not every library has yet.
any_text = st.lists(
    st.sampled_from(CHUNKS)
    | st.text(st.characters(min_codepoint=0x800, max_codepoint=0x1FFFF), max_size=3)
    | st.text(st.characters(min_codepoint=0x20000), max_size=2),
    max_size=40,
).map("".join)


@each_name
@given(text=st.text(max_size=200) | any_text)
def test_a_short_text_has_the_tokens_that_the_bare_library_gives_it(name: str, text: str) -> None:
    counted = measure_for(name, fast=False)([text])
    assert counted == [len(encoding(name).encode_ordinary(text))]


@each_name
@given(texts=st.lists(st.text() | any_text, max_size=5))
def test_both_libraries_count_the_same(name: str, texts: list[str]) -> None:
    pytest.importorskip("toktok")
    assert measure_for(name, fast=True)(texts) == exact_counts(texts, name)


@each_name
def test_both_libraries_count_the_same_around_every_letter(name: str) -> None:
    pytest.importorskip("toktok")
    # A letter that a library does not know yet shows where an ending follows it.
    step = in_profile(17, 1)
    signs = (chr(code) for code in range(0x80, 0x32000, step))
    texts = [f"{sign}'s" for sign in signs if unicodedata.category(sign) != "Cs"]
    assert measure_for(name, fast=True)(texts) == exact_counts(texts, name)


@each_name
@pytest.mark.parametrize(
    "text", ["a\ud800b", "\u088f's", "\U00010940's", "\u1acf's", "\U000323b0's"]
)
def test_a_text_on_which_they_differ_is_counted_by_tiktoken(name: str, text: str) -> None:
    pytest.importorskip("toktok")
    assert measure_for(name, fast=True)(["before", text, "after"]) == [
        1, len(encoding(name).encode_ordinary(text)), 1,
    ]  # fmt: skip


@each_recording("claude-code", "codex", "pi")
def test_long_texts_of_a_recording_are_exact_both_ways(path: Path) -> None:
    pytest.importorskip("toktok")
    lines = path.read_text(encoding="utf-8").splitlines()[:400]
    texts = [line for line in lines if len(line) > SPLIT_CHARS or line.isascii()]
    bare = [len(encoding("o200k_base").encode_ordinary(text)) for text in texts]
    assert measure_for("o200k_base", fast=False)(texts) == bare
    assert measure_for("o200k_base", fast=True)(texts) == bare


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "fast", "run"),
    rotated(VOCABULARIES, [True, False], [" ", "\t", "a", "字", "1", "="], one_in=2),
)
def test_a_run_of_a_million_characters_can_be_counted(name: str, fast: bool, run: str) -> None:
    if fast:
        pytest.importorskip("toktok")
    (tokens,) = measure_for(name, fast=fast)([run * 1_000_000])
    assert 1_000 < tokens <= 1_000_000


@each_name
@pytest.mark.parametrize("fast", [True, False])
@pytest.mark.parametrize(
    "text", ["\ud800" * 50_000, "a\udfffb", "\ud83d\ude00", "\0", "\uffff", "👩‍👩‍👧"]
)
def test_any_text_can_be_counted(name: str, fast: bool, text: str) -> None:
    if fast:
        pytest.importorskip("toktok")
    assert measure_for(name, fast=fast)([text])[0] > 0


@each_name
def test_the_names_of_special_tokens_are_plain_text(name: str) -> None:
    assert measure_for(name, fast=False)(["<|endoftext|>"])[0] > 1
    assert measure_for(name)(["<|endoftext|>"])[0] > 1


@pytest.mark.parametrize(("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("字字字字か", 2)])
def test_approximate_is_a_quarter_of_the_characters_rounded_up(text: str, tokens: int) -> None:
    assert approximate([text]) == [tokens]


@each_name
def test_an_empty_list_has_no_counts(name: str) -> None:
    assert measure_for(name)([]) == []


def test_texts_have_the_same_counts_one_by_one_as_together() -> None:
    pytest.importorskip("toktok")
    texts = [f"line {i}: {'é' * (i % 3)} <|endoftext|> \u3042 {'x' * i}" for i in range(40)]
    measure = measure_for("o200k_base", fast=True)
    assert [count for text in texts for count in measure([text])] == measure(texts)


ASCII_CHUNKS = tuple(chunk for chunk in CHUNKS if chunk.isascii())
ascii_text = st.lists(
    st.sampled_from((*ASCII_CHUNKS, "\x1c", "\x0b", "'", "I'll", "don't", "=" * 9, "aA" * 5))
    | st.text(st.characters(max_codepoint=0x7F), max_size=9),
    max_size=40,
).map("".join)


@each_name
@given(text=ascii_text)
def test_the_ranks_alone_count_as_the_library_does(name: str, text: str) -> None:
    counted = by_ranks(name).tokens(text)
    assert counted == len(encoding(name).encode_ordinary(text))


@cache
def by_ranks(name: str) -> ByRanks:
    return ByRanks(name)


@each_name
def test_the_ranks_alone_count_each_source_file_as_the_library_does(name: str) -> None:
    files = [path.read_text("utf-8") for path in sorted(Path("policyctx").glob("*/*.py"))[::9]]
    counts = {text: by_ranks(name).tokens(text) for text in files}
    known = [text for text, count in counts.items() if count is not None]
    assert len(known) > 10
    assert [counts[text] for text in known] == exact_counts(known, name)


@each_name
@pytest.mark.parametrize("text", ["é", "x" * 300, "a " * SPLIT_CHARS])
def test_the_ranks_alone_leave_other_letters_and_long_texts_and_words(name: str, text: str) -> None:
    assert by_ranks(name).tokens(text) is None


FIRST_COUNTS = """\
import sys
from policyctx.tokens.counter import counter_for

text = "Tokens of a short text.\\n" * 40
counter = counter_for("o200k_base")
counts = [counter.count(f"{i}{text}") for i in range(5)]
libraries = {"tiktoken", "toktok", "regex"} & set(sys.modules)
assert not libraries, libraries
counter.count_many([f"{i} {text}" for i in range(400)])
assert {"tiktoken", "toktok"} & set(sys.modules)
assert counter_for("o200k_base").count(f"0{text} ") == counter.count(f"0{text} ")
print(counts)
"""


def test_a_process_that_counts_little_loads_no_library() -> None:
    run = subprocess.run(
        [sys.executable, "-c", FIRST_COUNTS], capture_output=True, text=True, check=False
    )
    assert not run.stderr
    text = "Tokens of a short text.\n" * 40
    assert json.loads(run.stdout) == exact_counts([f"{i}{text}" for i in range(5)], "o200k_base")
