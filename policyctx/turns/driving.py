"""What a turn asks of the outside world, and the two drivers that do it, in this thread or beside.

A turn is a generator: it yields a request and is sent the outcome. Sync and async are the same
turn under another driver.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from policyctx.errors import StoreError, SummaryError

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from policyctx.compaction.restoration import FileReader
    from policyctx.compaction.summarizers import Summarizer, SummaryRequest
    from policyctx.planning.paths import File
    from policyctx.policy.models.compaction import Restore
    from policyctx.store.content import JSON, Content
    from policyctx.tokens.counter import TokenCounter

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


class OneByOne:
    """A store that is asked for one thing at a time, by whichever thread.

    A cancelled turn may leave a thread behind that still writes; whoever asks next waits for it.
    """

    def __init__(self, store: Store, lock: AbstractContextManager[object]) -> None:
        self.root = store.root
        self._store, self._lock = store, lock

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return what the store reads at `path`."""
        with self._lock:
            return self._store.read(path)

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        """Save all contents, and return the file of each."""
        with self._lock:
            return self._store.save(contents, recorded=recorded)

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Keep records of the session."""
        with self._lock:
            self._store.remember(records, flush=flush)

    def records(self) -> list[dict[str, JSON]]:
        """Return every record kept, oldest first."""
        with self._lock:
            return self._store.records()


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


@dataclass(frozen=True, slots=True)
class FindRoot:
    """The outcome is the identity of the store's root folder, None where it is not there.

    `file` is below the root; with it, the folder counts only when it holds this file.
    """

    file: str = ""


@dataclass(frozen=True, slots=True)
class Summarise:
    """Ask for a summary, once; the outcome is its text."""

    summarizer: Summarizer
    request: SummaryRequest


@dataclass(frozen=True, slots=True)
class Wait:
    """Let so many seconds pass; there is no outcome."""

    seconds: float


@dataclass(frozen=True, slots=True)
class ReadFiles:
    """Read these files back, the newest first; the outcome is a `Restoration`."""

    paths: tuple[str, ...]
    settings: Restore
    counter: TokenCounter
    visible: frozenset[str]
    reader: FileReader


Request: TypeAlias = Save | Remember | Recall | FindRoot | Summarise | Wait | ReadFiles
# What a request comes to: which of these is what its class says.
Outcome: TypeAlias = Any
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
            request = turn.send(await _outcome_async(store, request))
    except StopIteration as stop:
        result: T = stop.value
        return result


async def _outcome_async(store: Store, request: Request) -> Outcome:
    if isinstance(request, Wait):
        return await asyncio.sleep(request.seconds)
    if isinstance(request, FindRoot):  # quicker than a thread is started
        return _outcome(store, request)
    if isinstance(request, Summarise):
        from policyctx.compaction.summarizers import asked_async  # noqa: PLC0415 - seldom needed

        try:
            return await asked_async(request.summarizer, request.request)
        except SummaryError as error:
            return error
    return await asyncio.to_thread(_outcome, store, request)


def _outcome(store: Store, request: Request) -> Outcome:
    if isinstance(request, Wait):
        return time.sleep(request.seconds)
    if isinstance(request, Summarise | ReadFiles):
        return _of_compaction(request)
    if isinstance(request, FindRoot):
        return _root_of(store, request.file)
    return _of_store(store, request)


def _of_compaction(request: Summarise | ReadFiles) -> Outcome:
    from policyctx.compaction.restoration import restore  # noqa: PLC0415 - seldom needed
    from policyctx.compaction.summarizers import asked  # noqa: PLC0415 - seldom needed

    if isinstance(request, ReadFiles):
        return restore(
            request.paths,
            request.settings,
            request.reader,
            request.counter,
            visible=request.visible,
        )
    try:
        return asked(request.summarizer, request.request)
    except SummaryError as error:
        return error


def _root_of(store: Store, file: str) -> tuple[int, int] | None:
    """Return the device and the number of the root folder."""
    try:
        found = store.root.stat()
        if file:
            (store.root / file).stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


def _of_store(store: Store, request: Save | Remember | Recall) -> Outcome:
    try:
        if isinstance(request, Save):
            return store.save(request.contents, recorded=request.recorded)
        if isinstance(request, Recall):
            return store.records()
        store.remember(request.records, flush=request.important)
    except StoreError as error:
        return error
    return []
