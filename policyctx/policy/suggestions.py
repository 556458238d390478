"""What a person likely meant by a wrong key or value, derived from the models.

A suggestion is offered only when the models accept it, so no hint leads to another error.
"""

import re
from collections.abc import Callable, Collection, Iterator
from fractions import Fraction
from functools import cache
from typing import Annotated, Any, Literal, get_args, get_origin
from unicodedata import normalize

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError

from policyctx.definitions.items import BUILT_IN_TYPES, PlainValue
from policyctx.errors import present
from policyctx.policy.models import Policy, Section
from policyctx.policy.models.base import OneOrMore
from policyctx.policy.nodes import (
    Node,
    Path,
    keys_below,
    model_in,
    part_type,
    type_at,
    typed,
    value_type,
)
from policyctx.policy.writing import inline

_FLAGS = {"yes": True, "on": True, "true": True, "no": False, "off": False, "false": False}
_THOUSANDS = {"": 1, "k": 1_000, "m": 1_000_000}
_NUMBER = re.compile(r"([0-9]+|[0-9]*\.[0-9]+)([km]?)(?: ?tokens?| ?chars?)?", re.IGNORECASE)
_PERCENT = re.compile(r"([0-9.]+) *(?:%|per ?cent)", re.IGNORECASE)
_TIME = re.compile(
    r"([0-9]+) *(s|secs?|seconds?|m|mins?|minutes?|h|hrs?|hours?|d|days?)", re.IGNORECASE
)
_SIZE = re.compile(r"([0-9]+) *([kmgt]?)(i?)b?", re.IGNORECASE)
# A longer number is no amount of anything, so no number is suggested for it.
_MOST_DIGITS = 15
# A longer value is not repeated in a suggestion.
_MOST_CHARS = 50


def corrected(path: Path, value: object) -> str:
    """Return `write 8000` for a value such as `8k` where the key takes that; empty for none."""
    candidate = _correction(path, value)
    if candidate is None:
        return ""
    was_quoted = isinstance(value, str) and typed(value) == candidate
    return f"write {inline(candidate)}" + (", without quotes" if was_quoted else "")


def _correction(path: Path, value: object) -> object:
    """What the key takes instead of a scalar that it refuses; None for nothing."""
    if isinstance(value, dict | list) or value is None:
        return None
    return next((c for c in _candidates(value) if c != value and is_accepted(path, c)), None)


def as_name(text: str) -> str:
    """Return a name of `a-z`, `0-9` and `-` for a text; empty where letters would be lost."""
    plain = re.sub(r"[\u0300-\u036f]", "", normalize("NFKD", text.casefold()))
    is_lossy = re.search(r"[^\W\d_a-z]", plain)
    return "" if is_lossy else re.sub(r"[^a-z0-9]+", "-", plain).strip("-")


def key_for_word(path: Path, node: Node, present: Collection[str]) -> str:
    """Return the key beside `path` that takes one of some words, this value among them.

    Empty for none; a key that is `present` already is not it. A value from the environment is not
    looked at.
    """
    if node.variable is not None:
        return ""
    model = model_in(type_at(path[:-1]))
    for name, field in {} if model is None else model.model_fields.items():
        is_word = get_origin(field.annotation) is Literal and isinstance(node.value, str)
        if is_word and name not in present and node.value in get_args(field.annotation):
            return name
    return ""


def example(path: Path, node: Node) -> str:
    """Return how a map or a list is written where something else is; empty when nothing is known.

    It holds the value that was written, where that has one place in it.
    """
    if not path:
        return ""
    *above, name = path
    key_of_rule = _key_for_a_name(tuple(above), str(name))
    written = key_of_rule or _example_with(path, node)
    if written is None:
        return ""
    if isinstance(name, int):
        return f"write `{inline(written)}`"
    if key_of_rule:
        name, written = _any_name(tuple(above)), {name: _whole(node, written[name])}
    return f"write `{inline(name)}: {inline(written)}`"


def example_of_key(path: Path) -> str:
    """Return how to write a key that is missing, or its words; empty if it has no example."""
    field = _field(path)
    examples = [] if field is None else _examples(*field)
    if len(examples) > 1 and examples == [*get_args(type_at(path))]:
        return f"it is one of {', '.join(examples)}"
    return f"write `{path[-1]}: {inline(examples[0])}`" if examples else ""


def needed_keys(path: Path, owner: Node) -> str:
    """Return how the map at `path` is written that has none of the keys that it needs."""
    model = model_in(type_at(path)) if path and isinstance(path[-1], str) else None
    needed = {} if model is None else _required(model)
    is_written = not needed or not owner.value.keys().isdisjoint(present(model).model_fields)
    return "" if is_written else f"write `{path[-1]}: {inline(needed)}`"


def place_of_key(path: Path, node: Node, refused: Collection[str] = ()) -> str:
    """Return where a key belongs that is unknown at `path` and known elsewhere; empty for nowhere.

    The nearest place comes first: below the map that has the key, else the one that shares the
    most with its path. `node` is what is under the key; `refused` are keys of this map that do
    not go with its others.
    """
    *above, key = path
    here = _as_keys(tuple(above))
    if key in BUILT_IN_TYPES:
        rule = _in_line(_whole(node, {"offload": True}))
        return f"it is an item type: write `items: {{{key}: {rule}}}`"
    places = [names for names in keys_below(Policy) if names[-1] == key and names[:-1] != here]
    closed = {(*here, name) for name in refused}
    places = [names for names in places if names[: len(here) + 1] not in closed]
    if not places:
        return _name_of_rule(str(key), node) if not here else ""
    ranks = {names: _distance(here, names, node) for names in places}
    nearest = min(places, key=ranks.__getitem__)
    start = len(here) if nearest[: len(here)] == here else 0
    is_refused = ranks[nearest][0]
    value = _value_at(nearest, node) if is_refused else _in_line(node.as_written())
    written = _nested(nearest, value, start)
    as_near = [names for names in places if ranks[names] == ranks[nearest]]
    # Of several places in one part of the policy, such as the gates, the first stands for all.
    by_part = {names[0]: names for names in reversed(as_near)}
    owned = (".".join(part for part in names[:-1] if part != "*") for names in by_part.values())
    owners = [f"`{owner}`" for owner in owned]
    if is_refused and not start and (here or isinstance(node.value, dict | list)):
        return ""  # of the same name by chance
    return f"it belongs in {' or '.join(reversed(owners))}: write `{written}`"


def _name_of_rule(name: str, node: Node) -> str:
    """Say that a key is a name in a map by name, such as `tools`, where its value fits there."""
    for key in reversed(Policy.model_fields):
        values = value_type(Policy.model_fields[key].annotation)
        model = None if values is None else model_in(values)
        is_rule = model is not None and _passes(model.model_validate, node.plain())
        if is_rule and node.is_map and node.value:
            written = _in_line({name: node.as_written()})
            return f"a rule by name belongs in `{key}`: write `{key}: {written}`"
    return ""


def _passes(check: Callable[[object], object], value: object) -> bool:
    try:
        check(value)
    except ValidationError:
        return False
    return True


def _candidates(value: object) -> Iterator[object]:
    """Yield what a scalar may stand for, the likeliest first."""
    if isinstance(value, float) and 0 < value < 1:
        yield f"{round(value * 100, 6):g}%"
    text = str(value).strip()
    bare = re.sub(r"[_, ](?=[0-9%])", "", text)
    if isinstance(value, str) and text.lower() in _FLAGS:
        yield _FLAGS[text.lower()]
    if isinstance(value, str) and (found := _NUMBER.fullmatch(bare)):
        number = Fraction(found[1][: _MOST_DIGITS + 1]) * _THOUSANDS[found[2].lower()]
        if len(found[1]) <= _MOST_DIGITS:
            yield int(number) if number.denominator == 1 else float(number)
    if found := _PERCENT.fullmatch(bare):
        yield f"{found[1]}%"
    if found := _TIME.fullmatch(text):
        yield f"{found[1]}{found[2][0].lower()}"
    if isinstance(value, str) and (found := _SIZE.fullmatch(text)):
        yield f"{found[1]}{found[2].upper()}{found[3].lower()}B"


def is_accepted(path: Path, value: object) -> bool:
    """Is there a key at `path` that takes the value."""
    field = _field(path)
    return field is not None and _takes(*field, value)


def _takes(model: type[Section], name: str, value: object) -> bool:
    return _passes(_adapter(model, name).validate_python, value)


@cache
def _adapter(model: type[Section], name: str) -> TypeAdapter[Any]:
    field = model.model_fields[name]
    kind: Any = field.annotation
    for constraint in field.metadata:
        kind = Annotated[kind, constraint]
    try:
        return TypeAdapter(kind, config=ConfigDict(strict=True))
    except PydanticUserError:  # a type with a configuration of its own
        return TypeAdapter(kind)


def _field(path: Path) -> tuple[type[Section], str] | None:
    """The model and the name of the key at `path`; None where a name of the user's stands."""
    if not path or not isinstance(path[-1], str):
        return None
    model = model_in(type_at(path[:-1]))
    return (model, path[-1]) if model is not None and path[-1] in model.model_fields else None


def _example_with(path: Path, node: Node) -> PlainValue:
    """A value for `path`: a list or a map around what is written, else the key's own example."""
    value = node.as_written()
    is_scalar = not isinstance(value, dict | list) and value is not None
    if is_scalar and is_accepted(path, [value]):
        return [value]
    model = model_in(type_at(path))
    if is_scalar and model is not None and (around := _around(model, value)) is not None:
        return around
    field = _field(path)
    if field is not None and (examples := _examples(*field)):
        return examples[-1] if isinstance(examples[-1], dict | list) else None
    return None if model is None else _smallest(model)


def _around(
    model: type[Section], value: object, *, is_inner: bool = False
) -> dict[str, Any] | None:
    """The value in the first key that takes it, else in a key of a map in this one."""
    fields = model.model_fields
    if isinstance(value, str) and value in fields and _takes(model, value, True):  # noqa: FBT003
        return {value: True}
    required = {name for name, field in fields.items() if field.is_required()}
    names = [name for name in _own_first(model) if required <= {name}]
    for name in names:
        is_flag = isinstance(fields[name].default, bool) or (is_inner and isinstance(value, bool))
        # A text that could be anything is only taken for what the map is first about.
        is_text = isinstance(value, str) and _takes(model, name, "?")
        is_guess = is_text and name != next(iter(fields))
        is_word = is_inner and get_origin(fields[name].annotation) is Literal
        if not (is_flag or is_guess or is_word) and _takes(model, name, value):
            return {name: value}
    for name in names:
        inner = model_in(model.model_fields[name].annotation)
        if isinstance(value, str) and _takes(model, name, "?"):
            continue  # its short form is a text that could be anything
        if inner is not None and (below := _around(inner, value, is_inner=True)) is not None:
            return {name: below}
    return None


def _smallest(model: type[Section]) -> dict[str, Any] | None:
    """The keys that a map needs, else the first of which there is an example."""
    if required := _required(model):
        return required
    for name in _own_first(model):
        if examples := _examples(model, name):
            return {name: examples[0]}
    return None


def _required(model: type[Section]) -> dict[str, Any]:
    required = (name for name, field in model.model_fields.items() if field.is_required())
    return {name: found[0] for name in required if (found := _examples(model, name))}


def _examples(model: type[Section], name: str) -> list[Any]:
    """The examples of a key; of one that takes one of some words, the words."""
    field = model.model_fields[name]
    words = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
    return [*(field.examples or ()), *words]


def _key_for_a_name(above: Path, name: str) -> dict[str, Any] | None:
    """The key that stands where a name belongs, such as `pin` in `tools`, with an example."""
    values = value_type(type_at(above))
    model = None if values is None else model_in(values)
    if model is None or name not in model.model_fields:
        return None
    return {name: next(iter(_examples(model, name)), True)}


def _any_name(above: Path) -> str:
    """A name that may be in a map by name, from the map's example."""
    field = _field(above)
    examples = [] if field is None else _examples(*field)
    return next((str(name) for one in examples for name in one), "NAME")


def _own_first(model: type[Section]) -> list[str]:
    """The keys of a map, those that it inherits last."""
    inherited = {k for base in model.__bases__ for k in getattr(base, "model_fields", ())}
    return sorted(model.model_fields, key=lambda name: name in inherited)


def _as_keys(path: Path) -> tuple[str, ...]:
    """A path in a file as a path of the language: `*` for any name, places in lists left out."""
    names: list[str] = []
    annotation: Any = Policy
    for part in path:
        if isinstance(part, str):
            names.append("*" if value_type(annotation) is not None else part)
        annotation = part_type(annotation, part)
    return tuple(names)


def _distance(here: tuple[str, ...], place: tuple[str, ...], node: Node) -> tuple[bool, bool, int]:
    """How far a key's place is from a map: below it is nearest, then what shares most with it."""
    shared = next((i for i, pair in enumerate(zip(here, place, strict=False)) if len({*pair}) > 1),
                  min(len(here), len(place)))  # fmt: skip
    is_refused = node.variable is None and not is_accepted(place, node.plain())
    return is_refused, shared < len(here), len(place) - shared - place.count("*")


def _nested(names: tuple[str, ...], value: str, start: int) -> str:
    """The value under the keys from `start` on, in one line, with what a map there needs."""
    text = ""
    for i in range(len(names), start, -1):
        name = _any_name(names[: i - 1]) if names[i - 1] == "*" else names[i - 1]
        if i < len(names):
            value = f"{{{text}}}"
        if i < len(names) and _is_list_of_maps(names[:i]):
            model = model_in(type_at(names[:i]))
            needed = {} if model is None else _required(model)
            needed.pop(names[i], None)
            value = f"[{{{''.join(f'{k}: {inline(v)}, ' for k, v in needed.items())}{text}}}]"
        text = f"{inline(name)}: {value}"
    return text


def _is_list_of_maps(names: tuple[str, ...]) -> bool:
    """Does a list stand under the key, in which a single map is no short form of it."""
    field = _field(names)
    if field is None:
        return False
    found = field[0].model_fields[field[1]]
    return get_origin(found.annotation) is tuple and OneOrMore not in found.metadata


def _whole(node: Node, otherwise: PlainValue) -> PlainValue:
    """What is written, where it is of the same kind as the other value; else that one."""
    value = node.as_written()
    return value if type(value) is type(otherwise) else otherwise


def _value_at(place: tuple[str, ...], node: Node) -> str:
    """What the key at `place` takes instead of a value that it refuses, else `…`."""
    value = node.plain()
    if (correction := _correction(place, value)) is not None:
        return _in_line(correction)
    if not isinstance(value, dict | list) and is_accepted(place, [value]):
        return _in_line([value])
    if node.variable is None and (repaired := _repaired(place, value)) is not None:
        return _in_line(repaired)
    field = _field(place)
    examples = [] if field is None or node.is_map else _examples(*field)
    return _in_line(examples[0] if examples else None)


def _repaired(place: Path, value: PlainValue) -> dict[str, Any] | None:
    """Return a map for `place` that has the value in the key that takes it; None for no such map.

    Of `{tokens: 40%}`, only what `tokens` refuses is put into a key: `{tokens: {under: 40%}}`.
    """
    model = model_in(type_at(place))
    if model is None or value is None or isinstance(value, list):
        return None
    if not isinstance(value, dict) or not value.keys() <= model.model_fields.keys():
        return _around(model, value)
    made = dict(value)
    for name, part in value.items():
        if not _takes(model, name, part):
            made[name] = _repaired((*place, name), part)
    return made if is_accepted(place, made) else None


def _in_line(value: PlainValue) -> str:
    """A value in one line where it is short, else `…`."""
    text = inline(value)
    return text if len(text) <= _MOST_CHARS and value is not None else "…"
