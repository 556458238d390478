"""Given a policy, its environment, and the folder of its session."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from policyctx.testing.failures import WordingError
from policyctx.testing.faults import FORBIDDEN, FULL
from policyctx.testing.functions import yaml_values
from policyctx.testing.policies import named_source, written_source
from policyctx.testing.reporting import running_step, shown_path
from policyctx.testing.step_definitions import given, given_or_when, when
from policyctx.testing.world import World

if TYPE_CHECKING:
    import pytest


@given(
    "the policy( {name:text})",
    'the policy "coding-agent"',
    'the policy "policies/mine.yaml"',
    'the policy\n"""\nextends: context-offload\nmin_chars: 50\n"""',
)
def _(
    policyctx_world: World,
    request: pytest.FixtureRequest,
    name: str = "",
    docstring: str = "",
) -> None:
    """The policy of the scenario: a preset's name, a file beside the feature or below the
    rootdir, or YAML in a docstring, where `apiVersion` and `name` may be left out. A policy given
    after an event takes over the session.
    """
    if bool(name) == bool(docstring):
        raise WordingError(
            'name a policy (`the policy "coding-agent"`), or write it in a docstring'
        )
    if name:
        source = named_source(name, policyctx_world.folders)
    else:
        place = running_step(request.node)
        shown = shown_path(place.feature, request.config)
        line = place.step.line_number + 2
        source = written_source(docstring, place.feature, line, shown=shown)
    policyctx_world.use_policy(source)


@given(
    "the environment variable {name:name} is (not set|{value:text})",
    'the environment variable OFFLOAD_RATIO_THRESHOLD is "0.5"',
    "the environment variable OFFLOAD_RATIO_THRESHOLD is not set",
)
def _(policyctx_world: World, name: str, value: str | None = None) -> None:
    """What `${NAME}` in the policy stands for; other variables are those of the test run."""
    policyctx_world.variables[name] = value
    policyctx_world.restart()


@given(
    "the tool {tool:name} is ephemeral and keeps {count:number} result(s)",
    "the tool read_file is ephemeral and keeps 3 results",
)
def _(policyctx_world: World, tool: str, count: int) -> None:
    """What code says of a tool by `@tool(ephemeral=3)`; the policy's own rules for a tool or a
    type are nearer.
    """
    policyctx_world.add_tool(tool, count)


@given(
    "the options",
    "the options\n| offload_token_threshold | 1000 |\n| ephemeral_keep_recent | 1 |",
)
def _(policyctx_world: World, datatable: Sequence[Sequence[object]]) -> None:
    """The `options` of `Session`, by name, with their values as YAML."""
    given = {str(row[0]): str(row[1]) for row in datatable}
    policyctx_world.options = yaml_values(given)
    policyctx_world.restart()


@given("the session {session_id:text}", 'the session "session-abc123"')
def _(policyctx_world: World, session_id: str) -> None:
    """The id of the session; `session` where none is given. One given after an event is another
    session, with the same policy, context and root folder.
    """
    policyctx_world.session_id = session_id
    policyctx_world.restart()


@given("the session has no id yet")
def _(policyctx_world: World) -> None:
    """The session names itself, in the form that the policy gives."""
    policyctx_world.session_id = None
    policyctx_world.restart()


@given("the root folder {name:text}", 'the root folder "not/there/yet"')
def _(policyctx_world: World, name: str) -> None:
    """The folder for offloaded content, below the scenario's own temporary folder."""
    policyctx_world.root = policyctx_world.root.parent / name


@given("a writer writes the session's files")
def _(policyctx_world: World) -> None:
    """The session saves through a writer of the caller's, and not by itself."""
    policyctx_world.has_writer = True
    policyctx_world.restart()


@given("the policy's own root folder")
def _(policyctx_world: World) -> None:
    """The folder that the policy names under `store.root`, as found from a working directory and
    a home directory of the scenario's own.
    """
    policyctx_world.has_own_root = True
    policyctx_world.restart()


@given(
    "the root folder {state=exists|does not exist|is a file|cannot be written}",
    "the root folder exists",
    "the root folder does not exist",
    "the root folder is a file",
    "the root folder cannot be written",
)
def _(policyctx_world: World, state: str) -> None:
    """How the folder for offloaded content is found; it does not exist where nothing is said."""
    root = policyctx_world.root
    if state == "does not exist":
        if root.exists():
            raise WordingError(f"{root} exists already")
        return
    root.parent.mkdir(parents=True, exist_ok=True)
    if state == "is a file":
        root.write_text("", encoding="utf-8")
        return
    root.mkdir(exist_ok=True)
    if state == "cannot be written":
        policyctx_world.refusal = FORBIDDEN


@given("a file {name:text} that reads( {text:text})", 'a file "tool-result-a.md" that reads "old"')
def _(policyctx_world: World, name: str, text: str = "", docstring: str = "") -> None:
    """A file that is in the root folder already; its text may be a docstring."""
    path = policyctx_world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or docstring, encoding="utf-8")


@given_or_when("the disk is full")
def _(policyctx_world: World) -> None:
    """Nothing can be written below the root folder from here on."""
    policyctx_world.refusal = FULL


@when("the disk has room again")
def _(policyctx_world: World) -> None:
    """Writing works again."""
    policyctx_world.refusal = None
