from __future__ import annotations

import pytest

from policyctx.messages.editing import shortened_input


def short(text: str) -> str | None:
    return "gone" if len(text) > 5 else None


def test_long_texts_are_replaced_at_any_depth() -> None:
    text = '{"a":"123456","b":[{"c":"1234567"}],"d":"short"}'
    assert shortened_input(text, short) == '{"a":"gone","b":[{"c":"gone"}],"d":"short"}'


def test_long_keys_are_kept() -> None:
    assert shortened_input('{"a long key" : "a long value"}', short) == '{"a long key" : "gone"}'


def test_everything_else_keeps_its_bytes() -> None:
    text = '{ "a": "123456",\n"n": 1.10, "big": 123456789012345678901234567890, "u": "\\u5b57" }'
    assert shortened_input(text, short) == text.replace("123456", "gone", 1)


def test_a_text_is_measured_after_json_unescaping() -> None:
    seen: list[str] = []
    shortened_input('{"a": "\\u5b57 \\"quoted\\" \\\\", "b": "漢"}', seen.append)
    assert seen == ['字 "quoted" \\', "漢"]


def test_the_replacement_is_written_as_json() -> None:
    new = shortened_input('{"a": "x"}', lambda _: 'see "字"\n')
    assert new == '{"a": "see \\"字\\"\\n"}'


def test_nothing_is_returned_if_nothing_was_replaced() -> None:
    assert shortened_input('{"a": "short", "n": 1}', short) is None


@pytest.mark.parametrize(
    "text",
    ["", "raw text", '"a long text"', '["a long text"]', "null", '{"a": "123456"', "{" * 99_999],
)
def test_an_input_that_is_not_a_json_object_is_unchanged(text: str) -> None:
    assert shortened_input(text, short) is None


def test_an_input_nested_too_deeply_is_unchanged() -> None:
    text = '{"a": ' + "[" * 100_000 + "]" * 100_000 + ', "b": "123456"}'
    assert shortened_input(text, short) is None
