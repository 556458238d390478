"""The net cost of a replay, as `policyctx replay` prints it: lines, a table, and plain values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from policyctx.cli.output import counted, percent, short, signed_dollars, table
from policyctx.replay.plain_values import paid
from policyctx.replay.running import SUMMARISE_ONLY
from policyctx.replay.summing import Figures, Net

if TYPE_CHECKING:
    from rich.console import Console

_UNKNOWN = "-"
# Below this width, sentences are wrapped.
_WIDE = 110
_MEANINGS = (
    "net cost = with this policy + summary calls + re-reads − without a policy",
    "the $ of summary calls and re-reads include their output",
)
_NO_MODEL = "summary calls: none, because the summaries are made without a model"


def net_lines(whole: Figures) -> Iterator[tuple[bool, str]]:
    """Yield what a policy saves or costs, and where it costs more, each with whether it is news."""
    if not whole.priced:
        return
    against = "".join(f"; {name}: {net_dollars(one.net)}" for name, one in whole.baselines.items())
    sessions = counted(whole.priced, "session")
    yield True, f"net cost  {net_dollars(whole.net)} in {sessions} with prices{against}"
    worst = "no session costs more with the policy"
    if whole.worst is not None and whole.worst.dollars > 0:
        cost = f"+${whole.worst.dollars:,.2f} ({percent(whole.worst.share)})"
        worst = f"{whole.worst.name}: {cost}"
    yield (
        bool(whole.dearer),
        f"dearer    {whole.dearer:,} of {sessions} with prices; the policy never acted in"
        f" {whole.idle:,} of the {whole.priced:,}",
    )
    yield bool(whole.dearer), f"worst     {worst}"


def print_net(out: Console, whole: Figures) -> None:
    """Print each line of the net cost in tokens and $, of the policy and of its baselines."""
    of_each = {"policy": whole, **whole.baselines}
    cells = [list(_cells(one)) for one in of_each.values()]
    rows = [
        (line, *(value for column in cells for value in column[i])) for i, line in enumerate(_LINES)
    ]
    columns = ["net cost", *(name for one in of_each for name in (f"{one}, tokens", "$"))]
    is_wide = out.width >= _WIDE
    out.print()
    out.print(table(columns, rows, numeric=set(columns[1:])))
    for meaning in _meanings(whole):
        out.print(meaning, soft_wrap=is_wide)


_LINES = (
    *("without a policy", "with this policy", "summary calls", "re-reads", "net cost"),
    *("needed again", "dearer sessions"),
)


def _meanings(whole: Figures) -> Iterator[str]:
    """Yield what the lines and columns of the table mean."""
    yield from _MEANINGS
    if whole.priced:
        sessions = counted(whole.sessions, "session")
        yield f"tokens are those of {sessions}, $ those of the {whole.priced:,} with prices"
    each = [whole, *whole.baselines.values()]
    if any(one.compactions for one in each) and not any(one.net.summaries.number for one in each):
        yield _NO_MODEL
    alone = whole.baselines.get(SUMMARISE_ONLY)
    if alone is None:
        return
    # Where the policy summarises itself, the step has the policy's own name.
    what = (
        "a step that summarises at 80 % of the context window, and no other step"
        if SUMMARISE_ONLY in alone.steps
        else "the policy's own step that summarises, and no other step"
    )
    yield f"{SUMMARISE_ONLY}: {what}"


def _cells(figures: Figures) -> Iterator[tuple[str, str]]:
    """Yield tokens and $ of each of `_LINES`."""
    net, is_priced = figures.net, figures.priced > 0
    for line in (net.without, net.edited, net.summaries, net.re_reads):
        yield short(line.tokens), f"{line.dollars.total:,.2f}" if is_priced else _UNKNOWN
    sign = "−" if net.tokens < 0 else "+" if net.tokens else ""
    total = signed_dollars(net.dollars) if is_priced else _UNKNOWN
    yield f"{sign}{short(abs(net.tokens))}", total
    yield short(figures.regretted_tokens), ""
    yield "", f"{figures.dearer:,} of {figures.priced:,}" if is_priced else _UNKNOWN


def net_dollars(net: Net) -> str:
    """Return the net in $ with its sign, and as a share of the cost: `−$1.32 (−1 %)`."""
    return f"{signed_dollars(net.dollars, '$')} ({percent(net.share)})"


def net_row(figures: Figures) -> dict[str, Any]:
    """Return the net of a session as columns of a CSV file."""
    net, priced = figures.net, figures.priced > 0
    row: dict[str, Any] = {
        "net_tokens": net.tokens,
        "net_dollars": paid(net.dollars, is_priced=priced),
        "net_output_dollars": paid(net.output_dollars, is_priced=priced),
        "net_summaries_dollars": paid(net.summaries.dollars.total, is_priced=priced),
        "net_re_reads_dollars": paid(net.re_reads.dollars.total, is_priced=priced),
        "untouched": "; ".join(figures.untouched),
    }
    for name, one in figures.baselines.items():
        key = f"{name.replace('-', '_')}_net_dollars"
        row[key] = paid(one.net.dollars, is_priced=one.priced > 0)
    return row
