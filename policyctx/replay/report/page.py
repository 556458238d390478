"""The page: a template, its style and scripts, the plotting library, and the values."""

from __future__ import annotations

from functools import cache
from html import escape
from importlib import resources
from importlib.util import find_spec
from string import Template
from typing import TYPE_CHECKING

from policyctx.errors import MissingExtraError
from policyctx.replay.report.embedding import inline_script, json_script
from policyctx.replay.report.packing import packed
from policyctx.replay.report.values import calls, decisions, overview, said

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from policyctx.policy.models import Model
    from policyctx.replay.simulated import SimulatedSession

# In this order: each uses what stands before it.
_SCRIPTS = (
    "elements.js",
    "table.js",
    "chart.js",
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
    policy: str, model: Model, sessions: Sequence[SimulatedSession], missing: Sequence[str] = ()
) -> Iterator[str]:
    """Yield the page piece by piece; join and encode them as UTF-8 with `backslashreplace`.

    `missing` are sentences on what the page does not show, such as a file that could not be read.
    Raises `MissingExtraError` without the plotting library.
    """
    check_drawable()
    scripts = [inline_script(source) for source in (_script(), _plotting_library(), _DRAW)]
    yield Template(_text("page.html")).substitute(
        security=escape(_SECURITY.format(scripts=" ".join(digest for _, digest in scripts))),
        title=escape(f"{policy}: a replay"),
        style="\n".join(map(_text, _STYLES)),
    )
    yield json_script("overview", overview(policy, model, sessions, missing)) + "\n"
    for number, session in enumerate(sessions):
        yield json_script(f"calls-{number}", packed(calls(session, model))) + "\n"
        yield json_script(f"decisions-{number}", packed(decisions(session))) + "\n"
        yield json_script(f"said-{number}", packed(said(session))) + "\n"
    yield from (f"{script}\n" for script, _ in scripts)
    yield "</body>\n</html>\n"


def check_drawable() -> None:
    """Raise `MissingExtraError` when there is nothing to draw with."""
    if find_spec("plotly") is None:
        raise MissingExtraError("a report", extra="report")


@cache
def _script() -> str:
    return '"use strict";\n' + "\n".join(map(_text, _SCRIPTS))


def _text(name: str) -> str:
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def _plotting_library() -> str:
    from plotly.offline import (  # type: ignore[import-untyped,unused-ignore]  # noqa: PLC0415 - slow
        get_plotlyjs,
    )

    source: str = get_plotlyjs()
    return source
