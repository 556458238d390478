"""`policyctx audit`: what the compactions of recorded sessions lost."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from policyctx.cli import output
from policyctx.cli.output import option
from policyctx.cli.progress import Progressed, gathered, interruptible, tell
from policyctx.cli.replay import Agents, Jobs, Recordings, Since, recording_files
from policyctx.cli.replay_output import outcome_report
from policyctx.compaction.points import PointKind
from policyctx.errors import counted
from policyctx.replay.audit import EXTRACTIVE, AuditedCompaction, AuditedSession, Finding, audited
from policyctx.replay.cluster import executor

MISSING = 3
"""The exit code where something is missing."""
_KINDS = {
    PointKind.ORDER: "orders",
    PointKind.VALUE: "values",
    PointKind.TASK: "tasks",
    PointKind.FILE: "files",
}
_COLUMNS = ("session", "call", "replaced", *_KINDS.values(), "later")
# The characters of a session's name, at least and at most, and of a quotation.
_SHORT_NAME, _NAME, _QUOTE, _VALUE = 12, 24, 300, 60
_FEW, _FEW_VALUES, _FEW_LATER = 12, 3, 3


def _summary(by: str) -> str:
    """Return the text of the file that `--by` names, or `extractive`."""
    if by in {"", EXTRACTIVE}:
        return by
    try:
        return Path(by).read_text(encoding="utf-8") or "\n"
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or "it is not text"
        raise typer.BadParameter(
            f"expected `{EXTRACTIVE}` or a file with a summary: {why}"
        ) from None


@interruptible()
def audit(
    paths: Recordings = None,
    agent: Agents = None,
    since: Since = None,
    by: Annotated[
        str,
        option(
            "Compare another summary in place of the recorded ones: the extractive summary of"
            " the same messages, or the text of a file.",
            metavar="extractive|FILE",
            parser=_summary,
        ),
    ] = "",
    every: Annotated[
        bool, option(f"Quote all that is missing, not only {_FEW} for each compaction.", "--all")
    ] = False,
    jobs: Jobs = 2,
    in_part: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Show what the compactions of recorded sessions lost, and what later turns show of it.

    Compares the messages before each compaction with all that the first request after it held.
    Quotes the user's orders, limits and exact values that are missing there, and names open tasks
    and edited files, with later statements on the same thing: whether one still holds is not
    judged. An encrypted summary is unreadable, and nothing counts as lost there. Sends nothing.
    Without PATHS and --agent, the sessions of all agents on this machine are read.

    Exit codes: 0 nothing is missing; 1 when a file could not be read, or no session was found; 3
    when something is missing; 130 after Ctrl-C or SIGTERM, which show what is done so far.

    Example: policyctx audit --agent claude-code --since 30d
    """
    found = recording_files(paths, agent, since, partial=in_part, or_all=True)
    so_far: Progressed[AuditedSession]
    with executor(jobs, None) as workers:
        so_far = gathered(found, partial(audited, by=by), workers)
    with_any = [one for one in so_far.results if one.compactions]
    out = output.console()
    if as_json:
        output.print_json(_report(so_far))
    else:
        _print(out, with_any, every=every)
        for sentence in _totals(so_far.results):
            output.print_wrapped(out, sentence, "  ")
    tell(so_far)
    is_missing = any(one.findings for session in with_any for one in session.compactions)
    raise typer.Exit(so_far.exit_code or (MISSING if is_missing else 0))


def _print(out: Console, sessions: Sequence[AuditedSession], *, every: bool) -> None:
    if not sessions:
        return
    output.print_wrapped(out, _verdict(sessions))
    out.print()
    out.print("Missing / all at the compaction before each call:")
    names = [of.name for of in sessions for _ in of.compactions]
    rows = [_cells(one) for of in sessions for one in of.compactions]
    room = out.width - output.Grid(("", *_COLUMNS[1:]), [("", *row) for row in rows]).width
    most = min(max(room, _SHORT_NAME), _NAME)
    named = [(output.shortened(name, most), *row) for name, row in zip(names, rows, strict=True)]
    out.print(output.Grid(_COLUMNS, named, numeric=_COLUMNS[1:]))
    out.print()
    for of in sessions:
        for one in of.compactions:
            if one.findings:
                name = f"{of.name} in {of.project}" if of.project else of.name
                compaction = f"compaction before call {one.call}{_time(one.at)}"
                _print_quote(out, f"{name}, {compaction}:")
                for line in _quotes(one, every=every):
                    _print_quote(out, line)
                out.print()


def _print_quote(out: Console, line: str) -> None:
    """Print a quotation; where lines are wrapped, a word longer than a line loses its middle."""
    indent = " " * (4 + len(line) - len(line.lstrip()))
    if not out.soft_wrap:
        most = max(out.width - len(indent), _SHORT_NAME)
        line = " ".join(output.shortened(word, most) for word in line.split(" "))
    output.print_wrapped(out, line, indent)


def _verdict(sessions: Sequence[AuditedSession]) -> str:
    sums = _sums(sessions)
    sealed, missed = sums["unreadable"], sums["missed"]
    readable = sums["compactions"] - sealed
    compactions = counted(readable, "compaction")
    if not readable:
        return f"no summary of {counted(sealed, 'compaction')} can be read"
    others = f"; {sealed:,} more cannot be read" if sealed else ""
    lossy = sum(bool(one.findings) for of in sessions for one in of.compactions)
    if not lossy:
        return f"nothing is missing after {compactions}{others}"
    lost = ", ".join(counted(number, kind) for kind, number in sums["missing"].items() if number)
    return f"{lossy:,} of {compactions} lost something: {lost}{_again(missed)}{others}"


def _again(missed: int) -> str:
    return f"; {missed or 'none'} of them came up again later"


def _cells(one: AuditedCompaction) -> tuple[object, ...]:
    share = ("?" if one.is_unreadable else f"{one.missing(kind)}" for kind in _KINDS)
    cells = (f"{lost}/{one.points.get(kind, 0)}" for kind, lost in zip(_KINDS, share, strict=True))
    shown = "unreadable" if one.is_unreadable else one.missed
    return one.call, one.replaced, *cells, shown


def _quotes(one: AuditedCompaction, *, every: bool) -> Iterator[str]:
    """Yield what is missing in time order; of much the part that later turns show comes first."""
    told = set(sorted(one.findings, key=lambda found: not found.is_missed)[:_FEW])
    for found in one.findings:
        if every or found in told:
            yield from _quote(found)
    if not every and len(one.findings) > _FEW:
        yield f"  … {len(one.findings) - _FEW} more; --all quotes them"


def _quote(one: Finding) -> Iterator[str]:
    state = f" ({one.state})" if one.state else ""
    quote = output.shortened(
        f"  {one.kind}, call {one.call}{_time(one.at)}: {one.text}{state}", _QUOTE
    )
    more = f" and {len(one.values) - _FEW_VALUES} more" if len(one.values) > _FEW_VALUES else ""
    values = ", ".join(output.shortened(value, _VALUE) for value in one.values[:_FEW_VALUES])
    yield f"{quote}; missing: {values}{more}" if values else quote
    for later in one.later[:_FEW_LATER]:
        how = "" if later.how == "before" else f", {later.how}"
        yield output.shortened(f"    later, call {later.call}{how}: {later.text}", _QUOTE)
    if len(one.later) > _FEW_LATER:
        yield f"    … {len(one.later) - _FEW_LATER} more later"


def _time(at: float | None) -> str:
    """Return a time here, as in `, 2026-11-01 14:05`."""
    return output.moment(at, ", %Y-%m-%d %H:%M")


def _totals(sessions: Iterable[AuditedSession]) -> Iterator[str]:
    """Yield a sentence for each client, one more for its summaries that cannot be read.

    Then one for all sessions without a compaction.
    """
    without = 0
    for format_, of in _by_client(sessions):
        sums = _sums(of)
        made, sealed = sums["compactions"], sums["unreadable"]
        without += sum(not one.compactions for one in of)
        if made > sealed:
            lost = ", ".join(
                f"{sums['missing'][kind]:,} of {sums['points'][kind]:,} {name}"
                for kind, name in _KINDS.items()
            )
            again = _again(sums["missed"]) if any(sums["missing"].values()) else ""
            compactions = counted(made - sealed, "compaction")
            yield f"{format_}: {compactions}; missing: {lost}{again}"
        if sealed:
            others = f"{sums['beside']:,} of {sums['unreadable_points']:,}"
            compactions = counted(sealed, "compaction")
            yield (
                f"{format_}: {compactions} with an unreadable summary; {others} orders, values,"
                " tasks and files are in the request without it"
            )
    if without:
        yield f"nothing to compare in {counted(without, 'session')}: no call after a compaction"


def _by_client(sessions: Iterable[AuditedSession]) -> Iterator[tuple[str, list[AuditedSession]]]:
    ordered = sorted(sessions, key=lambda one: one.format)
    for format_, of in groupby(ordered, key=lambda one: one.format):
        yield format_, list(of)


def _report(so_far: Progressed[AuditedSession]) -> dict[str, Any]:
    return {
        "sessions": [
            {**asdict(one), "compactions": [*map(_values, one.compactions)]}
            for one in so_far.results
            if one.compactions
        ],
        "totals": {format_: _sums(of) for format_, of in _by_client(so_far.results)},
        **outcome_report(so_far),
    }


def _values(one: AuditedCompaction) -> dict[str, Any]:
    findings = [{**asdict(found), "missed": found.is_missed} for found in one.findings]
    return {**asdict(one), "findings": findings}


def _sums(of: Sequence[AuditedSession]) -> dict[str, Any]:
    made = [one for session in of for one in session.compactions]
    readable = [one for one in made if not one.is_unreadable]
    sealed = [one for one in made if one.is_unreadable]
    points = sum((Counter(one.points) for one in readable), Counter[str]())
    return {
        "sessions": len(of),
        "compactions": len(made),
        "unreadable": len(sealed),
        "unreadable_points": sum(sum(one.points.values()) for one in sealed),
        "beside": sum(one.beside for one in sealed),
        "points": {kind: points[kind] for kind in _KINDS},
        "missing": {kind: sum(one.missing(kind) for one in readable) for kind in _KINDS},
        "missed": sum(one.missed for one in readable),
    }
