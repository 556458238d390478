"""Writers for tests, as a caller would bring them."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path


class Memory:
    """A writer that keeps what it is given."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def write(self, path: str, text: str) -> None:
        self.files[path] = text


class AwaitedMemory(Memory):
    """One that has to be awaited, and knows where that was done."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = 0

    async def write(self, path: str, text: str) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        self.thread = threading.get_ident()
        super().write(path, text)


class Full:
    """A writer to a device that is always full."""

    def write(self, path: str, text: str) -> None:
        del path
        with Path("/dev/full").open("w", encoding="utf-8") as device:
            device.write(text)


class Silent:
    """A writer that fails without a word."""

    def write(self, path: str, text: str) -> None:
        del path, text
        raise TimeoutError
