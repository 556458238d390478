from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.sources import PolicySource, made_source, preset_names
from policyctx.tuning.evaluating import tried
from policyctx.tuning.settings import (
    SUMMARISE_ONLY,
    Incumbent,
    Setting,
    legend,
    space_for,
    tool_rules,
)
from tests.drawing import IS_LONG

HEAD = "apiVersion: policyctx/v1\nname: mine\n"
OFFLOADING = """
min_tokens: 1000
items: {tool_result: {offload: true}}
steps:
  - {name: retire, do: offload, select: {keep_recent: {items: 5, per: type}}}
"""
COMPACTING = "steps: [{name: fold, do: compact, when: {tokens: {at_least: 70%}}}]"
DROPPING = "steps: [{name: out, do: drop, select: {types: [thinking]}}]"


def incumbent(folder: Path, text: str) -> Incumbent:
    path = folder / "mine.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return Incumbent(str(path))


def made(folder: Path, text: str, **values: Any) -> Policy:
    """Return the policy that a setting makes of a policy."""
    setting = Setting.of(values)
    overlay = incumbent(folder, text).text(setting, name="made")
    return parsed_policy(made_source("made", overlay))


def test_the_empty_setting_is_the_incumbent(tmp_path: Path) -> None:
    assert (
        made(tmp_path, OFFLOADING).steps
        == parsed_policy(PolicySource("mine", HEAD + OFFLOADING)).steps
    )


def test_the_recency_keeps_among_whom_it_counts(tmp_path: Path) -> None:
    [step] = made(tmp_path, OFFLOADING, keep_recent=2).steps
    assert step.select.keep_recent is not None
    assert (step.select.keep_recent.items, step.select.keep_recent.per) == (2, "type")


def test_the_threshold_is_changed_where_the_policy_gives_it(tmp_path: Path) -> None:
    text = OFFLOADING.replace("offload: true", "offload: true, min_chars: 900")
    changed = made(tmp_path, text, min_tokens=50)
    rule = changed.items["tool_result"]
    assert (changed.min_tokens, rule.min_tokens, rule.min_chars) == (50, 50, None)
    assert rule.offload is True


def test_the_threshold_of_a_selection_is_changed(tmp_path: Path) -> None:
    text = OFFLOADING.replace("select: {", "select: {min_chars: 900, ")
    [step] = made(tmp_path, text, min_tokens=50).steps
    assert (step.select.min_tokens, step.select.min_chars) == (50, None)


@pytest.mark.parametrize(
    ("words", "gates"),
    [
        ("idle", [{"idle": {"over": "cache_ttl"}}]),
        ("tokens 50%", [{"tokens": {"at_least": "50%"}}]),
        ("idle or frees 20000", [{"idle": {"over": "cache_ttl"}}, {"frees": {"at_least": 20000}}]),
        ("none", []),
    ],
)
def test_gates_in_words_become_those_of_the_step(
    words: str, gates: list[dict[str, Any]], tmp_path: Path
) -> None:
    text = OFFLOADING.replace("select: {", "when: {turns: {over: 3}}, select: {")
    [step] = made(tmp_path, text, when=words).steps
    assert [gate.model_dump(exclude_none=True) for gate in step.when] == gates


@pytest.mark.parametrize("name", ["coding-agent", "small-context"])
def test_the_step_that_makes_a_request_fit_stays_as_it_is(name: str) -> None:
    setting = Setting.of({"when": "idle", "keep_recent": 7, "min_tokens": 50})
    overlay = Incumbent(name).overlay(setting, name="made")
    assert [step["name"] for step in overlay["steps"]] == ["retire-old-results"]


def test_a_policy_that_offloads_nothing_gets_a_step_before_its_summary(tmp_path: Path) -> None:
    steps = made(tmp_path, COMPACTING, min_tokens=100, keep_recent=1).steps
    assert [step.do for step in steps] == ["offload", "compact"]
    assert steps[1].name == "fold"


@pytest.mark.parametrize(("text", "shares"), [(COMPACTING, ["60%"]), (OFFLOADING, [None, "60%"])])
def test_the_share_of_the_window_at_which_it_summarises(
    text: str, shares: list[str | None], tmp_path: Path
) -> None:
    found = []
    for step in made(tmp_path, text, summaries="60%").steps:
        gate = step.when[0].tokens if step.when else None
        found.append(None if gate is None else f"{gate.model_dump()['at_least']}")
    assert found == shares


def test_without_summaries_no_step_compacts(tmp_path: Path) -> None:
    text = OFFLOADING + "  - {name: fold, do: compact, when: {tokens: {at_least: 70%}}}"
    assert [step.do for step in made(tmp_path, text, summaries="none").steps] == ["offload"]


@pytest.mark.parametrize(
    ("text", "names"),
    [(OFFLOADING, ["summarise"]), (COMPACTING, ["fold"]), (DROPPING, ["summarise"])],
)
def test_summarise_only_has_the_compacting_steps_alone(
    text: str, names: list[str], tmp_path: Path
) -> None:
    steps = made(tmp_path, text, **dict(SUMMARISE_ONLY.values)).steps
    assert [step.name for step in steps] == names
    assert all(step.action.takes_messages for step in steps)


def test_a_rule_for_one_tool(tmp_path: Path) -> None:
    assert (
        made(tmp_path, OFFLOADING, tool="mcp__web get keep").tools["mcp__web get"].offload is False
    )
    assert made(tmp_path, OFFLOADING, tool="Read 6000").tools["Read"].min_tokens == 6000


def test_a_value_of_the_environment_is_not_written_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET_NAME", "hunter2")
    text = OFFLOADING.replace("name: retire,", 'name: retire, placeholder: "${SECRET_NAME}",')
    overlay = incumbent(tmp_path, text).text(Setting.of({"keep_recent": 1}), name="made")
    assert "${SECRET_NAME}" in overlay
    assert "hunter2" not in overlay


@pytest.mark.slow
@pytest.mark.parametrize("preset", preset_names())
def test_every_setting_of_the_grid_and_beside_it_is_a_valid_policy(preset: str) -> None:
    found = Incumbent(preset)
    space = space_for(found)
    tools = tool_rules([frozenset({"Read"})] * 3)
    settings = list(dict.fromkeys([*space.grid(), *space.neighbours(Setting(), tools)]))
    first = preset_names().index(preset) % 3
    for setting in settings if IS_LONG else settings[first::3]:
        assert tried(found.text(setting, name="made")) is not None, str(setting)


def test_the_gate_that_weighs_prices_is_tried_without_prices_in_the_policy(
    tmp_path: Path,
) -> None:
    space = space_for(incumbent(tmp_path, OFFLOADING))
    gates = {one.get("when") for one in space.neighbours(Setting.of({"when": "frees 50000"}), {})}
    assert {"pays_back 25%", "idle or pays_back 25%"} <= gates | set(space.knobs["when"])
    assert tried(
        incumbent(tmp_path, OFFLOADING).text(Setting.of({"when": "pays_back 25%"}), name="x")
    )


def test_the_neighbours_of_a_setting_are_one_step_away(tmp_path: Path) -> None:
    space = space_for(incumbent(tmp_path, OFFLOADING.replace("1000", "800")))
    setting = Setting.of({"min_tokens": 400, "when": "frees 20000"})
    beside = space.neighbours(setting, {})
    assert {one.get("min_tokens") for one in beside} == {200, 400, None}
    gates = {one.get("when") for one in beside}
    assert {"idle or frees 20000", "frees 10000", "frees 50000", None} <= gates
    assert "tokens 50%" not in gates
    assert Setting.of({"offloading": "none"}) in beside
    others = [one for one in beside if one.get("offloading") is None]
    changed = [{knob for knob, _ in {*one.values} ^ {*setting.values}} for one in others]
    assert all(len(change) == 1 for change in changed)


def test_tools_of_three_sessions_have_rules_of_their_own() -> None:
    rules = tool_rules([frozenset({"Read", "Bash"})] * 2 + [frozenset({"Read"})])
    assert rules == {"tool": ("Read keep", "Read 0", "Read 6000")}
    assert tool_rules([frozenset({"Read"})] * 2) == {}


def test_the_legend_explains_each_knob_and_gate_once() -> None:
    found = [
        Setting.of({"when": "idle or frees 20000", "tool": "exec_command 0"}),
        Setting.of({"when": "none", "min_tokens": 100}),
        Setting.of({"when": "pays_back 20", "min_tokens": 200}),
    ]
    assert [one.split(":")[0] for one in legend(found)] == [
        "min_tokens N",
        "tool NAME N",
        "when none",
        "when idle",
        "when frees N",
        "when pays_back N",
    ]
    assert legend([Setting()]) == []
