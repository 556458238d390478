"""The JSON Schema of a `policyctx.yaml`, derived from that of a policy."""

from __future__ import annotations

from typing import Any

from policyctx.policy.schema import DIALECT, policy_schema, schema_id

# What a policy in an entry does not have: both stand elsewhere in the file.
_NOT_IN_AN_ENTRY = ("apiVersion", "name")
_NAMED = {
    "type": "string",
    "minLength": 1,
    "description": "A preset's name, or the path of a policy file from the folder of this file.",
    "examples": ["coding-agent", "./policies/reviewer.yaml"],
}


def agents_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a `policyctx.yaml`, as plain values.

    It accepts what `read_agents` and `entry_policy` accept, as far as one file shows.
    """
    policy = policy_schema()
    version = policy["properties"]["apiVersion"]
    definitions = policy["$defs"]
    entry = {
        key: value
        for key, value in policy.items()
        if key not in {"$schema", "$id", "title", "$defs", "required"}
    }
    entry["description"] = "A policy of the agent's own."
    entry["properties"] = {
        name: part for name, part in policy["properties"].items() if name not in _NOT_IN_AN_ENTRY
    }
    agents = {
        "description": (
            "Each agent's policy by its name or a glob. The exact name comes first, then the globs"
            " in the order written."
        ),
        "type": "object",
        "propertyNames": {"minLength": 1},
        "additionalProperties": {"anyOf": [_NAMED, {"$ref": "#/$defs/Entry"}]},
        "examples": [{"coder": "coding-agent", "*": "./policies/others.yaml"}],
    }
    return {
        "$schema": DIALECT,
        "$id": schema_id("agents"),
        "title": "Agents and their policies",
        "description": "Which agent runs under which policy.",
        "type": "object",
        "required": ["apiVersion", "agents"],
        "properties": {"apiVersion": version, "agents": agents},
        "additionalProperties": False,
        "$defs": {"Entry": entry, **definitions},
    }
