"""One key of the language, explained for the terminal, from the schema."""

import re
from collections.abc import Mapping
from typing import Any

from policyctx.policy.schema import (
    KEYS_OF_POLICY,
    in_full,
    key_at,
    keys_ending,
    maps_in,
    policy_schema,
    properties,
)
from policyctx.policy.writing import inline

_DEFAULT = re.compile(r" Default: (.+?)\.(?= |$)")


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
    about += [
        ("example", f"{key.name}: {inline(value)}") for value in key.schema.get("examples", [])
    ]
    title = several[0].dotted if len(several) == 1 else dotted
    lines = [title, f"  {meaning}", "", *_aligned(about)]
    refused = [name for name, part in key.schema.get("properties", {}).items() if part is False]
    for map_name, way in maps_in(key.schema):
        below = properties(schema, map_name)
        rows = [
            (name, meaning_and_default(part)[0])
            for name, part in below.items()
            if name not in refused
        ]
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
        return f"list of {_several(type_in_words(one['items'], links))}"
    if "additionalProperties" in one:
        return f"{type_in_words(one['additionalProperties'], links)} by name"
    return _scalar_type(one)


def _scalar_type(one: dict[str, Any]) -> str:
    words = [f"`{inline(word)}`" for word in one.get("enum", [one.get("const")])]
    if words != ["`null`"]:
        return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))
    names = {"boolean": "`true` or `false`", "integer": "whole number", "number": "number"}
    return f"{names.get(one['type'], one.get('title', 'text'))}{_bounds(one)}"


def _several(words: str) -> str:
    return words.replace("map", "maps", 1).replace("text", "texts", 1)


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
