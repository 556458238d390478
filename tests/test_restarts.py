"""A session that knows only what the store holds continues as the live one, in all shapes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx import Shape
from policyctx.definitions.items import Message
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.validity import new_problems
from policyctx.planning.compiled import OffloadPolicy
from policyctx.session import Session
from tests.conversations import call, calls, chat_calls, chat_result, results
from tests.fuzz.histories import left_by
from tests.fuzz.marking import wrong_sources
from tests.policies import policy

Round = Callable[[int], list[Any]]


def _said(role: str, text: str) -> Message:
    return {"role": role, "content": text}


def anthropic(i: int) -> list[Message]:
    """A question, an answer with a call, and the result of the call."""
    asked = call(f"c{i}", "Read", {"path": f"{i}.py"})
    asked["content"].insert(0, {"type": "text", "text": f"answer {i}"})
    return [_said("user", f"question {i}"), asked, results((f"c{i}", f"line {i} " * 40))]


def chat(i: int) -> list[Message]:
    asked = chat_calls((f"c{i}", "Read", f'{{"path": "{i}.py"}}'), content=f"answer {i}")
    return [_said("user", f"question {i}"), asked, chat_result(f"c{i}", f"line {i} " * 40)]


def responses(i: int) -> list[Message]:
    asked = {"type": "function_call", "call_id": f"c{i}", "name": "Read", "arguments": "{}"}
    found = {"type": "function_call_output", "call_id": f"c{i}", "output": f"line {i} " * 40}
    return [_said("user", f"question {i}"), _said("assistant", f"answer {i}"), asked, found]


def bedrock(i: int) -> list[Message]:
    use = {"toolUse": {"toolUseId": f"c{i}", "name": "Read", "input": {}}}
    found = {"toolResult": {"toolUseId": f"c{i}", "content": [{"text": f"line {i} " * 40}]}}
    return [
        {"role": "user", "content": [{"text": f"question {i}"}]},
        {"role": "assistant", "content": [{"text": f"answer {i}"}, use]},
        {"role": "user", "content": [found]},
    ]


def google(i: int) -> list[types.Content]:
    asked = types.FunctionCall(id=f"c{i}", name="Read", args={})
    found = types.FunctionResponse(id=f"c{i}", name="Read", response={"result": f"line {i} " * 40})
    return [
        types.Content(role="user", parts=[types.Part(text=f"question {i}")]),
        types.Content(
            role="model",
            parts=[types.Part(text=f"answer {i}"), types.Part(function_call=asked)],
        ),
        types.Content(role="user", parts=[types.Part(function_response=found)]),
    ]


def gemini(i: int) -> list[Message]:
    """The same contents as the dicts that Gemini's API takes."""
    dumped = (one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in google(i))
    return list(dumped)


ROUNDS: dict[str, Round] = {
    one.__name__: one for one in (anthropic, chat, responses, bedrock, google, gemini)
}
HOSTS: dict[str, tuple[Shape, ...]] = {"bedrock": (BedrockShape(),), "google": (GoogleShape(),)}
in_all_shapes = pytest.mark.parametrize("shape", ROUNDS)


def opened(compiled: OffloadPolicy, root: Path, shape: str = "anthropic") -> Session:
    """Return a session that knows what the store holds."""
    return Session(compiled, root=root, session_id="s", shapes=HOSTS.get(shape, ()))


EDITS = {
    "offloaded results": "{name: edit, do: offload, select: {types: [tool_result]}}",
    "dropped questions": "{name: edit, do: drop, select: {types: [user_message]}}",
    "dropped results": "{name: edit, do: drop, select: {types: [tool_result], keep_recent: 1}}",
    "cleared replies": "{name: edit, do: clear, placeholder: '[gone]', must_shrink: false,"
    " select: {types: [assistant_message], keep_recent: 1}}",
}


@in_all_shapes
@pytest.mark.parametrize("edit", EDITS)
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


def left_of(live: Session, messages: list[Any], shape: str = "anthropic") -> list[Any]:
    """Return what the session leaves of a list; a restarted one leaves the same, and decides
    nothing.
    """
    anew = opened(live.policy, Path(live.store.root), shape).apply(list(messages))
    left = live.apply(list(messages))
    assert list(anew.messages) == list(left.messages)
    assert anew.plan.new == left.plan.new == ()
    assert not anew.compacted
    return list(left.messages)


def in_each_form(*forms: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("shape", forms)


def picture(shape: str, data: str) -> Message:
    """A block with an image."""
    if shape == "anthropic":
        source = {"type": "base64", "media_type": "image/png", "data": data}
        return {"type": "image", "source": source}
    url = f"data:image/png;base64,{data}"
    if shape == "responses":
        return {"type": "input_image", "image_url": url}
    return {"type": "image_url", "image_url": {"url": url}}


def shown(shape: str, text: str, data: str) -> Message:
    """A message of the user with words and an image."""
    words = {"type": "input_text" if shape == "responses" else "text", "text": text}
    return {"role": "user", "content": [words, picture(shape, data)]}


IMAGE_SHAPES = ("anthropic", "chat", "responses")
REASONING: Message = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "g"}

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


def two_calls(shape: str) -> list[Any]:
    """A message with a call of Read and one of Bash, and their results."""
    tools = ("Read", "Bash")
    if shape == "anthropic":
        return [calls(*((tool, tool) for tool in tools)), results(*((tool, "x") for tool in tools))]
    if shape == "bedrock":
        uses = [{"toolUse": {"toolUseId": tool, "name": tool, "input": {}}} for tool in tools]
        found = [{"toolResult": {"toolUseId": tool, "content": [{"text": "x"}]}} for tool in tools]
        return [{"role": "assistant", "content": uses}, {"role": "user", "content": found}]
    parts = [types.Part(function_call=types.FunctionCall(id=t, name=t, args={})) for t in tools]
    answers = [
        types.Part(function_response=types.FunctionResponse(id=t, name=t, response={"result": "x"}))
        for t in tools
    ]
    made = [types.Content(role="model", parts=parts), types.Content(role="user", parts=answers)]
    if shape == "google":
        return made
    return [one.model_dump(mode="json", by_alias=True, exclude_none=True) for one in made]


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
    full += [asked, arrived, _said("user", "go on")]
    assert "AAAA" not in str(left_of(live, full, shape))


TRIM = """\
  - name: trim
    do: compact
    when: {since_last: {messages: {over: 2}}}
    compaction:
      keep_recent: {messages: 1}
      min_new: 0
      summary: {by: none}
      wording: {summary: "[trimmed]"}
"""


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


def late_result(shape: str, i: int) -> Any:
    """A second result of the call of a round, in words of its own."""
    found = ROUNDS[shape](i)[-1]
    if isinstance(found, types.Content):
        return types.Content.model_validate_json(found.model_dump_json().replace("line ", "late "))
    return json.loads(json.dumps(found).replace("line ", "late "))


def reply(shape: str, text: str) -> Any:
    """Words of the assistant alone."""
    said = ROUNDS[shape](0)[0]
    if isinstance(said, types.Content):
        return types.Content(role="model", parts=[types.Part(text=text)])
    role = "model" if shape == "gemini" else "assistant"
    return json.loads(json.dumps(said).replace("question 0", text)) | {"role": role}


def left_before_decisions(live: Session, messages: list[Any], shape: str) -> list[Any]:
    """Return what earlier decisions leave of a list; after a restart they leave the same."""
    anew = left_by(opened(live.policy, Path(live.store.root), shape), messages)
    left = left_by(live, messages)
    assert anew == left
    return left


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
    full += [_said("user", "next"), _said("assistant", "so"), calls(("c5", "Read"), ("c6", "Read"))]
    assert not live.apply(list(full)).compacted
    full.append(results(("c6", "line 6"), ("c1", "late 1")))
    assert live.apply(list(full)).compacted
    full.append(_said("user", "go on"))
    result = live.apply(list(full)).messages
    assert "Result of the call c1:" in str(result)
    assert "late 1" in str(result)
    assert left_of(live, full, "anthropic") == list(result)


DROPPING = {
    "results": "{name: old, do: drop, select: {types: [tool_result], keep_recent: 1}}",
    "calls": "{name: old, do: drop, select: {types: [tool_call], keep_recent: 1}}",
    "turns": "{name: old, do: drop, select: {types: [tool_result], unit: turn, keep_recent: 1}}",
    "on arrival": "{name: old, on: arrival, do: drop, select: {types: [tool_result]}}",
}


@in_all_shapes
@pytest.mark.parametrize("late", ["result", "picture"])
@pytest.mark.parametrize("form", ["own", "returned"])
@pytest.mark.parametrize("taken", ["compacted", "dropped"])
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
@pytest.mark.parametrize("equal", ["result", "text of a late result", "summary"])
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


@in_all_shapes
@pytest.mark.parametrize("late", ["text", "image", "beside another"])
@pytest.mark.parametrize("form", ["own", "returned"])
@pytest.mark.parametrize("step", DROPPING)
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


def both(one: Any, other: Any) -> Any:
    """A message with the results of two messages."""
    if isinstance(one, types.Content):
        return types.Content(role="user", parts=[*one.parts, *other.parts])
    key = "content" if "content" in one else "parts"
    return one | {key: [*one[key], *other[key]]}


DATA = "iVBORw0KGgo="


def late_picture(shape: str, i: int, *shown: str) -> Any:
    """A second result of the call of a round, with words and images."""
    found, data = late_result(shape, i), shown or (DATA,)
    words = f"late {i} " * 40
    inline = [{"inline_data": {"mime_type": "image/png", "data": one}} for one in data]
    if shape == "google":
        parts = [types.FunctionResponsePart.model_validate(one) for one in inline]
        found.parts[0].function_response.parts = parts
    elif shape == "gemini":
        found["parts"][0]["functionResponse"]["parts"] = [
            {"inlineData": {"mimeType": "image/png", "data": one}} for one in data
        ]
    elif shape == "bedrock":
        held = found["content"][0]["toolResult"]["content"]
        held += [{"image": {"format": "png", "source": {"bytes": one}}} for one in data]
    else:
        pictures = [picture(shape, one) for one in data]
        key = "output" if shape == "responses" else "content"
        kind = "input_text" if shape == "responses" else "text"
        held = found["content"][0] if shape == "anthropic" else found
        held[key] = [{"type": kind, "text": words}, *pictures]
    return found


@in_all_shapes
@pytest.mark.parametrize("form", ["own", "returned"])
@pytest.mark.parametrize(
    "step",
    [
        "",
        "{name: old, do: clear, must_shrink: false, select: {types: [image]}}",
        "{name: old, do: drop, select: {types: [image]}}",
    ],
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


def call_alone(shape: str, i: int) -> Any:
    """The call of a round without the words before it."""
    asked = ROUNDS[shape](i)[-2]
    if isinstance(asked, types.Content):
        return types.Content(role="model", parts=asked.parts[1:])
    if shape == "responses":
        return asked
    key = "parts" if "parts" in asked else "content"
    return asked | {key: None if shape == "chat" else asked[key][1:]}


@in_all_shapes
@pytest.mark.parametrize("form", ["own", "returned"])
@pytest.mark.parametrize("half", ["call", "result", "result of a call beside words"])
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


def dropping(select: str) -> str:
    return f"  - {{name: old, do: drop, select: {{{select}}}}}\n"


def trimming(*, over: int = 2, kept: int = 1) -> str:
    return TRIM.replace("over: 2", f"over: {over}").replace("messages: 1", f"messages: {kept}")


def compacting(over: int, settings: str) -> str:
    when = f"{{messages: {{over: {over}}}}}"
    shrinks = "summary: {must_shrink_to: false}"
    return (
        f"  - {{name: compact, do: compact, when: {when}, compaction: {{{settings}, {shrinks}}}}}\n"
    )


@case(
    dropping("types: [user_message], keep_recent: 1") + compacting(3, "keep_recent: {messages: 1}"),
    *IMAGE_SHAPES,
)
def a_compaction_of_a_message_of_which_words_left(shape: str) -> Talk:
    back = yield [shown(shape, "look at this", "AAAA"), _said("assistant", "a"), _said("user", "b")]
    assert "look at this" not in str(back)
    back = yield [*back, _said("assistant", "b"), _said("user", "and now?")]
    assert "AAAA" not in str(back)


@case(
    dropping("types: [user_message], keep_recent: 1")
    + compacting(4, "keep_first: 1, keep_recent: {messages: 1}"),
    "anthropic",
)
def words_said_again_behind_a_summary(_: str) -> Talk:
    """The first of them were dropped."""
    full = [_said("assistant", "hello"), _said("user", "go on")]
    for word in "abc":
        full += [_said("assistant", word), _said("user", f"question {word}")]
    yield full
    full += [_said("assistant", "d"), _said("user", "go on")]
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
        more = [_said("user", f"question {i}"), _said("assistant", f"answer {i}")]
        full, back = [*full, *more], [*back, *more]
        back = (yield [*back, _said("user", "go")])[:-1]
        yield [*full, _said("user", "go")]


@case(dropping("types: [image]"), *IMAGE_SHAPES, offloadable="image")
def an_image_that_the_own_list_ends_with(shape: str) -> Talk:
    """The caller goes back to the message with the image, and something was dropped later."""
    full = [shown(shape, "look at this", "AAAA"), _said("assistant", "a")]
    yield [*full, shown(shape, "and at this", "BBBB")]
    assert "AAAA" not in str((yield full[:1]))


@case(dropping("types: [tool_call]"), "responses", offloadable="tool_call tool_result")
def reasoning_that_the_own_list_ends_with(shape: str) -> Talk:
    question, _, asked, found = ROUNDS[shape](0)
    full = [question, REASONING, asked, found, _said("user", "more")]
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
    full = [_said("user", "one"), _said("assistant", "a"), shown(shape, "look", "AAAA")]
    full += [_said("assistant", "b"), _said("user", "two")]
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
    full = [*ROUNDS[shape](0), *ROUNDS[shape](1), _said("user", "more")]
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
    full = [_said("user", "a"), _said("assistant", "b"), _said("user", "c"), _said("user", "")]
    full.append(_said("assistant", "dropped"))
    yield full
    for word in "de":
        full += [_said("user", word), _said("assistant", word)]
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


EQUAL = (
    "  - {name: words, do: clear, placeholder: '[gone]', must_shrink: false,"
    " select: {types: [user_message], keep_recent: 0}}\n"
    "  - {name: second, do: drop, when: {messages: {over: OVER}},"
    " select: {types: [user_message], keep_first: {messages: 1}, keep_recent: 2}}\n"
)


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


@in_all_shapes
@pytest.mark.parametrize("kind", ["tool_result", "user_message", "assistant_message"])
@pytest.mark.parametrize(
    ("do", "compacts"), [("drop", False), ("drop", True), ("offload, must_shrink: false", True)]
)
def test_what_a_compacted_list_ended_before_is_there_in_the_whole_list(
    do: str, compacts: bool, kind: str, shape: str, tmp_path: Path
) -> None:
    """Decisions, and perhaps a compaction, were made on a list without its beginning."""
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
        assert left_before_decisions(live, list(part), shape) == list(part)


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
    [warning] = again.apply([_said("user", "Something else.")]).warnings
    assert warning == (
        "this list has nothing of the item that left in this session before; if it is another"
        " conversation, give it a session_id of its own"
    )
    assert not again.apply([_said("user", "Something else."), *anthropic(2)]).warnings


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
    assert not opened().apply([*returned, _said("user", "Go on.")]).warnings
