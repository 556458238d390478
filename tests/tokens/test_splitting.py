from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.tokens.encoders import SPLIT_CHARS, VOCABULARIES, encoding, pieces

# Letters, digits and signs of several scripts, and what the encodings' patterns treat specially.
SIGNS = "abzAZ019 \t\n\r'.,;:!?/\\{}()-_\"éß\u0301字か한ー。，、「」\u200d👧"
words = st.text(st.sampled_from(SIGNS), max_size=40)
# Long enough to be cut, and never the same place twice.
long_texts = st.lists(words, min_size=1, max_size=20).map(
    lambda parts: "".join(f"{part}{i}" for i, part in enumerate(parts * 300))[:40_000]
)


@given(st.text(st.sampled_from("ab\n字"), max_size=30), st.integers(1, 40))
def test_a_cut_text_loses_nothing(text: str, most: int) -> None:
    cut = list(pieces(text * 30, most))
    assert "".join(cut) == text * 30
    assert all(len(piece) <= most for piece in cut)


@pytest.mark.parametrize("name", VOCABULARIES)
@given(text=long_texts)
def test_the_tokens_of_the_pieces_are_the_tokens_of_the_text(name: str, text: str) -> None:
    encode = encoding(name).encode_ordinary
    cut = list(pieces(text))
    # Where no cut could be had, one stands after the most characters, and may part a token.
    if all(len(piece) < SPLIT_CHARS for piece in cut):
        assert [token for piece in cut for token in encode(piece)] == encode(text)


@pytest.mark.parametrize("name", VOCABULARIES)
@given(text=words)
def test_every_place_where_a_text_may_be_cut_is_between_tokens(name: str, text: str) -> None:
    encode = encoding(name).encode_ordinary
    for place in re.finditer(r"(?<=[0-9A-Za-z字か한])(?=[\t-\r !-&(-/:-@\[-`{-~。，、「」])", text):
        left, right = text[: place.start()], text[place.start() :]
        assert encode(left) + encode(right) == encode(text)


def test_a_text_is_cut_as_late_as_it_can() -> None:
    text = "word " * 5_000
    assert [len(piece) for piece in pieces(text)] == [16_384, 8_616]
    assert [len(piece) for piece in pieces(text[2:])] == [16_382, 8_616]


def test_pieces_can_be_made_smaller() -> None:
    assert list(pieces("word word word", 6)) == ["word", " word", " word"]


@pytest.mark.parametrize("sign", [" ", "\n", '"', ",", "。", "）"])
def test_a_cut_stands_between_a_letter_and_a_sign(sign: str) -> None:
    first, second = pieces(f"{'x' * 9_000}{sign}{'y' * 9_000}")
    assert (first, second[0]) == ("x" * 9_000, sign)


@pytest.mark.parametrize("between", ["'", "_x", "é", "\u0301", "\u3000x"])
def test_no_cut_stands_where_a_token_might_go_on(between: str) -> None:
    first = next(pieces("é" * 9_000 + between + "é" * 9_000))
    assert len(first) == SPLIT_CHARS


def test_a_run_without_a_break_is_cut_at_the_most() -> None:
    assert [len(piece) for piece in pieces("x" * 40_000)] == [16_384, 16_384, 7_232]


def test_a_text_of_the_most_is_whole() -> None:
    assert list(pieces("x " * 8_192)) == ["x " * 8_192]
