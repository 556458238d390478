"""Given: the policy and its environment, and what is in the context before anything happens."""

import json

import pytest

from policyctx.errors import UnreadableRecordingError
from policyctx.messages.reading import request_of
from policyctx.replay.readers.registered import LISTS
from policyctx.replay.reading import recordings_of
from policyctx.replay.recording import Recording
from policyctx.testing.contents import Message, Shape, filler, pieces
from policyctx.testing.failures import WordingError
from policyctx.testing.faults import FORBIDDEN, FULL
from policyctx.testing.functions import yaml_values
from policyctx.testing.kinds import Size
from policyctx.testing.policies import named_source, written_source
from policyctx.testing.reporting import running_step, shown_path
from policyctx.testing.step_definitions import given, given_or_when, when
from policyctx.testing.tables import Table, messages_of, pairs_in
from policyctx.testing.world import World


@given(
    "the policy( {name:text})",
    'the policy "coding-agent"',
    'the policy "policies/mine.yaml"',
    'the policy\n"""\nextends: context-offload\nmin_chars: 50\n"""',
)
def _(
    policyctx_world: World, request: pytest.FixtureRequest, name: str = "", docstring: str = ""
) -> None:
    """The policy of the scenario: a preset's name, a file beside the feature or below the rootdir,
    or YAML in a docstring, without need of `apiVersion` and `name`. A policy given after an event
    takes over the session.
    """
    if bool(name) == bool(docstring):
        example = '`the policy "coding-agent"`'
        raise WordingError(f"name a policy ({example}), or write it in a docstring")
    if name:
        source = named_source(name, policyctx_world.folders)
    else:
        place = running_step(request.node)
        shown = shown_path(place.feature, request.config)
        source = written_source(docstring, place.feature, place.step.line_number + 2, shown=shown)
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
    """As by `@tool(ephemeral=3)`; the policy's own rules for a tool or a type are nearer."""
    policyctx_world.add_tool(tool, count)


@given(
    "the options", "the options\n| offload_token_threshold | 1000 |\n| ephemeral_keep_recent | 1 |"
)
def _(policyctx_world: World, datatable: Table) -> None:
    """The `options` of `Session`, by name, with their values as YAML."""
    policyctx_world.options = yaml_values(dict(pairs_in(datatable)))
    policyctx_world.restart()


@given("the session {session_id:text}", 'the session "session-abc123"')
def _(policyctx_world: World, session_id: str) -> None:
    """The default is `session`. One given after an event is another session, with the same policy,
    context and root folder.
    """
    policyctx_world.session_id = session_id
    policyctx_world.restart()


@given("the session has no id yet")
def _(policyctx_world: World) -> None:
    """It names itself, as the policy says."""
    policyctx_world.session_id = None
    policyctx_world.restart()


@given("the root folder {name:text}", 'the root folder "not/there/yet"')
def _(policyctx_world: World, name: str) -> None:
    """Below the scenario's own temporary folder."""
    policyctx_world.root = policyctx_world.root.parent / name


@given("a writer writes the session's files")
def _(policyctx_world: World) -> None:
    """The caller's writer, in place of the session's own."""
    policyctx_world.has_writer = True
    policyctx_world.restart()


@given("the policy's own root folder")
def _(policyctx_world: World) -> None:
    """That of `store.root`, with a working directory and a home directory of the scenario's own."""
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
    """The default is that it does not exist."""
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
    """It is in the root folder already; its text may be a docstring."""
    path = policyctx_world.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text or docstring, encoding="utf-8")


@given_or_when("the disk is full")
def _(policyctx_world: World) -> None:
    """Nothing more can be written below the root folder."""
    policyctx_world.refusal = FULL


@when("the disk has room again")
def _(policyctx_world: World) -> None:
    """Writing works again."""
    policyctx_world.refusal = None


@given("no messages")
def _(policyctx_world: World) -> None:
    """An empty list."""
    policyctx_world.messages = []


@given(
    "{phrase:pieces}",
    'a result "toolu_01abc" of 2500 characters from Bash',
    "3 parallel Bash results of 500 characters",
    'a result "b" of 1500 characters in blocks',
    "a failed result of 300 characters from Bash",
    "a user message of 5000 characters",
    'a result "c" from Read that reads\n"""\nexit code 0\n"""',
)
def _(policyctx_world: World, phrase: str, docstring: str | None = None) -> None:
    """Results, each after its call if a tool is named, or messages with text. A `failed` result is
    an error. A size is exact: of blocks, that of their texts, or with `store.blocks: json` of their
    compact JSON. A text may be a docstring.
    """
    policyctx_world.add(policyctx_world.conversation.messages(pieces(phrase, text=docstring)))


@given("a session with {phrase:pieces}", "a session with 40 Bash results of 3,000 tokens")
def _(policyctx_world: World, phrase: str) -> None:
    """A conversation that begins with the user's task."""
    policyctx_world.add([policyctx_world.conversation.message("user", "the task")])
    policyctx_world.add(policyctx_world.conversation.messages(pieces(phrase)))


@given(
    "the messages",
    "the messages\n| role | type | tool | size |\n| user | | | 20 tokens |\n"
    "| | result | Bash | 3,000 tokens |",
    'the messages\n"""\n[{"role": "user", "content": "hello"}]\n"""',
)
def _(policyctx_world: World, datatable: Table | None = None, docstring: str | None = None) -> None:
    """A table, or JSON in a docstring: a list, or a request body."""
    if (datatable is None) == (docstring is None):
        raise WordingError("write the messages as a table, or as JSON in a docstring")
    if datatable is not None:
        policyctx_world.add(messages_of(datatable, policyctx_world.conversation))
    else:
        policyctx_world.add(read_messages(docstring or ""))


@given("the recording {name:text}", 'the recording "session.jsonl"')
def _(policyctx_world: World, name: str) -> None:
    """The end of a recorded session, or a JSON file of messages; found like a policy."""
    paths = [folder / name for folder in policyctx_world.folders]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        looked = ", ".join(str(folder) for folder in policyctx_world.folders)
        raise WordingError(f"no file {name!r} in {looked}")
    policyctx_world.add(read_messages(path.read_text(encoding="utf-8-sig")))


def read_messages(text: str) -> list[Message]:
    """Return the messages of a recording, a request body or a list.

    Raises `WordingError` for what is no JSON. The messages of a list are not looked at.
    """
    recording = _recording(text)
    if recording is not None and recording.format not in LISTS:
        return recording.messages()
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        if recording is not None:
            return recording.messages()
        where = f"line {error.lineno}, column {error.colno}"
        raise WordingError(f"not JSON: {where}: {error.msg}") from error
    return document if isinstance(document, list) else list(request_of(document).messages)


def _recording(text: str) -> Recording | None:
    try:
        return next(recordings_of(text.encode("utf-8", "surrogatepass"), "the recording"))
    except UnreadableRecordingError:
        return None


@given(
    "the messages have the {shape=Anthropic|OpenAI Responses|OpenAI} shape",
    "the messages have the OpenAI shape",
    "the messages have the OpenAI Responses shape",
)
def _(policyctx_world: World, shape: Shape) -> None:
    """The shape of what the following steps write; the default is Anthropic's, and `OpenAI` is the
    chat API. A scenario that mixes shapes says this step again.
    """
    policyctx_world.conversation.shape = shape


@given(
    "the request's system prompt has {size:size}", "the request's system prompt has 5,000 tokens"
)
def _(policyctx_world: World, size: Size) -> None:
    """It is sent beside the messages."""
    policyctx_world.system = filler(size, policyctx_world.conversation.serial())


@given("the caller passes the edited messages back")
def _(policyctx_world: World) -> None:
    """Else each event gets the original again."""
    policyctx_world.passes_edited_back = True
