"""`policyctx apply`: new messages, and files for what left them."""

from __future__ import annotations

import os
import sys
from dataclasses import asdict
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.conversation import Choice, read_messages
from policyctx.cli.output import (
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

if TYPE_CHECKING:
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
    given = read_messages(messages, Choice(recorded, call), quiet=as_json)
    if output is not None:
        _check_writable(output)
    given.teach(session, quiet=as_json)
    result = session.apply(given.messages, system=given.system, tools=given.tools)
    if any(reason.code == "not_saved" for o in result.plan.outcomes for _, reason in o.left):
        raise StoreError("; ".join(result.warnings), path=str(session.store.root))
    _write(json_text(given.request.document_with(result.messages)), output)
    planned = result.plan
    err = console(stderr=True)
    if as_json:
        report = plan_report(planned) | given.report(session) | applied_report(result)
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
    }


def _check_writable(output: Path) -> None:
    """Refuse an output that cannot be written before anything else is."""
    target = output if output.exists() else output.absolute().parent
    if output.is_dir() or not target.exists() or not os.access(target, os.W_OK):
        raise StoreError(f"{output} cannot be written", path=str(output))


def _write(text: str, output: Path | None) -> None:
    if output is None:
        sys.stdout.buffer.write(f"{text}\n".encode())
        sys.stdout.buffer.flush()
        return
    try:
        output.write_text(f"{text}\n", encoding="utf-8")
    except OSError as error:
        raise StoreError(
            f"{output} cannot be written: {error.strerror}", path=str(output)
        ) from error
