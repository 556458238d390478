"""What a `drop` removes together: items, messages, groups, turns."""

from __future__ import annotations

import pytest

from tests.conversations import Message, chat_calls, chat_result, results, thinking, user
from tests.planning.plans import planned


def dropping(unit: str, select: str, more: str = "") -> str:
    return f"{more}\nsteps: [{{name: s, do: drop, select: {{unit: {unit}, {select}}}}}]"


def assistant(*blocks: object) -> Message:
    return {"role": "assistant", "content": [*blocks]}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def call_block(call_id: str) -> dict[str, object]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {}}


CHAT: list[Message] = [
    {"role": "system", "content": "be brief"},
    user("first"),
    assistant(thinking(), text("I look"), call_block("a"), call_block("b")),
    results(("a", "x"), ("b", "y")),
    assistant(text("done")),
    user("second"),
    assistant(text("yes")),
    user("third"),
]
# The same reply in the form in which each of its items is a message.
SPLIT: list[Message] = [
    user("first"),
    {"type": "function_call", "call_id": "a", "name": "Bash", "arguments": "{}"},
    {"type": "function_call", "call_id": "b", "name": "Read", "arguments": "{}"},
    {"type": "function_call_output", "call_id": "a", "output": "x"},
    {"type": "function_call_output", "call_id": "b", "output": "y"},
    user("second"),
]


def gone(policy: str, messages: list[Message]) -> list[int]:
    """Return the positions of the messages of which something leaves."""
    return sorted({d.item.message for d in planned(policy, messages).new})


@pytest.mark.parametrize(
    ("unit", "select", "messages"),
    [
        ("item", "types: [tool_result]", [2, 3]),
        ("message", "types: [tool_result]", [2, 3]),
        ("message", "types: [assistant_message], keep_recent: {turns: 2}", [2, 3, 4]),
        ("group", "types: [tool_call]", [2, 3]),
        ("turn", "types: [tool_call]", [1, 2, 3, 4]),
        ("turn", 'types: ["*"], keep_recent: {turns: 1}', [1, 2, 3, 4, 5, 6]),
        ("turn", 'types: ["*"], keep_recent: {messages: 2}', [1, 2, 3, 4]),
        ("group", 'types: ["*"], keep_recent: {messages: 3}', [1, 2, 3, 4]),
        # The assistant's message would come first.
        ("message", 'types: ["*"], keep_recent: {messages: 5}', []),
    ],
)
def test_a_unit_leaves_whole_or_stays(unit: str, select: str, messages: list[int]) -> None:
    assert gone(dropping(unit, select), CHAT) == messages


@pytest.mark.parametrize(("unit", "messages"), [("message", [1, 3]), ("group", [1, 2, 3, 4])])
def test_a_reply_of_several_messages_is_a_group(unit: str, messages: list[int]) -> None:
    assert gone(dropping(unit, "types: [tool_result], tools: Bash"), SPLIT) == messages


def test_a_chat_reply_with_parallel_calls_leaves_with_all_results() -> None:
    reply = chat_calls(("a", "Bash", "{}"), ("b", "Read", "{}"), content="both")
    messages = [user("t"), reply, chat_result("a", "x"), chat_result("b", "y"), user("more")]
    assert gone(dropping("message", "types: [tool_result], tools: Read"), messages) == [1, 2, 3]


@pytest.mark.parametrize(
    ("select", "more", "why"),
    [
        ("types: [tool_call]", "", ""),
        ("types: [tool_call, tool_result], tools: Bash, errors: false", "", "failed result"),
        ("types: [tool_call]", "items: {assistant_message: {pin: true}}", "pinned"),
        ('types: ["*"], except_tools: Read', "", "Read is excepted"),
        ("types: [assistant_message, tool_result], keep_recent: {messages: 2}", "", "2nd newest"),
    ],
)
def test_a_unit_stays_with_what_must_stay(select: str, more: str, why: str) -> None:
    reply = assistant(text("both"), call_block("a"))
    other = assistant(text("read"), {**call_block("b"), "name": "Read"})
    messages = [
        user("t"),
        reply,
        results(("a", "x"), error=True),
        other,
        results(("b", "y")),
        user("more"),
    ]
    found = planned(dropping("group", select, more), messages)
    left = [d.reason.sentence for d in found.decisions if d.reason.code == "unit_stays"]
    assert left if why else not left
    assert all(why in one for one in left)


def test_what_goes_along_has_the_reason_and_is_saved() -> None:
    new = planned(dropping("turn", "types: [tool_call]"), CHAT).new
    along = [d.reason.sentence for d in new if d.item.kind != "tool_call"]
    assert set(along) == {"it goes with its turn"}
    assert all(d.saves for d in new)
