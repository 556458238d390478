"""The default wording of a placeholder names a tool only if the session knows that one exists."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policyctx import Session
from policyctx.integrations.tools import ReadBackTools
from tests.conversations import session_of
from tests.policies import policy

if TYPE_CHECKING:
    from pathlib import Path

LARGE = "word " * 400
POLICY = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    tools: {view: {reads_file: file}, %s: {keep_recent: 0}}
    steps: [{name: a, do: offload, select: {types: [tool_result]}}]
    """


def made(root: Path, named: str = "other") -> Session:
    return Session(policy(POLICY % named), root=root, session_id="s")


def placeholder(session: Session, tools: object = None) -> str:
    found = str(session.apply(session_of(LARGE), tools=tools).messages[2]["content"][0]["content"])
    head = f"[Content offloaded]\nPath: {session.store.root}/tool_result/Bash/c0.md"
    assert found.startswith(head)
    return found.removeprefix(head)


def chat(name: str) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "parameters": {}}}


@pytest.mark.parametrize(
    ("tools", "named"),
    [
        (None, ""),
        ([], ""),
        ([{"name": "Bash"}, chat("Read")], ""),
        ([{"name": "Bash"}, {"name": "view"}], "view"),
        ([chat("view"), chat("read_offloaded")], "read_offloaded"),
        ([{"type": "function", "name": "srv-read_offloaded"}], "srv-read_offloaded"),
        ([{"name": "search_offloaded"}], ""),
        ([{"name": "unread_offloaded"}, {"type": "web_search"}, 7, "text"], ""),
    ],
)
def test_the_tools_of_the_request_say_which(tools: Any, named: str, tmp_path: Path) -> None:
    expected = f"\nUse {named} tool to view details." if named else ""
    assert placeholder(made(tmp_path), tools) == expected


def test_the_policy_or_the_tools_of_the_session_say_so_too(tmp_path: Path) -> None:
    expected = "\nUse read_offloaded tool to view details."
    assert placeholder(made(tmp_path / "a", "read_offloaded")) == expected
    assert placeholder(made(tmp_path / "b", '"*read_offloaded"')) == ""
    session = made(tmp_path / "c")
    ReadBackTools(session)
    assert placeholder(session, [{"name": "Bash"}]) == expected


def test_what_was_decided_keeps_its_wording(tmp_path: Path) -> None:
    session, messages = made(tmp_path), session_of(LARGE)
    first = session.apply(messages).messages[2]
    messages = session_of(LARGE, LARGE)
    tools = [{"name": "read_offloaded"}]
    for one in (session, made(tmp_path)):
        second = one.apply(messages, tools=tools).messages
        assert second[2] == first
        assert "Use read_offloaded tool" in second[4]["content"][0]["content"]
    # A request without tools says nothing of them.
    third = session.apply(session_of(LARGE, LARGE, LARGE)).messages
    assert "Use read_offloaded tool" in third[6]["content"][0]["content"]


@pytest.mark.parametrize("tools", [None, [{"name": "read_offloaded"}]])
def test_a_placeholder_is_recognised_without_a_ledger(tools: Any, tmp_path: Path) -> None:
    text = POLICY.replace("never", "never, state: none") % "other"
    text = text.replace("types: [tool_result]}", "types: [tool_result]}, must_shrink: false")
    session = Session(policy(text), root=tmp_path, session_id="s")
    left = session.apply(session_of(LARGE), tools=tools).messages
    for given in (None, tools):
        assert session.apply(left, tools=given).messages is left


def test_a_wording_of_the_policy_stays_as_it_is(tmp_path: Path) -> None:
    text = f"{POLICY % 'other'}\n    placeholder: 'in {{path}}'"
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = session.apply(session_of(LARGE), tools=[{"name": "read_offloaded"}]).messages
    found = messages[2]["content"][0]["content"]
    assert found == f"in {tmp_path}/tool_result/Bash/c0.md"
