"""A policy's tree beside the models: which map is which model, and what type a part has."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Literal, get_args, get_origin

from policyctx.policy.models import Policy, Section

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.nodes import Node, Path


def sections(
    node: Node,
    annotation: Any = Policy,  # noqa: ANN401 - a type expression
    path: Path = (),
) -> Iterator[tuple[Path, type[Section], Node]]:
    """Yield every map of the tree that a model describes, with its path and that model.

    What the models do not know is passed over.
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
    """Return the type of what stands at `part` in a value of this type, None when none does."""
    if isinstance(part, int):
        return annotation
    if (values := value_type(annotation)) is not None:
        return values
    model = model_in(annotation)
    field = model.model_fields.get(part) if model else None
    return field and field.annotation


def type_at(path: Path) -> Any:  # noqa: ANN401 - a type expression
    """Return the type of what stands at `path` in a policy, None when the path leads nowhere."""
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
