from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from policyctx.cli.app import app

COMMANDS: dict[str, Any] = dict(typer.main.get_group(app).commands)
PROGRAM = """\
import sys
from policyctx.cli import main
try:
    main()
except SystemExit as end:
    assert not end.code, end.code
import json
print(json.dumps(sorted(sys.modules)))
"""


def modules_of(*arguments: str) -> set[str]:
    """Return the modules that a run of the command imports, tests and site packages aside."""
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, *arguments], capture_output=True, text=True, check=True
    )
    return set(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_has_the_first_sentence_of_each_command(name: str) -> None:
    listed = COMMANDS[name]
    whole = listed.imported
    assert whole.name == listed.name
    assert whole.get_short_help_str(1_000) == listed.get_short_help_str(1_000)


def test_the_version_imports_no_command_line() -> None:
    imported = modules_of("--version")
    assert imported.isdisjoint({"typer", "policyctx.cli.app", "pydantic"})


def test_the_list_of_commands_imports_none_of_them() -> None:
    imported = modules_of("--help")
    own = {name for name in imported if name.startswith("policyctx.cli.")}
    assert own == {"policyctx.cli.app"}
    assert imported.isdisjoint({"pydantic", "yaml", "rich.console", "toktok", "tiktoken"})


@pytest.mark.parametrize(("option", "columns"), [("-h", 60), ("-h", 80), ("--help", 200)])
def test_the_help_is_what_typer_prints_and_needs_it_in_narrow_terminals_alone(
    option: str, columns: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    script = tmp_path / "policyctx"
    script.write_text(PROGRAM, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script, option], capture_output=True, text=True, check=True
    )
    *shown, imported = run.stdout.splitlines(keepends=True)
    group = typer.main.get_command(app)
    width = min(columns, 80) - 2
    context = typer.Context(
        group, info_name="policyctx", terminal_width=width, **group.context_settings
    )
    assert "".join(shown) == group.get_help(context) + "\n"
    assert ("typer" in json.loads(imported)) is (columns < 80)


def test_checking_a_policy_imports_no_session_and_no_replay() -> None:
    imported = modules_of("check", "coding-agent")
    assert imported.isdisjoint({"policyctx.session", "policyctx.replay", "policyctx.planning"})
