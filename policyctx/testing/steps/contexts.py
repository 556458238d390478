"""Given what is in the context, before anything happens."""

import json
from collections.abc import Sequence

from policyctx.errors import UnreadableRecordingError
from policyctx.messages.reading import request_of
from policyctx.replay.readers.registered import LISTS
from policyctx.replay.reading import recordings_of
from policyctx.replay.recording import Recording
from policyctx.testing.contents import Message, Shape, filler, pieces
from policyctx.testing.failures import WordingError
from policyctx.testing.kinds import Size
from policyctx.testing.step_definitions import given
from policyctx.testing.tables import messages_of
from policyctx.testing.world import World


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
    """Results, each after its call where a tool is named, or messages with text. A `failed` result
    is an error. A size is exact: of blocks, it is that of their texts, and of their compact JSON if
    the policy has `store.blocks: json`. A text may be a docstring.
    """
    made = pieces(phrase, text=docstring)
    policyctx_world.add(policyctx_world.conversation.messages(made))


@given("a session with {phrase:pieces}", "a session with 40 Bash results of 3,000 tokens")
def _(policyctx_world: World, phrase: str) -> None:
    """A conversation that begins with a user message that sets the task, and goes on so."""
    policyctx_world.add([policyctx_world.conversation.message("user", "the task")])
    policyctx_world.add(policyctx_world.conversation.messages(pieces(phrase)))


@given(
    "the messages",
    "the messages\n| role | type | tool | size |\n| user | | | 20 tokens |\n"
    "| | result | Bash | 3,000 tokens |",
    'the messages\n"""\n[{"role": "user", "content": "hello"}]\n"""',
)
def _(
    policyctx_world: World,
    datatable: Sequence[Sequence[object]] | None = None,
    docstring: str | None = None,
) -> None:
    """Messages written as a table, or as JSON in a docstring: a list, or a request body."""
    if (datatable is None) == (docstring is None):
        raise WordingError("write the messages as a table, or as JSON in a docstring")
    if datatable is not None:
        policyctx_world.add(messages_of(datatable, policyctx_world.conversation))
    else:
        policyctx_world.add(read_messages(docstring or ""))


@given("the recording {name:text}", 'the recording "session.jsonl"')
def _(policyctx_world: World, name: str) -> None:
    """The context at the end of a recorded session, or a JSON file of messages; found like a
    policy.
    """
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
    """The shape in which the following steps write messages; the default is Anthropic's. `OpenAI`
    is that of the chat API. A scenario that mixes shapes says this step again.
    """
    policyctx_world.conversation.shape = shape


@given(
    "the request's system prompt has {size:size}", "the request's system prompt has 5,000 tokens"
)
def _(policyctx_world: World, size: Size) -> None:
    """A system prompt that is sent beside the messages."""
    policyctx_world.system = filler(size, policyctx_world.conversation.serial())


@given("the caller passes the edited messages back")
def _(policyctx_world: World) -> None:
    """Each event's result is the next one's input; else the caller sends the original again."""
    policyctx_world.passes_edited_back = True
