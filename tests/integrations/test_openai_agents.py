"""`PolicyFilter` in runs of OpenAI's Agents SDK, against a server that checks each request.

The tests run with the oldest supported SDK too: see `scripts/test-oldest`.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import AsyncMock

import agents
import openai
import pytest
from agents import Agent, RunConfig, Runner, SQLiteSession, function_tool
from agents.mcp import MCPServerStdio, MCPServerStdioParams
from agents.run import CallModelData, ModelInputData

from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations.openai_agents import PolicyFilter
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
from tests.integrations.examples import outputs
from tests.integrations.loops import (
    BIG,
    LIMITS,
    LONG,
    OLD,
    SECOND,
    SHARE,
    TURNS,
    WINDOW,
    limit_of,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.scripted import calling, saying
from tests.policies import policy


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        server.script = script(reasons=True)
        yield server


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OLD), root=tmp_path, session_id="s")


@function_tool
def read(name: str) -> str:
    """Read a file."""
    return CONTENTS[name]


@asynccontextmanager
async def model_of(
    api: OpenAIAPI, *, chat: bool = False, name: str = "gpt-some"
) -> AsyncIterator[Any]:
    kind = agents.OpenAIChatCompletionsModel if chat else agents.OpenAIResponsesModel
    async with openai.AsyncOpenAI(base_url=api.url, api_key="k") as client:
        yield kind(model=name, openai_client=client)


def config_of(policy_filter: Any) -> RunConfig:
    return RunConfig(call_model_input_filter=policy_filter, tracing_disabled=True)


async def run(
    api: OpenAIAPI, policy_filter: Any, *, streams: bool = False, chat: bool = False, **options: Any
) -> Any:
    async with model_of(api, chat=chat) as model:
        agent: Agent[Any] = Agent(
            name="reader",
            instructions="Read.",
            model=model,
            tools=[read],
            # Of a server that is not OpenAI's, the SDK asks for the usage of a streamed chat so.
            model_settings=agents.ModelSettings(include_usage=True if chat else None),
        )
        options = {"run_config": config_of(policy_filter), "hooks": policy_filter, **options}
        if not streams:
            return await Runner.run(agent, "Read both.", **options)
        result = Runner.run_streamed(agent, "Read both.", **options)
        async for _ in result.stream_events():
            pass
        return result


@function_tool(name_override="Bash")
def bash(n: int, i: int) -> str:
    """Run a command."""
    return TEXTS[f"t{n}_{i}"]


@pytest.fixture
def host(api: OpenAIAPI, tmp_path: Path) -> Host:
    def start(text: str, instructions: str) -> Session:
        session = Session(policy(text), root=tmp_path / "s", session_id="s")

        async def go() -> None:
            async with model_of(api) as model:
                agent: Agent[Any] = Agent(
                    name="reader", instructions=instructions, model=model, tools=[read]
                )
                await Runner.run(agent, "Go.", run_config=config_of(PolicyFilter(session)))

        asyncio.run(go())
        return session

    return Host(api, start, outputs, PolicyFilter, tmp_path / "s")


class TestAgent(AgentTests, OptionTests, RetryTests):
    """OpenAI's Agents SDK."""


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
@pytest.mark.parametrize("streams", [False, True], ids=["plain", "streamed"])
def test_a_run_sends_the_edited_list_and_keeps_its_items(
    api: OpenAIAPI, session: Session, streams: bool, chat: bool
) -> None:
    result = asyncio.run(run(api, PolicyFilter(session), streams=streams, chat=chat))
    assert result.final_output == "Done."
    check_edited(outputs(api.bodies[2]), api, session)
    assert outputs(result.to_input_list()) == [BIG, SECOND]


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
@pytest.mark.parametrize("text", [DROP, COMPACT], ids=["drop", "compact"])
def test_a_run_goes_on_after_messages_were_replaced(
    api: OpenAIAPI, tmp_path: Path, text: str, chat: bool
) -> None:
    session = Session(policy(text), root=tmp_path, session_id="s")
    result = asyncio.run(run(api, PolicyFilter(session), chat=chat))
    assert result.final_output == "Done."
    assert len(outputs(api.bodies[2])) == 1


@pytest.mark.parametrize(("model", "limit"), LIMITS)
@pytest.mark.parametrize("is_named", [False, True], ids=["object", "name"])
def test_a_share_is_of_the_window_of_the_called_model(
    api: OpenAIAPI, tmp_path: Path, model: str, limit: int, is_named: bool
) -> None:
    session = Session(policy(SHARE), root=tmp_path, session_id="s")

    async def go() -> None:
        async with model_of(api, name=model) as made:
            provider = agents.MultiProvider(openai_client=made._client)
            config = config_of(PolicyFilter(session))
            config.model_provider = provider
            given = model if is_named else made
            agent: Agent[Any] = Agent(name="reader", model=given, tools=[read])
            await Runner.run(agent, "Read both.", run_config=config)

    asyncio.run(go())
    assert limit_of(session) == limit


def test_the_options_of_a_run_are_the_filter_and_the_hook(session: Session) -> None:
    policy_filter = PolicyFilter(session)
    options = policy_filter.options
    assert options["hooks"] is policy_filter
    assert options["run_config"].call_model_input_filter is policy_filter


def test_the_sdks_session_keeps_the_originals(api: OpenAIAPI, session: Session) -> None:
    memory = SQLiteSession("s")
    asyncio.run(run(api, PolicyFilter(session), session=memory))
    assert outputs(asyncio.run(memory.get_items())) == [BIG, SECOND]
    memory.close()
    assert outputs(api.bodies[2])[0].startswith("[")


def test_a_synchronous_run_is_edited(api: OpenAIAPI, session: Session) -> None:
    policy_filter = PolicyFilter(session)
    client = openai.AsyncOpenAI(base_url=api.url, api_key="k")
    model = agents.OpenAIResponsesModel(model="gpt-some", openai_client=client)
    agent = Agent(name="reader", model=model, tools=[read])
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        Runner.run_sync(agent, "Go.", run_config=config_of(policy_filter), hooks=policy_filter)
        loop.run_until_complete(client.close())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert outputs(api.bodies[2])[0].startswith("[")


def test_a_run_whose_history_is_on_the_server_is_sent_unchanged_with_one_warning(
    api: OpenAIAPI, session: Session, caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(run(api, PolicyFilter(session), previous_response_id="resp_0"))
    assert [len(body["input"]) for body in api.bodies] == [1, 1, 1]
    assert outputs(api.bodies[1]) == [BIG]
    assert len(session.ledger) == 0
    [record] = [record for record in caplog.records if record.name.startswith("policyctx")]
    assert "the server holds its history" in record.getMessage()


def test_a_policy_with_a_session_id_has_one_session(api: OpenAIAPI, tmp_path: Path) -> None:
    asyncio.run(run(api, PolicyFilter(policy(OLD), root=tmp_path, session_id="s")))
    assert outputs(api.bodies[2])[0].startswith("[")
    with pytest.raises(InputError, match="no ids of conversations"):
        PolicyFilter("coding-agent")


def test_a_function_chooses_the_session_of_a_call(api: OpenAIAPI, session: Session) -> None:
    asyncio.run(run(api, PolicyFilter(lambda data: session if data.context == "s" else None)))
    assert len(session.ledger) == 0
    api.script = script()
    chosen = PolicyFilter(lambda data: session if data.context == "s" else None)
    asyncio.run(run(api, chosen, context="s"))
    assert len(session.ledger) == 1


def test_an_agent_that_is_used_as_a_tool_is_no_part_of_the_session(
    api: OpenAIAPI, tmp_path: Path
) -> None:
    session = Session(policy(ALL), root=tmp_path, session_id="s")
    api.script = nested(input="Look inside.")
    policy_filter = PolicyFilter(session)

    async def go() -> None:
        async with model_of(api) as model:
            helper: Agent[Any] = Agent(name="helper", model=model, tools=[read])
            ask = helper.as_tool("ask", "Ask a helper.", run_config=config_of(policy_filter))
            agent: Agent[Any] = Agent(name="main", model=model, tools=[read, ask])
            await Runner.run(agent, "Go.", run_config=config_of(policy_filter), hooks=policy_filter)

    asyncio.run(go())
    assert api.refused == []
    check_nested(outputs, api.bodies, session)


class Served(MCPServerStdio):
    """The MCP server of policyctx, which counts how often its tools are listed."""

    listings: int = 0

    async def list_tools(self, *args: Any, **options: Any) -> Any:
        self.listings += 1
        return await super().list_tools(*args, **options)


def test_a_placeholder_names_the_tool_of_an_mcp_server_which_is_listed_once_more(
    api: OpenAIAPI, session: Session
) -> None:
    command = ["-c", "from policyctx.cli import main; main()", "mcp", "--root"]
    command += [str(session.store.root), "--session", "s"]
    params: MCPServerStdioParams = {"command": sys.executable, "args": command}

    async def go() -> Any:
        async with (
            model_of(api) as model,
            Served(params, client_session_timeout_seconds=60) as server,
        ):
            agent: Agent[Any] = Agent(name="a", model=model, tools=[read], mcp_servers=[server])
            policy_filter = PolicyFilter(session)
            await Runner.run(agent, "Go.", run_config=config_of(policy_filter), hooks=policy_filter)
            return server.listings

    assert asyncio.run(go()) == len(api.bodies) + 1
    assert "read_offloaded" in outputs(api.bodies[-1])[0]


OFFLOADED = """\
min_chars: 0
items: {tool_result: {offload: true}}
steps: [{name: o, do: offload, select: {types: [tool_result], keep_recent: 0}}]
"""


class Slow(Agent[Any]):
    """An agent with a tool of an MCP server that takes its time to list it."""

    async def get_mcp_tools(self, *_: Any, **__: Any) -> list[agents.Tool]:
        await asyncio.sleep(0.05)
        given = {"type": "object", "properties": {"path": {"type": "string"}}}
        return [agents.FunctionTool("read_offloaded", "Read.", given, AsyncMock())]


def called(agent: Agent[Any]) -> CallModelData[Any]:
    items: Any = [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": "c", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": BIG},
        {"role": "user", "content": "Go on."},
    ]
    return CallModelData(ModelInputData(items, "Read."), agent, None)


@pytest.mark.parametrize("is_cancelled", [True, False])
def test_a_tool_of_an_mcp_server_is_named_in_parallel_runs_and_after_a_cancelled_one(
    is_cancelled: bool, tmp_path: Path
) -> None:
    sessions = (Session(policy(OFFLOADED), root=tmp_path, session_id=name) for name in "abc")
    policy_filter = PolicyFilter(lambda _: next(sessions))
    server: Any = object()
    agent = Slow(name="a", mcp_servers=[server])

    async def go() -> list[Any]:
        first = asyncio.create_task(policy_filter(called(agent)))
        await asyncio.sleep(0.01)
        if is_cancelled:
            first.cancel()
        runs = [policy_filter(called(agent)) for _ in range(2)]
        return await asyncio.gather(first, *runs, return_exceptions=True)

    for result in asyncio.run(go())[is_cancelled:]:
        assert "read_offloaded" in result.input[2]["output"]


def test_the_session_goes_on_after_a_handoff(api: OpenAIAPI, session: Session) -> None:
    api.script = [
        calling(("c0", "read", {"name": "a"})),
        calling(("h0", "transfer_to_second", {})),
        calling(("c1", "read", {"name": "b"})),
        saying("Done."),
    ]
    policy_filter = PolicyFilter(session)

    async def go() -> None:
        async with model_of(api) as model:
            second: Agent[Any] = Agent(
                name="second", instructions="Go on.", model=model, tools=[read]
            )
            first: Agent[Any] = Agent(
                name="first", instructions="Begin.", model=model, tools=[read], handoffs=[second]
            )
            await Runner.run(first, "Go.", run_config=config_of(policy_filter), hooks=policy_filter)

    asyncio.run(go())
    assert api.refused == []
    first, *_, last = outputs(api.bodies[3])
    assert first.startswith("[")
    assert last == SECOND
    assert session.totals().calls == 4


@pytest.mark.slow
def test_ten_sessions_run_at_the_same_time_in_one_event_loop(
    api: OpenAIAPI, tmp_path: Path
) -> None:
    sessions = [Session(policy(OLD), root=tmp_path / f"{i}", session_id=f"{i}") for i in range(10)]
    api.script = five_calls(outputs)

    async def go() -> None:
        await asyncio.gather(*(run(api, PolicyFilter(session)) for session in sessions))

    asyncio.run(go())
    check_five_calls(api, sessions)


def test_two_runs_on_one_session_take_turns(api: OpenAIAPI, session: Session) -> None:
    api.script = five_calls(outputs)
    policy_filter = PolicyFilter(session)

    async def go() -> None:
        await asyncio.gather(*(run(api, policy_filter) for _ in range(2)))

    asyncio.run(go())
    assert api.refused == []
    assert len(api.bodies) == 12
    assert all(text.startswith("[") for text in outputs(api.bodies[-1])[:-1])


@pytest.mark.slow
def test_many_turns_stay_valid_and_within_the_window(tmp_path: Path) -> None:
    session = Session(policy(LONG), root=tmp_path, session_id="s")
    policy_filter = PolicyFilter(session)
    memory = SQLiteSession("s")

    async def go(api: OpenAIAPI) -> None:
        async with model_of(api) as model:
            agent: Agent[Any] = Agent(name="a", instructions=CAREFUL, model=model, tools=[bash])
            for part in range(TURNS // 10):
                api.script = long_part(part)
                options: Any = {
                    "session": memory,
                    "max_turns": 20,
                    "run_config": config_of(policy_filter),
                    "hooks": policy_filter,
                }
                if part % 2:
                    result = Runner.run_streamed(agent, f"Do part {part}.", **options)
                    async for _ in result.stream_events():
                        pass
                else:
                    await Runner.run(agent, f"Do part {part}.", **options)

    with openai_api(WINDOW) as api:
        asyncio.run(go(api))
    check_loop(api, session, TURNS)
    items = asyncio.run(memory.get_items())
    memory.close()
    assert len(json.dumps(items)) // 3 > TURNS // 10 * WINDOW
