from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from tests.conversations import calls, picture, results, session_of, user
from tests.counting import functions_called
from tests.planning.plans import FACTS, adopted, outcomes, planned, read_more, taken
from tests.policies import policy

LARGE = "x" * 400
ITEMS = "items: {tool_result: {offload: true}, user_message: {offload: true}}"


def keeping(keep_recent: str, types: str = "[tool_result]") -> str:
    select = f"{{types: {types}, keep_recent: {keep_recent}}}"
    return f"{ITEMS}\nsteps: [{{name: s, do: offload, select: {select}}}]"


def of_tools(*tools: str) -> list[dict[str, object]]:
    messages = [user("the task")]
    for i, tool in enumerate(tools):
        messages += [calls((f"c{i}", tool)), results((f"c{i}", LARGE))]
    return messages


@pytest.mark.parametrize(
    ("keep_recent", "gone"),
    [
        ("0", ["c0", "c1", "c2", "c3"]),
        ("1", ["c0", "c1"]),
        ("2", []),
        ("{items: 1}", ["c0", "c1"]),
        ("{items: 1, per: tool}", ["c0", "c1"]),
        ("{items: 1, per: type}", ["c0", "c1", "c2"]),
        ("{items: 3, per: all}", ["c0"]),
        ("{items: 4, per: all}", []),
    ],
)
def test_the_newest_items_stay_counted_among_their_own(keep_recent: str, gone: list[str]) -> None:
    assert taken(keeping(keep_recent), of_tools("Bash", "Read", "Bash", "Read")) == gone


@pytest.mark.parametrize(
    ("messages", "gone"),
    [(0, ["c0", "c1", "c2"]), (1, ["c0", "c1"]), (2, ["c0", "c1"]), (3, ["c0"]), (5, [])],
)
def test_items_in_the_newest_messages_are_kept(messages: int, gone: list[str]) -> None:
    assert taken(keeping(f"{{messages: {messages}}}"), of_tools("Bash", "Read", "Bash")) == gone


@pytest.mark.parametrize(("turns", "gone"), [(0, ["c0", "d0"]), (1, ["c0"]), (2, [])])
def test_items_of_the_newest_turns_are_kept(turns: int, gone: list[str]) -> None:
    second = [user("more"), calls(("d0", "Bash")), results(("d0", LARGE))]
    assert taken(keeping(f"{{turns: {turns}}}"), [*session_of(LARGE), *second]) == gone


@pytest.mark.parametrize(
    ("tokens", "gone"),
    [("0", ["c0", "c1", "c2"]), ("1", ["c0", "c1"]), ("100", ["c0", "c1"]), ("101", ["c0"]),
     ("200", ["c0"]), ("201", []), ("10%", ["c0", "c1"])],
)  # fmt: skip
def test_the_newest_of_so_many_tokens_stay_and_none_is_cut(tokens: str, gone: list[str]) -> None:
    text = f"model: {{context_window: 999}}\n{keeping(f'{{tokens: {tokens}}}')}"
    assert taken(text, session_of(LARGE, LARGE, LARGE)) == gone


@pytest.mark.parametrize(
    ("tokens", "gone"),
    [("0", ["c0", "c1", "c2"]), ("99", ["c0", "c1", "c2"]), ("100", ["c0", "c1"]),
     ("199", ["c0", "c1"]), ("200", ["c0"]), ("299", ["c0"]), ("300", []), ("10%", ["c0", "c1"])],
)  # fmt: skip
def test_the_newest_of_at_most_so_many_tokens_stay(tokens: str, gone: list[str]) -> None:
    text = f"model: {{context_window: 1001}}\n{keeping(f'{{max_tokens: {tokens}}}')}"
    assert taken(text, session_of(LARGE, LARGE, LARGE)) == gone


def test_at_most_so_many_tokens_are_counted_within_each_tool() -> None:
    messages = of_tools("Bash", "Read", "Bash", "Read")
    assert taken(keeping("{max_tokens: 100, per: tool}"), messages) == ["c0", "c1"]
    assert taken(keeping("{max_tokens: 100, per: all}"), messages) == ["c0", "c1", "c2"]


def test_a_kept_item_names_the_tokens_up_to_it() -> None:
    decisions = planned(keeping("{max_tokens: 250}"), session_of(LARGE, LARGE, LARGE)).decisions
    reasons = [str(decision.reason) for decision in decisions if decision.item.tool]
    assert reasons[1:] == [
        "recent: 200 tokens of Bash with it, at most 250 kept",
        "recent: 100 tokens of Bash with it, at most 250 kept",
    ]


def test_tokens_are_counted_within_each_tool() -> None:
    messages = of_tools("Bash", "Read", "Bash", "Read")
    assert taken(keeping("{tokens: 1, per: tool}"), messages) == ["c0", "c1"]
    assert taken(keeping("{tokens: 1, per: all}"), messages) == ["c0", "c1", "c2"]


def test_types_are_counted_apart_and_together() -> None:
    messages = [user(LARGE), *session_of(LARGE)[1:], user("go")]
    types = "[tool_result, user_message]"
    assert taken(keeping("{items: 1, per: type}", types), messages) == ["msg_001"]
    assert taken(keeping("{items: 2, per: all}", types), messages) == ["msg_001"]
    assert taken(keeping("{items: 3, per: all}", types), messages) == []


def test_the_small_count_among_the_newest() -> None:
    text = f"min_chars: 100\n{keeping('1')}"
    assert taken(text, session_of(LARGE, "small")) == ["c0"]
    assert taken(text.replace("keep_recent: 1", "keep_recent: 2"), session_of(LARGE, "small")) == []


def test_the_decided_count_among_the_newest() -> None:
    messages = session_of(LARGE, LARGE, LARGE)
    before = adopted(keeping("1"), messages)
    again = planned(keeping("{items: 2, per: all}"), messages, ledger=before.conversation.ledger)
    assert [d.action for d in again.decisions if d.item.tool] == ["offload", "offload", "keep"]
    assert again.new == ()


def test_the_results_of_parallel_calls_stay_when_one_of_them_is_recent() -> None:
    both = [calls(("a", "Bash"), ("b", "Read")), results(("a", LARGE), ("b", LARGE))]
    messages = [user("t"), *both, calls(("c", "Read")), results(("c", LARGE))]
    assert outcomes(keeping("1"), messages) == {
        "a": "keep recent",
        "b": "keep batch_recent",
        "c": "keep recent",
    }


@pytest.mark.parametrize(
    ("counted", "gone"),
    [
        ("{turns: 1}", ["c0", "d0", "d1"]),
        ("{turns: 2}", ["c0", "d0"]),
        ("{turns: 2, of: all}", ["c0", "d0"]),
        ("{turns: 1, of: candidates}", ["c0"]),
        ("{turns: 2, of: candidates}", []),
        ("{turns: 0, of: candidates}", ["c0", "d0", "d1"]),
        ("{turns: 1, of: candidates, per: all}", ["c0", "d0"]),
        ("{turns: 1, of: candidates, per: type}", ["c0", "d0"]),
    ],
)
def test_turns_without_a_candidate_do_not_count_on_demand(counted: str, gone: list[str]) -> None:
    second = [user("more"), calls(("d0", "Bash")), results(("d0", LARGE))]
    third = [user("else"), calls(("d1", "Read")), results(("d1", LARGE))]
    messages = [*session_of(LARGE), *second, *third, user("thanks")]
    assert taken(keeping(counted), messages) == gone


@pytest.mark.parametrize(
    ("counted", "gone"),
    [
        ("{replies: 1}", ["c0", "d0", "d1"]),
        ("{replies: 2}", ["c0"]),
        ("{replies: 1, of: candidates, per: all}", ["c0"]),
        ("{replies: 2, of: candidates, per: all}", []),
        ("{replies: 0, of: candidates}", ["c0", "d0", "d1"]),
        ("{replies: 1, of: candidates}", ["c0"]),
    ],
)
def test_replies_without_a_candidate_do_not_count_on_demand(counted: str, gone: list[str]) -> None:
    both = [calls(("d0", "Bash"), ("d1", "Read")), results(("d0", LARGE), ("d1", LARGE))]
    said = {"role": "assistant", "content": "done"}
    messages = [*session_of(LARGE), *both, said, user("thanks")]
    assert taken(keeping(counted), messages) == gone


def test_a_kept_item_names_its_turn_among_those_with_a_candidate() -> None:
    messages = [*session_of(LARGE), user("thanks"), user("thanks again")]
    [decision] = planned(keeping("{turns: 1, of: candidates}"), messages).decisions[-1:]
    assert decision.reason.sentence == "in the 1st newest turn with one of Bash, 1 kept"


@pytest.mark.parametrize(
    ("do", "counted", "gone"),
    [
        ("clear", "{items: 1, per: all, batches: split}", ["a", "b"]),
        ("clear", "{items: 1, batches: split}", ["a"]),
        ("clear", "{items: 1, per: all, batches: whole}", []),
        ("clear", "{tokens: 1, per: all, batches: split}", ["a", "b"]),
        ("clear", "{messages: 2, batches: split}", []),
    ],
)
def test_a_batch_is_split_where_its_keep_recent_says_so(
    do: str, counted: str, gone: list[str]
) -> None:
    batch = [calls(("a", "Bash"), ("b", "Read"), ("c", "Bash"))]
    messages = [user("t"), *batch, results(("a", LARGE), ("b", LARGE), ("c", LARGE))]
    assert taken(keeping(counted).replace("offload, s", f"{do}, s"), messages) == gone


@pytest.mark.parametrize(
    ("bash", "read", "gone"), [("split", "whole", []), ("whole", "split", ["a"])]
)
def test_the_key_that_counts_the_recent_one_decides_whether_it_holds_the_rest(
    bash: str, read: str, gone: list[str]
) -> None:
    rules = f"Bash: {{keep_recent: {{items: 0, batches: {bash}}}}}, "
    rules += f"Read: {{keep_recent: {{items: 1, batches: {read}}}}}"
    messages = [user("t"), calls(("a", "Bash"), ("b", "Read")), results(("a", LARGE), ("b", LARGE))]
    text = f"{ITEMS}\ntools: {{{rules}}}\nsteps: [{{name: s, do: offload}}]"
    assert taken(text, messages) == gone


def test_results_in_messages_of_their_own_are_one_batch_still() -> None:
    both = [calls(("a", "Bash"), ("b", "Bash")), results(("a", LARGE)), results(("b", LARGE))]
    assert outcomes(keeping("1"), [user("t"), *both]) == {
        "a": "keep batch_recent",
        "b": "keep recent",
    }


def test_a_placeholder_that_outgrew_the_threshold_stays_as_long_as_its_batch_is_recent() -> None:
    text = """\
        items: {tool_result: {offload: true}}
        placeholder: "12345"
        steps:
          - {name: o, on: arrival, do: offload, must_shrink: false, select: {types: [tool_result]}}
          - {name: d, do: drop, select: {types: [tool_result], min_chars: 5, keep_recent: 1}}
        """
    both = [calls(("a", "Bash"), ("b", "Bash")), results(("a", "x"), ("b", "y"))]
    after = adopted(text, [user("t"), *both])
    assert after.plan(FACTS).new == ()
    read_more(after, [calls(("c", "Bash")), results(("c", "z"))])
    gone = [d.item.tool_use_id for d in after.plan(FACTS).new if d.action == "drop"]
    assert set(gone) == {"a", "b"}


def test_a_call_stays_as_long_as_its_result_is_recent() -> None:
    text = """\
        items: {tool_result: {offload: true}, tool_call: {offload: true}}
        steps:
          - name: s
            do: offload
            select: {types: [tool_call, tool_result], keep_recent: {items: 1, per: all}}
        """
    block = {"type": "tool_use", "id": "a", "name": "Write", "input": {"content": LARGE}}
    messages = [user("t"), {"role": "assistant", "content": [block]}, results(("a", LARGE))]
    codes = [str(d.reason.code) for d in planned(text, messages).decisions]
    assert codes == ["batch_recent", "recent"]


def test_an_image_stays_as_long_as_the_result_that_it_is_in_is_recent() -> None:
    text = """\
        items: {tool_result: {offload: true}, image: {offload: true}}
        steps:
          - name: s
            do: offload
            select: {types: [image, tool_result], keep_recent: {items: 1, per: all}}
        """
    content = [{"type": "text", "text": LARGE}, picture(LARGE)]
    codes = [d.reason.code for d in planned(text, session_of(content)).decisions]
    assert codes == ["batch_recent", "recent"]


def test_reasons_give_the_rank_counted_from_the_newest() -> None:
    found = planned(keeping("1"), session_of(LARGE, LARGE, LARGE))
    assert [str(d.reason) for d in found.decisions if d.item.tool] == [
        "old: 3rd newest of Bash, 1 kept",
        "old: 2nd newest of Bash, 1 kept",
        "recent: 1st newest of Bash, 1 kept",
    ]
    assert {d.rule for d in found.decisions if d.item.tool} == {"steps.s.select.keep_recent"}


def test_reasons_give_the_numbers_of_each_keep_recent_form() -> None:
    messages = [*session_of(LARGE, LARGE), user("more")]
    sentences = {
        "{messages: 3}": "in the 4th newest message, 3 kept",
        "{turns: 1}": "in the 2nd newest turn, 1 kept",
        "{tokens: 50, per: all}": "100 newer tokens of all, 50 kept",
        "{items: 1, per: type}": "2nd newest of tool_result, 1 kept",
    }
    for keep_recent, sentence in sentences.items():
        [decision, *_] = planned(keeping(keep_recent), messages).new
        assert decision.reason.sentence == sentence


class TestEphemeral:
    TEXT = """\
        items:
          tool_result: {offload: true}
          note: {match: {type: user_message}, offload: true, keep_recent: 1}
        tools:
          Browser: {keep_recent: 1}
          Read: {keep_recent: 1, min_chars: 1000}
        steps: [{name: retire, do: offload, select: {types: ["*"], ephemeral: true}}]
        """

    def test_only_items_with_a_keep_recent_are_taken(self) -> None:
        messages = of_tools("Browser", "Bash", "Browser", "Bash")
        assert outcomes(self.TEXT, messages)["c0"] == "offload old"
        assert outcomes(self.TEXT, messages)["c1"] == "keep not_ephemeral"
        assert outcomes(self.TEXT, messages)["c2"] == "keep recent"

    def test_a_type_may_set_keep_recent(self) -> None:
        assert taken(self.TEXT, [user(LARGE), user(LARGE), user("new")]) == ["msg_001", "msg_002"]

    def test_thresholds_still_apply(self) -> None:
        assert outcomes(self.TEXT, of_tools("Read", "Read"))["c0"] == "keep below_threshold"

    def test_keep_recent_of_a_step_makes_nothing_ephemeral(self) -> None:
        text = self.TEXT.replace("ephemeral: true", "ephemeral: true, keep_recent: 1")
        assert outcomes(text, of_tools("Bash", "Bash"))["c0"] == "keep not_ephemeral"


def cost_of_parallel_results(keep_recent: str, count: int, root: Path) -> int:
    """Return how many functions a session calls over so many results of parallel calls."""
    ids = [f"c{i}" for i in range(count)]
    messages = [user("go"), calls(*((i, "Bash") for i in ids)), results(*((i, LARGE) for i in ids))]
    session = Session(policy(keeping(keep_recent)), root=root, session_id=f"s{count}")
    return functions_called(lambda: session.apply([*messages, user("and now?")]))


@pytest.mark.parametrize("keep_recent", ["3", "{turns: 1}", "{items: 3, batches: split}"])
def test_parallel_results_cost_as_much_as_there_are_of_them(
    keep_recent: str, tmp_path: Path
) -> None:
    cost_of_parallel_results(keep_recent, 10, tmp_path)  # what is called once
    few, many = (cost_of_parallel_results(keep_recent, count, tmp_path) for count in (50, 200))
    assert many < 5 * few
