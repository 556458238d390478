from __future__ import annotations

import json
from typing import Any

from hypothesis import given

from policyctx.policy.loading import parsed_policy, resolved
from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import PolicySource, policy_source, preset_names
from policyctx.policy.writing import origins, resolved_yaml
from policyctx.testing.strategies import policy_documents
from tests.policies import HEAD


@given(policy_documents())
def test_a_shown_policy_loads_to_the_same_policy(value: dict[str, Any]) -> None:
    # JSON is YAML, and its writer knows nothing of ours.
    source = PolicySource("p.yaml", json.dumps(value, ensure_ascii=False))
    shown = resolved_yaml(resolved(source))
    assert parsed_policy(PolicySource("shown.yaml", shown)) == parsed_policy(source)
    assert read_yaml(PolicySource("shown.yaml", shown)).plain() == value


def test_every_preset_is_shown_unchanged() -> None:
    for name in preset_names():
        source = policy_source(name)
        shown = PolicySource("shown.yaml", resolved_yaml(resolved(source)))
        assert parsed_policy(shown) == parsed_policy(source)


def test_every_value_has_its_origin() -> None:
    steps = "  - name: first\n    do: offload\n    select: {types: [image]}\n"
    text = f"{HEAD}tools: {{}}\nsteps:\n{steps}"
    rows = [
        (key, value, str(place))
        for key, value, place in origins(read_yaml(PolicySource("p", text)))
    ]
    assert rows == [
        ("apiVersion", "policyctx/v1", "p:1:13"),
        ("name", "test", "p:2:7"),
        ("tools", {}, "p:3:8"),
        ("steps.first.name", "first", "p:5:11"),
        ("steps.first.do", "offload", "p:6:9"),
        ("steps.first.select.types.0", "image", "p:7:22"),
    ]
