"""What OpenAI's rules ask of Responses items, under any policy, by the rules themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache

from hypothesis import example, given
from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.messages.json_text import compact_json
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.loading import parsed_policy
from policyctx.policy.sources import PolicySource
from policyctx.session import Session
from policyctx.testing.strategies import mixed_lists, responses_lists
from tests.conversations import calls, results
from tests.fuzz.memory_store import MemoryStore
from tests.openai_rules import (
    broken_promises,
    calls_in,
    refused,
    results_in,
    type_of,
)
from tests.policy_strategies import free_policies, policies

LISTS = st.one_of(responses_lists(), mixed_lists())
any_policy = policies()

OVER = 4
COMPACTING = f"""
apiVersion: policyctx/v1
name: compacting
min_chars: 0
items: {{tool_result: {{offload: true}}}}
steps:
  - {{name: old, do: drop, select: {{types: [tool_result, assistant_message], keep_recent: 2}}}}
  - name: compact
    do: compact
    when: {{messages: {{over: {OVER}}}}}
    compaction: {{keep_recent: {{messages: 2}}, summary: {{must_shrink_to: false}}}}
"""


@cache
def compacting() -> OffloadPolicy:
    return OffloadPolicy(parsed_policy(PolicySource("compacting.yaml", COMPACTING)))


def unpaired(messages: Sequence[Message]) -> Counter[str]:
    """Count outputs before or without their call, and calls without their output."""
    found, waiting = Counter[str](), Counter[str]()
    for message in messages:
        waiting.update(calls_in(message))
        for call_id in results_in(message):
            found["output without its call"] += not waiting[call_id]
            waiting[call_id] -= waiting[call_id] > 0
    found["call without its output"] = waiting.total()
    return found


def assert_sound(before: Sequence[Message], after: Sequence[Message]) -> None:
    """Check that an edit breaks no rule of OpenAI's that held before."""
    assert broken_promises(before, after) == Counter()
    assert refused(after) - refused(before) == Counter()
    if all(type_of(message) or "tool_calls" not in message for message in before):
        assert unpaired(after) - unpaired(before) == Counter()


@given(messages=responses_lists(), policy=any_policy)
def test_calls_reasoning_and_unknown_items_stay_whole(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    session = Session(policy, session_id="s", store=MemoryStore())
    for end in range(1, len(messages) + 1):
        assert_sound(messages[:end], session.apply(messages[:end]).messages)


@given(messages=responses_lists(), policy=any_policy)
def test_a_list_that_is_passed_back_stays_whole(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    session = Session(policy, session_id="s", store=MemoryStore())
    last: Sequence[Message] = []
    for message in messages:
        given_list = [*last, message]
        last = session.apply(given_list).messages
        assert_sound(given_list, last)


COMPACTION: Message = {"type": "compaction", "encrypted_content": "gAAA"}
GO: Message = {"role": "user", "content": "go on and on"}


@given(messages=LISTS)
@example(messages=[GO, COMPACTION, GO, GO, GO, GO])
def test_a_compaction_keeps_the_items_that_no_summary_can_tell(messages: list[Message]) -> None:
    session = Session(compacting(), session_id="s", store=MemoryStore())
    for end in range(1, len(messages) + 1, 2):
        result = session.apply(messages[:end])
        assert broken_promises(messages[:end], result.messages) == Counter()
        assert refused(result.messages) - refused(messages[:end]) == Counter()


DONE: Message = {"role": "assistant", "content": "done"}
# Two lone surrogates, which are no character.
HALVES: Message = results(("c0", "\ud83d\udfff"), error=True)
DROPPED_ITEM: Message = {
    "type": "message",
    "role": "assistant",
    "content": [{"type": "output_text", "text": "on it"}],
}


@given(messages=LISTS)
@example(messages=[GO, DROPPED_ITEM, GO, DONE, DONE, GO])
@example(messages=[GO, calls(("c0", "read")), HALVES, DONE, DONE, GO])
def test_a_compacted_list_is_the_same_after_a_restart(messages: list[Message]) -> None:
    """A result without its call gets a message of its own, which may leave the gate open."""
    store = MemoryStore()
    first = Session(compacting(), session_id="s", store=store).apply(messages)
    again = Session(compacting(), session_id="s", store=store).apply(messages)
    if len(first.messages) > OVER:
        living = Session(compacting(), session_id="s", store=MemoryStore())
        living.apply(messages)
        first = living.apply(messages)
    assert compact_json(again.messages) == compact_json(first.messages)


@given(messages=LISTS, policy=free_policies())
def test_a_restarted_session_makes_the_same_list(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    store = MemoryStore()
    if policy.policy.store.state == "none":
        return
    first = Session(policy, session_id="s", store=store).apply(messages)
    again = Session(policy, session_id="s", store=store).apply(messages)
    assert compact_json(again.messages) == compact_json(first.messages)
