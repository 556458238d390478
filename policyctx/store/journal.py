"""A journal: lines of JSON that are only ever appended, each with its number and a checksum.

A line is `{KIND: VALUE, "n": NUMBER, "crc32": CHECKSUM}`. The first line is number 0. The checksum
is the CRC-32, in hex, of the bytes of the line before `,"crc32"`. A line without number and
checksum is one of schema version 1.0, which policyctx 0.1 wrote; a journal may begin with such
lines. The number shows that a line is missing or stands twice, the checksum that its bytes changed.
`events` reads from the lines what happened to the contents of the session.

Sessions may share one root. `StateFolder` says where each keeps its state.
"""

import contextlib
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple
from urllib.parse import unquote_to_bytes

from policyctx.errors import counted
from policyctx.messages.json_text import JSON
from policyctx.paths import safe_part
from policyctx.store.backend import AppendLog, Backend, random_name
from policyctx.store.content import STATE_FOLDER, decoded, encoded
from policyctx.store.files import Format
from policyctx.store.index import Index, IndexEntry, entry_of

JOURNAL = "journal.jsonl"
SCHEMA_VERSION = "2.0"

# A journal names this many of the journals that it replaces.
_REMEMBERED = 8
_CHECKSUM = b',"crc32":"'
_CHECKSUM_BYTES = len(_CHECKSUM) + len('00000000"}')
# The kinds of lines.
KINDS = frozenset({"journal", "root", "saved", "record", "removed", "packed", "in_flight"})
# Those of schema version 1.0. They have no checksum that would show damage.
_UNCHECKED_KINDS = KINDS - {"in_flight"}

# Only what JSON demands is escaped: two escaped lone surrogates would come back as one character. A
# line feed is always escaped, so a line is one value.
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
INDEX = "index.json"


class Position(NamedTuple):
    """How far a journal was read: which journal it is, and the bytes of all whole lines so far."""

    head: bytes
    """Its first line, which no other journal has."""
    identity: tuple[int, int]
    """The identity of its file."""
    bytes: int
    number: int
    """Of the last line up to there."""


class Part(NamedTuple):
    """The beginning of a journal, up to a byte."""

    bytes: int
    number: int = -1
    """Of its last line; -1 where policyctx 0.1 wrote the snapshot, which did not keep it."""
    checksum: int = 0
    """The CRC-32 of these bytes."""


class Fold(NamedTuple):
    """How much of a journal a snapshot has: records, and entries, which go at least as far."""

    journal_id: str
    records: Part
    entries: Part


class JournalLines(NamedTuple):
    """Parsed lines of a journal."""

    values: tuple[dict[str, Any], ...]
    """The kind and value of each whole line, in order."""
    number: int
    """Of the last line."""
    damage: tuple[str, ...]
    """The damage that was found, a phrase for each kind."""


class JournalRead(NamedTuple):
    """The result of reading a journal."""

    position: Position
    lines: tuple[dict[str, Any], ...]
    """The values of the lines that were read now, without the first line of the journal."""
    is_new: bool
    """Whether it was read from its beginning: it is another journal, or the first one read."""
    damage: tuple[str, ...]
    """The damage that was found, a phrase for each kind."""
    torn: int
    """Bytes after the last whole line: one that is being written, or that a crash cut off."""
    skipped_fold: bool = False
    """Whether the lines begin after the folded ones."""
    records: tuple[dict[str, Any], ...] = ()
    """Those in the folded lines that the snapshot does not have."""


def new_head(known: Position | None = None) -> bytes:
    """Return the first line of a new journal, which replaces the `known` one and those before."""
    replaced: list[JSON] = [] if known is None else [*head_ids(known.head)[:_REMEMBERED]]
    head: JSON = {"id": random_name(), "schema_version": SCHEMA_VERSION, "replaces": replaced}
    return journal_line({"journal": head}, 0)


def head_ids(head: bytes) -> tuple[str, ...]:
    """Return the id in a first line, and those of the journals that it replaces; () for damage."""
    try:
        found = _value(head.removesuffix(b"\n"))[0].get("journal")
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return ()
    replaced = found.get("replaces")
    earlier = replaced if isinstance(replaced, list) else []
    return (found["id"], *(one for one in earlier if isinstance(one, str)))


def line_start(kind: str) -> bytes:
    """Return how each line of a kind begins."""
    return b'{"%b":' % kind.encode()


def journal_line(value: Mapping[str, JSON], number: int) -> bytes:
    """Return a kind and its value as the line with this number; `ValueError` for non-JSON."""
    try:
        start = encoded(f'{encode(value)[:-1]},"n":{number}')
    except TypeError as error:
        raise ValueError(f"no JSON: {error}") from error
    return b'%b%b%08x"}\n' % (start, _CHECKSUM, zlib.crc32(start))


def numbered(values: Iterable[Mapping[str, JSON]], after: int = 0) -> list[bytes]:
    """Return values as the lines after the one numbered `after`."""
    return [journal_line(value, number) for number, value in enumerate(values, after + 1)]


def values_of_kind(content: bytes, kind: str) -> list[bytes] | None:
    """Return the JSON of each value of one kind, byte for byte; None for a damaged journal."""
    start = line_start(kind)
    found = []
    for one in content.split(b"\n"):
        if not one.startswith(start):
            continue
        checked = _checked_part(one)
        if not checked and (checked is None or not _is_unchecked_line(one)):
            return None
        end = one.rindex(b',"n":') if checked else len(one) - 1
        found.append(one[len(start) : end])
    return found


def open_journal(backend: Backend, folder: str, *, writing: bool) -> AppendLog:
    """Open the journal in a folder. Raises `FileNotFoundError` when there is none."""
    return backend.open_log(f"{folder}/{JOURNAL}", writing=writing)


def read_journal(
    log: AppendLog, known: Position | None = None, *, folded: Fold | None = None
) -> JournalRead:
    """Read a journal on from the known position, or from its beginning where it is another one.

    In the journal that they were folded from, the `folded` lines are skipped.
    """
    if known is not None and _is_same(known, log):
        if log.status.size == known.bytes:
            return JournalRead(known, (), is_new=False, damage=(), torn=0)
        return _read_on(known, log.read(known.bytes))
    content = log.read()
    head = content[: content.find(b"\n") + 1]
    ids = head_ids(head)
    # A first line that is not a head may be the second: then it is read with the others.
    start = Position(head, log.status.identity, len(head) if ids else 0, 0 if ids else -1)
    records = None
    if folded is not None and folded.journal_id in ids[:1]:
        records = _later_records(content, folded)
        if records is not None:
            end, number, _ = folded.entries
            start = start._replace(bytes=end, number=number)
    made = _read_on(start, content[start.bytes :], content[: start.bytes])
    skipped_fold = records is not None
    return made._replace(is_new=True, skipped_fold=skipped_fold, records=tuple(records or ()))


def _later_records(content: bytes, fold: Fold) -> list[dict[str, Any]] | None:
    """Return the records in the folded part of a journal that its snapshot does not have.

    None where that is another part.
    """
    end, number, checksum = fold.entries
    if number < 0 or zlib.crc32(memoryview(content)[:end]) != checksum:
        return None
    found = values_of_kind(content[fold.records.bytes : end], "record")
    try:
        records = None if found is None else json.loads(b"[%b]" % b",".join(found))
    except (ValueError, RecursionError):
        return None
    return records if all(isinstance(one, dict) for one in records or ()) else None


def append_lines(
    log: AppendLog, lines: Iterable[bytes], position: Position, *, torn: int, flush: bool
) -> Position:
    """Append whole lines, all or none; first cut off a line that a crash left incomplete."""
    if torn:
        log.truncate(position.bytes)
    content = b"".join(lines)
    try:
        log.append(content, flush=flush)
    except OSError:
        log.truncate(position.bytes)
        raise
    end, number = position.bytes + len(content), position.number + content.count(b"\n")
    return Position(position.head, position.identity, end, number)


def write_journal(backend: Backend, folder: str, head: bytes, lines: Sequence[bytes]) -> Position:
    """Put a new journal, its head and all numbered `lines`, in the place of the one in a folder."""
    found = backend.write(f"{folder}/{JOURNAL}", head + b"".join(lines), flush=True)
    return Position(head, found.identity, found.size, len(lines))


def continues(known: Position, found: Position) -> bool:
    """Whether a journal contains the known one: the same one grown, or one that replaced it."""
    before = head_ids(known.head)[:1]
    now, *replaced = head_ids(found.head) or ("",)
    return (before == (now,) and found.bytes >= known.bytes) or bool(set(before) & set(replaced))


def _is_same(known: Position, log: AppendLog) -> bool:
    """Whether this is the known journal; the identity of a removed file may be used again."""
    return (
        known.identity == log.status.identity
        and log.status.size >= known.bytes
        and log.read(0, len(known.head)) == known.head
    )


def _read_on(known: Position, content: bytes, before: bytes = b"") -> JournalRead:
    whole = content.rfind(b"\n") + 1
    lines = parse_lines(content[:whole].split(b"\n")[:-1], known.number, before)
    position = known._replace(bytes=known.bytes + whole, number=lines.number)
    torn = len(content) - whole
    return JournalRead(position, lines.values, is_new=False, damage=lines.damage, torn=torn)


def parse_lines(lines: Sequence[bytes], after: int = 0, before: bytes = b"") -> JournalLines:
    """Parse the lines after the one numbered `after`, and leave damaged ones out.

    A line that is repeated counts once, also if it stands in what was read `before`.
    """
    values: list[dict[str, Any]] = []
    number, last = after, after
    unreadable = missing = repeated = 0
    for position, one in enumerate(lines):
        number += 1
        try:
            value, own = _value(one)
        except (ValueError, RecursionError):
            unreadable += 1
            continue
        if own is not None and own < number and own <= last:
            repeated += 1
            number -= 1
            if one in lines[:position] or b"\n%b\n" % one in before:
                continue
        elif own is not None:
            missing += max(0, own - number)
            number = own
        last = number
        values.append(value)
    return JournalLines(tuple(values), number, tuple(_phrases(unreadable, missing, repeated)))


def _phrases(unreadable: int, missing: int, repeated: int) -> Iterator[str]:
    if unreadable:
        yield f"{counted(unreadable, 'line')} of the journal could not be read"
    if missing:
        yield f"{counted(missing, 'line')} of the journal {'is' if missing == 1 else 'are'} missing"
    if repeated:
        verb = "appears" if repeated == 1 else "appear"
        yield f"{counted(repeated, 'line')} of the journal {verb} twice"


def _value(raw: bytes) -> tuple[dict[str, Any], int | None]:
    """Return the kind and value of a line, and its number. Raises `ValueError` for damage."""
    checked = _checked_part(raw)
    if checked is None:
        raise ValueError("the checksum is that of another line")
    value = json.loads(checked + b"}" if checked else raw)
    if not isinstance(value, dict):
        raise ValueError("no line of a journal")  # noqa: TRY004 - what any damaged line raises
    number = value.pop("n", None) if checked else None
    if len(value) != 1 or (checked and not isinstance(number, int)):
        raise ValueError("no line of a journal")
    if not checked and not _UNCHECKED_KINDS & value.keys():
        raise ValueError("no line of schema version 1.0")
    return value, number


def _is_unchecked_line(raw: bytes) -> bool:
    try:
        return _value(raw)[1] is None
    except (ValueError, RecursionError):
        return False


def _checked_part(raw: bytes) -> bytes | None:
    """Return the part of a line that its checksum covers; b"" for a line without a checksum.

    Return None when the checksum does not match.
    """
    start, end = raw[:-_CHECKSUM_BYTES], raw[-_CHECKSUM_BYTES:]
    if not end.startswith(_CHECKSUM):
        return b""
    return start if end == b'%b%08x"}' % (_CHECKSUM, zlib.crc32(start)) else None


class Event(NamedTuple):
    """An event in the history of one content."""

    what: Literal["saved", "packed", "removed"]
    path: str
    """Below the root."""
    time: float
    """Seconds since 1970, by the clock of that moment."""
    item_id: str | None = None
    entry: IndexEntry | None = None
    """The entry of the content, where it is known."""
    why: str = ""
    """The rule by which it was removed."""


def events(lines: Iterable[object]) -> Iterator[Event]:
    """Yield the events that the lines of a journal record, in their order.

    What happened to the rest of a content happened to the content.
    """
    last: dict[str, IndexEntry] = {}
    for line in lines:
        if not isinstance(line, dict) or len(line) != 1:
            continue
        ((kind, value),) = line.items()
        if kind == "saved" and (entry := entry_of(value)) is not None:
            last[entry.path] = entry
            if entry.is_rest:
                continue
            yield Event("saved", entry.path, entry.saved_at, entry.item_id, entry)
        elif kind in {"packed", "removed"} and isinstance(value, dict):
            path, time = value.get("path"), value.get("time")
            if isinstance(path, str) and isinstance(time, (int, float)):
                known = last.get(path)
                if known is not None and known.is_rest:
                    continue
                item_id = known.item_id if known else None
                yield Event(kind, path, time, item_id, known, str(value.get("why", "")))


class StateFolder(NamedTuple):
    """The folder below the root in which one session keeps its state."""

    path: str
    format: Format
    """The format of the session's contents."""

    @classmethod
    def of_session(cls, session: str | None, form: Format) -> "StateFolder":
        """Return the folder of a session; None for the store that owns the root."""
        below = "" if session is None else f"/{safe_part(session)}"
        return cls(STATE_FOLDER + below, form)

    @property
    def owns_root(self) -> bool:
        """Whether no other session keeps its contents in this root."""
        return self.path == STATE_FOLDER

    @property
    def snapshots(self) -> tuple[str, ...]:
        """Where the snapshot may be, the best place first: in the root for envelopes.

        A session that shares the root takes that place if no other session has it; see `Snapshots`.
        """
        own = f"{self.path}/{INDEX}"
        if self.format != "envelope":
            return (own,)
        return (INDEX,) if self.owns_root else (INDEX, own)


def state_folders(backend: Backend) -> list[str]:
    """Return the folder of each session that keeps a journal in this root."""
    try:
        names = backend.names(STATE_FOLDER)
    except FileNotFoundError:
        return []
    found = [STATE_FOLDER] if JOURNAL in names else []
    for name in names:
        if name == JOURNAL and backend.is_remote:  # the journal itself is a folder there
            continue
        folder = f"{STATE_FOLDER}/{name}"
        with contextlib.suppress(OSError):  # a file
            if JOURNAL in backend.names(folder):
                found.append(folder)
    return found


def session_of(folder: str) -> str:
    """Return the id of the session that keeps its state in a folder; "" for the root's own."""
    name = folder.removeprefix(STATE_FOLDER).removeprefix("/")
    return decoded(unquote_to_bytes(name))


def session_ids(backend: Backend) -> list[str]:
    """Return the id of each session that keeps a journal in this root, sorted."""
    return sorted(map(session_of, state_folders(backend)))


def lines_in(backend: Backend, folder: str) -> tuple[object, ...]:
    """Return every line of the journal in a folder, oldest first; () when there is none."""
    try:
        log = open_journal(backend, folder, writing=False)
    except FileNotFoundError:
        return ()
    with contextlib.closing(log):
        return read_journal(log).lines


def newest_first(backend: Backend, folder: str, kind: str) -> Iterator[Any]:
    """Yield the values of one kind in the journal in a folder; no line of another kind is parsed.

    Damaged lines are left out, and nothing comes where there is no journal.
    """
    try:
        log = open_journal(backend, folder, writing=False)
    except FileNotFoundError:
        return
    with contextlib.closing(log):
        content = log.read()
    start = b"\n" + line_start(kind)
    at = content.rfind(start)
    while at >= 0:
        with contextlib.suppress(ValueError, RecursionError):
            yield _value(content[at + 1 : content.find(b"\n", at + 1)])[0][kind]
        at = content.rfind(start, 0, at)


def all_indexes(backend: Backend) -> Iterator[Index]:
    """Yield what the journal of each session in this root says."""
    for folder in state_folders(backend):
        index = Index()
        try:
            lines = lines_in(backend, folder)
        except OSError:
            continue  # damaged; its own session repairs it
        for line in lines:
            index.apply(line)
        yield index
