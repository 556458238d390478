"""The mutants of a policy: each change of one value to its neighbour that still loads."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeAlias, Union, get_args, get_origin

from policyctx.definitions.items import PlainValue
from policyctx.errors import PolicyError, present
from policyctx.policy import values
from policyctx.policy.loading import validated
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import Policy
from policyctx.policy.models.gates import COMPARISONS
from policyctx.policy.nodes import Node, Path, part_type

Scalar: TypeAlias = str | int | float | bool | None
_POINT = Fraction(1, 100)
_FIELD = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_UNITS = (
    (values.SHARE_PATTERN, lambda text: values.share(text).percent, "%"),
    (values.DURATION_PATTERN, lambda text: values.duration(text).seconds, "s"),
    (values.BYTES_PATTERN, lambda text: values.byte_size(text).bytes, "B"),
)
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
        stands = root.child(*self.path)
        is_scalar = stands is not None and not isinstance(stands.value, dict | list)
        if stands is None or (is_scalar and stands.value != self.before):
            return root
        if self.action == "rename":
            return root.changed(self.path[:-1], self._renamed)
        new = None if self.action == "remove" else stands._replace(value=self.value, raw=None)
        return root.changed(self.path, lambda _: new)

    def _renamed(self, above: Node) -> Node:
        names = {self.path[-1]: str(self.value)}
        return above._replace(value={names.get(k, k): child for k, child in above.value.items()})


def neighbours(value: Scalar, annotation: Any) -> Iterator[Scalar]:  # noqa: ANN401 - a type
    """Yield the values nearest to one; `annotation` is the type that the key has in its model.

    A flag is turned, a count goes up and down by 1, a share or ratio by a point of a hundred, a
    duration by a second; of words that exclude one another each other one stands in; of any other
    text one character is another. None for what only names something.
    """
    types = alternatives(annotation)
    words = [word for one in types if get_origin(one) is Literal for word in get_args(one)]
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        exact = Fraction(str(value))
        yield from (float(exact + _POINT), float(exact - _POINT))
    elif value in words:
        yield from (word for word in words if word != value)
    elif isinstance(value, str):
        yield from _of_text(value, is_plain=str in types)


def _of_text(text: str, *, is_plain: bool) -> Iterator[str]:
    for pattern, number_of, unit in () if is_plain else _UNITS:
        if re.fullmatch(pattern, text):
            number = number_of(text)
            yield from (f"{float(number + step):g}{unit}" for step in (1, -1))
            return
    yield changed_text(text)


def changed_text(text: str) -> str:
    """Return the text with one character changed: the first letter or digit outside of a field."""
    fields = [span for match in _FIELD.finditer(text) for span in range(*match.span())]
    free = [i for i in range(len(text)) if i not in fields and not text[i].isspace()]
    at = next((i for i in free if text[i].isalnum()), free[0] if free else len(text))
    other = "x" if text[at : at + 1] != "x" else "y"
    return f"{text[:at]}{other}{text[at + 1 :]}"


def alternatives(annotation: Any) -> list[Any]:  # noqa: ANN401 - a type
    """Return the types that an annotation allows, each by itself."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in {Union, type(int | str)}:
        return [one for part in get_args(annotation) for one in alternatives(part)]
    return [annotation]


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


def _changes(node: Node, path: Path, annotation: PlainValue) -> Iterator[Change]:
    # A type or tool may be called anything.
    is_name = bool(path) and path[-1] in _NAMES and path[:-1] not in {("items",), ("tools",)}
    if is_name or path in _REPLACED:
        return
    yield from _removals(node, path)
    is_scalar = not isinstance(node.value, dict | list)
    if is_scalar and not isinstance(path[-1], int):  # an entry of a list is taken out
        for value in neighbours(node.value, annotation):
            yield Change(path, "set", node.value, value)
    for part, child in node.parts:
        yield from _changes(child, (*path, part), part_type(annotation, part))


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


def _mutant(tree: Node, change: Change) -> Mutant:
    rule = named(tree, change.path)
    _, node = tree.deepest(change.path)
    place, key = node.named_at, ".".join(rule)
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
        child = present(node.child(part))
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
