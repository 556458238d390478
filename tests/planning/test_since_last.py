"""The gate `since_last`: what came since the step last took something."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.planning.compiled import OffloadPolicy
from tests.conversations import Message, calls, results, session_of, user
from tests.policies import policy
from tests.policy_strategies import stored

LARGE = "x" * 400


def policy_of(since: str, *, do: str = "clear", more: str = "") -> OffloadPolicy:
    text = f"""\
        model: {{tokenizer: approximate}}
        items: {{tool_result: {{offload: true}}, user_message: {{offload: true}}}}
        steps:
          - {{name: s, do: {do}, select: {{types: [tool_result]}}, when: {{since_last: {since}}}}}
          {more}
        """
    return stored(policy(text), sync="never")


def opened(
    session: Session, messages: list[Message], *, restarts: bool = False, passes_back: bool = False
) -> list[int]:
    """Apply the list after each message, and return the lengths at which the step takes."""
    found: list[int] = []
    given: list[Message] = []
    for count, message in enumerate(messages, 1):
        given.append(message)
        result = session.apply(given)
        if any(d.step == "s" for d in result.plan.new):
            found.append(count)
        if passes_back:
            given = [*result.messages]
        if restarts:
            session = Session(session.policy, root=session.store.root, session_id="s")
    return found


def exchange(number: int) -> list[Message]:
    """Return a turn of four messages, with a result of 100 tokens."""
    call_id = f"c{number}"
    reply = {"role": "assistant", "content": f"done {number}"}
    return [user(f"task {number}"), calls((call_id, "Bash")), results((call_id, LARGE)), reply]


LONG = [message for number in range(6) for message in exchange(number)]


@pytest.mark.parametrize(
    ("passes_back", "restarts"), [(False, False), (False, True), (True, False), (True, True)]
)
@pytest.mark.parametrize(
    ("since", "lengths"),
    [
        ("{messages: {at_least: 8}}", [8, 16, 24]),
        ("{turns: {at_least: 2}}", [5, 13, 21]),
        ("{tokens: {over: 200}}", [7, 15, 23]),
    ],
)
def test_it_counts_from_the_end_of_the_list_at_that_time(
    since: str, lengths: list[int], passes_back: bool, restarts: bool, tmp_path: Path
) -> None:
    for do in ("clear", "drop"):
        session = Session(policy_of(since, do=do), root=tmp_path / do, session_id="s")
        assert opened(session, LONG, restarts=restarts, passes_back=passes_back) == lengths


def test_the_mark_moves_when_another_step_drops_the_message_that_the_list_ended_with(
    tmp_path: Path,
) -> None:
    """Only a list that comes back without that message, after a restart, needs the move."""
    more = "- {name: t, do: drop, select: {types: [assistant_message], keep_recent: 1}}"
    session = Session(
        policy_of("{messages: {at_least: 8}}", more=more), root=tmp_path, session_id="s"
    )
    assert opened(session, LONG, passes_back=True, restarts=True) == [8, 16, 24]


def test_everything_counts_where_the_list_lacks_the_end_of_that_time(tmp_path: Path) -> None:
    session = Session(policy_of("{messages: {at_least: 4}}"), root=tmp_path, session_id="s")
    session.apply(LONG[:4])
    other = [*exchange(7), *exchange(8)[:3]]
    [verdict] = session.apply(other).plan.gates
    assert verdict.sentence == "since_last.messages: 7 >= 4"
    assert verdict.rule == ("steps", "s", "when", "since_last", "messages", "at_least")


def test_a_step_that_takes_nothing_through_an_open_gate_keeps_its_mark(tmp_path: Path) -> None:
    session = Session(policy_of("{messages: {at_least: 3}}"), root=tmp_path, session_id="s")
    words = [user("one"), {"role": "assistant", "content": "two"}, user("three"), user("four")]
    numbers = [session.apply(words[:count]).plan.gates[0].number for count in (2, 3, 4)]
    assert numbers == [2, 3, 4]


def test_a_compaction_counts_from_its_own_end(tmp_path: Path) -> None:
    text = """\
        model: {tokenizer: approximate}
        compaction: {keep_recent: {messages: 2}, min_new: 0}
        steps: [{name: s, do: compact, when: {since_last: {messages: {at_least: 6}}}}]
        """
    words = [
        user(f"task {i}") if i % 2 == 0 else {"role": "assistant", "content": f"done {i}"}
        for i in range(16)
    ]
    found = []
    for count in range(1, len(words) + 1):
        session = Session(stored(policy(text), sync="never"), root=tmp_path, session_id="s")
        if session.apply(words[:count]).compacted:
            found.append(count)
    assert found == [6, 12]


def test_a_session_without_state_counts_the_whole_list(tmp_path: Path) -> None:
    stateless = stored(policy_of("{messages: {at_least: 6}}"), state="none")
    session = Session(stateless, root=tmp_path, session_id="s")
    assert opened(session, LONG[:11]) == [6, 7, 8, 9, 10, 11]


def test_a_policy_without_the_gate_writes_no_marks(tmp_path: Path) -> None:
    without = policy("items: {tool_result: {offload: true}}\nsteps: [{name: s, do: clear}]")
    session = Session(without, root=tmp_path, session_id="s")
    assert session.apply(session_of(LARGE)).plan.new
    assert [r["record"] for r in session.store.records()] == ["decision"]
