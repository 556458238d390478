"""A placeholder names a tool that reads offloaded files only if the session knows of one."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from agents import function_tool
from anthropic import beta_tool
from google.genai import types
from langchain_core.tools import tool as langchain_tool
from pydantic_ai import Tool as PydanticTool

from policyctx import Session, tool
from policyctx.integrations.tools import ReadBackTools
from tests.conversations import call, results, session_of, user
from tests.policies import policy

LARGE = "word " * 400
POLICY = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    tools: {view: {reads_file: file}, %s: {keep_recent: 0}}
    steps: [{name: a, do: offload, select: {types: [tool_result]}}]
    """


def made(root: Path, named: str = "other") -> Session:
    return Session(policy(POLICY % named), root=root, session_id="s")


def placeholder(session: Session, tools: object = None) -> str:
    found = str(session.apply(session_of(LARGE), tools=tools).messages[2]["content"][0]["content"])
    head = f"[Content offloaded]\nPath: {session.store.root}/tool_result/Bash/c0.md"
    assert found.startswith(head)
    return found.removeprefix(head)


def chat(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}}}


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        (None, ""),
        ([], ""),
        ([{"name": "Bash"}, chat("Read")], ""),
        ([{"name": "Bash"}, {"name": "view"}], "view"),
        ([chat("view"), chat("read_offloaded")], "read_offloaded"),
        ([{"type": "function", "name": "srv-read_offloaded"}], "srv-read_offloaded"),
        ([{"type": "custom", "custom": {"name": "view"}}], "view"),
        ([{"toolSpec": {"name": "read_offloaded"}}], "read_offloaded"),
        ({"tools": [{"toolSpec": {"name": "view"}}]}, "view"),
        ([{"functionDeclarations": [{"name": "a"}, {"name": "read_offloaded"}]}], "read_offloaded"),
        ([types.Tool(function_declarations=[{"name": "read_offloaded"}])], "read_offloaded"),
        ([{"type": "namespace", "name": "n", "tools": [chat("view")]}], "view"),
        ([{"type": "mcp", "allowed_tools": ["a", "read_offloaded"]}], "read_offloaded"),
        ([{"type": "mcp", "allowed_tools": {"tool_names": ["view"]}}], "view"),
        ([{"type": "mcp", "allowed_tools": {"read_only": True}}], ""),
        ([{"type": "mcp_toolset", "configs": {"read_offloaded": {}}}], "read_offloaded"),
        ([{"type": "mcp_toolset", "configs": {"view": {"enabled": False}}}], ""),
        ([{"type": "mcp", "allowed_tools": "view", "configs": [7]}], ""),
        ([{"name": "search_offloaded"}], ""),
        ([{"name": "unread_offloaded"}, {"type": "web_search"}, 7, "text"], ""),
    ],
)
def test_the_tools_of_the_request_say_which(tools: Any, named: str, tmp_path: Path) -> None:
    expected = f"\nUse {named} tool to view details." if named else ""
    assert placeholder(made(tmp_path), tools) == expected


def read_offloaded(path: str) -> str:
    """Read a file that was offloaded."""
    return path


class Reader:
    """An agent whose tools are methods."""

    def read_offloaded(self, path: str) -> str:
        return path

    async def view(self, file: str) -> str:
        return file


class Held:
    """A tool of an SDK that has its name in its `metadata`, as LlamaIndex's."""

    metadata = SimpleNamespace(name="read_offloaded")


TOOLS: list[tuple[Any, str]] = [
    (read_offloaded, "read_offloaded"),
    (Reader().read_offloaded, "read_offloaded"),
    (Reader().view, "view"),
    (Held(), "read_offloaded"),
    (tool("Read")(lambda path: path), ""),
    (beta_tool(read_offloaded), "read_offloaded"),
    (function_tool(read_offloaded), "read_offloaded"),
    (langchain_tool(read_offloaded), "read_offloaded"),
    (PydanticTool(read_offloaded, name="srv_read_offloaded"), "srv_read_offloaded"),
    (types.Tool(function_declarations=[{"name": "read_offloaded"}]), "read_offloaded"),
    (types.FunctionDeclaration(name="view"), "view"),
    (chat("read_offloaded"), "read_offloaded"),
    ({"type": "custom", "custom": {"name": "view"}}, "view"),
    ({"toolSpec": {"name": "read_offloaded"}}, "read_offloaded"),
    ({"type": "namespace", "name": "n", "tools": [chat("view")]}, "view"),
    ({"name": "search_offloaded"}, ""),
]


@pytest.mark.parametrize(("one", "named"), TOOLS)
def test_a_tool_is_known_by_its_name_whatever_it_is(one: Any, named: str, tmp_path: Path) -> None:
    expected = f"\nUse {named} tool to view details." if named else ""
    assert placeholder(made(tmp_path / "a"), [one]) == expected
    known = [{"name": "Bash"}, one]
    session = Session(policy(POLICY % "other"), root=tmp_path / "b", session_id="s", tools=known)
    assert placeholder(session, [{"name": "Bash"}]) == expected
    session = Session(policy(POLICY % "other"), root=tmp_path / "c", session_id="s", tools=known)
    assert placeholder(session) == expected


def test_a_tool_that_holds_itself_has_its_name_read_once(tmp_path: Path) -> None:
    one: dict[str, Any] = {"name": "read_offloaded"}
    one["tools"] = [one]
    session = Session(policy(POLICY % "other"), root=tmp_path, session_id="s", tools=[one])
    assert placeholder(session) == "\nUse read_offloaded tool to view details."


def test_the_policy_or_the_tools_of_the_session_say_so_too(tmp_path: Path) -> None:
    expected = "\nUse read_offloaded tool to view details."
    assert placeholder(made(tmp_path / "a", "read_offloaded")) == expected
    assert placeholder(made(tmp_path / "b", '"*read_offloaded"')) == ""
    session = made(tmp_path / "c")
    ReadBackTools(session)
    assert placeholder(session, [{"name": "Bash"}]) == expected


def test_what_was_decided_keeps_its_wording(tmp_path: Path) -> None:
    session, messages = made(tmp_path), session_of(LARGE)
    first = session.apply(messages).messages[2]
    messages = session_of(LARGE, LARGE)
    tools = [{"name": "read_offloaded"}]
    for one in (session, made(tmp_path)):
        second = one.apply(messages, tools=tools).messages
        assert second[2] == first
        assert "Use read_offloaded tool" in second[4]["content"][0]["content"]
    # A request without tools says nothing of them.
    third = session.apply(session_of(LARGE, LARGE, LARGE)).messages
    assert "Use read_offloaded tool" in third[6]["content"][0]["content"]


@pytest.mark.parametrize("tools", [None, [{"name": "read_offloaded"}]])
def test_a_placeholder_is_recognised_without_a_ledger(tools: Any, tmp_path: Path) -> None:
    text = POLICY.replace("never", "never, state: none") % "other"
    text = text.replace("types: [tool_result]}", "types: [tool_result]}, must_shrink: false")
    session = Session(policy(text), root=tmp_path, session_id="s")
    left = session.apply(session_of(LARGE), tools=tools).messages
    for given in (None, tools):
        assert session.apply(left, tools=given).messages is left


def test_a_wording_of_the_policy_stays_as_it_is(tmp_path: Path) -> None:
    text = f"{POLICY % 'other'}\n    placeholder: 'in {{path}}'"
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = session.apply(session_of(LARGE), tools=[{"name": "read_offloaded"}]).messages
    found = messages[2]["content"][0]["content"]
    assert found == f"in {tmp_path}/tool_result/Bash/c0.md"


OWN = [{"name": "Bash"}, {"name": "mcp__ctx__read_offloaded"}]
AGAIN = "Read that file when you need it again."
NAMED = "Use mcp__ctx__read_offloaded tool to view details."
FIELD = 'placeholder: "{tool_name} in {path}. {how_to_read} ({tokens} tokens)"'


def with_field(root: Path, rest: str = "") -> Session:
    text = f"{POLICY % 'other'}\n    {FIELD}\n    {rest}"
    return Session(policy(text), root=root, session_id="s")


def first_result(session: Session, messages: Any, tools: Any) -> str:
    return str(session.apply(messages, tools=tools).messages[2]["content"][0]["content"])


@pytest.mark.parametrize(
    ("tools", "sentence"),
    [
        (None, AGAIN),
        (OWN, NAMED),
        ([chat("read_offloaded")], "Use read_offloaded tool to view details."),
        # A tool of the agent that opens any file needs no name.
        ([{"name": "Bash"}, {"name": "view"}], AGAIN),
    ],
)
@pytest.mark.parametrize("preset", ["coding-agent", "small-context", "few-re-reads"])
def test_a_preset_names_the_tool_that_reads_offloaded_files(
    preset: str, tools: Any, sentence: str, tmp_path: Path
) -> None:
    text = f"extends: {preset}\nmodel: {{context_window: 250000}}\nstore: {{sync: never}}"
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = session_of(*["word " * 12_000] * 13)
    path = tmp_path / "tool_result/Bash/c0.md"
    head = f"[Offloaded: Bash result, 1 lines, 12001 tokens]\nPath: {path}\n"
    assert first_result(session, messages, tools) == head + sentence
    # What was decided stays, whatever the next request says.
    assert first_result(session, messages, None if tools else OWN) == head + sentence
    again = Session(policy(text), root=tmp_path, session_id="s")
    assert first_result(again, messages, None if tools else OWN) == head + sentence


@pytest.mark.parametrize(("tools", "sentence"), [(None, AGAIN), (OWN, NAMED)])
@pytest.mark.parametrize("preset", ["coding-agent", "small-context", "few-re-reads"])
def test_a_preset_names_that_tool_for_a_result_too_large_for_the_context_too(
    preset: str, tools: Any, sentence: str, tmp_path: Path
) -> None:
    text = f"extends: {preset}\nmodel: {{context_window: 4000}}\nstore: {{sync: never}}"
    session = Session(policy(text), root=tmp_path, session_id="s")
    found = first_result(session, session_of("word " * 12_000), tools)
    path = tmp_path / "tool_result/Bash/c0.md"
    head = "[Too large for the context: Bash result, 1 lines, 12001 tokens]"
    assert found.startswith(
        f"{head}\nPath: {path}\n{sentence} Read only the parts that you need.\n"
    )


@pytest.mark.parametrize(("tools", "sentence"), [(None, AGAIN), (OWN, NAMED)])
def test_a_wording_says_how_to_read_the_file_wherever_it_has_the_field(
    tools: Any, sentence: str, tmp_path: Path
) -> None:
    session = with_field(tmp_path)
    found = first_result(session, session_of(LARGE), tools)
    path = tmp_path / "tool_result/Bash/c0.md"
    assert found == f"Bash in {path}. {sentence} (401 tokens)"


def test_the_input_of_a_call_says_it_too(tmp_path: Path) -> None:
    rest = "steps: [{name: a, do: offload, select: {types: [tool_call]}}]"
    text = POLICY.partition("steps:")[0] % "read_offloaded"
    text = text.replace("tool_result", "tool_call")
    session = Session(policy(f"{text}{rest}\n    {FIELD}"), root=tmp_path, session_id="s")
    write = call("c0", "Write", {"path": "a.txt", "content": LARGE})
    messages = [user("the task"), write, results(("c0", "done")), user("next")]
    left = session.apply(messages).messages[1]["content"][0]["input"]["content"]
    assert ". Use read_offloaded tool to view details. (" in left


@pytest.mark.parametrize("given", [None, OWN])
@pytest.mark.parametrize("tools", [None, OWN])
def test_either_sentence_is_recognised_without_a_ledger(
    tools: Any, given: Any, tmp_path: Path
) -> None:
    text = f"{POLICY % 'other'}\n    {FIELD}".replace("never", "never, state: none")
    text = text.replace("types: [tool_result]}", "types: [tool_result]}, must_shrink: false")
    session = Session(policy(text), root=tmp_path, session_id="s")
    left = session.apply(session_of(LARGE), tools=tools).messages
    assert session.apply(left, tools=given).messages is left


def test_a_result_that_is_read_as_it_arrives_says_it_too(tmp_path: Path) -> None:
    text = (POLICY % "read_offloaded").replace("do: offload", "on: arrival, do: offload")
    session = Session(policy(f"{text}\n    {FIELD}"), root=tmp_path, session_id="s")
    _, asked, answer = session_of(LARGE)
    found = session.on_tool_result(answer, call=asked).messages[-1]["content"][0]["content"]
    assert ". Use read_offloaded tool to view details. (" in found
