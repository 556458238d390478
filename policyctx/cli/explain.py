"""`policyctx explain`: why each item stays or goes, step by step, with the line that says so."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from policyctx.cli import arguments
from policyctx.cli.conversation import RecordedChoice, read_messages
from policyctx.cli.output import (
    breakpoints_in_words,
    breakpoints_report,
    compaction_report,
    console,
    gate_report,
    item_report,
    json_text,
    place,
    reason_report,
    window_report,
)
from policyctx.cli.output import table as table_of
from policyctx.compaction.summarizers import ExtractiveSummarizer
from policyctx.definitions.actions import Action
from policyctx.definitions.recalling import recall_tool
from policyctx.errors import MessagesError
from policyctx.planning.plan import Outcome, Plan
from policyctx.session import Session
from policyctx.turns.notices import fullness_ahead

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_LARGEST = 10


def explain(
    policy: arguments.Policy,
    messages: arguments.Messages,
    item: Annotated[
        str | None,
        typer.Option(help="Only this item: its number in the table, or its id."),
    ] = None,
    why_not: Annotated[
        bool,
        typer.Option("--why-not", help="Only what stays in the context: why is this still here?"),
    ] = False,
    largest: Annotated[
        int, typer.Option(help="How many items to show, the largest first; 0 is all.", min=0)
    ] = _LARGEST,
    ephemeral: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOOL=N",
            help="Let N results of a tool stay, as @tool(ephemeral=N) does in code.",
            show_default=False,
        ),
    ] = None,
    root: arguments.Root = None,
    session_id: arguments.SessionId = None,
    recorded: arguments.Recorded = None,
    call: arguments.Call = None,
    as_json: arguments.Json = False,
) -> None:
    """Explain what a policy would do with each item, and which line says so; write nothing.

    Example: policyctx explain coding-agent session.jsonl --why-not
    """
    # No summary is made, so the policy's summarizer need not be there.
    nobody = ExtractiveSummarizer()
    hints = dict(map(_hint, ephemeral or ()))
    session = Session(policy, root=root, session_id=session_id, summarizer=nobody, hints=hints)
    given = read_messages(messages, RecordedChoice(recorded, call))
    given.teach(session)
    planned = session.plan(given.messages, system=given.system, tools=given.tools)
    positions = _chosen(planned, item, why_not=why_not, largest=largest)
    placed = session.breakpoints(given.messages, system=given.system, tools=given.tools)
    out = console()
    if as_json:
        report = _report(planned, positions) | given.report(session)
        report |= breakpoints_report(placed) | window_report(planned)
        out.out(json_text(report), highlight=False)
        return
    _print_gates(planned, out)
    for line in breakpoints_in_words(placed):
        out.print(line, soft_wrap=True, markup=False)
    if warning := fullness_ahead(planned):
        out.print(f"warning: {warning}\n", soft_wrap=True, markup=False)
    for position in positions:
        _print_item(planned, position, out)
    left = _number_of_items(planned, why_not=why_not) - len(positions)
    if item is None and left > 0:
        out.print(f"{left:,} smaller items are not shown; --largest 0 shows all")


def _hint(given: str) -> tuple[str, dict[str, int]]:
    """Return the rule of `--ephemeral TOOL=N`."""
    tool, _, number = given.rpartition("=")
    if not tool or not number.isdecimal():
        raise typer.BadParameter(f"expected TOOL=N, got {given!r}", param_hint="--ephemeral")
    return tool, {"keep_recent": int(number)}


def _chosen(planned: Plan, item: str | None, *, why_not: bool, largest: int) -> list[int]:
    """The positions of the items to explain, the largest first."""
    if item is not None:
        return [_position(planned, item)]
    found = [i for i in range(len(planned.items)) if not why_not or _stays(planned, i)]
    found.sort(key=lambda i: -planned.facts.tokens(planned.items[i]))
    return found[:largest] if largest else found


def _number_of_items(planned: Plan, *, why_not: bool) -> int:
    return sum(not why_not or _stays(planned, i) for i in range(len(planned.items)))


def _stays(planned: Plan, position: int) -> bool:
    return planned.decision(position).action is Action.KEEP


def _position(planned: Plan, item: str) -> int:
    ids = [each.item_id for each in planned.items]
    if item in ids:
        return ids.index(item)
    if item.isdecimal() and int(item) < len(ids):
        return int(item)
    raise MessagesError(
        f"no item {item!r}: give a number below {len(ids)} or an id; --largest 0 lists them all"
    )


def _print_gates(planned: Plan, out: Console) -> None:
    policy = planned.conversation.policy
    for outcome in planned.outcomes:
        state = "open" if outcome.is_open else "closed"
        gates = "; ".join(verdict.sentence for verdict in outcome.gates) or "no gates"
        where = place(policy, ("steps", outcome.step))
        out.print(
            f"step {outcome.step} ({where}): {state}, {gates}; {_taken(outcome)}",
            soft_wrap=True,
        )
    out.print()


def _taken(outcome: Outcome) -> str:
    if (replacing := outcome.replaces) is not None:
        return f"replaces {replacing.messages:,} messages of {replacing.tokens:,} tokens"
    if outcome.stopped is not None and not outcome.took:
        return f"takes none, {outcome.stopped}"
    return f"takes {len(outcome.took):,}"


def _print_item(planned: Plan, position: int, out: Console) -> None:
    item, decision = planned.items[position], planned.decision(position)
    what = " ".join(filter(None, (item.type, item.tool)))
    size = f"{planned.facts.tokens(item):,} tokens"
    head = f"{position}  {item.item_id}  {what}, message {item.message}, {size}: {decision.action}"
    out.print(f"{head}{_without_copy(planned, position)}", soft_wrap=True)
    out.print(_verdicts(planned, position))


def _without_copy(planned: Plan, position: int) -> str:
    """Return why an item leaves without a file of its own, empty if it stays or has one."""
    item, decision = planned.items[position], planned.decision(position)
    if not decision.is_new or decision.saves or decision.action is Action.SUMMARISE:
        return ""
    if decision.is_read_back and decision.file is not None:
        return f", without a copy: it was read from {decision.file.relative_path}"
    if recall_tool(item.tool) is not None and item.kind == "tool_result":
        return ", without a copy: the call can be made again"
    return ""


def _verdicts(planned: Plan, position: int) -> Table:
    policy = planned.conversation.policy
    rows = (
        (v.step, "takes it" if v.taken else "leaves it", v.reason, place(policy, v.rule_path))
        for v in planned.verdicts(position)
    )
    return table_of(("step", "", "why", "says"), rows, numeric=set(), whole={"step", "", "says"})


def _report(planned: Plan, positions: list[int]) -> dict[str, Any]:
    policy = planned.conversation.policy
    return {
        "gates": [gate_report(verdict, policy) for verdict in planned.gates],
        "compaction": compaction_report(planned),
        "items": [
            {
                **item_report(planned, position),
                "tokens": planned.facts.tokens(planned.items[position]),
                "decision": planned.decision(position).action,
                "read_back": planned.decision(position).is_read_back,
                "verdicts": [
                    {
                        "step": v.step,
                        "taken": v.taken,
                        "reason": reason_report(v.reason),
                        "rule": v.rule,
                        "place": place(policy, v.rule_path),
                    }
                    for v in planned.verdicts(position)
                ],
            }
            for position in positions
        ],
    }
