"""Texts of an exact size."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.testing.contents import compact, filler, filler_blocks
from policyctx.testing.kinds import Size
from policyctx.tokens.counter import counter_for

SERIALS = st.integers(0, 20_000)


@given(count=st.integers(0, 3_000), serial=SERIALS)
def test_a_text_has_its_characters(count: int, serial: int) -> None:
    assert len(filler(Size(count, "characters"), serial)) == count


@given(count=st.integers(27, 3_000), serial=SERIALS)
def test_the_json_of_blocks_has_its_characters(count: int, serial: int) -> None:
    assert len(compact(filler_blocks(Size(count, "characters"), serial, as_json=True))) == count


@pytest.mark.parametrize("tokenizer", ["o200k_base", "cl100k_base", "approximate"])
@pytest.mark.parametrize("count", [0, 1, 2, 3, 79, 80, 3_000])
def test_a_text_has_its_tokens_by_every_tokenizer(tokenizer: str, count: int) -> None:
    counter = counter_for(tokenizer)
    for serial in (1, 79, 80, 12_345):
        assert counter.count(filler(Size(count, "tokens"), serial)) == count


@given(one=SERIALS, other=SERIALS)
def test_all_texts_are_different(one: int, other: int) -> None:
    for size in (Size(6, "characters"), Size(3, "tokens")):
        assert (filler(size, one) == filler(size, other)) == (one == other)


def test_a_long_text_has_lines() -> None:
    assert max(map(len, filler(Size(3_000, "characters"), 1).splitlines())) < 80
