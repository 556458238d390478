"""The page of a report: template, style, scripts, and the values that it shows.

A session has four pieces, so that a page with many sessions reads no more than is looked at: a
line in the overview, with its audited compactions, and the rows of its calls, its decisions and its
items.
"""

import base64
import gzip
import hashlib
import json
import os
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from html import escape
from importlib import resources
from math import isinf
from pathlib import Path
from string import Template
from typing import Any

from policyctx.definitions.actions import Action
from policyctx.definitions.items import PlainValue
from policyctx.errors import ReportError, visible
from policyctx.pricing.rows import prices_source
from policyctx.replay.answer import answer_of, day_of, titles
from policyctx.replay.audit import AuditedCompaction
from policyctx.replay.cost import BilledCall, billed_calls
from policyctx.replay.plain_values import figures_report
from policyctx.replay.simulated import KeptItem, Need, Removal, SeenItem, SimulatedSession
from policyctx.replay.summing import Figures, contradicting, figures_of, total

Values = dict[str, Any]
_OF_ITEM = [one.name for one in fields(SeenItem) if one.name not in {"absences", "kept"}]
# JSON escapes for what a parser of HTML might end a script at, and for what old parsers of
# JavaScript take for the end of a line.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_ENDING = re.compile(r"</script|<!--|<script", re.IGNORECASE)


def overview(policy: str, sessions: Sequence[SimulatedSession], missing: Sequence[str]) -> Values:
    """Return the policy, a line a session, their total, and what is missing."""
    figures = [figures_of(session) for session in sessions]
    whole = total(figures)
    return {
        "policy": policy,
        "answer": asdict(answer_of(sessions, figures, whole)),
        "windows": whole.windows,
        "prices_of": prices_source(),
        "is_priced": whole.priced > 0,
        "missing": list(missing),
        "sessions": [
            {
                "title": title,
                "day": day_of(one),
                "name": one.name,
                "format": one.format,
                "path": one.path,
                "audited": [*map(_audited, one.audited)],
                **figures_report(its),
                "told": [*_sentences(its)],
            }
            for one, title, its in zip(sessions, titles(sessions), figures, strict=True)
        ],
        "total": {**figures_report(whole), "told": [*_sentences(whole)]},
    }


def _audited(one: AuditedCompaction) -> Values:
    missing = {kind: one.missing(kind) for kind in one.points}
    return {**asdict(one), "missing": missing, "missed": one.missed}


def calls(session: SimulatedSession) -> list[Values]:
    """Return the calls of a session."""
    return [_call(billed) for billed in billed_calls(session, layouts=())]


def decisions(session: SimulatedSession) -> list[Values]:
    """Return what left the context of a session and was needed again, then what stayed, and why."""
    needed: dict[tuple[int, int], list[Need]] = defaultdict(list)
    for regret in session.regrets:
        needed[regret.removal.part, regret.removal.position] += regret.needs
    rows = []
    for one in session.removals:
        needs = (need for need in needed[one.part, one.position] if need.call >= one.call)
        shown = {"action": one.action, "freed": one.freed, "path": one.path}
        rows.append({**_decided(one, one), **shown, "needs": [need.values() for need in needs]})
    stays = {"action": Action.KEEP, "freed": 0, "path": None, "needs": []}
    kept = ((one, one.kept) for one in session.items if one.kept is not None)
    return rows + [{**_decided(item, why), **stays} for item, why in kept]


def said(session: SimulatedSession) -> list[Values]:
    """Return the items of a session, in the order in which a model reads them."""
    return [_item(item) for item in session.items]


def _sentences(figures: Figures) -> Iterator[str]:
    """Yield what could not be done or understood, and what is assumed."""
    if figures.not_asked:
        yield f"Summaries are made from the text alone, not by {', '.join(figures.not_asked)}."
    for one in contradicting(figures):
        yield f"The policy contradicts the recording: {one}."
    yield from _told(figures.assumed_windows, "Window assumed")
    yield from _told(figures.tiers, "Standard prices taken for another service tier")
    yield from _told(figures.unmarked, "No cache marker would be set")
    yield from _told(figures.not_understood, "Not understood")
    yield from _told(figures.warnings, "Warning")


def _told(numbers: Mapping[str, int], what: str) -> Iterator[str]:
    for text, number in sorted(numbers.items()):
        times = "once" if number == 1 else f"{number:,} times"
        yield f"{what} {times}: {text}"


def _call(billed: BilledCall) -> Values:
    call = billed.call
    return {
        "without": billed.unedited,
        "with": billed.edited,
        "cached_without": billed.costs.unedited.cache_read,
        "cached_with": billed.costs.edited.cache_read,
        "window": call.terms.window,
        "removed": call.removed,
        "anew": call.why_anew or ("change" if call.anew else None),
        "compacted": call.compacted,
        "model": call.language_model,
        "at": call.at,
    }


def _decided(item: Removal | SeenItem, why: Removal | KeptItem) -> Values:
    return {
        "part": item.part,
        "position": item.position,
        "item_id": item.item_id,
        "item_type": item.item_type,
        "what": item.tool or item.item_type,
        "tokens": item.tokens,
        "call": why.call,
        "step": why.step,
        "reason": f"{why.code}: {why.reason}",
        "rule": why.rule,
        "place": why.place,
    }


def _item(item: SeenItem) -> Values:
    values = {name: getattr(item, name) for name in _OF_ITEM}
    absences = [
        {"since": one.since, "until": None if isinf(one.until) else one.until, "left": one.left}
        for one in item.absences
    ]
    return {**values, "absences": absences}


def json_script(element_id: str, value: object) -> str:
    """Return an element that holds a value as JSON and runs nothing.

    Its characters can all be written as UTF-8 with `backslashreplace`: a lone surrogate becomes
    its own JSON escape.
    """
    text = _json(value).translate(_ESCAPES)
    return f'<script type="application/json" id="{element_id}">{text}</script>'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)


def visible_values(value: PlainValue) -> PlainValue:
    """Return plain values whose texts show control and hidden characters as escapes."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_values(key): visible_values(one) for key, one in value.items()}
    return [*map(visible_values, value)] if isinstance(value, list | tuple) else value


def rows_script(element_id: str, rows: Sequence[Values]) -> str:
    """Return an element with the rows of a table, as a person may read them, compressed.

    A lone surrogate becomes the escape that JSON has for it.
    """
    text = _json(visible_values(rows))
    compressed = gzip.compress(text.encode("utf-8", "backslashreplace"), mtime=0)
    held = base64.b64encode(compressed).decode()
    return f'<script type="text/plain" id="{element_id}">{held}</script>\n'


def values_script(element_id: str, value: PlainValue) -> str:
    """Return an element with values for the scripts of a page, as a person may read them."""
    return json_script(element_id, visible_values(value)) + "\n"


def inline_script(source: str) -> tuple[str, str]:
    """Return a script element, and the hash by which a Content-Security-Policy lets it run.

    Raises `ValueError` for a source that HTML would not read to its end.
    """
    if found := _ENDING.search(source):
        raise ValueError(f"a script with {found[0]!r} is not allowed in a page")
    # A parser of HTML knows one kind of line end, and hashes what it has read.
    text = source.replace("\r\n", "\n").replace("\r", "\n")
    digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
    return f"<script>{text}</script>", f"'sha256-{digest}'"


# In this order: each uses what comes before it.
_SCRIPTS = (
    "elements.js",
    "table.js",
    "chart.js",
    "bars.js",
    "answer.js",
    "context_chart.js",
    "sum_charts.js",
    "decisions.js",
    "audit.js",
    "messages.js",
    "page.js",
)
_STYLES = ("page.css", "screens.css")
# Nothing is fetched from anywhere. Charts place their parts by styles.
_SECURITY = (
    "default-src 'none'; script-src {script}; style-src 'unsafe-inline';"
    " base-uri 'none'; form-action 'none'"
)


def page(
    policy: str, sessions: Sequence[SimulatedSession], missing: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the page piece by piece; join and encode them as UTF-8 with `backslashreplace`.

    `missing` are sentences on what the page does not show, such as a file that could not be read.
    """
    title, scripts = f"{policy}: a replay", map(asset, _SCRIPTS)
    yield from framed(title, asset("replay.html"), scripts, _values(policy, sessions, missing))


def _values(
    policy: str, sessions: Sequence[SimulatedSession], missing: Sequence[str]
) -> Iterator[str]:
    yield values_script("overview", overview(policy, sessions, missing))
    for number, session in enumerate(sessions):
        yield rows_script(f"calls-{number}", calls(session))
        yield rows_script(f"decisions-{number}", decisions(session))
        yield rows_script(f"said-{number}", said(session))


def framed(title: str, body: str, scripts: Iterable[str], values: Iterable[str]) -> Iterator[str]:
    """Yield a page piece by piece, with the elements of `values` behind its body."""
    element, digest = inline_script('"use strict";\n' + "\n".join(scripts))
    yield Template(asset("page.html")).substitute(
        security=escape(_SECURITY.format(script=digest)),
        title=escape(visible(title)),
        style="\n".join(map(asset, _STYLES)),
        body=body.rstrip(),
    )
    yield from values
    yield f"{element}\n</body>\n</html>\n"


def asset(name: str) -> str:
    """Return a file of this folder, such as a script."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def check_writable(path: Path) -> None:
    """Raise `ReportError` for a file that cannot be written."""
    folder = path.absolute().parent
    if path.is_dir():
        raise ReportError(str(path), "it is a folder")
    if not folder.is_dir():
        raise ReportError(str(path), f"there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ReportError(str(path), "permission denied")


def write_page(path: Path, pieces: Iterable[str]) -> int:
    """Write a page under its name once it is complete; return its bytes. Raises `ReportError`."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            out.writelines(pieces)
        unfinished.replace(path)
    except OSError as error:
        raise ReportError(str(path), error.strerror or str(error)) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path.stat().st_size
