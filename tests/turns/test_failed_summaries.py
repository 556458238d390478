"""A step that waits for the failure of a summary: `when: {failed: summarise}`."""

from __future__ import annotations

import asyncio
import errno
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session, StoreError
from policyctx.compaction.assembly import SummaryRequest
from policyctx.testing.faults import refusing_writes
from tests.compaction.compacting import Failing
from tests.conversations import Message, call, results, user
from tests.drawing import rotated
from tests.fuzz.conversations import ALL_SHAPES, Shape, Writer
from tests.fuzz.histories import SHAPES_OF_HOSTS
from tests.fuzz.memory_store import MemoryStore
from tests.fuzz.rules import broken
from tests.policies import policy

Respond = Callable[[SummaryRequest], str]


def policy_text(waiting: str = "", summary: str = "", gate: str = "over: 8", more: str = "") -> str:
    return f"""\
        model: {{context_window: 4000, tokenizer: approximate}}
        compaction: {{keep_recent: {{messages: 2}}, summary: {{attempts: 1, backoff: 0s{summary}}}}}
        {more}
        steps:
          - {{name: summarise, do: compact, when: {{messages: {{{gate}}}}}}}
          - name: let-go
            do: drop
            select: {{types: ['*'], unit: group, until: {{messages: {{under: 7}}}}}}
            when: {{failed: summarise{waiting}}}
        """


def session(root: Path, summarizer: Respond | None = None, **keys: Any) -> Session:
    made = Failing(99) if summarizer is None else summarizer
    return Session(policy(policy_text(**keys)), root=root, session_id="s", summarizer=made)


def session_of(root: Path, keys: str) -> Session:
    return Session(policy(keys), root=root, session_id="s", summarizer=Failing(99))


def conversation(count: int = 5) -> list[Message]:
    pairs = ((call(f"c{i}", "run", {"n": i}), results((f"c{i}", "ok " * 99))) for i in range(count))
    return [user("Rename the field."), *(message for pair in pairs for message in pair)]


def test_the_oldest_groups_leave_when_the_summary_fails(tmp_path: Path) -> None:
    messages = conversation()
    result = session(tmp_path).apply(messages)
    assert not result.compacted
    assert [*result.messages] == [messages[0], *messages[-4:]]
    reports = {outcome.step: outcome for outcome in result.plan.outcomes}
    assert [*reports] == ["summarise", "let-go"]
    assert reports["let-go"].is_open
    assert len(result.plan.new) == 6
    assert {d.step for d in result.plan.decisions if d.action.leaves_nothing} == {"let-go"}
    assert result.plan.tokens_after < result.plan.tokens_before
    assert any("overloaded" in warning for warning in result.warnings)


def test_nothing_leaves_by_it_when_the_summary_is_made(tmp_path: Path) -> None:
    result = session(tmp_path, lambda _: "the summary").apply(conversation())
    assert result.compacted
    assert not result.plan.new
    [closed] = [outcome for outcome in result.plan.outcomes if outcome.step == "let-go"]
    assert closed.gates[0].sentence == "failed: no summary of summarise has failed in this turn"


def test_nothing_leaves_while_no_summary_is_due(tmp_path: Path) -> None:
    messages = conversation(3)
    assert session(tmp_path).apply(messages).messages is messages


@pytest.mark.parametrize(
    "answer", ["", "word " * 9_000, "a word of the summary, " * 200, "It is too short."]
)
def test_a_refused_summary_is_a_failed_one(tmp_path: Path, answer: str) -> None:
    used = session(tmp_path, lambda _: answer, summary=", check: {min_words: 30}")
    assert len(used.apply(conversation()).messages) == 5


def test_an_extractive_summary_that_stands_in_is_no_failure(tmp_path: Path) -> None:
    result = session(tmp_path, summary=", on_failure: extractive").apply(conversation())
    assert result.compacted
    assert not result.plan.new


def test_it_runs_in_later_turns_in_which_a_summary_as_large_is_not_tried(tmp_path: Path) -> None:
    asked: list[SummaryRequest] = []

    def answer(request: SummaryRequest) -> str:
        asked.append(request)
        return "a word of the summary, " * 200

    used, messages = session(tmp_path, answer), conversation()
    for number in range(9):
        assert len(used.apply(messages).messages) <= 8
        messages += [call(f"d{number}", "run", {}), results((f"d{number}", "ok"))]
    assert len(asked) == 1


def test_what_left_stays_out_and_a_later_summary_may_succeed(tmp_path: Path) -> None:
    summarizer = Failing(1)
    used, messages = session(tmp_path, summarizer), conversation()
    before = used.apply(messages).messages
    messages += conversation(1)[1:]
    assert [*used.apply(messages).messages[: len(before)]] == [*before]
    messages += [*conversation(8)[3:]]
    assert used.apply(messages).compacted
    assert summarizer.asked == 2


def test_a_restarted_session_returns_the_same_list(tmp_path: Path) -> None:
    messages = conversation()
    before = session(tmp_path).apply(messages).messages
    assert session(tmp_path).apply(messages).messages == before


@pytest.mark.parametrize(
    ("shape", "state"), rotated(dict.fromkeys(ALL_SHAPES), ["kept", "none"], one_in=2)
)
def test_lists_of_each_shape_stay_valid(shape: Shape, state: str) -> None:
    left = 0
    for seed in range(5):
        rng = random.Random(seed)  # noqa: S311 - no secret
        messages: list[Message] = Writer(rng, shape, repeats=False, hosted=True).conversation(8)
        under = policy(policy_text(gate="over: 4", more=f"store: {{state: {state}}}"))
        of_host = SHAPES_OF_HOSTS.get(shape, ())
        used = Session(
            under, session_id="s", store=MemoryStore(), shapes=of_host, summarizer=Failing(99)
        )
        result = used.apply(messages)
        left += len(result.plan.new)
        assert not broken(result.messages) - broken(messages), (seed, result.messages)
        assert used.apply(messages).messages == result.messages
    assert left > 5


def test_async_and_steps_do_the_same(tmp_path: Path) -> None:
    messages = conversation()
    expected = session(tmp_path / "a").apply(messages).messages
    result = asyncio.run(session(tmp_path / "b").apply_async(messages))
    assert [*result.messages] == [*expected]


def test_another_gate_may_keep_it_closed(tmp_path: Path) -> None:
    messages = conversation()
    assert (
        session(tmp_path, waiting=", tokens: {at_least: 90%}").apply(messages).messages == messages
    )


def test_a_step_behind_it_takes_placeholders_further_and_is_told_once(tmp_path: Path) -> None:
    keys = """\
        model: {tokenizer: approximate}
        items: {tool_result: {offload: true}}
        compaction: {keep_recent: {messages: 2}, summary: {attempts: 1, backoff: 0s}}
        steps:
          - {name: retire, do: offload, must_shrink: false, select: {types: [tool_result]}}
          - {name: summarise, do: compact, when: {messages: {over: 8}}}
          - name: let-go
            do: drop
            select: {types: ['*'], unit: group, until: {messages: {under: 7}}}
            when: {failed: summarise}
        """
    used = session_of(tmp_path, keys)
    result = used.apply(conversation())
    assert len(result.messages) == 5
    positions = [decision.position for decision in result.plan.new]
    assert positions == sorted(set(positions))
    steps = [d.step for d in result.plan.new if d.item.kind == "tool_result"]
    assert steps == ["let-go"] * 3 + ["retire"] * 2
    saved = [d for d in result.plan.to_save if d.item.kind == "tool_result"]
    assert len(saved) == 5
    assert all(Path(d.file.path).is_file() for d in saved if d.file is not None)


def test_its_gates_count_what_other_steps_have_left(tmp_path: Path) -> None:
    keys = """\
        model: {tokenizer: approximate}
        items: {tool_result: {offload: true}}
        compaction: {keep_recent: {messages: 2}, summary: {attempts: 1, backoff: 0s}}
        steps:
          - {name: retire, do: clear, select: {types: [tool_result], keep_recent: 2}}
          - {name: summarise, do: compact, when: {messages: {over: 8}}}
          - name: let-go
            do: drop
            select: {types: [tool_result]}
            when: {failed: summarise, frees: {at_least: 3000}}
        """
    live, messages = session_of(tmp_path / "a", keys), conversation(9)
    for count in (3, 11, 15, 19):
        result = live.apply(messages[:count])
    again = session_of(tmp_path / "b", keys).apply(messages)
    [frees] = [gate for gate in result.plan.gates if gate.gate == "frees"]
    [expected] = [gate for gate in again.plan.gates if gate.gate == "frees"]
    whole = sum(live.plan(messages).facts.tokens(item) for item in result.plan.items)
    assert 0 < (frees.number or 0) == expected.number
    assert (frees.number or 0) < whole / 2
    assert not frees.opens


def test_a_hook_that_declines_is_no_failure(tmp_path: Path) -> None:
    made = policy(policy_text())
    used = Session(
        made, root=tmp_path, summarizer=Failing(0), before_compaction=lambda _: "not now"
    )
    messages = conversation()
    assert used.apply(messages).messages == messages


def test_a_compaction_on_demand_that_fails_takes_nothing(tmp_path: Path) -> None:
    messages = conversation()
    assert session(tmp_path).compact(messages).messages == messages


def test_a_plan_is_made_without_a_summary_so_the_step_is_closed(tmp_path: Path) -> None:
    planned = session(tmp_path).plan(conversation())
    assert not planned.new
    assert planned.compaction is not None


def test_a_full_disk_is_a_failure_and_what_is_not_saved_leaves(tmp_path: Path) -> None:
    under = policy(policy_text().replace("do: drop", "do: drop\n            save: false"))
    used = Session(under, root=tmp_path, session_id="s", summarizer=Failing(0))
    with refusing_writes(tmp_path, errno.ENOSPC):
        result = used.apply(conversation())
        assert not result.compacted
        assert len(result.messages) == 5
    assert used.apply(conversation()).messages == result.messages


def test_what_has_to_be_saved_stays_while_the_disk_is_full(tmp_path: Path) -> None:
    used, messages = session(tmp_path, Failing(0)), conversation()
    with refusing_writes(tmp_path, errno.ENOSPC):
        assert used.apply(messages).messages == messages
    assert used.apply(messages).compacted


def test_an_error_of_the_store_ends_the_turn_if_the_policy_says_so(tmp_path: Path) -> None:
    used = session(tmp_path, Failing(0), more="store: {on_failure: raise}")
    with refusing_writes(tmp_path, errno.ENOSPC), pytest.raises(StoreError):
        used.apply(conversation())


def test_a_step_on_overflow_waits_for_the_summary_on_overflow(tmp_path: Path) -> None:
    text = policy_text().replace("name: summarise", "name: summarise, on: overflow")
    under = policy(text.replace("name: let-go", "name: let-go\n            on: overflow"))
    used = Session(under, root=tmp_path, session_id="s", summarizer=Failing(99))
    messages = conversation()
    assert used.apply(messages).messages is messages
    result = used.on_overflow(messages, "prompt is too long: 1400 tokens > 1000 maximum")
    assert result is not None
    assert len(result.messages) == 5
