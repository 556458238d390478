"""What the tests of the recipes offload, and where they look for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from policyctx import (
    OffloadResult,
    offload_tool_result,
)
from tests.conversations import Message

TOOL_ID = "toolu_01abc"


def content(message: Message, block: int = 0) -> Any:
    return message["content"][block]["content"]


def text(path: str | Path) -> str:
    return Path(path).read_text(encoding="utf-8")


def words(size: int) -> Message:
    """A user message of one text block of this many characters."""
    return {"role": "user", "content": [{"type": "text", "text": "w" * size}]}


def blocks(size: int) -> list[Message]:
    """A content of one text block whose JSON has this many characters."""
    frame = len(json.dumps([{"type": "text", "text": ""}], separators=(",", ":")))
    return [{"type": "text", "text": "b" * (size - frame)}]


def files_in(folder: Path) -> dict[str, str]:
    paths = (path for path in folder.rglob("*") if path.is_file())
    return {path.relative_to(folder).as_posix(): text(path) for path in paths}


def child(script: str) -> str:
    """What a script prints that runs by itself, under the permissions that bind everyone."""
    start = """
import ctypes, os, sys
for capability in (1, 2):  # root may write and read what is forbidden to it: not here
    ctypes.CDLL(None).prctl(24, capability)
os.execv(sys.executable, [sys.executable, "-c", sys.argv[1]])
"""
    command = [sys.executable, "-c", start, script]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def single(message: Message, folder: Path, session_id: str = "session-abc123") -> OffloadResult:
    return offload_tool_result(message, session_id=session_id, output_dir=folder)
