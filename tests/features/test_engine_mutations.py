"""The features notice when the engine does something else, and not only the unit tests do."""

from __future__ import annotations

import os

import pytest

from tests.features.engine_mutations import (
    Mutation,
    MutationError,
    Runs,
    mutations,
    unknown_names,
)

# Every mutation takes some seconds; CI runs those that went unnoticed once.
_ALL = os.environ.get("POLICYCTX_MUTATE") == "all"
RUN = [mutation for mutation in mutations() if _ALL or mutation.profile == "short"]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs.in_folder(tmp_path_factory.mktemp("engine"))


@pytest.mark.slow
@pytest.mark.parametrize("mutation", RUN, ids=lambda mutation: mutation.name)
def test_a_scenario_notices_the_mutation(mutation: Mutation, runs: Runs) -> None:
    assert runs.noticed_by(mutation) is not None


@pytest.mark.slow
def test_the_features_pass_without_a_mutation(runs: Runs) -> None:
    names = (name for mutation in RUN for name in mutation.features)
    used = dict.fromkeys(name.partition("::")[0] for name in names)
    # CI runs every feature in test_rules already, so one of each folder shows that this way works.
    some = {name.split("/")[0]: name for name in used}
    assert runs.first_failure(tuple(used if _ALL else some.values())) is None


def _mutation(function: str, instead: str) -> Mutation:
    return Mutation(name="mine", function=function, instead=instead, features=("ratio-gate",))


_HOLDS = "policyctx.planning.gates:_holds"


@pytest.mark.slow
def test_a_change_without_an_effect_is_not_noticed(runs: Runs) -> None:
    same = _mutation(_HOLDS, "return original(number, comparison, limit)")
    assert runs.noticed_by(same) is None


@pytest.mark.parametrize(
    "function",
    [
        "policyctx.planning.gates:no_such_function",
        "policyctx.planning.no_such_module:_holds",
        "policyctx.planning.gates:NoSuchClass._holds",
    ],
)
def test_a_function_that_does_not_exist_is_an_error(function: str, runs: Runs) -> None:
    with pytest.raises(MutationError, match=f"mine: {function} is in the package 0 times"):
        runs.noticed_by(_mutation(function, "return True"))


@pytest.mark.slow
def test_a_replacement_that_does_not_fit_is_an_error(runs: Runs) -> None:
    with pytest.raises(MutationError, match=f"mine: {_HOLDS} does not fit any more: TypeError"):
        runs.noticed_by(_mutation(_HOLDS, "return original(number)"))


def test_every_mutation_changes_something_of_the_package(runs: Runs) -> None:
    for mutation in mutations():
        assert "original" in runs.changed_by(mutation)


def test_every_name_in_a_mutation_is_known(runs: Runs) -> None:
    found = {one.name: unknown_names(one, runs.changed_by(one)) for one in mutations()}
    assert {name: unknown for name, unknown in found.items() if unknown} == {}


@pytest.mark.parametrize(
    ("instead", "unknown"),
    [
        ("return number > limit and comparison != original", set()),
        ("if no_parameter: return [own for own in {number, no_name}]", {"no_parameter", "no_name"}),
        ("return len(no_module.name), _shown, replace", {"no_module"}),
    ],
)
def test_a_name_that_neither_the_module_nor_the_function_has_is_unknown(
    instead: str, unknown: set[str], runs: Runs
) -> None:
    mutation = _mutation(_HOLDS, instead)
    assert unknown_names(mutation, runs.changed_by(mutation)) == unknown


def test_no_two_mutations_have_one_name() -> None:
    names = [mutation.name for mutation in mutations()]
    assert len(names) == len(set(names))
