"""`extends`: from a file and those that it builds on to one tree."""

from __future__ import annotations

from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from policyctx.errors import Diagnostic, Place, PolicyError, UnknownPolicyError
from policyctx.policy.nodes import Node
from policyctx.policy.sources import policy_source
from policyctx.policy.yaml_reader import read_yaml

if TYPE_CHECKING:
    from policyctx.policy.nodes import Path
    from policyctx.policy.sources import Source

MAX_DEPTH = 8

# Conditions and shapes are values: they are replaced whole.
_WHOLE = frozenset({"match", "when", "select", "keep_recent", "placeholder"})
# Maps whose keys are names of the user's, tried in the order written: the nearer file's first.
_BY_NAME = frozenset({("items",), ("tools",)})
# What belongs to one file and is not handed on.
_OWN = frozenset({"apiVersion", "name", "extends"})


def extended(source: Source) -> Node:
    """Read a policy and merge it over what it extends.

    The tree that comes back has no `extends`, and every part of it knows the file that it is from.
    Raises `PolicyError` for a file that is not there, a cycle, and more than 8 levels.
    """
    return _merged_over_bases(source, ())


def with_bases(own: Node, source: Source) -> Node:
    """Merge a tree that was read already over what it extends; see `extended`."""
    return _over_bases(own, source, (source,))


def _merged_over_bases(source: Source, chain: tuple[Source, ...]) -> Node:
    own = read_yaml(source)
    if not own.is_map:
        raise PolicyError([Diagnostic(own.place, "PC103", "a policy is a map of keys")])
    return _over_bases(own, source, (*chain, source))


def _over_bases(own: Node, source: Source, chain: tuple[Source, ...]) -> Node:
    merged = Node({}, own.place)
    for entry in _entries(own):
        base = _base(entry, source, chain)
        merged = _merged(merged, _merged_over_bases(base, chain))
    inherited = {key: child for key, child in merged.value.items() if key not in _OWN}
    result = _merged(replace(merged, value=inherited), own)
    return replace(result, value={k: v for k, v in result.value.items() if k != "extends"})


def _entries(own: Node) -> list[Node]:
    """The bases that a file names; what is neither a string nor a list of them is refused."""
    extends = own.child("extends")
    if extends is None:
        return []
    entries = extends.value if isinstance(extends.value, list) else [extends]
    for entry in entries:
        if not isinstance(entry.value, str):
            sentence = "expected the name of a preset or the path of a file"
            raise PolicyError([Diagnostic(entry.place, "PC103", sentence)])
    return list(entries)


def _base(entry: Node, source: Source, chain: tuple[Source, ...]) -> Source:
    try:
        base = policy_source(entry.value, beside=source)
    except UnknownPolicyError as error:
        [unknown] = error.diagnostics
        sentence = f"no policy {entry.value!r} to extend: it is neither a file nor a preset"
        raise PolicyError(
            [replace(unknown, place=entry.place, code="PC201", sentence=sentence)]
        ) from None
    names = " -> ".join(step.name for step in (*chain, base))
    if base.path in [step.path for step in chain if step.path]:
        raise PolicyError([Diagnostic(entry.place, "PC202", f"a policy extends itself: {names}")])
    if len(chain) > MAX_DEPTH:
        sentence = f"more than {MAX_DEPTH} policies extend one another: {names}"
        raise PolicyError([Diagnostic(entry.place, "PC203", sentence)])
    return base


def _merged(base: Node, own: Node, path: Path = ()) -> Node:
    """Merge maps by key, `steps` by name; everything else of `own` replaces what was there."""
    if path == ("steps",):
        return _merged_steps(base, own)
    is_value = bool(path) and path[-1] in _WHOLE and path[:-1] not in _BY_NAME
    if not (base.is_map and own.is_map) or is_value:
        return own
    kept = dict(base.value)
    if {"min_tokens", "min_chars"} & set(own.value):
        kept = {k: v for k, v in kept.items() if k not in {"min_tokens", "min_chars"}}
    first, second = (own.value, kept) if path in _BY_NAME else (kept, own.value)
    merged = {
        key: _merged(kept[key], own.value[key], (*path, key))
        if key in kept and key in own.value
        else own.value.get(key, kept.get(key))
        for key in {**first, **second}
    }
    return Node(merged, own.place, own.key)


def _merged_steps(base: Node, own: Node) -> Node:
    """Merge the pipelines; steps that are no map with a name are left for the models to refuse."""
    if not isinstance(base.value, list) or not isinstance(own.value, list):
        return own
    steps = list(base.value)
    for step in own.value:
        names = [_name(known) for known in steps]
        before, remove = step.child("before"), step.child("remove")
        known = names.index(_name(step)) if _name(step) in names and _name(step) else None
        # Any other value of `remove` stays, for the models to refuse.
        bare = _without(step, "before", *(["remove"] if remove and remove.value is False else []))
        if remove is not None and remove.value is True:
            if known is None:
                raise _no_step(step.child("name") or step, _name(step), names)
            del steps[known]
        elif known is not None:
            steps[known] = bare
        elif before is not None:
            if before.value not in names:
                raise _no_step(before, before.value, names)
            steps.insert(names.index(before.value), bare)
        else:
            steps.append(bare)
    return Node(steps, own.place, own.key)


def _name(step: Node) -> object:
    name = step.child("name")
    return name.value if name else None


def _without(step: Node, *keys: str) -> Node:
    if not step.is_map:
        return step
    return replace(step, value={k: v for k, v in step.value.items() if k not in keys})


def _no_step(node: Node, name: object, names: list[object]) -> PolicyError:
    known = [name for name in names if isinstance(name, str)]
    likely = get_close_matches(str(name), known, n=1)
    hint = (
        f"did you mean {likely[0]!r}?" if likely else f"its steps are {', '.join(known) or 'none'}"
    )
    sentence = f"what this policy extends has no step {name!r}"
    return PolicyError([Diagnostic(node.place, "PC204", sentence, hint)])


def root_place(source: Source) -> Place:
    """Return the place of a policy as a whole."""
    return Place(source.name, 1, 1, source.text.split("\n", 1)[0])
