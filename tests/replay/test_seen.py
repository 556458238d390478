from __future__ import annotations

from pathlib import Path

from policyctx.cli.plans import place
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.simulated import KeptItem, SimulatedSession
from policyctx.replay.simulation import SESSION_ID, replay_root, simulated
from policyctx.replay.unwritten_store import UnwrittenStore
from policyctx.session import Session
from tests.conversations import picture, results, session_of, user
from tests.policies import KEEP_FIVE, policy
from tests.replay.sessions import recording, turn_by_turn

LONG = "one more line of some output\n" * 20
KEEP_ONE = policy("""
    items: {tool_result: {offload: true}}
    steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}]
""")


def test_a_replay_keeps_no_texts_by_default() -> None:
    assert simulated(turn_by_turn(session_of(LONG, LONG)), KEEP_ONE).items == ()


def test_texts_are_cut_and_their_whole_length_is_kept() -> None:
    items = simulated(turn_by_turn(session_of("输出" * 50)), KEEP_ONE, excerpt=10).items
    assert [(item.text, item.chars) for item in items if item.tool and item.role == "user"] == [
        ("输出" * 5, 100)
    ]


def test_a_result_in_blocks_of_text_is_read_as_text() -> None:
    block = {"type": "text", "text": "1 of 2\n"}
    messages = session_of([block, {"type": "text", "text": "二"}], [{**block, "more": 1}], '[{"t')
    items = simulated(recording(messages), KEEP_ONE, excerpt=100).items
    assert [(item.text, item.chars) for item in items if item.item_type == "tool_result"] == [
        ("1 of 2\n\n二", 9),
        ("1 of 2\n", 7),
        ('[{"t', 4),
    ]


def test_a_removed_item_has_its_absence_and_placeholder() -> None:
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


def test_a_kept_item_has_the_reason_of_the_last_call() -> None:
    under = policy("""
        min_tokens: 20
        items: {tool_result: {offload: true}}
        steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 2}}]
    """)
    told = [*session_of("short", LONG, LONG, LONG), user("and now?")]
    session = simulated(recording(told, [user("more")], after=[user("last")]), under, excerpt=10)
    assert kept_by_id(session) == {
        "c0": "below_threshold: 1 < 20 tokens",
        "c2": "recent: 2nd newest of Bash, 2 kept",
        "c3": "recent: 1st newest of Bash, 2 kept",
    }
    [stays] = [item.kept for item in session.items if item.kept and item.item_id == "c0"]
    assert (stays.call, stays.step, stays.rule) == (2, "retire", "min_tokens")


def test_a_kept_item_has_the_reason_of_a_plan_of_the_last_list(tmp_path: Path) -> None:
    path = tmp_path / "keep-five.yaml"
    path.write_text(KEEP_FIVE, encoding="utf-8")
    under = OffloadPolicy.load(path)
    messages = session_of(*["short", LONG * 30] * 6, tool="Read")
    session = simulated(turn_by_turn(messages), under, excerpt=0)
    store = UnwrittenStore(replay_root(under), under.store)
    alone = Session(under, session_id=SESSION_ID, store=store)
    plan = alone.plan(messages[:-2])
    stay = [decision for decision in plan.decisions if decision.action == "keep"]
    found = [
        (item.position, told(item.kept), item.kept.place) for item in session.items if item.kept
    ]
    assert found == [
        (decision.position, str(decision.reason), place(under, decision.rule_path))
        for decision in stay
    ]
    assert {decision.reason.code for decision in stay} == {
        "recent",
        "below_threshold",
        "gate_closed",
    }


def test_each_list_has_the_reasons_of_its_own_last_call() -> None:
    lists = session_of(LONG, "a"), [user("b")], session_of("c")
    session = simulated(recording(*lists, anew=[2]), KEEP_ONE, excerpt=10)
    found = [(item.part, item.text, item.kept.call) for item in session.items if item.kept]
    assert found == [(0, "a", 2), (1, "c", 3)]


def test_an_item_inside_a_removed_result_is_not_kept() -> None:
    under = policy("""
        items: {tool_result: {offload: true}, image: {offload: true}}
        steps:
          - {name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}
          - {name: shorten, do: compact, when: {tokens: {at_least: 90%}}}
    """)
    with_picture = [{"type": "text", "text": LONG}, picture()]
    session = simulated(recording(session_of(with_picture, with_picture)), under, excerpt=10)
    pictures = [item for item in session.items if item.item_type == "image"]
    assert [item.kept is not None for item in pictures] == [False, True]


def test_items_kept_after_a_failed_summary_have_that_reason() -> None:
    under = policy("""
        steps: [{name: shorten, do: compact, when: {messages: {at_least: 2}}}]
        compaction: {summary: {must_shrink_to: 1%}}
    """)
    session = simulated(recording(session_of("short")), under, excerpt=10)
    assert session.warnings
    reasons = {told(item.kept) for item in session.items if item.kept}
    assert reasons == {"not_summarised: no summary was made; a warning says why"}


def kept_by_id(session: SimulatedSession) -> dict[str, str]:
    return {item.item_id: told(item.kept) for item in session.items if item.kept}


def told(kept: KeptItem) -> str:
    return f"{kept.code}: {kept.reason}"
