"""A policy that summarises: what the summary stands for is out, and what stays keeps its place."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.diff import compared
from policyctx.replay.running import LoadedPolicy
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.simulation import simulated
from tests.conversations import call, results, session_of, user
from tests.policies import HEAD, policy
from tests.replay.sessions import turn_by_turn

LONG = "one more line of some output\n" * 20
COMPACTS = """
    items: {tool_result: {offload: true}}
    compaction: {keep_recent: {messages: 4}}
    steps:
      - {name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}
      - {name: summarise, do: compact, when: {messages: {over: 12}}}
"""


@pytest.fixture
def compacts() -> OffloadPolicy:
    return policy(COMPACTS)


def session(compacts: OffloadPolicy, *contents: str) -> SimulatedSession:
    return simulated(turn_by_turn(session_of(*contents)), compacts)


def test_compactions_and_summarised_items_are_counted(compacts: OffloadPolicy) -> None:
    found = session(compacts, *[f"{LONG}{i}" for i in range(12)])
    gone = [removal for removal in found.removals if removal.action == "summarise"]
    assert found.compactions > 0
    assert found.steps["summarise"].calls == found.compactions
    assert found.steps["summarise"].items == len(gone)
    assert all(removal.step == "summarise" for removal in gone)


def test_kept_items_keep_their_recorded_position(compacts: OffloadPolicy) -> None:
    messages = session_of(*[f"{LONG}{i}" for i in range(12)])
    found = simulated(turn_by_turn(messages), compacts)
    for removal in found.removals:
        if removal.item_type == "tool_result":
            number = int(removal.item_id[1:])
            assert removal.message == 2 * number + 2
            assert removal.position == 2 * number + 2


def test_the_newest_user_message_is_not_a_removal_and_keeps_its_position() -> None:
    carries = policy(
        COMPACTS.replace("compaction: {", "compaction: {keep_newest_user_message: true, ")
    )
    later = session_of(*[f"{LONG}{i}" for i in range(12)])
    messages = [user("old"), {"role": "assistant", "content": "done"}, *later]
    found = simulated(turn_by_turn(messages), carries)
    gone = [r for r in found.removals if r.action == "summarise"]
    assert found.compactions > 1
    assert [r.message for r in gone if r.item_type == "user_message"] == [0]
    for removal in found.removals:
        if removal.item_type == "tool_result":
            assert removal.message == 2 * int(removal.item_id[1:]) + 4


def test_each_result_is_retired_once_however_often_history_was_summarised(
    compacts: OffloadPolicy,
) -> None:
    found = session(compacts, *[f"{LONG}{i}" for i in range(20)])
    retired = [r.item_id for r in found.removals if r.action == "offload"]
    assert len(retired) == len(set(retired))
    assert found.compactions > 1


def test_the_reason_names_messages_as_they_were_recorded(compacts: OffloadPolicy) -> None:
    found = session(compacts, *[f"{LONG}{i}" for i in range(20)])
    for removal in found.removals:
        if removal.action == "summarise":
            first, last = map(int, removal.reason.split("messages ")[1].split(" to "))
            assert first <= removal.message <= last


def test_items_are_those_that_were_recorded(compacts: OffloadPolicy) -> None:
    messages = session_of(*[f"{LONG}{i}" for i in range(12)])
    items = simulated(turn_by_turn(messages), compacts, excerpt=10_000).items
    assert [item.message for item in items] == list(range(len(messages)))
    assert [item.text for item in items if item.item_type == "tool_result"] == [
        f"{LONG}{i}" for i in range(12)
    ]


def test_strings_found_only_in_the_replaced_history_are_missed() -> None:
    drops = policy(COMPACTS.replace("retire, do: offload", "retire, do: clear"))
    told = [{"at": "a"}, *({"at": str(i)} for i in range(9))]
    messages = [user("the task")]
    for i, arguments in enumerate(told):
        text = f"{LONG}{i}" if i else f"{LONG}src/core/tax_rates.py"
        messages += [call(f"c{i}", "look", arguments), results((f"c{i}", text))]
    messages.append(call("end", "look", {"at": "src/core/tax_rates.py"}))
    found = simulated(turn_by_turn(messages), drops)
    assert found.compactions > 0
    assert "c0" in {regret.removal.item_id for regret in found.regrets}


def test_a_summarising_policy_is_compared_with_one_that_does_not_summarise(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    mine.write_text(HEAD + dedent(COMPACTS), encoding="utf-8")
    recorded = turn_by_turn(session_of(*[f"{LONG}{i}" for i in range(12)]))
    policies = (
        LoadedPolicy(OffloadPolicy.load(str(mine))),
        LoadedPolicy(OffloadPolicy.load("small-context")),
    )
    found = compared(policies, recorded, "")
    assert found.differences
    for one in found.differences:
        assert one.first.action != one.second.action
        assert one.message == one.position


def test_a_summary_does_not_fail_in_a_replay_so_nothing_leaves_instead_of_it() -> None:
    waiting = "{name: let-go, do: drop, select: {types: [tool_result]}, when: {failed: summarise}}"
    under = policy(f"{COMPACTS.rstrip()}\n      - {waiting}")
    found = session(under, *[f"{LONG}{i}" for i in range(12)])
    assert found.compactions > 0
    assert found.steps["let-go"].calls == 0


def test_where_no_summary_helps_the_waiting_step_runs_in_a_replay() -> None:
    waiting = policy("""
        items: {tool_result: {offload: true}}
        compaction: {keep_recent: {messages: 7}}
        steps:
          - {name: summarise, do: compact, when: {messages: {over: 5}}}
          - name: let-go
            do: drop
            select: {types: [tool_result], unit: group, until: {messages: {under: 6}}}
            when: {failed: summarise}
    """)
    found = session(waiting, *[f"{LONG}{i}" for i in range(12)])
    assert found.steps["let-go"].calls > 0
    # The gate would open again behind a summary, and each would cost as much as the one before.
    assert found.compactions < found.steps["let-go"].calls
