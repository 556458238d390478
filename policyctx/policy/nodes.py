"""The tree of a policy file: plain values with their positions, and the models beside them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, TypeAlias, get_args, get_origin

from policyctx.errors import Location
from policyctx.policy.models import Policy, Section

Path: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Node:
    """A map (of nodes), a list (of nodes) or a scalar.

    `key` is the place of the key that a map has it under. `raw` is the text that `${…}` stood for
    before it was typed, None for any other value. `variable` is the expression as written, such as
    `${NAME:-5}`, where the environment gave the value: such a value may be a secret, so messages
    show the expression instead. It is None where the default in the file was used. `lost` are the
    keys of an inherited step that this one replaces, and that it does not have.
    """

    value: Any
    place: Location
    key: Location | None = None
    raw: str | None = None
    variable: str | None = None
    lost: tuple[str, ...] = ()

    @property
    def is_map(self) -> bool:
        """Is it a map."""
        return isinstance(self.value, dict)

    @property
    def at(self) -> Location:
        """Where a person looks for it: a map or a list at its key, a scalar itself."""
        return (self.key if isinstance(self.value, dict | list) else None) or self.place

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
        """Return what is under a key or at an index, None when nothing does."""
        if isinstance(self.value, dict):
            return self.value.get(part)
        if isinstance(self.value, list) and isinstance(part, int) and part < len(self.value):
            found: Node = self.value[part]
            return found
        return None

    def deepest(self, path: Path) -> tuple[Path, Node]:
        """Follow `path` as far as the tree has it; parts that it lacks are skipped."""
        node: Node = self
        found: Path = ()
        for part in path:
            child = node.child(part)
            if child is not None:
                node, found = child, (*found, part)
        return found, node

    def written(self, names: Path) -> Location | None:
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


def sections(
    node: Node,
    annotation: Any = Policy,  # noqa: ANN401 - a type expression
    path: Path = (),
) -> Iterator[tuple[Path, type[Section], Node]]:
    """Yield every map of the tree that a model describes, with its path and that model.

    What the models do not know is skipped.
    """
    if isinstance(node.value, list):
        for i, child in enumerate(node.value):
            yield from sections(child, annotation, (*path, i))
    elif isinstance(node.value, dict):
        model = None if value_type(annotation) else model_in(annotation)
        if model is not None:
            yield path, model, node
        for key, child in node.value.items():
            inner = part_type(annotation, key)
            if inner is not None:
                yield from sections(child, inner, (*path, key))


def part_type(annotation: Any, part: str | int) -> Any:  # noqa: ANN401 - type expressions
    """Return the type of what is at `part` in a value of this type, None when none does."""
    if isinstance(part, int):
        return annotation
    if (values := value_type(annotation)) is not None:
        return values
    model = model_in(annotation)
    field = model.model_fields.get(part) if model else None
    return field and field.annotation


def type_at(path: Path) -> Any:  # noqa: ANN401 - a type expression
    """Return the type of what is at `path` in a policy, None when the path leads nowhere."""
    annotation: Any = Policy
    for part in path:
        annotation = part_type(annotation, part)
    return annotation


def value_type(annotation: Any) -> Any:  # noqa: ANN401 - type expressions
    """Return the type of the values of a map by name, such as `tools`; None for any other type."""
    if get_origin(annotation) is dict:
        return get_args(annotation)[1]
    return None


def model_in(annotation: Any) -> type[Section] | None:  # noqa: ANN401 - a type expression
    """Return the model in a type such as `Rule | None` or `tuple[Step, ...]`, None for none."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if get_origin(annotation) is dict:
        return None
    return next((m for a in get_args(annotation) if (m := model_in(a)) is not None), None)


@cache
def words() -> frozenset[str | bool | None]:
    """Return every word that a key of the language may take as its value."""
    found: set[str | bool | None] = {True, False, None}
    for path in keys_below(Policy):
        todo = [type_at(path)]
        while todo:
            annotation = todo.pop()
            is_words = get_origin(annotation) is Literal
            found.update(get_args(annotation) if is_words else ())
            todo += () if is_words else get_args(annotation)
    return frozenset(found)


def keys_below(model: type[Section], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key that a model and those in it have; `*` stands for a name."""
    for name, field in model.model_fields.items():
        yield (*path, name)
        values = value_type(field.annotation)
        inner = model_in(field.annotation if values is None else values)
        if inner is not None:
            yield from keys_below(inner, (*path, name) if values is None else (*path, name, "*"))
