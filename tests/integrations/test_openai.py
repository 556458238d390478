"""`with_policy` around clients of OpenAI's SDK, against a server that checks each request.

The tests run with the oldest supported SDK too: see `scripts/test-oldest`.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel

from policyctx import Request, Session
from policyctx.errors import InputError, MessagesError
from policyctx.integrations.openai import with_policy
from tests.conversations import chat_calls, chat_result, user
from tests.integrations.agents import long_reply
from tests.integrations.killing import check_goes_on
from tests.integrations.loops import (
    BIG,
    GATED,
    LIMITS,
    LONG,
    OLD,
    SECOND,
    SHARE,
    TURNS,
    WINDOW,
    check_own_files,
    files_of,
    limit_of,
    long_results,
    ten_sessions,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.scripted import BROKEN, OVERLOADED, Reply, calling, saying
from tests.policies import policy

MODEL = {"model": "gpt-some"}


@dataclass(frozen=True)
class Endpoint:
    """How a program uses one of the two APIs."""

    resource: Callable[[Any], Any]
    messages: str
    call: Callable[[str], Any]
    result: Callable[[str, str], Any]
    tools: list[Any]

    def history(self, *contents: str) -> list[Any]:
        """A task, then a call of the tool and its result for each content."""
        messages: list[Any] = [user("the task")]
        for i, content in enumerate(contents):
            messages += [self.call(f"c{i}"), self.result(f"c{i}", content)]
        return messages

    def asked(self, messages: Any, **more: Any) -> dict[str, Any]:
        return {**MODEL, "tools": self.tools, self.messages: messages, **more}

    def created(self, client: Any, messages: Any, **more: Any) -> Any:
        return self.resource(client).create(**self.asked(messages, **more))

    def result_text(self, body: Any, number: int) -> str:
        message = body[self.messages][2 + 2 * number]
        text: str = message.get("content") or message["output"]
        return text

    def is_edited(self, body: Any) -> bool:
        first, second = (self.result_text(body, i) for i in range(2))
        return first.startswith("[") and second == SECOND


SCHEMA = {"name": "Bash", "parameters": {"type": "object", "properties": {}}}
CHAT = Endpoint(
    lambda client: client.chat.completions,
    "messages",
    lambda id_: chat_calls((id_, "Bash", "{}")),
    chat_result,
    [{"type": "function", "function": SCHEMA}],
)
RESPONSES = Endpoint(
    lambda client: client.responses,
    "input",
    lambda id_: {"type": "function_call", "call_id": id_, "name": "Bash", "arguments": "{}"},
    lambda id_, text: {"type": "function_call_output", "call_id": id_, "output": text},
    [{"type": "function", **SCHEMA}],
)
HISTORY = CHAT.history(BIG, SECOND)


@pytest.fixture(params=[CHAT, RESPONSES], ids=["chat", "responses"])
def endpoint(request: pytest.FixtureRequest) -> Endpoint:
    found: Endpoint = request.param
    return found


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        yield server


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OLD), root=tmp_path, session_id="s")


def gated(folder: Path) -> Session:
    return Session(policy(GATED), root=folder, session_id="s")


def bare_client(api: OpenAIAPI, **options: Any) -> Any:
    return openai.OpenAI(base_url=api.url, api_key="k", **options)


def client_of(api: OpenAIAPI, session: Any) -> Any:
    return with_policy(bare_client(api), session)


def async_client_of(api: OpenAIAPI, session: Any) -> Any:
    return with_policy(openai.AsyncOpenAI(base_url=api.url, api_key="k"), session)


@pytest.mark.parametrize(("model", "limit"), LIMITS)
def test_a_share_is_of_the_window_of_the_called_model(
    api: OpenAIAPI, endpoint: Endpoint, tmp_path: Path, model: str, limit: int
) -> None:
    session = Session(policy(SHARE), root=tmp_path, session_id="s")
    with client_of(api, session) as client:
        endpoint.created(client, endpoint.history(BIG))
        assert limit_of(session) == 160_000
        endpoint.created(client, endpoint.history(BIG, SECOND), model=model)
    assert limit_of(session) == limit


def test_create_sends_the_edited_list_and_leaves_the_callers_list(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    messages = endpoint.history(BIG, SECOND)
    before = json.dumps(messages)
    with client_of(api, session) as client:
        endpoint.created(client, messages)
    [body] = api.bodies
    assert endpoint.is_edited(body)
    assert body == endpoint.asked(body[endpoint.messages])
    assert json.dumps(messages) == before
    [file] = files_of(session)
    assert session.read(file) == BIG
    assert api.refused == []


def test_the_asynchronous_client_sends_the_edited_list(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    async def run() -> None:
        async with async_client_of(api, session) as client:
            await endpoint.created(client, endpoint.history(BIG, SECOND))

    asyncio.run(run())
    assert endpoint.is_edited(api.bodies[0])


def test_a_list_without_an_edit_is_sent_as_it_is(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    with client_of(api, session) as client:
        endpoint.created(client, endpoint.history(SECOND))
        endpoint.created(bare_client(api), endpoint.history(SECOND))
    assert api.raw[0] == api.raw[1]


def test_any_iterable_of_messages_is_edited(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    with client_of(api, session) as client:
        endpoint.created(client, iter(endpoint.history(BIG, SECOND)))
        endpoint.created(client, tuple(endpoint.history(BIG, SECOND)))
    assert endpoint.is_edited(api.bodies[0])
    assert api.raw[0] == api.raw[1]


def test_the_messages_of_earlier_responses_may_be_the_sdks_objects(
    api: OpenAIAPI, session: Session
) -> None:
    chat: list[Any] = [user("the task")]
    items: list[Any] = [user("the task")]
    with client_of(api, session) as client:
        for i in range(3):
            api.script = [calling((f"c{i}", "Bash", {"n": i}))]
            answer = CHAT.created(client, chat)
            chat += [answer.choices[0].message, chat_result(f"c{i}", f"{i} {BIG}")]
        CHAT.created(client, chat)
        assert api.bodies[-1]["messages"][2]["content"].startswith("[")
    other = Session(policy(OLD), root=f"{session.store.root}-2", session_id="t")
    with client_of(api, other) as client:
        for i in range(3):
            api.script = [calling((f"c{i}", "Bash", {"n": i}), reasons=True)]
            items += [*RESPONSES.created(client, items).output]
            items.append(RESPONSES.result(f"c{i}", f"{i} {BIG}"))
        RESPONSES.created(client, items)
        assert api.bodies[-1]["input"][3]["output"].startswith("[")
    assert api.refused == []


def test_an_input_may_be_a_string(api: OpenAIAPI, tmp_path: Path) -> None:
    session = gated(tmp_path)
    with client_of(api, session) as client:
        client.responses.create(**MODEL, input="the task")
    assert api.bodies[0]["input"] == "the task"
    assert session.totals().calls == 1


def test_instructions_and_tools_count_towards_the_gates(api: OpenAIAPI, tmp_path: Path) -> None:
    messages = RESPONSES.history(BIG, SECOND)
    with client_of(api, gated(tmp_path)) as client:
        RESPONSES.created(client, messages)
        RESPONSES.created(client, [*messages], instructions="rule " * 20_000)
    assert [RESPONSES.result_text(body, 0) == BIG for body in api.bodies] == [True, False]


class Answer(BaseModel):
    """The form of an answer."""

    number: int


STREAM: dict[str, Any] = {"stream": True}
WITH_USAGE: dict[str, Any] = {"stream_options": {"include_usage": True}}


def chat_created(client: Any, messages: Any) -> None:
    CHAT.created(client, messages)


def chat_parsed(client: Any, messages: Any) -> None:
    answer = client.chat.completions.parse(**MODEL, messages=messages, response_format=Answer)
    assert answer.choices[0].message.parsed == Answer(number=1)


def chat_create_streamed(client: Any, messages: Any) -> None:
    for _ in CHAT.created(client, messages, **STREAM, **WITH_USAGE):
        pass


def chat_streamed(client: Any, messages: Any) -> None:
    with client.chat.completions.stream(**MODEL, messages=messages, **WITH_USAGE) as stream:
        assert stream.get_final_completion().usage is not None


def chat_raw(client: Any, messages: Any) -> None:
    client.chat.completions.with_raw_response.create(**MODEL, messages=messages).parse()


def chat_raw_streamed(client: Any, messages: Any) -> None:
    asked = CHAT.asked(messages, **STREAM, **WITH_USAGE)
    for _ in client.with_raw_response.chat.completions.create(**asked).parse():
        pass


def chat_streaming_response(client: Any, messages: Any) -> None:
    asked = CHAT.asked(messages, **STREAM, **WITH_USAGE)
    with client.chat.completions.with_streaming_response.create(**asked) as response:
        for _ in response.parse():
            pass


def responses_created(client: Any, messages: Any) -> None:
    RESPONSES.created(client, messages)


def responses_parsed(client: Any, messages: Any) -> None:
    answer = client.responses.parse(**MODEL, input=messages, text_format=Answer)
    assert answer.output_parsed == Answer(number=1)


def responses_create_streamed(client: Any, messages: Any) -> None:
    for _ in RESPONSES.created(client, messages, **STREAM):
        pass


def responses_streamed(client: Any, messages: Any) -> None:
    with client.responses.stream(**MODEL, input=messages) as stream:
        assert stream.get_final_response().usage is not None


def responses_raw(client: Any, messages: Any) -> None:
    client.responses.with_raw_response.create(**MODEL, input=messages).parse()


def responses_raw_streamed(client: Any, messages: Any) -> None:
    asked = RESPONSES.asked(messages, **STREAM)
    for _ in client.with_raw_response.responses.create(**asked).parse():
        pass


def responses_streaming_response(client: Any, messages: Any) -> None:
    asked = RESPONSES.asked(messages, **STREAM)
    with client.responses.with_streaming_response.create(**asked) as response:
        for _ in response.parse():
            pass


OF_CHAT = [
    chat_created,
    chat_parsed,
    chat_create_streamed,
    chat_streamed,
    chat_raw,
    chat_raw_streamed,
    chat_streaming_response,
]
OF_RESPONSES = [
    responses_created,
    responses_parsed,
    responses_create_streamed,
    responses_streamed,
    responses_raw,
    responses_raw_streamed,
    responses_streaming_response,
]
SENDING = [
    *((CHAT, send) for send in OF_CHAT),
    *((RESPONSES, send) for send in OF_RESPONSES),
]


@pytest.mark.parametrize(("used", "send"), SENDING, ids=lambda v: getattr(v, "__name__", ""))
def test_every_method_sends_the_edited_list_and_observes_usage(
    api: OpenAIAPI,
    tmp_path: Path,
    used: Endpoint,
    send: Callable[[Any, Any], None],
) -> None:
    messages = used.history(BIG, SECOND)
    api.script = lambda _: saying('{"number": 1}')
    gates = gated(tmp_path / "gated")
    with client_of(api, gates) as client:
        send(client, messages)
    assert [gates.totals().tokens_sent] == api.prompts
    old = Session(policy(OLD), root=tmp_path / "old", session_id="s")
    with client_of(api, old) as client:
        send(client, messages)
    assert used.is_edited(api.bodies[-1])
    assert len(old.ledger) == 1
    assert api.refused == []


def test_usage_is_observed_by_the_asynchronous_client(
    api: OpenAIAPI, tmp_path: Path, endpoint: Endpoint
) -> None:
    messages = endpoint.history(BIG, SECOND)

    async def tokens(name: str) -> int:
        session = gated(tmp_path / name)
        async with async_client_of(api, session) as client:
            resource, asked = endpoint.resource(client), endpoint.asked(messages)
            more = WITH_USAGE if endpoint is CHAT else {}
            if name == "plain":
                await resource.create(**asked)
            elif name == "raw":
                (await resource.with_raw_response.create(**asked)).parse()
            elif name == "create streamed":
                async for _ in await resource.create(**asked, **STREAM, **more):
                    pass
            elif name == "streaming response":
                raw = resource.with_streaming_response
                async with raw.create(**asked, **STREAM, **more) as response:
                    async for _ in await response.parse():
                        pass
            else:
                asked.pop("tools")  # `stream` only takes strict ones
                async with resource.stream(**asked, **more) as stream:
                    async for _ in stream:
                        pass
        return session.totals().tokens_sent

    names = ["plain", "raw", "create streamed", "streaming response", "stream"]
    assert [asyncio.run(tokens(name)) for name in names] == api.prompts


def test_with_streaming_response_leaves_the_body_to_the_caller(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    asked = endpoint.asked(endpoint.history(BIG, SECOND))
    with (
        client_of(api, session) as client,
        endpoint.resource(client).with_streaming_response.create(**asked) as response,
    ):
        assert not response.is_closed
        assert "id" in json.loads(b"".join(response.iter_bytes()))
    assert endpoint.is_edited(api.bodies[0])


def test_with_options_and_copies_keep_the_policy(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    with client_of(api, session) as client:
        other = client.with_options(timeout=5).copy(default_headers={"x-some": "header"})
        endpoint.created(other, endpoint.history(BIG, SECOND))
    assert endpoint.is_edited(api.bodies[0])
    assert api.headers[0]["x-some"] == "header"
    assert other.timeout == 5


def test_the_client_that_was_given_and_other_resources_stay_as_they_are(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    with bare_client(api) as bare:
        client = with_policy(bare, session)
        assert type(client) is type(bare)
        assert type(client.embeddings) is type(bare.embeddings)
        assert "create" not in vars(client.embeddings)
        endpoint.created(bare, endpoint.history(BIG, SECOND))
    assert endpoint.result_text(api.bodies[0], 0) == BIG
    assert len(session.ledger) == 0


def test_a_policy_with_a_session_id_has_one_session(api: OpenAIAPI, tmp_path: Path) -> None:
    with with_policy(bare_client(api), policy(OLD), root=tmp_path, session_id="s") as client:
        CHAT.created(client, HISTORY)
    assert CHAT.is_edited(api.bodies[0])
    with pytest.raises(InputError, match="no ids of conversations"):
        with_policy(client, "coding-agent")


@pytest.mark.parametrize("given", ["coding-agent", Session])
def test_the_client_comes_first(api: OpenAIAPI, given: Any) -> None:
    with (
        bare_client(api) as bare,
        pytest.raises(InputError, match="its first argument is a client"),
    ):
        with_policy(given, bare)


def test_a_client_of_another_session_gets_the_new_one_instead(
    api: OpenAIAPI, session: Session, tmp_path: Path
) -> None:
    first = gated(tmp_path / "other")
    with with_policy(client_of(api, first), session) as client:
        CHAT.created(client, HISTORY)
    assert CHAT.is_edited(api.bodies[0])
    assert first.totals().calls == 0


def test_the_events_of_a_stream_are_those_that_come_without_a_policy(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    reply = calling(("a", "Bash", {"command": "ls " * 50}))
    messages = endpoint.history(BIG, SECOND)

    def events(client: Any, given: Any) -> list[Any]:
        api.script = [reply]
        api._ids = 0
        return [e.model_dump() for e in endpoint.created(client, given, **STREAM)]

    with client_of(api, session) as client:
        with_it = events(client, messages)
        without = events(bare_client(api), api.bodies[0][endpoint.messages])
    assert len(with_it) > 5
    assert with_it == without
    assert api.bodies[0] == api.bodies[1]


def test_a_stream_hands_each_event_on_before_the_next_one_is_sent(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    api.holds = threading.Event()
    with client_of(api, session) as client:
        stream = endpoint.created(client, endpoint.history(BIG), **STREAM)
        next(stream)
        api.holds.set()
        assert len([*stream]) > 1


def test_a_stream_that_is_cut_off_raises_and_the_list_can_be_sent_again(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    messages = endpoint.history(BIG, SECOND)
    api.script = [saying("a" * 400).cut(4)]
    with client_of(api, session) as client:
        with pytest.raises(Exception, match=r"peer closed|incomplete|Connection error"):
            [*endpoint.created(client, messages, **STREAM)]
        [*endpoint.created(client, messages, **STREAM)]
    assert api.raw[0] == api.raw[1]
    assert len(session.ledger) == 1
    assert api.refused == []


def test_a_stream_that_the_caller_leaves_is_closed(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    with client_of(api, session) as client:
        with endpoint.created(client, endpoint.history(BIG), **STREAM) as stream:
            for _ in stream:
                break
        assert stream.response.is_closed


def test_a_streamed_chat_without_usage_is_reported_once(
    api: OpenAIAPI, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = gated(tmp_path)
    with client_of(api, session) as client:
        for _ in range(2):
            assert all(chunk.choices for chunk in CHAT.created(client, HISTORY, **STREAM))
    assert "stream_options" not in api.bodies[0]
    [record] = caplog.records
    assert "stream_options={'include_usage': True}" in record.getMessage()


@pytest.mark.parametrize("error", [OVERLOADED, BROKEN], ids=["529", "500"])
def test_a_retried_request_is_sent_byte_for_byte_and_decided_once(
    api: OpenAIAPI, tmp_path: Path, endpoint: Endpoint, error: Reply
) -> None:
    # From the second turn on no result stays.
    text = OLD.replace("keep_recent: 1", "keep_recent: 0").replace(
        "do: offload}", "do: offload, when: {idle: {at_least: 0s}}}"
    )
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = endpoint.history(BIG, SECOND)
    api.script = [error, error]
    with client_of(api, session) as client:
        endpoint.created(client, messages)
        assert [h["x-stainless-retry-count"] for h in api.headers] == ["0", "1", "2"]
        assert api.raw[0] == api.raw[1] == api.raw[2]
        assert endpoint.result_text(api.bodies[2], 0) == BIG
        endpoint.created(client, messages)
    assert endpoint.result_text(api.bodies[3], 0) != BIG


def test_a_retried_asynchronous_request_is_sent_byte_for_byte(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    async def run() -> None:
        async with async_client_of(api, session) as client:
            await endpoint.created(client, endpoint.history(BIG, SECOND))

    api.script = [OVERLOADED]
    asyncio.run(run())
    assert api.raw[0] == api.raw[1]
    assert endpoint.is_edited(api.bodies[1])


HELD: list[dict[str, Any]] = [
    {"previous_response_id": "resp_0"},
    {"conversation": "conv_0"},
    {"conversation": {"id": "conv_0"}},
    {"extra_body": {"previous_response_id": "resp_0"}},
]


@pytest.mark.parametrize("held", HELD, ids=str)
def test_a_request_whose_history_is_on_the_server_is_sent_unchanged_with_one_warning(
    api: OpenAIAPI, session: Session, caplog: pytest.LogCaptureFixture, held: dict[str, Any]
) -> None:
    messages = RESPONSES.history(BIG, SECOND)
    with client_of(api, session) as client:
        for _ in range(2):
            RESPONSES.created(client, messages, **held)
    assert [body["input"] for body in api.bodies] == [messages, messages]
    assert len(session.ledger) == 0
    [record] = caplog.records
    assert next(iter(held.get("extra_body", held))) in record.getMessage()


def test_an_argument_that_was_not_given_holds_no_history(api: OpenAIAPI, session: Session) -> None:
    absent: dict[str, Any] = {"previous_response_id": None, "conversation": openai.NOT_GIVEN}
    with client_of(api, session) as client:
        RESPONSES.created(client, RESPONSES.history(BIG, SECOND), **absent)
    assert RESPONSES.is_edited(api.bodies[0])


def test_hosted_items_and_reasoning_are_sent_as_they_came(api: OpenAIAPI, tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}, assistant_message: {offload: true}}
        min_tokens: 10
        steps: [{name: all, do: offload, select: {types: [tool_result, assistant_message]}}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    items: list[Any] = [user("Search.")]
    with client_of(api, session) as client:
        api.script = [Reply(BIG, (("c0", "Bash", "{}"),), reasons=True, searches=True)]
        items += [*RESPONSES.created(client, items).output]
        items.append(RESPONSES.result("c0", SECOND))
        RESPONSES.created(client, items)
    assert api.refused == []
    sent = api.bodies[1]["input"]
    assert [item.get("type") for item in sent[1:4]] == ["reasoning", "web_search_call", "message"]
    assert SECOND not in json.dumps(sent)


def test_a_request_of_another_conversation_is_sent_unchanged(
    api: OpenAIAPI, session: Session, caplog: pytest.LogCaptureFixture, endpoint: Endpoint
) -> None:
    messages = endpoint.history(BIG, SECOND)
    other = [user("Give this a title."), *endpoint.history(f"other {BIG}", f"other {BIG}")[1:]]
    with client_of(api, session) as client:
        endpoint.created(client, messages)
        endpoint.resource(client).create(**MODEL, **{endpoint.messages: other})
        endpoint.created(client, [*messages, user("and now?")])
    assert api.bodies[1][endpoint.messages] == other
    assert endpoint.is_edited(api.bodies[2])
    assert "not of this conversation" in caplog.text


def test_the_system_message_tells_conversations_of_a_chat_apart(
    api: OpenAIAPI, session: Session
) -> None:
    first: list[Any] = [{"role": "system", "content": "Be an agent."}, *HISTORY]
    history = [user("Of this."), *CHAT.history(f"other {BIG}", f"other {BIG}")[1:]]
    other = [{"role": "developer", "content": "Write a title."}, *history]
    with client_of(api, session) as client:
        CHAT.created(client, first)
        CHAT.created(client, other)
    assert api.bodies[0]["messages"] != first
    assert api.bodies[1]["messages"] == other


def test_a_function_chooses_the_session_of_a_request(api: OpenAIAPI, tmp_path: Path) -> None:
    sessions = {
        name: Session(policy(OLD), root=tmp_path / name, session_id=name) for name in ("a", "b")
    }
    with client_of(api, lambda request: sessions.get(request.get("user"))) as client:
        for name in ("a", "b", "none"):
            CHAT.created(client, HISTORY, user=name)
    assert [CHAT.is_edited(body) for body in api.bodies] == [True, True, False]
    assert [len(session.ledger) for session in sessions.values()] == [1, 1]


def test_a_summary_over_the_same_client_is_no_turn_of_the_session(
    api: OpenAIAPI, tmp_path: Path
) -> None:
    clients: list[Any] = []

    def summarise(*_: Any, **__: Any) -> str:
        return str(clients[0].responses.create(**MODEL, input="Summarise.").output_text)

    text = """\
        compaction: {keep_recent: {messages: 1}}
        steps: [{name: s, do: compact, when: {messages: {at_least: 5}}}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s", summarizer=summarise)
    with client_of(api, session) as client:
        clients.append(client)
        api.script = [saying("Everything that happened so far. " * 10)]
        CHAT.created(client, [*HISTORY, user("and now?")])
    assert [body.get("input") for body in api.bodies] == ["Summarise.", None]
    assert "Everything that happened" in json.dumps(api.bodies[1])
    assert api.refused == []


def run_agent(client: Any, name: str, turns: int) -> list[Any]:
    messages: list[Any] = [user(f"task of {name}")]
    for turn in range(turns):
        answer = CHAT.created(client, messages)
        messages.append(answer.choices[0].message.to_dict())
        [called] = answer.choices[0].message.tool_calls
        messages.append(chat_result(called.id, f"{name} {turn} " * 300))
    return messages


def next_call(body: Any) -> Reply:
    return calling((f"t{len(body['messages'])}", "Bash", {}))


def check_sessions(api: OpenAIAPI, sessions: dict[str, Session]) -> None:
    assert api.refused == []
    assert len(api.bodies) == 10 * 6
    check_own_files(sessions, 4)


@pytest.mark.slow
def test_ten_sessions_run_at_the_same_time_in_threads(api: OpenAIAPI, tmp_path: Path) -> None:
    sessions = ten_sessions(tmp_path)
    api.script = next_call
    with bare_client(api) as bare, ThreadPoolExecutor(10) as pool:
        clients = [with_policy(bare, session) for session in sessions.values()]
        [*pool.map(run_agent, clients, sessions, [6] * 10)]
    check_sessions(api, sessions)


@pytest.mark.slow
def test_ten_sessions_run_at_the_same_time_in_one_event_loop(
    api: OpenAIAPI, tmp_path: Path
) -> None:
    sessions = ten_sessions(tmp_path)
    api.script = next_call

    async def agent(name: str) -> None:
        messages: list[Any] = [user(f"task of {name}")]
        async with async_client_of(api, sessions[name]) as client:
            for turn in range(6):
                answer = await CHAT.created(client, messages)
                messages.append(answer.choices[0].message)
                [called] = answer.choices[0].message.tool_calls
                messages.append(chat_result(called.id, f"{name} {turn} " * 300))

    async def run() -> None:
        await asyncio.gather(*(agent(name) for name in sessions))

    asyncio.run(run())
    check_sessions(api, sessions)


@pytest.mark.slow
def test_two_clients_on_one_session_take_turns(api: OpenAIAPI, session: Session) -> None:
    api.script = next_call

    def agent(client: Any) -> None:
        messages: list[Any] = [user("the task")]
        for turn in range(6):
            answer = CHAT.created(client, messages)
            messages.append(answer.choices[0].message)
            called = answer.choices[0].message.tool_calls[0]
            messages.append(chat_result(called.id, f"result {turn} " * 300))

    with (
        client_of(api, session) as one,
        client_of(api, session) as two,
        ThreadPoolExecutor(2) as pool,
    ):
        [*pool.map(agent, [one, two])]
    assert api.refused == []
    assert len(api.bodies) == 12
    assert len({session.read(file) for file in files_of(session)}) == len({*files_of(session)})


def chat_reply(answer: Any) -> Any:
    """The reply without the fields that only the SDK's stream adds to it."""
    message = answer.choices[0].message
    asked = [(c.id, c.function.name, c.function.arguments) for c in message.tool_calls or ()]
    return chat_calls(*asked) if asked else {"role": "assistant", "content": message.content}


def reply_items(answer: Any) -> list[Any]:
    """The items of a response without the fields that only the SDK's stream adds to them."""
    items = [item.to_dict() for item in answer.output]
    for part in [*items, *(part for item in items for part in item.get("content") or ())]:
        part.pop("parsed", None)
        part.pop("parsed_arguments", None)
    return items


def check_long_session(api: OpenAIAPI, session: Session, messages: list[Any]) -> None:
    assert api.refused == []
    assert len(api.prompts) == TURNS
    assert max(api.prompts) <= WINDOW
    assert len(json.dumps(messages)) // 3 > TURNS // 10 * WINDOW
    actions = {entry.action.past for entry in session.ledger.entries.values()}
    assert "offloaded" in actions
    assert session.totals().compactions > 2


@pytest.mark.slow
def test_many_turns_stay_valid_and_within_the_window(tmp_path: Path, endpoint: Endpoint) -> None:
    session = Session(policy(LONG), root=tmp_path, session_id="s")
    rules = "You are a careful agent. " * 80
    is_chat = endpoint is CHAT
    messages: list[Any] = [{"role": "system", "content": rules}] if is_chat else []
    messages.append(user("Do the first part."))
    beside: dict[str, Any] = {} if is_chat else {"instructions": rules}
    with_usage = WITH_USAGE if is_chat else {}
    with openai_api(WINDOW) as api, client_of(api, session) as client:
        for turn in range(TURNS):
            api.script = [[OVERLOADED, BROKEN][turn % 2]] if turn % 13 == 5 else []
            api.script.append(long_reply(turn))
            asked = {**MODEL, endpoint.messages: messages, **beside}
            if turn % 3:
                answer = endpoint.resource(client).create(**asked)
            else:
                with endpoint.resource(client).stream(**asked, **with_usage) as stream:
                    stream.until_done()
                    answer = (
                        stream.get_final_completion() if is_chat else stream.get_final_response()
                    )
            messages += [chat_reply(answer)] if is_chat else reply_items(answer)
            if turn % 10 == 9:
                messages.append(user(f"Do part {turn + 1}."))
            else:
                messages += [endpoint.result(*given) for given in long_results(turn)]
        check_long_session(api, session, messages)


KILLED = """\
import json, os, signal, sys
from pathlib import Path
from openai import OpenAI
from policyctx import Request, Session
from policyctx.integrations.openai import with_policy

folder, url, die_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
policy, transcript = folder / "p.yaml", folder / "items.json"
session = Session(policy, root=folder / "store", session_id="s")
client = with_policy(OpenAI(base_url=url, api_key="k"), session)
items = [{"role": "user", "content": "Go."}]
if transcript.exists():
    items = json.loads(transcript.read_text())
for turn in range(len(items) // 2, 8):
    answer = client.responses.create(model="gpt-some", input=items)
    [call] = answer.output
    items.append(call.to_dict())
    found = {"type": "function_call_output", "call_id": call.call_id, "output": f"{turn} " * 800}
    items.append(found)
    transcript.write_text(json.dumps(items))
    if turn == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_program_goes_on_with_the_same_bytes(api: OpenAIAPI, tmp_path: Path) -> None:
    api.script = lambda body: calling((f"t{len(body['input'])}", "Bash", {}))
    check_goes_on(KILLED, tmp_path, api, "input")


def test_a_client_for_azure_is_wrapped(api: OpenAIAPI, session: Session) -> None:
    azure = openai.AzureOpenAI(base_url=api.url, api_key="k", api_version="v1")
    with with_policy(azure, session) as client:
        assert type(client) is openai.AzureOpenAI
        RESPONSES.created(client, RESPONSES.history(BIG, SECOND))
    assert RESPONSES.is_edited(api.bodies[0])


@pytest.mark.skipif(not openai.__version__.startswith("2."), reason="gone in openai 3")
def test_the_former_name_of_chat_completions_is_wrapped(api: OpenAIAPI, session: Session) -> None:
    with client_of(api, session) as client:
        client.beta.chat.completions.parse(**MODEL, messages=HISTORY)
    assert CHAT.is_edited(api.bodies[0])


def test_what_is_no_message_raises_before_anything_is_sent(
    api: OpenAIAPI, session: Session, endpoint: Endpoint
) -> None:
    with client_of(api, session) as client:
        endpoint.created(client, endpoint.history(SECOND))
        with pytest.raises(MessagesError):
            endpoint.created(client, [*endpoint.history(SECOND), 7])
    assert len(api.bodies) == 1


def test_warnings_of_a_turn_are_logged(
    api: OpenAIAPI, tmp_path: Path, caplog: pytest.LogCaptureFixture, endpoint: Endpoint
) -> None:
    root = tmp_path / "a file"
    root.write_text("in the way")
    session = Session(policy(OLD), root=root, session_id="s")
    messages = endpoint.history(BIG, SECOND)
    with client_of(api, session) as client:
        endpoint.created(client, messages)
    assert api.bodies[0][endpoint.messages] == messages
    assert caplog.records


@pytest.mark.parametrize("model", [None, "gpt-4o"])
@pytest.mark.parametrize("says", ["text", "calls"])
def test_a_loop_of_its_own_sends_each_message_in_the_form_that_it_has(
    says: str, model: str | None, endpoint: Endpoint, api: OpenAIAPI, tmp_path: Path
) -> None:
    """A list that has neither a system message nor tools does not show which API it is for."""
    api.script = [saying("done") if says == "text" else calling(("c1", "Bash", {}))] * 2
    session = Session("coding-agent", root=tmp_path, session_id="s")
    messages: list[Any] = [user("List.")]
    with bare_client(api) as client:
        for _ in range(2):
            sent = session.apply(messages, request=Request(model=model)).messages
            fields = {**MODEL, endpoint.messages: list(sent)}
            if endpoint is CHAT:
                messages.append(client.chat.completions.create(**fields).choices[0].message)
            else:
                messages += client.responses.create(**fields).output
            if says == "calls":
                messages.append(endpoint.result("c1", "a.py"))
            messages.append(user("Once more."))
    first, second = (body[endpoint.messages] for body in api.bodies)
    assert first == [user("List.")]
    assert second[0] == first[0]
    assert "cache_control" not in json.dumps(second)
