"""Sessions whose files are at a URL; the objects are in a folder here."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.errors import InputError, StoreError
from policyctx.integrations.tools import ReadBackTools
from tests.conversations import session_of
from tests.policies import policy

POLICY = """
min_tokens: 50
store: {{root: "file://{folder}/{{session_id}}"}}
items: {{tool_result: {{offload: true}}}}
steps: [{{name: retire, do: offload, select: {{types: [tool_result], keep_recent: 1}}}}]
"""
TEXTS = [f"result {number} " * 60 for number in range(4)]
TOOLS = [{"name": "read_offloaded"}]


def session(folder: Path, session_id: str = "s1") -> Session:
    return Session(policy(POLICY.format(folder=folder)), session_id=session_id)


def conversation(turns: int) -> list[Message]:
    return session_of(*TEXTS[:turns])


def test_a_placeholder_names_the_url_and_the_tool_that_reads_it(tmp_path: Path) -> None:
    one = session(tmp_path)
    result = one.apply(conversation(3), tools=TOOLS)
    assert result.warnings == ()
    assert [path.startswith(f"file://{tmp_path}/s1/tool_result/") for path in result.files] == [
        True
    ] * 2
    placeholder = str(result.messages[2])
    assert result.files[0] in placeholder
    assert "read_offloaded" in placeholder
    assert [one.read(path) for path in result.files] == TEXTS[:2]


def test_a_session_without_a_tool_that_reads_its_files_does_not_start(tmp_path: Path) -> None:
    one = session(tmp_path)
    for tools in (None, [{"name": "Read"}]):
        with pytest.raises(InputError, match="it has no tool 'read_offloaded'"):
            one.apply(conversation(3), tools=tools)
        with pytest.raises(InputError, match="it has no tool 'read_offloaded'"):
            one.on_tool_result(conversation(1)[-1])
    assert not (tmp_path / "s1").exists()
    reading = ReadBackTools(one)
    result = one.apply(conversation(3))
    [call] = [{"type": "tool_use", "id": "r", "name": "read_offloaded", "input": {}}]
    call["input"] = {"path": result.files[1]}
    answer = reading.answer(call)
    assert answer is not None
    assert TEXTS[1] in str(answer)


def test_a_restarted_session_goes_on_and_ends_the_earlier_one(tmp_path: Path) -> None:
    one = session(tmp_path)
    first = one.apply(conversation(3), tools=TOOLS)
    again = session(tmp_path)
    second = again.apply(conversation(4), tools=TOOLS)
    assert second.warnings == ()
    assert second.messages[:4] == first.messages[:4]
    assert len(second.files) == 1
    late = one.apply(conversation(4), tools=TOOLS)
    assert "another process writes this session" in late.warnings[0]
    assert late.messages[-1] == conversation(4)[-1]
    assert late.files == ()
    again.close()
    one.close()
    assert {entry.item_id for entry in again.store.list()} == {"c0", "c1", "c2"}  # type: ignore[attr-defined]


def test_a_child_session_has_a_prefix_of_its_own(tmp_path: Path) -> None:
    one = session(tmp_path)
    child = one.child("helper")
    [path, _] = child.apply(conversation(3), tools=TOOLS).files
    assert path.startswith(f"file://{tmp_path}/s1.helper/")


def test_a_session_at_a_url_that_cannot_be_read_does_not_begin(tmp_path: Path) -> None:
    (tmp_path / "s1").write_text("a file in the place of the prefix")
    one = session(tmp_path)
    with pytest.raises(StoreError, match="cannot be read"):
        one.apply(conversation(3), tools=TOOLS)
