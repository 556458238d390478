"""The text that stands for a value: what Python's own encoder writes, whoever writes it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.messages.json_text import compact_json

TEXTS = st.text() | st.text(st.characters(codec=None), max_size=20)
SIMPLE = st.none() | st.booleans() | st.integers() | TEXTS
VALUES = st.recursive(
    SIMPLE | st.floats(),
    lambda inner: st.lists(inner) | st.dictionaries(TEXTS | st.integers() | st.none(), inner),
)


@given(VALUES)
def test_a_value_is_written_as_pythons_encoder_writes_it(value: object) -> None:
    assert compact_json(value) == json.dumps(value, ensure_ascii=False, separators=(",", ":"))


@pytest.mark.parametrize("depth", [1, 15, 16, 17, 400])
def test_a_deeply_nested_value_is_written_like_any_other(depth: int) -> None:
    value: object = "inside"
    for _ in range(depth):
        value = [{"in": value}]
    assert json.loads(compact_json(value)) == value


@pytest.mark.slow
def test_a_self_referential_value_is_rejected() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(ValueError, match="Circular"):
        compact_json(value)
    with pytest.raises(RecursionError):
        compact_json(_nested(100_000))


def _nested(depth: int) -> object:
    value: object = None
    for _ in range(depth):
        value = [value]
    return value
