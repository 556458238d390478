"""The examples, the pages that show what policyctx adds to each, and the task that they solve.

Each example reads `FILES` files one after the other, then the file that the first placeholder
names, and prints how it begins.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
FILES = 9
ANSWER = "The first begins with file 0.\n"


def example(name: str) -> Path:
    """Return the path of an example."""
    return ROOT / "examples" / f"{name}.py"


def without_policyctx(name: str, page: str = "") -> str:
    """Return the program with the differences on its page undone."""
    program = example(name).read_text(encoding="utf-8")
    path = ROOT / "docs" / f"{page or name.replace('_', '-')}.md"
    for diff in re.findall(r"```diff\n(.*?)```", path.read_text(encoding="utf-8"), re.DOTALL):
        lines = diff.splitlines()
        after = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("-"))
        before = "".join(f"{line[1:]}\n" for line in lines if not line.startswith("+"))
        assert program.count(after) == 1
        program = program.replace(after, before)
    return program


def added_lines(name: str, page: str = "") -> list[str]:
    """Return the lines that an example has more than the program without policyctx, no imports."""
    bare = without_policyctx(name, page).splitlines()
    assert "policyctx" not in "\n".join(bare)
    more = [line for line in example(name).read_text("utf-8").splitlines() if line not in bare]
    return [line for line in more if not line.startswith(("from ", "import "))]


def files_in(folder: Path) -> Path:
    """Make the files to read below a folder, and return their folder."""
    files = folder / "files"
    files.mkdir(parents=True)
    for i in range(FILES):
        (files / f"{i}.txt").write_text(f"file {i} " * 6_000)
    return files


def offloaded_path(messages: Any) -> str:
    """Return the path in the first placeholder of a list; without one the first file's name."""
    path = re.search(r"Path: (\S+)", json.dumps(messages).replace("\\n", "\n"))
    return path[1] if path else "0.txt"


def printed_by(program: Path, folder: Path, environment: dict[str, str]) -> str:
    """Run a program on the files in a folder, which is its home, and return what it prints."""
    return subprocess.run(
        [sys.executable, str(program), str(files_in(folder))],
        env={**os.environ, "HOME": str(folder), **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    ).stdout


def check_sent(sent: list[int], bare: list[int], calls: int, folders: Iterable[Path]) -> None:
    """Check the prompts' tokens of an example, those without policyctx, and its session."""
    assert len(sent) == len(bare) == calls
    assert max(sent) < 0.8 * max(bare)
    assert [folder.name for folder in folders] == ["read-the-folder"]
