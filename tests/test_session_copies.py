"""Policies, plans and results can be copied and sent to another process; sessions cannot."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from policyctx import OffloadPolicy, Session
from policyctx.turns.result import Result
from tests.conversations import picture, session_of, user
from tests.policies import policy

TEXT = """\
    items: {tool_result: {offload: true, min_tokens: 50}, image: {offload: true}}
    store: {sync: never}
    steps:
      - {name: images, do: drop, select: {types: [image]}}
      - {name: old, do: offload, select: {types: [tool_result], keep_recent: 1}}
    """
COMPACTING = """\
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: compact, do: compact, when: {messages: {over: 4}}}]
    """
MESSAGES = session_of([{"type": "text", "text": "x" * 900}, picture()], "y" * 900, "z" * 900)


def pickled(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))  # noqa: S301 - our own bytes


def summary(result: Result) -> tuple[Any, ...]:
    """Return what a result says, in values that compare equal."""
    plan = result.plan
    decided = [(d.item, d.action, str(d.reason), d.rule, d.placeholder) for d in plan.decisions]
    numbers = plan.tokens_before, plan.tokens_after, result.freed_chars, result.files
    return list(result.messages), decided, numbers, result.warnings, result.compaction


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
@pytest.mark.parametrize("given", [policy(TEXT), policy(COMPACTING), "small-context"])
def test_results_and_plans_can_be_copied(
    given: Any, copied: Callable[[Any], Any], tmp_path: Path
) -> None:
    session = Session(given, root=tmp_path, session_id="s")
    session.apply(MESSAGES[:3])
    result = session.apply(MESSAGES)
    assert summary(copied(result)) == summary(result)
    assert copied(result.plan).decisions == result.plan.decisions
    again = session.apply([*MESSAGES, user("more")])
    assert again.plan.new == ()


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickled])
def test_a_copied_policy_decides_the_same(copied: Callable[[Any], Any], tmp_path: Path) -> None:
    original = OffloadPolicy.load("small-context", hints={"Bash": {"keep_recent": 1}})
    decided = [
        Session(each, root=tmp_path, session_id="s").plan(MESSAGES).decisions
        for each in (original, copied(original))
    ]
    assert decided[0] == decided[1]
    assert copied(original).digest == original.digest


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_session_cannot_be_copied(copied: Callable[[Any], Any], tmp_path: Path) -> None:
    session = Session(policy(TEXT), root=tmp_path, session_id="s")
    with pytest.raises(TypeError, match="make a new Session"):
        copied(session)
    assert session.apply(MESSAGES).plan.new


@pytest.mark.slow
def test_results_can_be_sent_to_another_process(tmp_path: Path) -> None:
    result = Session(policy(TEXT), root=tmp_path, session_id="s").apply(MESSAGES)
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(summary, result).result(60) == summary(result)
        assert summary(pool.submit(copy.copy, result).result(60)) == summary(result)
