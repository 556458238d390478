"""The example of reading back runs, against a server that speaks Anthropic's API."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.compaction.messages_server import Scripted, messages_server, saying

EXAMPLE = Path(__file__).parents[2] / "examples/reading_back.py"


def calling(call_id: str, tool: str, given: dict[str, Any]) -> Scripted:
    """Return an answer with one tool call."""
    message = json.loads(saying("so").body)
    block = {"type": "tool_use", "id": call_id, "name": tool, "input": given}
    return Scripted(json.dumps({**message, "content": [block], "stop_reason": "tool_use"}))


@pytest.mark.slow
def test_the_example_reads_back_what_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("a.log", "b.log"):
        text = "".join(f"{name}: line {i}\n" for i in range(400))
        (tmp_path / name).write_text(text, encoding="utf-8")
    kept = tmp_path / ".context/tool_result/show_log/t1.md"
    with messages_server() as server:
        server.script += [
            calling("t1", "show_log", {"name": "a.log"}),
            calling("t2", "show_log", {"name": "b.log"}),
            calling("t3", "search_offloaded", {"query": "line 399"}),
            calling("t4", "read_offloaded", {"path": str(kept), "offset": 399}),
            saying("it ends with line 399"),
        ]
        monkeypatch.setenv("ANTHROPIC_BASE_URL", server.url)
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        shown = run(EXAMPLE, tmp_path, "How does a.log end?")
        requests = server.requests
    assert shown == "it ends with line 399\n"
    names = [tool["name"] for tool in requests[0]["tools"]]
    assert names == ["show_log", "read_offloaded", "search_offloaded"]
    texts = [results_in(request) for request in requests]
    gone = f"[Content offloaded]\nPath: {kept}\nUse read_offloaded tool to view details."
    assert texts[2][0] == gone
    assert texts[4][0] == gone
    assert texts[3][-1] == ("tool_result/show_log/t1.md:400: a.log: line 399")
    assert texts[4][-1] == ("a.log: line 398\na.log: line 399\n[end of tool_result/show_log/t1.md]")


def results_in(request: dict[str, Any]) -> list[str]:
    """Return the texts of all results in a request."""
    blocks = [
        b for m in request["messages"] if isinstance(m["content"], list) for b in m["content"]
    ]
    return [block["content"] for block in blocks if block["type"] == "tool_result"]


def run(*command: str | os.PathLike[str]) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    return done.stdout
