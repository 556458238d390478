"""Starting the hook of Claude Code, against starting Python.

Claude Code waits for the hook after each call of Bash, Read and MCP tools. Nearly all results are
small: for these the hook only compares a length with a bound that an earlier run has remembered.
For a large result it imports the library, as does the first run of a policy. All sides have
compiled modules, as an installed package has.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

from benchmarks.runner import Ratio

SMALL_CHARS = 2_000
LARGE_CHARS = 25_000
_HOOK = "from policyctx.integrations.claude_code import main; main()"


def ratios() -> list[Ratio]:
    """The figures of this module; a call starts one process."""
    small, large = Hook(SMALL_CHARS), Hook(LARGE_CHARS)
    for hook in (small, large):
        hook.run()
    return [
        Ratio(
            f"the hook on a result of {SMALL_CHARS:,} characters / python -c pass",
            ours=small.run,
            baseline=start_python,
            bound=10.0,
        ),
        Ratio(
            f"the hook that offloads {LARGE_CHARS:,} characters / python -c pass",
            ours=large.run,
            baseline=start_python,
            setup=large.emptied,
            bound=40.0,
        ),
    ]


def start_python() -> None:
    """Start the interpreter, and do nothing in it."""
    subprocess.run([sys.executable, "-c", "pass"], check=True)


class Hook:
    """The hook with one event, in a project and with a cache of its own."""

    def __init__(self, chars: int) -> None:
        self._folder = Path(mkdtemp(prefix="policyctx-bench-"))
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        flags = {"interrupted": False, "isImage": False, "noOutputExpected": False}
        event = {
            "session_id": "s1",
            "cwd": str(self._folder),
            "hook_event_name": "PostToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": "make"},
            "tool_response": {"stdout": "a line\n" * (chars // 7), "stderr": "", **flags},
            "tool_use_id": "toolu_1",
        }
        self._event = json.dumps(event).encode()
        not_wanted = {"CLAUDE_PROJECT_DIR", "PYTHONDONTWRITEBYTECODE"}
        kept = {name: value for name, value in os.environ.items() if name not in not_wanted}
        compiled = {"PYTHONPYCACHEPREFIX": str(self._folder / "compiled")}
        self._environment = compiled | kept | {"XDG_CACHE_HOME": str(self._folder / "cache")}

    def run(self) -> None:
        """Start the hook, and wait for its answer."""
        subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, "-c", _HOOK, "claude-code"],
            input=self._event,
            stdout=subprocess.DEVNULL,
            env=self._environment,
            check=True,
        )

    @contextmanager
    def emptied(self) -> Iterator[None]:
        """Remove what the hook has saved."""
        shutil.rmtree(self._folder / ".claude", ignore_errors=True)
        yield
