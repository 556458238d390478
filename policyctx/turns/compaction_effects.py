"""The effects of a compaction: asking its hook and its summarizer, and reading files again."""

from __future__ import annotations

import inspect
import time
from collections.abc import Awaitable
from contextvars import copy_context
from dataclasses import dataclass

from policyctx import lazy
from policyctx.compaction.assembly import FileReader, History, SummaryRequest, Verified
from policyctx.compaction.file_access import FileAccess
from policyctx.compaction.restoration import Restoration, restore
from policyctx.compaction.summarizers import Summarizer, asked, asked_async
from policyctx.errors import in_words
from policyctx.planning.decisions import Reason
from policyctx.policy.models.compaction import Restore, Summary
from policyctx.tokens.counter import TokenCounter
from policyctx.turns.effects import BeforeCompaction, CompactionAhead, Effect, SessionStore


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
    settings: Summary
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
