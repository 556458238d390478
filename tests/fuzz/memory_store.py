"""A store in memory, for runs in which the disk does not matter."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from policyctx.errors import StoreError
from policyctx.paths import File, FreePaths
from policyctx.store.content import Content


class MemoryStore:
    """What a session saves, by path, and the JSON of its records; see the protocol `Store`."""

    root = Path("/memory")

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.lines: list[str] = []

    def copy(self) -> MemoryStore:
        """Return a store with the same content, which from then on is another one."""
        other = MemoryStore()
        other.files, other.lines = dict(self.files), list(self.lines)
        return other

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return the text saved at `path`, absolute or below the root."""
        name = str(path).removeprefix(f"{self.root}/")
        if name not in self.files:
            raise StoreError(f"no file {name}", path=name)
        return self.files[name]

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        """Save all contents, each under the first form of its path that is free or holds it."""
        del recorded
        return [self._save(content) for content in contents]

    def remember(self, records: Sequence[Mapping[str, Any]], *, flush: bool = True) -> None:
        """Keep records of the session."""
        del flush
        # Two lone surrogates escaped side by side would come back as one character.
        self.lines += (json.dumps(record, ensure_ascii=False) for record in records)

    def records(self) -> list[dict[str, Any]]:
        """Return every record kept, oldest first."""
        return [json.loads(line) for line in self.lines]

    def _save(self, content: Content) -> File:
        text = content.text
        wanted = content.wanted_path or content.relative_path
        name = content.relative_path
        if self.files.get(name, text) != text:
            name = FreePaths().take(wanted, passes=lambda path: self.files.get(path, text) == text)
        self.files[name] = text
        return File(name, f"{self.root}/{name}")
