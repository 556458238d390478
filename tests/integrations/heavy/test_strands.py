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
from strands.models.openai import OpenAIModel
from strands.session.file_session_manager import FileSessionManager

from policyctx import Session
from policyctx.errors import InputError, MessagesError
from policyctx.integrations.strands import BedrockShape, PolicyPlugin
from tests.integrations.examples import added_lines, check_example, outputs
from tests.integrations.loops import (
    BIG,
    GATED,
    LIMITS,
    LONG,
    OLD,
    SECOND,
    SHARE,
    WINDOW,
    limit_of,
    long_results,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.openai_loops import long_reply
from tests.integrations.scripted import BROKEN, OVERLOADED, Reply, calling, saying
from tests.policies import policy

pytestmark = pytest.mark.slow

DROP = """\
    steps: [{name: s, do: drop, select: {types: [tool_call], keep_recent: 1}}]
    """
COMPACT = """\
    compaction: {keep_recent: {messages: 1}, keep_newest_user_message: true}
    steps: [{name: s, do: compact, when: {messages: {at_least: 4}}}]
    """


def script() -> list[Reply]:
    return [
        calling(("c0", "read", {"name": "a"})),
        calling(("c1", "read", {"name": "b"})),
        saying("Done."),
    ]


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
    return {"a": BIG, "b": SECOND}[name]


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
    assert api.refused == []
    first, second = outputs(api.bodies[2])
    assert first.startswith("[")
    assert second == SECOND
    assert agent.messages is messages
    assert results(messages) == [first, SECOND]
    session = plugin.session_of("s")
    [file] = [item.offload_path for item in session.items if item.offload_path]
    assert session.read(file) == BIG
    totals = session.totals()
    assert (totals.calls, totals.tokens_sent) == (3, sum(api.prompts))


def test_a_streamed_run_is_edited_and_its_usage_observed(api: OpenAIAPI, plugin_of: Any) -> None:
    plugin = plugin_of(OLD)

    async def go() -> None:
        events = [event async for event in agent_of(api, plugin).stream_async("Go.")]
        assert events

    asyncio.run(go())
    assert outputs(api.bodies[2])[0].startswith("[")
    totals = plugin.session_of("s").totals()
    assert (totals.calls, totals.tokens_sent) == (3, sum(api.prompts))


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


def test_parallel_calls_are_offloaded_one_by_one(api: OpenAIAPI, plugin_of: Any) -> None:
    both = calling(("c0", "read", {"name": "a"}), ("c1", "read", {"name": "b"}))
    api.script = [both, calling(("c2", "read", {"name": "b"})), saying("Done.")]
    agent_of(api, plugin_of(OLD))("Go.")
    assert sorted(outputs(api.bodies[1])) == [BIG, SECOND]
    *old, newest = outputs(api.bodies[2])
    assert [text[0] for text in old] == ["[", "["]
    assert newest == SECOND


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


@pytest.mark.parametrize("error", [OVERLOADED, BROKEN], ids=["529", "500"])
def test_a_retried_request_is_sent_byte_for_byte(
    api: OpenAIAPI, plugin_of: Any, error: Reply
) -> None:
    assert isinstance(api.script, list)
    api.script.insert(2, error)
    plugin = plugin_of(OLD)
    agent_of(api, plugin)("Go.")
    assert api.raw[2] == api.raw[3]
    assert len(plugin.session_of("s").ledger) == 1


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


def test_options_need_a_policy(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="need a policy"):
        PolicyPlugin(lambda _: None, root=tmp_path)


def test_the_system_prompt_and_the_tools_count_towards_the_gates(
    api: OpenAIAPI, plugin_of: Any
) -> None:
    agent_of(api, plugin_of(GATED), system_prompt="rule " * 20_000)("Go.")
    assert outputs(api.bodies[2])[0].startswith("[")


def test_an_agent_inside_a_tool_is_no_part_of_the_session(api: OpenAIAPI, plugin_of: Any) -> None:
    plugin = plugin_of(OLD.replace("keep_recent: 1", "keep_recent: 0"))
    inner = [calling((f"i{i}", "read", {"name": name})) for i, name in enumerate("ab")]
    api.script = [
        calling(("c0", "ask", {"question": "Where?"})),
        *inner,
        saying(f"Found. {BIG}"),
        calling(("c1", "read", {"name": "b"})),
        saying("Done."),
    ]
    helper = agent_of(api, plugin, system_prompt="Look.")

    @tool  # type: ignore[untyped-decorator]
    def ask(question: str) -> str:
        """Ask another agent."""
        return str(helper(question))

    agent_of(api, plugin, tools=[read, ask], system_prompt="Work.")("Go.")
    assert api.refused == []
    assert outputs(api.bodies[3]) == [BIG, SECOND]
    assert all(text.startswith("[") for text in outputs(api.bodies[5]))
    assert plugin.session_of("s").totals().calls == 3


def test_an_error_of_the_session_ends_the_run(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path)  # without the shape
    content = [{"text": "look"}, {"toolResult": "wrong"}]
    agent = agent_of(api, PolicyPlugin(session), messages=[{"role": "user", "content": content}])
    with pytest.raises(MessagesError, match="message 0"):
        agent("Go.")
    assert api.bodies == []


def test_warnings_of_a_turn_are_logged(
    api: OpenAIAPI, plugin_of: Any, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "context").mkdir()
    (tmp_path / "context" / "tool_result").write_text("a file in place of the folder")
    agent_of(api, plugin_of(OLD))("Go.")
    records = [record for record in caplog.records if record.name.startswith("policyctx")]
    assert any("session s: " in record.getMessage() for record in records)
    assert outputs(api.bodies[2]) == [BIG, SECOND]


def test_another_manager_of_the_conversation_is_reported(
    api: OpenAIAPI, plugin_of: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        agent_of(api, plugin_of(OLD), conversation_manager=None)
    assert "SlidingWindowConversationManager removes messages too" in caplog.text


def test_a_hundred_turns_stay_valid_and_within_the_window(plugin_of: Any) -> None:
    texts = {id_: text for turn in range(100) for id_, text in long_results(turn)}

    @tool(name="Bash")  # type: ignore[untyped-decorator]
    def bash(n: int, i: int) -> str:
        """Run a command."""
        return texts[f"t{n}_{i}"]

    plugin = plugin_of(LONG)
    options = {"tools": [bash], "system_prompt": "You are careful. " * 120}
    with openai_api(WINDOW) as api:
        agent = agent_of(api, plugin, **options)
        for part in range(10):
            if part % 3 == 2:  # a restart with the edited list
                plugin = plugin_of(LONG)
                saved = json.loads(json.dumps(agent.messages))
                agent = agent_of(api, plugin, messages=saved, **options)
            lines: list[Reply] = []
            for turn in range(10 * part, 10 * part + 10):
                lines += [[OVERLOADED, BROKEN][turn % 2]] if turn % 13 == 5 else []
                lines.append(long_reply(turn))
            api.script = lines
            agent(f"Do part {part}.")
        assert api.refused == []
        assert len(api.prompts) == 100
        assert max(api.prompts) <= WINDOW
    totals = plugin.session_of("s").totals()
    assert "offloaded" in totals.items
    assert totals.compactions > 2


def test_a_hundred_turns_go_on_after_restarts_with_the_originals(
    plugin_of: Any, tmp_path: Path
) -> None:
    texts = {id_: text for turn in range(100) for id_, text in long_results(turn)}

    @tool(name="Bash")  # type: ignore[untyped-decorator]
    def bash(n: int, i: int) -> str:
        """Run a command."""
        return texts[f"t{n}_{i}"]

    with openai_api(WINDOW) as api:
        for part in range(10):
            manager = FileSessionManager(session_id="s", storage_dir=str(tmp_path / "saved"))
            agent = agent_of(
                api,
                plugin_of(LONG),
                tools=[bash],
                system_prompt="You are careful. " * 120,
                session_manager=manager,
            )
            api.script = [long_reply(turn) for turn in range(10 * part, 10 * part + 10)]
            agent(f"Do part {part}.")
        assert api.refused == []
        assert len(api.prompts) == 100
        assert max(api.prompts) <= WINDOW
    assert plugin_of(LONG).session_of("s").totals().compactions > 2


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example("strands_agent", tmp_path, "strands")


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert added_lines("strands_agent", "strands") == [
        'policy = PolicyPlugin("coding-agent", session_id="read-the-folder")',
        "    plugins=[policy],",
    ]
