"""Contents as a session makes them, and a look at what a store left on the disk."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from policyctx.store.content import Content, Origin
from policyctx.store.filesystem import ContextFileSystem


def result(item_id: str, text: str, *, tool: str = "Bash") -> Content:
    """A tool result of this id, with its original block."""
    origin = Origin(
        item_id,
        "tool_result",
        tool_use_id=item_id,
        tool_name=tool,
        role="user",
        message=3,
        turn=1,
        tokens=len(text) // 4,
        block={"type": "tool_result", "tool_use_id": item_id, "content": text},
    )
    return Content(f"tool_result/{tool}/{item_id}.md", text, origin=origin)


def names_below(folder: Path) -> set[str]:
    """The contents' files; the store's own state apart."""
    paths = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {path.as_posix() for path in paths if path.parts[0] != ".policyctx"}


HOUR = 3600.0
DAY = 24 * HOUR


class Clock:
    """Shows what it is set to."""

    def __init__(self) -> None:
        self.now = 1_700_000_000.0

    def __call__(self) -> float:
        return self.now


def refer(store: ContextFileSystem, item_id: str, state: str) -> None:
    """Record what became of an item's placeholder, as a session does."""
    [entry] = [entry for entry in store.list() if entry.item_id == item_id]
    store.remember(
        [{"item_id": item_id, "path": entry.path, "sha256": entry.sha256, "state": state}]
    )


def ids(entries: Iterable[object]) -> list[str | None]:
    return [getattr(entry, "item_id", None) for entry in entries]
