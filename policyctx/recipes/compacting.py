"""`compact_messages`: one call that replaces a long history by a summary (PRD context-compact)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypedDict

from policyctx.compaction.assembly import CompactStats
from policyctx.compaction.summarizers import summarizer_for
from policyctx.errors import Diagnostic, Place, PolicyError
from policyctx.policy.loading import parsed_policy
from policyctx.policy.options import check_options
from policyctx.policy.sources import PolicySource
from policyctx.session import Session

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from typing import Unpack

    from policyctx.compaction.restoration import FileReader
    from policyctx.compaction.summarizers import Summarize, Summarizer
    from policyctx.messages.items import Message
    from policyctx.turns.result import Result


# Options of earlier versions of the requirements document, by name (PRD context-compact F-003).
_REMOVED = {
    "tail_retention_ratio": "it was removed: no tail of the history is kept, the summary replaces"
    " everything behind the leading system messages, and the files that were read last come back"
    " (max_restore_files). Delete the option; a policy with `compaction: {keep_recent: …}` keeps"
    " the newest messages"
}
_LIMITS = ("max_files", "max_tokens_per_file", "max_tokens_total")


@dataclass(frozen=True, slots=True)
class CompactResult:
    """What `compact_messages` came to.

    `messages` is the very list that was given if nothing was compacted. `warnings` says why not, if
    the threshold was reached, and which files did not come back.
    """

    messages: Sequence[Message]
    compacted: bool
    stats: CompactStats
    summary: str = ""
    archive: str | None = None
    """Absolute path of the replaced messages."""
    warnings: tuple[str, ...] = ()


class CompactOptions(TypedDict, total=False):
    """How `compact_messages` goes about it; what is left out is as the preset says."""

    client: object
    """An `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, which is asked for the summary."""
    summarizer: Summarizer | Summarize
    """What makes the summary instead: it needs no client. With neither it is extractive."""
    model: str
    """The model that the client asks."""
    threshold: int | str
    """Tokens from which on the history is long, or a share of the window such as `"80%"`."""
    context_window: int
    """Tokens that the agent's model can see."""
    max_restore_files: int
    max_restore_tokens_per_file: int
    max_restore_tokens_total: int
    work_dir: str | os.PathLike[str]
    """The folder that files must be in to come back."""
    reads_file: Mapping[str, str | Sequence[str]]
    """Tools that read files besides `read_file`, by name, each with the field of its input that
    holds the path, or several of which the first that a call has is meant: `{"Read": "file_path"}`.
    """
    file_reader: FileReader
    """Reads the files that come back, instead of the disk. A file for which it raises is skipped,
    with a warning."""
    output_dir: str | os.PathLike[str]
    """The folder for the replaced messages."""


def compact_messages(
    messages: Sequence[Message], **options: Unpack[CompactOptions]
) -> CompactResult:
    """Replace the history by a summary once it is long, as the preset `context-compact` says.

    `options` are those of `CompactOptions`, and none is needed. The files that were read last come
    back, and the replaced messages are saved. The input is not changed, and no call knows of
    another.

    Raises `MessagesError` for what is no message list, `UnknownOptionError` for an option that
    does not exist, and `PolicyError` for a value that is not allowed. A summary that fails is not
    an error: the list stays as it is.
    """
    session = _session("compact_messages", options)
    return _compacted(session.apply(messages))


async def compact_messages_async(
    messages: Sequence[Message], **options: Unpack[CompactOptions]
) -> CompactResult:
    """`compact_messages`, awaiting an asynchronous client or summarizer, with files in a thread."""
    session = _session("compact_messages_async", options)
    return _compacted(await session.apply_async(messages))


def _session(function: str, options: CompactOptions) -> Session:
    check_options(function, options, CompactOptions.__annotations__, removed=_REMOVED)
    client = options.get("client")
    summarizer = options.get("summarizer") or summarizer_for(
        "extractive" if client is None else "anthropic", client
    )
    policy = parsed_policy(PolicySource("compact_messages", json.dumps(_document(options))))
    return Session(
        policy,
        root=options.get("output_dir"),
        summarizer=summarizer,
        reader=options.get("file_reader"),
    )


def _document(options: CompactOptions) -> dict[str, Any]:
    """Return the preset with what the caller says over it, as a policy."""
    work_dir = options.get("work_dir")
    restore = {key: options.get(f"max_restore_{key[4:]}") for key in _LIMITS}
    document: dict[str, Any] = {
        "apiVersion": "policyctx/v1",
        "name": "compact-messages",
        "extends": "context-compact",
        "model": _given(context_window=options.get("context_window")),
        "store": {"state": "none"},
        "tools": _readers(options.get("reads_file", {})),
        "compaction": {
            "summary": _given(model=options.get("model")),
            "restore": _given(**restore, work_dir=None if work_dir is None else str(work_dir)),
        },
    }
    if "threshold" in options:
        gate = {"tokens": {"at_least": options["threshold"]}}
        document["steps"] = [{"name": "summarise", "do": "compact", "when": gate}]
    return document


def _readers(reads_file: Mapping[str, str | Sequence[str]]) -> dict[str, Any]:
    """Return the policy's `tools` for the tools that read files; raises `PolicyError`."""
    if not isinstance(reads_file, Mapping):
        place = Place("compact_messages, option reads_file")
        sentence = f"expected a map such as {{'Read': 'file_path'}}, got {reads_file!r}"
        raise PolicyError([Diagnostic(place, "PC103", sentence)])
    return {
        tool: {"reads_file": list(fields) if isinstance(fields, tuple) else fields}
        for tool, fields in reads_file.items()
    }


def _given(**values: object) -> dict[str, object]:
    return {key: value for key, value in values.items() if value is not None}


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
    """Yield why a history that is long enough was not replaced, if no attempt was made."""
    for outcome in result.plan.outcomes:
        stopped = outcome.stopped
        if stopped is not None and stopped.code != "not_summarised":
            yield f"not compacted: {stopped.sentence}"
