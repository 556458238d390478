"""What a turn asks of the outside world, and the two drivers that do it, in this thread or beside.

A turn is a generator: it yields a request and is sent the outcome. Sync and async are the same
turn under another driver.
"""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from policyctx.errors import StoreError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from policyctx.planning.paths import File
    from policyctx.store.content import JSON, Content

T = TypeVar("T")
Record: TypeAlias = "Mapping[str, JSON]"


class Store(Protocol):
    """What a session saves to, such as `ContextFileSystem`; each method raises `StoreError`."""

    root: Path
    """Absolute."""

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return the text saved at `path`, absolute or below the root."""
        ...

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        """Save all contents, and return the file of each."""
        ...

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Keep records of the session."""
        ...

    def records(self) -> list[dict[str, JSON]]:
        """Return every record kept, oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Save:
    """Save these contents, or none; the outcome is the file of each.

    `recorded` says that `Remember` follows, for which the disk is waited for in any case.
    """

    contents: tuple[Content, ...]
    recorded: bool


@dataclass(frozen=True, slots=True)
class Remember:
    """Keep these records for the time after a restart; there is no outcome.

    What is not `important` need not wait for the disk.
    """

    records: tuple[Record, ...]
    important: bool = True


@dataclass(frozen=True, slots=True)
class Recall:
    """The outcome is every record of the session, oldest first."""


Request: TypeAlias = Save | Remember | Recall
Outcome: TypeAlias = list[Any] | StoreError
Turn: TypeAlias = Generator[Request, Outcome, T]


def run(turn: Turn[T], store: Store) -> T:
    """Carry out what a turn asks for, in this thread."""
    try:
        request = next(turn)
        while True:
            request = turn.send(_outcome(store, request))
    except StopIteration as stop:
        result: T = stop.value
        return result


async def run_async(turn: Turn[T], store: Store) -> T:
    """Carry out what a turn asks for, without blocking the event loop."""
    try:
        request = next(turn)
        while True:
            request = turn.send(await asyncio.to_thread(_outcome, store, request))
    except StopIteration as stop:
        result: T = stop.value
        return result


def _outcome(store: Store, request: Request) -> Outcome:
    try:
        if isinstance(request, Save):
            return store.save(request.contents, recorded=request.recorded)
        if isinstance(request, Recall):
            return store.records()
        store.remember(request.records, flush=request.important)
    except StoreError as error:
        return error
    return []
