"""The command: runs the demo's agent in a folder of its own and shows what the policy did."""

from __future__ import annotations

import secrets
import shutil
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import track

from policyctx.cli.demo.agent import SCRIPT, DemoCall, Workspace, call_id, model_calls
from policyctx.cli.output import Json, console, decision_report, json_text, saving, table
from policyctx.definitions.items import Message
from policyctx.errors import StoreError
from policyctx.session import Session

if TYPE_CHECKING:
    from rich.console import Console

POLICY = "small-context"


def demo(
    folder: Annotated[
        Path | None,
        typer.Option("--dir", help="An empty folder to work in; a temporary one by default."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch a policy shrink the context of an agent at work.

    A scripted agent repairs a fault in a throw-away copy of this library's source, with real
    tools; the preset small-context runs before each of its model calls. Needs no network and no
    key.

    Example: policyctx demo
    """
    folder = _empty_folder(folder)
    session = Session(POLICY, root=folder / "offloaded", session_id="demo")
    history: list[Message] = []
    running = model_calls(session, Workspace(folder / "work"), history)
    err = console(stderr=True)
    calls = list(
        track(
            running, "The agent works", total=len(SCRIPT), console=err, disable=not err.is_terminal
        )
    )
    _write(folder / "session.json", history)
    _write(folder / "context.json", list(calls[-1].result.messages))
    if as_json:
        console().out(json_text(_report(folder, calls)), highlight=False)
    else:
        _show(console(), folder, calls)


def _empty_folder(wanted: Path | None) -> Path:
    """Make the folder; a random one is named in digits, which count alike in tokens every time."""
    name = f"policyctx-demo-{secrets.randbelow(10**6):06}"
    folder = (wanted or Path(tempfile.gettempdir()) / name).absolute()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=wanted is not None)
        if any(folder.iterdir()):
            raise StoreError(f"{folder} is not empty", path=str(folder))
    except OSError as error:
        raise StoreError(f"{folder} cannot be made: {error.strerror}", path=str(folder)) from error
    return folder


def _write(path: Path, messages: list[Message]) -> None:
    path.write_text(json_text(messages) + "\n", encoding="utf-8")


def _totals(calls: list[DemoCall]) -> tuple[int, int]:
    """Tokens sent over all calls, without the policy and with it."""
    plans = [call.result.plan for call in calls]
    return sum(plan.tokens_before for plan in plans), sum(plan.tokens_after for plan in plans)


def _show(out: Console, folder: Path, calls: list[DemoCall]) -> None:
    columns = ("call", "the agent", "without", "with", "offloaded before this call, and why")
    labels = _labels(calls)
    rows = (_row(call, labels) for call in calls)
    out.print(table(columns, rows, numeric={"call", "without", "with"}))
    before, after = _totals(calls)
    count = sum(call.result.offloaded_count for call in calls)
    out.print(f"tokens sent in {len(calls)} calls: {saving(before, after)}")
    out.print(f"{count} results offloaded to {folder / 'offloaded'}, each readable there in full")
    out.print("\nTry next:", style="bold")
    program = _program()
    out.print(f"  {program} plan {POLICY} {folder / 'session.json'}", soft_wrap=True)
    out.print(
        f"  {program} apply context-offload {folder / 'session.json'} --root {folder / 'all'}"
        f" -o {folder / 'smaller.json'}",
        soft_wrap=True,
    )


def _program() -> str:
    """How a shell reaches this command: by its name where that finds it, else by its path."""
    ran = Path(sys.argv[0])
    return "policyctx" if shutil.which("policyctx") or not ran.is_file() else str(ran.absolute())


def _labels(calls: list[DemoCall]) -> dict[str, str]:
    """What each tool call was about, by its id: `read_file paths.py`."""
    return {
        call_id(call.number, i): f"{tool} {Path(next(iter(given.values()))).name}"
        for call in calls
        for i, (tool, given) in enumerate(call.reply.calls)
    }


def _row(call: DemoCall, labels: dict[str, str]) -> tuple[object, ...]:
    plan = call.result.plan
    made = [labels[call_id(call.number, i)] for i in range(len(call.reply.calls))]
    offloaded = [f"{labels[d.item.item_id]}: {d.reason.sentence}" for d in plan.to_save]
    said = "\n".join(made) or "answers"
    return call.number, said, plan.tokens_before, plan.tokens_after, "\n".join(offloaded)


def _report(folder: Path, calls: list[DemoCall]) -> dict[str, Any]:
    before, after = _totals(calls)
    return {
        "policy": POLICY,
        "folder": str(folder),
        "tokens_before": before,
        "tokens_after": after,
        "calls": [
            {
                "call": call.number,
                "tools": [tool for tool, _ in call.reply.calls],
                "tokens_before": call.result.plan.tokens_before,
                "tokens_after": call.result.plan.tokens_after,
                "offloaded": [
                    decision_report(d, call.result.plan.conversation.policy)
                    for d in call.result.plan.to_save
                ],
            }
            for call in calls
        ],
    }
