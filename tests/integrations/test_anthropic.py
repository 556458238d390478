"""`PolicyMiddleware` in clients of Anthropic's SDK, against a server that checks each request.

The tests run with the oldest SDK that has middleware too: see `scripts/test-oldest`.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path
from typing import Any

import anthropic
import pytest

from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations.anthropic import PolicyMiddleware
from policyctx.integrations.host_sessions import AgentLoop, Turn
from policyctx.messages.asked import Asked
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import results, session_of, user
from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.integrations.anthropic_rules import marked_blocks, signed
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
from tests.integrations.scripted import OVERLOADED, Reply, calling, saying
from tests.policies import policy

# The oldest tool runner has no threads; the newest uses them unless it is told not to.
NO_THREAD: dict[str, Any] = (
    {} if int(anthropic.__version__.split(".")[0]) < 1 else {"thread": False}
)
TOOLS: Any = [{"name": "Bash", "input_schema": {"type": "object"}}]
ASKED: dict[str, Any] = {"model": "claude-some", "max_tokens": 99, "tools": TOOLS}


def list_of(*contents: str) -> list[Any]:
    """The list of `session_of`, which the SDK's types take."""
    return [*session_of(*contents)]


def then(*texts: str) -> list[Any]:
    """The messages of the conversation, and then more of the user."""
    return [*MESSAGES, *map(user, texts or ("go on",))]


MESSAGES = list_of(BIG, SECOND)


@pytest.fixture
def api() -> Iterator[AnthropicAPI]:
    with anthropic_api() as server:
        yield server


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OLD), root=tmp_path, session_id="s")


def client_of(api: AnthropicAPI, session: Any, **options: Any) -> anthropic.Anthropic:
    return anthropic.Anthropic(
        base_url=api.url, api_key="k", middleware=[PolicyMiddleware(session)], **options
    )


def async_client_of(api: AnthropicAPI, session: Any) -> anthropic.AsyncAnthropic:
    return anthropic.AsyncAnthropic(
        base_url=api.url, api_key="k", middleware=[PolicyMiddleware(session)]
    )


def result_text(body: Any, number: int) -> str:
    """The text of the result with this number in the list of `session_of`."""
    text: str = body["messages"][2 + 2 * number]["content"][0]["content"]
    return text


def is_edited(body: Any) -> bool:
    return result_text(body, 0).startswith("[") and result_text(body, 1) == SECOND


def test_create_sends_the_edited_list_and_leaves_the_callers_list(
    api: AnthropicAPI, session: Session
) -> None:
    before = json.dumps(MESSAGES)
    with client_of(api, session) as client:
        answer = client.messages.create(**ASKED, messages=MESSAGES)
    assert answer.content[0].type == "text"
    [body] = api.bodies
    assert is_edited(body)
    assert body == {**ASKED, "messages": body["messages"]}
    assert json.dumps(MESSAGES) == before
    [file] = files_of(session)
    assert session.read(file) == BIG
    assert api.refused == []


def test_a_policy_with_a_session_id_has_one_session(api: AnthropicAPI, tmp_path: Path) -> None:
    middleware = [PolicyMiddleware(policy(OLD), root=tmp_path, session_id="s")]
    with anthropic.Anthropic(base_url=api.url, api_key="k", middleware=middleware) as client:
        client.messages.create(**ASKED, messages=MESSAGES)
    assert is_edited(api.bodies[0])
    with pytest.raises(InputError, match="no ids of conversations"):
        PolicyMiddleware("coding-agent")


@pytest.mark.parametrize(("model", "limit"), LIMITS)
def test_a_share_is_of_the_window_of_the_called_model(
    api: AnthropicAPI, tmp_path: Path, model: str, limit: int
) -> None:
    session = Session(policy(SHARE), root=tmp_path, session_id="s")
    with client_of(api, session) as client:
        client.messages.count_tokens(model=model, messages=MESSAGES, tools=TOOLS)
        assert limit_of(session) == limit
        client.messages.create(**ASKED, messages=MESSAGES)
        assert limit_of(session) == 160_000
        client.messages.create(**{**ASKED, "model": model}, messages=then())
    assert limit_of(session) == limit


def test_the_asynchronous_client_sends_the_edited_list(api: AnthropicAPI, session: Session) -> None:
    async def run() -> None:
        async with async_client_of(api, session) as client:
            await client.messages.create(**ASKED, messages=MESSAGES)

    asyncio.run(run())
    assert is_edited(api.bodies[0])


def test_a_list_without_an_edit_is_sent_as_it_is(api: AnthropicAPI, session: Session) -> None:
    with client_of(api, session) as client:
        client.messages.create(**ASKED, messages=list_of(SECOND))
    assert api.bodies[0]["messages"] == list_of(SECOND)


def test_system_and_tools_count_towards_the_gates(api: AnthropicAPI, tmp_path: Path) -> None:
    session = Session(policy(GATED), root=tmp_path, session_id="s")
    with client_of(api, session) as client:
        client.messages.create(**ASKED, messages=MESSAGES)
        client.messages.create(**ASKED, messages=MESSAGES, system="rule " * 20_000)
    assert [result_text(body, 0) == BIG for body in api.bodies] == [True, False]


def streamed(client: anthropic.Anthropic, messages: Any) -> None:
    with client.messages.stream(**ASKED, messages=messages) as stream:
        stream.until_done()


def create_streamed(client: anthropic.Anthropic, messages: Any) -> None:
    for _ in client.messages.create(**ASKED, messages=messages, stream=True):
        pass


def raw_streamed(client: anthropic.Anthropic, messages: Any) -> None:
    response = client.messages.with_raw_response.create(**ASKED, messages=messages, stream=True)
    for _ in response.parse():
        pass


def created(client: anthropic.Anthropic, messages: Any) -> None:
    client.messages.create(**ASKED, messages=messages)


def raw_created(client: anthropic.Anthropic, messages: Any) -> None:
    client.messages.with_raw_response.create(**ASKED, messages=messages).parse()


def beta_created(client: anthropic.Anthropic, messages: Any) -> None:
    client.beta.messages.create(**ASKED, messages=messages)


def beta_streamed(client: anthropic.Anthropic, messages: Any) -> None:
    with client.beta.messages.stream(**ASKED, messages=messages) as stream:
        stream.until_done()


@pytest.mark.parametrize(
    "send",
    [
        created,
        create_streamed,
        streamed,
        raw_created,
        raw_streamed,
        beta_created,
        beta_streamed,
    ],
)
def test_usage_is_observed(
    api: AnthropicAPI, tmp_path: Path, send: Callable[[anthropic.Anthropic, Any], None]
) -> None:
    session = Session(policy(GATED), root=tmp_path, session_id="s")
    with client_of(api, session) as client:
        send(client, MESSAGES)
    [verdict] = session.plan(MESSAGES, tools=TOOLS).gates
    assert verdict.number == api.prompts[0]


def test_usage_is_observed_by_the_asynchronous_client(api: AnthropicAPI, tmp_path: Path) -> None:
    async def numbers() -> list[Any]:
        found: list[Any] = []
        for streams in (False, True):
            name = f"s{streams}"
            session = Session(policy(GATED), root=tmp_path / name, session_id=name)
            async with async_client_of(api, session) as client:
                if streams:
                    async with client.messages.stream(**ASKED, messages=MESSAGES) as stream:
                        await stream.until_done()
                else:
                    await client.messages.create(**ASKED, messages=MESSAGES)
            found += [v.number for v in session.plan(MESSAGES, tools=TOOLS).gates]
        return found

    assert asyncio.run(numbers()) == api.prompts


def test_cached_tokens_are_observed(api: AnthropicAPI, tmp_path: Path) -> None:
    session = Session(policy(GATED), root=tmp_path, session_id="s")
    marked = json.loads(json.dumps(then()))
    marked[-1]["content"] = [
        {"type": "text", "text": "go on", "cache_control": {"type": "ephemeral"}}
    ]
    with client_of(api, session) as client:
        for _ in range(2):
            answer = client.messages.create(**ASKED, messages=marked)
    assert answer.usage.cache_read_input_tokens
    assert session.plan(marked, tools=TOOLS).gates[0].number == api.prompts[-1]


def test_usage_that_a_stream_only_has_at_its_end_is_observed(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    session = Session(policy(GATED), root=tmp_path, session_id="s")
    api.bills_late = True
    with client_of(api, session) as client:
        streamed(client, MESSAGES)
    assert session.plan(MESSAGES, tools=TOOLS).gates[0].number == api.prompts[0]


def test_usage_is_not_observed_after_another_turn_has_begun(tmp_path: Path) -> None:
    session = Session(policy(GATED), root=tmp_path, session_id="s")
    turns = [Turn(session, Asked(key, MESSAGES)) for key in "ab"]
    for turn in turns:
        asyncio.run(turn.apply())
    asyncio.run(turns[0].observe({"input_tokens": 9_000}))
    assert session.plan(MESSAGES).gates[0].number != 9_000
    asyncio.run(turns[1].observe({"input_tokens": 9_000}))
    assert session.plan(MESSAGES).gates[0].number == 9_000


def test_with_streaming_response_leaves_the_body_to_the_caller(
    api: AnthropicAPI, session: Session
) -> None:
    with (
        client_of(api, session) as client,
        client.messages.with_streaming_response.create(**ASKED, messages=MESSAGES) as response,
    ):
        assert not response.is_closed
        assert json.loads(b"".join(response.iter_bytes()))["role"] == "assistant"
    assert is_edited(api.bodies[0])


def test_the_events_of_a_stream_come_one_by_one_as_without_the_middleware(
    api: AnthropicAPI, session: Session
) -> None:
    reply = calling(("a", "Bash", {"command": "ls " * 50}), reasons="hm " * 50)
    api.script = [reply, reply]
    with client_of(api, session) as client:
        with client.messages.stream(**ASKED, messages=MESSAGES) as stream:
            with_it = [event.model_dump() for event in stream]
        bare = client.with_options(middleware=[])
        with bare.messages.stream(**ASKED, messages=api.bodies[0]["messages"]) as stream:
            without = [event.model_dump() for event in stream]
    assert len(with_it) > 10
    renamed = json.dumps(with_it, default=str).replace("msg_1", "msg_2")
    assert renamed == json.dumps(without, default=str)


def test_a_stream_hands_each_event_on_before_the_next_one_is_sent(
    api: AnthropicAPI, session: Session
) -> None:
    api.holds = threading.Event()
    with client_of(api, session) as client:
        stream = client.messages.create(**ASKED, messages=MESSAGES, stream=True)
        assert next(stream).type == "message_start"
        api.holds.set()
        assert [event.type for event in stream][-1] == "message_stop"


def test_a_stream_that_is_cut_off_raises_and_its_usage_is_observed(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    session = Session(policy(GATED), root=tmp_path, session_id="s")
    api.script = [saying("a" * 400).cut(4)]
    with client_of(api, session) as client:
        with (
            pytest.raises(Exception, match="peer closed connection"),
            client.messages.stream(**ASKED, messages=MESSAGES) as stream,
        ):
            stream.until_done()
        [verdict] = session.plan(MESSAGES, tools=TOOLS).gates
        assert verdict.number == api.prompts[0]
        # The loop sends the same list again.
        streamed(client, MESSAGES)
    assert api.raw[0] == api.raw[1]
    assert api.refused == []


def test_a_retried_request_is_sent_byte_for_byte_and_decided_once(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    # From the second turn on no result stays.
    text = OLD.replace("keep_recent: 1", "keep_recent: 0").replace(
        "do: offload}", "do: offload, when: {idle: {at_least: 0s}}}"
    )
    session = Session(policy(text), root=tmp_path, session_id="s")
    api.script = [OVERLOADED, OVERLOADED, saying("ok"), saying("ok")]
    with client_of(api, session) as client:
        client.messages.create(**ASKED, messages=MESSAGES)
        assert [h["x-stainless-retry-count"] for h in api.headers] == ["0", "1", "2"]
        assert api.raw[0] == api.raw[1] == api.raw[2]
        assert result_text(api.bodies[2], 0) == BIG
        client.messages.create(**ASKED, messages=MESSAGES)
    assert result_text(api.bodies[3], 0) != BIG
    assert AgentLoop.of(session).kept == {}


def test_a_retried_asynchronous_request_is_sent_byte_for_byte(
    api: AnthropicAPI, session: Session
) -> None:
    async def run() -> None:
        async with async_client_of(api, session) as client:
            await client.messages.create(**ASKED, messages=MESSAGES)

    api.script = [OVERLOADED, saying("ok")]
    asyncio.run(run())
    assert api.raw[0] == api.raw[1]
    assert is_edited(api.bodies[1])


def test_count_tokens_counts_the_edited_list_and_decides_nothing(
    api: AnthropicAPI, session: Session, tmp_path: Path
) -> None:
    counting: dict[str, Any] = {"model": "claude-some", "tools": TOOLS}

    async def count() -> int:
        async with async_client_of(api, session) as client:
            answer = await client.messages.count_tokens(**counting, messages=MESSAGES)
            return answer.input_tokens

    with client_of(api, session) as client:
        counted = client.messages.count_tokens(**counting, messages=MESSAGES)
        assert asyncio.run(count()) == counted.input_tokens
        assert (len(session.ledger), [*tmp_path.rglob("*.md")]) == (0, [])
        client.messages.create(**ASKED, messages=MESSAGES)
        assert api.counted[0]["messages"] == api.bodies[0]["messages"]
        again = client.messages.count_tokens(**counting, messages=then())
    assert is_edited(api.counted[2])
    assert again.input_tokens > counted.input_tokens
    assert len(session.ledger) == 1


def test_count_tokens_of_the_beta_counts_the_edited_list_and_decides_nothing(
    api: AnthropicAPI, session: Session, tmp_path: Path
) -> None:
    counting: dict[str, Any] = {"model": "claude-some", "tools": TOOLS, "messages": MESSAGES}

    async def count() -> int:
        async with async_client_of(api, session) as client:
            return (await client.beta.messages.count_tokens(**counting)).input_tokens

    with client_of(api, session) as client:
        counted = client.beta.messages.count_tokens(**counting).input_tokens
    assert asyncio.run(count()) == counted
    assert [is_edited(body) for body in api.counted] == [True, True]
    assert (len(session.ledger), [*tmp_path.rglob("*.md")]) == (0, [])


def test_the_policys_breakpoints_are_sent_also_in_system_and_tools(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    session = Session(policy(OLD + "model: {cache: {breakpoints: auto}}"), root=tmp_path)
    tools = [{**TOOLS[0], "cache_control": {"type": "ephemeral"}}]
    asked: Any = {**ASKED, "system": "be good", "tools": tools}
    with client_of(api, session) as client:
        client.messages.create(**asked, messages=MESSAGES)
        client.messages.create(**asked, messages=then(), cache_control={"type": "ephemeral"})
        client.messages.create(**ASKED, messages=then("so", "on"))
    assert api.refused == []
    first, second, third = api.bodies
    assert [block.get("text") or block.get("name") for block in marked_blocks(first)[:2]] == [
        "Bash",
        "be good",
    ]
    assert "cache_control" not in second
    assert second["tools"] == TOOLS
    assert len(marked_blocks(second)) == 4
    assert "system" not in third


def test_other_fields_of_the_body_are_sent_as_they_are(api: AnthropicAPI, session: Session) -> None:
    edits: Any = {"edits": [{"type": "clear_thinking_20251015", "keep": "all"}]}
    with client_of(api, session) as client:
        client.beta.messages.create(
            **ASKED,
            messages=MESSAGES,
            context_management=edits,
            metadata={"user_id": "u"},
            betas=["context-management-2025-06-27"],
        )
    assert is_edited(api.bodies[0])
    assert api.bodies[0]["context_management"] == edits
    assert api.bodies[0]["metadata"] == {"user_id": "u"}
    assert "context-management-2025-06-27" in api.headers[0]["anthropic-beta"]


HELD: list[dict[str, Any]] = [
    {"thread": {"type": "continue", "previous_message_id": "msg_0"}},
    {"previous_message_id": "msg_0"},
    {"compaction": {"type": "summarize"}},
]


@pytest.mark.parametrize("held", HELD, ids=lambda held: next(iter(held)))
def test_a_request_whose_history_is_on_the_server_is_sent_unchanged_with_one_warning(
    api: AnthropicAPI, session: Session, caplog: pytest.LogCaptureFixture, held: dict[str, Any]
) -> None:
    with client_of(api, session) as client:
        for _ in range(2):
            client.messages.create(**ASKED, messages=MESSAGES, extra_body=held)
    assert [body["messages"] for body in api.bodies] == [MESSAGES, MESSAGES]
    assert len(session.ledger) == 0
    [record] = caplog.records
    assert next(iter(held)) in record.getMessage()


def test_blocks_of_server_tools_are_sent_as_they_are(api: AnthropicAPI, tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}, assistant_message: {offload: true}}
        min_tokens: 10
        steps: [{name: all, do: offload, select: {types: [tool_result, assistant_message]}}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    found = [{"type": "web_search_result", "url": "u", "title": "t", "encrypted_content": BIG}]
    blocks: list[Any] = [
        {"type": "thinking", "thinking": BIG, "signature": signed(BIG)},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"query": BIG}},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": found},
    ]
    reply = {"role": "assistant", "content": [*blocks, {"type": "text", "text": SECOND}]}
    messages: list[Any] = [user("Search."), reply, *session_of(BIG)]
    with client_of(api, session) as client:
        client.messages.create(**ASKED, messages=messages)
    sent = api.bodies[0]["messages"]
    assert sent[1]["content"][:3] == blocks
    assert BIG not in json.dumps(sent[2:])
    assert api.refused == []


def runner_tool() -> Any:
    @anthropic.beta_tool
    def read(name: str) -> str:
        """Read a file.

        Args:
            name: The name.
        """
        return f"{name} " * 400

    return read


def reading(*names: str) -> list[Reply]:
    return [*(calling((f"r{name}", "read", {"name": name})) for name in names), saying("Done.")]


def test_the_tool_runner_sends_the_edited_list(api: AnthropicAPI, session: Session) -> None:
    api.script = reading("a", "b", "c")
    with client_of(api, session) as client:
        runner = client.beta.messages.tool_runner(
            model="claude-some",
            max_tokens=99,
            tools=[runner_tool()],
            messages=[{"role": "user", "content": "Read all."}],
            **NO_THREAD,
        )
        final = runner.until_done()
    assert final.content[0].type == "text"
    texts = [result_text(api.bodies[3], i) for i in range(3)]
    assert [text.startswith("[") for text in texts] == [True, True, False]
    assert api.refused == []


@pytest.mark.skipif(not NO_THREAD, reason="the oldest tool runner has no threads")
def test_the_tool_runner_with_a_thread_is_left_alone(
    api: AnthropicAPI, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    api.script = [saying("Done.")]
    with client_of(api, session) as client:
        client.beta.messages.tool_runner(
            model="claude-some",
            max_tokens=99,
            tools=[runner_tool()],
            messages=[{"role": "user", "content": "Read all."}],
        ).until_done()
    assert "thread" in api.bodies[0]
    assert [record.levelname for record in caplog.records] == ["WARNING"]


def test_a_request_of_another_conversation_is_sent_unchanged(
    api: AnthropicAPI, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    aside: Any = [*session_of("gamma " * 400, "delta " * 400)]
    aside[0] = user("Summarise this.")
    asked = {**ASKED, "tools": [{**TOOLS[0], "name": "Other"}]}
    with client_of(api, session) as client:
        client.messages.create(**ASKED, system="Work.", messages=MESSAGES)
        decided = len(session.ledger)
        for _ in range(2):
            client.messages.create(**asked, system="Summarise.", messages=aside)
        assert [body["messages"] for body in api.bodies[1:]] == [aside, aside]
        assert len(session.ledger) == decided
        [record] = caplog.records
        assert record.getMessage().startswith("session s: a request was sent unchanged")
        client.messages.create(**ASKED, system="Work.", messages=then())
    assert api.bodies[3]["messages"][:5] == api.bodies[0]["messages"]


SAME = {"system": "Work.", "tools": TOOLS}
OTHER_TOOLS = [{**TOOLS[0], "name": "Other"}]
LATER: dict[str, tuple[dict[str, Any], list[Any], bool]] = {
    "the next turn": (SAME, then(), True),
    "another system prompt": ({"system": "10:31", "tools": TOOLS}, then(), True),
    "no tools": ({"system": "Work."}, then(), True),
    "a history that was cut": (SAME, [user("Go on."), *MESSAGES[1:]], True),
    "a history that begins anew": (SAME, [user("In short: …")], True),
    "another prompt and a cut": (
        {"system": "10:31", "tools": TOOLS},
        [user("Go on."), *MESSAGES[3:]],
        True,
    ),
    "another prompt and an edited end": (
        {"system": "10:31", "tools": TOOLS},
        [*MESSAGES[:3], user("No, stop.")],
        True,
    ),
    "a title": ({"system": "Title."}, MESSAGES[:1], False),
    "a summary of the history": ({"system": "Summarise."}, then("Now."), False),
    "a summary of a text": ({"system": "Summarise."}, [user("text")], False),
    "a question without a prompt": ({}, [user("text")], False),
    "another agent": ({"system": "Search.", "tools": OTHER_TOOLS}, [user("text")], False),
}


@pytest.mark.parametrize("case", LATER)
def test_what_identifies_the_conversation(
    api: AnthropicAPI, session: Session, monkeypatch: pytest.MonkeyPatch, case: str
) -> None:
    fields, messages, is_own = LATER[case]
    applied: list[Any] = []
    apply = Session.apply

    def counted(self: Session, messages: Any, **options: Any) -> Any:
        applied.append(messages)
        return apply(self, messages, **options)

    monkeypatch.setattr(Session, "apply", counted)
    with client_of(api, session) as client:
        client.messages.create(model="m", max_tokens=9, messages=MESSAGES, **SAME)
        client.messages.create(model="m", max_tokens=9, messages=messages, **fields)
    assert len(applied) == 1 + is_own


def test_a_request_before_the_conversation_does_not_take_its_place(
    api: AnthropicAPI, session: Session
) -> None:
    with client_of(api, session) as client:
        client.messages.create(model="m", max_tokens=9, system="Title.", messages=MESSAGES[:1])
        client.messages.create(**ASKED, system="Work.", messages=MESSAGES)
    assert is_edited(api.bodies[1])


COMPACTING = """\
    model: {context_window: 1000}
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: c, do: compact, when: {tokens: {at_least: 50%}}}]
    """


@pytest.mark.parametrize("is_async", [False, True])
def test_a_summary_over_the_same_client_is_no_turn_of_the_session(
    api: AnthropicAPI, tmp_path: Path, is_async: bool
) -> None:
    def summarise(request: Any) -> str:
        del request
        # The same system prompt, tools and history: only the session knows whose request it is.
        answer = client_of(api, session).messages.create(**ASKED, messages=then())
        return str(answer.content[0].text)

    session = Session(policy(COMPACTING), root=tmp_path, session_id="s", summarizer=summarise)
    api.script = [saying("The summary."), saying("ok")]

    async def run() -> None:
        async with async_client_of(api, session) as client:
            await client.messages.create(**ASKED, messages=MESSAGES)

    started = time.monotonic()
    if is_async:
        asyncio.run(run())
    else:
        with client_of(api, session) as client:
            client.messages.create(**ASKED, messages=MESSAGES)
    assert time.monotonic() - started < 5
    summary, sent = api.bodies
    assert summary["messages"] == then()
    assert "The summary." in json.dumps(sent["messages"])


def steps_taken(body: Any) -> int:
    return sum(message["role"] == "assistant" for message in body["messages"])


def run_agent(client: anthropic.Anthropic, name: str, turns: int) -> list[Any]:
    """Run a loop of calls to one tool; each answer is large and names the agent."""
    messages: list[Any] = [user(f"You are {name}.")]
    for turn in range(turns):
        answer = client.messages.create(
            **ASKED, messages=messages, system=f"Agent {name}", extra_headers={"x-agent": name}
        )
        messages.append({"role": "assistant", "content": answer.content})
        found = [block.id for block in answer.content if block.type == "tool_use"]
        messages.append(results(*((id_, f"{name} {turn} " * 300) for id_ in found)))
    return messages


def next_call(body: Any) -> Reply:
    number = steps_taken(body)
    return calling((f"t{number}", "Bash", {"n": number}), (f"u{number}", "Bash", {"n": number}))


def test_ten_sessions_run_at_the_same_time_through_one_client(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    sessions = ten_sessions(tmp_path)
    api.script = next_call
    middleware = PolicyMiddleware(lambda request: sessions.get(str(request.headers.get("x-agent"))))
    with (
        anthropic.Anthropic(base_url=api.url, api_key="k", middleware=[middleware]) as client,
        ThreadPoolExecutor(10) as pool,
    ):
        lists = [*pool.map(lambda name: run_agent(client, name, 5), sessions)]
    assert api.refused == []
    assert len(lists) == 10
    check_own_files(sessions, 6)


def test_ten_sessions_run_at_the_same_time_in_one_event_loop(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    sessions = ten_sessions(tmp_path)
    api.script = next_call

    async def run(name: str) -> None:
        messages: list[Any] = [user(f"You are {name}.")]
        async with async_client_of(api, sessions[name]) as client:
            for turn in range(5):
                async with client.messages.stream(**ASKED, messages=messages) as stream:
                    answer = await stream.get_final_message()
                found = [block.id for block in answer.content if block.type == "tool_use"]
                messages.append(
                    {"role": "assistant", "content": [b.to_dict() for b in answer.content]}
                )
                messages.append(results(*((id_, f"{name} {turn} " * 300) for id_ in found)))

    async def every() -> None:
        await asyncio.gather(*map(run, sessions))

    asyncio.run(every())
    assert api.refused == []
    check_own_files(sessions, 6)


def test_two_loops_on_one_session_take_turns(api: AnthropicAPI, session: Session) -> None:
    api.script = next_call
    with client_of(api, session) as client, ThreadPoolExecutor(2) as pool:
        lists = [*pool.map(lambda name: run_agent(client, name, 8), ["left", "right"])]
    assert api.refused == []
    assert len(api.bodies) == 16
    # Every old result of both is in a file, and was sent in full or as its placeholder.
    for messages in lists:
        sent = session.preview(messages, tools=TOOLS)
        assert sum(len(json.dumps(m, default=str)) for m in sent) < 20_000


def test_two_event_loops_on_one_session_take_turns(api: AnthropicAPI, session: Session) -> None:
    def run(name: str) -> None:
        async def loop() -> None:
            async with async_client_of(api, session) as client:
                for i in range(5):
                    messages = then(f"{name} {i}")
                    await client.messages.create(**ASKED, messages=messages)

        asyncio.run(loop())

    with ThreadPoolExecutor(2) as pool:
        [*pool.map(run, ["left", "right"])]
    assert api.refused == []
    assert all(map(is_edited, api.bodies))
    assert len(session.ledger) == 1


def test_a_synchronous_request_inside_a_turn_of_a_task_raises_instead_of_hanging(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    saves = threading.Event()

    class Slow(ContextFileSystem):
        def save(self, *args: Any, **options: Any) -> Any:
            saves.set()
            time.sleep(0.1)
            return super().save(*args, **options)

    session = Session(policy(OLD), store=Slow(tmp_path), session_id="s")

    async def run() -> None:
        async with async_client_of(api, session) as client:
            turn = asyncio.create_task(client.messages.create(**ASKED, messages=MESSAGES))
            await asyncio.to_thread(saves.wait)
            with (
                client_of(api, session) as blocking,
                pytest.raises(RuntimeError, match="use the asynchronous client"),
            ):
                blocking.messages.create(**ASKED, messages=MESSAGES)
            await turn

    asyncio.run(run())
    assert len(api.bodies) == 1


def test_the_asynchronous_client_writes_no_file_in_the_event_loops_thread(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    used: set[int] = set()

    class Watched(ContextFileSystem):
        def save(self, *args: Any, **options: Any) -> Any:
            used.add(threading.get_ident())
            return super().save(*args, **options)

        def remember(self, *args: Any, **options: Any) -> None:
            used.add(threading.get_ident())
            super().remember(*args, **options)

    session = Session(policy(OLD), store=Watched(tmp_path), session_id="s")

    async def run() -> None:
        async with async_client_of(api, session) as client:
            await client.messages.create(**ASKED, messages=MESSAGES)
            async with client.messages.stream(**ASKED, messages=MESSAGES) as stream:
                await stream.until_done()

    asyncio.run(run())
    assert used
    assert threading.get_ident() not in used


def test_the_four_queries_of_the_context_filesystem_document(
    api: AnthropicAPI, tmp_path: Path
) -> None:
    hints = {"read_file": {"keep_recent": 2}}
    session = Session("context-filesystem", root=tmp_path, session_id="s", hints=hints)
    tools: Any = [{"name": "read_file", "input_schema": {"type": "object"}}]
    contents = {f"file{i}.txt": f"line of file{i} " * 400 for i in range(1, 5)}
    replies = []
    for i, name in enumerate(contents):
        replies += [calling((f"c{i}", "read_file", {"path": name})), saying("I have read it.")]
    api.script = replies
    messages: list[Any] = []
    offloaded = []
    with client_of(api, session) as client:
        for name in contents:
            messages.append(user(f"Read {name}"))
            while True:
                answer = client.messages.create(
                    model="claude-some", max_tokens=99, tools=tools, messages=messages
                )
                messages.append({"role": "assistant", "content": answer.content})
                if answer.stop_reason != "tool_use":
                    break
                found = [b for b in answer.content if b.type == "tool_use"]
                texts = [(b.id, contents[str(b.input["path"])]) for b in found]
                messages.append(results(*texts))
            offloaded.append([item.tool_use_id for item in session.items if item.offloaded])
    assert api.refused == []
    assert offloaded == [[], [], ["c0"], ["c0", "c1"]]
    files = files_of(session)
    assert [session.read(file) for file in files] == [*contents.values()][:2]
    # Each request begins with the bytes of the one before, up to the first new decision.
    prefixes = [body["messages"] for body in api.bodies]
    changed = [
        next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), None)
        for one, two in pairwise(prefixes)
    ]
    assert changed == [None, None, None, None, 2, None, 6]


AUTO = "model: {cache: {breakpoints: auto}, "


def long_reply(turn: int) -> Reply:
    """Think, talk, and call one to three tools at once; every tenth turn ends with a text."""
    if turn % 10 == 9:
        return saying(f"Part {turn} is done. " + "We go on with the next part. " * 20)
    asked = [(f"t{turn}_{i}", "Bash", {"n": turn, "i": i}) for i in range(1 + turn % 3)]
    return calling(*asked, reasons=f"Thought {turn}. " * 30)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("marks", "text"),
    [(False, LONG), (True, LONG), (True, LONG.replace("model: {", AUTO))],
    ids=["plain", "moving markers", "the policy's markers"],
)
def test_many_turns_stay_valid_and_within_the_window(
    tmp_path: Path, marks: bool, text: str
) -> None:
    session = Session(policy(text), root=tmp_path, session_id="s")
    system = "You are a careful agent. " * 80
    thinking = {"type": "enabled", "budget_tokens": 50}
    messages: list[Any] = [user("Do the first part.")]
    with anthropic_api(WINDOW) as api, client_of(api, session) as client:
        for turn in range(TURNS):
            api.script = [OVERLOADED] if turn % 13 == 5 else []
            api.script.append(long_reply(turn))
            sent = marked(messages) if marks else messages
            asked: Any = {**ASKED, "messages": sent, "system": system, "thinking": thinking}
            if turn % 2:
                with client.messages.stream(**asked) as stream:
                    answer = stream.get_final_message()
            else:
                answer = client.messages.create(**asked)
            blocks = [block.to_dict() for block in answer.content]
            messages.append({"role": "assistant", "content": blocks})
            if answer.stop_reason == "tool_use":
                messages.append(results(*long_results(turn)))
            else:
                messages.append(user(f"Do part {turn + 1}."))
        assert api.refused == []
        assert len(api.prompts) == TURNS
        assert max(api.prompts) <= WINDOW
        assert len(json.dumps(messages)) // 3 > TURNS // 10 * WINDOW
    actions = {entry.action.past for entry in session.ledger.entries.values()}
    assert "offloaded" in actions
    assert session._knowledge.memory is not None
    assert len(session._knowledge.memory.replacements.made) > 2


def marked(messages: list[Any]) -> list[Any]:
    """The list with markers on its first message and its two newest user messages."""
    copied = json.loads(json.dumps(messages))
    users = [i for i, message in enumerate(copied) if message["role"] == "user"]
    for i in {users[0], *users[-2:]}:
        content = copied[i]["content"]
        if isinstance(content, str):
            content = copied[i]["content"] = [{"type": "text", "text": content}]
        ttl = {"ttl": "1h"} if i == users[0] else {}
        content[-1]["cache_control"] = {"type": "ephemeral", **ttl}
    return copied  # type: ignore[no-any-return]


KILLED = """\
import json, os, signal, sys
from pathlib import Path
import anthropic
from policyctx import Session
from policyctx.messages.asked import Asked
from policyctx.integrations.anthropic import PolicyMiddleware

folder, url, die_at = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
policy, transcript = folder / "p.yaml", folder / "messages.json"
session = Session(policy, root=folder / "store", session_id="s")
client = anthropic.Anthropic(base_url=url, api_key="k", middleware=[PolicyMiddleware(session)])
messages = [{"role": "user", "content": "Go."}]
if transcript.exists():
    messages = json.loads(transcript.read_text())
for turn in range(len(messages) // 2, 8):
    answer = client.messages.create(
        model="m", max_tokens=9, messages=messages,
        tools=[{"name": "Bash", "input_schema": {"type": "object"}}],
    )
    messages.append({"role": "assistant", "content": [b.to_dict() for b in answer.content]})
    [call] = [b for b in answer.content if b.type == "tool_use"]
    found = {"type": "tool_result", "tool_use_id": call.id, "content": f"{turn} " * 800}
    messages.append({"role": "user", "content": [found]})
    transcript.write_text(json.dumps(messages))
    if turn == die_at:
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_program_goes_on_with_the_same_bytes(api: AnthropicAPI, tmp_path: Path) -> None:
    api.script = lambda body: calling((f"t{steps_taken(body)}", "Bash", {}))
    check_goes_on(KILLED, tmp_path, api, "messages")


def test_warnings_of_a_turn_are_logged(
    api: AnthropicAPI, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    root = tmp_path / "a file"
    root.write_text("in the way")
    session = Session(policy(OLD), root=root, session_id="s")
    with client_of(api, session) as client:
        client.messages.create(**ASKED, messages=MESSAGES)
    assert api.bodies[0]["messages"] == MESSAGES
    assert any(record.levelno == logging.WARNING for record in caplog.records)
