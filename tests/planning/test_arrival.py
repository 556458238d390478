"""Steps on arrival: once for each new item, whether it is reported or first seen in a list."""

from __future__ import annotations

import json
from collections import Counter
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.planning import take
from policyctx.planning.decisions import Arrivals, Awaited, Ending, Reason
from policyctx.planning.outlook import removed_with
from tests.conversations import (
    Message,
    calls,
    chat_calls,
    chat_result,
    results,
    session_of,
    thinking,
    user,
)
from tests.planning.plans import ALL, FACTS, adopted, planned, planner, read_more
from tests.policies import policy

LARGE = "x" * 400
ARRIVAL = """\
    items: {tool_result: {offload: true}, user_message: {offload: true}}
    store: {sync: never}
    placeholder: "12345678 {path}"
    steps: [{name: a, on: arrival, do: offload, select: {types: [tool_result], min_chars: 300}}]
    """
# A gate opens and closes with the time, so what was judged once could be judged otherwise later.
LATER = ARRIVAL.replace("min_chars: 300", "min_chars: 9999")


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(ARRIVAL), root=tmp_path / "root", session_id="s")


def of(text: str, root: Path) -> Session:
    return Session(policy(text), root=root, session_id="s")


def test_an_item_first_seen_in_a_list_is_judged_there(session: Session) -> None:
    result = session.apply(session_of(LARGE))
    assert [(d.step, d.action) for d in result.plan.new] == [("a", "offload")]


def test_a_reported_result_has_the_same_placeholder_in_the_list(session: Session) -> None:
    call, message = calls(("c0", "Bash")), results(("c0", LARGE))
    reported = session.on_tool_result(message, call=call)
    assert reported.offloaded_count == 1
    result = session.apply([user("the task"), call, message])
    assert result.messages[1:] == reported.messages
    assert result.plan.new == ()


def test_a_list_with_the_replaced_reported_result_is_returned_unchanged(session: Session) -> None:
    call, message = calls(("c0", "Bash")), results(("c0", LARGE))
    reported = session.on_tool_result(message, call=call)
    messages = [user("the task"), *reported.messages]
    assert session.apply(messages).messages is messages


def test_without_the_call_it_looks_the_same(session: Session) -> None:
    message = results(("c0", LARGE))
    reported = session.on_tool_result(message)
    result = session.apply([user("the task"), calls(("c0", "Bash")), message])
    assert result.messages[2:] == reported.messages
    assert result.plan.new == ()


def test_chat_results_are_reported_too(session: Session) -> None:
    call, message = chat_calls(("c0", "Bash", "{}")), chat_result("c0", LARGE)
    reported = session.on_tool_result(message, call=call)
    assert reported.messages[1]["content"].endswith("/tool_result/Bash/c0.md")
    assert session.apply([user(), call, message]).messages[1:] == reported.messages


def test_a_judged_item_is_not_judged_again() -> None:
    """A second policy with the same ledger would take it, had it not been judged."""
    first = planner(LATER, session_of(LARGE))
    assert len(first.conversation.arrivals.due) == 3
    after = adopted(LATER, session_of(LARGE))
    assert after.conversation.arrivals.due == []
    read_more(after, [calls(("d", "Bash")), results(("d", "more"))])
    assert [after.conversation.items[i].tool_use_id for i in after.conversation.arrivals.due] == [
        "d",
        "d",
    ]


@pytest.mark.parametrize("reads_anew", [True, False])
def test_a_result_arrives_only_once(reads_anew: bool, tmp_path: Path) -> None:
    """A tool's name is known only with its call; judged without it, it stays judged."""
    text = ARRIVAL.replace("min_chars: 300", "min_chars: 300, tools: [Bash]")
    session = of(text, tmp_path)
    message = results(("c0", LARGE))
    assert session.on_tool_result(message).plan.new == ()
    messages = [user("the task"), calls(("c0", "Bash")), message]
    assert session.apply(messages, changed=reads_anew).plan.new == ()
    assert session.apply([user("other"), *messages[1:]]).plan.new == ()


@pytest.mark.parametrize("action", ["offload", "clear", "drop"])
def test_the_newest_user_message_is_taken_once_it_is_not_the_newest(
    action: str, tmp_path: Path
) -> None:
    text = ARRIVAL.replace("[tool_result]", "[user_message]").replace(
        "do: offload", f"do: {action}"
    )
    text = text if action == "offload" else text.replace(" {path}", "")
    answer = {"role": "assistant", "content": "yes"}
    found = turns_of(text, [user("hi"), answer, user(LARGE), answer, user("go on")], tmp_path)
    assert [LARGE in str(left) for left in found] == [False, False, True, True, False]


def test_the_thinking_of_a_turn_is_taken_when_the_next_turn_begins(tmp_path: Path) -> None:
    text = ARRIVAL.replace("[tool_result], min_chars: 300", "[thinking]")
    reply = {"role": "assistant", "content": [thinking(), SAID, USE]}
    more = {"role": "assistant", "content": [thinking(), SAID]}
    messages = [user("the task"), reply, results(("c0", "ok")), user("go on"), more]
    found = turns_of(text.replace("do: offload", "do: drop"), messages, tmp_path)
    assert [str(left).count("signature") for left in found] == [0, 1, 1, 0, 1]


def test_a_call_is_taken_once_its_answer_is_there(tmp_path: Path) -> None:
    """Parallel calls are reported one by one, and an abandoned call may be answered late."""
    text = ARRIVAL.replace("[tool_result], min_chars: 300", "[tool_call]")
    session = of(text.replace("do: offload", "do: drop"), tmp_path)
    call = calls(("a", "Bash"), ("b", "Bash"))
    for name in "ab":
        session.on_tool_result(results((name, "ok")), call=call)
    messages = [user(), call, results(("a", "ok"), ("b", "ok")), user("go on")]
    assert session.apply(messages).messages == [messages[0], messages[3]]
    abandoned = [user(), chat_calls(("c", "Bash", "{}")), user("stop"), chat_calls(content="Yes?")]
    late = [*abandoned, chat_result("c", "ok"), user("go on")]
    found = turns_of(text.replace("do: offload", "do: drop"), late, tmp_path / "late")
    assert found[3] == abandoned
    assert found[5] == [late[0], *late[2:4], late[5]]


def test_an_item_behind_a_pending_call_is_judged_when_the_answer_is_there(
    session: Session,
) -> None:
    call = calls(("a", "Bash"), ("b", "Bash"))
    waiting = [user(), call, results(("a", LARGE))]
    assert session.apply(waiting).plan.new == ()
    done = [*waiting, results(("b", "ok"))]
    assert [d.item.tool_use_id for d in session.apply(done).plan.new] == ["a"]


def test_each_of_parallel_calls_is_judged_when_it_is_reported(session: Session) -> None:
    call = calls(("a", "Bash"), ("b", "Bash"))
    first = session.on_tool_result(results(("a", LARGE)), call=call)
    second = session.on_tool_result(results(("b", LARGE)), call=call)
    messages = [user(), call, results(("a", LARGE), ("b", LARGE))]
    result = session.apply(messages)
    assert result.plan.new == ()
    assert result.messages[2]["content"] == [
        *first.messages[1]["content"],
        *second.messages[1]["content"],
    ]


def test_an_item_that_could_not_be_saved_is_judged_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.write_text("", encoding="utf-8")
    session = of(ARRIVAL, root)
    messages = session_of(LARGE)
    assert session.apply(messages).warnings
    root.unlink()
    again = session.apply(messages)
    assert again.offloaded_count == 1
    assert [w.partition(":")[0] for w in again.warnings] == ["offloading works again"]


def test_a_reported_result_that_could_not_be_saved_is_judged_in_the_list(
    tmp_path: Path,
) -> None:
    root = tmp_path / "root"
    root.write_text("", encoding="utf-8")
    session = of(ARRIVAL, root)
    message = results(("c0", LARGE))
    assert session.on_tool_result(message).warnings
    root.unlink()
    assert session.apply([user(), calls(("c0", "Bash")), message]).offloaded_count == 1


def test_an_item_that_was_only_planned_is_judged_again(session: Session) -> None:
    messages = session_of(LARGE)
    assert len(session.plan(messages).new) == 1
    assert len(session.plan([user("other"), *messages[1:]]).new) == 1
    assert session.apply(messages).offloaded_count == 1


def test_steps_on_arrival_run_before_all_others_and_in_their_order() -> None:
    text = """\
        items: {tool_result: {offload: true}}
        placeholder: "12345678"
        steps:
          - {name: call, do: offload, select: {types: [tool_result]}}
          - {name: huge, on: arrival, do: clear, select: {types: [tool_result], min_chars: 800}}
          - {name: large, on: arrival, do: offload, select: {types: [tool_result], min_chars: 300}}
        """
    found = planned(text, session_of("x" * 900, LARGE, "x" * 90))
    assert [(d.item.item_id, d.step) for d in found.new] == [
        ("c0", "huge"),
        ("c1", "large"),
        ("c2", "call"),
    ]
    assert [outcome.step for outcome in found.outcomes] == ["huge", "large", "call"]


def test_only_arrival_steps_run_on_reported_results(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        steps: [{name: call, do: offload, select: {types: [tool_result]}}]
        """
    assert of(text, tmp_path).on_tool_result(results(("a", LARGE))).plan.outcomes == ()


def test_a_share_of_the_window_may_be_the_threshold() -> None:
    text = """\
        model: {context_window: 1000}
        items: {tool_result: {offload: true}}
        placeholder: "12345678"
        steps: [{name: a, on: arrival, do: offload, select: {min_tokens: 10%}}]
        """
    found = planned(text, session_of("x" * 396, LARGE))
    assert [d.item.item_id for d in found.new] == ["c1"]


def test_a_call_goes_on_arrival_with_its_result(tmp_path: Path) -> None:
    text = ARRIVAL.replace("do: offload", "do: drop")
    session = of(text, tmp_path)
    messages = session_of(LARGE, "small")
    assert session.apply(messages).messages == [messages[0], *messages[3:]]


SAID = {"type": "text", "text": "I look."}
USE = {"type": "tool_use", "id": "c0", "name": "Bash", "input": {}}


@pytest.mark.parametrize("beside", [[SAID], [thinking()], [thinking(), SAID], "chat", "reported"])
def test_a_result_is_dropped_on_arrival_once_the_list_can_do_without_it(
    beside: list[dict[str, str]] | str, tmp_path: Path
) -> None:
    """The list may not end with the words beside its call; a restarted session decides alike."""
    session = of(ARRIVAL.replace("do: offload", "do: drop"), tmp_path)
    call, result = calls(("c0", "Bash")), results(("c0", LARGE))
    if beside == "chat":
        call, result = chat_calls(("c0", "Bash", "{}")), chat_result("c0", LARGE)
        call["content"] = "I look."
    elif beside == "reported":
        assert session.on_tool_result(result, call=call).plan.new == ()
    else:
        call = {"role": "assistant", "content": [*beside, USE]}
    more = [{"role": "assistant", "content": "Done."}, user("go on")]
    messages = [user("the task"), call, result, *more, *more]
    for end in range(1, len(messages) + 1):
        given = messages[:end]
        left = list(session.apply(given).messages)
        assert Session(session.policy, root=tmp_path, session_id="s").apply(given).messages == left
    assert "x" * 9 not in str(left)
    assert ("I look." in str(left)) == ("I look." in str(call))


SIGNED = {"extra_content": {"google": {"thought_signature": "c2ln"}}}
SIGNED_LISTS: dict[str, list[Message]] = {
    "chat": [
        user("the task"),
        chat_calls(("a", "Bash", "{}"), ("b", "Bash", "{}")),
        chat_result("a", LARGE),
        chat_result("b", LARGE),
        {"role": "assistant", "content": "Done."},
        user("go on"),
    ],
    "gemini": [
        {"role": "user", "parts": [{"text": "the task"}]},
        {
            "role": "model",
            "parts": [
                {"functionCall": {"id": "a", "name": "Bash", "args": {}}},
                {"functionCall": {"id": "b", "name": "Bash", "args": {}}},
            ],
        },
        *(
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {"id": i, "name": "Bash", "response": {"output": LARGE}}}
                ],
            }
            for i in "ab"
        ),
        {"role": "model", "parts": [{"text": "Done."}]},
        {"role": "user", "parts": [{"text": "go on"}]},
    ],
}
SIGNED_LISTS["chat"][1]["tool_calls"][0] |= SIGNED
SIGNED_LISTS["gemini"][1]["parts"][0] |= {"thoughtSignature": "c2ln"}


def turns_of(text: str, messages: list[Message], root: Path) -> list[list[Message]]:
    """Return what each turn leaves of a list that grows by a message.

    A session that is restarted before each turn leaves the same.
    """
    living, found = of(text, root / "living"), []
    for end in range(1, len(messages) + 1):
        given = messages[:end]
        found.append(list(living.apply(given).messages))
        left = json.dumps(list(of(text, root / "restarted").apply(given).messages))
        assert json.loads(left.replace("restarted", "living")) == found[-1]
    return found


@pytest.mark.parametrize("form", SIGNED_LISTS)
def test_the_result_of_a_signed_call_is_dropped_once_the_later_calls_have_left(
    form: str, tmp_path: Path
) -> None:
    """Each result is a message of its own, so the calls are not in the message of what waits."""
    messages = SIGNED_LISTS[form]
    drop = ARRIVAL.replace("do: offload", "do: drop")
    plan = of(drop, tmp_path / "first").apply(messages[:4]).plan
    assert [d.item.tool_use_id for d in plan.new] == ["b", "b"]
    [kept] = [d for d in plan.decisions if d.item.text == LARGE and d.action == "keep"]
    assert kept.reason.sentence.endswith("it stays until those calls leave")
    assert turns_of(drop, messages, tmp_path)[-1] == [messages[0], *messages[4:]]


@pytest.mark.parametrize("form", SIGNED_LISTS)
def test_the_result_of_a_signed_call_waits_for_the_step_that_takes_the_later_calls(
    form: str, tmp_path: Path
) -> None:
    later = "{name: b, do: drop, select: {tools: [Read], keep_recent: {items: 1}}}"
    drop = ARRIVAL.replace("do: offload", "do: drop").rstrip().removesuffix("]")
    first, both, large, small, *end = SIGNED_LISTS[form]
    read, seen = (json.dumps(m).replace("Bash", "Read").replace(LARGE, "ok") for m in (both, small))
    made = json.loads(read.replace("Read", "Bash", 1))
    again = [json.loads(m.replace('"a"', '"c"').replace('"b"', '"d"')) for m in (read, seen)]
    answer = json.loads(seen.replace('"b"', '"c"'))
    messages = [first, made, large, json.loads(seen), *end, again[0], answer, again[1], *end]
    found = turns_of(f"{drop}, {later}]\n", messages, tmp_path)
    assert LARGE in str(found[6])
    assert LARGE not in str(found[-1])


@pytest.mark.parametrize("action", ["offload", "clear"])
@pytest.mark.parametrize("moment", ["arrival", "model_call"])
@pytest.mark.parametrize("beside", [SAID, thinking()])
def test_what_another_step_takes_meanwhile_no_longer_waits(
    beside: dict[str, str], moment: str, action: str, tmp_path: Path
) -> None:
    """The model has seen the placeholder, so what was sent stays as it is."""
    drop = ARRIVAL.replace("do: offload", "do: drop").rstrip()
    wording = ', placeholder: "1234"' if action == "clear" else ""
    selected = "select: {types: [tool_result], min_chars: 300}"
    other = f"{{name: b, on: {moment}, do: {action}, {selected}{wording}}}"
    text = f"{drop.removesuffix(']')}, {other}]\n"
    call = {"role": "assistant", "content": [beside, USE]}
    end = [{"role": "assistant", "content": "Done."}, user("go on")]
    left = turns_of(text, [user("the task"), call, results(("c0", LARGE)), *end, *end], tmp_path)
    assert len(left[2]) == 3
    assert LARGE not in str(left[2])
    assert all(now[: len(before)] == before for before, now in pairwise(left[2:]))


def test_a_result_is_dropped_once_another_step_has_taken_the_words_that_would_come_last(
    tmp_path: Path,
) -> None:
    """Also when the list is the same; so it is for a restarted session."""
    drop = ARRIVAL.replace("do: offload", "do: drop").rstrip().removesuffix("]")
    text = f"{drop}, {{name: b, on: arrival, do: drop, select: {{types: [assistant_message]}}}}]\n"
    session = of(text, tmp_path)
    reply = {"role": "assistant", "content": [SAID, USE]}
    messages = [user("the task"), reply, results(("c0", LARGE))]
    assert session.apply(messages).messages[1] == {"role": "assistant", "content": [USE]}
    restarted = of(text, tmp_path).plan(messages)
    assert [d.step for d in restarted.new] == ["a", "a"]
    assert session.apply(messages).messages == messages[:1]


def test_an_item_arrives_again_when_the_reason_of_any_step_ends() -> None:
    items = planner(LATER, session_of(LARGE)).conversation.items
    reasons = [Reason("protected", until=(Awaited(event),)) for event in Ending]
    for event in Ending:
        arrivals = Arrivals(items, {}, None, are_judged=True)
        arrivals.extend(range(3), {})
        refused = [(f"step {i}", 1, reason) for i, reason in enumerate(reasons)]
        arrivals.settle(3, refused)
        assert arrivals.waiting[1] == {step: reason for step, _, reason in refused}
        arrivals.happened(event)
        assert arrivals.due == [1]
        arrivals.happened(event)
        assert arrivals.due == [1]


def test_an_item_that_arrived_before_says_so() -> None:
    after = adopted(LATER, session_of(LARGE))
    again = planned(LATER, session_of(LARGE))
    assert [v.reason.code for v in again.verdicts(2)] == ["below_threshold"]
    assert after.conversation.arrivals.due == []


def test_the_decision_on_a_call_in_an_old_plan_stays_when_its_answer_arrives() -> None:
    text = f"{ALL}steps: [{{name: s, on: arrival, do: offload, select: {{types: ['*']}}}}]"
    growing = planner(text, [user(), calls(("a", "Bash"))])
    found = growing.plan(FACTS)
    read_more(growing, [results(("a", "ok"))])
    assert found.decisions[-1].reason.code == "answer_pending"


def in_a_loop(number: int, *, thinks: bool) -> list[Message]:
    """A task and so many calls, each in a reply of its own."""
    beside = [thinking()] if thinks else [SAID]
    replies = (
        (
            {"role": "assistant", "content": [*beside, USE | {"id": f"c{i}"}]},
            results((f"c{i}", LARGE)),
        )
        for i in range(number)
    )
    return [user("the task"), *chain.from_iterable(replies)]


@pytest.mark.parametrize("thinks", [True, False])
@pytest.mark.parametrize("number", [50, 200])
def test_what_waits_is_looked_at_again_only_when_what_it_waits_for_happens(
    number: int, thinks: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_at = Counter[int]()

    def counted(position: int, *others: Any) -> Any:
        looked_at[position] += 1
        return removed_with(position, *others)

    monkeypatch.setattr(take, "removed_with", counted)
    session = of(ARRIVAL.replace("do: offload", "do: drop"), tmp_path)
    messages = [*in_a_loop(number, thinks=thinks), {"role": "assistant", "content": "Done."}]
    for end in range(1, len(messages) + 1):
        session.apply(messages[:end])
    assert set(looked_at.values()) == {1 if thinks else 2}
    left = session.apply([*messages, user("go on")]).messages
    assert LARGE not in str(left)
    assert set(looked_at.values()) == {2}


@pytest.mark.parametrize(
    ("beside", "why"),
    [
        ([SAID], "an assistant message would come last; it stays until a message follows"),
        (
            [thinking()],
            "only thinking would be left of its message; it stays until the next turn begins",
        ),
    ],
)
def test_an_item_says_what_it_waits_for(
    beside: list[dict[str, str]], why: str, tmp_path: Path
) -> None:
    session = of(ARRIVAL.replace("do: offload", "do: drop"), tmp_path)
    messages = [
        user("the task"),
        {"role": "assistant", "content": [*beside, USE]},
        results(("c0", LARGE)),
    ]
    plans = [session.apply(messages).plan, session.plan(messages)]
    if beside == [thinking()]:
        messages = [*messages, calls(("c1", "Bash")), results(("c1", "ok"))]
        plans += [session.apply(messages).plan, session.plan(messages)]
    for plan in plans:
        [result] = [d for d in plan.decisions if d.item.text == LARGE]
        assert (result.action, result.reason.sentence) == ("keep", f"without it {why}")
    end = [{"role": "assistant", "content": "Done."}, user("go on")]
    assert LARGE not in str(session.apply([*messages, *end]).messages)
