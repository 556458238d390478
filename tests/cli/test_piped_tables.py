"""The width of the tables that commands print into a pipe."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from policyctx.cli.output import Grid, console
from policyctx.store.filesystem import ContextFileSystem
from tests.cli.running import policyctx
from tests.conversations import session_of
from tests.replay.test_running import claude_code
from tests.store.contents import result

MOST = 120
TOOL = "mcp__github_enterprise__search_issues"
ID = "toolu_01AbCdEfGhIjKlMnOpQrStUv"
POLICY = f"""\
apiVersion: policyctx/v1
name: long
description: {"a description of many words " * 10}
extends: small-context
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a policy, agents, recordings and stores whose names are long."""
    long = "a-recording-with-a-name-that-fills-more-than-a-line-of-a-narrow-terminal-of-any-person"
    texts = [f"line {i} of some output\n" * 300 for i in range(8)]
    tmp_path = tmp_path_factory.mktemp("long")
    (tmp_path / "sessions").mkdir()
    recording = claude_code(tmp_path / f"sessions/{long}-and-then-some-more.jsonl", *texts)
    reply = '"role": "assistant", "usage": {"input_tokens": 90000, "output_tokens": 9}, "id": "m"'
    billed = recording.read_text(encoding="utf-8").replace('"role": "assistant"', reply)
    recording.write_text(billed, encoding="utf-8")
    text = json.dumps(session_of(*texts, tool=TOOL)).replace('"c0"', f'"{ID}"')
    (tmp_path / "messages.json").write_text(text, encoding="utf-8")
    (tmp_path / "long.yaml").write_text(POLICY, encoding="utf-8")
    agents = f"apiVersion: policyctx/v1\nagents:\n  {'an-agent-' * 5}: coding-agent\n"
    (tmp_path / "policyctx.yaml").write_text(agents, encoding="utf-8")
    sessions = ("session_20260101_120000_abc123", "session_20260102_120000_def456")
    for root, session in (("single", None), *(("root", session) for session in sessions)):
        store = ContextFileSystem(tmp_path / root, session=session, sync="never")
        store.save([result(ID, "x" * 900, tool="Bash"), result("toolu_02", "y" * 90, tool=TOOL)])
    return tmp_path


@pytest.fixture(scope="module")
def piped(folder: Path) -> Callable[[str], str]:
    """What a command prints into a pipe; it is run once."""

    @cache
    def printed(command: str) -> str:
        run = policyctx(*command.split(), cwd=folder)
        shutil.rmtree(folder / "demo", ignore_errors=True)
        assert run.returncode == 0
        return run.stdout

    return printed


COMMANDS = (
    "replay small-context sessions",
    "diff small-context context-offload sessions",
    "plan context-offload messages.json",
    "explain context-offload messages.json",
    "tokens messages.json",
    "show long.yaml --origins",
    "agents",
    "store ls root",
    "store ls single",
    "store history root",
    "demo --dir demo",
)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_lines_of_a_piped_table_have_at_most_120_columns(
    command: str, folder: Path, piped: Callable[[str], str]
) -> None:
    paths = str(folder), str(Path.home())
    lines = [
        line for line in piped(command).splitlines() if not any(path in line for path in paths)
    ]
    assert max(map(len, lines)) <= MOST
    assert not any(line.endswith(" ") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
def test_a_pipe_shows_each_column_and_value_that_a_narrow_terminal_shows(
    command: str, folder: Path, piped: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wide = piped(command)
    monkeypatch.setenv("COLUMNS", "80")
    narrow = policyctx(*command.split(), cwd=folder).stdout
    shutil.rmtree(folder / "demo", ignore_errors=True)
    # Shortened and wrapped values have other breaks; headings and numbers are never broken.
    for line, words in ((line, re.split(r" {2,}", line.strip())) for line in narrow.splitlines()):
        missing = [word for word in words if _is_number(word) and word not in wide]
        assert not missing or line.startswith("time")
    headings = narrow.splitlines()[0].split()
    assert set(headings) <= set(wide.split())


def _is_number(word: str) -> bool:
    return bool(re.fullmatch(r"[+−]?\d[\d.,]*[kM]?( %)?", word))


def test_paths_and_session_names_of_a_store_are_whole_in_a_pipe(folder: Path) -> None:
    run = policyctx("store", "ls", folder / "root")
    words = run.stdout.split()
    assert f"tool_result/Bash/{ID}.md" in words
    assert f"tool_result/{TOOL}/toolu_02.md" in words
    assert {"session_20260101_120000_abc123", "session_20260102_120000_def456"} <= set(words)


def test_ids_are_whole_in_a_piped_plan(folder: Path) -> None:
    run = policyctx("plan", "context-offload", folder / "messages.json")
    assert ID in run.stdout.split()


def test_sentences_are_not_wrapped_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    sentence = "word " * 60 + "end"
    console().print(sentence)
    assert capsys.readouterr().out == f"{sentence}\n"


def test_columns_asks_for_rows_of_one_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    console().print(Grid(("a", "b"), [("x", "word " * 60 + "end")]))
    assert len(capsys.readouterr().out.splitlines()) == 2


def test_a_whole_value_that_does_not_fit_makes_its_lines_longer(
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = "/a/folder" * 20
    rows = [("x", path, "word " * 20 + "end"), ("y", "z", "short")]
    console().print(Grid(("a", "path", "why"), rows, whole={"path"}))
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"x  {path}  word word")
    assert len(lines[1]) <= 3 + len(path) + 2 + 20


def test_a_whole_value_is_wrapped_rather_than_cut_where_a_width_is_set(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    path = "/a/folder" * 10
    console().print(Grid(("a", "path"), [("x", path)], whole={"path"}))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 40
    assert "".join("".join(lines[1:]).split()) == f"x{path}"
