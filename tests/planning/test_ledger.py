from __future__ import annotations

from policyctx.messages.reading import items_of
from policyctx.planning.ledger import Entry, Ledger
from policyctx.planning.placeholders import content_hash
from tests.conversations import results, session_of, user


def entry(text: str, placeholder: str = "[gone]") -> Entry:
    return Entry("step", placeholder, content_hash(text), "file.md")


def test_results_are_known_by_their_id_and_their_content() -> None:
    items = items_of([user(), results(("a", "one")), results(("a", "two")), results(("b", "x"))])
    keys = Ledger().keys(items)
    identities = [f"a {content_hash('one')}", f"a {content_hash('two')}", f"b {content_hash('x')}"]
    assert keys[1:] == tuple(("tool_result", identity, 0) for identity in identities)


def test_messages_are_known_by_their_text_and_how_often_it_came_before() -> None:
    keys = Ledger().keys(items_of([user("go"), user("stop"), user("go")]))
    assert [(identity, count) for _, identity, count in keys] == [
        (content_hash("go"), 0),
        (content_hash("stop"), 0),
        (content_hash("go"), 1),
    ]


def test_a_placeholder_counts_as_what_it_stands_for() -> None:
    original = items_of([user("go"), user("go")])
    keys = Ledger().keys(original)
    ledger = Ledger().with_entries({keys[0]: entry("go")})
    assert ledger.keys(items_of([user("[gone]"), user("go")])) == keys


def test_an_entry_is_found_for_the_very_content_only() -> None:
    [_, _, item] = items_of(session_of("one"))
    [_, _, other] = items_of(session_of("two"))
    [_, _, key] = Ledger().keys(items_of(session_of("one")))
    [_, _, other_key] = Ledger().keys(items_of(session_of("two")))
    ledger = Ledger().with_entries({key: entry("one")})
    assert ledger.entry(key, item) == entry("one")
    assert ledger.entry(other_key, other) is None


def test_adding_gives_a_new_ledger_and_adding_nothing_the_same() -> None:
    ledger = Ledger()
    assert ledger.with_entries({}) is ledger
    more = ledger.with_entries({("tool_result", "a", 0): entry("x")})
    assert ledger.entries == {}
    assert more.placeholders == {"[gone]": content_hash("x")}
