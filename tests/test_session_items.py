"""`Session.items`: what became of each item of a context, as its owner may ask."""

from __future__ import annotations

import copy
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from policyctx import ContextFileSystem, OffloadPolicy, Session
from tests.conversations import calls, results, session_of, user
from tests.policies import policy

KEPT_TWO = """\
    items: {tool_result: {offload: true}}
    tools: {Bash: {keep_recent: 2}}
    placeholder: "see {path}"
    store: {sync: never}
    steps: [{name: retire, do: offload, select: {ephemeral: true}}]
    """
DROPPING = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps: [{name: go, do: drop, select: {keep_recent: 1}}]
    """
CLEARING = """\
    items: {tool_result: {offload: true}}
    steps: [{name: go, do: clear, select: {keep_recent: 1}}]
    """
TEXTS = ["one " * 50, "two " * 50, "three " * 50]


def session_in(folder: Path, text: str = KEPT_TWO) -> Session:
    return Session(policy(text), root=folder, session_id="s")


def test_an_offloaded_item_names_its_file(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    session.apply(session_of(*TEXTS))
    [item] = [item for item in session.items if item.offloaded]
    assert item.offload_path == str(tmp_path / "tool_result/Bash/c0.md")
    assert Path(item.offload_path).read_text(encoding="utf-8") == TEXTS[0]
    assert (item.item_id, item.type, item.tool) == ("c0", "tool_result", "Bash")
    assert item.destroyed


def test_an_item_that_stays_is_listed_as_it_is(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    messages = session_of(*TEXTS)
    session.apply(messages)
    kept = [item for item in session.items if not item.offloaded]
    assert {(item.offload_path, item.destroyed) for item in kept} == {(None, False)}
    assert [item.type for item in session.items] == [
        item.type for item in session.plan(messages).items
    ]


def test_a_dropped_item_is_destroyed_and_has_its_file(tmp_path: Path) -> None:
    session = session_in(tmp_path, DROPPING)
    session.apply(session_of(*TEXTS))
    gone = [item for item in session.items if item.destroyed and item.type == "tool_result"]
    assert [item.item_id for item in gone] == ["c0", "c1"]
    assert [Path(item.offload_path or "").read_text(encoding="utf-8") for item in gone] == TEXTS[:2]


def test_a_dropped_item_is_still_listed_when_the_edited_list_is_passed_back(
    tmp_path: Path,
) -> None:
    session = session_in(tmp_path, DROPPING)
    edited = session.apply(session_of(*TEXTS)).messages
    before = {item.item_id for item in session.items if item.destroyed}
    session.apply([*edited, user("go on")])
    assert {item.item_id for item in session.items if item.destroyed} == before


def test_a_cleared_item_is_destroyed_and_has_no_file(tmp_path: Path) -> None:
    session = session_in(tmp_path, CLEARING)
    session.apply(session_of(*TEXTS))
    gone = [item for item in session.items if item.destroyed]
    assert [(item.item_id, item.offloaded, item.offload_path) for item in gone] == [
        ("c0", False, None),
        ("c1", False, None),
    ]


def test_offloaded_items_are_listed_after_a_restart_before_a_list_is_given(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    session.apply(session_of(*TEXTS))
    before = [item for item in session.items if item.offloaded]
    assert list(session_in(tmp_path).items) == before


def test_an_item_offloaded_on_arrival_is_listed_before_it_is_in_a_list(tmp_path: Path) -> None:
    arriving = KEPT_TWO.replace(
        "{name: retire, do: offload, select: {ephemeral: true}}",
        "{name: go, on: arrival, do: offload}",
    )
    session = session_in(tmp_path, arriving)
    session.on_tool_result(results(("c0", TEXTS[0])), call=calls(("c0", "Bash")))
    assert [(item.item_id, item.offloaded) for item in session.items] == [("c0", True)]


def test_an_item_is_listed_once_when_the_edited_list_comes_back(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    edited = session.apply(session_of(*TEXTS)).messages
    before = session.items
    session.apply(edited)
    assert session.items == before
    again = session_in(tmp_path)
    again.apply(edited)
    assert [i.item_id for i in again.items if i.offloaded] == ["c0"]


def test_a_new_session_has_no_items(tmp_path: Path) -> None:
    assert session_in(tmp_path / "root").items == ()
    assert not (tmp_path / "root").exists()


def test_the_example_of_the_docs_prints_the_offloaded_item(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    page = (Path(__file__).parents[1] / "docs/agent-options.md").read_text(encoding="utf-8")
    section = page.partition("## The preset context-filesystem")[2]
    example = section.partition("```python\n")[2].partition("```")[0]
    texts = ["one " * 200, "two " * 200, "three " * 200]
    names: dict[str, Any] = {"messages": session_of(*texts, tool="read_file")}
    exec(example, names)  # noqa: S102 - our own page
    path = next(Path(tmp_path, ".agent/context").glob("session_*/tool_result/read_file/c0.json"))
    assert capsys.readouterr().out == f"Offloaded: {path}\n"


def test_the_documents_names_can_be_imported() -> None:
    session = Session("context-filesystem")
    assert isinstance(session.policy, OffloadPolicy)
    assert isinstance(session.store, ContextFileSystem)


def test_views_cannot_be_changed_and_nothing_of_them_is_in_the_messages(tmp_path: Path) -> None:
    session = session_in(tmp_path)
    messages = session_of(*TEXTS)
    result = session.apply(messages)
    sent = copy.deepcopy(list(result.messages))
    with pytest.raises(FrozenInstanceError):
        session.items[0].offloaded = True  # type: ignore[misc]
    assert result.messages == sent
    keys = {key for message in sent for block in blocks_of(message) for key in block}
    assert not keys & {"offloaded", "offload_path", "destroyed"}


def blocks_of(message: dict[str, object]) -> list[dict[str, object]]:
    content = message["content"]
    return [message, *(content if isinstance(content, list) else [])]
