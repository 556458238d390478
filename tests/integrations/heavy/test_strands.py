"""`PolicyPlugin` in agents of Strands, against a server that checks each request."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from strands import Agent, tool
from strands.agent.conversation_manager import NullConversationManager
from strands.hooks import AfterModelCallEvent
from strands.models.bedrock import BedrockModel
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

from policyctx import Session
from policyctx.errors import InputError, MessagesError
from policyctx.integrations.strands import BedrockShape, PolicyPlugin
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
    check_loop,
    check_nested,
    check_observed,
    long_part,
    long_reply,
    nested,
    script,
)
from tests.integrations.converse_api import converse_api
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


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        server.script = script()
        yield server


@pytest.fixture
def plugin_of(tmp_path: Path) -> Callable[[str], PolicyPlugin]:
    def make(text: str) -> PolicyPlugin:
        return PolicyPlugin(policy(text), session_id="s", root=tmp_path / "context")

    return make


@tool  # type: ignore[untyped-decorator]
def read(name: str) -> str:
    """Read a file."""
    return CONTENTS[name]


def agent_of(api: OpenAIAPI, plugin: Any, **options: Any) -> Agent:
    model = OpenAIModel(
        client_args={"base_url": api.url, "api_key": "k"},
        model_id=options.pop("model", "gpt-some"),
    )
    given = {
        "tools": [read],
        "system_prompt": "Read.",
        "callback_handler": None,
        "conversation_manager": NullConversationManager(),
        **options,
    }
    return Agent(model, plugins=[plugin], **given)


def results(messages: Any) -> list[str]:
    """The texts of the results in a list of messages."""
    blocks = (block for message in messages for block in message["content"])
    return [b["toolResult"]["content"][0]["text"] for b in blocks if "toolResult" in b]


@tool(name="Bash")  # type: ignore[untyped-decorator]
def bash(n: int, i: int) -> str:
    """Run a command."""
    return TEXTS[f"t{n}_{i}"]


@pytest.fixture
def host(api: OpenAIAPI, plugin_of: Any, tmp_path: Path) -> Host:
    def run(text: str, instructions: str) -> Session:
        plugin = plugin_of(text)
        agent_of(api, plugin, system_prompt=instructions)("Go.")
        session: Session = plugin.session_of("s")
        return session

    # Parallel calls end in any order.
    return Host(api, run, lambda body: sorted(outputs(body)), PolicyPlugin, tmp_path / "context")


class TestAgent(AgentTests, OptionTests, RetryTests):
    """Strands."""


@pytest.mark.parametrize(("model", "limit"), LIMITS)
def test_a_share_is_of_the_window_of_the_called_model(
    api: OpenAIAPI, plugin_of: Any, model: str, limit: int
) -> None:
    plugin = plugin_of(SHARE)
    agent_of(api, plugin, model=model)("Go.")
    assert limit_of(plugin.session_of("s")) == limit


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_model_gets_the_edited_list_and_the_agent_keeps_it(
    api: OpenAIAPI, plugin_of: Any, is_async: bool
) -> None:
    plugin = plugin_of(OLD)
    agent = agent_of(api, plugin)
    messages = agent.messages
    result = asyncio.run(agent.invoke_async("Go.")) if is_async else agent("Go.")
    assert str(result).strip() == "Done."
    sent = outputs(api.bodies[2])
    check_edited(sent, api, plugin.session_of("s"))
    assert agent.messages is messages
    assert results(messages) == [sent[0], SECOND]


def test_a_streamed_run_is_edited_and_its_usage_observed(api: OpenAIAPI, plugin_of: Any) -> None:
    plugin = plugin_of(OLD)

    async def go() -> None:
        events = [event async for event in agent_of(api, plugin).stream_async("Go.")]
        assert events

    asyncio.run(go())
    assert outputs(api.bodies[2])[0].startswith("[")
    check_observed(api, plugin.session_of("s"))


def test_a_message_without_a_decision_is_the_same_object(api: OpenAIAPI, plugin_of: Any) -> None:
    agent = agent_of(api, plugin_of(OLD))
    given: list[Any] = []
    agent.hooks.add_callback(
        AfterModelCallEvent, lambda event: given.append([*event.agent.messages])
    )
    agent("Go.")
    assert [a is b for a, b in zip(given[1], given[2], strict=False)] == [True, True, False]


def test_a_dropped_call_leaves_with_its_result(api: OpenAIAPI, plugin_of: Any) -> None:
    agent_of(api, plugin_of(DROP))("Go.")
    assert api.refused == []
    assert outputs(api.bodies[2]) == [SECOND]
    assert "c0" not in json.dumps(api.bodies[2])


def test_history_is_replaced_by_a_summary(api: OpenAIAPI, plugin_of: Any) -> None:
    plugin = plugin_of(COMPACT)
    agent_of(api, plugin)("Go.")
    assert api.refused == []
    assert plugin.session_of("s").totals().compactions == 1


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
@pytest.mark.parametrize("form", ["originals", "kept"])
def test_a_restart_sends_the_same_bytes(
    api: OpenAIAPI, plugin_of: Any, tmp_path: Path, text: str, form: str
) -> None:
    """A session manager of Strands loads the originals; a caller may save the edited list."""

    def saving() -> FileSessionManager:
        return FileSessionManager(session_id="s", storage_dir=str(tmp_path / "saved"))

    first = agent_of(api, plugin_of(text), session_manager=saving())
    first("Go.")
    api.script = [saying("Again."), saying("Again.")]
    if form == "originals":
        second = agent_of(api, plugin_of(text), session_manager=saving())
        assert results(second.messages) == [BIG, SECOND]
    else:
        saved = json.loads(json.dumps(first.messages))
        second = agent_of(api, plugin_of(text), messages=saved)
    second("And?")
    assert api.refused == []
    twin = agent_of(api, plugin_of(text), messages=copy.deepcopy(second.messages[:-1]))
    twin.messages.pop()
    twin("And?")
    if text != COMPACT:  # the question is one message more, and the gate opens again
        before = api.bodies[2]["messages"][:-1]
        assert api.bodies[3]["messages"][: len(before)] == before
    assert api.raw[4] == api.raw[3]
    assert BIG not in json.dumps(api.bodies[3])


def test_a_call_that_the_agent_repeats_is_no_turn(api: OpenAIAPI, plugin_of: Any) -> None:
    plugin = plugin_of(OLD)
    agent, repeated = agent_of(api, plugin), [True]
    assert isinstance(api.script, list)
    api.script.insert(2, Reply(status=400))

    def repeat(event: Any) -> None:
        event.retry = event.exception is not None and bool(repeated) and repeated.pop()

    agent.hooks.add_callback(AfterModelCallEvent, repeat)
    agent("Go.")
    assert api.raw[2] == api.raw[3]
    assert plugin.session_of("s").totals().calls == 3


def test_an_agents_session_manager_names_its_session(api: OpenAIAPI, tmp_path: Path) -> None:
    plugin = PolicyPlugin(policy(OLD), root=tmp_path / "context")
    for name, agent_id in (("one", None), ("two", "helper")):
        api.script = script()
        manager = FileSessionManager(session_id=name, storage_dir=str(tmp_path / "saved"))
        agent_of(api, plugin, session_manager=manager, agent_id=agent_id)("Go.")
    one, two = plugin.session_of("one"), plugin.session_of("two.helper")
    assert [len(each.ledger) for each in (one, two)] == [1, 1]


def test_a_policy_without_an_id_is_an_error(api: OpenAIAPI, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a session needs an id"):
        agent_of(api, PolicyPlugin(policy(OLD), root=tmp_path))("Go.")


def test_a_function_chooses_the_session_of_a_call(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[BedrockShape()])
    plugin = PolicyPlugin(lambda event: session if event.agent.name == "mine" else None)
    for name, count in (("other", 0), ("mine", 1)):
        api.script = script()
        agent_of(api, plugin, name=name)("Go.")
        assert len(session.ledger) == count


def test_an_agent_inside_a_tool_is_no_part_of_the_session(api: OpenAIAPI, plugin_of: Any) -> None:
    plugin = plugin_of(ALL)
    api.script = nested(question="Where?")
    helper = agent_of(api, plugin, system_prompt="Look.")

    @tool  # type: ignore[untyped-decorator]
    def ask(question: str) -> str:
        """Ask another agent."""
        return str(helper(question))

    agent_of(api, plugin, tools=[read, ask], system_prompt="Work.")("Go.")
    assert api.refused == []
    check_nested(outputs, api.bodies, plugin.session_of("s"))


def test_an_error_of_the_session_ends_the_run(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path)  # without the shape
    content = [{"text": "look"}, {"toolResult": "wrong"}]
    agent = agent_of(api, PolicyPlugin(session), messages=[{"role": "user", "content": content}])
    with pytest.raises(MessagesError, match="message 0"):
        agent("Go.")
    assert api.bodies == []


def test_another_manager_of_the_conversation_is_reported(
    api: OpenAIAPI, plugin_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        agent_of(api, plugin_of(OLD), conversation_manager=None)
    assert "SlidingWindowConversationManager removes messages too" in caplog.text


def test_a_hundred_turns_stay_valid_and_within_the_window(plugin_of: Any) -> None:
    plugin = plugin_of(LONG)
    options = {"tools": [bash], "system_prompt": CAREFUL}
    with openai_api(WINDOW) as api:
        agent = agent_of(api, plugin, **options)
        for part in range(10):
            if part % 3 == 2:  # a restart with the edited list
                plugin = plugin_of(LONG)
                saved = json.loads(json.dumps(agent.messages))
                agent = agent_of(api, plugin, messages=saved, **options)
            api.script = long_part(part)
            agent(f"Do part {part}.")
    check_loop(api, plugin.session_of("s"))


def test_a_hundred_turns_go_on_after_restarts_with_the_originals(
    plugin_of: Any, tmp_path: Path
) -> None:
    with openai_api(WINDOW) as api:
        for part in range(10):
            manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path / "saved"))
            options = {"system_prompt": CAREFUL, "session_manager": manager}
            agent = agent_of(api, plugin_of(LONG), tools=[bash], **options)
            api.script = [long_reply(turn) for turn in range(10 * part, 10 * part + 10)]
            agent(f"Do part {part}.")
    check_loop(api, plugin_of(LONG).session_of("s"))


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example("strands_agent", tmp_path, "strands")


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert added_lines("strands_agent", "strands") == [
        'policy = PolicyPlugin("coding-agent", session_id="strands-agent")',
        "    plugins=[policy],",
    ]


# Words leave, too; and a summary to which the assistant does not reply.
SPOKEN = DROP.replace("types: [tool_call]", "types: [tool_call, assistant_message, user_message]")
BARE = """\
    compaction: {keep_recent: {messages: 3}, wording: {summary_reply: ""}}
    steps: [{name: s, do: compact, when: {messages: {at_least: 6}}}]
    """
OVERFLOW = (
    "model: {tokenizer: {chars_per_token: 3}}\n"
    "steps: [{name: too-long, on: overflow, do: drop,"
    " select: {types: [tool_result], until: {tokens: {under: 60%}}}}]"
)


@pytest.mark.parametrize("window", [1_500, 310])
def test_a_prompt_that_is_too_long_is_sent_once_more(
    api: OpenAIAPI, plugin_of: Any, window: int
) -> None:
    calls = [calling((f"c{i}", "read", {"name": "a"})) for i in range(3)]
    api.script, api.window = [*calls, saying("Done.")], window
    agent = agent_of(api, plugin_of(OVERFLOW))
    if window < 1_000:
        with pytest.raises(Exception, match="maximum context length"):
            agent("Read it.")
        assert len(api.bodies) == 1
        return
    agent("Read it.")
    assert api.refused
    assert len(api.bodies) == len(api.prompts) + len(api.refused)
    assert max(api.prompts) <= window


@pytest.mark.parametrize("kept", ["edits", "originals"])
@pytest.mark.parametrize(
    "text", [DROP, SPOKEN, COMPACT, BARE], ids=["calls", "words", "compact", "bare"]
)
def test_bedrock_takes_each_list_of_an_agent_that_speaks_between_its_calls(
    plugin_of: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str, kept: str
) -> None:
    for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY"):
        monkeypatch.setenv(f"AWS_{name}", "k")
    with converse_api() as api:
        saved: list[Any] = []
        for part in range(3):  # a restart each time
            options: dict[str, Any] = {"messages": saved}
            if kept == "originals":
                folder = str(tmp_path / "saved")
                manager = FileSessionManager(session_id="s", storage_dir=folder)
                options = {"session_manager": manager}
            model = BedrockModel(
                model_id="m", endpoint_url=api.url, region_name="us-east-1", streaming=False
            )
            agent = Agent(
                model,
                tools=[read],
                plugins=[plugin_of(text)],
                callback_handler=None,
                conversation_manager=NullConversationManager(),
                **options,
            )
            for turn in range(3):
                api.script = [
                    Reply(f"Reading {i}.", ((f"c{part}{turn}{i}", "read", '{"name": "a"}'),))
                    for i in range(2)
                ]
                agent(f"Go on with {part}{turn}.")
            saved = json.loads(json.dumps(agent.messages))
    assert api.refused == []
    assert len(api.bodies) == 3 * 3 * 3
    assert "c000" not in json.dumps(api.bodies[-1])
