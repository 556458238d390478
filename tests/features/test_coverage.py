"""Every row of the requirements documents has a scenario, and the READMEs say which."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from pytest_bdd.feature import get_feature

from policyctx.policy.sources import preset_names

FEATURES = Path(__file__).parents[2] / "features"
# The ids that each document gives, first and last; the sections of which each row has a scenario
# or a reason why not, with their number of rows.
DOCUMENTS = {
    "context-offload": (
        {"UC": (1, 4), "F": (1, 5)},
        "1.2-3 1.3-4 2.2-1 3.2-33 4.1-1 4.2-1 4.3-2 4.4-2 5.1-2 5.2-2 5.3-3",
    ),
    "tool-direct-offload": (
        {"UC": (1, 3), "F": (1, 4)},
        "1.2-3 1.3-4 2.2-1 3.2-25 4.1-1 4.2-1 4.3-2 4.4-3 5.1-2 5.2-1 5.3-3",
    ),
    "ratio-gate": (
        {"UC": (5, 8), "F": (6, 6)},
        "1.2-3 1.3-3 2.2-1 3.2-20 4.1-2 4.2-1 4.3-2 4.4-2 5.1-3 5.2-1 5.3-2",
    ),
    "context-compact": (
        {"UC": (1, 6), "F": (1, 9)},
        "1.2-4 1.3-5 2.2-1 3.2-69 4.1-4 4.2-3 4.3-4 4.4-4 5.1-4 5.2-4 5.3-4",
    ),
    # Its sections have no numbers; the README says how they are counted.
    "context-filesystem": (
        {},
        "1-3 2.1-4 2.2-6 3.1-4 3.2-1 3.3-5 3.4-6 3.5-1 4.1-6 4.2-7 5-6 6.1-3 6.2-1 6.3-3 6.4-3"
        " 7-6 8-2 9-4",
    ),
}


def ids_of(folder: str) -> set[str]:
    """Return the id of every row of a document."""
    given, sections = DOCUMENTS[folder]
    ids = {
        f"{kind}-{number:03}"
        for kind, (first, last) in given.items()
        for number in range(first, last + 1)
    }
    for section, count in (part.split("-") for part in sections.split()):
        ids |= {f"BR-{section}-{n}" for n in range(1, int(count) + 1)}
    return ids


def tagged(folder: str) -> dict[str, list[str]]:
    """Return the names of the scenarios under each tag, as the features have them."""
    found = defaultdict(list)
    for path in sorted((FEATURES / folder).glob("*.feature")):
        for scenario in get_feature(str(path.parent), path.name).scenarios.values():
            for tag in scenario.tags:
                found[tag].append(scenario.name)
    return {tag: sorted(names) for tag, names in found.items()}


def rows(folder: str) -> list[list[str]]:
    """Return the cells of every row of a README's tables that begins with an id."""
    lines = (FEATURES / folder / "README.md").read_text(encoding="utf-8").splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return [row for row in cells if re.fullmatch(r"`@?[A-Z]+-[\d.-]+`", row[0])]


@pytest.mark.parametrize("folder", DOCUMENTS)
def test_each_row_of_the_document_is_listed_once(folder: str) -> None:
    listed = [row[0].strip("`@") for row in rows(folder)]
    assert sorted(listed) == sorted(ids_of(folder))


@pytest.mark.parametrize("folder", DOCUMENTS)
def test_the_readme_names_the_scenarios_of_each_tag(folder: str) -> None:
    listed = {row[0].strip("`@"): row[2].split("<br>") for row in rows(folder) if "@" in row[0]}
    assert listed == tagged(folder)


@pytest.mark.parametrize("folder", DOCUMENTS)
def test_a_row_without_a_scenario_has_a_reason(folder: str) -> None:
    assert [row for row in rows(folder) if "@" not in row[0] and not all(row[1:3])] == []


@pytest.mark.parametrize("folder", DOCUMENTS)
def test_no_two_scenarios_of_a_folder_have_one_name(folder: str) -> None:
    names = [
        scenario.name
        for path in (FEATURES / folder).glob("*.feature")
        for scenario in get_feature(str(path.parent), path.name).scenarios.values()
    ]
    assert len(names) == len(set(names))


def test_every_document_has_a_feature_folder_and_the_readme_lists_every_folder() -> None:
    folders = {path.parent.name for path in FEATURES.rglob("*.feature")}
    told = (FEATURES / "README.md").read_text(encoding="utf-8")
    assert folders >= set(DOCUMENTS)
    assert all(f"`{folder}/`" in told for folder in folders)


def test_every_folder_of_features_is_listed_here() -> None:
    """They are of a document, a preset, the shapes, imported policies, or keys of the language."""
    folders = {path.parent.name for path in FEATURES.rglob("*.feature")}
    others = {"message-shapes", "selection", "server-edits", "what-is-left"}
    assert folders == {*DOCUMENTS, *preset_names(), *others}
