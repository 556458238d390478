"""`policyctx test --mutate`: what no scenario notices is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import MutationError
from policyctx.testing.judging import Covered, accepted
from tests.cli.running import policyctx
from tests.testing.features_in import HOLDS, POLICY, feature, scenario

pytestmark = pytest.mark.slow

LARGE = scenario("Large", HOLDS.replace("300", "100"))
SMALL = scenario("Small", HOLDS.replace("300", "99").replace("1 result is", "no result is"))
# What the two do not look at.
UNNOTICED = ["placeholder: '[{relative_path}]' → 'x{relative_path}]'"]
REASON = '- mutant: "{}"\n  reason: nobody reads it\n'


@pytest.fixture(autouse=True)
def _only_the_plugins_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Load no other plugin, which takes longer than a test of ours."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A policy, and two scenarios that hold most of it."""
    (tmp_path / "mine.yaml").write_text(POLICY, encoding="utf-8")
    (tmp_path / "mine.feature").write_text(feature(LARGE, SMALL), encoding="utf-8")
    return tmp_path


def test_an_unnoticed_mutant_is_reported_with_its_place(folder: Path) -> None:
    run = policyctx("test", "--mutate", "mine.yaml", "--jobs", "2", "--json", cwd=folder)
    assert run.returncode == 1, run.stderr
    report: dict[str, Any] = json.loads(run.stdout)
    by_name = {mutant["mutant"]: mutant for mutant in report["mutants"]}
    unnoticed = [name for name, mutant in by_name.items() if mutant["noticed_by"] is None]
    assert unnoticed == UNNOTICED
    assert by_name["min_chars: 100 → 101"]["noticed_by"] == "mine.feature::Large"
    assert by_name["min_chars: 100 → 99"]["noticed_by"] == "mine.feature::Small"
    assert by_name[UNNOTICED[0]]["line"] == 5
    assert (report["survivors"], report["not_a_policy"]) == (1, 1)
    assert (report["not_run"], report["failing"], report["error"]) == (0, [], None)


def test_an_accepted_mutant_that_is_noticed_is_reported(folder: Path) -> None:
    listed = [*UNNOTICED, "min_chars: 100 → 101"]
    text = "".join(REASON.format(told) for told in listed)
    (folder / "mutants.yaml").write_text(text, encoding="utf-8")
    options = ("--mutate", "mine.yaml", "--jobs", "1", "--accept", "mutants.yaml")
    run = policyctx("test", *options, cwd=folder)
    assert run.returncode == 1
    assert "listed as accepted, but noticed or not a mutant: min_chars: 100 → 101" in run.stdout
    assert "no scenario noticed" not in run.stdout
    assert run.stdout.endswith("6 of 7 mutants noticed, 1 accepted; changes not run: 1 invalid\n")


WRONG = feature(LARGE, scenario("Wrong", HOLDS.replace("1 result is", "no result is")))
OPTIONS = ("--mutate", "mine.yaml", "--jobs", "1")


def test_a_failing_scenario_keeps_mutants_from_being_run(folder: Path) -> None:
    (folder / "mine.feature").write_text(WRONG, encoding="utf-8")
    run = policyctx("test", *OPTIONS, cwd=folder)
    assert run.returncode == 1
    first = "error: no mutant was run: 1 scenario fails before the policy is changed:\n"
    assert run.stderr.startswith(f"{first}  mine.feature::Wrong\n")
    assert "expected: no result is offloaded" in run.stderr
    assert run.stdout == ""


def test_a_failing_scenario_is_in_the_json_with_the_mutants_that_were_not_run(
    folder: Path,
) -> None:
    (folder / "mine.feature").write_text(WRONG, encoding="utf-8")
    run = policyctx("test", *OPTIONS, "--json", cwd=folder)
    assert run.returncode == 1
    report = json.loads(run.stdout)
    assert (report["mutants"], report["not_run"]) == ([], 7)
    assert report["failing"] == ["mine.feature::Wrong"]
    assert report["error"].startswith("no mutant was run: 1 scenario fails")
    assert (report["survivors"], report["accepted_but_noticed"]) == (None, None)


def test_a_broken_feature_keeps_mutants_from_being_run(folder: Path) -> None:
    broken = feature(LARGE, scenario("Odd", "Given something"))
    (folder / "mine.feature").write_text(broken, encoding="utf-8")
    run = policyctx("test", *OPTIONS, "--json", cwd=folder)
    assert run.returncode == 1
    report = json.loads(run.stdout)
    assert (report["not_run"], report["failing"]) == (7, ["mine.feature"])
    assert "unknown step: Given something" in run.stderr


def test_no_mutant_is_run_without_a_scenario(folder: Path) -> None:
    (folder / "mine.feature").unlink()
    run = policyctx("test", *OPTIONS, cwd=folder)
    assert run.returncode == 1
    assert run.stderr.startswith("error: no mutant was run: there is no scenario to notice one\n")


BY_RULE = {
    ("min_chars",): ("a", "b"),
    ("steps", "s"): ("b", "c"),
    ("steps", "s", "select", "x"): ("d",),
}


@pytest.mark.parametrize(
    ("rule", "scenarios"),
    [
        (("min_chars",), ("a", "b")),
        (("steps", "s", "select"), ("d",)),
        (("steps", "s"), ("b", "c", "d")),
        (("steps", "s", "do"), ("b", "c")),
        (("store", "state"), ("a", "b", "c", "d", "e")),
    ],
)
def test_the_scenarios_that_cover_a_rule_are_run(
    rule: tuple[str, ...], scenarios: tuple[str, ...]
) -> None:
    assert Covered(("a", "b", "c", "d", "e"), BY_RULE).of(rule) == scenarios


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("mutant: a\n", "expected a list"),
        ("- {mutant: a}\n", "0.reason"),
        ("- {mutant: a, reason: ''}\n", "0.reason"),
    ],
)
def test_a_list_without_reasons_is_refused(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "mutants.yaml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(MutationError, match=told):
        accepted(file)


CARRY = """apiVersion: policyctx/v1
name: mine
carry: {files: 1}
"""
COMPACTED = """  Scenario: Compacted
    Given the policy "mine.yaml"
    And the messages
      \"\"\"
      [{"role": "assistant", "content": [{"type": "tool_use", "id": "c1", "name": "Edit",
        "input": {"file_path": "a.py", "old_string": "a", "new_string": "b"}}]},
       {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "ok"}]}]
      \"\"\"
    When the host compacts to "Done."
    Then only "a.py" is carried
"""


def test_a_scenario_in_which_the_host_compacts_notices_mutants_of_carry(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text(CARRY, encoding="utf-8")
    (tmp_path / "mine.feature").write_text(feature(COMPACTED), encoding="utf-8")
    run = policyctx("test", *OPTIONS, "--json", cwd=tmp_path)
    assert run.stderr == ""
    noticed = {one["mutant"]: one["noticed_by"] for one in json.loads(run.stdout)["mutants"]}
    assert noticed == {"carry.files: 1 → 0": "mine.feature::Compacted", "carry.files: 1 → 2": None}
