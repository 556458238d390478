"""Every key of the language with the path that leads to it, read from the schema."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from policyctx.errors import Diagnostic, Place, PolicyError
from policyctx.policy.diagnosing import hint
from policyctx.policy.models import BUILT_IN_TYPES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

KEYS_OF_POLICY = "Policy"


@dataclass(frozen=True, slots=True)
class Key:
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


def keys(schema: dict[str, Any], map_name: str = KEYS_OF_POLICY, path: str = "") -> Iterator[Key]:
    """Yield every key of the language at each place where it stands, from the top down."""
    for name, part in properties(schema, map_name).items():
        key = Key(f"{path}.{name}" if path else name, map_name, name, part)
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


_HOLDING = (("items", ".[]"), ("additionalProperties", ".*"))


def key_at(schema: dict[str, Any], dotted: str) -> Key:
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


def _key_at(schema: dict[str, Any], dotted: str) -> Key:
    parts = dotted.split(".")
    map_name, path = KEYS_OF_POLICY, ""
    while True:
        part = parts.pop(0)
        known = properties(schema, map_name)
        if part not in known:
            named = [] if path else [name for _, names in _described(schema) for name in names]
            raise _unknown(dotted, part, list(known), named)
        key = Key(f"{path}.{part}" if path else part, map_name, part, known[part])
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
                return _named(schema, key, name, Key(path, map_name, name, {}), dotted)


def keys_ending(schema: dict[str, Any], dotted: str) -> list[Key]:
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


def _described(schema: dict[str, Any]) -> Iterator[tuple[Key, list[str]]]:
    """Yield each key at the top under which some names have a meaning, such as types in `items`."""
    for name, part in properties(schema, KEYS_OF_POLICY).items():
        if names := [
            below for below, one in part.get("properties", {}).items() if one is not False
        ]:
            yield Key(name, KEYS_OF_POLICY, name, part), names


def _named(schema: dict[str, Any], key: Key, name: str, found: Key, dotted: str) -> Key:
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
    return Key(found.path, found.map_name, name, described)


def _unknown(dotted: str, part: str, known: list[str], named: Sequence[str] = ()) -> PolicyError:
    likely = hint(part, [*known, *named]) or (
        f"the keys here are {', '.join(known)}" if known else ""
    )
    return PolicyError(
        [Diagnostic(Place(dotted or "''"), "PC101", f"unknown key {part!r}", likely)]
    )
