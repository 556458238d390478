"""The tools of the demo's agent. They are real: what they say comes from the files and tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import policyctx

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_TIMING = re.compile(r"in \d+\.\d+s")


class Workspace:
    """A throw-away copy of the library's own source, and the tools that work in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        source = Path(policyctx.__file__).parent
        shutil.copytree(source, folder / "policyctx", ignore=_all_but_source)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Run the tool of this name and return what it says; a failure is a text like any other."""
        tools: dict[str, Callable[..., str]] = {
            "read_file": self.read_file,
            "search": self.search,
            "write_file": self.write_file,
            "edit_file": self.edit_file,
            "run_tests": self.run_tests,
        }
        return tools[tool](**arguments)

    def read_file(self, path: str) -> str:
        """Return the whole file."""
        return (self.folder / path).read_text(encoding="utf-8")

    def search(self, text: str) -> str:
        """Return every line of the source that contains the text, as `path:line: …`."""
        found = []
        for path in sorted(self.folder.rglob("*.py")):
            name = path.relative_to(self.folder).as_posix()
            lines = path.read_text(encoding="utf-8").splitlines()
            found += [f"{name}:{n}: {line}" for n, line in enumerate(lines, 1) if text in line]
        return "\n".join(found) or "nothing found"

    def write_file(self, path: str, content: str) -> str:
        """Write the file."""
        (self.folder / path).write_text(content, encoding="utf-8")
        return f"{path} written"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace the one place where `old` stands."""
        text = self.read_file(path)
        if text.count(old) != 1:
            return f"{path}: the text to replace stands {text.count(old)} times"
        return self.write_file(path, text.replace(old, new))

    def run_tests(self, module: str) -> str:
        """Run a unittest module in a process of its own."""
        run = subprocess.run(  # noqa: S603 - our own interpreter on a file of the demo's
            [sys.executable, "-m", "unittest", "-v", module],
            cwd=self.folder,
            env={**os.environ, "PYTHONPATH": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            encoding="utf-8",
            check=False,
        )
        # The time is the one thing in the output that differs from run to run.
        return _TIMING.sub("in a moment", run.stdout + run.stderr)


def _all_but_source(folder: str, names: list[str]) -> set[str]:
    is_source = {n for n in names if n.endswith(".py") or (Path(folder) / n).is_dir()}
    return {name for name in names if name not in is_source or name in ("__pycache__", "shipped")}
