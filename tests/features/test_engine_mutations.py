"""The features notice when the engine does something else, and not only the unit tests do."""

from __future__ import annotations

import os

import pytest

from tests.features.engine_mutations import (
    Mutation,
    MutationPassageError,
    PackageCopy,
    mutations,
)

# Every mutation takes some seconds; CI runs a third of those that went unnoticed once.
_ALL = os.environ.get("POLICYCTX_MUTATE") == "all"
_SHORT = [mutation for mutation in mutations() if mutation.profile == "short"]
RUN = (
    mutations()
    if _ALL
    else _SHORT
    if os.environ.get("HYPOTHESIS_PROFILE") == "long"
    else _SHORT[::3]
)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> PackageCopy:
    return PackageCopy.in_folder(tmp_path_factory.mktemp("engine"))


@pytest.mark.slow
@pytest.mark.parametrize("mutation", RUN, ids=lambda mutation: mutation.name)
def test_a_scenario_notices_the_mutation(mutation: Mutation, package: PackageCopy) -> None:
    assert package.noticed_by(mutation) is not None


@pytest.mark.slow
def test_the_features_pass_without_a_mutation(package: PackageCopy) -> None:
    used = dict.fromkeys(name for mutation in RUN for name in mutation.features)
    assert package.first_failure(tuple(used)) is None


def _mutation(passage: str, instead: str) -> Mutation:
    return Mutation(name="mine", passage=passage, instead=instead, features=("ratio-gate",))


@pytest.mark.slow
def test_a_change_without_an_effect_is_not_noticed(package: PackageCopy) -> None:
    docstring = '"""Offload the long tool results of a message list'
    assert package.noticed_by(_mutation(docstring, '"""Do something')) is None


@pytest.mark.parametrize("passage", ["no such passage anywhere", "import annotations"])
def test_a_passage_that_does_not_occur_exactly_once_is_an_error(
    passage: str, package: PackageCopy
) -> None:
    with pytest.raises(MutationPassageError, match=f"Adapt it.*\n{passage}"):
        package.noticed_by(_mutation(passage, ""))


@pytest.mark.slow
def test_a_mutation_that_is_invalid_python_is_an_error(package: PackageCopy) -> None:
    with pytest.raises(RuntimeError, match="the features cannot be run"):
        package.noticed_by(_mutation("class OffloadResults:", "class :"))


def test_every_passage_is_in_the_package_once(package: PackageCopy) -> None:
    for mutation in mutations():
        _, text = package._place_of(mutation)
        assert text.count(mutation.passage) == 1


def test_no_two_mutations_have_one_name() -> None:
    names = [mutation.name for mutation in mutations()]
    assert len(names) == len(set(names))
