"""Which changes of one value there are of a policy."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from pydantic import TypeAdapter

from policyctx.policy.loading import resolved, validated
from policyctx.policy.models.base import ByteSize, Count, Duration, Ratio
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicySource
from policyctx.testing.judging import Task
from policyctx.testing.mutants import Change, Mutants, mutants_of, neighbours
from policyctx.testing.policies import ChangedPolicy

HEAD = "apiVersion: policyctx/v1\nname: x\n"


def tree(text: str, **variables: str) -> Node:
    return resolved(PolicySource("x.yaml", HEAD + text), variables=variables)


def mutants(text: str) -> Mutants:
    return mutants_of(tree(text))


def told(text: str) -> list[str]:
    return [mutant.told for mutant in mutants(text).all]


@pytest.mark.parametrize(
    ("value", "annotation", "expected"),
    [
        (5, Count, [6, 4]),
        (True, bool, [False]),
        (0.2, Ratio, [0.21, 0.19]),
        ("20%", Ratio, ["21%", "19%"]),
        ("5m", Duration, ["301s", "299s"]),
        ("1KiB", ByteSize, ["1025B", "1023B"]),
        ("b", Literal["a", "b", "c"], ["a", "c"]),
        ("b", Literal["a", "b"] | None, ["a"]),
        ("[{path}] x", str, ["[{path}] y"]),
        ("[{path}]", str, ["x{path}]"]),
        ("20%", str, ["x0%"]),
        ("从前 {path}", str, ["x前 {path}"]),
        (None, Any, []),
    ],
)
def test_the_values_next_to_a_value(value: Any, annotation: Any, expected: list[object]) -> None:
    assert list(neighbours(value, annotation)) == expected


STEP = "steps: [{name: s, do: offload"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("min_chars: 100\n", ["min_chars: 100 → 101", "min_chars: 100 → 99"]),
        ("min_tokens: 10%\n", ["min_tokens: '10%' → '11%'", "min_tokens: '10%' → '9%'"]),
        ("tools: {'a*': {pin: true}}\n", ["tools.a* left out", "tools.a*.pin: true → false"]),
        (
            "items: {tool_result: {keep_recent: 3}}\n",
            [
                "items.tool_result.keep_recent: 3 → 4",
                "items.tool_result.keep_recent: 3 → 2",
            ],
        ),
        (
            "items: {web: {match: {type: tool_result, tool: [a, b]}}}\n",
            [
                "items.web left out",
                "items.web.match.tool.a left out",
                "items.web.match.tool.b left out",
            ],
        ),
        ("placeholder: old\n", ["placeholder: old → xld"]),
        ("store: {on_failure: keep}\n", []),
    ],
)
def test_the_changes_of_a_key(text: str, expected: list[str]) -> None:
    assert [one for one in told(text) if "on_failure" not in one] == expected


def test_mutants_remove_a_step_and_change_its_values() -> None:
    changed = told(f"{STEP}, select: {{types: [tool_result], order: oldest}}}}]\n")
    assert changed == [
        "steps.s left out",
        "steps.s.do: offload → clear",
        "steps.s.do: offload → drop",
        "steps.s.select.types.tool_result left out",
        "steps.s.select.order: oldest → largest",
        "steps.s.select.order: oldest → by_type",
    ]


def test_a_limit_is_taken_in_or_left_out() -> None:
    when = ", when: [{messages: {at_least: 4}}, {tokens: {under: 50%}}]}]\n"
    changed = [one for one in told(STEP + when) if ".when." in one]
    assert changed == [
        "steps.s.when.0.messages.at_least → over",
        "steps.s.when.0.messages.at_least: 4 → 5",
        "steps.s.when.0.messages.at_least: 4 → 3",
        "steps.s.when.1.tokens.under → at_most",
        "steps.s.when.1.tokens.under: '50%' → '51%'",
        "steps.s.when.1.tokens.under: '50%' → '49%'",
    ]


def test_names_and_values_that_scenarios_replace_are_not_mutated() -> None:
    text = "description: y\nmodel: {tokenizer: approximate}\n"
    assert told(f"{text}store: {{root: a, session_id: b, sync: never}}\n") == []


def test_a_tool_that_is_called_like_a_key_is_changed() -> None:
    assert told("tools: {name: {pin: true}}\n") == [
        "tools.name left out",
        "tools.name.pin: true → false",
    ]


def test_a_change_that_leaves_no_policy_is_counted() -> None:
    found = mutants("min_chars: 0\n")
    assert ([mutant.told for mutant in found.all], found.invalid) == (["min_chars: 0 → 1"], 1)


def test_a_change_that_changes_nothing_is_counted() -> None:
    found = mutants("tools: {a: {}}\n")
    assert [mutant.told for mutant in found.all] == ["tools.a left out"]
    found = mutants("model: {cache: {ttl: 5m}}\nstore: {mode: '0600'}\n")
    assert found.same == 0


def test_a_mutant_has_the_place_of_its_key() -> None:
    [mutant, _] = mutants("tools:\n  a:\n    pin: true\n").all
    assert (mutant.file, mutant.line, mutant.rule) == ("x.yaml", 4, ("tools", "a"))


VARIABLE = "min_chars: ${SIZE:-100}\n"


@pytest.mark.parametrize(("given", "expected"), [({}, 101), ({"SIZE": "500"}, 500)])
def test_the_value_of_a_variable_is_not_mutated(given: dict[str, str], expected: int) -> None:
    [more, _] = mutants(VARIABLE).all
    changed = more.change.applied(tree(VARIABLE, **given))
    assert validated(changed).min_chars == expected


def test_a_change_leaves_the_tree_as_it_was() -> None:
    root = tree("tools: {a: {pin: true}}\n")
    changed = Change(("tools", "a"), "remove").applied(root)
    assert validated(changed).tools == {}
    assert list(validated(root).tools) == ["a"]


@pytest.mark.parametrize("before", [5, 5.0, True, "5", None])
def test_a_change_goes_through_json(before: str | float | bool | None) -> None:
    change = Change(("steps", 0, "when", "tokens", "over"), "rename", before, "at_least")
    tasks = TypeAdapter(list[Task])
    [read] = tasks.validate_json(
        tasks.dump_json([Task(1, ChangedPolicy("p.yaml", change), ("a",))])
    )
    assert read.policy.change == change
    assert type(read.policy.change.before) is type(before)
