from __future__ import annotations

import hashlib

import pytest

from policyctx.planning.facts import Facts
from policyctx.planning.planner import Planner
from tests.conversations import calls, results, session_of, user
from tests.planning.plans import ALL, FACTS, adopted, outcomes, placeholders, planned, planner


def test_from_the_threshold_on_an_item_is_offloaded() -> None:
    text = f"min_chars: 100\n{ALL}steps: [{{name: s, do: offload, must_shrink: false}}]"
    messages = session_of("x" * 99, "x" * 100, "x" * 101)
    found = planned(text, messages)
    assert [str(d.reason) for d in found.decisions if d.item.tool] == [
        "below_threshold: 99 < 100 chars",
        "large: 100 >= 100 chars",
        "large: 101 >= 100 chars",
    ]
    assert {d.rule for d in found.decisions if d.item.tool} == {"min_chars"}


def test_tokens_are_those_of_the_policys_tokenizer() -> None:
    text = f"min_tokens: 26\n{ALL}steps: [{{name: s, do: offload, must_shrink: false}}]"
    found = outcomes(text, session_of("x" * 100, "x" * 104))
    assert (found["c0"], found["c1"]) == ("keep below_threshold", "offload large")


def test_the_newest_stay_counted_by_tool() -> None:
    text = (
        f"{ALL}steps: [{{name: s, do: offload, select: {{types: [tool_result], keep_recent: 1}}}}]"
    )
    messages = [*session_of("x" * 999, "x" * 999), calls(("r", "Read")), results(("r", "x" * 999))]
    assert outcomes(text, messages) == {
        "c0": "offload old",
        "c1": "keep recent",
        "r": "keep recent",
    }


def test_the_newest_stay_counted_over_all_small_ones_included() -> None:
    text = f"""\
        {ALL}
        steps:
          - name: s
            do: offload
            select: {{types: [tool_result], keep_recent: {{items: 2, per: all}}}}
        """
    messages = session_of("x" * 999, "x" * 999, "small")
    assert outcomes(text, messages) == {
        "c0": "offload old",
        "c1": "keep recent",
        "c2": "keep recent",
    }


def test_the_recency_of_a_tool_is_nearer_than_that_of_its_type() -> None:
    text = """\
        items: {tool_result: {offload: true, keep_recent: 5}}
        tools: {Bash: {keep_recent: 0}}
        steps: [{name: s, do: offload}]
        """
    assert outcomes(text, session_of("x" * 999)) == {"c0": "offload old"}


def test_parallel_calls_stay_together() -> None:
    text = (
        f"{ALL}steps: [{{name: s, do: offload, select: {{types: [tool_result], keep_recent: 1}}}}]"
    )
    pair = [calls(("a", "Bash"), ("b", "Bash")), results(("a", "x" * 999), ("b", "x" * 999))]
    assert outcomes(text, [user("t"), *pair]) == {"a": "keep batch_recent", "b": "keep recent"}


def test_a_pinned_tool_and_a_forbidden_one_stay() -> None:
    text = """\
        items: {tool_result: {offload: true}}
        tools: {Bash: {pin: true}, Read: {offload: false}}
        steps: [{name: s, do: offload}]
        """
    messages = [*session_of("x" * 999), calls(("r", "Read")), results(("r", "x" * 999))]
    assert outcomes(text, messages) == {"c0": "keep pinned", "r": "keep offload_off"}


def test_excepted_tools_and_failed_results_stay() -> None:
    select = "{types: [tool_result], except_tools: [Ba*], errors: false}"
    text = f"{ALL}steps: [{{name: s, do: offload, select: {select}}}]"
    failed = [calls(("r", "Read")), results(("r", "x" * 999), error=True)]
    assert outcomes(text, [*session_of("x" * 999), *failed]) == {
        "c0": "keep excluded_tool",
        "r": "keep failed_result",
    }


def test_a_step_that_names_tools_sees_no_others() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload, select: {{tools: [Read]}}}}]"
    assert outcomes(text, session_of("x" * 999)) == {}


def test_an_item_not_larger_than_its_placeholder_is_kept() -> None:
    text = f"{ALL}placeholder: '{{path}}'\nsteps: [{{name: s, do: offload}}]"
    found = planned(text, session_of("x" * 20))
    [decision] = [d for d in found.decisions if d.item.tool]
    assert str(decision.reason) == "would_not_shrink: its placeholder has 8 tokens, it has 5"
    assert decision.rule == "steps.s.must_shrink"


def test_the_newest_user_message_stays() -> None:
    text = f"min_chars: 10\n{ALL}steps: [{{name: s, do: offload, must_shrink: false}}]"
    messages = [user("x" * 99), {"role": "assistant", "content": "y"}, user("x" * 99)]
    assert outcomes(text, messages) == {"msg_001": "offload large", "msg_003": "keep protected"}


@pytest.mark.parametrize("item_type", ["system_prompt", "thinking"])
def test_a_protected_item_is_kept_with_that_reason(item_type: str) -> None:
    text = f"""\
        items: {{{item_type}: {{offload: true}}}}
        steps: [{{name: s, do: offload, must_shrink: false}}]
        """
    blocks = [
        {"type": "thinking", "thinking": "t" * 999, "signature": "s"},
        {"type": "tool_use", "id": "c", "name": "Bash", "input": {"a": "x" * 999}},
    ]
    picture = {"type": "image", "source": {"type": "base64", "data": "x" * 999}}
    messages = [
        {"role": "system", "content": "s" * 999},
        user("t"),
        {"role": "assistant", "content": blocks},
        results(("c", "r")),
        {"role": "user", "content": [picture]},
    ]
    assert set(outcomes(text, messages).values()) == {"keep protected"}


def test_a_pending_call_and_all_after_it_are_kept() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload}}]"
    pending = [calls(("a", "Bash"), ("b", "Bash")), results(("a", "x" * 999))]
    found = outcomes(text, [*session_of("x" * 999), *pending])
    assert (found["c0"], found["a"]) == ("offload selected", "keep answer_pending")


def test_an_abandoned_call_keeps_nothing() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload}}]"
    messages = [user("t"), calls(("lost", "Bash")), user("never mind"), *session_of("x" * 999)[1:]]
    assert outcomes(text, messages)["c0"] == "offload selected"


def test_arrival_steps_run_before_all_others() -> None:
    text = f"""\
        {ALL}
        steps:
          - {{name: later, do: offload, select: {{min_chars: 10}}}}
          - {{name: first, on: arrival, do: offload, select: {{min_chars: 500}}}}
        """
    found = planned(text, session_of("x" * 999, "x" * 400))
    assert [d.step for d in found.to_save] == ["first", "later"]


def test_items_of_one_name_get_files_of_their_own() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload}}]"
    messages = [user("t"), results(("a", "x" * 999)), results(("a", "x" * 999))]
    paths = [d.file.path for d in planned(text, messages).to_save if d.file]
    assert paths == ["/store/tool_result/a.md", "/store/tool_result/a-1.md"]


def test_items_in_the_ledger_keep_their_placeholder() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload}}]"
    messages = session_of("x" * 999)
    before = adopted(text, messages)
    again = planned(f"placeholder: other\n{text}", messages, ledger=before.conversation.ledger)
    assert again.new == ()
    found = {position: fate.placeholder for position, fate in again.conversation.fates.items()}
    assert found == {
        position: fate.placeholder for position, fate in before.conversation.fates.items()
    }
    assert [str(d.reason) for d in again.decisions if d.item.tool] == [
        "decided: decided earlier, step s"
    ]


def test_an_id_that_carries_another_text_is_another_item() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload}}]"
    before = adopted(text, session_of("x" * 999))
    assert len(planned(text, session_of("y" * 999), ledger=before.conversation.ledger).new) == 1


def test_a_placeholder_is_not_offloaded_again() -> None:
    text = f"min_chars: 1\n{ALL}steps: [{{name: s, do: offload, must_shrink: false}}]"
    before = adopted(text, session_of("x" * 999))
    [placeholder] = [fate.placeholder for fate in before.conversation.fates.values()]
    again = planned(text, session_of(placeholder), ledger=before.conversation.ledger)
    assert again.new == ()
    [decision] = [d for d in again.decisions if d.item.tool]
    assert (decision.action, decision.placeholder) == ("offload", placeholder)
    assert str(decision.reason) == "decided: decided earlier, step s"


def test_a_placeholder_can_show_all_that_is_known() -> None:
    wording = (
        "{item_id} {item_type} {tool_name} {tool_use_id} {session_id} {chars} {tokens} {lines}"
        " {path} {relative_path} {sha256}"
    )
    text = f"{ALL}placeholder: '{wording}'\nsteps: [{{name: s, do: offload, must_shrink: false}}]"
    [placeholder] = placeholders(planned(text, session_of("a\nb")))
    assert placeholder.split() == [
        "c0",
        "tool_result",
        "Bash",
        "c0",
        "s",
        "3",
        "1",
        "2",
        "/store/tool_result/Bash/c0.md",
        "./tool_result/Bash/c0.md",
        hashlib.sha256(b"a\nb").hexdigest(),
    ]


def test_totals_include_the_system_prompt_and_tools() -> None:
    facts = Facts(session_id="s", root="/r", counter=FACTS.counter, beside=("x" * 40,))
    found = planned("", [user("x" * 80)], facts=facts)
    assert (found.tokens_before, found.tokens_after) == (30, 30)


def test_totals_decrease_by_the_removed_size_minus_the_placeholder() -> None:
    text = f"{ALL}placeholder: '12345678'\nsteps: [{{name: s, do: offload}}]"
    found = planned(text, session_of("x" * 400))
    assert found.tokens_before - found.tokens_after == 100 - 2
    assert found.freed_chars == 400


def test_a_planner_made_later_makes_the_same_plan() -> None:
    text = f"{ALL}steps: [{{name: s, do: offload, select: {{keep_recent: 1}}}}]"
    found = planner(text, session_of("x" * 999, "y" * 999))
    later = Planner(found.conversation)
    assert later.plan(FACTS).new == found.plan(FACTS).new
    assert [d.item.item_id for d in later.plan(FACTS).new] == ["c0"]
