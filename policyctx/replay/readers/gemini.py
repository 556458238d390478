"""Sessions as Gemini CLI records them: a document with the messages, later JSON lines.

A reply carries its calls with their results. Its `thoughts` are summaries for the screen and are
not sent again. In lines, a message is written again whenever something joins it, and the newest
version counts; what changed further back is written as a new list of all messages.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any

from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.fields import Record, mapping, seconds, word
from policyctx.replay.readers.gemini_messages import answered_by, billed, prompt_of, reply_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.messages.items import Message
    from policyctx.replay.readers.source import Source
    from policyctx.replay.recording import Recording

FORMAT = "gemini-cli"

_HEAD = {"sessionId", "projectHash"}
_MESSAGES = ("user", "gemini")
# What the program tells its user.
_NOT_PROMPT = ("info", "error", "warning")


def recognises(record: object) -> bool:
    """Is this the head of a session, with the messages in it or before them."""
    return isinstance(record, dict) and record.keys() >= _HEAD


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session."""
    session = _Session()
    for record in source.elements("messages"):
        session.read(mapping(record))
    if not session.builder.records:
        for record in source.objects():
            session.read(record)
    session.settle()
    if not session.builder.is_empty:
        yield session.builder.recording(source.name, FORMAT)


class _Session:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._turns: dict[str, list[Message]] = {}
        """By the id of a record: what it put into the context, which is all of them in order."""
        self._newest: Record | None = None
        """A message of which a newer version may come."""
        self._answered: set[str] = set()

    def read(self, record: Record) -> None:
        self.builder.records += 1
        kind = word(record.get("type"))
        changed = mapping(record.get("$set"))
        if kind in _MESSAGES:
            self._add(record)
        elif "$rewindTo" in record:
            self._rewind(word(record["$rewindTo"]))
        elif isinstance(changed.get("messages"), list):
            self._replace(changed["messages"])
        else:
            known = kind in _NOT_PROMPT or "$set" in record or record.keys() >= _HEAD
            self.builder.pass_over(kind or "record about the session", known=known)

    def _add(self, record: Record) -> None:
        before = self._newest
        if before is not None and word(before.get("id")) == word(record.get("id")) != "":
            self.builder.pass_over("earlier version of a message")
        else:
            self.settle()
        self._newest = record

    def settle(self) -> None:
        """Put the newest message into the context: no newer version of it comes."""
        record, self._newest = self._newest, None
        if record is None:
            return
        key, messages = self._key(record), self._messages(record)
        if key in self._turns:
            self.builder.pass_over("earlier version of a message")
            if messages != self._turns[key]:
                self._turns[key] = messages
                self.builder.begin_anew(self._context())
            return
        if record.get("type") == "gemini":
            model = word(record.get("model")) or None
            self.builder.called(billed(record), model, seconds(record.get("timestamp")))
        self._turns[key] = [message for message in messages if self.builder.add(message)]

    def _rewind(self, to: str) -> None:
        """Take back a message and all after it; all there is when it is unknown."""
        self.settle()
        keys = list(self._turns)
        for key in keys[keys.index(to) if to in keys else 0 :]:
            del self._turns[key]
        self.builder.begin_anew(self._context())

    def _replace(self, records: list[Any]) -> None:
        """Take a new list of all messages, which begins the context anew where it differs."""
        self.settle()
        known, self._turns, self._answered = self._turns, {}, set()
        for record in map(mapping, records):
            key, messages = self._key(record), self._messages(record)
            self._turns[key] = known[key] if known.get(key) == messages else messages
        old, new = self.builder.context, self._context()
        if len(new) >= len(old) and all(map(is_, old, new)):
            for message in new[len(old) :]:
                self.builder.add(message)
        else:
            self.builder.begin_anew(new)

    def _key(self, record: Record) -> str:
        return word(record.get("id")) or f"#{len(self._turns)}"

    def _context(self) -> list[Message]:
        return [message for messages in self._turns.values() for message in messages]

    def _messages(self, record: Record) -> list[Message]:
        if record.get("type") == "gemini":
            self._answered.update(answered_by(record))
            return reply_of(record)
        return prompt_of(record, self._answered) if record.get("type") == "user" else []
