"""The window of the model that is called, which gates and `until` of a live session see."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.integrations.host_sessions import AgentLoop
from policyctx.messages.asked import Asked
from policyctx.planning.gates import GateVerdict
from tests.conversations import session_of
from tests.policies import policy

GATED = """\
    model: {tokenizer: approximate}
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload, when: {tokens: {at_least: 80%}}}]
    """
UNTIL = """\
    model: {tokenizer: approximate}
    items: {tool_result: {offload: true}}
    steps: [{name: s, do: offload, select: {until: {tokens: {under: 50%}}}}]
    """
WRITTEN = GATED.replace("model: {", "model: {context_window: 300000, ")
NAMED = GATED.replace("model: {", "model: {name: gpt-4o, ")


def session(tmp_path: Path, text: str = GATED) -> Session:
    return Session(policy(text), root=tmp_path, session_id="s")


def gate_of(session: Session, tokens: int = 10) -> GateVerdict:
    """The verdict of the gate on a list of a little more tokens."""
    [verdict] = session.plan(session_of("x" * 4 * tokens)).gates
    return verdict


@pytest.mark.parametrize(
    ("model", "tokens", "opens", "limit"),
    [
        ("gpt-4o", 102_400, True, 102_400),
        ("gpt-4o", 102_000, False, 102_400),
        ("claude-opus-4-8", 160_000, False, 800_000),
        ("a-model-of-ours", 160_000, True, 160_000),
        (None, 159_000, False, 160_000),
    ],
)
def test_a_gate_opens_at_a_share_of_the_window_of_the_called_model(
    tmp_path: Path, model: str | None, tokens: int, *, opens: bool, limit: int
) -> None:
    live = session(tmp_path)
    live.called_model = model
    verdict = gate_of(live, tokens)
    assert (verdict.opens, verdict.limit) == (opens, limit)
    assert f"{limit:,} tokens" in verdict.sentence


def test_a_written_window_and_that_of_the_caller_come_before_the_called_model(
    tmp_path: Path,
) -> None:
    live = session(tmp_path, WRITTEN)
    live.called_model = "gpt-4o"
    assert gate_of(live).limit == 240_000
    live.context_window = 10_000
    assert gate_of(live).limit == 8_000


def test_the_called_model_comes_before_that_of_the_policy(tmp_path: Path) -> None:
    live = session(tmp_path, NAMED)
    assert gate_of(live).limit == 102_400
    live.called_model = "claude-opus-4-8"
    assert gate_of(live).limit == 800_000


def test_another_model_has_its_own_window_from_its_first_call_on(tmp_path: Path) -> None:
    live, messages = session(tmp_path), session_of("x" * 4 * 110_000)
    live.called_model = "claude-opus-4-8"
    assert live.apply(messages).messages is messages
    live.called_model = "gpt-4o"
    assert live.apply(messages).offloaded_count == 1


def test_until_is_a_share_of_the_window_of_the_called_model(tmp_path: Path) -> None:
    live, messages = session(tmp_path, UNTIL), session_of(*["x" * 4 * 20_000] * 5)
    live.called_model = "claude-opus-4-8"
    assert live.plan(messages).new == ()
    live.called_model = "gpt-4o"
    assert len(live.plan(messages).new) == 2


def test_a_loop_names_the_model_of_each_request(tmp_path: Path) -> None:
    live = session(tmp_path)
    loop, messages = AgentLoop.of(live), session_of("x" * 4 * 110_000)
    asked = Asked("a", messages, model="gpt-4o")
    assert loop.preview(live, asked) is not messages
    sent = loop.apply(live, Asked("b", messages, model="claude-opus-4-8"))
    assert sent.messages is messages
    assert loop.apply(live, Asked("c", messages, model="gpt-4o")).messages is not messages
    loop.apply(live, Asked("d", messages))
    assert live.called_model == "gpt-4o"
