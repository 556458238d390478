"""A journal: lines of JSON that are only ever appended, each with its number and a checksum.

A line is `{KIND: VALUE, "n": NUMBER, "crc32": CHECKSUM}`. The first line is number 0. The checksum
is the CRC-32, in hex, of the bytes of the line before `,"crc32"`. A line without number and
checksum is one of schema version 1.0, which policyctx 0.1 wrote; a journal may begin with such
lines. The number shows that a line is missing or stands twice, the checksum that its bytes changed.
`events` reads from the lines what happened to the contents of the session.
"""

from __future__ import annotations

import json
import os
import secrets
import zlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from policyctx.store.content import encoded
from policyctx.store.index import entry_of
from policyctx.store.local.tree import NEW_FILE, READING, check_regular, set_mode
from policyctx.store.local.write import flush_file, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.store.content import JSON
    from policyctx.store.index import IndexEntry
    from policyctx.store.local.tree import Folder

JOURNAL = "journal.jsonl"
SCHEMA_VERSION = "2.0"

_CHECKSUM = b',"crc32":"'
_CHECKSUM_BYTES = len(_CHECKSUM) + len('00000000"}')
# What a line of schema version 1.0 may be: it has no checksum that would tell a damaged one.
_UNCHECKED_KINDS = frozenset({"journal", "root", "saved", "record", "removed", "packed"})

# Nothing but what JSON demands is escaped: two lone surrogates that are would come back as one
# character. A line feed always is, so a line is one value.
encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Position:
    """How far a journal was read: which one it is, and the bytes up to there, whole lines."""

    head: bytes
    """Its first line, which no other journal has."""
    device: int
    inode: int
    bytes: int
    number: int
    """Of the last line up to there."""


@dataclass(frozen=True, slots=True)
class Fold:
    """The beginning of a journal that a snapshot holds."""

    journal_id: str
    bytes: int
    number: int | None
    """Of its last line; None where policyctx 0.1 wrote the snapshot, which did not keep it."""
    checksum: int = 0
    """The CRC-32 of the folded bytes."""


@dataclass(frozen=True, slots=True)
class JournalLines:
    """What lines of a journal hold."""

    values: tuple[dict[str, Any], ...]
    """Of each whole line its kind and value, in order."""
    number: int
    """Of the last line."""
    damage: tuple[str, ...]
    """What is wrong with the lines, a phrase for each kind of damage."""


@dataclass(frozen=True, slots=True)
class JournalRead:
    """What reading a journal came to."""

    position: Position
    lines: tuple[dict[str, Any], ...]
    """Values of the lines that were read now; the first line is not among them."""
    is_new: bool
    """Was it read from its beginning, as it is not the one known or not read before."""
    damage: tuple[str, ...]
    """What is wrong with the lines, a phrase for each kind of damage."""
    torn: int
    """Bytes behind the last whole line: one that is being written, or that a crash cut off."""
    passed_over: bool = False
    """Do the lines begin behind what was folded already."""


def new_head(replaced: Iterable[str] = ()) -> bytes:
    """Return the first line of a new journal, which knows those that it replaces."""
    journal_id = secrets.token_hex(8)
    head: JSON = {"id": journal_id, "schema_version": SCHEMA_VERSION, "replaces": [*replaced]}
    return journal_line({"journal": head}, 0)


def head_ids(head: bytes) -> tuple[str, ...]:
    """Return the id in a first line, and those of the journals that it replaces; () for garbage."""
    try:
        found = _value(head.removesuffix(b"\n"))[0].get("journal")
    except (ValueError, RecursionError):
        return ()
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return ()
    replaced = found.get("replaces")
    earlier = replaced if isinstance(replaced, list) else []
    return (found["id"], *(one for one in earlier if isinstance(one, str)))


def journal_line(value: Mapping[str, JSON], number: int) -> bytes:
    """Return a kind and its value as the line of this number. Raises `ValueError` for no JSON."""
    try:
        start = encoded(f'{encode(value)[:-1]},"n":{number}')
    except TypeError as error:
        raise ValueError(f"no JSON: {error}") from error
    return b'%b%b%08x"}\n' % (start, _CHECKSUM, zlib.crc32(start))


def numbered(values: Iterable[Mapping[str, JSON]], after: int = 0) -> list[bytes]:
    """Return values as the lines that follow the one numbered `after`."""
    return [journal_line(value, number) for number, value in enumerate(values, after + 1)]


def values_of_kind(content: bytes, kind: str) -> list[bytes] | None:
    """Return the JSON of each value of one kind as it stands in a journal; None for damage."""
    start = b'{"%b":' % kind.encode()
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


def open_journal(folder: Folder, *, writing: bool) -> int:
    """Return a descriptor of the journal. Raises `FileNotFoundError` when there is none."""
    flags = os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY
    return folder.open(JOURNAL, flags | READING)


def read_journal(
    descriptor: int, known: Position | None, *, folded: Fold | None = None
) -> JournalRead:
    """Read a journal on from the known position, or from its beginning where it is another one.

    What is `folded` is passed over in the journal that it was folded from.
    """
    found = check_regular(descriptor, JOURNAL)
    if known is not None and _is_same(known, found, descriptor):
        if found.st_size == known.bytes:
            return JournalRead(known, (), is_new=False, damage=(), torn=0)
        return _read_on(known, _bytes_from(descriptor, known.bytes))
    content = _bytes_from(descriptor, 0)
    head = content[: content.find(b"\n") + 1]
    ids = head_ids(head)
    # Where the first line is no head, it may be the second: then it is read with the others.
    start = Position(head, found.st_dev, found.st_ino, len(head) if ids else 0, 0 if ids else -1)
    passed_over = False
    if folded is not None and folded.number is not None and folded.journal_id in ids[:1]:
        passed_over = zlib.crc32(content[: folded.bytes]) == folded.checksum
        if passed_over:
            start = replace(start, bytes=folded.bytes, number=folded.number)
    made = _read_on(start, content[start.bytes :])
    return replace(made, is_new=True, passed_over=passed_over)


def whole(descriptor: int) -> bytes:
    """Return every byte of a journal."""
    return _bytes_from(descriptor, 0)


def append_lines(
    descriptor: int, lines: Iterable[bytes], position: Position, *, torn: int, flush: bool
) -> Position:
    """Append whole lines, all or none; what a crash left behind the last one is cut off first."""
    if torn:
        os.ftruncate(descriptor, position.bytes)
    content = b"".join(lines)
    try:
        write_all(descriptor, content)
        if flush:
            flush_file(descriptor)
    except OSError:
        os.ftruncate(descriptor, position.bytes)
        raise
    end, number = position.bytes + len(content), position.number + content.count(b"\n")
    return replace(position, bytes=end, number=number)


def write_anew(
    folder: Folder, head: bytes, lines: Sequence[bytes], *, mode: int, flush: bool
) -> Position:
    """Put a new journal, its head and all numbered `lines`, in the place of what is there."""
    temporary = f".{secrets.token_hex(8)}.tmp"
    descriptor = folder.open(temporary, NEW_FILE, mode)
    try:
        set_mode(descriptor, mode)
        write_all(descriptor, head + b"".join(lines))
        if flush:
            flush_file(descriptor)
        found = os.fstat(descriptor)
    except BaseException:
        folder.remove(temporary)
        raise
    finally:
        os.close(descriptor)
    folder.replace(temporary, JOURNAL)
    if flush:
        folder.flush()
    return Position(head, found.st_dev, found.st_ino, found.st_size, len(lines))


def goes_on(known: Position, found: Position) -> bool:
    """Does a journal say all that the known one said: by its word, or as it is that one, longer."""
    before = head_ids(known.head)[:1]
    now, *replaced = head_ids(found.head) or ("",)
    return (before == (now,) and found.bytes >= known.bytes) or bool(set(before) & set(replaced))


def _is_same(known: Position, found: os.stat_result, descriptor: int) -> bool:
    """Is this the journal known: a number of a removed file may be given out again."""
    return (
        (known.device, known.inode) == (found.st_dev, found.st_ino)
        and found.st_size >= known.bytes
        and os.read(descriptor, len(known.head)) == known.head
    )


def _bytes_from(descriptor: int, position: int) -> bytes:
    os.lseek(descriptor, position, os.SEEK_SET)
    with open(descriptor, "rb", closefd=False) as file:
        return file.read()


def _read_on(known: Position, content: bytes) -> JournalRead:
    whole = content.rfind(b"\n") + 1
    lines = parsed(content[:whole].split(b"\n")[:-1], known.number)
    position = replace(known, bytes=known.bytes + whole, number=lines.number)
    torn = len(content) - whole
    return JournalRead(position, lines.values, is_new=False, damage=lines.damage, torn=torn)


def parsed(lines: Sequence[bytes], after: int = 0) -> JournalLines:
    """Return what lines hold that follow the one numbered `after`; damaged ones are left out.

    A line that stands there twice counts once.
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
            if one in lines[:position]:
                continue
        elif own is not None:
            missing += max(0, own - number)
            number = own
        last = number
        values.append(value)
    return JournalLines(tuple(values), number, tuple(_phrases(unreadable, missing, repeated)))


def _phrases(unreadable: int, missing: int, repeated: int) -> Iterator[str]:
    """Yield what is wrong with lines, by their number."""
    if unreadable:
        yield f"{_counted_lines(unreadable)} of the journal could not be read"
    if missing:
        yield f"{_counted_lines(missing)} of the journal {'is' if missing == 1 else 'are'} missing"
    if repeated:
        verb = "appears" if repeated == 1 else "appear"
        yield f"{_counted_lines(repeated)} of the journal {verb} twice"


def _counted_lines(count: int) -> str:
    return "1 line" if count == 1 else f"{count} lines"


def _value(raw: bytes) -> tuple[dict[str, Any], int | None]:
    """Return kind and value of a line, and its number. Raises `ValueError` for a damaged one."""
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
    """Return the bytes that the checksum of a line is of: none where it has no checksum.

    None for a line that is not what its checksum says.
    """
    start, end = raw[:-_CHECKSUM_BYTES], raw[-_CHECKSUM_BYTES:]
    if not end.startswith(_CHECKSUM):
        return b""
    return start if end == b'%b%08x"}' % (_CHECKSUM, zlib.crc32(start)) else None


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to one content."""

    what: Literal["saved", "packed", "removed"]
    path: str
    """Below the root."""
    time: float
    """Seconds since 1970, by the clock of that moment."""
    item_id: str | None = None
    entry: IndexEntry | None = None
    """What was saved, where that is known."""
    why: str = ""
    """For what was removed."""


def events(lines: Iterable[object]) -> Iterator[Event]:
    """Yield what the lines of a journal tell, in the order in which it happened."""
    last: dict[str, IndexEntry] = {}
    for line in lines:
        if not isinstance(line, dict) or len(line) != 1:
            continue
        ((kind, value),) = line.items()
        if kind == "saved" and (entry := entry_of(value)) is not None:
            last[entry.path] = entry
            yield Event("saved", entry.path, entry.saved_at, entry.item_id, entry)
        elif kind in {"packed", "removed"} and isinstance(value, dict):
            path, time = value.get("path"), value.get("time")
            if isinstance(path, str) and isinstance(time, (int, float)):
                known = last.get(path)
                item_id = known.item_id if known else None
                yield Event(kind, path, time, item_id, known, str(value.get("why", "")))
