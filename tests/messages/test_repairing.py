"""Lists that a provider would refuse, and what `on_broken` makes of them."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest

from policyctx import BrokenMessagesError, Session
from policyctx.definitions.items import Message
from policyctx.messages.door import BEGINNING, INTERRUPTED, Door
from policyctx.messages.shapes.built_in import Shaped, Shapes
from tests.conversations import calls, chat_calls, chat_result, results, session_of, thinking, user
from tests.fuzz.conversations import ALL_SHAPES, Shape, Writer
from tests.fuzz.histories import SHAPES_OF_HOSTS
from tests.fuzz.memory_store import MemoryStore
from tests.fuzz.rules import broken
from tests.policies import policy


def repaired(messages: list[Message]) -> list[Message]:
    return [*Door({}, "repair", Shapes()).let_in(messages).messages]


def words(*texts: str) -> list[Message]:
    return [{"role": "assistant", "content": text} for text in texts]


BROKEN: dict[str, tuple[list[Message], list[Message], list[str]]] = {
    "a call that was interrupted": (
        [user("go"), calls(("a", "Bash")), user("stop")],
        [user("go"), user("stop")],
        ["the call a has no result right after it; dropped"],
    ),
    "one of two parallel calls": (
        [user("go"), calls(("a", "Bash"), ("b", "Bash")), results(("a", "x")), *words("ok")],
        [user("go"), calls(("a", "Bash")), results(("a", "x")), *words("ok")],
        ["the call b has no result right after it; dropped"],
    ),
    "a result without its call": (
        [user("go"), results(("a", "x")), *words("ok"), user("on")],
        [user("go"), user("Result of the call a:\nx"), *words("ok"), user("on")],
        ["the result a has no call right before it; now a message of the user"],
    ),
    "a result behind the words of the user": (
        [user("go"), chat_calls(("a", "run", "{}")), user("wait"), chat_result("a", "x")],
        [user("go"), user("wait"), user("Result of the call a:\nx")],
        [
            "the call a has no result right after it; dropped",
            "the result a has no call right before it; now a message of the user",
        ],
    ),
    "a stray result between parallel ones": (
        [
            user("go"), chat_calls(("a", "run", "{}"), ("b", "run", "{}")),
            chat_result("a", "x"), chat_result("z", "?"), chat_result("b", "y"), *words("ok"),
        ],
        [
            user("go"), chat_calls(("a", "run", "{}"), ("b", "run", "{}")),
            chat_result("a", "x"), chat_result("b", "y"), user("Result of the call z:\n?"),
            *words("ok"),
        ],
        ["the result z has no call right before it; now a message of the user"],
    ),
    "no beginning": (
        [{"role": "system", "content": "rules"}, *words("hello"), user("go")],
        [{"role": "system", "content": "rules"}, user(BEGINNING), *words("hello"), user("go")],
        ["the list begins with an assistant message; a prompt precedes it"],
    ),
    "an empty message": (
        [user("go"), {"role": "assistant", "content": []}, user("on")],
        [user("go"), user("on")],
        ["a message of role assistant is empty; dropped"],
    ),
    "nothing but thinking": (
        [user("go"), {"role": "assistant", "content": [thinking()]}, user("on")],
        [user("go"), user("on")],
        ["thinking is not followed by what it led to; dropped"],
    ),
    "thinking that led to a lost call": (
        [
            user("go"),
            {"role": "assistant", "content": [thinking(), calls(("a", "Bash"))["content"][0]]},
            user("on"),
        ],
        [user("go"), user("on")],
        [
            "the call a has no result right after it; dropped",
            "thinking is not followed by what it led to; dropped",
        ],
    ),
    "a call at the end": (
        [user("go"), *words("I look."), calls(("a", "Bash"))],
        [user("go"), *words("I look."), user(INTERRUPTED)],
        ["the call a has no result right after it; dropped"],
    ),
    "a second result": (
        [user("go"), calls(("a", "Bash")), results(("a", "x")), results(("a", "y"))],
        [user("go"), calls(("a", "Bash")), results(("a", "x")), user("Result of the call a:\ny")],
        ["the result a has no call right before it; now a message of the user"],
    ),
    "an item of the Responses API without its output": (
        [
            user("go"), {"type": "reasoning", "id": "r", "summary": []},
            {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{}"}, user("on"),
        ],
        [user("go"), user("on")],
        [
            "the call a has no result right after it; dropped",
            "thinking is not followed by what it led to; dropped",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_list_is_repaired_and_a_warning_says_how(name: str, tmp_path: Path) -> None:
    given, expected, notes = BROKEN[name]
    before = copy.deepcopy(given)
    session = Session(policy("on_broken: repair"), root=tmp_path)
    result = session.apply(given)
    assert list(result.messages) == expected
    assert result.warnings == tuple(f"repaired: {note}" for note in notes)
    assert given == before
    for place, source in enumerate(result.sources):
        if source is not None and expected[place] == given[source]:
            assert result.messages[place] is given[source]
    again = session.apply(given)
    assert (again.messages, again.warnings) == (result.messages, ())
    assert session.preview(given) == result.messages


@pytest.mark.parametrize("name", BROKEN)
def test_a_policy_may_refuse_a_broken_list(name: str, tmp_path: Path) -> None:
    given, _, notes = BROKEN[name]
    session = Session(policy("on_broken: refuse"), root=tmp_path)
    with pytest.raises(BrokenMessagesError) as caught:
        session.apply(given)
    assert [*caught.value.problems] == [note.partition(";")[0] for note in notes]


@pytest.mark.parametrize("name", BROKEN)
def test_by_default_a_broken_list_stays(name: str, tmp_path: Path) -> None:
    given = BROKEN[name][0]
    assert Session(policy("steps: []"), root=tmp_path).apply(given).messages is given


LATE = [
    user("go"), {"type": "function_call", "call_id": "a", "name": "run", "arguments": "{}"},
    user("meanwhile"), {"type": "function_call_output", "call_id": "a", "output": "x"}, user("on"),
]  # fmt: skip


@pytest.mark.parametrize("given", [LATE, session_of("x", "y")])
@pytest.mark.parametrize("how", ["repair", "refuse"])
def test_a_valid_list_is_the_same_object(given: list[Message], how: str, tmp_path: Path) -> None:
    session = Session(policy(f"on_broken: {how}"), root=tmp_path)
    for end in range(len(given), len(given) + 1):
        part = given[:end]
        assert session.apply(part).messages is part


# What the provider runs itself stays as it is, and a list may have nothing left. A result of the
# client without a call is an orphan, too.
NOT_REPAIRED = (
    "result without its call",
    "call of the provider without its result",
    "id of calls without any result behind them",
    "no message left",
)


WITH_TOOLS_OF_THE_PROVIDER = ("bedrock", "google", "gemini")


def damaged(rng: random.Random, messages: list[Message]) -> list[Message]:
    """Return a list that lost some of its messages."""
    lost = {rng.randrange(len(messages)) for _ in range(rng.randint(1, 4))}
    return [message for place, message in enumerate(messages) if place not in lost]


@pytest.mark.parametrize("shape", dict.fromkeys(ALL_SHAPES))
def test_a_list_of_each_shape_that_lost_messages_is_taken_again(shape: Shape) -> None:
    of_host = SHAPES_OF_HOSTS.get(shape, ())
    for seed in range(40):
        rng = random.Random(seed)  # noqa: S311 - no secret
        given = damaged(rng, Writer(rng, shape, repeats=False).conversation(3))
        if not given:
            continue
        session = Session(
            policy("on_broken: repair"), session_id="s", store=MemoryStore(), shapes=of_host
        )
        for end in sorted({rng.randint(1, len(given)), len(given)}):
            left = list(session.apply(given[:end]).messages)
            found = +broken(left)
            for name in NOT_REPAIRED:
                del found[name]
            # The lists of the other shapes have halves of pairs of the provider's tools.
            assert shape in WITH_TOOLS_OF_THE_PROVIDER or not found, (seed, left)
            alone = Door({}, "repair", Shapes(of_host)).let_in(given[:end])
            assert Door({}, "keep", Shapes(of_host)).let_in(left).messages == alone.messages
            assert not Door({}, "repair", Shapes(of_host)).let_in(left).faults


def test_what_is_behind_the_newest_reply_is_all_that_is_read_again() -> None:
    """The known part is looked at no more: it is compared by its objects."""
    read = []

    class Counting(Shapes):
        def checked(self, given: object, index: int) -> Shaped:
            read.append(given)
            return super().checked(given, index)

    door, messages = Door({}, "repair", Counting()), session_of(*["x"] * 400)
    door.let_in(messages)
    read.clear()
    door.let_in([*messages, user("on")])
    assert len(read) < 30
