"""The messages that replace a history, its archive, and its statistics.

Source: PRD context-compact F-006, F-007 and F-009.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, Protocol

from policyctx.definitions import names
from policyctx.definitions.items import READ_TOOL, SEARCH_TOOL, Author, Item, Message, recall_tool
from policyctx.errors import MessagesError, SummaryError
from policyctx.messages.editing import SessionRequest
from policyctx.messages.json_text import compact_json, json_pieces
from policyctx.messages.shapes.built_in import BUILT_IN, Shapes
from policyctx.planning.superseded import PathFields
from policyctx.policy.models.compaction import CompactionWording, Summary
from policyctx.policy.values import parsed_template
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.usage import Usage, usage_of

_SCHEMA_VERSION = "1.0"
_PINNED = "## Pinned\n"


class FileReader(Protocol):
    """Reads the files of an agent's working directory; each call is made in a thread of its own.

    A file for which a method raises `UnrestorableFileError` or `OSError` is skipped with a warning
    that says why. Any other exception is a bug of the reader: the file is skipped as well, since
    the summary has been made and paid for, and the warning names the exception.
    """

    def resolve(self, path: str, work_dir: str) -> str:
        """Return the absolute path that `path` leads to, all symlinks followed.

        A relative path is one below `work_dir`. The file need not be there. Raises
        `UnrestorableFileError` for a path that leads out of `work_dir`, or that cannot be one.
        """

    def read(self, resolved: str, most_bytes: int) -> str:
        """Return the text of a file, by a path that `resolve` gave.

        Raises `UnrestorableFileError` for what is not there, no regular file, not readable, no
        UTF-8 text, or larger than `most_bytes`, which is then not read whole; an `OSError` of the
        disk or the network may pass through.
        """


class RestoredFile(NamedTuple):
    """A file that comes back."""

    path: str
    """As the newest call gave it."""
    content: str
    tokens: int
    """Of the content alone."""
    lines: tuple[tuple[int, int], ...] = ()
    """First and last number of each range of lines that comes back; empty for a whole file."""


@dataclass(frozen=True, slots=True)
class History:
    """The messages that a summary stands for, in order, in any shape."""

    messages: Sequence[Message]
    earlier: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By position in `messages`: the text of an earlier compaction's summary, without its wording.

    Such a message is known by this text alone; its own content is not read.
    """
    written: frozenset[int] = frozenset()
    """Positions of other messages that a compaction wrote: they say nothing new."""
    reads_file: Mapping[str, PathFields] = field(default_factory=lambda: MappingProxyType({}))
    """By exact name of a tool that reads a file: the field of its input that holds the path, or
    or several: the first one that a call has counts."""
    restored: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """By path: the contents that come back behind the summary, which need not repeat them."""
    shapes: Shapes = BUILT_IN
    """What reads the messages."""
    archive: str = ""
    """The name of the archive that the messages will be in; empty if there will be none."""
    author_of: Callable[[Item], Author | Literal[""]] = attrgetter("author")
    """Returns who wrote an item, empty if its kind says it; by default what the item says."""


@dataclass(frozen=True, slots=True)
class SummaryRequest:
    """What is to be summarised, and how."""

    history: History
    settings: Summary
    counter: TokenCounter
    pinned: tuple[str, ...] = ()
    """Texts that the summary must hold to the letter."""
    timeout: float | None = None
    """Seconds that this attempt may take; None for the policy's `timeout`."""
    in_place: SessionRequest | None = None
    """The session's own request, which asks for the summary under `summary.reuse_cache`."""
    rejected: tuple[SummaryError, ...] = ()
    """Why earlier answers to this request could not be used, oldest first."""
    bills: list[Usage] = field(default_factory=list, compare=False)
    """What `billed` was told; shared by all attempts at one summary."""

    @property
    def seconds(self) -> float:
        """Seconds that this attempt may take."""
        return self.settings.timeout.seconds if self.timeout is None else self.timeout

    def billed(self, usage: object) -> None:
        """Count a model call into the statistics of the compaction.

        `usage` is the response's, of any shape that `Session.observe` takes. Raises `UsageError`
        for anything else.
        """
        self.bills.append(usage_of(usage))


class Verified(NamedTuple):
    """A summary that was compared with the extractive one."""

    text: str
    appended: int
    """Lines that the summary lacked and that were appended."""
    left_out: int
    """Lines that it lacked, and for which there was no room."""


@dataclass(frozen=True, slots=True)
class SummaryUsage:
    """What the model calls for a summary used, those of failed attempts included.

    All tokens are 0 if no model was asked, as by the extractive summarizer, or if the provider did
    not say what it billed.
    """

    attempts: int = 0
    """Attempts at the summary; 0 if none was asked for."""
    input_tokens: int = 0
    """Neither read from the prompt cache nor written to it."""
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    dollars: float | None = None
    """By `summary.price`, else `model.price`; None without prices or without a model call."""
    appended_lines: int | None = None
    """Lines that a model's summary lacked and that the extractive summary appended to it; None if
    the summary was not verified."""


@dataclass(frozen=True, slots=True)
class CompactStats:
    """Counts of one compaction; all 0 if none was made. Tokens are those of the messages.

    `summary` holds what the provider billed for the summary, also if none was accepted.
    """

    original_token_count: int = 0
    compacted_token_count: int = 0
    compacted_message_count: int = 0
    """Messages that the summary stands for."""
    retained_message_count: int = 0
    """Messages that stay as they were: the head, and what the settings of `compaction` keep."""
    restored_file_count: int = 0
    restored_token_count: int = 0
    """Of the files' contents alone."""
    summary: SummaryUsage = SummaryUsage()

    @property
    def compaction_ratio(self) -> float:
        """What is left of the tokens: 0.25 is a quarter; 0 where nothing was compacted."""
        if not self.original_token_count:
            return 0.0
        return self.compacted_token_count / self.original_token_count


def archive_name(number: int) -> str:
    """Return what the archive of the session's first, second, … compaction is called."""
    return f"compaction-{number:03}"


@dataclass(frozen=True, slots=True)
class Archive:
    """The document, written piece by piece; `archived_messages` reads it back.

    A message object of a provider's SDK is written as a request would have it, an object of a
    framework as the plain values that its shape gives.
    """

    number: int
    messages: Sequence[Message]
    shapes: Shapes = BUILT_IN

    def __iter__(self) -> Iterator[str]:
        """Yield the text of the document in pieces."""
        empty = {"schema_version": _SCHEMA_VERSION, "compaction": self.number, "messages": []}
        yield compact_json(empty).removesuffix("]}")
        for i, message in enumerate(self.messages):
            if i:
                yield ","
            yield from json_pieces(self.shapes.document(message))
        yield "]}"


def messages_text(text: str) -> str:
    """Return the part of a document that holds the messages, a JSON array, byte for byte.

    Raises `MessagesError` for another text.
    """
    return compact_json(archived_messages(text))


def archived_messages(text: str) -> list[dict[str, Any]]:
    """Return the messages of a document, as they were. Raises `MessagesError` for another text."""
    try:
        messages = json.loads(text)["messages"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise MessagesError("this is not an archive of a compaction") from error
    if not isinstance(messages, list):
        raise MessagesError("this is not an archive of a compaction")
    return messages


class WrittenMessage(NamedTuple):
    """One message that a compaction wrote, with its item type; a mere reply has none."""

    role: Literal["user", "assistant"]
    text: str
    item_type: str = ""
    path: str = ""
    """Of the file that it brings back."""


def how_to_search(archive_path: str, read_tool: str) -> str:
    """Return the paragraph that says where the replaced messages are; "" without an archive.

    `read_tool` is the name of a tool that reads files of the store, empty if none is known.
    """
    if not archive_path:
        return ""
    if recall_tool(read_tool) == READ_TOOL:
        how = f"the tool {read_tool.removesuffix(READ_TOOL)}{SEARCH_TOOL}."
    else:
        cat = "zstdcat" if archive_path.endswith(".zst") else "cat"
        found = r"'.\{0,200\}WORD.\{0,200\}'"
        how = f"`{cat} {shlex.quote(archive_path)} | grep -o {found}`"
    return names.SEARCH_ARCHIVE.format(path=archive_path, how=how)


def with_pinned(summary: str, texts: Sequence[str]) -> str:
    """Return the summary with a section for those of the pinned texts that it does not hold."""
    missing = dict.fromkeys(text for text in texts if text not in summary)
    section = _PINNED + "\n\n".join(missing) if missing else ""
    return "\n\n".join(filter(None, (summary, section)))


def without_pinned(summary: str, texts: Sequence[str]) -> str:
    """Return a summary without the section that `with_pinned` wrote at its end.

    Whoever summarises it again neither repeats the pinned texts nor tells them in other words.
    """
    if not texts:
        return summary
    start = summary.rfind(_PINNED)
    if start < 0:
        return summary
    left = summary[start:].removeprefix(_PINNED)
    for text in sorted(texts, key=len, reverse=True):
        left = left.replace(text, "", 1)
    return summary[:start].rstrip() if not left.strip() else summary


def assembled(
    summary: str,
    files: Sequence[RestoredFile],
    wording: CompactionWording,
    *,
    archive_path: str = "",
    read_tool: str = "",
    before_assistant: bool = False,
    is_all_told: bool = False,
) -> list[WrittenMessage]:
    """Return the summary and the files that came back, each with the assistant's reply to it.

    `is_all_told` says that the summary is left even where the wording does not show it.
    `before_assistant` says that an assistant's message follows: the last reply is left out then,
    so that the roles go on taking turns.
    """
    text = parsed_template(wording.summary, names.SUMMARY_FIELDS)
    search = how_to_search(archive_path, read_tool)
    values = {"summary": summary, "archive_path": archive_path, "how_to_search": search}
    rendered = text.render(values)
    if summary and is_all_told and "summary" not in text.fields:
        rendered = f"{rendered}\n\n{summary}"
    found = [WrittenMessage("user", rendered, "compaction_summary")]
    found += _reply(wording.summary_reply)
    restored = parsed_template(wording.restored, names.RESTORED_FIELDS)
    for file in files:
        rendered = restored.render({"path": file.path, "content": file.content})
        found.append(WrittenMessage("user", rendered, "restored_file", file.path))
        found += _reply(wording.restored_reply)
    if before_assistant and found[-1].role == "assistant":
        found.pop()
    return found


def _reply(text: str) -> list[WrittenMessage]:
    return [WrittenMessage("assistant", text)] if text else []
