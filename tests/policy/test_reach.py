"""What is held for impossible when a policy is read never happens when it is compiled."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from policyctx.definitions.items import WITHOUT_TOOL
from policyctx.planning.compiled import OffloadPolicy, Treatment
from policyctx.policy.findings import findings
from policyctx.policy.loading import loaded
from policyctx.policy.lookup import matches
from policyctx.policy.reach import (
    Checked,
    part,
    refusal,
    rules_that_speak,
    selected_types,
    taken_types,
    tools_left,
)
from policyctx.policy.sources import PolicySource
from policyctx.testing.strategies import policy_documents
from tests.policy.codes import FINDINGS

TOOLS = ["read", "reader", "web_get", "w", "bash"]
GLOBS = st.sampled_from(["read", "r*", "web_*", "w*", "*", "bash", "*e*"])
SOME_GLOBS = st.lists(GLOBS, min_size=1, max_size=2)
KINDS = ["tool_result", "recalled", "tool_call", "thinking", "image", "user_message"]
RULES = st.fixed_dictionaries(
    {},
    optional={
        "offload": st.booleans(),
        "pin": st.booleans(),
        "keep_recent": st.integers(0, 1),
        "placeholder": st.integers(0, 99).map(str),
    },
)
OWN = st.builds(
    lambda rule, match: rule | {"match": match},
    RULES,
    st.fixed_dictionaries(
        {"type": st.sampled_from(KINDS)},
        optional={"tool": SOME_GLOBS},
    ),
)
SELECTS = st.fixed_dictionaries(
    {},
    optional={
        "types": st.lists(st.sampled_from([*KINDS, "own", "*"]), max_size=2),
        "tools": SOME_GLOBS,
        "except_tools": SOME_GLOBS,
    },
)
STEPS = st.one_of(
    st.fixed_dictionaries(
        {
            "name": st.just("s"),
            "on": st.sampled_from(["model_call", "arrival"]),
            "do": st.sampled_from(["offload", "clear", "drop"]),
            "select": SELECTS,
        },
    ),
    st.fixed_dictionaries(
        {
            "name": st.just("s"),
            "do": st.just("offload"),
            "select": SELECTS.map(lambda select: select | {"ephemeral": True}),
        }
    ),
)
SMALL = st.builds(
    lambda own, items, tools, step: {
        "apiVersion": "policyctx/v1",
        "name": "small",
        "placeholder": "top",
        "items": items | {"own": own},
        "tools": tools,
        "steps": [step],
    },
    OWN,
    st.dictionaries(st.sampled_from(KINDS), RULES),
    st.dictionaries(GLOBS, RULES, max_size=3),
    STEPS,
)


def read(value: dict[str, Any]) -> Checked:
    # JSON is YAML.
    policy, root = loaded(
        PolicySource("p.yaml", json.dumps(value, ensure_ascii=False)), variables={}
    )
    return Checked(root, policy, {})


def treatments(checked: Checked, item_type: str, among: Sequence[str] = ()) -> Iterator[Treatment]:
    """How the only step treats the items of a type that it may take, of all tools or of some."""
    compiled, step = OffloadPolicy(checked.policy), checked.policy.steps[0]
    rule = checked.policy.items.get(item_type)
    globs = rule.match.tool if rule and rule.match else None
    tools = [] if checked.kind(item_type) in WITHOUT_TOOL else TOOLS
    for tool in [*tools, *([None] if not tools or checked.kind(item_type) == "image" else [])]:
        if (globs is None or matches(tool, globs)) and (not among or matches(tool, among)):
            treatment = compiled.treatment(step, item_type, tool)
            if treatment is not None and treatment.refusal is None:
                yield treatment


@given(SMALL)
def test_a_step_takes_nothing_of_a_type_that_it_can_never_take(value: dict[str, Any]) -> None:
    checked = read(value)
    [step] = checked.policy.steps
    for item_type in checked.types:
        is_selected = item_type in selected_types(checked, step)
        if not is_selected or refusal(checked, step, item_type) is not None:
            assert not list(treatments(checked, item_type)), item_type


@given(SMALL)
def test_a_step_takes_nothing_of_a_tool_that_it_can_never_take(value: dict[str, Any]) -> None:
    checked = read(value)
    [step] = checked.policy.steps
    for index, glob in enumerate(step.select.tools or ()):
        if not taken_types(checked, part(step, "tools", index)):
            for item_type in selected_types(checked, step):
                assert not list(treatments(checked, item_type, [glob])), item_type


@given(SMALL)
def test_a_step_leaves_only_placeholders_that_reach_predicts(value: dict[str, Any]) -> None:
    checked = read(value)
    [step] = checked.policy.steps
    for item_type in selected_types(checked, step):
        left = tools_left(checked, step, item_type)
        known = [w for _, w in rules_that_speak(checked, item_type, left, "placeholder")]
        for treatment in treatments(checked, item_type):
            assert treatment.wording.shown in known


@given(policy_documents())
def test_every_policy_is_analysed_completely(value: dict[str, Any]) -> None:
    checked = read(value)
    found = findings(checked.root, checked.policy)
    assert {finding.code for finding in found} <= set(FINDINGS)
