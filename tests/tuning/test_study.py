from __future__ import annotations

import random
from functools import cache, partial

import pytest

from policyctx.planning.compiled import OffloadPolicy
from policyctx.tuning.outcomes import SessionOutcome
from policyctx.tuning.search import Constraints, folds
from policyctx.tuning.settings import Incumbent, Setting
from policyctx.tuning.study import MIN_PROJECTS, Study, StudyOptions, Tuned
from tests.drawing import in_profile
from tests.tuning.landscapes import Landscape, outcome, sessions

INCUMBENT = """
apiVersion: policyctx/v1
name: mine
min_tokens: 800
items: {tool_result: {offload: true}}
steps:
  - {name: retire, do: offload, select: {keep_recent: 5}}
  - {name: summarise, do: compact, when: {tokens: {at_least: 80%}}}
"""


pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def incumbent(tmp_path_factory: pytest.TempPathFactory) -> Incumbent:
    path = tmp_path_factory.mktemp("policies") / "mine.yaml"
    path.write_text(INCUMBENT, encoding="utf-8")
    return Incumbent(str(path))


def threshold(policy: OffloadPolicy) -> int:
    found = policy.policy.min_tokens
    assert isinstance(found, int)
    return found


def offloads(policy: OffloadPolicy) -> bool:
    return any(not step.action.takes_messages for step in policy.all_steps)


def cheapest_at_1500(policy: OffloadPolicy, session: int) -> SessionOutcome:
    """A valley at 1,500 tokens; regret falls with the threshold."""
    del session
    if not offloads(policy):
        return outcome(-0.5)
    return outcome(-3 + abs(threshold(policy) - 1500) / 500, max(0, 6000 - threshold(policy)))


@cache
def whole_study(incumbent: Incumbent) -> Tuned:
    return Study(incumbent, sessions(10), Landscape(cheapest_at_1500), StudyOptions()).tuned()


def test_the_best_threshold_of_a_known_valley_is_found(incumbent: Incumbent) -> None:
    tuned = whole_study(incumbent)
    assert tuned.winner is not None
    assert tuned.winner.setting == Setting.of({"min_tokens": 1500})
    assert tuned.tested is not None
    assert tuned.tested.holds
    assert tuned.comparisons[0].difference == pytest.approx(20 * (-3 - -1.6))


def test_the_front_has_no_dominated_setting_and_the_cheapest_comes_first(
    incumbent: Incumbent,
) -> None:
    tuned = whole_study(incumbent)
    points = [candidate.point for candidate in tuned.front]
    assert points == sorted(points)
    assert [regret for _, regret in points] == sorted((r for _, r in points), reverse=True)
    assert str(tuned.front[0].setting) == "min_tokens 1500"


DRAWS = in_profile(3, 12)


def noise(policy: OffloadPolicy, session: int, *, draw: int) -> SessionOutcome:
    """Every setting is as good as any other, except by chance."""
    steps = [(step.do, step.select.keep_recent, step.when) for step in policy.all_steps]
    chance = random.Random(f"{draw} {policy.policy.min_tokens} {steps} {session}")  # noqa: S311
    return outcome(-2 + chance.gauss(0, 1))


def test_what_looks_best_by_chance_alone_seldom_replaces_the_incumbent(
    incumbent: Incumbent,
) -> None:
    """Chance is beyond one standard error in one of six studies."""
    studies = [
        Study(incumbent, sessions(10), Landscape(partial(noise, draw=draw)), StudyOptions()).tuned()
        for draw in range(DRAWS)
    ]
    looks_better = [one.comparisons[0].difference < -5 for one in studies]
    assert any(looks_better)
    replaced = [one.winner is not None and one.winner.setting != Setting() for one in studies]
    assert sum(replaced) <= DRAWS // 3


def best_is_another_in_each_project(policy: OffloadPolicy, session: int) -> SessionOutcome:
    """One threshold is very good in the sessions of the first projects, and bad elsewhere."""
    is_first = session < 8
    is_small = offloads(policy) and threshold(policy) < 800
    return outcome((-9 if is_first else 2) if is_small else -1)


def test_a_setting_that_few_projects_pay_for_does_not_win(incumbent: Incumbent) -> None:
    landscape = Landscape(best_is_another_in_each_project)
    tuned = Study(incumbent, sessions(12), landscape, StudyOptions()).tuned()
    assert tuned.winner is not None
    assert tuned.winner.setting == Setting()


def test_the_choice_of_a_fold_is_made_before_its_sessions_are_replayed_for_it(
    incumbent: Incumbent,
) -> None:
    """A session that is left out must not change what the fold chooses."""
    found = sessions(10)
    [first, *_] = folds(found, 5, seed=0)

    def value(policy: OffloadPolicy, session: int) -> SessionOutcome:
        is_bad = session in first.test and offloads(policy) and threshold(policy) == 1500
        return outcome(1000) if is_bad else cheapest_at_1500(policy, session)

    tuned = Study(incumbent, found, Landscape(value), StudyOptions()).tuned()
    assert tuned.tested is not None
    assert tuned.tested.settings[0] == Setting.of({"min_tokens": 1500})
    assert 1500 not in {one.get("min_tokens") for one in tuned.tested.settings[1:]}
    assert not tuned.tested.holds


def test_calls_over_the_window_rule_a_setting_out(incumbent: Incumbent) -> None:
    def value(policy: OffloadPolicy, session: int) -> SessionOutcome:
        found = cheapest_at_1500(policy, session)
        overflows = session == 3 and offloads(policy) and threshold(policy) == 1500
        return outcome(found.net, found.regret_tokens, over_window=int(overflows))

    tuned = Study(incumbent, sessions(10), Landscape(value), StudyOptions()).tuned()
    assert all(one.setting.get("min_tokens") != 1500 for one in tuned.front)


def test_never_dearer_rules_a_setting_out(incumbent: Incumbent) -> None:
    def value(policy: OffloadPolicy, session: int) -> SessionOutcome:
        if session == 3 and offloads(policy) and threshold(policy) == 1500:
            return outcome(1)
        return cheapest_at_1500(policy, session)

    options = StudyOptions(constraints=Constraints(never_dearer=True))
    tuned = Study(incumbent, sessions(10), Landscape(value), options).tuned()
    assert all(one.setting.get("min_tokens") != 1500 for one in tuned.front)


def test_the_most_regret_is_a_multiple_of_the_incumbents(incumbent: Incumbent) -> None:
    options = StudyOptions(constraints=Constraints(max_regret=0.6))
    tuned = Study(incumbent, sessions(10), Landscape(cheapest_at_1500), options).tuned()
    most = 0.6 * tuned.incumbent.regret_tokens
    above = [one.setting for one in tuned.front if one.regret_tokens > most]
    assert set(above) <= {Setting()}
    assert len(tuned.front) > len(above)


@pytest.mark.parametrize("count", [2, 5])
def test_a_study_has_at_most_as_many_batches_as_it_says(incumbent: Incumbent, count: int) -> None:
    landscape, options = Landscape(cheapest_at_1500), StudyOptions(folds=count)
    Study(incumbent, sessions(10), landscape, options).tuned()
    assert 0 < landscape.batches <= options.most_batches


def test_an_interrupt_keeps_the_best_so_far(incumbent: Incumbent) -> None:
    landscape = Landscape(cheapest_at_1500)
    # The search is done, and a fold has begun.
    landscape.interrupt_after = whole_study(incumbent).replays - 40
    tuned = Study(incumbent, sessions(10), landscape, StudyOptions()).tuned()
    assert tuned.is_interrupted
    assert tuned.tested is None
    assert tuned.winner is not None
    assert tuned.winner.net < tuned.incumbent.net


def test_an_early_interrupt_keeps_the_incumbent(incumbent: Incumbent) -> None:
    landscape = Landscape(cheapest_at_1500)
    Study(incumbent, sessions(10), landscape, StudyOptions()).of([Setting()], range(20))
    landscape.interrupt_after = landscape.replays + 1
    tuned = Study(incumbent, sessions(10), landscape, StudyOptions()).tuned()
    assert tuned.is_interrupted
    assert tuned.winner is not None
    assert tuned.winner.setting == Setting()


def test_below_eight_projects_the_presets_are_ranked_and_nothing_is_searched(
    incumbent: Incumbent,
) -> None:
    landscape = Landscape(lambda policy, _: outcome(-len(policy.policy.description)))
    tuned = Study(incumbent, sessions(MIN_PROJECTS - 1), landscape, StudyOptions()).tuned()
    assert tuned.winner is None
    assert tuned.front == ()
    nets = [one.candidate.net for one in tuned.presets]
    assert nets == sorted(nets)
    assert {one.name for one in tuned.presets} > {incumbent.label, "coding-agent"}


def test_the_result_depends_on_the_seed_only(incumbent: Incumbent) -> None:
    first, second = (
        Study(
            incumbent, sessions(9), Landscape(partial(noise, draw=0)), StudyOptions(seed=5)
        ).tuned()
        for _ in range(2)
    )
    assert first == second
