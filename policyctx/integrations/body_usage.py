"""The usage in the body of a response that the caller reads himself.

Anthropic's and OpenAI's SDKs hand out a response whose body was not read yet
(`with_streaming_response`). `watch` and `watch_async` look at what the caller reads, and change
nothing of it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

from policyctx.definitions.items import HostObject
from policyctx.tokens.usage import BodyUsage

# The methods that hand out a body in pieces, and what ends a piece in the body.
_PIECES = {"iter_bytes": "", "iter_text": "", "iter_lines": "\n"}


def watch(response: HostObject, observe: Callable[[object], None]) -> None:
    """Observe the usage in the body that a synchronous response hands out."""

    def reading(read: Callable[[], bytes]) -> Callable[[], bytes]:
        def reads() -> bytes:
            raw = read()
            body = _body(response)
            if (usage := body.after(raw) or body.at_end()) is not None:
                observe(usage)
            return raw

        return reads

    def iterating(method: Callable[..., Iterator[Any]], end: str) -> Callable[..., Iterator[Any]]:
        def pieces(*args: HostObject, **options: HostObject) -> Iterator[Any]:
            body = _body(response)
            for piece in method(*args, **options):
                if (usage := body.after(piece + end if end else piece)) is not None:
                    observe(usage)
                yield piece
            if (usage := body.at_end()) is not None:
                observe(usage)

        return pieces

    response.read = reading(response.read)
    for name, end in _PIECES.items():
        setattr(response, name, iterating(getattr(response, name), end))


def watch_async(response: HostObject, observe: Callable[[object], Awaitable[None]]) -> None:
    """Observe the usage in the body that an asynchronous response hands out."""

    def reading(read: Callable[[], Awaitable[bytes]]) -> Callable[[], Awaitable[bytes]]:
        async def reads() -> bytes:
            raw = await read()
            body = _body(response)
            if (usage := body.after(raw) or body.at_end()) is not None:
                await observe(usage)
            return raw

        return reads

    def iterating(
        method: Callable[..., AsyncIterator[Any]], end: str
    ) -> Callable[..., AsyncIterator[Any]]:
        async def pieces(*args: HostObject, **options: HostObject) -> AsyncIterator[Any]:
            body = _body(response)
            async for piece in method(*args, **options):
                if (usage := body.after(piece + end if end else piece)) is not None:
                    await observe(usage)
                yield piece
            if (usage := body.at_end()) is not None:
                await observe(usage)

        return pieces

    response.read = reading(response.read)
    for name, end in _PIECES.items():
        setattr(response, name, iterating(getattr(response, name), end))


def hands_out_body(response: object) -> bool:
    """Return whether the caller of the SDK reads the body of this response."""
    http = getattr(response, "http_response", None)
    return http is not None and not http.is_closed and hasattr(response, "iter_lines")


def _body(response: HostObject) -> BodyUsage:
    return BodyUsage(response.headers.get("content-type", ""))
