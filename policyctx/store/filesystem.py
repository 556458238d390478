"""`ContextFileSystem`: where offloaded content lives, and how it is read back."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from policyctx.errors import StoreError
from policyctx.planning.paths import File, FreePaths
from policyctx.store.writing import Batch

if TYPE_CHECKING:
    from collections.abc import Sequence

# How often a name may be lost to another writer before that is an error.
_RACES = 100


@dataclass(frozen=True, slots=True)
class Content:
    """A text to be saved, and the path below the root that it is expected to get.

    `wanted_path` is that path without a number; when the expected one is taken, the first free
    number behind this one is.
    """

    relative_path: str
    text: str
    wanted_path: str = ""


class ContextFileSystem:
    """A folder of saved contents, one text a file, bytes as they are in UTF-8.

    Nothing is created before the first `save`. Lone surrogates, which UTF-8 does not have, are
    written as CPython's `surrogatepass` does, so that every text reads back as it was.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        *,
        on_conflict: Literal["suffix", "overwrite", "error"] = "suffix",
        sync: Literal["always", "never"] = "always",
        mode: str = "0600",
    ) -> None:
        try:
            self.root = Path(root).expanduser().absolute()
        except RuntimeError as error:
            raise StoreError(f"{root}: {error}", path=os.fspath(root)) from error
        self._on_conflict = on_conflict
        self._flush = sync == "always"
        self._mode = int(mode, 8)

    def save(self, contents: Sequence[Content]) -> list[File]:
        """Write all contents, or none, and return the file of each.

        When this returns, each file is complete under its name, and with `sync: always` on stable
        storage. A file that holds the very content already is used again. Raises `StoreError`,
        after which the disk is as it was (with `on_conflict: overwrite`, a name may have its new
        content already).
        """
        for _ in range(_RACES):
            batch = Batch(mode=self._mode, flush=self._flush)
            try:
                files = self._staged(batch, contents)
                batch.publish(overwrite=self._on_conflict == "overwrite")
            except FileExistsError as error:
                batch.roll_back()
                lost = error
            except (OSError, ValueError) as error:
                batch.roll_back()
                raise self._error("written", error) from error
            except BaseException:
                batch.roll_back()
                raise
            else:
                return files
        raise self._error("written", lost) from lost

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return the text saved at `path`, absolute or below the root.

        Raises `StoreError` when there is no such file, it cannot be read, or it lies outside the
        root.
        """
        wanted = self.root / path
        try:
            resolved = wanted.resolve(strict=True)
            if not resolved.is_relative_to(self.root.resolve()):
                raise StoreError(f"{wanted} is not in the store {self.root}", path=str(wanted))
            return resolved.read_bytes().decode("utf-8", "surrogatepass")
        except (OSError, ValueError, RuntimeError) as error:
            raise self._error("read", error, wanted) from error

    def _staged(self, batch: Batch, contents: Sequence[Content]) -> list[File]:
        names = FreePaths()
        files = []
        for content in contents:
            raw = content.text.encode("utf-8", "surrogatepass")
            path = self._name(names, content, raw)
            target = self.root / path
            if not target.parent.resolve().is_relative_to(self.root.resolve()):
                raise StoreError(f"{target} leads out of {self.root}", path=str(target))
            if self._on_conflict == "overwrite" or not _holds(target, raw):
                batch.stage(target, raw)
            files.append(File(path, str(target)))
        return files

    def _name(self, names: FreePaths, content: Content, raw: bytes) -> str:
        """The name for this content: free on the disk, or holding the same bytes already."""
        path = content.relative_path
        if self._on_conflict == "overwrite":
            return path

        def usable(candidate: str) -> bool:
            target = self.root / candidate
            return not os.path.lexists(target) or _holds(target, raw)

        if self._on_conflict == "error" and (path in names or not usable(path)):
            target = self.root / path
            raise StoreError(f"{target} holds another item already", path=str(target))
        is_free = path not in names and usable(path)
        return names.take(path if is_free else content.wanted_path or path, passes=usable)

    def _error(self, verb: str, error: Exception, path: Path | None = None) -> StoreError:
        where = str(path or getattr(error, "filename", None) or self.root)
        reason = getattr(error, "strerror", None) or error
        return StoreError(f"{where} cannot be {verb}: {reason}", path=where)


def _holds(target: Path, raw: bytes) -> bool:
    """Is `target` a file with exactly this content."""
    try:
        if target.is_symlink() or target.stat().st_size != len(raw):
            return False
        return target.read_bytes() == raw
    except FileNotFoundError:
        return False
