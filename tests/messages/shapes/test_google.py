"""Contents of Gemini's API as dicts: read, edited and refused."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from policyctx import MessagesError, Session
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.messages.shapes.google import GeminiShape
from tests.fuzz.histories import without_fillers
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

LINES = "a line of what was found\n" * 30
PICTURE = {"data": "iVBO/w==", "mimeType": "image/png"}
USER = {"role": "user", "parts": [{"text": "Find it."}]}
OFFLOAD = """\
    min_chars: 100
    items: {tool_result: {offload: true}}
    placeholder: "see {path}"
    store: {sync: never}
    steps: [{name: s, do: offload, must_shrink: false, select: {types: [tool_result]}}]
    """
DROP = """\
    store: {sync: never}
    steps: [{name: s, do: drop, select: {types: [tool_call], tools: [search], keep_recent: 1}}]
    """


def call(name: str, **fields: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"of": "x"}}, **fields}


def response(name: str, given: Any, **fields: Any) -> dict[str, Any]:
    return {"functionResponse": {"name": name, "response": given, **fields}}


def in_snake_case(value: Any) -> Any:
    names = {
        "functionCall": "function_call", "functionResponse": "function_response",
        "inlineData": "inline_data", "fileData": "file_data", "mimeType": "mime_type",
        "thoughtSignature": "thought_signature",
    }  # fmt: skip
    if isinstance(value, dict):
        return {names.get(key, key): in_snake_case(inner) for key, inner in value.items()}
    return [in_snake_case(inner) for inner in value] if isinstance(value, list) else value


CONTENTS: list[dict[str, Any]] = [
    {"parts": [{"text": "Look."}, {"inlineData": PICTURE}]},
    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "I read."}]},
    {"role": "model", "parts": [call("read", thoughtSignature="c2ln"), call("search")]},
    {
        "role": "user",
        "parts": [
            response("read", {"output": LINES}, parts=[{"inlineData": PICTURE}]),
            response("search", {"error": "none"}),
        ],
    },
    {"role": "function", "parts": [response("read", {"n": 1, "of": [2]})]},
    {"role": "user", "parts": [{"fileData": {"fileUri": "gs://x", "mimeType": "audio/wav"}}]},
    {"role": "model", "parts": [{"ofNextYear": {"x": 1}}, {}]},
]


@pytest.mark.parametrize("form", [copy.deepcopy, in_snake_case], ids=["camel", "snake"])
def test_contents_are_read_in_both_forms(form: Any) -> None:
    items = items_of(form(CONTENTS))
    assert [(item.kind, item.tool) for item in items] == [
        ("user_message", None),
        ("image", None),
        ("thinking", None),
        ("assistant_message", None),
        ("tool_call", "read"),
        ("tool_call", "search"),
        ("tool_result", "read"),
        ("tool_result", "search"),
        ("tool_result", "read"),
        ("unknown", None),
        ("unknown", None),
        ("unknown", None),
    ]
    assert [item.error for item in items if item.kind == "tool_result"] == [False, True, False]
    assert items[6].text == LINES


@pytest.mark.parametrize("form", [copy.deepcopy, in_snake_case], ids=["camel", "snake"])
def test_a_response_is_replaced_and_its_media_leave(form: Any) -> None:
    messages = form([USER, *CONTENTS[1:4], USER])
    before = copy.deepcopy(messages)
    session = Session(policy(OFFLOAD), session_id="s", store=MemoryStore())
    result = session.apply(messages)
    assert messages == before
    (file,) = result.files
    field = next(iter(result.messages[3]["parts"][0]))
    expected = {"name": "read", "response": {"output": f"see {file}"}}
    assert result.messages[3]["parts"][0] == {field: expected}
    assert result.messages[3]["parts"][1] == messages[3]["parts"][1]
    restarted = Session(session.policy, session_id="s", store=session.store)
    assert restarted.apply(messages).messages == result.messages


@pytest.mark.parametrize("form", [copy.deepcopy, in_snake_case], ids=["camel", "snake"])
def test_a_signed_call_stays_with_the_later_calls_of_its_content(form: Any) -> None:
    turn = [
        {"role": "model", "parts": [call("search", thoughtSignature="c2ln"), call("read")]},
        {"role": "user", "parts": [response("search", {"output": "s"}), response("read", {})]},
    ]
    alone = [
        {"role": "model", "parts": [call("search", thoughtSignature="c2ln")]},
        {"role": "user", "parts": [response("search", {"output": "s"})]},
    ]
    messages = form([USER, *alone, USER, *turn, USER, *turn, USER])
    sent = Session(policy(DROP), session_id="s", store=MemoryStore()).apply(messages).messages
    assert without_fillers(sent) == [*messages[:1], *messages[3:]]


@pytest.mark.parametrize(
    ("content", "error"),
    [
        ({"role": "robot", "parts": []}, 'expected "role" to be "user" or "model" beside "parts"'),
        ({"role": 5, "parts": []}, 'expected "role" to be "user" or "model" beside "parts", got a'),
        ({"role": "user", "parts": "go"}, 'expected "parts" to be a list of objects, got a string'),
        ({"role": "user", "parts": ["go"]}, "part 0: expected an object, got a string"),
        (
            {"role": "user", "parts": [{"type": "text", "text": "go"}]},
            'part 0: expected a field such as "text", got an object with "type", "text"',
        ),
    ],
    ids=str,
)
def test_what_is_no_content_is_named(content: object, error: str) -> None:
    with pytest.raises(MessagesError) as caught:
        BUILT_IN.checked(content, 3)
    assert str(caught.value).startswith(f"message 3: {error}")


def test_a_message_with_content_is_not_one_of_gemini() -> None:
    message = {"role": "user", "content": "go", "parts": []}
    assert not GeminiShape().recognises(message)
    assert not isinstance(BUILT_IN.checked(message, 0).shape, GeminiShape)
