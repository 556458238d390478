"""Late results and second results of a call, after a restart."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.validity import new_problems
from tests.conversations import calls, results
from tests.drawing import rotated
from tests.fuzz.marking import wrong_sources
from tests.policies import policy
from tests.restarting import (
    DROPPING,
    HOSTS,
    ROUNDS,
    TRIM,
    anthropic,
    both,
    call_alone,
    in_all_shapes,
    late_picture,
    late_result,
    left_of,
    opened,
    plain,
    reply,
)


@in_all_shapes
@pytest.mark.parametrize("do", ["offload", "clear"])
@pytest.mark.parametrize("when", ["", "on: arrival, "])
def test_a_second_result_of_a_replaced_call_is_a_text_of_the_user_in_the_own_list(
    when: str, do: str, shape: str, tmp_path: Path
) -> None:
    """The call and its first result stay replaced, so that the beginning of the list stays."""
    compiled = policy(
        'items: {tool_result: {offload: true}}\nmin_chars: 0\nplaceholder: "[gone]"\n'
        "store: {sync: never}\nsteps:\n"
        f"  - {{name: old, {when}do: {do}, must_shrink: false, select: {{types: [tool_result]}}}}\n"
        + TRIM
    )
    live = opened(compiled, tmp_path, shape)
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    compacted = list(live.apply(list(full)).messages)
    full += [reply(shape, "so"), late_result(shape, 1)]
    result = list(live.apply(list(full)).messages)
    assert result[: len(compacted)] == compacted
    assert "Result of the call c1:" in str(result[-1])
    assert "late 1" in str(result[-1])
    items = items_of(result, Shapes(HOSTS.get(shape, ())))
    assert not any(item.tool_use_id == "c1" for item in items)
    assert left_of(live, full, shape) == result


def test_a_late_result_that_waits_for_another_result_comes_also_after_a_compaction(
    tmp_path: Path,
) -> None:
    compiled = policy(
        "store: {sync: never}\nsteps:\n  - {name: trim, do: compact, when: {messages: {over: 6}},"
        " compaction: {summary: {by: none}, min_new: 0, keep_recent: {messages: 2},"
        " wording: {summary: '[trimmed]'}}}\n"
    )
    live = opened(compiled, tmp_path, "anthropic")
    full = [*anthropic(0), *anthropic(1), *anthropic(2)]
    assert live.apply(list(full)).compacted
    full += [plain("user", "next"), plain("assistant", "so"), calls(("c5", "Read"), ("c6", "Read"))]
    assert not live.apply(list(full)).compacted
    full.append(results(("c6", "line 6"), ("c1", "late 1")))
    assert live.apply(list(full)).compacted
    full.append(plain("user", "go on"))
    result = live.apply(list(full)).messages
    assert "Result of the call c1:" in str(result)
    assert "late 1" in str(result)
    assert left_of(live, full, "anthropic") == list(result)


@pytest.mark.parametrize(
    ("taken", "form", "late", "shape"),
    rotated(["compacted", "dropped"], ["own", "returned"], ["result", "picture"], ROUNDS, one_in=4),
)
def test_a_late_result_at_the_end_does_not_wait_for_another_result(
    taken: str, form: str, late: str, shape: str, tmp_path: Path
) -> None:
    """A list must not end with the call that waits, so the late result ends it."""
    dropping = f"  - {DROPPING['results']}\n"
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        + (dropping if taken == "dropped" else TRIM.replace("over: 2", "over: 6"))
    )
    live = opened(compiled, tmp_path, shape)
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    before = list(live.apply(list(full)).messages)
    given = [*(full if form == "own" else before), call_alone(shape, 3)]
    given.append(late_result(shape, 0) if late == "result" else late_picture(shape, 0))
    for more in ((), ROUNDS[shape](3)[-1:]):
        given += more
        result = live.apply(list(given))
        assert not new_problems(given, result.messages, shapes=Shapes(HOSTS.get(shape, ())))
        assert "Result of the call c0:" in str(result.messages)
        assert left_of(live, given, shape) == list(result.messages)


@in_all_shapes
@pytest.mark.parametrize("late", ["result", "picture"])
def test_a_compaction_of_a_late_result_of_a_dropped_call_applies_again_after_a_restart(
    late: str, shape: str, tmp_path: Path
) -> None:
    """The caller sends its own list, in which the call is there; the summary replaced a text."""
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        f"  - {DROPPING['results']}\n"
        + TRIM.replace("since_last: {messages: {over: 2}}", "messages: {over: 6}")
    )
    live, full, compactions = opened(compiled, tmp_path, shape), list[Any](), 0
    found = late_result(shape, 0) if late == "result" else late_picture(shape, 0)
    for more in (*map(ROUNDS[shape], range(2)), [found], *map(ROUNDS[shape], range(2, 6))):
        full += more
        compactions += live.apply(list(full)).compacted
        left_of(live, full, shape)
    assert compactions


@in_all_shapes
@pytest.mark.parametrize("place", ["first", "alone", "behind a call", "before a call"])
def test_a_dropped_late_result_is_back_where_only_the_assistant_is_beside_it(
    place: str, shape: str, tmp_path: Path
) -> None:
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\n"
        f"steps: [{DROPPING['results']}]\n"
    )
    live, late = opened(compiled, tmp_path, shape), late_result(shape, 0)
    result = live.apply([*ROUNDS[shape](0), late, *ROUNDS[shape](1), *ROUNDS[shape](2)])
    assert "late 0" not in str(result.messages)
    given = {
        "first": [late, reply(shape, "so"), *ROUNDS[shape](3)],
        "alone": [late],
        "behind a call": [ROUNDS[shape](3)[0], call_alone(shape, 4), late],
        "before a call": [late, call_alone(shape, 4)],
    }[place]
    result = live.apply(list(given))
    assert not new_problems(given, result.messages, shapes=Shapes(HOSTS.get(shape, ())))
    assert left_of(live, given, shape) == list(result.messages)


@pytest.mark.parametrize(
    ("step", "late", "form", "shape"),
    rotated(DROPPING, ["text", "image", "beside another"], ["own", "returned"], ROUNDS, one_in=4),
)
def test_a_late_result_of_a_dropped_call_is_a_message_of_the_user(
    step: str, form: str, late: str, shape: str, tmp_path: Path
) -> None:
    """No compaction came. In the returned list the result would stand alone, which a provider
    rejects; in the caller's own list the call and its first result would be back.
    """
    if late == "beside another" and shape in {"chat", "responses"}:
        return  # a message holds one result there
    compiled = policy(
        "items: {tool_result: {offload: true}, tool_call: {offload: true}}\n"
        f"min_chars: 0\nstore: {{sync: never}}\nsteps: [{DROPPING[step]}]\n"
    )
    live = opened(compiled, tmp_path, shape)
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    before = list(live.apply(list(full)).messages)
    found = late_picture(shape, 0) if late == "image" else late_result(shape, 0)
    more = [found]
    if late == "beside another":
        asked, other = ROUNDS[shape](3)[1:]
        more = [asked, both(other, found)]
    given = [*(full if form == "own" else before), *more]
    for said in (None, reply(shape, "so"), ROUNDS[shape](4)[0]):
        given += [said] if said else []
        result = live.apply(list(given))
        assert not result.warnings
        assert "line 0" not in str(result.messages)
        assert HOSTS.get(shape) or not [*wrong_sources(given, result)]
        assert list(result.messages)[: len(before)] == before or result.plan.new
        before = list(result.messages)
        assert left_of(live, given, shape) == before
        assert left_of(live, before, shape) == before
        assert "Result of the call c0:" in str(before)
        items = items_of(before, Shapes(HOSTS.get(shape, ())))
        assert not any(item.tool_use_id == "c0" for item in items)
        assert any(item.kind == "image" for item in items) == (late == "image")


@pytest.mark.parametrize(
    ("step", "form", "shape"),
    rotated(
        [
            "",
            "{name: old, do: clear, must_shrink: false, select: {types: [image]}}",
            "{name: old, do: drop, select: {types: [image]}}",
        ],
        ["own", "returned"],
        ROUNDS,
        one_in=3,
    ),
)
def test_a_late_result_with_an_image_becomes_a_message_of_the_user(
    step: str, form: str, shape: str, tmp_path: Path
) -> None:
    """Its call is in no list: the own one was cut off there, and a summary replaced the rest."""
    compiled = policy(
        "items: {tool_result: {offload: true}, image: {offload: true}}\nmin_chars: 0\n"
        'placeholder: "[gone]"\nstore: {sync: never}\nsteps:\n'
        + (f"  - {step}\n" if step else "")
        + TRIM.replace("over: 2", "over: 6")
    )
    live = opened(compiled, tmp_path, shape)
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    first = live.apply(list(full))
    assert first.compacted
    given = list(full if form == "own" else first.messages)
    before = list(first.messages)
    for more in (late_picture(shape, 9), reply(shape, "so"), ROUNDS[shape](3)[0]):
        given.append(more)
        for _ in range(2):
            result = live.apply(list(given))
            assert not result.compacted
            assert not result.warnings
            new = {one.position for one in result.plan.new}
            assert new or list(result.messages)[: len(before)] == before
            anew = opened(compiled, tmp_path, shape).apply(list(given))
            assert list(anew.messages) == list(result.messages)
        before = list(result.messages)
    assert "Result of the call c9:" in str(before)
    assert "late 9" in str(before)
    items = items_of(before, Shapes(HOSTS.get(shape, ())))
    assert not any(item.tool_use_id == "c9" for item in items)
    assert any(item.kind == "image" for item in items) == (step == "")
