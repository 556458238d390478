"""Whole talks, each of whose lists comes also to a restarted session."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx.definitions.items import Message
from tests.policies import policy
from tests.restarting import (
    EQUAL,
    IMAGE_SHAPES,
    ROUNDS,
    TRIM,
    both,
    call_alone,
    compacting,
    dropping,
    late_picture,
    late_result,
    opened,
    plain,
    reply,
    shown,
)

REASONING: Message = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"}


def twice(shape: str, asked: Any) -> list[Any]:
    """One reply with a call twice."""
    if isinstance(asked, types.Content):
        return [types.Content(role="model", parts=asked.parts * 2)]
    if shape == "responses":
        return [asked, asked]
    key = {"chat": "tool_calls", "gemini": "parts"}.get(shape, "content")
    return [asked | {key: asked[key] * 2}]


Talk = Generator[list[Any], list[Any], None]


CASES: dict[str, tuple[str, tuple[str, ...], Callable[[str], Talk]]] = {}


def case(
    steps: str, *shapes: str, offloadable: str = "user_message", of: str = ""
) -> Callable[[Callable[..., Talk]], Callable[..., Talk]]:
    """Add the lists that a caller sends, each in a turn, to the table.

    The policy has these steps. What yields a list gets the list that `apply` returned. `of` is the
    second argument, where one function is several cases.
    """
    kinds = ", ".join(f"{kind}: {{offload: true}}" for kind in offloadable.split())
    text = f"items: {{{kinds}}}\nmin_chars: 0\nstore: {{sync: never}}\nsteps:\n{steps}"

    def add(talk: Callable[..., Talk]) -> Callable[..., Talk]:
        name = " ".join(filter(None, (talk.__name__.replace("_", " "), of)))
        sending = partial(talk, of=of) if of else talk
        CASES[name] = text, shapes or tuple(ROUNDS), sending
        return talk

    return add


def trimming(*, over: int = 2, kept: int = 1) -> str:
    return TRIM.replace("over: 2", f"over: {over}").replace("messages: 1", f"messages: {kept}")


@case(
    dropping("types: [user_message], keep_recent: 1") + compacting(3, "keep_recent: {messages: 1}"),
    *IMAGE_SHAPES,
)
def a_compaction_of_a_message_of_which_words_left(shape: str) -> Talk:
    back = yield [shown(shape, "look at this", "AAAA"), plain("assistant", "a"), plain("user", "b")]
    assert "look at this" not in str(back)
    back = yield [*back, plain("assistant", "b"), plain("user", "and now?")]
    assert "AAAA" not in str(back)


@case(
    dropping("types: [user_message], keep_recent: 1")
    + compacting(4, "keep_first: 1, keep_recent: {messages: 1}"),
    "anthropic",
)
def words_said_again_behind_a_summary(_: str) -> Talk:
    """The first of them were dropped."""
    full = [plain("assistant", "hello"), plain("user", "go on")]
    for word in "abc":
        full += [plain("assistant", word), plain("user", f"question {word}")]
    yield full
    full += [plain("assistant", "d"), plain("user", "go on")]
    assert (yield full)[-1] == full[-1]


@case(
    "  - {name: words, do: drop, select: {types: [assistant_message], keep_recent: 1},"
    " when: {turns: {over: 3}}}\n" + compacting(6, "keep_recent: {messages: 3}"),
    "anthropic",
    offloadable="assistant_message",
)
def the_reply_to_a_later_summary(_: str) -> Talk:
    """That to an earlier one was dropped. The caller sends the returned list, and then its own."""
    full: list[Any] = []
    back: list[Any] = []
    for i in range(8):
        more = [plain("user", f"question {i}"), plain("assistant", f"answer {i}")]
        full, back = [*full, *more], [*back, *more]
        back = (yield [*back, plain("user", "go")])[:-1]
        yield [*full, plain("user", "go")]


@case(dropping("types: [image]"), *IMAGE_SHAPES, offloadable="image")
def an_image_that_the_own_list_ends_with(shape: str) -> Talk:
    """The caller goes back to the message with the image, and something was dropped later."""
    full = [shown(shape, "look at this", "AAAA"), plain("assistant", "a")]
    yield [*full, shown(shape, "and at this", "BBBB")]
    assert "AAAA" not in str((yield full[:1]))


@case(dropping("types: [tool_call]"), "responses", offloadable="tool_call tool_result")
def reasoning_that_the_own_list_ends_with(shape: str) -> Talk:
    question, _, asked, found = ROUNDS[shape](0)
    full = [question, REASONING, asked, found, plain("user", "more")]
    assert (yield full) == [question, full[-1]]
    assert (yield full[:2]) == [question]


@case(
    "  - {name: messages, do: drop, when: {messages: {at_least: 5}},"
    " select: {types: [image], unit: message, keep_recent: 0}}\n"
    "  - {name: images, do: clear, must_shrink: false, select: {types: [image]}}\n",
    *IMAGE_SHAPES,
    offloadable="user_message image",
)
def what_a_shorter_list_brings_back(shape: str) -> Talk:
    """There, a step clears a part of it; that part is a placeholder in no other list."""
    full = [plain("user", "one"), plain("assistant", "a"), shown(shape, "look", "AAAA")]
    full += [plain("assistant", "b"), plain("user", "two")]
    whole = yield full
    assert "look" not in str(whole)
    cut = yield full[2:]
    assert "look" in str(cut)
    assert "AAAA" not in str(cut)
    assert (yield cut) == cut
    assert (yield full) == whole
    assert (yield full[2:]) == cut


@case(
    dropping("types: [assistant_message], unit: group"),
    offloadable="assistant_message",
    of="returned",
)
@case(
    dropping("types: [assistant_message], unit: group"), offloadable="assistant_message", of="own"
)
def replies_of_a_list_that_ends_early(shape: str, of: str) -> Talk:
    """The caller goes back to a reply, of which the model made several in a row.

    Behind the returned list, each of them followed the question when it was dropped.
    """
    full = back = [ROUNDS[shape](0)[0]]
    for text in "abcd":
        full = [*full, reply(shape, text)]
        back = yield full if of == "own" else [*back, full[-1]]
    yield full
    for end in range(1, len(full)):
        assert (yield full[:end]) == full[:1]


@case(compacting(6, "keep_recent: {messages: 0}"), "responses")
def reasoning_of_a_reply_that_was_cut_off_behind_it_and_goes_on(shape: str) -> Talk:
    """A compaction has replaced it at the end of the shorter list."""
    cut = [*ROUNDS[shape](0), *ROUNDS[shape](1), REASONING]
    yield cut
    asked = ROUNDS[shape](2)[2]
    assert (yield [*cut, asked])[-2:] == [REASONING, asked]


@case(compacting(6, "keep_recent: {messages: 0}"), "responses")
def a_list_that_is_whole_again(shape: str) -> Talk:
    """A compaction has replaced the beginning of the shorter list meanwhile."""
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), plain("user", "more")]
    full += [*ROUNDS[shape](2), *ROUNDS[shape](3)]
    yield full[:9]
    whole = yield full
    yield full[:16]
    assert (yield full) == whole


@case(dropping("types: [assistant_message]") + TRIM, offloadable="assistant_message")
def the_reply_to_a_summary(shape: str) -> Talk:
    """No step drops it."""
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    compacted = yield full
    assert len(compacted) == 3
    assert (yield full) == compacted


@case(dropping("types: [user_message], keep_recent: 1") + TRIM)
def words_that_a_summary_replaced_and_that_are_said_again(shape: str) -> Talk:
    """They are dropped once."""
    full = ROUNDS[shape](0)
    yield full
    full += [full[0], ROUNDS[shape](1)[0]]
    assert "question 0" not in str((yield full)[1:])


@case(dropping("types: [assistant_message]") + TRIM, offloadable="assistant_message")
def the_beginning_of_a_reply_that_goes_on(shape: str) -> Talk:
    """It was dropped at the end of the caller's own list, in the turn that made a summary."""
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), reply(shape, "the beginning")]
    assert "the beginning" not in str((yield full))
    assert "the beginning" not in str((yield [*full, reply(shape, "the end")]))


@case(
    dropping(
        "types: [user_message, assistant_message, tool_call], keep_recent: {items: 2, per: type}"
    ),
    offloadable="user_message assistant_message",
)
def the_question_that_stays_first_after_more_were_dropped(shape: str) -> Talk:
    """A second result of a dropped call comes."""
    full = [one for i in range(4) for one in ROUNDS[shape](i)]
    yield full
    full += [ROUNDS[shape](4)[0], late_result(shape, 0)]
    yield full
    yield full


@case(TRIM)
def the_texts_of_late_results(shape: str) -> Talk:
    """The caller passes back the returned list, with one result more at a time."""
    back = yield [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    given = [*back]
    for i in range(2):
        given.append(late_result(shape, i))
        before, back = back, (yield given)
        assert back[: len(before)] == before
        assert str(back).count("Result of the call") == i + 1


@case(trimming(over=6), "anthropic", "bedrock", "google", "gemini")
def a_message_that_a_late_result_has_left(shape: str) -> Talk:
    """Another late result, which is a text of the user, was replaced by the second summary."""
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    yield full
    full += [late_result(shape, 8), *ROUNDS[shape](3), *ROUNDS[shape](4), ROUNDS[shape](7)[0]]
    yield full
    asked, found = ROUNDS[shape](5)[1:]
    full += [asked, both(found, late_result(shape, 9))]
    before = yield full
    for more in (ROUNDS[shape](6)[0], reply(shape, "so")):
        full = [*full, more]
        assert (yield full)[: len(before)] == before


THREE_TURNS = (
    "  - {name: old, do: drop, when: {since_last: {turns: {at_least: 3}}},"
    " select: {types: [assistant_message]}}\n" + trimming(kept=3)
)


@case(THREE_TURNS, offloadable="assistant_message", of="image")
@case(THREE_TURNS, offloadable="assistant_message", of="text")
def a_late_result_begins_no_turn(shape: str, of: str) -> Talk:
    """The list begins behind its call. The compaction leaves the number of turns as it was."""
    late = late_picture(shape, 9) if of == "image" else late_result(shape, 9)
    full = [*ROUNDS[shape](0), reply(shape, "so"), ROUNDS[shape](1)[0], late]
    compacted = yield full
    assert "Result of the call c9:" in str(compacted)
    assert (yield full) == compacted


@case(dropping("types: [user_message], keep_recent: 2") + trimming(over=5))
def a_compaction_behind_two_equal_late_results(shape: str) -> Talk:
    """The text of the first one was dropped; the second one stands."""
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), ROUNDS[shape](2)[0]]
    yield full
    more = [late_result(shape, 9), reply(shape, "a"), late_result(shape, 9), reply(shape, "b")]
    for one in (*more, ROUNDS[shape](3)[0], reply(shape, "c"), reply(shape, "d")):
        full = [*full, one]
        yield full


@case(
    dropping("types: [assistant_message], keep_recent: {messages: 4}") + trimming(over=4, kept=2),
    "anthropic",
    offloadable="assistant_message",
)
def an_empty_message_behind_a_summary(_: str) -> Talk:
    """The list ended with what followed it, and what was dropped, when the summary was made."""
    full = [plain("user", "a"), plain("assistant", "b"), plain("user", "c"), plain("user", "")]
    full.append(plain("assistant", "dropped"))
    yield full
    for word in "de":
        full += [plain("user", word), plain("assistant", word)]
    back = yield full
    assert "dropped" not in str(back)
    assert (yield full) == back


@case(trimming(over=4, kept=2), offloadable="tool_result", of="beside an answered one")
@case(trimming(over=4, kept=2), offloadable="tool_result", of="alone")
def a_call_that_waits(shape: str, of: str) -> Talk:
    """A summary replaced a call without a result; the newest call has its id."""
    first, second, third = (ROUNDS[shape](i)[0] for i in range(3))
    asked = call_alone(shape, 0)
    full = [first, asked, second, reply(shape, "so"), third]
    yield full
    more = [asked] if of == "alone" else [*twice(shape, asked), ROUNDS[shape](0)[-1]]
    full = [*full, reply(shape, "go on"), *more]
    back = yield full
    assert back[-3:] == full[-3:]
    assert "question 0" not in str(back)


def losing_words(one_round: int) -> str:
    settings = f"keep_first: 1, keep_recent: {{messages: {one_round}}}"
    words = dropping("types: [user_message], keep_recent: 2")
    return words + compacting(2 * one_round, settings)


@case(losing_words(4), "responses", of="of items")
@case(losing_words(3), *(shape for shape in ROUNDS if shape != "responses"), of="of messages")
def the_first_words(shape: str, of: str) -> Talk:
    """A list without its beginning begins with words that a summary replaced in the whole one."""
    [first, *_], [hint, *_] = ROUNDS[shape](9), ROUNDS[shape](8)
    full = [first, *ROUNDS[shape](0), hint]
    yield full
    full = [*full, *ROUNDS[shape](1)]
    yield full
    full = [*full, ROUNDS[shape](2)[0]]
    assert "question 8" not in str((yield full[full.index(hint) :])), of
    assert "question 0" not in str((yield full))
    yield [*full, *ROUNDS[shape](2)[1:]]


@case(EQUAL.replace("OVER", "7"))
def equal_placeholders_of_which_the_second_was_dropped(shape: str) -> Talk:
    """Each leaves the placeholder of the others, and the newest question stays."""
    full = [one for i in range(3) for one in (ROUNDS[shape](i)[0], reply(shape, f"reply {i}"))]
    question, *more = ROUNDS[shape](3)
    back = yield [*full, question]
    assert str(back).count("[gone]") == 3
    back = yield [*back, *more]
    assert str(back).count("[gone]") == 2


@case(EQUAL.replace("OVER", "6"))
def equal_placeholders_beside_words_that_were_cleared_in_the_next_turn(shape: str) -> Talk:
    """The placeholders are not those of the words that stand whole in the same list."""
    full = [one for i in range(2) for one in (ROUNDS[shape](i)[0], reply(shape, f"reply {i}"))]
    back = yield [*full, ROUNDS[shape](2)[0]]
    assert str(back).count("[gone]") == 2
    back = yield [*back, reply(shape, "reply 2"), ROUNDS[shape](3)[0]]
    assert str(back).count("[gone]") == 2
    assert "question 2" not in str(back)


@pytest.mark.parametrize(
    ("name", "shape"), [(name, shape) for name in CASES for shape in CASES[name][1]]
)
def test_a_restarted_session_leaves_in_every_turn_what_a_living_one_left(
    name: str, shape: str, tmp_path: Path
) -> None:
    text, _, talk = CASES[name]
    live, sending = opened(policy(text), tmp_path, shape), talk(shape)
    given, compacts = next(sending), "do: compact" in text
    compactions = 0
    with suppress(StopIteration):
        while True:
            result = live.apply(list(given))
            compactions += result.compacted is True
            anew = opened(live.policy, tmp_path, shape).apply(list(given))
            assert list(anew.messages) == list(result.messages)
            assert anew.plan.new == ()
            assert not anew.compacted
            given = sending.send(list(result.messages))
    assert bool(compactions) == compacts
