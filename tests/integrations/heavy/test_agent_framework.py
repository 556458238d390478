"""`PolicyMiddleware` in agents of Agent Framework, against a server that checks each request."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import openai
import pytest
from agent_framework import Agent, AgentSession, ChatMiddleware, tool
from agent_framework.openai import OpenAIChatClient, OpenAIChatCompletionClient

from policyctx import Session
from policyctx.errors import InputError, MessagesError
from policyctx.integrations.agent_framework import AgentFrameworkShape, PolicyMiddleware
from tests.integrations.agents import (
    ALL,
    CAREFUL,
    COMPACT,
    CONTENTS,
    DROP,
    TEXTS,
    AgentTests,
    Host,
    OptionTests,
    RetryTests,
    check_edited,
    check_five_calls,
    check_loop,
    check_nested,
    five_calls,
    long_part,
    nested,
    script,
)
from tests.integrations.examples import added_lines, check_example, outputs
from tests.integrations.loops import (
    BIG,
    LIMITS,
    LONG,
    OLD,
    SECOND,
    SHARE,
    WINDOW,
    limit_of,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.scripted import Reply, calling, saying
from tests.policies import policy

pytestmark = pytest.mark.slow

EACH_API = pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        first, *rest = script()
        server.script = [replace(first, text="Let me see."), *rest]
        yield server


@pytest.fixture
def middleware_of(tmp_path: Path) -> Callable[[str], PolicyMiddleware]:
    def make(text: str) -> PolicyMiddleware:
        return PolicyMiddleware(policy(text), root=tmp_path)

    return make


@tool(approval_mode="never_require")  # type: ignore[untyped-decorator]
def read(name: str) -> str:
    """Read a file."""
    return CONTENTS[name]


@asynccontextmanager
async def client_of(
    api: OpenAIAPI, *, chat: bool = False, name: str = "gpt-some"
) -> AsyncIterator[Any]:
    kind = OpenAIChatCompletionClient if chat else OpenAIChatClient
    async with openai.AsyncOpenAI(base_url=api.url, api_key="k") as client:
        yield kind(name, async_client=client)


def agent_of(client: Any, *middleware: Any, **options: Any) -> Any:
    given = {"tools": [read], "instructions": "Read.", "default_options": {"store": False}}
    return Agent(client, middleware=[*middleware], **{**given, **options})


async def run(
    api: OpenAIAPI, *middleware: Any, chat: bool = False, streams: bool = False, **options: Any
) -> Any:
    given = {"session": AgentSession(session_id="s"), **options}
    async with client_of(api, chat=chat) as client:
        agent = agent_of(client, *middleware)
        if not streams:
            return await agent.run("Read both.", **given)
        stream = agent.run("Read both.", stream=True, **given)
        async for _ in stream:
            pass
        return await stream.get_final_response()


def results(session: AgentSession) -> list[str]:
    """The results that a session of the framework holds."""
    found = json.loads(json.dumps(session.to_dict()))
    messages = found["state"]["in_memory"]["messages"]
    contents = [content for message in messages for content in message["contents"]]
    return [each["result"] for each in contents if each["type"] == "function_result"]


@tool(name="Bash", approval_mode="never_require")  # type: ignore[untyped-decorator]
def bash(n: int, i: int) -> str:
    """Run a command."""
    return TEXTS[f"t{n}_{i}"]


@pytest.fixture
def host(api: OpenAIAPI, middleware_of: Any, tmp_path: Path) -> Host:
    def start(text: str, instructions: str) -> Session:
        middleware = middleware_of(text)

        async def go() -> None:
            async with client_of(api) as client:
                agent = agent_of(client, middleware, instructions=instructions)
                await agent.run("Read both.", session=AgentSession(session_id="s"))

        asyncio.run(go())
        session: Session = middleware.session_of("s")
        return session

    return Host(api, start, outputs, PolicyMiddleware, tmp_path / "s")


class TestAgent(AgentTests, OptionTests, RetryTests):
    """Agent Framework."""


@pytest.mark.parametrize(("model", "limit"), LIMITS)
@pytest.mark.parametrize("is_option", [False, True], ids=["client", "option"])
def test_a_share_is_of_the_window_of_the_called_model(
    api: OpenAIAPI, middleware_of: Any, model: str, limit: int, is_option: bool
) -> None:
    middleware = middleware_of(SHARE)
    options = {"store": False, **({"model": model} if is_option else {})}

    async def go() -> None:
        async with client_of(api, name="gpt-some" if is_option else model) as client:
            agent = agent_of(client, middleware, default_options=options)
            await agent.run("Read both.", session=AgentSession(session_id="s"))

    asyncio.run(go())
    assert {body["model"] for body in api.bodies} == {model}
    assert limit_of(middleware.session_of("s")) == limit


@EACH_API
@pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])
def test_the_model_gets_the_edited_list_and_the_session_keeps_the_originals(
    api: OpenAIAPI, middleware_of: Any, streams: bool, chat: bool
) -> None:
    middleware, kept = middleware_of(OLD), AgentSession(session_id="s")
    response = asyncio.run(run(api, middleware, chat=chat, streams=streams, session=kept))
    assert response.text.endswith("Done.")
    check_edited(outputs(api.bodies[2]), api, middleware.session_of("s"))
    assert results(kept) == [BIG, SECOND]


def test_a_message_without_a_decision_is_the_same_object(
    api: OpenAIAPI, middleware_of: Any
) -> None:
    seen: list[Any] = []

    class Look(ChatMiddleware):  # type: ignore[misc]
        async def process(self, context: Any, call_next: Any) -> None:
            seen.append(list(context.messages))
            await call_next()

    asyncio.run(run(api, Look(), middleware_of(OLD), Look()))
    same = [a is b for a, b in zip(seen[4], seen[5], strict=True)]
    assert same.count(False) == 1
    assert seen[4][same.index(False)].contents[0].result == BIG


@EACH_API
def test_a_dropped_call_leaves_with_its_result(
    api: OpenAIAPI, middleware_of: Any, chat: bool
) -> None:
    asyncio.run(run(api, middleware_of(DROP), chat=chat))
    assert api.refused == []
    assert outputs(api.bodies[2]) == [SECOND]
    assert "c0" not in json.dumps(api.bodies[2])


@EACH_API
def test_history_is_replaced_by_a_summary(api: OpenAIAPI, middleware_of: Any, chat: bool) -> None:
    middleware = middleware_of(COMPACT)
    asyncio.run(run(api, middleware, chat=chat))
    assert api.refused == []
    assert middleware.session_of("s").totals().compactions == 1


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
def test_a_restart_sends_the_same_bytes(api: OpenAIAPI, middleware_of: Any, text: str) -> None:
    """The saved session of the framework holds the originals."""
    kept = AgentSession(session_id="s")
    asyncio.run(run(api, middleware_of(text), session=kept))
    assert results(kept) == [BIG, SECOND]
    saved = json.dumps(kept.to_dict())
    for _ in range(2):
        api.script = [saying("Again.")]
        loaded = AgentSession.from_dict(json.loads(saved))
        asyncio.run(run(api, middleware_of(text), session=loaded))
    assert api.refused == []
    assert api.raw[4] == api.raw[3]
    if text != COMPACT:  # the question is one message more, and the gate opens again
        before = without_ids(api.bodies[2])[:-1]
        assert without_ids(api.bodies[3])[: len(before)] == before
    assert BIG not in json.dumps(api.bodies[3])


def without_ids(body: Any) -> list[Any]:
    """The items of a request without their ids, which the framework does not save."""
    return [{name: item[name] for name in item if name != "id"} for item in body["input"]]


def test_a_call_that_another_middleware_repeats_is_no_turn(
    api: OpenAIAPI, middleware_of: Any
) -> None:
    class Repeat(ChatMiddleware):  # type: ignore[misc]
        async def process(self, context: Any, call_next: Any) -> None:
            given = context.messages
            try:
                await call_next()
            except Exception:  # noqa: BLE001 - each client has errors of its own
                context.messages = given
                await call_next()

    assert isinstance(api.script, list)
    api.script.insert(2, Reply(status=400))
    middleware = middleware_of(OLD)
    asyncio.run(run(api, Repeat(), middleware))
    assert api.raw[2] == api.raw[3]
    assert middleware.session_of("s").totals().calls == 3


def test_two_sessions_of_the_framework_have_a_session_each(
    api: OpenAIAPI, middleware_of: Any
) -> None:
    middleware = middleware_of(OLD)
    for name in ("one", "two"):
        api.script = script()
        asyncio.run(run(api, middleware, session=AgentSession(session_id=name)))
    one, two = middleware.session_of("one"), middleware.session_of("two")
    assert [each.session_id for each in (one, two)] == ["one", "two"]
    assert [len(each.ledger) for each in (one, two)] == [1, 1]


def test_ten_sessions_run_at_the_same_time(api: OpenAIAPI, middleware_of: Any) -> None:
    api.script = five_calls(outputs)
    middleware = middleware_of(OLD)

    async def go() -> None:
        each = (AgentSession(session_id=f"{i}") for i in range(10))
        await asyncio.gather(*(run(api, middleware, session=one) for one in each))

    asyncio.run(go())
    check_five_calls(api, (middleware.session_of(f"{i}") for i in range(10)))


def test_a_given_session_serves_a_run_without_one(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[AgentFrameworkShape()])
    asyncio.run(run(api, PolicyMiddleware(session), session=None))
    assert outputs(api.bodies[2])[0].startswith("[")


def test_a_policy_without_a_session_is_an_error(api: OpenAIAPI, middleware_of: Any) -> None:
    with pytest.raises(InputError, match="needs the session of the agent"):
        asyncio.run(run(api, middleware_of(OLD), session=None))


def test_a_function_chooses_the_session_of_a_call(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[AgentFrameworkShape()])
    sessions = {"mine": session}
    middleware = PolicyMiddleware(lambda context: sessions.get(context.options["user"]))
    for name, count in (("other", 0), ("mine", 1)):
        api.script = script()
        asyncio.run(run(api, middleware, options={"user": name}))
        assert len(session.ledger) == count


def test_a_history_on_the_server_is_sent_unchanged_with_one_warning(
    api: OpenAIAPI, middleware_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    async def go() -> None:
        async with client_of(api) as client:
            agent = agent_of(client, middleware_of(OLD), default_options={})
            await agent.run("Go.", session=AgentSession(session_id="s"))

    asyncio.run(go())
    assert [len(outputs(body)) for body in api.bodies] == [0, 1, 1]
    assert outputs(api.bodies[1]) == [BIG]
    records = [record for record in caplog.records if record.name.startswith("policyctx")]
    assert ["the server holds its history" in each.getMessage() for each in records] == [True]


def test_an_agent_inside_a_tool_is_no_part_of_the_session(api: OpenAIAPI, tmp_path: Path) -> None:
    middleware = PolicyMiddleware(policy(ALL), session_id="s", root=tmp_path)
    api.script = nested(question="Where?")

    async def go() -> None:
        async with client_of(api) as client:
            helper = agent_of(client, middleware, instructions="Look.")

            @tool(approval_mode="never_require")  # type: ignore[untyped-decorator]
            async def ask(question: str) -> str:
                """Ask another agent."""
                return str((await helper.run(question)).text)

            await agent_of(client, middleware, tools=[read, ask]).run("Go.")

    asyncio.run(go())
    assert api.refused == []
    check_nested(outputs, api.bodies, middleware.session_of("s"))


def test_an_error_of_the_session_ends_the_run(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path)  # without the shape
    with pytest.raises(MessagesError, match="message 0"):
        asyncio.run(run(api, PolicyMiddleware(session)))
    assert api.bodies == []


@EACH_API
@pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])
def test_a_hundred_turns_stay_valid_and_within_the_window(
    middleware_of: Any, streams: bool, chat: bool
) -> None:
    async def go(api: OpenAIAPI) -> AgentSession:
        middleware, kept = middleware_of(LONG), AgentSession(session_id="s")
        async with client_of(api, chat=chat) as client:
            for part in range(10):
                if part % 3 == 2:  # a restart
                    middleware = middleware_of(LONG)
                    kept = AgentSession.from_dict(json.loads(json.dumps(kept.to_dict())))
                # The framework's sessions lose the ids by which the server pairs a call with its
                # reasoning, also without a policy.
                api.script = [replace(reply, reasons=False) for reply in long_part(part)]
                agent = agent_of(client, middleware, tools=[bash], instructions=CAREFUL)
                if streams:
                    stream = agent.run(f"Do part {part}.", session=kept, stream=True)
                    async for _ in stream:
                        pass
                    await stream.get_final_response()
                else:
                    await agent.run(f"Do part {part}.", session=kept)
        return kept

    with openai_api(WINDOW) as api:
        kept = asyncio.run(go(api))
    check_loop(api, middleware_of(LONG).session_of("s"))
    assert len(json.dumps(results(kept))) // 3 > 10 * WINDOW


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example("agent_framework_agent", tmp_path, "agent-framework")


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert added_lines("agent_framework_agent", "agent-framework") == [
        'policy = PolicyMiddleware("coding-agent")',
        "    middleware=[policy],",
    ]


OVERFLOW = (
    "model: {tokenizer: {chars_per_token: 3}}\n"
    "steps: [{name: too-long, on: overflow, do: drop,"
    " select: {types: [tool_result], until: {tokens: {under: 60%}}}}]"
)


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_a_prompt_that_is_too_long_is_sent_once_more(
    api: OpenAIAPI, middleware_of: Any, chat: bool
) -> None:
    calls = [calling((f"c{i}", "read", {"name": "a"})) for i in range(3)]
    api.script, api.window = [*calls, saying("Done.")], 1_500
    asyncio.run(run(api, middleware_of(OVERFLOW), chat=chat))
    assert len(api.bodies) == len(api.prompts) + len(api.refused) > len(api.prompts)
    assert max(api.prompts) <= 1_500
