"""With `state: none` a session decides each call anew, and reads only what is new in the list."""

from __future__ import annotations

import copy
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.errors import InvalidResultError, MessagesError
from policyctx.messages.reading import CheckedMessage, Reading
from policyctx.turns.result import Result
from tests.conversations import session_of
from tests.policies import policy

STEPS = {
    "clear": "{name: s, do: clear, select: {keep_recent: {items: 2, per: all}}}",
    "offload": "{name: s, do: offload, select: {keep_recent: {items: 2, per: all}}}",
    "drop": "{name: s, do: drop, select: {keep_recent: {messages: 3}}}",
    "gated": "{name: s, do: clear, when: {messages: {over: 6, under: 10}}}",
    "until": "{name: s, do: clear, select: {until: {frees: {at_least: 60}}}}",
    "arrival": "{name: s, do: offload, on: arrival}",
    "with input": "{name: s, do: offload, select: {with_input: true, keep_recent: 1}}",
    "two": "{name: a, do: clear, select: {keep_recent: 3}}, {name: b, do: drop, select:"
    " {keep_recent: {messages: 7}}}",
}
POLICY = """
min_tokens: 3
items: {{tool_result: {{offload: true}}, tool_call: {{offload: true}}}}
store: {{root: "{root}", state: none, sync: never}}
steps: [{step}]
"""
LIST = session_of(*(f"result {i} " * (i * 7 % 20 + 1) for i in range(9)))


def lists() -> Iterator[tuple[list[Message], dict[str, Any]]]:
    """Yield the lists of a session with the options of each call: grown, changed and shortened.

    A session remembers the tools of a request, so that the calls after it have them too.
    """
    reads = {"tools": [{"name": "read_offloaded", "input_schema": {}}]}
    for end in range(1, len(LIST) + 1, 2):
        yield LIST[:end], {}
    yield copy.deepcopy(LIST), {}
    yield LIST[:6], {}
    yield LIST, reads
    marked = copy.deepcopy(LIST)
    marked[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    yield marked, reads
    other = copy.deepcopy(LIST)
    other[2]["content"][0]["content"] = "another result " * 9
    yield other, reads
    yield LIST, {"changed": True, **reads}
    yield [], reads
    yield LIST, reads


def outcome(result: Result) -> tuple[object, ...]:
    """Return what a caller sees of a result."""
    verdicts = [(gate.sentence, gate.opens) for gate in result.plan.gates]
    decided = [
        (d.position, d.action, d.step, d.reason, d.placeholder, d.file, d.wanted_path)
        for d in result.plan.new
    ]
    plan = result.plan
    told = [(d.action, d.reason, d.rule, d.placeholder) for d in plan.decisions]
    sizes = plan.tokens_before, plan.tokens_after, plan.freed_chars, plan.net_freed_chars
    judged = [plan.verdicts(i) for i in range(len(plan.items))]
    sent = list(result.messages), result.sources, result.warnings, result.files
    return *sent, decided, verdicts, told, sizes, judged


@pytest.mark.parametrize("step", STEPS.values(), ids=STEPS)
def test_a_call_of_an_old_session_has_the_result_of_a_new_one(step: str, tmp_path: Path) -> None:
    compiled = policy(POLICY.format(root=tmp_path, step=step))
    old = Session(compiled, session_id="s")
    for messages, options in lists():
        new = Session(compiled, session_id="s").apply(copy.deepcopy(messages), **options)
        result = old.apply(messages, **options)
        assert outcome(result) == outcome(new)


def test_what_was_read_is_not_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    add = Reading.add

    def counted(reading: Reading, checked: deque[CheckedMessage]) -> None:
        read.append(len(checked))
        add(reading, checked)

    session = Session(policy(POLICY.format(root=tmp_path, step=STEPS["clear"])))
    for end in range(7, len(LIST) + 1, 2):
        session.apply(LIST[:end])
    monkeypatch.setattr(Reading, "add", counted)
    grown = [*LIST, {"role": "user", "content": "next"}]
    session.apply(grown)
    assert sum(read) == 1


def test_a_call_after_an_error_stands_alone(tmp_path: Path) -> None:
    session = Session(policy(POLICY.format(root=tmp_path, step=STEPS["clear"])))
    before = outcome(session.apply(LIST))
    with pytest.raises(MessagesError):
        session.apply([*LIST, {"role": "user", "content": {1, 2}}])
    assert outcome(session.apply(LIST)) == before


def test_an_edit_that_a_provider_would_refuse_is_checked_at_each_call(tmp_path: Path) -> None:
    step = "{name: s, do: drop, select: {types: [user_message]}}"
    text = POLICY.format(root=tmp_path, step=step).replace(
        "items: {", "items: {user_message: {offload: true}, "
    )
    messages = [
        {"role": "user", "content": "a task that is long enough"},
        *LIST[1:5],
        {"role": "user", "content": "the next task of the user"},
    ]
    session = Session(policy(text))
    for _ in range(2):
        try:
            first = outcome(Session(policy(text)).apply(messages))
        except InvalidResultError as error:
            with pytest.raises(InvalidResultError, match=str(error)[:20]):
                session.apply(messages)
        else:
            assert outcome(session.apply(messages)) == first
