"""What would let a broken feature pass is an error when it is collected, with file and line."""

from __future__ import annotations

from textwrap import dedent

import pytest

from tests.cli.running import policyctx
from tests.testing.features_in import HOLDS, INI, POLICY, feature, scenario, write

pytest_plugins = ["pytester"]

MARKED = f"{INI}markers =\n  slow: takes long\n"
BROKEN = {
    "an unknown step": (
        scenario(steps=HOLDS.replace("1 result is", "1 result was")),
        6,
        "unknown step: Then 1 result was offloaded",
        "did you mean",
    ),
    "the nearest steps": (
        scenario(steps=HOLDS.replace("is applied", "is aplied")),
        5,
        "unknown step: When the policy is aplied",
        "  When the policy is applied",
    ),
    "a step of another kind": (
        scenario(steps=HOLDS + "And the policy is applied\n"),
        7,
        "unknown step: Then the policy is applied",
        "it is known as a When",
    ),
    "no steps": (scenario(steps=""), 2, "the scenario has no steps", "it would pass"),
    "no Then": (
        scenario(steps="".join(HOLDS.splitlines(keepends=True)[:3])),
        2,
        "the scenario has no Then",
        "without one it says nothing of the outcome",
    ),
    "a first keyword misspelt": (
        scenario(steps=HOLDS.replace("Given", "Givn")),
        3,
        "misspelt keyword 'Givn'",
        "did you mean 'Given'?",
    ),
    "a keyword in small letters": (
        scenario(steps=HOLDS.replace("Given", "given")),
        3,
        "misspelt keyword 'given'",
        "did you mean 'Given'?",
    ),
    "an invented keyword": (
        scenario(steps=HOLDS.replace("Given", "Suppose")),
        3,
        "misspelt keyword 'Suppose'",
        "the keywords are Given, When, Then, And, But",
    ),
    "no keyword": (
        scenario(steps=HOLDS.replace("Given ", "")),
        3,
        'a step without its keyword: the policy "mine.yaml"',
        "the keywords are Given, When, Then, And, But",
    ),
    "a later keyword misspelt": (
        scenario(steps=HOLDS.replace("When", "Wen")),
        5,
        "this line means nothing here: Wen the policy is applied",
        "did you mean 'When'?",
    ),
    "a scenario's keyword without its colon": (
        scenario().replace("Scenario:", "Scenario") + "\n\n" + scenario("Two"),
        3,
        'a step that belongs to no scenario: Given the policy "mine.yaml"',
        "a line such as `Scenario: …`, with its colon, comes before the steps",
    ),
    "a scenario's keyword misspelt": (
        scenario(keyword="Scenaro") + "\n\n" + scenario("Two"),
        2,
        "misspelt keyword 'Scenaro:'",
        "did you mean 'Scenario:'?",
    ),
    "a background's keyword misspelt": (
        scenario("", keyword="Backgrund", steps='Given the policy "mine.yaml"\n')
        + "\n\n"
        + scenario("Two"),
        2,
        "misspelt keyword 'Backgrund:'",
        "did you mean 'Background:'?",
    ),
    "two of one name": (
        scenario() + "\n\n" + scenario(),
        9,
        "a scenario of this name is in line 2 already",
        "of two, only one would run",
    ),
    "two of one name in different rules": (
        "Rule: A\n" + scenario() + "\n\nRule: B\n" + scenario(),
        11,
        "a scenario of this name is in line 3 already",
        "",
    ),
    "no name": (scenario(""), 2, "the scenario has no name", ""),
    "an unused column": (
        scenario(
            keyword="Scenario Outline",
            steps=HOLDS.replace("300", "<size>") + "Examples:\n  | size | count |\n  | 300 | 1 |\n",
        ),
        8,
        "no step uses the column <count>",
        "",
    ),
    "a missing column": (
        scenario(
            keyword="Scenario Outline",
            steps=HOLDS.replace("300", "<size>").replace("1 result", "<count> results")
            + "Examples:\n  | size |\n  | 300 |\n",
        ),
        6,
        "no column is called <count>",
        "the columns are size",
    ),
    "no rows": (
        scenario(
            keyword="Scenario Outline",
            steps=HOLDS.replace("300", "<size>") + "Examples:\n  | size |\n",
        ),
        7,
        "the examples have no rows",
        "the outline would run as it is",
    ),
    "no examples": (
        scenario(keyword="Scenario Outline"),
        2,
        "the outline has no Examples",
        "",
    ),
    "a tag nobody knows": (
        f"@slwo\n{scenario()}",
        2,
        "unknown tag @slwo",
        "did you mean @slow? Register it as a marker in pytest's ini",
    ),
    "a tag on examples": (
        scenario(
            keyword="Scenario Outline",
            steps=HOLDS.replace("300", "<size>") + "@nobody\nExamples:\n  | size |\n  | 300 |\n",
        ),
        7,
        "unknown tag @nobody",
        "",
    ),
    "a table that no step takes": (
        scenario(steps=HOLDS + "  | a |\n"),
        6,
        "this step takes no table: 1 result is offloaded",
        "",
    ),
    "a docstring that no step takes": (
        scenario(steps=HOLDS + '  """\n  a\n  """\n'),
        6,
        "this step takes no docstring: 1 result is offloaded",
        "",
    ),
    "no scenario": ("", 1, "the feature has no scenario", ""),
    "two features": (
        scenario() + "\n\nFeature: Another\n",
        9,
        "this line means nothing here: Feature: Another",
        "",
    ),
}


@pytest.fixture(scope="module")
def problems(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What is told of each broken feature, all of them collected in one run."""
    folder = tmp_path_factory.mktemp("broken")
    (folder / "pytest.ini").write_text(MARKED, encoding="utf-8")
    (folder / "mine.yaml").write_text(POLICY, encoding="utf-8")
    for i, broken in enumerate(BROKEN):
        (folder / f"{i:02}.feature").write_text(feature(BROKEN[broken][0]), encoding="utf-8")
    run = policyctx("test", cwd=folder)
    assert run.returncode == 1
    assert f"\n{len(BROKEN)} errors in " in run.stdout, "none of them ran"
    told = run.stdout.split("✗ cannot be run\n")[1:]
    return dict(zip(BROKEN, told, strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("broken", BROKEN)
def test_a_broken_feature_is_a_collection_error(problems: dict[str, str], broken: str) -> None:
    _, line, sentence, hint = BROKEN[broken]
    place, _, told = problems[broken].partition(": ")
    assert place == f"{list(BROKEN).index(broken):02}.feature:{line}"
    assert told.startswith(sentence)
    assert hint in told


def collected(pytester: pytest.Pytester) -> str:
    """The output of a run in which no scenario may have run."""
    run = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    run.assert_outcomes(errors=1)
    return run.stdout.str()


def test_the_unbroken_feature_passes(pytester: pytest.Pytester) -> None:
    write(
        pytester,
        f"@slow @F-003 @UC-006 @BR-1.2\n{scenario()}",
        pytest_ini=MARKED,
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_all_problems_of_a_file_are_reported_together(pytester: pytest.Pytester) -> None:
    write(pytester, f"@nobody\n{scenario(steps='')}", scenario("Two", HOLDS + "And so on\n"))
    out = collected(pytester)
    assert [line for line in out.splitlines() if line.startswith("mine.feature:")] == [
        "mine.feature:2: unknown tag @nobody",
        "mine.feature:3: the scenario has no steps",
        "mine.feature:11: unknown step: Then so on",
    ]


def test_a_description_in_prose_is_not_a_problem(pytester: pytest.Pytester) -> None:
    prose = """\
    Scenario: One
      The results of tools leave. An agent reads them again.
      Then what? What is left is a path.
      Note: that is all.

    """
    head = "Feature: Mine\n  Given results that are long, the policy lets them leave.\n  And more."
    write(pytester, dedent(prose).replace("Then what? ", "") + HOLDS, head=head)
    pytester.runpytest_inprocess().assert_outcomes(passed=1)


def test_a_step_in_the_description_of_a_feature_is_reported(pytester: pytest.Pytester) -> None:
    head = 'Feature: Mine\n  Given the policy "mine.yaml"'
    write(pytester, scenario(), head=head)
    assert "mine.feature:2: a step that belongs to no scenario: Given the policy" in collected(
        pytester
    )


TWICE = """\
from pytest_bdd import given, parsers
@given("a licence")
def first(): ...
@given(parsers.parse("a {thing}"))
def second(thing): ...
"""


def test_two_definitions_in_one_place_are_reported(pytester: pytest.Pytester) -> None:
    write(pytester, scenario(steps=f"Given a licence\n{HOLDS}"), conftest_py=TWICE)
    out = collected(pytester)
    assert "mine.feature:3: 2 definitions for one step: a licence" in out
    assert f"{pytester.path}/conftest.py:2 and {pytester.path}/conftest.py:4" in out


def test_two_definitions_of_one_sentence_are_reported(pytester: pytest.Pytester) -> None:
    same = TWICE.replace('parsers.parse("a {thing}")', '"a licence"').replace("(thing)", "()")
    write(pytester, scenario(steps=f"Given a licence\n{HOLDS}"), conftest_py=same)
    assert "mine.feature:3: 2 definitions for one step: a licence" in collected(pytester)


def test_an_async_step_is_reported(pytester: pytest.Pytester) -> None:
    own = 'from pytest_bdd import then\n@then("all is well")\nasync def _(): assert False\n'
    write(pytester, scenario(steps=f"{HOLDS}And all is well\n"), conftest_py=own)
    out = collected(pytester)
    assert "mine.feature:7: the definition of this step is an `async def`: all is well" in out
    assert "conftest.py:2" in out


CHINESE = """\
# language: zh-CN
功能: 卸载
  场景: 长结果
    假如the policy "mine.yaml"
    并且a result of 300 characters
    当the policy is applied
    那么1 result is offloaded
"""


def test_a_feature_in_chinese_is_a_test(pytester: pytest.Pytester) -> None:
    write(pytester, mine_feature=CHINESE)
    run = pytester.runpytest_inprocess("-v")
    run.assert_outcomes(passed=1)
    assert "mine.feature::长结果 PASSED" in run.stdout.str()


@pytest.mark.parametrize(
    ("right", "wrong", "line", "sentence"),
    [
        ("假如the", "假入the", 4, "misspelt keyword '假入'"),
        ("假如the", "the", 4, "a step without its keyword"),
        ("当the policy is applied", "当the policy is aplied", 6, "unknown step: When the policy"),
        ("    那么1 result is offloaded\n", "", 3, "the scenario has no Then"),
        ("场景: 长结果", "@没有\n  场景: 长结果", 3, "unknown tag @没有"),
    ],
)
def test_problems_in_a_chinese_feature_are_reported(
    pytester: pytest.Pytester, right: str, wrong: str, line: int, sentence: str
) -> None:
    write(pytester, mine_feature=CHINESE.replace(right, wrong))
    out = collected(pytester)
    assert f"mine.feature:{line}: " in out
    assert sentence in out


def test_a_misspelt_keyword_in_french_is_reported(pytester: pytest.Pytester) -> None:
    french = """\
    # language: fr
    Fonctionnalité: Partir
      Scénario: Un
        Soi the policy "mine.yaml"
        Quand the policy is applied
        Alors nothing is offloaded
    """
    write(pytester, mine_feature=french)
    out = collected(pytester)
    assert "mine.feature:4: misspelt keyword 'Soi'" in out
    assert "did you mean 'Soit'?" in out


@pytest.mark.parametrize(
    ("raw", "sentence"),
    [
        (b"", "there is no feature in this file"),
        (b"# only a comment\n", "there is no feature in this file"),
        (b"\xff\xfe", "cannot be read: 'utf-8' codec can't decode"),
        (b"hello\n", "mine.feature:1: this line means nothing here: hello"),
    ],
)
def test_a_file_that_is_not_a_feature_is_reported(
    pytester: pytest.Pytester, raw: bytes, sentence: str
) -> None:
    write(pytester)
    (pytester.path / "mine.feature").write_bytes(raw)
    assert sentence in collected(pytester)


@pytest.mark.parametrize("name", ["mine.feature", "sub/mine.feature"])
@pytest.mark.parametrize("raw", [b"password: hunter2\n", b"-- KEY --\nhunter2\n", b"# hunter2"])
def test_nothing_of_a_foreign_file_behind_a_link_is_shown(
    pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory, raw: bytes, name: str
) -> None:
    """In a pull request a link may lead to any file of the machine that checks it."""
    write(pytester)
    (pytester.path / "mine.feature").unlink()
    foreign = tmp_path_factory.mktemp("foreign")
    (foreign / "mine.feature").write_bytes(raw)
    if name.startswith("sub"):
        (pytester.path / "sub").symlink_to(foreign)
    else:
        (pytester.path / name).symlink_to(foreign / "mine.feature")
    out = collected(pytester)
    assert "hunter2" not in out
    assert "is not a feature" in out or "there is no feature in this file" in out


def test_a_feature_behind_a_link_is_run(pytester: pytest.Pytester) -> None:
    write(pytester, scenario())
    (pytester.path / "mine.feature").rename(pytester.path / "real")
    (pytester.path / "mine.feature").symlink_to(pytester.path / "real")
    pytester.runpytest("mine.feature").assert_outcomes(passed=1)
