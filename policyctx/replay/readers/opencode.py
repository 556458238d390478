"""Sessions of OpenCode and of Kilo's command line, which is made of it: its database, or an export.

Both hold messages and their parts.

A part of the type `tool` holds a call and its result. A message of the assistant has one step or
several, and each is a model call with a bill of its own. A compaction is a message of the user with
a part of that type, and the summary that follows it. A result that OpenCode has cleared since then
is marked with the time of that, and still recorded whole.
"""

from collections.abc import Iterator

from policyctx.definitions.items import Message, written_by
from policyctx.replay.readers.building import RecordingBuilder, thinking, tool_result, tool_use
from policyctx.replay.readers.home import Home
from policyctx.replay.readers.source import Database, Source, value_of
from policyctx.replay.readers.values import Record, counts, mapping, media, objects, seconds, word
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage

FORMAT = "opencode"
_DATA = "XDG_DATA_HOME", "~/.local/share"
HOMES = (
    Home("~/.local/share/opencode", "opencode*.db", *_DATA),
    Home("~/.local/share/kilo", "kilo*.db", *_DATA, agent="kilo-code"),
)

_CLEARED = "[Old tool result content cleared]"
_INTERRUPTED = "[Tool execution was interrupted]"
_ASKED = "What did we do so far?"
# Parts that no model is sent.
_NOT_PROMPT = frozenset({
    "agent", "compaction", "patch", "retry", "snapshot", "step-finish", "step-start", "subtask",
})  # fmt: skip
# A part with what was billed is short.
_SHORT = """CASE WHEN length(data) < 2000 THEN data ELSE '{"type": "text"}' END AS data"""


def recognises(record: object) -> bool:
    """Is this the outline of an export, or of the database."""
    fields = mapping(record)
    if fields.keys() >= {"session", "message", "part"} and not any(fields.values()):
        return True
    first = next(iter(objects(fields.get("messages"))), {})
    head = mapping(first.get("info"))
    return "info" in fields and isinstance(first.get("parts"), list) and "sessionID" in head


def recordings(source: Source) -> Iterator[Recording]:
    """Yield the sessions; of an export, its sub-sessions are in files of their own."""
    yield from _sessions(source, "data")


def glances(source: Source) -> Iterator[Recording]:
    """Yield the sessions; of those in the database, without the large parts."""
    yield from _sessions(source, _SHORT)


def _sessions(source: Source, part: str) -> Iterator[Recording]:
    if isinstance(source, Database):
        names = source.names()
        for row in source.rows("SELECT * FROM session ORDER BY rowid"):
            session = _StoredSession(word(row.get("directory")))
            for info, parts in _stored(source, row["id"], part):
                session.read(info, parts)
            yield from session.builder.found(names.of(row["id"]), FORMAT)
        return
    session = _StoredSession(word(source.field("info", "directory")))
    for message in map(mapping, source.elements("messages")):
        session.read(mapping(message.get("info")), objects(message.get("parts")))
    yield from session.builder.found(source.name, FORMAT)


def _stored(source: Database, session: object, part: str) -> Iterator[tuple[Record, list[Record]]]:
    """Yield the messages of a session in the database, each with its parts."""
    of_message = f"SELECT {part} FROM part WHERE message_id = ? ORDER BY id"  # noqa: S608 - our own
    asked = "SELECT id, data FROM message WHERE session_id = ? ORDER BY time_created, id"
    for row in source.rows(asked, session):
        parts = (_object(part["data"], source) for part in source.rows(of_message, row["id"]))
        info = {**_object(row["data"], source), "id": row["id"]}
        yield info, [part for part in parts if part]


def _object(text: str | bytes, source: Source) -> Record:
    try:
        return mapping(value_of(text))
    except ValueError:
        source.pass_over("row that is not JSON")
        return {}


class _StoredSession:
    def __init__(self, project: str) -> None:
        self.builder = RecordingBuilder()
        self.builder.project = project
        self._open: list[Record] = []
        """The results of calls that were running when their message ended."""
        self._cleared: list[tuple[float, str]] = []
        """When a result was cleared that is still whole in the list, and the id of its call."""
        self._starts: dict[str, int] = {}
        """By the id of a message: how many messages of the list come before it."""
        self._tail = slice(0)
        """What stays beside the summary that comes next."""

    def read(self, info: Record, parts: list[Record]) -> None:
        self.builder.records += 1
        for part in parts:
            if word(part.get("type")) not in _NOT_PROMPT | {"file", "reasoning", "text", "tool"}:
                self.builder.miss(f"part of the type {part.get('type')}", part)
        role = info.get("role")
        if role not in ("user", "assistant"):
            self.builder.pass_over(f"{role} message", known=False, record=[info, parts])
            return
        if self._open and (role == "user" or any(map(_is_sent, parts))):
            self.builder.add({"role": "user", "content": self._open})
            self._open = []
        count = len(self.builder.context)
        self._starts.setdefault(word(info.get("id")), count)
        if role == "assistant":
            self._reply(info, parts)
        elif asked := [part for part in parts if part.get("type") == "compaction"]:
            first = self._starts.get(word(asked[0].get("tail_start_id")), count)
            self._tail = slice(first, count)
            self.builder.pass_over("request for a compaction")
        elif content := [block for part in parts for block in _said(part)]:
            self.builder.add({"role": "user", "content": content})
        else:
            self.builder.pass_over("empty message")

    def _reply(self, info: Record, parts: list[Record]) -> None:
        at = seconds(mapping(info.get("time")).get("created"))
        steps = list(_steps(info, parts))
        for content, usage in steps:
            self._clear(at)
            self.builder.called(usage, word(info.get("modelID")) or None, at)
            self._add(content)
        if not steps:
            self.builder.pass_over("empty reply")
        elif info.get("summary") is True or info.get("mode") == "compaction":
            summary = [block for content, _ in steps for part in content for block in _said(part)]
            asked = written_by("program", {"role": "user", "content": _ASKED})
            said = written_by("summary", {"role": "assistant", "content": summary})
            tail, self._tail = self._tail, slice(0)
            context = [asked, said, *self.builder.context[tail]]
            self.builder.begin_anew(context, why="compaction")
            left = (tail.start or 0) - 2
            self._starts = {one: at - left for one, at in self._starts.items() if at > left + 1}

    def _add(self, parts: list[Record]) -> None:
        """Add what the model said in a step, and the results of its calls."""
        calls = [part for part in parts if part.get("type") == "tool"]
        if said := [block for part in parts for block in _said(part)]:
            self.builder.add({"role": "assistant", "content": said})
        results: list[Record] = []
        for call in calls:
            state = mapping(call.get("state"))
            is_open = state.get("status") not in ("completed", "error")
            (self._open if is_open else results).append(_result(call, state))
            if (cleared := seconds(mapping(state.get("time")).get("compacted"))) is not None:
                self._cleared.append((cleared, word(call.get("callID"))))
        if results:
            self.builder.add({"role": "user", "content": results})

    def _clear(self, at: float | None) -> None:
        """Put a short text in the place of results that were cleared before a call."""
        ids = {call_id for cleared, call_id in self._cleared if at is not None and cleared <= at}
        if not ids:
            return
        self._cleared = [one for one in self._cleared if one[1] not in ids]
        context = [_without(message, ids) for message in self.builder.context]
        self.builder.begin_anew(context, why="change")


def _is_sent(part: Record) -> bool:
    return word(part.get("type")) not in _NOT_PROMPT


def _steps(info: Record, parts: list[Record]) -> Iterator[tuple[list[Record], Usage | None]]:
    """Yield the parts of each step, and what was billed for it; one step by default."""
    content: list[Record] = []
    ends = [part for part in parts if part.get("type") == "step-finish"]
    for part in parts:
        if _is_sent(part):
            content.append(part)
        elif part.get("type") == "step-finish":
            # The message has the bill of its last step, and some versions only that.
            yield content, _usage(part.get("tokens")) or _usage(info.get("tokens"))
            content = []
    if content:
        yield content, None if ends else _usage(info.get("tokens"))


def _usage(fields: object) -> Usage | None:
    """Return what was billed: the input is without what was cached, the output without thoughts."""
    given, *outputs = counts(fields, "input", "output", "reasoning")
    read, written = counts(mapping(fields).get("cache"), "read", "write")
    billed = Usage(given, read, written, sum(outputs))
    return billed if billed.prompt else None


def _said(part: Record) -> Iterator[Record]:
    """Yield the block that a part is to the model, if it is one."""
    kind, text = part.get("type"), word(part.get("text"))
    if kind == "text" and text and part.get("ignored") is not True:
        block: Record = {"type": "text", "text": text}
        yield written_by("program", block) if part.get("synthetic") is True else block
    elif kind == "reasoning" and text:
        yield thinking(text)
    elif kind == "tool":
        asked = mapping(part.get("state")).get("input")
        yield tool_use(part.get("callID"), part.get("tool"), mapping(asked))
    elif kind == "file":
        yield from _media(part)


def _media(part: Record) -> Iterator[Record]:
    """Yield a file that is in the prompt; the text of a text file is in a part of its own."""
    media_type = word(part.get("mime"))
    head, comma, data = word(part.get("url")).partition(",")
    if comma and head.endswith(";base64") and not media_type.startswith("text/"):
        yield media(media_type, data)


def _result(call: Record, state: Record) -> Record:
    status = state.get("status")
    failed = word(state.get("error")) if status == "error" else _INTERRUPTED
    text = word(state.get("output")) if status == "completed" else failed
    media = [block for part in objects(state.get("attachments")) for block in _media(part)]
    content = [{"type": "text", "text": text}, *media] if media else text
    return tool_result(call.get("callID"), content, is_error=status != "completed")


def _without(message: Message, ids: set[str]) -> Message:
    """Return a message with the results of these calls cleared; the same one without any."""
    content = message["content"]
    if not any(block.get("tool_use_id") in ids for block in objects(content)):
        return message
    blocks = [
        {**block, "content": _CLEARED} if block.get("tool_use_id") in ids else block
        for block in content
    ]
    return {**message, "content": blocks}
