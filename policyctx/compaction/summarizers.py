"""`Summarizer`: what makes a summary: the shipped ones, those registered, and one try at asking."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextvars import copy_context
from dataclasses import replace
from queue import SimpleQueue
from threading import Lock, Thread
from typing import NamedTuple, Protocol, TypeAlias, cast, runtime_checkable

from policyctx import lazy
from policyctx.compaction.assembly import SummaryRequest, with_pinned, without_pinned
from policyctx.definitions.names import BUILT_IN_SUMMARIZERS, EXTRACTIVE, MODEL_SUMMARIZERS, NONE
from policyctx.errors import SummaryError, UnknownSummarizerError, in_words, nearest
from policyctx.tokens.encoders import words_in

# An answer of more than this many times the words asked for is none; so is one of longer words
# than any text has. A few words are never too many.
_MOST_TIMES = 4
_ALWAYS_ALLOWED_WORDS = 400
_CHARS_PER_WORD = 40
Summarize: TypeAlias = Callable[[SummaryRequest], str | Awaitable[str]]


@runtime_checkable
class Summarizer(Protocol):
    """Makes summaries. One that has `summarize_async(request)` too is awaited where that can be."""

    def summarize(self, request: SummaryRequest, /) -> str:
        """Return the summary; anything raised is a failed try."""


class ModelSummarizer:
    """Base of the shipped summarizers that ask a model: `check` and `verify` hold for them."""


class ExtractiveSummarizer:
    """Writes the summary from the structure of the history: no model, no network."""

    def summarize(self, request: SummaryRequest) -> str:
        """Return the extractive summary, then what is pinned, within the limits altogether.

        Only what is pinned may take more.
        """
        # A fifth of what it takes to import a session.
        from policyctx.compaction.extractive.summary import extractive_summary  # noqa: PLC0415

        settings, pinned = request.settings, request.pinned
        earlier = {at: without_pinned(text, pinned) for at, text in request.history.earlier.items()}
        summary = extractive_summary(
            replace(request.history, earlier=earlier),
            settings,
            counter=request.counter,
            beside=with_pinned("\n", pinned) if pinned else "",
        )
        return with_pinned(summary, pinned)


class NoSummarizer:
    """Stands for `by: none`: what is pinned is all that is left of the history."""

    def summarize(self, request: SummaryRequest) -> str:
        """Return what is pinned; empty without pins."""
        return with_pinned("", request.pinned)


_registered: dict[str, Summarizer] = {}
_registering = Lock()


class _Called(NamedTuple):
    """A callable as a summarizer."""

    summarize: Summarize


def register_summarizer(name: str, summarizer: Summarizer | Summarize) -> None:
    """Let a policy's `summary.by` name this summarizer, in this process.

    A callable takes a `SummaryRequest` and returns the summary, or what is awaited for it. A name
    that is taken, a shipped one too, is taken over.
    """
    with _registering:
        _registered[name] = summarizer_of(summarizer)


def summarizer_of(given: Summarizer | Summarize) -> Summarizer:
    """Return a summarizer for one, or for a callable that `register_summarizer` would take."""
    made = given if isinstance(given, Summarizer) else _Called(given)
    return cast("Summarizer", made)


def summarizer_for(by: str, client: object = None) -> Summarizer:
    """Return the summarizer that a policy's `summary.by` names.

    `client` is the caller's, of the SDK that the name stands for, synchronous or not; without one
    the summarizer makes its own for each try, from the settings and the environment. Raises
    `UnknownSummarizerError`, and `MissingExtraError` without the package of the SDK.
    """
    if by in _registered:
        return _registered[by]
    if by == EXTRACTIVE:
        return ExtractiveSummarizer()
    if by == NONE:
        return NoSummarizer()
    if by in MODEL_SUMMARIZERS:
        from policyctx.compaction.sdk_summarizers import SDK_SUMMARIZERS  # noqa: PLC0415 - extras

        return SDK_SUMMARIZERS[by](client)
    known = list(dict.fromkeys((*BUILT_IN_SUMMARIZERS, *_registered)))
    raise UnknownSummarizerError(by, known, nearest(by, known))


def asked(summarizer: Summarizer, request: SummaryRequest) -> str:
    """Return the summary from one try, made in a thread of its own.

    A summarizer that has not answered within `request.seconds` is left behind. Raises
    `SummaryError` for that, for whatever the summarizer raises, and for an answer that is not text,
    blank, or, unless the policy has `check: false`, more than four times as long as was asked for.
    """

    def called() -> object:
        answer: object = summarizer.summarize(request)
        return _in_own_loop(answer, request.seconds) if inspect.isawaitable(answer) else answer

    try:
        outcome = started(called).result(request.seconds)
    except TimeoutError:
        raise _too_slow(request.seconds) from None
    return _checked(outcome.answer(), request)


async def asked_async(summarizer: Summarizer, request: SummaryRequest) -> str:
    """Return the summary from one try, as `asked` does.

    What is asynchronous is awaited here, and cancelled when it is too slow; all else has a thread.
    Nobody waits for what does not obey.
    """
    summarize = getattr(summarizer, "summarize_async", summarizer.summarize)
    asking = lazy.asyncio.ensure_future(_awaited(summarize, request))
    try:
        await lazy.asyncio.wait([asking], timeout=request.seconds)
    finally:
        if not asking.done():
            asking.add_done_callback(_forgotten)
            asking.cancel()
    if not asking.done():
        await lazy.asyncio.sleep(0)  # it gets the cancellation before the next attempt
        raise _too_slow(request.seconds)
    try:
        answer = asking.result()
    except Exception as error:  # noqa: BLE001 - raised again as what it is for
        raise _failure(error) from _chained(error)
    return _checked(answer, request)


def _forgotten(late: lazy.asyncio.Future[object]) -> None:
    """Take the exception of a call that was left behind, which asyncio would log."""
    if not late.cancelled():
        late.exception()


async def in_thread(function: Callable[[], object]) -> object:
    """Return what a function returns that is called in a thread; cancelled, it is left behind.

    Raises `SummaryError` for what it raises.
    """
    outcome = await lazy.asyncio.wrap_future(started(function))
    return outcome.answer()


async def _awaited(summarize: Summarize, request: SummaryRequest) -> object:
    if inspect.iscoroutinefunction(summarize):
        return await summarize(request)
    answer = await in_thread(lambda: summarize(request))
    return await answer if inspect.isawaitable(answer) else answer


class Called(NamedTuple):
    """What came of a call in a thread; a future would take no `StopIteration` over."""

    value: object = None
    error: BaseException | None = None

    def answer(self) -> object:
        """Return what was returned; raises `SummaryError` for an exception, all else as it is."""
        if isinstance(self.error, Exception | lazy.asyncio.CancelledError):
            raise _failure(self.error) from _chained(self.error)
        if self.error is not None:
            raise self.error
        return self.value


class Worker:
    """A thread that calls functions one after another; nobody waits for it when the process ends.

    It starts with the first call, and ends after the last one when it is closed.
    """

    def __init__(self) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] | None = None

    def call(self, function: Callable[[], object]) -> lazy.futures.Future[Called]:
        """Return what will come of a call of the function."""
        future: lazy.futures.Future[Called] = lazy.futures.Future()
        future.set_running_or_notify_cancel()  # from now on it cannot be cancelled under the thread
        context = copy_context()

        def run() -> None:
            try:
                outcome = Called(context.run(function))
            except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
                outcome = Called(error=error)
            future.set_result(outcome)

        if self._calls is None:
            self._calls = SimpleQueue()
            calls = iter(self._calls.get, None)
            Thread(
                target=_run_each, args=(calls,), name="policyctx-compaction", daemon=True
            ).start()
        self._calls.put(run)
        return future

    def close(self) -> None:
        """Let the thread end."""
        if self._calls is not None:
            self._calls.put(None)
            self._calls = None


def _run_each(calls: Iterator[Callable[[], None] | None]) -> None:
    for run in calls:
        if run is not None:
            run()


def started(function: Callable[[], object]) -> lazy.futures.Future[Called]:
    """Call a function in a thread of its own."""
    worker = Worker()
    try:
        return worker.call(function)
    finally:
        worker.close()


def _in_own_loop(awaitable: Awaitable[object], seconds: float) -> object:
    async def waited() -> object:
        try:
            async with lazy.asyncio.timeout(seconds) as waiting:
                return await awaitable
        except TimeoutError:
            if waiting.expired():
                raise _too_slow(seconds) from None
            raise

    return lazy.asyncio.run(waited())


def _checked(answer: object, request: SummaryRequest) -> str:
    if not isinstance(answer, str):
        raise SummaryError(f"the answer is no text but {type(answer).__name__}")
    if not answer.strip():
        raise SummaryError("the answer is empty", answered=True)
    if request.settings.check is None:
        return answer
    most = max(_MOST_TIMES * request.settings.max_words, _ALWAYS_ALLOWED_WORDS)
    if len(answer) > most * _CHARS_PER_WORD:
        why = f"the answer has {len(answer)} characters, far more than was asked for"
        raise SummaryError(why, answered=True)
    if (words := words_in(answer)) > most:
        why = f"the answer has {words} words, far more than was asked for"
        raise SummaryError(why, answered=True)
    return answer


def _failure(error: BaseException) -> SummaryError:
    if isinstance(error, SummaryError):
        return error
    cause = error if isinstance(error, Exception) else None
    return SummaryError(f"the summarizer raised {in_words(error)}", cause=cause)


def _chained(error: BaseException) -> BaseException | None:
    return error.__cause__ if isinstance(error, SummaryError) else error


def _too_slow(seconds: float) -> SummaryError:
    return SummaryError(f"there was no answer within {round(seconds, 2):g} s")
