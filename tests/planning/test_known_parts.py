"""The system prompt and the tools of a session are counted once, as long as they are the same."""

from __future__ import annotations

from pathlib import Path

from policyctx import Session
from policyctx.planning.facts import KnownParts
from tests.conversations import user
from tests.policies import policy

OFFLOAD = """\
    items: {tool_result: {offload: true, min_chars: 100, keep_recent: 0}}
    store: {sync: never}
    steps: [{name: s, do: offload, select: {types: [tool_result]}}]
    """


def test_a_part_with_the_same_objects_is_counted_once() -> None:
    counted: list[object] = []

    def count(part: object) -> int:
        counted.append(part)
        return len(counted)

    parts, tool, text = KnownParts(), {"name": "a"}, "system"
    assert [parts.tokens([tool], count), parts.tokens(text, count)] == [1, 2]
    assert [parts.tokens([tool], count), parts.tokens(text, count)] == [1, 2]
    assert parts.tokens([tool, tool], count) == 3
    assert parts.tokens([{"name": "a"}], count) == 4
    assert parts.tokens((tool,), count) == 5
    parts.forget()
    assert parts.tokens([tool], count) == 6


def test_tools_that_were_added_or_changed_count(tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    messages, tools = [user("go")], [{"name": "ls", "description": "lists files"}]

    def size() -> int:
        return session.plan(messages, tools=tools).tokens_before

    first = size()
    assert size() == first
    tools.append({"name": "cat", "description": "shows a file"})
    second = size()
    assert second > first
    tools[0]["description"] = "lists files " * 20
    session.apply(messages, tools=tools, changed=True)
    assert size() > second
