"""`policyctx plan`: what `apply` would do, with nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
    shortened,
    table,
    window_report,
)
from policyctx.compaction.summarizers import ExtractiveSummarizer
from policyctx.definitions.actions import Action
from policyctx.planning.decisions import Decision
from policyctx.planning.facts import Facts
from policyctx.planning.plan import Plan
from policyctx.session import Session
from policyctx.turns.notices import fullness_ahead

if TYPE_CHECKING:
    from rich.table import Table

_COLUMNS = ("message", "item", "tool", "tokens", "after", "decision", "why")
# Below this width, the table has fewer columns.
_WIDE = 120
_NARROW_COLUMNS = ("item", "tool", "tokens", "decision", "why")
# The most characters of an id and of a tool's name; what a width has beyond `_WIDE` is added.
_ITEM, _TOOL = 36, 24
_NARROW_ITEM, _NARROW_TOOL = 12, 17


def plan(
    policy: arguments.Policy,
    messages: arguments.Messages,
    root: arguments.Root = None,
    session_id: arguments.SessionId = None,
    recorded: arguments.Recorded = None,
    call: arguments.Call = None,
    as_json: arguments.Json = False,
) -> None:
    """Show what a policy would do, and why; write nothing.

    Example: policyctx plan coding-agent session.jsonl
    """
    # No summary is made, so the policy's summarizer need not be there.
    nobody = ExtractiveSummarizer()
    session = Session(policy, root=root, session_id=session_id, summarizer=nobody)
    given = read_messages(messages, RecordedChoice(recorded, call))
    given.teach(session)
    planned = session.plan(given.messages, system=given.system, tools=given.tools)
    placed = session.breakpoints(given.messages, system=given.system, tools=given.tools)
    out = console()
    if as_json:
        report = plan_report(planned) | given.report(session)
        report |= breakpoints_report(placed) | window_report(planned)
        out.out(json_text(report), highlight=False)
        return
    if planned.decisions:
        out.print(_decisions(planned, out.width))
    out.print(outcome(planned, "would be offloaded"), soft_wrap=True)
    context = f"context: {saving(planned.tokens_before, planned.tokens_after)}"
    if told := compaction_in_words(planned, "would be"):
        out.print(told, soft_wrap=True)
        context += "; what the summary spares is not deducted"
    out.print(context, soft_wrap=True)
    for line in breakpoints_in_words(placed):
        out.print(line, soft_wrap=True, markup=False)
    if warning := fullness_ahead(planned):
        out.print(f"warning: {warning}", soft_wrap=True, markup=False)


def _decisions(planned: Plan, width: int) -> Table:
    columns = _COLUMNS if width >= _WIDE else _NARROW_COLUMNS
    rows = (_row(decision, planned.facts, width) for decision in planned.decisions)
    numeric = {"message", "tokens", "after"}
    return table(columns, rows, numeric=numeric, whole={"item", "tool", "decision"})


def _row(decision: Decision, facts: Facts, width: int) -> tuple[object, ...]:
    item, tokens = decision.item, facts.tokens(decision.item)
    name, what = item.tool or item.type, decision.action
    if (more := width - _WIDE) < 0:
        id_, name = shortened(item.item_id, _NARROW_ITEM), shortened(name, _NARROW_TOOL)
        return id_, name, tokens, what, decision.reason
    after = tokens if what is Action.KEEP else facts.length(decision.placeholder or "", "tokens")
    id_, name = shortened(item.item_id, _ITEM + more), shortened(name, _TOOL + more)
    return item.message, id_, name, tokens, after, what, decision.reason
