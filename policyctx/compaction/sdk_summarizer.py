"""`SdkSummarizer`: what the summarizers share that ask a model through its provider's SDK.

The caller's client brings its credentials, or the SDK finds them where it always does. Nothing here
reads, keeps or shows them, and what the SDK raises is not passed on, since it carries the request
along, with its headers. The SDKs of Anthropic and OpenAI have the same classes for clients and
errors.
"""

from __future__ import annotations

import asyncio
import os
import re
from abc import abstractmethod
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib import import_module
from importlib.util import find_spec
from math import isfinite
from typing import Any, ClassVar

from policyctx.compaction.assembly import SummaryRequest
from policyctx.compaction.prompt import objection, summary_in, with_pinned
from policyctx.compaction.summarizers import ModelSummarizer, in_thread
from policyctx.definitions.items import HostObject
from policyctx.errors import MissingExtraError, SummaryError, UsageError
from policyctx.policy.models.compaction import Summary

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
            return _refusal(error, self._client, request)
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


def _refusal(error: HostObject, client: object, request: SummaryRequest) -> SummaryError:
    """Return the error for a status that is none of success."""
    kind = error.type if isinstance(error.type, str) else type(error).__name__
    said = f": {_shown(error, client, request.settings)}" if error.status_code in _TELLING else ""
    is_final = error.status_code < _SERVER_ERROR and error.status_code not in _PASSING
    return SummaryError(
        f"the provider answered {error.status_code} {kind}{said}",
        status=error.status_code,
        is_final=is_final,
        retry_after=None if is_final else _retry_after(error.response.headers),
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
