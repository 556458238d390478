"""The JSON Schema of a policy file, derived from the models, and every key explained from it.

Editors check and complete with it. It accepts what the loader accepts: short forms, and a variable
such as `${WINDOW:-200000}` wherever a scalar may stand. It cannot read other files, so for a policy
that extends another, it leaves to the loader what the other file may contain.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from policyctx.definitions.items import BUILT_IN_TYPES, ITEM_TYPES, HostObject
from policyctx.errors import Diagnostic, Location, PolicyError
from policyctx.policy.diagnosing import hint
from policyctx.policy.models import Policy, Section
from policyctx.policy.writing import inline

DIALECT = "https://json-schema.org/draft/2020-12/schema"

_VARIABLE = {
    "type": "string",
    "title": "variable",
    "description": "The environment variable NAME, or the default where that is unset or empty.",
    "pattern": r"^\$\{[A-Za-z_][A-Za-z0-9_]*(:-[\s\S]*)?\}$",
    "examples": ["${WINDOW}", "${WINDOW:-200000}"],
}
_VARIABLE_REF = {"$ref": "#/$defs/Variable"}
_DESCRIBING = ("description", "default", "examples")
# The order in which a schema reads; what is not named here follows by the alphabet.
_ORDER = (
    "$schema", "$id", "$ref", "title", "description", "type", "const", "enum", "anyOf", "oneOf",
    "default", "examples", "required", "properties", "additionalProperties",
)  # fmt: skip
_OF_SCHEMAS = frozenset({"properties", "$defs"})
_OF_VALUES = frozenset({"const", "default", "enum", "examples", "required"})
KEYS_OF_POLICY = "Policy"
_HOLDING = (("items", ".[]"), ("additionalProperties", ".*"))
_DEFAULT = re.compile(r" Default: (.+?)\.(?= |$)")


def schema_id(of: str) -> str:
    """Return the `$id` of the schema of `policy` or `agents`: where SchemaStore serves it."""
    return f"https://www.schemastore.org/policyctx-{of}.json"


def policy_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a policy file, as plain values."""
    generated = Policy.model_json_schema(schema_generator=_AsWritten)
    maps = generated.pop("$defs")
    for written in (generated, *maps.values()):
        properties = written["properties"]
        for name, part in properties.items():
            # pydantic leaves out what the map that is referred to says in the same words.
            said = part if "description" in part else maps[maps_in(part)[0][0]]
            properties[name] = _with_variable({**part, "description": said["description"]})
    schema = {
        "$schema": DIALECT,
        "$id": schema_id("policy"),
        **generated,
        "title": "A policy of policyctx",
        "$defs": {**maps, "Variable": dict(_VARIABLE)},
    }
    _name_item_types(schema["properties"]["items"])
    schema["allOf"] = [_of_one_file(maps), _of_built_in_types()]
    ordered: dict[str, Any] = _in_order(schema)
    return ordered


def schema_of(dotted: str) -> dict[str, Any]:
    """Return the part of the schema that is about one key, with the definitions that it needs.

    Raises `PolicyError` for a key that is not in the language.
    """
    schema = policy_schema()
    part = key_at(schema, dotted).schema
    needed: dict[str, Any] = {}
    waiting = _references(part)
    while waiting:
        name = waiting.pop()
        if name not in needed:
            needed[name] = schema["$defs"][name]
            waiting += _references(needed[name])
    definitions = {name: needed[name] for name in sorted(needed)}
    return {"$schema": DIALECT, **part, **({"$defs": definitions} if definitions else {})}


class _AsWritten(GenerateJsonSchema):
    """Writes defaults as a person writes them, and no titles that only repeat the key."""

    def field_title_should_be_set(self, schema: HostObject) -> bool:  # noqa: ARG002 - pydantic's
        return False

    def sort(self, value: HostObject, parent_key: str | None = None) -> HostObject:  # noqa: ARG002
        return value  # `_in_order` sorts, and leaves examples as they were written

    def default_schema(self, schema: HostObject) -> dict[str, Any]:
        inner: dict[str, Any] = self.generate_inner(schema["schema"])
        default = schema.get("default")
        return inner if default is None else {**inner, "default": _written(default)}


def _written(value: object) -> object:
    """Return a default as it is in a file; a map at its defaults is the empty map."""
    if isinstance(value, Section):
        given = {name: _written(getattr(value, name)) for name in sorted(value.model_fields_set)}
        short = getattr(value, "short_form", "")
        return given[short] if set(given) == {short} else given
    if isinstance(value, tuple | list):
        return [_written(element) for element in value]
    if isinstance(value, dict):
        return {name: _written(element) for name, element in value.items()}
    if isinstance(value, Fraction):
        return float(value)
    return value if isinstance(value, int | float | str) else str(value)


def _with_variable(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a value with a variable allowed for each scalar but free text."""
    found = dict(schema)
    if "description" in found:
        found["description"] = " ".join(found["description"].split())
    for inner in ("items", "additionalProperties"):
        if isinstance(found.get(inner), dict):
            found[inner] = _with_variable(found[inner])
    if branches := found.get("anyOf", []):
        inner_branches = [b if _is_scalar(b) else _with_variable(b) for b in branches]
        extra = [_VARIABLE_REF] if any(map(_is_scalar, branches)) else []
        return {**found, "anyOf": [*inner_branches, *extra]}
    if not _is_scalar(found):
        return found
    about = {key: found[key] for key in found if key in _DESCRIBING}
    typed = {key: found[key] for key in found if key not in _DESCRIBING}
    return {**about, "anyOf": [typed, _VARIABLE_REF]}


def _is_scalar(schema: dict[str, Any]) -> bool:
    """Is it a number, a word of some, or a text of a form; a free text takes a variable anyway."""
    is_number = schema.get("type") in {"integer", "number", "boolean"}
    return is_number or not {"enum", "const", "pattern"}.isdisjoint(schema)


def _name_item_types(items: dict[str, Any]) -> None:
    """Add the built-in item types, each with what it is; they have no `match`."""
    rule = items["additionalProperties"]
    items["properties"] = {
        name: {**rule, "description": ITEM_TYPES[name].meaning, "properties": {"match": False}}
        for name in BUILT_IN_TYPES
    }
    items["propertyNames"] = {"pattern": "^[a-z][a-z0-9_]{0,59}$"}


def _of_one_file(maps: dict[str, Any]) -> dict[str, Any]:
    """What must be whole where no other file can hold the rest."""
    own_types = {
        "properties": dict.fromkeys(BUILT_IN_TYPES, True),
        "additionalProperties": {"required": ["match"]},
    }
    price = {"required": maps["Prices"].pop("required")}
    priced = {"properties": {"price": price}}
    compaction = {"properties": {"summary": priced}}
    steps = {"items": {"properties": {"compaction": compaction}}}
    keys = {"items": own_types, "model": priced, "compaction": compaction, "steps": steps}
    return {"if": {"required": ["extends"]}, "else": {"properties": keys}}


def _of_built_in_types() -> dict[str, Any]:
    """Where a file has no item types of its own and extends none, the steps name built-in ones."""
    name = {"anyOf": [{"enum": [*BUILT_IN_TYPES, "*"]}, _VARIABLE_REF]}
    of_types = {"properties": {"types": {"items": name}}}
    gates = {"properties": {"items": of_types}}
    step = {"properties": {"select": of_types, "when": {**gates, "items": gates}}}
    only_built_in = {"properties": {"items": {"propertyNames": {"enum": list(BUILT_IN_TYPES)}}}}
    return {
        "if": {"not": {"required": ["extends"]}, **only_built_in},
        "then": {"properties": {"steps": {"items": step}}},
    }


def _references(schema: object) -> list[str]:
    """The names of the definitions that a schema mentions, itself apart."""
    if isinstance(schema, list):
        return [name for element in schema for name in _references(element)]
    if not isinstance(schema, dict):
        return []
    own = [schema["$ref"].rsplit("/", 1)[-1]] if isinstance(schema.get("$ref"), str) else []
    return own + [name for value in schema.values() for name in _references(value)]


def _in_order(schema: HostObject) -> HostObject:
    """Return the schema with its keywords in one order, whichever pydantic made it."""
    if isinstance(schema, list):
        return [_in_order(element) for element in schema]
    if not isinstance(schema, dict):
        return schema
    rank = {keyword: i for i, keyword in enumerate(_ORDER)}
    ordered: dict[str, Any] = {}
    for keyword in sorted(schema, key=lambda word: (rank.get(word, len(rank)), word)):
        value = schema[keyword]
        if keyword in _OF_SCHEMAS:
            ordered[keyword] = {name: _in_order(part) for name, part in value.items()}
        else:
            ordered[keyword] = value if keyword in _OF_VALUES else _in_order(value)
    return ordered


@dataclass(frozen=True, slots=True)
class PolicyKey:
    """A key at one place of the language.

    `path` is dotted: `*` is any name, `[]` any place in a list. `map_name` is
    the definition in the schema that has the key, `schema` what may stand under it.
    """

    path: str
    map_name: str
    name: str
    schema: dict[str, Any]

    @property
    def dotted(self) -> str:
        """The path as a person says it: without the names of types and tools."""
        return ".".join(part for part in self.path.split(".") if part not in {"*", "[]"})


def keys(
    schema: dict[str, Any], map_name: str = KEYS_OF_POLICY, path: str = ""
) -> Iterator[PolicyKey]:
    """Yield every key of the language at each place where it stands, from the top down."""
    for name, part in properties(schema, map_name).items():
        key = PolicyKey(f"{path}.{name}" if path else name, map_name, name, part)
        yield key
        for inner, way in maps_in(part):
            yield from keys(schema, inner, key.path + way)


def properties(schema: dict[str, Any], map_name: str) -> dict[str, Any]:
    """Return what may stand under each key of a map."""
    owner = schema if map_name == KEYS_OF_POLICY else schema["$defs"][map_name]
    found: dict[str, Any] = owner.get("properties", {})
    return found


def maps_in(part: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the maps that a value may be or hold, each once, with the way to it in a path.

    The way is empty for the value itself, `.[]` for a list of them, `.*` for a map by name.
    """
    found: dict[str, str] = {}
    if "$ref" in part and not part["$ref"].endswith("/Variable"):
        found[part["$ref"].rsplit("/", 1)[-1]] = ""
    ways = [(inner, "") for inner in part.get("anyOf", [])]
    ways += [(part[name], way) for name, way in _HOLDING if isinstance(part.get(name), dict)]
    for inner, way in ways:
        for name, further in maps_in(inner):
            found.setdefault(name, way + further)
    return list(found.items())


def key_at(schema: dict[str, Any], dotted: str) -> PolicyKey:
    """Return the key that a person means by a path such as `items.keep_recent`.

    Names of item types, tools and steps may be given or left out. Raises `PolicyError` with the
    nearest key for one that is not there, or with the full paths where it is the end of some.
    """
    dotted = in_full(schema, dotted)
    try:
        return _key_at(schema, dotted)
    except PolicyError as error:
        if not (several := keys_ending(schema, dotted)):
            raise
        if len(several) == 1:
            return several[0]
        [unknown] = error.diagnostics
        paths = f"name it in full: {', '.join(key.dotted for key in several)}"
        raise PolicyError([replace(unknown, hint=paths)]) from None


def _key_at(schema: dict[str, Any], dotted: str) -> PolicyKey:
    parts = dotted.split(".")
    map_name, path = KEYS_OF_POLICY, ""
    while True:
        part = parts.pop(0)
        known = properties(schema, map_name)
        if part not in known:
            named = [] if path else [name for _, names in _described(schema) for name in names]
            raise _unknown(dotted, part, list(known), named)
        key = PolicyKey(f"{path}.{part}" if path else part, map_name, part, known[part])
        if not parts:
            return key
        inner = maps_in(key.schema)
        if not inner:
            raise _unknown(dotted, parts[0], [])
        [(map_name, way)] = inner
        path = key.path + way
        below = properties(schema, map_name)
        if way and parts[0] not in below:
            name = parts.pop(0)
            if not parts:
                return _named(schema, key, name, PolicyKey(path, map_name, name, {}), dotted)


def keys_ending(schema: dict[str, Any], dotted: str) -> list[PolicyKey]:
    """Return each key whose dotted path ends with `dotted`, once per path, from the top down."""
    found = {key.dotted: key for key in keys(schema) if f".{key.dotted}".endswith(f".{dotted}")}
    return list(found.values())


def in_full(schema: dict[str, Any], dotted: str) -> str:
    """Return `items.tool_result` for `tool_result`: a path that begins with a built-in name.

    Any other path is returned as it is.
    """
    first = dotted.partition(".")[0]
    if first in properties(schema, KEYS_OF_POLICY):
        return dotted
    owner = next((key for key, names in _described(schema) if first in names), None)
    return dotted if owner is None else f"{owner.dotted}.{dotted}"


def _described(schema: dict[str, Any]) -> Iterator[tuple[PolicyKey, list[str]]]:
    """Yield each key at the top under which some names have a meaning, such as types in `items`."""
    for name, part in properties(schema, KEYS_OF_POLICY).items():
        if names := [
            below for below, one in part.get("properties", {}).items() if one is not False
        ]:
            yield PolicyKey(name, KEYS_OF_POLICY, name, part), names


def _named(
    schema: dict[str, Any], key: PolicyKey, name: str, found: PolicyKey, dotted: str
) -> PolicyKey:
    """The map that stands under a name of the user's, unless the name is a key misspelt."""
    known = [*properties(schema, found.map_name)]
    described = key.schema.get("properties", {}).get(name)
    if described is None:
        if key.name == "items":
            known += BUILT_IN_TYPES
        if hint(name, known):
            raise _unknown(dotted, name, known)
        about = schema["$defs"][found.map_name]["description"]
        described = {"$ref": f"#/$defs/{found.map_name}", "description": about}
    return PolicyKey(found.path, found.map_name, name, described)


def _unknown(dotted: str, part: str, known: list[str], named: Sequence[str] = ()) -> PolicyError:
    there = f"the keys here are {', '.join(known)}" if known else ""
    likely, place = hint(part, [*known, *named]) or there, Location(dotted or "''")
    return PolicyError([Diagnostic(place, "PC101", f"unknown key {part!r}", likely)])


def explained(dotted: str) -> str:
    """Explain one key, such as `items.keep_recent`, for the terminal.

    Names of item types, tools and steps may be given or left out. Of the end of several paths,
    such as `keep_recent`, return the full paths with what each means. Raises `PolicyError` (PC101)
    with the nearest key for one that is not in the language.
    """
    schema = policy_schema()
    dotted = in_full(schema, dotted)
    several = keys_ending(schema, dotted)
    if len(several) > 1 and dotted not in {key.dotted for key in several}:
        rows = [(key.dotted, meaning_and_default(key.schema)[0]) for key in several]
        lines = [f"{dotted} is a key of several maps; `policyctx schema PATH` explains one:", ""]
        return "\n".join([*lines, *_aligned(rows)])
    key = key_at(schema, dotted)
    meaning, default = meaning_and_default(key.schema)
    if key.name in required_keys(schema, key.map_name):
        default = "required"
    about = [("type", type_in_words(key.schema)), ("default", default.replace("`", "") or "none")]
    examples = key.schema.get("examples", [])
    about += [("example", f"{key.name}: {inline(value)}") for value in examples]
    title = several[0].dotted if len(several) == 1 else dotted
    lines = [title, f"  {meaning}", "", *_aligned(about)]
    refused = [name for name, part in key.schema.get("properties", {}).items() if part is False]
    for map_name, way in maps_in(key.schema):
        below = properties(schema, map_name)
        allowed = ((name, part) for name, part in below.items() if name not in refused)
        rows = [(name, meaning_and_default(part)[0]) for name, part in allowed]
        whose = {".[]": "keys of each", ".*": "keys of each, by name"}.get(way, "keys")
        lines += ["", f"  {whose}", *("  " + line for line in _aligned(rows))]
    return "\n".join(lines)


def type_in_words(part: dict[str, Any], links: Mapping[str, str] | None = None) -> str:
    """Return what a key takes, in words; a map as its link, where `links` are given."""
    variants = [one for one in part.get("anyOf", [part]) if not _is_unsaid(one)]
    lists = [one for one in variants if one.get("items") in variants]
    words = [_one_type(one, links) for one in variants if one not in lists]
    return " or ".join(words) + (", or a list" if lists else "")


def _is_unsaid(one: dict[str, Any]) -> bool:
    """A variable may stand for any scalar and nothing for what has no default: said once."""
    return one.get("type") == "null" or one.get("$ref", "").endswith("/Variable")


def _one_type(one: dict[str, Any], links: Mapping[str, str] | None) -> str:
    if "$ref" in one:
        name = one["$ref"].rsplit("/", 1)[-1]
        return links[name] if links else "map"
    if "items" in one:
        words = type_in_words(one["items"], links).replace("map", "maps", 1)
        return f"list of {words.replace('text', 'texts', 1)}"
    if "additionalProperties" in one:
        return f"{type_in_words(one['additionalProperties'], links)} by name"
    return _scalar_type(one)


def _scalar_type(one: dict[str, Any]) -> str:
    words = [f"`{inline(word)}`" for word in one.get("enum", [one.get("const")])]
    if words != ["`null`"]:
        return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    names = {"boolean": "`true` or `false`", "integer": "whole number", "number": "number"}
    return f"{names.get(one['type'], one.get('title', 'text'))}{_bounds(one)}"


def _bounds(one: dict[str, Any]) -> str:
    low, high = one.get("minimum", 0), one.get("maximum")
    if "exclusiveMinimum" in one:
        above = f" above {one['exclusiveMinimum']}"
        return above if high is None else f"{above}, at most {high:g}"
    if high is not None:
        return f" from {low} to {high}"
    return f" from {low}" if low else ""


def meaning_and_default(part: dict[str, Any]) -> tuple[str, str]:
    """Return the description without what it says of the default, and the default in words."""
    text = part["description"]
    if "default" in part:
        default = part["default"]
        empty = {"": "empty", "[]": "none", "{}": ""}.get(
            default if default == "" else str(default)
        )
        return text, f"`{inline(default)}`" if empty is None else empty
    found = _DEFAULT.search(text)
    return (_DEFAULT.sub("", text), found.group(1)) if found else (text, "")


def required_keys(schema: dict[str, Any], map_name: str) -> list[str]:
    """Return the keys that a map must have."""
    owner = schema if map_name == KEYS_OF_POLICY else schema["$defs"][map_name]
    return [*owner.get("required", []), *owner.get("else", {}).get("required", [])]


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:{width}}  {text}" for name, text in rows]
