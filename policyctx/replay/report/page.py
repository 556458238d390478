"""The page of a report: template, style, scripts, plotting library and values."""

import base64
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from html import escape
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from string import Template
from typing import Any

from policyctx.definitions.items import PlainValue
from policyctx.errors import MissingExtraError, ReportError, visible
from policyctx.replay.report.values import Values, calls, decisions, overview, said
from policyctx.replay.simulated import SimulatedSession

# JSON escapes for what a parser of HTML might end a script at, and for what old parsers of
# JavaScript take for the end of a line.
_ESCAPES = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&\u2028\u2029"})
_ENDING = re.compile(r"</script|<!--|<script", re.IGNORECASE)


def json_script(element_id: str, value: object) -> str:
    """Return an element that holds a value as JSON and runs nothing.

    Its characters can all be written as UTF-8 with `backslashreplace`: a lone surrogate becomes
    its own JSON escape.
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return f'<script type="application/json" id="{element_id}">{text.translate(_ESCAPES)}</script>'


def visible_values(value: PlainValue) -> PlainValue:
    """Return plain values whose texts show control and hidden characters as escapes."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible_values(key): visible_values(one) for key, one in value.items()}
    return [*map(visible_values, value)] if isinstance(value, list | tuple) else value


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


def packed(rows: Sequence[Values]) -> Values:
    """Return rows that all have the same keys by column; `rowsOf` in the page unpacks them.

    A column of texts and such is a list of those and, for each row, the place of its own there.
    """
    names = list(rows[0]) if rows else []
    columns = {name: _column([row[name] for row in rows]) for name in names}
    return {"rows": len(rows), "columns": columns}


def _column(values: list[Any]) -> list[Any] | Values:
    if not all(isinstance(value, str | bool | None) for value in values):
        return values
    places: dict[Any, int] = {}
    at = [places.setdefault(value, len(places)) for value in values]
    return {"values": list(places), "at": at}


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
    "messages.js",
    "page.js",
)
# The library is large, so it comes last: figures and tables are there before there are charts.
_DRAW = "drawCharts(document);"
_STYLES = ("page.css", "screens.css")
# Nothing is fetched from anywhere. The plotting library sets styles by itself.
_SECURITY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline';"
    " base-uri 'none'; form-action 'none'"
)


def page(
    policy: str, sessions: Sequence[SimulatedSession], missing: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the page piece by piece; join and encode them as UTF-8 with `backslashreplace`.

    `missing` are sentences on what the page does not show, such as a file that could not be read.
    Raises `MissingExtraError` without the plotting library.
    """
    check_drawable()
    scripts = [inline_script(source) for source in (_script(), plotting_library(), _DRAW)]
    yield Template(asset("page.html")).substitute(
        security=escape(_SECURITY.format(scripts=" ".join(digest for _, digest in scripts))),
        title=escape(visible(f"{policy}: a replay")),
        style="\n".join(map(asset, _STYLES)),
    )
    yield _values("overview", overview(policy, sessions, missing))
    for number, session in enumerate(sessions):
        yield _values(f"calls-{number}", packed(calls(session)))
        yield _values(f"decisions-{number}", packed(decisions(session)))
        yield _values(f"said-{number}", packed(said(session)))
    yield from (f"{script}\n" for script, _ in scripts)
    yield "</body>\n</html>\n"


def _values(element_id: str, value: Values) -> str:
    return json_script(element_id, visible_values(value)) + "\n"


def check_drawable() -> None:
    """Raise `MissingExtraError` when there is nothing to draw with."""
    if find_spec("plotly") is None:
        raise MissingExtraError("a report", extra="report")


@cache
def _script() -> str:
    return '"use strict";\n' + "\n".join(map(asset, _SCRIPTS))


def asset(name: str) -> str:
    """Return a file of this folder, such as a script."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def plotting_library() -> str:
    """Return the source of the library that draws charts."""
    from plotly.offline import (  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - slow
        get_plotlyjs,
    )

    source: str = get_plotlyjs()
    return source


def check_writable(path: Path) -> None:
    """Raise `ReportError` or `MissingExtraError` before long work, as `write_report` does after."""
    check_drawable()
    folder = path.absolute().parent
    if path.is_dir():
        raise ReportError(str(path), "it is a folder")
    if not folder.is_dir():
        raise ReportError(str(path), f"there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ReportError(str(path), "permission denied")


def write_report(
    path: Path,
    policy: str,
    sessions: Sequence[SimulatedSession],
    missing: Sequence[str] = (),
) -> int:
    """Write the page of sessions that were replayed under a policy; return its size in bytes.

    `missing` are sentences on what the page does not show. Raises `ReportError` and
    `MissingExtraError`.
    """
    return write_page(path, page(policy, sessions, missing))


def write_page(path: Path, pieces: Iterable[str]) -> int:
    """Write a page; return its size in bytes.

    The file gets its name when it is complete. Raises `ReportError` and `MissingExtraError`.
    """
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
