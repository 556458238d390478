"""`--policyctx-cov`: what is reported of the rules that scenarios made decide."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.testing.features_in import HOLDS, only_the_plugins_for_xdist, scenario, write

pytest_plugins = ["pytester"]

SMALL = HOLDS.replace("300", "99").replace("1 result is", "no result is")
WRITTEN = HOLDS.replace('the policy "mine.yaml"', 'the policy\n  """\n  extends: mine.yaml\n  """')


def covered(pytester: pytest.Pytester, *options: str) -> dict[str, Any]:
    """Run the features, and return the report of each policy by its name."""
    run = pytester.runpytest_inprocess("--policyctx-cov-json=cov.json", *options)
    assert run.ret == pytest.ExitCode.OK
    text = (pytester.path / "cov.json").read_text(encoding="utf-8")
    return {policy["name"]: policy for policy in json.loads(text)["policies"]}


def test_uncovered_rules_are_reported_with_their_line(pytester: pytest.Pytester) -> None:
    write(pytester, scenario())
    run = pytester.runpytest_inprocess("--policyctx-cov")
    run.stdout.fnmatch_lines([
        "policy  rules  sides  covered",
        "mine        4    4/6     66 %",
        "not covered in mine",
        "mine.yaml:3  min_chars: 100 · no item was below it",
        "mine.yaml:6  steps.leave · it kept no item",
    ])  # fmt: skip
    assert run.ret == pytest.ExitCode.OK


def test_the_report_names_the_scenarios_of_each_side(pytester: pytest.Pytester) -> None:
    write(pytester, scenario("Large"), scenario("Small", SMALL))
    mine = covered(pytester)["mine"]
    assert (mine["percent"], mine["sides"]) == (100, 6)
    [threshold] = [rule for rule in mine["rules"] if rule["rule"] == "min_chars"]
    assert (threshold["line"], threshold["value"]) == (3, "100")
    large, small = "mine.feature::Large", "mine.feature::Small"
    assert threshold["sides"] == {"above": [large], "below": [small]}
    assert mine["scenarios"] == [large, small]


@pytest.mark.parametrize(("bound", "code"), [("66", 0), ("67", 1)])
def test_a_bound_that_is_not_reached_fails_the_run(
    pytester: pytest.Pytester, bound: str, code: int
) -> None:
    write(pytester, scenario())
    run = pytester.runpytest_inprocess(f"--policyctx-cov-fail-under={bound}")
    told = f"mine: 66 % of the sides are covered, and {bound} % are required"
    assert (run.ret, told in run.outlines) == (code, bool(code))


def test_a_named_policy_that_no_scenario_ran_is_covered_by_nothing(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, scenario())
    other = (pytester.path / "mine.yaml").read_text(encoding="utf-8").replace("mine", "other")
    (pytester.path / "other.yaml").write_text(other, encoding="utf-8")
    reports = covered(pytester, "--policyctx-cov=other.yaml", "--policyctx-cov=coding-agent")
    assert {name: report["percent"] for name, report in reports.items()} == {
        "other": 0,
        "coding-agent": 0,
    }


def test_a_missing_policy_is_reported_at_once(pytester: pytest.Pytester) -> None:
    write(pytester, scenario())
    run = pytester.runpytest_inprocess("--policyctx-cov=codingagent")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    run.stderr.fnmatch_lines(["ERROR: --policyctx-cov: *coding-agent*"])


def test_control_characters_in_the_name_of_a_missing_policy_are_escaped(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, scenario())
    run = pytester.runpytest_inprocess("--policyctx-cov=no\x1b[31m\u202e")
    assert run.ret == pytest.ExitCode.USAGE_ERROR
    assert r"ERROR: --policyctx-cov: no\x1b[31m\u202e: " in run.stderr.str()


def test_a_policy_that_a_feature_writes_out_is_not_reported(pytester: pytest.Pytester) -> None:
    write(pytester, scenario("Written", WRITTEN))
    assert covered(pytester) == {}


@pytest.mark.slow
def test_two_processes_report_the_same_coverage_as_one(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_the_plugins_for_xdist(monkeypatch)
    write(pytester, scenario("Large"), scenario("Small", SMALL))
    run = pytester.runpytest_subprocess("-n2", "--policyctx-cov", "--policyctx-cov-fail-under=100")
    run.stdout.fnmatch_lines(["mine        4    6/6    100 %"])
    assert run.ret == pytest.ExitCode.OK


FAILING = """\
Given the policy "mine.yaml"
And a result "a" of 300 characters
When the disk is full
And the policy is applied
Then {outcome}
"""


@pytest.mark.parametrize(
    ("setting", "outcome"),
    [("keep", "1 warning is given"), ("raise", "it fails with a StoreError")],
)
def test_a_failed_write_is_covered_under_every_on_failure_setting(
    pytester: pytest.Pytester, setting: str, outcome: str
) -> None:
    policy = f"store: {{on_failure: {setting}}}\n"
    write(pytester, scenario("Fails", FAILING.format(outcome=outcome)))
    path = pytester.path / "mine.yaml"
    path.write_text(path.read_text(encoding="utf-8") + policy, encoding="utf-8")
    [rule] = [r for r in covered(pytester)["mine"]["rules"] if r["rule"] == "store.on_failure"]
    assert rule["sides"] == {"failed": ["mine.feature::Fails"]}


TWICE = """\
Given the policy "mine.yaml"
And a result "a" of 300 characters
And a result "a" of {size} characters
When the policy is applied
Then {outcome}
"""


@pytest.mark.parametrize(
    ("setting", "size", "outcome", "is_taken"),
    [
        ("suffix", 400, "2 files are written", True),
        ("overwrite", 400, "1 file is written", True),
        ("error", 400, "1 warning is given", True),
        ("overwrite", 99, "1 file is written", False),
    ],
)
def test_the_taken_side_of_on_conflict_is_covered_only_if_a_name_is_taken(
    pytester: pytest.Pytester, setting: str, size: int, outcome: str, *, is_taken: bool
) -> None:
    write(pytester, scenario("Twice", TWICE.format(size=size, outcome=outcome)))
    path = pytester.path / "mine.yaml"
    policy = f"store: {{path: '{{tool_use_id}}', on_conflict: {setting}}}\n"
    path.write_text(path.read_text(encoding="utf-8") + policy, encoding="utf-8")
    [rule] = [r for r in covered(pytester)["mine"]["rules"] if r["rule"] == "store.on_conflict"]
    assert bool(rule["sides"]["taken"]) == is_taken
