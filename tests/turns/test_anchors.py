"""Where cache breakpoints go: the anchors of a list, the four slots, and their lifetimes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.definitions.items import Ttl
from policyctx.planning.planner import Planner
from policyctx.turns.breakpoints import (
    Anchors,
    Breakpoint,
    BreakpointPlace,
    Part,
    Removable,
    anchors,
    breakpoints,
)
from tests.conversations import Message, call, calls, results, session_of, thinking, user
from tests.planning.plans import adopt, planner, read_more

RETIRE = """
min_tokens: 20
items: {tool_result: {offload: true}}
steps: [{name: s, do: offload, select: {types: [tool_result], keep_recent: 2}}]
"""
LARGE, SMALL = "x" * 400, "x" * 40


def back_over(*unmarkable: int) -> Callable[[int], int | None]:
    """Return a `back` for a list in which these blocks may have no marker."""

    def back(block: int) -> int | None:
        found = (i for i in range(block, -1, -1) if i not in unmarkable)
        return next(found, None)

    return back


def removable(found: Planner) -> Removable:
    return Removable(found.conversation, found.candidates.values())


def first(text: str, messages: Sequence[Message]) -> int | None:
    """Return the first item that an edit to come could change, before any edit."""
    return removable(planner(text, messages)).first()


def test_the_anchor_is_before_the_first_removable_block() -> None:
    assert anchors(10, 4, back_over()) == Anchors(anchor=3, last=9)
    assert anchors(10, None, back_over()) == Anchors(anchor=9, last=9)
    assert anchors(10, 0, back_over()) == Anchors(anchor=None, last=9)
    assert anchors(0, None, back_over()) == Anchors(anchor=None, last=None)


def test_anchors_step_back_from_a_block_that_may_have_no_marker() -> None:
    assert anchors(10, 4, back_over(3, 9, 8)) == Anchors(anchor=2, last=7)
    assert anchors(2, 1, back_over(0, 1)) == Anchors(anchor=None, last=None)


def test_a_request_has_the_end_of_the_system_prompt_both_anchors_and_the_last_block() -> None:
    found = breakpoints(Anchors(7, 9, old=3, before=6), "5m", system=BreakpointPlace(end=1))
    assert found == (
        Breakpoint("system", 1, "5m", ("system",)),
        Breakpoint("messages", 3, "5m", ("old",)),
        Breakpoint("messages", 7, "5m", ("anchor",)),
        Breakpoint("messages", 9, "5m", ("last",)),
    )


def test_a_free_slot_goes_to_the_end_of_the_request_before() -> None:
    found = breakpoints(Anchors(3, 9, old=3, before=6), "5m", system=BreakpointPlace(end=0))
    assert [(each.place, each.why) for each in found] == [
        (0, ("system",)),
        (3, ("anchor", "old")),
        (6, ("before",)),
        (9, ("last",)),
    ]


def test_a_free_slot_goes_to_the_tools_if_there_was_no_request_before() -> None:
    found = breakpoints(
        Anchors(3, 9), "5m", system=BreakpointPlace(end=0), tools=BreakpointPlace(end=4)
    )
    assert [(each.part, each.place) for each in found] == [
        ("tools", 4),
        ("system", 0),
        ("messages", 3),
        ("messages", 9),
    ]


def test_a_slot_is_left_for_a_system_prompt_that_is_not_known() -> None:
    found = breakpoints(Anchors(7, 9, old=3, before=6), "5m")
    assert [each.place for each in found] == [3, 7, 9]
    found = breakpoints(Anchors(7, 9, old=7, before=6), "5m", tools=BreakpointPlace(end=1))
    assert [each.place for each in found] == [6, 7, 9]


def test_the_last_marker_of_the_caller_in_the_system_prompt_stays_where_it_is() -> None:
    system = BreakpointPlace(end=5, given={1: "1h", 3: "1h"})
    found = breakpoints(Anchors(7, 9, old=7, before=6), "5m", system=system)
    assert [(each.part, each.place, each.ttl) for each in found] == [
        ("system", 1, "1h"),
        ("system", 3, "1h"),
        ("messages", 7, "5m"),
        ("messages", 9, "5m"),
    ]


def test_an_earlier_marker_in_the_system_prompt_leaves_its_slot_to_the_old_anchor() -> None:
    system = BreakpointPlace(end=3, given={1: "5m", 3: "5m"})
    found = breakpoints(Anchors(7, 9, old=5), "5m", system=system)
    assert [each.place for each in found] == [3, 5, 7, 9]


@pytest.mark.parametrize(
    ("system", "last", "wanted", "expected"),
    [
        (None, None, "1h", ["1h", "1h", "1h", "1h"]),
        (None, None, "5m", ["5m", "5m", "5m", "5m"]),
        ("5m", None, "1h", ["5m", "5m", "5m", "5m"]),
        ("1h", None, "5m", ["1h", "5m", "5m", "5m"]),
        ("1h", "1h", "5m", ["1h", "1h", "1h", "1h"]),
        (None, "1h", "5m", ["1h", "1h", "1h", "1h"]),
        (None, "5m", "1h", ["1h", "1h", "1h", "5m"]),
    ],
)
def test_no_entry_of_an_hour_follows_one_of_five_minutes(
    system: Ttl | None, last: Ttl | None, wanted: Ttl, expected: list[Ttl]
) -> None:
    marked = BreakpointPlace(end=1, given={} if system is None else {1: system})
    found = breakpoints(Anchors(7, 9, old=3), wanted, system=marked, last=last)
    assert [each.ttl for each in found] == expected


_PLACES = st.none() | st.integers(0, 30)
_TTLS = st.sampled_from(["5m", "1h"])


@st.composite
def _marked(draw: st.DrawFn) -> BreakpointPlace:
    hours = draw(st.integers(0, 2))
    places = sorted(draw(st.sets(st.integers(0, 8), max_size=4)))
    ttls: list[Ttl] = ["1h" if i < hours else "5m" for i in range(len(places))]
    return BreakpointPlace(draw(_PLACES), dict(zip(places, ttls, strict=True)))


@given(
    found=st.builds(Anchors, _PLACES, _PLACES, _PLACES, _PLACES),
    ttl=_TTLS,
    system=st.none() | _marked(),
    tools=st.none() | _marked(),
    last=st.none() | st.just("5m"),
)
def test_a_request_has_four_breakpoints_at_most_and_never_a_longer_one_after_a_shorter(
    found: Anchors,
    ttl: Ttl,
    system: BreakpointPlace | None,
    tools: BreakpointPlace | None,
    last: Ttl | None,
) -> None:
    placed = breakpoints(found, ttl, system=system, tools=tools, last=last)
    assert len(placed) <= (3 if system is None else 4)
    assert all(one.ttl == "1h" or other.ttl == "5m" for one, other in pairwise(placed))
    order: list[Part] = ["tools", "system", "messages"]
    keys = [(order.index(each.part), each.place) for each in placed]
    assert keys == sorted(set(keys))
    if system is not None and system.given:
        kept = {each.place: each.ttl for each in placed if each.part == "system"}
        assert max(system.given) in kept
        assert kept.items() <= dict(system.given).items()


def test_recent_items_count_and_small_ones_do_not() -> None:
    assert first(RETIRE, session_of(SMALL, LARGE, LARGE)) == 4
    assert first(RETIRE, session_of(SMALL, SMALL)) is None
    assert first(RETIRE, [user()]) is None
    assert first(RETIRE, []) is None


def test_pinned_items_do_not_count() -> None:
    assert first(RETIRE + "tools: {Bash: {pin: true}}", session_of(LARGE, LARGE)) is None


def test_gates_do_not_count() -> None:
    gated = RETIRE.replace("do: offload,", "do: offload, when: {tokens: {over: 100000}},")
    assert first(gated, session_of(LARGE)) == 2


def test_items_before_the_newest_edit_do_not_count() -> None:
    found = planner(RETIRE.replace("keep_recent: 2", "keep_recent: 1"), session_of(LARGE, LARGE))
    follower = removable(found)
    assert follower.first() == 2
    adopt(found)
    assert (follower.first(), follower.newest) == (4, 2)
    read_more(found, session_of(LARGE)[1:])
    assert follower.first() == 4


def test_an_edit_on_arrival_is_no_edit_of_what_was_sent() -> None:
    arriving = RETIRE.replace(
        "steps: [", "steps: [{name: a, on: arrival, do: offload, select: {min_tokens: 150}}, "
    )
    found = planner(arriving, session_of(LARGE, "x" * 4000))
    follower = removable(found)
    adopt(found)
    assert set(found.conversation.fates) == {4}
    assert (follower.first(), follower.newest) == (2, -1)


def test_the_call_counts_if_its_input_goes_with_the_result() -> None:
    text = RETIRE.replace("keep_recent: 2", "keep_recent: 2, with_input: true")
    assert first(text, session_of(SMALL, LARGE)) == 3
    assert first(text, [user(), calls(("a", "Bash"), ("b", "Bash"))]) == 1
    both = [user(), calls(("a", "Bash"), ("b", "Bash")), results(("a", SMALL), ("b", LARGE))]
    assert first(text, both) == 2


def test_thinking_counts_if_it_is_dropped_with_the_call_after_it() -> None:
    text = RETIRE.replace("do: offload", "do: drop").replace(
        "select: {", "select: {min_tokens: 20, "
    )
    thought = call("a", "Bash", {})
    thought["content"].insert(0, thinking())
    assert first(text, [user(), thought, results(("a", LARGE))]) == 1
    assert first(text, [user(), thought, results(("a", SMALL))]) is None
