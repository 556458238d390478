"""The tree of a policy file: plain values that know where they were written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Place

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A map (of nodes), a list (of nodes) or a scalar.

    `key` is the place of the key that a map has it under. `raw` is the text that `${…}` stood for
    before it was typed, None for any other value. `variable` is the expression as written, such as
    `${NAME:-5}`, where the environment gave the value: such a value may be a secret, so messages
    show the expression instead. It is None where the default in the file was used.
    """

    value: Any
    place: Place
    key: Place | None = None
    raw: str | None = None
    variable: str | None = None

    @property
    def is_map(self) -> bool:
        """Is it a map."""
        return isinstance(self.value, dict)

    def plain(self) -> Any:  # noqa: ANN401 - YAML holds any value
        """Return the value without its places."""
        if isinstance(self.value, dict):
            return {key: child.plain() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain() for child in self.value]
        return self.value

    def as_written(self) -> Any:  # noqa: ANN401 - YAML holds any value
        """Return the value without its places; the expression where the environment gave it."""
        if isinstance(self.value, dict):
            return {key: child.as_written() for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.as_written() for child in self.value]
        return self.value if self.variable is None else self.variable

    def child(self, part: str | int) -> Node | None:
        """Return what stands under a key or at an index, None when nothing does."""
        if isinstance(self.value, dict):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and part < len(self.value):
            found: Node = self.value[part]
            return found
        return None

    def deepest(self, path: Path) -> tuple[Path, Node]:
        """Follow `path` as far as the tree has it; parts that it lacks are passed over."""
        node: Node = self
        found: Path = ()
        for part in path:
            child = node.child(part)
            if child is not None:
                node, found = child, (*found, part)
        return found, node

    def written(self, names: Path) -> Place | None:
        """Return where the policy says what `names` lead to, steps by their names; else None."""
        node: Node = self
        for name in names:
            child = node.child(name) if node.is_map else node.named(name)
            if child is None:
                return None
            node = child
        return node.key or node.place

    def named(self, name: object) -> Node | None:
        """Return the element of a list of maps that has this `name`, None when none has."""
        elements = self.value if isinstance(self.value, list) else ()
        for element in elements:
            if (given := element.child("name")) is not None and given.value == name:
                found: Node = element
                return found
        return None

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Yield every scalar, empty map and empty list with its path, in order."""
        children: Any = ()
        if isinstance(self.value, dict):
            children = self.value.items()
        elif isinstance(self.value, list):
            children = enumerate(self.value)
        if not children or not self.value:
            yield path, self
        for part, child in children:
            yield from child.leaves((*path, part))
