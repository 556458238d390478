"""The rules of a policy: the keys that it writes and that decide something, with their sides.

A side is one way in which a rule can decide: a threshold has items above it and items below it. A
rule that can only decide one way has one side; a key that decides nothing by itself, such as a
price or the window, is no rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from policyctx.errors import Location
from policyctx.policy.lookup import RulePath
from policyctx.policy.models.gates import COMPARISONS
from policyctx.policy.nodes import Node

Sides: TypeAlias = tuple[str, ...]

# What the report says of a side that no scenario has covered. "Kept" means "not taken".
MISSING = {
    "above": "no item reached it",
    "allowed": "it let no item be taken",
    "along": "no item was taken with its unit",
    "below": "no item was below it",
    "came back": "no file was restored because of it",
    "carried": "the user's newest message was never replaced",
    "chose": "it never chose which items were taken",
    "closed": "the condition was never false",
    "ephemeral": "no item with a keep_recent was taken",
    "escaped": "no name had a character to escape",
    "excepted": "it excepted no item",
    "failed": "no write failed",
    "left": "it kept no item",
    "matched": "it matched no item",
    "not pinned": "it let no item be taken",
    "not reached": "the step never took items without reaching it",
    "old": "no older item was taken",
    "older": "it kept no item that `of: all` would not keep",
    "opened": "the condition was never true",
    "others": "no item without a keep_recent was kept",
    "pinned": "it kept no item",
    "reached": "it never stopped the step",
    "recent": "it kept no item",
    "refused": "it kept no item",
    "saved": "no file was saved",
    "selected": "it selected no item",
    "shortened": "no input was shortened or emptied",
    "shrank": "no item became smaller",
    "split": "no item was taken that `whole` would keep",
    "taken": "no file name was in use already",
    "together": "it kept no item that `split` would not keep",
    "took": "no item was taken",
    "used": "it was never used",
    "would not shrink": "it kept no item",
}

# The keys of a wording by which it shows something of the text.
EXCERPT_KEYS = ("head", "tail", "max_line_chars", "cut_mark", "gap", "line_numbers")
_STORE: Mapping[str, Sides] = {
    "path": ("saved",),
    "escape": ("escaped",),
    "on_conflict": ("taken",),
    "on_failure": ("failed",),
}


@dataclass(frozen=True, slots=True)
class CoverageRule:
    """A key that decides: its path, where it is written, and its sides.

    A step, and an element of a list, is named by what it is, an alternative of `when` by its
    index. `value` is what a person sees: empty for a map or a list.
    """

    path: RulePath
    file: str
    line: int
    value: str
    sides: Sides


def rules_of(tree: Node) -> tuple[CoverageRule, ...]:
    """Return the rules of a policy's tree, in the order of the reference."""
    found = [*_level(tree, ())]
    for section in ("items", "tools"):
        for name, node in _children(tree.child(section)):
            found += _level(node, (section, name))
    found += _compaction(tree.child("compaction"), ("compaction",))
    for key, node in _children(tree.child("store")):
        if key in _STORE:
            found.append(_rule(("store", key), node, _STORE[key]))
    steps = tree.child("steps")
    for step in steps.value if steps is not None else ():
        found += _step(step)
    return tuple(found)


def _compaction(node: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    """Yield the rules of a map that says how history is summarised."""
    for key, child in _children(node):
        if key == "archive" and child.value:
            yield _rule((*path, key), child, ("saved",))
        if key == "keep_newest_user_message" and child.value:
            yield _rule((*path, key), child, ("carried",))
        if key == "wording":
            for name, text in _children(child):
                if text.value:
                    yield _rule((*path, key, name), text, ("used",))


def _step(step: Node) -> Iterator[CoverageRule]:
    name = step.child("name")
    assert name is not None  # noqa: S101 - the models have seen to it
    path: RulePath = ("steps", name.value)
    yield _rule(path, name, ("took", "left"), shows_value=False)
    yield from _gates(step.child("when"), (*path, "when"))
    yield from _select(step.child("select"), (*path, "select"))
    yield from _wording(step.child("placeholder"), (*path, "placeholder"))
    yield from _compaction(step.child("compaction"), (*path, "compaction"))
    if (shrinks := step.child("must_shrink")) is not None:
        sides = ("shrank", "would not shrink") if shrinks.value else ("took",)
        yield _rule((*path, "must_shrink"), shrinks, sides)


def _gates(when: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    alternatives = [] if when is None else when.value if isinstance(when.value, list) else [when]
    for index, gates in enumerate(alternatives):
        above = (*path, str(index)) if len(alternatives) > 1 else path
        yield from _comparisons(gates, above)


def _comparisons(node: Node, path: RulePath) -> Iterator[CoverageRule]:
    """Yield the rules of a gate, or of all gates of a map."""
    for key, child in _children(node):
        if key in COMPARISONS:
            yield _rule((*path, key), child, ("opened", "closed"))
        else:
            yield from _comparisons(child, (*path, key))


def _select(select: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    if select is None:
        return
    yield from _level(select, path)
    for key, side in (("types", "selected"), ("tools", "selected"), ("except_tools", "excepted")):
        for entry in _elements(select.child(key)):
            yield _rule((*path, key, str(entry.value)), entry, (side,), shows_value=False)
    for key, node in _children(select):
        if sides := _sides_of_select(key, node, stops=select.child("until") is not None):
            yield _rule((*path, key), node, sides)


def _sides_of_select(key: str, node: Node, *, stops: bool) -> Sides:
    if key == "errors":
        return () if node.value else ("left",)
    if key == "ephemeral":
        return ("ephemeral", "others") if node.value else ()
    if key == "with_input":
        return () if node.plain() in (None, False, []) else ("shortened",)
    if key == "unit":
        return () if node.value == "item" else ("along",)
    # Without an `until` a step takes all that is ready, in whatever order.
    if key == "order":
        return ("chose",) if stops else ()
    return ("reached", "not reached") if key == "until" else ()


def _level(node: Node, path: RulePath) -> Iterator[CoverageRule]:
    """Yield the rules of a map that may give rule keys: the top level, a type, a tool, a select."""
    for key, child in _children(node):
        if key == "placeholder":
            yield from _wording(child, (*path, key))
        elif sides := _sides_of_level(key, child.plain()):
            yield _rule((*path, key), child, sides)
            if key == "keep_recent" and (batches := child.child("batches")) is not None:
                side = "split" if batches.value == "split" else "together"
                yield _rule((*path, key, "batches"), batches, (side,))
            of = child.child("of") if key == "keep_recent" else None
            if of is not None and of.value == "candidates":
                yield _rule((*path, key, "of"), of, ("older",))


def _sides_of_level(key: str, value: Any) -> Sides:  # noqa: ANN401 - what YAML holds
    if key in {"min_tokens", "min_chars"}:
        return ("above",) if value in {0, "0%"} else ("above", "below")
    if key == "keep_recent":
        counts = value.values() if isinstance(value, dict) else [value]
        return ("old",) if any(count in {0, "0%"} for count in counts) else ("recent", "old")
    if key == "pin":
        return ("pinned",) if value else ("not pinned",)
    if key == "offload":
        return ("allowed",) if value else ("refused",)
    return {"match": ("matched",), "reads_file": ("came back",)}.get(key, ())


def _wording(node: Node | None, path: RulePath) -> Iterator[CoverageRule]:
    if node is None:
        return
    yield _rule(path, node, ("used",))
    for key, child in _children(node):
        if key in EXCERPT_KEYS and child.value:
            yield _rule((*path, key), child, ("used",))


def _rule(path: RulePath, node: Node, sides: Sides, *, shows_value: bool = True) -> CoverageRule:
    place: Location = node.key or node.place
    is_scalar = not isinstance(node.value, dict | list)
    value = node.plain() if shows_value and is_scalar else ""
    return CoverageRule(path, place.file, place.line, _shown(value), sides)


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _children(node: Node | None) -> list[tuple[str, Node]]:
    return list(node.value.items()) if node is not None and node.is_map else []


def _elements(node: Node | None) -> list[Node]:
    """The elements of a list, or the single value that stands for a list of one."""
    if node is None:
        return []
    return node.value if isinstance(node.value, list) else [node]
