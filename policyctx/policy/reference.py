"""The reference of all keys, made from the schema: a page to read, and one key explained."""

from __future__ import annotations

import re
from typing import Any

from policyctx.policy.keys import (
    KEYS_OF_POLICY,
    Key,
    in_full,
    key_at,
    keys,
    keys_ending,
    maps_in,
    properties,
)
from policyctx.policy.reference_text import INTRODUCTION, NOTES, TITLE
from policyctx.policy.schema import policy_schema
from policyctx.policy.showing import inline

_DEFAULT = re.compile(r" Default: (.+?)\.(?= |$)")


def reference() -> str:
    """Return `docs/policy-reference.md`: a section per map, each with a table of its keys."""
    schema = policy_schema()
    headings = _headings(schema)
    parts = [TITLE, INTRODUCTION]
    for map_name, heading in headings.items():
        parts += _section(schema, map_name, heading, headings)
    return "\n\n".join(parts) + "\n"


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
        rows = [(key.dotted, _meaning_and_default(key.schema)[0]) for key in several]
        lines = [f"{dotted} is a key of several maps; `policyctx schema PATH` explains one:", ""]
        return "\n".join([*lines, *_aligned(rows)])
    key = key_at(schema, dotted)
    meaning, default = _meaning_and_default(key.schema)
    if key.name in _required(schema, key.map_name):
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
            (name, _meaning_and_default(part)[0])
            for name, part in below.items()
            if name not in refused
        ]
        whose = {".[]": "keys of each", ".*": "keys of each, by name"}.get(way, "keys")
        lines += ["", f"  {whose}", *("  " + line for line in _aligned(rows))]
    return "\n".join(lines)


def type_in_words(part: dict[str, Any], headings: dict[str, str] | None = None) -> str:
    """Return what a key takes, in words; with `headings`, maps are linked to their sections."""
    variants = [one for one in part.get("anyOf", [part]) if not _is_unsaid(one)]
    lists = [one for one in variants if one.get("items") in variants]
    words = [_one_type(one, headings) for one in variants if one not in lists]
    return " or ".join(words) + (", or a list" if lists else "")


def _is_unsaid(one: dict[str, Any]) -> bool:
    """A variable may stand for any scalar and nothing for what has no default: said once."""
    return one.get("type") == "null" or one.get("$ref", "").endswith("/Variable")


def _one_type(one: dict[str, Any], headings: dict[str, str] | None) -> str:
    if "$ref" in one:
        name = one["$ref"].rsplit("/", 1)[-1]
        return f"[map](#{_anchor(headings[name])})" if headings else "map"
    if "items" in one:
        return f"list of {_several(type_in_words(one['items'], headings))}"
    if "additionalProperties" in one:
        return f"{type_in_words(one['additionalProperties'], headings)} by name"
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


def _meaning_and_default(part: dict[str, Any]) -> tuple[str, str]:
    """The description without what it says of the default, and the default in words."""
    text = part["description"]
    if "default" in part:
        default = part["default"]
        empty = {"": "empty", "[]": "none", "{}": ""}.get(
            default if default == "" else str(default)
        )
        return text, f"`{inline(default)}`" if empty is None else empty
    found = _DEFAULT.search(text)
    return (_DEFAULT.sub("", text), found.group(1)) if found else (text, "")


def _required(schema: dict[str, Any], map_name: str) -> list[str]:
    owner = schema if map_name == KEYS_OF_POLICY else schema["$defs"][map_name]
    return [*owner.get("required", []), *owner.get("else", {}).get("required", [])]


def _headings(schema: dict[str, Any]) -> dict[str, str]:
    """The maps of the language in the order of the page, each with its section's heading."""
    places: dict[str, list[Key]] = {}
    for key in keys(schema):
        for map_name, _ in maps_in(key.schema):
            places.setdefault(map_name, []).append(key)
    top = [key.name for key in keys(schema) if key.map_name == KEYS_OF_POLICY]
    found = {name: _paths_in_words([key.dotted for key in same]) for name, same in places.items()}

    def rank(map_name: str) -> int:
        own = re.split(r"[.,]", found[map_name])[0]
        return top.index(own if own in top else places[map_name][0].dotted.split(".")[0])

    return {KEYS_OF_POLICY: "The policy"} | {name: found[name] for name in sorted(found, key=rank)}


def _paths_in_words(paths: list[str]) -> str:
    """Where a map stands: of paths to keys of one name, the end that they share."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rsplit(".", 1)[-1], []).append(path)
    return ", ".join(_shared_end(same) for same in by_name.values())


def _shared_end(paths: list[str]) -> str:
    backwards = [path.split(".")[::-1] for path in paths]
    shared: list[str] = []
    for parts in zip(*backwards, strict=False):
        if len(set(parts)) > 1:
            break
        shared.append(parts[0])
    return ".".join(reversed(shared))


def _section(
    schema: dict[str, Any], map_name: str, heading: str, headings: dict[str, str]
) -> list[str]:
    is_top = map_name == KEYS_OF_POLICY
    owner = schema if is_top else schema["$defs"][map_name]
    rows = ["| key | type | default | meaning |", "|---|---|---|---|"]
    parts_of_map = owner["properties"].items()
    for name, part in parts_of_map:
        meaning, default = _meaning_and_default(part)
        default = "required" if name in _required(schema, map_name) else default
        cells = (f"`{name}`", type_in_words(part, headings), default, meaning)
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    depth = "##" if is_top or "." not in heading else "###"
    parts = [f"{depth} {heading}", owner["description"], "\n".join(rows)]
    if map_name == "ItemRule":
        parts.append(_item_types(schema))
    return [*parts, NOTES[map_name]] if map_name in NOTES else parts


def _item_types(schema: dict[str, Any]) -> str:
    rows = ["| built-in type | is |", "|---|---|"]
    for name, part in schema["properties"]["items"]["properties"].items():
        rows.append(f"| `{name}` | {part['description']} |")
    return "\n".join(rows)


def _anchor(heading: str) -> str:
    """The anchor that Markdown renderers give a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _aligned(rows: list[tuple[str, str]]) -> list[str]:
    width = max((len(name) for name, _ in rows), default=0)
    return [f"  {name:{width}}  {text}" for name, text in rows]
