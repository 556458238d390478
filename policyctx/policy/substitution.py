"""`${NAME}` and `${NAME:-default}`: scalars that come from the environment."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic
from policyctx.policy.yaml_reader import typed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.policy.nodes import Node

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.DOTALL)


def substituted(node: Node, environment: Mapping[str, str]) -> tuple[Node, list[Diagnostic]]:
    """Return the tree with every variable replaced, and an error for each that is unset.

    A variable is the whole of a scalar; an empty one counts as unset. What it holds is typed like
    a plain scalar, and is not looked at again for variables.
    """
    problems: list[Diagnostic] = []
    return _substituted(node, environment, problems), problems


def _substituted(node: Node, environment: Mapping[str, str], problems: list[Diagnostic]) -> Node:
    if isinstance(node.value, dict):
        parts = {k: _substituted(v, environment, problems) for k, v in node.value.items()}
        return replace(node, value=parts)
    if isinstance(node.value, list):
        return replace(node, value=[_substituted(v, environment, problems) for v in node.value])
    match = _VARIABLE.fullmatch(node.value) if isinstance(node.value, str) else None
    if match is None:
        return node
    name, default = match.groups()
    raw = environment.get(name) or default
    if raw is None:
        hint = f"set it, or give a default: ${{{name}:-…}}"
        problems.append(Diagnostic(node.place, "PC110", f"the variable {name} is not set", hint))
        return node
    if _VARIABLE.fullmatch(raw):
        sentence = f"the variable {name} holds the name of another"
        problems.append(Diagnostic(node.place, "PC110", sentence))
    return replace(node, value=typed(raw), raw=raw)
