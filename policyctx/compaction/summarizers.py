"""`Summarizer`: what makes a summary: the shipped ones, those registered, and one try at asking."""

import asyncio
import inspect
import os
import re
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from threading import Lock, Thread
from typing import Any, ClassVar, Protocol, TypeAlias, cast, runtime_checkable

from policyctx.compaction.assembly import SummaryRequest
from policyctx.compaction.extractive.summary import extractive_summary
from policyctx.compaction.prompt import objection, summary_in, with_pinned, without_pinned
from policyctx.definitions.items import HostObject
from policyctx.definitions.language import BUILT_IN_SUMMARIZERS, EXTRACTIVE, NONE
from policyctx.errors import (
    MissingExtraError,
    SummaryError,
    UnknownSummarizerError,
    UsageError,
    in_words,
)
from policyctx.policy.diagnosing import nearest
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.encoders import words_in

# An answer of more than this many times the words asked for is none; so is one of longer words
# than any text has. A few words are never too many.
_MOST_TIMES = 4
_ALWAYS_ALLOWED_WORDS = 400
_CHARS_PER_WORD = 40


@runtime_checkable
class Summarizer(Protocol):
    """Makes summaries. One that has `summarize_async(request)` too is awaited where that can be."""

    def summarize(self, request: SummaryRequest, /) -> str:
        """Return the summary; anything raised is a failed try."""
        ...


Summarize: TypeAlias = Callable[[SummaryRequest], str | Awaitable[str]]


class ModelSummarizer:
    """Base of the shipped summarizers that ask a model: `check` and `verify` hold for them."""


class ExtractiveSummarizer:
    """Writes the summary from the structure of the history: no model, no network."""

    def summarize(self, request: SummaryRequest) -> str:
        """Return the extractive summary, then what is pinned, within the limits altogether.

        Only what is pinned may take more.
        """
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


@dataclass(frozen=True, slots=True)
class _Called:
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
    if by == "anthropic":
        from policyctx.compaction.anthropic_summarizer import (  # noqa: PLC0415 - an extra
            AnthropicSummarizer,
        )

        return AnthropicSummarizer(client)
    if by == "openai":
        from policyctx.compaction.openai_summarizer import (  # noqa: PLC0415 - an extra
            OpenAISummarizer,
        )

        return OpenAISummarizer(client)
    known = list(dict.fromkeys((*BUILT_IN_SUMMARIZERS, *_registered)))
    raise UnknownSummarizerError(by, known, next(iter(nearest(by, known)), None))


def asked(summarizer: Summarizer, request: SummaryRequest, timeout: float | None = None) -> str:
    """Return the summary from one try, made in a thread of its own.

    `timeout` is in seconds, by default the request's. A summarizer that has not answered by then is
    left behind. Raises `SummaryError` for that, for whatever the summarizer raises, and for an
    answer that is not text, blank, or, unless the policy has `check: false`, more than four times
    as long as was asked for.
    """
    seconds = _seconds(request, timeout)

    def called() -> object:
        answer: object = summarizer.summarize(request)
        return _in_own_loop(answer, seconds) if inspect.isawaitable(answer) else answer

    try:
        outcome = _started(called).result(seconds)
    except TimeoutError:
        raise _too_slow(seconds) from None
    return _checked(outcome.answer(), request)


async def asked_async(
    summarizer: Summarizer,
    request: SummaryRequest,
    timeout: float | None = None,  # noqa: ASYNC109 - the policy's
) -> str:
    """Return the summary from one try, as `asked` does.

    What is asynchronous is awaited here, and cancelled when it is too slow; all else has a thread.
    """
    seconds = _seconds(request, timeout)
    summarize = getattr(summarizer, "summarize_async", summarizer.summarize)
    try:
        async with asyncio.timeout(seconds) as waiting:
            answer = await _awaited(summarize, request)
    except Exception as error:  # noqa: BLE001 - raised again as what it is for
        if waiting.expired():
            raise _too_slow(seconds) from None
        raise _failure(error) from _chained(error)
    return _checked(answer, request)


async def in_thread(function: Callable[[], object]) -> object:
    """Return what a function returns that is called in a thread; cancelled, it is left behind.

    Raises `SummaryError` for what it raises.
    """
    outcome = await asyncio.wrap_future(_started(function))
    return outcome.answer()


async def _awaited(summarize: Summarize, request: SummaryRequest) -> object:
    if inspect.iscoroutinefunction(summarize):
        return await summarize(request)
    answer = await in_thread(lambda: summarize(request))
    return await answer if inspect.isawaitable(answer) else answer


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What came of a call in a thread; a future would take no `StopIteration` over."""

    value: object = None
    error: BaseException | None = None

    def answer(self) -> object:
        """Return what was returned; raises `SummaryError` for an exception, all else as it is."""
        if isinstance(self.error, Exception | asyncio.CancelledError):
            raise _failure(self.error) from _chained(self.error)
        if self.error is not None:
            raise self.error
        return self.value


def _started(function: Callable[[], object]) -> Future[_Outcome]:
    """Call a function in a thread that nobody waits for when the process ends."""
    future: Future[_Outcome] = Future()
    future.set_running_or_notify_cancel()  # from now on it cannot be cancelled under the thread
    context = copy_context()

    def run() -> None:
        try:
            outcome = _Outcome(context.run(function))
        except BaseException as error:  # noqa: BLE001 - raised again where it is waited for
            outcome = _Outcome(error=error)
        future.set_result(outcome)

    Thread(target=run, name="policyctx-summary", daemon=True).start()
    return future


def _in_own_loop(awaitable: Awaitable[object], seconds: float) -> object:
    async def waited() -> object:
        try:
            async with asyncio.timeout(seconds) as waiting:
                return await awaitable
        except TimeoutError:
            if waiting.expired():
                raise _too_slow(seconds) from None
            raise

    return asyncio.run(waited())


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


def _seconds(request: SummaryRequest, timeout: float | None) -> float:
    return request.seconds if timeout is None else timeout


_registered: dict[str, Summarizer] = {}
_registering = Lock()


# Tokens of the answer for each word asked for, and for what a model may think before it writes.
_TOKENS_PER_WORD, _THINKING_TOKENS, MOST_TOKENS = 4, 8_192, 32_000

# What is wrong with the request itself; of all else the status says enough.
_TELLING = (400, 404, 413, 422)
# A later attempt may succeed: the provider took too long, is locked or busy, or has failed. With
# any other status the request, the model's name or the credentials are wrong.
_PASSING = (408, 409, 429)
_SERVER_ERROR = 500
_SHOWN_CHARS = 200

_SURROGATES = re.compile("[\ud800-\udfff]")

# For an endpoint of the policy's own that no key was named for: no other key may go there.
_NO_KEY = "none"


class SdkSummarizer(ModelSummarizer):
    """A `Summarizer` that asks a model through an SDK.

    `client` is the caller's, synchronous or not; without one each try makes and closes its own,
    with `summary.base_url` and the key in the environment variable `summary.api_key_env`. The SDK
    makes no tries of its own. An attempt after an answer that was not accepted tells the model why;
    if the answer was cut off at its limit, the next has twice the room.

    Raises `MissingExtraError` without the package.
    """

    package: ClassVar[str]
    """The SDK; the extra that brings it has the same name."""
    clients: ClassVar[tuple[str, str]]
    """The classes of its clients: the synchronous one and the asynchronous one."""
    key_variable: ClassVar[str]
    """The environment variable in which the SDK looks for the key."""

    def __init__(self, client: object = None) -> None:
        if find_spec(self.package) is None:
            raise MissingExtraError(f"the summarizer `{self.package}`", extra=self.package)
        self._client: Any = client

    @abstractmethod
    def _asked(self, request: SummaryRequest, base_url: str) -> dict[str, Any]:
        """Return the request, as the endpoint takes it; raises `SummaryError`."""

    @abstractmethod
    def _create(self, client: HostObject, asked: dict[str, Any]) -> HostObject:
        """Send the request; what an asynchronous client returns is awaited."""

    @abstractmethod
    def _text(self, answer: object, request: SummaryRequest) -> str:
        """Return the text of a finished answer; raises `SummaryError` for any other."""

    def summarize(self, request: SummaryRequest) -> str:
        """Return the summary; raises `SummaryError`, with the status where there was one."""
        if _is_async(self._client):
            return asyncio.run(self._awaited(request, in_own_loop=True))
        try:
            answer = self._sent(request)
        except SummaryError:
            raise
        except Exception as error:  # noqa: BLE001 - it may show the credentials
            answer = self._failure(error, request)
        return self._written(answer, request)

    async def summarize_async(self, request: SummaryRequest) -> str:
        """Return the summary as `summarize` does; a client that is not async has a thread."""
        if self._client is None or _is_async(self._client):
            return await self._awaited(request)
        return str(await in_thread(lambda: self.summarize(request)))

    def _sent(self, request: SummaryRequest) -> object:
        if self._client is not None:
            client = self._client.with_options(**_options(request))
            return self._create(client, self._asked(request, _url_of(client)))
        with self._own(request, is_async=False) as own:
            return self._create(own, self._asked(request, _url_of(own)))

    async def _awaited(self, request: SummaryRequest, *, in_own_loop: bool = False) -> str:
        try:
            answer = await self._sent_async(request, in_own_loop=in_own_loop)
        except SummaryError:
            raise
        except Exception as error:  # noqa: BLE001 - it may show the credentials
            answer = self._failure(error, request)
        return self._written(answer, request)

    async def _sent_async(self, request: SummaryRequest, *, in_own_loop: bool) -> object:
        if self._client is None:
            async with self._own(request, is_async=True) as own:
                return await self._create(own, self._asked(request, _url_of(own)))
        asked = self._asked(request, _url_of(self._client))
        if not in_own_loop:
            return await self._create(self._client.with_options(**_options(request)), asked)
        # The client's own connections belong to its caller's loop.
        async with import_module(self.package).DefaultAsyncHttpxClient() as connections:
            copied = self._client.copy(http_client=connections, **_options(request))
            return await self._create(copied, asked)

    def _own(self, request: SummaryRequest, *, is_async: bool) -> HostObject:
        """Return a client made from the settings and the environment."""
        options = _options(request)
        settings = request.settings
        if settings.base_url is not None:
            options |= {"base_url": settings.base_url, "api_key": _NO_KEY}
        if settings.api_key_env is not None:
            options["api_key"] = _key_in(settings.api_key_env)
        return getattr(import_module(self.package), self.clients[is_async])(**options)

    def _written(self, answer: object, request: SummaryRequest) -> str:
        """Return the summary in an answer, with what is pinned; raises `SummaryError`."""
        if isinstance(answer, SummaryError):
            raise answer
        with suppress(UsageError):
            request.billed(getattr(answer, "usage", None))
        summary = summary_in(self._text(answer, request))
        if not summary:
            raise SummaryError("the answer is empty", answered=True)
        return with_pinned(summary, request.pinned)

    def _failure(self, error: Exception, request: SummaryRequest) -> SummaryError:
        """Return what went wrong, in words and without the error itself."""
        sdk = import_module(self.package)
        if isinstance(error, sdk.APITimeoutError):
            return SummaryError(f"there was no answer within {round(request.seconds, 2):g} s")
        if isinstance(error, sdk.APIStatusError):
            kind = error.type if isinstance(error.type, str) else type(error).__name__
            is_telling = error.status_code in _TELLING
            said = f": {_shown(error, self._client, request.settings)}" if is_telling else ""
            return refusal(error.status_code, f"{kind}{said}", error.response.headers)
        if isinstance(error, sdk.APIConnectionError):
            return SummaryError("the provider cannot be reached")
        if _is_missing_key(error, sdk):
            why = f"there are no credentials: set {self.key_variable} or give a client"
            return SummaryError(why, is_final=True)
        return SummaryError(f"the provider's answer cannot be read ({type(error).__name__})")


def with_objection(content: str, request: SummaryRequest) -> str:
    """Return a prompt with the reason why the last answer was not accepted, if there was one."""
    if not request.rejected:
        return content
    return f"{content}\n\n{objection(request.rejected[-1].why)}"


def max_tokens(request: SummaryRequest) -> int:
    """Return how many tokens the answer may have; twice as many as one that was cut off."""
    tokens = _TOKENS_PER_WORD * request.settings.max_words + _THINKING_TOKENS
    too_few = max((error.max_tokens or 0 for error in request.rejected), default=0)
    return min(max(tokens, 2 * too_few), MOST_TOKENS)


def cut_off(request: SummaryRequest) -> SummaryError:
    """Return the error for an answer that its limit cut off."""
    limit = max_tokens(request)
    why = "the model had not finished its answer when it reached max_tokens"
    return SummaryError(why, answered=True, max_tokens=limit, is_final=limit >= MOST_TOKENS)


def is_taken_cut_off(text: str, request: SummaryRequest) -> bool:
    """Return whether an answer that its limit cut off is accepted: it holds some of a summary."""
    return request.settings.check is None and summary_in(text) != ""


def called(tool: object) -> SummaryError:
    """Return the error for an answer that calls a tool."""
    named = f"the tool {tool!r}" if tool else "a tool"
    return SummaryError(f"the model called {named} and wrote no summary", answered=True)


def refused(said: str = "") -> SummaryError:
    """Return the error for a refusal: the same request would be refused again."""
    more = f": {' '.join(said.split())[:_SHOWN_CHARS]}" if said else ""
    return SummaryError(f"the model refused to answer{more}", answered=True, is_final=True)


def sound(text: str) -> str:
    """Return the text with lone surrogates, which cannot be sent, replaced."""
    if text.isascii() or not _SURROGATES.search(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _options(request: SummaryRequest) -> dict[str, Any]:
    return {"max_retries": 0, "timeout": float(request.seconds)}


def _url_of(client: object) -> str:
    return str(getattr(client, "base_url", ""))


def _key_in(variable: str) -> str:
    key = os.environ.get(variable, "")
    if not key:
        why = f"there are no credentials: the environment variable {variable} is not set"
        raise SummaryError(why, is_final=True)
    return key


def _is_missing_key(error: Exception, sdk: HostObject) -> bool:
    """Return whether an SDK found no key: one raises a `TypeError`, another its base error."""
    said = str(error)
    if isinstance(error, TypeError):
        return "authentication" in said
    base = getattr(sdk, "OpenAIError", None)
    return base is not None and type(error) is base and "api_key" in said


def refusal(status: int, said: str, headers: Mapping[str, str]) -> SummaryError:
    """Return the error for a status that is none of success."""
    is_final = status < _SERVER_ERROR and status not in _PASSING
    return SummaryError(
        f"the provider answered {status} {said}",
        status=status,
        is_final=is_final,
        retry_after=None if is_final else _retry_after(headers),
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the provider asks to wait, as the SDK reads them.

    `retry-after-ms` holds milliseconds; `retry-after` seconds, or a date, which is compared with
    the provider's own clock where the response says it.
    """
    with suppress(KeyError, ValueError):
        return _wait(float(headers["retry-after-ms"]) / 1000)
    given = headers.get("retry-after", "")
    with suppress(ValueError):
        return _wait(float(given))
    with suppress(ValueError, TypeError):
        until, now = parsedate_to_datetime(given), headers.get("date")
        is_dated = now is not None and until.tzinfo is not None
        asked_at = parsedate_to_datetime(str(now)) if is_dated else datetime.now(until.tzinfo)
        return _wait((until - asked_at).total_seconds())
    return None


def _wait(seconds: float) -> float | None:
    """Return a wait that can be waited for; None for a number of seconds that is none."""
    return max(0.0, seconds) if isfinite(seconds) else None


def _shown(error: HostObject, client: object, settings: Summary) -> str:
    text = " ".join(error.message.split())
    secrets = [getattr(client, name, None) for name in ("api_key", "auth_token")]
    secrets.append(os.environ.get(settings.api_key_env or ""))
    for secret in secrets:
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "…")
    return text[:_SHOWN_CHARS]


def _is_async(client: object) -> bool:
    return hasattr(client, "__aenter__")
