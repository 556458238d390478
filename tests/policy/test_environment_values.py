"""No value of an environment variable is part of a message about a policy."""

from __future__ import annotations

import json
from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest

from policyctx.errors import Diagnostic, PolicyError
from policyctx.policy.agents import policy_for, read_agents
from policyctx.policy.findings import findings
from policyctx.policy.loading import resolved, validated
from policyctx.policy.models import Policy
from policyctx.policy.nodes import keys_below
from policyctx.policy.sources import PolicySource
from policyctx.policy.writing import origins, resolved_yaml
from tests.policies import HEAD
from tests.policy.test_diagnostics import flow

# Each is wrong somewhere: a word, a text with a bad field, a path, a number, a share, a variable.
WRONG = (
    *("MARKER", "{MARKER} MARKER}", "../MARKER/MARKER", "-987654", "98765.4321", "987%", "98765s"),
    *("${MARKER}", "MARKER\nMARKER 'MARKER'"),
)
MARKERS = ("MARKER", "98765", "987%")
KEYS = sorted(keys_below(Policy))


def outputs(text: str, value: str) -> list[Diagnostic]:
    """What `check` reports about a policy in which `${SECRET}` stands for a value."""
    try:
        root = resolved(PolicySource("p.yaml", HEAD + text), variables={"SECRET": value})
        return findings(root, validated(root))
    except PolicyError as error:
        assert "MARKER" not in "".join(format_exception(error))  # noqa: PT017 - may not be raised
        return list(error.diagnostics)


def is_shown(found: list[Diagnostic]) -> bool:
    return any(marker in str(found) for marker in MARKERS)


@pytest.mark.slow
@pytest.mark.parametrize("value", WRONG)
def test_no_diagnostic_shows_the_value_of_a_variable(value: str) -> None:
    places = [flow([*key]).replace("1", '"${SECRET}"', 1) for key in KEYS]
    places += [flow([*key]).replace("1", '["${SECRET}"]', 1) for key in KEYS]
    refused = 0
    for text in places:
        if "SECRET" in text and not text.startswith(("apiVersion", "name")):
            found = outputs(text, value)
            assert not is_shown(found), (text, found)
            refused += any("SECRET" in str(diagnostic) for diagnostic in found)
    assert refused > 20


STEP = "items: {tool_result: {offload: true}}\nsteps:\n"


@pytest.mark.parametrize(
    ("text", "value", "sentence"),
    [
        ("min_chars: ${SECRET}", "MARKER", "a whole number, got the value of ${SECRET}"),
        ("min_chars: ${SECRET:-5}", "98765.4", "a whole number, got the value of ${SECRET:-5}"),
        ("min_chars: ${SECRET}", "-98765", "expected 0 or more, got the value of ${SECRET}"),
        ("store: {format: '${SECRET}'}", "MARKER", "the value of ${SECRET} is none of text"),
        ("extends: ${SECRET}", "MARKER", "no policy ${SECRET} to extend"),
        ("placeholder: ${SECRET}", "a {MARKER}", "the value of ${SECRET} has an unknown field"),
        ("store: {path: '${SECRET}'}", "../MARKER", "expected a path below the root"),
        ("store: {mode: '${SECRET}'}", "MARKER", "expected a quoted octal mode"),
        (
            STEP + "- {name: '${SECRET}', do: offload}\n- {name: '${SECRET}', do: offload}",
            "marker-98765",
            "two steps are called ${SECRET}",
        ),
        (
            STEP + "- {name: '${SECRET}', do: drop, select: {types: []}}",
            "marker-98765",
            "step ${SECRET} can never take anything",
        ),
        (
            STEP + "- {name: a, do: drop, select: {types: ['${SECRET}']}}",
            "MARKER",
            "the value of ${SECRET} is none of system_prompt",
        ),
        (
            STEP + "- {name: a, do: offload, select: {tools: [b], except_tools: ['${SECRET}']}}",
            "MARKER",
            "${SECRET} excepts nothing",
        ),
        (
            STEP + "- {name: a, do: offload, when: {tokens: {at_least: '${SECRET}'}}}",
            "98765432",
            "at_least ${SECRET} is more than the context window",
        ),
        (
            STEP + "- {name: a, do: offload, when: {tokens: {under: 1, over: '${SECRET}'}}}",
            "98.7650%",
            "over ${SECRET} (${SECRET} tokens)",
        ),
        (
            STEP + "- {name: a, do: clear}\nplaceholder: '${SECRET}'",
            "MARKER {path}",
            "`clear` saves nothing",
        ),
    ],
)
def test_a_diagnostic_names_the_variable(text: str, value: str, sentence: str) -> None:
    found = outputs(text, value)
    assert not is_shown(found)
    assert "marker-98765" not in str(found)
    assert sentence in " ".join(map(str, found))


def test_a_policy_that_extends_a_variable_does_not_show_it(tmp_path: Path) -> None:
    (tmp_path / "MARKER").mkdir()
    path = str(tmp_path / "own.yaml")
    for value, said in (
        ("MARKER.yaml", "no policy ${SECRET} to extend"),
        ("MARKER", "${SECRET} names a file that is a folder"),
        ("MARKER\0", "no policy ${SECRET} to extend"),
    ):
        source = PolicySource("own.yaml", f"{HEAD}extends: ${{SECRET}}\n", path)
        with pytest.raises(PolicyError) as raised:
            resolved(source, variables={"SECRET": value})
        assert "MARKER" not in str(raised.value)
        assert said in str(raised.value)


def test_a_step_of_the_base_that_a_variable_names_is_not_shown(tmp_path: Path) -> None:
    base = f"{HEAD}steps: [{{name: '${{SECRET}}', do: offload}}]\n"
    (tmp_path / "base.yaml").write_text(base, encoding="utf-8")
    for steps in (
        "[{name: '${OTHER}', remove: true}]",
        "[{name: x, do: offload, before: '${OTHER}'}]",
        "[{name: x, do: offload, before: nowhere}]",
        "[{name: '${SECRET}', do: offload, before: x}]",
    ):
        text = f"{HEAD}extends: ./base.yaml\nsteps: {steps}\n"
        source = PolicySource("own.yaml", text, str(tmp_path / "own.yaml"))
        with pytest.raises(PolicyError) as raised:
            resolved(source, variables={"SECRET": "marker-1", "OTHER": "marker-2"})
        assert "marker" not in str(raised.value)
        assert "${" in str(raised.value)


@pytest.mark.parametrize("value", ["MARKER", "MARKER/"])
def test_an_entry_for_an_agent_does_not_show_the_value(
    value: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", value)
    text = 'apiVersion: policyctx/v1\nagents: {a: "${SECRET}", b: {min_chars: "${SECRET}"}}\n'
    file = read_agents(PolicySource("policyctx.yaml", text))
    for agent in ("a", "b"):
        with pytest.raises(PolicyError) as raised:
            policy_for(agent, file)
        assert "MARKER" not in str(raised.value)
        assert "${SECRET}" in str(raised.value)


def test_a_policy_is_shown_with_its_variables() -> None:
    text = """\
description: "${SECRET}"
min_tokens: ${SIZE:-5}
min_chars: ~
store: {root: "${ROOT:-here}"}
steps: [{name: "${STEP}", do: drop, select: {types: ["*"], tools: "${TOOL}"}}]
"""
    variables = {"SECRET": "MARKER", "SIZE": "98765", "STEP": "marker", "TOOL": "*"}
    root = resolved(PolicySource("p.yaml", HEAD + text), variables=variables)
    policy = validated(root)
    shown = resolved_yaml(root)
    report: list[Any] = [(key, value) for key, value, _ in origins(root)]
    for output in (shown, json.dumps(report), json.dumps(root.as_written())):
        assert "MARKER" not in output
        assert "98765" not in output
        assert "marker" not in output
    assert "description: ${SECRET}" in shown
    assert "root: here" in shown  # the default in the file is not a secret
    again = resolved(PolicySource("shown.yaml", shown), variables=variables)
    assert validated(again) == policy


def test_a_default_in_the_file_is_shown_as_written() -> None:
    found = outputs("min_chars: ${OTHER:-many}", "MARKER")
    assert "got 'many'" in str(found[0])
