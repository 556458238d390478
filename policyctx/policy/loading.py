"""From a policy's name or path to a checked `Policy`: read, merge, substitute, validate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from policyctx.errors import PolicyError
from policyctx.policy.consistency import inconsistencies
from policyctx.policy.diagnosing import diagnostics, in_order
from policyctx.policy.extending import extended
from policyctx.policy.models import Policy
from policyctx.policy.pending import not_built_yet
from policyctx.policy.sources import environment, policy_source
from policyctx.policy.substitution import substituted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.errors import Diagnostic
    from policyctx.policy.nodes import Node, Path
    from policyctx.policy.sources import PolicyName, Source


def load_policy(name: PolicyName) -> Policy:
    """Read the preset or the file called `name`, with all that it extends.

    Raises `PolicyError` listing every mistake with its place.
    """
    return parsed_policy(policy_source(name))


def parsed_policy(source: Source, *, variables: Mapping[str, str] | None = None) -> Policy:
    """Parse the text of a policy; `variables` stand for the environment in tests and tools.

    Raises `PolicyError` listing every mistake with its place.
    """
    return validated(resolved(source, variables=variables))


def resolved(source: Source, *, variables: Mapping[str, str] | None = None) -> Node:
    """Return a policy's tree with what it extends merged in and its variables replaced."""
    return without_variables(extended(source), variables)


def without_variables(root: Node, variables: Mapping[str, str] | None = None) -> Node:
    """Return the tree with its variables replaced; raises `PolicyError` for those unset."""
    tree, problems = substituted(root, environment() if variables is None else variables)
    if problems:
        raise PolicyError(in_order(problems))
    return tree


def validated(root: Node) -> Policy:
    """Return the policy that a resolved tree says; raises `PolicyError` listing every mistake."""
    found: list[Diagnostic] = [*inconsistencies(root), *not_built_yet(root)]
    policy, problems = _modelled(root)
    found = in_order([*problems, *found])
    if found or policy is None:
        raise PolicyError(found)
    return policy


def _modelled(root: Node) -> tuple[Policy | None, list[Diagnostic]]:
    try:
        return Policy.model_validate(root.plain()), []
    except ValidationError as error:
        errors = error.errors()
    # A variable that holds `123` is a number, unless the key wants a string.
    texts = [root.deepest(e["loc"]) for e in errors if e["type"] == "string_type"]
    raw = {path for path, node in texts if node.raw is not None}
    if raw:
        return _modelled(_as_written(root, raw, ()))
    return None, diagnostics(root, errors)


def _as_written(node: Node, paths: set[Path], path: Path) -> Node:
    """The tree with the scalars at these paths as the text that they came from."""
    if path in paths:
        return replace(node, value=node.raw, raw=None)
    if isinstance(node.value, dict):
        parts = {k: _as_written(v, paths, (*path, k)) for k, v in node.value.items()}
        return replace(node, value=parts)
    if isinstance(node.value, list):
        parts_ = [_as_written(v, paths, (*path, i)) for i, v in enumerate(node.value)]
        return replace(node, value=parts_)
    return node
