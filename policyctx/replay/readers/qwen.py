"""Sessions of Qwen Code: JSON lines under `~/.qwen/projects/`, with contents of Google's API.

Each record names the one before it, so a record that names an older one takes back what came after
that. A record that is written again under the same id has further parts. A compression holds the
whole list that it leaves.
"""

from collections.abc import Iterator
from typing import NamedTuple

from policyctx.definitions.items import Message, written_by
from policyctx.replay.readers.building import RecordingBuilder, thinking
from policyctx.replay.readers.chat import miss_unknown
from policyctx.replay.readers.gemini import blocks_of, with_cached
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, objects, seconds, word
from policyctx.replay.recording import Recording

FORMAT = "qwen-code"
HOMES = (Home("~/.qwen/projects", "*/chats/*.jsonl", "QWEN_HOME", "~/.qwen"),)

_MESSAGES = ("assistant", "tool_result", "user")
# Of the user's role, but written by the program.
_OF_PROGRAM = ("cron", "notification")
_COMPRESSED = "chat_compression"
_COUNTS = (
    "promptTokenCount", "cachedContentTokenCount", "candidatesTokenCount", "totalTokenCount",
)  # fmt: skip


def recognises(record: object) -> bool:
    """Is this a message as Qwen Code writes one."""
    fields = mapping(record)
    is_message = isinstance(mapping(fields.get("message")).get("parts"), list)
    return is_message and fields.keys() >= {"uuid", "parentUuid", "sessionId", "type"}


def recordings(source: Source) -> Iterator[Recording]:
    """Yield each session."""
    sessions: dict[str, _Chat] = {}
    of = ""
    for record in source.objects():
        of = word(record.get("sessionId")) or of
        sessions.setdefault(of, _Chat()).read(record)
    for position, (of, session) in enumerate(sessions.items()):
        name = f"{source.name}#{of}" if position else source.name
        yield from session.builder.found(name, FORMAT)


class _Place(NamedTuple):
    """What a record adds to the context, and the record that it follows."""

    before: str | None
    messages: list[Message]
    is_whole: bool = False
    """Whether that is the whole context."""


class _Chat:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._links: dict[str, _Place] = {}
        self._tip: str | None = None
        self._calls: dict[str, int] = {}

    def _call(self, record: Record) -> None:
        """Note the call that a reply begins, or what was billed for one that goes on."""
        uuid, billed = word(record.get("uuid")), with_cached(record.get("usageMetadata"), *_COUNTS)
        if uuid not in self._calls:
            model, at = word(record.get("model")) or None, seconds(record.get("timestamp"))
            self._calls[uuid] = self.builder.called(billed, model, at)
        elif billed is not None:
            self.builder.bill(self._calls[uuid], billed)

    def read(self, record: Record) -> None:
        self.builder.records += 1
        self.builder.project = self.builder.project or word(record.get("cwd"))
        kind, subtype = word(record.get("type")), word(record.get("subtype"))
        uuid, before = word(record.get("uuid")), word(record.get("parentUuid")) or None
        if kind not in (*_MESSAGES, "system") or not uuid:
            self.builder.pass_over(kind or "record without a type", known=False, record=record)
            return
        known = self._links.get(uuid)
        if known is None and before != self._tip and (before is None or before in self._links):
            self.builder.begin_anew(self._path(before), why="rewind")
        messages = known.messages if known else []
        if kind != "system":
            self._add(kind, record, messages)
        elif subtype == _COMPRESSED:
            kept = mapping(record.get("systemPayload")).get("compressedHistory")
            messages = [self._kept(content) for content in objects(kept)]
            messages[:1] = [written_by("summary", one) for one in messages[:1]]
            self.builder.begin_anew(messages, why="compaction")
        if kind == "system" or not objects(mapping(record.get("message")).get("parts")):
            self.builder.pass_over(f"{kind} {subtype}".strip())
        # Only a record that is known, so that no circle arises.
        after = before if before in self._links else None
        self._links[uuid] = known or _Place(after, messages, subtype == _COMPRESSED)
        self._tip = uuid

    def _path(self, uuid: str | None) -> list[Message]:
        """Return the context that a record ends."""
        found: list[list[Message]] = []
        while uuid is not None and uuid in self._links:
            link = self._links[uuid]
            found.append(link.messages)
            uuid = None if link.is_whole else link.before
        return [message for messages in reversed(found) for message in messages]

    def _add(self, kind: str, record: Record, messages: list[Message]) -> None:
        """Add what a record says to its message; a new one becomes the first of `messages`."""
        blocks = list(self._blocks(record.get("message")))
        if kind == "assistant":
            self._call(record)
        if not blocks:
            return
        if messages:
            messages[0]["content"].extend(blocks)
            return
        before = len(self.builder.context)
        if kind == "tool_result":
            self.builder.extend("user", blocks)
        else:
            said = {"role": "assistant" if kind == "assistant" else "user", "content": blocks}
            is_programs = record.get("subtype") in _OF_PROGRAM
            self.builder.add(written_by("program", said) if is_programs else said)
        messages += self.builder.context[before:]

    def _kept(self, content: Record) -> Message:
        role = "assistant" if content.get("role") == "model" else "user"
        return {"role": role, "content": list(self._blocks(content))}

    def _blocks(self, content: object) -> Iterator[Record]:
        for part in objects(mapping(content).get("parts")):
            (block,) = blocks_of([part])
            answer = mapping(mapping(part.get("functionResponse")).get("response"))
            if part.get("thought") is True:
                block = thinking(word(part.get("text")))
            elif "error" in answer and "output" not in answer:
                block["is_error"] = True
            miss_unknown(self.builder, {"content": [block]})
            if block.get("text") != "":
                yield block
