from __future__ import annotations

import pytest

from tests.conversations import calls, results, session_of, user
from tests.planning.plans import adopted, outcomes, planned, taken

# Of 100 tokens each; a placeholder has 2.
LARGE = "x" * 400


def stepping(select: str, *, do: str = "offload", more: str = "") -> str:
    return f"""\
        items:
          tool_result: {{offload: true}}
          user_message: {{offload: true}}
          page: {{match: {{type: tool_result, tool: fetch}}}}
        placeholder: "12345678"
        {more}
        steps: [{{name: s, do: {do}, select: {select}}}]
        """


def sized(*tokens: int) -> list[dict[str, object]]:
    return session_of(*("x" * 4 * n for n in tokens))


def test_the_oldest_items_are_taken_first() -> None:
    select = "{types: [tool_result], until: {frees: {at_least: 50}}}"
    assert taken(stepping(select), sized(100, 200, 100)) == ["c0"]
    assert taken(stepping(select.replace("{types", "{order: oldest, types")), sized(9, 200)) == [
        "c0",
        "c1",
    ]


def test_the_largest_items_are_taken_first_and_the_oldest_of_equal_ones() -> None:
    select = "{types: [tool_result], order: largest, until: {frees: {at_least: N}}}"
    messages = sized(100, 200, 100, 300)
    assert taken(stepping(select.replace("N", "1")), messages) == ["c3"]
    assert taken(stepping(select.replace("N", "299")), messages) == ["c1", "c3"]
    assert taken(stepping(select.replace("N", "497")), messages) == ["c0", "c1", "c3"]


def test_the_largest_item_is_measured_in_the_policys_unit() -> None:
    select = "{types: [tool_result], order: largest, until: {frees: {at_least: 1}}}"
    # o200k_base counts fewer tokens for the longer text.
    messages = session_of("word " * 90, "读写文件" * 90)
    real = "model: {tokenizer: o200k_base}"
    assert taken(stepping(select, more=f"{real}\n        min_chars: 1"), messages) == ["c0"]


def test_types_are_taken_in_the_order_of_the_step() -> None:
    select = "{types: [user_message, tool_result], order: by_type, until: {frees: {at_least: 1}}}"
    messages = [*sized(100, 100), user(LARGE), user("go")]
    assert taken(stepping(select), messages) == ["msg_006"]
    other = select.replace("[user_message, tool_result]", "[tool_result, user_message]")
    assert taken(stepping(other), messages) == ["c0", "c1"]


def test_a_refinement_goes_with_the_type_that_is_named() -> None:
    select = "{types: [page, tool_result], order: by_type, until: {frees: {at_least: 1}}}"
    pages = [calls(("f", "fetch")), results(("f", LARGE))]
    assert taken(stepping(select), [*sized(100), *pages]) == ["f"]
    assert taken(stepping(select.replace("page, ", "")), [*sized(100), *pages]) == ["c0", "f"]


@pytest.mark.parametrize(
    ("under", "gone"),
    # Three results of 100 tokens, the task of 2, and three calls of 1.
    [(306, []), (305, ["c0"]), (208, ["c0"]), (207, ["c0", "c1"]), (0, ["c0", "c1", "c2"])],
)
def test_a_step_takes_items_until_the_list_is_small_enough(under: int, gone: list[str]) -> None:
    select = f"{{types: [tool_result], until: {{tokens: {{under: {under}}}}}}}"
    assert taken(stepping(select), sized(100, 100, 100)) == gone


def test_a_share_to_come_under_is_exact() -> None:
    select = "{types: [tool_result], until: {tokens: {under: '33.3%'}}}"
    # 305 tokens are left over 333 of 1,000; 69.264 of 208 are not.
    assert taken(stepping(select, more="model: {context_window: 1000}"), sized(100, 100, 100)) == []
    assert taken(stepping(select, more="model: {context_window: 626}"), sized(100, 100, 100)) == [
        "c0"
    ]


@pytest.mark.parametrize(
    ("frees", "gone"), [(0, []), (98, ["c0"]), (99, ["c0", "c1"]), (999, ["c0", "c1", "c2"])]
)
def test_a_step_takes_items_until_enough_is_freed_net_of_placeholders(
    frees: int, gone: list[str]
) -> None:
    select = f"{{types: [tool_result], until: {{frees: {{at_least: {frees}}}}}}}"
    assert taken(stepping(select), sized(100, 100, 100)) == gone


def test_all_conditions_of_a_map_must_hold() -> None:
    select = "{types: [tool_result], until: {tokens: {under: 305}, frees: {at_least: 150}}}"
    assert taken(stepping(select), sized(100, 100, 100)) == ["c0", "c1"]


def test_any_condition_of_a_list_is_sufficient() -> None:
    select = "{types: [tool_result], until: [{tokens: {under: 305}}, {frees: {at_least: 150}}]}"
    assert taken(stepping(select), sized(100, 100, 100)) == ["c0"]


def test_by_type_it_is_asked_only_after_all_of_a_type() -> None:
    select = "{types: [tool_result, user_message], order: by_type, until: {frees: {at_least: 1}}}"
    assert taken(stepping(select), [user(LARGE), *sized(100, 100, 100)]) == ["c0", "c1", "c2"]


def test_tokens_freed_by_earlier_steps_do_not_stop_a_step() -> None:
    """Freed is what this step has freed, not the steps before it."""
    text = """\
        items: {tool_result: {offload: true}}
        placeholder: "12345678"
        steps:
          - {name: first, do: offload, select: {types: [tool_result], keep_recent: 2}}
          - name: second
            do: offload
            select: {types: [tool_result], until: {frees: {at_least: 50}}}
        """
    found = planned(text, sized(100, 100, 100))
    assert [(d.item.item_id, d.step) for d in found.new] == [("c0", "first"), ("c1", "second")]


def test_items_kept_after_the_condition_is_met_have_that_reason() -> None:
    select = "{types: [tool_result], until: {tokens: {under: 250}, frees: {at_least: 20%}}}"
    found = planned(stepping(select, more="model: {context_window: 301}"), sized(100, 100))
    decision = found.decisions[-1]
    assert str(decision.reason) == "until_reached: tokens: 106 < 250; frees: 98 >= 60.2 tokens"
    assert decision.rule == "steps.s.select.until"
    [outcome] = found.outcomes
    assert (outcome.is_open, outcome.stopped) == (True, decision.reason)


def test_the_next_turn_continues_where_the_step_stopped() -> None:
    select = "{types: [tool_result], until: {tokens: {under: 305}}}"
    before = adopted(stepping(select), sized(100, 100, 100))
    more = sized(100, 100, 100, 100)
    found = planned(stepping(select), more, ledger=before.conversation.ledger)
    assert [d.item.item_id for d in found.new] == ["c1"]


def test_items_that_would_not_shrink_do_not_count_as_freed() -> None:
    select = "{types: [tool_result], until: {frees: {at_least: 98}}}"
    assert outcomes(stepping(select), sized(2, 100, 100)) == {
        "c0": "keep would_not_shrink",
        "c1": "offload selected",
        "c2": "keep until_reached",
    }
