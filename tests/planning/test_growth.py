"""What a step costs grows with what it takes, and not with the list or with what left before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyctx.session import Session
from tests.conversations import Message, calls, results, user
from tests.counting import functions_called
from tests.drawing import IS_LONG
from tests.policies import policy

WINDOW = """\
store: {sync: never}
steps: [{name: slide, do: drop, select: {types: ["*"], unit: UNIT, keep_recent: {messages: 20}}}]
"""


def conversation(rounds: int) -> list[Message]:
    """Return rounds of a question, a call and a result; all questions have the same length."""
    messages = []
    for i in range(rounds):
        messages += [user(f"question {i:06}"), calls((f"c{i}", "Read")), results((f"c{i}", "text"))]
    return [*messages, user("and now?")]


def cost_of_one_call(rounds: int, unit: str, root: Path) -> int:
    """Return the functions that one call with the whole list calls."""
    session = Session(policy(WINDOW.replace("UNIT", unit)), root=root / str(rounds), session_id="s")
    messages = conversation(rounds)
    return functions_called(lambda: session.apply(messages))


def cost_of_last_turns(rounds: int, unit: str, root: Path) -> int:
    """Return the functions that the last ten rounds call in a session that is as long."""
    session = Session(policy(WINDOW.replace("UNIT", unit)), root=root / str(rounds), session_id="s")
    messages = conversation(rounds)
    last = len(messages) - 30

    def turns(start: int, stop: int) -> None:
        for end in range(start, stop, 3):
            session.apply(messages[:end])

    turns(1, last)
    return functions_called(lambda: turns(last, len(messages) + 1))


@pytest.mark.parametrize("unit", ["item", "group", "turn"])
def test_a_drop_in_one_call_costs_as_much_as_it_drops(unit: str, tmp_path: Path) -> None:
    cost_of_one_call(10, unit, tmp_path)  # what is called once
    first, second, third = (cost_of_one_call(n, unit, tmp_path) for n in (30, 60, 120))
    assert third - second < 2.1 * (second - first)


@pytest.mark.parametrize("unit", ["item", "group", "turn"])
def test_a_window_that_slides_costs_the_same_however_much_left_before(
    unit: str, tmp_path: Path
) -> None:
    cost_of_last_turns(20, unit, tmp_path)  # what is called once
    few, many = (cost_of_last_turns(rounds, unit, tmp_path) for rounds in (40, 160))
    assert many < 1.1 * few


def cost_of_a_plan(rounds: int, lines: int) -> int:
    """Return the functions that a plan of so many calls with their results calls."""
    messages: list[Message] = [user("Read the files.")]
    for i in range(rounds):
        messages += [calls((f"c{i}", "Read")), results((f"c{i}", f"line {i}\n" * lines))]
    session = Session("context-offload", session_id="s")
    return functions_called(lambda: session.plan(messages))


@pytest.mark.parametrize(("lines", "most"), [(4, 320), (800, 690)], ids=["kept", "offloaded"])
def test_a_plan_calls_few_functions_for_a_call_and_its_result(lines: int, most: int) -> None:
    cost_of_a_plan(3, lines)  # what is called once
    few, many = (cost_of_a_plan(rounds, lines) for rounds in (100, 200))
    assert many - few < most * 100


REPLIES = {
    "anthropic": """[
        {"role": "assistant", "content": [
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "cNUMBER", "name": "Read", "input": {"a": "NUMBER"}}]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "cNUMBER", "content": "text NUMBER"}]}]""",
    "chat": """[
        {"role": "assistant", "content": "I look.", "tool_calls": [
            {"id": "cNUMBER", "type": "function",
             "function": {"name": "Read", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "cNUMBER", "content": "text NUMBER"}]""",
    "responses": """[
        {"type": "reasoning", "id": "rsNUMBER", "summary": []},
        {"type": "message", "id": "mNUMBER", "role": "assistant",
         "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "cNUMBER", "name": "Read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "cNUMBER", "output": "text NUMBER"}]""",
    "responses, words with an id and no reasoning": """[
        {"type": "message", "id": "mNUMBER", "role": "assistant",
         "content": [{"type": "output_text", "text": "I look."}]},
        {"type": "function_call", "call_id": "cNUMBER", "name": "Read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "cNUMBER", "output": "text NUMBER"}]""",
    "responses, words without an id": """[
        {"role": "assistant", "content": "I look."},
        {"type": "function_call", "call_id": "cNUMBER", "name": "Read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "cNUMBER", "output": "text NUMBER"}]""",
}


def cost_of_last_replies(number: int, reply: str, policy_text: str, root: Path) -> int:
    """Return the functions that the last ten of so many replies in one turn call."""
    session = Session(policy(policy_text), root=root / str(number), session_id="s")
    replies = [json.loads(reply.replace("NUMBER", str(i))) for i in range(number)]
    messages = [user("Read."), *(message for each in replies for message in each)]
    length = len(replies[0])

    def replies_come(start: int, stop: int) -> None:
        for end in range(start, stop):
            session.apply(messages[: 1 + end * length])

    replies_come(1, number - 9)
    return functions_called(lambda: replies_come(number - 9, number + 1))


@pytest.mark.parametrize(
    ("form", "moment", "taken"),
    [
        (form, moment, taken)
        for i, form in enumerate(REPLIES)
        for j, moment in enumerate(("arrival", "model_call"))
        for k, taken in enumerate(("tool_result", "assistant_message"))
        if IS_LONG or (i + j + k) % 2 == 0
    ],
)
def test_what_is_left_of_replies_costs_nothing_later(
    form: str, moment: str, taken: str, tmp_path: Path
) -> None:
    """Words stay side by side where the calls beside them leave, and calls where words do."""
    recent = "" if moment == "arrival" else ", keep_recent: {items: 3}"
    step = f"{{name: a, on: {moment}, do: drop, select: {{types: [{taken}]{recent}}}}}"
    text = f"store: {{sync: never}}\nsteps: [{step}]\n"
    cost_of_last_replies(12, REPLIES[form], text, tmp_path)  # what is called once
    few, many = (cost_of_last_replies(n, REPLIES[form], text, tmp_path) for n in (20, 60))
    assert many < 1.2 * few
