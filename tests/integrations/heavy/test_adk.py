"""`PolicyPlugin` in runs of Google's ADK, with its Gemini client and a server that checks."""

from __future__ import annotations

import asyncio
import copy
import gc
import logging
from collections.abc import Callable, Iterator
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.agent_tool import AgentTool
from google.genai import types

from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations import host_sessions
from policyctx.integrations.adk import GoogleShape, PolicyPlugin
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
    check_edited,
    check_five_calls,
    check_loop,
    five_calls,
    long_reply,
    script,
)
from tests.integrations.examples import added_lines, check_example, prompts_of, reading
from tests.integrations.heavy.google_api import GoogleAPI, google_api, results
from tests.integrations.loops import (
    BIG,
    LONG,
    OLD,
    SECOND,
    SHARE,
    WINDOW,
    limit_of,
)
from tests.integrations.scripted import Reply, calling, saying
from tests.policies import policy


def read(name: str) -> str:
    """Read a file."""
    return CONTENTS[name]


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[GoogleAPI]:
    with google_api() as server:
        server.script = script(reasons=True)
        monkeypatch.setenv("GOOGLE_GEMINI_BASE_URL", server.url)
        monkeypatch.setenv("GOOGLE_API_KEY", "k")
        yield server
        assert server.refused == []


@pytest.fixture
def plugin_of(tmp_path: Path) -> Callable[[str], PolicyPlugin]:
    def make(text: str) -> PolicyPlugin:
        return PolicyPlugin(policy(text), root=tmp_path)

    return make


def agent_of(**options: Any) -> Any:
    given = {"name": "worker", "model": "gemini-3-pro", "tools": [read], **options}
    return LlmAgent(**given)


def only(plugin: PolicyPlugin, id_: str = "s", agent: str = "worker") -> Session:
    """Return the session of an agent in a session of ADK."""
    return plugin.session_of(id_, app_name="app", user_id="u", agent_name=agent)


class Runs:
    """A runner, and ADK's service, which keeps the events of its sessions."""

    def __init__(
        self, plugin: Any, service: Any = None, *, streams: bool = False, **agent: Any
    ) -> None:
        self.service = service or InMemorySessionService()
        self.agent = agent.pop("agent", None) or agent_of(**agent)
        self.plugin = plugin
        mode = StreamingMode.SSE if streams else StreamingMode.NONE
        self.config = RunConfig(streaming_mode=mode)

    def run(self, text: str = "Read both.", *, id_: str = "s", user: str = "u") -> list[Any]:
        """Run the agent on a message and return the contents of the session's events."""
        return asyncio.run(self.go(text, id_=id_, user=user))

    async def go(self, text: str = "Read both.", *, id_: str = "s", user: str = "u") -> list[Any]:
        runner = Runner(
            app_name="app",
            agent=self.agent,
            session_service=self.service,
            plugins=[self.plugin] if self.plugin else [],
        )
        names = {"app_name": "app", "user_id": user, "session_id": id_}
        if await self.service.get_session(**names) is None:
            await self.service.create_session(**names)
        message = types.Content(role="user", parts=[types.Part(text=text)])
        run = runner.run_async(
            user_id=user, session_id=id_, new_message=message, run_config=self.config
        )
        async with aclosing(run) as events:
            async for _ in events:
                pass
        kept = (await self.service.get_session(**names)).events
        return [event.content for event in kept if event.content]


def kept_results(contents: list[Any]) -> list[str]:
    parts = [part for content in contents for part in content.parts if part.function_response]
    return [str(part.function_response.response["result"]) for part in parts]


@pytest.fixture
def host(api: GoogleAPI, plugin_of: Any, tmp_path: Path) -> Host:
    def run(text: str, instructions: str) -> Session:
        plugin = plugin_of(text)
        Runs(plugin, instruction=instructions).run()
        return only(plugin)

    return Host(api, run, results, PolicyPlugin, tmp_path / "app%2Fu%2Fs%2Fworker")


class TestAgent(AgentTests, OptionTests):
    """Google's ADK."""


@pytest.mark.parametrize(
    ("model", "limit"), [("gemini-2.0-flash", 800_000), ("gemini-of-ours", 160_000)]
)
def test_a_share_is_of_the_window_of_the_called_model(
    api: GoogleAPI, plugin_of: Any, model: str, limit: int
) -> None:
    plugin = plugin_of(SHARE)
    Runs(plugin, model=model).run()
    assert len(api.bodies) == 3
    assert limit_of(only(plugin)) == limit


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_the_model_gets_the_edited_list_and_the_events_keep_the_originals(
    api: GoogleAPI, plugin_of: Any, streams: bool
) -> None:
    plugin = plugin_of(OLD)
    events = Runs(plugin, streams=streams).run()
    check_edited(results(api.bodies[2]), api, only(plugin))
    assert kept_results(events) == [BIG, SECOND]


def test_a_message_without_a_decision_is_the_same_object(tmp_path: Path) -> None:
    host_shape = GoogleShape()
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[host_shape])
    call = types.Part(function_call=types.FunctionCall(name="read", args={}))
    found = [types.FunctionResponse(name="read", response={"result": t}) for t in (BIG, SECOND)]
    messages = [types.Content(role="user", parts=[types.Part(text="go")])]
    for one in found:
        messages.append(types.Content(role="model", parts=[call]))
        messages.append(types.Content(role="user", parts=[types.Part(function_response=one)]))
    sent = session.apply(messages).messages
    pairs = zip(sent, messages, strict=True)
    assert [i for i, (new, old) in enumerate(pairs) if new is not old] == [2]
    assert list(sent[2].parts[0].function_response.response) == ["result"]


def test_a_dropped_call_leaves_with_its_result(api: GoogleAPI, plugin_of: Any) -> None:
    events = Runs(plugin_of(DROP)).run()
    assert results(api.bodies[2]) == [SECOND]
    assert kept_results(events) == [BIG, SECOND]


def test_history_is_replaced_by_a_summary(api: GoogleAPI, plugin_of: Any) -> None:
    plugin = plugin_of(COMPACT)
    events = Runs(plugin, instruction="Be brief.").run()
    assert only(plugin).totals().compactions == 1
    assert "alpha" not in str(results(api.bodies[2]))
    assert "Be brief." in str(api.bodies[2]["systemInstruction"])
    assert kept_results(events) == [BIG, SECOND]


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
def test_a_restart_sends_the_same_bytes(api: GoogleAPI, plugin_of: Any, text: str) -> None:
    service = InMemorySessionService()
    api.script = [*script(reasons=True)[:2], Reply(status=400)]
    with pytest.raises(Exception, match="scripted"):
        Runs(plugin_of(text), service).run()
    twin = copy.deepcopy(service)
    for each in (service, twin):
        api.script = [saying("Done.")]
        Runs(plugin_of(text), each).run("Go on.")
    assert api.bodies[-1]["contents"] == api.bodies[-2]["contents"]
    assert BIG not in str(api.bodies[-1])


def test_an_error_of_the_api_goes_through_and_the_next_run_sends_the_same_list(
    api: GoogleAPI, plugin_of: Any
) -> None:
    plugin, service = plugin_of(OLD), InMemorySessionService()
    api.script = [*script(reasons=True)[:2], Reply(status=400), saying("Done.")]
    host = Runs(plugin, service)
    with pytest.raises(Exception, match="scripted"):
        host.run()
    Runs(plugin, service).run("Go on.")
    failed, again = api.bodies[2]["contents"], api.bodies[3]["contents"]
    assert again[: len(failed) - 1] == failed[:-1]
    assert len(only(plugin).ledger) >= 1


def test_users_with_one_session_id_have_a_session_each(api: GoogleAPI, plugin_of: Any) -> None:
    plugin, service = plugin_of(OLD), InMemorySessionService()
    for user in ("u", "v"):
        api.script = script(reasons=True)
        Runs(plugin, service).run(user=user)
    mine, other = (
        plugin.session_of("s", app_name="app", user_id=user, agent_name="worker")
        for user in ("u", "v")
    )
    assert mine is not other
    assert [len(each.ledger) for each in (mine, other)] == [1, 1]
    assert mine.session_id == "app/u/s/worker"
    split = plugin.session_of("s", app_name="app", user_id="u/s", agent_name="worker")
    assert split.session_id != mine.session_id
    assert len({str(each.store.root) for each in (mine, other, split)}) == 3


def test_ten_sessions_run_at_the_same_time(api: GoogleAPI, plugin_of: Any) -> None:
    api.script = five_calls(results)
    plugin = plugin_of(OLD)
    host = Runs(plugin)

    async def go() -> None:
        await asyncio.gather(*(host.go(id_=f"{i}") for i in range(10)))

    asyncio.run(go())
    check_five_calls(api, (only(plugin, f"{i}") for i in range(10)))


def test_a_bounded_number_of_sessions_is_kept(
    plugin_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_sessions, "_MOST_SESSIONS", 2)
    plugin = plugin_of(OLD)
    held = only(plugin, "0")
    for name in "123":
        only(plugin, name)
    gc.collect()
    assert [key.split("/")[2] for key in sorted(plugin._sessions._in_use)] == ["0", "2", "3"]
    assert only(plugin, "0") is held


def test_a_given_session_serves_all_runs_of_its_conversation(
    api: GoogleAPI, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="mine", shapes=[GoogleShape()])
    Runs(PolicyPlugin(session)).run()
    assert results(api.bodies[2])[0].startswith("[")
    assert only(PolicyPlugin(session)) is session
    api.script = [calling((f"c{i}", "look", {})) for i in range(2)]

    def look() -> str:
        """Look around."""
        return "gamma " * 400

    with caplog.at_level(logging.WARNING):
        Runs(PolicyPlugin(session), name="other", tools=[look]).run("Something else.")
    assert results(api.bodies[-1]) == [look()] * 2
    assert "sent unchanged" in caplog.text


def test_a_function_chooses_the_session_of_a_call(api: GoogleAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[GoogleShape()])
    plugin = PolicyPlugin(lambda context, _: session if context.agent_name == "mine" else None)
    for name, count in (("other", 0), ("mine", 1)):
        api.script = script(reasons=True)
        Runs(plugin, name=name).run()
        assert len(session.ledger) == count
    with pytest.raises(InputError, match="by a function"):
        only(plugin)


def test_an_error_of_the_session_ends_the_run(api: GoogleAPI) -> None:
    def broken(*_: object) -> None:
        raise InputError("no session for this user")

    with pytest.raises(RuntimeError, match="no session for this user"):
        Runs(PolicyPlugin(broken)).run()
    assert api.bodies == []


def test_an_agent_as_a_tool_has_a_session_of_its_own(api: GoogleAPI, plugin_of: Any) -> None:
    plugin = plugin_of(ALL)
    helper = agent_of(name="helper", instruction="Look.")
    found = saying(f"Found. {BIG}")
    calls = [
        calling(("q", "helper", {"request": "Where?"})),
        *script(reasons=True)[:2],
        found,
        *script(reasons=True)[1:],
    ]
    api.script = calls
    Runs(plugin, agent=agent_of(tools=[read, AgentTool(helper)])).run()
    assert len(api.bodies) == 6
    inner, outer = results(api.bodies[3]), results(api.bodies[5])
    assert len(inner) == len(outer) == 2
    assert all(text.startswith("[") for text in outer)
    assert only(plugin).totals().calls == 3


def test_an_agent_that_takes_over_has_a_session_of_its_own(api: GoogleAPI, plugin_of: Any) -> None:
    plugin = plugin_of(OLD)
    helper = agent_of(name="helper", description="Reads.", instruction="Look.")
    handover = calling(("q", "transfer_to_agent", {"agent_name": "helper"}))
    api.script = [handover, *script(reasons=True)]
    Runs(plugin, agent=agent_of(tools=[], sub_agents=[helper])).run()
    assert results(api.bodies[-1])[0].startswith("[")
    assert len(only(plugin, agent="helper").ledger) == 1
    assert only(plugin).totals().calls == 1


@pytest.mark.parametrize("streams", [False, True], ids=["whole", "streamed"])
def test_a_hundred_turns_stay_valid_and_within_the_window(
    api: GoogleAPI, plugin_of: Any, streams: bool
) -> None:
    turns = iter(range(100))
    api.window = WINDOW
    api.script = lambda _: long_reply(next(turns))

    def Bash(n: int, i: int) -> str:  # noqa: N802 - the name of the tool
        """Run a command."""
        return TEXTS[f"t{n}_{i}"]

    plugin, service = plugin_of(LONG), InMemorySessionService()
    events: list[Any] = []
    for part in range(10):
        # Every third part runs after a restart.
        plugin = plugin_of(LONG) if part % 3 == 2 else plugin
        host = Runs(plugin, service, streams=streams, tools=[Bash], instruction=CAREFUL)
        events = host.run(f"Do part {part}.")
    check_loop(api, only(plugin))
    assert sum(map(len, kept_results(events))) // 3 > 10 * WINDOW
    assert set(kept_results(events)) <= set(TEXTS.values())


NAME, PAGE = "adk_agent", "adk"


def run_example(program: Path, folder: Path) -> list[int]:
    with google_api() as api:
        api.script = reading(results)
        given = {"GOOGLE_GEMINI_BASE_URL": api.url, "GOOGLE_API_KEY": "k"}
        return prompts_of(api, program, folder, given)


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    name = "files%2Fme%2Fadk-agent%2Freader"
    check_example(NAME, tmp_path, PAGE, run_example, session=name)


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert [line.strip() for line in added_lines(NAME, PAGE)] == [
        'policy = PolicyPlugin("coding-agent")',
        "runner = Runner(agent=agent, **names, plugins=[policy])",
    ]


OVERFLOW = (
    "model: {tokenizer: {chars_per_token: 3}}\n"
    "steps: [{name: too-long, on: overflow, do: drop,"
    " select: {types: [tool_result], until: {tokens: {under: 60%}}}}]"
)


def test_a_prompt_that_is_too_long_is_sent_once_more(api: GoogleAPI, plugin_of: Any) -> None:
    calls = [calling((f"c{i}", "read", {"name": "a"})) for i in range(3)]
    api.script, api.window = [*calls, saying("Done.")], 1_500
    plugin = plugin_of(OVERFLOW)
    contents = Runs(plugin).run()
    assert contents[-1].parts[-1].text == "Done."
    assert len(api.bodies) == len(api.prompts) + len(api.refused) > len(api.prompts)
    assert max(api.prompts) <= 1_500
    assert only(plugin).totals().tokens_sent == sum(api.prompts)
    api.refused.clear()
