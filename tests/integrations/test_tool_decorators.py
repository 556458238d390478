"""`@tool` above and below the decorators of SDKs: their tools work, and sessions read them."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from agents import FunctionTool, function_tool
from agents.tool_context import ToolContext
from anthropic import beta_async_tool, beta_tool
from anthropic.lib.tools import BetaAsyncFunctionTool, BetaFunctionTool
from langchain_core.tools import BaseTool
from langchain_core.tools import tool as langchain_tool

from policyctx import Session, tool
from tests.conversations import session_of
from tests.policies import policy

RETIRING = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps: [{name: retire, do: offload, select: {ephemeral: true}}]
    """


class Sdk(NamedTuple):
    decorator: Callable[[Any], Any]
    made: type[Any]
    description: Callable[[Any], str]
    call: Callable[[Any, dict[str, Any]], Any]
    is_async: bool = False


def _called_by_agents(made: Any, given: dict[str, Any]) -> Any:
    arguments = json.dumps(given)
    context: Any = ToolContext(
        context=None, tool_name=made.name, tool_call_id="c", tool_arguments=arguments
    )
    return asyncio.run(made.on_invoke_tool(context, arguments))


def _invoked(made: Any, given: dict[str, Any]) -> Any:
    return made.invoke(given)


async def _awaited(made: Any, given: dict[str, Any]) -> Any:
    return await made.ainvoke(given)


def _schema_text(made: Any) -> str:
    return str(made.to_dict()["description"])


def _own_text(made: Any) -> str:
    return str(made.description)


SDKS = {
    "anthropic": Sdk(beta_tool, BetaFunctionTool, _schema_text, lambda t, g: t.call(g)),
    "anthropic-async": Sdk(
        beta_async_tool,
        BetaAsyncFunctionTool,
        _schema_text,
        lambda t, g: asyncio.run(t.call(g)),
        is_async=True,
    ),
    "openai-agents": Sdk(function_tool, FunctionTool, _own_text, _called_by_agents),
    "openai-agents-async": Sdk(
        function_tool, FunctionTool, _own_text, _called_by_agents, is_async=True
    ),
    "langchain": Sdk(langchain_tool, BaseTool, _own_text, _invoked),
    "langchain-async": Sdk(
        langchain_tool,
        BaseTool,
        _own_text,
        lambda t, g: asyncio.run(_awaited(t, g)),
        is_async=True,
    ),
}


def function_of(sdk: Sdk, docstring: str | None) -> Any:
    def read_file(path: str) -> str:
        return f"text of {path}"

    async def read_file_async(path: str) -> str:
        return f"text of {path}"

    function: Any = read_file_async if sdk.is_async else read_file
    function.__name__, function.__doc__ = "read_file", docstring
    return function


def shows_its_function(sdk: Sdk) -> bool:
    """Return whether the SDK's tools show their function; those of openai-agents 0.4 do not."""
    made = sdk.decorator(function_of(sdk, "Read."))
    shown = (getattr(made, name, None) for name in ("func", "coroutine", "__wrapped__"))
    return any(map(inspect.isroutine, shown))


SHOWING = {name: sdk for name, sdk in SDKS.items() if shows_its_function(sdk)}


def hiding(function: Any) -> FunctionTool:
    """Return the function as a tool that does not show it."""

    async def call(_: object, arguments: str) -> str:
        return str(await function(**json.loads(arguments)))

    return FunctionTool(
        function.__name__, str(function.__doc__), {}, call, strict_json_schema=False
    )


HIDING = Sdk(hiding, FunctionTool, _own_text, _called_by_agents, is_async=True)


def check(sdk: Sdk, made: Any, folder: Path, description: str) -> None:
    """Check that the SDK calls its tool, and that a session keeps two of its results."""
    assert isinstance(made, sdk.made)
    assert sdk.description(made) == description
    assert sdk.call(made, {"path": "a.txt"}) == "text of a.txt"
    session = Session(policy(RETIRING), root=folder, tools=[made])
    session.apply(session_of(*[f"{n} text " * 60 for n in range(5)], tool="read_file"))
    assert sum(item.offloaded for item in session.items) == 3
    place = session.policy.place(("hints", "read_file", "keep_recent"))
    assert place is not None
    assert place.file == (__file__ if shows_its_function(sdk) else "code")


@pytest.mark.parametrize("sdk", SHOWING.values(), ids=SHOWING)
def test_below_the_decorator_of_an_sdk(sdk: Sdk, tmp_path: Path) -> None:
    made = sdk.decorator(tool("Read a file.", ephemeral=2)(function_of(sdk, None)))
    check(sdk, made, tmp_path, "Read a file.")


def test_below_a_decorator_whose_tools_hide_the_function_the_number_is_not_found(
    tmp_path: Path,
) -> None:
    made = hiding(tool("Read a file.", ephemeral=2)(function_of(HIDING, None)))
    assert Session(policy(RETIRING), root=tmp_path, tools=[made]).policy.hints == {}


def test_above_a_decorator_whose_tools_hide_the_function_the_number_has_no_line(
    tmp_path: Path,
) -> None:
    made = tool("Read a file.", ephemeral=2)(hiding(function_of(HIDING, "Read.")))
    check(HIDING, made, tmp_path, "Read a file.")


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS)
def test_above_the_decorator_of_an_sdk(sdk: Sdk, tmp_path: Path) -> None:
    inner = sdk.decorator(function_of(sdk, "Read."))
    made = tool("Read a file.", ephemeral=2)(inner)
    assert made is inner
    check(sdk, made, tmp_path, "Read a file.")


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS)
def test_above_without_a_description_the_sdks_own_stays(sdk: Sdk, tmp_path: Path) -> None:
    made = tool(ephemeral=2)(sdk.decorator(function_of(sdk, "Read.")))
    check(sdk, made, tmp_path, "Read.")


@pytest.mark.parametrize("sdk", SDKS.values(), ids=SDKS)
def test_a_tool_that_says_no_number_is_not_ephemeral(sdk: Sdk, tmp_path: Path) -> None:
    session = Session(
        policy(RETIRING), root=tmp_path, tools=[sdk.decorator(function_of(sdk, "Read."))]
    )
    assert session.policy.hints == {}
