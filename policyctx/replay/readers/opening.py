"""From a file to its `Source`: what it is shows in the first bytes, never in the name."""

from __future__ import annotations

import os
import zipfile
from typing import TYPE_CHECKING, BinaryIO

from policyctx.replay.readers.archive import MAGIC, ZipArchive
from policyctx.replay.readers.document import Document
from policyctx.replay.readers.json_text import BOM, value_of
from policyctx.replay.readers.lines import JsonLines
from policyctx.replay.readers.streamed import StreamedDocument

if TYPE_CHECKING:
    from policyctx.replay.readers.source import Opened, Source

# Bytes of a document that is read as a whole; a larger one is streamed, which is slower.
READ_WHOLE = 16 * 2**20


def source_of(name: str, opened: Opened, *, read_whole: int = READ_WHOLE) -> Source:
    """Return the file as a source; raises `ValueError` for an archive that cannot be read.

    A file that is no JSON is JSON lines of which none can be read.
    """
    with opened() as file:
        if file.read(len(MAGIC)) == MAGIC:
            return _archive(name, opened)
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= read_whole:
            return _small(name, opened, file)
        # A pretty-printed document has no line that is a value by itself so early, but in a list.
        lines = (file.readline(read_whole) for _ in range(2))
        is_lines = any(_is_json(line) for line in lines)
        file.seek(0)
        is_list = file.read(len(BOM) + 1).removeprefix(BOM).startswith(b"[\n")
    return (JsonLines if is_lines and not is_list else StreamedDocument)(name, opened)


def _small(name: str, opened: Opened, file: BinaryIO) -> Source:
    if _is_json(file.readline()) and any(map(bytes.strip, file)):
        return JsonLines(name, opened)
    file.seek(0)
    try:
        return Document(name, value_of(file.read().removeprefix(BOM)))
    except ValueError:
        return JsonLines(name, opened)


def _is_json(line: bytes) -> bool:
    try:
        value_of(line.removeprefix(BOM))
    except ValueError:
        return False
    return True


def _archive(name: str, opened: Opened) -> ZipArchive:
    try:
        return ZipArchive(name, opened)
    except zipfile.BadZipFile as error:
        raise ValueError(f"an archive that cannot be read: {error}") from error
