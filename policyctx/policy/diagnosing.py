"""From what the models refused to what a person reads: place, mistake, nearest right word."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic_core import ErrorDetails

from policyctx.errors import Diagnostic, Location, nearest
from policyctx.policy.nodes import Node, Path, action_of, model_in, type_at
from policyctx.policy.suggestions import (
    as_name,
    corrected,
    example,
    example_of_key,
    is_accepted,
    key_for_word,
    needed_keys,
    place_of_key,
)
from policyctx.policy.values import TemplateError, braces_in

_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a map",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "a map",
    "string_type": "a string",
    "tuple_type": "a list",
}
_OF_SEVERAL_PARTS = frozenset({"dict_type", "model_type", "tuple_type"})
_BOUNDS = {
    "greater_than": "more than {gt:g}",
    "greater_than_equal": "{ge:g} or more",
    "less_than_equal": "at most {le:g}",
    "string_too_short": "a text that is not empty",
    "too_short": "a text that is not empty",
    "string_too_long": "at most {max_length} characters",
}
_SHOWN_CHARS = 60
# A word this much like a key is certainly a misspelling of it.
_CERTAIN = 0.8


def diagnostics(root: Node, errors: Iterable[ErrorDetails]) -> list[Diagnostic]:
    """Return the diagnostics of all mistakes.

    Where a value may have one of several types and fits none, the first that failed speaks. A key
    that is missing because it is misspelt is reported once, as misspelt. A value that comes from
    the environment is never part of a diagnostic.
    """
    found: dict[object, list[Diagnostic]] = {}
    errors = list(errors)
    misspelt = set()
    for error in errors:
        if error["type"] == "extra_forbidden":
            path, node = root.deepest(error["loc"])
            _, owner = root.deepest(path[:-1])
            found[path] = [_unknown_key(path, node, owner)]
            meant = [key_for_word(path, node, owner.value), nearest(path[-1], keys_at(path[:-1]))]
            misspelt |= {(path[:-1], key) for key in meant if key}
    for error in errors:
        path, node = root.deepest(error["loc"])
        if error["type"] == "missing" and (path, error["loc"][-1]) not in misspelt:
            sentence = f"the key {error['loc'][-1]!r} is missing"
            help_ = example_of_key((*path, error["loc"][-1]))
            found[path, sentence] = [Diagnostic(node.at, "PC102", sentence, help_)]
        elif _is_of_other_form(error, path, node, errors):
            continue
        elif error["type"] not in {"extra_forbidden", "missing"} and node.place not in found:
            found[node.place] = list(_about_value(error, path, node))
    return [diagnostic for same_place in found.values() for diagnostic in same_place]


def _is_of_other_form(
    error: ErrorDetails, path: Path, node: Node, errors: list[ErrorDetails]
) -> bool:
    """Whether a map is refused as a text here, and as a map for what is in it."""
    inner = (other["loc"] for other in errors if other is not error)
    return (
        error["type"] == "string_type"
        and node.is_map
        and any(loc[: len(path)] == path and len(loc) > len(error["loc"]) for loc in inner)
    )


def in_order(found: Iterable[Diagnostic]) -> list[Diagnostic]:
    """Return the diagnostics by file, line and column, none twice."""
    return sorted(dict.fromkeys(found), key=lambda d: (d.place.file, d.place.line, d.place.column))


def _unknown_key(path: Path, node: Node, owner: Node) -> Diagnostic:
    """Say where an unknown key of the map `owner` belongs."""
    known, key = keys_at(path[:-1]), path[-1]
    near = nearest(key, known)
    likely = hint(key, known)
    fits = near and node.variable is None and is_accepted((*path[:-1], near), node.plain())
    if len(known) > 1 and not (
        near and (fits or nearest(str(key).lower(), [near.lower()], _CERTAIN))
    ):
        action = action_of(owner)
        refused = action.keys_without_use if action is not None else ()
        word_key = key_for_word(path, node, owner.value)
        needed = "" if near else needed_keys(path[:-1], owner)
        elsewhere = needed or place_of_key(path, node, refused)
        likely = f"did you mean {word_key!r}?" if word_key else elsewhere or likely
    if path == ("agents",):
        likely = "`policyctx agents` checks a policyctx.yaml"
    likely = likely or f"the keys here are {', '.join(known)}"
    return Diagnostic(node.named_at, "PC101", f"unknown key {key!r}", likely)


def _about_value(error: ErrorDetails, path: Path, node: Node) -> Iterator[Diagnostic]:
    kind = error["type"]
    wrong = error["ctx"]["error"] if kind == "value_error" else None
    if kind == "literal_error":
        words = error["ctx"]["expected"].replace(" or ", ", ").split(", ")
        yield not_one_of(node, [known.strip("'") for known in words])
    elif isinstance(wrong, TemplateError):
        for place, sentence in _wrong_template(wrong, node):
            yield Diagnostic(place, "PC109", sentence)
    else:
        code, sentence = _refusal(error)
        sentence = f"{sentence}, got {shown_node(node)}"
        yield Diagnostic(node.at, code, sentence, _value_hint(kind, path, node))


def _refusal(error: ErrorDetails) -> tuple[str, str]:
    kind = error["type"]
    if kind == "value_error":
        return "PC106", str(error["ctx"]["error"])
    if kind in _EXPECTED:
        return "PC103", f"expected {_EXPECTED[kind]}"
    if kind in _BOUNDS:
        return "PC105", f"expected {_BOUNDS[kind].format_map(error['ctx'])}"
    if kind == "string_pattern_mismatch":
        return "PC106", "expected only a-z, 0-9 and -"
    return "PC106", error["msg"]


def _wrong_template(wrong: TemplateError, node: Node) -> Iterator[tuple[Location, str]]:
    """Yield the place of each mistake in a text, and what it is.

    A field that is written with escapes or on two lines has the place of the text.
    """
    if node.variable is not None:
        what = f"{shown_node(node)} has an unknown field or a lone brace"
        yield node.at, f"{what}; the fields are {', '.join(wrong.known)}"
        return
    places = places_in(node)
    for found, sentence in wrong.problems.items():
        yield places.get(found, node.at), sentence


def places_in(node: Node) -> dict[str, Location]:
    """Return the first place of each field and other brace of a text, as it is written there."""
    return {
        found: replace(place, column=place.column + start)
        for place, text in reversed(node.written_in)
        for found, start in reversed([*braces_in(text)])
    }


def _value_hint(kind: str, path: Path, node: Node) -> str:
    if node.variable is not None:
        return ""
    if kind == "string_pattern_mismatch" and (name := as_name(node.value)):
        return f"write {name}"
    is_map = kind in _OF_SEVERAL_PARTS or (kind == "value_error" and model_in(type_at(path)))
    return corrected(path, node.value) or (example(path, node) if is_map else "")


def not_one_of(node: Node, known: list[str]) -> Diagnostic:
    """Say that a value is none of those known, and which is nearest."""
    likely = ""
    if len(known) == 1:
        sentence = f"expected {known[0]!r}, got {shown_node(node)}"
    elif node.variable is None and (node.value is None or isinstance(node.value, dict | list)):
        shown = "nothing" if node.value is None else shown_node(node)
        sentence = f"expected one of {', '.join(known)}, got {shown}"
    else:
        sentence = f"{shown_node(node)} is none of {', '.join(known)}"
        likely = hint(node.value, known) if node.variable is None else ""
    return Diagnostic(node.at, "PC104", sentence, likely)


def called_alike(name: Node, first: Node) -> Diagnostic:
    """Return the diagnostic for a second step of one name."""
    sentence = f"two steps are called {word(name)}"
    help_ = f"the first is at {first.place.seen_from(name.place)}"
    return Diagnostic(name.place, "PC107", sentence, help_)


def keys_at(path: Path) -> list[str]:
    """Return the keys that the map at `path` may have."""
    model = model_in(type_at(path))
    return sorted(model.model_fields) if model else []


def hint(word: object, known: Iterable[str]) -> str:
    """Return `did you mean 'x'?` for the known word nearest to `word`, empty for none."""
    likely = nearest(word, known)
    return f"did you mean {likely!r}?" if likely else ""


def shown_node(node: Node) -> str:
    """Return a value as a person wrote it; what the environment gave is named and not shown."""
    return shown(node.value) if node.variable is None else f"the value of {_expression(node)}"


def word(node: Node) -> str:
    """Return a name as a person wrote it: in quotes, or the expression that stands for it."""
    return repr(node.value) if node.variable is None else _expression(node)


def _expression(node: Node) -> str:
    """The expression of a variable in one line; a long default is shortened."""
    text = " ".join((node.variable or "").split())
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 2]}…}}"


def shown(value: object) -> str:
    """Return a value as a person wrote it: maps and lists by their kind, the rest shortened."""
    if isinstance(value, dict | list):
        return "a map" if isinstance(value, dict) else "a list"
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    text = repr(value)
    return text if len(text) <= _SHOWN_CHARS else f"{text[: _SHOWN_CHARS - 1]}…"
