from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from pathlib import Path as FilePath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from policyctx.cli.conversation import read_messages
from policyctx.definitions.items import UNKNOWN, Item, Message, Path, call_key
from policyctx.errors import MessagesError
from policyctx.messages.editing import Edit, edited_message, shortened_input
from policyctx.messages.reading import Reading, items_of
from policyctx.messages.shapes.chat import input_path
from policyctx.testing.strategies import message_lists
from tests.messages.edits import edited, some_edits
from tests.messages.odd_lists import odd_lists
from tests.openai_rules import role_of, type_of
from tests.recordings import each_recording

LISTS = st.one_of(message_lists(), odd_lists())


def nested(depth: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(depth):
        found = [found]
    return found


WRONG: dict[str, Message] = {
    "role": {"role": 5, "content": "go"},
    "key": {"role": "user", "content": [{"type": "new", "value": {("no", "JSON"): 1}}]},
    "depth": {"role": "user", "content": [{"type": "new", "value": nested(200_000)}]},
}


def read(*parts: Sequence[Message]) -> Reading:
    reading = Reading()
    for part in parts:
        reading.extend(part)
    return reading


def told_by(reading: Reading) -> tuple[object, ...]:
    """All that a reading tells."""
    return (
        reading.items, reading.partners, reading.turn_starts, reading.message_count,
        reading.pending,
    )  # fmt: skip


@given(messages=LISTS, data=st.data())
def test_a_list_read_piece_by_piece_reads_as_the_whole(
    messages: list[Message], data: st.DataObject
) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(messages)))))
    pieces = [messages[a:b] for a, b in zip([0, *cuts], [*cuts, len(messages)], strict=True)]
    assert told_by(read(*pieces)) == told_by(read(messages))


@given(messages=LISTS, more=LISTS, rest=LISTS, wrong=st.sampled_from(("role", "key", "depth")))
def test_an_invalid_message_leaves_the_reading_unchanged(
    messages: list[Message], more: list[Message], rest: list[Message], wrong: str
) -> None:
    reading = read(messages)
    with pytest.raises(MessagesError) as caught:
        reading.extend([*more, WRONG[wrong], *rest])
    assert caught.value.index == len(messages) + len(more)
    assert told_by(reading) == told_by(read(messages))
    reading.extend(rest)
    assert told_by(reading) == told_by(read(messages, rest))


def call_of(
    items: Sequence[Item], position: int, answered: set[int], replies: Sequence[int]
) -> int | None:
    """The call that a result answers, by the rule itself; `answered` are taken already."""
    key = call_key(items[position])
    calls = [
        i for i, item in enumerate(items[:position])
        if item.kind == "tool_call" and key is not None and call_key(item) == key
    ]  # fmt: skip
    latest = [i for i in calls if replies[i] == replies[calls[-1]]]
    return next((i for i in latest if i not in answered), None)


def pairs_of(items: Sequence[Item], messages: Sequence[Message]) -> dict[int, int]:
    calls: dict[int, int] = {}
    begins = replies_of(messages)
    replies = [begins[item.message] for item in items]
    for i, item in enumerate(items):
        if item.kind == "tool_result":
            found = call_of(items, i, set(calls), replies)
            if found is not None:
                calls[found] = i
    return calls


def calls_of_more(items: Sequence[Item], pairs: dict[int, int]) -> dict[int, int]:
    """The call of each further result with an id: the one that was answered last before it."""
    found: dict[int, int] = {}
    first = set(pairs.values())
    for i, item in enumerate(items):
        if item.kind == "tool_result" and i not in first:
            known = [
                (result, call) for call, result in pairs.items()
                if result < i and call_key(items[call]) == call_key(item) is not None
            ]  # fmt: skip
            if known:
                found[i] = max(known)[1]
    return found


def replies_of(messages: Sequence[Message]) -> list[int]:
    """The message with which the reply of each message begins.

    An item of the Responses API begins a reply of all assistant messages that follow directly, up
    to a message of another API with thinking of its own.
    """
    begins: list[int] = []
    is_split = False
    for i, message in enumerate(messages):
        is_models = role_of(message) == "assistant"
        content = [] if type_of(message) else message.get("content")
        blocks = content if isinstance(content, list) else []
        is_whole = any(block["type"] == "thinking" for block in blocks)
        goes_on = is_split and is_models and not is_whole
        is_split = goes_on or (is_models and type_of(message) is not None)
        begins.append(begins[-1] if goes_on else i)
    return begins


@given(messages=LISTS)
def test_results_are_paired_by_their_place(messages: list[Message]) -> None:
    reading = read(messages)
    pairs = pairs_of(reading.items, messages)
    more = calls_of_more(reading.items, pairs)
    assert reading.partners == pairs | {result: call for call, result in pairs.items()} | more
    assert all(result in reading.bound_to(call) for result, call in more.items())
    for call, result in pairs.items():
        assert reading.items[result].tool == reading.items[call].tool
        assert (
            reading.items[result].call_message == replies_of(messages)[reading.items[call].message]
        )
    for i, item in enumerate(reading.items):
        if item.kind == "tool_result" and i not in reading.partners:
            assert item.call_message is None


@given(messages=LISTS)
def test_a_call_is_pending_while_the_newest_reply_waits_for_an_answer(
    messages: list[Message],
) -> None:
    reading = read(messages)
    begins = replies_of(messages)
    newest = max((begins[i.message] for i in reading.items if i.role == "assistant"), default=None)
    waiting = [
        i for i, item in enumerate(reading.items)
        if item.kind == "tool_call" and begins[item.message] == newest
        and i not in reading.partners
    ]  # fmt: skip
    assert reading.pending == (newest if waiting else None)


@given(messages=LISTS)
def test_the_turns_are_known(messages: list[Message]) -> None:
    reading = read(messages)
    assert reading.message_count == len(messages)
    for item in reading.items:
        assert item.turn == sum(start <= item.message for start in reading.turn_starts)


@given(messages=LISTS)
def test_an_item_inside_of_a_result_follows_it(messages: list[Message]) -> None:
    items = read(messages).items
    for position, item in enumerate(items):
        if item.inside is not None:
            result = items[item.inside]
            assert (result.kind, position) == ("tool_result", item.inside + item.number)
            assert item.path[: len(result.path)] == result.path
            assert (item.tool, item.tool_use_id, item.call_message, item.error) == (
                result.tool, result.tool_use_id, result.call_message, result.error,
            )  # fmt: skip


def editable(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if item.kind not in {UNKNOWN, "thinking"}]


@given(messages=LISTS)
def test_texts_put_back_give_the_original(messages: list[Message]) -> None:
    outer = [item for item in editable(items_of(messages)) if item.inside is None]
    gone = {"tool_call": '{"gone":true}'}
    new = edited(messages, [Edit(item, gone.get(item.kind, "gone")) for item in outer])
    for message in new:
        for item in editable(items_of([message])):
            assert item.text in {"gone", '{"gone":true}'}
    restored = deepcopy(list(new))
    for item in outer:
        put_back(restored[item.message], messages[item.message], item)
    assert restored == messages


def put_back(message: Any, original: Any, item: Item) -> None:
    """Put the text of an item, or what it is the JSON of, where it was."""
    path = item.path
    if path[0] != "content" and type_of(original) is None:
        call = original[path[0]][path[1]] if len(path) > 1 else original[path[0]]
        path = (*path, *input_path(call))
    *folders, last = path
    for part in folders:
        message, original = message[part], original[part]
    value = original[last]
    message[last] = item.text if isinstance(value, str) else value and json.loads(item.whole)


@given(messages=LISTS, data=st.data())
def test_an_edit_changes_only_the_named_item(messages: list[Message], data: st.DataObject) -> None:
    edits = data.draw(some_edits(items_of(messages)))
    by_message: dict[int, dict[Path, Edit]] = defaultdict(dict)
    for edit in edits:
        by_message[edit.item.message][edit.item.path] = edit
    by_hand = [
        left_of(message, rebuilt(message, (), by_message[i])) if i in by_message else message
        for i, message in enumerate(messages)
    ]
    assert edited(messages, edits) == [message for message in by_hand if message is not None]


GONE = object()


def rebuilt(value: Any, path: Path, edits: Mapping[Path, Edit]) -> Any:
    """What is at `path` once the edits are made, or `GONE`; part by part, from the top."""
    removals = [key for key, edit in edits.items() if edit.text is None]
    if path and isinstance(path[-1], int) and any(path in {key, key[:-1]} for key in removals):
        return GONE
    if path in edits:
        if not path:  # a whole item, such as reasoning
            return None
        return (
            None if (text := edits[path].text) is None else renewed(value, edits[path].item, text)
        )
    if isinstance(value, dict):
        return {key: rebuilt(part, (*path, key), edits) for key, part in value.items()}
    if isinstance(value, list):
        parts = [rebuilt(part, (*path, i), edits) for i, part in enumerate(value)]
        left = [part for part in parts if part is not GONE]
        is_inner = len(path) > 1 or path == ("output",)
        return left if left or not value else ("[Content removed]" if is_inner else "")
    return value


def renewed(value: Any, item: Item, text: str) -> Any:
    if item.kind in {"image", "document"}:
        return {"type": "input_text" if is_input(value) else "text", "text": text}
    if item.kind != "tool_call":
        return text
    if item.path[0] == "content" or item.path == ("action",):
        return json.loads(text)
    if item.path in {("arguments",), ("input",)}:
        return text
    for holder, field in (("function", "arguments"), ("custom", "input")):
        if holder in value:
            sent = value[holder][field]
            given = text if isinstance(sent, str) else json.loads(text)
            return {**value, holder: {**value[holder], field: given}}
    return {**value, "arguments": text}


def is_input(block: Any) -> bool:
    return str(block["type"]).startswith("input_")


def holds_result_blocks(message: Message) -> bool:
    content = message["content"]
    return isinstance(content, list) and any(part["type"] == "tool_result" for part in content)


def left_of(old: Message, new: Message | None) -> Message | None:
    if new is None:
        return None
    if "role" not in old:  # an item of the Responses API is left without its text, or removed
        fields = ("arguments", "input", "action", "output")
        return None if any(field in new and new[field] is None for field in fields) else new
    if type_of(old) == "message":
        return new if new["content"] else None
    new = {key: part for key, part in new.items() if key == "content" or part or not old[key]}
    if old["role"] in {"tool", "function"}:
        if old["content"] and new["content"] == "":  # a provider refuses an empty result
            new["content"] = "[Content removed]"
            return None if holds_result_blocks(old) else new
        return new if new["content"] is not None else None
    if old.get("content") and not new["content"]:
        new["content"] = None
    says_something = new["content"] or new.get("tool_calls") or new.get("function_call")
    return new if says_something else None


@given(messages=LISTS, data=st.data())
def test_an_edit_does_not_change_its_input_and_shares_nothing_with_it(
    messages: list[Message], data: st.DataObject
) -> None:
    before = deepcopy(messages)
    for i, message in enumerate(messages):
        items = [item for item in items_of(messages) if item.message == i]
        if edits := data.draw(some_edits(items)):
            new = edited_message(message, edits)
            assert not {*map(id, mutable_parts(new))} & {*map(id, mutable_parts(message))}
    assert messages == before


def mutable_parts(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from mutable_parts(part)


@given(messages=LISTS)
@example(messages=[{"type": "custom_tool_call", "call_id": "c", "name": "n", "input": '{"a":1}'}])
@example(messages=[{"type": "custom_tool_call", "call_id": "c", "name": "n", "input": "{a"}])
def test_texts_in_inputs_are_replaced_at_any_place(messages: list[Message]) -> None:
    for item in items_of(messages):
        if item.kind == "tool_call":
            value = json_object(item.text)
            short = shortened_input(item.text, quoted)
            if (expected := shortened(value)) == value:
                assert short is None
            else:
                assert short is not None
                assert json.loads(short) == expected


def json_object(text: str) -> Any:
    """Return the JSON object that a text is; None if it is none, as the text of a custom tool."""
    with suppress(ValueError):
        value = json.loads(text)
        return value if isinstance(value, dict) else None
    return None


def quoted(text: str) -> str:
    """Return another text than the one given, so that each replacement is a change."""
    return f"<{text}>"


def shortened(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: shortened(part) for key, part in value.items()}
    if isinstance(value, list):
        return [*map(shortened, value)]
    return quoted(value) if isinstance(value, str) else value


@each_recording("claude-code", "openai-chat")
def test_recordings_are_read_and_paired_turn_by_turn(path: FilePath) -> None:
    messages = read_messages(str(path)).request.messages
    reading = Reading()
    for end in range(0, len(messages) + 3, 3):
        reading.extend(messages[end : end + 3])
    assert tuple(reading.items) == items_of(messages)
    pairs = pairs_of(reading.items, messages)
    more = calls_of_more(reading.items, pairs)
    assert reading.partners == pairs | {result: call for call, result in pairs.items()} | more
    assert all(result in reading.bound_to(call) for result, call in more.items())
