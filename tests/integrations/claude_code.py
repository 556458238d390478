"""Events of Claude Code's PostToolUse hook, and the hook as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.running import policyctx

HOOK = (
    sys.executable,
    "-c",
    "from policyctx.integrations.claude_code import main; main()",
    "claude-code",
)


def event(
    tool: str, response: object, *, cwd: Path, tool_use_id: str = "toolu_1", **more: object
) -> dict[str, Any]:
    return {
        "session_id": "s1",
        "transcript_path": f"{cwd}/t.jsonl",
        "cwd": str(cwd),
        "permission_mode": "default",
        "hook_event_name": "PostToolUse",
        "tool_name": tool,
        "tool_input": {},
        "tool_response": response,
        "tool_use_id": tool_use_id,
        "duration_ms": 3,
        **more,
    }


def bash(stdout: str, stderr: str = "", **more: object) -> dict[str, object]:
    flags = {"interrupted": False, "isImage": False, "noOutputExpected": False}
    return {"stdout": stdout, "stderr": stderr, **flags, **more}


def read(path: str, content: str, *, first: int = 1) -> dict[str, object]:
    count = content.count("\n") + 1
    lines = {"numLines": count, "startLine": first, "totalLines": 9000}
    return {"type": "text", "file": {"filePath": path, "content": content, **lines}}


def hook(given: object, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the hook through the command, in a fork."""
    raw = given if isinstance(given, bytes) else json.dumps(given).encode()
    return policyctx("hook", "claude-code", *arguments, stdin=raw)


def new_output(run: subprocess.CompletedProcess[str]) -> Any:
    assert (run.returncode, run.stderr) == (0, "")
    said = json.loads(run.stdout)["hookSpecificOutput"]
    assert said["hookEventName"] == "PostToolUse"
    return said["updatedToolOutput"]


def started(
    given: object, *arguments: str, stdout: int = subprocess.PIPE, **environment: str
) -> subprocess.Popen[bytes]:
    """Start the hook as a process of its own, with the event on its stdin."""
    process = subprocess.Popen(
        [*HOOK, *arguments],
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(given).encode())
    process.stdin.close()
    process.stdin = None
    return process
