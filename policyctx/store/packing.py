"""Contents compressed with zstd, in files with `.zst` behind their name."""

from __future__ import annotations

import io
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import ModuleType

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
