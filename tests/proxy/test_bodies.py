"""Bodies: what is read by bytes has its JSON value, and what stays keeps its bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.messages.sources import joined, whole
from policyctx.proxy.bodies import (
    REMOVED,
    Body,
    ListWriter,
    common_beginning,
    read_body,
    shared_messages,
    spliced,
    values_from,
)
from policyctx.proxy.limits import ProxyLimits
from policyctx.proxy.scanning import UntouchableError, written
from tests.growing import grows_at_most

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
MESSAGES = st.dictionaries(TEXTS, VALUES, max_size=3)
FIELDS = st.dictionaries(TEXTS.filter(lambda name: name != "messages"), VALUES, max_size=3)
WRITERS: list[Any] = [
    orjson.dumps,
    lambda value: orjson.dumps(value, option=orjson.OPT_INDENT_2),
    lambda value: json.dumps(value).encode(),
    lambda value: json.dumps(value, ensure_ascii=False).encode(),
    lambda value: json.dumps(value, indent=1, separators=(" ,", " : ")).encode(),
]
writers = st.sampled_from(WRITERS)


def body_of(before: Any, messages: Any, after: Any) -> dict[str, Any]:
    return {**before, "messages": messages, **after}


def check(body: Body, raw: bytes) -> None:
    """The body is what a whole decoding gives, and each span is the JSON of its message."""
    values = orjson.loads(raw)
    assert body.raw == raw
    assert body.messages == values.pop("messages")
    assert body.fields == values
    start = body.list_span.start
    for message, span, end in zip(body.messages, body.spans, body.ends, strict=True):
        assert orjson.loads(raw[start + span.start : start + span.end]) == message
        assert span.end == end
    for name, member in body.members.items():
        assert orjson.loads(raw[slice(*member.value)]) == values[name]
        assert orjson.loads(b"{" + raw[slice(*member.whole)] + b"}") == {name: values[name]}
    assert body.members.keys() == values.keys()
    assert raw[body.list_span.end :].startswith(b"]")


@given(FIELDS, st.lists(MESSAGES, max_size=4), FIELDS, writers)
def test_a_body_is_read_as_json(before: Any, messages: Any, after: Any, write: Any) -> None:
    raw = write(body_of(before, messages, after))
    check(read_body(raw, "messages"), raw)


@given(st.data())
def test_a_body_read_after_another_one_is_read_as_json(data: st.DataObject) -> None:
    before, after = data.draw(FIELDS), data.draw(FIELDS)
    write = data.draw(writers)
    messages = data.draw(st.lists(MESSAGES, max_size=4))
    earlier_raw = write(body_of(before, messages, after))
    earlier = read_body(earlier_raw, "messages")
    kept = messages[: data.draw(st.integers(0, len(messages)))]
    new = kept + data.draw(st.lists(MESSAGES, max_size=3))
    if data.draw(st.booleans()):
        before = data.draw(FIELDS)
    if data.draw(st.booleans()):
        after = data.draw(FIELDS)
    raw = write(body_of(before, new, after))
    body = read_body(raw, "messages", earlier)
    check(body, raw)
    for i in range(body.known):
        assert body.messages[i] is earlier.messages[i]
    if before == {} and write is orjson.dumps and kept == messages:
        assert body.known == len(messages)


@given(st.data())
def test_a_body_whose_list_was_changed_in_the_middle_is_read_as_json(data: st.DataObject) -> None:
    write = data.draw(writers)
    some = [{"role": "user", "content": "go on"}, {"content": [{"role": "user"}]}, {}]
    messages = data.draw(st.lists(st.sampled_from(some) | MESSAGES, max_size=7))
    fields = data.draw(FIELDS)
    earlier = read_body(write({"messages": messages, **fields}), "messages")
    new = list(messages)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(new)))
        # A message may hold others, whose bytes are those of messages of the list.
        one = data.draw(MESSAGES | st.just({"content": messages}))
        new[at : at + data.draw(st.integers(0, 1))] = data.draw(st.sampled_from([[one], []]))
    raw = write({"messages": new, **fields})
    body = read_body(raw, "messages", earlier)
    check(body, raw)
    for i in range(body.known):
        assert body.messages[i] is earlier.messages[i]


@given(st.data())
def test_a_damaged_body_is_refused_or_read_as_json(data: st.DataObject) -> None:
    messages = data.draw(st.lists(MESSAGES, max_size=3))
    earlier = read_body(orjson.dumps({"messages": messages, "a": 1}), "messages")
    new = [*data.draw(st.sampled_from([[], [{"c": 3}]])), *messages, {"b": 2}]
    raw = bytearray(orjson.dumps({"messages": new, "a": 1}))
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(raw) - 1))
        raw[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.sampled_from([b"", b",", b"]", b"}", b"{", b'"', b"1", b"[", b" ", b'"a":1,'])
        )
    damaged = bytes(raw)
    for known in (None, earlier):
        try:
            body = read_body(damaged, "messages", known)
        except UntouchableError:
            continue
        check(body, damaged)


def _places(count: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(range(count)), unique=True) if count else st.just([])


@given(st.data())
def test_a_spliced_body_has_the_new_values_and_keeps_the_bytes_of_the_others(
    data: st.DataObject,
) -> None:
    messages = data.draw(st.lists(MESSAGES, max_size=6))
    before, after = data.draw(FIELDS), data.draw(FIELDS)
    raw = data.draw(writers)(body_of(before, messages, after))
    body = read_body(raw, "messages")
    edited, removed = (set(data.draw(_places(len(messages)))) for _ in range(2))
    inserted = data.draw(st.lists(MESSAGES, max_size=2))
    at = data.draw(st.integers(0, len(messages)))
    out: list[Any] = []
    sources: list[range | None] = []
    for i, message in enumerate(body.messages):
        if i == at:
            out += inserted
            sources += [None] * len(inserted)
        if i not in removed:
            out.append({**message, "new": i} if i in edited else message)
            sources.append(range(i, i + 1))
    names = [name for name in body.fields if data.draw(st.booleans())]
    fields: dict[str, Any] = {n: [data.draw(VALUES)] for n in names}
    if len(names) > 0 and data.draw(st.booleans()):
        fields[names[0]] = REMOVED
    new = spliced(body, out, joined(sources), fields=fields, writer=ListWriter())
    expected = {n: fields.get(n, v) for n, v in orjson.loads(raw).items()} | {"messages": out}
    expected = {n: v for n, v in expected.items() if v is not REMOVED}
    assert orjson.loads(new) == expected
    result = read_body(new, "messages")
    origin, own = body.list_span.start, result.list_span.start
    for place, one in enumerate(sources):
        if one is not None and one.start not in edited:
            given_span, span = body.spans[one.start], result.spans[place]
            assert (
                raw[origin + given_span.start : origin + given_span.end]
                == new[own + span.start : own + span.end]
            )


def test_a_body_without_a_change_is_the_same_object() -> None:
    raw = b'{ "messages" : [ {"a":1} , {"b":2}] ,"x":1}'
    body = read_body(raw, "messages")
    assert spliced(body, body.messages, whole(2), fields={}, writer=ListWriter()) is raw
    assert spliced(body, [*body.messages], whole(2), fields={}, writer=ListWriter()) is raw


@pytest.mark.parametrize(
    "raw",
    [
        b'{"messages":[{"a":18446744073709551616}]}',
        b'{"messages":[{"a":-9223372036854775809}]}',
        b'{"messages":[{"a":"\\ud800"}]}',
        b'{"messages":[{"a":NaN}]}',
        b'{"messages":[{"a":1e999}]}',
        b'{"messages":[{"a":1,"a":1}]}',
        b'{"messages":[{"a":1,"a":2}]}',
        b'{"messages":[{"a":1}],"messages":[]}',
        b'{"messages":[{"a":1}],"x":1,"x":1}',
        b'{"messages":[1]}',
        b'{"messages":"text"}',
        b'{"messages":[{"a":1}],"x":' + b"[" * 2000 + b"]" * 2000 + b"}",
        b'{"a":1}',
        b"[]",
        b"",
        b'{"messages":[{"a":1},]}',
        b'{"messages":[{"a":1}',
        b'\xff{"messages":[]}',
    ],
)
def test_a_body_that_cannot_be_written_again_is_untouchable(raw: bytes) -> None:
    earlier = read_body(b'{"messages":[{"a":1}],"x":1}', "messages")
    for known in (None, earlier):
        with pytest.raises(UntouchableError):
            read_body(raw, "messages", known)


def test_only_what_is_new_is_decoded() -> None:
    messages = [{"role": "user", "content": f"{i} é"} for i in range(50)]
    earlier = read_body(orjson.dumps({"messages": messages, "tools": [{"a": 1}]}), "messages")
    raw = orjson.dumps({"messages": [*messages, {"b": 1}], "tools": [{"a": 1}]})
    body = read_body(raw, "messages", earlier)
    assert body.known == 50
    assert body.fields["tools"] is earlier.fields["tools"]
    assert shared_messages(raw, earlier) == 50


def test_messages_behind_changed_ones_are_the_same_objects() -> None:
    messages: list[Any] = [{"role": "user", "content": f"{i}"} for i in range(9)]
    earlier = read_body(orjson.dumps({"messages": messages}), "messages")
    messages[0] = {**messages[0], "cache_control": {}}
    messages[5:6] = [{"a": 1}, {"b": 2}]
    body = read_body(orjson.dumps({"messages": [*messages, {"c": 3}]}), "messages", earlier)
    assert body.known == 0
    assert all(body.messages[i] is earlier.messages[i] for i in range(1, 5))
    assert all(body.messages[i + 1] is earlier.messages[i] for i in range(6, 9))


def test_a_list_that_is_known_behind_another_head_has_the_same_objects() -> None:
    messages = [{"role": "user", "content": f"{i}"} for i in range(5)]
    earlier = read_body(orjson.dumps({"n": 1, "messages": messages}), "messages")
    body = read_body(
        orjson.dumps({"n": 22, "messages": [*messages, {"b": 1}]}), "messages", earlier
    )
    assert body.known == 5
    assert body.messages[4] is earlier.messages[4]


@given(st.binary(max_size=40), st.integers(0, 5), st.data())
def test_a_common_beginning_is_as_long_as_it_can_be(
    text: bytes, start: int, data: st.DataObject
) -> None:
    other = bytearray(text)
    if text:
        other[data.draw(st.integers(0, len(text) - 1))] ^= data.draw(st.integers(0, 1))
    start = min(start, len(text))
    found = common_beginning(text, start, b"--" + bytes(other), 2 + start, 100)
    assert text[start : start + found] == other[start : start + found]
    assert start + found == len(text) or text[start + found] != other[start + found]


@given(st.data())
def test_a_list_is_written_alike_whatever_was_written_before(data: st.DataObject) -> None:
    """Each turn edits, removes or keeps messages of a list that grows."""
    write = data.draw(writers)
    messages = data.draw(st.lists(MESSAGES, max_size=4))
    body = read_body(write({"messages": messages}), "messages")
    writer, changed = ListWriter(), dict[int, Any]()
    for _ in range(3):
        for i in range(len(body.messages)):
            if i not in changed and data.draw(st.booleans()):
                changed[i] = data.draw(st.none() | st.just({"changed": i}))
        places = [i for i in range(len(body.messages)) if changed.get(i, True) is not None]
        out = [changed.get(i, body.messages[i]) for i in places]
        sources = joined(range(i, i + 1) for i in places)
        text = writer.text(body, out, sources)
        assert text == ListWriter().text(body, out, sources)
        assert orjson.loads(b"[%b]" % text) == out
        messages = [*body.messages, *data.draw(st.lists(MESSAGES, max_size=2))]
        body = read_body(write({"messages": messages}), "messages", body)


@pytest.mark.parametrize(
    ("raw", "count"),
    [
        (b"[1,2,[3]]", 5),
        (b'{"a":"x,y,[{","b":{"c":1}}', 4),
        (b'["\\"[,{",2]', 3),
        (b'["[[[[[[', 2),
        (b'"\\"\\"\\"\\"[[[[[[', 1),
    ],
)
def test_the_values_of_a_text_are_counted_before_it_is_decoded(raw: bytes, count: int) -> None:
    """Never fewer than there are; signs in strings are left out if there seem to be too many."""
    assert values_from(raw, 0, 10**6) >= count
    with pytest.raises(UntouchableError):
        values_from(raw, 0, count - 1)
    assert values_from(raw, 0, count) == count


@given(VALUES, writers)
def test_no_value_is_counted_less_than_once(value: Any, write: Any) -> None:
    def size(one: Any) -> int:
        inner = one.values() if isinstance(one, dict) else one if isinstance(one, list) else ()
        return 1 + sum(map(size, inner))

    assert values_from(write(value), 0, 10**6) >= size(value)


SMALL = ProxyLimits(messages=20, values=200, message_values=150, fields=5)


@pytest.mark.parametrize(
    "body",
    [
        {"messages": [{}] * 21},
        {"messages": [{"content": [[]] * 200}]},
        {"messages": [{"content": [{"text": "a"}] * 200}]},
        {"messages": [{}, {"input": {str(i): i for i in range(150)}}, {}]},
        {"messages": [{str(i): i for i in range(150)}]},
        {"messages": [{}], "tools": [{}] * 200},
        {"messages": [{}], "a": {str(i): i for i in range(200)}},
        {"messages": [{}], **{str(i): i for i in range(9)}},
    ],
)
def test_a_body_above_a_limit_is_untouchable(body: dict[str, Any]) -> None:
    raw = orjson.dumps(body)
    read_body(raw, "messages")
    earlier = read_body(b'{"messages":[{}]}', "messages")
    for known in (None, earlier):
        with pytest.raises(UntouchableError, match="too many"):
            read_body(raw, "messages", known, SMALL)


ESCAPING = (orjson.dumps, lambda value: json.dumps(value).encode())


def test_escapes_up_to_u00ff_do_not_make_a_text_wide() -> None:
    """As in the output of a terminal, which has colours."""
    raw = json.dumps({"messages": [{"content": "\x1b[0m\u00e9" * 300}]}).encode()
    limits = ProxyLimits(body_bytes=len(raw))
    assert read_body(raw, "messages", None, limits).text_bytes == len(raw)


@pytest.mark.parametrize("wide", ["\N{GRINNING FACE}", "\N{SNOWMAN}"])
@pytest.mark.parametrize("write", ESCAPING)
def test_the_text_of_a_body_is_measured_as_it_is_in_memory(wide: str, write: Any) -> None:
    """A character outside of ASCII makes the others of its string up to four times as wide."""
    limits = ProxyLimits(body_bytes=4_000)
    narrow = write({"messages": [{"content": "a" * 3_000}]})
    raw = write({"messages": [{"content": "a" * 3_000 + wide}]})
    body = read_body(narrow, "messages", None, limits)
    for known in (None, body):
        with pytest.raises(UntouchableError, match="memory"):
            read_body(raw, "messages", known, limits)
    read_body(write({"messages": [{"content": "a" * 900 + wide}]}), "messages", body, limits)
    assert body.text_bytes == len(narrow)


def test_a_body_grows_up_to_the_limits_and_may_shrink_again() -> None:
    earlier, tail = None, orjson.dumps({"a": list(range(100))})[1:]
    for n in (5, 12, 5, 12, 20, 3, 9):
        raw = b'{"messages":%b,%b' % (orjson.dumps([{"n": i} for i in range(n)]), tail)
        earlier = read_body(raw, "messages", earlier, SMALL)
        assert len(earlier.messages) == n
    raw = b'{"messages":%b,%b' % (orjson.dumps([{"n": i} for i in range(21)]), tail)
    with pytest.raises(UntouchableError):
        read_body(raw, "messages", earlier, SMALL)


def test_a_string_behind_thousands_of_short_ones_is_read_as_json() -> None:
    messages = [{"role": "user", "content": [f"Hall {i}." for i in range(3_500)]}]
    sent = {"messages": [*messages, {"role": "user", "content": "Lüfte"}], "é": {"é": 1}}
    read = read_body(orjson.dumps(sent, option=orjson.OPT_INDENT_2), "messages")
    assert read.messages == sent["messages"]


def test_signs_in_texts_are_no_values() -> None:
    raw = orjson.dumps({"messages": [{"content": "f(a, [b], {c}) " * 100}]})
    assert read_body(raw, "messages", limits=SMALL).values <= 10


def test_the_values_of_a_message_are_counted_in_each_shape_of_a_growing_list() -> None:
    large = {"input": {str(i): i for i in range(150)}}
    earlier = read_body(orjson.dumps({"messages": [{"n": 1}, {"n": 2}]}), "messages")
    for messages in ([{"n": 1}, {"n": 2}, large], [{"n": 1}, large, {"n": 3}], [large, {"n": 2}]):
        raw = orjson.dumps({"messages": messages})
        with pytest.raises(UntouchableError, match="too many values"):
            read_body(raw, "messages", earlier, SMALL)
    several = [{"n": list(range(60))}] * 3
    assert (
        len(read_body(orjson.dumps({"messages": several}), "messages", None, SMALL).messages) == 3
    )


@pytest.mark.parametrize(
    "made", [lambda size: b"0." + b"9" * size, lambda size: b"[1.50" + b" " * size + b"]"]
)
def test_a_long_text_without_strings_is_read_once(made: Callable[[int], bytes]) -> None:
    def body_of(size: int) -> bytes:
        return b'{"messages":[{"n": %b}]}' % made(size)

    read = read_body(body_of(60_000), "messages")
    assert written(read.messages[0]["n"]) in {made(60_000), b"[1.50]"}
    assert grows_at_most(lambda size: partial(read_body, body_of(size), "messages"), 60_000)
