"""Offloaded texts go back into the lists and files that they left."""

from __future__ import annotations

import base64
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google.genai import types

from policyctx import ContextFileSystem, Session, Shape
from policyctx.errors import CorruptContentError
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.store.restoring import restorer
from tests.cli.running import policyctx
from tests.conversations import (
    call,
    calls,
    chat_calls,
    chat_result,
    picture,
    results,
    session_of,
    user,
)
from tests.policies import policy

POLICY = """
items: {tool_result: {offload: true}, tool_call: {offload: true}}
steps:
  - {name: calls, do: offload, select: {types: [tool_call]}}
  - {name: results, do: offload, select: {types: [tool_result]}}
"""
CHAT: list[dict[str, Any]] = [
    {"role": "user", "content": "go"},
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {
                "id": "c1",
                "type": "function",
                "function": {"name": "write", "arguments": json.dumps({"text": "word " * 400})},
            }
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": 'a "quoted"\n' * 300},
    {"role": "user", "content": "more"},
]
PICTURE = "iVBORw0KGgoA" + "A" * 5000
BLOCKS = session_of("first\n" * 400, "second\n" * 400)


@pytest.mark.parametrize("messages", [CHAT, BLOCKS], ids=["chat", "blocks"])
def test_a_list_is_as_it_was(messages: list[dict[str, Any]], tmp_path: Path) -> None:
    with Session(policy(POLICY), root=tmp_path, session_id="s") as session:
        edited = list(session.apply(messages).messages)
    assert edited != messages
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    assert json.loads(found.lines(json.dumps(edited))) == messages
    assert (found.restored > 0, found.left) == (True, 0)


def test_a_file_of_another_form_gets_its_texts_back(tmp_path: Path) -> None:
    with Session(policy(POLICY), root=tmp_path / "root", session_id="s") as session:
        [*_, last] = session.apply(BLOCKS).messages
    placeholder = last["content"][0]["content"]
    untouched = '{"n":  1.0}\n'
    lines = untouched + json.dumps({"toolUseResult": {"stdout": placeholder}}) + "\n"
    (tmp_path / "host.jsonl").write_text(lines, encoding="utf-8")
    output = tmp_path / "new.jsonl"
    arguments = ("store", "restore", tmp_path / "root", tmp_path / "host.jsonl", "-o", output)
    run = policyctx(*arguments)
    assert (run.returncode, run.stderr) == (0, "1 text restored\n")
    first, second = output.read_text(encoding="utf-8").splitlines(keepends=True)
    assert first == untouched
    assert json.loads(second) == {"toolUseResult": {"stdout": "second\n" * 400}}
    # A file that is there is never replaced.
    assert policyctx(*arguments).returncode == 1


def test_what_was_not_saved_stays_and_is_counted(tmp_path: Path) -> None:
    cleared = policy("items: {tool_result: {offload: true}}\nsteps: [{name: c, do: clear}]")
    with Session(cleared, root=tmp_path, session_id="s") as session:
        edited = list(session.apply(BLOCKS).messages)
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    text = json.dumps(edited)
    assert found.lines(text) == text
    assert (found.restored, found.left) == (0, 2)


def test_a_text_that_was_changed_is_not_restored(tmp_path: Path) -> None:
    with Session(policy(POLICY), root=tmp_path, session_id="s") as session:
        edited = list(session.apply(BLOCKS).messages)
    for file in tmp_path.glob("tool_result/*/*"):
        file.write_text("planted", encoding="utf-8")
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    with pytest.raises(CorruptContentError):
        found.lines(json.dumps(edited))
    assert found.lines('{"text": "no placeholder"}') == '{"text": "no placeholder"}'


@pytest.mark.parametrize("tool_input", [{}, {"file_path": "a.py"}])
def test_only_what_a_line_names_is_in_memory(tool_input: dict[str, str], tmp_path: Path) -> None:
    """The files are 40 times as large as what a restore takes."""
    texts = [f"{i}\n" * 100_000 for i in range(40)]
    messages = session_of(*texts)
    for message in messages[1:-1:2]:
        message["content"][0]["input"] = tool_input
    with Session(policy(POLICY), root=tmp_path, session_id="s") as session:
        edited = list(session.apply(messages).messages)
    size = sum(map(len, texts))
    del texts, messages
    tracemalloc.start()
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    lines = [json.dumps(message) for message in edited]
    restored = sum(len(found.lines(line)) for line in lines)
    assert restored > size
    assert tracemalloc.get_traced_memory()[1] < size / 4
    tracemalloc.stop()


LISTS: list[tuple[Any, ...]] = [
    ({"type": "text", "text": "first\n" * 400}, picture(PICTURE)),
    ({"type": "text", "text": "second\n" * 400}, picture(PICTURE), {"type": "text", "text": "end"}),
]


def in_chat(lists: list[tuple[Any, ...]]) -> list[Any]:
    messages: list[Any] = [user()]
    for blocks in lists:
        messages += [chat_calls(("t", "look", "{}")), chat_result("t", list(blocks)), user()]
    return messages


def in_responses(lists: list[tuple[Any, ...]]) -> list[Any]:
    messages: list[Any] = [user()]
    for blocks in lists:
        output = [
            {"type": "input_image", "image_url": "data:image/png;base64," + PICTURE}
            if block["type"] == "image"
            else block | {"type": "input_text"}
            for block in blocks
        ]
        messages += [
            {"type": "function_call", "call_id": "t", "name": "look", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "t", "output": output},
            user(),
        ]
    return messages


def in_bedrock(lists: list[tuple[Any, ...]]) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": [{"text": "go"}]}]
    for blocks in lists:
        content: list[Any] = [
            {"image": {"format": "png", "source": {"bytes": base64.b64decode(PICTURE)}}}
            if block["type"] == "image"
            else {"text": block["text"]}
            for block in blocks
        ]
        call = {"toolUse": {"toolUseId": "t", "name": "look", "input": {}}}
        result = {"toolResult": {"toolUseId": "t", "content": content, "status": "success"}}
        messages += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return [*messages, messages[0]]


def in_google(lists: list[tuple[Any, ...]], call_id: str | None = "t") -> list[Any]:
    messages: list[Any] = [types.Content(role="user", parts=[types.Part(text="go")])]
    for blocks in lists:
        call = types.FunctionCall(id=call_id, name="look", args={})
        response: dict[str, Any] = {"content": list(blocks), "isError": False}
        answer = types.FunctionResponse(id=call_id, name="look", response=response)
        messages += [
            types.Content(role="model", parts=[types.Part(function_call=call)]),
            types.Content(role="user", parts=[types.Part(function_response=answer)]),
        ]
    return [*messages, messages[0]]


@pytest.mark.parametrize(
    ("messages", "shape"),
    [
        ([m for blocks in LISTS for m in session_of(list(blocks))], None),
        (in_chat(LISTS), None),
        (in_responses(LISTS), None),
        (in_bedrock(LISTS), BedrockShape()),
        (in_google(LISTS), GoogleShape()),
        (in_google(LISTS[:1], call_id=None), GoogleShape()),
    ],
    ids=["anthropic", "chat", "responses", "bedrock", "google", "google without ids"],
)
def test_lists_of_blocks_come_back_whole_also_under_one_id(
    messages: list[Any], shape: Shape | None, tmp_path: Path
) -> None:
    shapes = [] if shape is None else [shape]
    rules = policy("items: {tool_result: {offload: true}}\nsteps: [{name: a, do: offload}]")
    with Session(rules, root=tmp_path, session_id="s", shapes=shapes) as session:
        edited = list(session.apply(messages).messages)
    before, after = (
        json.loads(json.dumps([one if shape is None else shape.plain(one) for one in some]))
        for some in (messages, edited)
    )
    assert PICTURE not in json.dumps(after)
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    assert json.loads(found.lines(json.dumps(after))) == before


LONG: dict[str, Any] = {"path": "读.txt", "lines": ["word " * 400, 1]}
ASKED = {"toolUse": {"toolUseId": "t", "name": "write", "input": LONG}}
ANSWERED = {"toolResult": {"toolUseId": "t", "content": [{"text": "done"}]}}
CONTENTS = [
    types.Content(role=role, parts=[part])
    for role, part in (
        ("user", types.Part(text="go")),
        ("model", types.Part(function_call=types.FunctionCall(id="t", name="write", args=LONG))),
        (
            "user",
            types.Part(function_response=types.FunctionResponse(id="t", name="write", response={})),
        ),
    )
]


@pytest.mark.parametrize(
    ("messages", "shape"),
    [
        ([user(), call("t", "write", LONG), results(("t", "done")), user()], None),
        (
            [
                {"role": "user", "content": [{"text": "go"}]},
                {"role": "assistant", "content": [ASKED]},
                {"role": "user", "content": [ANSWERED]},
            ],
            BedrockShape(),
        ),
        (CONTENTS, GoogleShape()),
    ],
    ids=["anthropic", "bedrock", "google"],
)
def test_the_inputs_of_calls_come_back(
    messages: list[Any], shape: Shape | None, tmp_path: Path
) -> None:
    shapes = [] if shape is None else [shape]
    with Session(policy(POLICY), root=tmp_path, session_id="s", shapes=shapes) as session:
        edited = list(session.apply(messages).messages)
    before, after = (
        json.loads(json.dumps([one if shape is None else shape.plain(one) for one in some]))
        for some in (messages, edited)
    )
    assert after != before
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    assert json.loads(found.lines(json.dumps(after))) == before


def test_an_image_comes_back_in_the_place_of_its_text_block(tmp_path: Path) -> None:
    said = {"type": "text", "text": "What is this?"}
    messages = [{"role": "user", "content": [said, picture(PICTURE)]}, calls(), user()]
    messages[1]["content"] = [{"type": "text", "text": "A cat."}]
    rules = policy("items: {image: {offload: true}}\nsteps: [{name: a, do: offload}]")
    with Session(rules, root=tmp_path, session_id="s") as session:
        edited = list(session.apply(messages).messages)
    assert PICTURE not in json.dumps(edited)
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    assert json.loads(found.lines(json.dumps(edited))) == messages


@pytest.mark.parametrize("harm", [Path.unlink, lambda file: file.write_text("{}", "utf-8")])
def test_a_list_without_its_images_is_not_restored(
    harm: Callable[[Path], object], tmp_path: Path
) -> None:
    with Session(policy(POLICY), root=tmp_path, session_id="s") as session:
        edited = list(session.apply(session_of(list(LISTS[0]))).messages)
    [file] = tmp_path.glob("tool_result/*/*.blocks.json")
    harm(file)
    (tmp_path / "messages.json").write_text(json.dumps(edited), "utf-8")
    run = policyctx("store", "restore", tmp_path, tmp_path / "messages.json")
    assert (run.returncode, run.stdout) == (1, "")
    assert file.name in run.stderr


def test_a_text_of_the_user_comes_back_as_text_in_a_list_of_blocks(tmp_path: Path) -> None:
    """A host puts the message's text into a block, as for a cache breakpoint."""
    said = "what to do " * 400
    step = "{name: a, do: offload, select: {keep_recent: 1}}"
    rules = policy(f"items: {{user_message: {{offload: true}}}}\nsteps: [{step}]")
    with Session(rules, root=tmp_path, session_id="s") as session:
        edited = list(session.apply([user(said), calls(), user("now")]).messages)
    assert said not in json.dumps(edited)
    block = {"type": "text", "text": edited[0]["content"], "cache_control": {"type": "ephemeral"}}
    found = restorer([ContextFileSystem(tmp_path, session="s")])
    text = found.lines(json.dumps([{"role": "user", "content": [block]}]))
    assert json.loads(text) == [{"role": "user", "content": [{**block, "text": said}]}]
