"""Steps with `on: overflow`: what happens when the provider refuses a prompt as too long."""

from __future__ import annotations

import asyncio
import json
import random
from pathlib import Path
from typing import Any

import pytest

from policyctx import Request, Result, Session
from tests.conversations import Message, session_of, user
from tests.drawing import rotated
from tests.fuzz.conversations import ALL_SHAPES, Shape, Writer
from tests.fuzz.histories import SHAPES_OF_HOSTS
from tests.fuzz.memory_store import MemoryStore
from tests.fuzz.rules import broken
from tests.policies import policy

DROP = (
    "{name: too-long, on: overflow, do: drop,"
    " select: {unit: group, types: ['*'], until: {tokens: {under: 60%}}}}"
)
OFFLOAD = "{name: shrink, on: overflow, do: offload, select: {types: [tool_result]}}"
COMPACT = "{name: last, on: overflow, do: compact, compaction: {keep_recent: {messages: 1}}}"
USUAL = (
    "{name: usual, do: offload, select: {types: [tool_result], keep_recent: 2},"
    " when: {tokens: {over: 50%}}}"
)
ERROR = "prompt is too long: 1400 tokens > 1000 maximum"
TEXT = "word " * 100


def words(text: str) -> int:
    return len(text.split())


def session(root: Path, *steps: str, more: str = "", **options: Any) -> Session:
    offloaded = "items: {tool_result: {offload: true}}"
    under = policy(f"{more or 'store: {sync: never}'}\n{offloaded}\nsteps: [{', '.join(steps)}]\n")
    counter: Any = words
    return Session(
        under, root=root, session_id="s", counter=counter, expects_usage=False, **options
    )


def conversation(results: int = 10) -> list[Message]:
    return [user("go"), *session_of(*[TEXT] * results), user("and now")]


def size(messages: Any) -> int:
    return sum(words(json.dumps(message)) for message in messages)


def refused(used: Session, messages: list[Message], error: object = ERROR) -> Result:
    used.apply(messages)
    result = used.on_overflow(messages, error)
    assert result is not None
    return result


@pytest.mark.parametrize("step", [DROP, OFFLOAD, COMPACT])
def test_the_steps_run_only_on_a_refusal(tmp_path: Path, step: str) -> None:
    used, messages = session(tmp_path, step), conversation()
    assert used.apply(messages).messages is messages
    result = used.on_overflow(messages, ERROR)
    assert result is not None
    assert size(result.messages) < size(messages) / 2
    assert not +broken(result.messages)
    longer = [*messages, {"role": "assistant", "content": "done"}, user("next")]
    left = list(used.apply(longer).messages)
    assert left[: len(result.messages)] == list(result.messages)


def test_until_is_a_share_of_what_the_provider_says(tmp_path: Path) -> None:
    used, messages = session(tmp_path, DROP), conversation()
    result = refused(used, messages)
    [warning] = result.warnings
    assert warning == (
        "the model refused a prompt of about 1,400 tokens as too long; from here on its window"
        " counts as 1,000 tokens"
    )
    # Each counted token is 1.4 of the provider's, so 60 % of its limit is about 430 words.
    assert 200 < size(result.messages) < 450


def test_a_size_that_the_provider_names_is_believed_however_far_from_the_count(
    tmp_path: Path,
) -> None:
    used, messages = session(tmp_path, DROP), conversation()
    used.apply(messages[:3])
    used.observe({"input_tokens": size(messages[:3]), "output_tokens": 1})
    result = refused(used, messages, "prompt is too long: 22000 tokens > 20000 maximum")
    assert result.warnings[0] == (
        "the model refused a prompt of about 22,000 tokens as too long; from here on its window"
        " counts as 20,000 tokens"
    )


def test_a_bound_that_the_provider_names_is_not_taken_for_the_size(tmp_path: Path) -> None:
    used, messages = session(tmp_path, DROP), conversation(40)
    used.apply(messages[:5])
    used.observe({"input_tokens": size(messages[:5]), "output_tokens": 1})
    error = (
        "This model's maximum context length is 800 tokens. However, you requested 0 output tokens"
        " and your prompt contains at least 801 input tokens, for a total of at least 801 tokens."
    )
    assert size(refused(used, messages, error).messages) < 800


def test_without_numbers_the_window_is_what_was_refused(tmp_path: Path) -> None:
    used, messages = session(tmp_path, DROP), conversation()
    result = refused(used, messages, "Input is too long for requested model.")
    assert 500 < size(result.messages) < 640
    assert "from here on its window counts as 1,0" in result.warnings[0]


def test_the_window_is_remembered_for_the_model(tmp_path: Path) -> None:
    used, messages = session(tmp_path, USUAL, DROP), conversation()
    asked = Request(model="local-model", window=100_000)
    assert used.apply(messages, request=asked).messages is messages
    assert used.on_overflow(messages, ERROR, request=asked) is not None
    grown = [*messages, *session_of(*[TEXT] * 5)[1:], user("next")]
    # Half of the remembered window is less than what is there.
    assert used.plan(grown, request=asked).outcomes[0].is_open
    other = Request(model="another-model", window=100_000)
    assert not used.plan(grown, request=other).outcomes[0].is_open


@pytest.mark.parametrize("error", ["rate limit exceeded", RuntimeError("boom"), None, {}])
def test_another_error_is_none_of_the_policy(tmp_path: Path, error: object) -> None:
    used, messages = session(tmp_path, DROP), conversation()
    used.apply(messages)
    assert used.on_overflow(messages, error) is None
    assert used.apply(messages).messages is messages


def test_a_policy_without_such_a_step_says_none(tmp_path: Path) -> None:
    used, messages = session(tmp_path, USUAL), conversation()
    used.apply(messages)
    assert used.on_overflow(messages, ERROR) is None


def test_a_list_of_which_nothing_can_leave_is_not_sent_again(tmp_path: Path) -> None:
    used, messages = session(tmp_path, DROP), [user("x " * 900)]
    used.apply(messages)
    assert used.on_overflow(messages, ERROR) is None


def test_a_step_before_each_call_and_one_on_overflow_compact_both(tmp_path: Path) -> None:
    usual = "{name: usual, do: compact, when: {messages: {over: 400}}}"
    used, messages = session(tmp_path, usual, COMPACT), conversation()
    result = refused(used, messages)
    assert result.compaction is not None
    assert result.compaction.replacement.step == "last"
    assert list(result.messages)[-1] == messages[-1]


def test_a_session_without_state_decides_both_again(tmp_path: Path) -> None:
    more = "store: {state: none, sync: never}\nmodel: {context_window: 1500}"
    used, messages = session(tmp_path, USUAL, DROP, more=more), conversation()
    before = list(used.apply(messages).messages)
    assert size(before) < size(messages)
    result = used.on_overflow(messages, "prompt is too long: 600 tokens > 300 maximum")
    assert result is not None
    assert size(result.messages) < size(before)
    assert not +broken(result.messages)


def test_asynchronously_the_same_is_done(tmp_path: Path) -> None:
    used, messages = session(tmp_path, DROP), conversation()

    async def run() -> Result | None:
        await used.apply_async(messages)
        return await used.on_overflow_async(messages, ERROR)

    result = asyncio.run(run())
    other = session(tmp_path / "b", DROP)
    assert result is not None
    assert list(result.messages) == list(refused(other, messages).messages)


def test_the_second_request_is_recorded_with_its_usage(tmp_path: Path) -> None:
    record = tmp_path / "calls.jsonl"
    used = session(tmp_path / "s", DROP, record=record)
    result = refused(used, conversation())
    used.observe({"input_tokens": 500, "output_tokens": 1})
    used.close()
    lines = [json.loads(line) for line in record.read_text(encoding="utf-8").splitlines()]
    assert [("usage" in line and line["usage"] is not None) for line in lines] == [False, True]
    assert len(lines) == 2
    assert len(result.messages) < len(conversation())


def test_explain_says_that_the_step_waits(tmp_path: Path) -> None:
    plan = session(tmp_path, DROP, COMPACT).plan(conversation())
    assert [one.is_open for one in plan.outcomes] == [False, False]
    stays = plan.decision(2)
    assert str(stays.reason) == "not_refused: the provider has not refused the prompt as too long"
    assert stays.rule == "steps.too-long.on"


@pytest.mark.parametrize(
    ("shape", "step"), rotated(dict.fromkeys(ALL_SHAPES), [DROP, OFFLOAD, COMPACT], one_in=3)
)
def test_lists_of_each_shape_stay_valid(shape: Shape, step: str) -> None:
    for seed in range(5):
        rng = random.Random(seed)  # noqa: S311 - no secret
        messages: list[Message] = Writer(rng, shape, repeats=False, hosted=True).conversation(4)
        of_host = SHAPES_OF_HOSTS.get(shape, ())
        under = policy(f"items: {{tool_result: {{offload: true}}}}\nsteps: [{step}]")
        used = Session(under, session_id="s", store=MemoryStore(), shapes=of_host)
        before = broken(messages)
        used.apply(messages)
        result = used.on_overflow(messages, "context_length_exceeded")
        if result is not None:
            assert not broken(result.messages) - before, (seed, result.messages)
            assert used.apply(messages).messages == result.messages
