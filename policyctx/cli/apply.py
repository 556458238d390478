"""`policyctx apply`: new messages, and files for what left them."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from policyctx.cli import arguments
from policyctx.cli.conversation import RecordedChoice, read_messages
from policyctx.cli.output import (
    breakpoints_in_words,
    breakpoints_report,
    compaction_in_words,
    console,
    json_text,
    outcome,
    plan_report,
    saving,
    usage_in_words,
)
from policyctx.errors import StoreError
from policyctx.session import Session
from policyctx.turns.result import Result


def apply(
    policy: arguments.Policy,
    messages: arguments.Messages,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the new messages, in place of stdout."),
    ] = None,
    root: arguments.Root = None,
    session_id: arguments.SessionId = None,
    recorded: arguments.Recorded = None,
    call: arguments.Call = None,
    as_json: arguments.Json = False,
) -> None:
    """Apply a policy: new messages, and files for what left.

    New messages go to stdout in the shape of the old, an array or the whole request body; a
    summary goes to stderr, what is offloaded to files.

    Example: policyctx apply coding-agent session.jsonl -o smaller.json
    """
    session = Session(policy, root=root, session_id=session_id)
    # With `--json` stderr is a report for programs.
    given = read_messages(messages, RecordedChoice(recorded, call), quiet=as_json)
    given.teach(session, quiet=as_json)
    with _opened(output) as write:
        result = session.apply(given.messages, system=given.system, tools=given.tools)
        if any(reason.code == "not_saved" for o in result.plan.outcomes for _, reason in o.left):
            raise StoreError(session.writes.problem, path=str(session.store.root))
        request = given.request
        if result.breakpoints:
            request = request.marked(result.system, result.tools)
        write(json_text(request.document_with(result.messages)))
    planned, placed = result.plan, result.breakpoints
    err = console(stderr=True)
    if as_json:
        report = plan_report(planned) | given.report(session) | applied_report(result)
        report |= breakpoints_report(placed)
        err.out(json_text(report), highlight=False)
        return
    err.print(outcome(planned, "offloaded"), soft_wrap=True)
    for warning in result.warnings:
        err.print(f"warning: {warning}", soft_wrap=True, markup=False)
    after = planned.tokens_after
    if spent := usage_in_words(result.summary_usage):
        err.print(spent, soft_wrap=True)
    if (made := result.compaction) is not None:
        err.print(compaction_in_words(planned, "were"), soft_wrap=True)
        if made.archive_path is not None:
            err.print(f"archived in {made.archive_path}", soft_wrap=True, markup=False)
        after -= made.stats.original_token_count - made.stats.compacted_token_count
    err.print(f"context: {saving(planned.tokens_before, after)}")
    for line in breakpoints_in_words(placed):
        err.print(line, soft_wrap=True, markup=False)


def applied_report(result: Result) -> dict[str, Any]:
    """Return what came of a turn beyond its plan, as plain values for `--json`."""
    made = result.compaction
    stats = None if made is None else asdict(made.stats)
    archive = None if made is None else made.archive_path
    return {
        "compacted": stats,
        "archive": archive,
        "summary_usage": asdict(result.summary_usage),
        "warnings": list(result.warnings),
        "sources": list(result.sources),
    }


@contextmanager
def _opened(output: Path | None) -> Iterator[Callable[[str], None]]:
    """Open the output before anything is saved; yield a function that writes a text to it.

    A file gets its name when the text is complete, so it is never half written, and after an error
    it is as it was. Raises `StoreError` for an output that cannot be written.
    """
    if output is None:
        yield _write_stdout
        return
    with ExitStack() as undo:
        with _reported(output):
            file, unfinished = _created(output, undo)

        def write(text: str) -> None:
            with _reported(output):
                file.write(f"{text}\n".encode())
                if unfinished is None and file.seekable():
                    file.truncate()
                file.close()
                if unfinished is not None:
                    unfinished.replace(output.resolve())

        yield write


def _write_stdout(text: str) -> None:
    sys.stdout.buffer.write(f"{text}\n".encode())
    sys.stdout.buffer.flush()


def _created(output: Path, undo: ExitStack) -> tuple[BinaryIO, Path | None]:
    """Return an open file, and its path if it is a new one that is to take the output's name."""
    is_there = output.exists()  # raises for a name that no file can have
    if output.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    target = output.resolve()
    if is_there and not target.is_file():  # a pipe or a device
        return undo.enter_context(output.open("wb")), None
    if is_there and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    if is_there and not os.access(target.parent, os.W_OK):
        return undo.enter_context(target.open("r+b")), None
    unfinished = target.with_name(f".{secrets.token_hex(8)}.tmp")
    file = unfinished.open("xb")
    undo.callback(unfinished.unlink, missing_ok=True)
    undo.enter_context(file)
    if is_there:
        shutil.copymode(target, unfinished)
    return file, unfinished


@contextmanager
def _reported(output: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        sentence = f"{output} cannot be written: {error.strerror}"
        raise StoreError(sentence, path=str(output)) from error
