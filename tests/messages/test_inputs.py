from __future__ import annotations

import pytest

from policyctx.messages.inputs import shortened_input


def short(text: str) -> str | None:
    return "gone" if len(text) > 5 else None


def test_long_texts_give_way_at_any_depth() -> None:
    text = '{"a":"123456","b":[{"c":"1234567"}],"d":"short"}'
    assert shortened_input(text, short) == '{"a":"gone","b":[{"c":"gone"}],"d":"short"}'


def test_keys_stay_however_long_they_are() -> None:
    assert shortened_input('{"a long key" : "a long value"}', short) == '{"a long key" : "gone"}'


def test_all_else_stays_to_the_byte() -> None:
    text = '{ "a": "123456",\n"n": 1.10, "big": 123456789012345678901234567890, "u": "\\u5b57" }'
    assert shortened_input(text, short) == text.replace("123456", "gone", 1)


def test_a_text_is_judged_as_it_reads_and_not_as_it_is_written() -> None:
    seen: list[str] = []
    shortened_input('{"a": "\\u5b57 \\"quoted\\" \\\\", "b": "漢"}', seen.append)
    assert seen == ['字 "quoted" \\', "漢"]


def test_what_takes_the_place_is_written_as_json() -> None:
    new = shortened_input('{"a": "x"}', lambda _: 'see "字"\n')
    assert new == '{"a": "see \\"字\\"\\n"}'


def test_nothing_comes_back_when_nothing_gave_way() -> None:
    assert shortened_input('{"a": "short", "n": 1}', short) is None


@pytest.mark.parametrize(
    "text",
    ["", "raw text", '"a long text"', '["a long text"]', "null", '{"a": "123456"', "{" * 99_999],
)
def test_what_is_no_json_object_is_left_alone(text: str) -> None:
    assert shortened_input(text, short) is None


def test_input_nested_too_deeply_to_read_is_left_alone() -> None:
    text = '{"a": ' + "[" * 100_000 + "]" * 100_000 + ', "b": "123456"}'
    assert shortened_input(text, short) is None
