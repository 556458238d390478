"""The file of a content: plain or compressed, a text or an envelope, read whole or in pieces.

A compressed file has `.zst` behind its name. An envelope is a JSON document around the text (PRD
context-filesystem, file format).
"""

import codecs
import hashlib
import io
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from types import ModuleType
from typing import IO, Literal, NamedTuple, TypeAlias

from policyctx.messages.json_text import JSON, stringified
from policyctx.paths import File
from policyctx.store.backend import Backend, FileStatus
from policyctx.store.content import (
    PACKED,
    Content,
    Encoding,
    Origin,
    Saved,
    decoded,
    encoded,
    sha256_of,
)
from policyctx.store.hollow import Hollow, hollow
from policyctx.store.index import IndexEntry

# Bytes of a frame that are unpacked at a time where they become many: of a repetitive text 8 KB may
# become more than 100 MB.
_LEAST_READ = 64
_SCHEMA_VERSION = "1.0"
_TEXT_KEY = "content"
_HALVES = re.compile("[\ud800-\udbff][\udc00-\udfff]")
# The characters of a hollow block that the index has at most.
MOST_CHARS = 4096
_REST = ".blocks.json"
_NUMBERED_REST = re.compile(r".\.blocks(?:-[0-9]+)?\.json$")
PIECE_BYTES = 1 << 20
_BEFORE_TEXT = f'"{_TEXT_KEY}": "'
# The head of an envelope is short: ids and names.
_LONGEST_HEAD = 1 << 16
# The contents of a JSON string, up to its closing quote or an incomplete escape. Possessive, since
# a position to return to would be kept for each of a piece's many escapes.
_WHOLE = re.compile(r'(?:[^"\\]++|\\u[0-9a-fA-F]{4}|\\[^u])*+')
# The first half of a character outside the first plane; the other half may come next.
_FIRST_HALF = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}$")
_ESCAPE_LENGTH = 6
Format: TypeAlias = Literal["text", "envelope"]


def packed_whole(raw: bytes) -> bytes:
    """Return the bytes as one zstd frame that states their number."""
    return bytes(_zstandard().ZstdCompressor().compress(raw))


def packed_pieces(raws: Iterable[bytes]) -> bytes:
    """Return the joined pieces as one zstd frame; they are never in memory together."""
    file = io.BytesIO()
    with packing(file) as writer:
        for raw in raws:
            writer.write(raw)
    return file.getvalue()


def unpacked(raw: bytes) -> bytes:
    """Return the bytes in a zstd frame. Raises `ValueError` for a damaged or incomplete frame."""
    return unpacking(io.BytesIO(raw)).read()


def is_packed(raw: bytes) -> bool:
    """Whether bytes are a zstd frame, which no text in UTF-8 begins like."""
    return raw.startswith(b"\x28\xb5\x2f\xfd")


def unpacking(file: IO[bytes]) -> IO[bytes]:
    """Return a reader of the zstd frame in `file`; it raises `ValueError` as `unpacked` does."""
    return io.BufferedReader(_Unpacking(file))


# Bytes of a frame that are written at a time; by default it would be 128 KB.
_WRITTEN = 16_384


@contextmanager
def packing(file: IO[bytes]) -> Iterator[IO[bytes]]:
    """Provide a writer that compresses into `file`; without an error, the frame is complete."""
    compressor = _zstandard().ZstdCompressor()
    with compressor.stream_writer(file, write_size=_WRITTEN, closefd=False) as writer:
        yield writer


class _Unpacking(io.RawIOBase):
    """A zstd reader that raises `ValueError`, for an incomplete frame too."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._frame = _zstandard().ZstdDecompressor().decompressobj()
        self._ready = memoryview(b"")
        self._step = _LEAST_READ

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        while not self._ready and not self._frame.eof:
            raw = self._file.read(self._step)
            if not raw:
                raise ValueError("a packed content is cut off")
            try:
                self._ready = memoryview(self._frame.decompress(raw))
            except _zstandard().ZstdError as error:
                raise ValueError(f"no packed content: {error}") from error
            is_small = len(self._ready) < io.DEFAULT_BUFFER_SIZE
            self._step = min(2 * self._step, io.DEFAULT_BUFFER_SIZE) if is_small else _LEAST_READ
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


def enveloped(text: str, origin: Origin | None, saved_at: float) -> bytes:
    """Return an envelope in UTF-8."""
    document = _document(text, origin, saved_at)
    shown = json.dumps(document, ensure_ascii=False, indent=2)
    try:
        return f"{shown}\n".encode()
    except UnicodeEncodeError:
        # JSON can escape a lone surrogate, but two adjacent halves would become one character.
        if _HALVES.search(text):
            return encoded(f"{shown}\n")
        return f"{json.dumps(document, indent=2)}\n".encode()


def _document(text: str, origin: Origin | None, saved_at: float) -> dict[str, JSON]:
    """Return an envelope. The content is its last key, so that it can be streamed."""
    return {
        "schema_version": _SCHEMA_VERSION,
        "item_id": origin.item_id if origin else None,
        "item_type": origin.item_type if origin else None,
        "offloaded_at": int(saved_at),
        "metadata": {"tool_name": origin.tool_name} if origin and origin.tool_name else {},
        _TEXT_KEY: text,
    }


def opened_envelope(raw: bytes) -> tuple[str, Origin | None]:
    """Return the text in an envelope and its origin. Raises `ValueError` for another document."""
    try:
        document = json.loads(raw)
    except RecursionError as error:
        raise ValueError("no envelope: nested too deep") from error
    if isinstance(document, dict) and isinstance(text := document.get(_TEXT_KEY), str):
        return text, _envelope_origin(document)
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


def pieces(backend: Backend, path: str, form: Format) -> Iterator[str]:
    """Yield the text of a content piece by piece, uncompressed and out of its envelope.

    Raises `OSError`, and `ValueError` for a file that this store did not write.
    """
    texts = codecs.iterdecode(_raw_pieces(backend, path), "utf-8", "surrogatepass")
    yield from _unenveloped(texts) if form == "envelope" else texts


def sha256_in(backend: Backend, path: str, form: Format) -> str:
    """Return the sha256, in hex, of the text in a file. Raises what `pieces` does."""
    is_text, found = form == "text", hashlib.sha256()
    raws = _raw_pieces(backend, path) if is_text else map(encoded, pieces(backend, path, form))
    for raw in raws:
        found.update(raw)
    return found.hexdigest()


def _raw_pieces(backend: Backend, path: str) -> Iterator[bytes]:
    with _opened(backend, path) as file:
        while raw := file.read(PIECE_BYTES):
            yield raw


def _opened(backend: Backend, path: str) -> IO[bytes]:
    """Open the file of a content, and uncompress it."""
    try:
        return backend.open(path)
    except FileNotFoundError as error:
        try:
            return unpacking(backend.open(path + PACKED))
        except FileNotFoundError:
            raise error from None


def _unenveloped(texts: Iterator[str]) -> Iterator[str]:
    """Yield the content of an envelope, which is its last key."""
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
        _, key, content = head.partition(_BEFORE_TEXT)
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


def stored_bytes(backend: Backend, path: str) -> bytes:
    """Return a content's bytes, uncompressed; raises `OSError`, or `ValueError` for damage."""
    with _opened(backend, path) as file:
        return file.read()


def stored_status(backend: Backend, path: str) -> tuple[FileStatus, bool]:
    """Return the status of a content's file, and whether it is compressed.

    Raises `FileNotFoundError` when there is neither file.
    """
    try:
        return backend.status(path), False
    except FileNotFoundError:
        return backend.status(path + PACKED), True


def is_stored(backend: Backend, path: str) -> bool:
    """Whether there is a file for a content, compressed or not."""
    try:
        stored_status(backend, path)
    except FileNotFoundError:
        return False
    return True


def text_of(raw: bytes, form: Format) -> str:
    """Return the text in a file. Raises `ValueError` for a file that this store did not write."""
    return opened_envelope(raw)[0] if form == "envelope" else decoded(raw)


class Prepared(NamedTuple):
    """A content that is ready to be written: its bytes, hash and counts."""

    content: Content
    format: Format
    raw: bytes
    """The text in UTF-8, compressed where `is_packed` and the format is `text`."""
    sha256: str
    size: int
    """Bytes of the text in UTF-8."""
    chars: int
    lines: int
    is_packed: bool
    hollow: Hollow | None = None
    """The block of the item without its text."""
    rest: Content | None = None
    """What holds the hollow block, where it is large."""

    @property
    def wanted(self) -> str:
        """The path without a number."""
        return self.content.wanted_path or self.content.relative_path

    @property
    def item_id(self) -> str | None:
        """The id of the item, None where the content came without."""
        return self.content.origin.item_id if self.content.origin else None

    def document(self, now: float) -> bytes:
        """Return the bytes of its file."""
        if self.format == "text":
            return self.raw
        document = enveloped(self.content.text, self.content.origin, now)
        return packed_whole(document) if self.is_packed else document

    def stored_path(self, path: str) -> str:
        """Return the path of the file that is read by `path`."""
        return path + PACKED if self.is_packed else path

    def entry(
        self, path: str, now: float, *, same_as: str | None = None, replaces: str | None = None
    ) -> IndexEntry:
        """Return its entry in the index."""
        origin, rest = self.content.origin, self.rest
        return IndexEntry(
            path=path,
            sha256=self.sha256,
            size=self.size,
            chars=self.chars,
            lines=self.lines,
            saved_at=now,
            wanted="" if path == self.wanted else self.wanted,
            format=self.format,
            origin=origin.without_block() if origin else None,
            hollow=self.hollow if rest is None else None,
            rest=None if rest is None else sha256_of(encoded(rest.text)),
            is_rest=self.content.is_rest,
            same_as=same_as,
            replaces=replaces,
        )

    def saved(self, path: str, root: str, *, reused: bool, same_as: str | None = None) -> Saved:
        """Return the result for the caller."""
        path = self.stored_path(path)
        return Saved(
            File(path, f"{root}/{path}"),
            sha256=self.sha256,
            chars=self.chars,
            lines=self.lines,
            size=self.size,
            reused=reused,
            same_as=same_as,
        )


def prepare(content: Content, form: Format, *, packs: bool, has_index: bool = True) -> Prepared:
    """Encode and hash a content; `packs` says whether the store compresses at all.

    The pieces of a text are iterated once: the hashed bytes are those that will be written.
    """
    is_packed = packs and content.packed
    block = content.origin.block if content.origin else None
    bare = None if block is None else hollow(block, content.text)
    if form == "envelope":  # which is made of the whole text
        content = replace(content, source=content.text)
    encoding = Encoding(content.pieces)
    raw = packed_pieces(encoding) if is_packed and form == "text" else _joined(iter(encoding))
    return Prepared(
        content,
        form,
        raw,
        encoding.sha256,
        size=encoding.size,
        chars=encoding.chars,
        lines=encoding.lines,
        is_packed=is_packed,
        hollow=bare,
        rest=None if bare is None else _rest_of(content, bare, has_index=has_index),
    )


def rests_of(contents: Sequence[Content], files: Sequence[File]) -> list[Content]:
    """Return what holds the images and the like that these texts, in these files, are without."""
    found = []
    for content, file in zip(contents, files, strict=True):
        if content.origin is not None and (block := content.origin.block) is not None:
            path, text = file.relative_path, content.text
            found.append(_rest_of(Content(path, text, path), hollow(block, text), has_index=False))
    return [*filter(None, found)]


def _rest_of(content: Content, bare: Hollow, *, has_index: bool) -> Content | None:
    """Return what holds the hollow block of a content, None where the index has it.

    Without an index it is kept only if blocks such as images are not in the text at all.
    """
    text = ""
    if has_index or bare.holds_more:
        text = str(stringified(bare.as_json()))
    if len(text) <= (MOST_CHARS if has_index else 0):
        return None
    names = (f"{path}{_REST}" for path in (content.relative_path, content.wanted_path))
    path, wanted = names if content.wanted_path else (next(names), "")
    return Content(path, text, wanted, is_rest=True)


def is_rest(path: str, text: str) -> bool:
    """Whether a text that no index knows is the hollow block of another content."""
    if _NUMBERED_REST.search(path) is None:
        return False
    try:
        found = json.loads(text)
        bare = Hollow.of(found) if isinstance(found, dict) else None
        return bare is not None and bare.as_json() == found
    except (ValueError, RecursionError, TypeError):
        return False


def _joined(raws: Iterator[bytes]) -> bytes:
    """Return the joined pieces; a single piece is not copied."""
    file = io.BytesIO(next(raws, b""))
    file.seek(0, io.SEEK_END)
    file.writelines(raws)
    return file.getvalue()
