"""Writes the figures of the presets into pages and descriptions; run by `scripts/docs`.

They come from benchmarks/presets.tsv, which `python -m benchmarks.presets` measures, and the
versions of agents from docs/clients.tsv, which `scripts/test-clients` writes. A page has a table of
them between `<!-- figures: NAME -->` and `<!-- end of figures -->`, with a head of its
own; NAME is a function of this module. The description of a preset ends with a sentence of them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TypeAlias

from benchmarks.presets import (
    CANDIDATES,
    DEFAULT,
    LEFT_OUT,
    OTHERS,
    PRESETS,
    committed,
    interval,
    of,
    together,
)
from policyctx.cli.output import percent, signed_dollars
from policyctx.replay.running import SUMMARISE_ONLY

PAGES = (
    "README.md",
    "README.zh.md",
    "docs/index.md",
    "docs/compatibility.md",
    "docs/presets.md",
    "benchmarks/README.md",
)
_TABLE = re.compile(r"(<!-- figures: (\w+) -->\n.*\n.*\n)[^<]*(?=<!-- end of figures -->)")
_SENTENCE = re.compile(r"On [\d,]+ recordings \(.*? needed again\.", re.DOTALL)
_CLIENTS = ("Claude Code", "Codex", "Pi", OTHERS)
_CHINESE = {"all": "全部", OTHERS: "其他"}

Cells: TypeAlias = Iterator[tuple[str, ...]]


def clients() -> Cells:
    """Yield a row of the default for each client and for all."""
    for client in (*_CLIENTS, ""):
        rows = of(committed(), DEFAULT, client)
        found, chosen = together(rows), together(of(committed(), LEFT_OUT, client))
        yield (
            client or "all",
            f"{found.sessions:,}",
            f"{found.sessions - found.idle:,}",
            f"${found.without:,.2f}",
            _net(DEFAULT, client),
            _between(interval(rows)),
            _share(LEFT_OUT, client),
            f"{found.dearer:,} ({chosen.dearer:,})",
        )


def costs() -> Cells:
    """Yield what `clients` says of the cost, for a page that has room for no more."""
    for client, sessions, _, cost, net, *_ in clients():
        yield client, sessions, cost, net


def presets() -> Cells:
    """Yield a row for each preset and the summaries alone."""
    for policy in (*PRESETS, SUMMARISE_ONLY):
        rows = of(committed(), policy)
        found = together(rows)
        yield (
            f"`{policy}`" if policy in PRESETS else policy,
            _net(policy),
            _between(interval(rows)),
            *(_share(policy, client) for client in (*_CLIENTS, "Claude Code 1 h")),
            f"{found.dearer:,}",
            f"{found.regret_tokens:,}",
        )


def settings() -> Cells:
    """Yield a row for each policy, the cheapest first, held against the summaries alone."""
    alone = of(committed(), SUMMARISE_ONLY)
    names = (*PRESETS, *CANDIDATES, SUMMARISE_ONLY)
    for policy in sorted(names, key=lambda name: together(of(committed(), name)).net):
        rows = of(committed(), policy)
        found = together(rows)
        yield (
            f"`{policy}`" if policy in PRESETS else policy,
            _net(policy),
            _between(interval(rows, alone)) if policy != SUMMARISE_ONLY else "",
            f"{found.dearer:,}",
            f"{found.regret_tokens:,}",
        )


def agents() -> Cells:
    """Yield a row for each agent with which the tests ran."""
    lines = Path(__file__).parents[1] / "docs" / "clients.tsv"
    yield from (tuple(line.split("\t")) for line in lines.read_text("utf-8").splitlines())


_TABLES: Mapping[str, Callable[[], Cells]] = {
    "agents": agents,
    "clients": clients,
    "costs": costs,
    "presets": presets,
    "settings": settings,
}


def sentence(preset: str) -> str:
    """Return what a preset comes to, for its description."""
    rows = of(committed(), preset)
    found = together(rows)
    return (
        f"On {found.sessions:,} recordings ({rows[0].date}): net {_net(preset)} of"
        f" ${found.without:,.2f}, {found.dearer:,} dearer, {found.regret_tokens:,} tokens needed"
        " again."
    )


def pages_with_figures(root: Path) -> dict[str, str]:
    """Return the text of each page and preset with figures by its path in the checkout."""
    found = {}
    for path in PAGES:
        text = (root / path).read_text(encoding="utf-8")
        words = _CHINESE if path.endswith(".zh.md") else {}
        found[path] = _TABLE.sub(lambda match: match[1] + _rows(match[2], words), text)  # noqa: B023
    for preset in PRESETS:
        path = f"policies/{preset}.yaml"
        text = (root / path).read_text(encoding="utf-8")
        found[path] = _SENTENCE.sub(sentence(preset), text)
    return found


def _rows(name: str, words: Mapping[str, str]) -> str:
    rows = ([words.get(cell, cell) for cell in cells] for cells in _TABLES[name]())
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _net(policy: str, client: str = "") -> str:
    found = together(of(committed(), policy, client))
    return f"{signed_dollars(found.net, '$')} ({percent(-found.saved)})"


def _share(policy: str, client: str = "") -> str:
    return percent(-together(of(committed(), policy, client)).saved)


def _between(bounds: tuple[float, float] | None) -> str:
    return "-" if bounds is None else " … ".join(signed_dollars(one, "$") for one in bounds)
