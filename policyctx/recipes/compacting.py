"""`compact_messages`: one call that replaces a long history by a summary (PRD context-compact)."""

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack

from policyctx.compaction.assembly import CompactStats
from policyctx.compaction.restoration import FileReader
from policyctx.compaction.summarizers import Summarize, Summarizer, summarizer_for
from policyctx.definitions.items import Message
from policyctx.messages.shapes.shape import Shape
from policyctx.policy.agent_options import AgentOptions, check_options, with_options
from policyctx.policy.loading import resolved, validated
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.turns.result import Result

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
    long that the whole compaction ends within 30 seconds."""
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
    session = _session("compact_messages", options)
    return _compacted(session.apply(messages))


async def compact_messages_async(
    messages: Sequence[Message], **options: Unpack[CompactOptions]
) -> CompactResult:
    """Compact as `compact_messages` does, with an asynchronous client or summarizer.

    Files are read and written in a thread.
    """
    session = _session("compact_messages_async", options)
    return _compacted(await session.apply_async(messages))


def _session(function: str, options: CompactOptions) -> Session:
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
