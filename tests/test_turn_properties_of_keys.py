"""What holds from turn to turn under keys of the selection and the gates: a decision is repeated.

The policies are few, so that each key is drawn often, and the lists are those of the other turns.
"""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.messages.json_text import compact_json
from policyctx.planning.compiled import OffloadPolicy
from policyctx.session import Session
from policyctx.testing.strategies import message_lists
from tests.policies import policy
from tests.policy_strategies import stored
from tests.sessions import session_under
from tests.test_turn_properties import assert_same_beginning

_HEAD = """\
model: {tokenizer: approximate}
items: {tool_result: {offload: true}, image: {offload: true}}
placeholder: "[{item_id}]"
"""
# Steps that use the keys, by the key.
STEPS = {
    "batches": "{do: clear, placeholder: '-', must_shrink: false, select: {types: [tool_result],"
    " keep_recent: {items: 1, per: all, batches: split}}}",
    "of_candidates": "{do: offload, must_shrink: false, select: {types: [tool_result],"
    " keep_recent: {turns: 1, of: candidates, per: all}}}",
    "max_tokens": "{do: drop, select: {types: [tool_call, tool_result], unit: group,"
    " keep_recent: {max_tokens: 40, per: all}}}",
    "replies_of_candidates": "{do: drop, select: {types: [tool_call, tool_result], unit: group,"
    " keep_recent: {replies: 1, of: candidates, per: all}}}",
    "unit_message": "{do: drop, select: {types: [tool_result, assistant_message], unit: message,"
    " keep_recent: {messages: 3}}}",
    "unit_group": "{do: drop, when: {messages: {over: 4}}, select: {types: ['*'], unit: group,"
    " keep_recent: {items: 4, per: all}}}",
    "unit_turn": "{do: drop, select: {types: ['*'], unit: turn, keep_recent: {turns: 1}}}",
    "trim": "{do: compact, when: {since_last: {messages: {over: 5}}}, compaction: {summary: {by:"
    " none}, min_new: 0, keep_recent: {messages: 2}, wording: {summary: '[trimmed]'}}}",
    "since_messages": "{do: offload, must_shrink: false, when: {since_last: {messages:"
    " {at_least: 4}}}, select: {types: [tool_result]}}",
    "since_turns": "{do: drop, when: {since_last: {turns: {at_least: 2}}},"
    " select: {types: [tool_result, assistant_message]}}",
    "since_tokens": "{do: clear, placeholder: '-', when: {since_last: {tokens: {over: 30}}},"
    " select: {types: ['*'], keep_recent: {messages: 1}}}",
}


def policies() -> st.SearchStrategy[OffloadPolicy]:
    """Return a strategy for policies with one or two of the steps."""
    chosen = st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=2, unique=True)
    # Only the last step may compact.
    return chosen.map(lambda keys: _policy(tuple(sorted(keys, key=lambda key: key == "trim"))))


def _policy(keys: tuple[str, ...]) -> OffloadPolicy:
    steps = "\n".join(f"  - {{name: {key.replace('_', '-')}, {STEPS[key][1:]}" for key in keys)
    return stored(policy(f"{_HEAD}steps:\n{steps}\n"), sync="never", state="kept")


@given(messages=message_lists(), policy=policies(), data=st.data())
def test_a_decision_is_repeated_and_a_restart_gives_the_same_bytes(
    messages: list[Message], policy: OffloadPolicy, data: st.DataObject
) -> None:
    """The caller keeps its own list; now and then the process ends between two turns."""
    with session_under(policy) as session:
        last: Sequence[Message] = []
        for end in range(1, len(messages) + 1):
            result = session.apply(messages[:end])
            if not result.compacted:
                assert_same_beginning(last, result)
            last = result.messages
            # Behind a compaction, a session decides anew about the shorter list.
            if data.draw(st.integers(0, 3)) == 0 and not result.compacted:
                again = Session(policy, root=session.store.root, session_id="s")
                restarted = again.apply(messages[:end])
                assert restarted.plan.new == ()
                assert compact_json(restarted.messages) == compact_json(last)


@given(messages=message_lists(), policy=policies())
def test_a_session_that_is_restarted_at_every_turn_decides_as_one_that_is_not(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session, session_under(policy) as other:
        for end in range(1, len(messages) + 1):
            one = session.apply(messages[:end])
            restarted = Session(policy, root=other.store.root, session_id="s")
            two = restarted.apply(messages[:end])
            assert compact_json(two.messages) == compact_json(one.messages)
