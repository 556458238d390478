"""Effects: what a turn asks of the outside world, each with the type of its outcome.

A turn is a generator that yields effects. It performs none itself, so the same turn runs
synchronously and asynchronously, by the driver that runs it:

    files = yield from Save(contents, recorded=True).ask()

The driver raises whatever a failed effect raises at this expression, so a turn handles a failure
with an ordinary `try` and `except`. One effect calls the hook that may decline a compaction.
"""

from __future__ import annotations

import inspect
import os
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Generator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar, cast

from policyctx import lazy
from policyctx.compaction.assembly import History, SummaryRequest, Verified
from policyctx.compaction.file_access import FileAccess
from policyctx.compaction.restoration import FileReader, Restoration, restore
from policyctx.compaction.summarizers import Summarizer, asked, asked_async
from policyctx.definitions.items import Message
from policyctx.errors import StoreError, in_words
from policyctx.messages.json_text import JSON
from policyctx.paths import File
from policyctx.planning.decisions import Reason
from policyctx.policy.models.compaction import Restore
from policyctx.policy.models.compaction import Summary as SummarySettings
from policyctx.store.backend import Root
from policyctx.store.content import Content
from policyctx.store.files import rests_of
from policyctx.tokens.counter import TokenCounter

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


@dataclass(frozen=True, slots=True)
class Save(Effect["list[File]"]):
    """Save all contents or none, and return the file of each; raises `StoreError`.

    `recorded` says that `Remember` follows. That effect waits for the disk, so this one need not.
    """

    contents: tuple[Content, ...]
    recorded: bool

    def perform(self, store: SessionStore) -> list[File]:
        """Save the contents in the store, then what their texts are without."""
        files = store.save(self.contents, recorded=self.recorded)
        if not getattr(store, "keeps_blocks", False) and (rests := rests_of(self.contents, files)):
            store.save(rests, recorded=self.recorded)
        return files


@dataclass(frozen=True, slots=True)
class Holds(Effect[bool]):
    """Return whether the store still holds the content at a path, as it was saved.

    A store may have a method `holds` for this; otherwise the content is read.
    """

    path: str

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


@dataclass(frozen=True, slots=True)
class Remember(Effect[None]):
    """Keep records that the session reads after a restart; raises `StoreError`.

    Records that are not `important` are written without waiting for the disk.
    """

    records: tuple[Record, ...]
    important: bool = True

    def perform(self, store: SessionStore) -> None:
        """Append the records to those of the store."""
        store.remember(self.records, flush=self.important)


@dataclass(frozen=True, slots=True)
class Recall(Effect["list[dict[str, JSON]]"]):
    """Return every record of the session, oldest first; raises `StoreError`."""

    def perform(self, store: SessionStore) -> list[dict[str, JSON]]:
        """Read the records of the store."""
        return store.records()


@dataclass(frozen=True, slots=True)
class FindRoot(Effect["tuple[int, int] | None"]):
    """Return the device and inode numbers of the store's root folder, None if it does not exist.

    With `file`, a path below the root, the folder counts only if it contains this file.
    """

    may_block: ClassVar[bool] = False

    file: str = ""

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
class Summarise(Effect[str]):
    """Ask a summarizer once, and return the text of the summary; raises `SummaryError`."""

    summarizer: Summarizer
    request: SummaryRequest

    def perform(self, store: SessionStore) -> str:
        """Call the summarizer, and wait for its answer up to the timeout of the request."""
        del store
        return asked(self.summarizer, self.request)

    async def perform_async(self, store: SessionStore) -> str:
        """Await an asynchronous summarizer, or call a synchronous one in a thread."""
        del store
        return await asked_async(self.summarizer, self.request)


@dataclass(frozen=True, slots=True)
class Verify(Effect["Verified"]):
    """Compare a model's summary with what the extractive one would hold; see `verified`."""

    summary: str
    history: History
    settings: SummarySettings
    most_words: int
    """Words that what is missing may take."""
    beside: tuple[str, ...] = ()
    """Texts that will be beside the summary."""

    def perform(self, store: SessionStore) -> Verified:
        """Gather the contents of the history, and append what the summary lacks."""
        del store
        # A fifth of what it takes to import a session.
        from policyctx.compaction.verification import units_of, verified  # noqa: PLC0415

        units = units_of(self.history)
        return verified(self.summary, units, self.most_words, self.beside)


@dataclass(frozen=True, slots=True)
class Wait(Effect[None]):
    """Let a number of seconds pass."""

    seconds: float

    def perform(self, store: SessionStore) -> None:
        """Block this thread."""
        del store
        time.sleep(self.seconds)

    async def perform_async(self, store: SessionStore) -> None:
        """Let the event loop run other tasks."""
        del store
        await lazy.asyncio.sleep(self.seconds)


@dataclass(frozen=True, slots=True)
class ReadFiles(Effect["Restoration"]):
    """Read files of the working directory again, the most recently accessed first."""

    accessed: tuple[FileAccess, ...]
    settings: Restore
    counter: TokenCounter
    visible: frozenset[str]
    """Paths whose content the kept messages still show."""
    reader: FileReader

    def perform(self, store: SessionStore) -> Restoration:
        """Read the files through the reader, within the limits of the settings."""
        del store
        return restore(
            self.accessed, self.settings, self.reader, self.counter, visible=self.visible
        )


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


@dataclass(frozen=True, slots=True)
class AskBefore(Effect["Reason | None"]):
    """Ask a caller's hook, and return why the compaction is not made; None if it may be made."""

    hook: BeforeCompaction
    ahead: CompactionAhead

    def perform(self, store: SessionStore) -> Reason | None:
        """Call the hook in this thread; what it returns to be awaited gets a loop of its own."""
        del store
        answer = self._called()
        if not inspect.isawaitable(answer):
            return _declined(answer)
        context = copy_context()
        # This thread may run an event loop already.
        with lazy.futures.ThreadPoolExecutor(1, "policyctx-hook") as pool:
            return pool.submit(context.run, lazy.asyncio.run, self._awaited(answer)).result()

    async def perform_async(self, store: SessionStore) -> Reason | None:
        """Await an asynchronous hook, or call a synchronous one in a thread."""
        del store
        if inspect.iscoroutinefunction(self.hook):
            return await self._awaited(self.hook(self.ahead))
        answer = await lazy.asyncio.to_thread(self._called)
        return await self._awaited(answer) if inspect.isawaitable(answer) else _declined(answer)

    def _called(self) -> object:
        """Return what the hook returns, or the reason in place of an exception that it raises.

        A future takes no `StopIteration`, so no exception leaves the thread.
        """
        try:
            return self.hook(self.ahead)
        except Exception as error:  # noqa: BLE001 - the hook's, which the reason names
            return self._raised(error)

    async def _awaited(self, answer: Awaitable[object]) -> Reason | None:
        try:
            return _declined(await answer)
        except Exception as error:  # noqa: BLE001 - the hook's, which the reason names
            return self._raised(error)

    def _raised(self, error: Exception) -> Reason:
        lazy.logging.getLogger("policyctx").error(
            "session %s: the hook before a compaction raised an exception; the compaction of step"
            " %s is not made",
            self.ahead.session_id,
            self.ahead.step,
            exc_info=error,
        )
        return Reason("declined", {"why": f"it raised {in_words(error)}"})


def _declined(answer: object) -> Reason | None:
    """Return why an answer declines; None if it does not."""
    if answer is None or answer is True:
        return None
    if isinstance(answer, Reason):
        return answer
    if answer is False:
        return Reason("declined", {"why": "it gave no reason"})
    if isinstance(answer, str):
        return Reason("declined", {"why": " ".join(answer.split()) or "it gave no reason"})
    kind = type(answer).__name__
    return Reason("declined", {"why": f"it returned {kind}, not None, a bool or a text"})
