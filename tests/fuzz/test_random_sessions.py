"""The short run of the random sessions; the long one is `python -m tests.fuzz`."""

from __future__ import annotations

from typing import Any

import pytest

from tests.drawing import in_profile
from tests.fuzz.conversations import SHAPES, SHAPES_OF_MESSAGES
from tests.fuzz.histories import Report, run_session
from tests.fuzz.rules import Rules, broken

_SEEDS = range(in_profile(10, 300))
# Seeds that once gave an invalid list: a result whose call was dropped, an assistant message at
# the beginning or at the end, and a list of which nothing was left. The last five gave an error
# for a valid list, and four lists that differ after a restart.
_FOUND = (3, 46, 88, 137, 193, 1502, 2328, 3005591, 2020756, 3031791, 2061473, 2090856)
# Seeds of Responses items that parted an easy message from its reasoning, lost the first of two
# calls with one id, or lost a call behind reasoning.
_FOUND_IN_ITEMS = (3000010, 3000065, 3000126, 3000151, 3000290, 3000428)
# Seeds of a decision on an image whose result was gone, of an equal message that came back as
# another object after a compaction, and of a list that ends with an item of an unknown type.
_FOUND_LATER = (3602098, 3702197, 3706734)
# Seeds of sessions that differed after a restart: compactions of edited lists, drops on arrival,
# lists cut off behind an image or reasoning, drops held back, a list with three compactions, and
# words that began a list without its beginning, placeholders alike behind a summary, and lists that
# end early.
_FOUND_RESTARTED = (
    170002360, 170006812, 180007372, 180009755, 190001986, 190007739, 200003350, 200003709,
    240002263, 250000754, 742002023, 743002463, 744004876, 900000845,
)  # fmt: skip


@pytest.mark.slow
def test_random_sessions_stay_valid_and_lose_nothing() -> None:
    report = Report()
    for seed in (*_SEEDS, *_FOUND):
        run_session(seed, report, SHAPES_OF_MESSAGES, hosted=False)
    for seed in (*_SEEDS, *_FOUND_IN_ITEMS, *_FOUND_LATER):
        run_session(seed, report, SHAPES, hosted=False)
    assert not report.failures, str(report)
    assert report.applies > 5 * len(_SEEDS)


@pytest.mark.slow
def test_random_sessions_of_all_shapes_with_tools_of_the_provider_stay_valid() -> None:
    report = Report()
    for seed in (*_SEEDS, *_FOUND_RESTARTED):
        run_session(seed, report)
    assert not report.failures, str(report)


@pytest.mark.slow
def test_random_sessions_with_the_newest_words_stay_valid() -> None:
    report = Report()
    for seed in _SEEDS:
        run_session(seed, report, newest=True)
    assert not report.failures, str(report)


def test_the_check_of_the_random_sessions_finds_invalid_lists() -> None:
    thinking = {"type": "thinking", "thinking": "hm", "signature": "EqoB"}
    lone = [{"role": "assistant", "content": [thinking]}]
    orphan = [{"type": "tool_result", "tool_use_id": "a", "content": "x"}]
    assert broken(lone).keys() >= {"list begins with an assistant message", "trailing thinking"}
    assert +broken([{"role": "user", "content": orphan}]) == {
        "orphan result": 1,
        "result without its call": 1,
    }
    assert +broken([{"role": "system", "content": "be brief"}]) == {"no message left": 1}


def test_the_check_of_the_random_sessions_finds_lost_signatures() -> None:
    def of_gemini(*calls: str) -> dict[str, Any]:
        made = [
            {"functionCall": {"id": one.strip("*"), "name": "read"}}
            | ({"thoughtSignature": "c2ln"} if "*" in one else {})
            for one in calls
        ]
        return {"role": "model", "parts": made}

    def of_chat(*calls: str) -> dict[str, Any]:
        made = [
            {"id": one.strip("*"), "type": "function", "function": {"name": "read"}}
            | ({"provider_specific_fields": {"thought_signature": "c"}} if "*" in one else {})
            for one in calls
        ]
        return {"role": "assistant", "content": None, "tool_calls": made}

    for of in (of_gemini, of_chat):
        for left, lost in ((("b", "c"), 2), (("a*", "c"), 0), (("c",), 1), ((), 0)):
            assert Rules().lost_signatures([of("a*", "b", "c")], [of(*left)]) == lost
        assert Rules().lost_signatures([of("a", "b*")], [of("a")]) == 0


def test_the_check_of_the_random_sessions_finds_parted_pairs() -> None:
    go = {"role": "user", "content": "go"}
    served = {"type": "server_tool_use", "id": "a", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "a", "content": []}
    lone = [go, {"role": "assistant", "content": [served]}, go]
    assert +broken(lone) == {
        "call of the provider without its result": 1,
        "id of calls without any result behind them": 1,
    }
    assert +broken([go, {"role": "assistant", "content": [found]}, go]) == {
        "result without its call": 1
    }
    late = {"type": "function_call_output", "call_id": "a", "output": "found"}
    assert +broken([go, late]) == {"orphan result": 1, "result without its call": 1}
