"""The step library: what each step does, and that each fails when it should."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from pytest_bdd.compat import get_fixture_names
from pytest_bdd.feature import get_feature
from pytest_bdd.steps import StepNamePrefix

from policyctx.resources import shipped_folder
from policyctx.testing.collecting import library
from policyctx.testing.step_definitions import StepSentence
from tests.cli.running import policyctx

pytest_plugins = ["pytester"]

if TYPE_CHECKING:
    from pytest_bdd.parser import Feature, Step

HERE = Path(__file__).parent
FAILING = HERE / "failing.feature"
# What no policy can make untrue is tried on turns made up here, in `test_outcomes.py`.
NEVER_UNTRUE = (
    "unchanged messages are the same objects",
    "in every turn the prefix is unchanged up to the first new decision",
    "the characters freed, net of placeholders, add up",
)
SCENARIOS = get_feature(str(HERE), FAILING.name).scenarios


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The text of each failure of `failing.feature`, by its scenario's name."""
    folder = tmp_path_factory.mktemp("failing")
    (folder / FAILING.name).write_text(FAILING.read_text(encoding="utf-8"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        run = policyctx("test", "--", "--junit-xml=results.xml", cwd=folder)
    assert run.returncode == 1, run.stdout + run.stderr
    tree = ET.parse(folder / "results.xml")  # noqa: S314 - pytest wrote it
    results = tree.getroot().iter("testcase")
    return {case.get("name", ""): case.findtext("failure", "") for case in results}


@pytest.mark.slow
@pytest.mark.parametrize("name", SCENARIOS)
def test_an_outcome_that_did_not_come_fails_at_its_step(
    name: str, failures: dict[str, str]
) -> None:
    text = failures[name]
    last = SCENARIOS[name].steps[-1]
    place, _, told = text.partition("\n")
    assert place.endswith(f"{FAILING.name}:{last.line_number}: {last.keyword} {last.name}")
    assert name in told


def test_pytest_looks_for_all_steps_of_the_library_under_one_name(
    request: pytest.FixtureRequest,
) -> None:
    """For each step of a scenario pytest-bdd looks up every name that pytest has."""
    names = get_fixture_names(request._fixturemanager)
    steps = [name for name in names if name.startswith(StepNamePrefix.step_def.value)]
    [ours] = [name for name in steps if not name.endswith("trace")]
    fixtures = request._fixturemanager.getfixturedefs(ours, request.node)
    assert len(fixtures or ()) == len(library())


# In a sentence: words that may be left out, or one of several; the words of a named place.
_CHOICE = re.compile(r"\((?P<parts>[^()]*)\)|\{\w+=(?P<words>[^}]+)\}")


def alternatives(sentence: str) -> list[str]:
    """Return the sentence with each of its choices made in each way, one choice at a time."""
    found = []
    for choice in _CHOICE.finditer(sentence):
        ways = (choice["words"] or choice["parts"]).split("|")
        optional = [""] if choice["words"] is None and len(ways) == 1 else []
        before, behind = sentence[: choice.start()], sentence[choice.end() :]
        found += [f"{before}{way}{behind}" for way in (*ways, *optional)]
    return found or [sentence]


def unseen(type_: str, steps: Iterable[Step]) -> set[str]:
    """Return the alternatives of the library's sentences of a type that no step says."""
    names = {step.name for step in steps if step.type == type_}
    return {
        alternative
        for definition in library()
        if definition.type == type_
        for alternative in alternatives(definition.sentence)
        if not any(map(StepSentence(alternative).is_matching, names))
    }


def test_a_sentence_has_an_alternative_for_each_word_that_may_be_another() -> None:
    assert alternatives("no folder is made") == ["no folder is made"]
    assert alternatives("the file(s) (is|are) {state=there|not there}") == [
        "the files (is|are) {state=there|not there}",
        "the file (is|are) {state=there|not there}",
        "the file(s) is {state=there|not there}",
        "the file(s) are {state=there|not there}",
        "the file(s) (is|are) there",
        "the file(s) (is|are) not there",
    ]


def test_every_then_is_seen_to_fail() -> None:
    """In each of its alternatives."""
    assert unseen("then", (one.steps[-1] for one in SCENARIOS.values())) == set(NEVER_UNTRUE)


@pytest.mark.parametrize("type_", ["given", "when", "then"])
def test_every_step_is_seen_to_hold(type_: str) -> None:
    """In each of its alternatives."""
    assert not unseen(type_, (step for feature in _passing() for step in _steps(feature)))


def _passing() -> list[Feature]:
    folders = (HERE / "features", shipped_folder("features"))
    return [
        get_feature(str(folder), str(path.relative_to(folder)))
        for folder in folders
        for path in folder.rglob("*.feature")
    ]


def _steps(feature: Feature) -> Iterator[Step]:
    for scenario in feature.scenarios.values():
        rows = [row for each in scenario.examples for row in each.as_contexts()]
        for row in rows or [{}]:
            yield from scenario.render(row).steps


def test_every_example_is_matched_by_its_own_sentence_alone() -> None:
    for definition in library():
        for example in definition.examples:
            step = example.partition("\n")[0]
            matching = {
                other.sentence
                for other in library()
                if other.type == definition.type and StepSentence(other.sentence).is_matching(step)
            }
            assert matching == {definition.sentence}, step


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("idle", "DURATION pass[es]"),
        ("Failed result", "PIECES"),
        ("the agent was idle", "DURATION pass[es]"),
        ("idling for 10 minutes", "DURATION pass[es]"),
        ("results that failed", "PIECES"),
        ("no-such-word", None),
    ],
)
def test_steps_are_found_by_words_of_their_text_meaning_or_example(
    words: str, sentence: str | None, pytester: pytest.Pytester
) -> None:
    options = ("-qq", "--policyctx-steps=json", f"--policyctx-steps-with={words}")
    run = pytester.runpytest_inprocess(*options)
    assert run.ret == 0
    found = json.loads(run.stdout.str())
    assert len(found) < 20
    assert (sentence in [one["sentence"] for one in found]) == bool(found)
    for one in found:
        text = f"{one['type']} {one['sentence']} {one['meaning']} {one['examples']}".lower()
        assert all(word in text for word in ("idle", "fail", "result") if word in words)
