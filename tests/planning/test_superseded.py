"""`select: {superseded: true}`: results that a later, standing one shows again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.planning.planner import Planner
from policyctx.replay.simulation import simulated
from tests.conversations import Message, call, chat_calls, chat_result, results, user
from tests.planning.plans import adopt, outcomes, planner, read_more
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

POLICY = """
store: {{sync: never}}
items: {{tool_result: {{offload: true}}}}
tools:
  Read: {{reads_file: path, reads_lines: {{first: offset, count: limit}}}}
  Edit: {{edits_file: path}}
steps:
  - {{name: stale, do: {do}, select: {{superseded: true{more}}}}}
"""


def stale(do: str = "clear", more: str = "") -> str:
    return POLICY.format(do=do, more=more)


def lines(first: int, last: int, mark: str = "") -> str:
    return "".join(f"{i}\tline {i}{mark} of the file\n" for i in range(first, last + 1))


def used(*pairs: tuple[str, dict[str, Any], str]) -> list[Message]:
    """The task, and a call and its result for each tool, input and text; ids are c0, c1, …"""
    found: list[Message] = [user("the task")]
    for i, (tool, given, text) in enumerate(pairs):
        found += [call(f"c{i}", tool, given), results((f"c{i}", text))]
    return found


def read(first: int | None, last: int, mark: str = "", path: str = "a.py") -> tuple[str, Any, str]:
    """A read of these lines of a file, all of it if there is no first one."""
    if first is None:
        return "Read", {"path": path}, lines(1, last, mark)
    asked = {"path": path, "offset": first, "limit": last - first + 1}
    return "Read", asked, lines(first, last, mark)


EDIT = ("Edit", {"path": "a.py", "old": "x", "new": "y"}, "The file was edited.")
LIST = ("Bash", {"command": "ls"}, "a.py b.py " * 40)


def taken(*pairs: tuple[str, dict[str, Any], str], more: str = "") -> list[str]:
    plan = planner(stale(more=more), used(*pairs)).plan(planner(stale(), []).conversation.facts)
    return [decision.item.item_id for decision in plan.new]


@pytest.mark.parametrize(
    ("pairs", "gone"),
    [
        ([read(None, 60), read(None, 60)], ["c0"]),
        ([read(None, 60), read(None, 70, "x")], ["c0"]),  # the file is another one by now
        ([read(10, 40), read(None, 60)], ["c0"]),
        ([read(10, 40), read(5, 45)], ["c0"]),
        ([read(10, 40), read(20, 60)], []),
        ([read(10, 40), read(12, 40)], []),
        ([read(None, 60), read(1, 30)], []),
        ([read(3000, 3100), read(None, 2000)], []),  # the tool shows no more than 2,000
        ([read(None, 60), read(None, 60, path="b.py")], []),
        ([read(None, 60), read(None, 60, path="./a.py")], ["c0"]),
        # An edit supersedes nothing, and may have moved the lines that are read again.
        ([read(None, 60), EDIT], []),
        ([read(None, 60), EDIT, read(None, 61)], ["c0"]),
        ([read(10, 40), EDIT, read(10, 40, "y")], []),
        ([read(10, 40), EDIT, read(None, 60, "y")], ["c0"]),
        ([EDIT, read(10, 40), read(10, 40)], ["c1"]),
        # The same text of the same call, whatever the tool.
        ([LIST, LIST], ["c0"]),
        ([LIST, ("Bash", {"command": "ls ."}, LIST[2])], []),
        ([LIST, ("Bash", {"command": "ls"}, LIST[2] + "c.py")], []),
        ([read(10, 40), EDIT, read(10, 40)], ["c0"]),
        ([read(10, 20), read(30, 40), read(15, 35), read(10, 40)], ["c0", "c1", "c2"]),
    ],
)
def test_a_later_result_supersedes_what_it_shows_again(
    pairs: list[tuple[str, dict[str, Any], str]], gone: list[str]
) -> None:
    assert taken(*pairs) == gone


def test_a_failed_read_shows_nothing() -> None:
    failed = results(("c9", "no such file " * 40), error=True)
    messages = [*used(read(None, 60)), call("c9", "Read", {"path": "a.py"}), failed]
    assert planner(stale(), messages).plan(planner(stale(), []).conversation.facts).new == ()


def test_the_reason_names_the_later_result() -> None:
    plan = planner(stale(), used(read(None, 60), read(None, 60))).plan(
        planner(stale(), []).conversation.facts
    )
    assert str(plan.new[0].reason) == "superseded: c1, a later result, shows it again"
    assert plan.new[0].rule == "steps.stale.select.superseded"
    [verdict] = plan.verdicts(4)
    assert verdict.reason.code == "not_superseded"
    assert outcomes(stale(), used(LIST)) == {"c0": "keep not_superseded"}


def test_keep_recent_counts_results_that_nothing_supersedes_too() -> None:
    pairs = [read(None, 60), LIST, read(None, 60), LIST, LIST]
    assert taken(*pairs) == ["c0", "c1", "c3"]
    assert taken(*pairs, more=", keep_recent: {items: 2, per: all}") == ["c0", "c1"]


def test_a_result_that_left_supersedes_nothing() -> None:
    text = stale().replace(
        "steps:",
        "steps:\n  - {name: old, do: offload, placeholder: '{path}', select: {tools: [Read],"
        " keep_recent: 1}}",
    )
    held = text.replace("superseded: true", "superseded: true, tools: [Read]").replace(
        "{name: stale, do: clear,", "{name: stale, do: clear, when: {messages: {over: 7}},"
    )
    found = planner(held, used(read(10, 20), read(None, 60), LIST))
    # `old` takes c0; the read c1 leaves later, when a read of another file is newer.
    adopt(found)
    read_more(found, used(*[LIST] * 3, read(None, 9, path="b.py"))[7:])
    adopt(found)
    assert {fate.step for fate in found.conversation.fates.values()} == {"old"}


def test_what_is_ready_stays_if_the_later_result_leaves_first() -> None:
    text = """
    items: {tool_result: {offload: true}}
    tools: {Read: {reads_file: path}}
    steps:
      - {name: stale, do: clear, when: {messages: {over: 7}}, select: {superseded: true}}
      - {name: whole, do: offload, placeholder: "{path}", select: {min_chars: 3000}}
    """
    found = planner(text, used(read(None, 30), read(None, 300)))
    adopt(found)
    assert {i: f.step for i, f in found.conversation.fates.items()} == {4: "whole"}
    read_more(found, used(LIST, LIST, LIST, LIST)[5:])
    adopt(found)
    assert "stale" in {f.step for f in found.conversation.fates.values()}
    assert 2 not in found.conversation.fates


def chat(pairs: Sequence[tuple[str, dict[str, Any], str]]) -> list[Message]:
    found: list[Message] = [user("the task")]
    for i, (tool, given, text) in enumerate(pairs):
        found += [chat_calls((f"c{i}", tool, json.dumps(given))), chat_result(f"c{i}", text)]
    return found


@pytest.mark.parametrize("do", ["clear", "offload", "drop"])
@pytest.mark.parametrize("shape", ["anthropic", "chat"])
def test_lists_and_restarts_agree(do: str, shape: str, tmp_path: Path) -> None:
    pairs = [read(None, 60), LIST, read(10, 20), LIST, read(None, 60), EDIT, read(None, 61)]
    full = used(*pairs) if shape == "anthropic" else chat(pairs)
    under = policy(stale(do))
    one = Session(under, root=tmp_path / "one", session_id="s")
    two = Session(under, root=tmp_path / "two", session_id="s")
    sent: list[Message] = []
    for end in range(1, len(full) + 1, 2):
        sent = [*sent, *full[max(0, end - 2) : end]]
        sent = list(two.apply(sent).messages)
        assert str(one.apply(full[:end]).messages) == str(sent).replace("/two/", "/one/")
        two = Session(under, root=tmp_path / "two", session_id="s")
    states = [e.action.past for e in one._memory().ledger.entries.values()]
    assert len(states) == (8 if do == "drop" else 4)


def test_a_unit_stays_if_a_result_in_it_is_shown_nowhere_else() -> None:
    both = [
        user("the task"),
        {"role": "assistant", "content": [call("c0", "Read", {"path": "a.py"})["content"][0],
                                          call("c1", "Bash", {"command": "ls"})["content"][0]]},
        results(("c0", lines(1, 60)), ("c1", LIST[2])),
        call("c2", "Read", {"path": "a.py"}),
        results(("c2", lines(1, 60))),
    ]  # fmt: skip
    found: Planner = planner(stale("drop", ", types: [tool_result], unit: group"), both)
    plan = found.plan(found.conversation.facts)
    assert plan.new == ()
    assert plan.verdicts(3)[0].reason.code == "unit_stays"


def test_a_replay_takes_stale_reads() -> None:
    recording = turn_by_turn([*used(read(None, 60), read(None, 60), LIST), user("well")])
    found = simulated(recording, policy(stale()))
    assert [removal.step for removal in found.removals] == ["stale"]
