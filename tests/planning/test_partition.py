"""Which messages a compaction replaces."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.conversations import call, calls, chat_calls, chat_result, results, session_of, user
from tests.planning.plans import planned

if TYPE_CHECKING:
    from policyctx.planning.compacting import Replacing
    from tests.conversations import Message

SYSTEM: Message = {"role": "system", "content": "rules"}


def said(text: str = "done") -> Message:
    return {"role": "assistant", "content": text}


def replacing(messages: list[Message], compaction: str = "{}", more: str = "") -> Replacing | None:
    text = f"""\
        {more}
        compaction: {compaction}
        steps: [{{name: summarise, do: compact}}]
        """
    return planned(text, messages).compaction


def replaced(messages: list[Message], compaction: str = "{}", more: str = "") -> list[int]:
    found = replacing(messages, compaction, more)
    return [] if found is None else [i for i in range(len(messages)) if i in found.parts]


def test_all_but_the_leading_system_messages_is_replaced() -> None:
    messages = [SYSTEM, SYSTEM, user(), said(), SYSTEM, user()]
    assert replaced(messages) == [2, 3, 4, 5]


def test_a_list_without_system_messages_is_replaced_whole() -> None:
    assert replaced([user(), said()]) == [0, 1]


@pytest.mark.parametrize("messages", [[], [SYSTEM], [SYSTEM, SYSTEM]])
def test_of_a_list_with_nothing_else_nothing_is(messages: list[Message]) -> None:
    assert replaced(messages) == []


def test_why_nothing_is_replaced_is_told() -> None:
    [outcome] = planned("steps: [{name: summarise, do: compact}]", [SYSTEM]).outcomes
    assert outcome.stopped is not None
    assert outcome.stopped.code == "nothing_to_summarise"


def test_a_single_message_is_replaced() -> None:
    assert replaced([user()]) == [0]


def test_the_first_messages_may_stay() -> None:
    messages = [SYSTEM, user("the task"), said(), user(), said()]
    assert replaced(messages, "{keep_first: 1}") == [2, 3, 4]


def test_the_first_messages_stay_with_the_results_of_their_calls() -> None:
    messages = [*session_of("one", "two"), said()]
    assert replaced(messages, "{keep_first: 2}") == [3, 4, 5]


@pytest.mark.parametrize(
    ("shape", "left"),
    [
        ("{messages: 1}", [0, 1, 2, 3, 4]),
        ("{messages: 2}", [0, 1, 2, 3]),
        ("{turns: 1}", [0, 1, 2, 3]),
        ("{turns: 2}", []),
        ("{items: 3}", [0, 1, 2]),
        ("{tokens: 3}", [0, 1, 2, 3]),
        ("{tokens: 1%}", []),
    ],
)
def test_the_newest_stay_in_each_shape(shape: str, left: list[int]) -> None:
    messages = [*session_of("x" * 40), said("y" * 8), user("z" * 4), said("w" * 4)]
    assert replaced(messages, f"{{keep_recent: {shape}}}") == left


def test_what_stays_at_the_end_stays_with_its_calls() -> None:
    messages = [user(), calls(("a", "Read"), ("b", "Read")), results(("a", "x"), ("b", "y"))]
    assert replaced(messages, "{keep_recent: {messages: 1}}") == [0]


def test_parallel_calls_of_the_chat_api_stay_together() -> None:
    made = chat_calls(("a", "Read", "{}"), ("b", "Read", "{}"))
    messages = [user(), made, chat_result("a", "x"), chat_result("b", "y")]
    assert replaced(messages, "{keep_recent: {messages: 1}}") == [0]


def test_a_call_without_its_answer_stays_with_all_behind_it() -> None:
    messages = [user(), said(), user(), calls(("a", "Read"), ("b", "Read")), results(("a", "x"))]
    assert replaced(messages) == [0, 1, 2]


def test_an_abandoned_call_is_replaced() -> None:
    messages = [user(), call("a", "Read", {}), user("never mind"), said()]
    assert replaced(messages) == [0, 1, 2, 3]


def test_what_was_dropped_counts_neither_for_the_first_nor_for_the_newest() -> None:
    text = """\
        compaction: {keep_recent: {messages: 1}}
        steps:
          - {name: forget, do: drop, select: {types: [user_message], min_chars: 100}}
          - {name: summarise, do: compact}
        """
    messages = [user(), said(), user("x" * 100), said(), user("and now")]
    found = planned(text, messages).compaction
    assert found is not None
    assert (found.parts.start, found.parts.end, found.messages) == (0, 4, 3)


def test_how_much_is_replaced_is_told_as_the_steps_before_leave_it() -> None:
    offload = 'items: {tool_result: {offload: true}}\n        placeholder: "12345678"'
    text = f"""\
        {offload}
        steps: [{{name: s, do: offload}}, {{name: summarise, do: compact}}]
        """
    found = planned(text, session_of("x" * 400)).compaction
    assert found is not None
    assert (found.messages, found.tokens) == (3, 2 + 1 + 2)


def test_every_item_says_whether_the_summary_stands_for_it() -> None:
    text = "compaction: {keep_recent: {messages: 1}}\nsteps: [{name: summarise, do: compact}]"
    plan = planned(text, [SYSTEM, user(), said(), user("and now")])
    found = [(plan.decision(i).action, plan.decision(i).reason.code) for i in range(4)]
    assert found == [
        ("keep", "not_replaced"),
        ("summarise", "summarised"),
        ("summarise", "summarised"),
        ("keep", "not_replaced"),
    ]


def test_a_closed_gate_says_so() -> None:
    text = "steps: [{name: summarise, do: compact, when: {tokens: {at_least: 80%}}}]"
    plan = planned(text, [user()])
    assert plan.compaction is None
    assert plan.decision(0).reason.code == "gate_closed"


def test_a_step_may_have_settings_of_its_own() -> None:
    text = """\
        compaction: {keep_first: 1, keep_recent: {messages: 1}}
        steps: [{name: summarise, do: compact, compaction: {keep_first: 0}}]
        """
    found = planned(text, [user(), said(), user()]).compaction
    assert found is not None
    assert (found.parts.start, found.parts.end) == (0, 2)


def test_what_is_pinned_is_told() -> None:
    found = replacing(session_of("keep me", tool="todo"), more="tools: {todo: {pin: true}}")
    assert found is not None
    assert found.pinned == ("{}", "keep me")


def test_pins_that_leave_no_room_for_a_summary_are_told() -> None:
    text = """\
        tools: {todo: {pin: true}}
        compaction: {summary: {must_shrink_to: 20%}}
        steps: [{name: summarise, do: compact}]
        """
    [outcome] = planned(text, session_of("x" * 400, tool="todo")).outcomes
    assert outcome.stopped is not None
    assert outcome.stopped.sentence == (
        "the pinned alone have 101 tokens, and the summary may have 21"
    )
