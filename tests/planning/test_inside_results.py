"""Images inside a result that has left the list: they are not candidates any more."""

from __future__ import annotations

import pytest

from tests.conversations import calls, results, user
from tests.planning.plans import FACTS, adopted, read_more
from tests.planning.test_media import screenshot

ITEMS = """\
items: {tool_result: {offload: true}, image: {offload: true}}
placeholder: "[gone]"
steps:
"""
CLEAR_IMAGES = "- {name: clear-images, do: clear, select: {types: [image]}}\n"
OFFLOAD_RESULTS = """\
- {name: offload-results, do: offload, select: {types: [tool_result]}, must_shrink: false}
"""
DROP_OLD_IMAGES = """\
- name: drop-old-images
  do: drop
  select: {types: [image], keep_recent: {messages: 2}}
  when: {frees: {at_least: 1}}
"""


@pytest.mark.parametrize("before", [OFFLOAD_RESULTS, CLEAR_IMAGES + OFFLOAD_RESULTS])
def test_an_image_that_left_with_its_result_is_neither_dropped_nor_measured(before: str) -> None:
    messages = [user("look"), calls(("a", "Shot")), results(("a", [screenshot(100, 100)]))]
    planner = adopted(ITEMS + before + DROP_OLD_IMAGES, messages)
    read_more(planner, [{"role": "assistant", "content": "done"}, user("go on")])
    plan = planner.plan(FACTS)
    assert not plan.new
    assert [gate.number for gate in plan.gates] == [0]


def test_an_image_is_dropped_after_its_placeholder_stood_in_a_result_that_stays() -> None:
    messages = [user("look"), calls(("a", "Shot")), results(("a", [screenshot(100, 100)]))]
    planner = adopted(ITEMS + CLEAR_IMAGES + DROP_OLD_IMAGES, messages)
    read_more(planner, [{"role": "assistant", "content": "done"}, user("go on")])
    plan = planner.plan(FACTS)
    assert [(d.item.item_id, d.step) for d in plan.new] == [("a-1", "drop-old-images")]
    assert [gate.number for gate in plan.gates] == [2]
