from __future__ import annotations

from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from policyctx.tuning.search import costly, folds, stratified, subset
from tests.tuning.landscapes import sessions


@given(st.integers(1, 20), st.integers(1, 4), st.integers(2, 8), st.integers(0, 99))
def test_no_project_is_in_both_parts_of_a_fold_and_each_session_is_tested_once(
    projects: int, each: int, count: int, seed: int
) -> None:
    found = sessions(projects, each=each)
    project_of = {one.number: one.project for one in found}
    made = folds(found, count, seed=seed)
    for fold in made:
        trained, tested = ({project_of[n] for n in part} for part in fold)
        assert not trained & tested
        assert sorted((*fold.train, *fold.test)) == list(range(len(found)))
    assert sorted(n for fold in made for n in fold.test) == list(range(len(found)))
    assert len(made) == min(count, projects)


def test_the_beginning_of_a_stratified_list_has_all_kinds() -> None:
    found = [replace(one, format="ab"[one.number % 2], calls=one.number) for one in sessions(12)]
    ordered = stratified(found, seed=1)
    assert sorted(ordered) == list(range(24))
    first = subset(ordered, 0.25, among=ordered)
    kinds = Counter((found[n].format, found[n].calls // 8) for n in first)
    assert set(kinds.values()) == {1}
    assert len(kinds) == 6


def test_the_subset_of_a_fold_is_a_part_of_the_subset_of_all() -> None:
    ordered = stratified(sessions(12), seed=1)
    kept = {*ordered[3:]}
    assert subset(ordered, 0.25, among=kept) == subset(ordered, 0.25, among=ordered)[3:]
    assert subset(ordered, 1.0, among=kept) == tuple(ordered[3:])
    assert subset(ordered, 0.1, among=kept) == (ordered[3],)


def test_the_order_is_drawn_by_the_seed() -> None:
    found = sessions(12)
    assert stratified(found, seed=1) == stratified(found, seed=1)
    assert stratified(found, seed=1) != stratified(found, seed=2)


def test_the_names_of_projects_change_no_fold() -> None:
    found = sessions(5)
    renamed = [replace(one, project=f"/{9 - one.number}/{one.project}") for one in found[::2]]
    assert folds(found[::2], 3, seed=1) == folds(renamed, 3, seed=1)


def test_the_fewest_sessions_with_most_of_the_dollars_stand_for_all() -> None:
    found = sessions(5)
    dollars = [0.1, 40.0, 0.1, 0.0, 30.0, 0.2, 25.0, 4.0, 0.3, 0.3]
    assert [one.number for one in costly(found, dollars)] == [1, 4, 6]
    assert costly(found, [0.0] * 10) == found
    assert costly(found, [1.0] * 10) == found
