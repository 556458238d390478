from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from jsonschema import Draft202012Validator

from policyctx.definitions.items import BUILT_IN_TYPES, ITEM_TYPES
from policyctx.errors import PolicyError
from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.nodes import keys_below, read_yaml
from policyctx.policy.schema import key_at, keys, policy_schema, schema_of
from policyctx.policy.sources import PolicySource, preset_names
from policyctx.testing.strategies import policy_documents
from scripts.generate import schema_text
from tests.policies import HEAD
from tests.policy.test_diagnostics import wrong_policies

PRESETS = Path(__file__).parents[2] / "policies"
SCHEMA = policy_schema()
VALIDATOR = Draft202012Validator(SCHEMA)
SEEN_BY_A_SCHEMA = {"PC101", "PC103", "PC104", "PC105"}


def is_valid(text: str) -> bool:
    return VALIDATOR.is_valid(read_yaml(PolicySource("p.yaml", text)).plain())


def codes(text: str) -> set[str]:
    """What the loader says of a policy, other than that a key does nothing yet."""
    try:
        parsed_policy(PolicySource("p.yaml", text), variables={})
    except PolicyError as error:
        return {diagnostic.code for diagnostic in error.diagnostics} - {"PC108"}
    return set()


def test_the_schema_is_valid() -> None:
    Draft202012Validator.check_schema(SCHEMA)


def test_the_committed_schema_is_up_to_date() -> None:
    committed = (PRESETS / "policy.schema.json").read_text(encoding="utf-8")
    assert committed == schema_text(), "run scripts/docs"


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_names_the_schema_and_validates(preset: str) -> None:
    text = (PRESETS / f"{preset}.yaml").read_text(encoding="utf-8")
    assert text.splitlines()[0] == "# yaml-language-server: $schema=./policy.schema.json"
    assert [
        error.message for error in VALIDATOR.iter_errors(read_yaml(PolicySource("", text)).plain())
    ] == []


# What a variable holds is known only where it runs.
WRONG = [
    text
    for text, expected in wrong_policies()
    if SEEN_BY_A_SCHEMA & {line.split(": ")[1] for line in expected} and "${" not in text
]


@pytest.mark.parametrize("text", WRONG)
def test_wrong_keys_types_words_and_bounds_are_rejected(text: str) -> None:
    assert not is_valid(HEAD + text)


EXAMPLE = """
description: Offload what a coding agent has read, compact late, bring its files back.
model:
  context_window: 200000
  tokenizer: o200k_base
  token_scale: 1
  cache: {ttl: 5m, min_tokens: 1024}
  price: {input: 3.00, cache_write: 3.75, cache_read: 0.30, output: 15.00}
min_tokens: 2000
items:
  tool_result: {offload: true}
  assistant_message: {offload: false}
  web_page:
    match: {type: tool_result, tool: ["web_*", fetch]}
    min_tokens: 800
    keep_recent: 2
  skill_prompt:
    match: {type: user_message, text: {startswith: "Base directory for this skill:"}}
    offload: true
tools:
  read_file: {keep_recent: 3, reads_file: path}
  "mcp__*": {min_tokens: 500}
  update_todo: {pin: true}
placeholder: |-
  [Content offloaded]
  Path: {path}
store: {root: "~/.agent/context/{session_id}", retention: {max_age: 30d, max_bytes: 5GB}}
steps:
  - name: huge-results
    on: arrival
    do: offload
    select: {types: [tool_result], min_tokens: 10%}
  - name: retire
    do: offload
    select: {ephemeral: true}
  - name: make-room
    do: drop
    when: {tokens: {at_least: 80%}}
    select: {types: [tool_result, skill_prompt], order: by_type, until: {tokens: {under: 60%}}}
  - name: summarise
    do: compact
    when: {tokens: {at_least: 80%}}
compaction:
  keep_recent: {messages: 0}
  summary:
    max_input: 80%
    sections: [Goals & Decisions, {name: Task Status, ask: What is left.}]
    rules: [Keep every path.]
    must_shrink_to: false
  restore: {max_files: 5, work_dir: "."}
"""
ACCEPTED = [
    "",
    EXAMPLE,
    "items: {tool_result: {keep_recent: 3}}",
    "items: {tool_result: {keep_recent: {tokens: 10%, per: type}}}",
    "items: {tool_result: {keep_recent: '${KEEP:-3}', offload: '${OFF:-true}'}}",
    "items: {tool_result: {min_tokens: ~}}",
    "items: {web: {match: {type: tool_result, tool: fetch, text: {contains: [a, b]}}}}",
    "placeholder: {text: '{path}', head: {lines: 5}, tail: {chars: 9}}",
    "model: {context_window: '${WINDOW:-1000}', tokenizer: '${TOKENIZER:-approximate}'}",
    "min_tokens: ${MIN:-10%}",
    "extends: coding-agent",
    "extends: [coding-agent, context-offload]",
    "extends: coding-agent\nsteps: [{name: retire-old-results, remove: true}]",
    "extends: coding-agent\nsteps: [{name: x, do: offload, before: retire-old-results}]",
    "steps: [{name: a, do: drop, when: {idle: {over: cache_ttl}, ratio: {at_least: 20%}}}]",
    "steps: [{name: a, do: drop, when: [{tokens: {over: 5}}, {ratio: {under: 0.5, of: chars}}]}]",
    "steps: [{name: a, do: offload, select: {until: [{frees: {at_least: 5%}}], tools: Read}}]",
    "steps: [{name: a, do: offload, select: {with_input: 'write_*', except_tools: [x]}}]",
    "steps: [{name: a, do: offload, select: {with_input: true, types: ['*']}}]",
    "compaction: {keep_recent: 4, summary: {sections: [One], must_shrink_to: 50%}}",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_the_schema_accepts_policies_that_the_loader_accepts(text: str) -> None:
    assert codes(HEAD + text) == set()
    assert is_valid(HEAD + text)


@given(policy_documents())
def test_any_policy_that_loads_validates(policy: dict[str, Any]) -> None:
    if codes(json.dumps(policy, ensure_ascii=False)) == set():
        assert VALIDATOR.is_valid(policy)


@pytest.mark.parametrize(
    "text",
    [
        "items: {web_page: {min_tokens: 5}}",
        "items: {tool_result: {match: {type: tool_result}}}",
        "min_tokens: 1\nmin_chars: 2",
        "items: {tool_result: {keep_recent: {items: 1, turns: 2}}}",
        "items: {tool_result: {keep_recent: {per: all}}}",
        "steps: [{name: a}]",
        "steps: [{name: a, remove: false}]",
        "steps: [{name: a, do: offload, when: {}}]",
        "store: {mode: 0600}",
        "model: {price: {input: 3}}",
    ],
)
def test_keys_that_need_or_exclude_one_another_are_in_the_schema(text: str) -> None:
    assert codes(HEAD + text)
    assert not is_valid(HEAD + text)


def test_where_a_policy_extends_another_the_rest_may_be_there() -> None:
    assert is_valid(f"{HEAD}extends: a\nitems: {{web_page: {{pin: true}}}}")
    assert is_valid(f"{HEAD}extends: a\nmodel: {{price: {{input: 3}}}}")
    assert is_valid(f"{HEAD}extends: a\nsteps: [{{name: b, do: drop, select: {{types: [web]}}}}]")


def test_every_key_is_described_and_its_default_and_examples_are_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Building the schema for every key takes nearly all of the time.
    monkeypatch.setattr("policyctx.policy.schema.policy_schema", lambda: SCHEMA)
    found = list(keys(SCHEMA))
    assert {key.dotted for key in found} == {
        ".".join(part for part in path if part != "*") for path in keys_below(Policy)
    }
    for key in found:
        assert key.schema["description"].endswith("."), key.path
        one = Draft202012Validator(schema_of(key.path))
        for value in [*key.schema.get("examples", []), key.schema.get("default")]:
            assert value is None or one.is_valid(value), (key.path, value)
    monkeypatch.undo()
    assert policy_schema() == SCHEMA


def test_no_map_takes_an_unknown_key() -> None:
    maps = [SCHEMA, *SCHEMA["$defs"].values()]
    closed = [one for one in maps if one.get("additionalProperties") is False]
    assert len(closed) == len(maps) - 1  # all but the variable


def test_every_built_in_type_has_a_meaning() -> None:
    assert tuple(ITEM_TYPES) == BUILT_IN_TYPES


def test_a_default_is_written_as_a_person_writes_it() -> None:
    def default(key: str) -> object:
        return key_at(SCHEMA, key).schema["default"]

    assert default("model.cache.ttl") == "recorded"
    assert default("compaction.summary.max_input") == "80%"
    assert default("compaction.keep_recent") == {"messages": 0}
    assert default("compaction.summary.sections") == [
        "Goals & Decisions", "File Operations", "Tool Calls", "Task Status", "Errors & Resolutions",
    ]  # fmt: skip
    assert str(default("placeholder")).startswith("[Content offloaded]")


def test_a_part_of_the_schema_stands_alone() -> None:
    part = schema_of("items.tool_result.keep_recent")
    assert sorted(part["$defs"]) == ["KeepRecent", "Variable"]
    assert Draft202012Validator(part).is_valid({"items": 5, "per": "all"})
    assert not Draft202012Validator(part).is_valid({"itms": 5})
