"""What a file looks like that no reader takes, and how its agent's sessions can be read."""

from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

from policyctx.replay.readers.source import Database, JsonLines, Opened, Source, ZipArchive
from policyctx.replay.readers.values import Record, mapping, objects, word

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


def appearance(opened: Opened, source: Source) -> Appearance:
    """Return what a file looks like."""
    with opened() as file:
        head = file.read(_HEAD_BYTES)
    for magic, what in _PACKED.items():
        if head.startswith(magic):
            return Appearance(what)
    if isinstance(source, Database):
        agent = _named({f"table {name}" for name in source.tables})
        return Appearance(f"a SQLite database{_with('table', sorted(source.tables))}{agent}")
    found = list(islice(source.outlines(), _RECORDS))
    records = [record for record in found if isinstance(record, dict)]
    names = list(dict.fromkeys(key for record in records for key in record))
    types = sorted({kind for record in records for kind in _types(record)})
    marks = {f"key {name}" for name in names} | {f"type {kind}" for kind in types}
    marks |= {f"first {' '.join(names[:2])}", f"text {head.lstrip()[:12].decode(errors='replace')}"}
    agent, keys = _named(marks), _with("key", names)
    if isinstance(source, ZipArchive):
        return Appearance(f"an archive{keys}{agent}", is_seen=bool(agent))
    if not found:
        is_binary = b"\0" in head
        what = "a binary file" if is_binary else "a text"
        return Appearance(f"{what}{agent}", is_seen=bool(agent) or is_binary)
    if isinstance(source, JsonLines):
        of_types = _with("type", types).replace(" with ", ", of ")
        return Appearance(f"JSON lines{keys}{of_types}{agent}")
    return Appearance(f"a JSON document{keys}{agent}", is_seen=bool(agent))


def _types(record: Record) -> Iterator[str]:
    blocks = objects(mapping(record.get("message")).get("content")) or objects(
        record.get("content")
    )
    for one in (record, mapping(record.get("raw")), *blocks):
        if kind := word(one.get("type")):
            yield kind


def _with(what: str, names: list[str]) -> str:
    """Return ` with the tables a, b`; nothing without names."""
    if not names:
        return ""
    more = ", …" if len(names) > _SHOWN else ""
    many = "s" if len(names) > 1 else ""
    return f" with the {what}{many} {', '.join(names[:_SHOWN])}{more}"


def _named(marks: set[str]) -> str:
    """Return whose file it is, and what of that agent can be read; nothing for an unknown one."""
    return next((f": {said}" for wanted, said in _AGENTS if wanted <= marks), "")


_CLINE = (
    "the screen of Cline, Roo Code or Kilo Code; api_conversation_history.json beside it has the"
    " messages"
)
# By what its tables, keys and types are: whose a file is, and how the session can be read, if so.
_AGENTS: tuple[tuple[set[str], str], ...] = (
    ({"table ItemTable"}, "Cursor's or VS Code's state; it has no prompts as they were sent"),
    ({"table cursorDiskKV"}, "Cursor's chats; they have no prompts as they were sent"),
    ({"table checkpoints", "table writes"}, "LangGraph's checkpoints; write the state's messages"),
    ({"table sessions", "table messages", "table files"}, "Crush's sessions, which are not read"),
    ({"table sessions", "table messages"}, "sessions, perhaps of Goose, which are not read"),
    (
        {"key resourceLogs"},
        "logs of OpenTelemetry; the messages of model calls are read from spans",
    ),
    ({"key ts", "key type", "key say"}, _CLINE),
    ({"key ts", "key type", "key ask"}, _CLINE),
    ({"type agent.tool_use"}, "events of Claude Managed Agents, which are not read"),
    ({"type session_start", "type message"}, "a session of Droid, which is not read"),
    ({"type context.append_message"}, "a session of Kimi Code, which is not read"),
    ({"type toolRequest"}, "a session of Goose, which is not read"),
    (
        {"first role message"},
        "a transcript of Cursor; it lacks usage and most results, so it cannot be replayed",
    ),
    (
        {"text # aider chat"},
        "Aider's history; it has no prompts as they were sent, so it cannot be replayed",
    ),
)
