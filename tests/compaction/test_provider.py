"""Whole compactions over the provider's SDK: tries, failures, and what is left of them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.compaction.summarizers import summarizer_for
from policyctx.turns.result import Result
from tests.compaction.messages_server import (
    MessagesServer,
    Scripted,
    failing,
    messages_server,
    saying,
)
from tests.conversations import Message, calls, results, user
from tests.policies import policy

anthropic = pytest.importorskip("anthropic")

KEY = "sk-ant-a-secret-key"
# What is tested here is how the provider is asked, whatever it answers.
UNCHECKED = "{sections: false, min_words: 0}"
MESSAGES: list[Message] = [
    {"role": "system", "content": "You are an agent."},
    user("Rename the API."),
    calls(("c0", "Bash")),
    results(("c0", "ok")),
]


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with messages_server() as running:
        yield running


def session(root: Path, client: object, more: str = "") -> Session:
    compiled = policy(f"""\
        model: {{tokenizer: approximate}}
        store: {{sync: never}}
        compaction:
          summary: {{by: anthropic, backoff: 0s, timeout: 5s, check: {UNCHECKED}{more}}}
        steps: [{{name: summarise, do: compact}}]
        """)
    return Session(compiled, root=root, summarizer=summarizer_for("anthropic", client))


def applied(root: Path, server: MessagesServer, more: str = "") -> Result:
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        return session(root, client, more).apply(MESSAGES)


def summary_of(result: Result) -> Any:
    return result.messages[1]["content"]


def test_a_models_summary_takes_the_place_of_the_history(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [saying("The API is renamed.")]
    result = applied(tmp_path, server)
    assert summary_of(result) == "[Conversation compressed]\n\nThe API is renamed."
    assert result.messages[0] is MESSAGES[0]


def test_each_provider_failure_counts_as_an_attempt(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [
        failing(429, "rate_limit_error"),
        failing(500),
        failing(529, "overloaded_error"),
        Scripted('{"content": ['),
        saying(""),
        saying("At last."),
    ]
    result = applied(tmp_path, server, ", attempts: 6")
    assert summary_of(result) == "[Conversation compressed]\n\nAt last."
    assert len(server.requests) == 6


def test_a_provider_that_keeps_failing_leaves_the_list_unchanged(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [failing(529, "overloaded_error")] * 3
    result = applied(tmp_path, server)
    assert result.messages is MESSAGES
    assert not result.compacted
    assert result.warnings == (
        "not compacted, after 3 attempts: no summary: the provider answered 529 overloaded_error",
    )


def test_the_plan_does_not_report_a_summary_that_was_not_made(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [failing(529, "overloaded_error")] * 3
    plan = applied(tmp_path, server).plan
    assert plan.compaction is None
    reasons = {(decision.action, decision.reason.code) for decision in plan.decisions}
    assert reasons == {("keep", "not_summarised")}


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_a_permanent_error_is_not_retried(
    status: int, tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [failing(status), saying("Never asked for.")]
    result = applied(tmp_path, server)
    assert result.messages is MESSAGES
    assert len(server.requests) == 1
    assert result.warnings[0].startswith(
        f"not compacted, after 1 attempt: no summary: the provider answered {status}"
    )


def test_a_permanent_error_after_a_transient_error_ends_the_attempts(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [failing(529, "overloaded_error"), failing(401), saying("Never asked for.")]
    result = applied(tmp_path, server, ", attempts: 5, on_failure: extractive")
    assert "Rename the API." in summary_of(result)
    assert len(server.requests) == 2


def test_missing_credentials_are_not_retried(
    tmp_path: Path, server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    result = session(tmp_path / "store", None).apply(MESSAGES)
    assert not result.compacted
    assert result.warnings[0].startswith("not compacted, after 1 attempt: no summary: there are no")
    assert server.requests == []


def test_the_extractive_summary_may_be_the_fallback(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [failing(500)] * 3
    result = applied(tmp_path, server, ", on_failure: extractive")
    assert "Rename the API." in summary_of(result)
    assert len(server.requests) == 3


def test_an_async_session_awaits_an_async_client(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [failing(500), saying("Awaited.")]

    async def main() -> Result:
        async with anthropic.AsyncAnthropic(base_url=server.url, api_key=KEY) as client:
            return await session(tmp_path, client).apply_async(MESSAGES)

    assert summary_of(asyncio.run(main())) == "[Conversation compressed]\n\nAwaited."


def test_the_summary_is_labelled_in_the_next_prompt_after_a_compaction(
    tmp_path: Path, server: MessagesServer
) -> None:
    server.script = [saying("First."), saying("Second.")]
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        one = session(tmp_path, client)
        first = one.apply(MESSAGES)
        one.apply([*first.messages, user("And the tests?")])
    asked = server.requests[1]["messages"][0]["content"]
    before = '<recorded from="Summary of what came before">\nFirst.\n</recorded>'
    assert f'{before}\n<recorded from="User">\nAnd the tests?\n</recorded>' in asked
    assert "Understood." not in asked


def test_no_file_of_the_session_holds_the_key(tmp_path: Path, server: MessagesServer) -> None:
    server.script = [failing(401, "authentication_error", KEY)]
    result = applied(tmp_path, server, ", on_failure: extractive")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not [path for path in files if KEY.encode() in path.read_bytes()]
    assert KEY not in json.dumps(result.messages) + "".join(result.warnings)
