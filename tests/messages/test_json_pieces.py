"""JSON that is written in pieces is the JSON that is written at once."""

from __future__ import annotations

import pytest

from policyctx.messages.json_text import compact_json, json_pieces, json_text

LONG = 'a\x01"\\é\ud83d' * 5_000


@pytest.mark.parametrize(
    "value",
    [
        LONG,
        [{"type": "text", "text": "x" * 900}] * 50,
        {"a": {"b": [LONG, 1, None, 0.5, [], {}]}, "c": "", "d": (LONG, 2)},
        {1: LONG, "two": True},
        [],
    ],
)
def test_pieces_are_the_whole_text(value: object) -> None:
    assert "".join(json_pieces(value)) == str(json_text(value)) == compact_json(value)


def test_a_list_of_many_short_texts_is_written_in_short_pieces() -> None:
    value = [{"type": "text", "text": "\x01" * 900}] * 200
    assert max(map(len, json_pieces(value))) < 10_000
