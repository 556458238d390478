"""`PolicyCapability` in agents of Pydantic AI, against a server that checks each request.

The tests run with the oldest supported version too: see `scripts/test-oldest`.
"""

from __future__ import annotations

import asyncio
import json
import warnings
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from collections.abc import AsyncIterator, Callable, Iterator

import openai
import pydantic_ai
from pydantic_ai import Agent
from pydantic_ai.messages import (
    BinaryContent,
    ImageUrl,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider

from policyctx import Session
from policyctx.errors import MessagesError
from policyctx.integrations.pydantic_ai import PolicyCapability, PydanticAIShape
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
    check_observed,
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
from tests.integrations.scripted import Reply, calling, saying
from tests.policies import policy

# Pydantic AI takes seconds to import.
pytestmark = pytest.mark.slow

# Before, the agent keeps the edited list as its history.
KEEPS_ORIGINALS = tuple(map(int, pydantic_ai.__version__.split(".")[:2])) >= (2, 54)


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        server.script = script(reasons=True)
        yield server


@pytest.fixture
def capability_of(tmp_path: Path) -> Callable[[str], PolicyCapability]:
    def make(text: str) -> PolicyCapability:
        return PolicyCapability(policy(text), root=tmp_path)

    return make


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OLD), root=tmp_path, session_id="s", shapes=[PydanticAIShape()])


@asynccontextmanager
async def model_of(
    api: OpenAIAPI, *, chat: bool = False, name: str = "gpt-some"
) -> AsyncIterator[Any]:
    kind = OpenAIChatModel if chat else OpenAIResponsesModel
    async with openai.AsyncOpenAI(base_url=api.url, api_key="k") as client:
        yield kind(name, provider=OpenAIProvider(openai_client=client))


def read(name: str) -> str:
    """Read a file."""
    return CONTENTS[name]


def agent_of(model: Any, capability: Any, **options: Any) -> Any:
    given = {"tools": [read], "instructions": "Read.", "retries": 3, **options}
    return Agent(model, capabilities=[capability], **given)


async def run(
    api: OpenAIAPI, capability: Any, *, chat: bool = False, name: str = "gpt-some", **options: Any
) -> Any:
    async with model_of(api, chat=chat, name=name) as model:
        given = {"conversation_id": "s", **options}
        return await agent_of(model, capability).run("Read both.", **given)


def results(messages: Any) -> list[str]:
    """The texts of the results in a list of messages."""
    parts = (part for message in messages for part in message.parts)
    return [str(part.content) for part in parts if isinstance(part, ToolReturnPart)]


def bash(n: int, i: int) -> str:
    """Run a command."""
    return TEXTS[f"t{n}_{i}"]


@pytest.fixture
def host(api: OpenAIAPI, capability_of: Any, tmp_path: Path) -> Host:
    def start(text: str, instructions: str) -> Session:
        capability = capability_of(text)

        async def go() -> None:
            async with model_of(api) as model:
                agent = agent_of(model, capability, instructions=instructions)
                await agent.run("Read both.", conversation_id="s")

        asyncio.run(go())
        session: Session = capability.session_of("s")
        return session

    return Host(api, start, outputs, PolicyCapability, tmp_path / "s")


class TestAgent(AgentTests, OptionTests, RetryTests):
    """Pydantic AI."""


@pytest.mark.parametrize(("model", "limit"), LIMITS)
def test_a_share_is_of_the_window_of_the_called_model(
    api: OpenAIAPI, capability_of: Any, model: str, limit: int
) -> None:
    capability = capability_of(SHARE)
    asyncio.run(run(api, capability, chat=True, name=model))
    assert limit_of(capability.session_of("s")) == limit


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_the_model_gets_the_edited_list_and_the_history_keeps_the_originals(
    api: OpenAIAPI, capability_of: Any, chat: bool
) -> None:
    capability = capability_of(OLD)
    result = asyncio.run(run(api, capability, chat=chat))
    assert result.output == "Done."
    sent = outputs(api.bodies[2])
    check_edited(sent, api, capability.session_of("s"))
    kept = results(result.all_messages())
    assert kept == ([BIG, SECOND] if KEEPS_ORIGINALS else [sent[0], SECOND])


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_a_streamed_run_is_edited_and_its_usage_observed(
    api: OpenAIAPI, capability_of: Any, chat: bool
) -> None:
    capability = capability_of(OLD)

    async def go() -> None:
        async with model_of(api, chat=chat) as model:
            agent = agent_of(model, capability)
            async with agent.run_stream("Read both.", conversation_id="s") as stream:
                assert [text async for text in stream.stream_text()][-1] == "Done."

    asyncio.run(go())
    assert api.refused == []
    assert outputs(api.bodies[2])[0].startswith("[")
    check_observed(api, capability.session_of("s"))


def test_a_synchronous_run_is_edited(api: OpenAIAPI, capability_of: Any) -> None:
    client = openai.AsyncOpenAI(base_url=api.url, api_key="k")
    model = OpenAIResponsesModel("gpt-some", provider=OpenAIProvider(openai_client=client))
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        agent_of(model, capability_of(OLD)).run_sync("Read both.", conversation_id="s")
        loop.run_until_complete(client.close())
    finally:
        asyncio.set_event_loop(None)
        loop.close()
    assert outputs(api.bodies[2])[0].startswith("[")


def test_a_message_without_a_decision_is_the_same_object(
    api: OpenAIAPI, capability_of: Any
) -> None:
    seen: list[Any] = []

    class Look(PolicyCapability):
        async def before_model_request(self, ctx: Any, request_context: Any) -> Any:
            before = list(request_context.messages)
            after = (await super().before_model_request(ctx, request_context)).messages
            seen.append([i for i, (a, b) in enumerate(zip(before, after, strict=True)) if a is b])
            return request_context

    asyncio.run(run(api, Look(capability_of(OLD).session_of("s"))))
    assert seen == [[0], [0, 1, 2], [0, 1, 3, 4]]


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_a_dropped_call_leaves_with_its_result(
    api: OpenAIAPI, capability_of: Any, chat: bool
) -> None:
    thought = Reply("Let me see.", calling(("c0", "read", {"name": "a"})).calls, reasons=True)
    api.script = [thought, *script()[1:]]
    asyncio.run(run(api, capability_of(DROP), chat=chat))
    assert api.refused == []
    assert outputs(api.bodies[2]) == [SECOND]
    assert "c0" not in json.dumps(api.bodies[2])


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_history_is_replaced_by_a_summary(api: OpenAIAPI, capability_of: Any, chat: bool) -> None:
    capability = capability_of(COMPACT)
    asyncio.run(run(api, capability, chat=chat))
    assert api.refused == []
    assert capability.session_of("s").totals().compactions == 1
    assert outputs(api.bodies[2]) in ([], [SECOND])


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
def test_a_restart_sends_the_same_bytes(capability_of: Any, text: str) -> None:
    """The saved history goes on in a new process, with and without the ids and times in it."""

    def going_on(history: list[Any]) -> bytes:
        with openai_api() as api:
            made = api_items
            api.made, api.script = made, [saying("Again.")]
            options: dict[str, Any] = {"message_history": history, "conversation_id": "s"}
            asyncio.run(run(api, capability_of(text), **options))
            assert api.refused == []
            return api.raw[0]

    with openai_api() as api:
        api.script = script(reasons=True)
        history = asyncio.run(run(api, capability_of(text))).all_messages()
        api_items = api.made
    shape = PydanticAIShape()
    first = going_on(history)
    assert going_on(shape_loaded(shape, history)) == first
    assert BIG.encode() not in first


def shape_loaded(shape: PydanticAIShape, messages: list[Any]) -> list[Any]:
    """The messages as an archive holds them."""
    adapter = pydantic_ai.messages.ModelMessagesTypeAdapter
    return list(adapter.validate_python([shape.plain(message) for message in messages]))


def test_a_run_after_one_that_failed_sends_the_same_list(
    api: OpenAIAPI, capability_of: Any
) -> None:
    assert isinstance(api.script, list)
    api.script[2:] = [Reply(status=400), saying("Done.")]
    capability, seen = capability_of(OLD), list[Any]()

    async def go() -> None:
        async with model_of(api) as model:
            agent = agent_of(model, capability)
            with pydantic_ai.capture_run_messages() as seen:
                with pytest.raises(pydantic_ai.ModelHTTPError):
                    await agent.run("Read both.", conversation_id="s")
                await agent.run(message_history=list(seen), conversation_id="s")

    asyncio.run(go())
    assert seen == []
    assert outputs(api.bodies[2]) == outputs(api.bodies[3])
    assert len(capability.session_of("s").ledger) == 1


def test_two_conversations_have_a_session_each(api: OpenAIAPI, capability_of: Any) -> None:
    capability = capability_of(OLD)
    for name in ("one", "two"):
        api.script = script(reasons=True)
        asyncio.run(run(api, capability, conversation_id=name))
    one, two = capability.session_of("one"), capability.session_of("two")
    assert [each.session_id for each in (one, two)] == ["one", "two"]
    assert [len(each.ledger) for each in (one, two)] == [1, 1]
    assert [Path(each.store.root).name for each in (one, two)] == ["one", "two"]


def test_a_history_goes_on_in_the_session_of_its_conversation(
    api: OpenAIAPI, capability_of: Any
) -> None:
    capability = capability_of(OLD)
    history = asyncio.run(run(api, capability, conversation_id=None)).all_messages()
    name = history[0].conversation_id
    api.script = [saying("Again.")]
    asyncio.run(run(api, capability, conversation_id=None, message_history=history))
    assert capability.session_of(name).totals().calls == 4


def test_ten_conversations_run_at_the_same_time(api: OpenAIAPI, capability_of: Any) -> None:
    api.script = five_calls(outputs)
    capability = capability_of(OLD)

    async def go() -> None:
        await asyncio.gather(*(run(api, capability, conversation_id=f"{i}") for i in range(10)))

    asyncio.run(go())
    check_five_calls(api, (capability.session_of(f"{i}") for i in range(10)))


def test_a_given_session_serves_every_run(api: OpenAIAPI, session: Session) -> None:
    asyncio.run(run(api, PolicyCapability(session), conversation_id=None))
    assert outputs(api.bodies[2])[0].startswith("[")
    assert session.totals().calls == 3


def test_a_function_chooses_the_session_of_a_run(api: OpenAIAPI, session: Session) -> None:
    capability = PolicyCapability(lambda ctx: session if ctx.deps == "mine" else None)
    for deps, count in (("other", 0), ("mine", 1)):
        api.script = script(reasons=True)
        asyncio.run(run(api, capability, deps=deps))
        assert len(session.ledger) == count


def test_an_agent_inside_a_tool_is_no_part_of_the_session(
    api: OpenAIAPI, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(policy(ALL), root=tmp_path, session_id="s", shapes=[PydanticAIShape()])
    capability = PolicyCapability(session)
    api.script = nested(question="Where?")

    async def go() -> None:
        async with model_of(api) as model:
            helper = agent_of(model, capability, instructions="Look.")

            async def ask(question: str) -> str:
                return str((await helper.run(question)).output)

            await agent_of(model, capability, tools=[read, ask]).run("Go.")

    asyncio.run(go())
    assert api.refused == []
    check_nested(outputs, api.bodies, session)
    [record] = [record for record in caplog.records if record.name.startswith("policyctx")]
    assert "not of this conversation" in record.getMessage()


def test_an_error_of_the_session_ends_the_run(api: OpenAIAPI, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path)  # without the shape
    with pytest.raises(MessagesError, match="message 0"):
        asyncio.run(run(api, PolicyCapability(session)))
    assert api.bodies == []


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
def test_many_turns_stay_valid_and_within_the_window(capability_of: Any, chat: bool) -> None:
    async def go(api: OpenAIAPI) -> list[Any]:
        capability, history = capability_of(LONG), list[Any]()
        async with model_of(api, chat=chat) as model:
            for part in range(TURNS // 10):
                # Every part runs in an agent of its own, and every third one after a restart.
                capability = capability_of(LONG) if part % 3 == 2 else capability
                api.script = long_part(part)
                tools = [pydantic_ai.Tool(bash, name="Bash")]
                agent = agent_of(model, capability, tools=tools, instructions=CAREFUL)
                given = {"message_history": history, "conversation_id": "s"}
                if part % 2:
                    async with agent.run_stream(f"Do part {part}.", **given) as stream:
                        await stream.get_output()
                        history = stream.all_messages()
                else:
                    history = (await agent.run(f"Do part {part}.", **given)).all_messages()
        return history

    with openai_api(WINDOW) as api:
        history = asyncio.run(go(api))
    check_loop(api, capability_of(LONG).session_of("s"), TURNS)
    if KEEPS_ORIGINALS:
        assert len(json.dumps(results(history))) // 3 > TURNS // 10 * WINDOW


def test_the_shape_reads_files_retries_and_calls_that_are_not_json() -> None:
    shape = PydanticAIShape()
    image = BinaryContent(data=b"\x89PNG", media_type="image/png")
    sound = BinaryContent(data=b"RIFF", media_type="audio/wav")
    result = ToolReturnPart("shot", ["seen", image, {"size": 2}, sound], "a", metadata=object())
    request = ModelRequest([result, UserPromptPart(["look", ImageUrl("https://x.org/a.png")])])
    kinds = [(part.kind, part.number) for part in shape.parts(request)]
    assert kinds == [("tool_result", 0), ("image", 1), ("user_message", 0), ("image", 0)]
    first = next(iter(shape.parts(request)))
    assert "iVBO" not in str(first.counted)
    assert len(first.media) == 2
    edited = shape.replaced(request, {(0, 1): "see a file", (1, 0): None})
    assert edited.parts[0].content == ["seen", "see a file", {"size": 2}, sound]
    assert edited.parts[0].metadata is result.metadata
    assert edited.parts[1].content == [ImageUrl("https://x.org/a.png")]
    assert json.dumps(shape.plain(request))
    with warnings.catch_warnings():  # newer versions have another part for it
        warnings.simplefilter("ignore")
        asks = RetryPromptPart("no such file", tool_name="read", tool_call_id="b")
    retry = ModelRequest([asks])
    [part] = shape.parts(retry)
    assert (part.kind, part.error, part.text) == ("tool_result", True, "no such file")
    [part] = shape.parts(shape.replaced(retry, {(0,): "see a file"}))
    assert (part.kind, part.error, part.text) == ("tool_result", True, "see a file")
    wrong = ModelResponse([ThinkingPart("", signature="E"), ToolCallPart("read", "{no", "c")])
    assert [part.kind for part in shape.parts(wrong)] == ["thinking", "tool_call"]
    said = ModelResponse([TextPart("x"), ToolCallPart("read", '{"a": 1}', "d")])
    assert shape.replaced(said, {(1,): '{"a": 2}'}).parts[1].args_as_dict() == {"a": 2}
    assert said.parts[1].args == '{"a": 1}'


OVERFLOW = (
    "model: {tokenizer: {chars_per_token: 3}}\n"
    "steps: [{name: too-long, on: overflow, do: drop,"
    " select: {types: [tool_result], until: {tokens: {under: 60%}}}}]"
)


# The minor version of pydantic-ai 2 from which it is known that errors of streams have the hook.
_HOOKS_STREAMS = 68


@pytest.mark.skipif(
    not hasattr(pydantic_ai.capabilities.AbstractCapability, "on_model_request_error"),
    reason="this version has no hook for errors",
)
@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("streams", [False, True])
def test_a_prompt_that_is_too_long_is_sent_once_more(
    api: OpenAIAPI, capability_of: Any, *, chat: bool, streams: bool
) -> None:
    if streams and int(pydantic_ai.__version__.split(".")[1]) < _HOOKS_STREAMS:
        pytest.skip("this version has no hook for errors of streams")
    calls = [calling((f"c{i}", "read", {"name": "a"})) for i in range(3)]
    api.script, api.window = [*calls, saying("Done.")], 1_500

    async def go() -> None:
        async with model_of(api, chat=chat) as model:
            agent = agent_of(model, capability_of(OVERFLOW))
            if streams:
                async with agent.run_stream("Read both.", conversation_id="s") as result:
                    assert await result.get_output() == "Done."
            else:
                done = await agent.run("Read both.", conversation_id="s")
                assert done.output == "Done."

    asyncio.run(go())
    assert len(api.refused) == 1
    assert len(api.bodies) == len(api.prompts) + 1
    assert max(api.prompts) <= 1_500
