from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.definitions.actions import Action
from policyctx.messages.reading import items_of
from policyctx.planning.identities import Identities
from policyctx.planning.ledger import ItemKey, Ledger, LedgerEntry
from policyctx.planning.placeholders import content_hash
from tests.conversations import Message, calls, picture, results, session_of, user
from tests.planning.plans import ALL, adopted, planned, planner

OFFLOAD = f"{ALL}steps: [{{name: s, do: offload, must_shrink: false}}]"


def keys(messages: Sequence[Message], ledger: Ledger | None = None) -> list[ItemKey]:
    items = items_of(messages)
    identities = Identities(items, ledger or Ledger())
    return [identities.key(i) for i in range(len(items))]


def entry(key: ItemKey, text: str, action: Action = Action.OFFLOAD) -> LedgerEntry:
    placeholder = None if action == "drop" else "[gone]"
    return LedgerEntry(
        key, len(text), "id", key.kind, action, "step", "digest", placeholder, "folder/file.md"
    )


def test_results_are_known_by_their_id_and_their_content() -> None:
    messages = [user(), results(("a", "one")), results(("a", "two")), results(("b", "x"))]
    assert keys(messages)[1:] == [
        ("tool_result", "a", content_hash("one"), 0),
        ("tool_result", "a", content_hash("two"), 0),
        ("tool_result", "b", content_hash("x"), 0),
    ]


def test_messages_are_known_by_their_text_and_how_often_it_came_before() -> None:
    found = keys([user("go"), user("stop"), user("go")])
    assert [(key.sha256, key.occurrence) for key in found] == [
        (content_hash("go"), 0),
        (content_hash("stop"), 0),
        (content_hash("go"), 1),
    ]


def test_texts_of_equal_length_are_distinguished() -> None:
    found = keys([user("to"), user("go"), user("go")])
    assert [key.occurrence for key in found] == [0, 0, 1]


def test_a_placeholder_has_the_key_of_its_original() -> None:
    original = [user("go"), user("go")]
    found = keys(original)
    ledger = Ledger([entry(found[0], "go")])
    assert keys([user("[gone]"), user("go")], ledger) == found


def test_a_placeholder_of_another_call_is_a_text_like_any_other() -> None:
    [_, key] = keys([user(), results(("a", "one"))])
    ledger = Ledger([entry(key, "one")])
    [_, other] = items_of([user(), results(("b", "[gone]"))])
    assert not ledger.rendered(other)


GONE = {"type": "text", "text": "[gone]"}


def inside(*parts: Sequence[Message], ledger: Ledger | None = None) -> list[ItemKey]:
    """Return the keys of the media inside results of one id with these blocks."""
    found = keys([results(*(("a", list(part)) for part in parts if part))], ledger)
    return [key for key in found if key.kind != "tool_result"]


@pytest.mark.parametrize("split", [0, 1], ids=["one result", "two results of one id"])
def test_equal_texts_inside_results_stand_for_the_media_that_were_decided_first(split: int) -> None:
    document = {"type": "document", "source": {"type": "text", "data": "words"}}
    media = [picture(), document, picture()]
    whole = inside(media)
    for order in permutations(range(3)):
        ledger = Ledger([entry(whole[i], "[gone]") for i in order])
        for left in (order[:count] for count in range(4)):
            blocks = [GONE if i in left else block for i, block in enumerate(media)]
            found = inside(blocks[:split], blocks[split:], ledger=ledger)
            assert found == [key for i, key in enumerate(whole) if i not in left]


def test_a_text_inside_a_result_stands_for_no_image_that_was_dropped_since() -> None:
    first, second, third = inside([picture("AAAA"), picture("BBBB"), picture("BBBB")])
    ledger = Ledger([entry(first, "x"), entry(second, "x"), entry(first, "x", Action.DROP)])
    assert inside([GONE, picture("BBBB")], ledger=ledger) == [third]


def test_an_entry_is_found_for_the_very_content_only() -> None:
    [_, _, key] = keys(session_of("one"))
    ledger = Ledger([entry(key, "one")])
    for content, expected in (("one", ledger.entries[key]), ("two", None), ("three", None)):
        assert Identities(items_of(session_of(content)), ledger).entry(2) == expected


def test_the_key_of_an_item_does_not_change_as_the_list_grows() -> None:
    items = items_of([user("go"), user("go")])
    growing = list(items[:1])
    identities = Identities(growing, Ledger())
    first = identities.key(0)
    growing.append(items[1])
    assert identities.key(1) == first._replace(occurrence=1)
    assert identities.key(0) == first


def test_a_later_entry_replaces_the_earlier() -> None:
    [key] = keys([user("go")])
    ledger = Ledger([entry(key, "go"), entry(key, "go", Action.DROP)])
    assert len(ledger) == 1
    assert ledger.entries[key].action == "drop"


def test_an_earlier_placeholder_is_still_recognised_after_a_later_entry() -> None:
    [key] = keys([user("go")])
    ledger = Ledger([entry(key, "go")])
    ledger.add([entry(key, "go", Action.DROP)])
    assert keys([user("[gone]")], ledger) == [key]


def test_an_entry_survives_as_json() -> None:
    [key] = keys([user("go")])
    original = entry(key, "go")
    full = original._replace(
        alike=2, tool="Read", reads_as="user_message", names_file=True, tokens=5
    )
    assert LedgerEntry.of(json.loads(json.dumps(full.record()))) == full
    assert LedgerEntry.of(full.record() | {"behind": "of an earlier version"}) == full
    assert LedgerEntry.of(json.loads(json.dumps(original.record()))) == original


def test_its_files_are_known_by_absolute_and_relative_paths() -> None:
    [key] = keys([user("go")])
    ledger = Ledger([entry(key, "go")])
    assert ledger.paths == {"folder/file.md"}
    assert ledger.has_file("/anywhere/folder/file.md")
    assert ledger.has_file("./folder/file.md")
    assert ledger.has_file("folder/file.md")
    assert not ledger.has_file("file.md")
    assert not ledger.has_file("/another-folder/file.md")


@given(
    files=st.lists(st.text("ab/", min_size=1), min_size=1, max_size=5, unique=True),
    before=st.text("ab/.", max_size=6),
    ending=st.none() | st.text("ab/.", max_size=6),
)
def test_a_path_names_a_file_when_it_is_the_file_or_ends_in_it(
    files: list[str], before: str, ending: str | None
) -> None:
    path = before + (files[0] if ending is None else ending)
    ledger = Ledger(
        entry(ItemKey("tool_result", "a", content_hash(file), 0), file)._replace(relative_path=file)
        for file in files
    )
    expected = any(path == file or path.endswith(f"/{file}") for file in files)
    assert ledger.has_file(path) == expected


def test_a_file_is_found_at_the_end_of_a_path_of_a_million_folders() -> None:
    [key] = keys([user("go")])
    ledger = Ledger([entry(key, "go")])
    assert ledger.has_file("/" * 1_000_000 + "folder/file.md")
    assert not ledger.has_file("/" * 1_000_000 + "file.md")


def test_equal_items_keep_the_order_in_which_their_placeholders_came() -> None:
    first, second, third = keys([user("go"), user("go"), user("go")])
    ledger = Ledger(entry(key, "go") for key in (second, first, third, second))
    [item] = items_of([user("[gone]")])
    assert [*ledger.rendered(item)] == [second, first, third]


def test_the_newest_decision_of_an_item_stands_for_its_placeholder() -> None:
    [key] = keys([user("go")])
    newer = entry(key, "go")._replace(step="later")
    ledger = Ledger([entry(key, "go"), newer])
    [item] = items_of([user("[gone]")])
    assert ledger.rendered(item) == {key: newer}


def test_a_new_conversation_with_the_entries_repeats_the_decisions() -> None:
    messages = session_of("x" * 99, "y" * 99)
    before = adopted(OFFLOAD, messages)
    records = [each.record() for each in before.conversation.ledger.entries.values()]
    entries = (LedgerEntry.of(record) for record in json.loads(json.dumps(records)))
    restored = Ledger(entry for entry in entries if entry is not None)
    again = planner(OFFLOAD, messages, ledger=restored)
    left = {
        position: (fate.placeholder, fate.file)
        for position, fate in before.conversation.fates.items()
    }
    assert {
        i: (fate.placeholder, fate.file) for i, fate in again.conversation.fates.items()
    } == left
    assert planned(OFFLOAD, messages, ledger=restored).new == ()


def test_a_conversation_begun_anew_gives_no_path_twice() -> None:
    before = adopted(OFFLOAD, [user(), *session_of("x" * 99)[1:]])
    more = [calls(("c0", "Bash")), results(("c0", "z" * 99))]
    ledger = Ledger(before.conversation.ledger.entries.values())
    [decision] = planned(OFFLOAD, [user(), *session_of("x" * 99)[1:], *more], ledger=ledger).new
    assert decision.file is not None
    assert decision.file.relative_path == "tool_result/Bash/c0-1.md"


def test_equal_items_are_decided_one_by_one() -> None:
    recent = f"{ALL}steps: [{{name: s, do: offload, select: {{types: [user_message]}}}}]"
    messages = [user("x" * 999), user("x" * 999), user("new")]
    before = adopted(recent, messages)
    assert [each.key.occurrence for each in before.conversation.ledger.entries.values()] == [0, 1]
    longer = [*messages, user("x" * 999), user("newer")]
    [decision] = planned(recent, longer, ledger=before.conversation.ledger).new
    assert decision.position == 3
