"""`policyctx test`."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.testing.features_in import HOLDS, POLICY, feature, scenario

pytestmark = pytest.mark.slow


@pytest.fixture(autouse=True)
def _only_the_plugins_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no other plugin, which takes longer than a test of ours."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One policy, one feature, and nothing else."""
    (tmp_path / "mine.yaml").write_text(POLICY, encoding="utf-8")
    outline = scenario(
        "Sizes",
        HOLDS.replace("300", "<size>") + "Examples:\n  | size |\n  | 100 |\n  | 200 |\n",
        keyword="Scenario Outline",
    )
    text = feature(scenario("One"), outline)
    (tmp_path / "mine.feature").write_text(text, encoding="utf-8")
    return tmp_path


def test_a_folder_with_nothing_else_is_tested(folder: Path) -> None:
    (folder / "test_own.py").write_text("def test_own(): assert False\n", encoding="utf-8")
    run = policyctx("test", cwd=folder)
    assert run.returncode == 0
    assert run.stderr == ""
    head, _, last = run.stdout.rstrip().rpartition("\n")
    shown = [line.rstrip() for line in head.splitlines()]
    assert shown == ["mine.feature", "  ✓ One", "    Sizes: ✓ 100  ✓ 200"]
    assert last.startswith("3 passed in ")


def test_a_failure_and_a_broken_feature_exit_with_1(folder: Path) -> None:
    wrong = feature(scenario("Wrong", HOLDS.replace("1 result is", "no result is")))
    (folder / "wrong.feature").write_text(wrong, encoding="utf-8")
    (folder / "broken.feature").write_text(feature(scenario("Broken", "")), encoding="utf-8")
    run = policyctx("test", cwd=folder)
    assert run.returncode == 1
    assert "  ✗ Wrong" in run.stdout
    assert "\n✗ Wrong\nwrong.feature:6: Then no result is offloaded\n" in run.stdout
    assert "\n✗ cannot be run\nbroken.feature:2: the scenario has no steps\n" in run.stdout
    assert "1 failed, 3 passed, 1 error in " in run.stdout


def test_arguments_after_two_hyphens_go_to_pytest(folder: Path) -> None:
    run = policyctx("test", "mine.feature::One", "mine.feature", "--", "-k", "One", cwd=folder)
    assert run.returncode == 0
    assert "1 passed, 2 deselected in " in run.stdout


def test_a_folder_without_a_feature_exits_with_1(tmp_path: Path) -> None:
    run = policyctx("test", cwd=tmp_path)
    assert run.returncode == 1
    assert "no feature file was found" in run.stdout


@pytest.mark.parametrize("path", ["nowhere", "nowhere.feature::One"])
def test_a_missing_path_is_a_usage_error(tmp_path: Path, path: str) -> None:
    run = policyctx("test", path, cwd=tmp_path)
    assert run.returncode == 2
    assert f"{path.partition('::')[0]}: no such file or folder" in run.stderr


@pytest.mark.parametrize("path", ["mine.yaml", "mine.yaml::One"])
def test_a_policy_is_no_feature(folder: Path, path: str) -> None:
    (folder / "mine.yaml").write_text("name: mine\n", encoding="utf-8")
    run = policyctx("test", path, cwd=folder)
    assert (run.returncode, run.stdout) == (2, "")
    said = " ".join(re.sub("[│╭╮╰╯─]", "", run.stderr).split())
    assert "mine.yaml is not a feature file: name FILE.feature or a folder" in said
    assert '`Given the policy "mine.yaml"`' in said


def test_the_steps_are_listed_with_those_of_the_conftest(folder: Path) -> None:
    own = 'from pytest_bdd import given\n@given("my own")\ndef _():\n    """What I need."""\n'
    (folder / "conftest.py").write_text(own, encoding="utf-8")
    run = policyctx("test", "--steps", cwd=folder)
    assert run.returncode == 0
    assert run.stdout.startswith('Given the policy ["NAME"]\n    The policy of the scenario: ')
    assert '\n      Given the policy "coding-agent"\n' in run.stdout
    assert run.stdout.endswith("\nGiven my own\n    What I need.\n      Given my own\n")
    listed = json.loads(policyctx("test", "--steps", "--json", cwd=folder).stdout)
    assert listed[0]["examples"][0] == 'the policy "coding-agent"'
    assert listed[-1]["sentence"] == "my own"
    assert listed[-1]["defined_in"].endswith("conftest.py:2")


def test_the_features_run_in_the_process_of_the_command(folder: Path) -> None:
    own = 'import sys\nassert "policyctx.cli.test" in sys.modules\n'
    (folder / "conftest.py").write_text(own, encoding="utf-8")
    run = policyctx("test", cwd=folder)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_conftest_imports_what_is_in_the_working_directory(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "mine.feature").rename(folder / "below" / "mine.feature")
    (folder / "below" / "conftest.py").write_text("import of_the_project\n", encoding="utf-8")
    (folder / "of_the_project.py").touch()
    command = [str(Path(sys.executable).with_name("policyctx")), "test", "below"]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_words_of_a_step_are_arguments(folder: Path) -> None:
    run = policyctx("test", "--steps", "--json", "results", "that", "failed", cwd=folder)
    assert run.returncode == 0
    assert "PIECES" in [one["sentence"] for one in json.loads(run.stdout)]


def test_a_word_that_no_step_has_is_said(folder: Path) -> None:
    run = policyctx("test", "--steps", "no-such-word", cwd=folder)
    assert run.returncode == 0
    assert run.stdout == "No step has all of the words: no-such-word\n"


def test_the_json_option_alone_is_a_usage_error(tmp_path: Path) -> None:
    run = policyctx("test", "--json", cwd=tmp_path)
    assert run.returncode == 2
    assert "--junit-xml" in run.stderr


def test_a_reader_that_has_enough_of_the_steps_ends_the_list_quietly(folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "policyctx", "test", "--steps"]
    run = subprocess.run(command, cwd=folder, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert run.stderr == b""
