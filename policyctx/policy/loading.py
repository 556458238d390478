"""From the name or path of a policy to a checked `Policy`: read, merge, substitute, validate.

`extends` merges files into one tree; `${NAME}` and `${NAME:-default}` are scalars from the
environment.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, TypeAlias

from pydantic import ValidationError

from policyctx.errors import Diagnostic, Location, PolicyError, UnknownPolicyError
from policyctx.policy import consistency, reach
from policyctx.policy.agent_options import checks_options
from policyctx.policy.diagnosing import called_alike, diagnostics, hint, in_order, shown_node, word
from policyctx.policy.models import VERSIONS, Policy
from policyctx.policy.models.rules import Secret
from policyctx.policy.nodes import Node, Path, compacts, elements_of, read_policy_yaml, typed
from policyctx.policy.sources import PathName, PolicyName, PolicySource, environment, policy_source

_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?\}", re.DOTALL)
MAX_DEPTH = 8
MAX_BASES = 32

# Conditions and shapes are values: they are replaced whole.
_WHOLE = frozenset({"match", "when", "select", "keep_recent", "placeholder"})
# Maps whose keys are names of the user's, tried in the order written: the nearer file's first.
_BY_NAME = frozenset({("items",), ("tools",)})
# What belongs to one file and is not handed on.
_OWN = frozenset({"apiVersion", "name", "extends"})
# What pydantic calls a number that is too small or too large.
_OUT_OF_BOUNDS = ("greater_than", "less_than")
# What a base that could not be read may have held: a required key, an item type.
_MAY_BE_INHERITED = frozenset({"PC102", "PC104", "PC111"})
Findings: TypeAlias = Callable[[Node, Policy], list[Diagnostic]]


def substituted(node: Node, environment: Mapping[str, str]) -> Node:
    """Return the tree with every variable replaced that is set or has a default.

    A variable is the whole of a scalar. Blanks around its value are removed, and an empty one
    counts as unset. What it holds is typed like a plain scalar, and is not searched for variables.
    """

    def changed(_: Path, node: Node) -> Node:
        match = _VARIABLE.fullmatch(node.value) if isinstance(node.value, str) else None
        if match is None:
            return node
        name, default = match.groups()
        given = environment.get(name, "").strip()
        raw = given or default
        if raw is None:
            return node
        return node._replace(value=typed(raw), raw=raw, variable=node.value if given else None)

    return node.mapped(changed)


def unset(root: Node) -> list[Diagnostic]:
    """Return an error for each variable that is left in a tree after substitution."""
    found = []
    for _, node in root.leaves():
        match = _VARIABLE.fullmatch(node.value) if isinstance(node.value, str) else None
        if match is None:
            continue
        sentence, hint = f"the variable {match[1]} is not set", ""
        if node.variable is not None:
            sentence = f"{shown_node(node)} is itself a variable, which is not looked up"
        elif node.raw is not None:
            sentence = f"the default is itself a variable, {node.raw}, which is not looked up"
        else:
            hint = f"set it, or give a default: ${{{match[1]}:-…}}"
        found.append(Diagnostic(node.place, "PC110", sentence, hint))
    return found


class Extended(NamedTuple):
    """A policy's tree over those that it extends, and what was wrong on the way there."""

    root: Node
    problems: list[Diagnostic]
    sources: tuple[PolicySource, ...] = ()
    """Every text that was read, bases included."""


def extended(source: PolicySource, variables: Mapping[str, str]) -> Extended:
    """Read a policy, replace its variables, and merge it over what it extends.

    The tree that comes back has no `extends`, and every part of it knows the file that it is from.
    A base that is not there, a cycle, more than 8 levels and a step that no base has are problems;
    what else a file says is read all the same. A variable that is not set stays as it is. Raises
    `PolicyError` for a file that is not YAML.
    """
    reading = _Reading(variables, [], {}, [])
    root = _merged_over_bases(source, (), reading)
    return Extended(root, reading.problems, tuple(reading.sources))


def with_bases(own: Node, source: PolicySource, variables: Mapping[str, str]) -> Extended:
    """Merge a tree that was read already over what it extends; see `extended`."""
    reading = _Reading(variables, [], {}, [])
    root = _over_bases(own, source, (source,), reading)
    return Extended(root, reading.problems, tuple(reading.sources))


class _Reading(NamedTuple):
    """What the files of one policy share: each is read once."""

    variables: Mapping[str, str]
    problems: list[Diagnostic]
    known: dict[str, Node]
    sources: list[PolicySource]


def _merged_over_bases(
    source: PolicySource, chain: tuple[PolicySource, ...], reading: _Reading
) -> Node:
    reading.sources.append(source)
    own = read_policy_yaml(source)
    if not own.is_map:
        raise PolicyError([Diagnostic(own.place, "PC103", "a policy is a map of keys")])
    return _over_bases(own, source, (*chain, source), reading)


def _over_bases(
    own: Node, source: PolicySource, chain: tuple[PolicySource, ...], reading: _Reading
) -> Node:
    own = substituted(own, reading.variables)
    merged = Node({}, own.place)
    for entry in _entries(own, reading.problems):
        base = _base(entry, source, chain)
        tree = base if isinstance(base, Diagnostic) else _base_tree(base, entry, chain, reading)
        if isinstance(tree, Diagnostic):
            reading.problems.append(tree)
        else:
            merged = _merged(merged, tree, reading.problems)
    return _merged(merged.without(*_OWN), own, reading.problems).without("extends")


def _base_tree(
    base: PolicySource, entry: Node, chain: tuple[PolicySource, ...], reading: _Reading
) -> Node | Diagnostic:
    """The tree of a base, read once however many policies extend it."""
    key = base.path or base.name
    if key not in reading.known:
        try:
            tree = _merged_over_bases(base, chain, reading)
        except PolicyError as error:
            return refused(error, entry)
        version, name = tree.child("apiVersion"), tree.child("name")
        if version is None or version.value not in VERSIONS:
            place = version.place if version else tree.place
            sentence = f"expected the key 'apiVersion' with {VERSIONS[-1]!r}"
            reading.problems.append(Diagnostic(place, "PC104", sentence))
        if name is None or not isinstance(name.value, str):
            place = name.place if name else tree.place
            reading.problems.append(Diagnostic(place, "PC103", "expected the key 'name', a string"))
        reading.known[key] = tree
    return reading.known[key]


def _entries(own: Node, problems: list[Diagnostic]) -> list[Node]:
    """The bases that a file names; what is neither a string nor a list of them is a problem."""
    extends = own.child("extends")
    if extends is None or extends.value is None:
        return []
    entries = elements_of(extends)
    sentence = "expected the name of a preset or the path of a file"
    wrong = [entry for entry in entries if not isinstance(entry.value, str) and entry.raw is None]
    problems += [Diagnostic(entry.at, "PC103", sentence) for entry in wrong]
    if len(entries) > MAX_BASES:
        sentence = f"more than {MAX_BASES} policies are extended at once"
        problems.append(Diagnostic(extends.place, "PC203", sentence))
    return [entry for entry in entries[:MAX_BASES] if entry not in wrong]


def _base(
    entry: Node, source: PolicySource, chain: tuple[PolicySource, ...]
) -> PolicySource | Diagnostic:
    named = entry.value if entry.raw is None else entry.raw
    try:
        base = policy_source(named, beside=source, fragments=True)
    except UnknownPolicyError as error:
        [unknown] = error.diagnostics
        sentence = f"no policy {word(entry)} to extend: it is neither a file nor a preset"
        return replace(unknown, place=entry.place, code="PC201", sentence=sentence)
    except PolicyError as error:
        return refused(error, entry)
    names = " -> ".join(step.name for step in (*chain, base))
    if base.path in [step.path for step in chain if step.path]:
        return Diagnostic(entry.place, "PC202", f"a policy extends itself: {names}")
    if len(chain) > MAX_DEPTH:
        sentence = f"more than {MAX_DEPTH} policies extend one another: {names}"
        return Diagnostic(entry.place, "PC203", sentence)
    return base


def refused(error: PolicyError, entry: Node) -> Diagnostic:
    """Return the error of a file at the entry that names it; raises it where it is the file's own.

    Of a file that may not be named, or that is not a policy, only that is said. A file that the
    environment names is not shown.
    """
    first = error.diagnostics[0]
    if first.code in {"PC207", "PC208"} and not first.place.line:
        return replace(first, place=entry.place, sentence=f"{word(entry)} {first.sentence}")
    if entry.variable is None or first.code != "PC001":
        raise error
    sentence = f"{entry.variable} names a file that {first.sentence}"
    return replace(first, place=entry.place, sentence=sentence)


def _merged(base: Node, own: Node, problems: list[Diagnostic], path: Path = ()) -> Node:
    """Merge maps by key, `steps` by name; everything else of `own` replaces what was there."""
    if path == ("steps",):
        return _merged_steps(base, own, problems)
    if path[:-1] == ("redact",) and own.is_map and isinstance(base.value, str):
        base = Node({Secret.short_form: base}, base.place, base.key)
    is_value = bool(path) and path[-1] in _WHOLE and path[:-1] not in _BY_NAME
    if not (base.is_map and own.is_map) or is_value:
        return own
    is_sized = {"min_tokens", "min_chars"} & set(own.value)
    kept = base.without("min_tokens", "min_chars").value if is_sized else base.value
    first, second = (own.value, kept) if path in _BY_NAME else (kept, own.value)
    merged = {
        key: _merged(kept[key], own.value[key], problems, (*path, key))
        if key in kept and key in own.value
        else own.value.get(key, kept.get(key))
        for key in {**first, **second}
    }
    return Node(merged, own.place, own.key)


def _merged_steps(base: Node, own: Node, problems: list[Diagnostic]) -> Node:
    """Merge the pipelines; the models refuse steps that are not maps with a name."""
    if not isinstance(base.value, list) or not isinstance(own.value, list):
        return own
    steps = list(base.value)
    inherited = {
        node.value: node
        for step in steps
        if (node := step.child("name")) is not None and isinstance(node.value, str)
    }
    seen: dict[object, Node] = {}
    for step in own.value:
        names = [known.said("name") for known in steps]
        name, before = step.said("name"), _text(step, "before")
        # A step that the file itself has twice is not replaced, but left to be told.
        is_known = isinstance(name, str) and name in inherited and name in names
        is_known = is_known and name not in seen
        # Any other value of these two stays, for the models to refuse.
        is_off = step.said("remove") is False
        bare = step.without(*["before"] * (before is not None), *["remove"] * is_off)
        if before is not None and is_known:
            replaced = f"{word(step.value['name'])} is replaced in place"
            sentence = f"{replaced}; `before` is for a new step"
            problems.append(Diagnostic(before.named_at, "PC107", sentence))
        elif before is not None and before.value not in names:
            problems.append(_no_step(before, before, inherited))
        if step.said("remove") is True:
            if is_known:
                del steps[names.index(name)]
            else:
                problems.append(_not_removed(step, seen.get(name), inherited))
        elif is_known:
            at = names.index(name)
            steps[at] = bare._replace(lost=_lost(steps[at], bare))
        elif before is not None and before.value in names:
            steps.insert(names.index(before.value), bare)
        else:
            steps.insert(_end(steps, bare, inherited), bare)
        if isinstance(name, str):
            seen.setdefault(name, step.value["name"])
    return Node(steps, own.place, own.key)


def _not_removed(step: Node, first: Node | None, inherited: Mapping[str, Node]) -> Diagnostic:
    """Refuse to remove a step that is not there; `first` is the name of the entry before it."""
    name = step.child("name")
    return called_alike(name, first) if name and first else _no_step(name or step, name, inherited)


def _lost(inherited: Node, own: Node) -> tuple[str, ...]:
    """The keys of a step that the one in its place does not give."""
    given = (key for key, node in inherited.value.items() if node.value is not None)
    return tuple(key for key in given if key not in own.value)


def _end(steps: list[Node], new: Node, inherited: Mapping[str, Node]) -> int:
    """Where a new step goes: to the end, but before an inherited `compact`, which must be last."""
    last = steps[-1] if steps else None
    if last is None or last.said("name") not in [*inherited] or not compacts(last) or compacts(new):
        return len(steps)
    return len(steps) - 1


def _text(step: Node, key: str) -> Node | None:
    child = step.child(key)
    return child if child and isinstance(child.value, str) else None


def _no_step(node: Node, name: Node | None, inherited: Mapping[str, Node]) -> Diagnostic:
    """Refuse a step's `name` that no base has; `inherited` are the names that they have."""
    steps = [known if step.variable is None else step.variable for known, step in inherited.items()]
    is_shown = name is None or name.variable is None
    likely = hint(name and name.value, steps) if is_shown else ""
    sentence = f"what this policy extends has no step {word(name) if name else None}"
    help_ = likely or f"its steps are {', '.join(steps) or 'none'}"
    return Diagnostic(node.place, "PC204", sentence, help_)


@checks_options
def load_policy(name: PolicyName, *, extends_from: Iterable[PathName] = ()) -> Policy:
    """Read the preset or the file called `name`, with all that it extends.

    `extends_from` are folders outside of its project that `extends` may read from.
    Raises `PolicyError` listing every mistake with its place.
    """
    return parsed_policy(policy_source(name, extends_from=extends_from))


def parsed_policy(source: PolicySource, *, variables: Mapping[str, str] | None = None) -> Policy:
    """Parse the text of a policy; `variables` stand for the environment in tests and tools.

    Raises `PolicyError` listing every mistake with its place.
    """
    return loaded(source, variables=variables)[0]


def loaded(
    source: PolicySource, *, variables: Mapping[str, str] | None = None
) -> tuple[Policy, Node]:
    """Return a policy beside the tree that knows where each of its values was written.

    Raises `PolicyError` listing every mistake with its place.
    """
    given = environment() if variables is None else variables
    try:
        root = resolved(source, variables=given)
        return validated(root), root
    except PolicyError as error:
        raise PolicyError(at_causes(error.diagnostics, source, given)) from None


def at_causes(
    found: Sequence[Diagnostic],
    source: PolicySource,
    variables: Mapping[str, str],
    own: Node | None = None,
    findings: Findings | None = None,
) -> list[Diagnostic]:
    """Return the diagnostics with each one of an inherited key at the part that causes it.

    That is the smallest part of a file without which it is not there, and no other one is; the
    nearest file counts. What is wrong with a base by itself stays where it is. `own` is the tree of
    a policy that is a part of its file; `findings` finds what is no error.
    """
    if all(one.place.file == source.name for one in found):
        return [*found]
    try:
        own = read_policy_yaml(source) if own is None else own
        bases = with_bases(own, source, variables).sources
    except PolicyError:  # a file is not YAML
        return [*found]
    files = [(own, source), *((read_policy_yaml(base), base) for base in bases)]

    def found_in(file: PolicySource, tree: Node) -> frozenset[Diagnostic]:
        try:
            root = completed(with_bases(tree, file, variables))
            policy = validated(root)
        except PolicyError as error:
            return frozenset(error.diagnostics)
        return frozenset(findings(root, policy) if findings else ())

    return in_order(_at_cause(one, files, found_in) for one in found)


def _at_cause(
    wrong: Diagnostic,
    files: Iterable[tuple[Node, PolicySource]],
    found_in: Callable[[PolicySource, Node], frozenset[Diagnostic]],
) -> Diagnostic:
    for own, source in files:
        if wrong.place.file == source.name:
            break
        found = found_in(source, own)
        if wrong not in found:
            continue
        kinds = Counter(map(_kind, found - {wrong}))
        if path := _cause(own, (), partial(found_in, source), wrong, kinds):
            inherited = f"the inherited line is {wrong.place}"
            help_ = f"{wrong.hint}; {inherited}" if wrong.hint else inherited
            return replace(wrong, place=own.deepest(path)[1].at, hint=help_)
    return wrong


def _kind(one: Diagnostic) -> tuple[Location, str]:
    """What stays of a diagnostic where another part of the file changes its numbers."""
    return one.place, one.code


def _cause(
    own: Node,
    path: Path,
    found_in: Callable[[Node], frozenset[Diagnostic]],
    wrong: Diagnostic,
    others: Counter[tuple[Location, str]],
) -> Path:
    """Return the path of the smallest part without which only `others` are found; () for none.

    A part of a map that is not the cause is left out while the next ones are tried: of two parts
    that each suffice, the last is the cause.
    """
    _, node = own.deepest(path)
    indices = range(len(node.elements))
    for part in node.value if node.is_map else _suspects(own, path, indices, found_in, wrong):
        inner = (*path, part)
        if inner == ("extends",):
            continue
        rest = _pruned(own, inner)
        found = found_in(rest)
        kinds = Counter(map(_kind, found))
        if wrong not in found and kinds <= others:
            return _cause(own, inner, found_in, wrong, others) or inner
        if node.is_map and kinds <= others + Counter([_kind(wrong)]):
            own = rest
    return ()


def _suspects(
    own: Node,
    path: Path,
    parts: range,
    found_in: Callable[[Node], frozenset[Diagnostic]],
    wrong: Diagnostic,
) -> Iterator[int]:
    """Yield the parts of a list that may be the cause; not those without all of which it is there.

    Halves are tried: a list of steps can be long, and each try validates the whole policy.
    """
    if len(parts) <= 1:
        yield from parts
        return
    middle = len(parts) // 2
    rest = own
    for part in reversed(parts[:middle]):
        rest = _pruned(rest, (*path, part))
    if wrong not in found_in(rest):
        yield from _suspects(own, path, parts[:middle], found_in, wrong)
    yield from _suspects(own, path, parts[middle:], found_in, wrong)


def _pruned(node: Node, path: Path) -> Node:
    return node.changed(path, lambda _: None)


def resolved(source: PolicySource, *, variables: Mapping[str, str] | None = None) -> Node:
    """Return a policy's tree with what it extends merged in and its variables replaced.

    Raises `PolicyError` when that cannot be, with every other mistake that shows.
    """
    return completed(extended(source, environment() if variables is None else variables))


def completed(read: Extended) -> Node:
    """Return a tree in which every variable was set; raises `PolicyError` as `resolved` does."""
    tree = _as_wanted(read.root)
    if problems := [*read.problems, *unset(tree)]:
        told = {problem.place for problem in problems}
        others = [d for d in _mistakes(tree)[1] if d.place not in told]
        others = [d for d in others if not read.problems or d.code not in _MAY_BE_INHERITED]
        raise PolicyError(in_order([*problems, *others]))
    return tree


def validated(root: Node) -> Policy:
    """Return the policy that a resolved tree says; raises `PolicyError` listing every mistake."""
    policy, found = _mistakes(root)
    if policy is not None and not found:
        checks = (
            consistency.wordings_without_source,
            consistency.split_where_dropped,
            consistency.summaries_without_model,
            consistency.wordings_of_no_summary,
        )
        found = in_order(one for check in checks for one in check(reach.Checked(root, policy, {})))
    if found or policy is None:
        raise PolicyError(found)
    return policy


def _mistakes(root: Node) -> tuple[Policy | None, list[Diagnostic]]:
    policy, problems = None, []
    try:
        policy = Policy.model_validate(root.plain())
    except ValidationError as error:
        problems = diagnostics(root, error.errors())
    return policy, in_order([*problems, *consistency.inconsistencies(root)])


def _as_wanted(root: Node) -> Node:
    """Take a variable that holds `123` or `true` for a text where its key wants one."""
    if not any(node.raw is not None for _, node in root.leaves()):
        return root
    try:
        Policy.model_validate(root.plain())
    except ValidationError as error:
        # A number that is out of bounds is a number all the same.
        of_type = [e for e in error.errors() if not e["type"].startswith(_OUT_OF_BOUNDS)]
        refused = [root.deepest(e["loc"]) for e in of_type]
        typed = [(path, node) for path, node in refused if not isinstance(node.value, str)]
        paths = {path for path, node in typed if node.raw is not None}

        def as_text(path: Path, node: Node) -> Node:
            return node._replace(value=node.raw, raw=None) if path in paths else node

        return root.mapped(as_text) if paths else root
    return root
