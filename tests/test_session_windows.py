"""The window of the model that is called, which gates and `until` of a live session see."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Request, Session
from policyctx.errors import InputError
from policyctx.integrations.host_sessions import Turn, at_once
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
CLAUDE, GPT = Request(model="claude-opus-4-8"), Request(model="gpt-4o")
WRITTEN = GATED.replace("model: {", "model: {context_window: 300000, ")
NAMED = GATED.replace("model: {", "model: {name: gpt-4o, ")


def session(tmp_path: Path, text: str = GATED) -> Session:
    return Session(policy(text), root=tmp_path, session_id="s")


def gate_of(
    session: Session, tokens: int = 10, *, model: str | None = None, window: int | None = None
) -> GateVerdict:
    """The verdict of the gate on a list of a little more tokens."""
    [verdict] = session.plan(
        session_of("x" * 4 * tokens), request=Request(model=model, window=window)
    ).gates
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
    verdict = gate_of(live, tokens, model=model)
    assert (verdict.opens, verdict.limit) == (opens, limit)
    assert f"{limit:,} tokens" in verdict.sentence


def test_a_written_window_and_that_of_the_caller_come_before_the_called_model(
    tmp_path: Path,
) -> None:
    live = session(tmp_path, WRITTEN)
    assert gate_of(live, model="gpt-4o").limit == 240_000
    assert gate_of(live, model="gpt-4o", window=10_000).limit == 8_000


def test_the_called_model_comes_before_that_of_the_policy(tmp_path: Path) -> None:
    live = session(tmp_path, NAMED)
    assert gate_of(live).limit == 102_400
    assert gate_of(live, model="claude-opus-4-8").limit == 800_000


def test_another_model_has_its_own_window_from_its_first_call_on(tmp_path: Path) -> None:
    live, messages = session(tmp_path), session_of("x" * 4 * 110_000)
    assert live.apply(messages, request=CLAUDE).messages is messages
    assert live.apply(messages, request=GPT).offloaded_count == 1


def test_until_is_a_share_of_the_window_of_the_called_model(tmp_path: Path) -> None:
    live, messages = session(tmp_path, UNTIL), session_of(*["x" * 4 * 20_000] * 5)
    assert live.plan(messages, request=CLAUDE).new == ()
    assert len(live.plan(messages, request=GPT).new) == 2


def test_a_loop_names_the_model_of_each_request(tmp_path: Path) -> None:
    live = session(tmp_path)
    messages = session_of("x" * 4 * 110_000)
    models = {"a": "gpt-4o", "b": "claude-opus-4-8", "c": "gpt-4o", "d": None}
    turns = [Turn(live, Asked(key, messages, model=m), blocks=True) for key, m in models.items()]
    assert at_once(turns[0].preview()) is not messages
    assert at_once(turns[1].apply()).messages is messages
    assert at_once(turns[2].apply()).messages is not messages
    at_once(turns[3].apply())
    assert gate_of(live).limit == 102_400
    live.apply(messages, request=CLAUDE)
    assert gate_of(live).limit == 800_000


def test_a_request_has_its_own_system_and_tools(tmp_path: Path) -> None:
    live, messages = session(tmp_path), session_of("x")
    result = live.apply(messages, request=Request("be good", []))
    assert (result.system, result.tools) == ("be good", [])
    with pytest.raises(InputError, match="in the Request"):
        live.apply(messages, system="be good", request=GPT)


def test_the_attributes_of_version_0_2_still_count_and_warn(tmp_path: Path) -> None:
    live = session(tmp_path)
    with pytest.warns(DeprecationWarning, match=r"pass request=Request\(model=…\)"):
        live.called_model = "gpt-4o"
    assert gate_of(live).limit == 102_400
    with pytest.warns(DeprecationWarning, match="context_window"):
        live.context_window = 10_000
    assert gate_of(live).limit == 8_000
    with pytest.warns(DeprecationWarning, match="takes_markers"):
        assert live.takes_markers is None
