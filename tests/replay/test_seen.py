from __future__ import annotations

from policyctx.replay.simulation import simulated
from tests.conversations import picture, results, session_of, user
from tests.policies import policy
from tests.replay.sessions import recording, turn_by_turn

LONG = "one more line of some output\n" * 20
KEEP_ONE = policy("""
    items: {tool_result: {offload: true}}
    steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}]
""")


def test_a_replay_keeps_no_texts_unless_it_is_asked_to() -> None:
    assert simulated(turn_by_turn(session_of(LONG, LONG)), KEEP_ONE).items == ()


def test_texts_are_cut_and_their_whole_length_is_told() -> None:
    items = simulated(turn_by_turn(session_of("输出" * 50)), KEEP_ONE, excerpt=10).items
    assert [(item.text, item.chars) for item in items if item.tool and item.role == "user"] == [
        ("输出" * 5, 100)
    ]


def test_what_was_removed_tells_since_when_and_what_it_left() -> None:
    session = simulated(turn_by_turn(session_of(LONG, LONG, LONG)), KEEP_ONE, excerpt=40)
    removal = session.removals[0]
    [item] = [item for item in session.items if item.position == removal.position]
    [absence] = item.absences
    assert (item.arrived, absence.since, absence.until) == (2, removal.call, float("inf"))
    assert absence.left
    assert len(absence.left) <= 40


def test_items_after_the_last_call_are_kept_too() -> None:
    session = simulated(recording([user("a")], after=[user("last")]), KEEP_ONE, excerpt=10)
    assert [(item.text, item.arrived) for item in session.items] == [("a", 1), ("last", 2)]


def test_items_of_a_list_begun_anew_belong_to_another_part() -> None:
    groups = ([user("a")], [user("summary")])
    session = simulated(recording(*groups, anew=[1]), KEEP_ONE, excerpt=10)
    assert [(item.part, item.text) for item in session.items] == [(0, "a"), (1, "summary")]


def test_the_bytes_of_an_image_are_not_kept() -> None:
    data = "iVBORw0KGgo" * 90
    messages = [*session_of("ok"), results(("c0", [picture(data)]))]
    session = simulated(recording(messages), KEEP_ONE, excerpt=10_000)
    assert sum(item.media for item in session.items if not item.inside) == 1
    assert not any(data in item.text for item in session.items)
