"""What a command prints where the output is large, full, or no longer read."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.text import Text

from policyctx.cli.output import (
    Format,
    Grid,
    console,
    json_text,
    print_wrapped,
    shortened,
    shown,
)
from policyctx.errors import Diagnostic, Location, visible
from tests.cli.running import policyctx
from tests.counting import functions_called

COMMAND = [sys.executable, "-m", "policyctx"]


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a device that is always full")
@pytest.mark.parametrize("arguments", [["--version"], ["schema"], ["show", "coding-agent"]])
def test_a_full_disk_is_reported_in_one_line(arguments: list[str]) -> None:
    run = policyctx(*arguments, stdout=Path("/dev/full"))
    assert (run.returncode, run.stderr) == (1, "error: No space left on device\n")


@pytest.mark.slow
def test_a_closed_pipe_ends_the_output_silently() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run([*COMMAND, "schema"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert (run.returncode, run.stderr) == (1, b"")


@pytest.mark.slow
@pytest.mark.parametrize("arguments", ["--version", "schema", "show coding-agent"])
def test_a_closed_stream_is_not_written_to(arguments: str) -> None:
    words = shlex.join(COMMAND)
    run = subprocess.run(
        ["/bin/sh", "-c", f"{words} {arguments} >&-"], capture_output=True, check=False
    )
    assert (run.returncode, run.stdout, run.stderr) == (0, b"", b"")


def test_machine_readable_output_is_not_wrapped(capsys: pytest.CaptureFixture[str]) -> None:
    text = '{"long": "' + "[bold]x[/bold] " * 100 + '"}'
    console().out(text, highlight=False)
    console().out("a", "b", end="")
    assert capsys.readouterr().out == f"{text}\na b"


def test_control_characters_are_escaped_and_json_stays_valid(
    capsys: pytest.CaptureFixture[str],
) -> None:
    controls = "".join(map(chr, (*range(0x20), *range(0x7F, 0xA0))))
    console().out(json_text({"said": controls}))
    shown = capsys.readouterr().out
    assert json.loads(shown) == {"said": controls}
    assert set(shown.replace("\n", "")).isdisjoint(controls)
    console().out("\x1b[2J\x9b")
    assert capsys.readouterr().out == "\\x1b[2J\\x9b\n"


HIDDEN = "\u202e\u2066\u200f\u061c\u200b\ufeff\u2028\u00ad\U000e0041"


def test_characters_that_hide_or_reorder_text_are_shown_as_escapes(
    capsys: pytest.CaptureFixture[str],
) -> None:
    out = console()
    out.print(f"a{HIDDEN}b")
    out.print(Grid(("name",), [(f"a{HIDDEN}b",)]))
    out.out(f"a{HIDDEN}b")
    shown = r"a\u202e\u2066\u200f\u061c\u200b\ufeff\u2028\xad\U000e0041b"
    assert capsys.readouterr().out.splitlines() == [shown, "name", shown, shown]


def test_hidden_characters_in_json_are_escaped_and_keep_their_meaning(
    capsys: pytest.CaptureFixture[str],
) -> None:
    console().out(json_text({"said": HIDDEN}))
    shown = capsys.readouterr().out
    assert shown.isascii()
    assert json.loads(shown) == {"said": HIDDEN}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_json_keeps_each_character_whatever_the_encoding_of_stdout_is(
    encoding: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "said.json"
    said = "caf\u00e9 \u2013 \u4e2d \U0001f469"
    file.write_text(json.dumps([{"role": "user", "content": said}]), encoding="utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    policy = tmp_path / "p.yaml"
    policy.write_text(f"apiVersion: policyctx/v1\nname: p\ndescription: {said}\n", encoding="utf-8")
    shown = tmp_path / "shown"
    run = policyctx("show", policy, "--json", stdout=shown)
    assert run.returncode == 0
    assert said in str(json.loads(shown.read_text(encoding)))


def test_joiners_of_scripts_and_emoji_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    text = "\u0645\u06cc\u200c\u062e \U0001f469\u200d\U0001f52c"
    console().print(text)
    assert capsys.readouterr().out == f"{text}\n"


def test_an_error_contains_no_terminal_control_sequence() -> None:
    run = policyctx("plan", "coding-agent", "\x1b[2J\u202e.json")
    assert run.returncode == 1
    assert run.stderr.startswith(r"error: \x1b[2J\u202e.json: cannot be read: ")


ODD = "\x1b[2J\u202e\x9b"
SHOWN = r"\x1b[2J\u202e\x9b"


def odd_files(folder: Path) -> dict[str, str]:
    """Write a file of each kind with control characters where a name or a text may be."""
    hidden = f"x{HIDDEN}"
    policy = f"apiVersion: policyctx/v1\nname: '{hidden}'\nextends: '{hidden}'\n'k{hidden}': 1\n"
    feature = (
        f'Feature: f{ODD}\n  Scenario: s{ODD}\n    Given the policy "{ODD}"\n'
        f'    And a user message "hi"\n    Then 1 tool result is offloaded\n'
    )
    broken = f"Feature: f{ODD}\n  Scenario: s{ODD}\n    Given a walrus {ODD}\n"
    tool = {"type": "tool_use", "id": ODD, "name": f"t{ODD}", "input": {}}
    result = {"type": "tool_result", "tool_use_id": ODD, "content": ODD * 400}
    messages = [
        {"role": "user", "content": ODD},
        {"role": "assistant", "content": [tool]},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": "done"},
    ]
    texts = {
        f"{ODD}.yaml": policy,
        f"right{ODD}.yaml": "apiVersion: policyctx/v1\nname: right\nextends: small-context\n",
        "policyctx.yaml": f"apiVersion: policyctx/v1\nagents: {{'{hidden}': '{hidden}'}}\n",
        f"a{ODD}.feature": feature,
        "b.feature": broken,
        f"{ODD}.json": json.dumps(messages),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    return texts


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "{o}.yaml"),
        ("check", "{o}.yaml", "--json"),
        ("check", "{o}.yaml", "--format", "github"),
        ("check", "{o}"),
        ("agents",),
        ("agents", "--format", "github"),
        ("show", "{o}.yaml"),
        ("plan", "{o}.yaml", "{o}.json"),
        ("plan", "context-offload", "{o}.json"),
        ("plan", "context-offload", "{o}.json", "--json"),
        ("explain", "context-offload", "{o}.json"),
        ("explain", "context-offload", "{o}.json", "--item", "{o}"),
        ("apply", "context-offload", "{o}.json", "--root", "{o}"),
        ("replay", "context-offload", "{o}.json"),
        ("replay", "context-offload", "{o}.json", "--json"),
        ("diff", "context-offload", "{o}.yaml", "{o}.json"),
        ("diff", "context-offload", "coding-agent", "{o}.json"),
        ("diff", "context-offload", "right{o}.yaml", "{o}.json"),
        ("diff", "right{o}.yaml", "./right{o}.yaml", "{o}.json"),
        ("tokens", "{o}.json"),
        ("summary", "{o}.json"),
        ("summary", "{o}.json", "--policy", "{o}"),
        ("store", "ls", "{o}"),
        ("schema", "{o}"),
        ("{o}",),
        ("check", "--{o}"),
        ("plan", "context-offload", "{o}.json", "--call", "{o}"),
        ("test", "a{o}.feature"),
        ("test", "b.feature"),
        ("test", "a{o}.feature", "--cov", "--", "-v"),
        ("test", "{o}.feature"),
        ("test", "."),
        ("test", ".", "--cov", "--", "-v"),
    ],
    ids=" ".join,
)
def test_no_command_sends_control_or_hidden_characters(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # they take longer than a feature
    odd_files(tmp_path)
    run = policyctx(*(word.format(o=ODD) for word in arguments), cwd=tmp_path)
    output = run.stdout + run.stderr
    assert output
    assert {char for char in output if char != visible(char)} == set()


def test_the_caret_is_below_a_word_after_characters_that_are_shown_as_escapes() -> None:
    line = f"{ODD}: word"
    place = Location("p.yaml", 1, len(ODD) + 3, line)
    _, shown_line, carets = shown([Diagnostic(place, "PC101", "no")], Format.TEXT).split("\n")
    assert shown_line.endswith(f"{SHOWN}: word")
    assert carets.index("^") == shown_line.index("word")
    assert carets.endswith("^^^^")


def test_a_piped_table_has_no_spaces_at_the_ends_of_lines(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [("x", "y" * 300), ("x", "z")]
    console().print(Grid(("a", "b"), rows, whole={"b"}))
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["a  b", f"x  {'y' * 300}", "x  z"]


def test_columns_sets_the_width_of_a_piped_table(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    console().print(Grid(("a", "b"), [("x", "word " * 30)]))
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 40


@pytest.mark.parametrize(("text", "short"), [("abcdef", "abcdef"), ("abcdefghij", "abc…ij")])
def test_a_long_text_loses_its_middle(text: str, short: str) -> None:
    assert shortened(text, 6) == short


ROWS = [
    ("a", 1, "plain"),
    ("名前", 20_000, "é"),
    ("", 3, "x" * 70),
    ("b c", 4, "\N{GRINNING FACE}"),
]


@pytest.mark.parametrize("is_terminal", [False, True])
@pytest.mark.parametrize(
    ("rows", "has_head"), [(ROWS, True), (ROWS, False), (ROWS[:1], False), ([], True)]
)
def test_a_table_that_fits_is_written_as_the_library_lays_it_out(
    rows: list[tuple[object, ...]],
    is_terminal: bool,
    has_head: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    made = Grid(["name", "size", "text"], rows, numeric={"size"}, has_head=has_head)
    assert shown_lines(made) == shown_lines(made.wrapped({"size"}, None))
    assert made.width == max(map(cell_len, shown_lines(made, stripped=False)))


@pytest.mark.parametrize("columns", ["", "40"])
def test_a_line_end_in_a_name_begins_no_line(
    columns: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The id or the name of a call may be a model's own. Before, it looked like another row."""
    monkeypatch.setenv("COLUMNS", columns)
    console().print(Grid(["item", "tokens"], [("a\nforged", 1)]))
    print_wrapped(console(), "item a\nforged")
    assert capsys.readouterr().out.splitlines() == [
        "item       tokens",
        r"a\nforged  1",
        r"item a\nforged",
    ]


def shown_lines(one: RenderableType, *, stripped: bool = True) -> list[str]:
    out = Console(width=200, file=StringIO(), force_terminal=True, color_system="standard")
    with out.capture() as printed:
        out.print(one)
    lines = printed.get().splitlines()
    plain = [Text.from_ansi(line).plain for line in lines]
    return [line.rstrip() for line in plain] if stripped else plain


def test_a_row_of_a_long_table_costs_little() -> None:
    made = Grid(["name", "size", "text"], [("a", i, "text") for i in range(500)])
    out = Console(width=200, file=StringIO())
    assert functions_called(lambda: out.print(made)) < 500 * 100
