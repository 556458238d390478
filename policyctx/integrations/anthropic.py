"""`PolicyMiddleware`: a session between a program and the clients of Anthropic's SDK.

    session = Session("coding-agent", session_id="fix-the-tests")
    client = Anthropic(middleware=[PolicyMiddleware(session)])

The SDK calls a middleware once for each attempt at a request, so the policy is applied to `create`,
`stream`, `parse`, `count_tokens` and the tool runner alike. The program keeps its own list.

Importing this module raises `MissingExtraError` without the SDK, and `InstallationError` with one
that has no middleware.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing, suppress
from copy import copy
from dataclasses import replace
from types import new_class
from typing import Any, TypeAlias, get_origin

from policyctx.definitions.items import HostObject, SessionOption
from policyctx.errors import UsageError, required
from policyctx.integrations.host_sessions import (
    HostSessions,
    PolicyLike,
    SentTurn,
    Turn,
    at_once,
    hands_out_body,
    settled,
    usage_in,
    watch,
)
from policyctx.messages.asked import HELD, MESSAGES
from policyctx.session import Session
from policyctx.tokens.usage import Usage, usage_of

with required(
    "the middleware for Anthropic's SDK", "anthropic", needs="anthropic>=0.110", extra="anthropic"
):
    import anthropic
    from anthropic import APIRequest, APIResponse, AsyncAPIResponse
    from anthropic import AsyncCallNext as AsyncNext
    from anthropic import CallNext as Next

SessionOf: TypeAlias = Callable[[APIRequest], Session | None]
_REFUSING = (400, 413)
_CREATE, _COUNT = "/v1/messages", "/v1/messages/count_tokens"


class PolicyMiddleware(anthropic.Middleware):
    """Applies a session's policy to the requests of `Anthropic` and `AsyncAnthropic` clients.

    With a `Session`, or a policy and options of `Session` with a `session_id`, requests of other
    conversations pass unchanged: see `AgentLoop.is_own`. With a function from a request to a
    session or None, its answer holds, and None means unchanged.

    A request whose history is held by the server passes unchanged, with one warning in the log. The
    warnings of turns are logged too. `apply` raises its errors through the client.
    """

    def __init__(self, session: Session | SessionOf | PolicyLike, **options: SessionOption) -> None:
        self._sessions = HostSessions(session, options=options, has_ids=False)

    def handle(self, request: APIRequest, call_next: Next) -> APIResponse[Any]:
        """Send a request of the synchronous client with the edited list."""
        return at_once(self._answered(request, call_next, blocks=True))

    async def handle_async(
        self, request: APIRequest, call_next: AsyncNext
    ) -> AsyncAPIResponse[Any]:
        """Send a request of the asynchronous client with the edited list."""
        response: AsyncAPIResponse[Any] = await self._answered(request, call_next)
        return response

    async def _answered(
        self, request: APIRequest, call_next: Callable[[APIRequest], Any], *, blocks: bool = False
    ) -> HostObject:
        if (turn := self._turn(request, blocks=blocks)) is None:
            return await settled(call_next(request))
        if _path(request) == _COUNT:
            seen = SentTurn(turn.asked.messages, await turn.preview())
            return await settled(call_next(_edited(request, seen)))

        async def sending(sent: SentTurn) -> HostObject:
            return await settled(call_next(_with_stream(_edited(request, sent), turn)))

        response = await sending(await turn.apply())
        if turn.retries and _is_refused(response):
            http = response.http_response
            await settled(http.read() if blocks else http.aread())
            if (again := await turn.again(http.text)) is not None:
                response = await sending(again)
        if _is_success(response):
            turn.finish()
            if hands_out_body(response):
                watch(response, turn)
            elif not request.stream:
                await turn.observe(usage_in(response.http_response))
        return response

    def _turn(self, request: APIRequest, *, blocks: bool) -> Turn | None:
        """Return the turn that a request is; None if it passes unchanged."""
        body = request.json
        if _path(request) not in {_CREATE, _COUNT} or not isinstance(body, dict):
            return None
        messages = body.get("messages")
        if not (messages and isinstance(messages, list) and all(type(m) is dict for m in messages)):
            return None
        fields = {**body, **(request.options.extra_json or {})}
        if held := MESSAGES.held_by(fields):
            self._sessions.warn(HELD % held)
            return None
        asked = MESSAGES.asked(fields, messages, request.options.idempotency_key or "")
        return self._sessions.turn(self._sessions.chosen(request), asked, blocks=blocks)


def _path(request: APIRequest) -> str:
    return request.url.partition("?")[0]


def _edited(request: APIRequest, sent: SentTurn) -> APIRequest:
    """Return the request of a turn; the same object if nothing of it changed."""
    body: Any = request.json
    new = sent.fields(body, MESSAGES)
    is_same = new.keys() == body.keys() and all(new[name] is body[name] for name in new)
    return request if is_same else request.copy(body=new)


def _with_stream(request: APIRequest, turn: Turn) -> APIRequest:
    """Return the request with a class of streams whose usage the turn observes.

    A response is not touched for it: the SDK makes the stream when the caller asks for it.
    """
    if not request.stream or request.stream_cls is None:
        return request
    origin: Any = get_origin(request.stream_cls) or request.stream_cls

    def streamed(stream: HostObject) -> HostObject:
        return turn.handed_out(_observed(turn, turn.read(origin.__stream__(stream))))

    new = copy(request)
    fill = {"__stream__": streamed}
    new.stream_cls = new_class(
        "ObservedStream", (request.stream_cls,), exec_body=lambda space: space.update(fill)
    )
    return new


def _is_success(response: object) -> bool:
    """Return whether this is a response, not a value of another middleware, and a success."""
    http = getattr(response, "http_response", None)
    return http is not None and bool(http.is_success)


def _is_refused(response: object) -> bool:
    """Return whether a response says that the request itself is wrong."""
    http = getattr(response, "http_response", None)
    return http is not None and http.status_code in _REFUSING


class _MessageStreamUsage:
    """The usage in the events of one stream.

    `message_start` has the prompt, and `message_delta` the output. Some gateways send all of it in
    `message_delta`.
    """

    def __init__(self) -> None:
        self._begun: Usage | None = None

    def of(self, event: HostObject) -> Usage | None:
        """Return the usage if it is whole with this event."""
        if event.type not in {"message_start", "message_delta"}:
            return None
        usage = getattr(event.message if event.type == "message_start" else event, "usage", None)
        with suppress(UsageError):
            found = usage_of(usage)
            if event.type == "message_start":
                self._begun = found if found.prompt else None
                return None
            begun, self._begun = self._begun or found, None
            whole = replace(begun, output=max(begun.output, found.output))
            return whole if whole.prompt else None
        return None

    def rest(self) -> Usage | None:
        """Return what is known of the usage of a stream that ended too early."""
        begun, self._begun = self._begun, None
        return begun


async def _observed(turn: Turn, events: AsyncGenerator[Any]) -> AsyncGenerator[Any]:
    """Yield the events of a stream, and observe its usage when it comes by."""
    found = _MessageStreamUsage()
    async with aclosing(events):
        try:
            async for event in events:
                if (usage := found.of(event)) is not None:
                    await turn.observe(usage)
                yield event
        finally:
            if (usage := found.rest()) is not None:
                await turn.observe(usage)
