"""Feature files as pytest's tests."""

from __future__ import annotations

import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.testing.features_in import (
    HOLDS,
    INI,
    POLICY,
    only_the_plugins_for_xdist,
    scenario,
    write,
)

pytest_plugins = ["pytester"]

EVERYTHING = """\
@slow
Feature: Everything

  Background:
    Given the policy "mine.yaml"

  @F-001
  Scenario: Alone
    Given a result of 300 characters
    When the policy is applied
    Then 1 result is offloaded

  Scenario Outline: From 100 characters on
    Given a result of <size> characters
    When the policy is applied
    Then <count> result is offloaded

    Examples:
      | size | count |
      | 99   | no    |
      | 100  | 1     |

    @UC-002
    Examples: large ones
      | size  | count |
      | 5,000 | 1     |

  Rule: Tables and texts count as well

    Background:
      Given a result "first" of 300 characters

    @BR-7
    Scenario: In a table
      Given the messages
        | type   | size           |
        | result | 200 characters |
      When the policy is applied
      Then 2 results are offloaded

    Scenario: In a text: it's "quoted" 字
      Given a result that reads
        \"\"\"
        short
        \"\"\"
      When the policy is applied
      Then only the result "first" is offloaded
"""
NAMES = [
    "Alone",
    "From 100 characters on[99-no]",
    "From 100 characters on[100-1]",
    "From 100 characters on[5,000-1]",
    "In a table",
    'In a text: it\'s "quoted" 字',
]
MARKED = f"{INI}markers = slow: takes long\n"


def passed(run: pytest.RunResult) -> list[str]:
    """The names of the scenarios that passed, in the order of the run; run with `-v`."""
    lines = [line for line in run.outlines if " PASSED" in line]
    return [line.partition("::")[2].partition(" PASSED")[0] for line in lines]


def test_all_of_gherkin_is_a_test(pytester: pytest.Pytester) -> None:
    write(pytester, mine_feature=EVERYTHING, pytest_ini=MARKED)
    assert passed(pytester.runpytest_inprocess("-v", "--strict-markers")) == NAMES


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (["-k", "table or 99"], [NAMES[1], NAMES[4]]),
        (["-m", "F-001 or BR-7"], [NAMES[0], NAMES[4]]),
        (["-m", "UC-002"], [NAMES[3]]),
        (["-m", "not slow"], []),
        ([f"mine.feature::{NAMES[0]}"], [NAMES[0]]),
        ([f"mine.feature::{NAMES[2]}"], [NAMES[2]]),
    ],
)
def test_scenarios_are_selected_like_any_tests(
    pytester: pytest.Pytester, options: list[str], names: list[str]
) -> None:
    write(pytester, mine_feature=EVERYTHING, pytest_ini=MARKED)
    assert passed(pytester.runpytest_inprocess("-v", *options)) == names


MORE = HOLDS.replace("1 result is", "3 results are")


@pytest.mark.slow
def test_scenarios_run_under_xdist_and_are_written_to_junit(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    only_the_plugins_for_xdist(monkeypatch)
    write(pytester, mine_feature=EVERYTHING + "\n" + scenario("Wrong", MORE), pytest_ini=MARKED)
    run = pytester.runpytest_subprocess("-n2", "--junit-xml=results.xml")
    run.assert_outcomes(passed=6, failed=1)
    run.stdout.fnmatch_lines(["mine.feature:*: Then 3 results are offloaded", "  found:    2"])
    cases = ET.parse(pytester.path / "results.xml").iter("testcase")  # noqa: S314 - pytest wrote it
    failures = {case.get("name"): case.find("failure") for case in cases}
    assert set(failures) == {*NAMES, "Wrong"}
    failure = failures["Wrong"]
    assert failure is not None
    assert failure.get("message", "").startswith("expected: 3 results are offloaded found: 2")


WRONG = HOLDS.replace("1 result is", "2 results are")


def test_last_failed_scenarios_run_again(pytester: pytest.Pytester) -> None:
    write(pytester, scenario("Right"), scenario("Wrong", WRONG))
    pytester.runpytest_inprocess().assert_outcomes(passed=1, failed=1)
    write(pytester, scenario("Right"), scenario("Wrong"))
    assert passed(pytester.runpytest_inprocess("-v", "--lf")) == ["Wrong"]


def test_a_tag_may_skip_a_scenario(pytester: pytest.Pytester) -> None:
    write(pytester, f"@skip\n{scenario()}")
    pytester.runpytest_inprocess().assert_outcomes(skipped=1)


def test_a_pattern_of_tags_may_be_registered(pytester: pytest.Pytester) -> None:
    write(pytester, f"@REQ-7\n{scenario()}", pytest_ini=f"{INI}policyctx_tags = REQ-\\d+\n")
    assert passed(pytester.runpytest_inprocess("-v", "-m", "REQ-7")) == ["One"]


def test_features_outside_the_configured_folders_are_ignored(pytester: pytest.Pytester) -> None:
    write(pytester, scenario(), pytest_ini="[pytest]\npolicyctx_features = features\n")
    pytester.runpytest_inprocess().assert_outcomes()


def test_features_are_ignored_without_configuration(pytester: pytest.Pytester) -> None:
    write(pytester, scenario(), pytest_ini="[pytest]\n")
    pytester.runpytest_inprocess().assert_outcomes()


def test_features_run_although_testpaths_does_not_name_them(pytester: pytest.Pytester) -> None:
    ini = "[pytest]\npolicyctx_features = features\ntestpaths = tests\n"
    write(pytester, scenario(), pytest_ini=ini)
    pytester.mkdir("tests").joinpath("test_own.py").write_text("def test_own(): pass\n")
    features = pytester.mkdir("features")
    for name in ("mine.feature", "mine.yaml"):
        (pytester.path / name).rename(features / name)
    assert passed(pytester.runpytest_inprocess("-v")) == ["test_own", "One"]


def bare(pytester: pytest.Pytester) -> None:
    """Leave one policy and one feature, and nothing else."""
    write(pytester, scenario())
    (pytester.path / "pytest.ini").unlink()


def test_a_policy_and_a_feature_are_enough(pytester: pytest.Pytester) -> None:
    bare(pytester)
    assert passed(pytester.runpytest_inprocess("-v")) == ["One"]


def test_without_an_ini_python_keeps_features_to_itself(pytester: pytest.Pytester) -> None:
    bare(pytester)
    pytester.makepyfile("def test_own(): pass")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_modules_of_a_virtual_environment_are_not_collected(pytester: pytest.Pytester) -> None:
    bare(pytester)
    environment = pytester.mkdir("env")
    (environment / "pyvenv.cfg").write_text("")
    (environment / "module.py").write_text("")
    assert passed(pytester.runpytest_inprocess("-v")) == ["One"]


OWN = """\
from pytest_bdd import given, then, parsers

@given("the agent has read the licence")
def _(policyctx_world):
    policyctx_world.add([{"role": "user", "content": "x" * 300}])

@given(parsers.parse("a result of {size} characters"))
def _(policyctx_world, size):
    \"\"\"A result, and another.\"\"\"
    block = {"type": "tool_result", "content": "x" * int(size)}
    blocks = [{**block, "tool_use_id": "a"}, {**block, "tool_use_id": "b"}]
    policyctx_world.add([{"role": "user", "content": blocks}])

@then("it is wrong")
def _(policyctx_world):
    assert policyctx_world.session_id == "another"
"""


WELL = """\
from pytest_bdd import then
@then("all is well")
def _(): pass
"""


def test_a_conftest_adds_and_replaces_steps(pytester: pytest.Pytester) -> None:
    steps = f"Given the agent has read the licence\n{WRONG}"
    write(pytester, scenario(steps=steps), conftest_py=OWN)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_nearer_conftest_replaces_the_steps_of_one_further_away(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, conftest_py=OWN.replace('"it is wrong"', '"all is well"'))
    near = pytester.mkdir("near")
    (near / "conftest.py").write_text(WELL)
    for name in ("mine.feature", "mine.yaml"):
        (pytester.path / name).rename(near / name)
    text = f"Feature: Mine\n{scenario(steps=HOLDS.replace('of 300', 'of 301') + 'And all is well')}"
    (near / "mine.feature").write_text(text.replace("1 result is", "2 results are"))
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.slow
def test_a_step_of_the_users_own_fails_with_its_place_and_its_code(
    pytester: pytest.Pytester,
) -> None:
    steps = HOLDS.replace("1 result is", "2 results are")
    write(pytester, scenario(steps=f"{steps}And it is wrong\n"), conftest_py=OWN)
    run = pytester.runpytest_inprocess()
    run.assert_outcomes(failed=1)
    run.stdout.fnmatch_lines(
        ['*assert policyctx_world.session_id == "another"', "*mine.feature:7: And it is wrong*"]
    )
    assert "pytest_bdd/" not in run.stdout.str()


ODD = "\x1b[2J\u202e\x9b"
SHOWN = r"\x1b[2J\u202e\x9b"
ODD_STEP = """\
import logging, pathlib, pytest, warnings
from pytest_bdd import then
ODD = "".join(map(chr, [0x1B, 0x5B, 0x32, 0x4A, 0x202E, 0x9B]))

@pytest.fixture
def odd():
    raise ValueError(ODD)

@then("it is wrong")
def _(request):
    BODY
"""


@pytest.mark.slow
@pytest.mark.parametrize("options", [("-rA",), ("--policyctx-only",)], ids=["pytest", "policyctx"])
@pytest.mark.parametrize(
    "body",
    [
        "raise ValueError(ODD)",
        "raise BaseExceptionGroup(ODD, [ValueError(ODD)])",
        "assert False, ODD",
        "assert request.node.name == ODD, ODD",
        "print(ODD); assert False",
        "logging.getLogger().warning(ODD); assert False",
        "pytest.fail(ODD, pytrace=False)",
        "pathlib.Path(ODD).read_text()",
        "request.getfixturevalue('odd')",
        "pytest.skip(ODD)",
        "pytest.xfail(ODD)",
    ],
)
def test_control_characters_of_a_step_of_the_users_own_are_escaped(
    body: str, options: tuple[str, ...], pytester: pytest.Pytester
) -> None:
    steps = f"{HOLDS}And it is wrong\n"
    write(pytester, scenario(steps=steps), conftest_py=ODD_STEP.replace("BODY", body))
    shown = pytester.runpytest_inprocess(*options).stdout.str()
    assert not set(ODD[0] + ODD[4:]) & set(shown)
    assert SHOWN in shown or "pytest.skip" in body or "pytest.xfail" in body


def test_control_characters_of_a_warning_are_escaped(pytester: pytest.Pytester) -> None:
    conftest = ODD_STEP.replace("BODY", "warnings.warn(ODD)")
    write(pytester, scenario(steps=f"{HOLDS}And it is wrong\n"), conftest_py=conftest)
    shown = pytester.runpytest_inprocess("--policyctx-only", "-Wdefault").stdout.str()
    assert f"UserWarning: {SHOWN}" in shown
    assert not set(ODD[0] + ODD[4:]) & set(shown)


def run_in_a_process(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run pytest in a process of its own, which its own exit may end."""
    program = Path(pytest.__file__).with_name("__main__.py")
    return policyctx("--policyctx-only", cwd=folder, program=program)


@pytest.mark.parametrize("folder", [".", "below"])
def test_control_characters_of_a_conftest_that_raises_are_escaped(
    folder: str, pytester: pytest.Pytester
) -> None:
    write(pytester, scenario())
    place = pytester.path / folder
    place.mkdir(exist_ok=True)
    (place / "conftest.py").write_text(f"raise RuntimeError({ODD!r})")
    (place / "mine.feature").write_text((pytester.path / "mine.feature").read_text())
    run = run_in_a_process(pytester.path)
    shown = run.stdout + run.stderr
    assert f"RuntimeError: {SHOWN}" in shown
    assert not set(ODD[0] + ODD[4:]) & set(shown)


# A `pytest.exit` in `pytest_configure` is written by pytest before a hook of ours can see it.
@pytest.mark.slow
@pytest.mark.parametrize("body", ["raise RuntimeError(ODD)", "pytest.exit(ODD)"])
@pytest.mark.parametrize(
    "hook",
    [
        "pytest_addoption",
        "pytest_sessionstart",
        "pytest_collection_modifyitems",
        "pytest_runtest_makereport",
        "pytest_runtest_logreport",
        "pytest_sessionfinish",
        "pytest_terminal_summary",
        "pytest_unconfigure",
    ],
)
def test_control_characters_of_a_hook_that_raises_are_escaped(
    hook: str, body: str, pytester: pytest.Pytester
) -> None:
    conftest = f"import pytest\nODD = {ODD!r}\ndef {hook}():\n    {body}\n"
    write(pytester, scenario(), conftest_py=conftest)
    run = pytester.runpytest_inprocess("-rA")
    shown = run.stdout.str() + run.stderr.str()
    assert SHOWN in shown
    assert not set(ODD[0] + ODD[4:]) & set(shown)


@pytest.mark.parametrize("at", ["step", "conftest", "configure", "unconfigure", "report_header"])
def test_control_characters_of_the_reason_of_an_exit_are_escaped(
    at: str, pytester: pytest.Pytester
) -> None:
    conftest = ODD_STEP.replace("BODY", "pytest.exit(ODD)")
    if at == "conftest":
        conftest += "pytest.exit(ODD)\n"
    elif at != "step":
        conftest += f"def pytest_{at}():\n    pytest.exit(ODD)\n"
    write(pytester, scenario(steps=f"{HOLDS}And it is wrong\n"), conftest_py=conftest)
    run = run_in_a_process(pytester.path)
    shown = run.stdout + run.stderr
    assert SHOWN in shown
    assert not set(ODD[0] + ODD[4:]) & set(shown)


def test_a_failure_names_the_line_the_values_and_the_reasons(pytester: pytest.Pytester) -> None:
    steps = 'And a result "b" of 99 characters from Bash\nWhen'
    write(pytester, scenario(steps=WRONG.replace("When", steps)))
    run = pytester.runpytest_inprocess()
    run.stdout.fnmatch_lines(
        [
            "mine.feature:7: Then 2 results are offloaded",
            "  expected: 2 results are offloaded",
            "  found:    1",
            '    tool result "call_1", message 1, 300 characters: offloaded,'
            " large: 300 >= 100 chars · step leave · min_chars",
            '    tool result "b" of Bash, message 3, 99 characters: kept,'
            " below_threshold: 99 < 100 chars · step leave · min_chars",
            "FAILED mine.feature::One - expected: 2 results are offloaded found: 1*",
        ],
        consecutive=False,
    )


def test_a_mistake_in_a_policy_written_in_a_feature_has_the_features_line(
    pytester: pytest.Pytester,
) -> None:
    policy = 'Given the policy\n  """\n  min_char: 3\n  """'
    write(pytester, scenario(steps=HOLDS.replace('Given the policy "mine.yaml"', policy)))
    run = pytester.runpytest_inprocess()
    run.stdout.fnmatch_lines(["*mine.feature:5:1: PC101: unknown key 'min_char'*"])


WATCHING = """\
def pytest_policyctx_plan(plan, policy, scenario):
    print(f"{scenario}: {policy.policy.name}: {len(plan.decisions)} decided")
"""


def test_every_plan_is_seen_with_its_scenario(pytester: pytest.Pytester) -> None:
    more = "When only a plan is made\nAnd a result of 3 characters arrives\nAnd"
    steps = HOLDS.replace("When", more)
    write(pytester, scenario(steps=steps), conftest_py=WATCHING)
    run = pytester.runpytest_inprocess("-s")
    run.assert_outcomes(passed=1)
    seen = [line.lstrip(".") for line in run.outlines if "decided" in line]
    assert [line.rpartition("mine.feature::")[2] for line in seen] == [
        "One: mine: 1 decided",
        "One: mine: 0 decided",
        "One: mine: 2 decided",
    ]


def test_a_policy_is_found_beside_the_feature_and_below_the_rootdir(
    pytester: pytest.Pytester,
) -> None:
    write(pytester, scenario())
    deep = pytester.mkdir("deep")
    (pytester.path / "mine.feature").rename(deep / "mine.feature")
    pytester.runpytest_inprocess().assert_outcomes(passed=1)
    (deep / "mine.yaml").write_text(POLICY.replace("true", "false"))
    pytester.runpytest_inprocess().assert_outcomes(failed=1)


def test_without_pytest_bdd_the_extra_is_named(pytester: pytest.Pytester) -> None:
    write(pytester, scenario())
    hiding = "import sys\nsys.modules['pytest_bdd'] = None\n"
    (pytester.path / "sitecustomize.py").write_text(hiding)
    run = pytester.run(
        "env", f"PYTHONPATH={pytester.path}", "PYTEST_ADDOPTS=",
        *pytester._getpytestargs(), "-p", "policyctx",
    )  # fmt: skip
    run.stderr.fnmatch_lines(["ERROR: features need pytest-bdd: pip install *bdd*"])
    assert run.ret == pytest.ExitCode.USAGE_ERROR
