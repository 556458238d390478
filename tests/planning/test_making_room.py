"""What could not go for the sake of what stood around it, once that is gone."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conversations import calls, picture, results, user
from tests.planning.plans import outcomes, planned, steps_of
from tests.planning.test_removal import LARGE, applied, said


def test_one_removal_permits_another(tmp_path: Path) -> None:
    text = "steps: [{name: s, do: drop, select: {types: [assistant_message, user_message]}}]"
    messages = [user("a"), said("b"), user("c"), said("d"), user("e")]
    # The first words cannot go while the reply to them stands.
    assert applied(text, messages, tmp_path) == [user("e")]


def test_dropping_an_item_offloaded_in_the_same_plan_also_permits_other_drops(
    tmp_path: Path,
) -> None:
    text = """\
        items: {assistant_message: {offload: true}}
        placeholder: old
        steps:
          - {name: o, do: offload, select: {types: [assistant_message]}}
          - {name: d, do: drop, select: {types: [assistant_message, user_message]}}
        """
    messages = [user("a"), said(LARGE), user("c")]
    assert applied(text, messages, tmp_path) == [user("c")]


def test_a_later_step_permits_removals_of_an_earlier_one(tmp_path: Path) -> None:
    text = """\
        steps:
          - {name: asked, do: drop, select: {types: [user_message]}}
          - {name: said, do: drop, select: {types: [assistant_message]}}
        """
    messages = [user("a"), said("b"), user("c"), said("d"), user("e")]
    assert applied(text, messages, tmp_path) == [user("e")]
    steps = ("asked", "said", "asked", "said")
    assert tuple(steps_of(planned(text, messages)).values()) == steps


def test_a_satisfied_step_takes_nothing_more_after_a_later_step() -> None:
    text = """\
        steps:
          - name: asked
            do: drop
            select: {types: [user_message], order: largest, until: {frees: {at_least: 9}}}
          - {name: said, do: drop, select: {types: [assistant_message]}}
        """
    messages = [user("x" * 80), said("b"), user("y" * 40), said("d"), user("e")]
    assert outcomes(text, messages) == {
        "msg_001": "keep until_reached",
        "msg_002": "drop selected",
        "msg_003": "drop selected",
        "msg_004": "drop selected",
        "msg_005": "keep protected",
    }


def test_tokens_freed_by_a_later_step_are_not_counted_as_the_steps_own() -> None:
    text = """\
        steps:
          - {name: asked, do: drop, select: {types: [user_message], until: {frees: {at_least: 9}}}}
          - {name: said, do: drop, select: {types: [assistant_message]}}
        """
    messages = [user("x" * 8), said("b" * 400), user("y" * 8), user("e")]
    assert outcomes(text, messages)["msg_001"] == "drop selected"


def test_a_closed_step_takes_nothing_after_a_later_step() -> None:
    text = """\
        steps:
          - {name: asked, do: drop, when: {turns: {over: 9}}, select: {types: [user_message]}}
          - {name: said, do: drop, select: {types: [assistant_message]}}
        """
    messages = [user("a"), said("b"), user("c")]
    assert outcomes(text, messages)["msg_001"] == "keep gate_closed"


def test_a_newly_permitted_item_is_kept_if_enough_is_free() -> None:
    text = """\
        steps:
          - name: s
            do: drop
            select: {types: [assistant_message, user_message], until: {frees: {at_least: 9}}}
        """
    messages = [user("x" * 20), said("y" * 40), user("e")]
    assert outcomes(text, messages) == {
        "msg_001": "keep until_reached",
        "msg_002": "drop selected",
        "msg_003": "keep protected",
    }


BATCH = """\
    items: {tool_result: {offload: true}}
    tools: {Read: {keep_recent: 1}}
    steps:
      - STEPS
    """
OLD = "{name: old, do: offload, must_shrink: false, select: {types: [tool_result]}}"
READ = "{name: read, do: drop, select: {types: [tool_result], tools: [Read], keep_recent: 0}}"
ARRIVING = READ.replace("do: drop", "do: drop, on: arrival").replace(", keep_recent: 0", "")


@pytest.mark.parametrize("steps", [(OLD, READ), (READ, OLD), (ARRIVING, OLD)])
def test_dropping_one_parallel_call_releases_the_other(
    steps: tuple[str, ...], tmp_path: Path
) -> None:
    messages = [user(), calls(("a", "Bash"), ("b", "Read")), results(("a", LARGE), ("b", LARGE))]
    text = BATCH.replace("STEPS", "\n      - ".join(steps))
    found = planned(text, messages)
    assert {d.item.item_id: d.action for d in found.new} == {"a": "offload", "b": "drop"}
    [_, call, result] = applied(text, messages, tmp_path)
    assert call == calls(("a", "Bash"))
    assert len(result["content"]) == 1


def test_a_recent_image_dropped_from_its_result_keeps_no_other_item(tmp_path: Path) -> None:
    text = """\
        items:
          tool_result: {offload: true}
          image: {keep_recent: 1}
        steps:
          - {name: old, do: offload, must_shrink: false, select: {types: [tool_result, image]}}
          - {name: images, do: drop, select: {types: [image], keep_recent: 0}}
        """
    shown = [{"type": "text", "text": LARGE}, picture()]
    messages = [user(), calls(("a", "Bash"), ("b", "Shot")), results(("a", LARGE), ("b", shown))]
    assert outcomes(text, messages) == {
        "a": "offload selected",
        "b": "offload selected",
        "b-1": "drop old",
    }
    applied(text, messages, tmp_path)


def test_a_recent_image_dropped_with_its_result_keeps_no_other_item(tmp_path: Path) -> None:
    text = """\
        items:
          tool_result: {offload: true}
          image: {keep_recent: 1}
        steps:
          - {name: gone, do: drop, select: {types: [tool_result, image]}}
          - {name: shots, do: offload, select: {types: [tool_result], tools: [Shot]}}
        """
    shown = [{"type": "text", "text": LARGE}, picture()]
    messages = [user(), calls(("a", "Bash"), ("b", "Shot")), results(("a", LARGE), ("b", shown))]
    found = planned(text, messages)
    assert {d.item.item_id: d.action for d in found.new} == {"a": "drop", "b": "drop"}
    assert applied(text, messages, tmp_path) == [user()]
