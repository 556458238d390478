"""Lists for an API that refuses two messages of one role in a row, such as Bedrock's Converse."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx import Session, Shape
from policyctx.definitions.items import Message
from policyctx.definitions.names import RESULT_OF
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.messages.fillers import FILLER
from policyctx.planning.compiled import OffloadPolicy
from tests.drawing import rotated
from tests.fuzz.conversations import Writer
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

SESSIONS = 3
_OFFLOADED = ("tool_result", "tool_call", "user_message", "assistant_message")
_HEAD = f"""\
model: {{context_window: 1000, tokenizer: approximate}}
min_chars: 0
store: {{sync: never}}
items: {{{", ".join(f"{kind}: {{offload: true}}" for kind in _OFFLOADED)}}}
"""
_WINDOW = """\
compaction: {keep_recent: {messages: KEPT}, min_new: 0, summary: {must_shrink_to: false}}
steps: [{name: c, do: compact, when: {messages: {over: 4}}}]
"""
_RESTORING = _WINDOW.replace("summary:", "wording: {summary_reply: ''}, summary:")
_TRIMMED = _WINDOW.replace("must_shrink_to: false", "by: none").replace(
    "summary:", "wording: {summary: '[Earlier messages were removed.]'}, summary:"
)


def _dropping(selected: str) -> str:
    return f"steps: [{{name: d, do: drop, select: {{{selected}}}}}]\n"


def _policies() -> Iterator[Any]:
    for kind in (*_OFFLOADED, "thinking", "image", "'*'"):
        for kept in (0,) if kind == "image" else (0, 2):
            yield pytest.param(
                _dropping(f"types: [{kind}], keep_recent: {kept}"), id=f"{kind} {kept}"
            )
    for unit in ("message", "group", "turn"):
        selected = f"types: [tool_result, assistant_message], unit: {unit}, keep_recent: 1"
        yield pytest.param(_dropping(selected), id=unit)
    yield pytest.param(
        "steps: [{name: o, do: offload, select: {types: [tool_result], keep_recent: 1}},"
        " {name: d, do: drop, select: {types: [assistant_message], keep_recent: 2}}]\n",
        id="offload and drop",
    )
    for name, text in {"compaction": _WINDOW, "no reply": _RESTORING, "trim": _TRIMMED}.items():
        for kept in (0, 1, 2):
            yield pytest.param(text.replace("KEPT", str(kept)), id=f"{name} {kept}")
    both = _dropping("types: [tool_result, user_message], keep_recent: 1").strip()
    yield pytest.param(
        _WINDOW.replace("KEPT", "2").replace("[{name: c", both[len("steps: ") : -1] + ", {name: c"),
        id="drop and compaction",
    )


EACH = pytest.mark.parametrize(
    ("steps", "caller"),
    [
        pytest.param(*one.values, caller, id=f"{one.id}-{caller}")
        for one, caller in rotated(_policies(), ["keeps", "feeds back", "restarts"], one_in=3)
    ],
)


class _Lenient(BedrockShape):
    """The same messages for an API that takes two of one role in a row."""

    alternates = False


def in_a_row(messages: Sequence[Message]) -> list[str]:
    """The role of each message that follows one of its own role."""
    roles = [one["role"] if isinstance(one, dict) else one.role for one in messages]
    return [role for before, role in itertools.pairwise(roles) if before == role]


def without_fillers(messages: Sequence[Message]) -> list[Message]:
    return [one for one in messages if one["content"] != [{"text": FILLER}]]


def said(role: str, text: str) -> Message:
    return {"role": role, "content": [{"text": text}]}


def content(text: str, **parts: Any) -> Message:
    """A content of Gemini's model, or of the user with a response."""
    role = "user" if "functionResponse" in parts else "model"
    return {"role": role, "parts": [{"text": text}] * bool(text) + [parts] * bool(parts)}


def contents(read: Callable[[Message], Message]) -> list[Message]:
    """Contents of Gemini's API: two calls with their results, and what the user says then."""
    calls = [{"name": "read", "id": name, "args": {}} for name in "ab"]
    results = [{"name": "read", "id": name, "response": {"output": name * 99}} for name in "ab"]
    found: list[Message] = [{"role": "user", "parts": [{"text": "go"}]}]
    for call, result in zip(calls, results, strict=True):
        found += [content("I read.", functionCall=call), content("", functionResponse=result)]
    return [*map(read, [*found, content("done"), found[0]])]


def talk(seed: int) -> list[Message]:
    """A random session that alternates: what follows in one role is one message.

    The first one has texts alone.
    """
    if not seed:
        words = "abcdefghijk"
        return [said(("user", "assistant")[i % 2], f"{word} " * 40) for i, word in enumerate(words)]
    rng = random.Random(seed)  # noqa: S311 - no secret
    found: list[Message] = []
    for one in Writer(rng, "bedrock", repeats=seed % 2 == 0).conversation(5):
        if found and found[-1]["role"] == one["role"]:
            found[-1] = one | {"content": [*found[-1]["content"], *one["content"]]}
        elif found or one["role"] == "user":
            found.append(one)
    return found


class _Caller:
    """Sends a session turn by turn, whenever the list ends with a message of the user."""

    def __init__(self, compiled: OffloadPolicy, how: str, shape: BedrockShape) -> None:
        self._policy, self._how, self._shape = compiled, how, shape
        self._store = MemoryStore()
        self._session = self._opened()

    def _opened(self) -> Session:
        options: dict[str, Any] = {"store": self._store, "shapes": [self._shape]}
        return Session(self._policy, session_id="s", clock=lambda: 0.0, **options)

    def turns(self, source: Sequence[Message]) -> Iterator[tuple[list[Message], Any]]:
        """Yield each list that is given, and its result."""
        given: list[Message] = []
        for i, message in enumerate(source):
            given = [*given, message]
            if message["role"] == "user" and i % 3 != 1:
                result = self._session.apply(given)
                yield given, result
                given = given if self._how == "keeps" else [*result.messages]
                if self._how == "restarts":
                    self._session = self._opened()


@EACH
def test_a_list_that_alternates_is_sent_alternating(steps: str, caller: str) -> None:
    compiled, decided = policy(_HEAD + steps), 0
    for seed in range(SESSIONS):
        for given, result in _Caller(compiled, caller, BedrockShape()).turns(talk(seed)):
            assert not in_a_row(given)
            assert not in_a_row(result.messages)
            assert result.messages[0]["role"] == "user"
            assert result.messages[-1]["role"] == "user"
            decided += len(result.plan.new) + result.compacted
    assert decided


@pytest.mark.slow
@EACH
def test_fillers_change_nothing_else(steps: str, caller: str) -> None:
    compiled = policy(_HEAD + steps)
    if "messages: 0" in steps:
        return  # such a compaction leaves no reply of its own at the end
    for seed in range(SESSIONS):
        source = talk(seed)
        turns = _Caller(compiled, caller, BedrockShape()).turns(source)
        others = _Caller(compiled, caller, _Lenient()).turns(source)
        for (given, result), (_, other) in zip(turns, others, strict=True):
            assert without_fillers(result.messages) == without_fillers(other.messages)
            assert [d.item for d in result.plan.new] == [d.item for d in other.plan.new]
            came = [*map(id, given)]
            for message, source_ in zip(result.messages, result.sources, strict=True):
                if id(message) in came:
                    assert source_ == came.index(id(message))
                elif source_ is not None:
                    assert given[source_]["role"] == message["role"]
                elif message["content"] == [{"text": FILLER}]:
                    continue


DROPPED = _HEAD + _dropping("types: [tool_result], keep_recent: 0")


def answered(name: str) -> list[Message]:
    """Words with a call, and its result."""
    use = {"toolUse": {"toolUseId": name, "name": "read", "input": {}}}
    result = {"toolResult": {"toolUseId": name, "content": [{"text": f"{name} " * 40}]}}
    return [
        {"role": "assistant", "content": [{"text": f"reading {name}"}, use]},
        {"role": "user", "content": [result]},
    ]


OF_USER = said("user", FILLER)
TALK = [said("user", "go"), *answered("a"), *answered("b"), said("assistant", "done")]
TALK += [said("user", "and now?")]


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(DROPPED), root=tmp_path, session_id="s", shapes=[BedrockShape()])


def test_a_filler_parts_two_replies_and_has_no_source(session: Session) -> None:
    result = session.apply(TALK)
    texts = [said("assistant", f"reading {name}") for name in "ab"]
    assert result.messages == [TALK[0], texts[0], OF_USER, texts[1], OF_USER, *TALK[5:]]
    assert result.sources == (0, 1, None, 3, None, 5, 6)


def test_a_preview_has_the_same_fillers(session: Session) -> None:
    previewed = session.preview(TALK)
    assert not in_a_row(previewed)
    assert session.apply(TALK).messages == previewed
    assert session.preview(TALK) == previewed


def test_a_list_that_comes_back_unchanged_is_the_same_object(session: Session) -> None:
    back = [*session.apply(TALK).messages]
    again = session.apply(back)
    assert again.messages is back
    assert again.sources == (*range(len(back)),)


def test_a_returned_list_to_which_the_caller_adds_keeps_its_fillers(session: Session) -> None:
    sent = session.apply(TALK).messages
    assert isinstance(sent, list)
    before = [*sent]
    sent += [said("assistant", "more"), said("user", "go on")]
    given = [*sent]
    again = session.apply(sent)
    assert sent == given
    assert again.messages == [*before, said("assistant", "more"), said("user", "go on")]
    assert not again.plan.new


def test_a_filler_that_the_caller_changes_is_sent_as_it_should_be(session: Session) -> None:
    result = session.apply(TALK)
    result.messages[2]["content"].append({"cachePoint": {"type": "default"}})
    assert session.apply(TALK).messages[2] == OF_USER


def test_a_filler_to_which_a_host_adds_keys_is_no_message_of_the_user(session: Session) -> None:
    sent = session.apply(TALK).messages
    back = [one | {"metadata": {"place": i}} for i, one in enumerate(sent)]
    assert session.apply(back).messages is back
    assert [one.type for one in session.items].count("user_message") == len([TALK[0], TALK[-1]])
    assert session.apply(TALK).messages == sent


def test_messages_that_the_caller_sent_in_a_row_stay(session: Session) -> None:
    given = [said("user", "go"), said("user", "please"), *answered("a"), said("assistant", "done")]
    given += [said("user", "on"), said("user", "now")]
    result = session.apply(given)
    texts = [said("assistant", "reading a"), OF_USER]
    assert result.messages == [*given[:2], *texts, *given[4:]]
    assert session.apply(given[:2]).messages == given[:2]


def test_words_like_a_filler_that_part_nothing_are_sent(session: Session) -> None:
    given = [said("user", FILLER), said("assistant", "what?"), said("user", FILLER)]
    assert session.apply(given).messages is given
    given = [said("user", "a"), said("user", FILLER), said("assistant", "b"), said("user", "c")]
    assert session.apply(given).messages is given


def test_words_like_fillers_in_a_row_are_sent(tmp_path: Path) -> None:
    quiet = Session(policy(DROPPED), root=tmp_path, session_id="s", shapes=[BedrockShape()])
    like = [said(role, FILLER) for role in ("assistant", "user", "assistant")]
    given = [said("user", "Say it."), *like, said("user", "Thanks.")]
    assert quiet.apply(given).messages is given


def test_a_late_result_that_becomes_a_text_is_parted_from_the_results_before_it(
    tmp_path: Path,
) -> None:
    text = DROPPED.replace("keep_recent: 0", "keep_recent: 2")
    session = Session(policy(text), root=tmp_path, session_id="s", shapes=[BedrockShape()])
    given = session.apply([*TALK[:5], *answered("c"), *TALK[5:]]).messages
    late = {"toolResult": {"toolUseId": "a", "content": [{"text": "at last"}]}}
    asked, result = answered("d")
    sent = session.apply([*given, asked, {"role": "user", "content": [late, *result["content"]]}])
    told = said("user", f"{RESULT_OF}a:\nat last")
    assert sent.messages[-3:] == [result, said("assistant", FILLER), told]
    assert not in_a_row(sent.messages)


@pytest.mark.parametrize("end", [5, 6, 7])
def test_a_compaction_on_demand_alternates(tmp_path: Path, end: int) -> None:
    text = _HEAD + _WINDOW.replace("KEPT", "2").replace("over: 4", "over: 99")
    compacting = Session(policy(text), root=tmp_path, session_id="s", shapes=[BedrockShape()])
    result = compacting.compact(TALK[:end])
    assert result.compacted
    assert not in_a_row(result.messages)


def test_a_list_that_was_refused_as_too_long_alternates(tmp_path: Path) -> None:
    text = DROPPED.replace("do: drop", "on: overflow, do: drop")
    shrinking = Session(policy(text), root=tmp_path, session_id="s", shapes=[BedrockShape()])
    assert shrinking.apply(TALK).messages is TALK
    error = ValueError("prompt is too long: 2000 tokens > 1000 maximum")
    result = shrinking.on_overflow(TALK, error)
    assert result is not None
    assert len(result.messages) == len(TALK)
    assert not in_a_row(result.messages)


@pytest.mark.parametrize(
    ("read", "shapes"),
    [(dict, ()), (types.Content.model_validate, [GoogleShape()])],
    ids=["dicts", "objects"],
)
@pytest.mark.parametrize("steps", [DROPPED, _HEAD + _WINDOW.replace("KEPT", "3")])
def test_contents_of_gemini_alternate(
    read: Callable[[Message], Message], shapes: Sequence[Shape], steps: str, tmp_path: Path
) -> None:
    given = contents(read)
    session = Session(policy(steps), root=tmp_path, session_id="s", shapes=shapes)
    previewed = session.preview(given)
    result = session.apply(given)
    assert not in_a_row(previewed)
    assert not in_a_row(result.messages)
    assert result.plan.new or result.compacted
    assert session.apply(result.messages).messages is result.messages
    assert session.apply(given).messages == result.messages
    again = Session(policy(steps), root=tmp_path, session_id="s", shapes=shapes)
    assert again.apply(given).messages == result.messages


@pytest.mark.parametrize("shape", [GoogleShape(), BedrockShape()], ids=["google", "bedrock"])
def test_a_filler_of_another_shape_than_the_hosts_is_no_message_of_the_user(
    shape: Shape, tmp_path: Path
) -> None:
    given = contents(dict)
    session = Session(policy(DROPPED), root=tmp_path, session_id="s", shapes=[shape])
    sent = session.apply(given).messages
    assert not in_a_row(sent)
    assert content(FILLER) | {"role": "user"} in sent
    back = [*sent, content("more"), given[0]]
    assert session.apply(back).messages == back
    assert [one.type for one in session.items].count("user_message") == 3


def test_other_shapes_get_no_fillers(tmp_path: Path) -> None:
    lenient = Session(policy(DROPPED), root=tmp_path, session_id="s", shapes=[_Lenient()])
    sent = lenient.apply(TALK).messages
    assert OF_USER not in sent
    assert in_a_row(sent)
