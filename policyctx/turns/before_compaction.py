"""The hook that is called before a compaction, and how its answer is obtained."""

import asyncio
import inspect
import logging
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from policyctx.definitions.items import Message
from policyctx.errors import in_words
from policyctx.planning.decisions import Reason
from policyctx.turns.effects import Effect, SessionStore

_LOG = logging.getLogger("policyctx")


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


Answer: TypeAlias = bool | str | None


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
        ...


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
        with ThreadPoolExecutor(1, "policyctx-hook") as pool:
            return pool.submit(context.run, asyncio.run, self._awaited(answer)).result()

    async def perform_async(self, store: SessionStore) -> Reason | None:
        """Await an asynchronous hook, or call a synchronous one in a thread."""
        del store
        if inspect.iscoroutinefunction(self.hook):
            return await self._awaited(self.hook(self.ahead))
        answer = await asyncio.to_thread(self._called)
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
        _LOG.error(
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
