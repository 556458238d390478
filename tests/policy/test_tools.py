"""`@tool`: the function stays what it is, and says how many of its results stay."""

from __future__ import annotations

import asyncio
import inspect
import json
from pathlib import Path
from typing import Annotated, Any

import jsonschema
import pytest
from pydantic import Field

from policyctx import AgentOptions, OffloadPolicy, Session, for_agent, tool
from policyctx.errors import InputError, UnknownOptionError
from tests.conversations import session_of
from tests.policies import policy

EPHEMERAL = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps: [{name: retire, do: offload, select: {ephemeral: true}}]
    """
TEXTS = [f"{word} " * 60 for word in ("one", "two", "three", "four", "five")]


@tool("Read a large file", ephemeral=3)
async def read_large_file(
    path: Annotated[str, Field(description="Where it is.")], limit: int = 10
) -> str:
    return f"{path} {limit}"


@tool("Run a command", ephemeral=1)
def run_command(command: str) -> str:
    return command.upper()


def test_the_function_is_called_as_before() -> None:
    assert run_command("ls") == "LS"
    assert run_command(command="ls") == "LS"
    assert asyncio.run(read_large_file("a")) == "a 10"
    assert inspect.iscoroutinefunction(read_large_file)
    assert list(inspect.signature(read_large_file).parameters) == ["path", "limit"]


def test_it_carries_its_name_description_schema_and_number() -> None:
    assert read_large_file.name == "read_large_file"
    assert read_large_file.description == "Read a large file"
    assert read_large_file.ephemeral == 3
    schema = read_large_file.input_schema
    assert schema is not None
    assert schema["required"] == ["path"]
    assert schema["properties"]["path"]["description"] == "Where it is."
    jsonschema.validate({"path": "a", "limit": 2}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"path": 1}, schema)
    json.dumps(schema)


def test_without_arguments_the_docstring_is_the_description() -> None:
    @tool
    def search(query: str) -> str:
        """Search the web."""
        return query

    assert (search.description, search.ephemeral) == ("Search the web.", None)


def test_a_function_with_a_docstring_keeps_it() -> None:
    @tool("For the model")
    def search(query: str) -> str:
        """For people."""
        return query

    assert (search.description, search.__doc__) == ("For the model", "For people.")


def test_a_parameter_without_a_json_schema_leaves_the_function_usable() -> None:
    class Context:
        pass

    def read(context: Any, path: str) -> str:  # noqa: ARG001
        return path

    read.__annotations__["context"] = Context
    read = tool("Read", ephemeral=1)(read)
    assert read.input_schema is None
    assert read(Context(), "a") == "a"


@pytest.mark.parametrize("number", [-1, True, 1.5, "3"])
def test_a_wrong_number_is_an_error(number: Any) -> None:
    with pytest.raises(InputError, match="a number of results from 0 on"):
        tool("Read", ephemeral=number)


def test_a_function_that_says_nothing_is_an_error() -> None:
    def nameless(path: str) -> str:
        return path

    with pytest.raises(InputError, match="the tool nameless has no description"):
        tool(ephemeral=1)(nameless)


@pytest.mark.parametrize("value", [3, {"name": "schema"}, str, object()])
def test_what_is_no_function_is_an_error(value: Any) -> None:
    with pytest.raises(InputError, match="needs a function or the tool that an SDK made of one"):
        tool("Read", ephemeral=1)(value)


def test_an_unknown_option_is_an_error_with_the_nearest_name() -> None:
    with pytest.raises(UnknownOptionError, match="did you mean 'ephemeral'"):
        tool("Read", ephemral=1)  # type: ignore[call-overload]


def offloaded(session: Session, name: str) -> int:
    session.apply(session_of(*TEXTS, tool=name))
    return sum(item.offloaded for item in session.items)


def test_a_session_keeps_as_many_results_as_the_tool_says(tmp_path: Path) -> None:
    tools = [read_large_file, run_command]
    for name, gone in (("read_large_file", 2), ("run_command", 4), ("other", 0)):
        session = Session(policy(EPHEMERAL), root=tmp_path / name, tools=tools)
        assert offloaded(session, name) == gone


def test_the_policys_rule_for_a_tool_is_nearer(tmp_path: Path) -> None:
    rules = policy(f"{EPHEMERAL}\n    tools: {{run_command: {{keep_recent: 4}}}}")
    session = Session(rules, root=tmp_path, tools=[run_command])
    assert offloaded(session, "run_command") == 1


def test_a_hint_is_nearer_than_the_tool(tmp_path: Path) -> None:
    hints = {"run_command": {"keep_recent": 4}}
    session = Session(policy(EPHEMERAL), root=tmp_path, tools=[run_command], hints=hints)
    assert offloaded(session, "run_command") == 1


def test_one_number_for_all_overrides_every_tool(tmp_path: Path) -> None:
    options: AgentOptions = {"ephemeral_keep_recent": 2}
    tools: list[Any] = [read_large_file, run_command]
    for each in tools:
        session = Session(
            policy(EPHEMERAL),
            root=tmp_path / each.name,
            tools=tools,
            options=options,
        )
        assert offloaded(session, each.name) == 3
    session = Session(policy(EPHEMERAL), root=tmp_path, tools=tools, options=options)
    assert offloaded(session, "other") == 0


def test_a_decision_names_the_line_of_the_function(tmp_path: Path) -> None:
    session = Session(policy(EPHEMERAL), root=tmp_path, tools=[run_command])
    planned = session.plan(session_of(*TEXTS, tool="run_command"))
    [first, *_] = planned.new
    assert first.rule == "hints.run_command.keep_recent"
    place = session.policy.place(first.rule_path)
    assert place is not None
    code = inspect.unwrap(run_command).__code__
    assert (place.file, place.line) == (__file__, code.co_firstlineno)


def test_schemas_and_other_named_tools_give_no_hint(tmp_path: Path) -> None:
    schema = {"name": "search", "input_schema": {"type": "object"}}
    chat = {"type": "function", "function": {"name": "fetch", "parameters": {}}}
    session = Session(policy(EPHEMERAL), root=tmp_path, tools=[schema, chat, len])
    assert session.policy.hints == {}


def test_a_value_without_a_name_is_no_tool(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"expected a tool, got 3; decorate a function"):
        Session(policy(EPHEMERAL), root=tmp_path, tools=[3])


def test_a_compiled_policy_takes_tools_and_keeps_its_hints() -> None:
    compiled = OffloadPolicy.load("context-filesystem", hints={"search": {"keep_recent": 2}})
    both = OffloadPolicy.of(compiled, tools=[run_command])
    assert {name: hint.rule.keep_recent for name, hint in both.hints.items()}.keys() == {
        "search",
        "run_command",
    }
    assert OffloadPolicy.of(compiled) is compiled
    assert compiled.hints.keys() == {"search"}


def test_for_agent_takes_tools_and_options(tmp_path: Path) -> None:
    text = "apiVersion: policyctx/v1\nagents: {'*': context-filesystem}\n"
    (tmp_path / "policyctx.yaml").write_text(text, encoding="utf-8")
    session = for_agent(
        "coder",
        directory=tmp_path,
        root=tmp_path / "context",
        tools=[run_command],
        options={"offload_token_threshold": 900},
    )
    assert session.policy.hints.keys() == {"run_command"}
    room = next(step for step in session.policy.all_steps if step.name == "make-room")
    assert room.select.min_tokens == 900
