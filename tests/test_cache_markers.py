"""`cache_control` markers that move from turn to turn in new copies of the list."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
from anthropic.types import TextBlock

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.definitions.items import Path as Place
from policyctx.messages.markers import markers_of, unmarked, with_markers
from policyctx.testing.steps.messages import shared_parts
from policyctx.turns.replacement import Replacement
from policyctx.turns.result import Result
from tests.conversations import call, calls, picture, results, session_of, user
from tests.policies import policy

MARKER = {"type": "ephemeral"}
OFFLOAD = """\
store: {sync: never}
min_chars: 20
items: {tool_result: {offload: true}, image: {offload: true}, tool_call: {offload: true}}
placeholder: "[{item_id}]"
steps:
  - {name: results, do: offload, must_shrink: false, select: {types: [tool_result], keep_recent: 1}}
  - {name: images, do: offload, must_shrink: false, select: {types: [image], keep_recent: 1}}
"""
THEN_CALLS = OFFLOAD + (
    "  - {name: calls, do: offload, when: {messages: {at_least: 8}},"
    " select: {types: [tool_call], keep_recent: 1}}\n"
)
DROP = """\
store: {sync: never}
items: {image: {offload: true}, assistant_message: {offload: true}}
steps: [{name: s, do: drop, select: {types: [image, assistant_message], keep_recent: 1}}]
"""
COMPACT = """\
store: {sync: never}
min_chars: 20
placeholder: "[{item_id}]"
items: {tool_result: {offload: true}}
compaction: {keep_recent: {messages: 4}}
steps:
  - {name: results, do: offload, must_shrink: false, select: {types: [tool_result], keep_recent: 1}}
  - {name: s, do: compact, when: {messages: {at_least: 8}}}
"""
LONG = [f"result {i} " * 5 for i in range(6)]
BLOCK: Place = ("content", 0)


def under(text: str, root: Path) -> Session:
    return Session(policy(text), root=root, session_id="s", clock=lambda: 0.0)


def marked(messages: Any, *places: tuple[int, Place]) -> list[Message]:
    """The messages as new objects with markers at these places, and no others."""
    found = [unmarked(message) for message in copy.deepcopy(list(messages))]
    for i, place in places:
        found[i] = with_markers(found[i], {**markers_of(found[i]), place: MARKER})
    return found


def places(result: Result) -> list[tuple[int, Place]]:
    return [(i, place) for i, m in enumerate(result.messages) for place in markers_of(m)]


def continues(one: Result, other: Result) -> bool:
    return one.plan.conversation is other.plan.conversation


def bare(result: Result) -> list[Message]:
    return list(map(unmarked, result.messages))


@pytest.mark.parametrize("form", ["given", "returned"])
def test_a_list_in_which_a_marker_moved_continues_the_known_one(form: str, tmp_path: Path) -> None:
    session, messages = under(OFFLOAD, tmp_path), session_of(*LONG)
    first = session.apply(marked(messages, (2, BLOCK), (12, BLOCK)))
    known = messages if form == "given" else first.messages
    given = marked(known, (0, ()), (4, BLOCK))
    second = session.apply(given)
    assert continues(first, second)
    assert places(first) == [(2, BLOCK), (12, BLOCK)]
    assert places(second) == [(0, ()), (4, BLOCK)]
    assert bare(second) == bare(first)
    edits = [(o, m) for o, m in zip(second.messages, given, strict=True) if o is not m]
    assert len(edits) == (5 if form == "given" else 0)
    assert all(shared_parts(output, message) == [] for output, message in edits)
    third = session.apply(marked(messages if form == "returned" else first.messages, (6, BLOCK)))
    assert continues(first, third)
    assert places(third) == [(6, BLOCK)]
    assert bare(third) == bare(first)


@pytest.mark.parametrize("form", ["given", "returned"])
def test_a_message_that_is_edited_again_has_the_markers_given_last(
    form: str, tmp_path: Path
) -> None:
    session = under(THEN_CALLS, tmp_path)
    messages = [user()]
    for i in range(2):
        written = call(f"c{i}", "write", {"path": "a", "text": "x" * 90})
        messages += [written, results((f"c{i}", LONG[i]))]
    both = {"role": "assistant", "content": [{"type": "text", "text": "so"}]}
    messages[1]["content"].insert(0, both["content"][0])
    first = session.apply(marked(messages, (1, BLOCK)))
    known = messages if form == "given" else list(first.messages)
    second = session.apply(marked(known, (1, ("content", 1)), (2, BLOCK)))
    more = [user("a"), calls(("c3", "Bash")), results(("c3", "x" * 30)), user("b")]
    known = messages if form == "given" else list(second.messages)
    third = session.apply(marked([*known, *more], (1, ("content", 1)), (2, BLOCK)))
    assert [d.item.item_id for d in third.plan.new if d.item.kind == "tool_call"] == ["c0"]
    assert continues(first, third)
    assert places(second) == places(third) == [(1, ("content", 1)), (2, BLOCK)]
    fourth = session.apply(marked([*messages, *more], (1, BLOCK)))
    assert places(fourth) == [(1, BLOCK)]
    assert bare(fourth) == bare(third)


@pytest.mark.parametrize("form", ["given", "returned"])
def test_markers_stay_on_their_block_when_blocks_before_it_are_dropped(
    form: str, tmp_path: Path
) -> None:
    session = under(DROP, tmp_path)
    asked = {"type": "text", "text": "look"}
    last = {"type": "text", "text": "and here"}
    messages = [user(), {"role": "user", "content": [picture(), asked, picture("x"), last]}]
    first = session.apply(messages)
    assert [block["type"] for block in first.messages[1]["content"]] == ["text", "image", "text"]
    second = session.apply(marked(messages, (1, ("content", 3))))
    assert places(second) == [(1, ("content", 2))]
    known, place = (messages, 1) if form == "given" else (list(second.messages), 0)
    third = session.apply(marked(known, (1, ("content", place))))
    assert continues(first, third)
    assert places(third) == [(1, BLOCK)]
    more = [{"role": "user", "content": [picture("y")]}]
    fourth = session.apply(marked([*known, *more], (1, ("content", place))))
    assert [block["type"] for block in fourth.messages[1]["content"]] == ["text", "text"]
    assert places(fourth) == [(1, BLOCK)]
    assert continues(first, fourth)


def test_a_marker_comes_and_goes_on_a_placeholder_of_an_image(tmp_path: Path) -> None:
    session = under(OFFLOAD, tmp_path)
    messages = [{"role": "user", "content": [picture("QUJD" * 9), picture()]}]
    assert places(session.apply(marked(messages, (0, BLOCK)))) == [(0, BLOCK)]
    assert places(session.apply(marked(messages))) == []
    result = session.apply(marked(messages, (0, BLOCK)))
    assert result.messages[0]["content"][0]["type"] == "text"
    assert places(result) == [(0, BLOCK)]


def test_markers_in_a_result_are_not_in_its_file(tmp_path: Path) -> None:
    session, block = under(OFFLOAD, tmp_path), {"type": "text", "text": "x" * 30}
    messages = session_of([block], "y")
    result = session.apply(marked(messages, (2, ("content", 0, "content", 0)), (2, BLOCK)))
    assert places(result) == [(2, BLOCK)]
    [file] = result.files
    assert session.read(file) == "x" * 30
    assert all(b"ephemeral" not in f.read_bytes() for f in tmp_path.rglob("*") if f.is_file())


@pytest.mark.parametrize("text", [OFFLOAD, COMPACT])
@pytest.mark.parametrize("form", ["given", "returned"])
def test_decisions_are_found_after_a_restart_with_moved_markers(
    form: str, text: str, tmp_path: Path
) -> None:
    content = [[{"type": "text", "text": long}] for long in LONG]
    messages = session_of(*content)
    inner: Place = ("content", 0, "content", 0)
    first = under(text, tmp_path).apply(marked(messages, (2, inner), (12, inner), (10, BLOCK)))
    known = messages if form == "given" else first.messages
    again = under(text, tmp_path).apply(marked(known, (1, BLOCK), (len(known) - 1, inner)))
    assert not again.plan.new
    assert again.compaction is None
    assert bare(again) == bare(first)
    assert (len(again.messages) - 1, inner) in places(again)


@pytest.mark.parametrize("form", ["given", "returned"])
def test_markers_move_in_a_list_that_was_compacted(form: str, tmp_path: Path) -> None:
    session, messages = under(COMPACT, tmp_path), session_of(*LONG)
    first = session.apply(marked(messages, (3, BLOCK), (10, BLOCK)))
    assert first.compacted
    length, edited = len(first.messages), len(first.messages) - 3
    assert places(first) == [(edited, BLOCK)]
    assert first.messages[edited]["content"][0]["content"] == "[c4]"
    assert first.sources == (None, 9, 10, 11, 12)

    known = messages if form == "given" else list(first.messages)
    last = len(known) - 1
    second = session.apply(marked(known, (last, BLOCK)))
    assert places(second) == [(length - 1, BLOCK)]
    assert bare(second) == bare(first)
    third = session.apply(marked([*known, user()], (last - 2, BLOCK), (last + 1, ())))
    assert places(third) == [(edited, BLOCK), (length, ())]
    assert bare(third)[:length] == bare(first)
    if form == "given":
        assert third.sources == (*first.sources, len(known))
        assert continues(second, third)


def test_a_returned_message_is_returned_as_given_after_a_compaction(tmp_path: Path) -> None:
    text = COMPACT.replace("{messages: 4}", "{messages: 6}")
    session, messages = under(text, tmp_path), session_of(*LONG[:4])
    returned = session.apply(messages[:7]).messages
    given = [*returned, *messages[7:]]
    first = session.apply(given)
    assert first.compacted
    again = marked(given, (4, BLOCK))
    second = session.apply(again)
    assert second.compaction is None
    assert bare(second) == bare(first)
    pairs = [(o, s) for o, s in zip(second.messages, second.sources, strict=True) if s is not None]
    assert [s for o, s in pairs if o is not again[s]] == [6]


DROP_THEN_COMPACT = """\
store: {sync: never}
items: {image: {offload: true}}
compaction: {keep_recent: {messages: 5}}
steps:
  - {name: s, do: drop, select: {types: [image], keep_recent: 1}}
  - {name: c, do: compact, when: {messages: {at_least: 6}}}
"""


def test_a_marker_stays_on_its_block_when_a_returned_message_is_edited_and_compacted(
    tmp_path: Path,
) -> None:
    session = under(DROP_THEN_COMPACT, tmp_path)
    words = {"type": "text", "text": "look"}
    begin = [user(), {"role": "assistant", "content": "yes"}]
    begin += [{"role": "user", "content": [picture("a"), picture("b"), words]}]
    returned = session.apply(begin).messages
    assert len(returned[2]["content"]) == 2
    reply = {"role": "assistant", "content": "so"}
    given = [*returned, reply, {"role": "user", "content": [picture("c"), words]}, reply, user()]
    first = session.apply(given)
    assert first.compacted
    assert [source for source in first.sources if source is not None] == [2, 3, 4, 5, 6]
    second = session.apply(marked(given, (2, ("content", 1))))
    assert places(second) == [(second.sources.index(2), BLOCK)]
    assert bare(second) == bare(first)


def test_a_compaction_recorded_with_markers_in_its_hash_is_recognised(tmp_path: Path) -> None:
    messages = session_of(*LONG)
    given = marked(messages, (2, BLOCK), (12, BLOCK))
    first = under(COMPACT, tmp_path).apply(given)
    assert first.compaction is not None
    made = first.compaction.replacement
    earlier = {name: value for name, value in made.record().items() if name != "drops"}
    with_hash = Replacement.of({**earlier, "sha256": _earlier_digest(given, made)})
    assert with_hash is not None
    assert with_hash.sha256 != made.sha256
    session = under(COMPACT, tmp_path / "other")
    session.store.remember([with_hash.record()])
    result = session.apply(given)
    assert result.compaction is None
    assert result.sources == first.sources


def _earlier_digest(messages: list[Message], made: Replacement) -> str:
    from policyctx.turns.replacement import _digest  # noqa: PLC0415 - what is recorded

    return _digest(messages[made.skipped : made.skipped + made.count])


@pytest.mark.parametrize("form", ["given", "returned"])
def test_markers_of_sdk_blocks_move(form: str, tmp_path: Path) -> None:
    session = under(OFFLOAD, tmp_path)
    said = TextBlock(type="text", text="here", citations=None)
    messages: list[Any] = session_of(*LONG[:2])
    messages[2]["content"].append(said)
    first = session.apply(messages)
    known = messages if form == "given" else list(first.messages)
    second = session.apply(marked(known, (2, ("content", 1))))
    assert continues(first, second)
    assert places(second) == [(2, ("content", 1))]
    assert second.messages[2]["content"][0]["content"] == "[c0]"
    third = session.apply(marked(known))
    assert continues(first, third)
    assert places(third) == []
    assert third.messages[2] == first.messages[2]


@pytest.mark.parametrize(
    "other",
    [
        call("c0", "Bash", {"cache_control": MARKER}),
        results(("c0", '{"cache_control": 1}')),
    ],
)
def test_data_of_that_name_is_compared(other: Message, tmp_path: Path) -> None:
    session = under(OFFLOAD, tmp_path)
    plain = call("c0", "Bash", {}) if other["role"] == "assistant" else results(("c0", "{}"))
    first = session.apply([user(), plain])
    second = session.apply([user(), other])
    assert not continues(first, second)
    assert second.messages[1] is other


def test_a_dict_continues_with_markers_the_list_that_held_an_object(tmp_path: Path) -> None:
    session = under(OFFLOAD, tmp_path)
    said = TextBlock(type="text", text="here", citations=None)
    messages: list[Any] = [*session_of(*LONG[:2]), {"role": "assistant", "content": [said]}]
    first = session.apply(messages)
    saved = {"type": "text", "text": "here", "cache_control": MARKER}
    second = session.apply([*messages[:-1], {"role": "assistant", "content": [saved]}])
    assert continues(first, second)
    assert second.messages[-1]["content"] == [saved]
