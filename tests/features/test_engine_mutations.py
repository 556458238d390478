"""The features notice when the engine does something else, and not only the unit tests do."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from tests.features.engine_mutations import (
    Mutation,
    MutationError,
    PackageCopy,
    mutations,
)

# Every mutation takes some seconds; CI runs those that went unnoticed once.
_ALL = os.environ.get("POLICYCTX_MUTATE") == "all"
RUN = [mutation for mutation in mutations() if _ALL or mutation.profile == "short"]


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PackageCopy]:
    package = PackageCopy.in_folder(tmp_path_factory.mktemp("engine"))
    yield package
    package.close()


@pytest.mark.slow
@pytest.mark.parametrize("mutation", RUN, ids=lambda mutation: mutation.name)
def test_a_scenario_notices_the_mutation(mutation: Mutation, package: PackageCopy) -> None:
    assert package.noticed_by(mutation) is not None


@pytest.mark.slow
def test_the_features_pass_without_a_mutation(package: PackageCopy) -> None:
    used = dict.fromkeys(name for mutation in RUN for name in mutation.features)
    assert package.first_failure(tuple(used)) is None


def _mutation(function: str, instead: str) -> Mutation:
    return Mutation(name="mine", function=function, instead=instead, features=("ratio-gate",))


_HOLDS = "policyctx.planning.gates:_holds"


@pytest.mark.slow
def test_a_change_without_an_effect_is_not_noticed(package: PackageCopy) -> None:
    same = _mutation(_HOLDS, "return original(number, comparison, limit)")
    assert package.noticed_by(same) is None


@pytest.mark.parametrize(
    "function",
    [
        "policyctx.planning.gates:no_such_function",
        "policyctx.planning.no_such_module:_holds",
        "policyctx.planning.gates:NoSuchClass._holds",
    ],
)
def test_a_function_that_does_not_exist_is_an_error(function: str, package: PackageCopy) -> None:
    with pytest.raises(MutationError, match=f"mine: {function} is in the package 0 times"):
        package.noticed_by(_mutation(function, "return True"))


@pytest.mark.slow
def test_a_replacement_that_does_not_fit_is_an_error(package: PackageCopy) -> None:
    with pytest.raises(MutationError, match=f"mine: {_HOLDS} does not fit any more: TypeError"):
        package.noticed_by(_mutation(_HOLDS, "return original(number)"))


def test_every_mutation_changes_something_of_the_package(package: PackageCopy) -> None:
    for mutation in mutations():
        assert "original" in package.changed_by(mutation)


def test_no_two_mutations_have_one_name() -> None:
    names = [mutation.name for mutation in mutations()]
    assert len(names) == len(set(names))
