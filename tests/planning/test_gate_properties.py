"""What a gate compares, against the shortest way to count it, over any list."""

from __future__ import annotations

import operator
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.plan import Plan
from policyctx.session import Session
from policyctx.testing.strategies import message_lists
from tests.policies import policy

TYPES = ("tool_result", "user_message", "assistant_message", "tool_call", "image")
COMPARISONS = {
    "at_least": operator.ge,
    "over": operator.gt,
    "under": operator.lt,
    "at_most": operator.le,
}


def number(gate: str, ungated: Plan, messages: list[Message]) -> Fraction | None:
    """Return what a gate compares; None where nothing is measured or selected."""
    outermost = [item for item in ungated.items if item.inside is None]
    positions = {decision.position for decision in ungated.new}
    taken = [decision for decision in ungated.new if decision.item.inside not in positions]
    of_all = sum(map(ungated.facts.tokens, outermost))
    selected = sum(ungated.facts.tokens(decision.item) for decision in taken)
    if gate == "tokens":
        return Fraction(of_all)
    if gate == "messages":
        return Fraction(len(messages))
    if gate == "items":
        return Fraction(sum(item.type == "tool_result" for item in ungated.items))
    if gate == "frees":
        left = sum(ungated.facts.length(d.placeholder or "", "tokens") for d in taken)
        return Fraction(selected - left)
    return Fraction(selected, of_all) if selected and of_all else None


@given(
    messages=message_lists(),
    gate=st.sampled_from(("tokens", "messages", "items", "frees", "ratio")),
    bound=st.tuples(st.sampled_from(sorted(COMPARISONS)), st.integers(0, 100)),
    types=st.lists(st.sampled_from(TYPES), min_size=1, unique=True),
    size=st.integers(0, 20),
)
def test_a_verdict_agrees_with_counting_by_hand(
    messages: list[Message], gate: str, bound: tuple[str, int], types: list[str], size: int
) -> None:
    also = ", types: [tool_result]" if gate == "items" else ""
    comparison, limit = bound
    written = f"{limit}%" if gate == "ratio" else limit
    text = f"""\
        model: {{tokenizer: approximate}}
        min_tokens: {size}
        placeholder: "[]"
        items: {{{", ".join(f"{name}: {{offload: true}}" for name in types)}}}
        steps: [{{name: s, do: offload, when: {{{gate}: {{{comparison}: {written}{also}}}}}}}]
        """
    compiled = policy(text)
    step = compiled.policy.steps[0].model_copy(update={"when": ()})
    ungated = OffloadPolicy(compiled.policy.model_copy(update={"steps": (step,)}))
    [outcome] = Session(compiled, root="unused", session_id="s").plan(messages).outcomes
    by_hand = Session(ungated, root="unused", session_id="s").plan(messages)
    counted = number(gate, by_hand, messages)
    wanted = Fraction(limit, 100) if gate == "ratio" else Fraction(limit)
    assert outcome.is_open == (counted is not None and COMPARISONS[comparison](counted, wanted))
