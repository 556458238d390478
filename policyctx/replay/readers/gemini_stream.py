"""What `gemini --output-format stream-json` prints.

Texts of a reply come in pieces, its calls after them, and the results after the calls, in the form
in which the screen shows them. Only the sum of a run says what was billed.
"""

from collections.abc import Iterator

from policyctx.replay.readers.building import RecordingBuilder, tool_result, tool_use
from policyctx.replay.readers.gemini import with_cached
from policyctx.replay.readers.source import Source
from policyctx.replay.readers.values import Record, mapping, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "gemini-stream-json"
_COUNTS = ("input_tokens", "cached", "output_tokens", "total_tokens")

# What a line has by its type, if no other format has the like.
_KEYS = {
    "init": {"session_id", "model"},
    "tool_result": {"tool_id", "status"},
    "tool_use": {"tool_id", "tool_name", "parameters"},
}


def recognises(record: object) -> bool:
    """Is this the first line of a run, a call or its result."""
    fields = mapping(record)
    return fields.keys() >= _KEYS.get(word(fields.get("type")), {""})


def recordings(source: Source) -> Iterator[Recording]:
    """Yield each session; of several runs in a file, those of one session are one recording."""
    streams: dict[str, _Stream] = {}
    session = ""
    for record in source.objects():
        session = word(record.get("session_id")) or session
        streams.setdefault(session, _Stream()).read(record)
    for position, (session, stream) in enumerate(streams.items()):
        stream.join()
        if stream.sum.prompt:
            stream.builder.bill_together(stream.sum)
        name = f"{source.name}#{session}" if position else source.name
        yield from stream.builder.found(name, FORMAT)


class _Stream:
    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self.sum = Usage(0)
        """What was billed for all runs."""
        self._model: str | None = None
        self._reply: list[Record] | None = None
        """The blocks of the reply that is being written."""
        self._pieces: list[str] = []
        """Of its last text."""

    def read(self, record: Record) -> None:
        self.builder.records += 1
        if record.get("type") != "message" or record.get("role") != "assistant":
            self.join()
        kind, role = word(record.get("type")), record.get("role")
        if kind == "message" and role == "assistant":
            self._say({"type": "text", "text": word(record.get("content"))}, record)
        elif kind == "tool_use":
            asked = mapping(record.get("parameters"))
            self._say(tool_use(record.get("tool_id"), record.get("tool_name"), asked), record)
        elif kind == "tool_result":
            self._reply = None
            self.builder.extend("user", [_result(record)])
        elif kind == "message" and role == "user":
            self._reply = None
            self.builder.add({"role": "user", "content": word(record.get("content"))})
        else:
            self._reply = self._reply if kind == "error" else None
            self._model = word(record.get("model")) or self._model
            self.sum += with_cached(record.get("stats"), *_COUNTS) or Usage(0)
            known = kind in ("error", "init", "result")
            self.builder.pass_over(kind or "record without a type", known=known, record=record)

    def _say(self, block: Record, record: Record) -> None:
        if self._reply is None:
            self._reply = [block]
            self.builder.called(None, self._model, seconds(record.get("timestamp")))
            self.builder.add({"role": "assistant", "content": self._reply})
        elif block["type"] != "text" or self._reply[-1]["type"] != "text":
            self._reply.append(block)
        if block["type"] == "text":
            self._pieces.append(block["text"])

    def join(self) -> None:
        """Put the pieces of the last text together."""
        if self._reply is not None and self._pieces:
            self._reply[-1]["text"] = "".join(self._pieces)
        self._pieces = []


def _result(record: Record) -> Record:
    said = word(record.get("output")) or word(mapping(record.get("error")).get("message"))
    return tool_result(record.get("tool_id"), said, is_error=record.get("status") == "error")
