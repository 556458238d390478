"""The summary by a model of OpenAI or of a compatible endpoint, through the real SDK."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from policyctx.compaction.assembly import History, SummaryRequest
from policyctx.compaction.sdk_summarizers import OpenAISummarizer
from policyctx.compaction.summarizers import asked, asked_async, summarizer_for
from policyctx.errors import SummaryError
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for
from tests.chat_server import ChatServer, calling, chat_server
from tests.compaction.messages_server import failing, messages_server
from tests.conversations import session_of, user

openai = pytest.importorskip("openai")

KEY = "sk-a-secret-key"
WAYS = ("sync", "async", "async client, sync call", "sync client, async call")


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with chat_server() as running:
        yield running


def request_of(*messages: Any, **settings: Any) -> SummaryRequest:
    made = Summary.model_validate({"by": "openai", "model": "gpt-some", **settings})
    history = History(messages or [user("Rename it.")])
    return SummaryRequest(history, made, counter_for("approximate"))


@pytest.fixture(params=WAYS)
def ask(request: pytest.FixtureRequest, server: ChatServer) -> Callable[[SummaryRequest], str]:
    """Ask with a client of the caller's, which would try again by itself."""
    options: dict[str, Any] = {"base_url": server.url, "api_key": KEY, "max_retries": 5}
    way: str = request.param

    async def in_a_loop(wanted: SummaryRequest) -> str:
        async with openai.AsyncOpenAI(**options) as client:
            return await asked_async(summarizer_for("openai", client), wanted)

    def asking(wanted: SummaryRequest) -> str:
        if way == "async":
            return asyncio.run(in_a_loop(wanted))
        if way == "async client, sync call":
            client = openai.AsyncOpenAI(**options)
            try:
                return asked(summarizer_for("openai", client), wanted)
            finally:
                asyncio.run(client.close())
        with openai.OpenAI(**options) as client:
            one = summarizer_for("openai", client)
            return asked(one, wanted) if way == "sync" else asyncio.run(asked_async(one, wanted))

    return asking


def refused(ask: Callable[[SummaryRequest], str], wanted: SummaryRequest) -> SummaryError:
    with pytest.raises(SummaryError) as caught:
        ask(wanted)
    return caught.value


def test_the_models_text_is_the_summary(
    ask: Callable[[SummaryRequest], str], server: ChatServer
) -> None:
    server.script = [calling(content="<analysis>a</analysis><summary>## Goals\nRename.</summary>")]
    request = request_of()
    assert ask(request) == "## Goals\nRename."
    assert [(bill.input, bill.output) for bill in request.bills] == [(9, 9)]
    (sent,) = server.requests
    assert sent["model"] == "gpt-some"
    assert [message["role"] for message in sent["messages"]] == ["system", "user"]
    assert '<recorded from="User">\nRename it.' in sent["messages"][1]["content"]
    assert sent["max_tokens"] > 8_000
    assert "max_completion_tokens" not in sent


def test_a_tool_call_is_rejected_with_its_name(
    ask: Callable[[SummaryRequest], str], server: ChatServer
) -> None:
    server.script = [calling(("c", "bash", "{}"))]
    error = refused(ask, request_of())
    assert "the model called the tool 'bash' and wrote no summary" in str(error)
    assert not error.is_final


def test_a_refusal_is_final(ask: Callable[[SummaryRequest], str], server: ChatServer) -> None:
    server.script = [calling() | {"refusal": "I will not."}]
    error = refused(ask, request_of())
    assert "the model refused to answer: I will not." in str(error)
    assert error.is_final


@pytest.mark.parametrize(
    ("check", "content", "outcome"),
    [
        (True, "Half", "had not finished its answer"),
        (False, "Half", ""),
        (False, "<analysis>Half", "had not finished its answer"),
    ],
)
def test_an_answer_that_is_cut_off_is_accepted_without_a_check(
    server: ChatServer, check: bool, content: str, outcome: str
) -> None:
    server.script = [calling(content=content) | {"finish_reason": "length"}]
    with openai.OpenAI(base_url=server.url, api_key=KEY) as client:
        one, wanted = summarizer_for("openai", client), request_of(check=check)
        if not outcome:
            assert asked(one, wanted) == content
            return
        with pytest.raises(SummaryError, match=outcome):
            asked(one, wanted)


def test_an_empty_answer_is_rejected(
    ask: Callable[[SummaryRequest], str], server: ChatServer
) -> None:
    server.script = [calling(content="<think>…</think>")]
    assert str(refused(ask, request_of())) == "no summary: the answer is empty"


def test_a_client_is_made_from_the_settings(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SUMMARY_KEY", KEY)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-another")
    one = OpenAISummarizer()
    own = request_of(base_url=server.url, api_key_env="SUMMARY_KEY")
    assert one.summarize(own) == "done"
    assert asyncio.run(one.summarize_async(own)) == "done"
    one.summarize(request_of(base_url=server.url))
    keys = [headers["authorization"] for headers in server.headers]
    assert keys == [f"Bearer {KEY}", f"Bearer {KEY}", "Bearer none"]


def test_an_anthropic_client_is_made_from_the_settings_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("anthropic")
    monkeypatch.setenv("SUMMARY_KEY", KEY)
    with messages_server() as running:
        settings = {"by": "anthropic", "base_url": running.url, "api_key_env": "SUMMARY_KEY"}
        assert asked(summarizer_for("anthropic"), request_of(**settings)) == "Summary."
        assert KEY in str(running.headers[0])


def test_a_missing_key_is_an_error_that_names_its_variable(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("SUMMARY_KEY", raising=False)
    error = refused(OpenAISummarizer().summarize, request_of())
    assert (str(error), error.is_final) == (
        "no summary: there are no credentials: set OPENAI_API_KEY or give a client",
        True,
    )
    named = request_of(base_url=server.url, api_key_env="SUMMARY_KEY")
    error = refused(OpenAISummarizer().summarize, named)
    assert "the environment variable SUMMARY_KEY is not set" in str(error)
    assert server.requests == []


def test_no_error_shows_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUMMARY_KEY", KEY)
    with messages_server() as running:
        running.script = [failing(400, "invalid_request_error", f"bad key {KEY}")]
        wanted = request_of(base_url=running.url, api_key_env="SUMMARY_KEY")
        error = refused(OpenAISummarizer().summarize, wanted)
    assert error.status == 400
    assert KEY not in "".join([str(error), *traceback.format_exception(error)])


def test_a_conversation_over_the_window_is_shortened(server: ChatServer) -> None:
    messages = session_of(*("line of output\n" * 20_000 for _ in range(3)))
    wanted = request_of(*messages, base_url=server.url, model="unheard-of")
    OpenAISummarizer().summarize(wanted)
    assert len(server.requests[0]["messages"][1]["content"]) / 4 < 0.8 * 128_000


def test_openais_own_endpoint_has_the_newer_name_of_the_limit() -> None:
    with openai.OpenAI(api_key=KEY) as client:
        one = OpenAISummarizer(client)
        at_openai = one._asked(request_of(), client)
        other = client.with_options(base_url="https://api.openai.com.example/v1")
        elsewhere = one._asked(request_of(), other)
    assert "max_completion_tokens" in at_openai
    assert "max_tokens" in elsewhere
