"""The step library: what each step does, and that each fails when it should."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest
from pytest_bdd.feature import get_feature

from policyctx.resources import shipped_folder
from policyctx.testing.listing import library
from policyctx.testing.step_definitions import StepSentence
from tests.cli.running import policyctx

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytest_bdd.parser import Feature, Step

HERE = Path(__file__).parent
FAILING = HERE / "failing.feature"
# What no policy can make untrue is tried on turns made up here, in `test_outcomes.py`.
NEVER_UNTRUE = (
    "unchanged messages are the same objects",
    "in every turn the prefix is unchanged up to the first new decision",
    "{amount:amount} characters are freed net of placeholders",
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


def test_every_then_is_seen_to_fail() -> None:
    failing = [step.steps[-1].name for step in SCENARIOS.values()]
    unseen = {
        definition.sentence
        for definition in library()
        if definition.type == "then"
        and not any(StepSentence(definition.sentence).is_matching(name) for name in failing)
    }
    assert unseen == set(NEVER_UNTRUE)


def test_every_then_is_seen_to_hold() -> None:
    passing = {step.name for feature in _passing() for step in _steps(feature)}
    unseen = {
        definition.sentence
        for definition in library()
        if definition.type == "then"
        and not any(map(StepSentence(definition.sentence).is_matching, passing))
    }
    assert not unseen


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
