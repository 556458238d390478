"""Each consumer of a definition covers exactly what is defined; none keeps its own list."""

from __future__ import annotations

import inspect
import json
from textwrap import dedent
from typing import Any, get_args

import pytest

from policyctx.definitions.actions import BY_STATE, ITEM_ACTIONS, STEP_ACTIONS, Action, Do
from policyctx.definitions.items import BUILT_IN_TYPES, ITEM_TYPES, PlainValue
from policyctx.definitions.names import EXCERPT_FIELDS, FIELDS, PLACEHOLDER_FIELDS
from policyctx.definitions.tokenizers import TOKENIZERS, Tokenizer
from policyctx.planning.gates import Measures
from policyctx.planning.placeholders import _VALUES
from policyctx.policy.findings import findings
from policyctx.policy.loading import validated
from policyctx.policy.models.gates import COMPARISONS, GATES, Gates, Kind, Limits, Nothing
from policyctx.policy.models.steps import Select, Step
from policyctx.policy.nodes import model_in, read_yaml
from policyctx.policy.sources import PolicySource
from policyctx.testing.observing import rules_of
from policyctx.testing.strategies.policies import _NUMBERS
from policyctx.tokens.encoders import VOCABULARIES


def test_each_gate_has_its_definition_and_its_measure() -> None:
    measures = {
        name
        for name, _ in inspect.getmembers(Measures, inspect.isfunction)
        if not name.startswith("_") and name not in {"verdicts", "left_without"}
    }
    assert {name.replace(".", "_") for name in GATES} == measures
    assert list(dict.fromkeys(name.partition(".")[0] for name in GATES)) == [*Gates.model_fields]


def test_each_key_of_a_gate_that_is_compared_is_a_comparison() -> None:
    assert set(COMPARISONS) == set(Limits.model_fields)
    assert Limits.at_least_one == tuple(COMPARISONS)


def test_each_kind_of_number_can_be_drawn() -> None:
    assert set(_NUMBERS) == set(get_args(Kind))


def compared_in_example(name: str) -> PlainValue:
    """Return a limit from the example of a gate; None for a gate that compares no number."""
    model: Any = Gates
    for part in name.split("."):
        field = model.model_fields[part]
        model = model_in(field.annotation)
    if model is None or not issubclass(model, Limits):
        return None
    assert model.at_least_one == Limits.at_least_one
    return next(limit for key, limit in field.examples[0].items() if key in COMPARISONS)


@pytest.mark.parametrize("name", [name for name in GATES if compared_in_example(name) is not None])
def test_a_contradictory_gate_is_reported(name: str) -> None:
    limit = compared_in_example(name)
    gate = f"{{over: {limit}, under: {limit}}}"
    for key in reversed(name.split(".")):
        gate = f"{{{key}: {gate}}}"
    prices = "{input: 3.0, cache_write: 3.75, cache_read: 0.3, output: 15.0}"
    document = f"""
        apiVersion: policyctx/v1
        name: test
        model: {{price: {prices}}}
        items: {{tool_result: {{offload: true}}}}
        steps: [{{name: s, do: offload, when: {gate}}}]
    """
    tree = read_yaml(PolicySource("test.yaml", dedent(document)))
    found = [d.sentence for d in findings(tree, validated(tree)) if d.code == "PC308"]
    assert len(found) == 1
    assert found[0].startswith(f"the gate `{name}` can never open: no number is over")


@pytest.mark.parametrize("name", GATES)
def test_each_gate_is_a_rule_of_the_coverage(name: str) -> None:
    *above, last = name.split(".")
    model: Any = Gates
    for part in above:
        model = model_in(model.model_fields[part].annotation)
    gate: PlainValue = {last: model.model_fields[last].examples[0]}
    for part in reversed(above):
        gate = {part: gate}
    document = {"steps": [{"name": "s", "do": "offload", "when": gate}]}
    rules = rules_of(read_yaml(PolicySource("test.yaml", json.dumps(document))))
    path = ("steps", "s", "when", *above, last)
    assert any(rule.path[: len(path)] == path for rule in rules)


def test_each_reason_for_a_missing_number_has_a_sentence() -> None:
    assert all(nothing.sentence for nothing in Nothing)


def test_each_action_of_a_step_has_its_word() -> None:
    assert tuple(STEP_ACTIONS) == get_args(Do)
    assert set(STEP_ACTIONS.values()) == set(Action) - {Action.KEEP}
    assert set(BY_STATE.values()) == set(Action)


def test_the_reference_describes_each_action() -> None:
    described = str(Step.model_fields["do"].description)
    assert all(f"`{do}`: {action.meaning}." in described for do, action in STEP_ACTIONS.items())


@pytest.mark.parametrize("action", STEP_ACTIONS.values())
def test_the_keys_that_an_action_does_not_use_are_keys_of_the_language(action: Action) -> None:
    assert set(action.keys_without_use) <= set(Step.model_fields)
    assert set(action.selection_without_use) <= set(Select.model_fields)


def test_each_built_in_type_is_defined() -> None:
    assert tuple(ITEM_TYPES) == BUILT_IN_TYPES


def test_each_field_of_a_placeholder_has_a_value() -> None:
    assert {*_VALUES} | EXCERPT_FIELDS == set(FIELDS)
    assert tuple(FIELDS) == PLACEHOLDER_FIELDS


def test_each_tokenizer_has_a_vocabulary_or_needs_none() -> None:
    assert tuple(TOKENIZERS) == get_args(Tokenizer)
    without = {name for name, how in TOKENIZERS.items() if how.is_approximate or how.is_remote}
    assert set(VOCABULARIES) == set(TOKENIZERS) - without


def test_actions_on_items_leave_a_placeholder_or_nothing() -> None:
    assert all(action.leaves_placeholder != action.leaves_nothing for action in ITEM_ACTIONS)


def test_an_action_is_written_to_json_by_its_name() -> None:
    assert json.dumps([Action.KEEP, Action.DROP]) == '["keep", "drop"]'
