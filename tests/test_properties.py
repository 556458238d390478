"""What holds of any message list under any policy, in one turn."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from policyctx.definitions.items import Item, Message
from policyctx.messages.door import Door
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.messages.validity import new_problems
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Decision
from policyctx.planning.plan import Plan
from policyctx.policy.models import Policy
from policyctx.policy.models.rules import Secret
from policyctx.session import Session
from policyctx.store.filesystem import ContextFileSystem
from policyctx.testing import strategies
from policyctx.testing.strategies import message_lists
from tests.messages.edits import edited
from tests.policy_strategies import named_policies, policies, random_policies
from tests.sessions import session_under, tool_message

TINY = named_policies()["tiny"]
PRESETS = [named_policies()[name] for name in ("context-offload", "small-context", "tiny")]
any_policy = policies()


@given(messages=message_lists(), policy=any_policy)
def test_the_input_is_not_changed(messages: list[Message], policy: OffloadPolicy) -> None:
    before = copy.deepcopy(messages)
    with session_under(policy) as session:
        session.apply(messages)
        assert messages == before


@given(messages=message_lists(), policy=any_policy)
def test_only_messages_that_a_decision_changes_are_new_objects(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        result = session.apply(messages)
        touched = {d.item.message for d in result.plan.new}
        removed = result.plan.conversation.removed
        left = [i for i in range(len(messages)) if i not in removed]
        assert removed <= touched
        for i, new in zip(left, result.messages, strict=True):
            assert new is messages[i] or i in touched
        assert (result.messages is messages) or touched


@given(messages=message_lists(), policy=any_policy)
def test_a_changed_message_shares_nothing_mutable_with_the_input(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        given_ids = {id(part) for message in messages for part in mutable_parts(message)}
        for new in session.apply(messages).messages:
            if id(new) not in given_ids:
                assert given_ids.isdisjoint(map(id, mutable_parts(new)))


@given(messages=message_lists(), policy=any_policy)
def test_a_plan_makes_the_decisions_that_applying_makes(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        session.plan(messages[: len(messages) // 2])
        planned = session.plan(messages)
        assert session.plan(messages).decisions == planned.decisions
        applied = session.apply(messages).plan
        assert applied.decisions == planned.decisions
        assert applied.gates == planned.gates


@given(messages=message_lists(), policy=any_policy)
def test_every_file_holds_the_whole_text_of_its_item(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        saved: dict[str, str] = {}
        for end in (len(messages) // 2, len(messages)):
            saved |= saved_texts(session, messages[:end])
            for path, text in saved.items():
                assert session.read(path) == text


@given(messages=message_lists(), policy=any_policy)
def test_no_file_is_left_that_no_decision_names(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        saved = saved_texts(session, messages)
        files = (path for path in Path(session.store.root).rglob("*") if path.is_file())
        assert {str(path) for path in files if ".policyctx" not in path.parts} == set(saved)


@given(messages=message_lists(), policy=any_policy)
def test_the_result_and_the_saved_files_contain_the_whole_original(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    """What stays is as it was, a placeholder stands for a file, and what is gone is in one."""
    with session_under(policy) as session:
        result = session.apply(messages)
        read = iter([items_of([message]) for message in result.messages])
        for message in range(len(messages)):
            if message not in result.plan.conversation.removed:
                assert_stands_for(next(read), message, result.plan)
        assert next(read, None) is None
        for decision in result.plan.new:
            if decision.action != "clear":
                assert decision.file is not None
                if policy.policy.store.on_conflict != "overwrite":
                    assert session.read(decision.file.path) == decision.item.text


@given(messages=message_lists(), policy=any_policy)
def test_a_valid_list_stays_valid(messages: list[Message], policy: OffloadPolicy) -> None:
    with session_under(policy) as session:
        for end in range(1, len(messages) + 1):
            output = session.apply(messages[:end]).messages
            assert new_problems(messages[:end], output) == []


@given(messages=message_lists(), policy=any_policy)
@example(messages=[tool_message("again", text * 25) for text in "abcd"], policy=TINY)
@example(messages=[tool_message("again", text * 25) for text in "abcdefgh"], policy=TINY)
def test_steps_with_must_shrink_make_items_smaller(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        shrinking = {step.name for step in session.policy.policy.steps if step.must_shrink}
        for end in (len(messages) // 2, len(messages)):
            plan = session.apply(messages[:end]).plan
            for decision in plan.new:
                if decision.step in shrinking and decision.placeholder is not None:
                    left = plan.facts.length(decision.placeholder, decision.unit)
                    assert left < plan.facts.size(decision.item, decision.unit)


@given(messages=message_lists(), policy=st.sampled_from(PRESETS))
def test_the_files_put_back_give_the_original(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    with session_under(policy) as session:
        result = session.apply(messages)
        restored = copy.deepcopy(list(result.messages))
        for decision in result.plan.to_save:
            put_back(restored, messages, decision, session)
        assert restored == messages


@given(messages=message_lists(), policy=strategies.policies())
def test_any_policy_that_loads_gives_a_valid_plan(messages: list[Message], policy: Policy) -> None:
    plan = Session(policy, root="unused", session_id="s").plan(messages)
    assert {id(decision.item) for decision in plan.decisions} <= set(map(id, plan.items))
    assert new_problems(messages, edited(messages, plan.edits)) == []


@given(
    messages=message_lists(),
    policy=random_policies(actions=("offload",), free=True),
    less=st.integers(0, 100),
    more=st.integers(0, 100),
)
def test_a_higher_threshold_never_takes_more(
    messages: list[Message], policy: OffloadPolicy, less: int, more: int
) -> None:
    low, high = sorted((less, more))
    assert out_from(high, policy, messages) <= out_from(low, policy, messages)


@given(
    messages=message_lists(),
    policy=any_policy,
    # None matches the key of an input.
    pattern=st.sampled_from(("same|line", r"on(e) l", r"[a-z]+ (\w+)", "x{3}")),
    keep=st.booleans(),
)
def test_a_policy_that_redacts_decides_as_if_no_secret_had_been_there(
    messages: list[Message], policy: OffloadPolicy, pattern: str, *, keep: bool
) -> None:
    secret = Secret(pattern=pattern, keep=keep and policy.store.keeps_state)
    redacting = OffloadPolicy(policy.policy.model_copy(update={"redact": {"x": secret}}))
    door = Door({"x": pattern}, "keep", BUILT_IN)
    clean = [door.redacted(message) for message in messages]
    assert [door.redacted(message) for message in clean] == clean
    with session_under(redacting) as session, session_under(policy) as other:
        for end in (len(messages) // 2, len(messages)):
            found, expected = session.apply(messages[:end]), other.apply(clean[:end])
            said = str(found.messages).replace(str(session.store.root), "ROOT")
            assert said == str(expected.messages).replace(str(other.store.root), "ROOT")


def mutable_parts(value: object) -> Iterator[object]:
    if isinstance(value, dict | list):
        yield value
        for part in value.values() if isinstance(value, dict) else value:
            yield from mutable_parts(part)


def assert_stands_for(left: Sequence[Item], message: int, plan: Plan) -> None:
    """Check that a message holds what a message of the plan held, or what stands for it."""
    new = {decision.position: decision for decision in plan.new}
    of_message = [i for i, item in enumerate(plan.items) if item.message == message]
    expected: list[tuple[str, str]] = []
    for i in of_message:
        item, decision = plan.items[i], new.get(i)
        if item.inside in new or (decision is not None and decision.placeholder is None):
            continue
        if decision is not None:
            expected.append((item.kind, str(decision.placeholder)))
        elif not any(plan.items[inner].inside == i for inner in new):
            expected.append((item.kind, item.whole))
    seen = [(item.kind, item.whole) for item in left]
    rest = iter(seen)
    assert all(any(same(wanted, found) for found in rest) for wanted in expected if wanted[1]), (
        expected,
        seen,
    )


def same(wanted: tuple[str, str], found: tuple[str, str]) -> bool:
    """Is this the item; an image that gave way reads as words, and words in a result do not."""
    return wanted[1] == found[1] or wanted[0] in {"image", "document"}


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
    *path, last = decision.item.path
    old: Any = messages[decision.item.message]
    new: Any = restored[decision.item.message]
    for part in path:
        old, new = old[part], new[part]
    assert new[last] == decision.placeholder
    assert isinstance(session.store, ContextFileSystem)
    saved_at = decision.file.path
    if isinstance(old[last], str):
        new[last] = session.read(saved_at)
    elif session.policy.policy.store.blocks == "json":
        new[last] = json.loads(session.read(saved_at))
    else:
        block = session.store.restore(saved_at)
        new[last] = block[str(last)] if isinstance(block, dict) else block


def out_from(threshold: int, policy: OffloadPolicy, messages: list[Message]) -> set[int]:
    """Return the positions of what leaves, by itself or with what it is in, from this size on."""
    unit = "min_tokens" if policy.policy.min_chars is None else "min_chars"
    compiled = OffloadPolicy(policy.policy.model_copy(update={unit: threshold}))
    plan = Session(compiled, root="unused", session_id="s").plan(messages)
    taken = {decision.position for decision in plan.new}
    return {i for i, item in enumerate(plan.items) if i in taken or item.inside in taken}
