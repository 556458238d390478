from __future__ import annotations

import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from policyctx.errors import PolicyError
from policyctx.policy.agents import agents_schema, entry_policy, read_agents
from policyctx.policy.nodes import read_yaml
from policyctx.policy.sources import PolicySource
from scripts.generate import text_of

ROOT = Path(__file__).parents[2]
VALIDATOR = Draft202012Validator(agents_schema())
SCHEMAS = {
    "*.policy.yaml": ROOT / "policies/policy.schema.json",
    "policyctx.yaml": ROOT / "policies/policyctx.schema.json",
}


def loads(source: PolicySource) -> bool:
    try:
        file = read_agents(source)
        for entry in file.entries:
            entry_policy(entry, file, agent="a")
    except PolicyError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "is_right"),
    [
        ("agents: {}", True),
        ("agents: {coder: coding-agent, '*': {min_chars: 5}}", True),
        ("agents: {'*': {extends: coding-agent, model: {context_window: '${W:-9}'}}}", True),
        ("agents: {'*': {steps: [{name: s, do: offload, select: {types: [tool_result]}}]}}", True),
        ("agents: {'*': {name: other}}", False),
        ("agents: {'*': {apiVersion: policyctx/v1}}", False),
        ("agents: {'*': {min_char: 5}}", False),
        ("agents: {'*': {min_chars: many}}", False),
        ("agents: {'*': 5}", False),
        ("agents: {'': coding-agent}", False),
        ("agents: []", False),
        ("agents: {}\nmore: 1", False),
        ("{}", False),
    ],
)
def test_the_schema_accepts_what_the_reader_accepts(text: str, is_right: bool) -> None:
    whole = "apiVersion: policyctx/v1\n" + ("" if text == "{}" else text)
    source = PolicySource("policyctx.yaml", whole)
    assert loads(source) == is_right
    assert VALIDATOR.is_valid(read_yaml(source).plain()) == is_right


def test_the_committed_schema_is_up_to_date() -> None:
    Draft202012Validator.check_schema(agents_schema())
    committed = SCHEMAS["policyctx.yaml"].read_text(encoding="utf-8")
    assert committed == text_of(agents_schema()), "run scripts/docs"


def test_the_entries_for_the_catalogue_of_schemas_name_these_schemas() -> None:
    text = (ROOT / ".github/schemastore.json").read_text(encoding="utf-8")
    entries = json.loads(text)["schemas"]
    # The catalogue is sorted by name, and its check refuses these words in a description.
    assert [one["name"] for one in entries] == sorted(one["name"] for one in entries)
    assert {pattern for one in entries for pattern in one["fileMatch"]} == SCHEMAS.keys()
    for one in entries:
        assert one.keys() == {"name", "description", "fileMatch", "url"}
        assert "schema" not in one["description"].lower()
        [pattern] = one["fileMatch"]
        schema = json.loads(SCHEMAS[pattern].read_text(encoding="utf-8"))
        assert one["url"] == schema["$id"]
