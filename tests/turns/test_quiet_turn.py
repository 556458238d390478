"""A turn that decides nothing costs what is new in it, however long the list is."""

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.policy.models import Policy
from tests.counting import lines_run

_STEP = {
    "name": "old",
    "do": "offload",
    "select": {"types": ["tool_result"], "keep_recent": {"items": 3, "per": "all"}},
}
POLICY = Policy.model_validate(
    {
        "apiVersion": "policyctx/v1",
        "name": "offload-old",
        "store": {"sync": "never"},
        "items": {"tool_result": {"offload": True}},
        "steps": [_STEP],
    }
)


def turn(number: int) -> list[Message]:
    """Return a call and its result."""
    call = {"type": "tool_use", "id": f"c{number}", "name": "Read", "input": {"path": f"{number}"}}
    result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": f"{number} " * 500}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]


def conversation(turns: int) -> list[Message]:
    """Return a question, and turns with a large result each."""
    messages: list[Message] = [{"role": "user", "content": "Read the files."}]
    for number in range(turns):
        messages += turn(number)
    return messages


def lines_of_a_turn(turns: int, root: Path, *, comes_back: bool) -> int:
    """Return the lines that a turn runs which offloads one result after so many turns."""
    session = Session(POLICY, root=root, session_id=f"of-{turns}")
    messages = conversation(turns)
    for number in range(turns, turns + 2):  # the first turn reads the list
        output = [*session.apply(messages).messages]
        messages = (output if comes_back else messages) + turn(number)
    return lines_run(lambda: session.apply(messages))


@pytest.mark.parametrize("comes_back", [False, True])
def test_a_turn_runs_two_lines_for_a_message_that_was_edited_before(
    tmp_path: Path, *, comes_back: bool
) -> None:
    few = lines_of_a_turn(20, tmp_path, comes_back=comes_back)
    many = lines_of_a_turn(320, tmp_path, comes_back=comes_back)
    assert many - few < 2 * 300 + 100


@pytest.mark.parametrize("position", [0, 2, 40, 80])
def test_a_message_that_changed_before_the_newest_known_one_is_noticed(
    tmp_path: Path, position: int
) -> None:
    messages = conversation(41)
    session = Session(POLICY, root=tmp_path)
    session.apply(messages)
    changed = [*messages]
    new: Message = {**messages[position]}
    if position:
        new["content"] = [{**new["content"][0], "content": "Something else."}]
    else:
        new["content"] = "Something else."
    changed[position] = new
    assert "Something else." in str(session.apply([*changed, *turn(41)]).messages[position])


@pytest.mark.parametrize("mixed", [False, True])
def test_equal_messages_that_are_new_are_returned(tmp_path: Path, *, mixed: bool) -> None:
    messages = conversation(10)
    session = Session(POLICY, root=tmp_path)
    session.apply(messages)
    again = [{**message} for message in conversation(11)]
    if mixed:
        again[1::2] = messages[1::2] + again[len(messages) :: 2]
        again[len(messages) - 1] = messages[-1]
    result = session.apply(again)
    edited = {fate.item.message for fate in result.plan.conversation.fates.values()}
    unedited = set(range(len(again))) - edited
    assert edited
    assert all(result.messages[i] is again[i] for i in unedited)
