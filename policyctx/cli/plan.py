"""`policyctx plan`: what `apply` would do, with nothing written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.cli import arguments  # noqa: TC001 - typer reads the annotations at run time
from policyctx.cli.conversation import RecordedChoice, read_messages
from policyctx.cli.output import (
    compaction_in_words,
    console,
    json_text,
    outcome,
    plan_report,
    saving,
    shortened,
    table,
)
from policyctx.compaction.summarizers import ExtractiveSummarizer
from policyctx.definitions.actions import Action
from policyctx.session import Session

if TYPE_CHECKING:
    from rich.table import Table

    from policyctx.planning.decisions import Decision
    from policyctx.planning.facts import Facts
    from policyctx.planning.plan import Plan

_COLUMNS = ("message", "item", "tool", "tokens", "after", "decision", "why")
# Narrower terminals show these columns, with ids and names shortened to so many characters.
_WIDE = 120
_NARROW_COLUMNS = ("item", "tool", "tokens", "decision", "why")
_ITEM, _TOOL = 12, 17


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
    out = console()
    if as_json:
        out.out(json_text(plan_report(planned) | given.report(session)), highlight=False)
        return
    if planned.decisions:
        out.print(_decisions(planned, is_wide=out.width >= _WIDE))
    out.print(outcome(planned, "would be offloaded"), soft_wrap=True)
    context = f"context: {saving(planned.tokens_before, planned.tokens_after)}"
    if told := compaction_in_words(planned, "would be"):
        out.print(told, soft_wrap=True)
        context += "; what the summary spares is not deducted"
    out.print(context, soft_wrap=True)


def _decisions(planned: Plan, *, is_wide: bool) -> Table:
    columns = _COLUMNS if is_wide else _NARROW_COLUMNS
    rows = (_row(decision, planned.facts, is_wide=is_wide) for decision in planned.decisions)
    numeric = {"message", "tokens", "after"}
    return table(columns, rows, numeric=numeric, whole={"item", "tool", "decision"})


def _row(decision: Decision, facts: Facts, *, is_wide: bool) -> tuple[object, ...]:
    item, tokens = decision.item, facts.tokens(decision.item)
    name = item.tool or item.type
    if not is_wide:
        short_id, short_name = shortened(item.item_id, _ITEM), shortened(name, _TOOL)
        return short_id, short_name, tokens, decision.action, decision.reason
    after = (
        tokens
        if decision.action is Action.KEEP
        else facts.length(decision.placeholder or "", "tokens")
    )
    return item.message, item.item_id, name, tokens, after, decision.action, decision.reason
