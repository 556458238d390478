"""`policyctx tune`: the settings of a policy that recorded sessions would have paid for."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Self

import typer
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

from policyctx.cli import arguments
from policyctx.cli.output import console, json_text
from policyctx.cli.progress import INTERRUPTED, Progressed, gathered, replay_policy, tell
from policyctx.cli.replay import (
    Jobs,
    Prices,
    Recordings,
    Scheduler,
)
from policyctx.cli.replay_output import outcome_report
from policyctx.cli.tune_output import Shown, policy_file, print_tuned, tuned_report
from policyctx.errors import Diagnostic, Location, PolicyError, ReportError
from policyctx.replay.executing.choosing import executor
from policyctx.replay.executing.executor import Executor
from policyctx.replay.report.page import check_writable, write_page
from policyctx.replay.running import FailedRecording
from policyctx.replay.terms import PricesOf
from policyctx.tuning.choosing import Constraints
from policyctx.tuning.evaluating import Evaluator
from policyctx.tuning.page import page
from policyctx.tuning.projects import ProjectBy
from policyctx.tuning.recordings import Priced, Read, priced, read
from policyctx.tuning.settings import Incumbent
from policyctx.tuning.study import Options, Study, incumbent_policy

_DEFAULT = "coding-agent"


def tune(
    paths: Recordings,
    policy: Annotated[
        str,
        typer.Option(metavar="POLICY", help="The incumbent: a preset's name or a file's path."),
    ] = _DEFAULT,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            show_default=False,
            help="Write the winner as a policy that extends the incumbent.",
        ),
    ] = None,
    never_dearer: Annotated[
        bool, typer.Option("--never-dearer", help="No session may cost more than without a policy.")
    ] = False,
    max_regret: Annotated[
        float | None,
        typer.Option(
            metavar="RATIO",
            min=0,
            show_default=False,
            help="The most regretted tokens, as a multiple of the incumbent's, such as 0.5.",
        ),
    ] = None,
    project_by: Annotated[
        ProjectBy,
        typer.Option(
            help="What makes sessions ones of the same project: the working directory that is"
            " recorded, the folder of the file, or the file."
        ),
    ] = ProjectBy.RECORDED,
    folds: Annotated[
        int, typer.Option(min=2, help="Groups of projects that are each left out once.")
    ] = 5,
    seed: Annotated[int, typer.Option(help="The same seed gives the same result.")] = 0,
    prices: Prices = "recorded",
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    report: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", show_default=False, help="Write a page of HTML with the front as chart."
        ),
    ] = None,
    as_json: arguments.Json = False,
) -> None:
    """Search the settings of a policy that cost least over recorded sessions.

    Replays the sessions under many settings of POLICY, and shows the front: net dollars against
    tokens that must be read again. The choice is tested on projects that are left out of the
    search; POLICY stays unless the choice saves more there, by more than one standard error. With
    fewer than eight projects only the presets are ranked.

    Exit codes: 0 done; 1 when a file could not be read or replayed, or when no session has prices;
    130 after Ctrl-C, which shows the best so far.

    Example: policyctx tune ~/.claude/projects --policy mine.yaml -o tuned.yaml --jobs 2
    """
    replay_policy(policy)
    incumbent = Incumbent(policy)
    _check_output(output, incumbent)
    if report is not None:
        check_writable(report)
    constraints = Constraints(never_dearer=never_dearer, max_regret=max_regret)
    options = Options(seed=seed, folds=folds, constraints=constraints)
    shown = None
    with executor(jobs, scheduler) as workers:
        so_far = gathered(paths, partial(read, by=project_by), workers)
        so_far.calls = sum(one.calls for one in so_far.results)
        if so_far.calls and not so_far.is_interrupted:
            shown = _studied(incumbent, so_far, options, workers, prices=prices)
    if shown is not None and as_json:
        values = outcome_report(so_far) | tuned_report(shown)
        console().out(json_text(values), highlight=False)
    elif shown is not None:
        print_tuned(console(), shown)
    tell(so_far)
    if shown is None:
        raise typer.Exit(so_far.exit_code)
    _write(shown, output, report)
    if shown.tuned.is_interrupted:
        console(stderr=True).print("interrupted: the best so far is shown, and not tested")
        raise typer.Exit(INTERRUPTED)
    raise typer.Exit(so_far.exit_code)


def _check_output(output: Path | None, incumbent: Incumbent) -> None:
    """Raise `ReportError` before long work for a file that cannot be written afterwards."""
    if output is None:
        return
    folder = output.absolute().parent
    if str(output.resolve()) == incumbent.source.path:
        raise ReportError(str(output), "it is the policy that is tuned")
    if output.is_dir():
        raise ReportError(str(output), "it is a folder")
    if not folder.is_dir():
        raise ReportError(str(output), f"there is no folder {folder}")


def _studied(
    incumbent: Incumbent,
    so_far: Progressed[Read],
    options: Options,
    workers: Executor,
    *,
    prices: PricesOf,
) -> Shown | None:
    """Study what was found; None if nothing has prices, or if Ctrl-C came before a result.

    What failed is added to `so_far`.
    """
    policy = incumbent_policy(incumbent)
    if policy is None:
        raise PolicyError([Diagnostic(Location(incumbent.name), "PC001", _NOT_EXTENDED)])
    found = zip(so_far.results, so_far.origins, strict=True)
    with_calls = [(one, origin) for one, origin in found if one.calls]
    recordings = [one for one, _ in with_calls]
    with _Bar() as bar:
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
        tuned = Study(incumbent, known.sessions, evaluator, options).tuned()
    return Shown(incumbent, options, known, tuned, prices)


_NOT_EXTENDED = "cannot be extended by a policy that changes a key of it"


def _unpriced(known: Priced) -> str:
    models = ", ".join(sorted(known.unpriced))
    return f"no session has prices: there are none for {models}; set model.price in the policy"


def _write(shown: Shown, output: Path | None, report: Path | None) -> None:
    """Write the policy and the page that were asked for, and say so."""
    err = console(stderr=True)
    if output is not None:
        text = policy_file(shown, output)
        if text is None:
            why = "presets are ranked only" if shown.tuned.winner is None else "the incumbent stays"
            err.print(f"policy: {output} is not written: {why}", soft_wrap=True)
        else:
            output.write_text(text, encoding="utf-8")
            err.print(f"policy: {output}", soft_wrap=True)
    if report is not None:
        size = write_page(report, page(tuned_report(shown)))
        err.print(f"report: {report}, {size:,} bytes", soft_wrap=True)


class _Bar:
    """A bar on a terminal, by the model calls that are replayed; implements `Progress`."""

    def __init__(self) -> None:
        err = console(stderr=True)
        columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn()
        self._bars = Progress(
            *columns, TimeElapsedColumn(), console=err, transient=True, disable=not err.is_terminal
        )
        self._task = self._bars.add_task("settings", total=None)
        self._batch = 0

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    def begin(self, calls: int) -> None:
        """Begin the next batch of settings."""
        if calls:
            self._batch += 1
            self._bars.reset(self._task, total=calls, description=f"settings, batch {self._batch}")

    def advance(self, calls: int) -> None:
        """Move the bar on."""
        self._bars.advance(self._task, calls)
