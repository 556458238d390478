"""From a policy's name or path to a checked `Policy`: read, merge, substitute, validate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pydantic import ValidationError

from policyctx.errors import PolicyError
from policyctx.policy.consistency import inconsistencies
from policyctx.policy.diagnosing import diagnostics, in_order
from policyctx.policy.extending import Extended, extended
from policyctx.policy.models import Policy
from policyctx.policy.sources import environment, policy_source
from policyctx.policy.substitution import unset
from policyctx.policy.wordings import path_in_inherited

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.errors import Diagnostic
    from policyctx.policy.nodes import Node, Path
    from policyctx.policy.sources import PolicyName, Source


# What pydantic calls a number that is too small or too large.
_OUT_OF_BOUNDS = ("greater_than", "less_than")
# What a base that could not be read may have held: a required key, an item type.
_MAY_BE_INHERITED = frozenset({"PC102", "PC104", "PC111"})


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


def loaded(source: Source, *, variables: Mapping[str, str] | None = None) -> tuple[Policy, Node]:
    """Return a policy beside the tree that knows where each of its values was written.

    Raises `PolicyError` listing every mistake with its place.
    """
    root = resolved(source, variables=variables)
    return validated(root), root


def resolved(source: Source, *, variables: Mapping[str, str] | None = None) -> Node:
    """Return a policy's tree with what it extends merged in and its variables replaced.

    Raises `PolicyError` when that cannot be, with every other mistake that shows.
    """
    return completed(extended(source, environment() if variables is None else variables))


def completed(read: Extended) -> Node:
    """Return a tree in which every variable was set; raises `PolicyError` as `resolved` does."""
    tree = _as_wanted(read.root)
    problems = [*read.problems, *unset(tree)]
    if problems:
        told = {problem.place for problem in problems}
        others = [d for d in _mistakes(tree)[1] if d.place not in told]
        others = [d for d in others if not read.problems or d.code not in _MAY_BE_INHERITED]
        raise PolicyError(in_order([*problems, *others]))
    return tree


def validated(root: Node) -> Policy:
    """Return the policy that a resolved tree says; raises `PolicyError` listing every mistake."""
    policy, found = _mistakes(root)
    if policy is not None and not found:
        found = in_order(path_in_inherited(root, policy))
    if found or policy is None:
        raise PolicyError(found)
    return policy


def _mistakes(root: Node) -> tuple[Policy | None, list[Diagnostic]]:
    policy, problems = _modelled(root)
    return policy, in_order([*problems, *inconsistencies(root)])


def _modelled(root: Node) -> tuple[Policy | None, list[Diagnostic]]:
    try:
        return Policy.model_validate(root.plain()), []
    except ValidationError as error:
        return None, diagnostics(root, error.errors())


def _as_wanted(root: Node) -> Node:
    """Take a variable that holds `123` or `true` for a text where its key wants one."""
    if not any(node.raw is not None for _, node in root.leaves()):
        return root
    try:
        Policy.model_validate(root.plain())
    except ValidationError as error:
        # A number that is out of bounds is a number all the same.
        of_type = [e for e in error.errors() if not e["type"].startswith(_OUT_OF_BOUNDS)]
        refused = [root.deepest(e["loc"]) for e in of_type]
        typed = [(path, node) for path, node in refused if not isinstance(node.value, str)]
        paths = {path for path, node in typed if node.raw is not None}
        return _as_written(root, paths, ()) if paths else root
    return root


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
