"""The page of a study: the front as a chart, with the figures as a table."""

from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from policyctx.replay.report.page import asset, framed, values_script

_SCRIPTS = ("elements.js", "table.js", "chart.js")
_BODY = """<header>
<p id="kicker" class="kicker"></p>
<h1 id="title"></h1>
<p id="about" class="lead"></p>
</header>
<main id="main"></main>"""


def page(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page piece by piece; `report` are the plain values of a study.

    Raises `MissingExtraError` without the plotting library.
    """
    own = resources.files(__package__).joinpath("front.js").read_text(encoding="utf-8")
    title = f"{report['incumbent']}: settings that were tried"
    scripts = [*map(asset, _SCRIPTS), own]
    yield from framed(title, _BODY, scripts, [values_script("study", report)])
