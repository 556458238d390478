"""The message with a summary says where the replaced messages are, and how to search them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from policyctx import OffloadPolicy, Session
from policyctx.compaction.assembly import how_to_search
from policyctx.integrations.tools import ReadBackTools
from tests.conversations import Message, user

FACT = "The zebra crosses at port 8081."


def session(root: Path, more: str = "") -> Session:
    text = f"""\
apiVersion: policyctx/v1
name: p
extends: coding-agent
store: {{sync: never}}
model: {{context_window: 3000}}
{more}
"""
    path = root / "p.yaml"
    path.write_text(text, encoding="utf-8")
    return Session(path, root=root / "store", session_id="s", expects_usage=False)


def long_list(count: int = 40) -> list[Message]:
    said = ({"role": "assistant", "content": f"step {i} " + "word " * 80} for i in range(count))
    return [user(FACT), *(m for one in said for m in (one, user("Go on.")))]


def summary_of(result: Any) -> str:
    assert result.compacted
    return next(str(m["content"]) for m in result.messages if "compressed]" in str(m["content"]))


def test_the_command_finds_what_was_replaced(tmp_path: Path) -> None:
    if shutil.which("zstdcat") is None:
        pytest.skip("there is no zstdcat")
    result = session(tmp_path).apply(long_list())
    text = summary_of(result)
    command = re.search(r"Search them with `(.+)`$", text)
    assert command is not None
    assert result.compaction is not None
    assert str(result.compaction.archive_path) in text
    found = subprocess.run(
        ["/bin/sh", "-c", command[1].replace("WORD", "zebra")], capture_output=True, check=True
    )
    assert FACT in found.stdout.decode()


def test_a_path_with_a_blank_and_an_archive_that_is_not_compressed() -> None:
    text = how_to_search("/a b/archive/compaction-001.json", "")
    assert (
        "`cat '/a b/archive/compaction-001.json' | grep -o '.\\{0,200\\}WORD.\\{0,200\\}'`" in text
    )


def test_the_tool_is_named_if_the_session_knows_it(tmp_path: Path) -> None:
    used = session(tmp_path)
    tools = ReadBackTools(used)
    text = summary_of(used.apply(long_list()))
    assert text.endswith("Search them with the tool search_offloaded.")
    assert FACT in str(tools.search_offloaded("zebra"))


def test_a_tool_with_the_prefix_of_its_server_is_named_so(tmp_path: Path) -> None:
    names = ("mcp__policyctx__read_offloaded", "mcp__policyctx__search_offloaded")
    offered = [{"name": name, "input_schema": {"type": "object"}} for name in names]
    text = summary_of(session(tmp_path).apply(long_list(), tools=offered))
    assert text.endswith("the tool mcp__policyctx__search_offloaded.")


def test_without_an_archive_nothing_is_said(tmp_path: Path) -> None:
    text = summary_of(session(tmp_path, "compaction: {archive: false}").apply(long_list()))
    assert "All that was replaced" not in text


def test_the_paragraph_is_no_part_of_the_next_summary(tmp_path: Path) -> None:
    used, given = session(tmp_path), long_list()
    first = list(used.apply(given).messages)
    for messages in (
        [*given, *long_list()[1:]],
        [*first, *long_list()[1:]],
    ):
        again = Session(tmp_path / "p.yaml", root=tmp_path / "b", expects_usage=False)
        second = used.apply(messages) if messages[0] is given[0] else again.apply(messages)
        assert summary_of(second).count("All that was replaced is in") == 1
        assert FACT in summary_of(second)


def test_a_foreign_session_reads_the_summary_back_whole() -> None:
    form = OffloadPolicy.load("coding-agent").compaction_forms
    body = "## Goals\nUser, in order:\n- one\n\n## Status\n- two"
    for tail in ("", how_to_search("/r/archive/compaction-002.json.zst", "")):
        left = form.left(f"[Conversation compressed]\n\n{body}{tail}")
        assert left is not None
        assert left.says == body
