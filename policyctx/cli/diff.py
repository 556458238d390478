"""`policyctx diff`: what two policies would have done otherwise to the same sessions."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from policyctx.cli import output
from policyctx.cli.output import argument, option
from policyctx.cli.progress import gathered, interruptible, replay_policy, tell
from policyctx.cli.replay import Agents, Jobs, Prices, Recordings, Scheduler, Since, recording_files
from policyctx.cli.replay_output import net_dollars, outcome_report, unknown
from policyctx.errors import counted, visible
from policyctx.replay.cluster import executor
from policyctx.replay.diff import Compared, Difference, ItemFate, compared
from policyctx.replay.plain_values import figures_report
from policyctx.replay.summing import Figures, figures_of, total

_LARGEST = 10
# What the table takes beside the names of the policies, and the least that is left to each name.
_NUMBERS, _LABEL = 50, 8
_INDENT = "    "
_DIGITS = 6


@interruptible()
def diff(
    policy_a: Annotated[str, argument("POLICY_A", "A preset's name or a policy file's path.")],
    policy_b: Annotated[str, argument("POLICY_B", "The policy to hold against it.")],
    paths: Recordings = None,
    agent: Agents = None,
    since: Since = None,
    largest: Annotated[
        int, option("How many items to show, the largest first; 0 is all.", min=0)
    ] = _LARGEST,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    prices: Prices = "recorded",
    in_part: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Replay recorded sessions under two policies; show what differs, and why.

    First the totals side by side, the net cost among them, then the items that have another fate.

    Exit codes: 0 done; 1 when a file could not be read or replayed, or when nothing was replayed;
    130 after Ctrl-C or SIGTERM, which show what is done so far.

    Example: policyctx diff coding-agent mine.yaml session.jsonl
    """
    named = policy_a, policy_b
    loaded = replay_policy(policy_a), replay_policy(policy_b)
    files = recording_files(paths, agent, since, partial=in_part)
    with executor(jobs, scheduler) as workers:
        so_far = gathered(files, partial(compared, loaded, prices=prices), workers)
    so_far.calls = sum(len(one.first.calls) for one in so_far.results)
    figures = [
        total(figures_of(one.first) for one in so_far.results),
        total(figures_of(one.second) for one in so_far.results),
    ]
    found = [difference for one in so_far.results for difference in one.differences]
    found.sort(key=lambda one: -one.tokens)
    out = output.console()
    if as_json:
        report: dict[str, Any] = {
            "policies": named,
            "totals": [figures_report(one) for one in figures],
            "change": _change(*figures),
            "differences": [asdict(one) for one in found],
            **outcome_report(so_far),
        }
        output.print_json(report)
    else:
        labels = _labels(named)
        _show(out, labels, figures, so_far.results, found)
        _show_items(out, labels, found, largest)
    tell(so_far)
    raise typer.Exit(so_far.exit_code)


def _labels(named: tuple[str, str]) -> tuple[str, str]:
    """The policies without their folders, where that tells them apart."""
    short_a, short_b = (visible(Path(policy).name) for policy in named)
    return (visible(named[0]), visible(named[1])) if short_a == short_b else (short_a, short_b)


def _show(
    out: Console,
    named: Sequence[str],
    figures: Sequence[Figures],
    results: Sequence[Compared],
    found: Sequence[Difference],
) -> None:
    rows = list(_rows(figures[0], figures[1]))
    sessions = counted(len(results), "session")
    where = f"in the {sessions} with {counted(figures[0].calls, 'model call')}"
    output.print_wrapped(out, f"{_verdict(named, figures, found)} {where}")
    out.print()
    if not _has_same_prices(*figures) and any(one.priced for one in figures):
        priced = " and ".join(
            f"{one.priced:,} under {name}" for one, name in zip(figures, named, strict=True)
        )
        priced = f"no $: other sessions have prices under each policy, {priced}"
        output.print_wrapped(out, priced)
    made = _table(named, rows)
    if made.width > out.width:
        most = max((out.width - _NUMBERS) // 2, _LABEL)
        made = _table([output.shortened(name, most) for name in named], rows)
    out.print(made)
    for line in unknown(figures[1]):
        out.print(line)


def _verdict(named: Sequence[str], figures: Sequence[Figures], found: Sequence[Difference]) -> str:
    """Return which policy costs less, or else sends less, and what each makes dearer."""
    (first, second), (a, b) = named, figures
    if not found:
        return f"{first} and {second} do the same"
    if _has_same_prices(a, b):
        more = b.net.dollars - a.net.dollars
        dearer = f"dearer than no policy: {first} {a.dearer:,}, {second} {b.dearer:,}"
        than = f"${abs(more):,.2f} {'less' if more <= 0 else 'more'} than {first}"
        return f"{second} would have cost {than} ({dearer})"
    fewer = a.edited.tokens - b.edited.tokens
    than = f"{output.short(abs(fewer))} {'fewer' if fewer >= 0 else 'more'} tokens than {first}"
    return f"{second} would have sent {than}"


def _table(labels: Sequence[str], rows: Sequence[Sequence[str]]) -> output.Grid:
    numeric = {"without", *labels, "change"}
    return output.Grid(("", "without", *labels, "change"), rows, numeric=numeric)


def _row(
    shown: Callable[[float], str], name: str, without: float | None, one: float, other: float
) -> tuple[str, ...]:
    before = "" if without is None else shown(without)
    change = output.percent((other - one) / one) if one else ("" if other == one else "new")
    return name, before, shown(one), shown(other), change


def _rows(a: Figures, b: Figures) -> Iterator[tuple[str, ...]]:
    row = partial(_row, lambda number: output.short(round(number)))
    yield row("tokens sent", a.unedited.tokens, a.edited.tokens, b.edited.tokens)
    yield row("largest context", a.unedited.largest, a.edited.largest, b.edited.largest)
    over = a.edited.over_window, b.edited.over_window
    yield row("calls over the window", a.unedited.over_window, *over)
    yield row("items removed", None, a.removed, b.removed)
    yield row("tokens removed", None, a.removed_tokens, b.removed_tokens)
    yield row("files", None, a.files, b.files)
    yield row("compactions", None, a.compactions, b.compactions)
    yield row("items regretted", None, a.regretted, b.regretted)
    yield row("tokens regretted", None, a.regretted_tokens, b.regretted_tokens)
    cost, after, after_b = a.costs.unedited, a.costs.edited, b.costs.edited
    yield row("read from the cache", cost.cache_read, after.cache_read, after_b.cache_read)
    yield row("not from the cache", cost.uncached, after.uncached, after_b.uncached)
    if _has_same_prices(a, b):
        yield from _paid_rows(a, b)


def _has_same_prices(a: Figures, b: Figures) -> bool:
    """Return whether the dollars are those of the same sessions, and not of none."""
    return a.priced == b.priced > 0


def _paid_rows(a: Figures, b: Figures) -> Iterator[tuple[str, ...]]:
    """Yield each line of the net in $; `change` of the net is in $ as well."""
    row = partial(_row, "${:,.2f}".format)
    nets = a.net, b.net
    prompts = (net.edited.dollars.prompt for net in nets)
    yield row("cost of prompts", a.net.without.dollars.prompt, *prompts)
    yield row("summary calls", None, *(net.summaries.dollars.total for net in nets))
    yield row("re-reads", None, *(net.re_reads.dollars.total for net in nets))
    more = output.signed_dollars(b.net.dollars - a.net.dollars, "$")
    yield "net cost", "", *map(net_dollars, nets), more
    yield "sessions dearer", "", *(f"{one.dearer:,} of {one.priced:,}" for one in (a, b)), ""
    yield "policy never acted in", "", f"{a.idle:,}", f"{b.idle:,}", ""


def _change(a: Figures, b: Figures) -> dict[str, Any]:
    """Return how much more the second policy costs than the first one; $ are None if unknown."""
    has_same_prices = _has_same_prices(a, b)
    dollars = round(b.net.dollars - a.net.dollars, _DIGITS)
    return {
        "net_dollars": dollars if has_same_prices else None,
        "dearer_sessions": b.dearer - a.dearer if has_same_prices else None,
        "regretted_items": b.regretted - a.regretted,
        "regretted_tokens": b.regretted_tokens - a.regretted_tokens,
        "tokens_sent": b.edited.tokens - a.edited.tokens,
    }


def _show_items(
    out: Console, named: Sequence[str], found: Sequence[Difference], largest: int
) -> None:
    shown = found[:largest] if largest else found
    if not found:
        out.print("\nevery item has the same fate under both")
        return
    out.print(f"\n{counted(len(found), 'item')} with another fate:")
    for one in shown:
        what = one.tool or one.item_type
        size = f"{what}, {one.tokens:,} tokens"
        out.print()
        output.print_wrapped(
            out, f"{one.item_id}  {size}, message {one.message} of {one.session}", _INDENT
        )
        for name, fate in zip(named, (one.first, one.second), strict=True):
            output.print_wrapped(out, f"  {name}: {_fate_text(fate)}", _INDENT)
    if len(shown) < len(found):
        out.print()
        out.print(f"{len(found) - len(shown):,} smaller items are not shown; --largest 0 shows all")


def _fate_text(fate: ItemFate) -> str:
    when = "" if fate.call is None else f" before call {fate.call}"
    step = f", step {fate.step}" if fate.step else ""
    return f"{fate.action}{when}{step}: {fate.reason}"
