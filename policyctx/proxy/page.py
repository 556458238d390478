"""The page `/_policyctx/`: plain HTML in the style of the report, without a script.

Every text in it is escaped: names of sessions and tools come from clients and models.
"""

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from html import escape
from importlib import resources
from itertools import chain
from typing import Any
from urllib.parse import parse_qs, quote

from policyctx.errors import CorruptContentError, StoreError, counted, visible
from policyctx.pricing.rows import prices_source
from policyctx.proxy.conversations import ProxyConversation
from policyctx.proxy.history import Decided, decisions_of, saved_records, saved_sessions
from policyctx.proxy.metrics import Counts, metrics
from policyctx.proxy.turning import Turning
from policyctx.store.opening import stores_in
from policyctx.turns.memory import Memory
from policyctx.turns.money import Spent

SECURITY = (
    "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none';"
    " frame-ancestors 'none'"
)
_REPORT = "policyctx.replay.report"
_STYLES = ((_REPORT, "page.css"), (_REPORT, "screens.css"), ("policyctx.proxy", "page.css"))
_COLOURED = ("saved", "lost")
_FIRST_ERROR = 400
_PASSED = {
    "untouchable": "sent as they came: they cannot be edited safely",
    "held": "sent as they came: the server holds their history",
    "unreadable_usage": "with a usage that could not be read",
}
_LONG = {"Session", "Item"}
# The columns of numbers, in whichever table they are.
_NUMBERS = {
    "Call", "Calls", "Decisions", "Dollars", "Freed", "Spared", "Tokens freed", "Tokens sent",
}  # fmt: skip
_COLUMNS = ("Time", "Session", "Call", "Item", "What", "Step", "Rule", "Reason", "Freed")
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": SECURITY,
    "Cross-Origin-Resource-Policy": "same-origin",
    # A token may be a part of the address.
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_MOST_SHOWN = 200
_PER_PAGE = 50
"""Sessions, whose journals are read."""
_MOST_CHARS = 4000
"""Of the text of an item."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A session in memory, or one that left it and is on the disk."""

    name: str
    policy: str
    model: str
    at: float
    """The time of its last request, in seconds since 1970."""
    calls: int
    spent: Spent
    decisions: int
    is_live: bool = True


def page(policy: str, header: Iterable[str], main: Iterable[str]) -> str:
    """Return the page with these parts, which are HTML."""
    return "\n".join(
        [
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<meta name="color-scheme" content="light dark">',
            "<title>policyctx proxy</title>",
            f"<style>\n{_style()}</style>\n</head>\n<body>",
            '<a class="skip" href="#main">Skip to the sessions</a>',
            "<header>",
            '<p class="kicker">policyctx proxy</p>',
            f"<h1>Policy {_text(policy)}</h1>",
            *header,
            "</header>",
            '<main id="main" tabindex="-1">',
            *main,
            "</main>",
            *_footer(),
            "</body>\n</html>\n",
        ]
    )


@cache
def _style() -> str:
    return "\n".join(
        resources.files(package).joinpath(name).read_text(encoding="utf-8")
        for package, name in _STYLES
    )


def _lead(started: float, *, elsewhere: bool, is_dry: bool) -> str:
    place = "on another machine" if elsewhere else "on this machine"
    said = f"Since {_time(started)}, for clients {place}. Figures are those of this process."
    if is_dry:
        said = (
            "<strong>A dry run: every request is sent as it came. Decisions are those that the"
            f" policy would have made.</strong> {said}"
        )
    return f'<p class="lead">{said}</p>'


def _figures(counts: Counts, live: int, *, is_dry: bool) -> Iterator[str]:
    spent, usage = counts.spent, counts.spent.usage
    cached = usage.cache_read / usage.prompt if usage.prompt else 0.0
    edited = counts.requests["edited"]
    made = sum(counts.decisions.values())
    prefix = "would free" if is_dry else "freed"
    figures = [
        ("Sessions live", f"{live:,}", ""),
        ("Requests", f"{sum(counts.requests.values()):,}", f"{edited:,} edited"),
        ("Decisions", f"{made:,}", f"{prefix} {counts.freed.total():,} tokens"),
        ("Tokens sent", f"{usage.prompt:,}", f"{spent.calls:,} calls, {cached:.0%} from the cache"),
        ("Tokens spared", f"{spent.spared:,}", "over all calls"),
        ("Dollars", _net(spent, is_dry=is_dry), _of_net(spent, is_dry=is_dry)),
    ]
    yield '<dl class="figures">'
    for name, value, note in figures:
        small = f"<small>{_text(note)}</small>" if note else ""
        word = value.split()[0]
        colour = f' class="{word}"' if word in _COLOURED else ""
        yield f"<div><dt>{_text(name)}</dt><dd{colour}>{_text(value)}{small}</dd></div>"
    yield "</dl>"


def _net(spent: Spent, *, is_dry: bool = False) -> str:
    if is_dry or not spent.priced:
        return "unknown"
    shown = _dollars(abs(spent.net))
    if not float(shown[1:].replace(",", "")):
        return "$0.00"
    return f"{'saved' if spent.net < 0 else 'lost'} {shown}"


def _of_net(spent: Spent, *, is_dry: bool) -> str:
    if is_dry:
        return f"billed {_dollars(spent.billed)}; policyctx replay estimates what a policy saves"
    if not spent.priced:
        return "no call of a model with a known price yet"
    told = f"billed {_dollars(spent.billed + spent.summaries)}"
    told += f", about {_dollars(spent.without)} without the policy"
    unpriced = spent.calls - spent.priced
    told += f"; {counted(unpriced, 'call')} without a known price" if unpriced else ""
    tiered = counted(spent.tiered, "call")
    return told + (f"; {tiered} of another service tier at standard prices" if spent.tiered else "")


def _health(counts: Counts, bad: Iterable[str], others: Iterable[str]) -> Iterator[str]:
    """Yield the list of what failed and what was sent as it came, and these sentences in it."""
    failed = {
        "sent unchanged, since the policy failed": counts.requests["failed_open"],
        "sent with earlier decisions, since the policy failed": counts.requests["reapplied"],
    }
    found = [f"{counted(n, 'request')} {what}" for what, n in failed.items() if n]
    found += [
        f"{counted(n, 'internal error')}: {name}" for name, n in sorted(counts.errors.items())
    ]
    found += [
        f"{counted(n, 'response')} of {upstream}: {_status(status)}"
        for (upstream, status), n in sorted(counts.responses.items())
        if not status.isdigit() or int(status) >= _FIRST_ERROR
    ]
    found += bad
    passed = [
        f"{counted(counts.requests[name], 'request')} {what}"
        for name, what in _PASSED.items()
        if counts.requests[name]
    ]
    passed += others
    yield '<section aria-labelledby="health"><h2 id="health">Health</h2>\n<ul class="health">'
    if not found:
        yield "<li>No failures, and no errors of the upstreams.</li>"
    yield from (f'<li class="bad">{_text(one)}</li>' for one in found)
    yield from (f"<li>{_text(one)}</li>" for one in passed)
    yield "</ul></section>"


def _status(status: str) -> str:
    return f"status {status}" if status.isdigit() else status


def _sessions(listed: Sequence[Listed], number: int, pages: int, *, is_dry: bool) -> Iterator[str]:
    """Yield the sessions of the page of the list with this number."""
    yield '<section aria-labelledby="sessions"><h2 id="sessions">Sessions</h2>'
    if not listed:
        yield "<p>No session yet.</p></section>"
        return
    if pages > 1:
        others = (
            f"<strong>{n}</strong>" if n == number else f'<a href="?page={n}">{n}</a>'
            for n in range(1, pages + 1)
        )
        yield f'<nav aria-label="Pages of sessions"><p>Page {" ".join(others)}</p></nav>'
    about = ("Session", "Policy", "Model", "Last request")
    names = (*about, "Calls", "Decisions", "Tokens sent", "Spared", "Dollars")
    yield from _table_head("Sessions, the newest first", names)
    for one in listed:
        spent = one.spent
        link = f'<a href="?session={quote(one.name, safe="")}">{_text(one.name)}</a>'
        counts = (one.calls, one.decisions, spent.usage.prompt, spent.spared)
        numbers = [f"{number:,}" for number in counts]
        net = _net(spent, is_dry=is_dry)
        numbers.append(f'<span class="{net.split()[0]}">{_text(net)}</span>')
        policy = _text(one.policy) if one.is_live else '<span class="muted">left memory</span>'
        cells = [link, policy, _text(one.model), _text(_time(one.at))]
        yield _row(names, [*cells, *numbers])
    yield "</tbody></table></div></section>"


def _rules(counts: Counts) -> Iterator[str]:
    """Yield a table of what each rule decided since the proxy was started, the most first."""
    if not counts.freed:
        return
    yield '<section aria-labelledby="rules"><h2 id="rules">What each rule did</h2>'
    names = ("Step", "Rule", "Decisions", "Tokens freed")
    yield from _table_head("Rules, what freed most first", names)
    for (step, rule), tokens in counts.freed.most_common():
        numbers = (f"{counts.ruled[step, rule]:,}", f"{tokens:,}")
        yield _row(names, [*map(_text, (step, rule, *numbers))])
    yield "</tbody></table></div></section>"


def _decisions(
    newest: Sequence[Decided], texts: Mapping[int, str], session: str, more: int
) -> Iterator[str]:
    """Yield the decisions, of one session if it is not empty; `more` are left out.

    `texts` are those of decided items, by the position of the decision.
    """
    title = f"Decisions of {session}" if session else "Decisions"
    yield '<section aria-labelledby="decisions">'
    yield f'<h2 id="decisions">{_text(title)}</h2>'
    if session:
        yield '<p><a href="./">Decisions of all sessions</a></p>'
    if not newest:
        yield "<p>None yet.</p></section>"
        return
    if more:
        named = f"?session={quote(session, safe='')}" if session else ""
        yield (
            f"<p>The newest {len(newest):,}; {more:,} more are in"
            f' <a href="decisions.json{named}">decisions.json</a>.</p>'
        )
    yield from _table_head("Decisions, the newest first", _COLUMNS)
    for position, one in enumerate(newest):
        freed = "" if one.freed_tokens is None else f"{one.freed_tokens:,}"
        item = " ".join(filter(None, (one.tool, one.type, one.item)))
        reason = _text(one.reason or one.code)
        if (text := texts.get(position)) is not None:
            reason += f"<details><summary>Text</summary><pre>{_text(text)}</pre></details>"
        at = "" if one.at is None else _time(one.at)
        cells = (at, one.session, one.call or "", item, one.action, one.step, one.rule)
        yield _row(_COLUMNS, [*map(_text, cells), reason, _text(freed)])
    yield "</tbody></table></div></section>"


def _table_head(title: str, names: Iterable[str]) -> Iterator[str]:
    yield f'<div class="scroll" role="region" aria-label="{_text(title)}" tabindex="0">'
    yield f'<table class="stacks"><caption>{_text(title)}</caption><thead><tr>'
    for name in names:
        kind = ' class="number"' if name in _NUMBERS else ""
        yield f'<th scope="col"{kind}>{_text(name)}</th>'
    yield "</tr></thead><tbody>"


def _row(names: Sequence[str], cells: Sequence[str]) -> str:
    """Return a row; the cells are HTML, and an empty one is hidden where rows are stacks."""
    made = []
    for name, cell in zip(names, cells, strict=True):
        kind = ' class="number"' if name in _NUMBERS else ""
        long = ' class="long"' if name in _LONG else ""
        shown = f"<span{long}>{cell}</span>" if cell else ""
        made.append(f'<td data-label="{_text(name)}"{kind}>{shown}</td>')
    return f"<tr>{''.join(made)}</tr>"


def _footer() -> Iterator[str]:
    yield (
        '<footer>\n<nav aria-label="Data"><ul>'
        '<li><a href="decisions.json">All decisions as JSON</a></li>'
        '<li><a href="metrics">Metrics for Prometheus</a></li>'
        '<li><a href="health">Health as JSON</a></li></ul></nav>'
    )
    yield (
        '<p class="muted">Saved or lost is what providers billed for prompts, at the list prices of'
        f" {_text(prices_source())}, less an estimate without the policy: the same prompts with all"
        " that left them, in a cache that no edit changed. Reload the"
        " page for new figures.</p>\n</footer>"
    )


def _text(value: object) -> str:
    """Return a text as HTML; its direction does not change that of what is around it."""
    shown = escape(visible(str(value)))
    return shown if shown.isascii() else f"<bdi>{shown}</bdi>"


def _time(at: float) -> str:
    try:
        return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC"
    except (OverflowError, OSError, ValueError):
        return ""


def _dollars(amount: float) -> str:
    return f"${amount:,.2f}" if amount >= 1 else f"${amount:,.4f}"


@dataclass(frozen=True, slots=True)
class PageAnswer:
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
        *,
        elsewhere: bool = False,
        show_content: bool = False,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._turning, self._elsewhere, self._show_content = turning, elsewhere, show_content
        self._registry, self._policies = turning.registry, turning.policies
        self._root, self._dry_run = turning.root, turning.dry_run
        self._started = clock()

    def answer(self, name: str, query: str) -> PageAnswer | None:
        """Return the page of a name below `/_policyctx/`, None if there is none."""
        asked = parse_qs(query)
        session = (asked.get("session") or [""])[-1]
        if name == "":
            number = (asked.get("page") or [""])[-1]
            text = self._page(session, int(number) if number.isdecimal() else 1)
            return PageAnswer(text.encode("utf-8", "backslashreplace"), "text/html; charset=utf-8")
        if name == "decisions.json":
            return _json(self._all_decisions(session))
        if name == "metrics":
            counts, live = self._turning.counts, self._registry.live()
            stopped = sum(bool(_problem(one)) for one in live)
            reloads = self._policies.reloads
            text = metrics(counts, sessions=len(live), reloads=reloads, stopped=stopped)
            return PageAnswer(text.encode(), "text/plain; version=0.0.4; charset=utf-8")
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

    def _page(self, session: str, number: int) -> str:
        """Return the page with the decisions of a session, else of those on a page of the list."""
        every = self._registry.live()
        live = {one.name: one for one in every if one.calls}
        saved, unlisted = self._saved()
        names = [*live, *sorted(saved.keys() - live.keys(), key=lambda name: -saved[name])]
        pages = max(1, -(-len(names) // _PER_PAGE))
        number = min(max(1, number), pages)
        names = names[_PER_PAGE * (number - 1) : _PER_PAGE * number]
        unreadable: list[str] = []
        found = {name: self._decisions(name, unreadable) for name in names}
        wanted = found
        if session:
            wanted = {session: found.get(session, [])}
            if session in saved.keys() - found.keys():
                wanted = {session: self._decisions(session, unreadable)}
        newest = sorted(chain(*wanted.values()), key=lambda one: one.at or 0.0)[::-1]
        shown, counts, is_dry = newest[:_MOST_SHOWN], self._turning.counts, self._dry_run
        listed = [
            _live(live[name], len(found[name]))
            if name in live
            else self._left(name, saved[name], found[name])
            for name in names
        ]
        bad = [f"the journal of session {name} cannot be read" for name in unreadable]
        bad += [f"sessions that left memory are not shown: {unlisted}"] if unlisted else []
        stopped = ((one.name, _problem(one)) for one in every)
        bad += [f"offloading has stopped in session {name}: {why}" for name, why in stopped if why]
        unmarked = ((one.name, one.unmarked) for one in every)
        others = [f"no cache markers in session {name}: {why}" for name, why in unmarked if why]
        if reloads := self._policies.reloads:
            others.append(f"{counted(reloads, 'reading')} of the policies on SIGHUP")
        header = (
            _lead(self._started, elsewhere=self._elsewhere, is_dry=is_dry),
            *_figures(counts, len(live), is_dry=is_dry),
        )
        texts = self._texts(shown) if self._show_content else {}
        main = chain(
            _health(counts, bad, others),
            _sessions(listed, number, pages, is_dry=is_dry),
            _rules(counts),
            _decisions(shown, texts, session, len(newest) - len(shown)),
        )
        return page(self._policies.general.policy.name, header, main)

    def _all_decisions(self, session: str) -> dict[str, Any]:
        unreadable: list[str] = []
        saved, unlisted = self._saved()
        names = {one.name for one in self._registry.live()} | saved.keys()
        names &= {session} if session else names
        found = (self._decisions(name, unreadable) for name in sorted(names))
        shown = [one.values(with_content=self._show_content) for each in found for one in each]
        return {
            "dry_run": self._dry_run,
            "decisions": shown,
            "unreadable_sessions": unreadable,
            "unreadable_root": unlisted,
        }

    def _saved(self) -> tuple[Mapping[str, float], str]:
        """Return the sessions on the disk, and why they cannot be listed; "" if they can."""
        if self._dry_run:
            return {}, ""
        try:
            return saved_sessions(self._root), ""
        except StoreError as error:
            return {}, str(error)

    def _decisions(self, session: str, unreadable: list[str]) -> list[Decided]:
        try:
            return decisions_of(session, self._records(session))
        except StoreError:
            unreadable.append(session)
            return []

    def _left(self, name: str, at: float, decisions: Sequence[Decided]) -> Listed:
        """Return a session that left memory, with the sums that its journal has."""
        try:
            spent = Memory.of(self._records(name)).tallied.meter.spent
        except StoreError:
            spent = Spent()
        return Listed(name, "", "", at, spent.calls, spent, len(decisions), is_live=False)

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


def _live(one: ProxyConversation, decisions: int) -> Listed:
    session = one.session
    policy = "" if session is None else session.policy.policy.name
    return Listed(one.name, policy, one.model, one.at, one.calls, one.meter.spent, decisions)


def _problem(one: ProxyConversation) -> str:
    """Return why offloading has stopped in a session; empty while its writes succeed."""
    return "" if one.session is None else one.session.writes.problem


def _json(value: object) -> PageAnswer:
    # Escaped to ASCII: a lone surrogate is valid JSON so, and no browser takes it for HTML.
    return PageAnswer(json.dumps(value).encode(), "application/json")
