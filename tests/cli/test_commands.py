from __future__ import annotations

import json
import subprocess
import sys
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


def test_checking_a_policy_imports_no_session_and_no_replay() -> None:
    imported = modules_of("check", "coding-agent")
    assert imported.isdisjoint({"policyctx.session", "policyctx.replay", "policyctx.planning"})
