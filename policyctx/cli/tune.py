"""`policyctx tune`: the settings that recorded sessions would have paid for, and their table."""

import difflib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

import policyctx
from policyctx.cli import output, progress
from policyctx.cli.output import option
from policyctx.cli.replay import Agents, Jobs, Prices, Recordings, Scheduler, Since, recording_files
from policyctx.cli.replay_output import outcome_report
from policyctx.definitions.items import HostObject
from policyctx.errors import Diagnostic, Location, PolicyError, ReportError, counted
from policyctx.policy.loading import resolved
from policyctx.policy.sources import made_source
from policyctx.policy.writing import resolved_yaml
from policyctx.pricing.rows import prices_source
from policyctx.replay.cluster import executor
from policyctx.replay.executing import Executor
from policyctx.replay.report.page import asset, check_writable, framed, values_script, write_page
from policyctx.replay.running import FailedRecording
from policyctx.replay.terms import PricesOf
from policyctx.tuning import study
from policyctx.tuning.evaluating import Evaluator, Priced, ProjectBy, TunedSession, priced, read
from policyctx.tuning.outcomes import SessionOutcome, layers, sums
from policyctx.tuning.search import Candidate, Constraints
from policyctx.tuning.settings import SUMMARISE_ONLY, Incumbent, Setting, legend

_SETTING, _SESSION = 60, 40
_DIGITS = 6
_INDENT = " " * 10
_DEFAULT = "coding-agent"
_NOT_EXTENDED = "cannot be extended by a policy that changes a key of it"
_SCRIPTS = ("elements.js", "table.js", "chart.js")
_BODY = """<header>
<p id="kicker" class="kicker"></p>
<h1 id="title"></h1>
<p id="about" class="lead"></p>
</header>
<main id="main"></main>"""


@dataclass(frozen=True, slots=True)
class ShownStudy:
    """A study and what it was made of."""

    incumbent: Incumbent
    options: study.StudyOptions
    known: Priced
    tuned: study.Tuned
    prices: PricesOf

    @property
    def change(self) -> Setting | None:
        """What the winner sets; None if the incumbent stays."""
        winner = self.tuned.winner
        return None if winner is None or winner.setting == Setting() else winner.setting


@dataclass(frozen=True, slots=True)
class _Row:
    name: str
    kind: str
    """`baseline`, `incumbent`, `preset`, `front`, or `winner` if that is not on the front."""
    outcomes: Sequence[SessionOutcome]
    is_valid: bool = True
    """Whether it violates nothing, so that it may be on the front."""


def print_tuned(out: Console, shown: ShownStudy) -> None:
    """Print the verdict, the front, the comparisons, the test and the diff."""
    tuned = shown.tuned
    output.print_wrapped(out, _verdict(shown))
    out.print()
    output.print_wrapped(out, _sessions_line(shown), _INDENT)
    if tuned.projects < study.MIN_PROJECTS:
        output.print_wrapped(
            out,
            f"ranked    presets only: below {study.MIN_PROJECTS} projects no setting can be tested"
            " on projects that it was not chosen on",
            _INDENT,
        )
    out.print()
    columns = ["setting", "net $", "saved", "regret tokens", "dearer", "never acted"]
    out.print(output.Grid(columns, [_cells(row) for row in _rows(shown)], numeric=columns[1:]))
    if meanings := _legend(shown):
        output.print_wrapped(out, f"settings  {'; '.join(meanings)}", _INDENT)
    if tuned.comparisons:
        out.print()
        out.print(f"the best setting: {tuned.best.setting if tuned.best else 'none'}")
        out.print(_comparison_table(tuned.comparisons))
        largest = tuned.comparisons[0]
        out.print(
            f"without {output.shortened(largest.largest, _SESSION)}, the most influential session:"
            f" {money(largest.without_largest)} against the incumbent"
        )
    out.print()
    for line in _tested(shown):
        output.print_wrapped(out, line, _INDENT)
    if diff := policy_diff(shown):
        out.print()
        out.out(diff)


def _sessions_line(shown: ShownStudy) -> str:
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
    if assumed := sorted({what for one in tuned.incumbent.outcomes for what in one.assumed}):
        line += f"; assumed: {', '.join(assumed)}"
    return line


def _rows(shown: ShownStudy) -> Iterator[_Row]:
    tuned = shown.tuned
    judged = {one.setting for one in tuned.judged}
    yield _Row("nothing", "baseline", [one.unedited for one in tuned.incumbent.outcomes])
    if tuned.summarise_only is not None:
        is_valid = bool(tuned.presets) or SUMMARISE_ONLY in judged
        yield _Row("summarise-only", "baseline", tuned.summarise_only.outcomes, is_valid)
    if tuned.presets:
        for one in tuned.presets:
            violated = f" (violates: {', '.join(one.violates)})" if one.violates else ""
            kind = "incumbent" if one.name == shown.incumbent.label else "preset"
            yield _Row(f"{one.name}{violated}", kind, one.candidate.outcomes, not violated)
        return
    yield _Row(shown.incumbent.label, "incumbent", tuned.incumbent.outcomes, Setting() in judged)
    for candidate in tuned.front:
        if candidate.setting != Setting():
            mark = "* " if candidate.setting == shown.change else ""
            yield _Row(f"{mark}{candidate.setting}", "front", candidate.outcomes)
    is_shown = shown.change in {None, *(one.setting for one in tuned.front)}
    if tuned.winner is not None and not is_shown:
        yield _Row(f"* {shown.change}", "winner", tuned.winner.outcomes)


def _rows_report(rows: Sequence[_Row]) -> list[dict[str, Any]]:
    """Return the rows, each with whether no other valid one is better in dollars and in regret."""
    valid = [i for i, row in enumerate(rows) if row.is_valid]
    found = [sums(rows[i].outcomes) for i in valid]
    layer_of = dict(
        zip(valid, layers([(one.net, one.regret_tokens) for one in found]), strict=True)
    )
    return [
        {
            "setting": row.name,
            "kind": row.kind,
            "on_front": layer_of.get(i) == 0,
            **_values(row.outcomes),
        }
        for i, row in enumerate(rows)
    ]


def _legend(shown: ShownStudy) -> list[str]:
    """Return what the words of the settings in the table mean."""
    tuned = shown.tuned
    found = [*tuned.front, *filter(None, (tuned.best, tuned.winner))]
    return legend(one.setting for one in found)


def _cells(row: _Row) -> tuple[object, ...]:
    found = sums(row.outcomes)
    return (
        output.shortened(row.name, _SETTING),
        output.signed_dollars(found.net),
        f"{100 * found.saved:.1f} %".replace("-", "−"),
        found.regret_tokens,
        f"{found.dearer} of {found.sessions}",
        found.idle,
    )


def _comparison_table(comparisons: Sequence[study.CandidateComparison]) -> HostObject:
    columns = ["against", "$", "95 % interval", "regret tokens", "wins", "losses", "ties"]
    rows = [
        (
            one.against,
            output.signed_dollars(one.difference),
            _interval(one),
            f"{one.regret_tokens:+,}".replace("-", "−"),
            *one.tally,
        )
        for one in comparisons
    ]
    return output.Grid(columns, rows, numeric=columns[1:])


def _interval(one: study.CandidateComparison) -> str:
    if one.interval is None:
        return "unknown"
    return (
        f"[{output.signed_dollars(one.interval.low)}, {output.signed_dollars(one.interval.high)}]"
    )


def money(dollars: float) -> str:
    """Return dollars in a sentence: `−$1.25`."""
    return output.signed_dollars(dollars, "$")


def _verdict(shown: ShownStudy) -> str:
    tuned, label = shown.tuned, shown.incumbent.label
    if tuned.winner is None:
        first = tuned.presets[0] if tuned.presets else None
        saves = 0.0 if first is None else -sums(first.candidate.outcomes).net
        if first is None or saves <= 0:
            return "no preset costs less than no policy"
        most = f"of the presets it saves most, ${saves:,.2f}"
        if first.name == label:
            return f"keep {label}: {most}"
        now = money(sums(tuned.incumbent.outcomes).net)
        return f"try {first.name}: {most} (net of {label}: {now}); {_price(shown, first.candidate)}"
    if shown.change is not None:
        more = sums(tuned.winner.outcomes).net - sums(tuned.incumbent.outcomes).net
        verb = "saves" if more <= 0 else "costs"
        change = f"change {label}: {shown.change} {verb} ${abs(more):,.2f} more"
        return f"{change}; {_price(shown, tuned.winner)}"
    if tuned.best is not None and tuned.best.setting != Setting():
        return (
            f"keep {label}: what looks best does not save more than one standard error on"
            " projects left out of the search"
        )
    return f"keep {label}: no setting is better beyond one error"


def _price(shown: ShownStudy, candidate: Candidate) -> str:
    """Return what a change does to regret, and to the sessions that are dearer than unedited."""
    before, after = sums(shown.tuned.incumbent.outcomes), sums(candidate.outcomes)
    return (
        f"tokens to read again: {before.regret_tokens:,} → {after.regret_tokens:,}; sessions dearer"
        f" than without a policy: {before.dearer:,} → {after.dearer:,} of {after.sessions:,}"
    )


def _tested(shown: ShownStudy) -> Iterator[str]:
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
    yield (
        f"made      policyctx {policyctx.__version__}, seed {shown.options.seed};"
        f" {_prices(shown)}; {counted(tuned.settings, 'setting')},"
        f" {counted(tuned.replays, 'replay')}"
    )


def _prices(shown: ShownStudy) -> str:
    if (shown.incumbent.document.get("model") or {}).get("price"):
        return "prices of the policy"
    whose = "on the day of each call" if shown.prices == "recorded" else "of today"
    return f"prices of the recorded models {whose}, by {prices_source()}"


def policy_diff(shown: ShownStudy) -> str:
    """Return what the winner changes in the incumbent, as a diff; empty if it is the incumbent."""
    if shown.change is None:
        return ""
    name = str(shown.incumbent.document.get("name", shown.incumbent.name))
    before, after = (
        resolved_yaml(resolved(made_source(name, shown.incumbent.text(one, name=name))))
        for one in (Setting(), shown.change)
    )
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), name, f"{name}-tuned", lineterm="", n=2
    )
    return "\n".join(lines)


def policy_file(shown: ShownStudy, path: Path) -> str | None:
    """Return the winner as a policy file at a path; None if the incumbent stays."""
    if shown.change is None:
        return None
    incumbent = shown.incumbent
    name = f"{incumbent.document.get('name', incumbent.name)}-tuned"
    extends = incumbent.extends
    if extends != incumbent.name or os.sep in extends:
        extends = os.path.relpath(extends, path.absolute().parent)
        extends = extends if extends.startswith(".") else f".{os.sep}{extends}"
    comments = "".join(f"# {line}\n" for line in _figures(shown))
    return comments + incumbent.text(shown.change, name=name, extends=extends)


def _figures(shown: ShownStudy) -> Iterator[str]:
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
    if tuned.winner is not None:
        yield f"verdict   {_verdict(shown)}"
    yield from _tested(shown)


def tuned_report(shown: ShownStudy) -> dict[str, Any]:
    """Return everything as plain values."""
    tuned = shown.tuned
    tested = tuned.tested
    return {
        "incumbent": shown.incumbent.name,
        "version": policyctx.__version__,
        "seed": shown.options.seed,
        "prices": shown.prices,
        "prices_of": prices_source(),
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
        "rows": _rows_report(list(_rows(shown))),
        "legend": _legend(shown),
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


def _values(outcomes: Sequence[SessionOutcome]) -> dict[str, Any]:
    found = sums(outcomes)
    return {
        "net": round(found.net, _DIGITS),
        "without": round(found.without, _DIGITS),
        "saved": round(found.saved, _DIGITS),
        "regret_tokens": found.regret_tokens,
        "dearer": found.dearer,
        "never_acted": found.idle,
    }


def _comparison(one: study.CandidateComparison) -> dict[str, Any]:
    interval = None if one.interval is None else [round(x, _DIGITS) for x in one.interval]
    rounded = {k: round(v, _DIGITS) for k, v in asdict(one).items() if isinstance(v, float)}
    return {**asdict(one), **rounded, "interval": interval, "tally": one.tally._asdict()}


@progress.interruptible()
def tune(
    paths: Recordings = None,
    agent: Agents = None,
    since: Since = None,
    policy: Annotated[
        str, option("The incumbent: a preset's name or a file's path.", metavar="POLICY")
    ] = _DEFAULT,
    path: Annotated[
        Path | None,
        option(
            "Write the winner as a policy that extends the incumbent.",
            "-o",
            "--output",
            metavar="FILE",
        ),
    ] = None,
    never_dearer: Annotated[
        bool, option("No session may cost more than without a policy.", "--never-dearer")
    ] = False,
    max_regret: Annotated[
        float | None,
        option(
            "The most regretted tokens, as a multiple of the incumbent's, such as 0.5.",
            metavar="RATIO",
            min=0,
        ),
    ] = None,
    project_by: Annotated[
        ProjectBy,
        option(
            "What makes sessions ones of the same project: the working directory that is"
            " recorded, the folder of the file, or the file."
        ),
    ] = ProjectBy.RECORDED,
    folds: Annotated[int, option("Groups of projects that are each left out once.", min=2)] = 5,
    seed: Annotated[int, option("The same seed gives the same result.")] = 0,
    prices: Prices = "recorded",
    in_part: output.Partial = False,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    report: Annotated[
        Path | None, option("Write a page of HTML with the front as chart.", metavar="FILE")
    ] = None,
    as_json: output.Json = False,
) -> None:
    """Search the settings of a policy that cost least over recorded sessions.

    Replays the sessions under many settings of POLICY, and shows the front: net dollars against
    tokens that must be read again. The choice is tested on projects that are left out of the
    search; POLICY stays unless the choice saves more there, by more than one standard error. With
    fewer than eight projects only the presets are ranked.

    Exit codes: 0 done; 1 when a file could not be read or replayed, or when no session has prices;
    130 after Ctrl-C or SIGTERM; these and a closed terminal keep the best so far.

    Example: policyctx tune --agent claude-code --policy mine.yaml -o tuned.yaml --jobs 2
    """
    progress.replay_policy(policy)
    incumbent = Incumbent(policy)
    _check_output(path, incumbent)
    if report is not None:
        check_writable(report)
    constraints = Constraints(never_dearer=never_dearer, max_regret=max_regret)
    options = study.StudyOptions(seed=seed, folds=folds, constraints=constraints)
    shown = None
    files = recording_files(paths, agent, since, partial=in_part)
    with executor(jobs, scheduler) as workers:
        so_far = progress.gathered(files, partial(read, by=project_by), workers)
        so_far.calls = sum(one.calls for one in so_far.results)
        if so_far.calls and not so_far.is_interrupted:
            shown = _studied(incumbent, so_far, options, workers, prices=prices)
    # Written first: the terminal may be closed.
    written = [] if shown is None else list(_written(shown, path, report))
    if shown is not None and as_json:
        output.print_json(outcome_report(so_far) | tuned_report(shown))
    elif shown is not None:
        print_tuned(output.console(), shown)
    progress.tell(so_far)
    if shown is None:
        raise typer.Exit(so_far.exit_code)
    for line in written:
        output.console(stderr=True).print(line)
    if shown.tuned.is_interrupted:
        output.console(stderr=True).print("interrupted: the best so far is shown, and not tested")
        raise typer.Exit(progress.INTERRUPTED)
    raise typer.Exit(so_far.exit_code)


def _check_output(path: Path | None, incumbent: Incumbent) -> None:
    """Raise `ReportError` before long work for a file that cannot be written afterwards."""
    if path is not None:
        if str(path.resolve()) == incumbent.source.path:
            raise ReportError(str(path), "it is the policy that is tuned")
        check_writable(path)


def _studied(
    incumbent: Incumbent,
    so_far: progress.Progressed[TunedSession],
    options: study.StudyOptions,
    workers: Executor,
    *,
    prices: PricesOf,
) -> ShownStudy | None:
    """Study the sessions; `so_far` gets failures. None without prices or on an early Ctrl-C."""
    policy = study.incumbent_policy(incumbent)
    if policy is None:
        raise PolicyError([Diagnostic(Location(incumbent.name), "PC001", _NOT_EXTENDED)])
    found = zip(so_far.results, so_far.origins, strict=True)
    with_calls = [(one, origin) for one, origin in found if one.calls]
    recordings = [one for one, _ in with_calls]
    with _Batches(options.most_batches) as bar:
        evaluator = Evaluator(
            [origin for _, origin in with_calls],
            [one.calls for one in recordings],
            executor=workers,
            prices=prices,
            progress=bar,
        )
        try:
            known = priced(recordings, evaluator, policy)
        except KeyboardInterrupt:
            so_far.is_interrupted = True
            return None
        so_far.failures += known.failures
        if not known.sessions:
            if known.without_price:
                so_far.failures.append(FailedRecording("", _unpriced(known)))
            return None
        tuned = study.Study(incumbent, known.sessions, evaluator, options).tuned()
    return ShownStudy(incumbent, options, known, tuned, prices)


def _unpriced(known: Priced) -> str:
    models = ", ".join(sorted(known.unpriced))
    return f"no session has prices: there are none for {models}; set model.price in the policy"


def _written(shown: ShownStudy, path: Path | None, report: Path | None) -> Iterator[str]:
    """Write the policy and the page that were asked for, and yield a line on each."""
    if path is not None:
        text = policy_file(shown, path)
        if text is None:
            why = "presets are ranked only" if shown.tuned.winner is None else "the incumbent stays"
            yield f"policy: {path} is not written: {why}"
        else:
            path.write_text(text, encoding="utf-8")
            yield f"policy: {path}"
    if report is not None:
        size = write_page(report, page(tuned_report(shown)))
        yield f"report: {report}, {size:,} bytes"


class _Batches(progress.Bar):
    """The batches of settings, by the model calls that are replayed; implements `Progress`."""

    def __init__(self, most: int) -> None:
        super().__init__("settings")
        self._batch, self._most = 0, most

    def begin(self, total: float | None, what: str = "") -> None:
        """Begin the next batch of settings."""
        if total:
            self._batch += 1
            of = f"batch {self._batch} of at most {self._most}"
            super().begin(total, what or f"settings, {of}")


def page(report: Mapping[str, Any]) -> Iterator[str]:
    """Yield the page of a study piece by piece; `report` are its plain values.

    It has the front as a chart, with the figures as a table.
    """
    own = resources.files("policyctx.tuning").joinpath("front.js").read_text(encoding="utf-8")
    title = f"{report['incumbent']}: settings that were tried"
    yield from framed(title, _BODY, [*map(asset, _SCRIPTS), own], [values_script("study", report)])
