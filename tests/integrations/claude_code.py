"""Events of Claude Code's PostToolUse hook, and the hook as a process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
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


class Session:
    """A session of Claude Code: its transcript, and the events of its hooks."""

    def __init__(self, folder: Path, session_id: str = "s1") -> None:
        self.folder, self.session_id = folder, session_id
        self.path = folder / f"{session_id}.jsonl"
        self._number = 0
        self._parent: str | None = None

    def add(self, kind: str, content: object, **fields: Any) -> str:
        """Write a record behind the newest one; return its uuid."""
        self._number += 1
        uuid = f"{self.session_id}-{self._number}"
        record = {
            "type": kind, "uuid": uuid, "parentUuid": self._parent, "sessionId": self.session_id,
            "message": {"role": kind, "content": content}, **fields,
        }  # fmt: skip
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
        self._parent = uuid
        return uuid

    def say(self, *texts: str) -> None:
        for text in texts:
            self.add("user", text)
            self.add("assistant", [{"type": "text", "text": "ok"}])

    def edit(self, path: str) -> None:
        self.call("Edit", {"file_path": path, "old_string": "a\nb", "new_string": "b\nc"}, "ok")

    def call(self, name: str, given: dict[str, Any], result: str) -> None:
        """Write a call of a tool and its result."""
        call_id = f"t{self._number}"
        self.add("assistant", [{"type": "tool_use", "id": call_id, "name": name, "input": given}])
        self.add("user", [{"type": "tool_result", "tool_use_id": call_id, "content": result}])

    def rewind(self, uuid: str | None) -> None:
        self._parent = uuid

    def summarise(self, text: str, *, kept: Sequence[str] = ()) -> None:
        """Write a summary, and before it which records stay behind it."""
        self._parent = None
        with self.path.open("a", encoding="utf-8") as file:
            file.write('{"type": "file-history-snapshot", "snapshot": {}}\n')
        metadata = {"preservedMessages": {"uuids": kept}} if kept else {}
        self.add("system", "", subtype="compact_boundary", compactMetadata=metadata)
        self.add("user", text, isCompactSummary=True)

    def event(self, name: str, **fields: object) -> dict[str, object]:
        return {
            "session_id": self.session_id,
            "transcript_path": str(self.path),
            "cwd": str(self.folder),
            "hook_event_name": name,
            **fields,
        }

    def hook(self, name: str, *arguments: str, **fields: object) -> str:
        """Run the hook for an event; return what it prints."""
        run = hook(self.event(name, **fields), *arguments)
        assert (run.returncode, run.stderr) == (0, "")
        return run.stdout

    def context(self, name: str, *arguments: str, **fields: object) -> str:
        """Run the hook; return the text that it adds, empty for none."""
        printed = self.hook(name, *arguments, **fields)
        if not printed:
            return ""
        said = json.loads(printed)["hookSpecificOutput"]
        assert said.keys() == {"hookEventName", "additionalContext"}
        assert said["hookEventName"] == name
        text: str = said["additionalContext"]
        return text

    def tool(self, **fields: object) -> str:
        """Run the hook for the result of a tool; return the text that it adds."""
        return self.context(
            "PostToolUse", tool_name="Bash", tool_input={}, tool_response=bash("ok"),
            tool_use_id="t9", **fields,
        )  # fmt: skip

    def compact(self, summary: str) -> str:
        """Compact as Claude Code does: the summary is written after the session's new start."""
        reminded = self.context("SessionStart", source="compact")
        self.summarise(summary)
        return reminded
