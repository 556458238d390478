"""What Copilot CLI says of tokens: those of each reply, and sums when a session ends."""

from __future__ import annotations

from typing import Any

from policyctx.replay.recording import SummedBill
from policyctx.tokens.usage import Usage
from tests.replay.readers.copilot_records import GO, event
from tests.replay.readers.reading import read_lines, read_one

Record = dict[str, Any]


def metric(count: int, whole: int, read: int = 0, written: int = 0, output: int = 0) -> Record:
    usage = {"inputTokens": whole, "cacheReadTokens": read, "cacheWriteTokens": written}
    return {"requests": {"count": count, "cost": 1}, "usage": {**usage, "outputTokens": output}}


def shutdown(models: Record, **fields: Any) -> Record:
    return event("session.shutdown", shutdownType="routine", modelMetrics=models, **fields)


def replied(model: str = "gpt-x", **fields: Any) -> Record:
    return event("assistant.message", content="so", model=model, **fields)


def test_the_sums_of_a_session_are_its_bill() -> None:
    metrics = {"gpt-x": metric(2, whole=900, read=600, written=100, output=50)}
    records = [GO, replied(), replied(), shutdown(metrics, toolDefinitionsTokens=70)]
    recording = read_one(records)
    assert recording.bill == SummedBill(Usage(200, 600, 100, 50), 2, beside=70)
    assert recording.not_prompt == {"session.shutdown": 1}


def test_the_system_prompt_is_beside_the_messages_unless_it_is_recorded() -> None:
    end = shutdown({}, toolDefinitionsTokens=70, systemTokens=30)
    (without,) = read_lines([GO, replied(), end])
    (recorded,) = read_lines([event("system.message", content="You are."), GO, replied(), end])
    assert without.bill == SummedBill(Usage(0), 1, beside=100)
    assert recorded.bill == SummedBill(Usage(0), 1, beside=70)


def test_calls_after_the_last_shutdown_are_not_in_the_sum() -> None:
    records = [GO, replied(), shutdown({"gpt-x": metric(1, 500)}), replied(), replied()]
    recording = read_one(records)
    assert recording.bill == SummedBill(Usage(500), 1)
    assert len(recording.calls) == 3


def test_the_sums_of_a_resumed_session_are_added_unless_they_hold_the_earlier_ones() -> None:
    first = [GO, replied(), shutdown({"gpt-x": metric(1, 500)}), GO, replied()]
    (added,) = read_lines([*first, shutdown({"gpt-x": metric(1, 700)})])
    (replaced,) = read_lines([*first, shutdown({"gpt-x": metric(2, 1_200)})])
    assert added.bill == replaced.bill == SummedBill(Usage(1_200), 2)


def test_models_of_one_agent_are_added_up() -> None:
    metrics = {"gpt-x": metric(1, 500), "gpt-y": metric(1, 300), "gpt-z": metric(1, 10)}
    recording = read_one([GO, replied(), replied("gpt-y"), shutdown(metrics)])
    assert recording.bill == SummedBill(Usage(810), 2)


def test_a_sub_agent_has_the_sum_of_its_own_model() -> None:
    aside = {**replied("gpt-y"), "agentId": "a1"}
    metrics = {"gpt-x": metric(1, 500), "gpt-y": metric(1, 300)}
    main, agent = read_lines([GO, replied(), aside, shutdown(metrics, toolDefinitionsTokens=5)])
    assert main.bill == SummedBill(Usage(500), 1, beside=5)
    assert (agent.name, agent.bill) == ("s#a1", SummedBill(Usage(300), 1))


def test_a_sum_over_several_agents_belongs_to_none() -> None:
    aside = replied(parentToolCallId="a")
    main, agent = read_lines([GO, replied(), aside, shutdown({"gpt-x": metric(2, 500)})])
    assert (main.bill, agent.bill) == (None, None)


def test_a_reply_says_how_long_it_is() -> None:
    recording = read_one([GO, replied(outputTokens=12), replied()])
    assert [call.usage for call in recording.calls] == [Usage(0, output=12), None]


def test_a_reply_may_have_a_usage_of_its_own() -> None:
    used = {"prompt_tokens": 9, "completion_tokens": 2}
    assert read_one([GO, replied(usage=used, outputTokens=2)]).calls[0].usage == Usage(9, output=2)


def test_reasoning_stays_with_its_reply() -> None:
    thought = {"type": "thinking", "thinking": "hm", "signature": ""}
    silent = event("assistant.message", content="", reasoningText="hm")
    recording = read_one([GO, replied(reasoningText="hm"), silent])
    assert [message["content"] for message in recording.messages()[1:]] == [
        [thought, {"type": "text", "text": "so"}],
        [thought],
    ]


def test_odd_metrics_are_tolerated() -> None:
    odd: Record = {
        "a": None,
        "b": {"usage": [], "requests": 7},
        "c": {"usage": {"inputTokens": "x"}},
    }
    for end in (
        shutdown(odd),
        event("session.shutdown"),
        event("session.shutdown", modelMetrics=5),
    ):
        recording = read_one([GO, replied(), end])
        assert recording.bill is None
