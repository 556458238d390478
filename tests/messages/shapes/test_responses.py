"""Items of the Responses API: the parts of each type, their edits, and values that are not one."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest

from policyctx import MessagesError
from policyctx.definitions.items import UNKNOWN, Item, Message
from policyctx.messages.editing import Edit, block_of, edited_message
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import Reading, items_of
from policyctx.messages.shapes.built_in import RESPONSES
from policyctx.session import Session
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

PICTURE = {"type": "input_image", "image_url": "data:image/png;base64,iVBORw0KGgo="}
PDF = {"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0="}
TEXT = {"type": "input_text", "text": "seen"}
COMMAND = {"type": "exec", "command": ["ls", "-l"], "env": {}}

CALLS: dict[str, tuple[Message, str, str]] = {
    "function_call": (
        {"type": "function_call", "call_id": "a", "name": "ls", "arguments": '{"p": 1}'},
        "arguments",
        "ls",
    ),
    "custom_tool_call": (
        {"type": "custom_tool_call", "call_id": "a", "name": "apply_patch", "input": "*** Begin"},
        "input",
        "apply_patch",
    ),
    "local_shell_call": (
        {"type": "local_shell_call", "call_id": "a", "action": COMMAND, "status": "completed"},
        "action",
        "local_shell",
    ),
    "shell_call": (
        {"type": "shell_call", "call_id": "a", "action": {"commands": ["ls"]}}, "action", "shell",
    ),
    "apply_patch_call": (
        {
            "type": "apply_patch_call",
            "call_id": "a",
            "operation": {"type": "update_file", "path": "a.py", "diff": "@@\n-a\n+b"},
        },
        "operation",
        "apply_patch",
    ),
}  # fmt: skip
OF_TEXT = ("function_call", "custom_tool_call")
OUTPUTS = [
    "function_call_output",
    "custom_tool_call_output",
    "local_shell_call_output",
    "apply_patch_call_output",
]
CLICK = {"type": "computer_call", "call_id": "a", "action": {"type": "click", "x": 1, "y": 2}}
SCREENSHOT = {
    "type": "computer_call_output",
    "call_id": "a",
    "output": {
        "type": "computer_screenshot",
        "image_url": "data:image/png;base64,iVBORw0KGgo=",
    },
}
SHELL_OUTPUT = {
    "type": "shell_call_output",
    "call_id": "a",
    "output": [
        {"stdout": "found", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
        {"stdout": "", "stderr": "slow", "outcome": {"type": "timeout"}},
    ],
}
# Halves of what stays together, and whether each asks.
HALVES: list[tuple[Message, bool]] = [
    ({"type": "mcp_approval_request", "id": "p", "name": "ls", "arguments": "{}"}, True),
    ({"type": "mcp_approval_response", "approval_request_id": "p", "approve": True}, False),
    ({"type": "tool_search_call", "call_id": "p", "arguments": {"query": "q"}}, True),
    ({"type": "tool_search_output", "call_id": "p", "tools": [], "execution": "server"}, False),
    ({"type": "program", "id": "x", "call_id": "p", "code": "1", "fingerprint": "f"}, True),
    ({"type": "program_output", "id": "x", "call_id": "p", "result": "1"}, False),
    ({"type": "shell_call_output", "id": "x", "call_id": "p", "output": []}, False),
]
# Types of the API reference that a policy leaves alone, and types that nobody knows.
OPAQUE: list[Message] = [
    {"type": "item_reference", "id": "msg_1"},
    {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"},
    {"type": "file_search_call", "id": "fs_1", "queries": ["q"], "status": "completed"},
    {"type": "code_interpreter_call", "id": "ci_1", "code": "1", "outputs": []},
    {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0KGgo="},
    {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
    {"type": "mcp_call", "id": "mcp_1", "name": "ls", "arguments": "{}", "output": "found"},
    {"type": "brand_new", "anything": [1, None, "字"]},
]


def only(message: Message) -> Item:
    (item,) = items_of([message])
    return item


def edited(message: Message, text: str | None, place: int = 0) -> Message | None:
    """The message with one item edited; the given one must stay as it was."""
    before = copy.deepcopy(message)
    new = edited_message(message, [Edit(items_of([message])[place], text)])
    assert message == before
    return new


def output(kind: str, value: Any) -> Message:
    return {"type": kind, "call_id": "a", "output": value}


# What each type of item is


@pytest.mark.parametrize(
    ("message", "bare", "kind"),
    [
        (
            {"type": "image_generation_call", "id": "ig_1", "result": "iVBORw0KGgo="},
            {"type": "image_generation_call", "id": "ig_1"},
            UNKNOWN,
        ),
        (SCREENSHOT, SCREENSHOT | {"output": {"type": "computer_screenshot"}}, "tool_result"),
    ],
)
def test_a_picture_that_is_a_whole_item_counts_by_its_pixels(
    message: Message, bare: Message, kind: str
) -> None:
    item = only(message)
    assert (item.kind, item.text) == (kind, compact_json(message))
    assert item.counted == compact_json(bare)
    [picture] = item.media
    assert (picture.kind, picture.provider) == ("image", "openai")
    assert picture.data[picture.data_start :] == "iVBORw0KGgo="


@pytest.mark.parametrize("output", [None, "text", {"type": "computer_screenshot", "file_id": "f"}])
def test_an_item_without_the_bytes_of_its_picture_counts_as_its_json(output: object) -> None:
    message = {"type": "computer_call_output", "call_id": "a", "output": output}
    item = only(message)
    assert (item.counted, item.media) == (compact_json(message), ())


@pytest.mark.parametrize("kind", CALLS)
def test_a_call_has_its_tool_its_id_and_its_input(kind: str) -> None:
    call, field, tool = CALLS[kind]
    item = only(call)
    given = call[field]
    text = given if isinstance(given, str) else compact_json(given)
    assert (item.kind, item.role, item.tool, item.tool_use_id) == (
        "tool_call",
        "assistant",
        tool,
        "a",
    )
    assert (item.path, item.text, item.counted) == ((field,), text, text)


@pytest.mark.parametrize("kind", OUTPUTS)
def test_an_output_is_a_result_of_the_call_with_its_id(kind: str) -> None:
    call, _, tool = CALLS[kind.removesuffix("_output")]
    _, item = items_of([call, output(kind, "found")])
    assert (item.kind, item.role, item.text) == ("tool_result", "tool", "found")
    assert (item.tool, item.tool_use_id, item.call_message) == (tool, "a", 0)


def test_an_output_may_hold_parts_and_the_media_in_them_are_items() -> None:
    items = items_of([output("function_call_output", [TEXT, PICTURE, PDF])])
    assert [item.kind for item in items] == ["tool_result", "image", "document"]
    assert [item.item_id for item in items] == ["a", "a-1", "a-2"]
    assert [item.path for item in items] == [("output",), ("output", 1), ("output", 2)]
    assert items[0].text == items[0].counted == TEXT["text"]
    assert [item.media_type for item in items[1:]] == ["image/png", "application/pdf"]


@pytest.mark.parametrize(
    ("role", "kind"),
    [
        ("user", "user_message"),
        ("assistant", "assistant_message"),
        ("system", "system_prompt"),
        ("developer", "system_prompt"),
    ],
)
def test_a_message_has_the_parts_of_its_content(role: str, kind: str) -> None:
    content = [
        {"type": "output_text", "text": "a", "annotations": []},
        PICTURE,
        {"type": "refusal"},
    ]
    items = items_of([{"type": "message", "role": role, "content": content}])
    assert [item.kind for item in items] == [kind, "image", UNKNOWN]
    assert {item.role for item in items} == {role}
    assert only({"type": "message", "role": role, "content": "a"}).kind == kind


def test_reasoning_is_its_readable_text() -> None:
    item = only(
        {
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": "short"}],
            "content": [{"type": "reasoning_text", "text": "long"}],
            "encrypted_content": "gAAAA",
        }
    )
    assert (item.kind, item.role, item.text) == ("thinking", "assistant", "short\nlong")
    assert (item.counted, item.media) == ("short\nlong", ())


def test_encrypted_reasoning_has_a_size_but_no_text() -> None:
    item = only({"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"})
    assert (item.text, item.counted) == ("gAAAA", "")
    assert [medium.kind for medium in item.media] == ["reasoning"]


@pytest.mark.parametrize("item", [*OPAQUE, {"type": "web_search_call", "action": {"query": "q"}}])
def test_an_item_of_another_type_is_unknown_as_a_whole(item: Message) -> None:
    found = only(item)
    assert (found.kind, found.path, found.text) == (UNKNOWN, (), compact_json(item))
    assert (found.tool, found.tool_use_id) == (None, None)


@pytest.mark.parametrize(("item", "asks"), HALVES)
def test_the_halves_of_a_pair_that_stays_are_known_by_their_id(
    item: Message,
    asks: bool,
) -> None:
    found = only(item)
    assert (found.kind, found.path, found.text) == (UNKNOWN, (), compact_json(item))
    assert (found.tool_use_id, found.is_call, found.is_answer) == ("p", asks, not asks)


def test_the_answer_to_an_approval_is_of_the_client() -> None:
    assert RESPONSES.role(HALVES[0][0]) == "assistant"
    assert RESPONSES.role(HALVES[1][0]) == "tool"


def test_the_output_of_a_shell_is_what_its_commands_said() -> None:
    item = only(SHELL_OUTPUT)
    assert (item.kind, item.text, item.error) == ("tool_result", "found\nslow", True)
    assert not only({**SHELL_OUTPUT, "output": SHELL_OUTPUT["output"][:1]}).error


def test_what_replaces_the_output_of_a_shell_keeps_how_each_command_ended() -> None:
    left = edited(SHELL_OUTPUT, "see x")
    assert left == SHELL_OUTPUT | {
        "output": [
            {"stdout": "see x", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
            {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
        ]
    }
    assert only(left).text == "see x"
    assert edited(SHELL_OUTPUT, None) is None


def test_a_screenshot_is_a_result_that_no_text_replaces() -> None:
    item = only(SCREENSHOT)
    assert (item.kind, item.tool_use_id, item.takes_text) == ("tool_result", "a", False)
    assert edited(SCREENSHOT, None) is None
    assert only(CLICK).tool == "computer"


@pytest.mark.parametrize(
    ("kind", "left"),
    [
        ("local_shell_call", COMMAND | {"command": []}),
        ("shell_call", {"commands": []}),
        ("apply_patch_call", {"type": "update_file", "path": "a.py", "diff": ""}),
    ],
)
def test_an_emptied_input_keeps_the_form_that_the_api_asks_for(kind: str, left: Any) -> None:
    call, field, _ = CALLS[kind]
    new = edited(call, "{}")
    assert new is not None
    assert new[field] == left
    assert only(new).text == "{}"


@pytest.mark.parametrize("path", ["a.py", "deep/" * 60 + "a.py"])
@pytest.mark.parametrize("leave", ["with_input: {leave: empty}", "with_input: true"])
def test_a_patch_that_deletes_a_file_keeps_its_form(leave: str, path: str) -> None:
    """It has no field that holds content."""
    operation = {"type": "delete_file", "path": path}
    call = {"type": "apply_patch_call", "call_id": "a", "operation": operation}
    found = {"type": "apply_patch_call_output", "call_id": "a", "output": "word " * 500}
    select = f"select: {{types: [tool_result], {leave}}}"
    rules = policy(
        f"""\
        min_chars: 0
        items: {{tool_result: {{offload: true}}}}
        steps: [{{name: s, do: offload, {select}}}]
        """
    )
    given = [{"role": "user", "content": "go"}, call, found, {"role": "user", "content": "go"}]
    left = Session(rules, store=MemoryStore(), session_id="s").apply(given).messages
    assert left[1] == call
    assert left[2] != found


def test_items_of_unknown_types_survive_a_compaction_and_the_others_do_not() -> None:
    leave = {"file_search_call", "code_interpreter_call", "mcp_call"}
    assert {item["type"] for item in OPAQUE if not RESPONSES.stays(item)} == leave
    # Without it the answer to the approval would ask for the call again.
    assert RESPONSES.stays({"type": "mcp_call", "id": "mcp_2", "approval_request_id": "r"})
    assert all(RESPONSES.stays(item) for item, _ in HALVES)
    known = [call for call, *_ in CALLS.values()] + [output(kind, "x") for kind in OUTPUTS]
    known += [CLICK, SCREENSHOT, SHELL_OUTPUT]
    known += [{"type": "reasoning"}, {"type": "message", "role": "user"}]
    known.append({"type": "web_search_call", "id": "ws_1"})
    assert not any(map(RESPONSES.stays, known))


# Edits


@pytest.mark.parametrize("kind", CALLS)
def test_the_input_of_a_call_is_replaced_in_its_form(kind: str) -> None:
    call, field, _ = CALLS[kind]
    text = '{"short":"字"}'
    new = edited(call, text)
    assert new == {**call, field: text if kind in OF_TEXT else json.loads(text)}
    assert edited(call, None) is None


@pytest.mark.parametrize("kind", OUTPUTS)
@pytest.mark.parametrize("value", ["found", [TEXT, PICTURE], {"a": 1}, None])
def test_an_output_is_replaced_by_the_text(kind: str, value: Any) -> None:
    assert edited(output(kind, value), "see x") == output(kind, "see x")
    assert edited(output(kind, value), None) is None


def test_a_picture_in_an_output_is_replaced_by_a_text_part() -> None:
    given = output("function_call_output", [TEXT, PICTURE])
    left = {"type": "input_text", "text": "see x"}
    assert edited(given, "see x", 1) == output("function_call_output", [TEXT, left])
    assert edited(given, None, 1) == output("function_call_output", [TEXT])
    alone = output("function_call_output", [PICTURE])
    assert edited(alone, None, 1) == output("function_call_output", "[Content removed]")


def test_a_message_of_which_nothing_is_left_is_removed() -> None:
    assert edited({"type": "message", "role": "user", "content": [TEXT]}, None) is None
    assert edited({"type": "message", "role": "user", "content": "go"}, None) is None
    two = {"type": "message", "role": "user", "content": [TEXT, PICTURE], "id": "msg_1"}
    assert edited(two, None, 1) == {**two, "content": [TEXT]}
    assert edited(two, "see x") == {**two, "content": [{**TEXT, "text": "see x"}, PICTURE]}


def test_reasoning_is_removed_whole_and_never_replaced() -> None:
    reasoning = {"type": "reasoning", "summary": [], "encrypted_content": "gAAAA"}
    assert edited(reasoning, None) is None
    with pytest.raises(ValueError, match="keeps its bytes"):
        edited(reasoning, "x")


@pytest.mark.parametrize("item", OPAQUE)
def test_an_unknown_item_is_never_edited(item: Message) -> None:
    for text in (None, "x"):
        with pytest.raises(ValueError, match="keeps its bytes"):
            edited(item, text)


# What the store keeps


@pytest.mark.parametrize("item", [*(call for call, *_ in CALLS.values()), *OPAQUE])
def test_the_block_of_an_item_is_the_whole_item(item: Message) -> None:
    assert block_of(item, only(item)) == item


def test_the_block_of_a_part_is_the_part() -> None:
    message = {"type": "message", "role": "user", "content": [TEXT, PICTURE]}
    assert [block_of(message, item) for item in items_of([message])] == [TEXT, PICTURE]
    given = output("function_call_output", [TEXT, PICTURE])
    assert [block_of(given, item) for item in items_of([given])] == [given, PICTURE]


@pytest.mark.parametrize(("role", "kind"), [("user", "input_text"), ("assistant", "output_text")])
def test_a_written_message_is_an_item_with_one_part(role: str, kind: str) -> None:
    content = [{"type": kind, "text": "done"}]
    assert RESPONSES.written(role, "done") == {"type": "message", "role": role, "content": content}


# Values that are not what the API takes


@pytest.mark.parametrize(
    ("item", "error"),
    [
        ({"type": "function_call", "arguments": {}}, '"arguments" to be a string, got an object'),
        ({"type": "function_call", "arguments": 5}, '"arguments" to be a string, got a number'),
        ({"type": "custom_tool_call", "input": ["x"]}, '"input" to be a string, got a list'),
        ({"type": "message", "role": None, "content": "x"}, '"role" to be a string'),
        ({"type": "message", "role": "user", "content": {}}, '"content" to be a string or a list'),
        ({"type": "message", "role": "user", "content": [5]}, "content block 0: expected an obj"),
        ({"type": "message", "role": "user", "content": [{}]}, 'expected "type" to be a string'),
    ],
    ids=str,
)  # fmt: skip
def test_a_wrong_field_is_named(item: Message, error: str) -> None:
    with pytest.raises(MessagesError) as caught:
        items_of([item])
    assert str(caught.value).startswith("message 0: ")
    assert error in str(caught.value)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        ("", ""),
        ([], "[]"),
        ({"a": "字"}, '{"a":"字"}'),
        (5, "5"),
        (True, "true"),
        ([["a"], None], '[["a"],null]'),
        ("\ud800", "\ud800"),
        (" " * 1_000_000, " " * 1_000_000),
    ],
    ids=lambda value: str(value)[:12].encode("utf-8", "replace").decode(),
)
def test_an_output_of_any_json_is_read(value: Any, text: str) -> None:
    given = output("function_call_output", value)
    item = only(given)
    assert (item.kind, item.text) == ("tool_result", text)
    assert edited(given, "x") == output("function_call_output", "x")


@pytest.mark.parametrize("kind", [*CALLS, *OUTPUTS, "reasoning", "web_search_call", "brand_new"])
def test_an_item_may_lack_all_its_fields(kind: str) -> None:
    item = only({"type": kind})
    assert item.tool_use_id is None
    assert item.item_id == "msg_001"


@pytest.mark.parametrize("content", [None, "", [], ()])
def test_a_message_without_content_has_no_items(content: object) -> None:
    message = {"type": "message", "role": "assistant", "content": content}
    assert items_of([message]) == ()
    assert RESPONSES.is_empty(message)


@pytest.mark.parametrize("call_id", [None, 5, ["a"], {"a": 1}])
def test_an_id_that_is_not_a_string_pairs_nothing(call_id: object) -> None:
    call = {"type": "function_call", "call_id": call_id, "name": "ls", "arguments": "{}"}
    _, found = items_of([call, {**output("function_call_output", "x"), "call_id": call_id}])
    assert (found.tool_use_id, found.tool, found.call_message) == (None, None, None)


def test_a_local_shell_call_may_be_known_by_its_item_id() -> None:
    call = {"type": "local_shell_call", "id": "a", "action": COMMAND}
    _, found = items_of([call, {"type": "local_shell_call_output", "id": "a", "output": "x"}])
    assert (found.tool_use_id, found.tool) == ("a", "local_shell")


@pytest.mark.parametrize(
    "fields", [{"id": "i"}, {"id": "c"}, {"call_id": "c"}, {"id": "o", "call_id": "c"}]
)
@pytest.mark.parametrize("together", [True, False])
def test_the_output_of_a_local_shell_names_its_call_by_either_id(
    fields: dict[str, str], *, together: bool
) -> None:
    asked: Message = {"type": "local_shell_call", "id": "i", "call_id": "c", "action": COMMAND}
    answer: Message = {"type": "local_shell_call_output", "output": "x"} | fields
    reading = Reading()
    for messages in [[asked, answer]] if together else [[asked], [answer]]:
        reading.extend(messages)
    assert reading.partners == {0: 1, 1: 0}
    assert reading.items[1].tool == "local_shell"


@pytest.mark.parametrize("name", [None, 5, ["ls"]])
def test_a_name_that_is_not_a_string_is_no_tool(name: object) -> None:
    assert only({"type": "function_call", "call_id": "a", "name": name}).tool is None


@pytest.mark.parametrize(
    "fields",
    [
        {"summary": None},
        {"summary": None, "content": None, "encrypted_content": None},
        {"summary": [None, 5, "x", {"text": None}, {"type": "summary_text"}]},
        {"summary": [], "content": [], "encrypted_content": ""},
        {"summary": 5, "content": "x"},
        {"summary": {"text": "x"}, "content": True},
    ],
)
def test_reasoning_without_a_text_is_empty(fields: dict[str, Any]) -> None:
    item = only({"type": "reasoning", **fields})
    assert (item.kind, item.text, item.media) == ("thinking", "", ())


def deep(depth: int = 100_000) -> Any:
    value: Any = "x"
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("kind", [*OUTPUTS, "brand_new", "web_search_call"])
def test_an_item_that_is_nested_too_deeply_is_named(kind: str) -> None:
    with pytest.raises(MessagesError, match=r"^message 0: nested too deeply$"):
        items_of([output(kind, deep())])


def test_a_lone_surrogate_keeps_its_bytes() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "ls", "arguments": '{"p":"\ud800"}'}
    assert only(call).text == '{"p":"\ud800"}'
    assert block_of(call, only(call)) == call
    assert only({"type": "brand_new", "x": "\udfff"}).text == '{"type":"brand_new","x":"\udfff"}'
