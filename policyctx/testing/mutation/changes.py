"""`Change`: one value of a policy's tree that is set, renamed or taken out."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from policyctx.policy.nodes import Node, Path

Scalar: TypeAlias = str | int | float | bool | None


@dataclass(frozen=True, slots=True)
class Change:
    """What is done at one place of the tree.

    `set` puts `value` there, `rename` gives the key another name, which is the `value`, `remove`
    takes it out. `before` is the scalar that stood there, None for a map or list: where something
    else stands, such as what a scenario's variable holds, nothing is changed.
    """

    path: Path
    action: Literal["set", "rename", "remove"]
    before: Scalar = None
    value: Scalar = None

    def applied(self, root: Node) -> Node:
        """Return the tree with this change; places stay those of the file."""
        return self._at(root, self.path)

    def plain(self) -> dict[str, Any]:
        """Return it as plain values, from which `of_plain` makes it anew."""
        return {
            "path": list(self.path),
            "action": self.action,
            "before": self.before,
            "value": self.value,
        }

    @classmethod
    def of_plain(cls, plain: Mapping[str, Any]) -> Change:
        """Make it from plain values, as JSON hands them over."""
        return cls(tuple(plain["path"]), plain["action"], plain["before"], plain["value"])

    def _at(self, node: Node, path: Path) -> Node:
        first, *rest = path
        child = node.child(first)
        if child is None:
            return node
        if rest:
            return _with(node, first, self._at(child, tuple(rest)))
        if not isinstance(child.value, dict | list) and child.value != self.before:
            return node
        if self.action == "set":
            return _with(node, first, replace(child, value=self.value, raw=None))
        return _renamed(node, first, str(self.value) if self.action == "rename" else None)


def _with(node: Node, part: str | int, child: Node) -> Node:
    if isinstance(node.value, dict):
        return replace(node, value={**node.value, part: child})
    return replace(node, value=[child if i == part else c for i, c in enumerate(node.value)])


def _renamed(node: Node, part: str | int, name: str | None) -> Node:
    """The node without one of its parts, or with it under another name, in its old place."""
    if isinstance(node.value, dict):
        names = {key: name if key == part else key for key in node.value}
        kept = {names[key]: child for key, child in node.value.items() if names[key] is not None}
        return replace(node, value=kept)
    return replace(node, value=[c for i, c in enumerate(node.value) if i != part])
