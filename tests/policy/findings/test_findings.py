from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.errors import Diagnostic
from policyctx.policy.consistency import inconsistencies, wordings_without_source
from policyctx.policy.findings import findings
from policyctx.policy.loading import extended, resolved
from policyctx.policy.models import Policy
from policyctx.policy.nodes import read_yaml
from policyctx.policy.reach import Checked
from policyctx.policy.sources import PolicySource, policy_source, preset_names
from tests.policies import HEAD
from tests.policy.codes import FINDINGS


def cases() -> list[tuple[str, list[str]]]:
    text = (Path(__file__).parent / "policies_with_findings.txt").read_text(encoding="utf-8")
    found = []
    for block in text.split("\n\n")[1:]:
        lines = [line for line in block.strip("\n").split("\n") if not line.startswith("# ")]
        policy = [line for line in lines if not line.startswith("=> ")]
        expected = [line.removeprefix("=> ") for line in lines if line.startswith("=> ")]
        found.append(("\n".join(policy), expected))
    return found


def found_in(text: str, *, advice: bool = False) -> list[Diagnostic]:
    root = extended(PolicySource("p.yaml", HEAD + text + "\n"), {}).root
    policy = Policy.model_validate(root.plain())
    assert not [*inconsistencies(root), *wordings_without_source(Checked(root, policy, {}))]
    return findings(root, policy, advice=advice)


@pytest.mark.parametrize(("text", "expected"), cases())
def test_a_policy_has_exactly_these_findings(text: str, expected: list[str]) -> None:
    assert [str(found).removeprefix("p.yaml:") for found in found_in(text)] == expected


def test_every_code_is_found_and_missed_by_some_policy() -> None:
    found = [{line.split(": ")[1] for line in expected} for _, expected in cases()]
    assert set().union(*found) == {*FINDINGS} - {"PC334"}
    assert set() in found


def test_a_finding_is_a_warning() -> None:
    [found] = found_in("steps: [{name: a, do: offload}]")
    assert found.severity == "warning"


@pytest.mark.parametrize(
    ("step", "is_found"),
    [
        ("select: {keep_recent: 3}", True),
        ("select: {types: [tool_call, tool_result], keep_recent: 3}", True),
        ("select: {superseded: true}", True),
        ("select: {ephemeral: true}", True),
        ("select: {keep_recent: 0}", False),
        ("select: {min_tokens: 200}", False),
        ("select: {keep_recent: 3}, when: {idle: {at_least: 5m}}", False),
        ("on: arrival", False),
        ("on: overflow, select: {keep_recent: 3}", False),
    ],
)
def test_a_step_without_a_gate_that_takes_what_was_sent_has_a_notice(
    step: str, *, is_found: bool
) -> None:
    text = f"items: {{tool_result: {{offload: true}}}}\nsteps: [{{name: a, do: offload, {step}}}]"
    found = found_in(text, advice=True)
    assert [one.severity for one in found if one.code == "PC334"] == ["notice"] * is_found
    assert "PC334" not in {one.code for one in found_in(text)}


@pytest.mark.parametrize(
    ("selected", "is_found"),
    [("tool_result", True), ("tool_call", False), ("assistant_message", False)],
)
def test_the_keep_recent_of_a_tool_counts_for_a_step_that_takes_its_results(
    selected: str, *, is_found: bool
) -> None:
    text = (
        "tools: {Read: {offload: true, keep_recent: 3}}\n"
        f"steps: [{{name: a, do: drop, select: {{types: [{selected}]}}}}]"
    )
    found = {one.code for one in found_in(text, advice=True)}
    assert ("PC334" in found) == is_found


@pytest.mark.parametrize("code", FINDINGS)
def test_a_code_is_explained_in_a_line_or_two(code: str) -> None:
    assert FINDINGS[code].endswith(".")
    assert FINDINGS[code].count("\n") <= 1


@pytest.mark.parametrize("name", preset_names())
def test_a_preset_has_no_findings(name: str) -> None:
    root = resolved(policy_source(name))
    assert findings(root, Policy.model_validate(root.plain())) == []


def test_a_finding_points_into_the_file_that_was_extended(tmp_path: Path) -> None:
    (tmp_path / "base.yaml").write_text(f"{HEAD}steps: [{{name: a, do: offload}}]\n")
    own = tmp_path / "own.yaml"
    own.write_text(f"{HEAD}extends: ./base.yaml\nitems: {{user_message: {{keep_recent: 1}}}}\n")
    root = resolved(policy_source(str(own)))
    places = [found.place for found in findings(root, Policy.model_validate(root.plain()))]
    assert {(Path(place.file).name, place.line) for place in places} == {
        ("base.yaml", 3),
        ("own.yaml", 4),
    }


@pytest.mark.parametrize(
    "exception",
    ["tools: {Read: {offload: false}}", "tools: {Read: {pin: true}}", "items: {page: {pin: true}}"],
)
def test_an_exception_to_what_an_inherited_step_names_is_no_finding(
    tmp_path: Path, exception: str
) -> None:
    base = f"""{HEAD}
items: {{tool_result: {{offload: true}}, page: {{match: {{type: tool_result, tool: "web_*"}}}}}}
steps: [{{name: a, do: offload, select: {{types: [page, tool_result], tools: [Read, "web_*"]}}}}]
"""
    (tmp_path / "base.yaml").write_text(base)
    own = tmp_path / "own.yaml"
    own.write_text(f"{HEAD}extends: ./base.yaml\n{exception}\n")
    root = resolved(policy_source(str(own)))
    assert findings(root, Policy.model_validate(root.plain())) == []


@pytest.mark.slow
def test_a_policy_far_larger_than_a_person_writes_is_looked_at_in_part() -> None:
    # Held pair by pair, and step by type, this one would take minutes.
    types = "".join(
        f"  t{i}: {{offload: true, match: {{type: tool_result, tool: 'a*{i}*b*'}}}}\n"
        for i in range(400)
    )
    steps = "".join(
        f"  - {{name: s{i}, do: offload, select: {{tools: ['a*{i}*b*']}}}}\n" for i in range(400)
    )
    root = read_yaml(PolicySource("p.yaml", f"{HEAD}items:\n{types}steps:\n{steps}"))
    assert findings(root, Policy.model_validate(root.plain()))
