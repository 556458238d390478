"""Sessions as Pi records them: JSON lines under `~/.pi/agent/sessions/`.

Entries form a tree by `id` and `parentId`, older files have neither and are one line. A compaction
is a summary before the entries from the one that it names on; replies and results become messages
in the form of Anthropic's API, in which one message holds the results of one reply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.fields import Record, mapping, seconds, word
from policyctx.replay.readers.pi_messages import ROLES, billed, is_result, message_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.messages.items import Message
    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "pi"

# Settings of the session, notes of its user, and what extensions keep for themselves.
_NOT_PROMPT = frozenset({
    "custom", "label", "model_change", "session", "session_info", "thinking_level_change",
})  # fmt: skip


def recognises(record: object) -> bool:
    """Is this the head of a session, or a message as only Pi writes one."""
    if not isinstance(record, dict):
        return False
    if record.get("type") == "session":
        return "cwd" in record and "id" in record
    message = mapping(record.get("message"))
    return record.get("type") == "message" and (
        message.get("role") in ("toolResult", "bashExecution") or "stopReason" in message
    )


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session. A reply that was billed nothing, as an aborted one, has no usage."""
    session = _Session()
    for record in source.objects():
        session.read(record)
    if not session.builder.is_empty:
        yield session.builder.recording(source.name, FORMAT)


class _Entry:
    """A message, and the one before it in the context."""

    __slots__ = ("before", "message")

    def __init__(self, message: Message, before: _Entry | None) -> None:
        self.message = message
        self.before = before


class _Session:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._tip: _Entry | None = None
        self._entries: list[_Entry | None] = []
        """By their place in the file: where the context ends with each."""
        self._silent: set[int] = set()
        """The places of those that began no message."""
        self._by_id: dict[str, int] = {}

    def read(self, record: Record) -> None:
        self.builder.records += 1
        entry_id = word(record.get("id"))
        if entry_id in self._by_id:
            self.builder.pass_over("repeated entry")
            return
        kind, before = word(record.get("type")), self._before(record)
        entry = before
        if kind == "compaction":
            entry = self._compacted(record, before)
        elif message := message_of(record):
            entry = self._added(message, before, record)
        elif kind == "message" and word(mapping(record.get("message")).get("role")) in ROLES:
            self.builder.pass_over("empty reply")
        else:
            self.builder.pass_over(kind or "record without a type", known=kind in _NOT_PROMPT)
        if entry is before:
            self._silent.add(len(self._entries))
        if entry_id:
            self._by_id[entry_id] = len(self._entries)
        self._entries.append(entry)

    def _before(self, record: Record) -> _Entry | None:
        """Return what an entry follows: in place of one that the file lacks, what stands before."""
        newest = self._entries[-1] if self._entries else None
        if "parentId" not in record:
            return newest
        parent = record["parentId"]
        if parent is None:
            return None
        position = self._by_id.get(word(parent))
        return newest if position is None else self._entries[position]

    def _added(self, message: Message, before: _Entry | None, record: Record) -> _Entry:
        if before is not self._tip:
            self.builder.begin_anew(_path(before))
        if before is not None and is_result(message) and is_result(before.message):
            before.message["content"] += message["content"]
            self._tip = before
            return before
        if message["role"] == "assistant":
            reply = record["message"]
            model = word(reply.get("model")) or None
            self.builder.called(billed(reply), model, seconds(record.get("timestamp")))
        entry = self._tip = _Entry(message, before)
        self.builder.add(message)
        return entry

    def _compacted(self, record: Record, before: _Entry | None) -> _Entry:
        """Begin the context anew: with the summary, then what the compaction kept."""
        kept = self._kept(record, _path(before))
        summary: dict[str, Any] = {"role": "user", "content": word(record.get("summary"))}
        tip = _Entry(summary, None)
        for message in kept:
            tip = _Entry(message, tip)
        self.builder.begin_anew(_path(tip))
        self._tip = tip
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
