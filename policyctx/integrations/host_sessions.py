"""`HostSessions`: the session of a framework's model call; `AgentLoop`: its turn in the loop."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, get_ident
from typing import Any, ClassVar, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary, WeakValueDictionary

from policyctx.definitions.items import HostObject, Message
from policyctx.definitions.names import is_url
from policyctx.errors import InputError, UsageError
from policyctx.messages.asked import Asked, is_alike
from policyctx.messages.shapes.shape import Shape
from policyctx.paths import safe_part
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models import Policy
from policyctx.session import Session
from policyctx.tokens.usage import BodyUsage
from policyctx.turns.request import Request
from policyctx.turns.result import Result

_log = logging.getLogger(__name__)

# The lists that are kept for a repeated attempt, for each session; one is enough for one loop.
_MOST_KEPT = 8
# How often an asynchronous request asks whether another one has ended its turn, in seconds.
_POLL = 0.005
_applying: ContextVar[frozenset[AgentLoop]] = ContextVar("applying", default=frozenset())


@dataclass(frozen=True, slots=True)
class SentTurn:
    """What is sent for a request, in the turn of this number."""

    given: list[Message]
    messages: Sequence[Message]
    turn: int
    system: object = None
    tools: object = None
    sets_breakpoints: bool = False
    """Whether the policy has set the cache breakpoints of the request."""


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
        self._kept: dict[str, SentTurn] = {}
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

    def apply(self, session: Session, asked: Asked) -> SentTurn:
        """Return what to send for a request, by a turn of the session or as it was sent before."""
        with self._in_turn():
            if (sent := self._sent_before(asked)) is None:
                self._begin(asked)
                result = session.apply(asked.messages, request=_request(asked))
                sent = self._keep(session, asked, result)
            return sent

    async def apply_async(self, session: Session, asked: Asked) -> SentTurn:
        """Return what to send as `apply` does, without blocking the event loop."""
        async with self._in_turn_async():
            if (sent := self._sent_before(asked)) is None:
                self._begin(asked)
                result = await session.apply_async(asked.messages, request=_request(asked))
                sent = self._keep(session, asked, result)
            return sent

    def preview(self, session: Session, asked: Asked) -> Sequence[Message]:
        """Return the list that a turn would send now; nothing is decided."""
        with self._in_turn():
            return session.preview(asked.messages, request=_request(asked))

    async def preview_async(self, session: Session, asked: Asked) -> Sequence[Message]:
        """Return the list as `preview` does, without blocking the event loop."""
        async with self._in_turn_async():
            return await session.preview_async(asked.messages, request=_request(asked))

    def finish(self, asked: Asked) -> None:
        """Forget what was sent for a request that was answered: no attempt follows."""
        self._kept.pop(asked.key, None)

    def observe(self, session: Session, sent: SentTurn, usage: object) -> None:
        """Learn from a usage, unless another turn has begun since; waits for nothing."""
        if self._lock.acquire(blocking=False):
            try:
                if sent.turn == self._turn:
                    with suppress(UsageError):
                        session.observe(usage)
            finally:
                self._lock.release()

    async def observe_async(self, session: Session, sent: SentTurn, usage: object) -> None:
        """Learn from a usage as `observe` does, without blocking the event loop."""
        if self._lock.acquire(blocking=False):
            try:
                if sent.turn == self._turn:
                    with suppress(UsageError):
                        await session.observe_async(usage)
            finally:
                self._lock.release()

    def _begin(self, asked: Asked) -> None:
        self._turn += 1
        self._last = asked
        self._is_established = self._is_established or asked.has_reply()

    def _sent_before(self, asked: Asked) -> SentTurn | None:
        sent = self._kept.get(asked.key)
        return sent if sent is not None and sent.given == asked.messages else None

    def _keep(self, session: Session, asked: Asked, result: Result) -> SentTurn:
        for warning in result.warnings:
            _log.warning("session %s: %s", session.session_id, warning)
        while len(self._kept) >= _MOST_KEPT:
            del self._kept[next(iter(self._kept))]
        sent = SentTurn(
            asked.messages,
            result.messages,
            self._turn,
            result.system,
            result.tools,
            sets_breakpoints=bool(result.breakpoints),
        )
        self._kept[asked.key] = sent
        return sent

    @contextmanager
    def _in_turn(self) -> Iterator[None]:
        if not self._lock.acquire(blocking=False):
            if self._thread_of_task == get_ident():
                raise RuntimeError(
                    "a synchronous request waits for an asynchronous request of the same session"
                    " in the same thread, which could never end; use the asynchronous client"
                )
            self._lock.acquire()
        try:
            with self._marked():
                yield
        finally:
            self._lock.release()

    @asynccontextmanager
    async def _in_turn_async(self) -> AsyncIterator[None]:
        # A lock of asyncio would only serve one event loop, and no thread without one.
        while not self._lock.acquire(blocking=False):  # noqa: ASYNC110 - see above
            await asyncio.sleep(_POLL)
        self._thread_of_task = get_ident()
        try:
            with self._marked():
                yield
        finally:
            self._thread_of_task = None
            self._lock.release()

    @contextmanager
    def _marked(self) -> Iterator[None]:
        token = _applying.set(_applying.get() | {self})
        try:
            yield
        finally:
            _applying.reset(token)


def _request(asked: Asked) -> Request:
    return Request(asked.system, asked.tools, asked.model, takes_markers=asked.takes_markers)


PolicyLike: TypeAlias = str | os.PathLike[str] | Policy | OffloadPolicy
SessionOf: TypeAlias = Callable[[Any], Session | None]


# The sessions that are kept between calls; the store has what is needed to go on with another one.
_MOST_SESSIONS = 64


def options_below(options: Mapping[str, Any], session_id: str) -> dict[str, Any]:
    """Return the options of one of many sessions: a `root` becomes the session's folder below it.

    So sessions share no file, as with the default root.
    """
    root = options.get("root")
    if root is None:
        return dict(options)
    below = safe_part(session_id)
    is_text = isinstance(root, str) and is_url(root)
    return dict(options) | {"root": f"{root}/{below}" if is_text else Path(root, below)}


class Turn(NamedTuple):
    """A model call to which a session's policy applies."""

    loop: AgentLoop
    session: Session
    asked: Asked


class HostSessions:
    """The sessions of a host: one for all its calls, one for each id, or chosen by a function.

    With a policy there is one session for each of the host's ids, each with a folder below the
    `root` in `options`, or one for all calls if `options` have a `session_id`. They are the options
    of `Session`, and the sessions have the host's shape besides the shapes in them. A `Session` and
    a function take no options: with them the constructor raises `InputError`.
    """

    def __init__(
        self, given: Session | SessionOf | PolicyLike, shape: Shape, options: Mapping[str, Any]
    ) -> None:
        self._given = given
        self._options = {**options, "shapes": [*options.get("shapes", ()), shape]}
        if isinstance(given, Session) or callable(given):
            if options:
                raise InputError("options of a session need a policy, not a session")
        elif "session_id" in options:
            self._given = Session(given, **self._options)
        self._lock = Lock()
        self._recent: OrderedDict[str, Session] = OrderedDict()
        # A session that is in use stays the only one of its id.
        self._in_use: WeakValueDictionary[str, Session] = WeakValueDictionary()

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
            self._recent[session_id] = session
            self._recent.move_to_end(session_id)
            while len(self._recent) > _MOST_SESSIONS:
                self._recent.popitem(last=False)
            return session

    def chosen(self, call: object, session_id: object, lacking: str) -> Session | None:
        """Return the session of a model call, None for one that passes unchanged.

        `call` is what a function chooses by. Raises `InputError` with the text `lacking` if a
        session has to be found by its id, and the host has none.
        """
        if isinstance(self._given, Session):
            return self._given
        if callable(self._given):
            return self._given(call)
        if session_id is None:
            raise InputError(lacking)
        return self.of_id(str(session_id))

    def turn(self, session: Session | None, asked: Asked) -> Turn | None:
        """Return the turn that a call is; None if it passes unchanged.

        The answer of a function holds. Otherwise calls of other conversations pass unchanged; see
        `AgentLoop.is_own`.
        """
        if session is None or not asked.messages:
            return None
        loop = AgentLoop.of(session)
        if loop.is_applying:
            return None
        is_given = callable(self._given) and not isinstance(self._given, Session)
        return Turn(loop, session, asked) if is_given or loop.is_own(session, asked) else None


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
