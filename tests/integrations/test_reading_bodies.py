"""The caller reads the body of a response himself: nothing of it changes, its usage is observed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import anthropic
import openai
import pytest

from policyctx import Session
from policyctx.integrations.anthropic import PolicyMiddleware
from policyctx.integrations.openai import with_policy
from policyctx.tokens.usage import BodyUsage
from tests.conversations import chat_calls, chat_result, session_of, user
from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.integrations.loops import BIG, OLD, SECOND
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.policies import policy


class Host(NamedTuple):
    """How a program makes its client, and uses one endpoint with it."""

    kinds: tuple[Any, Any]
    """The classes of the clients, synchronous and asynchronous."""
    made: Callable[[Any, str, Session], Any]
    resource: Callable[[Any], Any]
    asked: dict[str, Any]
    streaming: dict[str, Any]

    def client(self, url: str, session: Session) -> Any:
        return self.made(self.kinds[0], url, session)

    def async_client(self, url: str, session: Session) -> Any:
        return self.made(self.kinds[1], url, session)


def with_middleware(kind: Any, url: str, session: Session) -> Any:
    return kind(base_url=url, api_key="k", middleware=[PolicyMiddleware(session)])


def wrapped(kind: Any, url: str, session: Session) -> Any:
    return with_policy(kind(base_url=url, api_key="k"), session)


def chat_history() -> list[Any]:
    turns = [
        [chat_calls((i, "Bash", "{}")), chat_result(i, BIG if i == "a" else SECOND)] for i in "ab"
    ]
    return [user("the task"), *turns[0], *turns[1]]


def responses_history() -> list[Any]:
    found: list[Any] = [user("the task")]
    for i, text in (("a", BIG), ("b", SECOND)):
        found += [
            {"type": "function_call", "call_id": i, "name": "Bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": i, "output": text},
        ]
    return found


MESSAGES = {
    "model": "claude-some",
    "max_tokens": 99,
    "tools": [{"name": "Bash", "input_schema": {"type": "object"}}],
    "messages": [*session_of(BIG, SECOND)],
}
CHAT = {"model": "gpt-some", "messages": chat_history()}
RESPONSES = {"model": "gpt-some", "input": responses_history()}
STREAM: dict[str, Any] = {"stream": True}
USAGE = {"stream_options": {"include_usage": True}}
ANTHROPIC = (anthropic.Anthropic, anthropic.AsyncAnthropic), with_middleware
OPENAI = (openai.OpenAI, openai.AsyncOpenAI), wrapped
HOSTS = {
    "anthropic": Host(*ANTHROPIC, lambda c: c.messages, MESSAGES, STREAM),
    "anthropic beta": Host(*ANTHROPIC, lambda c: c.beta.messages, MESSAGES, STREAM),
    "chat": Host(*OPENAI, lambda c: c.chat.completions, CHAT, STREAM | USAGE),
    "responses": Host(*OPENAI, lambda c: c.responses, RESPONSES, STREAM),
}
if hasattr(openai.OpenAI(api_key="k").beta, "responses"):  # the oldest SDK has none
    HOSTS["beta responses"] = Host(*OPENAI, lambda c: c.beta.responses, RESPONSES, STREAM)


@pytest.fixture(params=HOSTS)
def host(request: pytest.FixtureRequest) -> Host:
    return HOSTS[request.param]


@pytest.fixture
def api(host: Host) -> Iterator[AnthropicAPI | OpenAIAPI]:
    with anthropic_api() if host.made is with_middleware else openai_api() as server:
        yield server


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OLD), root=tmp_path, session_id="s")


WHOLE = ["read", "text", "json", "parse"]
PIECES = ["iter_bytes", "iter_text", "iter_lines"]


def whole(raw: Any) -> str:
    """What was read, as one text without line ends."""
    text = raw.decode() if isinstance(raw, bytes) else raw
    return "".join(text.split())


@pytest.mark.parametrize("method", WHOLE + PIECES)
def test_usage_is_observed_however_a_body_is_read(
    host: Host, api: AnthropicAPI | OpenAIAPI, session: Session, method: str
) -> None:
    with (
        host.client(api.url, session) as client,
        host.resource(client).with_streaming_response.create(**host.asked) as response,
    ):
        assert not response.is_closed
        found = getattr(response, method)()
        if method in PIECES:
            found = whole(b"".join(found) if method == "iter_bytes" else "".join(found))
            assert json.loads(found)["id"]
    assert len(session.ledger) == 1
    assert session.totals().tokens_sent == api.prompts[0]


@pytest.mark.parametrize("method", [*PIECES, "parse"])
def test_usage_is_observed_however_a_stream_is_read(
    host: Host, api: AnthropicAPI | OpenAIAPI, session: Session, method: str
) -> None:
    asked = {**host.asked, **host.streaming}
    with (
        host.client(api.url, session) as client,
        host.resource(client).with_streaming_response.create(**asked) as response,
    ):
        found = [*getattr(response, method)()]
    assert len(found) > 1
    assert session.totals().tokens_sent == api.prompts[0]


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize("method", ["read", *PIECES])
def test_the_asynchronous_client_observes_usage_however_a_body_is_read(
    host: Host,
    api: AnthropicAPI | OpenAIAPI,
    session: Session,
    method: str,
    streams: bool,
) -> None:
    asked = {**host.asked, **(host.streaming if streams else {})}

    async def run() -> None:
        async with (
            host.async_client(api.url, session) as client,
            host.resource(client).with_streaming_response.create(**asked) as response,
        ):
            if method == "read":
                assert await response.read()
            else:
                assert [piece async for piece in getattr(response, method)()]

    asyncio.run(run())
    assert session.totals().tokens_sent == api.prompts[0]


def test_the_bytes_are_those_that_the_server_sent(
    host: Host, api: AnthropicAPI | OpenAIAPI, session: Session
) -> None:
    asked = {**host.asked, **host.streaming}
    with (
        host.client(api.url, session) as client,
        host.resource(client).with_streaming_response.create(**asked) as response,
    ):
        pieces = [*response.iter_bytes(7)]
    assert {len(piece) for piece in pieces[:-1]} == {7}
    assert b"".join(pieces).endswith(b"\n\n")


EVENT = {"type": "message_start", "message": {"usage": {"input_tokens": 7}}}
FIRST = f"data: {json.dumps(EVENT)}\n"


@pytest.mark.parametrize(
    ("pieces", "found"),
    [
        ([FIRST], 7),
        ([FIRST[:9], FIRST[9:20], FIRST[20:]], 7),
        ([*FIRST], 7),
        ([f"event: x\r\ndata:{json.dumps(EVENT)}\r\n"], 7),
        (["data: [DONE]\n", "data: {\n", "data: 7\n", "\n", FIRST], 7),
        (['data: {"usage": {"input_tokens": 0}}\n', FIRST], 7),
        (['data: {"usage": {"input_tokens": "a"}}\n', 'data: {"message": 3}\n'], None),
        ([FIRST[:-1]], None),
    ],
)
def test_usage_is_found_in_events_however_they_are_cut(
    pieces: list[str], found: int | None
) -> None:
    body = BodyUsage("text/event-stream; charset=utf-8")
    usages: list[Any] = [usage for piece in pieces if (usage := body.after(piece)) is not None]
    assert [usage.input for usage in usages] == ([] if found is None else [found])
    assert body.at_end() is None
