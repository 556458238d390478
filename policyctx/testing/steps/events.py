"""When something happens: results arrive, a model is called, time passes."""

import json
from typing import Any

from policyctx.definitions.items import READ_TOOL, SEARCH_TOOL
from policyctx.store.excerpts import read_offloaded, search_offloaded
from policyctx.testing.contents import ToolResult, pieces
from policyctx.testing.failures import WordingError
from policyctx.testing.functions import call
from policyctx.testing.step_definitions import when
from policyctx.testing.tables import Table, pairs_in, results_of
from policyctx.testing.world import World


@when(
    "the policy is applied( again)( before the next model call)",
    "the policy is applied",
    "the policy is applied before the next model call",
    "the policy is applied again",
)
def _(policyctx_world: World) -> None:
    """As by `Session.apply`, before a request is sent."""
    policyctx_world.apply()


@when(
    "the provider refuses the prompt as too long( of {tokens:number} tokens)"
    "( over {most:number} tokens)",
    "the provider refuses the prompt as too long",
    "the provider refuses the prompt as too long of 213,000 tokens over 200,000 tokens",
)
def _(policyctx_world: World, tokens: int | None = None, most: int | None = None) -> None:
    """The steps with `on: overflow` run, as by `Session.on_overflow`, and the prompt is sent once
    more if it is shorter then. The error may name both numbers.
    """
    _require_model_call(policyctx_world)
    limit = "" if most is None else f"This model's maximum context length is {most} tokens. "
    size = "" if tokens is None else f"However, your messages resulted in {tokens} tokens. "
    policyctx_world.refuse(f"context_length_exceeded: {limit}{size}")


def _require_model_call(world: World) -> None:
    if not any(turn.kind == "model call" for turn in world.turns):
        raise WordingError("no model was called yet; write `When the policy is applied` before it")


@when(
    "the session is compacted( with the instructions {text:text})",
    "the session is compacted",
    'the session is compacted with the instructions "Keep the names of all tables."',
)
def _(policyctx_world: World, text: str = "") -> None:
    """As by `Session.compact`, whatever the gates of the `compact` step."""
    policyctx_world.compact(text)


@when("only a plan is made")
def _(policyctx_world: World) -> None:
    """As by `Session.plan`; nothing is done."""
    policyctx_world.plan()


@when(
    "{phrase:pieces} arrive(s)( from {tool:name})",
    "a result of 5000 characters arrives from Bash",
    'a result "toolu_xyz" of 1500 characters in blocks arrives',
    "3 parallel Bash results of 500 characters arrive",
)
def _(policyctx_world: World, phrase: str, tool: str | None = None) -> None:
    """As to `Session.on_tool_result`, before a model sees them; then they belong to the context."""
    made = pieces(phrase, tool=tool)
    if made.noun != "result":
        raise WordingError(f"only a result arrives, not {phrase}")
    conversation = policyctx_world.conversation
    results = conversation.results(made)
    batches = [results] if made.in_parallel else [[result] for result in results]
    for batch in batches:
        policyctx_world.arrive(conversation.calls(batch), conversation.answers(batch))


@when(
    "these results arrive",
    "these results arrive\n| id | tool | size |\n| a | Bash | 1500 characters |\n"
    "| b | Read | 20 characters |",
    'these results arrive\n"""\n{"role": "user", "content": [{"type": "tool_result", '
    '"tool_use_id": "a", "content": "ok"}]}\n"""',
)
def _(policyctx_world: World, datatable: Table | None = None, docstring: str | None = None) -> None:
    """The results of one assistant message: rows of a table, or a message (or a list of them) as
    JSON in a docstring.
    """
    conversation = policyctx_world.conversation
    if datatable is not None:
        results = results_of(datatable, conversation)
        policyctx_world.arrive(conversation.calls(results), conversation.answers(results))
    elif docstring is not None:
        document = json.loads(docstring)
        policyctx_world.arrive([], document if isinstance(document, list) else [document])
    else:
        raise WordingError("write the results as a table, or as JSON in a docstring")


@when(
    "the session continues for {turns:number} turn(s)( with {phrase:pieces} each)",
    "the session continues for 10 turns",
    "the session continues for 10 turns with 2 Bash results of 3,000 tokens each",
)
def _(policyctx_world: World, turns: int, phrase: str | None = None) -> None:
    """Each is a prompt, the results if any, an answer, with the policy applied before each model
    call.
    """
    policyctx_world.continue_for(turns, None if phrase is None else pieces(phrase))


@when(
    "the function {name:name} is called( with)",
    "the function offload_tool_results is called",
    "the function compact_messages is called with\n| threshold | 1 |\n| max_restore_files | 2 |",
    "the function offload_tool_result_async is called with\n| writer | asynchronous |",
)
def _(policyctx_world: World, name: str, datatable: Table = ()) -> None:
    """A public function gets the context, or its newest message, the root folder, the session, the
    working directory and the scenario's summarizer. A table gives arguments as YAML. A `writer` is
    `synchronous`, `asynchronous` or `raising`; a `file_reader` is `raising`, `lost`, which raises
    before it reads, `hanging` for ten seconds, or reads `half a character`. What is raised says
    "the archive is sealed".
    """
    call(name, dict(pairs_in(datatable)), policyctx_world)


@when("{duration:duration} pass(es)", "30 days pass", "1 hour passes")
def _(policyctx_world: World, duration: float) -> None:
    """Lets time go by: the agent is idle, pauses, sleeps or waits, or nobody types, and no model
    is called. The last call is then so long ago, and the prompt cache may have expired.
    """
    policyctx_world.begin()
    policyctx_world.seconds_passed += duration


@when("the process restarts")
def _(policyctx_world: World) -> None:
    """As after a crash: a new session object, the same folder and id, nothing else remembered."""
    policyctx_world.begin()
    policyctx_world.restart()


@when("the provider counts {tokens:number} tokens", "the provider counts 170,000 tokens")
def _(policyctx_world: World, tokens: int) -> None:
    """In the response to the last model call, for `Session.observe`."""
    _require_model_call(policyctx_world)
    policyctx_world.session.observe({"input_tokens": tokens, "output_tokens": 0})


@when("the session is closed")
def _(policyctx_world: World) -> None:
    """As by `Session.close`, which brings its index up to date."""
    policyctx_world.begin()
    policyctx_world.session.close()


@when(
    "the model reads( lines {first:number} to {last:number} of) {item:items} back",
    'the model reads the result "a" back',
    'the model reads lines 10 to 20 of the result "a" back',
)
def _(policyctx_world: World, item: str, first: int | None = None, last: int | None = None) -> None:
    """`read_offloaded` with the path in a placeholder."""
    [(_, _, file)] = policyctx_world.saved_of(item)
    given: dict[str, Any] = {"path": file.path}
    if first is not None and last is not None:
        given |= {"offset": first, "limit": last - first + 1}
    answer = read_offloaded(policyctx_world.store, **given)
    _add_result(policyctx_world, READ_TOOL, given, answer.text)


@when("the model searches the files for {text:text}", 'the model searches the files for "error"')
def _(policyctx_world: World, text: str) -> None:
    """By `search_offloaded`."""
    answer = search_offloaded(policyctx_world.store, text)
    _add_result(policyctx_world, SEARCH_TOOL, {"query": text}, answer.text)


def _add_result(world: World, tool: str, given: object, text: str) -> None:
    """Add a call with this input and its result to the context."""
    conversation = world.conversation
    result = ToolResult(f"call_{conversation.serial()}", text, tool)
    world.add([conversation.call([(result.id, tool)], given), *conversation.answers([result])])


@when(
    "the model reads the file of {item:items} with {tool:name}",
    'the model reads the file of the result "a" with Read',
)
def _(policyctx_world: World, item: str, tool: str) -> None:
    """A call of the tool with the path in a placeholder, and what is there."""
    [(_, _, file)] = policyctx_world.saved_of(item)
    _add_result(policyctx_world, tool, {"path": file.path}, policyctx_world.session.read(file.path))
