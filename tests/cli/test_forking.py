"""The forks in which tests run the command: whether they begin with what a command needs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.testing.features_in import POLICY, feature, scenario

# Runs the command, and prints the packages that it imports and that the server has not imported.
IMPORTED = """\
import sys
known = {name.partition(".")[0] for name in sys.modules}
from policyctx.cli import main
try:
    main()
finally:
    now = {name.partition(".")[0] for name in sys.modules}
    print(sorted(now - known - sys.stdlib_module_names))
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "arguments", [("plan", "mine.yaml", "messages.json"), ("tokens", "messages.json"), ("test",)]
)
def test_a_command_in_a_fork_imports_no_package(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    program = tmp_path / "program.py"
    program.write_text(IMPORTED, encoding="utf-8")
    messages = [{"role": "user", "content": "tokens ≠ characters " * 9}]
    body = json.dumps({"model": "claude-sonnet-4-5", "messages": messages})
    (tmp_path / "messages.json").write_text(body, encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "mine.feature").write_text(feature(scenario("One")), encoding="utf-8")
    run = policyctx(*arguments, cwd=tmp_path, program=program)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "[]"
