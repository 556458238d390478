"""`PolicyMiddleware` in agents of LangChain, with a model that checks each request.

The tests run with the oldest supported LangChain too: see `scripts/test-oldest`.
"""

from __future__ import annotations

import asyncio
import gc
import json
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain")

from collections.abc import Callable

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations import host_sessions
from policyctx.integrations.langchain import LangChainShape, PolicyMiddleware
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
    check_observed,
    five_calls,
    long_reply,
    script,
)
from tests.integrations.langchain_model import (
    RefusedError,
    ScriptedModel,
    results,
)
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
from tests.integrations.scripted import calling, saying
from tests.policies import policy

# LangChain takes seconds to import.
pytestmark = pytest.mark.slow


@tool  # type: ignore[untyped-decorator]
def read(name: str) -> str:
    """Read a file."""
    return CONTENTS[name]


def thread(name: str = "s") -> Any:
    return {"configurable": {"thread_id": name}, "recursion_limit": 500}


def agent_of(model: ScriptedModel, middleware: Any, **options: Any) -> Any:
    return create_agent(model, [read], middleware=[middleware], **options)


def run(agent: Any, config: Any = None, *, is_async: bool = False, text: str = "Read both.") -> Any:
    given = {"messages": [HumanMessage(text)]}
    if is_async:
        return asyncio.run(agent.ainvoke(given, config or thread()))["messages"]
    return agent.invoke(given, config or thread())["messages"]


@pytest.fixture
def middleware_of(tmp_path: Path) -> Callable[[str], PolicyMiddleware]:
    def make(text: str) -> PolicyMiddleware:
        return PolicyMiddleware(policy(text), root=tmp_path)

    return make


@pytest.fixture
def host(middleware_of: Any, tmp_path: Path) -> Host:
    model = ScriptedModel(script=script(reasons=True))

    def start(text: str, instructions: str) -> Session:
        middleware = middleware_of(text)
        run(agent_of(model, middleware, system_prompt=instructions))
        session: Session = middleware.session_of("s")
        return session

    return Host(model, start, results, PolicyMiddleware, tmp_path / "s")


class TestAgent(AgentTests, OptionTests):
    """LangChain."""


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_model_gets_the_edited_list_and_the_state_keeps_the_originals(
    middleware_of: Any, is_async: bool
) -> None:
    model, middleware = ScriptedModel(script=script(reasons=True)), middleware_of(OLD)
    state = run(agent_of(model, middleware), is_async=is_async)
    check_edited(results(model.bodies[2]), model, middleware.session_of("s"))
    assert results(state) == [BIG, SECOND]


@pytest.mark.parametrize(("model", "limit"), LIMITS)
@pytest.mark.parametrize("attribute", ["model_name", "model"])
def test_a_share_is_of_the_window_of_the_called_model(
    middleware_of: Any, model: str, limit: int, attribute: str
) -> None:
    class Named(ScriptedModel):
        model_name: str | None = None
        model: str | None = None

    middleware = middleware_of(SHARE)
    run(agent_of(Named(script=script(reasons=True), **{attribute: model}), middleware))
    assert limit_of(middleware.session_of("s")) == limit


def test_a_message_without_a_decision_is_the_same_object(middleware_of: Any) -> None:
    model = ScriptedModel(script=script(reasons=True))
    state = run(agent_of(model, middleware_of(OLD)))
    pairs = zip(model.bodies[2], state, strict=False)
    assert [i for i, (sent, kept) in enumerate(pairs) if sent is not kept] == [2]


def test_a_streamed_run_observes_the_usage(middleware_of: Any) -> None:
    model, middleware = ScriptedModel(script=script(reasons=True)), middleware_of(OLD)
    given = {"messages": [HumanMessage("Go.")]}
    assert list(agent_of(model, middleware).stream(given, thread(), stream_mode="messages"))
    check_observed(model, middleware.session_of("s"))


def test_a_dropped_call_leaves_with_its_result_and_its_block(middleware_of: Any) -> None:
    model = ScriptedModel(script=script(reasons=True))
    state = run(agent_of(model, middleware_of(DROP)))
    assert results(model.bodies[2]) == [SECOND]
    assert "'c0'" not in str(model.bodies[2])  # ids of messages are random
    assert results(state) == [BIG, SECOND]


def test_history_is_replaced_by_a_summary(middleware_of: Any) -> None:
    model, middleware = ScriptedModel(script=script(reasons=True)), middleware_of(COMPACT)
    state = run(agent_of(model, middleware, system_prompt="Be brief."))
    assert middleware.session_of("s").totals().compactions == 1
    assert isinstance(model.bodies[2][1], HumanMessage)
    assert "alpha" not in str(results(model.bodies[2]))
    assert results(state) == [BIG, SECOND]


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
def test_a_restart_sends_the_same_bytes(middleware_of: Any, text: str) -> None:
    saver = InMemorySaver()
    model = ScriptedModel(
        script=[*script(reasons=True)[:2], ConnectionError("killed"), saying("Done.")]
    )
    agent = agent_of(model, middleware_of(text), checkpointer=saver)
    with pytest.raises(ConnectionError):
        run(agent)
    saved = middleware_of(text)
    again = ScriptedModel(script=[saying("Done.")])
    agent_of(again, saved, checkpointer=saver).invoke(None, thread())
    twin = ScriptedModel(script=[saying("Done.")])
    agent_of(twin, middleware_of(text)).invoke({"messages": again_given(again, saver)}, thread())
    shape = LangChainShape()
    assert [shape.plain(m) for m in twin.bodies[0]] == [shape.plain(m) for m in again.bodies[0]]
    assert BIG not in str(again.bodies[0])


def again_given(model: ScriptedModel, saver: Any) -> list[Any]:
    """The saved messages without the answer, as other objects without ids."""
    state = agent_of(model, PolicyMiddleware(lambda _: None), checkpointer=saver)
    messages = state.get_state(thread()).values["messages"][:-1]
    return [message.model_copy(update={"id": None}, deep=True) for message in messages]


def test_a_repeated_call_sends_the_same_list_and_decides_nothing(middleware_of: Any) -> None:
    class Repeat(AgentMiddleware):  # type: ignore[misc]
        def wrap_model_call(self, request: Any, handler: Any) -> Any:
            try:
                return handler(request)
            except ConnectionError:
                return handler(request)

    seen: list[Any] = []

    def answer(messages: list[Any]) -> Any:
        seen.append(messages)
        return steps.pop(0)

    steps = [*script(reasons=True)[:2], ConnectionError("overloaded"), saying("Done.")]
    middleware = middleware_of(OLD)
    agent = create_agent(ScriptedModel(script=answer), [read], middleware=[Repeat(), middleware])
    run(agent)
    assert seen[2] == seen[3]
    assert len(middleware.session_of("s").ledger) == 1


def test_two_threads_have_a_session_each(middleware_of: Any) -> None:
    model, middleware = (
        ScriptedModel(script=[*script(reasons=True), *script(reasons=True)]),
        middleware_of(OLD),
    )
    agent = agent_of(model, middleware, checkpointer=InMemorySaver())
    run(agent, thread("one"))
    run(agent, thread("two"))
    one, two = middleware.session_of("one"), middleware.session_of("two")
    assert one is not two
    assert [len(each.ledger) for each in (one, two)] == [1, 1]
    assert [each.session_id for each in (one, two)] == ["one", "two"]
    assert [Path(each.store.root).name for each in (one, two)] == ["one", "two"]


def test_ten_threads_run_at_the_same_time(middleware_of: Any) -> None:
    model, middleware = ScriptedModel(script=five_calls(results)), middleware_of(OLD)
    agent = agent_of(model, middleware)

    async def go() -> None:
        given = {"messages": [HumanMessage("Go.")]}
        await asyncio.gather(*(agent.ainvoke(given, thread(f"{i}")) for i in range(10)))

    asyncio.run(go())
    check_five_calls(model, (middleware.session_of(f"{i}") for i in range(10)))


def test_a_bounded_number_of_sessions_is_kept(
    middleware_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(host_sessions, "_MOST_SESSIONS", 2)
    middleware = middleware_of(OLD)
    held = middleware.session_of("0")
    for name in "123":
        middleware.session_of(name)
    gc.collect()
    assert set(middleware._sessions._in_use) == {"0", "2", "3"}
    assert middleware.session_of("0") is held


def test_a_given_session_serves_a_run_without_a_thread(tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[LangChainShape()])
    model = ScriptedModel(script=script(reasons=True))
    run(agent_of(model, PolicyMiddleware(session)), {"recursion_limit": 50})
    assert results(model.bodies[2])[0].startswith("[")


def test_a_function_chooses_the_session_of_a_call(tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[LangChainShape()])
    sessions = {"mine": session}
    middleware = PolicyMiddleware(lambda request: sessions.get(request.system_prompt or ""))
    for prompt, count in (("other", 0), ("mine", 1)):
        model = ScriptedModel(script=script(reasons=True))
        run(agent_of(model, middleware, system_prompt=prompt))
        assert len(session.ledger) == count


def test_a_policy_without_a_thread_is_an_error(middleware_of: Any) -> None:
    agent = agent_of(ScriptedModel(script=script(reasons=True)), middleware_of(OLD))
    with pytest.raises(InputError, match="a session needs a thread_id"):
        run(agent, {"recursion_limit": 50})


def test_a_sub_agent_of_the_same_thread_is_no_part_of_the_session(middleware_of: Any) -> None:
    middleware = middleware_of(ALL)
    inner = ScriptedModel(script=[*script(reasons=True)[:2], saying(f"Found. {BIG}")])
    helper = agent_of(inner, middleware, system_prompt="Look.")

    @tool  # type: ignore[untyped-decorator]
    def ask(question: str) -> str:
        """Ask another agent."""
        return str(helper.invoke({"messages": [HumanMessage(question)]})["messages"][-1].content)

    model = ScriptedModel(
        script=[calling(("q", "ask", {"question": "Where?"})), *script(reasons=True)[1:]],
    )
    agent = create_agent(model, [read, ask], middleware=[middleware], system_prompt="Work.")
    run(agent)
    assert results(inner.bodies[2]) == [BIG, SECOND]
    assert all(text.startswith("[") for text in results(model.bodies[2]))
    assert middleware.session_of("s").totals().calls == 3


def test_a_session_goes_on_under_another_prompt_also_with_artifacts(middleware_of: Any) -> None:
    @tool(response_format="content_and_artifact")  # type: ignore[untyped-decorator]
    def read(name: str) -> tuple[str, object]:
        """Read a file."""
        return CONTENTS[name], object()

    middleware = middleware_of(OLD)
    history: list[Any] = []
    for part in ("one", "two"):
        model = ScriptedModel(script=script(reasons=True))
        agent = create_agent(model, [read], middleware=[middleware], system_prompt=part)
        history = agent.invoke({"messages": [*history, HumanMessage(part)]}, thread())["messages"]
    assert len(middleware.session_of("s").ledger) == 3
    assert [text[0] for text in results(model.bodies[-1])] == ["[", "[", "[", "b"]


def test_many_turns_stay_valid_and_within_the_window(middleware_of: Any) -> None:
    turns = iter(range(TURNS))

    @tool("Bash")  # type: ignore[untyped-decorator]
    def bash(n: int, i: int) -> str:
        """Run a command."""
        return TEXTS[f"t{n}_{i}"]

    model = ScriptedModel(script=lambda _: long_reply(next(turns)), window=WINDOW)
    middleware, saver = middleware_of(LONG), InMemorySaver()
    for part in range(TURNS // 10):
        # Every part runs in an agent of its own, and every third one after a restart.
        middleware = middleware_of(LONG) if part % 3 == 2 else middleware
        agent = create_agent(
            model, [bash], middleware=[middleware], checkpointer=saver, system_prompt=CAREFUL
        )
        state = run(agent, is_async=part % 2 == 1, text=f"Do part {part}.")
    check_loop(model, middleware.session_of("s"), TURNS)
    assert len(json.dumps(results(state))) // 3 > TURNS // 10 * WINDOW
    called = {f"t{turn}" for turn in range(TURNS) if turn % 10 != 9}
    assert set(results(state)) == {TEXTS[id_] for id_ in TEXTS if id_.split("_")[0] in called}


def test_the_shape_reads_reasoning_media_and_raw_calls() -> None:
    shape = LangChainShape()
    picture = {"type": "image", "base64": "iVBORw0KGgo=", "mime_type": "image/png"}
    reply = AIMessage(
        [
            {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "E"},
            {"type": "redacted_thinking", "data": "R"},
            {"type": "server_tool_use", "id": "w", "name": "search", "input": {}},
            {"type": "function_call", "id": "fc", "call_id": "a", "name": "f", "arguments": "{}"},
        ],
        tool_calls=[{"id": "a", "name": "f", "args": {"x": 1}}],
        additional_kwargs={"tool_calls": [{"id": "a", "function": {"arguments": '{"x": 1}'}}]},
    )
    kinds = [part.kind for part in shape.parts(reply)]
    assert kinds == ["thinking", "thinking", "unknown", "tool_call"]
    edited = shape.replaced(reply, {("tool_calls", 0): '{"x": 2}'})
    assert edited.tool_calls[0]["args"] == {"x": 2}
    assert edited.content[3]["arguments"] == '{"x": 2}'
    assert edited.additional_kwargs["tool_calls"][0]["function"]["arguments"] == '{"x": 2}'
    assert edited.content[:3] == reply.content[:3]
    dropped = shape.replaced(reply, {("tool_calls", 0): None})
    assert (dropped.tool_calls, dropped.additional_kwargs["tool_calls"]) == ([], [])
    assert dropped.content == reply.content[:3]
    result = ToolMessage(["seen", picture], tool_call_id="a", artifact=object())
    parts = list(shape.parts(result))
    assert [(part.kind, part.number) for part in parts] == [("tool_result", 0), ("image", 1)]
    assert "iVBORw0KGgo=" not in str(parts[0].counted)
    without = shape.replaced(result, {("content", 1): "see a file"})
    assert without.content == ["seen", {"type": "text", "text": "see a file"}]
    assert without.artifact is result.artifact
    assert json.dumps(shape.plain(result))


OVERFLOW = (
    "model: {tokenizer: {chars_per_token: 3}}\n"
    "steps: [{name: too-long, on: overflow, do: drop,"
    " select: {types: [tool_result], until: {tokens: {under: 60%}}}}]"
)


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("window", [1_500, 310])
def test_a_prompt_that_is_too_long_is_sent_once_more(
    tmp_path: Path, window: int, *, is_async: bool
) -> None:
    calls = []

    def reply(messages: list[Any]) -> Any:
        calls.append(messages)
        is_last = len(model.bodies) == 4
        return saying("Done.") if is_last else calling((f"c{len(calls)}", "read", {"name": "a"}))

    model = ScriptedModel(script=reply, window=window)
    agent = agent_of(model, PolicyMiddleware(policy(OVERFLOW), root=tmp_path))
    if window < 1_000:
        with pytest.raises(RefusedError, match="too long"):
            run(agent, is_async=is_async)
        return
    run(agent, is_async=is_async)
    assert max(model.prompts) <= window
    refused = len(calls) - len(model.bodies)
    assert 1 <= refused < len(model.bodies)
