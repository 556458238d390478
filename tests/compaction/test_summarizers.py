from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from typing import Any

import pytest

from policyctx.compaction import summarizers
from policyctx.compaction.assembly import History, SummaryRequest
from policyctx.compaction.extractive.summary import extractive_summary
from policyctx.compaction.summarizers import (
    ExtractiveSummarizer,
    asked,
    asked_async,
    register_summarizer,
    summarizer_for,
)
from policyctx.errors import SummaryError, UnknownSummarizerError
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for
from policyctx.tokens.encoders import words_in
from tests.conversations import user

COUNTER = counter_for("approximate")
HISTORY = History([user("Never deploy on Friday. The host is db-3.internal.")])
LONG_WAIT = 30.0


@pytest.fixture(autouse=True)
def registered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(summarizers, "_registered", {})


def request_with(
    history: History = HISTORY, pinned: tuple[str, ...] = (), **settings: Any
) -> SummaryRequest:
    return SummaryRequest(history, Summary.model_validate(settings), COUNTER, pinned)


REQUEST = request_with()


def asked_of(function: Callable[[SummaryRequest], Any], timeout: float = LONG_WAIT) -> str:
    register_summarizer("mine", function)
    return asked(summarizer_for("mine"), replace(REQUEST, timeout=timeout))


def asked_async_of(function: Callable[[SummaryRequest], Any], timeout: float = LONG_WAIT) -> str:
    register_summarizer("mine", function)
    request = replace(REQUEST, timeout=timeout)
    return asyncio.run(asked_async(summarizer_for("mine"), request))


BOTH = pytest.mark.parametrize("ask", [asked_of, asked_async_of])


class Awaited:
    """A summarizer with two ways, that tells which was taken."""

    def summarize(self, request: SummaryRequest) -> str:
        return f"in a thread of {len(request.history.messages)}"

    async def summarize_async(self, request: SummaryRequest) -> str:
        return f"awaited of {len(request.history.messages)}"


class Odd(Exception):  # noqa: N818 - it is odd
    def __str__(self) -> str:
        raise ValueError("no words")


def test_extractive_is_known() -> None:
    assert isinstance(summarizer_for("extractive"), ExtractiveSummarizer)


def test_extractive_is_asked_like_any_other() -> None:
    text = extractive_summary(HISTORY, Summary())
    assert asked(summarizer_for("extractive"), REQUEST) == text
    assert asyncio.run(asked_async(summarizer_for("extractive"), REQUEST)) == text


def test_an_unknown_name_is_rejected_with_the_known_names_and_a_suggestion() -> None:
    register_summarizer("mine", lambda _: "x")
    with pytest.raises(UnknownSummarizerError) as caught:
        summarizer_for("extractiv")
    assert caught.value.known == ("extractive", "none", "anthropic", "openai", "mine")
    assert "did you mean 'extractive'? known are extractive, none, anthropic, openai, mine" in str(
        caught.value
    )


def test_a_name_unlike_all_others_gets_no_suggestion() -> None:
    with pytest.raises(UnknownSummarizerError) as caught:
        summarizer_for("zzz")
    assert caught.value.nearest is None


def test_a_registered_name_may_be_a_shipped_one() -> None:
    register_summarizer("anthropic", lambda _: "mine")
    assert asked(summarizer_for("anthropic"), REQUEST) == "mine"


@BOTH
def test_a_callable_is_given_the_request(ask: Callable[..., str]) -> None:
    assert ask(lambda request: request.history.messages[0]["content"]).startswith("Never deploy")


@BOTH
def test_an_async_callable_is_awaited(ask: Callable[..., str]) -> None:
    async def summary(request: SummaryRequest) -> str:
        await asyncio.sleep(0)
        return f"of {len(request.history.messages)}"

    assert ask(summary) == "of 1"


@BOTH
def test_an_awaitable_returned_by_a_callable_is_awaited(ask: Callable[..., str]) -> None:
    async def summary() -> str:
        return "later"

    assert ask(lambda _: summary()) == "later"


def test_an_async_callable_is_awaited_in_the_callers_loop() -> None:
    loops = []

    async def summary(_: SummaryRequest) -> str:
        loops.append(asyncio.get_running_loop())
        return "x"

    register_summarizer("mine", summary)

    async def main() -> None:
        await asked_async(summarizer_for("mine"), REQUEST)
        assert loops == [asyncio.get_running_loop()]

    asyncio.run(main())


def test_a_sync_caller_in_a_running_loop_is_served() -> None:
    async def summary(_: SummaryRequest) -> str:
        return "x"

    async def main() -> str:
        return asked_of(summary)

    assert asyncio.run(main()) == "x"


def test_a_sync_callable_does_not_block_the_event_loop() -> None:
    released = threading.Event()
    register_summarizer("mine", lambda _: "x" if released.wait(LONG_WAIT) else "")

    async def main() -> str:
        waiting = asyncio.ensure_future(asked_async(summarizer_for("mine"), REQUEST))
        await asyncio.sleep(0)
        released.set()
        return await waiting

    assert asyncio.run(main()) == "x"


def test_a_summarizer_is_taken_the_way_that_it_is_asked() -> None:
    register_summarizer("mine", Awaited())
    assert asked(summarizer_for("mine"), REQUEST) == "in a thread of 1"
    assert asyncio.run(asked_async(summarizer_for("mine"), REQUEST)) == "awaited of 1"


CONTEXT: ContextVar[str] = ContextVar("CONTEXT", default="none")


@BOTH
def test_a_callable_sees_the_callers_context(ask: Callable[..., str]) -> None:
    token = CONTEXT.set("the caller's")
    try:
        assert ask(lambda _: CONTEXT.get()) == "the caller's"
    finally:
        CONTEXT.reset(token)


@pytest.fixture
def forever() -> Iterator[Callable[[SummaryRequest], str]]:
    released = threading.Event()
    yield lambda _: "late" if released.wait(LONG_WAIT) else ""
    released.set()


@BOTH
def test_a_callable_that_hangs_is_left_behind(
    ask: Callable[..., str], forever: Callable[[SummaryRequest], str]
) -> None:
    with pytest.raises(SummaryError, match=r"no answer within 0.02 s") as caught:
        ask(forever, 0.02)
    assert caught.value.cause is None


@BOTH
def test_an_async_callable_that_hangs_is_cancelled(ask: Callable[..., str]) -> None:
    cancelled = threading.Event()

    async def summary(_: SummaryRequest) -> str:
        try:
            await asyncio.sleep(LONG_WAIT)
        finally:
            cancelled.set()
        return "late"

    with pytest.raises(SummaryError, match=r"no answer within 0.02 s"):
        ask(summary, 0.02)
    assert cancelled.wait(LONG_WAIT)


def test_an_async_callable_that_ignores_its_cancellation_is_left_behind(
    caplog: pytest.LogCaptureFixture,
) -> None:
    # Tasks of earlier tests may still wait for the collector, which logs them.
    gc.collect()
    caplog.clear()
    seen: list[str] = []

    async def asked_in_a_loop() -> None:
        released = asyncio.Event()

        async def summary(_: SummaryRequest) -> str:
            try:
                await asyncio.sleep(LONG_WAIT)
            except asyncio.CancelledError:
                seen.append("cancelled")
            with suppress(TimeoutError):
                await asyncio.wait_for(released.wait(), 1)
                raise ValueError("late")
            return "late"

        register_summarizer("mine", summary)
        with pytest.raises(SummaryError, match=r"no answer within 0.02 s"):
            await asked_async(summarizer_for("mine"), replace(REQUEST, timeout=0.02))
        assert seen == ["cancelled"]
        released.set()
        await asyncio.sleep(0.02)

    asyncio.run(asked_in_a_loop())
    gc.collect()
    assert not caplog.records


def test_what_is_asked_ends_with_the_call_that_asks() -> None:
    seen: list[str] = []

    async def summary(_: SummaryRequest) -> str:
        try:
            await asyncio.sleep(LONG_WAIT)
        finally:
            seen.append("ended")
        return "late"

    async def cancelled() -> None:
        register_summarizer("mine", summary)
        asking = asyncio.create_task(asked_async(summarizer_for("mine"), REQUEST))
        await asyncio.sleep(0.02)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await asyncio.sleep(0)
        assert seen == ["ended"]

    asyncio.run(cancelled())


def test_the_policys_timeout_holds(forever: Callable[[SummaryRequest], str]) -> None:
    register_summarizer("mine", forever)
    with pytest.raises(SummaryError, match="no answer within 0 s"):
        asked(summarizer_for("mine"), request_with(timeout="0s"))


@BOTH
@pytest.mark.parametrize(
    "error",
    [
        ValueError("too  odd"),
        StopIteration(3),
        TimeoutError("inside"),
        ExceptionGroup("g", [OSError()]),
    ],
)
def test_an_exception_of_a_callable_is_the_cause(ask: Callable[..., str], error: Exception) -> None:
    def raising(_: SummaryRequest) -> str:
        raise error

    with pytest.raises(SummaryError, match=f"raised {type(error).__name__}") as caught:
        ask(raising)
    assert caught.value.cause is error
    assert caught.value.__cause__ is error


@BOTH
def test_an_exception_of_an_async_callable_is_the_cause(ask: Callable[..., str]) -> None:
    async def summary(_: SummaryRequest) -> str:
        raise ConnectionError("gone")

    with pytest.raises(SummaryError, match="raised ConnectionError: gone") as caught:
        ask(summary)
    assert isinstance(caught.value.cause, ConnectionError)


@BOTH
def test_a_summary_error_is_passed_on(ask: Callable[..., str]) -> None:
    error = SummaryError("busy", status=529)

    def raising(_: SummaryRequest) -> str:
        raise error

    with pytest.raises(SummaryError) as caught:
        ask(raising)
    assert caught.value is error


@BOTH
def test_an_error_without_a_message_is_named_by_its_class(ask: Callable[..., str]) -> None:
    def raising(_: SummaryRequest) -> str:
        raise Odd

    with pytest.raises(SummaryError, match=r"raised Odd$"):
        ask(raising)


@BOTH
def test_a_long_error_is_shortened(ask: Callable[..., str]) -> None:
    def raising(_: SummaryRequest) -> str:
        raise ValueError("x" * 10_000)

    with pytest.raises(SummaryError) as caught:
        ask(raising)
    assert len(str(caught.value)) < 300


@BOTH
def test_a_system_exit_is_propagated(ask: Callable[..., str]) -> None:
    def raising(_: SummaryRequest) -> str:
        raise SystemExit(3)

    with pytest.raises(SystemExit):
        ask(raising)


@BOTH
def test_a_callable_that_was_cancelled_inside_is_a_failed_try(ask: Callable[..., str]) -> None:
    def raising(_: SummaryRequest) -> str:
        raise asyncio.CancelledError

    with pytest.raises(SummaryError, match="raised CancelledError"):
        ask(raising)


@BOTH
@pytest.mark.parametrize("answer", [None, 7, b"bytes", ["a"]])
def test_an_answer_that_is_not_text_is_rejected(ask: Callable[..., str], answer: object) -> None:
    with pytest.raises(SummaryError, match=f"no text but {type(answer).__name__}"):
        ask(lambda _: answer)


@BOTH
@pytest.mark.parametrize("answer", ["", " \n\t\u3000"])
def test_a_blank_answer_is_rejected(ask: Callable[..., str], answer: str) -> None:
    with pytest.raises(SummaryError, match="the answer is empty"):
        ask(lambda _: answer)


@BOTH
def test_an_answer_of_ten_megabytes_is_rejected(ask: Callable[..., str]) -> None:
    with pytest.raises(SummaryError, match="10000000 characters"):
        ask(lambda _: "x" * 10_000_000)


@pytest.mark.parametrize("word", ["word ", "字"])
def test_an_answer_may_have_four_times_the_words_and_no_more(word: str) -> None:
    assert asked_of(lambda _: word * 4800)
    with pytest.raises(SummaryError, match="4801 words"):
        asked_of(lambda _: word * 4801)


def test_short_answers_are_never_rejected_as_too_long() -> None:
    register_summarizer("mine", lambda _: "word " * 400)
    assert asked(summarizer_for("mine"), request_with(max_words=1))


def test_the_extractive_summary_contains_pinned_texts() -> None:
    pinned = ("Rule 1:\n  - never  push\n", "规则:先问")
    text = ExtractiveSummarizer().summarize(request_with(pinned=pinned))
    assert all(one in text for one in pinned)


def test_pinned_texts_count_towards_the_word_limit() -> None:
    history = History([user(f"The host {i} is db-{i}.internal.") for i in range(200)])
    pinned = ("word " * 100,)
    text = ExtractiveSummarizer().summarize(request_with(history, pinned, max_words=300))
    assert words_in(text) <= 300


def test_a_repeated_summary_contains_pinned_texts_once() -> None:
    pinned = ("Never push to main without asking Jonas.", "The second rule: tabs.")
    first = ExtractiveSummarizer().summarize(request_with(pinned=pinned))
    history = History([user(first), user("Use port 8081.")], earlier={0: first})
    second = ExtractiveSummarizer().summarize(request_with(history, pinned))
    assert [second.count(one) for one in pinned] == [1, 1]
    assert second.count("## Pinned") == 1
    assert "db-3.internal" in second
