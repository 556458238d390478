"""`SdkSummarizer`: a summary by a language model, asked for through the SDK of its provider."""

import asyncio
import os
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from math import isfinite
from typing import Any, ClassVar
from urllib.parse import urlsplit

from policyctx.compaction import prompt
from policyctx.compaction.assembly import SummaryRequest, with_pinned
from policyctx.compaction.record import blocks, elements, reduced
from policyctx.compaction.summarizers import ModelSummarizer, in_thread
from policyctx.definitions.items import HostObject
from policyctx.errors import MissingExtraError, SummaryError, UsageError
from policyctx.messages.editing import SessionRequest, in_place_anthropic, in_place_chat
from policyctx.planning.facts import ASSUMED_WINDOWS
from policyctx.policy.models.compaction import Summary
from policyctx.policy.values import Share
from policyctx.pricing.rows import row_of

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
# Claude docs, "Models overview": a million tokens from 4.6 on, except Haiku. Counted with o200k,
# text has fewer tokens by these factors; 1.5 is on the safe side for unknown models.
_ANTHROPIC_WINDOW, _LARGE_WINDOW = 200_000, 1_000_000
_LARGE_FROM, _LARGE_FAMILIES = (4, 6), ("opus", "sonnet", "fable")
_ANTHROPIC_TOKENS_PER_COUNTED, _TOKENS_PER_COUNTED_BEFORE, _DENSER_FROM = 1.5, 1.25, (4, 7)

_FINISHED = ("end_turn", "stop_sequence")
# A model's own tokens for each that is counted here.
_OPENAI_TOKENS_PER_COUNTED = 1.25
# OpenAI's own models take the limit under this name; most compatible endpoints know the older one.
_OWN_HOSTS, _OWN_LIMIT = ("openai.com", "azure.com"), "max_completion_tokens"


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
    client_class: ClassVar[str]
    """The class of its asynchronous client."""
    key_variable: ClassVar[str]
    """The environment variable in which the SDK looks for the key."""

    def __init__(self, client: object = None) -> None:
        if find_spec(self.package) is None:
            raise MissingExtraError(f"the summarizer `{self.package}`", extra=self.package)
        self._client: Any = client

    @abstractmethod
    def _room(self, settings: Summary) -> tuple[int, float]:
        """Return the model's window, and its tokens for each that is counted here."""

    @abstractmethod
    def _in_place(self, request: SessionRequest, told: str) -> dict[str, Any]:
        """Return the session's own request with an instruction behind it."""

    @abstractmethod
    def _messages(self, told: str, record: Iterable[tuple[str, ...]]) -> dict[str, Any]:
        """Return the messages of a request with instructions and the elements of the record."""

    def _limit(self, base_url: str) -> str:
        """Return the name of the limit of the answer's tokens at an endpoint."""
        del base_url
        return "max_tokens"

    @abstractmethod
    def _create(self, client: HostObject, asked: dict[str, Any]) -> HostObject:
        """Send the request; what an asynchronous client returns is awaited."""

    @abstractmethod
    def _text(self, answer: object, request: SummaryRequest) -> str:
        """Return the text of a finished answer; raises `SummaryError` for any other."""

    def summarize(self, request: SummaryRequest) -> str:
        """Return the summary; raises `SummaryError`, with the status where there was one."""
        if self._client is None or _is_async(self._client):
            return asyncio.run(self._awaited(request, in_own_loop=True))
        try:
            client = self._client.with_options(**_options(request))
            answer = self._create(client, self._asked(request, client))
        except Exception as error:  # noqa: BLE001 - it may show the credentials
            answer = self._failure(error, request)
        return self._written(answer, request)

    async def summarize_async(self, request: SummaryRequest) -> str:
        """Return the summary as `summarize` does; a client that is not async has a thread."""
        if self._client is None or _is_async(self._client):
            return await self._awaited(request)
        return str(await in_thread(lambda: self.summarize(request)))

    async def _awaited(self, request: SummaryRequest, *, in_own_loop: bool = False) -> str:
        try:
            answer = await self._sent(request, in_own_loop=in_own_loop)
        except Exception as error:  # noqa: BLE001 - it may show the credentials
            answer = self._failure(error, request)
        return self._written(answer, request)

    async def _sent(self, request: SummaryRequest, *, in_own_loop: bool) -> object:
        sdk, options = import_module(self.package), _options(request)
        if self._client is None:
            async with getattr(sdk, self.client_class)(**options, **_own(request.settings)) as own:
                return await self._create(own, self._asked(request, own))
        asked = self._asked(request, self._client)
        if not in_own_loop:
            return await self._create(self._client.with_options(**options), asked)
        # The client's own connections belong to its caller's loop.
        async with sdk.DefaultAsyncHttpxClient() as connections:
            copied = self._client.copy(http_client=connections, **options)
            return await self._create(copied, asked)

    def _asked(self, request: SummaryRequest, client: HostObject) -> dict[str, Any]:
        """Return the request, as the endpoint takes it; raises `SummaryError`."""
        settings, history, in_place = request.settings, request.history, request.in_place
        earlier = history.earlier.values()
        told = prompt.instructions(
            settings, history.restored, earlier=earlier, in_place=in_place is not None
        )
        limit = self._limit(str(getattr(client, "base_url", "")))
        limits = {"model": settings.model, limit: max_tokens(request)}
        if in_place is not None:
            return limits | self._in_place(in_place, sound(told + objection(request)))
        (window, per_counted), most = self._room(settings), settings.max_input
        tokens = most.of(window) if isinstance(most, Share) else min(most, window)
        parts = prompt.recorded_parts(history, settings)
        parts = reduced(parts, int(tokens / per_counted), request.counter)
        record = chain(elements(parts), [(objection(request),)])
        return limits | self._messages(sound(told), record)

    def _written(self, answer: object, request: SummaryRequest) -> str:
        """Return the summary in an answer, with what is pinned; raises `SummaryError`."""
        if isinstance(answer, SummaryError):
            raise answer
        with suppress(UsageError):
            request.billed(getattr(answer, "usage", None))
        summary = prompt.summary_in(self._text(answer, request))
        if not summary:
            raise SummaryError("the answer is empty", answered=True)
        return with_pinned(summary, request.pinned)

    def _failure(self, error: Exception, request: SummaryRequest) -> SummaryError:
        """Return what went wrong, in words and without the error itself."""
        sdk = import_module(self.package)
        if isinstance(error, SummaryError):
            return error
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


def objection(request: SummaryRequest) -> str:
    """Return the end of a prompt: why the last answer was not accepted, if there was one."""
    return f"\n\n{prompt.objection(request.rejected[-1].why)}" if request.rejected else ""


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
    return request.settings.check is None and prompt.summary_in(text) != ""


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


def _own(settings: Summary) -> dict[str, Any]:
    """Return the options of a client that is made from the settings and the environment."""
    url, variable = settings.base_url, settings.api_key_env
    options = {} if url is None else {"base_url": url, "api_key": _NO_KEY}
    if variable is None:
        return options
    if not (key := os.environ.get(variable)):
        why = f"there are no credentials: the environment variable {variable} is not set"
        raise SummaryError(why, is_final=True)
    return options | {"api_key": key}


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


class AnthropicSummarizer(SdkSummarizer):
    """A `Summarizer` that asks a Claude model.

    `client` is the caller's `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, or another client
    of that SDK. A conversation over `max_input` of the model's window is shortened first: see
    `reduced`. Pinned texts are no part of what the model writes: they are set under its summary to
    the letter.
    """

    package: ClassVar[str] = "anthropic"
    client_class: ClassVar[str] = "AsyncAnthropic"
    key_variable: ClassVar[str] = "ANTHROPIC_API_KEY"

    def _room(self, settings: Summary) -> tuple[int, float]:
        numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", settings.model)
        version = tuple(map(int, numbers[:2]))
        is_large = version >= _LARGE_FROM and any(
            name in settings.model for name in _LARGE_FAMILIES
        )
        is_older = "claude" in settings.model and () < version < _DENSER_FROM
        return (
            _LARGE_WINDOW if is_large else _ANTHROPIC_WINDOW,
            _TOKENS_PER_COUNTED_BEFORE if is_older else _ANTHROPIC_TOKENS_PER_COUNTED,
        )

    def _in_place(self, request: SessionRequest, told: str) -> dict[str, Any]:
        return in_place_anthropic(request, told)

    def _messages(self, told: str, record: Iterable[tuple[str, ...]]) -> dict[str, Any]:
        parts = [{"type": "text", "text": sound(text)} for text in blocks(record)]
        content = parts if len(parts) > 1 else parts[0]["text"]
        return {"system": told, "messages": [{"role": "user", "content": content}]}

    def _create(self, client: HostObject, asked: dict[str, Any]) -> HostObject:
        return client.messages.create(**asked)

    def _text(self, answer: object, request: SummaryRequest) -> str:
        blocks, stopped = getattr(answer, "content", None), getattr(answer, "stop_reason", None)
        if not isinstance(blocks, list):
            raise SummaryError("the provider's answer is no message")
        tools = [block for block in blocks if getattr(block, "type", None) == "tool_use"]
        if tools or stopped == "tool_use":
            raise called(getattr(next(iter(tools), None), "name", None))
        texts = (getattr(block, "text", None) for block in blocks)
        text = "\n\n".join(text for text in texts if isinstance(text, str))
        if stopped in _FINISHED or (stopped == "max_tokens" and is_taken_cut_off(text, request)):
            return text
        raise _unfinished(stopped, request)


def _unfinished(stopped: object, request: SummaryRequest) -> SummaryError:
    """Return the error for an answer that its model did not finish.

    The same request would be refused, or not fit, once more.
    """
    match stopped:
        case "max_tokens":
            return cut_off(request)
        case "refusal":
            return refused()
        case "model_context_window_exceeded":
            why = "the conversation is larger than the model's window"
            return SummaryError(why, answered=True, is_final=True)
    return SummaryError(f"the model stopped for {stopped!r}", answered=True)


class OpenAISummarizer(SdkSummarizer):
    """A `Summarizer` that asks a model through the chat completions endpoint.

    `client` is the caller's `openai.OpenAI` or `openai.AsyncOpenAI`, or another client of that SDK.
    A conversation over `max_input` of the model's window (128,000 tokens if the model is not known)
    is shortened first: see `reduced`. Pinned texts are set under the model's summary to the letter.
    """

    package: ClassVar[str] = "openai"
    client_class: ClassVar[str] = "AsyncOpenAI"
    key_variable: ClassVar[str] = "OPENAI_API_KEY"

    def _room(self, settings: Summary) -> tuple[int, float]:
        row = row_of(settings.model)
        window = ASSUMED_WINDOWS["openai"] if row is None else row.context_window
        return window, _OPENAI_TOKENS_PER_COUNTED

    def _in_place(self, request: SessionRequest, told: str) -> dict[str, Any]:
        return in_place_chat(request, told)

    def _messages(self, told: str, record: Iterable[tuple[str, ...]]) -> dict[str, Any]:
        system = {"role": "system", "content": told}
        content = sound("".join(chain.from_iterable(record)))
        return {"messages": [system, {"role": "user", "content": content}]}

    def _limit(self, base_url: str) -> str:
        host = urlsplit(base_url).hostname or ""
        return _OWN_LIMIT if host.endswith(_OWN_HOSTS) else super()._limit(base_url)

    def _create(self, client: HostObject, asked: dict[str, Any]) -> HostObject:
        return client.chat.completions.create(**asked)

    def _text(self, answer: object, request: SummaryRequest) -> str:
        choices = getattr(answer, "choices", None)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        if message is None:
            raise SummaryError("the provider's answer is no message")
        if refusal := getattr(message, "refusal", None):
            raise refused(str(refusal))
        if calls := getattr(message, "tool_calls", None):
            raise called(getattr(getattr(calls[0], "function", None), "name", None))
        text = str(getattr(message, "content", None) or "")
        match stopped := getattr(choice, "finish_reason", None):
            case "stop":
                return text
            case "length" if is_taken_cut_off(text, request):
                return text
            case "length":
                raise cut_off(request)
            case "content_filter":
                raise refused()
        raise SummaryError(f"the model stopped for {stopped!r}", answered=True)


SDK_SUMMARIZERS: Mapping[str, Callable[[object], SdkSummarizer]] = {
    "anthropic": AnthropicSummarizer,
    "openai": OpenAISummarizer,
}
