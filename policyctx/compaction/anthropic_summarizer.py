"""`AnthropicSummarizer`: the summary that a model of Anthropic writes, through the real SDK.

The caller's client brings its credentials, or the SDK finds them where it always does
(`ANTHROPIC_API_KEY` or a profile). Nothing here reads, keeps or shows them, and what the SDK raises
is not passed on, since it carries the request along, with its headers.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import suppress
from datetime import datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from math import isfinite
from typing import TYPE_CHECKING, Any

from policyctx.compaction.prompt import (
    instructions,
    objection,
    parts_of,
    reduced,
    transcript,
    with_pinned,
)
from policyctx.compaction.summarizers import ModelSummarizer, in_thread
from policyctx.errors import MissingExtraError, SummaryError, UsageError
from policyctx.policy.values import Share

if TYPE_CHECKING:
    from collections.abc import Mapping

    import anthropic

    from policyctx.compaction.summarizers import SummaryRequest
    from policyctx.policy.models.compaction import Summary

# Claude docs, "Models overview": a million tokens from 4.6 on, but for Haiku. Counted with o200k,
# text has about so many fewer tokens; 1.5 is on the safe side for models not known.
_WINDOW, _LARGE_WINDOW = 200_000, 1_000_000
_LARGE_FROM, _LARGE_FAMILIES = (4, 6), ("opus", "sonnet", "fable")
_TOKENS_PER_COUNTED, _TOKENS_PER_COUNTED_BEFORE, _DENSER_FROM = 1.5, 1.25, (4, 7)

# Tokens of the answer for each word asked for, and for what a model may think before it writes.
_TOKENS_PER_WORD, _THINKING_TOKENS, _MOST_TOKENS = 4, 8_192, 32_000

_FINISHED = ("end_turn", "stop_sequence")
_CUT_OFF, _REFUSED, _TOO_LARGE = "max_tokens", "refusal", "model_context_window_exceeded"
_STOPPED = {
    _CUT_OFF: "the model had not finished its answer when it reached max_tokens",
    _REFUSED: "the model refused to answer",
    _TOO_LARGE: "the conversation is larger than the model's window",
}
# What is wrong with the request itself; of all else the status says enough.
_TELLING = (400, 404, 413, 422)
# A later attempt may succeed: the provider took too long, is locked or busy, or has failed. With
# any other status the request, the model's name or the credentials are wrong.
_PASSING = (408, 409, 429)
_SERVER_ERROR = 500
_SHOWN_CHARS = 200


class AnthropicSummarizer(ModelSummarizer):
    """A `Summarizer` that asks a Claude model.

    `client` is the caller's `anthropic.Anthropic` or `anthropic.AsyncAnthropic`, or another client
    of that SDK; without one each try makes and closes its own. The SDK makes no tries of its own.
    A conversation over `max_input` of the model's window is shortened first: see `reduced`. Pinned
    texts are no part of what the model writes: they are set under its summary to the letter.
    An attempt after an answer that was not accepted tells the model why; if the answer was cut off
    at `max_tokens`, it has twice the room.

    Raises `MissingExtraError` without the package `anthropic`.
    """

    def __init__(self, client: object = None) -> None:
        if find_spec("anthropic") is None:
            raise MissingExtraError("the summarizer `anthropic`", extra="anthropic")
        self._client: Any = client

    def summarize(self, request: SummaryRequest) -> str:
        """Return the summary; raises `SummaryError`, with the status where there was one."""
        if _is_async(self._client):
            return asyncio.run(self._awaited(request, in_own_loop=True))
        asked, options = _asked(request), _options(request)
        try:
            answer = _create(self._client, asked, options)
        except Exception as error:  # noqa: BLE001 - it may show the credentials
            answer = _failure(error, self._client, request)
        return _written(answer, request)

    async def summarize_async(self, request: SummaryRequest) -> str:
        """Return the summary as `summarize` does; a client that is not async has a thread."""
        if self._client is None or _is_async(self._client):
            return await self._awaited(request)
        return str(await in_thread(lambda: self.summarize(request)))

    async def _awaited(self, request: SummaryRequest, *, in_own_loop: bool = False) -> str:
        asked, options = _asked(request), _options(request)
        create = _create_apart if in_own_loop else _create_async
        try:
            answer = await create(self._client, asked, options)
        except Exception as error:  # noqa: BLE001 - it may show the credentials
            answer = _failure(error, self._client, request)
        return _written(answer, request)


def _create(client: Any, asked: dict[str, Any], options: dict[str, Any]) -> object:  # noqa: ANN401 - any of the SDK's clients
    if client is not None:
        return client.with_options(**options).messages.create(**asked)
    import anthropic  # noqa: PLC0415 - an extra

    with anthropic.Anthropic(**options) as own:
        return own.messages.create(**asked)


async def _create_async(client: Any, asked: dict[str, Any], options: dict[str, Any]) -> object:  # noqa: ANN401
    if client is not None:
        return await client.with_options(**options).messages.create(**asked)
    import anthropic  # noqa: PLC0415 - an extra

    async with anthropic.AsyncAnthropic(**options) as own:
        return await own.messages.create(**asked)


async def _create_apart(client: Any, asked: dict[str, Any], options: dict[str, Any]) -> object:  # noqa: ANN401
    """Ask over other connections than the client's own, which belong to its caller's loop."""
    import anthropic  # noqa: PLC0415 - an extra

    async with anthropic.DefaultAsyncHttpxClient() as connections:
        return await client.copy(http_client=connections, **options).messages.create(**asked)


def _asked(request: SummaryRequest) -> dict[str, Any]:
    settings = request.settings
    parts = reduced(parts_of(request.history), _room(settings), request.counter)
    content = transcript(parts)
    if request.rejected:
        content += f"\n\n{objection(request.rejected[-1].why)}"
    return {
        "model": settings.model,
        "max_tokens": _max_tokens(request),
        "system": _sound(instructions(settings)),
        "messages": [{"role": "user", "content": _sound(content)}],
    }


def _max_tokens(request: SummaryRequest) -> int:
    """Return how many tokens the answer may have; twice as many as one that was cut off."""
    tokens = _TOKENS_PER_WORD * request.settings.max_words + _THINKING_TOKENS
    too_few = max((error.max_tokens or 0 for error in request.rejected), default=0)
    return min(max(tokens, 2 * too_few), _MOST_TOKENS)


def _options(request: SummaryRequest) -> dict[str, Any]:
    return {"max_retries": 0, "timeout": float(request.seconds)}


def _room(settings: Summary) -> int:
    """How many tokens, as they are counted here, the conversation may have."""
    numbers = re.findall(r"(?<!\d)\d{1,2}(?!\d)", settings.model)
    version = tuple(map(int, numbers[:2]))
    is_large = version >= _LARGE_FROM and any(name in settings.model for name in _LARGE_FAMILIES)
    window, most = _LARGE_WINDOW if is_large else _WINDOW, settings.max_input
    tokens = most.of(window) if isinstance(most, Share) else min(most, window)
    is_older = "claude" in settings.model and () < version < _DENSER_FROM
    return int(tokens / (_TOKENS_PER_COUNTED_BEFORE if is_older else _TOKENS_PER_COUNTED))


def _sound(text: str) -> str:
    """The text with lone surrogates, which cannot be sent, replaced."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _written(answer: object, request: SummaryRequest) -> str:
    """Return the summary in an answer, with what is pinned; raises `SummaryError`."""
    if isinstance(answer, SummaryError):
        raise answer
    with suppress(UsageError):
        request.billed(getattr(answer, "usage", None))
    blocks, stopped = getattr(answer, "content", None), getattr(answer, "stop_reason", None)
    if not isinstance(blocks, list):
        raise SummaryError("the provider's answer is no message")
    if stopped not in _FINISHED:
        raise _unfinished(stopped, _max_tokens(request))
    texts = (getattr(block, "text", None) for block in blocks)
    summary = "\n\n".join(text for text in texts if isinstance(text, str)).strip()
    if not summary:
        raise SummaryError("the answer is empty", answered=True)
    return with_pinned(summary, request.pinned)


def _unfinished(stopped: object, max_tokens: int) -> SummaryError:
    """Return the error for an answer that its model did not finish.

    The same request would be refused, or not fit, once more.
    """
    why = _STOPPED.get(str(stopped), f"the model stopped for {stopped!r}")
    if stopped == _CUT_OFF:
        is_final = max_tokens >= _MOST_TOKENS
        return SummaryError(why, answered=True, max_tokens=max_tokens, is_final=is_final)
    return SummaryError(why, answered=True, is_final=stopped in {_REFUSED, _TOO_LARGE})


def _failure(error: Exception, client: object, request: SummaryRequest) -> SummaryError:
    """What went wrong, in words and without the error itself."""
    import anthropic  # noqa: PLC0415 - an extra

    if isinstance(error, anthropic.APITimeoutError):
        return SummaryError(f"there was no answer within {round(request.seconds, 2):g} s")
    if isinstance(error, anthropic.APIStatusError):
        kind = error.type if isinstance(error.type, str) else type(error).__name__
        said = f": {_shown(error, client)}" if error.status_code in _TELLING else ""
        why = f"the provider answered {error.status_code} {kind}{said}"
        is_final = error.status_code < _SERVER_ERROR and error.status_code not in _PASSING
        return SummaryError(
            why,
            status=error.status_code,
            is_final=is_final,
            retry_after=None if is_final else _retry_after(error.response.headers),
        )
    if isinstance(error, anthropic.APIConnectionError):
        return SummaryError("the provider cannot be reached")
    if isinstance(error, TypeError) and "authentication" in str(error):
        why = "there are no credentials: set ANTHROPIC_API_KEY or give a client"
        return SummaryError(why, is_final=True)
    return SummaryError(f"the provider's answer cannot be read ({type(error).__name__})")


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


def _shown(error: anthropic.APIStatusError, client: object) -> str:
    text = " ".join(error.message.split())
    for name in ("api_key", "auth_token"):
        secret = getattr(client, name, None)
        if isinstance(secret, str) and secret:
            text = text.replace(secret, "…")
    return text[:_SHOWN_CHARS]


def _is_async(client: object) -> bool:
    return hasattr(client, "__aenter__")
