"""The page of a study: the front as a chart, with the figures as a table."""

from collections.abc import Iterator, Mapping
from html import escape
from importlib import resources
from typing import Any

from policyctx.errors import visible
from policyctx.replay.report.page import (
    asset,
    check_drawable,
    drawing_library,
    inline_script,
    json_script,
    visible_values,
)

_SCRIPTS = ("elements.js", "table.js", "chart.js")
_STYLES = ("page.css", "screens.css")
# Nothing is fetched from anywhere; the plotting library sets styles by itself.
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{security}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>
{style}
</style>
</head>
<body>
<header>
<p id="kicker" class="kicker"></p>
<h1 id="title"></h1>
<p id="about" class="lead"></p>
</header>
<main id="main"></main>
<noscript><p>This page draws its tables and charts with a script that is in it.</p></noscript>
"""
_SECURITY = (
    "default-src 'none'; script-src {scripts}; style-src 'unsafe-inline';"
    " base-uri 'none'; form-action 'none'"
)


def page(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page piece by piece; `report` are the plain values of a study.

    Raises `MissingExtraError` without the plotting library.
    """
    check_drawable()
    own = resources.files(__package__).joinpath("front.js").read_text(encoding="utf-8")
    source = '"use strict";\n' + "\n".join([*map(asset, _SCRIPTS), own])
    element, digest = inline_script(source)
    library, digests = drawing_library()
    yield _HEAD.format(
        security=escape(_SECURITY.format(scripts=f"{digest} {digests}")),
        title=escape(visible(f"{report['incumbent']}: settings that were tried")),
        style="\n".join(map(asset, _STYLES)),
    )
    yield json_script("study", visible_values(report)) + "\n"
    yield f"{element}\n{library}\n</body>\n</html>\n"
