"""Recipes: calls that need no policy file and no session. Each applies one preset once.

The presets define what is offloaded or summarised, when, under which name and with which wording:
`offload_tool_results`, `offload_tool_result`, and `compact_messages` (PRD context-compact).
"""

import asyncio
import copy
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias, TypedDict, Unpack

from policyctx.compaction.assembly import CompactStats, FileReader
from policyctx.compaction.summarizers import Summarize, Summarizer, summarizer_for
from policyctx.definitions.items import Message
from policyctx.errors import Location, MessagesError, PolicyError, StoreError
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Shape
from policyctx.policy.agent_options import AgentOptions, check_options, checks_options, with_options
from policyctx.policy.diagnosing import not_one_of
from policyctx.policy.loading import load_policy, parsed_policy, resolved, validated
from policyctx.policy.models import Policy
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.store.backend import absolute_root
from policyctx.store.content import AsyncFileWriter, Content, FileWriter, Origin, WriterStore
from policyctx.store.filesystem import ContextFileSystem
from policyctx.turns.result import Result

Paths: TypeAlias = Literal["output_dir", "cwd", "absolute"]
# The field of a placeholder that shows the path in each form.
_FIELDS: dict[Paths, str] = {"output_dir": "relative_path", "cwd": "cwd_path", "absolute": "path"}

# Characters of the longest path that systems take.
_LONGEST_PATH = 4096
# A caller that passes a single result has decided that it is too long.
_SINGLE_RESULT = PolicySource(
    "offload_tool_result",
    """\
apiVersion: policyctx/v1
name: offload-tool-result
extends: tool-direct-offload
min_chars: 0
""",
)
# Options of earlier versions of the requirements document, by name (PRD context-compact F-003).
_REMOVED = {
    "tail_retention_ratio": "it was removed: no tail of the history is kept, the summary replaces"
    " everything behind the leading system messages, and the files that were read last come back"
    " (max_restore_files). Delete the option; a policy with `compaction: {keep_recent: …}` keeps"
    " the newest messages"
}
# Each call stands alone.
_POLICY = PolicySource(
    "compact_messages",
    """\
apiVersion: policyctx/v1
name: compact-messages
extends: context-compact
store: {state: none}
""",
)


@dataclass(frozen=True, slots=True)
class OffloadResults:
    """The outcome of `offload_tool_results`.

    `messages` is the list object that was given if nothing was offloaded. Otherwise it is a new
    list, in which a message without an offloaded result is the same object and any other a deep
    copy.
    """

    messages: Sequence[Message]
    offloaded_count: int
    freed_chars: int
    """Characters of all offloaded results; the placeholders are not deducted."""
    files: tuple[str, ...]
    """Absolute paths, in the order of the results."""


@dataclass(frozen=True, slots=True)
class OffloadResult:
    """The outcome of `offload_tool_result`; `message` is a deep copy."""

    message: Message
    freed_chars: int
    """Characters of the result less those of the placeholder; negative for a very short result.

    0 for a message that was already offloaded.
    """
    file: str
    """Absolute path of the file that `message` names."""


@checks_options
def offload_tool_results(
    messages: Sequence[Message],
    *,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | None = None,
    paths: Paths = "output_dir",
    shapes: Iterable[Shape] = (),
) -> OffloadResults:
    """Offload the long tool results of a message list, as the preset `context-offload` says.

    The files are written below `output_dir`, which is created when the first file is written. A
    `writer` writes them instead, and creates the folders that it needs. The input is not changed,
    and calls are independent of each other.

    `paths` is the base of the paths in the placeholders. `output_dir` is for an agent that runs in
    that folder: `./tool-result-ID.md` (PRD context-offload F-003). `cwd` is for one that runs in
    the working directory of this process: `offloaded/tool-result-ID.md`, or an absolute path if the
    folder is elsewhere. `absolute` is right wherever the agent runs.

    `shapes` read and edit the message objects of a framework, as those of `Session` do.

    Raises `MessagesError` for a value that is not a message list, `StoreError` if a file cannot be
    written, and `PolicyError` for another value of `paths` and for an `OFFLOAD_RATIO_THRESHOLD`
    that is not a ratio. All files are written before the first gets its name. After a `StoreError`,
    files that have their names stay, complete, and the next call uses them again; files without a
    name are removed. With a `writer`, everything that it wrote stays.

    A result whose name is taken gets a file with a number. Taken are the names of the files in the
    folder, and those that placeholders of the list name in the form of these `paths`. A `writer`
    cannot say what is there: it writes over the file of an earlier call whose placeholder is not in
    the list.
    """
    session = _session(_many_results(paths), output_dir, writer, shapes)
    return _results(session.apply(messages))


@checks_options
async def offload_tool_results_async(
    messages: Sequence[Message],
    *,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None = None,
    paths: Paths = "output_dir",
    shapes: Iterable[Shape] = (),
) -> OffloadResults:
    """Offload as `offload_tool_results` does, in a thread or with an asynchronous writer."""
    policy = _many_results(paths)
    session = _session(policy, output_dir, writer, shapes, loop=asyncio.get_running_loop())
    return _results(await session.apply_async(messages))


@checks_options
def offload_tool_result(
    message: Message,
    *,
    session_id: str,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | None = None,
    shapes: Iterable[Shape] = (),
) -> OffloadResult:
    """Offload the one tool result of a message, whatever its length.

    As the preset `tool-direct-offload` says, the result is written to a file in the session's
    folder below `output_dir`, and replaces an earlier file of the same id. `writer` and `shapes`
    are as in `offload_tool_results`. The input is not changed.

    A message that an earlier call with the same `session_id` and `output_dir` returned is returned
    with the same content: nothing is written, and the file is the one that it names. If there is no
    such file, the content is written to it like any other; a `writer` cannot say what is there.

    Raises `MessagesError` for a value that is not a message, or a message with no tool result or
    several, and `StoreError` if the file cannot be written.
    """
    shapes = tuple(shapes)
    policy, folder = _single_result(message, shapes, output_dir)
    session = _session(policy, folder, writer, shapes, session_id=session_id)
    return _result(session.on_tool_result(message), session)


@checks_options
async def offload_tool_result_async(
    message: Message,
    *,
    session_id: str,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None = None,
    shapes: Iterable[Shape] = (),
) -> OffloadResult:
    """Offload as `offload_tool_result` does, in a thread or with an asynchronous writer."""
    shapes = tuple(shapes)
    (policy, folder), loop = _single_result(message, shapes, output_dir), asyncio.get_running_loop()
    session = _session(policy, folder, writer, shapes, session_id=session_id, loop=loop)
    result = await session.on_tool_result_async(message)
    return await asyncio.to_thread(_result, result, session)


def _many_results(paths: Paths) -> Policy:
    """Return the preset with the form of path in its placeholder that `paths` names."""
    if paths not in _FIELDS:
        option = Node(paths, Location("offload_tool_results, option paths"))
        raise PolicyError([not_one_of(option, list(_FIELDS))])
    policy = load_policy("context-offload")
    asked, given = (f"{{{_FIELDS[name]}}}" for name in (paths, "output_dir"))
    text = policy.placeholder.text.replace(given, asked)
    placeholder = policy.placeholder.model_copy(update={"text": text})
    return policy.model_copy(update={"placeholder": placeholder})


def _single_result(
    message: Message, shapes: Iterable[Shape], output_dir: str | os.PathLike[str]
) -> tuple[Policy, str | os.PathLike[str]]:
    """Return the policy for a single result, and its folder as the message itself names it.

    Raises `MessagesError` unless there is just one result.
    """
    found = [item for item in items_of([message], Shapes(shapes)) if item.kind == "tool_result"]
    if len(found) != 1:
        raise MessagesError(f"expected a message with one tool result, got {len(found) or 'none'}")
    policy = parsed_policy(_SINGLE_RESULT)
    return policy, _folder(found[0].text, policy.placeholder.text, output_dir)


def _folder(
    text: str, placeholder: str, output_dir: str | os.PathLike[str]
) -> str | os.PathLike[str]:
    """Return the folder as a text spells it that is a placeholder and names a file there.

    A result replaces its earlier file, so a placeholder that spells the folder in another way, such
    as by a link, would be written over the only copy.
    """
    before, _, after = placeholder.partition("{path}")
    path = Path(text.removeprefix(before).removesuffix(after)[:_LONGEST_PATH])
    if not text.startswith(before) or not path.is_absolute() or "\0" in text:
        return output_dir
    named = path.parent.parent  # the file is in the folder of the session
    is_same = os.path.realpath(named) == os.path.realpath(absolute_root(output_dir))
    # A forged one must not have a folder `other` made by naming `other/..`.
    is_found = ".." not in named.parts or named.is_dir()
    return named if is_same and is_found else output_dir


def _session(
    policy: Policy,
    output_dir: str | os.PathLike[str],
    writer: FileWriter | AsyncFileWriter | None,
    shapes: Iterable[Shape],
    *,
    session_id: str | None = None,
    loop: asyncio.AbstractEventLoop | None = None,
) -> Session:
    if writer is None:
        return Session(policy, root=output_dir, session_id=session_id, shapes=shapes)
    conflict = policy.store.on_conflict
    store = WriterStore(output_dir, writer, on_conflict=conflict, loop=loop)
    return Session(policy, session_id=session_id, store=store, shapes=shapes)


def _results(result: Result) -> OffloadResults:
    return OffloadResults(result.messages, result.offloaded_count, result.freed_chars, result.files)


def _result(result: Result, session: Session) -> OffloadResult:
    [message] = result.messages
    if result.files:
        return OffloadResult(message, result.net_freed_chars, result.files[0])
    # The policy skips a result that is a placeholder, since its file must not be overwritten.
    found = next(one for one in result.plan.decisions if one.reason.code == "placeholder")
    path, store = str(found.reason.values["path"]), session.store
    if isinstance(store, ContextFileSystem):
        try:
            store.read(path)
        except StoreError as error:
            # A file that cannot be read may be the only copy.
            if isinstance(error.__cause__, FileNotFoundError):
                origin = Origin.of(found.item, tokens=None, block=None)
                store.save([Content(path, found.item.text, path, origin)])
    return OffloadResult(copy.deepcopy(message), 0, f"{store.root}/{path}")


@dataclass(frozen=True, slots=True)
class CompactResult:
    """The outcome of `compact_messages`.

    `messages` is the list object that was given if nothing was compacted. `warnings` says why not,
    if the threshold was reached, and which files were not restored.
    """

    messages: Sequence[Message]
    compacted: bool
    stats: CompactStats
    summary: str = ""
    archive: str | None = None
    """Absolute path of the file with the replaced messages."""
    warnings: tuple[str, ...] = ()


class CompactOptions(TypedDict, total=False):
    """The options of `compact_messages`; the defaults are those of the preset."""

    client: object
    """An `anthropic.Anthropic` or `anthropic.AsyncAnthropic` that makes the summary."""
    summarizer: Summarizer | Summarize
    """A summarizer to use instead of the client. With neither the summary is extractive."""
    model: str
    """The model that the client calls."""
    summary_max_words: int
    """How many words the model is asked for."""
    summary_check: bool | Mapping[str, Any]
    """What an answer must have to be the summary. By default anything that is not empty is
    accepted. True requires the sections and a number of words, as the other presets do; a map is
    that of `compaction.summary.check`."""
    summary_timeout: str
    """How long the summary may take with all attempts and waits, such as `"90s"`; by default so
    long that the summary and the files take less than 30 seconds together."""
    threshold: int | str
    """Tokens at which the history is compacted, or a share of the window such as `"80%"`."""
    context_window: int
    """The context window of the agent's model, in tokens."""
    max_restore_files: int
    max_restore_tokens_per_file: int
    max_restore_tokens_total: int
    work_dir: str | os.PathLike[str]
    """The folder of the files that may be restored."""
    reads_file: Mapping[str, str | Sequence[str]]
    """Tools that read files besides `read_file`, by name, each with the field of its input that
    contains the path: `{"Read": "file_path"}`. Of several fields the first that a call has counts.
    """
    file_reader: FileReader
    """Reads the restored files, by default from the disk. A file for which it raises is skipped
    with a warning."""
    output_dir: str | os.PathLike[str]
    """The folder for the replaced messages."""
    shapes: Iterable[Shape]
    """They read and edit the message objects of a framework, as those of `Session` do."""


def compact_messages(
    messages: Sequence[Message], **options: Unpack[CompactOptions]
) -> CompactResult:
    """Replace a long history by a summary, as the preset `context-compact` says.

    `options` are those of `CompactOptions`; all are optional. The files that were read last are
    restored, and the replaced messages are saved. The input is not changed, and calls are
    independent of each other.

    Raises `MessagesError` for a value that is not a message list, `UnknownOptionError` for an
    unknown option, and `PolicyError` for a value that is not allowed. A summary that fails is not
    an error: the list is returned unchanged.
    """
    session = _compacting_session("compact_messages", options)
    return _compacted(session.apply(messages))


async def compact_messages_async(
    messages: Sequence[Message], **options: Unpack[CompactOptions]
) -> CompactResult:
    """Compact as `compact_messages` does, with an asynchronous client or summarizer.

    Files are read and written in a thread.
    """
    session = _compacting_session("compact_messages_async", options)
    return _compacted(await session.apply_async(messages))


def _compacting_session(function: str, options: CompactOptions) -> Session:
    check_options(function, options, CompactOptions.__annotations__, removed=_REMOVED)
    client = options.get("client")
    summarizer = options.get("summarizer") or summarizer_for(
        "extractive" if client is None else "anthropic", client
    )
    of_policy = {
        key: value for key, value in options.items() if key in AgentOptions.__annotations__
    }
    root = with_options(resolved(_POLICY), of_policy, function="compact_messages")
    return Session(
        validated(root),
        root=options.get("output_dir"),
        summarizer=summarizer,
        reader=options.get("file_reader"),
        shapes=options.get("shapes", ()),
    )


def _compacted(result: Result) -> CompactResult:
    made = result.compaction
    return CompactResult(
        messages=result.messages,
        compacted=made is not None,
        stats=CompactStats(summary=result.summary_usage) if made is None else made.stats,
        summary="" if made is None else made.summary,
        archive=None if made is None else made.archive_path,
        warnings=(*result.warnings, *_reasons(result)),
    )


def _reasons(result: Result) -> Iterator[str]:
    """Yield why a long history was not compacted if no attempt was made."""
    for outcome in result.plan.outcomes:
        stopped = outcome.stopped
        if stopped is not None and stopped.code != "not_summarised":
            yield f"not compacted: {stopped.sentence}"
