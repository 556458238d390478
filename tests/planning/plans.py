"""Plans made without a session: nothing is read or written."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import Facts
from policyctx.planning.ledger import Ledger
from policyctx.planning.plan import Plan
from policyctx.planning.planner import BOTH, Moment, Planner
from policyctx.tokens.counter import counter_for
from tests.conversations import Message
from tests.policies import policy

# Four characters are a token.
FACTS = Facts(session_id="s", root="/store", counter=counter_for("approximate"))
ALL = "items: {tool_result: {offload: true}, user_message: {offload: true}}\n"


def idle(seconds: float) -> Facts:
    """Return the facts of a session whose last model call was so long ago."""
    return replace(FACTS, idle=seconds)


def planner(
    text: str,
    messages: Sequence[Message],
    *,
    ledger: Ledger | None = None,
    facts: Facts = FACTS,
) -> Planner:
    """Read a list under a policy that is given without its first two keys."""
    found = Planner(Conversation(policy(text), Ledger() if ledger is None else ledger, facts))
    read_more(found, messages)
    return found


def read_more(found: Planner, messages: Sequence[Message]) -> None:
    """Read the messages that follow those of a conversation."""
    found.conversation.extend(found.conversation.reading.checked(messages))


def planned(
    text: str,
    messages: Sequence[Message],
    *,
    ledger: Ledger | None = None,
    facts: Facts = FACTS,
    moments: tuple[Moment, ...] = BOTH,
) -> Plan:
    """Plan for a list under all of a policy but its first two keys."""
    return planner(text, messages, ledger=ledger, facts=facts).plan(facts, moments=moments)


def adopt(found: Planner, facts: Facts = FACTS) -> Plan:
    """Carry a plan out in the conversation, as a session does after the files are saved."""
    plan = found.plan(facts)
    found.conversation.adopt(plan.new, judged=plan.judged, refused=plan.refused)
    return plan


def adopted(text: str, messages: Sequence[Message], *, facts: Facts = FACTS) -> Planner:
    """Return the planner of a conversation whose first plan was carried out."""
    found = planner(text, messages, facts=facts)
    adopt(found, facts)
    return found


def outcomes(text: str, messages: Sequence[Message], *, facts: Facts = FACTS) -> dict[str, str]:
    """What became of each item by its id: the action, and the code of the reason."""
    decisions = planned(text, messages, facts=facts).decisions
    return {d.item.item_id: f"{d.action} {d.reason.code}" for d in decisions}


def taken(text: str, messages: Sequence[Message], *, facts: Facts = FACTS) -> list[str]:
    """Return the ids of the items that newly leave, in the order of the list."""
    return [d.item.item_id for d in planned(text, messages, facts=facts).new]


def steps_of(found: Plan) -> dict[str, str]:
    """Return the step that newly took each item, by the item's id."""
    return {d.item.item_id: d.step for d in found.new}


def placeholders(found: Plan) -> list[str]:
    """Return the new placeholders, in the order of the list."""
    return [d.placeholder for d in found.new if d.placeholder is not None]
