"""What holds from turn to turn, of any message list under any policy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import example, given
from hypothesis import strategies as st

from policyctx.messages.json_text import compact_json
from policyctx.testing.strategies import message_lists
from tests.policy_strategies import free_policies, named_policies, policies, random_policies
from tests.sessions import session_under, tool_message

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.definitions.items import Message
    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.planning.decisions import Decision
    from policyctx.planning.plan import Plan
    from policyctx.turns.result import Result

TINY = named_policies()["tiny"]
any_policy = policies()
free_policy = free_policies()


@given(messages=message_lists(), policy=free_policy)
def test_applying_to_its_own_output_changes_nothing(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        output = session.apply(messages).messages
        assert session.apply(output).messages is output


@given(messages=message_lists(), policy=free_policy)
@example(messages=[tool_message("again", text) for text in ("a" * 25, "b" * 300, "c")], policy=TINY)
def test_the_original_sent_again_comes_out_byte_identical(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy, remembers=True) as session:
        first = session.apply(messages)
        second = session.apply(messages)
        third = session.apply(messages, changed=True)
        assert compact_json(third.messages) == compact_json(second.messages)
        assert compact_json(second.messages) == compact_json(first.messages)
        assert second.plan.new == third.plan.new == ()


@given(messages=message_lists(), policy=any_policy)
def test_a_turn_keeps_the_bytes_of_the_last_up_to_its_first_new_decision(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy, remembers=True) as session:
        last: Sequence[Message] = []
        for end in range(1, len(messages) + 1):
            result = session.apply(messages[:end])
            assert_same_beginning(last, result)
            last = result.messages


@given(messages=message_lists(), policy=any_policy)
def test_a_list_that_is_passed_back_keeps_its_bytes_up_to_the_first_new_decision(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy, remembers=True) as session:
        last: Sequence[Message] = []
        for message in messages:
            result = session.apply([*last, message])
            assert_same_beginning(last, result)
            last = result.messages


@given(messages=message_lists(), policy=any_policy, in_between=st.booleans())
def test_decisions_persist_in_a_list_that_is_read_again(
    messages: list[Message], policy: OffloadPolicy, in_between: bool
) -> None:
    with session_under(policy, remembers=True) as session:
        for end in range(1, len(messages) + 1):
            first = session.apply(messages[:end])
            if in_between:
                session.plan([{"role": "user", "content": "something else"}])
        if messages:
            again = session.apply(messages, changed=True)
            assert_same_beginning(first.messages, again)


@given(messages=message_lists(), policy=any_policy)
def test_a_plan_says_the_same_of_its_items_when_the_conversation_has_moved_on(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        told: list[tuple[tuple[Decision, ...], Plan]] = []
        for end in range(1, len(messages) + 1, 3):
            decisions = session.plan(messages[:end]).decisions
            told.append((decisions, session.apply(messages[:end]).plan))
        for decisions, plan in told:
            assert plan.decisions == decisions


@given(messages=message_lists(), policy=random_policies(free=True, arrival=False))
def test_a_list_that_grew_is_decided_as_one_that_is_read_at_once(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    """What a step may take once it may take for ever, so when it is asked makes no matter.

    What is inside of a result goes by itself or with the result, whichever is ready first.
    """
    if any(step.do == "drop" for step in policy.policy.steps):
        return  # what may go without harm depends on what stands around it at the time
    with session_under(policy) as growing, session_under(policy) as whole:
        for end in range(len(messages) + 1):
            last = growing.apply(messages[:end]).plan
        assert out_of(last) == out_of(whole.apply(messages).plan)


def out_of(plan: Plan) -> set[int]:
    """Return the positions of what is out after a plan, by itself or with what it is in."""
    fates = plan.conversation.fates
    return {i for i, item in enumerate(plan.items) if i in fates or item.inside in fates}


def assert_same_beginning(last: Sequence[Message], result: Result) -> None:
    """Check that the lists are the same up to the first message of which the plan takes a part."""
    removed = result.plan.conversation.removed
    first_new = min((d.item.message for d in result.plan.new), default=None)
    if first_new is None:
        first_new = result.plan.at.messages
    shared = min(len(last), sum(i not in removed for i in range(first_new)))
    assert compact_json(result.messages[:shared]) == compact_json(last[:shared])
