from __future__ import annotations

from pathlib import Path
from typing import Any

from policyctx import OffloadPolicy, Session
from policyctx.messages.validity import new_problems
from tests.conversations import (
    Message,
    calls,
    chat_calls,
    chat_result,
    picture,
    results,
    session_of,
    thinking,
    user,
)
from tests.planning.plans import FACTS, adopted, outcomes, planned
from tests.policies import policy

LARGE = "x" * 400
RESULTS = "steps: [{name: s, do: drop, select: {types: [tool_result]}}]"


def applied(text: str, messages: list[Message], root: Path) -> list[Message]:
    read = policy(text).policy
    store = read.store.model_copy(update={"sync": "never"})
    compiled = OffloadPolicy(read.model_copy(update={"store": store}))
    session = Session(compiled, root=root, session_id="s")
    result = session.apply(messages)
    assert session.apply(result.messages).messages is result.messages
    assert new_problems(messages, result.messages) == []
    return list(result.messages)


def said(text: str, *more: dict[str, Any]) -> Message:
    return {"role": "assistant", "content": [{"type": "text", "text": text}, *more]}


def use(call_id: str) -> dict[str, Any]:
    return {"type": "tool_use", "id": call_id, "name": "Bash", "input": {}}


def test_a_call_is_dropped_with_its_result(tmp_path: Path) -> None:
    messages = session_of(LARGE)
    assert applied(RESULTS, messages, tmp_path) == [user("the task")]
    found = planned(RESULTS, messages)
    assert [(d.item.kind, d.reason.code) for d in found.new] == [
        ("tool_call", "with_result"),
        ("tool_result", "selected"),
    ]


def test_a_result_is_dropped_with_its_call(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [tool_call]}}]"
    assert applied(text, session_of(LARGE), tmp_path) == [user("the task")]
    found = planned(text, session_of(LARGE))
    assert [d.reason.code for d in found.new] == ["selected", "with_call"]


def test_chat_calls_and_results_are_dropped_together(tmp_path: Path) -> None:
    pair = [chat_calls(("a", "ls", "{}"), ("b", "rm", "{}")), chat_result("a", LARGE)]
    messages = [user(), *pair, chat_result("b", "small")]
    text = f"{RESULTS.replace('[tool_result]', '[tool_result], min_chars: 100')}"
    left = applied(text, messages, tmp_path)
    assert left == [user(), chat_calls(("b", "rm", "{}")), chat_result("b", "small")]


def test_each_of_parallel_calls_goes_with_its_own_result(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [tool_result], min_chars: 100}}]"
    messages = [user(), calls(("a", "X"), ("b", "Y")), results(("a", "small"), ("b", LARGE))]
    assert applied(text, messages, tmp_path) == [
        user(),
        calls(("a", "X")),
        results(("a", "small")),
    ]


def test_text_beside_the_call_is_kept(tmp_path: Path) -> None:
    messages = [user(), said("I look.", use("a")), results(("a", LARGE))]
    assert applied(RESULTS, [*messages, user()], tmp_path) == [user(), said("I look."), user()]


def test_thinking_is_dropped_with_the_last_remaining_block_of_its_reply(tmp_path: Path) -> None:
    reply = {"role": "assistant", "content": [thinking(), use("a")]}
    messages = [user(), reply, results(("a", LARGE)), said("done"), user()]
    assert applied(RESULTS, messages, tmp_path) == [user(), said("done"), user()]
    assert [d.reason.code for d in planned(RESULTS, messages).new] == [
        "with_call",
        "with_result",
        "selected",
    ]


def test_thinking_of_the_current_turn_keeps_its_call() -> None:
    reply = {"role": "assistant", "content": [thinking(), use("a")]}
    messages = [user(), reply, results(("a", LARGE))]
    [decision] = planned(RESULTS, messages).decisions
    assert (decision.action, decision.reason.code) == ("keep", "without_it")
    assert "only thinking would be left" in decision.reason.sentence


def test_thinking_is_dropped_only_before_the_current_turn() -> None:
    text = "steps: [{name: s, do: drop, select: {types: [thinking]}}]"
    reply = {"role": "assistant", "content": [thinking(), {"type": "text", "text": "so"}]}
    assert outcomes(text, [user(), reply, user(), reply]) == {
        "msg_002": "drop selected",
        "msg_004": "keep protected",
    }


def test_thinking_is_never_replaced() -> None:
    text = "items: {thinking: {offload: true}}\nsteps: [{name: s, do: offload}]"
    reply = {"role": "assistant", "content": [thinking(LARGE), {"type": "text", "text": "so"}]}
    assert outcomes(text, [user(), reply, user()]) == {"msg_002": "keep protected"}


def test_a_removal_that_would_put_an_assistant_message_first_is_not_made(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [user_message]}}]"
    messages = [user("first"), said("hello"), user("last")]
    assert applied(text, messages, tmp_path) == messages
    [decision, _] = planned(text, messages).decisions
    assert decision.reason.sentence == (
        "without it an assistant message would come first; it stays until that message leaves"
    )


def test_a_system_prompt_before_it_makes_no_difference() -> None:
    text = "steps: [{name: s, do: drop, select: {types: [user_message]}}]"
    system = {"role": "system", "content": "Be brief."}
    assert outcomes(text, [system, user("first"), said("hello"), user("last")])["msg_002"] == (
        "keep without_it"
    )


def test_a_list_that_began_with_an_assistant_message_may_still_do_so(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [assistant_message]}}]"
    messages = [said("one"), said("two"), user()]
    assert applied(text, messages, tmp_path) == [user()]


def test_a_removal_that_would_put_an_assistant_message_last_is_not_made(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [tool_result]}}]"
    messages = [user(), said("I look."), calls(("a", "X")), results(("a", LARGE))]
    assert applied(text, messages, tmp_path) == messages
    [decision] = planned(text, messages).decisions
    assert decision.reason.sentence == (
        "without it an assistant message would come last; it stays until a message follows"
    )


def test_a_pinned_call_keeps_its_result() -> None:
    text = f"items: {{tool_call: {{pin: true}}}}\n{RESULTS}"
    [decision] = planned(text, session_of(LARGE)).decisions
    assert (decision.action, decision.reason.code) == ("keep", "pinned")


def test_an_item_with_offload_off_may_be_dropped() -> None:
    text = f"items: {{tool_result: {{offload: false}}}}\n{RESULTS}"
    assert outcomes(text, session_of(LARGE))["c0"] == "drop selected"


def test_thresholds_bind_a_drop_only_where_its_step_gives_one() -> None:
    text = f"min_chars: 9999\nitems: {{tool_result: {{min_chars: 9999}}}}\n{RESULTS}"
    assert outcomes(text, session_of(LARGE))["c0"] == "drop selected"


def test_a_call_without_an_answer_stays_with_all_after_it() -> None:
    text = "steps: [{name: s, do: drop, select: {types: ['*']}}]"
    messages = [*session_of(LARGE), user("more"), calls(("p", "X")), user("wait")]
    found = outcomes(text, messages)
    assert found["c0"] == "drop with_call"
    assert (found["p"], found["msg_006"]) == ("keep answer_pending", "keep answer_pending")


def test_a_call_that_was_abandoned_is_not_dropped() -> None:
    text = "steps: [{name: s, do: drop, select: {types: [tool_call]}}]"
    messages = [user(), calls(("lost", "X")), user(), *session_of(LARGE)[1:]]
    found = outcomes(text, messages)
    assert (found["lost"], found["c0"]) == ("keep answer_pending", "drop with_call")


def test_a_result_without_a_call_is_dropped_alone(tmp_path: Path) -> None:
    messages = [user(), results(("lost", LARGE)), user()]
    assert applied(RESULTS, messages, tmp_path) == [user(), user()]


def test_a_dropped_result_is_saved_with_its_call(tmp_path: Path) -> None:
    session = Session(policy(f"{RESULTS}\nstore: {{sync: never}}"), root=tmp_path, session_id="s")
    call = {"role": "assistant", "content": [{**use("a"), "input": {"command": "ls"}}]}
    result = session.apply([user(), call, results(("a", LARGE))])
    assert [session.read(path) for path in result.files] == ['{"command":"ls"}', LARGE]
    assert result.freed_chars == result.net_freed_chars == 16 + 400


def test_an_offloaded_item_can_be_dropped_and_keeps_its_file(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        store: {sync: never}
        steps:
          - {name: first, do: offload, select: {types: [tool_result]}}
          - name: then
            do: drop
            select: {types: [tool_result], keep_recent: 1}
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    [path] = session.apply(session_of(LARGE)).files
    result = session.apply([*session_of(LARGE), *session_of("", LARGE)[3:]])
    dropped = [d for d in result.plan.new if d.action == "drop"]
    assert [d.item.kind for d in dropped] == ["tool_call", "tool_result"]
    assert dropped[1].file is not None
    assert dropped[1].file.path == path
    assert not dropped[1].saves
    assert [message["role"] for message in result.messages] == ["user", "assistant", "user"]
    assert session.read(path) == LARGE


def test_an_item_offloaded_in_the_same_plan_can_be_dropped_by_a_later_step(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        steps:
          - {name: first, do: offload, select: {types: [tool_result]}}
          - {name: then, do: drop, select: {types: [tool_result]}}
        """
    messages = session_of(LARGE)
    found = planned(text, messages)
    assert [(d.action, d.step, d.saves) for d in found.new] == [
        ("drop", "then", True),
        ("drop", "then", True),
    ]
    assert applied(text, messages, tmp_path) == [user("the task")]
    assert len(list(tmp_path.rglob("*.md"))) == 2


RETIRED_AND_LARGE = """\
    items: {tool_result: {offload: true}}
    placeholder: gone
    store: {sync: never}
    steps:
      - {name: first, do: offload, select: {types: [tool_result], tools: [Read]}}
      - name: then
        do: drop
        when: {frees: {at_least: 150}}
        select: {types: [tool_result], min_tokens: 100}
    """


def test_a_threshold_of_a_drop_uses_the_placeholder_size(tmp_path: Path) -> None:
    session = Session(policy(RETIRED_AND_LARGE), root=tmp_path, session_id="s")
    read = session_of(" the" * 200, tool="Read")
    session.apply(read)
    again = [*read, calls(("big", "Bash")), results(("big", " the" * 200))]
    found = {d.item.item_id: d.action for d in session.apply(again).plan.decisions}
    assert found == {"c0": "offload", "big": "drop"}


def test_a_threshold_of_a_drop_uses_the_placeholder_size_within_one_plan() -> None:
    read = session_of(" the" * 200, tool="Read")
    again = [*read, calls(("big", "Bash")), results(("big", " the" * 200))]
    actions = {d.item.item_id: d.action for d in planned(RETIRED_AND_LARGE, again).new}
    assert actions == {"c0": "offload", "big": "drop"}


def test_the_gates_of_a_drop_use_the_placeholder_size() -> None:
    read = session_of(" the" * 200, " the" * 200, tool="Read")
    found = planned(RETIRED_AND_LARGE, read)
    assert [d.action for d in found.new] == ["offload", "offload"]
    assert [(verdict.opens, verdict.number) for verdict in found.gates] == [(False, 0)]


def test_a_cleared_item_that_is_dropped_later_is_saved_whole(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        store: {sync: never}
        steps:
          - {name: first, do: clear, select: {types: [tool_result]}}
          - {name: then, do: drop, select: {types: [tool_result], keep_recent: 1}}
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    assert session.apply(session_of(LARGE)).files == ()
    files = session.apply([*session_of(LARGE), *session_of("", LARGE)[3:]]).files
    assert LARGE in [session.read(path) for path in files]


def test_an_image_is_dropped_out_of_its_result(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [image]}}]"
    content = [{"type": "text", "text": "seen"}, picture()]
    assert applied(text, session_of(content), tmp_path) == session_of(
        [{"type": "text", "text": "seen"}]
    )
    assert applied(text, session_of([picture()]), tmp_path) == session_of("[Content removed]")


def test_an_image_is_dropped_out_of_a_message(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [image]}}]"
    words = {"type": "text", "text": "look"}
    messages = [{"role": "user", "content": [words, picture()]}, said("nice"), user()]
    assert applied(text, messages, tmp_path)[0] == {"role": "user", "content": [words]}
    alone = [user(), {"role": "user", "content": [picture()]}, said("nice"), user()]
    assert applied(text, alone, tmp_path) == [user(), said("nice"), user()]


def test_a_dropped_item_stays_dropped(tmp_path: Path) -> None:
    session = Session(policy(f"{RESULTS}\nstore: {{sync: never}}"), root=tmp_path, session_id="s")
    messages = session_of(LARGE)
    first = session.apply(messages).messages
    again = session.apply([*messages, user("more")])
    assert again.messages == [*first, user("more")]
    assert again.plan.new == ()


def test_the_list_that_was_handed_out_may_come_back(tmp_path: Path) -> None:
    session = Session(policy(f"{RESULTS}\nstore: {{sync: never}}"), root=tmp_path, session_id="s")
    first = session.apply(session_of(LARGE)).messages
    assert session.apply(first).messages is first
    longer = [*first, user("more")]
    assert session.apply(longer).messages is longer


def test_messages_and_turns_that_are_gone_are_not_counted() -> None:
    text = """\
        steps:
          - {name: s, do: drop, select: {types: ["*"], keep_recent: {turns: 1}}}
          - {name: t, do: drop, when: {messages: {under: 0}, turns: {under: 0}}}
        """
    messages = [*session_of(LARGE), said("done"), *session_of(LARGE)]
    numbers = [verdict.number for verdict in planned(text, messages).gates]
    assert numbers == [3, 1]
    again = adopted(text, messages).plan(FACTS)
    assert [verdict.number for verdict in again.gates] == [3, 1]


def test_unknown_blocks_are_never_dropped() -> None:
    text = "steps: [{name: s, do: drop, select: {types: ['*']}}]"
    strange = {"role": "user", "content": [{"type": "not_known", "value": 1}]}
    assert outcomes(text, [user(), strange, user()])["msg_002"] == "keep protected"


def test_a_system_prompt_is_never_dropped() -> None:
    text = "steps: [{name: s, do: drop, select: {types: ['*']}}]"
    system = {"role": "system", "content": "Be brief."}
    assert outcomes(text, [system, user(), user()])["msg_001"] == "keep protected"
