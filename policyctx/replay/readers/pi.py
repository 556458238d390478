"""Sessions of Pi: JSON lines under `~/.pi/agent/sessions/`.

Entries form a tree by `id` and `parentId`; older files have neither and are one branch. A
compaction is a summary followed by the entries from the one that it names. Replies and results
become messages of Anthropic's API, in which one message holds the results of one reply.

A run (a prompt and its replies, up to one without calls) keeps the list that it began with. A
compaction that is written during a run counts from the next run on; the time at which a reply began
shows this.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from policyctx.definitions.items import Author, Message, written_by
from policyctx.replay.readers.building import RecordingBuilder, thinking, tool_result, tool_use
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, media, objects, seconds, word
from policyctx.replay.recording import Anew, Recording
from policyctx.tokens.usage import Usage

ROLES = ("user", "assistant", "toolResult", "bashExecution", "custom")
FORMAT = "pi"
HOMES = (Home("~/.pi/agent/sessions", "**/*.jsonl", "PI_CODING_AGENT_DIR", "~/.pi/agent"),)

# Settings of the session, notes of its user, and what extensions keep for themselves.
_NOT_PROMPT = frozenset({
    "custom", "label", "model_change", "session", "session_info", "thinking_level_change",
})  # fmt: skip


def message_of(record: Record) -> Message | None:
    """Return the message that an entry is; None for what is no message, or an empty one."""
    kind = record.get("type")
    if kind == "custom_message":
        return _by("program", _said("user", record.get("content")))
    if kind == "branch_summary":
        return _by("summary", _said("user", record.get("summary")))
    message = mapping(record.get("message"))
    return _message(message) if kind == "message" and message.get("role") in ROLES else None


def _message(message: Record) -> Message | None:
    role = message["role"]
    if role == "toolResult":
        return {"role": "user", "content": [_result(message)]}
    if role == "bashExecution":
        hidden = message.get("excludeFromContext")
        return None if hidden else _by("program", _said("user", _ran(message)))
    said = _said("assistant" if role == "assistant" else "user", message.get("content"))
    return _by("program", said) if role == "custom" else said


def _billed(reply: Record) -> Usage | None:
    """Return the usage of a reply, None where nothing was billed."""
    usage = Usage(*counts(reply.get("usage"), "input", "cacheRead", "cacheWrite", "output"))
    return usage if usage.prompt else None


def is_result(message: Message) -> bool:
    """Whether a message holds results of calls and nothing else."""
    content = message["content"]
    return isinstance(content, list) and content[0].get("type") == "tool_result"


def _by(author: Author, message: Message | None) -> Message | None:
    return None if message is None else written_by(author, message)


def _said(role: str, content: object) -> Message | None:
    blocks = [_block(block) for block in objects(content)] if isinstance(content, list) else content
    return {"role": role, "content": blocks} if blocks and isinstance(blocks, str | list) else None


def _block(block: Record) -> Record:
    kind = block.get("type")
    if kind == "toolCall":
        return tool_use(block.get("id"), block.get("name"), block.get("arguments"))
    if kind == "thinking":
        return thinking(block.get("thinking"), block.get("thinkingSignature"))
    if kind == "image":
        return {**media(block.get("mimeType"), block.get("data")), "type": kind}
    return block


def _result(message: Record) -> Record:
    content = message.get("content")
    blocks = content if isinstance(content, str) else [_block(one) for one in objects(content)]
    is_error = message.get("isError") is True
    return tool_result(message.get("toolCallId"), blocks, is_error=is_error)


def _ran(message: Record) -> str:
    """Show a command that the user ran, with its output."""
    output = word(message.get("output"))
    lines = [f"`{word(message.get('command'))}` was run.", output or "It printed nothing."]
    if code := message.get("exitCode"):
        lines.append(f"Its exit code was {code}.")
    return "\n".join(lines)


def recognises(record: object) -> bool:
    """Is this the head of a session, or a message as only Pi writes one."""
    fields = mapping(record)
    if fields.get("type") == "session":
        return "cwd" in fields and "id" in fields
    message = mapping(fields.get("message"))
    return fields.get("type") == "message" and (
        message.get("role") in ("toolResult", "bashExecution") or "stopReason" in message
    )


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session. A reply that was billed nothing, as an aborted one, has no usage."""
    session = _PiSession()
    for record in source.objects():
        session.read(record)
    session.end()
    yield from session.builder.found(source.name, FORMAT)


class _Entry(NamedTuple):
    """A message, and the one before it in the context."""

    message: Message
    before: _Entry | None


class _PiSession:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._tip: _Entry | None = None
        self._entries: list[_Entry | None] = []
        """By their place in the file: where the context ends with each."""
        self._silent: set[int] = set()
        """The places of those that began no message."""
        self._by_id: dict[str, int] = {}
        self._compaction: _Entry | None = None
        """Where the context ends with a compaction that the builder does not know of yet."""
        self._compacted_at: float | None = None
        self._run_has_ended = True
        self._bill = 0
        """What the last call was billed, in tokens of its prompt."""
        self._is_behind = False
        """Whether a run goes on with the list from before that compaction."""

    def read(self, record: Record) -> None:
        self.builder.records += 1
        entry_id = word(record.get("id"))
        if entry_id in self._by_id:
            self.builder.pass_over("repeated entry")
            return
        kind, before = word(record.get("type")), self._before(record)
        self.builder.project = self.builder.project or word(record.get("cwd"))
        entry = before
        if kind == "compaction":
            entry = self._compacted(record, before)
        elif message := message_of(record):
            entry = self._added(message, before, record)
        elif kind == "message" and word(mapping(record.get("message")).get("role")) in ROLES:
            self.builder.pass_over("empty reply")
        else:
            what = kind or "record without a type"
            self.builder.pass_over(what, known=kind in _NOT_PROMPT, record=record)
        if entry is before:
            self._silent.add(len(self._entries))
        if entry_id:
            self._by_id[entry_id] = len(self._entries)
        self._entries.append(entry)

    def _before(self, record: Record) -> _Entry | None:
        """Return what an entry follows: in place of one that the file lacks, what comes before."""
        newest = self._entries[-1] if self._entries else None
        parent = record.get("parentId", "")
        if parent is None:
            return None
        position = self._by_id.get(word(parent))
        return newest if position is None else self._entries[position]

    def end(self) -> None:
        """Begin the context anew where no call was made after a compaction."""
        if self._compaction is not None:
            context = _path(self._tip if self._is_behind else self._compaction)
            self.builder.begin_anew(context, why="compaction")

    def _added(self, message: Message, before: _Entry | None, record: Record) -> _Entry:
        reply = record["message"] if message["role"] == "assistant" else None
        usage = None if reply is None else _billed(reply)
        # No list that only grows is billed less.
        is_new = self._run_has_ended or (usage is not None and usage.prompt < self._bill)
        if reply is not None and before is self._compaction and self._was_begun_before(reply):
            self._is_behind = True
        elif before is not self._tip or (self._is_behind and is_new):
            self._begin_anew(before)
        if before is not None and is_result(message) and is_result(before.message):
            before.message["content"] += message["content"]
            self._tip = before
            return before
        if reply is not None:
            model = word(reply.get("model")) or None
            ids, at = (record.get("id"), record.get("timestamp")), record.get("timestamp")
            call_id = " ".join(map(str, ids)) if all(ids) else ""
            self.builder.called(usage, model, seconds(at), call_id=call_id)
            self._bill = usage.prompt if usage is not None else self._bill
            self._run_has_ended = reply.get("stopReason") != "toolUse"
        entry = self._tip = _Entry(message, before)
        self.builder.add(message)
        return entry

    def _begin_anew(self, before: _Entry | None) -> None:
        why: Anew = "rewind" if self._compaction is None else "compaction"
        self.builder.begin_anew(_path(before), why=why)
        self._compaction, self._is_behind = None, False

    def _was_begun_before(self, reply: Record) -> bool:
        """Whether a reply to a compacted list was begun before the compaction was written."""
        begun = seconds(reply.get("timestamp"))
        return begun is not None and self._compacted_at is not None and begun < self._compacted_at

    def _compacted(self, record: Record, before: _Entry | None) -> _Entry:
        """Return the new context: the summary, then what the compaction kept."""
        kept = self._kept(record, _path(before))
        summary = {"role": "user", "content": word(record.get("summary"))}
        tip = _Entry(written_by("summary", summary), None)
        for message in kept:
            tip = _Entry(message, tip)
        self._compaction, self._is_behind = tip, False
        self._compacted_at = seconds(record.get("timestamp"))
        return tip

    def _kept(self, record: Record, context: list[Message]) -> list[Message]:
        """Return what a compaction kept: from the entry that it names on, or from the next message.

        Nothing, where the context lacks the entry.
        """
        position = record.get("firstKeptEntryIndex")
        if not isinstance(position, int):
            position = self._by_id.get(word(record.get("firstKeptEntryId")), len(self._entries))
        if not 0 <= position < len(self._entries):
            return []
        entry = self._entries[position]
        if entry is None:
            return context
        places = [i for i, message in enumerate(context) if message is entry.message]
        return context[places[0] + (position in self._silent) :] if places else []


def _path(entry: _Entry | None) -> list[Message]:
    path: list[Message] = []
    while entry is not None:
        path.append(entry.message)
        entry = entry.before
    return path[::-1]
