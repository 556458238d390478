"""A prompt that the provider refuses as too long is sent once more, and never twice."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import anthropic
import openai
import pytest

from policyctx import Session
from policyctx.integrations.anthropic import PolicyMiddleware
from policyctx.integrations.openai import with_policy
from tests.conversations import session_of, user
from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.integrations.openai_api import OpenAIAPI, frame, openai_api
from tests.integrations.scripted import Reply
from tests.integrations.test_openai import CHAT, RESPONSES, Endpoint
from tests.policies import policy
from tests.serving import serving

STEP = (
    "{name: too-long, on: overflow, do: drop,"
    " select: {unit: group, types: ['*'], until: {tokens: {under: 60%}}}}"
)
WINDOW = 10_000
LONG = "word " * 1_500
ANTHROPIC: dict[str, Any] = {"model": "claude-some", "max_tokens": 99}


def session_in(folder: Path, steps: str = STEP) -> Session:
    # The servers bill a token for three bytes.
    text = f"model: {{tokenizer: {{chars_per_token: 3}}}}\nsteps: [{steps}]"
    return Session(policy(text), root=folder, session_id="s")


@pytest.fixture
def claude() -> Iterator[AnthropicAPI]:
    with anthropic_api() as server:
        server.window = WINDOW
        yield server


def claude_of(api: AnthropicAPI, session: Session, kind: Any = anthropic.Anthropic) -> Any:
    return kind(base_url=api.url, api_key="k", middleware=[PolicyMiddleware(session)])


HISTORY = [*session_of(*[LONG] * 6), user("and now")]


def check_sent_again(api: Any, session: Session, name: str = "messages") -> None:
    first, second = api.bodies
    assert len(second[name]) < len(first[name])
    assert len(api.prompts) == 1
    assert api.prompts[0] < WINDOW
    assert session.totals().tokens_sent == api.prompts[0]


@pytest.mark.parametrize("how", ["plain", "stream", "raw stream"])
def test_anthropics_client_sends_once_more(claude: AnthropicAPI, tmp_path: Path, how: str) -> None:
    session = session_in(tmp_path)
    client = claude_of(claude, session)
    asked: Any = {**ANTHROPIC, "messages": HISTORY}
    if how == "plain":
        assert client.messages.create(**asked).content[0].text == "Done."
    elif how == "stream":
        with client.messages.stream(**asked) as stream:
            assert stream.get_final_text() == "Done."
    else:
        assert [*client.messages.create(**asked, stream=True)][-1].type == "message_stop"
    check_sent_again(claude, session)
    # What was dropped stays out, so the next request is not refused.
    longer = [*HISTORY, {"role": "assistant", "content": "Done."}, user("on")]
    client.messages.create(**{**asked, "messages": longer})
    assert len(claude.bodies) == 3


@pytest.mark.parametrize("streams", [False, True])
def test_anthropics_asynchronous_client_sends_once_more(
    claude: AnthropicAPI, tmp_path: Path, *, streams: bool
) -> None:
    session = session_in(tmp_path)

    async def run() -> None:
        async with claude_of(claude, session, anthropic.AsyncAnthropic) as client:
            asked: Any = {**ANTHROPIC, "messages": HISTORY}
            if streams:
                async with client.messages.stream(**asked) as stream:
                    assert await stream.get_final_text() == "Done."
            else:
                await client.messages.create(**asked)

    asyncio.run(run())
    check_sent_again(claude, session)


def test_a_second_refusal_passes(claude: AnthropicAPI, tmp_path: Path) -> None:
    claude.window = 400
    client = claude_of(claude, session_in(tmp_path))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(**ANTHROPIC, messages=[*HISTORY, user(LONG)])
    assert len(claude.bodies) == 2


@pytest.mark.parametrize("steps", ["", STEP.replace("on: overflow, ", "")])
def test_without_such_a_step_the_refusal_passes(
    claude: AnthropicAPI, tmp_path: Path, steps: str
) -> None:
    claude.window = 400
    client = claude_of(claude, session_in(tmp_path, steps))
    with pytest.raises(anthropic.BadRequestError, match="prompt is too long"):
        client.messages.create(**ANTHROPIC, messages=HISTORY)
    assert len(claude.bodies) == 1


def test_another_refusal_passes(claude: AnthropicAPI, tmp_path: Path) -> None:
    client = claude_of(claude, session_in(tmp_path))
    with pytest.raises(anthropic.BadRequestError):
        client.messages.create(**ANTHROPIC, messages=[{"role": "assistant", "content": "x"}])
    assert len(claude.bodies) == 1


ENDPOINTS = pytest.mark.parametrize("endpoint", [CHAT, RESPONSES], ids=["chat", "responses"])


class RefusingInStream(OpenAIAPI):
    """Refuses a prompt over the window inside of the stream, as OpenAI and OpenRouter do."""

    form = "error"

    def answer(self, path: str, body: Any, reply: Reply) -> Any:
        whole = super().answer(path, body, reply)
        if self.tokens_of(body) <= WINDOW:
            return whole
        self.prompts.pop()
        return self.failing(path, body)

    def failing(self, path: str, body: Any) -> Iterable[str]:
        text = "Your input exceeds the context window of this model."
        error = {"type": "invalid_request_error", "code": "context_length_exceeded"}
        error |= {"message": text, "param": "input"}
        if path.endswith("completions"):
            yield f"data: {json.dumps({'error': error})}\n\n"
            return
        begun = {"id": "resp_1", "object": "response", "created_at": 1, "model": body["model"]}
        begun |= {"output": [], "tools": [], "parallel_tool_calls": True, "tool_choice": "auto"}
        running = {**begun, "status": "in_progress", "error": None}
        yield frame({"type": "response.created", "response": running, "sequence_number": 0})
        yield frame({"type": "response.in_progress", "response": running, "sequence_number": 1})
        if self.form == "failed":
            said = {"code": "context_length_exceeded", "message": text}
            failed = {**begun, "status": "failed", "error": said}
            yield frame({"type": "response.failed", "response": failed, "sequence_number": 2})
        elif self.form == "error":
            yield frame({**error, "type": "error", "sequence_number": 2})
        else:
            yield frame({"type": "error", "error": error, "sequence_number": 2})


@pytest.fixture
def gpt() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        server.window = WINDOW
        yield server


def gpt_of(api: OpenAIAPI, session: Session, kind: Any = openai.OpenAI) -> Any:
    return with_policy(kind(base_url=api.url, api_key="k"), session)


def history(endpoint: Endpoint) -> list[Any]:
    return endpoint.history(*[LONG] * 6)


@ENDPOINTS
@pytest.mark.parametrize("how", ["plain", "stream", "raw"])
def test_openais_client_sends_once_more(
    gpt: OpenAIAPI, tmp_path: Path, endpoint: Endpoint, how: str
) -> None:
    session = session_in(tmp_path)
    client, asked = gpt_of(gpt, session), endpoint.asked(history(endpoint))
    if how == "raw":
        endpoint.resource(client).with_raw_response.create(**asked).parse()
    elif how == "plain":
        endpoint.resource(client).create(**asked)
    else:
        more = {"stream_options": {"include_usage": True}} if endpoint is CHAT else {}
        assert [*endpoint.resource(client).create(**asked, stream=True, **more)]
    check_sent_again(gpt, session, endpoint.messages)


@ENDPOINTS
@pytest.mark.parametrize("streams", [False, True])
def test_openais_asynchronous_client_sends_once_more(
    gpt: OpenAIAPI, tmp_path: Path, endpoint: Endpoint, *, streams: bool
) -> None:
    session, asked = session_in(tmp_path), endpoint.asked(history(endpoint))

    async def run() -> None:
        async with gpt_of(gpt, session, openai.AsyncOpenAI) as client:
            made = await endpoint.resource(client).create(**asked, stream=streams)
            if streams:
                assert [event async for event in made]

    asyncio.run(run())
    assert len(gpt.bodies) == 2
    assert len(gpt.prompts) == 1


@ENDPOINTS
@pytest.mark.parametrize("form", ["error", "nested", "failed"])
@pytest.mark.parametrize("is_async", [False, True])
def test_a_stream_that_is_refused_after_it_began_is_asked_for_again(
    tmp_path: Path, endpoint: Endpoint, form: str, *, is_async: bool
) -> None:
    session, asked = session_in(tmp_path), endpoint.asked(history(endpoint))
    with serving(RefusingInStream()) as api:
        api.form = form

        async def run() -> list[Any]:
            async with gpt_of(api, session, openai.AsyncOpenAI) as client:
                made = await endpoint.resource(client).create(**asked, stream=True)
                return [event async for event in made]

        if is_async:
            events = asyncio.run(run())
        else:
            events = [*endpoint.resource(gpt_of(api, session)).create(**asked, stream=True)]
        assert len(api.bodies) == 2
        assert len(api.prompts) == 1
        kinds = [getattr(event, "type", "chunk") for event in events]
        assert kinds[-1] in {"response.completed", "chunk"}
        assert kinds.count("response.created") <= 1


@pytest.mark.parametrize("form", ["error", "failed"])
def test_an_event_of_another_failure_comes_to_the_caller(tmp_path: Path, form: str) -> None:
    session = session_in(tmp_path)
    asked = RESPONSES.asked([user("x " * 40_000)])
    with serving(RefusingInStream()) as api:
        api.form = form
        events = [*gpt_of(api, session).responses.create(**asked, stream=True)]
        # Nothing of this list can leave, so it is not sent again.
        assert len(api.bodies) == 1
        assert len(events) == 3


def test_a_second_refusal_of_openai_passes(gpt: OpenAIAPI, tmp_path: Path) -> None:
    gpt.window = 350
    with pytest.raises(openai.BadRequestError, match="maximum context length"):
        CHAT.created(gpt_of(gpt, session_in(tmp_path)), [*history(CHAT), user(LONG)])
    assert len(gpt.bodies) == 2
