"""Message objects of the real SDKs, appended to the list as their documentation shows it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anthropic
import openai
import pytest
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseReasoningItem,
)
from pydantic import BaseModel

from policyctx import (
    MessagesError,
    Session,
    compact_messages,
    offload_tool_result,
    offload_tool_results,
)
from policyctx.compaction.assembly import archived_messages
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.messages.validity import new_problems
from policyctx.planning.compiled import OffloadPolicy
from tests.chat_server import ChatServer, calling, chat_server, response_of
from tests.compaction.messages_server import Scripted, messages_server
from tests.conversations import chat_result, results, user
from tests.policies import CALLS, RESULTS, STORE, policy

if TYPE_CHECKING:
    from anthropic.types import Message as AnthropicMessage
    from openai.types.responses import Response

ARGUMENTS = json.dumps({"path": "a.py", "content": "x" * 600})
TEXTS = f"""\
{STORE}
min_chars: 5
items: {{assistant_message: {{offload: true}}}}
placeholder: "[old]"
steps: [{{name: s, do: offload, must_shrink: false, select: {{types: [assistant_message]}}}}]
"""
DROP = f"""\
{STORE}
steps: [{{name: s, do: drop, select: {{types: [tool_call], keep_recent: 1}}}}]
"""
COMPACT = f"""\
{STORE}
compaction: {{keep_recent: {{messages: 1}}}}
steps: [{{name: s, do: compact, when: {{messages: {{at_least: 6}}}}}}]
"""


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with chat_server() as found:
        yield found


def replied(server: ChatServer, messages: list[Any], answer: dict[str, Any]) -> Any:
    """What the SDK makes of an answer to these messages: a `ChatCompletionMessage`."""
    server.script.append(answer)
    client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)
    message = client.chat.completions.create(model="gpt-some", messages=messages).choices[0].message
    assert isinstance(message, ChatCompletionMessage)
    return message


@pytest.fixture
def chat(server: ChatServer) -> list[Any]:
    """Two calls with their results, each appended as the SDK returned it."""
    messages: list[Any] = [user("the task")]
    for call_id, found in (("a", "x" * 300), ("b", "y" * 20)):
        messages.append(replied(server, messages, calling((call_id, "write", ARGUMENTS))))
        messages.append(chat_result(call_id, found))
    return messages


def under(text: str, folder: Path) -> Session:
    compiled: OffloadPolicy = policy(text)
    return Session(compiled, root=folder, session_id="s")


def sent(server: ChatServer, messages: Any) -> list[Any]:
    """What the SDK sends of a message list."""
    replied(server, list(messages), calling(content="ok"))
    found: list[Any] = server.requests[-1]["messages"]
    return found


def test_unchanged_chat_objects_are_the_same_objects_in_the_output(
    chat: list[Any], tmp_path: Path
) -> None:
    before = copy.deepcopy(chat)
    session = under(RESULTS, tmp_path)
    assert [decision.item.tool for decision in session.plan(chat).new] == ["write"]
    result = session.apply(chat)
    assert [i for i, m in enumerate(result.messages) if m is not chat[i]] == [2]
    assert result.messages[2]["content"] == f"see {tmp_path}/tool_result/write/a.md"
    assert chat == before
    again = session.apply([*chat, user()]).messages
    assert all(one is other for one, other in zip(again, result.messages, strict=False))


def test_a_list_without_changes_is_the_same_list(chat: list[Any], tmp_path: Path) -> None:
    session = under(RESULTS.replace("100", "1000"), tmp_path)
    assert session.apply(chat).messages is chat
    assert session.apply(chat).messages is chat


def test_an_edited_chat_object_is_a_dict_that_the_sdk_sends_like_the_object(
    chat: list[Any], server: ChatServer, tmp_path: Path
) -> None:
    before = copy.deepcopy(chat)
    result = under(CALLS, tmp_path).apply(chat)
    first = result.messages[1]
    left = json.dumps({"path": "a.py", "content": f"see {tmp_path}/tool_call/write/a.md"})
    assert first == calling(("a", "write", left))
    assert chat == before
    expected = sent(server, chat)
    for message, arguments in ((1, left), (3, left.replace("a.md", "b.md"))):
        expected[message]["tool_calls"][0]["function"]["arguments"] = arguments
    assert sent(server, result.messages) == expected


def test_an_edited_text_keeps_the_calls_of_a_chat_object(
    server: ChatServer, tmp_path: Path
) -> None:
    reply = replied(server, [user()], calling(("a", "ls", "{}"), content="I look around."))
    messages = [user(), reply, chat_result("a", "x")]
    result = under(TEXTS, tmp_path).apply(messages)
    assert result.messages[1] == calling(("a", "ls", "{}"), content="[old]")


def test_a_dropped_call_takes_its_chat_object_out(chat: list[Any], tmp_path: Path) -> None:
    session = under(DROP, tmp_path)
    result = session.apply(chat)
    assert list(result.messages) == [chat[0], *chat[3:]]
    assert result.messages[1] is chat[3]
    restarted = under(DROP, tmp_path)
    assert list(restarted.apply(chat).messages) == [chat[0], *chat[3:]]
    assert list(restarted.apply(result.messages).messages) == [chat[0], *chat[3:]]


def test_a_chat_object_names_the_tools_on_arrival(chat: list[Any], tmp_path: Path) -> None:
    text = RESULTS.replace("name: s,", "name: s, on: arrival,") + "tools: {write: {min_chars: 10}}"
    result = under(text, tmp_path).on_tool_result(chat[4], call=chat[3])
    assert result.messages[0] is chat[3]
    assert result.messages[1]["content"] == f"see {tmp_path}/tool_result/write/b.md"


def test_recipes_take_chat_objects(chat: list[Any], tmp_path: Path) -> None:
    result = offload_tool_results(chat[:3], output_dir=tmp_path)
    assert result.messages is not chat
    assert result.messages[1] is chat[1]


class ToolMessage(BaseModel):
    """A message class of the caller's, with a default role."""

    role: str = "tool"
    tool_call_id: str
    content: str
    note: str | None = None


def test_a_result_may_be_an_object(tmp_path: Path) -> None:
    message: Any = ToolMessage(tool_call_id="a", content="x" * 300)
    result = offload_tool_result(message, session_id="s", output_dir=tmp_path)
    placeholder = f"[Tool result offloaded to file: {tmp_path}/s/a.md]"
    assert result.message == {"role": "tool", "tool_call_id": "a", "content": placeholder}
    kept = under(RESULTS.replace("100", "1000"), tmp_path).apply([user(), message])
    assert kept.messages[1] is message


def test_a_compaction_archives_chat_objects_as_a_request_has_them(
    chat: list[Any], server: ChatServer, tmp_path: Path
) -> None:
    expected = sent(server, chat)
    session = under(COMPACT, tmp_path)
    made = session.apply([*chat, user("go on")]).compaction
    assert made is not None
    assert made.archive_path is not None
    assert archived_messages(session.read(made.archive_path)) == expected


SAVED: list[Callable[[Any], Any]] = [
    lambda message: message,
    lambda message: message.model_copy(deep=True),
    lambda message: message.model_dump(),
    lambda message: message.model_dump(exclude_unset=True),
    lambda message: message.model_dump(exclude_none=True),
    lambda message: json.loads(message.model_dump_json()),
]


def saved_as(form: Callable[[Any], Any], messages: list[Any]) -> list[Any]:
    return [form(m) if isinstance(m, BaseModel) else copy.deepcopy(m) for m in messages]


@pytest.mark.parametrize("form", SAVED)
def test_a_compaction_of_chat_objects_is_recognised_after_a_restart(
    chat: list[Any], tmp_path: Path, form: Callable[[Any], Any]
) -> None:
    messages = [*chat, user("go on")]
    first = under(COMPACT, tmp_path).apply(messages)
    assert first.compacted
    again = under(COMPACT, tmp_path).apply(saved_as(form, messages))
    assert not again.compacted
    assert again.messages == first.messages


@pytest.mark.parametrize("form", SAVED)
@pytest.mark.parametrize("text", [RESULTS, CALLS, DROP])
def test_saved_chat_objects_have_the_same_fate(
    chat: list[Any], tmp_path: Path, form: Callable[[Any], Any], text: str
) -> None:
    session = under(text, tmp_path)
    first = session.apply(chat)
    saved = saved_as(form, chat)
    for one in (session, under(text, tmp_path)):
        again = one.apply(saved)
        assert again.plan.new == ()
        assert [*map(BUILT_IN.comparable, again.messages)] == [
            *map(BUILT_IN.comparable, first.messages)
        ]


def test_saved_chat_objects_continue_the_list_of_a_session(chat: list[Any], tmp_path: Path) -> None:
    session = under(RESULTS, tmp_path)
    session.apply(chat)
    assert session._knowledge.memory is not None
    known = session._knowledge.memory.known
    session.apply(saved_as(lambda message: message.model_dump(), chat))
    assert session._knowledge.memory.known is known


def test_compact_messages_takes_chat_objects(chat: list[Any], tmp_path: Path) -> None:
    result = compact_messages(chat, threshold=1, output_dir=tmp_path)
    assert result.compacted
    assert "the task" in result.summary


def test_an_object_that_is_not_a_message_is_refused(server: ChatServer, tmp_path: Path) -> None:
    client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)
    whole: Any = client.chat.completions.create(model="m", messages=[])
    with pytest.raises(MessagesError, match=r'message 1: .*ChatCompletion without "role"'):
        under(RESULTS, tmp_path).apply([user(), whole])
    with pytest.raises(MessagesError, match="message 0: expected an object with"):
        under(RESULTS, tmp_path).apply([ChatCompletionMessage])


# OpenAI's Responses API.

ITEMS: dict[str, dict[str, Any]] = {
    "reasoning": {
        "type": "reasoning",
        "id": "rs_{}",
        "summary": [{"type": "summary_text", "text": "Hm."}],
        "encrypted_content": "gAAAAABo",
    },
    "message": {
        "type": "message",
        "id": "msg_{}",
        "role": "assistant",
        "status": "completed",
        "phase": "commentary",
        "content": [{"type": "output_text", "text": "I write it.", "annotations": []}],
    },
    "function_call": {
        "type": "function_call",
        "id": "fc_{}",
        "call_id": "{}",
        "name": "write",
        "arguments": ARGUMENTS,
        "status": "completed",
    },
}


def made(kind: str, call_id: str) -> dict[str, Any]:
    """An item of the response with this call."""
    item = ITEMS[kind]
    ids = [key for key in ("id", "call_id") if key in item]
    return item | {key: str(item[key]).format(call_id) for key in ids}


def output(call_id: str, text: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": text}


def responded(server: ChatServer, messages: Any, *items: dict[str, Any]) -> Response:
    """What the SDK makes of a response with these items."""
    server.script.append(response_of(*items))
    client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)
    return client.responses.create(model="gpt-some", input=messages, store=False)


def sent_items(server: ChatServer, messages: Any) -> list[Any]:
    """What the SDK sends of a list of items."""
    responded(server, list(messages))
    found: list[Any] = server.requests[-1]["input"]
    return found


@pytest.fixture
def responses(server: ChatServer) -> list[Any]:
    """Two responses with reasoning, a text and a call each, appended as the SDK returned them."""
    messages: list[Any] = [user("the task")]
    for call_id, found in (("a", "x" * 300), ("b", "y" * 20)):
        items = [made(kind, call_id) for kind in ITEMS]
        messages += responded(server, messages, *items).output
        messages.append(output(call_id, found))
    return messages


def test_the_objects_of_a_response_are_items(responses: list[Any]) -> None:
    kinds = [ResponseReasoningItem, ResponseOutputMessage, ResponseFunctionToolCall, dict]
    assert [type(message) for message in responses] == [dict, *kinds, *kinds]
    found = ["thinking", "assistant_message", "tool_call", "tool_result"]
    assert [item.kind for item in items_of(responses)] == ["user_message", *found, *found]
    assert [item.tool for item in items_of(responses)][3:5] == ["write", "write"]


def test_unchanged_response_objects_are_the_same_objects_in_the_output(
    responses: list[Any], tmp_path: Path
) -> None:
    before = copy.deepcopy(responses)
    session = under(RESULTS, tmp_path)
    result = session.apply(responses)
    assert [i for i, m in enumerate(result.messages) if m is not responses[i]] == [4]
    assert result.messages[4] == output("a", f"see {tmp_path}/tool_result/write/a.md")
    assert responses == before
    again = session.apply([*responses, user()]).messages
    assert all(one is other for one, other in zip(again, result.messages, strict=False))


def test_an_edited_response_object_is_a_dict_that_the_sdk_sends_like_the_object(
    responses: list[Any], server: ChatServer, tmp_path: Path
) -> None:
    result = under(CALLS, tmp_path).apply(responses)
    expected = sent_items(server, responses)
    for message, name in ((3, "a"), (7, "b")):
        left = {"path": "a.py", "content": f"see {tmp_path}/tool_call/write/{name}.md"}
        expected[message]["arguments"] = json.dumps(left)
    found = sent_items(server, result.messages)
    for item in (*expected, *found):
        if "arguments" in item:
            item["arguments"] = json.loads(item["arguments"])
    assert found == expected


def test_an_edited_text_of_a_response_object_keeps_its_other_fields(
    responses: list[Any], tmp_path: Path
) -> None:
    result = under(TEXTS, tmp_path).apply(responses)
    expected = made("message", "a")
    expected["content"] = [{"type": "output_text", "text": "[old]", "annotations": []}]
    assert result.messages[2] == expected


def test_a_dropped_call_takes_its_reasoning_out_or_stays(
    responses: list[Any], server: ChatServer, tmp_path: Path
) -> None:
    result = under(DROP, tmp_path).apply(responses)
    assert new_problems(responses, result.messages) == []
    assert all(any(m is one for one in responses) for m in result.messages)
    left = [item.tool_use_id for item in items_of(result.messages) if item.kind == "tool_call"]
    assert left == ["b"]
    again = under(DROP, tmp_path).apply(responses).messages
    assert all(one is other for one, other in zip(again, result.messages, strict=True))
    assert len(sent_items(server, result.messages)) == len(result.messages)


def test_a_response_object_names_the_tools_on_arrival(responses: list[Any], tmp_path: Path) -> None:
    text = RESULTS.replace("name: s,", "name: s, on: arrival,") + "tools: {write: {min_chars: 10}}"
    result = under(text, tmp_path).on_tool_result(responses[8], call=responses[7])
    assert result.messages[-1]["output"] == f"see {tmp_path}/tool_result/write/b.md"


def test_a_compaction_archives_response_objects_as_a_request_has_them(
    responses: list[Any], server: ChatServer, tmp_path: Path
) -> None:
    expected = sent_items(server, responses)
    session = under(COMPACT, tmp_path)
    made = session.apply([*responses, user("go on")]).compaction
    assert made is not None
    assert made.archive_path is not None
    assert archived_messages(session.read(made.archive_path)) == expected


@pytest.mark.parametrize("form", SAVED)
@pytest.mark.parametrize("text", [RESULTS, CALLS, DROP, COMPACT])
def test_saved_response_objects_have_the_same_fate_after_a_restart(
    responses: list[Any], tmp_path: Path, form: Callable[[Any], Any], text: str
) -> None:
    messages = [*responses, user("go on")]
    session = under(text, tmp_path)
    first = session.apply(messages)
    assert first.messages is not messages
    saved = saved_as(form, messages)
    for one in (session, under(text, tmp_path)):
        again = one.apply(saved)
        assert again.plan.new == ()
        assert not again.compacted
        assert [*map(BUILT_IN.comparable, again.messages)] == [
            *map(BUILT_IN.comparable, first.messages)
        ]


def test_the_usage_of_a_response_is_observed(
    responses: list[Any], server: ChatServer, tmp_path: Path
) -> None:
    session = under(RESULTS.replace("select", "when: {tokens: {at_least: 300}}, select"), tmp_path)
    [before] = session.apply(responses).plan.gates
    response = responded(server, responses)
    assert response.usage is not None
    session.observe(response.usage)
    [after] = session.plan(responses).gates
    assert before.number != 300
    assert (after.opens, after.number) == (True, 300)


def test_parsed_objects_of_a_response_are_sent_without_what_the_sdk_parsed(
    server: ChatServer, tmp_path: Path
) -> None:
    class Told(BaseModel):
        text: str

    said = [{"type": "output_text", "text": '{"text": "so"}', "annotations": []}]
    answer = {**made("message", "a"), "phase": "final_answer"}
    server.script.append(response_of({**answer, "content": said}))
    client = openai.OpenAI(base_url=server.url, api_key="k", max_retries=0)
    parsed = client.responses.parse(model="gpt-some", input="go", text_format=Told)
    assert parsed.output_parsed == Told(text="so")
    messages: list[Any] = [user("go"), *parsed.output, user("on")]
    assert under(RESULTS, tmp_path).apply(messages).messages is messages
    [_, reply, _] = under(TEXTS, tmp_path).apply(messages).messages
    expected = [{"type": "output_text", "text": "[old]", "annotations": []}]
    assert reply == {**answer, "content": expected}


def test_a_whole_response_is_not_a_message(server: ChatServer, tmp_path: Path) -> None:
    whole: Any = responded(server, "go", made("message", "a"))
    with pytest.raises(MessagesError, match=r"message 1: .*Response"):
        under(RESULTS, tmp_path).apply([user(), whole])


# Anthropic.


@pytest.fixture
def reply() -> AnthropicMessage:
    """A reply with thinking, a text and a call, as the SDK returns it."""
    content = [
        {"type": "thinking", "thinking": "hm", "signature": "EqoB"},
        {"type": "text", "text": "I write it."},
        {"type": "tool_use", "id": "a", "name": "write", "input": json.loads(ARGUMENTS)},
    ]
    body = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-some",
        "content": content,
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }
    with messages_server() as server:
        server.script.append(Scripted(json.dumps(body)))
        client = anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0)
        return client.messages.create(model="m", max_tokens=9, messages=[])


def test_an_anthropic_message_is_the_same_object_until_it_is_edited(
    reply: AnthropicMessage, tmp_path: Path
) -> None:
    messages: list[Any] = [user(), reply, results(("a", "x" * 300)), user()]
    before = copy.deepcopy(messages)
    result = under(RESULTS, tmp_path / "results").apply(messages)
    assert result.messages[1] is messages[1]
    assert result.messages[2]["content"][0]["content"].startswith("see ")
    result = under(CALLS, tmp_path / "calls").apply(messages)
    left = {"path": "a.py", "content": f"see {tmp_path}/calls/tool_call/write/a.md"}
    assert result.messages[1] == {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "EqoB"},
            {"type": "text", "text": "I write it."},
            {"type": "tool_use", "id": "a", "name": "write", "input": left},
        ],
    }
    assert messages == before


@pytest.mark.parametrize(
    "form",
    [
        lambda reply: reply,
        lambda reply: {"role": reply.role, "content": reply.content},
        lambda reply: {"role": "assistant", "content": [b.model_dump() for b in reply.content]},
        lambda reply: {"role": "assistant", "content": [b.to_dict() for b in reply.content]},
    ],
)
def test_a_compaction_of_an_anthropic_message_is_recognised_after_a_restart(
    reply: AnthropicMessage, tmp_path: Path, form: Callable[[Any], Any]
) -> None:
    rest = [results(("a", "x")), user("one"), user("two"), user("three")]
    first = under(COMPACT, tmp_path).apply([user("task"), reply, *rest])
    assert first.compacted
    again = under(COMPACT, tmp_path).apply([user("task"), form(reply), *rest])
    assert not again.compacted
    assert again.messages == first.messages
