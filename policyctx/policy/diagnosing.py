"""From what the models refused to what a person reads: place, mistake, nearest right word."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic
from policyctx.policy.walk import model_in, type_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pydantic_core import ErrorDetails

    from policyctx.errors import Place
    from policyctx.policy.nodes import Node, Path

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a map",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "a map",
    "string_type": "a string",
    "tuple_type": "a list",
}
_BOUNDS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "at most {le:g}",
    "string_too_short": "a text that is not empty",
    "too_short": "a text that is not empty",
    "string_too_long": "at most {max_length} characters",
}
_SHOWN_CHARS = 60


def diagnostics(root: Node, errors: Iterable[ErrorDetails]) -> list[Diagnostic]:
    """Return one diagnostic per mistake.

    Where a value may have one of several types and fits none, the first that failed speaks. A key
    that is missing because it is misspelt is told once, as misspelt.
    """
    found: dict[object, Diagnostic] = {}
    errors = list(errors)
    misspelt = set()
    for error in errors:
        if error["type"] == "extra_forbidden":
            path, node = root.deepest(error["loc"])
            found[path] = _unknown_key(path, node)
            misspelt |= {(path[:-1], key) for key in nearest(path[-1], keys_at(path[:-1]))}
    for error in errors:
        path, node = root.deepest(error["loc"])
        if error["type"] == "missing" and (path, error["loc"][-1]) not in misspelt:
            sentence = f"the key {error['loc'][-1]!r} is missing"
            found[path, sentence] = Diagnostic(node.place, "PC102", sentence)
        elif error["type"] not in {"extra_forbidden", "missing"}:
            found.setdefault(node.place, _about_value(error, node))
    return list(found.values())


def in_order(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics by file, line and column, none twice."""
    return sorted(dict.fromkeys(found), key=lambda d: (d.place.file, d.place.line, d.place.column))


def _unknown_key(path: Path, node: Node) -> Diagnostic:
    known = keys_at(path[:-1])
    likely = hint(path[-1], known) or f"the keys here are {', '.join(known)}"
    if path == ("agents",):
        likely = "`policyctx agents` checks a policyctx.yaml"
    return Diagnostic(node.key or node.place, "PC101", f"unknown key {path[-1]!r}", likely)


def _about_value(error: ErrorDetails, node: Node) -> Diagnostic:
    kind, value = error["type"], error["input"]
    if kind == "literal_error":
        words = error["ctx"]["expected"].replace(" or ", ", ").split(", ")
        return not_one_of(node.place, value, [word.strip("'") for word in words])
    code, sentence = "PC106", error["msg"]
    if kind == "value_error":
        sentence = str(error["ctx"]["error"])
        if not sentence.startswith("expected"):
            return Diagnostic(node.place, "PC109", sentence)
    elif kind in _EXPECTED:
        code, sentence = "PC103", f"expected {_EXPECTED[kind]}"
    elif kind in _BOUNDS:
        code, sentence = "PC105", f"expected {_BOUNDS[kind].format_map(error['ctx'])}"
    elif kind == "string_pattern_mismatch":
        sentence = "expected only a-z, 0-9 and -"
    return Diagnostic(node.place, code, f"{sentence}, got {shown(value)}", value_hint(kind, value))


def value_hint(kind: str, value: object) -> str:
    """Return how a value may have been meant, empty when nothing likely is known."""
    word = value.strip() if isinstance(value, str) else str(value)
    if kind == "bool_type":
        meant = {"yes": "true", "on": "true", "no": "false", "off": "false"}
        likely = meant.get(word.lower(), word.lower())
        return f"write {likely}, without quotes" if likely in {"true", "false"} else ""
    bare = re.sub(r"[_, ](?=[0-9%])", "", word)
    if kind == "int_type" and re.fullmatch(r"[0-9]+", bare):
        return f"write {bare}, without quotes or separators"
    if kind == "value_error" and re.fullmatch(r"[0-9.]+%", bare) and bare != word:
        return f"write {bare}"
    return ""


def not_one_of(place: Place, value: object, known: list[str]) -> Diagnostic:
    """Say that a value is none of those known, and which is nearest."""
    if len(known) == 1:
        sentence = f"expected {known[0]!r}, got {shown(value)}"
        return Diagnostic(place, "PC104", sentence)
    sentence = f"{shown(value)} is none of {', '.join(known)}"
    return Diagnostic(place, "PC104", sentence, hint(value, known))


def keys_at(path: Path) -> list[str]:
    """Return the keys that the map at `path` may have."""
    model = model_in(type_at(path))
    return sorted(model.model_fields) if model else []


def hint(word: object, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the known word nearest to `word`, empty for none."""
    likely = nearest(word, known)
    return f"did you mean {likely[0]!r}?" if likely else ""


def nearest(word: object, known: Iterable[str]) -> list[str]:
    """Return the known word nearest to `word`, if any is near."""
    names, letters = list(known), sorted(str(word).lower())
    # Two letters of a short word swapped are too few alike for a ratio.
    swapped = [name for name in names if sorted(name.lower()) == letters]
    return swapped[:1] or get_close_matches(str(word), names, n=1)


def shown(value: object) -> str:
    """Return a value as a person wrote it: maps and lists by their kind, the rest shortened."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
