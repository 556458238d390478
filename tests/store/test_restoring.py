"""Offloaded texts go back into the lists and files that they left."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx import ContextFileSystem, Session
from policyctx.errors import CorruptContentError
from policyctx.store.restoring import restorer
from tests.cli.running import policyctx
from tests.conversations import session_of
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
        session.apply(BLOCKS)
    for file in tmp_path.glob("tool_result/*/*"):
        file.write_text("planted", encoding="utf-8")
    with pytest.raises(CorruptContentError):
        restorer([ContextFileSystem(tmp_path, session="s")])
