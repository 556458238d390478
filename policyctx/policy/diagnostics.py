"""From what the models refused to what a person reads: place, mistake, nearest right word."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel

from policyctx.policy.models import ITEM_TYPES, Policy

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from policyctx.policy.yaml_document import Path, YamlDocument

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a map",
    "int_type": "a whole number",
    "model_type": "a map",
    "string_type": "a string",
    "tuple_type": "a list",
}


def problems(document: YamlDocument, errors: Iterable[ErrorDetails]) -> list[str]:
    """Return one `file:line:column: sentence` per mistake, in file order, none twice."""
    placed = []
    for error in errors:
        path = _path_in_file(document, error["loc"])
        at_key = error["type"] == "extra_forbidden" or "[key]" in error["loc"]
        placed.append((path, at_key, _sentence(error, path)))
    texts = [document.problem(path, text, at_key=at_key) for path, at_key, text in placed]
    return sorted(dict.fromkeys(texts), key=_position)


def _position(text: str) -> tuple[int, int]:
    line, column = text.split(": ", maxsplit=1)[0].rsplit(":", 2)[-2:]
    return int(line), int(column)


def _path_in_file(document: YamlDocument, loc: tuple[str | int, ...]) -> Path:
    """Follow `loc` as far as the file has it; what pydantic adds of its own is passed over."""
    path: Path = ()
    for part in loc:
        if (*path, part) in document.marks:
            path = (*path, part)
    return path


def _sentence(error: ErrorDetails, path: Path) -> str:
    kind, value = error["type"], error["input"]
    if kind == "extra_forbidden":
        keys = _keys_beside(path)
        return f"unknown key {path[-1]!r}{_hint(str(path[-1]), keys)}"
    if kind == "missing":
        return f"the key {error['loc'][-1]!r} is missing"
    if kind == "literal_error":
        allowed = _allowed(error)
        return f"{_shown(value)} is none of {', '.join(allowed)}{_hint(str(value), allowed)}"
    if kind in _EXPECTED:
        return f"expected {_EXPECTED[kind]}, got {_shown(value)}"
    if kind == "value_error":
        said = str(error["ctx"]["error"])
        return f"{said}, got {_shown(value)}" if said.startswith("expected") else said
    return f"{error['msg'][0].lower()}{error['msg'][1:]}, got {_shown(value)}"


def _allowed(error: ErrorDetails) -> list[str]:
    if "[key]" in error["loc"]:
        return list(ITEM_TYPES)
    words = error["ctx"]["expected"].replace(" or ", ", ").split(", ")
    return [word.strip("'") for word in words]


def _keys_beside(path: Path) -> list[str]:
    """The keys that the map holding `path[-1]` knows, found by walking the models."""
    annotation: Any = Policy
    for part in path[:-1]:
        annotation = _inside(annotation, part)
    model = next((a for a in (annotation, *get_args(annotation)) if _is_model(a)), None)
    return sorted(model.model_fields) if model else []


def _inside(annotation: Any, part: str | int) -> Any:  # noqa: ANN401 - type expressions
    """The type of what stands at `part` in a value of this type, None when there is none."""
    arguments = get_args(annotation)
    if _is_model(annotation):
        field = annotation.model_fields.get(part)
        return field and field.annotation
    if get_origin(annotation) in (dict, tuple):
        return arguments[-1] if get_origin(annotation) is dict else arguments[0]
    return next((found for a in arguments if (found := _inside(a, part)) is not None), None)


def _is_model(annotation: Any) -> bool:  # noqa: ANN401 - a type expression
    return isinstance(annotation, type) and issubclass(annotation, BaseModel)


def _hint(word: str, known: Iterable[str]) -> str:
    likely = get_close_matches(word, list(known), n=1)
    return f"; did you mean {likely[0]!r}?" if likely else ""


def _shown(value: object) -> str:
    """The value as a person wrote it: maps and lists by their kind, the rest shortened."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    names = {None: "nothing", True: "true", False: "false"}
    text = names[value] if value is None or isinstance(value, bool) else repr(value)
    return text if len(text) <= 60 else text[:57] + "…"  # noqa: PLR2004 - a line's worth
