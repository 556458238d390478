"""The tests that each host's shape must pass, with the messages of Agent Framework."""

from __future__ import annotations

import json

import pytest
from agent_framework import Content, Message

from policyctx import Session
from policyctx.integrations.agent_framework import AgentFrameworkShape
from tests.fuzz.memory_store import MemoryStore
from tests.hosts.agent_framework import AgentFramework
from tests.hosts.hosts import Host
from tests.hosts.test_host_shapes import (  # noqa: F401 - they run with the fixture below
    test_a_cleared_result_keeps_its_call,
    test_a_dropped_call_leaves_with_its_result,
    test_a_list_continues_in_each_form,
    test_a_list_may_mix_dicts_and_objects_of_a_host,
    test_a_picture_is_replaced_by_a_text_if_the_shape_knows_it,
    test_a_restart_gives_the_same_messages_to_loaded_objects,
    test_a_result_is_offloaded_on_arrival,
    test_an_edited_text_leaves_the_opaque_parts_of_the_model,
    test_an_offloaded_result_is_a_new_object_and_all_others_are_the_same,
    test_explain_and_plan_tell_what_apply_does,
    test_history_is_replaced_by_a_message_of_the_host,
    test_parallel_calls_are_dropped_one_by_one,
    test_the_call_of_a_tool_gets_a_shorter_input,
    test_the_store_restores_the_block_of_a_host,
    test_what_a_host_writes_is_json,
    test_without_a_decision_the_list_is_the_same_object,
    test_without_the_shape_an_object_is_no_message,
)
from tests.policies import policy


@pytest.fixture
def host() -> Host:
    made: Host = AgentFramework()
    return made


def test_the_shape_reads_files_hosted_calls_and_questions() -> None:
    shape = AgentFrameworkShape()
    image = Content.from_data(b"\x89PNG", "image/png")
    sound = Content.from_data(b"RIFF", "audio/wav")
    result = Content.from_function_result("a", result=[Content.from_text("seen"), image, sound])
    message = Message("tool", [result])
    parts = list(shape.parts(message))
    assert [(part.kind, part.number) for part in parts] == [("tool_result", 0), ("image", 1)]
    assert parts[0].counted == "seen"
    assert len(parts[0].media) == 2
    edited = shape.replaced(message, {(0, 1): "see a file"}).contents[0]
    assert [item.type for item in edited.items] == ["text", "text", "data"]
    assert edited.result == "seen\nsee a file"
    assert result.result == "seen"
    whole = shape.replaced(message, {(0,): "see a file"})
    assert [part.text for part in shape.parts(whole)] == ["see a file"]
    call = Content.from_function_call("b", "read", arguments={"path": "a"})
    asks = Content.from_function_approval_request("q", call)
    reply = Message("assistant", [call, asks], additional_properties={"mine": object()})
    assert [part.kind for part in shape.parts(reply)] == ["tool_call", "unknown"]
    assert shape.stays(reply)
    assert not shape.stays(message)
    shorter = shape.replaced(reply, {(0,): '{"path": "b"}'})
    assert shorter.contents[0].arguments == {"path": "b"}
    assert call.arguments == {"path": "a"}
    assert json.dumps(shape.plain(reply))


def test_a_picture_that_comes_again_is_new_after_a_restart() -> None:
    """A call is answered twice, and a placeholder stands for the picture in the first answer."""
    compiled = policy("""\
        items: {image: {offload: true}}
        store: {sync: never}
        steps:
          - name: old
            do: clear
            must_shrink: false
            select: {types: [image], keep_recent: 1}
            placeholder: "[old]"
        """)

    def answered(call_id: str) -> Message:
        shot = [Content.from_text("seen"), Content.from_data(b"\x89PNG", "image/png")]
        return Message("tool", [Content.from_function_result(call_id, result=shot)])

    made, shapes, store = AgentFramework(), [AgentFrameworkShape()], MemoryStore()
    live = Session(compiled, store=store, session_id="s", shapes=shapes)
    pairs = [(made.reply("", [(one, "shot", {})]), answered(one)) for one in ("a", "b")]
    back = live.apply([made.user("look"), *pairs[0], *pairs[1]]).messages
    given = [*back, made.user("again"), answered("a")]
    restarted = Session(compiled, store=store.copy(), session_id="s", shapes=shapes)
    left = [[*map(shapes[0].plain, one.apply(given).messages)] for one in (live, restarted)]
    assert json.dumps(left[0][-1]).count("[old]") == 0
    assert left[0] == left[1]
