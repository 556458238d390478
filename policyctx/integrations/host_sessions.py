"""`HostSessions`: which session the model calls of a framework's agents belong to."""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from policyctx.definitions.store_urls import is_url
from policyctx.errors import InputError
from policyctx.integrations.agent_loop import AgentLoop
from policyctx.messages.asked import Asked
from policyctx.messages.shapes.shape import Shape
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.paths import safe_part
from policyctx.policy.models import Policy
from policyctx.session import Session

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
