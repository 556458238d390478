"""A plan carried out: the list is edited, what leaves it is saved, and the ledger moves on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from policyctx.errors import InvalidResultError, StoreError
from policyctx.turns.driving import Remember, Save
from policyctx.turns.result import Result

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.messages.items import Message
    from policyctx.planning.plan import Plan
    from policyctx.turns.driving import Turn
    from policyctx.turns.known_list import KnownList


def carried_out(
    planned: Plan,
    known: KnownList,
    messages: Sequence[Message],
    *,
    on_invalid: Literal["raise", "keep"],
    keeps_state: bool,
) -> Turn[Result]:
    """Return what a plan for the known list comes to; `messages` are what the caller gave.

    A file is saved before a placeholder names it, and the ledger moves on when all is. Raises
    `InvalidResultError` under `on_invalid` of `raise`, and `StoreError` under the policy's
    `on_failure: raise`; nothing is decided then.
    """
    warnings: list[str] = []
    # Edited and checked as expected first: what fails here has written nothing.
    try:
        changes = known.edited(planned)
    except InvalidResultError as error:
        if on_invalid == "raise":
            raise
        planned, changes = planned.without_decisions(str(error)), {}
        warnings.append(str(error))
    if planned.to_save:
        contents = tuple(known.content(decision) for decision in planned.to_save)
        outcome = yield Save(contents, recorded=keeps_state)
        written = _after(outcome, planned, warnings)
        if written.new != planned.new:
            changes = known.edited(written)
        planned = written
    rewritten = known.rewritten(planned, changes)
    if planned.new and keeps_state:
        entries = [known.conversation.entry(decision) for decision in planned.new]
        outcome = yield Remember(tuple(entry.record() for entry in [*entries, *rewritten]))
        if isinstance(outcome, StoreError):
            planned = _after(outcome, planned, warnings)
            changes = known.edited(planned)
            rewritten = known.rewritten(planned, changes)
    known.planner.adopt(planned, rewritten)
    return Result(known.handed_out(messages, changes), planned, tuple(warnings))


def _after(outcome: list[Any] | StoreError, planned: Plan, warnings: list[str]) -> Plan:
    """The plan with what the store made of it; raises its error where the policy says so."""
    if not isinstance(outcome, StoreError):
        return planned.settled(outcome)
    if planned.conversation.policy.store.on_failure == "raise":
        raise outcome
    warnings.append(str(outcome))
    return planned.unsaved(str(outcome))
