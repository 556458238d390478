from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from policyctx.replay.common import Common
from policyctx.replay.regret.strings import GRAM
from policyctx.replay.simulated import SimulatedSession
from policyctx.replay.simulation import simulated
from tests.conversations import call, results, user
from tests.growing import grows_at_most
from tests.policies import policy
from tests.replay.sessions import recording, turn_by_turn

CLEARS_ALL_BUT_ONE = policy("""
    items: {tool_result: {offload: true}}
    steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
    placeholder: "[gone: {tool_name} {tokens}]"
""")
CLEARS_ALL_BUT_THREE = policy("""
    items: {tool_result: {offload: true}}
    steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 3}}]
    placeholder: "[gone]"
""")


def talk(*turns: tuple[dict[str, Any], str], end: str = "done") -> list[dict[str, Any]]:
    """A task, then a call with its result for each turn, and an answer; ids are r0, r1, …"""
    messages = [user("the task")]
    for i, (arguments, text) in enumerate(turns):
        messages += [call(f"r{i}", "look", arguments), results((f"r{i}", text))]
    return [*messages, {"role": "assistant", "content": end}]


def replayed(*turns: tuple[dict[str, Any], str], end: str = "done") -> SimulatedSession:
    return simulated(turn_by_turn(talk(*turns, end=end)), CLEARS_ALL_BUT_ONE)


WORDS = "nothing much to see in these few words " * 3


def test_an_answer_that_only_a_removed_result_held_is_regretted() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS} ticket QX-48213-B"), ({"at": "b"}, WORDS), end="see QX-48213-B"
    )
    [regret] = session.regrets
    assert regret.removal.item_id == "r0"
    [need] = regret.needs
    assert (need.kind, need.call, need.item_id) == ("used", 3, "msg_006")
    assert need.found == ("QX-48213-B",)


def test_the_input_of_a_later_call_is_looked_at_as_well() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS} src/core/tax_rates.py"),
        ({"at": "b"}, WORDS),
        ({"at": "src/core/tax_rates.py"}, "found"),
    )
    [regret] = session.regrets
    [need] = regret.needs
    assert (need.kind, need.call, need.item_id) == ("used", 3, "r2")
    assert need.found == ("src/core/tax_rates.py",)


def test_a_number_in_an_input_counts_like_a_string() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS} 7348213"), ({"at": "b"}, WORDS), ({"id": 7348213}, "found")
    )
    assert [regret.needs[0].found for regret in session.regrets] == [("7348213",)]


def test_the_same_call_made_again_is_regretted() -> None:
    session = replayed(({"at": "a"}, WORDS), ({"at": "b"}, WORDS), ({"at": "a"}, WORDS))
    [regret] = session.regrets
    [need] = regret.needs
    assert (need.kind, need.call, need.item_id) == ("asked again", 3, "r2")
    assert need.found == ('{"at":"a"}',)
    assert need.tokens == regret.tokens == regret.removal.tokens


def test_calls_that_differ_only_in_a_number_are_different_calls() -> None:
    session = replayed(({"page": 1}, WORDS), ({"at": "b"}, WORDS), ({"page": 2}, "more"))
    assert session.regrets == ()


def test_a_use_before_the_removal_is_not_a_need() -> None:
    session = simulated(
        turn_by_turn(
            talk(
                ({"at": "a"}, f"{WORDS} QX-48213-B"),
                ({"at": "QX-48213-B"}, WORDS),
                *[({"at": "c"}, WORDS)] * 3,
            )
        ),
        CLEARS_ALL_BUT_THREE,
    )
    assert "r0" in {removal.item_id for removal in session.removals}
    assert [r for r in session.regrets if r.removal.item_id == "r0"] == []


def test_strings_in_the_placeholder_are_not_missed() -> None:
    names = policy("""
        items: {tool_result: {offload: true}}
        steps: [{name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}]
        placeholder: {text: "[gone] {head}", head: {lines: 1}}
    """)
    turns = (({"at": "a"}, f"QX-48213-B\n{WORDS}"), ({"at": "b"}, WORDS))
    session = simulated(turn_by_turn(talk(*turns, end="see QX-48213-B")), names)
    assert session.removals[0].item_id == "r0"
    assert session.regrets == ()


def test_strings_in_the_user_message_are_not_missed() -> None:
    messages = talk(({"at": "a"}, f"{WORDS} QX-48213-B"), ({"at": "b"}, WORDS), end="QX-48213-B")
    messages[0] = user("what is QX-48213-B")
    assert simulated(turn_by_turn(messages), CLEARS_ALL_BUT_ONE).regrets == ()


def test_strings_in_the_system_prompt_and_tools_are_not_missed() -> None:
    turns = (({"at": "a"}, f"{WORDS} QX-48213-B of src/core/tax_rates.py"), ({"at": "b"}, WORDS))
    recorded = turn_by_turn(talk(*turns, end="QX-48213-B, src/core/tax_rates.py"))
    tools = [{"name": "look", "description": "Looks at src/core/tax_rates.py."}]
    calls = tuple(replace(c, system="Mind QX-48213-B.", tools=tools) for c in recorded.calls)
    assert simulated(replace(recorded, calls=calls), CLEARS_ALL_BUT_ONE).regrets == ()
    assert simulated(recorded, CLEARS_ALL_BUT_ONE).regrets != ()


def test_each_reply_that_needs_an_item_is_shown() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS} QX-48213-B src/core/tax_rates.py"),
        ({"at": "b"}, WORDS),
        ({"at": "QX-48213-B"}, WORDS),
        ({"at": "src/core/tax_rates.py"}, WORDS),
    )
    [regret] = session.regrets
    assert [need.call for need in regret.needs] == [3, 4]


def test_a_string_is_missed_only_at_its_first_use() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS} QX-48213-B"),
        ({"at": "b"}, WORDS),
        ({"at": "QX-48213-B"}, WORDS),
        ({"note": "QX-48213-B"}, WORDS),
    )
    assert [need.call for regret in session.regrets for need in regret.needs] == [3]


@pytest.mark.parametrize("names", ["ab", "abcde"])
def test_of_items_that_held_a_string_the_newest_is_regretted(names: str) -> None:
    turns = [({"at": name}, f"{WORDS} QX-48213-B") for name in names]
    session = replayed(*turns, ({"at": "f"}, WORDS), end="see QX-48213-B")
    assert [regret.removal.item_id for regret in session.regrets] == [f"r{len(names) - 1}"]


@pytest.mark.parametrize(
    ("older", "is_regretted"),
    [
        ("QX-48213-B and RY-70511-C", True),
        ("QX-48213-B of src/core/tax_rates.py", True),
        ("QX-48213-B", False),
        ("src/core/tax_rates.py", False),
    ],
)
def test_an_older_item_is_regretted_only_if_it_held_two_of_the_strings(
    older: str, is_regretted: bool
) -> None:
    held = "QX-48213-B and RY-70511-C are of src/core/tax_rates.py"
    turns = [({"at": "a"}, f"{WORDS} {older}")]
    turns += [({"at": "b"}, f"{held}\n{WORDS}"), ({"at": "c"}, WORDS)]
    session = replayed(*turns, end=held)
    costs = {regret.removal.item_id: regret.tokens > 0 for regret in session.regrets}
    assert costs == ({"r0": False, "r1": True} if is_regretted else {"r1": True})


def test_a_string_that_is_in_view_by_its_parts_makes_no_older_item_regretted() -> None:
    text = f"QX-48213-B of src/core/tax_rates.py\n{WORDS}"
    turns = [({"at": name}, text) for name in "ab"]
    seen = {"at": "c"}, f"{WORDS} src: core: tax_rates"
    session = replayed(*turns, seen, end="QX-48213-B is of src/core/tax_rates.py")
    assert [regret.removal.item_id for regret in session.regrets] == ["r1"]


def test_an_item_removed_before_the_recording_began_anew_is_missed_after_it() -> None:
    first = talk(({"at": "a"}, f"{WORDS} QX-48213-B"), ({"at": "b"}, WORDS))[:-1]
    again = [*first, call("r9", "look", {"at": "QX-48213-B"})]
    recorded = recording(first, first, after=again[len(first) :], anew=[1])
    session = simulated(recorded, CLEARS_ALL_BUT_ONE)
    [regret] = session.regrets
    assert (regret.removal.call, regret.removal.item_id) == (1, "r0")


@pytest.mark.parametrize("lines", [1, 500])
def test_regretted_tokens_are_those_of_the_lines_to_be_read_again(lines: int) -> None:
    text = "a line of other words\n" * lines + "the ticket is QX-48213-B\n" + "and others\n" * lines
    session = replayed(({"at": "a"}, text), ({"at": "b"}, WORDS), end="QX-48213-B")
    [regret] = session.regrets
    [found] = regret.needs[0].ranges
    assert (found.first, found.last) == (lines + 1, lines + 1)
    assert text[found.start : found.end] == "the ticket is QX-48213-B"
    assert 0 < session.regretted_tokens < 20
    assert sum(session.regretted_items.values()) == regret.removal.tokens >= 8 * lines


def test_lines_that_an_earlier_need_has_are_counted_once() -> None:
    session = replayed(
        ({"at": "a"}, f"{WORDS} QX-48213-B src/core/tax_rates.py"),
        ({"at": "b"}, WORDS),
        ({"at": "QX-48213-B"}, WORDS),
        ({"at": "src/core/tax_rates.py"}, WORDS),
    )
    first, second = session.regrets[0].needs
    assert first.ranges == second.ranges
    assert first.tokens == session.regretted_tokens > second.tokens == 0


def test_an_item_is_regretted_once_for_each_time_that_it_left() -> None:
    summarises = policy("""
        items: {tool_result: {offload: true}}
        compaction: {keep_recent: {messages: 2}}
        placeholder: "[gone]"
        steps:
          - {name: clear, do: clear, select: {types: [tool_result], keep_recent: 1}}
          - {name: sum, do: compact, when: {turns: {at_least: 2}}}
    """)
    messages = talk(
        ({"at": "a"}, f"{WORDS} QX-48213-B src/core/tax_rates.py"),
        ({"at": "b"}, WORDS),
        ({"at": "QX-48213-B"}, WORDS),
    )
    messages += [user("and now"), call("r7", "look", {"at": "src/core/tax_rates.py"})]
    session = simulated(turn_by_turn(messages), summarises)
    of_item = [regret for regret in session.regrets if regret.removal.item_id == "r0"]
    assert [regret.removal.step for regret in of_item] == ["clear", "sum"]
    assert [[need.call for need in regret.needs] for regret in of_item] == [[3], [5]]
    assert len(session.regretted_items) == len({r.removal.position for r in session.regrets})


def test_code_that_an_edit_copies_from_a_removed_file_is_used() -> None:
    code = (
        "def reconcile_all(ledger, limit):\n"
        "    voucher = ledger.pop(limit, None)\n"
        "    return throttle(voucher, by=limit)\n"
    )
    numbered = "".join(f"{i:6}\t{line}\n" for i, line in enumerate(code.splitlines(), 40))
    edit = {"path": "a.py", "old_string": code, "new_string": "pass"}
    session = replayed(
        ({"path": "a.py"}, f"1 import os\n{numbered}90 end"), ({"at": "b"}, WORDS), (edit, "done")
    )
    [regret] = session.regrets
    [found] = regret.needs[0].ranges
    assert (regret.removal.item_id, regret.needs[0].kind) == ("r0", "used")
    assert (found.first, found.last) == (2, 4)


def test_what_stands_beside_a_lost_string_in_both_texts_is_read_again_with_it() -> None:
    text = f"tax_rates.py\n{'other words on a line' * 30}\n{'and' * 150}\nthe ticket QX-48213-B"
    again = {"at": "b"}, f"{WORDS} tax_rates.py"
    session = replayed(({"at": "a"}, text), again, end="QX-48213-B is of tax_rates.py")
    [need] = session.regrets[0].needs
    assert need.found == ("QX-48213-B",)
    assert [one.first for one in need.ranges] == [1]
    alone = replayed(({"at": "a"}, text), again, end="see QX-48213-B").regrets[0].needs[0]
    assert [one.first for one in alone.ranges] == [4]


def test_what_a_blank_line_separates_from_a_lost_string_is_not_read_again_with_it() -> None:
    text = "of src/core/tax_rates.py\n\nthe ticket QX-48213-B\nof src/core/voucher_list.py"
    named = {"at": "b"}, f"{WORDS} src/core/tax_rates.py src/core/voucher_list.py"
    end = "QX-48213-B is of src/core/tax_rates.py and src/core/voucher_list.py"
    [need] = replayed(({"at": "a"}, text), named, end=end).regrets[0].needs
    assert [(one.first, one.last) for one in need.ranges] == [(3, 4)]


def test_what_several_removed_items_say_is_counted_for_the_newest_of_them() -> None:
    names = "QX-48213-B", "ZK-99173-C"
    older_text, newer_text = (f"in src/core/tax_rates.py\nthe ticket {name}" for name in names)
    turns = ({"at": "a"}, older_text), ({"at": "b"}, newer_text), ({"at": "c"}, WORDS)
    session = replayed(*turns, end=f"{' and '.join(names)} are of src/core/tax_rates.py")
    older, newer = (regret.needs[0] for regret in session.regrets)
    assert older.ranges[0].first == newer.ranges[0].first == 1
    assert older.tokens < newer.tokens


def test_a_long_text_without_spaces_takes_no_string_a_character() -> None:
    text = "".join(chr(0x4E00 + i * i % 20_000) for i in range(50_000))
    result = "\n".join(text[i : i + 60] for i in range(0, len(text), 60))
    recorded = turn_by_turn(talk(({"at": "a"}, result), ({"at": "b"}, WORDS), end=text[600:612]))
    common = Common(recorded)
    simulated(recorded, policy("steps: []"), common=common)
    tracemalloc.start()
    session = simulated(recorded, CLEARS_ALL_BUT_ONE, common=common)
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    [need] = [need for one in session.regrets for need in one.needs]
    assert need.found == tuple(text[i : i + GRAM] for i in range(600, 603))
    assert kept < 20 * len(text)


SEARCHED = {"pattern": "settle", "path": "src/ledger.py"}


@pytest.mark.parametrize(
    "made",
    [
        lambda size: "a" * size,
        lambda size: "1-" * (size // 2),
        lambda size: "/" * size + " x",
        lambda size: "\n" * size,
        lambda size: ("Some " + "words " * 30 + "\n") * (size // 186),
    ],
    ids=["word", "numbers", "slashes", "lines", "prose"],
)
def test_no_text_takes_more_than_linear_time(made: Callable[[int], str]) -> None:
    def replay_of(size: int) -> Callable[[], object]:
        text = made(size)
        recorded = turn_by_turn(
            talk(
                (SEARCHED, f"637: def settle\n{WORDS}"),
                (SEARCHED, text),
                ({"path": text}, WORDS),
                ({"command": f"cat a.py; {text}"}, text),
                (SEARCHED, text),
                end=text,
            )
        )
        common = Common(recorded)
        simulated(recorded, policy("steps: []"), common=common)
        return partial(simulated, recorded, CLEARS_ALL_BUT_ONE, common=common)

    assert grows_at_most(replay_of, 5_000)
