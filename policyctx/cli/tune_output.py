"""What `policyctx tune` prints, and the policy file that it writes."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import policyctx
from policyctx.cli.numbers import signed_dollars
from policyctx.cli.output import counted, shortened, table
from policyctx.policy.loading import resolved
from policyctx.policy.showing import resolved_yaml
from policyctx.policy.sources import made_source
from policyctx.pricing.rows import prices_date
from policyctx.replay.terms import PricesOf
from policyctx.tuning.choosing import Candidate
from policyctx.tuning.outcomes import Outcome, sums
from policyctx.tuning.recordings import Priced
from policyctx.tuning.settings import Incumbent, Setting
from policyctx.tuning.study import MIN_PROJECTS, Comparison, Options, Tuned

if TYPE_CHECKING:
    from rich.console import Console

_SETTING, _SESSION = 60, 40
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Shown:
    """A study and what it was made of."""

    incumbent: Incumbent
    options: Options
    known: Priced
    tuned: Tuned
    prices: PricesOf


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    kind: str
    """`baseline`, `incumbent`, `preset`, `front`, or `winner` if that is not on the front."""
    outcomes: Sequence[Outcome]


def print_tuned(out: Console, shown: Shown) -> None:
    """Print the front, the comparisons, the test and the diff."""
    tuned = shown.tuned
    out.print(_sessions_line(shown), soft_wrap=True)
    if tuned.projects < MIN_PROJECTS:
        out.print(
            f"ranked    presets only: below {MIN_PROJECTS} projects no setting can be tested on"
            " projects that it was not chosen on",
            soft_wrap=True,
        )
    out.print()
    columns = ["setting", "net $", "saved", "regret tokens", "dearer", "never acted"]
    rows = [_cells(row) for row in _rows(shown)]
    out.print(table(columns, rows, numeric=set(columns[1:]), whole=set()))
    if tuned.comparisons:
        out.print()
        out.print(f"the best setting: {_setting(tuned.best)}", soft_wrap=True)
        out.print(_comparison_table(tuned.comparisons))
        largest = tuned.comparisons[0]
        out.print(
            f"without {shortened(largest.largest, _SESSION)}, the most influential session:"
            f" {money(largest.without_largest)} against the incumbent",
            soft_wrap=True,
        )
    out.print()
    for line in _verdict(shown):
        out.print(line, soft_wrap=True)
    if diff := policy_diff(shown):
        out.print()
        out.out(diff, highlight=False)


def _sessions_line(shown: Shown) -> str:
    tuned = shown.tuned
    paid = sums(tuned.incumbent.outcomes).without
    calls = sum(one.calls for one in tuned.sessions)
    line = (
        f"tuned     {shown.incumbent.label} over {counted(len(tuned.sessions), 'session')} of"
        f" {counted(tuned.projects, 'project')}: {counted(calls, 'call')} of a model,"
        f" ${paid:,.2f} without a policy"
    )
    if left_out := shown.known.without_price:
        models = ", ".join(sorted(shown.known.unpriced))
        line += f"; {counted(left_out, 'session')} without prices left out ({models})"
    return line


def _rows(shown: Shown) -> Iterator[_Row]:
    tuned = shown.tuned
    yield _Row("nothing", "baseline", [one.unedited for one in tuned.incumbent.outcomes])
    if tuned.summarise_only is not None:
        yield _Row("summarise-only", "baseline", tuned.summarise_only.outcomes)
    if tuned.presets:
        for one in tuned.presets:
            violated = f" (violates: {', '.join(one.violates)})" if one.violates else ""
            kind = "incumbent" if one.name == shown.incumbent.label else "preset"
            yield _Row(f"{one.name}{violated}", kind, one.candidate.outcomes)
        return
    yield _Row(shown.incumbent.label, "incumbent", tuned.incumbent.outcomes)
    for candidate in tuned.front:
        if candidate.setting != Setting():
            mark = "* " if candidate.setting == _winner(tuned) else ""
            yield _Row(f"{mark}{candidate.setting}", "front", candidate.outcomes)
    if tuned.winner is not None and tuned.winner.setting not in {
        Setting(),
        *(one.setting for one in tuned.front),
    }:
        yield _Row(f"* {tuned.winner.setting}", "winner", tuned.winner.outcomes)


def _winner(tuned: Tuned) -> Setting | None:
    return None if tuned.winner is None else tuned.winner.setting


def _cells(row: _Row) -> tuple[object, ...]:
    found = sums(row.outcomes)
    return (
        shortened(row.name, _SETTING),
        signed_dollars(found.net),
        f"{100 * found.saved:.1f} %".replace("-", "−"),
        found.regret_tokens,
        f"{found.dearer} of {found.sessions}",
        found.idle,
    )


def _comparison_table(comparisons: Sequence[Comparison]) -> Any:  # noqa: ANN401 - rich's table
    columns = ["against", "$", "95 % interval", "regret tokens", "wins", "losses", "ties"]
    rows = [
        (
            one.against,
            signed_dollars(one.difference),
            _interval(one),
            f"{one.regret_tokens:+,}".replace("-", "−"),
            *one.tally,
        )
        for one in comparisons
    ]
    return table(columns, rows, numeric=set(columns[1:]), whole=set())


def _interval(one: Comparison) -> str:
    if one.interval is None:
        return "unknown"
    return f"[{signed_dollars(one.interval.low)}, {signed_dollars(one.interval.high)}]"


def money(dollars: float) -> str:
    """Return dollars in a sentence: `−$1.25`."""
    return signed_dollars(dollars, "$")


def _setting(candidate: Candidate | None) -> str:
    return "none" if candidate is None else str(candidate.setting)


def _verdict(shown: Shown) -> Iterator[str]:
    tuned = shown.tuned
    if (tested := tuned.tested) is not None:
        one = tested.comparison
        yield (
            f"tested    on projects left out of the search: {money(one.difference)}"
            f" {_interval(one)} against {shown.incumbent.label}; {one.tally.wins} wins,"
            f" {one.tally.losses} losses, {one.tally.ties} ties"
        )
    elif tuned.is_interrupted and tuned.winner is not None:
        yield "tested    not: it was interrupted before"
    if tuned.winner is not None:
        if tuned.winner.setting != Setting():
            yield f"winner    {tuned.winner.setting}"
        elif tuned.best is not None and tuned.best.setting != Setting():
            yield (
                f"winner    {shown.incumbent.label} stays: what looks best does not save more than"
                " one standard error on projects left out of the search"
            )
        else:
            yield f"winner    {shown.incumbent.label} stays: no setting is better beyond one error"
    yield f"made      {_made(shown)}"


def _made(shown: Shown) -> str:
    tuned = shown.tuned
    return (
        f"policyctx {policyctx.__version__}, seed {shown.options.seed};"
        f" {_prices(shown)}; {counted(tuned.settings, 'setting')},"
        f" {counted(tuned.replays, 'replay')}"
    )


def _prices(shown: Shown) -> str:
    if (shown.incumbent.document.get("model") or {}).get("price"):
        return "prices of the policy"
    whose = "on the day of each call" if shown.prices == "recorded" else "of today"
    return f"prices of the recorded models {whose}, as of {prices_date()}"


def policy_diff(shown: Shown) -> str:
    """Return what the winner changes in the incumbent, as a diff; empty if it is the incumbent."""
    setting = _winner(shown.tuned)
    if setting in {None, Setting()} or setting is None:
        return ""
    name = str(shown.incumbent.document.get("name", shown.incumbent.name))
    before, after = (
        resolved_yaml(resolved(made_source(name, shown.incumbent.text(one, name=name))))
        for one in (Setting(), setting)
    )
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, f"{name}-tuned", lineterm="", n=2
    )
    return "\n".join(lines)


def policy_file(shown: Shown, path: Path) -> str | None:
    """Return the winner as a policy file at a path; None if the incumbent stays."""
    tuned = shown.tuned
    if tuned.winner is None or tuned.winner.setting == Setting():
        return None
    incumbent = shown.incumbent
    name = f"{incumbent.document.get('name', incumbent.name)}-tuned"
    extends = incumbent.extends
    if extends != incumbent.name or os.sep in extends:
        extends = os.path.relpath(extends, path.absolute().parent)
        extends = extends if extends.startswith(".") else f".{os.sep}{extends}"
    comments = "".join(f"# {line}\n" for line in _figures(shown))
    return comments + incumbent.text(tuned.winner.setting, name=name, extends=extends)


def _figures(shown: Shown) -> Iterator[str]:
    tuned = shown.tuned
    yield _sessions_line(shown)
    if tuned.winner is not None:
        found = sums(tuned.winner.outcomes)
        yield (
            f"net       {money(found.net)} ({100 * found.saved:.1f} % saved),"
            f" {found.regret_tokens:,} tokens regretted, dearer in {found.dearer} of"
            f" {found.sessions}"
        )
    for one in tuned.comparisons:
        yield f"against   {one.against}: {money(one.difference)} {_interval(one)}"
    yield from _verdict(shown)


def tuned_report(shown: Shown) -> dict[str, Any]:
    """Return everything as plain values."""
    tuned = shown.tuned
    tested = tuned.tested
    return {
        "incumbent": shown.incumbent.name,
        "version": policyctx.__version__,
        "seed": shown.options.seed,
        "prices": shown.prices,
        "prices_of": prices_date(),
        "projects": tuned.projects,
        "sessions": [
            {"name": s.name, "path": s.path, "format": s.format, "project": s.project}
            for s in tuned.sessions
        ],
        "sessions_without_prices": shown.known.without_price,
        "models_without_prices": dict(shown.known.unpriced),
        "interrupted": tuned.is_interrupted,
        "settings": tuned.settings,
        "replays": tuned.replays,
        "rows": [
            {"setting": row.name, "kind": row.kind, **_values(row.outcomes)} for row in _rows(shown)
        ],
        "judged": [_candidate(one) for one in tuned.judged],
        "best": None if tuned.best is None else _candidate(tuned.best),
        "winner": None if tuned.winner is None else _candidate(tuned.winner),
        "comparisons": [_comparison(one) for one in tuned.comparisons],
        "tested": None
        if tested is None
        else {
            **_comparison(tested.comparison),
            "settings": [dict(setting.values) for setting in tested.settings],
            "holds": tested.holds,
        },
        "diff": policy_diff(shown),
    }


def _candidate(candidate: Candidate) -> dict[str, Any]:
    values = dict(candidate.setting.values)
    return {"setting": values, "name": str(candidate.setting), **_values(candidate.outcomes)}


def _values(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    found = sums(outcomes)
    return {
        "net": round(found.net, _DIGITS),
        "without": round(found.without, _DIGITS),
        "saved": round(found.saved, _DIGITS),
        "regret_tokens": found.regret_tokens,
        "dearer": found.dearer,
        "never_acted": found.idle,
    }


def _comparison(one: Comparison) -> dict[str, Any]:
    interval = None if one.interval is None else [round(x, _DIGITS) for x in one.interval]
    rounded = {k: round(v, _DIGITS) for k, v in asdict(one).items() if isinstance(v, float)}
    return {**asdict(one), **rounded, "interval": interval, "tally": one.tally._asdict()}
