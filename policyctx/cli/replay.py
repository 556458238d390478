"""`policyctx replay`: what a policy would have done to recorded sessions."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, TypeAlias

import typer

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.output import console, json_text
from policyctx.cli.progress import gathered, tell
from policyctx.cli.replay_reports import replay_csv, replay_report
from policyctx.cli.replay_tables import print_regrets, print_replay
from policyctx.planning.offload_policy import OffloadPolicy
from policyctx.replay.replaying import replayed

Recordings: TypeAlias = Annotated[
    list[Path],
    typer.Argument(
        metavar="PATHS", help="Recorded sessions, and folders of them.", show_default=False
    ),
]
Jobs: TypeAlias = Annotated[
    int, typer.Option(min=1, help="How many processes share the files between them.")
]


def replay(
    policy: arguments.Policy,
    paths: Recordings,
    jobs: Jobs = 1,
    regret_details: Annotated[
        bool,
        typer.Option("--regret-details", help="Show each item that was needed, and what shows it."),
    ] = False,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="A line for each session of a file with many.")
    ] = False,
    as_json: arguments.Json = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Report as CSV, a line a session.")] = False,
) -> None:
    """Replay recorded sessions turn by turn under a policy; write nothing.

    Shows what it would have saved, cost and broken. The recorded reply always follows: what an
    agent would have done otherwise is not known. Exits with 1 when something could not be read,
    and with 130 after Ctrl-C, which shows what is done so far.

    Example: policyctx replay coding-agent ~/.claude/projects --jobs 2
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv exclude each other")
    model = OffloadPolicy.load(policy).policy.model
    so_far = gathered(paths, partial(replayed, policy), jobs=jobs)
    out = console()
    if as_json:
        report = replay_report(policy, model, so_far, details=regret_details)
        out.out(json_text(report), highlight=False)
    elif as_csv:
        out.out(replay_csv(so_far.results, model), highlight=False, end="")
    else:
        print_replay(out, so_far, model, each=sessions)
        if regret_details:
            print_regrets(out, so_far.results)
    tell(so_far)
    raise typer.Exit(so_far.exit_code)
