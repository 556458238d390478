"""Shapes that break the contract: each mistake is an error that names the shape."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from policyctx import MessagesError, Part, Session, Shape, ShapeError
from policyctx.definitions.items import Path as PartPath
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.messages.json_text import JSON
from tests.policies import policy

OFFLOAD = """\
    min_chars: 100
    store: {sync: never}
    items: {tool_result: {offload: true}}
    placeholder: "see {path}"
    steps: [{name: s, do: offload, must_shrink: false, select: {types: [tool_result]}}]
    """
DROP = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [tool_call], keep_recent: 1}}]
    """
COMPACT = """\
    store: {sync: never}
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: s, do: compact, when: {messages: {at_least: 4}}}]
    """


class Note:
    """A message of a host: pairs of a kind and a text. Two of them are never equal."""

    def __init__(self, role: str, *pairs: tuple[str, str]) -> None:
        self.role, self.pairs = role, list(pairs)


class NoteShape(Shape):
    def recognises(self, message: object) -> bool:
        return isinstance(message, Note)

    def role(self, message: Note) -> str:
        return message.role

    def parts(self, message: Note) -> Iterator[Part]:
        for i, (kind, text) in enumerate(message.pairs):
            call_id = "a" if kind in {"tool_call", "tool_result"} else None
            yield Part(
                (i,), kind, text, tool="ls" if kind == "tool_call" else None, call_id=call_id
            )

    def replaced(self, message: Note, texts: Mapping[PartPath, str | None]) -> Note | None:
        pairs = [(kind, texts.get((i,), text)) for i, (kind, text) in enumerate(message.pairs)]
        left = [(kind, text) for kind, text in pairs if text is not None]
        return Note(message.role, *left) if left else None

    def written(self, role: str, text: str) -> Note:
        return Note(role, ("user_message" if role == "user" else "assistant_message", text))

    def plain(self, message: Note) -> JSON:
        pairs: list[JSON] = [[kind, text] for kind, text in message.pairs]
        return [message.role, *pairs]


def notes() -> list[Any]:
    return [
        Note("user", ("user_message", "go")),
        Note("assistant", ("tool_call", "{}")),
        Note("tool", ("tool_result", "x" * 200)),
        Note("assistant", ("tool_call", "{}")),
        Note("tool", ("tool_result", "y")),
        Note("user", ("user_message", "go on")),
    ]


def with_answers(**answers: Any) -> Shape:
    """A `NoteShape` in which these methods are replaced."""
    made: Shape = type("OddShape", (NoteShape,), answers)()
    return made


def applied(shape: Shape, folder: Path, text: str = OFFLOAD, messages: Any = None) -> Any:
    session = Session(policy(text), root=folder, shapes=[shape])
    return session.apply(notes() if messages is None else messages).messages


class Unshowable:
    def __repr__(self) -> str:
        raise ValueError


def fails(*_: object) -> Any:
    raise KeyError("lost")


def test_a_correct_shape_works_with_objects_that_are_never_equal(tmp_path: Path) -> None:
    for text in (OFFLOAD, DROP, COMPACT):
        folder = tmp_path / str(len(text))
        session = Session(policy(text), root=folder, session_id="s", shapes=[NoteShape()])
        first = session.apply(notes())
        assert len(first.plan.new) or first.compacted
        shape = NoteShape()
        expected = [shape.plain(message) for message in first.messages]
        for given in (notes(), copy.deepcopy(list(first.messages))):
            again = Session(policy(text), root=folder, session_id="s", shapes=[shape])
            for one in (session, again):
                result = one.apply(given)
                assert [shape.plain(message) for message in result.messages] == expected
                assert result.files == ()


@pytest.mark.parametrize(
    ("answers", "mistake"),
    [
        ({"recognises": fails}, "`recognises` raised KeyError: 'lost'"),
        ({"role": fails}, "`role` raised KeyError: 'lost'"),
        ({"role": lambda *_: "model"}, "`role` returned 'model'; the roles are system, developer"),
        ({"role": lambda *_: None}, "`role` returned None; the roles are"),
        ({"role": lambda *_: Unshowable()}, "`role` returned a value of the type Unshowable; the"),
        ({"role": lambda *_: ["user"]}, r"`role` returned \['user'\]; the roles are"),
        ({"parts": fails}, "`parts` raised KeyError: 'lost'"),
        ({"parts": lambda *_: None}, "`parts` returned None instead of a list of parts"),
        ({"parts": lambda *_: "text"}, "`parts` returned 'text' instead of a list of parts"),
        ({"parts": lambda *_: ["text"]}, "`parts` returned 'text' instead of a `Part`"),
        ({"parts": lambda *_: (fails() for _ in "x")}, "`parts` raised KeyError: 'lost'"),
        (
            {"parts": lambda *_: [Part((), "user_message", "a"), Part((), "user_message", "b")]},
            r"`parts` returned two parts with the path \(\)",
        ),
        (
            {"parts": lambda *_: Part((), "user_message", "a")},
            "`parts` returned a value of the type Part instead of a list of parts",
        ),
        ({"problem": lambda *_: True}, "`problem` returned True instead of a string or None"),
        ({"stays": fails}, "`stays` raised KeyError: 'lost'"),
    ],
)  # fmt: skip
def test_an_answer_that_cannot_be_right_is_an_error(
    tmp_path: Path, answers: dict[str, Any], mistake: str
) -> None:
    with pytest.raises(
        ShapeError, match=f"^message 0: the shape OddShape is wrong: {mistake}"
    ) as e:
        applied(with_answers(**answers), tmp_path)
    assert (e.value.shape, e.value.index) == ("OddShape", 0)
    assert isinstance(e.value, MessagesError)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("part", "mistake"),
    [
        (Part((0,), "text", "x"), "the unknown kind 'text'"),
        (Part((0,), ["text"], "x"), r"the unknown kind \['text'\]"),  # type: ignore[arg-type]
        (
            Part((0,), "tool_call", "{}"),
            "a part of the kind tool_call in a message of the role user",
        ),
        (Part((0,), "thinking", "x"), "a part of the kind thinking in a message of the role user"),
        (Part(0, "user_message", "x"), "the path 0, which is not a tuple"),  # type: ignore[arg-type]
        (Part(([],), "user_message", "x"), r"the path \(\[\],\), which"),  # type: ignore[arg-type]
        (Part((), "user_message", None), "None as the `text` of a part"),  # type: ignore[arg-type]
        (Part((), "user_message", "x", 5), "5 as the `counted`"),  # type: ignore[arg-type]
        (Part((), "tool_result", "x", call_id=7), "7 as the `call_id`"),  # type: ignore[arg-type]
        (Part((), "tool_result", "x", tool=b"a"), "b'a' as the `tool`"),  # type: ignore[arg-type]
        (Part((), "image", "x", "", ["png"]), r"\['png'\] as the `media`"),  # type: ignore[arg-type]
        (Part((), "user_message", "x", number=1), "1 as the `number`"),
        (Part((), "image", "x", number=1), "image number 1; the numbers inside a result count"),
    ],
    ids=str,
)
def test_a_part_that_cannot_be_right_is_an_error(tmp_path: Path, part: Part, mistake: str) -> None:
    shape = with_answers(parts=lambda *_: [part])
    with pytest.raises(
        ShapeError, match=f"message 0: the shape OddShape .*`parts` returned {mistake}"
    ):
        applied(shape, tmp_path, messages=[Note("user")])


def test_images_inside_a_result_count_from_one(tmp_path: Path) -> None:
    parts = [Part((0,), "tool_result", "x", call_id="a"), Part((0, 1), "image", "i", "", number=2)]
    shape = with_answers(parts=lambda *_: parts)
    with pytest.raises(
        ShapeError, match="image number 2; the numbers inside a result count from 1"
    ):
        applied(shape, tmp_path, messages=[Note("tool")])


def test_the_position_is_that_in_the_whole_list(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, shapes=[NoteShape()])
    messages = notes()
    first = session.apply(messages).messages
    with pytest.raises(ShapeError, match=r"^message 6: .* the unknown kind 'odd'") as caught:
        session.apply([*messages, Note("user", ("odd", "x"))])
    assert caught.value.index == 6
    assert session.apply(messages).messages == first


def returning_itself(_: object, message: Note, __: object) -> Note:
    return message


def changing_it(_: object, message: Note, texts: Any) -> Note:
    message.pairs = [(kind, str(texts[0,])) for kind, _ in message.pairs]
    return Note(message.role, *message.pairs)


def ignoring(_: object, message: Note, __: object) -> Note:
    return Note(message.role, *message.pairs)


def wrapping(_: object, message: Note, texts: Any) -> Note:
    return Note(message.role, ("tool_result", f"<{texts[0,]}>"))


def of_another_role(_: object, __: Note, texts: Any) -> Note:
    return Note("user", ("tool_result", texts[0,]))


def emptying_the_edits(_: object, message: Note, texts: Any) -> Note:
    texts.clear()
    return Note(message.role, *message.pairs)


def doubling(_: object, message: Note, texts: Any) -> Note:
    return Note(message.role, *[("tool_result", texts[0,])] * 2)


@pytest.mark.parametrize(
    ("replaced", "mistake"),
    [
        (fails, "`replaced` raised KeyError: 'lost'"),
        (returning_itself, "`replaced` returned the message that it was given"),
        (changing_it, "`replaced` changed the message that it was given"),
        (ignoring, "after `replaced`, the part with the path .* reads a value of the type str"),
        (emptying_the_edits, "after `replaced`, the part with the path .* reads a value of the"),
        (wrapping, "after `replaced`, the part with the path .* reads '?a? ?.*'?, not "),
        (of_another_role, "`replaced` changed the role from tool to user"),
        (doubling, r"after `replaced`, there is a new part with the path \(1,\)"),
        (lambda *_: {"role": "tool"}, "`replaced` returned .*, which it does not recognise"),
        (lambda *_: None, r"after `replaced`, the part with the path \(0,\) is missing"),
    ],
)
def test_an_edit_that_does_something_else_is_an_error(
    tmp_path: Path, replaced: Any, mistake: str
) -> None:
    messages = notes()
    session = Session(policy(OFFLOAD), root=tmp_path, shapes=[with_answers(replaced=replaced)])
    with pytest.raises(ShapeError, match=f"^message 2: the shape OddShape is wrong: {mistake}"):
        session.apply(messages)
    assert not list(tmp_path.iterdir())
    if replaced is not changing_it:
        assert [len(message.pairs[0][1]) for message in messages] == [2, 2, 200, 2, 1, 5]


@pytest.mark.parametrize(
    "replaced",
    [
        lambda _, message, __: Note(message.role, message.pairs[1]),
        lambda _, message, __: Note(message.role, message.pairs[1], message.pairs[0]),
        lambda _, message, __: Note(message.role, ("assistant_message", "other")),
    ],
)
def test_an_edit_that_loses_another_part_is_an_error(tmp_path: Path, replaced: Any) -> None:
    messages = notes()
    messages[1].pairs.insert(0, ("assistant_message", "I look."))
    shape = with_answers(replaced=replaced)
    with pytest.raises(
        ShapeError, match="message 1: the shape OddShape is wrong: after `replaced`, "
    ):
        applied(shape, tmp_path, DROP, messages)


@pytest.mark.parametrize("value", [object(), {1, 2}, b"x", {"a": b"x"}])
def test_values_that_are_not_json_are_an_error(tmp_path: Path, value: object) -> None:
    for method in ("plain", "block"):
        shape = with_answers(**{method: lambda *_: value})
        with pytest.raises(ShapeError, match=f"`{method}` returned what is not JSON: "):
            applied(shape, tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("written", "mistake"),
    [
        (fails, "`written` raised KeyError: 'lost'"),
        (lambda *_: None, "`written` returned None, which it does not recognise"),
        (lambda *_: Note("user"), "`written` returned a message that is not one text of the user"),
        (
            lambda _, role, text: Note(role, ("user_message", text), ("image", "x")),
            "`written` returned a message that is not one text of the user",
        ),
    ],
)
def test_a_summary_that_is_not_the_text_is_an_error(
    tmp_path: Path, written: Any, mistake: str
) -> None:
    with pytest.raises(ShapeError, match=f"the shape OddShape is wrong: {mistake}"):
        applied(with_answers(written=written), tmp_path, COMPACT)


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_shape_that_cannot_write_is_found_before_a_summary_is_asked_for(
    tmp_path: Path, role: str
) -> None:
    def written(shape: Any, wanted: str, text: str) -> Any:
        return None if wanted == role else NoteShape.written(shape, wanted, text)

    def summarizer(_: object) -> str:
        asked.append(role)
        return "a summary"

    asked: list[str] = []
    session = Session(
        policy(COMPACT),
        root=tmp_path,
        shapes=[with_answers(written=written)],
        summarizer=summarizer,
    )
    with pytest.raises(ShapeError, match="`written` returned None"):
        session.apply(notes())
    assert asked == []


def test_a_session_goes_on_after_a_mistake(tmp_path: Path) -> None:
    shape: Any = with_answers()
    session = Session(policy(COMPACT), root=tmp_path, session_id="s", shapes=[shape])
    messages = notes()
    shape.written = fails
    with pytest.raises(ShapeError):
        session.apply(messages)
    del shape.written
    result = session.apply(messages)
    assert result.compacted
    assert result.messages[-1] is messages[-1]
    again = Session(policy(COMPACT), root=tmp_path, session_id="s", shapes=[shape]).apply(notes())
    assert list(map(shape.plain, again.messages)) == list(map(shape.plain, result.messages))


def test_a_summary_that_differs_each_time_is_an_error(tmp_path: Path) -> None:
    count = iter(range(100))
    shape = with_answers(plain=lambda *_: next(count))
    with pytest.raises(ShapeError, match="`written` returned two messages that differ"):
        applied(shape, tmp_path, COMPACT)


def test_thinking_beside_other_parts_needs_a_block(tmp_path: Path) -> None:
    messages = [Note("assistant", ("thinking", "hm"), ("assistant_message", "hi"))]
    with pytest.raises(
        ShapeError, match="yields `thinking` beside other parts, but has no `block`"
    ):
        applied(NoteShape(), tmp_path, messages=messages)


@pytest.mark.parametrize(
    ("shapes", "mistake"),
    [
        (NoteShape(), "the shape NoteShape is wrong: `shapes` is a list of shapes, not one shape"),
        (NoteShape, "the shape NoteShape is wrong: `shapes` is a list of shapes, not one shape"),
        (
            [NoteShape],
            "the shape NoteShape is wrong: `shapes` holds instances, and this is a class",
        ),
        ([5], "the shape int is wrong: it has no method `recognises`; derive it from `Shape`"),
    ],
)
def test_what_is_not_a_shape_is_an_error_at_once(tmp_path: Path, shapes: Any, mistake: str) -> None:
    with pytest.raises(ShapeError) as caught:
        Session(policy(OFFLOAD), root=tmp_path, shapes=shapes)
    assert str(caught.value) == mistake


def test_a_shape_without_a_method_cannot_be_made() -> None:
    class Half(Shape):
        def recognises(self, message: object) -> bool:
            return message is not None

    with pytest.raises(TypeError, match=r"abstract methods? .*parts"):
        Half()  # type: ignore[abstract]


def test_a_problem_that_a_shape_names_is_an_error_of_the_list(tmp_path: Path) -> None:
    shape = with_answers(problem=lambda _, message: "no pairs" if not message.pairs else None)
    with pytest.raises(MessagesError, match=r"^message 1: no pairs$") as caught:
        applied(shape, tmp_path, messages=[*notes()[:1], Note("assistant")])
    assert not isinstance(caught.value, ShapeError)


def test_a_shape_of_dicts_comes_before_the_built_in_ones(tmp_path: Path) -> None:
    message = {"role": "user", "content": [{"text": "hello"}]}
    with pytest.raises(MessagesError, match="content block 0"):
        Session(policy(OFFLOAD), root=tmp_path).apply([message])
    plan = Session(policy(OFFLOAD), root=tmp_path, shapes=[BedrockShape()]).plan([message])
    assert [item.text for item in plan.items] == ["hello"]
