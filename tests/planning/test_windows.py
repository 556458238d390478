"""Sliding windows: `keep_first`, `until: {messages}`, and a `drop` with `save: false`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from tests.conversations import Message, calls, results, session_of, user
from tests.planning.plans import adopt, outcomes, planner, read_more
from tests.policies import policy

WINDOW = """
store: {{sync: never}}
steps:
  - {{name: window, do: drop, {more}
      select: {{types: ["*"], unit: group, {select}}}}}
"""


def window(select: str, more: str = "") -> str:
    return WINDOW.format(select=select, more=more)


def said(count: int) -> list[Message]:
    """So many messages of the user and the assistant, in turns."""
    roles = ("user", "assistant")
    return [{"role": roles[i % 2], "content": f"words {i}"} for i in range(count)]


def numbers(messages: Sequence[Any]) -> list[int]:
    return [int(message["content"].split()[1]) for message in messages]


@pytest.mark.parametrize(
    ("select", "left", "behind_system_message"),
    [
        ("keep_first: {messages: 2}, until: {messages: {under: 6}}", [0, 1, 6, 7, 8], [0, 1, 7, 8]),
        ("keep_first: {messages: 1}, keep_recent: {messages: 3}", [0, 6, 7, 8], [0, 6, 7, 8]),
        ("keep_first: {messages: 9}", [*range(9)], [*range(9)]),
        ("keep_first: {messages: 0}, until: {messages: {under: 4}}", [0, 7, 8], [0, 8]),
    ],
)
def test_the_first_messages_stay_until_the_list_is_short(
    select: str, left: list[int], behind_system_message: list[int], tmp_path: Path
) -> None:
    system = {"role": "system", "content": "words -1"}
    for head, expected in (([], left), ([system], [-1, *behind_system_message])):
        one = Session(policy(window(select)), root=tmp_path / str(len(head)))
        assert numbers(one.apply([*head, *said(9)]).messages) == expected


def test_the_window_moves_and_keeps_its_beginning_in_each_form(tmp_path: Path) -> None:
    under = policy(window("keep_first: {messages: 1}, until: {messages: {under: 5}}"))
    full = said(13)
    one = Session(under, root=tmp_path / "one", session_id="s")
    two = Session(under, root=tmp_path / "two", session_id="s")
    sent: list[Message] = []
    for end in range(1, 14, 2):
        sent = [*sent, *full[max(0, end - 2) : end]]
        sent = list(two.apply(sent).messages)
        assert one.apply(full[:end]).messages == sent
        two = Session(under, root=tmp_path / "two", session_id="s")
        assert sent[0]["content"] == "words 0"
    assert numbers(sent) == [0, 10, 11, 12]


def reasoned(i: int) -> list[Message]:
    """A reply of the Responses API that reasons, speaks and calls a tool, and the output."""
    return [
        {"type": "reasoning", "id": f"rs_{i}", "summary": [], "encrypted_content": "EqoB"},
        {"type": "message", "id": f"msg_{i}", "role": "assistant", "content": f"I read {i}."},
        {"type": "function_call", "call_id": f"c{i}", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": f"c{i}", "output": f"text {i}"},
    ]


@pytest.mark.parametrize("unit", ["item", "message", "group"])
def test_a_window_moves_within_a_turn_in_which_the_model_reasons(unit: str, tmp_path: Path) -> None:
    text = window("keep_recent: {messages: 4}").replace("unit: group", f"unit: {unit}")
    session = Session(policy(text), root=tmp_path)
    replies = [reasoned(i) for i in range(6)]
    for end in range(1, 7):
        sent = session.apply([user(), *(item for reply in replies[:end] for item in reply)])
    assert sent.messages == [user(), *replies[-1]]


def test_a_result_stays_if_its_call_is_among_the_first() -> None:
    text = """
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: drop, select: {types: [tool_result], keep_first: {messages: 2}}}]
    """
    found = outcomes(text, [*session_of("x" * 50, "y" * 50), user("and now?")])
    assert found == {"c0": "keep first", "c1": "drop selected"}


def test_explain_says_that_a_message_is_among_the_first() -> None:
    found = planner(window("keep_first: {messages: 2}"), said(5))
    plan = found.plan(found.conversation.facts)
    [verdict] = plan.verdicts(1)
    assert str(verdict.reason) == "first: among the first messages, 2 kept"
    assert verdict.rule == "steps.window.select.keep_first"


def test_what_would_be_first_after_a_compaction_is_first_again() -> None:
    found = planner(window("keep_first: {messages: 1}, until: {messages: {under: 4}}"), said(7))
    adopt(found)
    assert sorted(found.conversation.removed) == [1, 2, 3, 4]
    read_more(found, said(9)[7:])
    adopt(found)
    assert sorted(found.conversation.removed) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("save", [True, False])
def test_a_drop_without_saving_writes_no_file(save: bool, tmp_path: Path) -> None:
    more = "" if save else "save: false,"
    under = policy(window("keep_recent: {messages: 1}", more))
    one = Session(under, root=tmp_path, session_id="s")
    result = one.apply(said(7))
    assert numbers(result.messages) == [6]
    files = [p for p in tmp_path.rglob("*.md") if p.is_file()]
    assert (len(files), len(result.files)) == ((6, 6) if save else (0, 0))
    assert [d.file is not None for d in result.plan.new] == [save] * 6
    again = Session(under, root=tmp_path, session_id="s")
    assert again.apply(said(7)).messages == result.messages
    assert [item.destroyed for item in again.items][:6] == [True] * 6


def test_a_drop_without_saving_keeps_the_file_that_an_earlier_step_wrote(tmp_path: Path) -> None:
    text = """
    store: {sync: never}
    items: {tool_result: {offload: true}}
    steps:
      - {name: first, do: offload, placeholder: "in {path}"}
      - {name: gone, do: drop, save: false, when: {messages: {over: LIMIT}},
         select: {types: [tool_result], keep_recent: 1}}
    """
    full = [
        *session_of("x" * 300, "y" * 300),
        user("and?"),
        calls(("c2", "Bash")),
        results(("c2", "z" * 300)),
    ]
    one = Session(policy(text.replace("LIMIT", "5")), root=tmp_path, session_id="s")
    one.apply(full[:5])
    dropped = {d.item.item_id: d.file for d in one.apply(full).plan.new if d.step == "gone"}
    assert one.read("c0") == "x" * 300
    assert dropped["c0"] is not None


def test_one_turn_that_offloads_and_drops_without_saving_writes_nothing(tmp_path: Path) -> None:
    text = """
    store: {sync: never}
    items: {tool_result: {offload: true}}
    steps:
      - {name: first, do: offload, placeholder: "in {path}"}
      - {name: gone, do: drop, save: false, select: {types: [tool_result]}}
    """
    one = Session(policy(text), root=tmp_path, session_id="s")
    result = one.apply([*session_of("x" * 300), user("and?")])
    assert [d.step for d in result.plan.new] == ["gone", "gone"]
    assert not list(tmp_path.rglob("*.md"))


def test_a_drop_without_saving_goes_on_where_files_cannot_be_written(tmp_path: Path) -> None:
    text = """
    store: {sync: never}
    items: {tool_result: {offload: true}}
    steps:
      - {name: results, do: offload, placeholder: "in {path}"}
      - {name: window, do: drop, save: false,
         select: {types: [user_message, assistant_message], keep_recent: {messages: 1}}}
    """
    (tmp_path / "tool_result").write_text("a file in the place of the folder", encoding="utf-8")
    one = Session(policy(text), root=tmp_path, session_id="s")
    pair = session_of("x" * 300)[1:]
    result = one.apply([*said(4), user("words 4"), *pair])
    assert list(result.messages) == [user("words 4"), *pair]
    assert [d.step for d in result.plan.new] == ["window"] * 4
    assert "not_saved" in {reason.code for _, reason in result.plan.outcomes[0].left}


def test_pairs_of_parallel_calls_leave_the_window_together(tmp_path: Path) -> None:
    under = policy(window("keep_first: {messages: 1}, until: {messages: {under: 4}}"))
    many = [
        user("the task"),
        *[m for i in range(4) for m in (calls((f"a{i}", "Bash"), (f"b{i}", "Bash")),
                                        results((f"a{i}", "x"), (f"b{i}", "y")))],
    ]  # fmt: skip
    sent = Session(under, root=tmp_path).apply(many).messages
    assert sent == [many[0], *many[-2:]]
