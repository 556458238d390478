"""Outcomes that no policy can make untrue, tried on turns that are made up."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.messages.sources import Sources
from policyctx.testing.collecting import library
from policyctx.testing.failures import OutcomeError
from policyctx.testing.selecting import TurnEvent
from policyctx.testing.world import World
from policyctx.turns.result import Result
from tests.conversations import Message, call, calls, results, session_of
from tests.policies import policy


def step(sentence: str) -> Callable[..., object]:
    [found] = [definition for definition in library() if definition.sentence == sentence]
    return found.function


def world_of(folder: Path, *turns: tuple[Sequence[Message], Sequence[Message]]) -> World:
    """A world with a turn for each list that went in and list that came out."""
    world = World(folder / "context", folders=[folder])
    session = Session(policy("steps: []\n"), root=folder / "context")
    for given, out in turns:
        plan = session.plan(given)
        turn = TurnEvent("model call", given, copy.deepcopy(given), plan, Result(out, plan))
        world.turns.append(turn)
    world.begin()
    return world


def test_a_copy_of_an_unchanged_message_is_reported(tmp_path: Path) -> None:
    given = session_of("a", "b")
    check = step("unchanged messages are the same objects")
    check(world_of(tmp_path, (given, list(given))))
    with pytest.raises(OutcomeError, match="a copy of"):
        check(world_of(tmp_path, (given, copy.deepcopy(given))))


def test_a_changed_input_is_reported(tmp_path: Path) -> None:
    given = session_of("a")
    world = world_of(tmp_path, (given, given))
    step("the input is not changed")(world)
    given[0]["content"] = "another"
    with pytest.raises(OutcomeError, match="the task"):
        step("the input is not changed")(world)


def test_a_shallow_copy_is_reported(tmp_path: Path) -> None:
    given = session_of("a")
    shallow = [*given[:2], {**given[2]}]
    with pytest.raises(OutcomeError, match="a part of the input in it"):
        step("changed messages are deep copies")(world_of(tmp_path, (given, shallow)))


def test_a_prefix_that_changed_without_a_decision_is_reported(tmp_path: Path) -> None:
    first, second = session_of("a"), session_of("x", "b")
    check = step("in every turn the prefix is unchanged up to the first new decision")
    check(world_of(tmp_path, (first, first), (session_of("a", "b"), session_of("a", "b"))))
    with pytest.raises(OutcomeError, match="expected: message 3"):
        check(world_of(tmp_path, (first, first), (second, second)))


def test_a_prefix_is_the_same_when_a_cache_marker_moved(tmp_path: Path) -> None:
    first, second = session_of("a"), session_of("a", "b")
    first[2]["content"][0]["cache_control"] = {"type": "ephemeral"}
    second[4]["content"][0]["cache_control"] = {"type": "ephemeral"}
    world = world_of(tmp_path, (first, first), (second, second))
    step("in every turn the prefix is unchanged up to the first new decision")(world)
    step("the prefix is unchanged( up to message {position:number})")(world)


def test_messages_missing_from_the_prefix_are_reported(tmp_path: Path) -> None:
    longer, shorter = session_of("a", "b"), session_of("a")
    with pytest.raises(OutcomeError, match="5 messages before"):
        step("the prefix is unchanged( up to message {position:number})")(
            world_of(tmp_path, (longer, longer), (shorter, shorter))
        )


BECAME = next(one for one in library() if "newly" in one.sentence).function
DROPS = "min_chars: 1\nsteps: [{name: s, do: drop, select: {types: [tool_result], keep_recent: 1}}]"
COMPACTS = "steps: [{name: s, do: compact}]"


def edited_by(folder: Path, keys: str, given: Sequence[Message]) -> tuple[World, Result]:
    """A world with a turn under a policy, and its result."""
    world = World(folder / "context", folders=[folder])
    session = Session(
        policy(keys), root=folder / "root", summarizer=lambda _request: "What was said."
    )
    result = session.apply(given)
    world.turns.append(TurnEvent("model call", given, copy.deepcopy(given), result.plan, result))
    world.begin()
    return world, result


def left_in(world: World, messages: Sequence[Message], sources: Sources) -> None:
    """Have the last turn return other messages, as an engine would that does not what it says."""
    turn = world.turns[-1]
    assert turn.result is not None
    result = replace(turn.result, messages=messages, source_ranges=sources)
    world.turns[-1] = replace(turn, result=result)


@pytest.mark.parametrize(
    ("keys", "items", "state"),
    [(DROPS, "the first result", "dropped"), (COMPACTS, "messages 2 to 3", "summarised")],
)
def test_messages_that_did_not_leave_are_reported(
    keys: str, items: str, state: str, tmp_path: Path
) -> None:
    given = session_of("one", "two", "three", "four")
    world, result = edited_by(tmp_path, keys, given)
    BECAME(world, items, "are", state)
    for sources in ((range(len(given)),), result.source_ranges):
        left_in(world, list(given), sources)
        with pytest.raises(OutcomeError, match="nothing of it"):
            BECAME(world, items, "are", state)


@pytest.mark.parametrize("second", ["two", "one"])
def test_a_block_that_did_not_leave_its_message_is_reported(second: str, tmp_path: Path) -> None:
    asked = calls(("a", "Bash"), ("b", "Bash"))
    given = [*session_of(), asked, results(("a", "one"), ("b", second)), *session_of("last")[1:]]
    world, _ = edited_by(tmp_path, DROPS, given)
    BECAME(world, "the first 2 results", "are", "dropped")
    halved = [*given[:2], {**given[2], "content": given[2]["content"][1:]}, *given[3:]]
    left_in(world, halved, (range(len(given)),))
    BECAME(world, 'the result "a"', "is", "dropped")
    with pytest.raises(OutcomeError, match="nothing of it"):
        BECAME(world, 'the result "b"', "is", "dropped")


def test_an_input_that_is_whole_is_reported(tmp_path: Path) -> None:
    given = [*session_of(), call("a", "Write", {"text": "x" * 900}), results(("a", "done"))]
    keys = (
        "min_chars: 1\nitems: {tool_call: {offload: true}}\n"
        "steps: [{name: s, do: offload, select: {types: [tool_call]}}]"
    )
    world, _ = edited_by(tmp_path, keys, given)
    BECAME(world, "the call", "is", "offloaded")
    left_in(world, list(given), (range(len(given)),))
    with pytest.raises(OutcomeError, match="the model to see"):
        BECAME(world, "the call", "is", "offloaded")


@dataclass(frozen=True)
class Verdict:
    """A gate's verdict, as a plan records it."""

    step: str
    gate: str
    opens: bool
    sentence: str


@dataclass(frozen=True)
class Gated:
    """A plan with verdicts alone."""

    gates: tuple[Verdict, ...]
    items: tuple[()] = ()
    decisions: tuple[()] = ()


def gated(folder: Path, *verdicts: Verdict) -> World:
    world = World(folder / "context", folders=[folder])
    plan: Any = Gated(verdicts)
    world.turns.append(TurnEvent("model call", [], [], plan))
    return world


GATE = step(
    "the gate {gate:name} of the step {step:name} {state=opens|stays closed}"
    "( because {reason:text})"
)


def test_a_gate_with_the_expected_verdict_passes(tmp_path: Path) -> None:
    world = gated(tmp_path, Verdict("leave", "ratio", opens=False, sentence="0.19 < 0.2"))
    reported: list[OutcomeError] = []
    try:
        GATE(world, "ratio", "leave", "stays closed", "0.19 < 0.2")
    except OutcomeError as error:
        reported.append(error)
    assert reported == []


@pytest.mark.parametrize(
    ("gate", "name", "state", "reason"),
    [
        ("ratio", "leave", "opens", ""),
        ("ratio", "leave", "stays closed", "nothing selected"),
        ("tokens", "leave", "stays closed", ""),
        ("ratio", "retire", "stays closed", ""),
    ],
)
def test_a_gate_with_another_verdict_is_reported(
    tmp_path: Path, gate: str, name: str, state: str, reason: str
) -> None:
    world = gated(tmp_path, Verdict("leave", "ratio", opens=False, sentence="0.19 < 0.2"))
    with pytest.raises(OutcomeError, match=r"ratio of leave stays closed: 0\.19 < 0\.2"):
        GATE(world, gate, name, state, reason)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("when: {turns: {over: 50}}", "the step s: turns: 1 <= 50"),
        (
            "compaction: {keep_recent: {messages: 50}}",
            "the step s: there is nothing that it may replace: `keep_recent` keeps the newest ",
        ),
    ],
)
def test_a_compaction_that_did_not_come_is_told_with_its_reason(
    keys: str, why: str, tmp_path: Path
) -> None:
    world = World(tmp_path / "context", folders=[tmp_path])
    given = session_of("one", "two")
    session = Session(policy(f"steps: [{{name: s, do: compact, {keys}}}]"), root=tmp_path / "root")
    result = session.apply(given)
    turn = TurnEvent("model call", given, copy.deepcopy(given), result.plan, result)
    world.turns.append(turn)
    with pytest.raises(OutcomeError) as raised:
        step("the history is {state=compacted|not compacted}")(world, "compacted")
    assert why in raised.value.found
