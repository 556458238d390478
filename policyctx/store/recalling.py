"""The records of a session, read without its index: all that a restarted session needs at first.

A journal of thousands of turns says mostly which contents were saved, which only a save needs. So a
restart checks and parses the lines of records alone. Their numbers show that no line between them
is lost or joined to another. Where anything is unusual, such as damage, an incomplete line or an
older version, None is returned, and the whole journal has to be read, repaired and reported; see
`State`.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Sequence
from typing import Any

from policyctx.store.backend import Backend
from policyctx.store.journal import KINDS, head_ids, line_start, open_journal
from policyctx.store.snapshot import checked_parts

_RECORD = line_start("record")
_NO_RECORD = tuple(line_start(kind) for kind in sorted(KINDS - {"record"}))
_NUMBER = b',"n":'
# Bytes of JSON from which on it pays to load a faster reader.
_LONG = 200_000
_CHECKSUM_BYTES = len(b',"crc32":"00000000"}')


def recalled_records(backend: Backend, folder: str, snapshot: str) -> list[dict[str, Any]] | None:
    """Return the records of the journal in a folder, oldest first; None where it must be repaired.

    `snapshot` is the path of its snapshot. Raises `FileNotFoundError` without a journal.
    """
    try:
        found = checked_parts(backend, snapshot)
    except FileNotFoundError:
        found = None
    else:
        if found is None:
            return None
    with contextlib.closing(open_journal(backend, folder, writing=False)) as log:
        content = log.read()
    start, number = content.find(b"\n") + 1, 0
    ids = head_ids(content[:start])
    records: list[bytes] = []
    if found is not None:
        fold, folded = found
        if fold.number is None or (fold.journal_id,) != ids[:1]:
            return None
        if zlib.crc32(memoryview(content)[: fold.bytes]) != fold.checksum:
            return None
        start, number, records = fold.bytes, fold.number, [folded] if folded else []
    lines = content[start:].split(b"\n")
    if not ids or lines.pop():
        return None
    later = _records_in(lines, number)
    return None if later is None else _parsed([*records, *later])


def _records_in(lines: Sequence[bytes], after: int) -> list[bytes] | None:
    """Return the JSON of the records in the lines after a number; None where one may be lost.

    A line of another kind is checked if it is the last one: no number after it shows what it lacks.
    """
    found = []
    crc32 = zlib.crc32
    last = after + len(lines)
    for number, line in enumerate(lines, after + 1):
        if line.startswith(_NO_RECORD) and number != last:
            continue
        text = line[:-_CHECKSUM_BYTES]
        if not line.endswith(b',"n":%d,"crc32":"%08x"}' % (number, crc32(text))):
            return None
        if text.startswith(_RECORD):
            found.append(text[len(_RECORD) : text.rindex(_NUMBER)])
    return found


def _parsed(records: Sequence[bytes]) -> list[dict[str, Any]] | None:
    text = b"[%b]" % b",".join(records)
    try:
        found = json.loads(text) if len(text) < _LONG else _read_fast(text)
    except (ValueError, RecursionError):
        return None
    return found if all(isinstance(record, dict) for record in found) else None


def _read_fast(text: bytes) -> Any:  # noqa: ANN401 - any JSON
    from pydantic_core import from_json  # noqa: PLC0415 - it loads longer than short texts take

    try:
        return from_json(text, cache_strings="keys")
    except ValueError:  # such as a lone surrogate
        return json.loads(text)
