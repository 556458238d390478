"""What a file looks like that no reader takes, and how its agent's sessions can be read."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

from policyctx.replay.readers.building import Record, mapping, objects, word
from policyctx.replay.readers.source import Database, JsonLines, Opened, Source, ZipArchive

PAGE = "docs/recordings.md lists the formats, and shows how to add one"

_HEAD_BYTES = 2**20
_RECORDS = 50
# How many names of tables, keys and types are shown.
_SHOWN = 8
_PACKED = {
    b"\x1f\x8b": "a gzip file, which has to be unpacked first",
    b"\x28\xb5\x2f\xfd": "a Zstandard file, which has to be unpacked first",
    b"PAR1": "a Parquet file, whose rows have to be written as JSON lines first",
}


class Appearance(NamedTuple):
    """What a file looks like."""

    sentence: str
    is_seen: bool = True
    """Whether this says more than that it is some text or some JSON document."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """The beginning of a file."""

    text: str = ""
    tables: frozenset[str] = frozenset()
    records: int = 0
    keys: tuple[str, ...] = ()
    """Of the records, in the order in which they are found."""
    types: frozenset[str] = frozenset()
    """The values of `type`, also in the record of a provider inside a record."""
    first: Record | None = None


def appearance(opened: Opened, source: Source) -> Appearance:
    """Return what a file looks like."""
    with opened() as file:
        head = file.read(_HEAD_BYTES)
    for magic, what in _PACKED.items():
        if head.startswith(magic):
            return Appearance(what)
    if isinstance(source, Database):
        sample = _Sample(tables=frozenset(source.tables))
        return Appearance(
            f"a SQLite database{_with('table', sorted(source.tables))}{_named(sample)}"
        )
    sample = _sampled(head.decode(errors="replace"), source)
    agent, keys = _named(sample), _with("key", sample.keys)
    if isinstance(source, ZipArchive):
        return Appearance(f"an archive{keys}{agent}", is_seen=bool(agent))
    if not sample.records:
        is_binary = b"\0" in head
        what = "a binary file" if is_binary else "a text"
        return Appearance(f"{what}{agent}", is_seen=bool(agent) or is_binary)
    if isinstance(source, JsonLines):
        types = _with("type", sorted(sample.types)).replace(" with ", ", of ")
        return Appearance(f"JSON lines{keys}{types}{agent}")
    return Appearance(f"a JSON document{keys}{agent}", is_seen=bool(agent))


def _sampled(text: str, source: Source) -> _Sample:
    found = list(islice(source.outlines(), _RECORDS))
    records = [record for record in found if isinstance(record, dict)]
    return _Sample(
        text,
        records=len(found),
        keys=tuple(dict.fromkeys(key for record in records for key in record)),
        types=frozenset(kind for record in records for kind in _types(record)),
        first=records[0] if records else None,
    )


def _types(record: Record) -> Iterator[str]:
    blocks = objects(mapping(record.get("message")).get("content")) or objects(
        record.get("content")
    )
    for one in (record, mapping(record.get("raw")), *blocks):
        if kind := word(one.get("type")):
            yield kind


def _with(what: str, names: Iterator[str] | list[str] | tuple[str, ...]) -> str:
    """Return ` with the tables a, b`; nothing without names."""
    listed = list(names)
    if not listed:
        return ""
    more = ", …" if len(listed) > _SHOWN else ""
    many = "s" if len(listed) > 1 else ""
    return f" with the {what}{many} {', '.join(listed[:_SHOWN])}{more}"


def _named(sample: _Sample) -> str:
    """Return whose file it is, and what of that agent can be read; nothing for an unknown one."""
    said = next((said for is_it, said in _AGENTS if is_it(sample)), None)
    return "" if said is None else f": {said}"


def _has(*keys: str) -> Callable[[_Sample], bool]:
    return lambda sample: {*keys} <= {*sample.keys}


def _of(*types: str) -> Callable[[_Sample], bool]:
    return lambda sample: {*types} <= sample.types


def _tables(*names: str) -> Callable[[_Sample], bool]:
    return lambda sample: {*names} <= sample.tables


def _all(*tests: Callable[[_Sample], bool]) -> Callable[[_Sample], bool]:
    return lambda sample: all(test(sample) for test in tests)


def _is_atif(sample: _Sample) -> bool:
    return word((sample.first or {}).get("schema_version")).startswith("ATIF")


# Whose a file is, and how the same session can be read, if it can.
_AGENTS: tuple[tuple[Callable[[_Sample], bool], str], ...] = (
    (_tables("ItemTable"), "Cursor's or VS Code's state; it has no prompts as they were sent"),
    (_tables("cursorDiskKV"), "Cursor's chats; they have no prompts as they were sent"),
    (_tables("checkpoints", "writes"), "LangGraph's checkpoints; write the state's messages"),
    (_tables("sessions", "messages", "files"), "Crush's sessions, which are not read"),
    (_tables("sessions", "messages"), "sessions, perhaps of Goose, which are not read"),
    (_is_atif, "a trajectory in ATIF, which is not read"),
    (_has("resourceSpans"), "traces of OpenTelemetry, which are not read"),
    (
        _all(_has("ts", "type"), lambda sample: bool({"say", "ask"} & {*sample.keys})),
        "the screen of Cline, Roo Code or Kilo Code; api_conversation_history.json beside it has"
        " the messages",
    ),
    (
        _of("init", "tool_use", "tool_result"),
        "stream-json of Gemini CLI or Qwen Code; the session that Gemini CLI saves in"
        " ~/.gemini/tmp/*/chats/ is read",
    ),
    (
        _all(_has("session_id", "message"), _of("assistant")),
        "stream-json of Claude Code; the session that it saves in ~/.claude/projects/ is read",
    ),
    (_of("agent.tool_use"), "events of Claude Managed Agents, which are not read"),
    (_has("uuid", "sessionId", "usageMetadata"), "a session of Qwen Code, which is not read"),
    (_of("session_start", "message"), "a session of Droid, which is not read"),
    (_of("context.append_message"), "a session of Kimi Code, which is not read"),
    (_of("toolRequest"), "a session of Goose, which is not read"),
    (
        lambda sample: sample.keys[:2] == ("role", "message"),
        "a transcript of Cursor; it lacks usage and most results, so it cannot be replayed",
    ),
    (
        lambda sample: sample.text.lstrip().startswith("# aider chat started at"),
        "Aider's history; it has no prompts as they were sent, so it cannot be replayed",
    ),
)
