"""`policyctx replay`: what a policy would have done to recorded sessions."""

import re
import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from policyctx.cli import progress
from policyctx.cli.output import Json, Partial, Policy, argument, console, option, print_json
from policyctx.cli.replay_output import print_regrets, print_replay, replay_csv, replay_report
from policyctx.replay.cluster import executor
from policyctx.replay.inventory import files_of_agents, require_files
from policyctx.replay.places import RecordingFile, files, place_of
from policyctx.replay.report.page import check_writable, write_report
from policyctx.replay.running import ShownSessions, Work, in_one_line, replayed, shown
from policyctx.replay.terms import PricesOf

# Of each item; the whole of most.
_EXCERPT = 4_000


def _scheduler(text: str) -> str:
    if text != "local" and not text.startswith(("tcp://", "tls://")):
        raise typer.BadParameter("expected `local`, or an address such as tcp://10.0.0.1:8786")
    return text


Recordings: TypeAlias = Annotated[
    list[str] | None,
    argument(
        "PATHS", "Recorded sessions, and folders of them; also URLs: s3://, gs://, az://, file://."
    ),
]
Agents: TypeAlias = Annotated[
    list[str] | None,
    option(
        "The sessions of this agent in its usual folder, such as claude-code; repeatable.",
        "--agent",
        metavar="NAME",
    ),
]


def _since(text: str) -> float:
    """Return the time that a user gives, in seconds since 1970; a date begins at midnight here."""
    if found := _SPAN.fullmatch(text.strip()):
        return max(0.0, time.time() - int(found[1]) * _SECONDS[found[2]])
    try:
        return datetime.fromisoformat(text.strip()).timestamp()
    except (ValueError, OverflowError, OSError):
        expected = "expected a span such as 30d, 12h or 2w, or a date such as 2026-11-01"
        raise typer.BadParameter(expected) from None


_SPAN = re.compile(r"(\d{1,6})([hdw])")
_SECONDS = {"h": 3_600, "d": 86_400, "w": 604_800}
Since: TypeAlias = Annotated[
    float | None,
    option(
        "Only sessions with a call since then: 30d, 12h, 2w, or a date such as 2026-11-01.",
        metavar="WHEN",
        parser=_since,
    ),
]
Scheduler: TypeAlias = Annotated[
    str | None,
    option(
        "Work on the cluster of this dask scheduler, such as tcp://10.0.0.1:8786; `local`"
        " starts one here with --jobs workers.",
        metavar="ADDRESS",
        parser=_scheduler,
    ),
]
Jobs: TypeAlias = Annotated[int, option("How many processes share the files.", min=1)]
Prices: TypeAlias = Annotated[
    PricesOf,
    option(
        "Prices of the recorded model on the day of each call, or its newest prices;"
        " model.price of the policy replaces both."
    ),
]


def recording_files(
    paths: Sequence[str] | None,
    agents: Sequence[str] | None,
    since: float | None,
    *,
    partial: bool,
    or_all: bool = False,
) -> list[RecordingFile]:
    """Return the files at PATHS, or those of the agents; stderr says what is not read of these.

    With `or_all`, neither of them stands for all agents. Raises `InputError` for a path that is a
    wrong URL, and where an agent has no session.
    """
    if bool(paths) == bool(agents) and (paths or not or_all):
        raise typer.BadParameter("expected PATHS, or --agent in place of them")
    if paths:
        return files(map(place_of, paths), partial=partial, since=since)
    looked = files_of_agents(agents or (), since)
    progress.tell_left_out(looked)
    require_files(looked, named=bool(agents))
    # Reading what cannot be looked up reports why.
    return [RecordingFile(path, named=True) for of in looked for path in of.unreadable] + [
        RecordingFile(file.path, named=False, bytes=file.bytes, partial=partial, since=since)
        for of in looked
        for file in of.files
    ]


@progress.interruptible()
def replay(
    policy: Policy,
    paths: Recordings = None,
    agent: Agents = None,
    since: Since = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
    regret_details: Annotated[
        bool, option("Show each item that was needed again, with the evidence.", "--regret-details")
    ] = False,
    sessions: Annotated[
        bool, option("Show a row for each session, however many a file has.", "--sessions")
    ] = False,
    details: Annotated[
        bool,
        option("Show what the cost is made of, the prompt cache and its forecast.", "--details"),
    ] = False,
    report: Annotated[
        Path | None, option("Write the replay as an HTML page.", metavar="FILE")
    ] = None,
    report_text: Annotated[
        int, option("Characters of each item that the report shows.", metavar="N", min=0)
    ] = _EXCERPT,
    prices: Prices = "recorded",
    in_part: Partial = False,
    as_json: Json = False,
    as_csv: Annotated[bool, option("Report as CSV, one row for each session.", "--csv")] = False,
) -> None:
    """Replay recorded sessions turn by turn under a policy; write nothing but a report.

    Shows what the policy would have saved and cost, and what the agent needed again. The recorded
    reply always follows, because what the agent would have done otherwise is not known. Files in a
    folder that are not recordings are skipped and listed; a PATH that is not a recording is an
    error. Files are read more than once, so neither POLICY nor PATHS can be a pipe.

    Exit codes: 0 done; 1 when a file could not be read or replayed, or when nothing was replayed;
    130 after Ctrl-C or SIGTERM, which show what is done so far.

    Example: policyctx replay coding-agent --agent claude-code --since 30d --report out.html
    """
    if as_json and as_csv:
        raise typer.BadParameter("--json and --csv exclude each other")
    loaded = progress.replay_policy(policy)
    if report is not None:
        check_writable(report)
    found = recording_files(paths, agent, since, partial=in_part)
    in_full = as_json or regret_details or report is not None
    work: Work[Any] = partial(shown, loaded, prices=prices)
    if in_full:
        excerpt = None if report is None else report_text
        work = partial(replayed, loaded, excerpt=excerpt, prices=prices)
    one_line = None if in_full or as_csv or sessions else in_one_line
    with executor(jobs, scheduler) as workers:
        so_far = progress.gathered(found, work, workers, of_part=one_line)
    results = so_far.results
    so_far.calls = sum(len(one.calls) if in_full else one.figures.calls for one in results)
    if report is not None:  # before what is printed: the terminal may be closed
        size = write_report(report, loaded.policy.name, results, list(progress.missing(so_far)))
    out = console()
    rows = [*map(ShownSessions.of, results)] if in_full and not as_json else results
    if as_json:
        print_json(replay_report(policy, so_far, details=regret_details, prices=prices))
    elif as_csv:
        out.out(replay_csv(rows), end="")
    else:
        print_replay(out, policy, rows, so_far, each=sessions, details=details, prices=prices)
        if regret_details:
            print_regrets(out, results)
    progress.tell(so_far)
    if report is not None:
        console(stderr=True).print(f"report: {report}, {size:,} bytes")
    raise typer.Exit(so_far.exit_code)
