"""What holds from turn to turn, of any message list under any policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from hypothesis import assume, example, given
from hypothesis import strategies as st

from policyctx.definitions.items import Message
from policyctx.messages.json_text import compact_json
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import Decision
from policyctx.planning.plan import Plan
from policyctx.session import Session
from policyctx.testing.strategies import message_lists
from policyctx.turns.result import Result
from tests.conversations import chat_calls, chat_result
from tests.fuzz.marking import Marking, without_markers, wrong_sources
from tests.openai_rules import calls_in, results_in, role_of, type_of
from tests.policies import policy as policy_of
from tests.policy_strategies import (
    free_policies,
    named_policies,
    policies,
    random_policies,
    stored,
)
from tests.sessions import session_under, tool_message

TINY = named_policies()["tiny"]
# Several compactions in a short list, which keep messages at both ends and one in between.
COMPACTING = stored(
    policy_of(
        """\
        model: {tokenizer: approximate}
        min_chars: 5
        items: {tool_result: {offload: true}, image: {offload: true}, tool_call: {offload: true}}
        placeholder: "[{item_id}]"
        compaction:
          keep_first: 1
          keep_recent: {messages: 3}
          keep_newest_user_message: true
        steps:
          - {name: results, do: offload, must_shrink: false,
             select: {types: [tool_result, image], keep_recent: 1}}
          - {name: thinking, do: drop, select: {types: [thinking, tool_call], keep_recent: 1}}
          - {name: compact, do: compact, when: {messages: {over: 8}}}
        """
    ),
    sync="never",
)
# Takes an image out of a result first, and the result with it afterwards.
EMPTYING = stored(
    policy_of(
        """\
        model: {tokenizer: approximate}
        items: {tool_result: {offload: true, min_chars: 0}, image: {offload: true, min_chars: 0}}
        steps:
          - {name: images, on: arrival, do: offload, placeholder: "[{item_id}]",
             select: {types: [image], min_chars: 0}}
          - {name: all, do: drop, select: {min_chars: 0}}
        """
    ),
    sync="never",
)
# A call's id is used again, with an equal image, behind a call that has no answer yet.
_PICTURE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
_ODD_RESULT = {"role": "tool", "tool_call_id": "lost", "content": [_PICTURE]}
ID_USED_AGAIN: list[Message] = [
    {"role": "user", "content": "go on"},
    _ODD_RESULT,
    {"role": "assistant", "content": "done"},
    {"role": "user", "content": "again"},
    chat_calls(("call_5", "read", "{}"), ("call_6", "read", "{}")),
    chat_result("call_5", "text"),
    _ODD_RESULT,
]
# Drops an image inside a result, and then the result; a later one has the same id and text.
IMAGE_FIRST = stored(
    policy_of(
        """\
        model: {tokenizer: approximate}
        steps:
          - {name: images, do: drop, select: {types: [image], min_chars: 0}}
          - {name: results, do: drop, when: {messages: {over: 2}},
             select: {types: [tool_result], min_chars: 0}}
        """
    ),
    sync="never",
)
SAME_WITHOUT_IMAGE: list[Message] = [
    {"role": "user", "content": "go on"},
    {"role": "tool", "tool_call_id": "lost", "content": [{"type": "text", "text": "x"}, _PICTURE]},
    {"role": "user", "content": "again"},
    {"role": "assistant", "content": "done"},
    {"role": "tool", "tool_call_id": "lost", "content": [{"type": "text", "text": "x"}]},
    {"role": "assistant", "content": "done again"},
    {"role": "user", "content": "and again"},
]
TWO_READS = [
    chat_calls(("a", "read", '{"path": "a"}')),
    chat_result("a", "the very same words, said again"),
    chat_calls(("b", "read", '{"path": "b"}')),
    chat_result("b", "the very same words, said again"),
]
INPUT_LEAVES_LATER = stored(
    policy_of(
        """\
        model: {tokenizer: approximate}
        items: {tool_result: {offload: true, min_chars: 0}}
        steps:
          - name: with-input
            do: offload
            placeholder: "[offload {item_id}]"
            select: {keep_recent: 1, with_input: {leave: empty}}
          - {name: all, do: offload, placeholder: "[offload {item_id}]"}
        """
    ),
    sync="never",
)
OFFLOADS_REPLIES = stored(
    policy_of(
        """\
        model: {tokenizer: approximate}
        items: {assistant_message: {offload: true, min_chars: 0}}
        steps: [{name: replies, do: offload, placeholder: "[offload {item_id}]"}]
        """
    ),
    sync="never",
)
REPLY_OF_TWO_ITEMS: list[Message] = [
    {"role": "user", "content": "go on"},
    {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "the very same words, said again"}],
    },
    {"type": "function_call", "call_id": "call", "name": "read", "arguments": "{}"},
]
any_policy = policies()
compacting_policy = st.one_of(st.just(COMPACTING), any_policy)
marking = st.randoms(use_true_random=False).map(Marking)
free_policy = free_policies()


def uses_an_open_id_again(messages: Sequence[Message]) -> bool:
    """Whether a call item has the id of an earlier one that has no result.

    Where the words between the two were dropped, they are parallel calls of one id, which are
    answered in their order: the list does not tell which of them the result belongs to.
    """
    waiting = Counter[str]()
    for message in messages:
        again = type_of(message) and any(waiting[call] for call in calls_in(message))
        if again:
            return True
        waiting.update(calls_in(message))
        waiting -= Counter(results_in(message))
    return False


@given(messages=message_lists(), policy=free_policy)
@example(messages=ID_USED_AGAIN, policy=EMPTYING)
def test_applying_to_its_own_output_changes_nothing(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    assume(not uses_an_open_id_again(messages))
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
@example(messages=SAME_WITHOUT_IMAGE, policy=IMAGE_FIRST)
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
    # A call may repeat a dropped one to the byte: the objects passed back tell the two apart.
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
@example(messages=REPLY_OF_TWO_ITEMS, policy=OFFLOADS_REPLIES)
@example(messages=TWO_READS, policy=INPUT_LEAVES_LATER)
def test_a_list_that_grew_is_decided_as_one_that_is_read_at_once(
    messages: list[Message], policy: OffloadPolicy
) -> None:
    """What a step may take once it may take for ever, so when it is asked makes no matter.

    What is inside of a result goes by itself or with the result, whichever is ready first. A reply
    of several items is there as a whole: with a call that has no result none of it leaves. A call's
    input leaves with its result by the step that takes the result, so it depends on which of two
    steps was ready first: under `with_input` calls are not compared.
    """
    if any(step.do == "drop" for step in policy.policy.steps):
        return  # what may go without harm depends on what is around it at the time
    with_input = any(step.select.with_input for step in policy.policy.steps)
    with session_under(policy) as growing, session_under(policy) as whole:
        for end in range(len(messages) + 1):
            if 0 < end < len(messages) and all(map(is_of_model, messages[end - 1 : end + 1])):
                continue
            last = growing.apply(messages[:end]).plan
        at_once = whole.apply(messages).plan
        calls = {i for i, item in enumerate(at_once.items) if item.kind == "tool_call"}
        ignored = calls if with_input else set()
        assert out_of(last) - ignored == out_of(at_once) - ignored


@given(messages=message_lists(), policy=compacting_policy, data=st.data())
def test_sources_lead_from_the_output_to_the_list_given(
    messages: list[Message], policy: OffloadPolicy, data: st.DataObject
) -> None:
    """A message is the given one or its edit, and what a compaction inserted has no source."""
    with session_under(policy, remembers=True) as session:
        last: Sequence[Message] = []
        known, has_compacted = 0, False
        for end in range(1, len(messages) + 1):
            if data.draw(st.integers(0, 2)) == 0:
                continue
            passes_back = data.draw(st.booleans())
            given = [*last, *messages[known:end]] if passes_back else messages[:end]
            result = session.apply(given)
            assert list(wrong_sources(given, result)) == []
            has_compacted |= result.compacted
            assert has_compacted or None not in result.sources
            last, known = result.messages, end


@given(messages=message_lists(), policy=any_policy, marking=marking)
def test_sources_on_arrival_count_the_call_first(
    messages: list[Message], policy: OffloadPolicy, marking: Marking
) -> None:
    with session_under(policy) as session:
        for call, message in pairwise(marking.moved(messages)):
            if role_of(message) in {"user", "tool"} and role_of(call) == "assistant":
                result = session.on_tool_result(message, call=call)
                assert list(wrong_sources([call, message], result)) == []
                alone = session.on_tool_result(message)
                assert list(wrong_sources([message], alone)) == []


@given(messages=message_lists(), policy=compacting_policy, marking=marking, data=st.data())
def test_markers_move_without_a_change_of_the_prefix_or_of_decisions(
    messages: list[Message], policy: OffloadPolicy, marking: Marking, data: st.DataObject
) -> None:
    """The list comes as the caller keeps it, or as it was returned, also after a restart."""
    passes_back, restarts = data.draw(st.booleans()), data.draw(st.booleans())
    with session_under(policy, remembers=True) as session, session_under(policy) as other:
        unmarked_session = _another(session, Path(other.store.root))
        last: Sequence[Message] = []
        bare: Sequence[Message] = []
        for end in range(1, len(messages) + 1):
            new = messages[end - 1 : end]
            given = marking.moved([*last, *new] if passes_back else messages[:end])
            result = session.apply(given)
            expected = unmarked_session.apply([*bare, *new] if passes_back else messages[:end])
            assert list(wrong_sources(given, result)) == []
            assert _without_root(result, session) == _without_root(expected, unmarked_session)
            last, bare = result.messages, expected.messages
        if restarts and messages:
            given = marking.moved(last if passes_back else messages)
            restarted = _another(session, Path(session.store.root))
            again = restarted.apply(given)
            assert list(wrong_sources(given, again)) == []
            unmarked_session = _another(session, Path(other.store.root))
            expected = unmarked_session.apply(bare if passes_back else messages)
            assert _without_root(again, restarted) == _without_root(expected, unmarked_session)


def _another(session: Session, root: Path) -> Session:
    return Session(session.policy, root=root, session_id="s", clock=lambda: 0.0)


def _without_root(result: Result, session: Session) -> str:
    return without_markers(result.messages).replace(str(session.store.root), "root")


def is_of_model(message: Message) -> bool:
    """Return whether a model wrote a message, or an item of its reply."""
    if "role" in message:
        return bool(message["role"] == "assistant")
    return not str(message.get("type")).endswith("_output")


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
    assert without_markers(result.messages[:shared]) == without_markers(last[:shared])
