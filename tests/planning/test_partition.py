"""Which messages a compaction replaces."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from policyctx.planning.compact import Replacing
from policyctx.policy.models import CharTokens
from policyctx.tokens.counter import counter_for
from tests.conversations import (
    Message,
    call,
    calls,
    chat_calls,
    chat_result,
    picture,
    results,
    session_of,
    user,
)
from tests.planning.plans import FACTS, planned

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


def test_all_messages_after_the_leading_system_messages_are_replaced() -> None:
    messages = [SYSTEM, SYSTEM, user(), said(), SYSTEM, user()]
    assert replaced(messages, "{keep_system_messages: false}") == [2, 3, 4, 5]


def test_system_messages_between_stay() -> None:
    messages = [SYSTEM, SYSTEM, user(), said(), SYSTEM, user()]
    assert replaced(messages) == [2, 3, 5]


def test_a_list_without_system_messages_is_replaced_whole() -> None:
    assert replaced([user(), said()]) == [0, 1]


@pytest.mark.parametrize("messages", [[], [SYSTEM], [SYSTEM, SYSTEM]])
def test_a_list_of_only_system_messages_is_not_replaced(messages: list[Message]) -> None:
    assert replaced(messages) == []


def test_the_reason_for_replacing_nothing_is_reported() -> None:
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
        ("{tokens: 3}", [0, 1, 2]),
        ("{tokens: 2}", [0, 1, 2, 3]),
        ("{tokens: 1%}", []),
        ("{max_tokens: 4}", [0, 1, 2]),
        ("{max_tokens: 3}", [0, 1, 2, 3]),
        ("{max_tokens: 1}", [0, 1, 2, 3, 4]),
        ("{max_tokens: 0}", [0, 1, 2, 3, 4, 5]),
        ("{max_tokens: 1%}", []),
    ],
)
def test_the_newest_stay_in_each_shape(shape: str, left: list[int]) -> None:
    messages = [*session_of("x" * 40), said("y" * 8), user("z" * 4), said("w" * 4)]
    assert replaced(messages, f"{{keep_recent: {shape}}}") == left


def test_kept_results_at_the_end_keep_their_calls() -> None:
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


def test_dropped_messages_count_neither_among_the_first_nor_the_newest() -> None:
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


def test_replaced_tokens_are_counted_after_the_earlier_steps() -> None:
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


def test_a_closed_gate_is_reported() -> None:
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


def test_pinned_items_are_reported() -> None:
    found = replacing(session_of("keep me", tool="todo"), more="tools: {todo: {pin: true}}")
    assert found is not None
    assert found.pinned == ("{}", "keep me")


_PLAN = {
    "type": "document",
    "title": "Plan",
    "source": {"type": "text", "media_type": "text/plain", "data": "Keep the port."},
}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ([picture()], ("[image image/png]",)),
        ([{"type": "text", "text": "seen"}, picture()], ("seen", "[image image/png]")),
        ([picture(), _PLAN], ("[image image/png]", "[document text/plain]\nPlan\nKeep the port.")),
    ],
)
@pytest.mark.parametrize(
    "more", ["tools: {shot: {pin: true}}", "items: {tool_result: {pin: true}}"]
)
def test_pinned_media_of_a_result_are_named_without_their_bytes(
    content: list[Any], found: tuple[str, ...], more: str
) -> None:
    messages = [user(), calls(("a", "shot")), results(("a", content)), user()]
    replaced = replacing(messages, more=more)
    assert replaced is not None
    assert tuple(text for text in replaced.pinned if text != "{}") == found


def test_pinned_media_of_the_user_or_of_a_result_that_is_not_pinned_are_named() -> None:
    more = "items: {image: {pin: true}, document: {pin: true}}"
    result = results(("a", [{"type": "text", "text": "seen"}, picture()]))
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "see"}, picture(), _PLAN]},
        calls(("a", "shot")),
        result,
        user(),
    ]
    replaced = replacing(messages, more=more)
    assert replaced is not None
    assert replaced.pinned == (
        "[image image/png]",
        "[document text/plain]\nPlan\nKeep the port.",
        "[image image/png]",
    )


def test_pins_that_leave_no_room_for_a_summary_are_reported() -> None:
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


FEW_WORDS = """\
    items: {user_message: {pin: true}}
    compaction: {summary: {max_words: 3}}
    steps: [{name: summarise, do: compact}]
    """


def test_more_pinned_words_than_the_summary_limit_are_reported() -> None:
    [outcome] = planned(FEW_WORDS, [user("one 二 three 四"), said()]).outcomes
    assert str(outcome.stopped) == (
        "pins_too_large: the pinned alone have 4 words, and the summary may have 3"
    )


@pytest.mark.parametrize(
    ("key", "sentence"),
    [
        ("max_tokens: 2", "the pinned alone have 5 tokens, and the summary may have 2"),
        ("max_chars: 9", "the pinned alone have 20 characters, and the summary may have 9"),
    ],
)
def test_more_pinned_text_than_another_limit_is_reported(key: str, sentence: str) -> None:
    text = FEW_WORDS.replace("max_words: 3", key)
    [outcome] = planned(text, [user("one two three four.."), said()]).outcomes
    assert outcome.stopped is not None
    assert outcome.stopped.sentence == sentence


def test_as_many_pinned_words_as_a_summary_may_have_are_not_too_many() -> None:
    found = planned(FEW_WORDS, [user("one 二 three"), said(), user("one 二 three")]).compaction
    assert found is not None
    assert found.pinned == ("one 二 three", "one 二 three")


CARRY = "{keep_newest_user_message: true, keep_recent: {messages: 1}}"


def carried(messages: list[Message], compaction: str = CARRY, more: str = "") -> int | None:
    found = replacing(messages, compaction, more)
    return None if found is None else found.parts.carried


def test_the_newest_user_message_may_stay_among_replaced_messages() -> None:
    messages = [SYSTEM, user("old"), said(), user("the task"), *session_of("one", "two")[1:]]
    assert replaced(messages, CARRY) == [1, 2, 4, 5]
    found = replacing(messages, CARRY)
    assert found is not None
    assert (found.parts.carried, found.messages) == (3, 4)


def test_the_newest_user_message_is_replaced_by_default() -> None:
    messages = [user("old"), said(), user("the task"), said(), said()]
    assert carried(messages, "{keep_recent: {messages: 1}}") is None


@pytest.mark.parametrize(
    ("messages", "compaction"),
    [
        ([user("old"), said(), user("the task")], CARRY),
        ([user("the task"), said(), said()], "{keep_newest_user_message: true, keep_first: 1}"),
    ],
)
def test_nothing_is_carried_if_the_newest_user_message_stays_anyway(
    messages: list[Message], compaction: str
) -> None:
    found = replacing(messages, compaction)
    assert found is not None
    assert found.parts.carried is None


def test_a_message_with_a_result_is_not_a_user_message() -> None:
    answered = results(("a", "x"))
    answered["content"].append({"type": "text", "text": "and hurry"})
    messages = [user("the task"), calls(("a", "Read")), answered, said(), said()]
    assert carried(messages) == 0


def test_a_message_that_was_dropped_is_not_carried() -> None:
    text = f"""\
        compaction: {CARRY}
        steps:
          - {{name: forget, do: drop, select: {{types: [user_message], min_chars: 100}}}}
          - {{name: summarise, do: compact}}
        """
    summary = user("[Conversation compressed]\n\nThe port is moved.")
    messages = [said("hm"), user("x" * 100), said(), summary, said("a" * 80), said()]
    found = planned(text, messages).compaction
    assert found is not None
    assert (found.parts.carried, found.messages) == (None, 4)


@pytest.mark.parametrize(
    ("keys", "messages", "why"),
    [
        ("", [SYSTEM], "no message follows the system messages"),
        (
            "keep_recent: {messages: 5}",
            [SYSTEM, user(), said()],
            "`keep_recent` keeps the newest 2 messages; calls stay with their results",
        ),
        ("keep_first: 4", [user(), said()], "`keep_first: 4` keeps every message"),
        (
            "keep_newest_user_message: true",
            [user()],
            "what is between stays: the user's newest message, or what no summary can tell",
        ),
    ],
)
def test_the_reason_for_replacing_nothing_says_what_keeps_the_messages(
    keys: str, messages: list[Message], why: str
) -> None:
    text = f"compaction: {{{keys}}}\nsteps: [{{name: summarise, do: compact}}]"
    [outcome] = planned(text, messages).outcomes
    assert outcome.stopped is not None
    assert outcome.stopped.sentence == f"there is nothing that it may replace: {why}"


def test_nothing_is_replaced_if_there_is_only_the_newest_user_message() -> None:
    text = f"compaction: {CARRY}\nsteps: [{{name: summarise, do: compact}}]"
    [outcome] = planned(text, [SYSTEM, user("the task"), said()]).outcomes
    assert outcome.stopped is not None
    assert outcome.stopped.code == "nothing_to_summarise"


def test_pins_in_the_carried_message_are_not_repeated_in_the_summary() -> None:
    more = "items: {user_message: {pin: true}}"
    messages = [user("old"), said(), user("the task"), said(), said()]
    found = replacing(messages, CARRY, more)
    assert found is not None
    assert found.pinned == ("old",)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (
            f"compaction: {CARRY}\nsteps: [{{name: summarise, do: compact}}]",
            ("compaction", "keep_newest_user_message"),
        ),
        (
            f"steps: [{{name: summarise, do: compact, compaction: {CARRY}}}]",
            ("steps", "summarise", "compaction", "keep_newest_user_message"),
        ),
    ],
)
def test_keeping_the_message_is_explained_by_the_policy_key(
    text: str, rule: tuple[str, ...]
) -> None:
    plan = planned(text, [user("old"), user("the task"), said(), said()])
    decision = plan.decision(1)
    assert (decision.action, decision.reason.code, decision.rule_path) == ("keep", "carried", rule)


@pytest.mark.parametrize("newest", ["w" * 4, "w" * 400])
def test_the_message_that_crosses_the_line_stays(newest: str) -> None:
    messages = [user("the task"), said(), user("more"), said(), user(newest)]
    assert replaced(messages, "{keep_recent: {tokens: 1}}") == [0, 1, 2, 3]


def test_the_message_that_crosses_a_maximum_leaves_unless_it_is_the_newest() -> None:
    messages = [user("the task"), said(), user("more"), said("y" * 400), user("w" * 4)]
    assert replaced(messages, "{keep_recent: {max_tokens: 50}}") == [0, 1, 2, 3]
    messages[-1] = user("w" * 400)
    assert replaced(messages, "{keep_recent: {max_tokens: 50}}") == [0, 1, 2, 3]


@pytest.mark.parametrize(("most", "left"), [(7, [0, 1, 2, 3]), (8, [0, 1, 2])])
def test_the_tokens_of_a_tail_include_those_that_each_message_costs(
    most: int, left: list[int]
) -> None:
    messages = [user("the task"), said(), user("more"), said("y" * 4), user("w" * 4)]
    steps = "steps: [{name: summarise, do: compact}]"
    text = f"compaction: {{keep_recent: {{max_tokens: {most}}}}}\n{steps}"
    counter = counter_for(CharTokens(chars_per_token=4, per_message=3))
    found = planned(text, messages, facts=replace(FACTS, counter=counter)).compaction
    assert found is not None
    assert list(found.parts) == left


def test_keeping_zero_tokens_keeps_nothing() -> None:
    messages = [user("the task"), said(), user("more")]
    assert replaced(messages, "{keep_recent: {tokens: 0}}") == [0, 1, 2]
