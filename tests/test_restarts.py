"""Lists that go on after a restart of their session."""

from __future__ import annotations

import copy
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from policyctx.session import Session
from tests.drawing import rotated
from tests.fuzz.histories import without_fillers
from tests.policies import policy
from tests.restarting import (
    EQUAL,
    ROUNDS,
    TRIM,
    anthropic,
    both,
    dropping,
    in_all_shapes,
    late_picture,
    late_result,
    left_before_decisions,
    left_of,
    opened,
    plain,
    reply,
)

EDITS = {
    "offloaded results": "{name: edit, do: offload, select: {types: [tool_result]}}",
    "dropped questions": "{name: edit, do: drop, select: {types: [user_message]}}",
    "dropped results": "{name: edit, do: drop, select: {types: [tool_result], keep_recent: 1}}",
    "cleared replies": "{name: edit, do: clear, placeholder: '[gone]', must_shrink: false,"
    " select: {types: [assistant_message], keep_recent: 1}}",
}


@pytest.mark.parametrize(("edit", "shape"), rotated(EDITS, ROUNDS, one_in=2))
def test_every_compaction_of_an_edited_list_applies_again_after_a_restart(
    edit: str, shape: str, tmp_path: Path
) -> None:
    """The caller sends its own list, or once more the list that it was handed the turn before.

    Placeholders of messages are alike; a summary replaced the first of them.
    """
    compiled = policy(f"""\
        items:
          tool_result: {{offload: true}}
          assistant_message: {{offload: true}}
          user_message: {{offload: true, keep_recent: 1}}
        min_chars: 0
        store: {{sync: never}}
        steps:
          - {EDITS[edit]}
          - name: compact
            do: compact
            when: {{messages: {{over: 7}}}}
            compaction:
              keep_recent: {{messages: 4}}
              keep_first: 2
              summary: {{must_shrink_to: false}}
        """)
    live = opened(compiled, tmp_path, shape)
    full: list[Any] = []
    back: list[Any] = []
    compactions = 0
    for i in range(6):
        full += ROUNDS[shape](i)
        given = [*back, *ROUNDS[shape](i)]
        result = live.apply(list(full))
        compactions += result.compacted is True
        for again in (full, given):
            anew = opened(compiled, tmp_path, shape).apply(list(again))
            assert not anew.compacted
            assert list(anew.messages) == list(result.messages)
            assert anew.plan.new == ()
        back = list(result.messages)
    assert compactions > 1


@in_all_shapes
@pytest.mark.parametrize("kind", ["tool_result", "image", "result with an image"])
@pytest.mark.parametrize("do", ["offload", "clear", "drop"])
def test_what_was_left_of_a_result_without_a_call_is_what_its_text_says(
    do: str, kind: str, shape: str, tmp_path: Path
) -> None:
    """The list begins behind the call, whose result becomes a text behind the summary."""
    taken, late = kind if kind == "image" else "tool_result", ROUNDS[shape](9)[-1]
    late = late if kind == "tool_result" else late_picture(shape, 9)
    compiled = policy(
        "items: {tool_result: {offload: true}, image: {offload: true}}\nmin_chars: 0\n"
        'placeholder: "[gone]"\nstore: {sync: never}\nsteps:\n'
        f"  - {{name: old, do: {do}, select: {{types: [{taken}]}}}}\n" + TRIM
    )
    live = opened(compiled, tmp_path, shape)
    full = [*(ROUNDS[shape](i)[0] for i in range(3)), late]
    compacted = live.apply(full)
    assert compacted.compacted
    settled = live.apply(full)
    # An image has no item of its own in a response of Google's, and has one in the new message.
    if kind != "image" or shape not in {"google", "gemini"}:
        assert settled.plan.new == ()
        assert list(settled.messages) == list(compacted.messages)
    assert left_of(live, full, shape) == list(settled.messages)


@pytest.mark.parametrize(
    ("equal", "shape"), rotated(["result", "text of a late result", "summary"], ROUNDS, one_in=2)
)
def test_a_compaction_of_what_is_equal_to_dropped_items_applies_again_after_a_restart(
    equal: str, shape: str, tmp_path: Path
) -> None:
    """They were dropped, or replaced after that; a message that a turn edited has the others."""
    taken = "tool_result" if equal == "result" else "user_message, compaction_summary"
    compiled = policy(
        "items: {tool_result: {offload: true}, compaction_summary: {offload: true}}\n"
        "min_chars: 0\nstore: {sync: never}\nsteps:\n"
        f"  - {{name: old, do: drop, select: {{types: [{taken}], keep_recent: 1}}}}\n"
        + TRIM.replace("since_last: {messages: {over: 2}}", "messages: {over: 7}")
    )
    live, full, compactions = opened(compiled, tmp_path, shape), list[Any](), 0
    for i in range(8):
        asked, found = ROUNDS[shape](0 if equal == "result" else i)[-2:]
        late = [late_result(shape, 9)]
        if equal == "result" and shape not in {"chat", "responses"}:
            found, late = both(found, *late), []
        for more in (ROUNDS[shape](i)[0], asked, found, *late):
            full.append(more)
            compactions += live.apply(list(full)).compacted
            left_before_decisions(live, full, shape)
    assert compactions > 1


@in_all_shapes
def test_a_compaction_of_another_branch_takes_no_words_of_a_list(
    shape: str, tmp_path: Path
) -> None:
    """The caller edits the first question and goes on; later questions are dropped there."""
    compiled = policy(
        "items: {user_message: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        f"  - {EDITS['dropped questions'].replace('edit,', 'edit, when: {turns: {over: 3}},')}\n"
        + TRIM.replace("since_last: {messages: {over: 2}}", "messages: {over: 14}")
    )
    live = opened(compiled, tmp_path, shape)
    rounds = [one for i in range(3) for one in ROUNDS[shape](i)]
    live.apply(list(rounds))
    assert live.compact(list(rounds)).compacted
    given, compactions = [ROUNDS[shape](9)[0], *rounds[1:-2]], 0
    for i in range(3, 8):
        for more in ROUNDS[shape](i):
            given.append(more)
            compactions += live.apply(list(given)).compacted
            left_before_decisions(live, given, shape)
    assert compactions


def forgetful(shape: str, root: Path, **questions: Any) -> Session:
    """A session that drops questions, and calls from the fourth turn on."""
    select = {"types": ["user_message"], "keep_first": {"messages": 1}, **questions}
    return opened(
        policy(f"""\
            items: {{user_message: {{offload: true}}}}
            min_chars: 0
            store: {{sync: never}}
            steps:
              - {{name: questions, do: drop, select: {json.dumps(select)}}}
              - name: calls
                do: drop
                when: {{turns: {{over: 3}}}}
                select: {{types: [tool_call], keep_recent: 1}}
            """),
        root,
        shape,
    )


@in_all_shapes
def test_words_that_a_cut_off_list_held_back_are_no_others_in_the_list_that_was_returned(
    shape: str, tmp_path: Path
) -> None:
    """Calls that were dropped after them are missing, which says nothing about the words."""
    live = forgetful(shape, tmp_path, keep_recent=1)
    rounds = [ROUNDS[shape](i) for i in range(5)]
    own = [one for each in rounds[:4] for one in each]
    live.apply(own[: -len(rounds[3])])
    live.apply(list(own))
    back = live.apply([*rounds[0], *rounds[1]]).messages
    assert "question 1" in str(back)
    left = left_before_decisions(live, [*back, *rounds[4]], shape)
    assert "question 1" not in str(left)


@in_all_shapes
@pytest.mark.parametrize("form", ["given", "given and more", "returned", "returned and more"])
def test_of_equal_words_the_same_have_left_after_a_restart(
    form: str, shape: str, tmp_path: Path
) -> None:
    """The first of them were missing in the list before the others left it."""

    def asked(*rounds: int) -> list[Any]:
        """Rounds in which the question is always the same."""
        return [one for i in rounds for one in (ROUNDS[shape](0)[0], *ROUNDS[shape](i)[1:])]

    live = forgetful(shape, tmp_path, keep_recent=2)
    back = live.apply([ROUNDS[shape](9)[0], *asked(0, 1, 2)]).messages
    given = [*back, *asked(3, 4)]
    left = live.apply(list(given)).messages
    again = list(given if form.startswith("given") else left)
    more = asked(5) if form.endswith("more") else []
    assert left_before_decisions(live, [*again, *more], shape) == [*left, *more]


@in_all_shapes
def test_dropped_words_that_are_said_again_behind_the_returned_list_are_new_after_a_restart(
    shape: str, tmp_path: Path
) -> None:
    """The list then has the messages of the one that was given, in another order."""
    words = ROUNDS[shape](1)[0]
    live = forgetful(shape, tmp_path, keep_recent=2)
    own = [one for i in range(3) for one in ROUNDS[shape](i)]
    left = live.apply([*own, words, *ROUNDS[shape](3)[1:]]).messages
    again = [*left, words, *ROUNDS[shape](4)[1:]]
    assert str(left_before_decisions(live, again, shape)).count("question 1") == 2


@in_all_shapes
def test_several_dropped_words_that_are_said_again_behind_a_copy_of_the_returned_list_are_new(
    shape: str, tmp_path: Path
) -> None:
    """The caller has saved and read the list, so that its objects are others."""
    compiled = policy(
        "store: {sync: never}\nmin_chars: 0\nsteps:\n  - {name: old, do: drop, select:"
        " {types: [user_message, assistant_message], keep_recent: {messages: 2}}}\n"
    )
    live = opened(compiled, tmp_path, shape)
    own = [one for i in range(3) for one in (ROUNDS[shape](i)[0], reply(shape, f"so {i}"))]
    left = live.apply([*own, ROUNDS[shape](3)[0]]).messages
    again = [reply(shape, "so 0"), ROUNDS[shape](1)[0]]
    result = live.apply([*copy.deepcopy(left), *again])
    assert list(result.messages)[-2:] == again
    assert left_of(live, [*result.messages], shape) == list(result.messages)


@in_all_shapes
def test_the_own_list_has_what_was_dropped_at_the_end_of_two_returned_lists(
    shape: str, tmp_path: Path
) -> None:
    """All that followed the first question left, so the own list begins with what was returned."""
    compiled = policy(
        "items: {tool_result: {offload: true}}\nmin_chars: 0\nstore: {sync: never}\nsteps:\n"
        "  - {name: old, do: drop, select: {types: [assistant_message, tool_call, tool_result]}}\n"
    )
    live = opened(compiled, tmp_path, shape)
    full, left = [], list(ROUNDS[shape](0)[:1])
    full += left
    for i in range(2):
        more = ROUNDS[shape](i)[1:]
        full += more
        left = list(live.apply([*left, *more]).messages)
    assert left == full[:1]
    assert left_before_decisions(live, full, shape) == left


@in_all_shapes
@pytest.mark.parametrize("is_copy", [False, True])
@pytest.mark.parametrize("is_restarted", [False, True])
def test_the_own_list_has_what_was_dropped_at_the_end_of_a_returned_list_that_came_back(
    *, is_restarted: bool, is_copy: bool, shape: str, tmp_path: Path
) -> None:
    """The reply left; then the caller sent what was returned, and its own list with more."""
    offloadable = "items: {assistant_message: {offload: true}}\nmin_chars: 0\n"
    steps = dropping("types: [assistant_message]")
    live = opened(policy(f"{offloadable}store: {{sync: never}}\nsteps:\n{steps}"), tmp_path, shape)
    own = [ROUNDS[shape](0)[0], reply(shape, "the end")]
    left = live.apply(list(own)).messages
    if is_restarted:
        live = opened(live.policy, tmp_path, shape)
    assert live.apply(copy.deepcopy(left) if is_copy else left).messages == left
    more = ROUNDS[shape](1)[0]
    assert left_before_decisions(live, [*own, more], shape) == [*left, more]


@pytest.mark.parametrize(
    ("kind", "how", "shape"),
    rotated(
        ["tool_result", "user_message", "assistant_message"],
        [("drop", False), ("drop", True), ("offload, must_shrink: false", True)],
        ROUNDS,
        one_in=3,
    ),
)
def test_what_a_compacted_list_ended_before_is_there_in_the_whole_list(
    kind: str, how: tuple[str, bool], shape: str, tmp_path: Path
) -> None:
    """Decisions, and perhaps a compaction, were made on a list without its beginning."""
    do, compacts = how
    compiled = policy(
        f"items: {{{kind}: {{offload: true}}}}\nmin_chars: 0\nstore: {{sync: never}}\nsteps:\n"
        f"  - {{name: old, do: {do}, select: {{types: [{kind}], keep_recent: 1}}}}\n"
        + TRIM.replace("since_last: {messages: {over: 2}}", "messages: {over: 99}")
    )
    own = [one for i in range(7) for one in ROUNDS[shape](i)]
    length = len(ROUNDS[shape](0))
    live = opened(compiled, tmp_path, shape)
    live.apply(own[2 * length :])
    if compacts:
        assert live.compact(own[2 * length :]).compacted
    assert live.compact(own[: 5 * length]).compacted
    left_before_decisions(live, own, shape)


@in_all_shapes
def test_replies_that_were_dropped_at_the_end_leave_a_list_that_is_cut_off_behind_the_first(
    shape: str, tmp_path: Path
) -> None:
    """It begins like the list that was returned, too, but with the reply as the caller has it."""
    steps = dropping("types: [assistant_message]")
    offloadable = "items: {assistant_message: {offload: true}}\nmin_chars: 0\n"
    compiled = policy(f"{offloadable}store: {{sync: never}}\nsteps:\n{steps}")
    live = opened(compiled, tmp_path, shape)
    own = [ROUNDS[shape](0)[0], reply(shape, "the beginning"), reply(shape, "the end")]
    left = live.apply(list(own)).messages
    assert len(left) == 1
    assert left_before_decisions(live, own[:2], shape) == left


@in_all_shapes
def test_a_placeholder_stays_in_a_part_of_the_returned_list_where_an_equal_one_was_dropped(
    shape: str, tmp_path: Path
) -> None:
    """The caller cuts off the list at either end."""
    steps = EQUAL.replace("OVER", "7").replace("user_message", "assistant_message")
    offloadable = "items: {assistant_message: {offload: true}}\nmin_chars: 0\n"
    compiled = policy(f"{offloadable}store: {{sync: never}}\nsteps:\n{steps}")
    live = opened(compiled, tmp_path, shape)
    rounds = [[ROUNDS[shape](i)[0], reply(shape, f"reply {i}")] for i in range(5)]
    back = live.apply([one for each in rounds[:3] for one in each]).messages
    assert str(back).count("[gone]") == 3
    back = live.apply([*back, *rounds[3], rounds[4][0]]).messages
    assert str(back).count("[gone]") == 2
    for part in [*(back[:end] for end in range(1, len(back))), back[2:]]:
        left = left_before_decisions(live, list(part), shape)
        assert without_fillers(left) == without_fillers(part)


OLD_RESULTS = """
items: {tool_result: {offload: true, keep_recent: 1}}
steps: [{name: old, do: offload}]
"""


def test_a_list_with_nothing_of_the_saved_session_is_warned_of_once(tmp_path: Path) -> None:
    opened = partial(Session, policy(OLD_RESULTS), root=tmp_path, session_id="s")
    said = [*anthropic(0), *anthropic(1)]
    first = opened().apply(said)
    assert first.files
    assert not first.warnings
    again = opened()
    [warning] = again.apply([plain("user", "Something else.")]).warnings
    assert warning == (
        "this list has nothing of the item that left in this session before; if it is another"
        " conversation, give it a session_id of its own"
    )
    assert not again.apply([plain("user", "Something else."), *anthropic(2)]).warnings


@pytest.mark.parametrize("form", ["own", "returned", "longer"])
def test_a_list_that_goes_on_has_no_warning(form: str, tmp_path: Path) -> None:
    opened = partial(Session, policy(OLD_RESULTS), root=tmp_path, session_id="s")
    said = [*anthropic(0), *anthropic(1)]
    returned = list(opened().apply(said).messages)
    lists = {"own": said, "returned": returned, "longer": [*returned, *anthropic(2)]}
    assert not opened().apply(lists[form]).warnings


def test_a_list_after_a_compaction_has_no_warning(tmp_path: Path) -> None:
    opened = partial(Session, policy(OLD_RESULTS), root=tmp_path, session_id="s")
    session = opened()
    session.apply([*anthropic(0), *anthropic(1)])
    returned = list(session.compact([*anthropic(0), *anthropic(1)]).messages)
    assert not opened().apply([*returned, plain("user", "Go on.")]).warnings
