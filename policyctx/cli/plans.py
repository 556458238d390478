"""What commands print of a plan: in words for people, as plain values for `--json`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from policyctx.cli.output import saving
from policyctx.compaction.assembly import SummaryUsage
from policyctx.definitions.actions import ITEM_ACTIONS, Action
from policyctx.definitions.items import Item, Message
from policyctx.errors import counted
from policyctx.messages.door import Door
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Decision, Reason
from policyctx.planning.gates import GateVerdict
from policyctx.planning.plan import Plan
from policyctx.policy.lookup import RulePath
from policyctx.turns.breakpoints import Breakpoint, Breakpoints, Why
from policyctx.turns.reporting import fullness_ahead

# The actions that the summary line of a plan counts beside the offloaded items.
_OTHERS = tuple(action for action in ITEM_ACTIONS if action is not Action.OFFLOAD)
# Why a cache breakpoint stands where it does.
_WHY_BREAKPOINT: dict[Why, str] = {
    "given": "the caller's marker",
    "system": "the end of the system prompt",
    "old": "the anchor of the request before, up to which an edit leaves the cache readable",
    "anchor": "the anchor: the next edit comes behind it",
    "before": "the end of the request before",
    "last": "the end of this request",
    "tools": "the end of the tools",
}


def outcome(plan: Plan, verb: str) -> str:
    """Return `3 of 8 items offloaded to /folder`; no folder where nothing goes to one.

    The number of cleared or dropped items stands beside it: `1 dropped`.
    """
    actions = Counter(decision.action for decision in plan.new)
    counts = f"{actions[Action.OFFLOAD]} of {len(plan.decisions)} items {verb}"
    others = [f"{actions[a]} {a.past}" for a in _OTHERS if actions[a]]
    told = ", ".join([counts, *others])
    if not plan.to_save:
        return told
    return f"{told}; saved in {plan.facts.root}" if others else f"{told} to {plan.facts.root}"


def verdict(plan: Plan) -> str:
    """Return in one line what becomes of the request: its tokens, and what would leave it."""
    context = f"context: {saving(plan.tokens_before, plan.tokens_after)}"
    return f"{context}; {outcome(plan, 'would be offloaded')}"


def place(policy: OffloadPolicy, rule: RulePath) -> str:
    """Return `file:line` of what says so, or that nothing in a file does."""
    found = policy.place(rule)
    if found is None:
        return "by default" if rule else "always so"
    return f"{found.file}:{found.line}" if found.line else found.file


def reason_report(reason: Reason) -> dict[str, Any]:
    """Return a reason as plain values, for `--json`."""
    return {"code": reason.code, **reason.values, "sentence": reason.sentence}


def item_report(item: Item, position: int) -> dict[str, Any]:
    """Return what an item is as plain values, for `--json`."""
    return {
        "position": position,
        "message": item.message,
        "item_id": item.item_id,
        "type": item.type,
        "tool": item.tool,
        "chars": len(item.text),
    }


def decision_report(decision: Decision, policy: OffloadPolicy) -> dict[str, Any]:
    """Return one decision as plain values, for `--json`."""
    return {
        **item_report(decision.item, decision.position),
        "decision": decision.action,
        "step": decision.step,
        "rule": decision.rule,
        "place": place(policy, decision.rule_path),
        "reason": reason_report(decision.reason),
        "path": decision.file.path if decision.file else None,
        "read_back": decision.is_read_back,
    }


def gate_report(verdict: GateVerdict, policy: OffloadPolicy) -> dict[str, Any]:
    """Return one comparison of a gate as plain values, for `--json`."""
    return {
        "step": verdict.step,
        "gate": verdict.gate,
        "comparison": verdict.comparison,
        "number": None if verdict.number is None else float(verdict.number),
        "limit": float(verdict.limit) if verdict.comparison else None,
        "opens": verdict.opens,
        "alternative": verdict.alternative,
        "sentence": verdict.sentence,
        "place": place(policy, verdict.rule),
    }


def compaction_report(plan: Plan) -> dict[str, Any] | None:
    """Return what a summary is to stand for as plain values, for `--json`; None for nothing."""
    if (replacing := plan.compaction) is None:
        return None
    return {
        "step": replacing.step,
        "messages": replacing.messages,
        "tokens": replacing.tokens,
        "first": replacing.parts.start,
        "last": replacing.parts.end - 1,
        "carried": replacing.parts.carried,
    }


def compaction_in_words(plan: Plan, verb: str) -> str:
    """Return `messages 1 to 40, 30,112 tokens, would be replaced by a summary`; "" for none."""
    if (replacing := plan.compaction) is None:
        return ""
    messages = f"messages {replacing.parts.start:,} to {replacing.parts.end - 1:,}"
    if replacing.parts.carried is not None:
        messages += f" without {replacing.parts.carried:,}, the user's newest"
    return f"{messages}, {replacing.tokens:,} tokens, {verb} replaced by a summary"


def repairs_in_words(policy: OffloadPolicy, messages: Sequence[Message]) -> Iterator[str]:
    """Yield what `on_broken: repair` makes of a list, with the line of the policy."""
    for fault in Door({}, policy.policy.on_broken, BUILT_IN).let_in(messages).faults:
        yield f"repaired: {fault.problem}; {fault.repair} ({place(policy, ('on_broken',))})"


def breakpoints_in_words(placed: Breakpoints) -> list[str]:
    """Return a line for each cache breakpoint: where it stands, its lifetime, and why.

    Or a line that says why the policy places none.
    """
    if placed.why_none:
        return [f"no cache markers: {placed.why_none}"]
    return [
        f"cache breakpoint after {_where(one)} ({one.ttl}):"
        f" {'; '.join(_WHY_BREAKPOINT[why] for why in one.why)}"
        for one in placed
    ]


def _where(one: Breakpoint) -> str:
    if one.part == "messages":
        return one.item
    return f"{'tool' if one.part == 'tools' else 'system block'} {one.place + 1}"


def window_report(planned: Plan) -> dict[str, Any]:
    """Return the warning of a request that is larger than the window; empty if it fits."""
    warning = fullness_ahead(planned)
    return {"warnings": [warning]} if warning else {}


def breakpoints_report(placed: Breakpoints) -> dict[str, Any]:
    """Return the cache breakpoints as plain values for `--json`, or why there are none."""
    why = {"why_no_breakpoints": placed.why_none} if placed.why_none else {}
    return why | {
        "breakpoints": [
            {
                "part": one.part,
                "place": one.item if one.part == "messages" else one.place,
                "ttl": one.ttl,
                "why": list(one.why),
            }
            for one in placed
        ]
    }


def usage_in_words(usage: SummaryUsage) -> str:
    """Return what the model calls for a summary used; "" if no model was billed."""
    read, written = usage.cache_read_tokens, usage.cache_write_tokens
    if not usage.input_tokens + read + written + usage.output_tokens:
        return ""
    tokens = f"{usage.input_tokens:,} input and {usage.output_tokens:,} output tokens"
    cached = f", {read:,} read from the cache, {written:,} written to it" if read + written else ""
    dollars = "" if usage.dollars is None else f", ${usage.dollars:,.4f}"
    appended = ""
    if usage.appended_lines:
        appended = f"; {counted(usage.appended_lines, 'line')} of the user appended to it"
    return f"summary: {counted(usage.attempts, 'attempt')}, {tokens}{cached}{dollars}{appended}"


def plan_report(plan: Plan) -> dict[str, Any]:
    """Return a plan as plain values, for `--json`."""
    policy = plan.conversation.policy
    return {
        "session_id": plan.facts.session_id,
        "root": plan.facts.root,
        "tokens_before": plan.tokens_before,
        "tokens_after": plan.tokens_after,
        "offloaded_count": len(plan.to_save),
        "freed_chars": plan.freed_chars,
        "net_freed_chars": plan.net_freed_chars,
        "gates": [gate_report(verdict, policy) for verdict in plan.gates],
        "compaction": compaction_report(plan),
        "decisions": [decision_report(decision, policy) for decision in plan.decisions],
    }
