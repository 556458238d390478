"""A call and its answer stay or leave together, in all shapes; and tools that the client runs."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, get_args, get_type_hints

import pytest
from anthropic.types.beta.beta_content_block_param import BetaContentBlockParam
from anthropic.types.content_block_param import ContentBlockParam
from google.genai import types
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from openai.types.responses.response_input_item_param import ResponseInputItemParam
from pydantic import TypeAdapter
from pydantic_ai.messages import (
    CompactionPart,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from policyctx import Shape
from policyctx.definitions.items import Message
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.integrations.langchain import LangChainShape
from policyctx.integrations.pydantic_ai import PydanticAIShape
from policyctx.messages.reading import Reading
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.validity import new_problems
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.restoring import restorer
from tests.conversations import chat_calls, chat_result, picture, session_of
from tests.drawing import rotated
from tests.fuzz.memory_store import MemoryStore
from tests.fuzz.rules import broken
from tests.openai_rules import broken_promises
from tests.policies import policy

GO: Message = {"role": "user", "content": "go"}
LONG = "FAILED tests/test_a.py::test_b - assert 1 == 2\n" * 60

STEPS = {
    "offload": "{name: s, do: offload, select: {types: [tool_result], with_input: true}}",
    "empty": "{name: s, do: offload, select: {types: [tool_result], with_input: {leave: empty}}}",
    "clear": "{name: s, do: clear, select: {types: [tool_result]}}",
    "drop": "{name: s, do: drop, select: {types: [tool_result]}}",
    "calls": "{name: s, do: drop, select: {types: [tool_call]}}",
    "turns": "{name: s, do: drop, select: {types: [tool_result], unit: turn}}",
    "arrival": "{name: s, on: arrival, do: drop, select: {types: [tool_result]}}",
    "compact": "{name: c, do: compact, when: {messages: {over: 5}}, compaction: {keep_recent: "
    "{messages: KEPT}, summary: {must_shrink_to: false}}}",
}


def session_with(*steps: str, kept: int = 1, shapes: Sequence[Shape] = ()) -> Session:
    """A session under a policy with these steps."""
    listed = ", ".join(STEPS[step].replace("KEPT", str(kept)) for step in steps)
    text = (
        "apiVersion: policyctx/v1\nname: pairs\nmin_chars: 0\nitems: {tool_result: {offload: true},"
        f" tool_call: {{offload: true}}}}\nsteps: [{listed}]\n"
    )
    policy = OffloadPolicy(parsed_policy(PolicySource("pairs.yaml", text)))
    return Session(policy, session_id="s", store=MemoryStore(), shapes=shapes)


# Tools of OpenAI's that the client runs: a call, its output, and whether a text may be in its place


def call(kind: str, **fields: Any) -> Message:
    return {"type": kind, "id": "x_1", "call_id": "c", "status": "completed"} | fields


def output(kind: str, value: Any, **fields: Any) -> Message:
    return {"type": kind, "call_id": "c", "output": value} | fields


CLIENT_RUN: dict[str, tuple[Message, Message, bool]] = {
    "function_call_output": (
        call("function_call", name="run", arguments='{"a": 1}'),
        output("function_call_output", LONG),
        True,
    ),
    "custom_tool_call_output": (
        {"type": "custom_tool_call", "call_id": "c", "name": "run", "input": LONG},
        output("custom_tool_call_output", LONG),
        True,
    ),
    "local_shell_call_output": (
        call("local_shell_call", action={"type": "exec", "command": ["ls", LONG], "env": {}}),
        output("local_shell_call_output", LONG, id="c"),
        True,
    ),
    "by the id of the item": (
        call("local_shell_call", action={"type": "exec", "command": ["ls", LONG], "env": {}}),
        {"type": "local_shell_call_output", "id": "x_1", "output": LONG},
        True,
    ),
    "shell_call_output": (
        call("shell_call", action={"commands": ["pytest", LONG]}),
        output(
            "shell_call_output",
            [
                {"stdout": LONG, "stderr": "", "outcome": {"type": "exit", "exit_code": 1}},
                {"stdout": "", "stderr": LONG, "outcome": {"type": "timeout"}},
            ],
        ),
        True,
    ),
    "apply_patch_call_output": (
        call("apply_patch_call", operation={"type": "create_file", "path": "a.py", "diff": LONG}),
        output("apply_patch_call_output", LONG, status="completed"),
        True,
    ),
    "computer_call_output": (
        call("computer_call", action={"type": "screenshot"}, pending_safety_checks=[]),
        output(
            "computer_call_output",
            {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="},
        ),
        False,
    ),
}
# The other types of input items: calls above, and what a policy leaves alone.
NOT_RESULTS = {
    "message",
    "reasoning",
    *(call["type"] for call, _, _ in CLIENT_RUN.values()),
    # Carried out by the provider, whole in one item.
    *("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call"),
    *("mcp_call", "mcp_list_tools"),
    # Halves of a pair that stays: a tool search brings tools, and an approval is asked for.
    *("mcp_approval_request", "mcp_approval_response", "tool_search_call", "tool_search_output"),
    *("program", "program_output"),
    # Settings and the provider's own summaries.
    *("additional_tools", "configuration_update", "compaction", "compaction_trigger"),
    "item_reference",
}


def types_of(union: Any) -> set[str]:
    """The values of `type` in a union of typed dicts."""
    found: set[str] = set()
    for member in get_args(union):
        hint = get_type_hints(member)["type"]
        found.update(word for word in _words(hint) if isinstance(word, str))
    return found


def _words(hint: Any) -> tuple[Any, ...]:
    if get_args(hint) and all(isinstance(one, str) for one in get_args(hint)):
        return get_args(hint)
    return tuple(word for inner in get_args(hint) for word in _words(inner))


def test_every_type_of_input_item_of_the_sdk_is_a_result_or_known_to_be_none() -> None:
    """A new type of the SDK fails here, until someone decides what a policy does with it."""
    results = {result["type"] for _, result, _ in CLIENT_RUN.values()}
    assert types_of(ResponseInputItemParam) == results | NOT_RESULTS


def _list_with(kind: str) -> list[Message]:
    call, result, _ = CLIENT_RUN[kind]
    return [GO, call, result, {"role": "assistant", "content": "so"}, GO]


@pytest.mark.parametrize("step", ["offload", "empty", "clear"])
@pytest.mark.parametrize("kind", CLIENT_RUN)
def test_what_replaces_the_output_of_a_client_run_tool_is_of_the_type_of_the_sdk(
    kind: str, step: str
) -> None:
    messages = _list_with(kind)
    result = session_with(step).apply(messages)
    assert (result.messages[2] != messages[2]) == CLIENT_RUN[kind][2]
    for item in result.messages[1:3]:
        member = next(
            member
            for member in get_args(ResponseInputItemParam)
            if item["type"] in _words(get_type_hints(member)["type"])
        )
        TypeAdapter(member).validate_python(item)


def test_the_plan_says_why_a_screenshot_stays() -> None:
    plan = session_with("offload").apply(_list_with("computer_call_output")).plan
    assert "no text may take its place" in " ".join(v.reason.sentence for v in plan.verdicts(2))


@pytest.mark.parametrize("step", ["offload", "empty"])
@pytest.mark.parametrize("kind", CLIENT_RUN)
def test_a_restarted_session_edits_alike_and_restore_gives_the_items_back(
    kind: str, step: str, tmp_path: Path
) -> None:
    policy, messages = session_with(step).policy, _list_with(kind)
    first = Session(policy, session_id="s", root=tmp_path)
    edited = list(first.apply(messages).messages)
    for given in (messages, edited):
        again = Session(policy, session_id="s", root=tmp_path).apply(given)
        assert (list(again.messages), again.plan.new) == (edited, ())
    assert isinstance(first.store, ContextFileSystem)
    assert restorer([first.store]).value(edited) == messages


@pytest.mark.parametrize("kind", CLIENT_RUN)
def test_the_output_of_a_client_run_tool_is_dropped_with_its_call(kind: str) -> None:
    messages = _list_with(kind)
    assert session_with("drop").apply(messages).messages == [messages[0], *messages[3:]]


@pytest.mark.parametrize("kind", CLIENT_RUN)
def test_the_output_of_a_client_run_tool_leaves_in_a_compaction(kind: str) -> None:
    messages = [*_list_with(kind), GO]
    result = session_with("compact").apply(messages)
    assert result.compacted
    gone = {messages[1]["type"], messages[2]["type"]}
    assert not gone & {m.get("type") for m in result.messages}


HOSTED: dict[str, Message] = {
    "web_search_call": {"id": "h", "status": "completed"},
    "file_search_call": {"id": "h", "queries": ["q"], "results": [{"text": LONG}]},
    "code_interpreter_call": {"id": "h", "code": "1", "outputs": [{"type": "logs", "logs": LONG}]},
    "mcp_call": {"id": "h", "name": "ls", "arguments": "{}", "output": LONG},
}


@pytest.mark.parametrize("kind", HOSTED)
def test_a_call_that_the_provider_carries_out_in_one_item_leaves_in_a_compaction(kind: str) -> None:
    """With the reasoning that led to it. Before, such items stayed until the window was full."""
    called = {"type": kind} | HOSTED[kind]
    messages = [GO, reasoning(1), called, {"role": "assistant", "content": "so"}, GO, GO]
    result = session_with("compact").apply(messages)
    assert result.compacted
    assert not {kind, "reasoning"} & {m.get("type") for m in result.messages}


# Blocks of Anthropic's API


@pytest.mark.parametrize("union", [ContentBlockParam, BetaContentBlockParam])
def test_every_block_of_the_sdk_with_the_id_of_a_call_is_paired(union: Any) -> None:
    """A new type of call or result that no rule of the shape recognises fails here."""
    seen = 0
    for member in get_args(union):
        if get_type_hints(type(member)) or not hasattr(member, "__annotations__"):
            continue  # blocks of a response; their types are those of the params
        hints = get_type_hints(member)
        block: dict[str, Any] = {"type": _words(hints["type"])[0]}
        if "tool_use_id" in hints:
            block |= {"tool_use_id": "a", "content": []}
        elif "input" in hints:
            block |= {"id": "a", "name": "n", "input": {}}
        else:
            continue
        reading = Reading()
        reading.extend([{"role": "assistant", "content": [block]}])
        [item] = reading.items
        assert (item.is_answer, item.is_call) == ("tool_use_id" in hints, "input" in hints)
        seen += 1
    assert seen >= 9


# Pairs of all shapes in a compaction


def assistant(*blocks: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": [*blocks]}


def user(*blocks: dict[str, Any]) -> Message:
    return {"role": "user", "content": [*blocks]}


TEXT = {"type": "text", "text": "so"}
USE = {"type": "tool_use", "id": "t", "name": "run", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "t", "content": "found"}
SERVED = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {"query": "q"}}
FOUND = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
MCP = {"type": "mcp_tool_use", "id": "s", "name": "ls", "server_name": "m", "input": {}}
LISTED = {"type": "mcp_tool_result", "tool_use_id": "s", "content": "a.py"}
RAN = {"type": "code_execution_tool_result", "tool_use_id": "s", "content": {"stdout": "1"}}
CODE = SERVED | {"name": "code_execution", "input": {"code": "1"}}


def function(call_id: str) -> Message:
    return {"type": "function_call", "call_id": call_id, "name": "run", "arguments": "{}"}


def function_output(call_id: str, text: str = "found") -> Message:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


# The output has the id of the call's item.
SHELL = call("local_shell_call", action={"type": "exec", "command": ["ls"], "env": {}})
SHELL_OUTPUT: Message = {"type": "local_shell_call_output", "id": "x_1", "output": "found"}


def reasoning(number: int) -> Message:
    return {"type": "reasoning", "id": f"rs_{number}", "summary": [], "encrypted_content": "g"}


def model(*parts: types.Part) -> types.Content:
    return types.Content(role="model", parts=[*parts])


def person(*parts: types.Part) -> types.Content:
    return types.Content(role="user", parts=[*parts])


def response(value: str, call_id: str | None = "f") -> types.Part:
    return types.Part(
        function_response=types.FunctionResponse(id=call_id, name="ask", response={"result": value})
    )


ASK = types.Part(function_call=types.FunctionCall(id="f", name="ask", args={}))
ASK_BY_NAME = types.Part(function_call=types.FunctionCall(name="ask", args={}))
SAID = types.Part(text="so")
PYTHON = types.Part(executable_code=types.ExecutableCode(code="1", language=types.Language.PYTHON))
RUN = types.Part(
    code_execution_result=types.CodeExecutionResult(output="1", outcome=types.Outcome.OUTCOME_OK)
)
SEARCH = types.Part(tool_call=types.ToolCall(id="s", args={}))
HITS = types.Part(tool_response=types.ToolResponse(id="s", response={"a": 1}))
BEDROCK_USE = {"toolUse": {"toolUseId": "t", "name": "run", "input": {}}}
BEDROCK_RESULT = {"toolResult": {"toolUseId": "t", "content": [{"text": "found"}]}}
BEDROCK_SERVED = {
    "toolUse": {"toolUseId": "s", "name": "nova_grounding", "type": "server_tool_use", "input": {}}
}
BEDROCK_FOUND = {"toolResult": {"toolUseId": "s", "type": "nova", "content": [{"text": "found"}]}}
BEDROCK_SAME_ID = {"toolUse": {"toolUseId": "s", "name": "run", "input": {}}}
BEDROCK_RESULT_OF_SAME_ID = {"toolResult": {"toolUseId": "s", "content": [{"text": "found"}]}}

Where = Literal["anthropic", "responses", "google", "bedrock"]
SHAPES: dict[str, tuple[Shape, ...]] = {"google": (GoogleShape(),), "bedrock": (BedrockShape(),)}
PAIRS: dict[tuple[Where, str], list[Message]] = {
    ("anthropic", "paused"): [GO, assistant(SERVED), assistant(FOUND, TEXT), GO],
    ("anthropic", "paused mcp"): [GO, assistant(TEXT, MCP), assistant(LISTED, USE), user(RESULT)],
    ("anthropic", "deferred"): [GO, assistant(SERVED, USE), user(RESULT), assistant(FOUND), GO],
    ("anthropic", "deferred behind words"): [
        GO, assistant(CODE, USE), user(RESULT, TEXT), assistant(RAN, TEXT), GO,
    ],
    ("anthropic", "paused and deferred"): [
        GO, assistant(SERVED), assistant(FOUND, CODE | {"id": "s2"}, USE), user(RESULT),
        assistant(RAN | {"tool_use_id": "s2"}), GO,
    ],
    ("responses", "approval"): [
        GO, reasoning(1),
        {"type": "mcp_approval_request", "id": "r", "name": "rm", "arguments": "{}"},
        {"type": "mcp_approval_response", "approval_request_id": "r", "approve": True},
        {"type": "mcp_call", "id": "m", "name": "rm", "arguments": "{}", "output": "done"},
    ],
    ("responses", "local shell by the id of the item"): [
        GO, SHELL, SHELL_OUTPUT, GO,
    ],
    ("responses", "late"): [
        GO, function("a"), function("b"), function_output("a"), GO, function_output("b"), GO,
    ],
    ("responses", "late local shell"): [
        GO, function("a"), SHELL, function_output("a"), GO, SHELL_OUTPUT, GO,
    ],
    ("responses", "late, with reasoning"): [
        GO, reasoning(1), function("a"), function("b"), function_output("a"), GO,
        reasoning(2), function("c"), function_output("c"), function_output("b"), GO,
    ],
    ("responses", "hosted shell"): [
        GO, reasoning(1), {"type": "shell_call", "call_id": "h", "action": {"commands": ["ls"]}},
        {"type": "shell_call_output", "id": "o", "call_id": "h", "output": []},
        {"type": "message", "id": "m", "role": "assistant", "content": []}, GO,
    ],
    ("google", "second response"): [
        person(SAID), model(ASK), person(response("wait")), model(SAID), person(SAID), model(SAID),
        person(response("yes")), model(SAID), person(SAID),
    ],
    ("google", "second response by name"): [
        person(SAID), model(ASK_BY_NAME), person(response("wait", None)), model(SAID), person(SAID),
        person(response("yes", None)), person(SAID),
    ],
    ("google", "code in two contents"): [person(SAID), model(PYTHON), model(RUN), person(SAID)],
    ("google", "search in two contents"): [person(SAID), model(SEARCH), model(HITS), person(SAID)],
    ("bedrock", "paused"): [
        user({"text": "go"}), assistant(BEDROCK_SERVED), assistant(BEDROCK_FOUND, {"text": "so"}),
        user({"text": "go"}),
    ],
    ("bedrock", "deferred"): [
        user({"text": "go"}), assistant(BEDROCK_SERVED, BEDROCK_USE), user(BEDROCK_RESULT),
        assistant(BEDROCK_FOUND), user({"text": "go"}),
    ],
}  # fmt: skip
# Calls with one id that wait for an answer at the same time.
SAME_IDS: dict[tuple[Where, str], list[Message]] = {
    ("responses", "id again"): [GO, function("a"), GO, function("a"), function_output("a"), GO],
    ("responses", "id again in one reply"): [
        GO, function("a"), function("a"), function_output("a"), GO,
    ],
    ("responses", "id again, two outputs"): [
        GO, function("a"), GO, function("a"), function_output("a"), function_output("a", "b"), GO,
    ],
    ("responses", "id again, late output"): [
        GO, function("a"), GO, function("a"), function_output("a"), GO,
        function("a"), function_output("a"), GO, function_output("a", "late"), GO,
    ],
    ("anthropic", "id again"): [GO, assistant(USE), GO, assistant(USE), user(RESULT), GO],
    ("anthropic", "id again in a chat"): [
        GO, chat_calls(("t", "run", "{}")), GO, chat_calls(("t", "run", "{}")),
        chat_result("t", "found"), GO,
    ],
    ("google", "id again"): [
        person(SAID), model(ASK), person(SAID), model(ASK), person(response("yes")), person(SAID),
    ],
    ("google", "name again"): [
        person(SAID), model(ASK_BY_NAME), person(SAID), model(ASK_BY_NAME),
        person(response("yes", None)), person(SAID),
    ],
    ("bedrock", "id again"): [
        user({"text": "go"}), assistant(BEDROCK_SERVED), assistant(BEDROCK_SAME_ID),
        user(BEDROCK_RESULT_OF_SAME_ID), user({"text": "go"}),
    ],
    ("bedrock", "id of the answer before it"): [
        user({"text": "go"}), assistant(BEDROCK_SERVED),
        assistant(BEDROCK_FOUND, BEDROCK_SAME_ID), user(BEDROCK_RESULT_OF_SAME_ID),
        user({"text": "go"}),
    ],
}  # fmt: skip


def around(where: Where, pair: list[Message]) -> list[Message]:
    """The messages of a pair, with two turns before and one behind."""
    said = {
        "google": (person(SAID), model(SAID)),
        "bedrock": (user({"text": "go"}), assistant({"text": "so"})),
        "responses": (GO, {"role": "assistant", "content": "so"}),
        "anthropic": (GO, assistant(TEXT)),
    }[where]
    return [*said, *said, *pair, said[1], said[0]]


@pytest.mark.parametrize(("pair", "kept"), rotated(PAIRS | SAME_IDS, range(7), one_in=3))
def test_a_compaction_parts_no_pair(pair: tuple[Where, str], kept: int) -> None:
    where, name = pair
    """The list grows by one message at each call."""
    shapes = SHAPES.get(where, ())
    session = session_with("compact", kept=kept, shapes=shapes)
    messages = around(where, (PAIRS | SAME_IDS)[where, name])
    compactions = 0
    for end in range(1, len(messages) + 1):
        given = messages[:end]
        result = session.apply(given)
        compactions += result.compacted
        assert not broken(result.messages) - broken(given), (end, result.messages)
    assert compactions


@pytest.mark.parametrize("where", ["anthropic", "bedrock"])
def test_a_call_that_runs_stays_with_the_call_of_the_result_before_it_in_its_message(
    where: Where,
) -> None:
    said = around(where, [])[:5]
    anthropic = [assistant(MCP), assistant(LISTED, USE)]
    bedrock = [assistant(BEDROCK_SERVED), assistant(BEDROCK_FOUND, BEDROCK_USE)]
    messages = [*said, *(anthropic if where == "anthropic" else bedrock)]
    session = session_with("compact", kept=0, shapes=SHAPES.get(where, ()))
    result = session.apply(messages)
    assert (result.compacted, result.warnings) == (True, ())
    assert result.messages[-2:] == messages[-2:]


def round_of(where: Where, call_id: str) -> list[Message]:
    """A call of the client's tools and its result."""
    if where == "google":
        asked = types.FunctionCall(id=call_id, name="ask", args={})
        return [model(types.Part(function_call=asked)), person(response("found", call_id))]
    if where == "bedrock":
        use = {"toolUse": BEDROCK_USE["toolUse"] | {"toolUseId": call_id}}
        return [
            assistant(use),
            user({"toolResult": BEDROCK_RESULT["toolResult"] | {"toolUseId": call_id}}),
        ]
    caller = {"caller": {"type": "code_execution_20250825", "tool_id": "s"}}
    return [
        assistant(USE | {"id": call_id} | caller),
        user(RESULT | {"tool_use_id": call_id}, TEXT),
    ]


# A call that runs over rounds of the client's calls, and its answer.
RUNNING: dict[tuple[Where, str], tuple[list[Message], Message]] = {
    ("anthropic", "code"): ([GO, assistant(CODE, USE), user(RESULT)], assistant(RAN, TEXT)),
    ("anthropic", "search"): ([GO, assistant(SERVED, USE), user(RESULT)], assistant(FOUND)),
    ("anthropic", "mcp"): ([GO, assistant(TEXT, MCP, USE), user(RESULT)], assistant(LISTED)),
    ("anthropic", "paused"): ([GO, assistant(CODE)], assistant(RAN)),
    ("google", "search"): ([person(SAID), model(SEARCH)], model(HITS, SAID)),
    ("bedrock", "grounding"): (
        [user({"text": "go"}), assistant(BEDROCK_SERVED, BEDROCK_USE), user(BEDROCK_RESULT)],
        assistant(BEDROCK_FOUND),
    ),
}


@pytest.mark.parametrize(
    ("call", "rounds", "kept"), rotated(RUNNING, [1, 2, 5], [1, 2, 3], one_in=3)
)
def test_a_compaction_keeps_a_call_that_runs_over_rounds_of_other_calls(
    call: tuple[Where, str], rounds: int, kept: int
) -> None:
    """The host passes the list that `apply` returned, with one message more each time."""
    where, name = call
    first, answer = RUNNING[where, name]
    more = [message for i in range(rounds) for message in round_of(where, f"r{i}")]
    running = [*first, *more, answer]
    session = session_with("compact", kept=kept, shapes=SHAPES.get(where, ()))
    messages, compactions, warnings = list[Message](), 0, list[str]()
    for message in around(where, running):
        messages.append(message)
        result = session.apply(messages)
        messages, compactions = [*result.messages], compactions + result.compacted
        warnings += result.warnings
        if message in more:
            left = running[1 : running.index(message) + 1]
            assert messages[-len(left) :] == left
    assert compactions
    assert not [warning for warning in warnings if "has no call" in warning]


def test_a_call_without_an_answer_keeps_nothing_once_the_user_goes_on_after_a_reply() -> None:
    """The reply between has no call, so that nothing runs behind it."""
    given = [GO, assistant(SERVED, USE), user(RESULT), assistant(TEXT), GO]
    given += [message for i in range(3) for message in round_of("anthropic", f"r{i}")]
    result = session_with("compact").apply(given)
    assert result.compacted
    assert given[1] not in result.messages


@pytest.mark.parametrize("step", ["drop", "turns", "arrival"])
@pytest.mark.parametrize(("where", "name"), PAIRS | SAME_IDS)
def test_a_drop_parts_no_pair(where: Where, name: str, step: str) -> None:
    session = session_with(step, shapes=SHAPES.get(where, ()))
    messages = around(where, (PAIRS | SAME_IDS)[where, name])
    for end in range(1, len(messages) + 1):
        result = session.apply(messages[:end])
        assert not broken(result.messages) - broken(messages[:end]), (end, result.messages)


@pytest.mark.parametrize(("where", "name"), PAIRS)
def test_the_check_of_a_list_knows_each_pair(where: Where, name: str) -> None:
    """A list from which the first half or the second was taken is refused."""
    shapes = Shapes(SHAPES.get(where, ()))
    messages = around(where, PAIRS[where, name])
    reading = Reading(shapes)
    reading.extend(messages)
    for position in reading.partners:
        gone = reading.items[position].message
        others = [
            one
            for i in reading.items_of(gone)
            for one in reading.bound_to(i)
            if reading.items[one].message != gone
        ]
        if others and reading.items[position].is_call:
            left = [message for i, message in enumerate(messages) if i != gone]
            assert any("has no call" in one for one in new_problems(messages, left, shapes=shapes))


def test_a_late_output_brings_its_call_back() -> None:
    """The call had no output when it was replaced; a restarted session sends the same list."""
    messages = around("responses", PAIRS["responses", "late"])
    store = MemoryStore()
    for end in range(1, len(messages) + 1):
        session = session_with("compact", kept=0)
        restarted = Session(session.policy, session_id="s", store=store)
        result = restarted.apply(messages[:end])
        assert not broken(result.messages) - broken(messages[:end])


def test_a_second_response_brings_its_call_back_behind_the_summary() -> None:
    messages = around("google", PAIRS["google", "second response"])
    session = session_with("compact", shapes=SHAPES["google"])
    for end in range(1, len(messages) + 1):
        result = session.apply(messages[:end])
    calls = [part.function_call for m in result.messages for part in m.parts if part.function_call]
    responses = [p for m in result.messages for p in m.parts if p.function_response]
    assert len(calls) == 1 or not responses


LATE: dict[Where | Literal["chat", "local shell"], list[Message]] = {
    "anthropic": [assistant(TEXT, USE), user(RESULT), user(RESULT | {"content": "late"})],
    "chat": [
        chat_calls(("t", "run", "{}"), content="so"), chat_result("t", "found"),
        chat_result("t", "late"),
    ],
    "google": [model(SAID, ASK), person(response("wait")), person(response("late"))],
    "bedrock": [
        assistant({"text": "so"}, BEDROCK_USE), user(BEDROCK_RESULT),
        user({"toolResult": {"toolUseId": "t", "content": [{"text": "late"}]}}),
    ],
    "responses": [function("a"), function_output("a"), function_output("a", "late")],
    "local shell": [SHELL, SHELL_OUTPUT, SHELL_OUTPUT | {"output": "late"}],
}  # fmt: skip


@pytest.mark.parametrize("where", LATE)
def test_a_late_output_brings_a_call_back_that_was_dropped_before_a_compaction(
    where: Where | Literal["chat", "local shell"],
) -> None:
    """The message of the call stays without the call, and is not among those replaced."""
    shapes = SHAPES.get(where, ())
    session = session_with("calls", "compact", kept=4, shapes=shapes)
    of_chat = where in {"chat", "local shell"}
    said: list[Message] = around("anthropic" if of_chat else where, [])  # type: ignore[arg-type]
    asked, answered, late = LATE[where]
    messages = [*said[:-1], asked, answered, said[1], said[0]]
    first = session.apply(messages)
    assert first.compacted
    assert len(first.plan.new) == 2
    messages.append(late)
    for _ in range(2):
        result = session.apply(messages)
        assert not broken(result.messages) - broken(messages)
        session = Session(session.policy, session_id="s", store=session.store, shapes=shapes)


@pytest.mark.parametrize("step", ["drop", "calls", "turns"])
@pytest.mark.parametrize("name", [{"id": "x_1"}, {"id": "c"}, {"call_id": "c"}])
def test_a_dropped_pair_stays_dropped_after_a_restart_by_whatever_id_it_is_named(
    name: dict[str, str], step: str
) -> None:
    session = session_with(step)
    answered = {"type": "local_shell_call_output", "output": "found"} | name
    messages = [GO, SHELL, answered, *around("anthropic", [])]
    left = session.apply(messages).messages
    assert answered not in list(left)
    restarted = Session(session.policy, session_id="s", store=session.store)
    result = restarted.apply(messages)
    assert not result.warnings
    assert not result.plan.new
    assert result.messages == left


REASONING: list[Message] = [
    {"type": "reasoning", "id": "rs", "summary": []},
    {"type": "compaction", "id": "op", "encrypted_content": "secret"},
    {"type": "message", "id": "msg", "role": "assistant", "content": "so"},
]


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("behind", [1, 2, 5])
@pytest.mark.parametrize("led_to", [REASONING, REASONING[::2], REASONING[:2]])
def test_a_call_that_is_back_behind_a_summary_has_the_reasoning_that_led_to_it(
    led_to: list[Message], behind: int, restarts: bool
) -> None:
    """The summary is of the returned list, without the call; the own list has it right behind."""
    before = session_with("calls")
    own = [GO, *led_to, function("a") | {"id": "fc"}, function_output("a"), GO]
    back = before.apply(own).messages
    assert back == [GO, *led_to, GO]
    rules = session_with("calls", "compact", kept=3).policy
    session = Session(rules, session_id="s", store=before.store)
    more: list[Message] = [{"role": "assistant", "content": "so"}, GO]
    assert session.apply([*back, *more]).compacted
    if restarts:
        session = Session(rules, session_id="s", store=before.store)
    given = [*own, *more][: 1 + len(led_to) + behind]
    result = session.apply(given)
    assert not broken_promises(given, result.messages)
    assert not broken(result.messages) - broken(given)


COMPACTS_OVER_EIGHT = f"""
min_chars: 0
steps: [{STEPS["compact"].replace("KEPT", "1").replace("over: 5", "over: 8")}]
"""
LATE_TEXT = "Result of the call t:\nlate"


GEMINI_CALL = {"functionCall": {"name": "ask", "args": {}}}
PYDANTIC_GO, PYDANTIC_SO = ModelRequest([UserPromptPart("go")]), ModelResponse([TextPart("so")])
# Objects of a host, and dicts of Gemini's API: what is said, and the calls and results.
LATE_OF_HOSTS: dict[str, tuple[list[Message], list[Message]]] = {
    "gemini": (
        [{"role": "user", "parts": [{"text": "go"}]}, {"role": "model", "parts": [{"text": "so"}]}],
        [
            {"role": "model", "parts": [{"text": "so"}, GEMINI_CALL]},
            *(
                {"role": "user", "parts": [{"functionResponse": {"name": "ask", "response": one}}]}
                for one in ({"output": "wait"}, {"output": "late"})
            ),
        ],
    ),
    "langchain": (
        [HumanMessage("go"), AIMessage("so")],
        [
            AIMessage("so", tool_calls=[{"id": "t", "name": "run", "args": {}}]),
            ToolMessage("wait", tool_call_id="t"),
            ToolMessage("late", tool_call_id="t"),
        ],
    ),
    "pydantic_ai": (
        [PYDANTIC_GO, PYDANTIC_SO],
        [
            ModelResponse([TextPart("so"), ToolCallPart("run", {}, tool_call_id="t")]),
            ModelRequest([ToolReturnPart("run", "wait", tool_call_id="t")]),
            ModelRequest([ToolReturnPart("run", "late", tool_call_id="t")]),
        ],
    ),
}
SHAPES |= {"langchain": (LangChainShape(),), "pydantic_ai": (PydanticAIShape(),)}


# A message that no summary replaces, with a call whose result is a message of its own.
HALF_DROPPED: dict[str, tuple[list[Message], list[Message]]] = {
    "anthropic": (
        [GO, assistant(TEXT)],
        [assistant({"type": "compaction", "content": "8081"}, USE), user(RESULT)],
    ),
    "pydantic_ai": (
        [PYDANTIC_GO, PYDANTIC_SO],
        [
            ModelResponse([CompactionPart("8081"), ToolCallPart("run", {}, tool_call_id="t")]),
            ModelRequest([ToolReturnPart("run", "found", tool_call_id="t")]),
        ],
    ),
    # The answer to the first call may come late; the second call with its id stays with it.
    "chat and responses": (
        [GO, {"role": "assistant", "content": "so"}],
        [
            function("a"), GO, chat_calls(("t", "run", "{}"), ("a", "run", "{}")),
            chat_result("t", "found"), chat_result("a", "8081"),
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("step", ["drop", "calls", "arrival"])
@pytest.mark.parametrize("where", HALF_DROPPED)
def test_a_compaction_keeps_a_message_of_which_a_call_was_dropped_with_its_result(
    where: str, step: str
) -> None:
    """The plan counts what the compaction replaces, and a restarted session sends the same."""
    shapes = SHAPES.get(where, ())
    session = session_with(step, "compact", shapes=shapes)
    said, pair = HALF_DROPPED[where]
    messages = [*said, *pair, *said, *said[:1]]
    planned = session.plan(messages).compaction
    result = session.apply(messages)
    assert planned is not None
    assert result.compaction is not None
    assert planned.messages == result.compaction.stats.compacted_message_count
    assert "8081" in str(result.messages)
    assert "found" not in str(result.messages)
    restarted = Session(session.policy, session_id="s", store=session.store, shapes=shapes)
    assert restarted.apply(messages).messages == result.messages


def of_late(where: str) -> tuple[list[Message], list[Message]]:
    """What a user and an assistant say; and a call, its result and a late one."""
    if where in LATE_OF_HOSTS:
        said, pair = LATE_OF_HOSTS[where]
        return [*said, *said, said[1], said[0]], pair
    of_chat = where in {"chat", "local shell"}
    said = around("anthropic" if of_chat else where, [])  # type: ignore[arg-type]
    return said, LATE[where]  # type: ignore[index]


@pytest.mark.parametrize(
    ("where", "how"),
    rotated(
        [*LATE, *LATE_OF_HOSTS], ["apply", "async", "plan first", "restart", "in place"], one_in=3
    ),
)
def test_a_late_result_in_the_returned_list_is_a_text_of_the_user_behind_the_summary(
    where: str, how: str
) -> None:
    """It stays the same text in later turns, and for a restarted session."""
    shapes = SHAPES.get(where, ())
    rules = policy(COMPACTS_OVER_EIGHT)
    session = Session(rules, session_id="s", store=MemoryStore(), shapes=shapes)
    said, (asked, answered, late) = of_late(where)
    given = [*said[:-1], asked, answered, said[1], said[0]]
    first = session.apply(given)
    assert first.compacted
    given = [*first.messages, late]
    if how == "restart":
        session = Session(rules, session_id="s", store=session.store, shapes=shapes)
    if how == "plan first":
        assert "late" in str(session.preview(given))
        session.plan(given)
    result = asyncio.run(session.apply_async(given)) if how == "async" else session.apply(given)
    sent = list(result.messages)
    assert sent[: len(first.messages)] == list(first.messages)
    assert late not in sent
    assert "Result of the call" in str(sent[-1])
    assert "late" in str(sent[-1])
    assert not result.warnings
    assert where in LATE_OF_HOSTS or not +broken(sent)
    given = [*(sent if how == "in place" else given), said[1], said[0]]
    again = session.apply(given)
    restarted = Session(rules, session_id="s", store=session.store, shapes=shapes)
    for result in (again, restarted.apply(given)):
        assert result.messages == [*sent, said[1], said[0]]
        assert not result.warnings
    given += [said[1], said[0], said[1], said[0]]
    last = session.apply(given)
    assert last.compaction is not None
    assert "late" in session.read(last.compaction.archive_path or "")
    given += [said[1], said[0]]
    more = session.apply(given).messages
    restarted = Session(rules, session_id="s", store=session.store, shapes=shapes)
    assert restarted.apply(given).messages == more
    assert list(more)[: len(last.messages)] == list(last.messages)


def test_a_late_result_follows_the_other_results_beside_it() -> None:
    session = Session(policy(COMPACTS_OVER_EIGHT), session_id="s", store=MemoryStore())
    calls = chat_calls(("a", "run", "{}"), ("b", "run", "{}"))
    said, pair = of_late("chat")
    first = session.apply([*said[:-1], *pair[:2], said[1], said[0]]).messages
    given = [*first, calls, chat_result("a", "1"), chat_result("t", "late")]
    session.apply(given)
    given += [chat_result("b", "2"), said[1]]
    result = session.apply(given)
    texts = [str(message["content"]) for message in result.messages[len(first) :]]
    assert texts[1:4] == ["1", "2", "Result of the call t:\nlate"]
    again = Session(session.policy, session_id="s", store=session.store).apply(given)
    assert again.messages == result.messages


def test_a_message_with_a_late_result_keeps_the_others() -> None:
    session = Session(policy(COMPACTS_OVER_EIGHT), session_id="s", store=MemoryStore())
    said, (asked, answered, _) = of_late("anthropic")
    first = session.apply([*said[:-1], asked, answered, said[1], said[0]]).messages
    both = user(RESULT | {"content": "late"}, RESULT | {"tool_use_id": "n"}, TEXT)
    given = [*first, assistant(USE | {"id": "n"}), both]
    for _ in range(2):
        result = session.apply(given)
        left = user(RESULT | {"tool_use_id": "n"}, TEXT)
        assert result.messages[-2:] == [left, {"role": "user", "content": LATE_TEXT}]
        assert result.sources[-2:] == (len(given) - 1, None)
        session = Session(session.policy, session_id="s", store=session.store)


@pytest.mark.parametrize("step", ["compact", "drop"])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("where", ["anthropic", "responses"])
def test_a_late_result_with_an_image_is_no_result_without_a_call(
    where: Where, restarts: bool, step: str
) -> None:
    session = session_with(step)
    said: list[Message] = around(where, [])
    asked, answered, late = LATE[where]
    if where == "anthropic":
        late = user(RESULT | {"content": [TEXT, picture()]})
    else:
        image = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
        late = function_output("a") | {"output": [image]}
    messages = [*said[:-1], asked, answered, said[1], said[0]]
    returned = [*session.apply(messages).messages]
    if restarts:
        session = Session(session.policy, session_id="s", store=session.store)
    result = session.apply([*returned, late])
    assert not result.warnings
    # Its call was dropped or summarised.
    assert late not in list(result.messages)
    assert "Result of the call" in str(result.messages[-1])
    assert not session.apply([*result.messages, said[1], said[0]]).warnings
    own = Session(session.policy, session_id="s", store=session.store)
    result = own.apply([*messages, late])
    assert not result.warnings
    assert not broken(result.messages) - broken([*messages, late])


def test_the_shape_of_langchain_pairs_the_blocks_of_a_paused_reply() -> None:
    call = {"type": "server_tool_call", "id": "s", "name": "web_search", "args": {}}
    found = {"type": "server_tool_result", "tool_call_id": "s", "output": [], "status": "success"}
    for first, second in (([call], [found]), ([SERVED], [FOUND])):
        reading = Reading(Shapes([LangChainShape()]))
        reading.extend([AIMessage(content=first), AIMessage(content=second)])
        assert reading.partners == {0: 1, 1: 0}


def test_the_shape_of_pydantic_ai_pairs_the_parts_of_a_paused_reply() -> None:
    call = NativeToolCallPart("web_search", {"query": "q"}, tool_call_id="s")
    found = NativeToolReturnPart("web_search", "found", tool_call_id="s")
    reading = Reading(Shapes([PydanticAIShape()]))
    reading.extend([ModelResponse([call]), ModelResponse([found])])
    assert reading.partners == {0: 1, 1: 0}


def test_the_input_of_a_call_that_the_provider_runs_stays_when_its_result_leaves() -> None:
    rules = policy(
        """
        min_chars: 0
        items: {tool_result: {offload: true}}
        steps:
          - name: a
            do: offload
            select: {types: [tool_result], with_input: {tools: ["*"]}}
            placeholder: "[gone]"
        """
    )
    asked = {"type": "server_tool_use", "id": "c0", "name": "x", "input": {"path": "word " * 90}}
    given = session_of("word " * 90)
    given[1] = {"role": "assistant", "content": [asked]}
    left = Session(rules, store=MemoryStore(), session_id="s").apply(given).messages
    assert left[1] == given[1]
    assert left[2]["content"][0]["content"] == "[gone]"


@pytest.mark.parametrize(
    "led_to", [function("a"), REASONING[1], REASONING[2] | {"content": "other words"}]
)
def test_reasoning_that_left_the_end_of_a_list_is_back_when_its_reply_goes_on(
    led_to: Message,
) -> None:
    """In a list that no turn has seen, it is taken for equal reasoning that was dropped before."""
    rules = policy(
        """
        min_chars: 0
        items: {thinking: {offload: true}, assistant_message: {offload: true}}
        steps: [{name: a, do: drop, select: {types: [thinking], unit: group}}]
        """
    )
    store = MemoryStore()
    session = Session(rules, store=store, session_id="s")
    thoughts = [reasoning(1), reasoning(2)]
    assert session.apply([GO, *thoughts, REASONING[2], GO]).messages == [GO, GO]
    session = Session(rules, store=store, session_id="s")
    given = [{"role": "user", "content": "another list"}, *thoughts]
    assert session.apply(given).messages == given[:1]
    given.append(led_to)
    assert session.apply(given).messages == given
