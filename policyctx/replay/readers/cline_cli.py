"""Sessions of Cline since version 3 of its command line: a document with all messages, and bills.

The newest list that a compaction left is in `….compaction.json` beside it. Of earlier compactions
only the fallen bill tells; as many messages stay of each as of the newest.
"""

from collections.abc import Iterator

from policyctx.definitions.items import Message, written_by
from policyctx.messages.json_text import compact_json
from policyctx.replay.readers.building import RecordingBuilder
from policyctx.replay.readers.chat import miss_unknown
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, counts, mapping, number, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "cline-cli"
HOMES = (
    Home("~/.cline/data/sessions", "*/*.messages.json", "CLINE_DATA_DIR", "~/.cline/data", "cline"),
)
# A bill that is smaller than this share of the one before is of another list.
_FALLEN = 0.9
_TYPED = '<user_input mode="'
_FOLDER = "Working Directory: "


def recognises(record: object) -> bool:
    """Is this the outline of a session."""
    fields = mapping(record)
    return fields.keys() >= {"messages", "sessionId", "agent", "origin"}


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the session; those of its team are in files of their own."""
    system = word(source.field("system_prompt"))
    session = _Session(system, source.beside(".messages.", ".compaction."))
    for record in source.elements("messages"):
        session.read(mapping(record))
    yield from session.builder.found(source.name, FORMAT)


class _Session:
    def __init__(self, system: str, compacted: Source | None) -> None:
        self.builder = RecordingBuilder()
        self.builder.project = system.partition(_FOLDER)[2].partition("\n")[0]
        self._system = system or None
        self._newest = [*map(mapping, compacted.elements("messages"))] if compacted else []
        self._at = number(compacted.field("source_message_count")) if compacted else 0
        """How many messages come before the call that the newest compaction was for."""
        self._bill = 0
        self._by_id: dict[str, Message] = {}

    def read(self, record: Record) -> None:
        place, self.builder.records = self.builder.records, self.builder.records + 1
        message = _message(record)
        if message["role"] == "assistant":
            self._call(record, is_at_newest=place == self._at > 0)
        if self.builder.add(message):
            miss_unknown(self.builder, message)
            self._by_id[word(record.get("id"))] = message

    def _call(self, record: Record, *, is_at_newest: bool) -> None:
        model, metrics = mapping(record.get("modelInfo")), mapping(record.get("metrics"))
        names = "inputTokens", "cacheReadTokens", "cacheWriteTokens", "outputTokens"
        prompt, read, written, output = counts(metrics, *names)
        if is_at_newest:
            ids = (word(one.get("id")) for one in self._newest)
            kept = zip(ids, self._newest, strict=True)
            context = [self._by_id.get(of) or _message(one) for of, one in kept]
            self.builder.begin_anew(context, why="compaction")
        elif self._newest and 0 < prompt < self._bill * _FALLEN:
            head, tail = self.builder.context[:1], self.builder.context[1:]
            self.builder.begin_anew([*head, *tail[1 - len(self._newest) :]], why="compaction")
        self._bill = prompt or self._bill
        bill = Usage.of_whole(prompt, read, written, output) if prompt else None
        at = seconds(record.get("ts"))
        self.builder.called(bill, word(model.get("id")) or None, at, self._system)


def _message(record: Record) -> Message:
    """Return a message as it is sent: without tags, and results of several commands as JSON."""
    blocks = [_block(block) for block in objects(record.get("content"))]
    message: Message = {"role": word(record.get("role")), "content": blocks}
    is_summary = mapping(record.get("metadata")).get("kind") == "compaction_summary"
    return written_by("summary", message) if is_summary else message


def _block(block: Record) -> Record:
    text, content = word(block.get("text")), block.get("content")
    if text.startswith(_TYPED):
        return {**block, "text": text.partition(">")[2].removesuffix("</user_input>")}
    if block.get("type") == "tool_result" and not all("type" in one for one in objects(content)):
        return {**block, "content": compact_json(content)}
    return block
