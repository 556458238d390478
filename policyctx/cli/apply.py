"""`policyctx apply`: new messages, and files for what left them."""

from __future__ import annotations

import os
import sys
from pathlib import Path  # noqa: TC003 - typer reads the annotations at run time
from typing import Annotated

import typer

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.conversation import read_request
from policyctx.cli.output import console, json_text, outcome, plan_report, saving
from policyctx.errors import StoreError
from policyctx.session import Session


def apply(
    policy: arguments.Policy,
    messages: arguments.Messages,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="File for the new messages, in place of stdout."),
    ] = None,
    root: arguments.Root = None,
    session_id: arguments.SessionId = None,
    as_json: arguments.Json = False,
) -> None:
    """Apply a policy: new messages, and files for what left.

    New messages go to stdout in the shape of the old, an array or the whole request body; a
    summary goes to stderr, what is offloaded to files.

    Example: policyctx apply coding-agent session.jsonl -o smaller.json
    """
    session = Session(policy, root=root, session_id=session_id)
    request = read_request(messages)
    if output is not None:
        _check_writable(output)
    result = session.apply(request.messages, system=request.system, tools=request.tools)
    if result.warnings:
        raise StoreError("; ".join(result.warnings), path=str(session.store.root))
    _write(json_text(request.document_with(result.messages)), output)
    planned = result.plan
    err = console(stderr=True)
    if as_json:
        err.out(json_text(plan_report(planned)), highlight=False)
        return
    err.print(outcome(planned, "offloaded"), soft_wrap=True)
    err.print(f"context: {saving(planned.tokens_before, planned.tokens_after)}")


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
