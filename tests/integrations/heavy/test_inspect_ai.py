"""`PolicyCompaction` in agents of Inspect, with its client for OpenAI's API and a server."""

from __future__ import annotations

import asyncio
import copy
import gzip
import hashlib
import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from inspect_ai import Task
from inspect_ai import eval as run_task
from inspect_ai.agent import react
from inspect_ai.dataset import Sample
from inspect_ai.model import (
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ContentImage,
    ContentReasoning,
    ContentText,
    compaction,
    get_model,
)
from inspect_ai.tool import ToolCall, ToolCallError, ToolDef

import policyctx.tokens as vocabularies
from policyctx import Session
from policyctx.errors import InputError
from policyctx.integrations import inspect_ai as integration
from policyctx.integrations.inspect_ai import InspectShape, PolicyCompaction
from tests.integrations.agents import (
    ALL,
    CAREFUL,
    CONTENTS,
    DROP,
    TEXTS,
    check_loop,
    long_reply,
    script,
)
from tests.integrations.examples import added_lines, check_example, run_with_openai
from tests.integrations.loops import (
    BIG,
    LIMITS,
    LONG,
    OLD,
    SECOND,
    SHARE,
    WINDOW,
    files_of,
    limit_of,
)
from tests.integrations.openai_api import OpenAIAPI, openai_api
from tests.integrations.scripted import Reply, calling
from tests.policies import policy

COMPACT = """\
    compaction: {keep_recent: {messages: 1}, keep_newest_user_message: true}
    steps: [{name: s, do: compact, when: {messages: {at_least: 5}}}]
    """


URL = "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken"


@pytest.fixture(autouse=True)
def _vocabulary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give Inspect the vocabulary with which it counts, which it would download."""
    packed = Path(vocabularies.__file__).parent / "vocabularies" / "o200k_base.tiktoken.gz"
    name = hashlib.sha1(URL.encode()).hexdigest()  # noqa: S324 - as tiktoken names it
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    (folder / name).write_bytes(gzip.decompress(packed.read_bytes()))
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(folder))


async def read(name: str) -> str:
    """Read a file.

    Args:
        name: The file.
    """
    return CONTENTS[name]


def submit(text: str = "Done.") -> Reply:
    return calling(("end", "submit", {"answer": text}))


@pytest.fixture
def api() -> Iterator[OpenAIAPI]:
    with openai_api() as server:
        server.script = script(last=submit())
        yield server
        assert server.refused == []


@pytest.fixture
def strategy_of(tmp_path: Path) -> Callable[[str], PolicyCompaction]:
    def make(text: str, threshold: float = 500) -> PolicyCompaction:
        return PolicyCompaction(policy(text), threshold=int(threshold), root=tmp_path / "root")

    return make


def run(
    api: OpenAIAPI,
    strategy: Any,
    folder: Path,
    *,
    tools: Any = (read,),
    samples: int = 1,
    **more: Any,
) -> list[Any]:
    """Run an agent on samples and return them, with the messages of their states."""
    model = get_model(
        "openai/some", base_url=api.url, api_key="k", responses_api=False, memoize=False
    )
    named = [ToolDef(each).as_tool() for each in tools]
    agent = react(prompt="You are careful. " * 20, tools=named, compaction=strategy, **more)
    dataset = [Sample(input="Read both.") for _ in range(samples)]
    [log] = run_task(
        Task(dataset=dataset, solver=agent),
        model=model,
        log_dir=str(folder / "logs"),
        display="none",
        message_limit=1000,
    )
    assert log.status == "success", log.error
    return log.samples or []


def results(messages: Any) -> list[str]:
    """Return the results in a request, or in the messages of Inspect."""
    plain = [m if isinstance(m, dict) else {"role": m.role, "content": m.text} for m in messages]
    return [message["content"] for message in plain if message["role"] == "tool"]


@pytest.mark.parametrize(("model", "limit"), LIMITS)
def test_a_share_is_of_the_window_of_the_called_model(
    tmp_path: Path, model: str, limit: int
) -> None:
    session = Session(policy(SHARE), root=tmp_path, session_id="s", shapes=[InspectShape()])
    called = get_model(f"mockllm/{model}", memoize=False)
    asyncio.run(PolicyCompaction(session).compact(called, conversation(), []))
    assert limit_of(session) == limit


def test_the_model_gets_the_edited_list_and_the_state_keeps_the_originals(
    api: OpenAIAPI, strategy_of: Any, tmp_path: Path
) -> None:
    strategy = strategy_of(OLD, 900)
    [sample] = run(api, strategy, tmp_path)
    first, second = results(api.bodies[2]["messages"])
    assert first.startswith("[")
    assert second == SECOND
    assert results(sample.messages)[:2] == [BIG, SECOND]
    [session] = strategy._sessions._recent.values()
    [file] = files_of(session)
    assert session.read(file) == BIG
    assert session.session_id.startswith(f"{sample.uuid}/")


def test_each_sample_has_a_session_of_its_own(
    api: OpenAIAPI, strategy_of: Any, tmp_path: Path
) -> None:
    def reply(body: Any) -> Reply:
        return script(last=submit())[len(results(body["messages"]))]

    api.script = reply
    strategy = strategy_of(OLD, 900)
    samples = run(api, strategy, tmp_path, samples=5)
    keys = sorted(key.split("/")[0] for key in strategy._sessions._recent)
    assert keys == sorted(sample.uuid for sample in samples)
    assert [len(session.ledger) for session in strategy._sessions._recent.values()] == [1] * 5


def test_a_hundred_turns_stay_valid_and_within_the_window(
    api: OpenAIAPI, strategy_of: Any, tmp_path: Path
) -> None:
    turns = iter(range(101))

    async def bash(n: int, i: int) -> str:
        """Run a command.

        Args:
            n: The turn.
            i: The call.
        """
        return TEXTS[f"t{n}_{i}"]

    def reply(_: Any) -> Reply:
        turn = next(turns)
        return submit() if turn == 100 else long_reply(turn)

    api.script, api.window = reply, WINDOW
    strategy = strategy_of(LONG, 11_500)
    tool = ToolDef(bash, name="Bash")
    model = get_model(
        "openai/some", base_url=api.url, api_key="k", responses_api=False, memoize=False
    )
    agent = react(
        prompt=CAREFUL,
        tools=[tool.as_tool()],
        compaction=strategy,
        truncation="disabled",
    )
    [log] = run_task(
        Task(dataset=[Sample(input="Do all parts.")], solver=agent),
        model=model,
        log_dir=str(tmp_path / "logs"),
        display="none",
        message_limit=1000,
    )
    assert log.status == "success", log.error
    assert log.samples
    assert sum(map(len, results(log.samples[0].messages))) // 3 > 10 * WINDOW
    [session] = strategy._sessions._recent.values()
    check_loop(api, session, turns=101)


def conversation() -> list[Any]:
    messages: list[Any] = [ChatMessageSystem(content="Be brief."), ChatMessageUser(content="Go.")]
    for i, text in enumerate((BIG, SECOND)):
        call = ToolCall(id=f"c{i}", function="read", arguments={"name": "ab"[i]})
        messages.append(ChatMessageAssistant(content="", tool_calls=[call]))
        messages.append(ChatMessageTool(content=text, tool_call_id=f"c{i}", function="read"))
    return messages


def compacted(strategy: Any, messages: list[Any]) -> list[Any]:
    """Return a list as Inspect's own handler makes it."""
    model = get_model("mockllm/model", memoize=False)
    handler = compaction(strategy, prefix=messages[:2], tools=[], model=model)
    found, message = asyncio.run(handler.compact_input(messages))
    assert message is None
    return list(found)


def plain(messages: list[Any]) -> list[Any]:
    return [[m.id, InspectShape().plain(m)] for m in messages]


@pytest.mark.parametrize("text", [OLD, DROP, COMPACT], ids=["offload", "drop", "compact"])
def test_ids_stay_and_a_restart_gives_the_same_messages(strategy_of: Any, text: str) -> None:
    messages = conversation()
    before = plain(messages)
    first = compacted(strategy_of(text, 700), messages)
    assert plain(messages) == before
    ids = [message.id for message in messages]
    assert [m.id for m in first if not m.id.startswith("policyctx-")] == [
        id_ for id_ in ids if id_ in {m.id for m in first}
    ]
    assert first[0] is messages[0]
    assert first[-1] is messages[-1]
    assert BIG not in str(first)
    loaded = copy.deepcopy(messages)
    assert plain(compacted(strategy_of(text, 700), loaded)) == plain(first)


def test_a_list_continues_with_what_was_returned(strategy_of: Any) -> None:
    strategy, messages = strategy_of(OLD, 800), conversation()
    first = compacted(strategy, messages)
    more = [ChatMessageAssistant(content="Fine."), ChatMessageUser(content="And?" * 100)]
    again = compacted(strategy, [*first, *more])
    assert len(strategy._sessions._recent) == 1
    assert plain(first) != plain(messages)
    assert plain(again)[: len(first)] == plain(first)


def test_a_list_under_the_threshold_stays(strategy_of: Any) -> None:
    messages = conversation()
    found = compacted(strategy_of(OLD, 50_000), messages)
    assert all(new is old for new, old in zip(found, messages, strict=True))


def test_inspect_reports_a_list_that_the_policy_leaves_too_large(strategy_of: Any) -> None:
    text = OLD.replace("min_tokens: 100", "min_tokens: 100000")
    with pytest.raises(RuntimeError, match="insufficient"):
        compacted(strategy_of(text, 700), conversation())


def test_a_given_session_leaves_other_conversations_alone(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(policy(ALL), root=tmp_path, session_id="s", shapes=[InspectShape()])
    strategy = PolicyCompaction(session, threshold=100)
    model = get_model("mockllm/model", memoize=False)
    mine, other = conversation(), conversation()
    edited, _ = asyncio.run(strategy.compact(model, mine, []))
    assert BIG not in str(edited)
    with caplog.at_level(logging.WARNING):
        same, _ = asyncio.run(strategy.compact(model, other, []))
    assert same is other
    assert "sent unchanged" in caplog.text
    assert strategy.session_of("a", "b") is session


def test_a_function_chooses_the_session_of_a_list(tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s", shapes=[InspectShape()])
    strategy = PolicyCompaction(lambda messages: session if messages[1].text == "Go." else None)
    model = get_model("mockllm/model", memoize=False)
    other = [ChatMessageUser(content="a"), ChatMessageUser(content="b")]
    assert asyncio.run(strategy.compact(model, other, []))[0] is other
    assert BIG not in str(asyncio.run(strategy.compact(model, conversation(), []))[0])
    with pytest.raises(InputError, match="by a function"):
        strategy.session_of("a", "b")
    with pytest.raises(InputError, match="need a policy"):
        PolicyCompaction(lambda _: None, root=tmp_path)


def test_a_bounded_number_of_sessions_is_kept(
    strategy_of: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integration, "_MOST_SESSIONS", 2)
    strategy = strategy_of(OLD)
    held = strategy.session_of("0", "m")
    for name in "123":
        strategy.session_of(name, "m")
    assert len(strategy._sessions._recent) == 2
    assert strategy.session_of("0", "m") is held
    assert strategy.session_of("1", "m").store.root != held.store.root


def test_the_shape_reads_reasoning_media_and_errors() -> None:
    shape = InspectShape()
    url = "data:image/png;base64,iVBORw0KGgo="
    reply = ChatMessageAssistant(
        content=[
            ContentReasoning(reasoning="hm", signature="EqoB"),
            ContentText(text="I look."),
            ContentImage(image=url),
        ],
        tool_calls=[ToolCall(id="a", function="f", arguments={"x": 1})],
    )
    kinds = [part.kind for part in shape.parts(reply)]
    assert kinds == ["thinking", "assistant_message", "image", "tool_call"]
    edited = shape.replaced(reply, {("content", 1): "short", ("tool_calls", 0): '{"x": 2}'})
    assert (edited.id, edited.content[0]) == (reply.id, reply.content[0])
    assert (edited.content[1].text, edited.tool_calls[0].arguments) == ("short", {"x": 2})
    assert reply.tool_calls is not None
    assert reply.tool_calls[0].arguments == {"x": 1}
    result = ChatMessageTool(
        content=[ContentText(text="seen"), ContentImage(image=url)], tool_call_id="a"
    )
    parts = list(shape.parts(result))
    assert [(part.kind, part.number) for part in parts] == [("tool_result", 0), ("image", 1)]
    assert "iVBORw0KGgo=" not in str(parts[0].counted)
    without = shape.replaced(result, {("content", 1): "see a file"})
    assert [block.text for block in without.content] == ["seen", "see a file"]
    broken = ChatMessageTool(
        content="", tool_call_id="a", error=ToolCallError("unknown", "long text")
    )
    [part] = shape.parts(broken)
    assert (part.text, part.error) == ("long text", True)
    [part] = shape.parts(shape.replaced(broken, {("content",): "file"}))
    assert part.text == "file"
    assert broken.error is not None
    assert broken.error.message == "long text"
    assert json.dumps([shape.plain(m) for m in (reply, result, broken)])
    assert shape.written("user", "x") == shape.written("user", "x")


NAME, PAGE = "inspect_task", "inspect"


def run_example(program: Path, folder: Path) -> list[int]:
    logs = {"INSPECT_LOG_DIR": str(folder / "logs"), "INSPECT_DISPLAY": "none"}
    return run_with_openai(program, folder, submit, **logs)


def test_the_example_and_the_program_without_policyctx_give_the_same_answer(
    tmp_path: Path,
) -> None:
    check_example(NAME, tmp_path, PAGE, run_example, session="*")


def test_the_program_without_policyctx_differs_by_two_lines_and_imports() -> None:
    assert [line.strip() for line in added_lines(NAME, PAGE)] == [
        'policy = PolicyCompaction("coding-agent", threshold=100_000)',
        "agent = react(tools=[read_file()], compaction=policy)",
    ]


def test_a_summary_of_inspect_is_not_the_users() -> None:
    summary = ChatMessageUser(content="The valve is open.", metadata={"summary": True})
    assert [part.author for part in InspectShape().parts(summary)] == ["summary"]
    assert [part.author for part in InspectShape().parts(ChatMessageUser(content="Go."))] == [""]
