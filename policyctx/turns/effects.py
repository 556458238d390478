"""Effects: what a turn asks of the outside world, each with the type of its outcome.

A turn is a generator that yields effects. It performs none itself, so the same turn runs
synchronously and asynchronously, by the driver that runs it:

    files = yield from Save(contents, recorded=True).ask()

The driver raises whatever a failed effect raises at this expression, so a turn handles a failure
with an ordinary `try` and `except`. `summarising` has those of a compaction.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

from policyctx import lazy
from policyctx.definitions.items import Message
from policyctx.errors import StoreError
from policyctx.messages.json_text import JSON
from policyctx.paths import File
from policyctx.store.backend import Root
from policyctx.store.content import Content
from policyctx.store.files import rests_of

T = TypeVar("T")
Record: TypeAlias = "Mapping[str, JSON]"
Answer: TypeAlias = bool | str | None


class SessionStore(Protocol):
    """What a session saves to, such as `ContextFileSystem`; each method raises `StoreError`."""

    @property
    def root(self) -> Root:
        """The absolute path of the folder, or the URL."""

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return the text saved at `path`, absolute or below the root."""

    def save(self, contents: Sequence[Content], *, recorded: bool = False) -> list[File]:
        """Save the texts of all contents, and return the file of each.

        What a text is without, such as the images of a result, comes as further contents, unless
        the store keeps `origin.block` itself and says so with an attribute `keeps_blocks`.
        """

    def remember(self, records: Sequence[Record], *, flush: bool = True) -> None:
        """Keep records of the session."""

    def records(self) -> list[dict[str, JSON]]:
        """Return every record kept, oldest first."""


class Effect(ABC, Generic[T]):
    """A request to the outside world with an outcome of type `T`."""

    __slots__ = ()

    may_block: ClassVar[bool] = True
    """Whether performing it may take as long as a disk or another machine takes."""

    @abstractmethod
    def perform(self, store: SessionStore) -> T:
        """Perform the effect in this thread, and return its outcome."""

    async def perform_async(self, store: SessionStore) -> T:
        """Perform the effect without blocking the event loop, by default in a thread.

        The thread of a cancelled effect runs on until it ends.
        """
        return await lazy.asyncio.to_thread(self.perform, store)

    def ask(self) -> Generator[Effect[Any], Any, T]:
        """Return a generator that yields the effect to the driver and returns its outcome.

        Raises what the effect raises.
        """
        return cast("T", (yield self))


# A generator that yields effects and returns a `T`.
Turn: TypeAlias = Generator[Effect[Any], Any, T]


def given_turn(value: T) -> Turn[T]:
    """Return a turn that has nothing left to do."""
    yield from ()
    return value


class Save(Effect["list[File]"]):
    """Save all contents or none, and return the file of each; raises `StoreError`.

    `recorded` says that `Remember` follows. That effect waits for the disk, so this one need not.
    """

    def __init__(self, contents: tuple[Content, ...], *, recorded: bool) -> None:
        self.contents, self.recorded = contents, recorded

    def perform(self, store: SessionStore) -> list[File]:
        """Save the contents in the store, then what their texts are without."""
        files = store.save(self.contents, recorded=self.recorded)
        if not getattr(store, "keeps_blocks", False) and (rests := rests_of(self.contents, files)):
            store.save(rests, recorded=self.recorded)
        return files


class Holds(Effect[bool]):
    """Return whether the store still holds the content at a path, as it was saved.

    A store may have a method `holds` for this; otherwise the content is read.
    """

    def __init__(self, path: str) -> None:
        self.path = path

    def perform(self, store: SessionStore) -> bool:
        """Ask the store, or read the content."""
        holds = getattr(store, "holds", None)
        if holds is not None:
            return bool(holds(self.path))
        try:
            store.read(self.path)
        except StoreError:
            return False
        return True


class Remember(Effect[None]):
    """Keep records that the session reads after a restart; raises `StoreError`.

    Records that are not `important` are written without waiting for the disk.
    """

    def __init__(self, records: tuple[Record, ...], *, important: bool = True) -> None:
        self.records, self.important = records, important

    def perform(self, store: SessionStore) -> None:
        """Append the records to those of the store."""
        store.remember(self.records, flush=self.important)


class Recall(Effect["list[dict[str, JSON]]"]):
    """Return every record of the session, oldest first; raises `StoreError`."""

    def perform(self, store: SessionStore) -> list[dict[str, JSON]]:
        """Read the records of the store."""
        return store.records()


class FindRoot(Effect["tuple[int, int] | None"]):
    """Return the device and inode numbers of the store's root folder, None if it does not exist.

    With `file`, a path below the root, the folder counts only if it contains this file.
    """

    may_block: ClassVar[bool] = False

    def __init__(self, file: str = "") -> None:
        self.file = file

    def perform(self, store: SessionStore) -> tuple[int, int] | None:
        """Look the folder up on the disk."""
        root = store.root
        if not isinstance(root, Path):
            return None  # a prefix in an object store is no folder that could be removed
        try:
            found = root.stat()
            if self.file:
                (root / self.file).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    async def perform_async(self, store: SessionStore) -> tuple[int, int] | None:
        """Look the folder up in this thread, which is quicker than starting one."""
        return self.perform(store)


@dataclass(frozen=True, slots=True)
class CompactionAhead:
    """A compaction that a session is about to make.

    `messages` are the objects of the list, not copies: the hook must not change them.
    """

    session_id: str
    step: str
    """The name of the policy's step."""
    messages: tuple[Message, ...]
    """The messages that a summary would replace, as the turn's other steps have left them."""
    tokens: int
    """Tokens of `messages`."""
    first: int
    """Position of the first of them in the list after earlier compactions."""
    last: int
    """Position of the last of them; messages between the two may stay."""


class BeforeCompaction(Protocol):
    """A hook that is called before a compaction: a function of a `CompactionAhead`, or a coroutine.

    It returns None or True to let the compaction be made. False declines it, and so does a text,
    which says why. A hook that raises an exception, or returns anything else, declines it too: what
    could have declined a compaction must not be skipped. The reason is in the plan and in
    `Result.warnings`, and the traceback of an exception is in the log. As long as the gates are
    open, the hook is called in each turn. It must not call `apply` of its session.
    """

    def __call__(self, ahead: CompactionAhead, /) -> Answer | Awaitable[Answer]:
        """Return whether the compaction may be made."""
