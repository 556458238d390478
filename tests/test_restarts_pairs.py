"""Pairs of calls and results, and images, after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from tests.drawing import rotated
from tests.policies import policy
from tests.restarting import (
    DROPPING,
    HOSTS,
    IMAGE_SHAPES,
    ROUNDS,
    TRIM,
    call_alone,
    compacting,
    in_all_shapes,
    late_picture,
    left_before_decisions,
    left_of,
    opened,
    picture,
    plain,
    reply,
    shown,
    two_calls,
)


def in_each_form(*forms: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shape", forms)


with_images = in_each_form(*IMAGE_SHAPES)


ARRIVING = """\
    items:
      tool_result: {{offload: true}}
      tool_call: {{offload: true}}
      image: {{offload: true}}
    min_chars: 0
    store: {{sync: never}}
    steps: [{{name: arrived, on: arrival, do: drop, select: {{types: [{kind}]}}}}]
    """


@in_each_form("anthropic", "bedrock", "google", "gemini")
def test_a_pair_that_left_on_arrival_leaves_the_list_that_ended_with_its_call(
    shape: str, tmp_path: Path
) -> None:
    """The caller looked at what a step would do while the calls were running."""
    text = ARRIVING.format(kind="tool_result").replace("]}}]", "], tools: [Read]}}]")
    live = opened(policy(text), tmp_path, shape)
    question = ROUNDS[shape](0)[0]
    asked, found = two_calls(shape)
    live.apply([question, asked])
    assert live.on_tool_result(found, call=asked).plan.new
    left = left_of(live, [question, asked, found, question], shape)
    assert "Read" not in str(left)
    assert "Bash" in str(left)


@with_images
def test_an_image_stays_dropped_after_a_restart_when_one_in_a_result_left_on_arrival(
    shape: str, tmp_path: Path
) -> None:
    """The caller keeps its own list, with each result as `on_tool_result` returned it."""
    live = opened(policy(ARRIVING.format(kind="image")), tmp_path, shape)
    full = [shown(shape, "look at this", "AAAA")]
    assert "AAAA" not in str(live.apply(full).messages)
    *_, asked, found = ROUNDS[shape](0)
    key = "output" if shape == "responses" else "content"
    (found["content"][0] if shape == "anthropic" else found)[key] = [picture(shape, "BBBB")]
    arrived = live.on_tool_result(found, call=asked).messages[-1]
    assert "BBBB" not in str(arrived)
    full += [asked, arrived, plain("user", "go on")]
    assert "AAAA" not in str(left_of(live, full, shape))


@in_all_shapes
def test_a_pair_that_is_equal_to_a_replaced_one_stays_dropped_after_a_restart(
    shape: str, tmp_path: Path
) -> None:
    """The call's id is used again behind the summary, and the caller sends its own list."""
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        f"  - {DROPPING['results']}\n" + TRIM.replace("over: 2", "over: 20")
    )
    live = opened(compiled, tmp_path, shape)
    full = [*ROUNDS[shape](0), ROUNDS[shape](1)[0]]
    compacted = live.compact(list(full)).compacted
    for i in (0, 2, 3):
        full += [*ROUNDS[shape](i)[-2:], ROUNDS[shape](i + 1)[0]]
        result = live.apply(list(full))
        left_before_decisions(live, full, shape)
    assert compacted
    assert "c0" not in str(result.messages)


@in_all_shapes
def test_an_image_in_a_second_result_is_no_equal_one_that_left_the_first_after_a_restart(
    shape: str, tmp_path: Path
) -> None:
    step = "{name: seen, do: drop, select: {types: [image]}}"
    compiled = policy(
        f"items: {{image: {{offload: true}}}}\nmin_chars: 0\nstore: {{sync: never}}\n"
        f"steps:\n  - {step}\n"
    )
    live = opened(compiled, tmp_path, shape)
    left = live.apply([*ROUNDS[shape](0)[:-1], late_picture(shape, 0)]).messages
    found = late_picture(shape, 0)
    if isinstance(found, types.Content):
        found = type(found).model_validate_json(found.model_dump_json().replace("late", "more"))
    else:
        found = json.loads(json.dumps(found).replace("late", "more"))
    again = [*left, reply(shape, "so"), found]
    assert left_before_decisions(live, again, shape) == again


@in_each_form(*IMAGE_SHAPES, "bedrock")
@pytest.mark.parametrize("shown", ["AAAA BBBB", "AAAA BBBB AAAA", "BBBB AAAA AAAA BBBB"])
def test_images_of_a_result_left_one_after_the_other_and_the_same_list_comes_after_a_restart(
    shown: str, shape: str, tmp_path: Path
) -> None:
    """Their placeholders are equal, and the list has that of an image that left before."""
    compiled = policy("""\
        items: {image: {offload: true}}
        min_chars: 0
        placeholder: "[gone]"
        store: {sync: never}
        steps:
          - name: seen
            do: clear
            must_shrink: false
            select: {types: [image], keep_recent: {items: 1, per: type, batches: split}}
        """)
    live = opened(compiled, tmp_path, shape)
    shot = late_picture(shape, 0, *shown.split())
    given = [*ROUNDS[shape](0)[:-1], shot]
    for i in (1, 2):
        back = live.apply(list(given)).messages
        given = [*back, reply(shape, "so"), *ROUNDS[shape](i)[:-1], late_picture(shape, i)]
        left = live.apply(list(given))
        assert len(left.plan.new) == 1
        assert left_of(live, given, shape) == list(left.messages)


@in_all_shapes
def test_a_pair_whose_result_was_seen_first_without_its_call_stays_dropped_after_a_restart(
    shape: str, tmp_path: Path
) -> None:
    """The result was cleared in a list without the call, which had been cut off."""
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        "  - {name: new, on: arrival, do: clear, must_shrink: false,"
        " select: {types: [tool_result]}}\n"
        "  - {name: old, do: drop, when: {turns: {over: 2}}, select: {types: [tool_call],"
        " keep_recent: 1}}\n"
    )
    live = opened(compiled, tmp_path, shape)
    cleared = live.apply([ROUNDS[shape](0)[0], ROUNDS[shape](1)[-1]]).messages[-1]
    own = [*ROUNDS[shape](0), *ROUNDS[shape](1)[:-1], cleared, *ROUNDS[shape](2)]
    left = live.apply(list(own)).messages
    assert not any(
        item.tool_use_id == "c1" for item in items_of(left, Shapes(HOSTS.get(shape, ())))
    )
    assert left_before_decisions(live, own, shape) == left


@pytest.mark.parametrize(
    ("half", "form", "shape"),
    rotated(
        ["call", "result", "result of a call beside words"], ["own", "returned"], ROUNDS, one_in=3
    ),
)
def test_a_dropped_pair_stays_dropped_when_a_summary_replaced_what_stood_around_one_half(
    half: str, form: str, shape: str, tmp_path: Path
) -> None:
    """The user spoke before the result came. The other half is before or behind the summary."""
    keep_first, keep_recent = {"call": (0, 3), "result": (1, 1)}.get(half, (2, 1))
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        "  - {name: old, do: drop, select: {types: [tool_call, tool_result], tools: [Read]}}\n"
        + TRIM.replace("over: 2", "over: 4").replace("messages: 1", f"messages: {keep_recent}")
        + f"      keep_first: {keep_first}\n"
    )
    live = opened(compiled, tmp_path, shape)
    first, second, third = (ROUNDS[shape](i)[0] for i in range(3))
    asked = ROUNDS[shape](0)[-2] if keep_first == 2 else call_alone(shape, 0)
    full = [first, asked, second, ROUNDS[shape](0)[-1], reply(shape, "so"), third]
    back = list(live.apply(list(full)).messages)
    assert "Read" not in str(back)
    compactions = 0
    for i in range(3, 9):
        more = [reply(shape, f"reply {i}"), ROUNDS[shape](i)[0]]
        full += more
        result = live.apply([*back, *more] if form == "returned" else list(full))
        back = list(result.messages)
        compactions += result.compacted is True
        assert left_of(live, full, shape) == back
    assert compactions > 1


@pytest.mark.parametrize("shape", ["google", "gemini"])
def test_two_results_without_an_id_that_left_on_arrival_are_two_after_a_restart(
    shape: str, tmp_path: Path
) -> None:
    """Their placeholders are equal, and both come between two requests."""
    clear = "do: clear, placeholder: '[gone]', select: {types: [tool_result]}"
    text = "items: {tool_result: {offload: true}}\nmin_chars: 0\nsteps:\n"
    compact = compacting(6, "keep_recent: {messages: 2}")
    live = opened(
        policy(f"{text}  - {{name: a, on: arrival, {clear}}}\n{compact}"), tmp_path, shape
    )
    full: list[Any] = []
    compactions = 0
    for turn in ([0], [1, 2], [3]):
        for i in turn:
            question, asked, found = (without_id(one) for one in ROUNDS[shape](i))
            arrived = live.on_tool_result(found, call=asked).messages
            assert "line" not in str(arrived)
            full += [question, asked, arrived[-1]]
        result = live.apply(list(full))
        compactions += result.compacted is True
        assert left_of(live, full, shape) == list(result.messages)
    assert compactions == 1


def without_id(content: Any) -> Any:
    """A content of Google's in which calls and results have only a name."""
    if isinstance(content, types.Content):
        return types.Content.model_validate(without_id(content.model_dump(mode="json")))
    halves = [half for part in content["parts"] for half in part.values()]
    for half in halves:
        if isinstance(half, dict):
            half.pop("id", None)
    return content


@in_all_shapes
def test_a_result_that_was_edited_on_arrival_is_there_in_a_longer_list_after_a_compaction(
    shape: str, tmp_path: Path
) -> None:
    """A list without its beginning was compacted, and the whole list has the result again."""
    compiled = policy(
        "items: {image: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        "  - {name: arrived, on: arrival, do: offload, must_shrink: false,"
        " select: {types: [image]}}\n"
        + TRIM.replace("since_last: {messages: {over: 2}}", "messages: {over: 99}")
    )
    live = opened(compiled, tmp_path, shape)
    own: list[Any] = []
    for i in range(4):
        own += ROUNDS[shape](i)[:-1]
        own.append(live.on_tool_result(late_picture(shape, i), call=own[-1]).messages[-1])
    live.apply(list(own))
    first = len(ROUNDS[shape](0))
    assert live.compact(list(own[first:])).compacted
    assert live.compact(list(own)).compacted
    left_before_decisions(live, list(own), shape)
