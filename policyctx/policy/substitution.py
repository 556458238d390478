"""`${NAME}` and `${NAME:-default}`: scalars that come from the environment."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic
from policyctx.policy.diagnosing import shown_node
from policyctx.policy.yaml_reader import typed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.policy.nodes import Node

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.DOTALL)


def substituted(node: Node, environment: Mapping[str, str]) -> Node:
    """Return the tree with every variable replaced that is set or has a default.

    A variable is the whole of a scalar. Blanks around its value are removed, and an empty one
    counts as unset. What it holds is typed like a plain scalar, and is not searched for variables.
    """
    if isinstance(node.value, dict):
        return replace(node, value={k: substituted(v, environment) for k, v in node.value.items()})
    if isinstance(node.value, list):
        return replace(node, value=[substituted(v, environment) for v in node.value])
    match = _VARIABLE.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None:
        return node
    name, default = match.groups()
    given = environment.get(name, "").strip()
    raw = given or default
    if raw is None:
        return node
    return replace(node, value=typed(raw), raw=raw, variable=node.value if given else None)


def unset(root: Node) -> list[Diagnostic]:
    """Return an error for each variable that is left in a tree after substitution."""
    found = []
    for _, node in root.leaves():
        match = _VARIABLE.fullmatch(node.value) if isinstance(node.value, str) else None
        if match is not None and node.variable is not None:
            sentence = f"{shown_node(node)} is itself a variable, which is not looked up"
            found.append(Diagnostic(node.place, "PC110", sentence))
        elif match is not None and node.raw is not None:
            sentence = f"the default is itself a variable, {node.raw}, which is not looked up"
            found.append(Diagnostic(node.place, "PC110", sentence))
        elif match is not None:
            name = match.group(1)
            hint = f"set it, or give a default: ${{{name}:-…}}"
            found.append(Diagnostic(node.place, "PC110", f"the variable {name} is not set", hint))
    return found
