"""`policyctx sessions`: what the agents on this machine were billed, and what a policy saves."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyctx.cli.output import (
    Json,
    Partial,
    console,
    counted,
    json_text,
    percent,
    short,
    shortened,
    signed_dollars,
    table,
)
from policyctx.cli.progress import (
    INTERRUPTED,
    Bar,
    Progressed,
    gathered,
    interruptible,
    replay_policy,
    tell,
    tell_folders,
)
from policyctx.cli.replay import Agents, Jobs, Since
from policyctx.cli.replay_output import figures_report, outcome_report, unknown
from policyctx.errors import visible
from policyctx.pricing.rows import prices_source
from policyctx.replay.executing.executor import Executor, Job, LostJob
from policyctx.replay.executing.processes import executor
from policyctx.replay.inventory import (
    AgentFiles,
    Used,
    UsedFile,
    UsedSession,
    by_project,
    files_of_agents,
    files_to_replay,
    newest_first,
    require_files,
    used,
    used_file,
)
from policyctx.replay.reading import unread_in_words
from policyctx.replay.running import ShownSessions, shown
from policyctx.replay.summing import total

if TYPE_CHECKING:
    from rich.console import Console

_DEFAULT = "coding-agent"
_NEWEST = 20
_COLUMNS = (
    *("agent", "project", "sessions", "newest", "calls", "tokens", "cached", "$"),
    "compactions",
)
_PROJECT, _SESSION = 48, 44
_DIGITS = 6
_LISTED = 20


@dataclass(slots=True)
class _Inventory:
    """What was found so far."""

    looked: Sequence[AgentFiles]
    sessions: list[UsedSession] = field(default_factory=list)
    files: list[UsedFile] = field(default_factory=list)
    is_interrupted: bool = False

    @property
    def repeated(self) -> int:
        return sum(one.repeated for one in self.sessions)


@interruptible()
def sessions(
    agent: Agents = None,
    since: Since = None,
    policy: Annotated[
        str,
        typer.Option(metavar="POLICY", help="The policy that is replayed: a preset or a file."),
    ] = _DEFAULT,
    every: Annotated[
        bool, typer.Option("--all", help=f"Replay all sessions, not only the newest {_NEWEST}.")
    ] = False,
    no_replay: Annotated[bool, typer.Option("--no-replay", help="Show the table alone.")] = False,
    jobs: Jobs = 2,
    in_part: Partial = False,
    as_json: Json = False,
) -> None:
    """Show what the coding agents on this machine were billed, and what a policy would have saved.

    Finds the sessions of Claude Code, Codex and others in their usual folders, and honours the
    variables that move these. Reads nothing else, follows no link in them, writes nothing but this
    report, and sends nothing. The table has the bills that the agents recorded, at the prices of
    the day of each call. Then the newest sessions are replayed under a policy.

    Exit codes: 0 done; 1 when there is no session, or a file could not be read or replayed; 130
    after Ctrl-C or SIGTERM, which show what is done so far.

    Example: policyctx sessions --agent claude-code --since 30d
    """
    out, loaded = console(), None if no_replay else replay_policy(policy)
    found = _Inventory(files_of_agents(agent or (), since))
    failed = tell_folders(found.looked)
    require_files(found.looked, since)
    replay: dict[str, Any] | None = None
    if not as_json:
        for line in _found_lines(found.looked):
            out.print(line, soft_wrap=True)
    with executor(jobs, None) as workers:
        _glance(found, workers, since)
        if not as_json:
            _print(out, found)
        failed |= _tell(found)
        chosen = [one for one in newest_first(found.sessions) if one.calls]
        chosen = chosen if every else chosen[:_NEWEST]
        if loaded is not None and chosen and not found.is_interrupted:
            files = files_to_replay(found.sessions, chosen, partial=in_part)
            so_far = gathered(files, partial(shown, loaded), workers)
            so_far.calls = sum(one.figures.calls for one in so_far.results)
            sentences = list(_saved(policy, so_far, len(chosen), of_all=every))
            replay = _replay_report(policy, sentences, so_far)
            if not as_json:
                _print_replay(out, sentences, so_far)
            tell(so_far)
            failed |= bool(so_far.exit_code)
            found.is_interrupted = so_far.is_interrupted
    if as_json:
        out.out(json_text({**_report(found), "replay": replay}), highlight=False)
    code = INTERRUPTED if found.is_interrupted else int(failed or not chosen)
    raise typer.Exit(code)


def _glance(found: _Inventory, workers: Executor, since: float | None) -> None:
    """Read the usage of every file, the newest first; Ctrl-C ends it."""
    files = [(of.agent, of.format, file) for of in found.looked for file in of.files]
    files.sort(key=lambda one: -one[2].changed)
    done: dict[Path, UsedFile] = {}
    # Large files first, so that no process works alone at the end.
    asked = sorted(files, key=lambda one: -one[2].bytes)
    with Bar("sessions") as bar, closing(workers.results(used_file, [*map(Job, asked)])) as results:
        bar.begin(sum(file.bytes for *_, file in files), "sessions")
        try:
            for job, result in results:
                file = job.argument[2]
                if isinstance(result, LostJob):
                    result = UsedFile(file, why=result.why)  # noqa: PLW2901
                done[file.path] = result
                bar.advance(file.bytes)
        except KeyboardInterrupt:
            found.is_interrupted = True
    found.files = [done[file.path] for *_, file in files if file.path in done]
    seen: set[str] = set()
    for session in newest_first(one for file in found.files for one in file.sessions):
        if since is None or session.last is None or session.last >= since:
            found.sessions.append(session.counted_once(seen))


def _found_lines(looked: Sequence[AgentFiles]) -> Iterator[str]:
    for of in looked:
        for home, found in of.found.items():
            if found.files:
                size = sum(file.bytes for file in found.files)
                where = f"{counted(len(found.files), 'file')}, {short(size)}B in {home.path()}"
                yield f"{of.agent:<12}  {where}"


def _print(out: Console, found: _Inventory) -> None:
    rows = []
    for one in by_project(found.sessions):
        cells = _cells(used(one.calls))
        newest = _day(one.sessions[0].last)
        project = shortened(_project(one.project), _PROJECT)
        rows.append((one.agent, project, len(one.sessions), newest, *cells))
    whole = used([call for one in found.sessions for call in one.calls])
    number = sum(bool(one.calls) for one in found.sessions)
    out.print()
    if not rows:
        out.print("no session has a call of a model")
        return
    rows.append(("all", "", number, "", *_cells(whole)))
    out.print(table(_COLUMNS, rows, numeric={*_COLUMNS[2:]} - {"newest"}))
    out.print()
    for line in _notes(whole, found.repeated):
        out.print(line, soft_wrap=True)


def _cells(sums: Used) -> tuple[object, ...]:
    usage = sums.usage
    hits = f"{usage.cache_read / usage.prompt:.0%}".replace("%", " %") if usage.prompt else "-"
    cost = "-" if sums.dollars is None else f"{sums.dollars:,.2f}"
    return sums.calls, short(usage.prompt + usage.output), hits, cost, sums.compactions


def _notes(whole: Used, repeated: int) -> Iterator[str]:
    """Yield what the numbers are of, and what they leave out."""
    yield (
        "tokens: prompts and output as billed; cached: the share of the prompts that was read from"
        f" the cache; $: at the prices of the day of each call, by {prices_source()}"
    )
    if whole.unpriced:
        models = ", ".join(f"{counted(n, 'call')} to {name}" for name, n in whole.unpriced.items())
        yield f"no price for {models}"
    if whole.unbilled:
        yield f"no usage is recorded for {counted(whole.unbilled, 'call')}"
    if repeated:
        again = counted(repeated, "call")
        yield f"{again} in a resumed or forked session repeat calls of another one: counted once"


def _tell(found: _Inventory) -> bool:
    """Print to stderr what of the files could not be read; return whether any could not."""
    err = console(stderr=True)
    failed = [f"error: {one.file.path}: {one.why}" for one in found.files if one.why]
    unread = [
        f"note: {one.file.path}: not understood: {unread_in_words(one.not_understood)}"
        for one in found.files
        if one.not_understood
    ]
    for lines in (failed, unread):
        for line in lines[:_LISTED]:
            err.print(line, soft_wrap=True)
        if len(lines) > _LISTED:
            kind = lines[0].partition(":")[0]
            err.print(f"{kind}: {counted(len(lines) - _LISTED, 'more file')}; --json lists all")
    if found.is_interrupted:
        of = sum(len(of.files) for of in found.looked)
        err.print(f"interrupted: {len(found.files):,} of {of:,} files are done", soft_wrap=True)
    return bool(failed)


def _saved(
    policy: str, so_far: Progressed[ShownSessions], number: int, *, of_all: bool
) -> Iterator[str]:
    """Yield what a policy would have saved, in a sentence, and which sessions it made dearer."""
    whole = total(one.figures for one in so_far.results)
    acted = [one for one in so_far.results if one.figures.removed or one.figures.compactions]
    sessions = counted(number, "session" if of_all else "newest session")
    where = f"in the {sessions}; it acted in {len(acted):,}"
    before, net = whole.net.without.dollars.prompt, whole.net
    if not acted:
        yield f"{policy} would have changed nothing in the {sessions}"
    elif whole.priced:
        verb = "saved" if net.dollars <= 0 else "added"
        change = percent(net.share)
        yield (
            f"{policy} would have {verb} ${abs(net.dollars):,.2f} of the ${before:,.2f} of prompts"
            f" ({change}) {where}"
        )
    else:
        tokens = f"{short(whole.edited.tokens)} in place of {short(whole.unedited.tokens)} tokens"
        yield f"{policy} would have sent {tokens} {where}; no session has prices"
    dearer = [one for one in acted if one.figures.dearer]
    if dearer:
        names = (f"{one.name} {signed_dollars(one.figures.net.dollars, '$')}" for one in dearer)
        yield f"dearer with it: {', '.join(names)}"
    elif acted and whole.priced:
        yield "no session is dearer with it"
    yield from unknown(whole)


def _print_replay(
    out: Console, sentences: Sequence[str], so_far: Progressed[ShownSessions]
) -> None:
    acted = [one for one in so_far.results if one.figures.removed or one.figures.compactions]
    rows = []
    for one in sorted(acted, key=lambda one: one.figures.net.dollars):
        net, priced = one.figures.net, one.figures.priced
        cost = f"{net.without.dollars.prompt:,.2f}" if priced else "-"
        change = (signed_dollars(net.dollars), percent(net.share)) if priced else ("-", "-")
        name = shortened(one.name, _SESSION)
        rows.append((name, one.figures.calls, cost, *change, one.figures.regretted))
    out.print()
    for sentence in sentences:
        out.print(sentence, soft_wrap=True)
    if rows:
        columns = ("acted in", "calls", "$", "change", "share", "needed again")
        out.print()
        out.print(table(columns, rows, numeric={*columns[1:]}))


def _project(project: str) -> str:
    home = str(Path("~").expanduser())
    return f"~{project.removeprefix(home)}" if f"{project}/".startswith(f"{home}/") else project


def _day(at: float | None) -> str:
    try:
        return "" if at is None else datetime.fromtimestamp(at, UTC).date().isoformat()
    except (OverflowError, OSError, ValueError):
        return ""


def _looked(of: AgentFiles) -> dict[str, Any]:
    return {
        "agent": of.agent,
        "folders": [
            {
                "folder": str(home.path()),
                "variable": home.variable,
                "is_there": found.is_there,
                "files": len(found.files),
                "bytes": sum(file.bytes for file in found.files),
                "unreadable": {str(path): why for path, why in found.unreadable.items()},
                "left_out": found.left_out,
            }
            for home, found in of.found.items()
        ],
    }


def _report(found: _Inventory) -> dict[str, Any]:
    """Return the table and its sessions as plain values."""
    with_calls = [one for one in newest_first(found.sessions) if one.calls]
    return {
        "looked_in": [*map(_looked, found.looked)],
        "prices_of": prices_source(),
        "projects": [
            {
                "agent": one.agent,
                "project": one.project,
                "sessions": len(one.sessions),
                "newest": _day(one.sessions[0].last) or None,
                **_sums(used(one.calls)),
            }
            for one in by_project(found.sessions)
        ],
        "sessions": [
            {
                "agent": one.agent,
                "project": one.project,
                "name": one.name,
                "path": str(one.path),
                "last": one.last,
                "repeated_calls": one.repeated,
                **_sums(used(one.calls)),
            }
            for one in with_calls
        ],
        "total": _sums(used([call for one in with_calls for call in one.calls])),
        "repeated_calls": found.repeated,
        "failures": {str(one.file.path): one.why for one in found.files if one.why},
        "not_understood": {
            str(one.file.path): one.not_understood for one in found.files if one.not_understood
        },
        "interrupted": found.is_interrupted,
    }


def _sums(sums: Used) -> dict[str, Any]:
    usage = sums.usage
    return {
        "calls": sums.calls,
        "prompt_tokens": usage.prompt,
        "cache_read_tokens": usage.cache_read,
        "cache_write_tokens": usage.cache_write,
        "output_tokens": usage.output,
        "dollars": None if sums.dollars is None else round(sums.dollars, _DIGITS),
        "calls_without_price": sums.unpriced,
        "calls_without_usage": sums.unbilled,
        "compactions": sums.compactions,
    }


def _replay_report(
    policy: str, sentences: Sequence[str], so_far: Progressed[ShownSessions]
) -> dict[str, Any]:
    acted = [
        {"name": one.name, "path": one.path, **figures_report(one.figures)}
        for one in so_far.results
        if one.figures.removed or one.figures.compactions
    ]
    return {
        "policy": policy,
        "answer": visible(sentences[0]),
        "acted_in": acted,
        "total": figures_report(total(one.figures for one in so_far.results)),
        **outcome_report(so_far),
    }
