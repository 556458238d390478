from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from policyctx.compaction.assembly import History, SummaryRequest
from policyctx.compaction.sdk_summarizers import AnthropicSummarizer
from policyctx.compaction.summarizers import asked, asked_async, summarizer_for
from policyctx.errors import SummaryError
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for
from tests.compaction.messages_server import (
    MessagesServer,
    Scripted,
    failing,
    messages_server,
    saying,
)
from tests.conversations import results, session_of, user

anthropic = pytest.importorskip("anthropic")

KEY = "sk-ant-a-secret-key"
LONG_WAIT = 30.0


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    with messages_server() as running:
        yield running


def request_of(*messages: Any, pinned: tuple[str, ...] = (), **settings: Any) -> SummaryRequest:
    history = History(messages or [user("Rename it.")])
    made = Summary.model_validate({"by": "anthropic", **settings})
    return SummaryRequest(history, made, counter_for("approximate"), pinned)


WAYS = ("sync", "async", "async client, sync call", "sync client, async call")


@pytest.fixture(params=WAYS[:2])
def ask(request: pytest.FixtureRequest, server: MessagesServer) -> Iterator[Callable[..., str]]:
    """Ask with a client of the caller's, which would try again by itself."""
    options = {"base_url": server.url, "api_key": KEY, "max_retries": 5, "timeout": LONG_WAIT}
    if request.param in {WAYS[0], WAYS[3]}:
        with anthropic.Anthropic(**options) as client:
            one = summarizer_for("anthropic", client)
            if request.param == WAYS[0]:
                yield lambda wanted: asked(one, wanted)
            else:
                yield lambda wanted: asyncio.run(asked_async(one, wanted))
    elif request.param == WAYS[1]:

        async def in_a_loop(wanted: SummaryRequest) -> str:
            async with anthropic.AsyncAnthropic(**options) as client:
                one = summarizer_for("anthropic", client)
                return await asked_async(one, wanted)

        yield lambda wanted: asyncio.run(in_a_loop(wanted))
    else:
        client = anthropic.AsyncAnthropic(**options)
        one = summarizer_for("anthropic", client)
        yield lambda wanted: asked(one, wanted)
        asyncio.run(client.close())


def refused(ask: Callable[..., str], wanted: SummaryRequest | None = None) -> SummaryError:
    with pytest.raises(SummaryError) as caught:
        ask(wanted or request_of())
    return caught.value


def test_the_models_text_is_the_summary(ask: Callable[..., str], server: MessagesServer) -> None:
    server.script = [saying(" ## Goals\nRename.\n", "## Rest")]
    assert ask(request_of()) == "## Goals\nRename.\n\n\n## Rest"


def test_the_models_thoughts_are_cut_off(ask: Callable[..., str], server: MessagesServer) -> None:
    server.script = [saying("<analysis>\nFirst he …\n</analysis>\n<summary>\n## A\nx\n</summary>")]
    assert ask(request_of()) == "## A\nx"


def test_an_answer_of_thoughts_alone_is_rejected(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    server.script = [saying("<analysis>He wants a rename and")]
    assert str(refused(ask)) == "no summary: the answer is empty"


def test_a_tool_call_is_rejected_with_its_name(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    block = {"type": "tool_use", "id": "t", "name": "Bash", "input": {"command": "ls"}}
    server.script = [saying("I look.", stop_reason="tool_use", blocks=[block])]
    error = refused(ask)
    assert "the model called the tool 'Bash' and wrote no summary" in str(error)
    assert (error.answered, error.is_final) == (True, False)


@pytest.mark.parametrize("ask", WAYS, indirect=True)
def test_it_is_asked_again_over_the_same_client(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    assert [ask(request_of()), ask(request_of())] == ["Summary.", "Summary."]
    assert len(server.requests) == 2


def test_the_prompt_is_made_of_the_settings(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    rule = "Name every file."
    ask(request_of(model="claude-some", max_words=77, rules=[rule], sections=["Aims"]))
    (sent,) = server.requests
    assert (sent["path"], sent["model"]) == ("/v1/messages", "claude-some")
    assert all(part in sent["system"] for part in (rule, "## Aims", "77 words"))
    assert '<recorded from="User">\nRename it.\n</recorded>' in sent["messages"][0]["content"]
    assert "max_tokens" in sent


@pytest.mark.parametrize("ask", WAYS, indirect=True)
def test_the_callers_key_is_used(ask: Callable[..., str], server: MessagesServer) -> None:
    ask(request_of())
    assert KEY in str(server.headers[0])


@pytest.mark.parametrize(
    ("status", "kind"),
    [(429, "rate_limit_error"), (500, "api_error"), (529, "overloaded_error"), (503, "api_error")],
)
def test_an_error_status_is_one_failed_attempt(
    ask: Callable[..., str], server: MessagesServer, status: int, kind: str
) -> None:
    server.script = [failing(status, kind)]
    error = refused(ask)
    assert str(error) == f"no summary: the provider answered {status} {kind}"
    assert (error.status, len(server.requests)) == (status, 1)


@pytest.mark.parametrize("ask", WAYS, indirect=True)
def test_a_rejected_request_is_reported_with_the_providers_message(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    server.script = [failing(404, "not_found_error", "model: claude-nothing")]
    error = refused(ask)
    assert error.status == 404
    assert "model: claude-nothing" in str(error)


@pytest.mark.parametrize("ask", WAYS, indirect=True)
def test_a_slow_answer_is_rejected(ask: Callable[..., str], server: MessagesServer) -> None:
    server.script = [Scripted(hangs=True)]
    with pytest.raises(SummaryError, match=r"no answer within 0.05 s"):
        ask(replace(request_of(), timeout=0.05))


@pytest.mark.slow
def test_an_answer_slower_than_the_policys_timeout_is_rejected(server: MessagesServer) -> None:
    server.script = [Scripted(hangs=True)]
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        summarizer = AnthropicSummarizer(client)
        with pytest.raises(SummaryError, match="no answer within 1 s"):
            summarizer.summarize(request_of(timeout="1s"))
    assert len(server.requests) == 1


@pytest.mark.parametrize("body", ['{"content": [{"ty', "", "<html>busy</html>", "[]", "null", "7"])
def test_a_malformed_answer_is_rejected(
    ask: Callable[..., str], server: MessagesServer, body: str
) -> None:
    server.script = [Scripted(body)]
    error = refused(ask)
    assert "no message" in str(error) or "cannot be read" in str(error)


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        ("refusal", "the model refused"),
        ("max_tokens", "had not finished"),
        ("model_context_window_exceeded", "larger than the model's window"),
        ("pause_turn", "stopped for 'pause_turn'"),
    ],
)
def test_an_unfinished_answer_is_rejected(
    ask: Callable[..., str], server: MessagesServer, reason: str, said: str
) -> None:
    server.script = [saying("Half a summ", stop_reason=reason)]
    assert said in str(refused(ask))


@pytest.mark.parametrize("texts", [(), ("",), (" \n", "\t")])
def test_an_empty_answer_is_rejected(
    ask: Callable[..., str], server: MessagesServer, texts: tuple[str, ...]
) -> None:
    server.script = [saying(*texts)]
    assert str(refused(ask)) == "no summary: the answer is empty"


def test_an_answer_of_ten_megabytes_is_rejected(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    server.script = [saying("x" * 10_000_000)]
    assert "far more than was asked for" in str(refused(ask))


def test_an_unreachable_provider_is_a_failed_attempt() -> None:
    with messages_server() as gone:
        url = gone.url
    with anthropic.Anthropic(base_url=url, api_key=KEY) as client:
        error = refused(lambda wanted: asked(summarizer_for("anthropic", client), wanted))
    assert str(error) == "no summary: the provider cannot be reached"


def test_pinned_texts_are_in_the_summary(ask: Callable[..., str], server: MessagesServer) -> None:
    server.script = [saying("Keep: never push.")]
    text = ask(request_of(pinned=("never push", "ask Jonas\nfirst")))
    assert text == "Keep: never push.\n\n## Pinned\nask Jonas\nfirst"


def test_a_lone_surrogate_is_sent_as_its_replacement(
    ask: Callable[..., str], server: MessagesServer
) -> None:
    ask(request_of(user("a\ud83d b")))
    assert "a\ufffd b" in server.requests[0]["messages"][0]["content"]


def sent_chars(server: MessagesServer, request: SummaryRequest) -> int:
    with anthropic.Anthropic(base_url=server.url, api_key=KEY) as client:
        AnthropicSummarizer(client).summarize(request)
    return len(server.requests[-1]["messages"][0]["content"])


def test_a_conversation_over_the_window_is_shortened_at_its_results(
    server: MessagesServer,
) -> None:
    messages = session_of(*("line of output\n" * 20_000 for _ in range(5)))
    messages[0] = user("The task. " * 1000)
    assert sent_chars(server, request_of(*messages)) < 4 * 160_000
    sent = server.requests[0]["messages"][0]["content"]
    assert "The task. " * 1000 in sent
    assert "tokens left out" in sent


def test_a_share_of_the_window_is_the_limit(server: MessagesServer) -> None:
    messages = session_of("line of output\n" * 20_000)
    assert sent_chars(server, request_of(*messages, max_input="10%")) < 4 * 20_000


def test_a_number_of_tokens_is_the_limit(server: MessagesServer) -> None:
    messages = session_of("line of output\n" * 20_000)
    assert sent_chars(server, request_of(*messages, max_input=1000)) < 4 * 1000


@pytest.mark.parametrize(
    ("model", "counted"),
    [
        ("claude-haiku-4-5", 128_000),
        ("eu.anthropic.claude-sonnet-4-5-20250929-v1:0", 128_000),
        ("claude-opus-4-6", 640_000),
        ("claude-opus-4-8", 533_333),
        ("claude-fable-5-1", 533_333),
        ("some-model", 106_666),
    ],
)
def test_a_model_has_its_window(server: MessagesServer, model: str, counted: int) -> None:
    request = request_of(user("x"), results(("c", "y" * 4_000_000)), model=model)
    tokens = sent_chars(server, request) / 4
    assert counted - 100 < tokens < counted + 100


def test_a_client_is_made_from_the_environment(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    summarizer = summarizer_for("anthropic")
    assert asked(summarizer, request_of()) == "Summary."
    assert asyncio.run(asked_async(summarizer, request_of())) == "Summary."
    assert [KEY in str(headers) for headers in server.headers] == [True, True]


def test_missing_credentials_error_names_the_variable(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    for name in [name for name in os.environ if name.startswith("ANTHROPIC_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(SummaryError, match="set ANTHROPIC_API_KEY"):
        asked(summarizer_for("anthropic"), request_of())


@pytest.mark.parametrize(
    "answer",
    [
        failing(401, "authentication_error", f"invalid key {KEY}"),
        failing(400, "invalid_request_error", f"bad header x-api-key: {KEY}"),
        failing(500, said=KEY),
        Scripted(f"<{KEY}>"),
        Scripted(f"<{KEY}>", status=502),
    ],
)
def test_no_error_shows_the_key(
    ask: Callable[..., str], server: MessagesServer, answer: Scripted
) -> None:
    server.script = [answer]
    error = refused(ask)
    shown = [str(error), repr(error), repr(vars(error)), *traceback.format_exception(error)]
    assert KEY not in "".join(shown)
    assert (error.cause, error.__cause__) == (None, None)


def test_a_key_that_cannot_be_sent_is_not_shown(server: MessagesServer) -> None:
    key = "sk-secret\n"
    with anthropic.Anthropic(base_url=server.url, api_key=key) as client:
        error = refused(lambda wanted: asked(summarizer_for("anthropic", client), wanted))
    assert "sk-secret" not in "".join(traceback.format_exception(error))
    assert error.__context__ is None


def test_the_key_is_neither_shown_nor_logged(
    ask: Callable[..., str], server: MessagesServer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.script = [saying("x"), failing(401, "authentication_error", KEY)]
    ask(request_of())
    refused(ask)
    assert KEY not in caplog.text
    client = anthropic.Anthropic(base_url=server.url, api_key=KEY)
    assert KEY not in repr(summarizer_for("anthropic", client))
    client.close()


@pytest.mark.slow
def test_the_sdk_is_imported_when_it_is_asked() -> None:
    code = (
        "import sys; from policyctx.compaction.summarizers import summarizer_for\n"
        "summarizer_for('extractive'); summarizer_for('anthropic')\n"
        "sys.exit('anthropic' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
