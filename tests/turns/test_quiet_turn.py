"""A turn that decides nothing costs what is new in it, however long the list is."""

import tracemalloc
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


def quiet(turns: int, root: Path, *, after_a_summary: bool) -> list[int]:
    """Return the most memory of each of some quiet turns, in bytes, beside that of new messages."""
    question: Message = {"role": "user", "content": "Answer."}
    answer: Message = {"role": "assistant", "content": "Yes."}
    step = {"name": "sum", "do": "compact", "when": {"tokens": {"at_least": 10**9}}}
    session = Session(
        POLICY.model_validate({**POLICY.model_dump(exclude_unset=True), "steps": [step]}),
        root=root,
    )
    messages = conversation(5)
    if after_a_summary:
        assert session.compact(messages).compacted
    messages += [question, answer] * turns
    session.apply(messages)
    found = []
    tracemalloc.start()
    try:
        for _ in range(5):
            messages += [question, answer]
            before, _ = tracemalloc.get_traced_memory()
            tracemalloc.reset_peak()
            session.apply(messages)
            found.append(tracemalloc.get_traced_memory()[1] - before)
    finally:
        tracemalloc.stop()
    return found


@pytest.mark.parametrize(("after_a_summary", "copies"), [(False, 0), (True, 1)])
def test_a_quiet_turn_copies_no_list_but_the_one_that_it_returns(
    tmp_path: Path, *, after_a_summary: bool, copies: int
) -> None:
    few = min(quiet(500, tmp_path / "few", after_a_summary=after_a_summary))
    many = min(quiet(4_500, tmp_path / "many", after_a_summary=after_a_summary))
    pointers = 8 * 2 * 4_000
    assert many - few < (copies + 0.5) * pointers


def test_a_turn_that_edits_first_returns_the_equal_messages_that_are_new(tmp_path: Path) -> None:
    messages = conversation(3)
    session = Session(POLICY, root=tmp_path)
    session.apply(messages)
    again = [*messages[:1], *({**message} for message in messages[1:-1]), messages[-1], *turn(3)]
    result = session.apply(again)
    edited = {fate.item.message for fate in result.plan.conversation.fates.values()}
    assert edited == {2}
    assert all(result.messages[i] is one for i, one in enumerate(again) if i not in edited)


def test_the_messages_behind_a_summary_are_those_that_are_given(tmp_path: Path) -> None:
    step = {"name": "sum", "do": "compact", "when": {"tokens": {"at_least": 10**9}}}
    by = POLICY.model_validate({**POLICY.model_dump(exclude_unset=True), "steps": [step]})
    session = Session(by, root=tmp_path)
    messages = conversation(5)
    made = [*session.compact(messages).messages]
    messages += turn(5)
    session.apply(messages)
    again = [*messages[:-2], {**messages[-2]}, messages[-1], *turn(6)]
    behind = session.apply(again).messages[len(made) :]
    assert len(behind) == 4
    assert all(one is other for one, other in zip(behind, again[-4:], strict=True))
    assert session.apply([*again, *turn(7)]).messages[: len(made)] == made
