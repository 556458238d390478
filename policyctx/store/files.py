"""The file of a content: plain or compressed, a text or an envelope, read whole or in pieces.

A compressed file has `.zst` behind its name. An envelope is a JSON document around the text (PRD
context-filesystem, file format).
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Literal, TypeAlias

from policyctx.store.content import Origin, decoded, encoded
from policyctx.store.local.tree import READING, check_regular, read_whole

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

    from policyctx.store.content import JSON
    from policyctx.store.local.tree import Tree

PACKED = ".zst"


def packed(raw: bytes) -> bytes:
    """Return the bytes as one zstd frame that knows their number."""
    return bytes(_zstandard().ZstdCompressor().compress(raw))


def packed_pieces(raws: Iterable[bytes]) -> bytes:
    """Return what pieces make together as one zstd frame; they are never in memory together."""
    file = io.BytesIO()
    with packing(file) as writer:
        for raw in raws:
            writer.write(raw)
    return file.getvalue()


def unpacked(raw: bytes) -> bytes:
    """Return what was packed. Raises `ValueError` for what no frame is, or only a part of one."""
    return unpacking(io.BytesIO(raw)).read()


def unpacking(file: IO[bytes]) -> IO[bytes]:
    """Return a reader of what was packed in `file`; it raises `ValueError` as `unpacked` does."""
    return io.BufferedReader(_Unpacking(file))


@contextmanager
def packing(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Give a writer that packs into `file`; the frame is whole when it is left without an error."""
    with _zstandard().ZstdCompressor().stream_writer(file, closefd=False) as writer:
        yield writer


class _Unpacking(io.RawIOBase):
    """A zstd reader whose errors are values' errors, and for which half a frame is one."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._frame = _zstandard().ZstdDecompressor().decompressobj()
        self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and not self._frame.eof:
            raw = self._file.read(io.DEFAULT_BUFFER_SIZE)
            if not raw:
                raise ValueError("a packed content is cut off")
            try:
                self._ready = self._frame.decompress(raw)
            except _zstandard().ZstdError as error:
                raise ValueError(f"no packed content: {error}") from error
        taken = min(len(buffer), len(self._ready))
        buffer[:taken] = self._ready[:taken]
        self._ready = self._ready[taken:]
        return taken

    def close(self) -> None:
        self._file.close()
        super().close()


def _zstandard() -> ModuleType:
    import zstandard  # noqa: PLC0415 - 30 ms, and seldom needed

    return zstandard


_SCHEMA_VERSION = "1.0"
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")


def enveloped(text: str, origin: Origin | None, saved_at: float) -> bytes:
    """Return the document, in UTF-8; the content is its last key, so that it can be streamed."""
    document: dict[str, JSON] = {
        "schema_version": _SCHEMA_VERSION,
        "item_id": origin.item_id if origin else None,
        "item_type": origin.item_type if origin else None,
        "offloaded_at": int(saved_at),
        "metadata": {"tool_name": origin.tool_name} if origin and origin.tool_name else {},
        "content": text,
    }
    shown = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        return f"{shown}\n".encode()
    except UnicodeEncodeError:
        # JSON can escape a lone surrogate, but two halves that are no pair would become one.
        if _HALVES.search(text):
            return encoded(f"{shown}\n")
        return f"{json.dumps(document, indent=2)}\n".encode()


def opened_envelope(raw: bytes) -> tuple[str, Origin | None]:
    """Return the content of a document and what it was. Raises `ValueError` for another one."""
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise ValueError("no envelope: nested too deep") from error
    if isinstance(document, dict) and isinstance(document.get("content"), str):
        return document["content"], _envelope_origin(document)
    raise ValueError("no envelope: it has no content")


def _envelope_origin(document: dict[str, JSON]) -> Origin | None:
    item_id, item_type = document.get("item_id"), document.get("item_type")
    if not isinstance(item_id, str) or not isinstance(item_type, str):
        return None
    metadata = document.get("metadata")
    tool = metadata.get("tool_name") if isinstance(metadata, dict) else None
    is_call = item_type in {"tool_result", "tool_call"}
    return Origin(
        item_id,
        item_type,
        tool_use_id=item_id if is_call else None,
        tool_name=tool if isinstance(tool, str) else None,
    )


PIECE_BYTES = 1 << 20
_CONTENT_KEY = '"content": "'
# The head of an envelope is short: ids and names.
_LONGEST_HEAD = 1 << 16
_LONGEST_CHARACTER = 4
# What a JSON string is made of, up to its closing quote or an escape that is cut off. Possessive:
# ways back would be kept for each of a piece's many escapes.
_WHOLE = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+')
# The first half of a character outside the first plane; the other half may come next.
_FIRST_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_ESCAPE_LENGTH = 6


def pieces(tree: Tree, path: str, form: Format) -> Iterator[str]:
    """Yield the text of a content piece by piece, unpacked and out of its envelope.

    Raises `OSError`, and `ValueError` for what was not written here.
    """
    texts = _texts(_raw_pieces(tree, path))
    yield from _unenveloped(texts) if form == "envelope" else texts


def sha256_in(tree: Tree, path: str, form: Format) -> str:
    """Return the sha256, in hex, of the text in a file. Raises what `pieces` does."""
    text = _raw_pieces(tree, path) if form == "text" else map(encoded, pieces(tree, path, form))
    found = hashlib.sha256()
    for piece in text:
        found.update(piece)
    return found.hexdigest()


def _raw_pieces(tree: Tree, path: str) -> Iterator[bytes]:
    with _open_file(tree, path) as file:
        while raw := file.read(PIECE_BYTES):
            yield raw


def _open_file(tree: Tree, path: str) -> IO[bytes]:
    folder, name = tree.place(path)
    try:
        descriptor, is_packed = folder.open(name, READING), False
    except FileNotFoundError as error:
        try:
            descriptor, is_packed = folder.open(name + PACKED, READING), True
        except FileNotFoundError:
            raise error from None
    file = open(descriptor, "rb")  # noqa: PTH123, SIM115 - an open descriptor; the caller closes
    check_regular(descriptor, f"{folder.path}/{name}")
    return unpacking(file) if is_packed else file


def _texts(raw: Iterator[bytes]) -> Iterator[str]:
    """Decode pieces whose ends may lie within a character."""
    left = b""
    for piece in raw:
        whole = left + piece
        end = _end_of_characters(whole)
        left = whole[end:]
        yield decoded(whole[:end])
    yield decoded(left)


def _end_of_characters(raw: bytes) -> int:
    """The end of the last character that is surely whole."""
    for back in range(1, min(_LONGEST_CHARACTER, len(raw)) + 1):
        lead = raw[-back]
        if lead < 0x80:  # noqa: PLR2004 - ASCII stands for itself
            return len(raw)
        if lead >= 0xC0:  # noqa: PLR2004 - a character begins here
            return len(raw) - back
    return len(raw)


def _unenveloped(texts: Iterator[str]) -> Iterator[str]:
    """The content of an envelope, which is its last key."""
    left = _after_head(texts)
    while True:
        end = _end_of_whole(left)
        yield json.loads(f'"{left[:end]}"', strict=False)
        if left[end : end + 1] == '"':
            return
        more = next(texts, None)
        if more is None:
            raise ValueError("no envelope, or it is cut off")
        left = left[end:] + more


def _after_head(texts: Iterator[str]) -> str:
    head = ""
    for text in texts:
        head += text
        _, key, content = head.partition(_CONTENT_KEY)
        if key:
            return content
        if len(head) > _LONGEST_HEAD:
            break
    raise ValueError("no envelope: it has no content")


def _end_of_whole(text: str) -> int:
    found = _WHOLE.match(text)
    end = found.end() if found else 0
    at_end = end == len(text) or text[end] == "\\"
    half = _FIRST_HALF.search(text, max(end - _ESCAPE_LENGTH, 0), end) if at_end else None
    return half.start() if half else end


Format: TypeAlias = Literal["text", "envelope"]


def stored_bytes(tree: Tree, path: str) -> bytes:
    """Return the bytes of a content's file, unpacked where it is packed.

    Raises `OSError`, and `ValueError` for what was packed and is harmed.
    """
    folder, name = tree.place(path)
    try:
        return read_whole(folder, name)
    except FileNotFoundError as error:
        try:
            return unpacked(read_whole(folder, name + PACKED))
        except FileNotFoundError:
            raise error from None


def is_stored(tree: Tree, path: str) -> bool:
    """Is there a file for a content, plain or packed."""
    for ending in ("", PACKED):
        try:
            folder, name = tree.place(path + ending)
            folder.stat(name)
        except FileNotFoundError:
            continue
        return True
    return False


def text_of(raw: bytes, form: Format) -> str:
    """Return the text in a file. Raises `ValueError` for what was not written here."""
    return opened_envelope(raw)[0] if form == "envelope" else decoded(raw)


def origin_in(raw: bytes, form: Format) -> Origin | None:
    """Return what a file itself tells of the item that it holds."""
    return opened_envelope(raw)[1] if form == "envelope" else None
