"""`HostSessions`: the session of a host's model call; `Turn`: what the call sends and learns.

What hosts do around a call is written once, as coroutines. For a synchronous host they await only
what is there already, and `at_once` returns their result without an event loop.
"""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import (
    AsyncGenerator,
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Generator,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from functools import wraps
from inspect import isawaitable
from pathlib import Path
from threading import Lock, get_ident
from traceback import clear_frames
from typing import Any, ClassVar, TypeAlias, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

from policyctx.definitions.items import HostObject, Message
from policyctx.definitions.names import is_url
from policyctx.errors import InputError, UsageError
from policyctx.messages.asked import Api, Asked, is_alike
from policyctx.messages.markers import MARKER
from policyctx.messages.shapes.shape import Shape
from policyctx.paths import safe_part
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Request
from policyctx.policy.models import Policy
from policyctx.session import Session
from policyctx.store.opening import names_session
from policyctx.tokens.usage import BodyUsage
from policyctx.turns.result import Result

_log = logging.getLogger(__name__)

# The lists that are kept for a repeated attempt, for each session; one is enough for one loop.
_MOST_KEPT = 8
# How often an asynchronous request asks whether another one has ended its turn, in seconds.
_POLL = 0.005
_applying: ContextVar[frozenset[AgentLoop]] = ContextVar("applying", default=frozenset())
K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")
# The methods that hand out a body in pieces, and what ends a piece in the body.
_PIECES = {"iter_bytes": "", "iter_text": "", "iter_lines": "\n"}
PolicyLike: TypeAlias = str | os.PathLike[str] | Policy | OffloadPolicy
_NO_ID = type(None)
_LACKING = (
    "this host has no ids of conversations: give the option session_id, or"
    ' Session("coding-agent", session_id="…") in place of the policy'
)
# The sessions that are kept between calls; the store has what is needed to go on with another one.
_MOST_SESSIONS = 64


def at_once(awaited: Awaitable[T]) -> T:
    """Return what is awaited, by code that waits in this thread and never for an event loop."""
    hooks = sys.get_asyncgen_hooks()
    sys.set_asyncgen_hooks(None, None)  # an event loop would close the streams that begin in it
    try:
        next(iter(awaited.__await__()))
    except StopIteration as stop:
        result: T = stop.value
        return result
    except BaseException as error:
        if not isinstance(error, Exception):
            clear_frames(error.__traceback__)  # one of them may hold the lock of a turn
        raise
    finally:
        sys.set_asyncgen_hooks(*hooks)
    raise RuntimeError("a synchronous host cannot wait for an event loop")


async def settled(value: HostObject) -> HostObject:
    """Return what a call of a host returned, or what it is awaited for."""
    return await value if isawaitable(value) else value


def form_of(body: Callable[..., Coroutine[Any, Any, Any]], *, blocks: bool) -> Callable[..., Any]:
    """Return a coroutine function, or the function that a synchronous host has in its place."""
    if not blocks:
        return body

    @wraps(body)
    def form(*args: HostObject, **options: HostObject) -> HostObject:
        return at_once(body(*args, **options))

    return form


async def _asynchronous(events: Generator[Any]) -> AsyncGenerator[Any]:
    with closing(events):
        for event in events:
            yield event


def _synchronous(events: AsyncGenerator[Any]) -> Generator[Any]:
    async def following() -> object:
        return await anext(events)

    try:
        with suppress(StopAsyncIteration):
            while True:
                yield at_once(following())
    finally:
        at_once(events.aclose())


class Recent(dict[K, V]):
    """A dict with a limit on its entries: the oldest leaves first. A put entry is the newest."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def put(self, key: K, value: V) -> None:
        """Put an entry, and let the oldest go if there are too many."""
        self.pop(key, None)
        self[key] = value
        for oldest in [*self][: -self._most]:
            self.pop(oldest, None)


@dataclass(frozen=True, slots=True)
class SentTurn:
    """What is sent for a request, in the turn of this number."""

    given: list[Message]
    messages: Sequence[Message]
    turn: int = 0
    system: object = None
    tools: object = None
    sets_breakpoints: bool = False
    """Whether the policy has set the cache breakpoints of the request."""

    def fields(self, given: Mapping[str, Any], api: Api) -> dict[str, Any]:
        """Return the fields of a request with what is sent in place of them."""
        new = dict(given)
        if self.messages is not self.given:
            new[api.messages] = list(self.messages)
        if self.sets_breakpoints:
            new.pop(MARKER, None)  # a marker of the whole request would be one breakpoint more
            for name, value in ((api.system, self.system), ("tools", self.tools)):
                if name in new and value is not None:
                    new[name] = value
        return new


class AgentLoop:
    """The requests of one session: one turn at a time, and one decision for each request.

    `AgentLoop.of(session)` is the same object for all clients and threads that use the session.
    """

    _loops: ClassVar[WeakKeyDictionary[Session, AgentLoop]] = WeakKeyDictionary()
    _guard = Lock()

    def __init__(self) -> None:
        self._lock = Lock()
        self._thread_of_task: int | None = None
        """The thread in which a task holds the lock."""
        self._turn = 0
        self._last: Asked | None = None
        self._is_established = False
        self.kept: Recent[str, SentTurn] = Recent(_MOST_KEPT)
        """What was sent for requests that may be repeated, by their keys."""
        self._has_warned = False

    @classmethod
    def of(cls, session: Session) -> AgentLoop:
        """Return the loop of a session."""
        with cls._guard:
            return cls._loops.setdefault(session, cls())

    @property
    def is_applying(self) -> bool:
        """Whether this code runs inside a turn of the session, such as its own summarizer."""
        return self in _applying.get()

    def is_own(self, session: Session, asked: Asked) -> bool:
        """Return whether a request belongs to the session's conversation, and warn once if not.

        It does if two of three agree with the last request that did: the system prompt, the names
        of the tools, and the messages, which begin with the same message or contain the last one.
        Without a system prompt and tools in both, the messages must agree. Where the agents have
        names, the agent or the messages agree. Until a request with a reply in it has come, every
        request of a nameless agent belongs to the session.
        """
        last = self._last
        if last is None or (asked.agent is None and not self._is_established):
            return True
        if is_alike(last, asked):
            return True
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "session %s: a request was sent unchanged, since it is not of this conversation:"
                " at least two of its system prompt, its tools and its messages are others",
                session.session_id,
            )
        return False

    def sent_before(self, asked: Asked) -> SentTurn | None:
        """Return what was sent for a request; None if it is a new one, with which a turn begins."""
        sent = None if asked.key is None else self.kept.get(asked.key)
        if sent is not None and sent.given == asked.messages:
            return sent
        self._turn += 1
        self._last = asked
        self._is_established = self._is_established or asked.has_reply()
        return None

    def keep(self, session: Session, asked: Asked, result: Result) -> SentTurn:
        """Return what a result sends, log its warnings, and keep it for a repeated request."""
        for warning in result.warnings:
            _log.warning("session %s: %s", session.session_id, warning)
        given, has_breakpoints = asked.messages, bool(result.breakpoints)
        sent = SentTurn(
            given, result.messages, self._turn, result.system, result.tools, has_breakpoints
        )
        if asked.key is not None:
            self.kept.put(asked.key, sent)
        return sent

    @contextmanager
    def learning(self, sent: SentTurn) -> Iterator[bool]:
        """Give whether no other turn has begun since; waits for nothing."""
        held: list[bool] = []
        try:
            held[:] = map(self._lock.acquire, (False,))
            with suppress(UsageError):
                yield True in held and sent.turn == self._turn
        finally:
            if True in held:
                self._lock.release()

    @asynccontextmanager
    async def in_turn(self, *, blocks: bool = False) -> AsyncIterator[None]:
        """Hold the lock of the session in this task, or in this thread, which `blocks` then."""
        held: list[bool] = []
        try:
            # One call takes the lock and notes it: an interrupt may come after any call.
            held[:] = map(self._lock.acquire, (False,))
            while True not in held:
                if not blocks:
                    # A lock of asyncio would only serve one event loop, and no thread without one.
                    await asyncio.sleep(_POLL)
                elif self._thread_of_task == get_ident():
                    raise RuntimeError(
                        "a synchronous request waits for an asynchronous request of the same"
                        " session in the same thread, which could never end; use the asynchronous"
                        " client"
                    )
                held[:] = map(self._lock.acquire, (blocks,))
            if not blocks:
                self._thread_of_task = get_ident()
            token = _applying.set(_applying.get() | {self})
            try:
                yield
            finally:
                _applying.reset(token)
        finally:
            if True in held:
                self._thread_of_task = None
                self._lock.release()


class Turn:
    """A model call to which a session's policy applies, and what is sent for it.

    `blocks` is for a synchronous host: the thread waits for the session's turns and files, and
    `at_once` runs the coroutines.
    """

    def __init__(self, session: Session, asked: Asked, *, blocks: bool = False) -> None:
        self.session, self.asked, self.blocks = session, asked, blocks
        self._loop = AgentLoop.of(session)
        self.sent = SentTurn(asked.messages, asked.messages)
        self._request = Request(
            asked.system, asked.tools, asked.model, takes_markers=asked.takes_markers
        )

    async def apply(self) -> SentTurn:
        """Return what to send, by a turn of the session or as it was sent before."""
        apply = self.session.apply if self.blocks else self.session.apply_async
        async with self._loop.in_turn(blocks=self.blocks):
            if (sent := self._loop.sent_before(self.asked)) is None:
                result = await settled(apply(self.asked.messages, request=self._request))
                sent = self._loop.keep(self.session, self.asked, result)
            self.sent = sent
        return sent

    @property
    def retries(self) -> bool:
        """Whether the policy has steps for a prompt that the provider refuses as too long."""
        return bool(self.session.policy.steps("overflow"))

    async def again(self, error: object) -> SentTurn | None:
        """Return what to send once more after an error; None for one that passes.

        `error` is what the host raised, or the body of a response.
        """
        shorten = self.session.on_overflow if self.blocks else self.session.on_overflow_async
        async with self._loop.in_turn(blocks=self.blocks):
            result = await settled(shorten(self.asked.messages, error, request=self._request))
            if result is None:
                return None
            self.sent = self._loop.keep(self.session, self.asked, result)
            return self.sent

    async def preview(self) -> Sequence[Message]:
        """Return the list that a turn would send now; nothing is decided."""
        preview = self.session.preview if self.blocks else self.session.preview_async
        async with self._loop.in_turn(blocks=self.blocks):
            found: Sequence[Message] = await settled(
                preview(self.asked.messages, request=self._request)
            )
            return found

    def finish(self) -> None:
        """Forget what was sent for a request that was answered: no attempt follows."""
        if self.asked.key is not None:
            self._loop.kept.pop(self.asked.key, None)

    async def observe(self, usage: object) -> None:
        """Learn from a usage, unless another turn has begun since or the value is not a usage."""
        observe = self.session.observe if self.blocks else self.session.observe_async
        with self._loop.learning(self.sent) as may_learn:
            if may_learn:
                await settled(observe(usage))

    def read(self, events: HostObject) -> AsyncGenerator[Any]:
        """Return the events of the host's stream, for a coroutine to read."""
        return _asynchronous(events) if self.blocks else events

    def handed_out(self, events: AsyncGenerator[Any]) -> HostObject:
        """Return events for a stream of the host."""
        return _synchronous(events) if self.blocks else events


def options_below(options: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """Return the options of one of many sessions: a `root` becomes the session's folder below it.

    So sessions share no file, as with the default root and one with `{session_id}`.
    """
    root = options.get("root")
    if root is None or names_session(str(root)):
        return dict(options)
    below = safe_part(session_id)
    is_text = isinstance(root, str) and is_url(root)
    return dict(options) | {"root": f"{root}/{below}" if is_text else Path(root, below)}


class HostSessions:
    """The sessions of a host: one for all its calls, one for each id, or chosen by a function.

    With a policy there is one session for each of the host's ids, each with a folder below the
    `root` in `options`, or one for all calls if `options` have a `session_id`, which a host without
    ids needs. They are the options of `Session`, and the sessions have the host's shape besides the
    shapes in them. A `Session` and a function take no options. `most` sessions stay in memory
    between calls. The constructor raises `InputError` and the errors of `OffloadPolicy.of`.
    """

    def __init__(
        self,
        given: Session | Callable[..., Session | None] | PolicyLike,
        shape: Shape | None = None,
        options: Mapping[str, Any] | None = None,
        *,
        most: int | None = None,
        has_ids: bool = True,
    ) -> None:
        self._options = dict(options or {})
        if shape is not None:
            self._options["shapes"] = [*self._options.get("shapes", ()), shape]
        if isinstance(given, type):
            raise InputError(f"give a session, not the class {given.__name__}")
        if isinstance(given, Session) or callable(given):
            if options:
                raise InputError("options of a session need a policy, not a session")
        else:
            given = OffloadPolicy.of(given)
            if "session_id" in self._options:
                given = Session(given, **self._options)
            elif not has_ids:
                raise InputError(_LACKING)
        self._given = given
        self._lock = Lock()
        self._recent: Recent[str, Session] = Recent(most or _MOST_SESSIONS)
        # A session that is in use stays the only one of its id.
        self._in_use: WeakValueDictionary[str, Session] = WeakValueDictionary()
        self._warned: set[str] = set()

    def of_id(self, session_id: str) -> Session:
        """Return the session of an id; the one that was given if there is only one."""
        if isinstance(self._given, Session):
            return self._given
        if callable(self._given):
            raise InputError("the sessions are chosen by a function, not by id")
        with self._lock:
            session = self._in_use.get(session_id)
            if session is None:
                options = options_below(self._options, session_id)
                session = Session(self._given, session_id=session_id, **options)
                self._in_use[session_id] = session
            self._recent.put(session_id, session)
            return session

    def chosen(
        self, *call: object, session_id: Callable[[], object] = _NO_ID, lacking: str = ""
    ) -> Session | None:
        """Return the session of a model call, None for one that passes unchanged.

        That is also a call from inside a turn of the session. `call` is what a function chooses by;
        `session_id` is called if a session has to be found by its id. If there is none, the call
        raises `InputError` with the text `lacking`, and passes unchanged if this is empty.
        """
        if isinstance(self._given, Session):
            session: Session | None = self._given
        elif callable(self._given):
            session = self._given(*call)
        elif (found := session_id()) is not None:
            session = self.of_id(str(found))
        elif lacking:
            raise InputError(lacking)
        else:
            session = None
        is_inside = session is not None and AgentLoop.of(session).is_applying
        return None if is_inside else session

    def turn(self, session: Session | None, asked: Asked, *, blocks: bool = False) -> Turn | None:
        """Return the turn that a call is; None if it passes unchanged. `Turn` has `blocks`.

        The answer of a function holds. Otherwise calls of other conversations pass unchanged; see
        `AgentLoop.is_own`.
        """
        if session is None or not asked.messages:
            return None
        is_given = callable(self._given) and not isinstance(self._given, Session)
        is_own = is_given or AgentLoop.of(session).is_own(session, asked)
        return Turn(session, asked, blocks=blocks) if is_own else None

    def warn(self, text: str) -> None:
        """Log a warning, once."""
        if text not in self._warned:
            self._warned.add(text)
            _log.warning("%s", text)


def watch(response: HostObject, turn: Turn) -> None:
    """Observe the usage in the body that a response hands out."""

    def reading(read: Callable[[], Any]) -> Callable[[], Any]:
        async def reads() -> bytes:
            raw: bytes = await settled(read())
            body = _body(response)
            if (usage := body.after(raw) or body.at_end()) is not None:
                await turn.observe(usage)
            return raw

        return form_of(reads, blocks=turn.blocks)

    def iterating(method: Callable[..., Any], end: str) -> Callable[..., Any]:
        async def pieces(given: HostObject) -> AsyncGenerator[Any]:
            body = _body(response)
            async for piece in turn.read(given):
                if (usage := body.after(piece + end if end else piece)) is not None:
                    await turn.observe(usage)
                yield piece
            if (usage := body.at_end()) is not None:
                await turn.observe(usage)

        return lambda *args, **options: turn.handed_out(pieces(method(*args, **options)))

    response.read = reading(response.read)
    for name, end in _PIECES.items():
        setattr(response, name, iterating(getattr(response, name), end))


def hands_out_body(response: object) -> bool:
    """Return whether the caller of the SDK reads the body of this response."""
    http = getattr(response, "http_response", None)
    return http is not None and not http.is_closed and hasattr(response, "iter_lines")


def usage_in(http: HostObject) -> object:
    """Return the usage in the body of a response of httpx; None if it was not read or has none."""
    if not http.is_closed:
        return None
    try:
        body = http.json()
    except ValueError:
        return None
    return body.get("usage") if isinstance(body, dict) else None


def _body(response: HostObject) -> BodyUsage:
    return BodyUsage(response.headers.get("content-type", ""))
