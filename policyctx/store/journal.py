"""A journal: lines of JSON that are only ever appended, and read on from where one left off."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from policyctx.store.encoding import encoded
from policyctx.store.folders import NEW_FILE, READING, check_regular, set_mode
from policyctx.store.writing import flush_file, write_all

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from policyctx.store.content import JSON
    from policyctx.store.folders import Folder

JOURNAL = "journal.jsonl"
SCHEMA_VERSION = "1.0"

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


@dataclass(frozen=True, slots=True)
class Fold:
    """The beginning of a journal that a snapshot holds."""

    journal_id: str
    bytes: int


@dataclass(frozen=True, slots=True)
class Read:
    """What reading a journal came to."""

    position: Position
    lines: tuple[object, ...]
    """Values of the lines that were read now; the first line is not among them."""
    is_new: bool
    """Was it read from its beginning, as it is not the one known or not read before."""
    damaged: int
    """Lines that hold no JSON."""
    torn: int
    """Bytes behind the last whole line: one that is being written, or that a crash cut off."""
    passed_over: bool = False
    """Do the lines begin behind what was folded already."""


def new_head(replaced: Iterable[str] = ()) -> bytes:
    """Return the first line of a new journal, which knows those that it replaces."""
    journal_id = secrets.token_hex(8)
    head: JSON = {"id": journal_id, "schema_version": SCHEMA_VERSION, "replaces": [*replaced]}
    return line({"journal": head})


def head_ids(head: bytes) -> tuple[str, ...]:
    """Return the id in a first line, and those of the journals that it replaces; () for garbage."""
    values, damaged = parsed([head])
    found = values[0] if values and not damaged else None
    found = found.get("journal") if isinstance(found, dict) else None
    if not isinstance(found, dict) or not isinstance(found.get("id"), str):
        return ()
    replaced = found.get("replaces")
    earlier = replaced if isinstance(replaced, list) else []
    return (found["id"], *(one for one in earlier if isinstance(one, str)))


def line(value: Mapping[str, JSON]) -> bytes:
    """Return a value as one line. Raises `ValueError` for what is no JSON."""
    try:
        return encoded(f"{encode(value)}\n")
    except TypeError as error:
        raise ValueError(f"no JSON: {error}") from error


def opened(folder: Folder, *, writing: bool) -> int:
    """Return a descriptor of the journal. Raises `FileNotFoundError` when there is none."""
    flags = os.O_RDWR | os.O_APPEND if writing else os.O_RDONLY
    return folder.open(JOURNAL, flags | READING)


def read(descriptor: int, known: Position | None, *, folded: Fold | None = None) -> Read:
    """Read a journal on from the known position, or from its beginning where it is another one.

    What is `folded` is passed over in the journal that it was folded from.
    """
    found = check_regular(descriptor, JOURNAL)
    if known is not None and _is_same(known, found, descriptor):
        if found.st_size == known.bytes:
            return Read(known, (), is_new=False, damaged=0, torn=0)
        return _read_on(known, _bytes_from(descriptor, known.bytes))
    content = _bytes_from(descriptor, 0)
    head = content[: content.find(b"\n") + 1]
    begin = len(head)
    if folded is not None and folded.journal_id in head_ids(head)[:1]:
        ends_a_line = content[folded.bytes - 1 : folded.bytes] == b"\n"
        begin = folded.bytes if ends_a_line else begin
    start = Position(head, found.st_dev, found.st_ino, begin)
    passed_over = begin > len(head)
    return replace(_read_on(start, content[begin:]), is_new=True, passed_over=passed_over)


def whole(descriptor: int) -> bytes:
    """Return every byte of a journal."""
    return _bytes_from(descriptor, 0)


def append(
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
    end = position.bytes + len(content)
    return Position(position.head, position.device, position.inode, end)


def write_anew(
    folder: Folder, head: bytes, lines: Iterable[bytes], *, mode: int, flush: bool
) -> Position:
    """Put a new journal in the place of what is there, in one step."""
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
    return Position(head, found.st_dev, found.st_ino, found.st_size)


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


def _read_on(known: Position, content: bytes) -> Read:
    whole = content.rfind(b"\n") + 1
    values, damaged = parsed(content[:whole].split(b"\n")[:-1])
    position = Position(known.head, known.device, known.inode, known.bytes + whole)
    torn = len(content) - whole
    return Read(position, tuple(values), is_new=False, damaged=damaged, torn=torn)


def parsed(lines: Iterable[bytes]) -> tuple[list[object], int]:
    """Return the values of lines, and how many hold no JSON."""
    values: list[object] = []
    damaged = 0
    for one in lines:
        try:
            values.append(json.loads(one))
        except (ValueError, RecursionError):
            damaged += 1
    return values, damaged
