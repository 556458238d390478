from __future__ import annotations

import pytest

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError
from policyctx.messages.reading import request_of

MESSAGES: list[Message] = [{"role": "user", "content": "go"}]
NEW: list[Message] = [{"role": "user", "content": "gone"}]


def test_an_array_is_a_request_of_its_messages_alone() -> None:
    request = request_of(MESSAGES)
    assert request.messages is MESSAGES
    assert (request.system, request.tools) == (None, None)


def test_the_system_prompt_and_tools_of_a_body_are_read() -> None:
    request = request_of({"messages": MESSAGES, "system": "Be brief.", "tools": [{"name": "read"}]})
    assert request.messages == MESSAGES
    assert (request.system, request.tools) == ("Be brief.", [{"name": "read"}])


def test_new_messages_come_in_the_shape_of_the_old_array() -> None:
    assert request_of(MESSAGES).document_with(NEW) == NEW


def test_new_messages_stand_in_the_old_body_where_the_old_ones_stood() -> None:
    body = {"model": "m", "messages": MESSAGES, "max_tokens": 5}
    document = request_of(body).document_with(NEW)
    assert document == {"model": "m", "messages": NEW, "max_tokens": 5}
    assert isinstance(document, dict)
    assert list(document) == ["model", "messages", "max_tokens"]


def test_the_document_that_was_read_is_not_changed() -> None:
    body = {"messages": MESSAGES}
    request_of(body).document_with(NEW)
    assert body == {"messages": MESSAGES}


def test_an_object_without_messages_is_refused() -> None:
    with pytest.raises(MessagesError, match='got an object without "messages"'):
        request_of({"prompt": "go"})


@pytest.mark.parametrize("document", ["go", 5, None, {"messages": "go"}, {"messages": None}])
def test_a_document_without_a_list_is_rejected(document: object) -> None:
    with pytest.raises(MessagesError, match="expected a list of messages"):
        request_of(document)


@pytest.mark.parametrize("wrap", [list, lambda messages: {"messages": messages}])
def test_the_invalid_message_is_named(wrap: type[list[object]]) -> None:
    with pytest.raises(MessagesError) as caught:
        request_of(wrap([*MESSAGES, {"content": "go"}]))
    assert caught.value.index == 1


def test_the_instructions_and_the_input_of_a_responses_body_are_read() -> None:
    request = request_of({"input": MESSAGES, "instructions": "Be brief.", "tools": []})
    assert request.messages is MESSAGES
    assert (request.system, request.tools) == ("Be brief.", [])
    assert request.notes == []
    assert request.document_with(NEW) == {
        "input": NEW,
        "instructions": "Be brief.",
        "tools": [],
    }


def test_an_input_that_is_a_text_stays_one_until_it_is_edited() -> None:
    request = request_of({"input": "go"})
    assert request.messages == MESSAGES
    assert request.document_with(MESSAGES) == {"input": "go"}
    assert request.document_with(NEW) == {"input": NEW}


@pytest.mark.parametrize(
    ("given", "name"), [(5, "a number"), (None, "nothing"), ({}, "an object"), (True, "a boolean")]
)
def test_an_input_of_another_type_is_rejected(given: object, name: str) -> None:
    with pytest.raises(MessagesError, match=f'"input" to be a string or a list, got {name}'):
        request_of({"input": given})


@pytest.mark.parametrize(
    ("body", "note"),
    [
        ({"messages": MESSAGES, "input": "go"}, '"messages" is read'),
        ({"input": "go", "previous_response_id": "r"}, "a history that the provider holds"),
        ({"input": "go", "conversation": {"id": "c"}}, "a history that the provider holds"),
    ],
)
def test_a_body_that_shows_only_a_part_has_a_note(body: dict[str, object], note: str) -> None:
    (found,) = request_of(body).notes
    assert note in found


def test_the_contents_of_a_body_of_gemini_are_read_and_written() -> None:
    contents = [{"role": "user", "parts": [{"text": "go"}]}]
    body = {"contents": contents, "systemInstruction": {"parts": [{"text": "Be brief."}]}}
    request = request_of(body)
    assert request.messages == contents
    assert request.system == [{"text": "Be brief."}]
    assert request.document_with(contents * 2) == {**body, "contents": contents * 2}
