"""What a compaction asks for: leave from a hook, an accepted summary, and files read again.

A summary is asked for until one is accepted; attempts and waits have limits, and they cost money.
"""

import inspect
import random
import time
from collections.abc import Awaitable
from contextvars import copy_context
from dataclasses import dataclass, replace
from time import monotonic
from typing import NamedTuple

from policyctx import lazy
from policyctx.compaction import assembly, prompt
from policyctx.compaction.assembly import FileReader, History, SummaryRequest, Verified
from policyctx.compaction.file_access import FileAccess
from policyctx.compaction.restoration import Restoration, restore
from policyctx.compaction.summarizers import (
    ExtractiveSummarizer,
    ModelSummarizer,
    NoSummarizer,
    Summarizer,
    asked,
    asked_async,
)
from policyctx.definitions.names import NONE
from policyctx.errors import SummaryError, in_words
from policyctx.planning.decisions import Reason
from policyctx.policy.models import Prices
from policyctx.policy.models.compaction import Restore, Summary
from policyctx.policy.values import Share
from policyctx.pricing.dollars import dollars, prices_of
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.encoders import words_in
from policyctx.tokens.usage import Usage
from policyctx.turns.effects import BeforeCompaction, CompactionAhead, Effect, SessionStore, Turn

# Jitter: sessions that a provider rejected at the same time must not retry at the same time. A
# wait that the policy sets is shortened by up to this share, one that the provider asks for is
# lengthened.
_SHORTER, _LONGER = 0.25, 0.1


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


class Summarised(NamedTuple):
    """The outcome of asking for a summary."""

    text: str | None
    """The accepted summary; None if no summary was accepted."""
    usage: assembly.SummaryUsage
    warnings: tuple[str, ...] = ()
    """Why there is no summary, or why another summarizer made it than the policy names."""
    too_large: int = 0
    """Without a summary: the tokens of the one refused last as too large for what it replaces."""


class Summarising:
    """The attempts at one summary.

    `replaced_tokens` is the size of the replaced messages; `price` converts tokens to dollars, None
    if it is not known.
    """

    def __init__(
        self,
        summarizer: Summarizer,
        request: assembly.SummaryRequest,
        replaced_tokens: int,
        price: Prices | None,
    ) -> None:
        self._summarizer, self._request = summarizer, request
        self._settings = request.settings
        self._replaced_tokens, self._price = replaced_tokens, price
        self._errors: list[SummaryError] = []
        self._warnings: list[str] = []
        self._attempts = 0
        self._appended: int | None = None
        self._too_large = 0
        by_model = isinstance(summarizer, ModelSummarizer)
        verify = self._settings.verify
        self._verifies = by_model if verify is None else verify

    def run(self) -> Turn[Summarised]:
        """Ask until a summary is accepted, or until no attempt or no time is left.

        Nobody is asked where the settings want no summary, whoever the summarizer is.
        """
        if self._settings.by == NONE:
            return Summarised(NoSummarizer().summarize(self._request), assembly.SummaryUsage())
        # The extractive summary is the same each time.
        is_extractive = isinstance(self._summarizer, ExtractiveSummarizer)
        text, stopped = yield from self._attempt(1 if is_extractive else self._settings.attempts)
        if text is not None:
            return self._summarised(text, *self._warnings)
        made = "1 attempt" if self._attempts == 1 else f"{self._attempts} attempts"
        cause = f"after {made}: {self._errors[-1]}{stopped}"
        if self._settings.on_failure == "skip" or is_extractive:
            return self._summarised(None, f"not compacted, {cause}")
        text = yield from self._ask(ExtractiveSummarizer(), self._settings.timeout.seconds)
        if text is None:
            also = f"; the extractive summary failed too: {self._errors[-1]}"
            return self._summarised(None, f"not compacted, {cause}{also}")
        return self._summarised(text, f"the summary is the extractive one, {cause}")

    def _attempt(self, attempts: int) -> Turn[tuple[str | None, str]]:
        """Ask up to so many times; return the summary, or None and why the attempts ended early."""
        ends = monotonic() + self._settings.total_timeout.seconds
        for attempt in range(attempts):
            left = ends - monotonic()
            self._attempts += 1
            text = yield from self._ask(self._summarizer, left)
            if text is not None:
                return text, ""
            error = self._errors[-1]
            if error.is_final or attempt + 1 == attempts:
                break
            wait = self._wait(attempt, error)
            left = max(0.0, ends - monotonic())
            if wait >= left:
                asked = "the provider asks to wait" if error.retry_after else "the next wait is"
                seconds, over = round(error.retry_after or wait, 1), round(left, 1)
                return None, f"; {asked} {seconds:g} s, and `total_timeout` leaves {over:g} s"
            if wait:
                yield from Wait(wait).ask()
        return None, ""

    def _ask(self, summarizer: Summarizer, seconds: float) -> Turn[str | None]:
        """Ask for a summary once; keep the error and return None if there is no acceptable one."""
        is_extractive = isinstance(summarizer, ExtractiveSummarizer)
        request = replace(
            self._request,
            settings=self._within_share() if is_extractive else self._asked_for(),
            timeout=max(0.0, min(seconds, self._settings.timeout.seconds)),
            rejected=tuple(error for error in self._errors if error.answered),
        )
        try:
            answer = yield from Summarise(summarizer, request).ask()
        except SummaryError as error:
            # Its traceback refers to this turn, and a turn that refers to itself is freed late.
            self._errors.append(error.with_traceback(None))
            return None
        text = assembly.with_pinned(answer, request.pinned)
        wrong = prompt.rejection(
            text,
            self._replaced_tokens,
            request,
            by_model=isinstance(summarizer, ModelSummarizer),
            is_checked=not is_extractive,
        )
        if wrong is not None:
            self._too_large = prompt.tokens_over_share(
                text, self._replaced_tokens, self._settings, request.counter
            )
            self._errors.append(wrong)
            return None
        return text if is_extractive or not self._verifies else (yield from self._verified(text))

    def _within_share(self) -> Summary:
        """Return the settings of an extractive summary, which `must_shrink_to` never refuses."""
        share, most = self._settings.must_shrink_to, self._settings.max_tokens
        if not isinstance(share, Share):
            return self._settings
        tokens = max(1, int(share.percent * self._replaced_tokens / 100))
        tokens = tokens if most is None else min(tokens, most)
        return self._settings.model_copy(update={"max_tokens": tokens})

    def _asked_for(self) -> Summary:
        """Return the settings of the request: fewer words if the summary will be verified."""
        allowed = prompt.tokens_allowed(self._replaced_tokens, self._request)
        words = prompt.words_asked_for(self._settings, allowed)
        if self._verifies:
            words = max(1, words - prompt.reserved(words))
        return self._settings.model_copy(update={"max_words": words})

    def _verified(self, text: str) -> Turn[str]:
        """Return an accepted summary with what it lacks of the user's words."""
        settings, pinned = self._settings, self._request.pinned
        bare = assembly.without_pinned(text, pinned)
        allowed = prompt.tokens_allowed(self._replaced_tokens, self._request)
        words = prompt.words_asked_for(settings, allowed)
        room = max(prompt.reserved(words), words - words_in(text))
        try:
            found = yield from Verify(bare, self._request.history, settings, room, pinned).ask()
        except Exception as error:  # noqa: BLE001 - the summary is made and paid for
            self._warnings.append(f"the summary is not verified: {in_words(error)}")
            return text
        longer = assembly.with_pinned(found.text, pinned)
        replaced, counter = self._replaced_tokens, self._request.counter
        if prompt.problem(longer, replaced, settings, counter, pinned) or prompt.over_limit(
            longer, replaced, self._request
        ):
            found, longer = found._replace(appended=0), text
        self._appended = found.appended
        return longer

    def _wait(self, attempt: int, error: SummaryError) -> float:
        """Return the seconds before the next attempt: 0 after an answer that was rejected."""
        if error.answered:
            return 0.0
        if error.retry_after:
            return error.retry_after * (1 + _LONGER * _chance())
        backoff: float = self._settings.backoff.seconds * 2**attempt
        return backoff * (1 - _SHORTER * _chance())

    def _summarised(self, text: str | None, *warnings: str) -> Summarised:
        bills = tuple(self._request.bills)
        billed = sum(bills, Usage(0))
        price = None if self._price is None else prices_of(self._price)
        usage = assembly.SummaryUsage(
            attempts=self._attempts,
            input_tokens=billed.input,
            output_tokens=billed.output,
            cache_read_tokens=billed.cache_read,
            cache_write_tokens=billed.cache_write,
            dollars=sum(dollars(bill, price).total for bill in bills) if bills and price else None,
            appended_lines=self._appended,
        )
        return Summarised(text, usage, warnings, 0 if text is not None else self._too_large)


def _chance() -> float:
    """Return a random number from 0 to 1."""
    return random.random()  # noqa: S311 - not a secret
