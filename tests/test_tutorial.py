"""The tutorial: each file is written and each command is run, in order, in an empty folder."""

from __future__ import annotations

import os
import re
import runpy
import shlex
from collections.abc import Iterator
from contextlib import chdir, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.cli.running import policyctx

PAGE = (Path(__file__).parents[1] / "docs" / "tutorial.md").read_text(encoding="utf-8")
BLOCK = re.compile(r'^```(\w+)(?: title="([\w.]+)")?\n(.*?)^```', re.DOTALL | re.MULTILINE)


def edited(text: str, diff: str) -> str:
    """Return a file's text with the passage of a diff replaced."""
    lines = diff.splitlines(keepends=True)
    before = "".join(line[1:] for line in lines if not line.startswith("+"))
    after = "".join(line[1:] for line in lines if not line.startswith("-"))
    assert text.count(before) == 1, f"the file does not have this passage once:\n{before}"
    return text.replace(before, after)


def printed_by(program: str, folder: Path) -> str:
    """Run a Python program in a folder, in this process, which has imported the library already."""
    with redirect_stdout(StringIO()) as stdout, chdir(folder):
        runpy.run_path(program)
    return stdout.getvalue()


def printed(command: str, folder: Path) -> str:
    """Run a command in a folder; return what it prints, with a fixed home, session and time."""
    program, *arguments = (str(Path(word).expanduser()) for word in shlex.split(command))
    if program == "policyctx":
        run = policyctx(*arguments, cwd=folder)
        text = run.stdout + run.stderr
    else:
        assert program == "python"
        text = printed_by(arguments[0], folder)
    text = text.replace(os.environ["HOME"], "/home/you")
    text = re.sub(r"(?<=/)session_\w+", "session_20261123_101500_k3v9pd", text)
    return re.sub(r"(?<= in )[\d.]+ s$", "1.2 s", text, flags=re.MULTILINE)


SUM = re.compile(r"→ +([\d,]+) tokens")


def sums(page: str) -> list[int]:
    """Return the tokens behind each arrow, some of which are those of a path."""
    return [int(number.replace(",", "")) for number in SUM.findall(page)]


@pytest.fixture
def _home(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A home of about as many tokens as `/home/you`, which the page has."""
    with TemporaryDirectory() as home:
        monkeypatch.setenv("HOME", home)
        yield


@pytest.mark.slow
@pytest.mark.usefixtures("_home")
def test_the_tutorial_works_from_an_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "log-reader"
    folder.mkdir()
    page = PAGE
    for language, name, text in BLOCK.findall(PAGE):
        if language == "diff":
            (folder / name).write_text(edited((folder / name).read_text(), text))
        elif name:
            (folder / name).write_text(text)
        elif language == "console":
            commands = re.findall(r"^\$ (.+)$", text, re.MULTILINE)
            shown = "".join(f"$ {command}\n{printed(command, folder)}" for command in commands)
            page = page.replace(f"```console\n{text}```", f"```console\n{shown}```", 1)
    assert SUM.sub("→ tokens", page) == SUM.sub("→ tokens", PAGE)
    assert sums(page) == pytest.approx(sums(PAGE), rel=0.01)
