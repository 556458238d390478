"""Programs that record their own calls through an SDK, and the replay of what they wrote."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from policyctx import Session
from policyctx.integrations.anthropic import PolicyMiddleware
from policyctx.integrations.openai import with_policy
from policyctx.pricing.dollars import dollars
from policyctx.pricing.rows import row_of
from policyctx.replay.reading import recordings_in
from policyctx.tokens.usage import Usage, usage_of
from tests.cli.running import policyctx
from tests.conversations import chat_calls, chat_result, results, user
from tests.integrations.anthropic_api import anthropic_api
from tests.integrations.openai_api import openai_api
from tests.integrations.scripted import calling, saying
from tests.policies import policy

CALLS = 12
OLD = """\
    min_tokens: 100
    items: {tool_result: {offload: true}}
    steps:
      - name: retire
        do: offload
        when: {items: {at_least: 16}}
        select: {types: [tool_result], keep_recent: 3}
    """
SCRIPT = [calling((f"c{turn}", "read", {"path": f"{turn}.py"})) for turn in range(CALLS - 1)]


def chat(url: str, session: Session, observed: list[Usage]) -> None:
    client = with_policy(openai.OpenAI(base_url=url, api_key="k", max_retries=0), session)
    messages: list[Any] = [user("Read the files.")]
    for turn in range(CALLS):
        done = client.chat.completions.create(model="gpt-4o", messages=messages)
        observed.append(usage_of(done.usage))
        if turn < CALLS - 1:
            messages += [
                chat_calls((f"c{turn}", "read", f'{{"path": "{turn}.py"}}')),
                chat_result(f"c{turn}", f"line {turn} " * 300),
            ]


def streamed(url: str, session: Session, observed: list[Usage]) -> None:
    client = anthropic.Anthropic(
        base_url=url, api_key="k", max_retries=0, middleware=[PolicyMiddleware(session)]
    )
    messages: list[Any] = [user("Read the files.")]
    for turn in range(CALLS):
        with client.messages.stream(
            model="claude-opus-4-8",
            max_tokens=99,
            system=[{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}],
            tools=[{"name": "read", "input_schema": {"type": "object"}}],
            messages=messages,
        ) as stream:
            reply = stream.get_final_message()
        observed.append(usage_of(reply.usage))
        messages.append({"role": "assistant", "content": reply.content})
        if turn < CALLS - 1:
            messages.append(results((f"c{turn}", f"line {turn} " * 300)))


@pytest.mark.parametrize(
    ("served", "run", "model"),
    [
        pytest.param(openai_api, chat, "gpt-4o", id="openai"),
        pytest.param(anthropic_api, streamed, "claude-opus-4-8", id="anthropic"),
    ],
)
def test_the_replay_of_a_program_has_the_calls_tokens_and_dollars_that_were_billed(
    tmp_path: Path, served: Any, run: Callable[..., None], model: str
) -> None:
    path, observed = tmp_path / "own.jsonl", list[Usage]()
    session = Session(policy(OLD), root=tmp_path / "root", session_id="s", record=path)
    with served() as server:
        server.script = [*SCRIPT, saying("Done.")]
        run(server.url, session, observed)
    session.close()
    [recording] = recordings_in(path)
    assert [call.usage for call in recording.calls] == observed
    assert [call.usage.prompt for call in recording.calls if call.usage] == server.prompts
    sent = [body["messages"] for body in server.bodies]
    assert [json.loads(json.dumps([*context])) for context in recording.contexts()] == sent
    assert {call.language_model for call in recording.calls} == {model}
    assert path.stat().st_size < len(json.dumps(sent)) / 2
    total = json.loads(policyctx("replay", "tool-direct-offload", path, "--json").stdout)["total"]
    assert (total["calls"], total["calls_with_usage"]) == (CALLS, CALLS)
    assert total["tokens_without"] == sum(server.prompts)
    row = row_of(model)
    assert row is not None
    assert row.prices is not None
    # The replay foresees the cache by itself; `bias` is how far its $ are from the bills.
    bill = sum(dollars(usage, row.prices).prompt for usage in observed)
    [check] = total["checks"].values()
    prompts = total["cost_without"]["dollars"] - total["cost_without"]["dollars_output"]
    assert prompts / (1 + check["bias"]) == pytest.approx(bill, rel=1e-4)
    assert total["cost_without"]["output"] == sum(usage.output for usage in observed)
