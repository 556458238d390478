"""`policyctx sessions`: what the agents on this machine were billed, and what a policy saves."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from policyctx.cli import output, progress
from policyctx.cli.output import option
from policyctx.cli.replay import Agents, Jobs, Recordings, Since, recording_files
from policyctx.cli.replay_output import outcome_report, session_table, unknown
from policyctx.errors import counted, visible
from policyctx.pricing.rows import prices_source
from policyctx.replay import inventory
from policyctx.replay.answer import verdict
from policyctx.replay.cluster import executor
from policyctx.replay.executing import Executor, Job, LostJob
from policyctx.replay.places import RecordingFile, WorkPart
from policyctx.replay.plain_values import figures_report
from policyctx.replay.running import FailedRecording, ShownSessions, shown
from policyctx.replay.summing import total

_DEFAULT = "coding-agent"
_NEWEST = 20
_COLUMNS = ("sessions", "calls", "tokens", "cached", "$", "compactions")
# The columns of each layout, the widest first, as positions in `_COLUMNS`.
_LAYOUTS = (tuple(range(6)), (0, 1, 2, 3, 4), (0, 1, 2, 4), (1, 2, 4), (2, 4))
# A project has at most the first of these characters; columns are left out until it has the second.
_PROJECT, _SHORT_PROJECT = 30, 16


@progress.interruptible()
def sessions(
    paths: Recordings = None,
    agent: Agents = None,
    since: Since = None,
    policy: Annotated[
        str, option("The policy that is replayed: a preset or a file.", metavar="POLICY")
    ] = _DEFAULT,
    every: Annotated[
        bool, option(f"Replay all sessions, not only the newest {_NEWEST}.", "--all")
    ] = False,
    no_replay: Annotated[bool, option("Show the table alone.", "--no-replay")] = False,
    jobs: Jobs = 2,
    in_part: output.Partial = False,
    as_json: output.Json = False,
) -> None:
    """Show what the coding agents on this machine were billed, and what a policy would have saved.

    Without PATHS, finds the sessions of Claude Code, Codex and others in their usual folders, and
    honours the variables that move these. Reads nothing else, follows no link in them, writes
    nothing but this report, and sends nothing; SQLite may make the index of a journal (`-shm`) that
    an agent left without one. The table has the bills that the agents recorded, at the prices of
    the day of each call. Then the newest sessions are replayed under a policy.

    Exit codes: 0 done; 1 if no session was found, or a file could not be read or replayed; 130
    after Ctrl-C or SIGTERM, which show what is done so far.

    Example: policyctx sessions --agent claude-code --since 30d
    """
    out, loaded = output.console(), None if no_replay else progress.replay_policy(policy)
    given = recording_files(paths, agent, since, partial=in_part) if paths else []
    looked = [] if paths else inventory.files_of_agents(agent or (), since)
    if not paths:
        inventory.require_files(looked, named=bool(agent))
    replay: dict[str, Any] | None = None
    if not as_json:
        for line in _looked_in(looked):
            out.print(line)
        out.file.flush()
    with executor(jobs, None) as workers:
        found, repeated = _given(given, workers) if paths else _glanced(looked, workers, since)
        newest = len(found.results) if every else min(_NEWEST, len(found.results))
        if not as_json:
            _print(out, found, of_agents=bool(looked))
            out.file.flush()
        told: list[progress.Progressed[Any]] = [found]
        code = found.exit_code
        if loaded is not None and newest and not found.is_interrupted:
            if paths:
                known = {file.path: file for file in given}
                files = inventory.with_first(found.results, known, newest)
            else:
                files = inventory.files_to_replay(found.results, repeated, newest, partial=in_part)
            so_far = progress.gathered(files, partial(shown, loaded), workers)
            so_far.calls = sum(one.figures.calls for one in so_far.results)
            of = counted(newest, "session" if every else "newest session")
            sentences = list(_saved(policy, so_far, newest, found.results, of))
            if as_json:
                replay = {"policy": policy, "answer": visible(sentences[0]), **_replay(so_far)}
            else:
                _print_replay(out, sentences, so_far)
            out.file.flush()
            code = code or so_far.exit_code
            # What the first pass tells too.
            so_far.repeated.clear()
            so_far.unread = {p: n for p, n in so_far.unread.items() if n != found.unread.get(p)}
            told.append(so_far)
    if as_json:
        output.print_json({**_report(looked, found), "replay": replay})
    progress.tell_left_out(looked)
    for one in told:
        progress.tell(one)
    raise typer.Exit(code)


def _given(
    files: Sequence[RecordingFile], workers: Executor
) -> tuple[progress.Progressed[inventory.UsedSession], inventory.Repeated]:
    """Read the usage of every named file as a replay reads it."""
    so_far = progress.gathered(files, inventory.used_recording, workers)
    so_far.results = [one for one in so_far.results if one.calls]
    so_far.results.sort(key=lambda one: one.last or 0, reverse=True)
    so_far.calls = sum(len(one.calls) for one in so_far.results)
    return so_far, {}


def _glanced(
    looked: Sequence[inventory.AgentFiles], workers: Executor, since: float | None
) -> tuple[progress.Progressed[inventory.UsedSession], inventory.Repeated]:
    """Read the usage of every file; Ctrl-C ends it, and what is done until then is returned."""
    asked = [(of.agent, of.format, file) for of in looked for file in of.files]
    # Large files first, so that no process works alone at the end.
    asked.sort(key=lambda one: -one[2].bytes)
    so_far: progress.Progressed[inventory.UsedSession] = progress.Progressed(of_files=len(asked))
    unreadable = (each for of in looked for each in of.unreadable.items())
    so_far.failures = [FailedRecording(str(path), why) for path, why in unreadable]
    with progress.Bar("sessions") as bar:
        bar.begin(sum(file.bytes for *_, file in asked), "sessions")
        try:
            for job, result in workers.results(inventory.used_sessions, [*map(Job, asked)]):
                file = job.argument[2]
                if isinstance(result, LostJob):
                    result = [FailedRecording(str(file.path), result.why)]  # noqa: PLW2901
                so_far.add(WorkPart(RecordingFile(file.path, named=True)), result)
                so_far.files += 1
                bar.advance(file.bytes)
        except KeyboardInterrupt:
            so_far.is_interrupted = True
    so_far.older = [
        one.last for one in so_far.results if one.last is not None and one.last < (since or 0)
    ]
    so_far.results, repeated = inventory.counted_once(so_far.results, since)
    so_far.repeated = Counter({str(path): ids.total() for path, ids in repeated.items()})
    so_far.calls = sum(len(one.calls) for one in so_far.results)
    return so_far, repeated


def _looked_in(looked: Sequence[inventory.AgentFiles]) -> Iterator[str]:
    for of in looked:
        for home, found in of.found.items():
            if found.files:
                size = sum(file.bytes for file in found.files)
                files = counted(len(found.files), "file")
                yield f"{of.agent:<12}  {files}, {output.short(size)}B in {home.path()}"


def _print(
    out: Console, found: progress.Progressed[inventory.UsedSession], *, of_agents: bool
) -> None:
    if not found.results:
        return
    whole = inventory.used(found.results)
    out.print()
    table = _table(found.results, whole, out.width)
    out.print(table)
    out.print()
    meanings = {
        "tokens": "prompts and output as billed",
        "cached": "the share of the prompts that was read from the cache",
        "$": f"at the prices of the day of each call, by {prices_source()}",
    }
    said = (f"{column}: {meanings[column]}" for column in table.columns if column in meanings)
    output.print_wrapped(out, "; ".join(said))
    files = len({one.path for one in found.results})
    if of_agents and (whole.sessions, files) != (found.files, found.files):
        some = f"{files:,} of {counted(found.files, 'file')}"
        others = "; the others are not read, or have no calls, or only older or repeated ones"
        rest = others * (files < found.files)
        output.print_wrapped(out, f"{counted(whole.sessions, 'session')} in {some}{rest}")
    for name, number in whole.without_price.items():
        output.print_wrapped(out, f"no price for {counted(number, 'call')} to {name}")
    if whole.without_usage:
        out.print(f"no usage is recorded for {counted(whole.without_usage, 'call')}")


def _table(
    sessions: Sequence[inventory.UsedSession], whole: inventory.Used, width: int
) -> output.Grid:
    """Return the table with as many columns as leave the projects their room."""
    projects = inventory.by_project(sessions)
    names = [*(_project(of[0].project) for of in projects), ""]
    heads = [*((of[0].agent, "", _day(of[0].last)) for of in projects), ("all", "", "")]
    cells = [*(_cells(inventory.used(of)) for of in projects), _cells(whole)]
    needed = min(_SHORT_PROJECT, max(map(len, ["project", *names])))
    for layout in _LAYOUTS:
        columns = ["agent", "", "newest", *(_COLUMNS[i] for i in layout)]
        rows = [[*head, *(row[i] for i in layout)] for head, row in zip(heads, cells, strict=True)]
        room = width - output.Grid(columns, rows, numeric=columns[3:]).width
        if room >= needed:
            break
    columns[1], room = "project", min(max(room, _SHORT_PROJECT), _PROJECT)
    for row, name in zip(rows, names, strict=True):
        row[1] = _last_parts(name, room)
    return output.Grid(columns, rows, numeric=columns[3:], whole=columns[:3])


def _last_parts(project: str, most: int) -> str:
    """Return a folder of at most `most` characters; a longer one loses its first parts."""
    while len(project) > most and "/" in project.removeprefix("…/"):
        project = f"…/{project.removeprefix('…/').partition('/')[2]}"
    return output.shortened(project, most)


def _cells(sums: inventory.Used) -> tuple[object, ...]:
    usage = sums.usage
    hits = f"{usage.cache_read / usage.prompt:.0%}".replace("%", " %") if usage.prompt else "-"
    cost = "-" if sums.dollars is None else f"{sums.dollars:,.2f}"
    tokens = output.short(usage.prompt + usage.output)
    return sums.sessions, sums.calls, tokens, hits, cost, sums.compactions


def _acted(so_far: progress.Progressed[ShownSessions]) -> list[ShownSessions]:
    return [one for one in so_far.results if one.figures.removed or one.figures.compactions]


def _saved(
    policy: str,
    so_far: progress.Progressed[ShownSessions],
    newest: int,
    table: Sequence[inventory.UsedSession],
    sessions: str,
) -> Iterator[str]:
    """Yield what a policy would have saved, in a sentence, and which sessions it made dearer."""
    whole, acted = total(one.figures for one in so_far.results), _acted(so_far)
    if (more := whole.sessions - newest) > 0:
        sessions += f" and {more:,} more in their files, such as sub-agents'"
    yield verdict(policy, whole, sessions)
    billed = inventory.used(table).dollars
    if billed is not None and whole.priced:
        left = len(table) - newest
        others = f" and {counted(left, 'older session')}; --all replays them too" if left else ""
        yield f"the ${billed:,.2f} in the table also include output{others}"
    dearer = [one for one in acted if one.figures.dearer]
    names = (f"{one.name} {output.signed_dollars(one.figures.net.dollars, '$')}" for one in dearer)
    if dearer:
        yield f"dearer with it: {', '.join(names)}"
    yield from unknown(whole)


def _print_replay(
    out: Console, sentences: Sequence[str], so_far: progress.Progressed[ShownSessions]
) -> None:
    out.print()
    for sentence in sentences:
        output.print_wrapped(out, sentence)
    acted = sorted(_acted(so_far), key=lambda one: one.figures.net.dollars)
    if acted:
        out.print()
        table = session_table([(one.name, one.figures) for one in acted], out.width)
        out.print(table)
        if "regret" in table.columns:
            meaning = "regret: removed items that were needed again; $: the change of the cost"
            out.print()
            output.print_wrapped(out, f"{meaning}, with summaries and what is read again")


def _project(project: str) -> str:
    home = str(Path("~").expanduser())
    return f"~{project.removeprefix(home)}" if f"{project}/".startswith(f"{home}/") else project


def _day(at: float | None) -> str:
    return output.moment(at, "%Y-%m-%d")


def _report(
    looked: Sequence[inventory.AgentFiles], found: progress.Progressed[inventory.UsedSession]
) -> dict[str, Any]:
    return {
        "looked_in": [
            {
                "agent": of.agent,
                "folder": str(home.path()),
                "variable": home.variable,
                "is_there": one.is_there,
                "files": len(one.files),
                "unreadable": {str(path): why for path, why in one.unreadable.items()},
                "left_out": one.left_out,
            }
            for of in looked
            for home, one in of.found.items()
        ],
        "prices_of": prices_source(),
        "projects": [_values(of) for of in inventory.by_project(found.results)],
        "sessions": [
            {**_values([one]), "name": one.name, "path": str(one.path)} for one in found.results
        ],
        "total": asdict(inventory.used(found.results)),
        **outcome_report(found),
    }


def _values(of: Sequence[inventory.UsedSession]) -> dict[str, Any]:
    return {
        "agent": of[0].agent,
        "project": of[0].project,
        "newest": _day(of[0].last) or None,
        **asdict(inventory.used(of)),
    }


def _replay(so_far: progress.Progressed[ShownSessions]) -> dict[str, Any]:
    return {
        "acted_in": [
            {"name": one.name, "path": one.path, **figures_report(one.figures)}
            for one in _acted(so_far)
        ],
        "total": figures_report(total(one.figures for one in so_far.results)),
        **outcome_report(so_far),
    }
