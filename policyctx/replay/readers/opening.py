"""From a file to its `Source`: what it is shows in the first bytes, never in the name."""

from __future__ import annotations

import zipfile
from typing import TYPE_CHECKING

from policyctx.replay.readers.archive import MAGIC, Archive
from policyctx.replay.readers.document import Document
from policyctx.replay.readers.json_text import BOM, value_of
from policyctx.replay.readers.lines import Lines
from policyctx.replay.readers.streamed import StreamedDocument

if TYPE_CHECKING:
    from policyctx.replay.readers.source import Opened, Source

# Bytes of a document that is read as a whole; a larger one is streamed, which is slower.
READ_WHOLE = 32 * 2**20


def source_of(name: str, opened: Opened, *, read_whole: int = READ_WHOLE) -> Source:
    """Return the file as a source; raises `ValueError` for an archive that cannot be read.

    A file that is no JSON is JSON lines of which none can be read.
    """
    with opened() as file:
        if file.read(len(MAGIC)) == MAGIC:
            return _archive(name, opened)
        file.seek(0)
        first = file.readline(read_whole + 1)
        second = file.readline(read_whole + 1)
        if _is_json(first) and second:
            return Lines(name, opened)
        beginning = first + second
        content = beginning + file.read(max(0, read_whole + 1 - len(beginning)))
    if len(content) > read_whole:
        # A pretty-printed document has no line that is an object by itself so early.
        is_lines = _is_json(second) and not first.startswith((b"[", BOM + b"["))
        return Lines(name, opened) if is_lines else StreamedDocument(name, opened)
    try:
        return Document(name, value_of(content.removeprefix(BOM)))
    except ValueError:
        return Lines(name, opened)


def _is_json(line: bytes) -> bool:
    try:
        value_of(line.removeprefix(BOM))
    except ValueError:
        return False
    return True


def _archive(name: str, opened: Opened) -> Archive:
    try:
        return Archive(name, opened)
    except zipfile.BadZipFile as error:
        raise ValueError(f"an archive that cannot be read: {error}") from error
