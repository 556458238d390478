from __future__ import annotations

import functools
import json
import os
import random
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import (
    Group,
    extractive_summary,
    ranked_units,
    summary_lines,
)
from policyctx.compaction.extractive.fitting import Unit, first_words, with_room
from policyctx.compaction.extractive.languages import cues_of
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.summary import gathered
from policyctx.messages.reading import items_of
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import counter_for
from tests.compaction.extractive.sessions import facts_of, turns
from tests.compaction.extractive.summaries import after, edited, said
from tests.conversations import call, calls, picture, results, thinking, user

Message = dict[str, Any]
FACTS = [fact for name in ("migration", "pipeline", "journey") for fact in facts_of(name)]
TOWNS = ["Ghent", "Porto", "Turku", "Lagos", "Osaka", "Quito", "Perth", "Izmir"]
CJK = re.compile(r"[\u3000-\u30ff\u3400-\u9fff\uac00-\ud7af\uff00-\uffef]")


def words(text: str) -> int:
    """Words as a person would count them, a CJK character being one."""
    return len(CJK.findall(text)) + len(CJK.sub(" ", text).split())


def settings(**keys: Any) -> Summary:
    return Summary.model_validate(keys)


@pytest.mark.parametrize("most", [1, 5, 17, 60, 200, 800])
def test_a_summary_keeps_to_its_maximum_of_words(most: int) -> None:
    history = History(list(turns(FACTS, count=12, seed=1, chars=500)))
    summary = extractive_summary(history, settings(max_words=most))
    assert 0 < words(summary) <= most


def test_a_summary_of_only_chinese_keeps_to_its_word_limit() -> None:
    told = [
        user(f"第{i}条：接口超时设为{i + 30}秒，并且不要修改第{i}号配置文件。") for i in range(200)
    ]
    summary = extractive_summary(History(told), settings(max_words=300))
    assert 150 < words(summary) <= 300


def test_user_orders_are_kept_longest_under_a_low_word_limit() -> None:
    orders = [f"Never rename the table t_{i}_{i * 7919}." for i in range(20)]
    messages = [
        *(user(order) for order in orders),
        *turns((), count=12, seed=3, chars=500),
    ]
    summary = extractive_summary(History(messages), settings(max_words=260))
    assert [order for order in orders if order not in summary] == []


# Base64, minified code, values between commas, a URL.
UNBROKEN = {
    "base64": "QmFzZTY0IGhhcyBubyBzcGFjZXM7" * 40_000,
    "code": "function(a,b){return!a||b.c(d)};" * 40_000,
    "values": ",".join(f"{i},{i * 7919}" for i in range(100_000)),
    "url": "https://a.example/?q=" + "%E4%B8%AD" * 100_000,
}


@pytest.mark.parametrize("say", [user, said])
@pytest.mark.parametrize("kind", UNBROKEN)
def test_a_text_without_spaces_is_quoted_by_its_ends(
    kind: str, say: Callable[[str], Message]
) -> None:
    text = UNBROKEN[kind]
    messages = [user("Never push to main."), say(f"Here it is: {text}\nIt is all."), user("Go on.")]
    summary = extractive_summary(History(messages), Summary())
    assert len(summary) < 1500
    assert f"Here it is: {text[:40]}" in summary
    assert "Never push to main." in summary


def test_words_without_spaces_count_by_their_length() -> None:
    lines = [user(f"{i}: {'QmFzZTY0' * 40}") for i in range(500)]
    summary = extractive_summary(History(lines), Summary())
    assert len(summary) < 32 * Summary().max_words
    assert first_words("x" * 200, 2) == "x" * 64
    assert first_words(f"ab {'x' * 200} c", 3) == "ab"  # a part could look like another word


def test_a_list_that_the_user_gives_in_an_element_is_quoted() -> None:
    paths = [f"src/components/part_{i}.tsx" for i in range(120)]
    told = "\n".join(["<task>Never touch these files:", *paths, "</task>"])
    summary = extractive_summary(History([user(told), said("Yes."), user("Go on.")]), Summary())
    assert sum(path in summary for path in paths) >= 20


@pytest.mark.parametrize("say", [user, said])
@pytest.mark.parametrize("line", ["{:064x}", "https://a.example/{}?at=1", '{{"id":{},"value":1}}'])
def test_a_table_of_lines_without_spaces_is_one_line(
    line: str, say: Callable[[str], Message]
) -> None:
    table = "\n".join(line.format(i) for i in range(2000))
    messages = [user("Never push to main."), say(f"Here it is:\n{table}\nDone."), user("Go on.")]
    summary = extractive_summary(History(messages), Summary())
    assert len(summary) < 1000
    assert re.search(r", 200[01] lines, ", summary)


def test_a_few_long_lines_of_the_agent_are_quoted() -> None:
    paths = [f"src/components/part_{i}.tsx" for i in range(20)]
    summary = extractive_summary(History([user("Go."), said("\n".join(paths))]), Summary())
    assert all(path in summary for path in paths)


def test_many_lines_of_chinese_are_quoted() -> None:
    lines = [f"第{i}步把超时的上限改为三十秒并且重新启动服务" for i in range(40)]
    summary = extractive_summary(History([user("开始"), said("\n".join(lines))]), Summary())
    assert all(line in summary for line in lines)


COUNTER = counter_for("o200k_base")
SIZES: dict[str, Callable[[str], int]] = {
    "max_words": words,
    "max_tokens": COUNTER.count,
    "max_chars": len,
}


@functools.cache
def long_session() -> History:
    said = [user(f"第{i}批：不要动第{i * 31}号表，超时设为{i}秒。") for i in range(20)]
    long = "Please note that " + ", ".join(f"part {i} goes to rack r-{i * 7}" for i in range(40))
    # What the agent says before its calls is there only where room is plentiful.
    silent = [
        {**one, "content": [block for block in one["content"] if block["type"] != "text"]}
        if isinstance(one["content"], list)
        else one
        for one in turns(FACTS, count=12, seed=1, chars=300)
    ]
    return History([*silent, *said, user(f"{long}.")])


@functools.cache
def order_of_long_session() -> dict[int, Unit]:
    return {unit.place: unit for unit in ranked_units(long_session())}


# Of a line, what depends on the lines before it.
_MARKS = re.compile(r"^[- ]*(?:\[agent\] |… )?")


@pytest.mark.slow
@given(st.sampled_from(sorted(SIZES)), st.integers(1, 3_000), st.integers(0, 600))
def test_a_larger_limit_keeps_what_a_smaller_one_kept(key: str, most: int, more: int) -> None:
    kept = []
    for limit in (most, most + more):
        lines = summary_lines(long_session(), settings(**{"max_words": 100_000, key: limit}))
        assert 0 < SIZES[key]("\n".join(line.text for line in lines)) <= limit
        kept.append({line.unit.place: line for line in lines if line.unit is not None})
    smaller, larger = kept
    assert smaller.keys() <= larger.keys()
    order = order_of_long_session()
    for lines_by_place in kept:
        shortened = [
            at
            for at, line in lines_by_place.items()
            if _MARKS.sub("", line.text) != _MARKS.sub("", order[at].text)
        ]
        last = max(lines_by_place, key=list(order).index)
        assert shortened in ([], [last])


def _many_orders(count: int) -> list[str]:
    kinds = ("Never push to main{}.", "Bob must see it {}.", "Shall it be {}?", "It is late.")
    more = ("Always, and never later, use {}.", "please", "The port is {}.", "请不要改第{}号表。")
    chance = random.Random(count)  # noqa: S311 - no secret
    return [chance.choice((*kinds, *more)).format(chance.randint(1, 99)) for _ in range(count)]


MANY_ORDERS: dict[str, Callable[[], list[Message]]] = {
    "in one message": lambda: [user("\n".join(_many_orders(2_500)))],
    "in a message each": lambda: [
        message
        for i, text in enumerate(_many_orders(1_500))
        for message in (user(f"{text} It is {i}."), said(f"Noted {i}."))
    ],
    "under a lead": lambda: [
        user("\n- ".join(["Never do any of this, in this week or the next:", *_many_orders(2_500)]))
    ],
    "under leads": lambda: [
        user("\n- ".join(["So always think of this:", *_many_orders(50)])) for _ in range(50)
    ],
}


@pytest.mark.parametrize("where", MANY_ORDERS)
def test_of_many_orders_a_summary_keeps_the_first_of_the_whole_order(where: str) -> None:
    """What no summary of this length has room for is not held in memory."""
    history = History(MANY_ORDERS[where]())
    order = ranked_units(history)
    for most in (40, 300):
        lines = summary_lines(history, settings(max_words=most))
        kept = [line.unit.text for line in lines if line.unit is not None]
        first = sorted(order[: len(kept)], key=lambda unit: unit.place)
        assert kept == [unit.text for unit in first]
        assert lines[-1].unit is not None


def test_the_smallest_of_several_limits_counts() -> None:
    history = long_session()
    tokens = sum(COUNTER.count(item.counted) for item in items_of(history.messages))
    for keys, most in (
        ({"max_tokens": 300, "max_chars": 100_000, "max_share": "90%"}, 300),
        ({"max_tokens": 5_000, "max_share": "2%"}, tokens // 50),
    ):
        assert most * 0.8 < COUNTER.count(extractive_summary(history, settings(**keys))) <= most
    assert len(extractive_summary(history, settings(max_chars=500))) <= 500


def test_an_earlier_summary_counts_whole_in_a_share() -> None:
    share = settings(max_share="10%")
    first = extractive_summary(long_session(), share)
    again = extractive_summary(after(first, [user("Also back up /srv/keys.")]), share)
    assert COUNTER.count(again) >= 0.9 * COUNTER.count(first)
    assert extractive_summary(after(first, []), share) == first


def test_lines_of_the_user_that_do_not_fit_are_named_with_their_archive() -> None:
    told = [user(f"Never rename table t_{i}, it is used in report {i * 3}.") for i in range(50)]
    limit = settings(max_words=100)
    first = extractive_summary(History(told, archive="compaction-001"), limit)
    kept = first.count("- Never rename")
    assert 0 < kept < 50
    assert first.endswith("Left out: lines of the user; archive compaction-001.")
    assert words(first) <= 100
    assert extractive_summary(after(first, []), limit) == first
    more = [user(f"Never drop column c_{i}.") for i in range(10)]
    second = extractive_summary(replace(after(first, more), archive="compaction-002"), limit)
    left_out = "Left out: lines of the user; archives compaction-001, compaction-002."
    assert second.endswith(left_out)


def test_of_an_order_without_room_for_all_both_ends_are_kept() -> None:
    words = " ".join(f"hall{i}" for i in range(60))
    order = f"Write the plan for {words}, then stop and report."
    [line] = extractive_summary(History([user(order)]), Summary(max_words=60)).split("\n")[2:3]
    assert line.startswith("- Write the plan for hall0 ")
    assert " … " in line
    assert line.endswith(", then stop and report.")


def test_questions_are_removed_before_orders() -> None:
    questions = [f"Could you explain to me what part {i} of this does, roughly?" for i in range(60)]
    orders = [f"Never rename the table t_{i}_{i * 7919}." for i in range(30)]
    told = [user(text) for pair in zip(questions, orders * 2, strict=True) for text in pair]
    summary = extractive_summary(History(told), settings(max_words=400))
    assert [order for order in orders if order not in summary] == []
    assert [question for question in questions if question not in summary]


def test_exact_values_are_kept_before_text_that_resembles_orders() -> None:
    talk = [f"Bert always wants to go on about {a} and {b}." for a in TOWNS for b in TOWNS]
    facts = [f"Person {i} now has desk {i * 7919}." for i in range(1, 9)]
    messages = [
        message
        for i, fact in enumerate(facts)
        for message in (user(fact), *(user(one) for one in talk[8 * i : 8 * i + 8]))
    ]
    summary = extractive_summary(History(messages), settings(max_words=400))
    assert [fact for fact in facts if fact not in summary] == []


def test_a_summary_grows_only_by_new_content() -> None:
    summary = extractive_summary(History(list(turns(FACTS, count=12, seed=1))), Summary())
    assert extractive_summary(after(summary, []), Summary()) == summary
    grown = extractive_summary(after(summary, [user("Also back up /srv/keys.")]), Summary())
    assert words(grown) - words(summary) < 30


def test_the_same_history_gives_the_same_summary() -> None:
    history = History(list(turns(FACTS, count=12, seed=1, chars=500)))
    assert extractive_summary(history, Summary()) == extractive_summary(history, Summary())


SUMMARISED = """
import json, sys
from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.assembly import History
from policyctx.policy.models.compaction import Summary
print(ascii(extractive_summary(History(json.load(sys.stdin)), Summary())))
"""


@pytest.mark.slow
def test_another_process_gives_the_same_summary() -> None:
    told = [f"Use {i} s for {'reads' if i % 2 else 'writes'}." for i in range(10, 24)]
    lots = [f"Lot A-{i} holds the rest." for i in range(100, 160)]
    run = [call("c1", "Bash", {"command": "list"}), results(("c1", "\n".join(lots)))]
    spoken = user("Check " + ", ".join(f"A-{i}" for i in range(100, 160)) + ".")
    changed = user("Actually use 30 s for reads and writes.")
    more = turns((), count=6, seed=1)
    messages = [user(" ".join(told)), *run, spoken, *more, changed]
    texts = [
        subprocess.run(
            [sys.executable, "-c", SUMMARISED],
            input=json.dumps(messages),
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2", "3")
    ]
    assert len(set(texts)) == 1


def test_text_that_a_compaction_wrote_is_not_summarised() -> None:
    restored = user("[Restored after compact] a.py:\nsecret_value = 90210")
    messages = [user("Go on."), restored, {"role": "assistant", "content": "Noted 90210."}]
    history = History(messages, written=frozenset((1, 2)))
    assert "90210" not in extractive_summary(history, Summary())


def test_a_summary_by_a_model_is_carried_over() -> None:
    told = "The user wants Go 1.22. Never use cgo. Open: wire the /healthz route to port 7070."
    messages = [user(told), user("Continue with the router.")]
    history = History(messages, {0: told})
    summary = extractive_summary(history, Summary())
    again = extractive_summary(after(summary, [user("Add a test.")]), Summary())
    assert [part for part in ("Go 1.22", "Never use cgo", "7070") if part not in again] == []


def test_two_earlier_summaries_become_one() -> None:
    one = extractive_summary(History([user("Use tabs."), *edited("c1", "a.py")]), Summary())
    two = extractive_summary(History([user("Port 7071."), *edited("c1", "a.py")]), Summary())
    both = extractive_summary(History([user(one), user(two)], {0: one, 1: two}), Summary())
    assert "- a.py: edited" in both
    assert both.index("Use tabs.") < both.index("Port 7071.")


HISTORIES: dict[str, list[Message]] = {
    "nothing": [],
    "null content": [{"role": "user", "content": None}],
    "no content": [{"role": "assistant"}],
    "empty text": [user("")],
    "empty blocks": [{"role": "user", "content": []}],
    "only images": [{"role": "user", "content": [picture(), picture()]}],
    "only thinking": [{"role": "assistant", "content": [thinking()]}],
    "lone surrogates": [user("keep \ud83d the \udc00 value 4711")],
    "unknown blocks": [{"role": "user", "content": [{"type": "hologram", "beam": 3}]}],
    "an id called twice": [calls(("c", "A"), ("c", "B")), results(("c", "1"), ("c", "2"))],
    "an unknown result": [results(("zzz", "orphan"))],
    "an unanswered call": [calls(("c", "A"))],
    "a call without a name": [
        {"role": "assistant", "tool_calls": [{"id": "c", "function": {"arguments": "{bad"}}]}
    ],
    "a result with images": [calls(("c", "A")), results(("c", [picture()]))],
    "only system messages": [{"role": "system", "content": "Be brief."}],
    "control characters": [user("a\x00b\x1bc \u2028 d\r\ne 4711")],
}


@pytest.mark.parametrize("messages", HISTORIES.values(), ids=HISTORIES.keys())
def test_odd_histories_have_a_summary_that_reads_back(messages: list[Message]) -> None:
    summary = extractive_summary(History(messages), Summary())
    assert summary.startswith("## ")
    assert extractive_summary(after(summary, []), Summary()) == summary


@pytest.mark.slow
@pytest.mark.parametrize("unit", ["x", "word ", "字", "a.b/c ", "<a-b>", "1. ", '"', "- [ ] y\n"])
def test_one_text_of_a_megabyte_is_cut_down(unit: str) -> None:
    history = History([user("Mind port 4711."), user(unit * (1_000_000 // len(unit)))])
    summary = extractive_summary(history, Summary())
    assert "Mind port 4711." in summary
    assert words(summary) <= Summary().max_words
    assert len(summary) < 50_000


def test_quotes_without_room_count_where_all_else_of_their_message_was_said_before() -> None:
    texts = [(f"Hall {i} has {i} pumps.", "Never open lid 4.") for i in range(1_000)]
    quotes = [Quote(text, i, user=True) for i, both in enumerate(texts) for text in both]
    found = with_room(quotes, 400, cues_of())
    assert len(found) < 300
    assert sum(one.gap or 1 for one in found) == len(quotes)


def test_the_places_of_quotes_are_those_of_a_summary_with_room_for_all() -> None:
    texts = [
        f"Hall {i} has pumps{' and valves' * 20}.\n\nNever open lid {i // 40}."
        for i in range(1_000)
    ]
    lids = "\n".join(f"- Never open lid {i}." for i in range(25))
    messages = [user("A summary."), *(user(text) for text in texts)]
    history = History(messages, {0: f"{Group.USER}\n{lids}"})
    whole, found = (
        gathered(history, cues_of(), room=room).said[Group.USER] for room in (None, 400)
    )
    assert len(found) < 300 < len(whole)
    assert sum(one.gap or 1 for one in found) == sum(one.gap or 1 for one in whole)
