"""What the journal of a session says of its decisions, also where others have changed it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx.proxy.history import decisions_of, last_call, saved_end, saved_records
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import session_of
from tests.proxy.test_turning import TEXTS, Proxied

COMPACTS = """\
apiVersion: policyctx/v1
name: short
model: {context_window: 1000}
compaction: {keep_recent: {messages: 1}, summary: {by: extractive}}
steps: [{name: summarise, do: compact, when: {messages: {at_least: 9}}}]
"""


def records_of(proxied: Proxied) -> list[dict[str, Any]]:
    [name] = proxied.folders
    return saved_records(proxied.root, name)


def test_each_decision_has_its_call_its_rule_and_its_numbers(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    for n in (1, 3, 4):
        proxied.turn(session_of(*TEXTS[:n]))
    [name] = proxied.folders
    found = decisions_of(name, records_of(proxied))
    assert [(one.call, one.item, one.step) for one in found] == [
        (2, "c0", "retire"),
        (2, "c1", "retire"),
        (3, "c2", "retire"),
    ]
    for one in found:
        assert (one.session, one.action, one.type, one.tool) == (
            name,
            "offloaded",
            "tool_result",
            "Bash",
        )
        assert one.rule == "min_tokens"
        assert one.code == "old_and_large"
        assert one.numbers["threshold"] == 20
        assert one.freed_tokens is not None
        assert one.freed_tokens > 0
        assert one.at is not None


def test_the_calls_of_a_session_go_on_after_a_restart(tmp_path: Path) -> None:
    first = Proxied(tmp_path)
    for n in (1, 2, 3):
        first.turn(session_of(*TEXTS[:n]))
    again = Proxied(tmp_path)
    again.turn(session_of(*TEXTS[:4]))
    assert [one.call for one in decisions_of("s", records_of(again))] == [2, 3, 4]
    assert last_call(records_of(again)) == 4


def test_a_compaction_is_a_decision_too(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path, COMPACTS)
    for n in range(1, 8):
        proxied.turn(session_of(*TEXTS[:n]))
    found = decisions_of("s", records_of(proxied))
    made = [one for one in found if one.type == "messages"]
    assert made
    assert all(one.action == "summarised" and one.call and one.at for one in made)
    assert made[0].numbers["messages"] > 1


def test_a_turn_whose_reasons_were_lost_keeps_its_decisions(tmp_path: Path) -> None:
    proxied = Proxied(tmp_path)
    for n in (2, 3):
        proxied.turn(session_of(*TEXTS[:n]))
    records = records_of(proxied)
    first = next(i for i, one in enumerate(records) if one["record"] == "proxy_turn")
    found = decisions_of("s", records[:first] + records[first + 1 :])
    assert [(one.item, one.call, one.rule) for one in found] == [
        ("c0", 0, ""),
        ("c1", 2, "min_tokens"),
    ]


@pytest.mark.parametrize(
    "record",
    [
        {"record": "proxy_turn"},
        {"record": "proxy_turn", "call": "1", "at": "x", "decisions": 7},
        {"record": "proxy_turn", "call": None, "at": float("inf"), "decisions": [1, {}, [2]]},
        {"record": "proxy_turn", "decisions": [{"item_id": "c0", "numbers": [1], "rule": 3}]},
        {"record": "decision"},
        {"record": "compaction", "skipped": "x"},
        {"record": "proxy_end", "messages": "x"},
        {"record": 5},
        {},
    ],
)
def test_a_record_that_nobody_wrote_so_is_read_without_an_error(
    record: dict[str, Any], tmp_path: Path
) -> None:
    decided = {"record": "decision", "item_id": "c0", "state": "offloaded"}
    found = decisions_of("s", [decided, record])
    assert found[0].item == "c0"
    assert last_call([record]) == 0
    ContextFileSystem(tmp_path / "s", session="s", sync="never").remember([record])
    assert saved_end(tmp_path, "s") is None
