"""The mutants of a policy: all the changes of one value that leave it a policy, and another one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policyctx.errors import PolicyError
from policyctx.policy.loading import validated
from policyctx.policy.models import Policy
from policyctx.policy.models.gates import COMPARISONS
from policyctx.testing.mutation.changes import Change
from policyctx.testing.mutation.values import annotation_below, neighbours

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.lookup import RulePath
    from policyctx.policy.nodes import Node, Path

# What names something, or what is counted with: not a value that decides.
_NAMES = frozenset(
    {"apiVersion", "name", "description", "type", "tokenizer", "before", "extends", "remove"}
)
# What scenarios replace by their own.
_REPLACED = frozenset({("store", "root"), ("store", "session_id"), ("store", "sync")})
# For each comparison the one that differs from it only at the limit itself.
_NEIGHBOURS = {
    key: other
    for key, one in COMPARISONS.items()
    for other, two in COMPARISONS.items()
    if one.is_lower == two.is_lower and one.is_open != two.is_open
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A policy with one change: where, and what it reads instead.

    `rule` is the path of the key, steps and elements of lists by their names.
    """

    change: Change
    rule: RulePath
    file: str
    line: int
    told: str
    """What was changed: `min_chars: 100 → 101`."""


@dataclass(frozen=True, slots=True)
class Mutants:
    """All mutants of a policy, and how many changes made it no policy, or none at all."""

    all: tuple[Mutant, ...]
    invalid: int
    same: int


def mutants_of(tree: Node) -> Mutants:
    """Return the mutants of a policy's resolved tree, in its order."""
    found: list[Mutant] = []
    original, invalid, same = validated(tree), 0, 0
    for change in _changes(tree, (), Policy):
        try:
            policy = validated(change.applied(tree))
        except PolicyError:
            invalid += 1
            continue
        if policy == original:
            same += 1
        else:
            found.append(_mutant(tree, change))
    return Mutants(tuple(found), invalid, same)


def _changes(node: Node, path: Path, annotation: Any) -> Iterator[Change]:  # noqa: ANN401
    if path[-1:] and path[-1] in _NAMES and not _is_user_named(path):
        return
    if path in _REPLACED:
        return
    yield from _removals(node, path)
    if isinstance(node.value, dict):
        parts: list[tuple[str | int, Node]] = list(node.value.items())
    elif isinstance(node.value, list):
        parts = list(enumerate(node.value))
    else:
        if not _is_entry(path):
            for value in neighbours(node.value, annotation):
                yield Change(path, "set", node.value, value)
        return
    for part, child in parts:
        yield from _changes(child, (*path, part), annotation_below(annotation, part))


def _removals(node: Node, path: Path) -> Iterator[Change]:
    """Yield what can be switched off, and a comparison that takes in its limit or leaves it out."""
    match path:
        case ("steps", int()):
            yield Change(path, "remove")
        case ("tools", str()):
            yield Change(path, "remove")
        case ("items", str()) if node.child("match") is not None:
            yield Change(path, "remove")
        case (*_, int()) if not isinstance(node.value, dict | list):
            yield Change(path, "remove", node.value)
        case ("steps", int(), "when", *_, comparison) if comparison in COMPARISONS:
            yield Change(path, "rename", node.value, _NEIGHBOURS[str(comparison)])


def _is_entry(path: Path) -> bool:
    """Is it one of the names of a list; those are taken out."""
    return isinstance(path[-1], int)


def _is_user_named(path: Path) -> bool:
    """Is the last part the name of a type or tool, which may be called anything."""
    return path[:-1] in {("items",), ("tools",)}


def _mutant(tree: Node, change: Change) -> Mutant:
    rule = named(tree, change.path)
    _, node = tree.deepest(change.path)
    place, key = node.key or node.place, ".".join(rule)
    if change.action == "remove":
        told = f"{key} left out"
    elif change.action == "rename":
        told = f"{key} → {change.value}"
    else:
        told = f"{key}: {shown(change.before)} → {shown(change.value)}"
    return Mutant(change, rule, place.file, place.line, told)


def named(tree: Node, path: Path) -> RulePath:
    """Return a path with steps and elements of lists by their names, as coverage has it."""
    node, found = tree, []
    for part in path:
        child = node.child(part)
        assert child is not None  # noqa: S101 - the path is one of the tree's own
        if isinstance(part, str):
            found.append(part)
        elif (name := child.child("name")) is not None:
            found.append(str(name.value))
        elif not child.is_map:
            found.append(str(child.value))
        elif len(node.value) > 1:
            found.append(str(part))
        node = child
    return tuple(found)


def shown(value: object) -> str:
    """Return a value as a person writes it; a text in quotes, on one line."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, str) and not value.isidentifier() else str(value)
