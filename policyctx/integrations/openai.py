"""`with_policy`: a session between a program and a client of OpenAI's SDK.

    client = with_policy(OpenAI(), Session("coding-agent", session_id="fix-the-tests"))

The SDK has no middleware. So `with_policy` copies the client and wraps two methods of the copy's
`chat.completions` and `responses`: `create`, which `stream` calls too, and `parse`. They are
outside the SDK's retries, so each call is one turn, and each attempt sends the same bytes. The
program keeps its own list.

Importing this module raises `MissingExtraError` without the SDK, and `InstallationError` with a
version that is too old.
"""

from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Mapping
from contextlib import aclosing
from functools import wraps
from typing import Any, TypeAlias, TypeVar

from policyctx.definitions.items import HostObject, SessionOption
from policyctx.errors import InputError, required
from policyctx.integrations.host_sessions import (
    HostSessions,
    PolicyLike,
    SentTurn,
    Turn,
    form_of,
    hands_out_body,
    settled,
    usage_in,
    watch,
)
from policyctx.messages.asked import CHAT, HELD, RESPONSES, Api
from policyctx.session import Session

with required("the wrapper for OpenAI's SDK", "openai", needs="openai>=2.2", extra="openai"):
    import openai

    if openai.__version__.startswith(("0.", "1.")):
        raise ImportError  # its requests have other types

SessionOf: TypeAlias = Callable[[Mapping[str, Any]], Session | None]
Client = TypeVar("Client", bound=openai.OpenAI | openai.AsyncOpenAI)

_STREAMS = (openai.Stream, openai.AsyncStream)
# The last event of a stream of the Responses API, which has the usage.
_LAST_EVENTS = frozenset({"response.completed", "response.incomplete", "response.failed"})
# The events before the first one that says something.
_OPENING_EVENTS = frozenset({"response.created", "response.queued", "response.in_progress"})


def with_policy(
    client: Client, session: Session | SessionOf | PolicyLike, **options: SessionOption
) -> Client:
    """Return a copy of a client that applies a session's policy to each request.

    `chat.completions`, `responses` and `beta.responses` of the copy send edited lists, also with
    `with_raw_response`, `with_streaming_response` and `with_options`. All else is as in `client`,
    which stays as it is. The two share their connections.

    With a `Session`, or a policy and options of `Session` with a `session_id`, requests of other
    conversations pass unchanged: see `AgentLoop.is_own`. With a function from the keyword arguments
    of a request to a session or None, its answer holds, and None means unchanged.

    A request with `previous_response_id` or `conversation`, whose history is held by the server,
    passes unchanged, with one warning in the log. The warnings of turns are logged too. The methods
    raise the errors of `Session.apply`.
    """
    if not isinstance(client, openai.OpenAI | openai.AsyncOpenAI):
        raise InputError("with_policy(client, session): its first argument is a client")
    sessions = HostSessions(session, options=options, has_ids=False)
    # The method of the class: a client that was wrapped before gets this session instead.
    copied: Client = type(client).copy(client)  # type: ignore[type-var]
    return _wrapped(copied, _Policy(sessions))


def _wrapped(client: Client, policy: "_Policy") -> Client:
    """Wrap the methods of a client that no one else has."""
    blocks = isinstance(client, openai.OpenAI)
    resources: list[tuple[Any, Api]] = [
        (client.chat.completions, CHAT),
        (client.responses, RESPONSES),
    ]
    if hasattr(client.beta, "chat"):  # gone in openai 3
        resources.append((client.beta.chat.completions, CHAT))
    if (beta_responses := getattr(client.beta, "responses", None)) is not None:
        resources.append((beta_responses, RESPONSES))
    for resource, api in resources:
        for name in ("create", "parse"):
            if hasattr(resource, name):
                setattr(resource, name, policy.wrapped(getattr(resource, name), api, blocks=blocks))
    copy: Any = client.copy

    @wraps(copy)
    def copied(**options: HostObject) -> HostObject:
        return _wrapped(copy(**options), policy)

    for name in ("copy", "with_options"):
        setattr(client, name, copied)
    return client


class _Policy:
    """Applies the policies of sessions to the requests of one client and of its copies."""

    def __init__(self, sessions: HostSessions) -> None:
        self._sessions = sessions

    def wrapped(self, send: Callable[..., Any], api: Api, *, blocks: bool) -> Callable[..., Any]:
        """Return a method of the client that sends the edited list."""

        @wraps(send)
        async def sending(*args: HostObject, **given: HostObject) -> HostObject:
            given = _with_list(api, given)
            if (turn := self._turn(api, given, blocks=blocks)) is None:
                return await settled(send(*args, **given))

            async def attempt(sent: SentTurn) -> HostObject:
                return await settled(send(*args, **sent.fields(given, api)))

            response = await _answered(turn, attempt)
            if given.get("stream") is True:
                is_stream = isinstance(response, _STREAMS)
                stream: Any = response if is_stream else await settled(response.parse())
                events = self._watched(turn, api, turn.read(stream._iterator))  # noqa: SLF001
                stream._iterator = turn.handed_out(events)  # noqa: SLF001
            elif not hands_out_body(response):
                await turn.observe(_usage(response))
            if hands_out_body(response):
                watch(response, turn)
            return response

        return form_of(sending, blocks=blocks)

    def _turn(self, api: Api, given: Mapping[str, Any], *, blocks: bool) -> Turn | None:
        """Return the turn that a request is; None if it passes unchanged."""
        messages = given.get(api.messages)
        if isinstance(messages, str):
            messages = [{"role": "user", "content": messages}]
        extra = given.get("extra_body")
        extra = extra if isinstance(extra, dict) else {}
        if not isinstance(messages, list) or not messages or api.messages in extra:
            return None
        if held := api.held_by(fields := {**given, **extra}):
            self._sessions.warn(HELD % held)
            return None
        asked = api.asked(fields, messages)  # the SDK makes its attempts inside of the method
        return self._sessions.turn(self._sessions.chosen(given), asked, blocks=blocks)

    async def _watched(
        self, turn: Turn, api: Api, events: AsyncGenerator[Any]
    ) -> AsyncGenerator[Any]:
        """Yield the events of a stream, and observe its usage when it comes by.

        Warn once if a whole stream had no usage although the policy compares tokens.
        """
        found = _StreamUsage()
        async with aclosing(events):
            async for event in events:
                if (usage := found.of(event)) is not None:
                    await turn.observe(usage)
                yield event
        is_missed = turn.session.policy.asks_for_request_size and not found.is_found
        if api is CHAT and is_missed:
            self._sessions.warn(
                "a streamed chat completion had no usage, so the gates on tokens see estimates;"
                " ask for it with stream_options={'include_usage': True}"
            )


async def _answered(turn: Turn, attempt: Callable[[SentTurn], Awaitable[Any]]) -> HostObject:
    """Send an edited request, and once more if it is refused as too long."""
    sent, refused = await turn.apply(), None
    try:
        response = await attempt(sent)
        if turn.retries and isinstance(response, _STREAMS):
            refused = await _refused(turn, response)
    except openai.APIError as error:
        if (again := await turn.again(error)) is None:
            raise
        return await attempt(again)
    if refused is None or (again := await turn.again(refused)) is None:
        return response
    await settled(response.close())
    return await attempt(again)


async def _refused(turn: Turn, stream: HostObject) -> object:
    """Return the error with which a stream begins, None for another stream.

    Its events are read up to the first that says something, and come again.
    """
    events, head = turn.read(stream._iterator), []  # noqa: SLF001
    async for event in events:
        head.append(event)
        if getattr(event, "type", None) not in _OPENING_EVENTS:
            break

    async def every() -> AsyncGenerator[Any]:
        async with aclosing(events):
            for event in head:
                yield event
            async for event in events:
                yield event

    stream._iterator = turn.handed_out(every())  # noqa: SLF001
    return _error_of(head[-1]) if head else None


def _error_of(event: HostObject) -> object:
    """Return what an event of a response that failed says."""
    kind = getattr(event, "type", None)
    if kind not in {"error", "response.failed"}:
        return None
    failed: object = event.model_dump(include={"code", "message", "response"})
    return failed


class _StreamUsage:
    """The usage in the events of one stream: a chunk of a chat, or the last event of a response."""

    def __init__(self) -> None:
        self.is_found = False

    def of(self, event: HostObject) -> object:
        """Return the usage if this event is the first to have one."""
        if self.is_found:
            return None
        is_last = getattr(event, "type", None) in _LAST_EVENTS
        usage: object = getattr(event.response if is_last else event, "usage", None)
        self.is_found = usage is not None
        return usage


def _with_list(api: Api, given: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments with a list in place of another iterable of messages."""
    messages = given.get(api.messages)
    if isinstance(messages, str | list) or not isinstance(messages, Iterable):
        return given
    return {**given, api.messages: list(messages)}


def _usage(response: HostObject) -> object:
    """Return the usage in a response, None if there is none or its body was not read."""
    http = getattr(response, "http_response", None)
    return getattr(response, "usage", None) if http is None else usage_in(http)
