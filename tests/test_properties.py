from __future__ import annotations

import copy
import json
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from hypothesis import example, given, note
from hypothesis import strategies as st

from policyctx.messages.editing import edited
from policyctx.messages.items import Message, compact_json
from policyctx.messages.validity import new_problems
from policyctx.planning.offload_policy import OffloadPolicy
from policyctx.policy.loading import load_policy, parsed_policy
from policyctx.policy.sources import Source
from policyctx.session import Session
from policyctx.testing.strategies import growing_lists, message_lists, policies

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from policyctx.planning.decisions import Decision
    from policyctx.planning.facts import Unit
    from policyctx.policy.models import Policy

# Small enough that all that it says comes to pass in a list of a few messages.
TINY = """\
apiVersion: policyctx/v1
name: tiny
min_chars: 20
items:
  tool_result: {offload: true}
  user_message: {offload: true, min_chars: 30}
  assistant_message: {offload: true, min_chars: 40}
tools:
  search: {keep_recent: 1}
  mcp__*: {min_chars: 60, placeholder: "{tool_name} {tool_use_id} {relative_path}"}
  pinned: {pin: true}
placeholder: "[{relative_path}]"
steps:
  - name: large-arrivals
    on: arrival
    do: offload
    select: {types: [tool_result], min_chars: 200}
    must_shrink: false
  - name: old-results
    do: offload
    select: {types: [tool_result], keep_recent: {items: 2, per: all}}
  - name: words
    do: offload
    select: {types: [user_message, assistant_message], keep_recent: {items: 1, per: type}}
"""


def stored(policy: Policy, **settings: str) -> Policy:
    """Change how the policy stores what it offloads, and nothing else of it."""
    return policy.model_copy(update={"store": policy.store.model_copy(update=settings)})


def unflushed(policy: Policy) -> Policy:
    """Spare the tests the wait for the disk."""
    return stored(policy, sync="never")


PRESETS = ("context-offload", "tool-direct-offload", "coding-agent")
POLICIES = {name: unflushed(load_policy(name)) for name in PRESETS}
POLICIES["tiny"] = unflushed(parsed_policy(Source("tiny.yaml", TINY)))
# What one turn owes to the one before is owed under policies that remember it.
REMEMBERING = {name: stored(policy, state="kept") for name, policy in POLICIES.items()}


def tool_message(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def sessions(policies: Mapping[str, Policy] = POLICIES) -> Iterator[Session]:
    """Yield a new session under each policy; a failure's notes name the last one."""
    for name, policy in policies.items():
        note(f"policy: {name}")
        with TemporaryDirectory() as folder:
            yield Session(OffloadPolicy(policy), root=folder, session_id="s")


@given(messages=message_lists())
def test_the_input_is_not_changed(messages: list[Message]) -> None:
    before = copy.deepcopy(messages)
    for session in sessions():
        session.apply(messages)
        assert messages == before


@given(messages=message_lists())
def test_only_messages_with_a_replaced_item_are_new_objects(messages: list[Message]) -> None:
    for session in sessions():
        result = session.apply(messages)
        replaced = {d.item.message for d in result.plan.to_save}
        assert len(result.messages) == len(messages)
        for i, (old, new) in enumerate(zip(messages, result.messages, strict=True)):
            assert (new is not old) == (i in replaced)


@given(messages=message_lists())
def test_an_unchanged_list_is_the_same_list(messages: list[Message]) -> None:
    for session in sessions():
        result = session.apply(messages)
        assert (result.messages is messages) == (not result.offloaded_count)


@given(messages=message_lists())
def test_planning_decides_what_applying_does(messages: list[Message]) -> None:
    for session in sessions():
        planned = session.plan(messages).decisions
        assert session.plan(messages).decisions == planned
        assert session.apply(messages).plan.decisions == planned


@given(messages=message_lists())
def test_applying_to_its_own_output_changes_nothing(messages: list[Message]) -> None:
    for session in sessions():
        output = session.apply(messages).messages
        assert session.apply(output).messages is output


@given(messages=message_lists())
@example(messages=[tool_message("again", text) for text in ("a" * 25, "b" * 300, "c")])
def test_the_original_sent_again_comes_out_byte_identical(messages: list[Message]) -> None:
    for session in sessions(REMEMBERING):
        first = session.apply(messages)
        second = session.apply(messages)
        assert compact_json(second.messages) == compact_json(first.messages)
        assert second.offloaded_count == 0


@given(lists=growing_lists())
def test_a_turn_keeps_the_bytes_of_the_last_up_to_its_first_new_decision(
    lists: list[list[Message]],
) -> None:
    for session in sessions(REMEMBERING):
        last: Sequence[Message] = []
        for messages in lists:
            result = session.apply(messages)
            first_new = min([d.item.message for d in result.plan.to_save], default=len(messages))
            shared = min(first_new, len(last))
            assert compact_json(result.messages[:shared]) == compact_json(last[:shared])
            last = result.messages


@given(messages=message_lists())
def test_every_file_holds_the_whole_text_of_its_item(messages: list[Message]) -> None:
    for session in sessions():
        saved: dict[str, str] = {}
        for end in (len(messages) // 2, len(messages)):
            saved |= saved_texts(session, messages[:end])
            for path, text in saved.items():
                assert session.read(path) == text


@given(messages=message_lists())
def test_no_file_is_left_that_no_decision_names(messages: list[Message]) -> None:
    for session in sessions():
        saved = saved_texts(session, messages)
        files = {path for path in session.store.root.rglob("*") if path.is_file()}
        contents = {str(path) for path in files if ".policyctx" not in path.parts}
        assert contents == set(saved)


@given(messages=message_lists())
def test_the_files_put_back_give_the_original(messages: list[Message]) -> None:
    for session in sessions():
        result = session.apply(messages)
        if len(set(result.files)) < len(result.files):
            continue  # under `overwrite` an id that comes again takes the file of the first
        restored = copy.deepcopy(list(result.messages))
        for decision in result.plan.to_save:
            put_back(restored, messages, decision, session)
        assert restored == messages


@given(messages=message_lists())
def test_a_valid_list_stays_valid(messages: list[Message]) -> None:
    for session in sessions():
        assert new_problems(messages, session.apply(messages).messages) == []


@given(messages=message_lists(), policy=policies())
def test_any_policy_that_loads_gives_a_valid_plan(messages: list[Message], policy: Policy) -> None:
    plan = Session(policy, root="unused", session_id="s").plan(messages)
    assert {id(decision.item) for decision in plan.decisions} <= set(map(id, plan.items))
    assert new_problems(messages, edited(messages, plan.edits)) == []


@given(messages=message_lists(), less=st.integers(0, 2000), more=st.integers(0, 2000))
def test_a_higher_threshold_never_offloads_more(
    messages: list[Message], less: int, more: int
) -> None:
    low, high = sorted((less, more))
    for policy in POLICIES.values():
        assert offloaded(policy, messages, high) <= offloaded(policy, messages, low)


@given(messages=message_lists())
@example(messages=[tool_message("again", text * 25) for text in "abcd"])
@example(messages=[tool_message("again", text * 25) for text in "abcdefgh"])
def test_what_must_shrink_shrinks(messages: list[Message]) -> None:
    for session in sessions():
        shrinking = {step.name for step in session.policy.policy.steps if step.must_shrink}
        unit: Unit = "tokens" if session.policy.policy.min_chars is None else "chars"
        for end in (len(messages) // 2, len(messages)):
            plan = session.apply(messages[:end]).plan
            for decision in plan.to_save:
                if decision.step in shrinking:
                    left = plan.facts.length(decision.placeholder or "", unit)
                    assert left < plan.facts.size(decision.item, unit)


def saved_texts(session: Session, messages: list[Message]) -> dict[str, str]:
    """Apply, and return what each file should hold; only `overwrite` lets two items share one."""
    to_save = session.apply(messages).plan.to_save
    saved = {d.file.path: d.item.text for d in to_save if d.file}
    assert len(saved) == len(to_save) or session.policy.policy.store.on_conflict == "overwrite"
    return saved


def put_back(
    restored: list[Message], messages: list[Message], decision: Decision, session: Session
) -> None:
    """Put the saved content of one item in the place of its placeholder."""
    assert decision.file is not None
    text = session.read(decision.file.path)
    *path, last = decision.item.path
    old: Any = messages[decision.item.message]
    new: Any = restored[decision.item.message]
    for part in path:
        old, new = old[part], new[part]
    assert new[last] == decision.placeholder
    new[last] = text if isinstance(old[last], str) else json.loads(text)


def offloaded(policy: Policy, messages: list[Message], threshold: int) -> set[int]:
    """Return the positions of the decisions to offload from this size on."""
    unit = "min_tokens" if policy.min_chars is None else "min_chars"
    compiled = OffloadPolicy(policy.model_copy(update={unit: threshold}))
    decisions = Session(compiled, root="unused", session_id="s").plan(messages).decisions
    return {i for i, decision in enumerate(decisions) if decision.action == "offload"}
