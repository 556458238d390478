"""`Pages`: what the proxy says of itself, as a page, as JSON, and for Prometheus."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from policyctx.errors import CorruptContentError, StoreError
from policyctx.proxy.conversations import Conversation, Registry
from policyctx.proxy.history import Decided, decisions_of, saved_records, saved_sessions
from policyctx.proxy.metrics import metrics
from policyctx.proxy.page import SECURITY, Live, Overview, page
from policyctx.proxy.policies import Policies
from policyctx.proxy.turning import Turning
from policyctx.store.filesystem import stores_in

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": SECURITY,
    "Cross-Origin-Resource-Policy": "same-origin",
    # A token may be a part of the address.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_MOST_SHOWN = 200
_MOST_CHARS = 4000
"""Of the text of an item."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer to a request for a page."""

    body: bytes
    content_type: str
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=lambda: _HEADERS)


class Pages:
    """The pages below `/_policyctx/`. Any thread may ask for them; they read journals."""

    def __init__(
        self,
        turning: Turning,
        registry: Registry,
        policies: Policies,
        root: Path,
        *,
        dry_run: bool = False,
        elsewhere: bool = False,
        show_content: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._turning, self._registry, self._policies = turning, registry, policies
        self._root, self._dry_run, self._elsewhere = root, dry_run, elsewhere
        self._show_content = show_content
        self._started = clock()

    def answer(self, name: str, query: str) -> Answer | None:
        """Return the page of a name below `/_policyctx/`, None if there is none."""
        session = (parse_qs(query).get("session") or [""])[-1]
        if name == "":
            text = page(self._overview(session))
            return Answer(text.encode("utf-8", "backslashreplace"), "text/html; charset=utf-8")
        if name == "decisions.json":
            return _json(self._all_decisions(session))
        if name == "metrics":
            counts, live = self._turning.counts, self._registry.live()
            stopped = sum(bool(_problem(one)) for one in live)
            reloads = self._policies.reloads
            text = metrics(counts, sessions=len(live), reloads=reloads, stopped=stopped)
            return Answer(text.encode(), "text/plain; version=0.0.4; charset=utf-8")
        return _json(self._health()) if name == "health" else None

    def _health(self) -> dict[str, Any]:
        counts = self._turning.counts
        responses: dict[str, dict[str, int]] = {}
        for (upstream, status), number in sorted(counts.responses.items()):
            responses.setdefault(upstream, {})[status] = number
        return {
            "conversations": len(self._registry),
            "reloads": self._policies.reloads,
            "requests": dict(counts.requests),
            "errors": dict(counts.errors),
            "failed_writes": counts.failed_writes,
            "responses": responses,
            "dry_run": self._dry_run,
        }

    def _overview(self, session: str) -> Overview:
        live = self._registry.live()
        named = [one for one in live if one.calls]
        unreadable: list[str] = []
        found = {one.name: self._decisions(one.name, unreadable) for one in named}
        wanted = found
        if session:
            wanted = {session: found.get(session) or self._known(session, unreadable)}
        newest = sorted(_joined(wanted.values()), key=lambda one: one.at or 0.0)
        newest.reverse()
        shown = newest[:_MOST_SHOWN]
        return Overview(
            policy=self._policies.general.policy.name,
            started=self._started,
            dry_run=self._dry_run,
            elsewhere=self._elsewhere,
            counts=self._turning.counts,
            reloads=self._policies.reloads,
            sessions=[_live(one, len(found[one.name])) for one in named],
            decisions=shown,
            more=len(newest) - len(shown),
            session=session,
            texts=self._texts(shown) if self._show_content else {},
            unreadable=unreadable,
            stopped={one.name: why for one in live if (why := _problem(one))},
        )

    def _all_decisions(self, session: str) -> dict[str, Any]:
        unreadable: list[str] = []
        names = {one.name for one in self._registry.live()}
        if not self._dry_run:
            names |= set(saved_sessions(self._root))
        names &= {session} if session else names
        found = _joined(self._decisions(name, unreadable) for name in sorted(names))
        shown = [one.values(with_content=self._show_content) for one in found]
        return {"dry_run": self._dry_run, "decisions": shown, "unreadable_sessions": unreadable}

    def _known(self, session: str, unreadable: list[str]) -> list[Decided]:
        """Return the decisions of a session by a name that a request gives."""
        if self._dry_run or session not in saved_sessions(self._root):
            return []
        return self._decisions(session, unreadable)

    def _decisions(self, session: str, unreadable: list[str]) -> list[Decided]:
        try:
            return decisions_of(session, self._records(session))
        except StoreError:
            unreadable.append(session)
            return []

    def _records(self, session: str) -> Sequence[Mapping[str, Any]]:
        if not self._dry_run:
            # A store of its own, since a turn may be using that of the session.
            return saved_records(self._root, session)
        live = (one.session for one in self._registry.live() if one.name == session)
        return next((one.store.records() for one in live if one is not None), [])

    def _texts(self, decisions: Sequence[Decided]) -> dict[int, str]:
        """Return the beginning of what each decision moved to a file, else its placeholder."""
        found = {}
        for position, one in enumerate(decisions):
            text = one.placeholder
            if one.path is not None and not self._dry_run:
                try:
                    store = stores_in(self._root / one.session, session=one.session)[one.session]
                    text = store.read(one.path)
                except (StoreError, CorruptContentError):
                    text = one.placeholder
            if text is not None:
                more = f"\n… {len(text) - _MOST_CHARS:,} more characters"
                found[position] = text[:_MOST_CHARS] + (more if len(text) > _MOST_CHARS else "")
        return found


def _live(one: Conversation, decisions: int) -> Live:
    session = one.session
    policy = "" if session is None else session.policy.policy.name
    return Live(one.name, policy, one.model, one.at, one.calls, one.meter.spent, decisions)


def _problem(one: Conversation) -> str:
    """Return why offloading has stopped in a session; empty while its writes succeed."""
    return "" if one.session is None else one.session.writes.problem


def _joined(lists: Iterable[Sequence[Decided]]) -> list[Decided]:
    return [one for each in lists for one in each]


def _json(value: object) -> Answer:
    # Escaped to ASCII: a lone surrogate is valid JSON so, and no browser takes it for HTML.
    return Answer(json.dumps(value).encode(), "application/json")
