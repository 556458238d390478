"""`policyctx.yaml`: which agent runs under which policy, and its JSON schema."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Any

from policyctx.errors import Diagnostic, Location, PolicyError, UnknownPolicyError
from policyctx.policy import loading
from policyctx.policy.diagnosing import hint, in_order, not_one_of, shown, word
from policyctx.policy.models import VERSIONS, Policy
from policyctx.policy.nodes import Node, read_yaml
from policyctx.policy.schema import DIALECT, policy_schema, schema_id
from policyctx.policy.sources import AGENTS_FILE, PolicySource, environment, policy_source

_KEYS = ("apiVersion", "agents")
# What the file says for an entry that is a policy itself.
_NOT_IN_AN_ENTRY = {
    "apiVersion": "`apiVersion` stands once, at the top of the file",
    "name": "a policy in an entry has no `name`: it is called after its agent",
}
_NAMED = {
    "type": "string",
    "minLength": 1,
    "description": "A preset's name, or the path of a policy file from the folder of this file.",
    "examples": ["coding-agent", "./policies/reviewer.yaml"],
}


@dataclass(frozen=True, slots=True)
class AgentEntry:
    """One entry: the agents whose policy it gives, where it is written, and what it says."""

    pattern: str
    """An agent's name, or a glob."""
    place: Location
    says: Node
    """A preset's name or a path; or a map, a policy without `apiVersion` and `name`."""

    @property
    def named(self) -> str | None:
        """The preset or path as it is written; None when the entry is a policy itself."""
        return None if self.says.is_map else str(self.says.value)


@dataclass(frozen=True, slots=True)
class AgentsFile:
    """A `policyctx.yaml` whose form is right; its entries in the order written."""

    source: PolicySource
    version: Node
    place: Location
    """Where its entries are."""
    entries: tuple[AgentEntry, ...]

    @property
    def path(self) -> str:
        """The name that its errors are reported under."""
        return self.source.name


def read_agents(source: PolicySource) -> AgentsFile:
    """Read a `policyctx.yaml`; the policies that it names are not read yet.

    Raises `PolicyError` listing every mistake with its place.
    """
    root = read_yaml(source)
    if not root.is_map:
        raise PolicyError([Diagnostic(root.place, "PC103", f"{AGENTS_FILE} is a map of keys")])
    problems = in_order([*_wrong_keys(root), *_wrong_entries(root.child("agents"))])
    if problems:
        raise PolicyError(problems)
    version, agents = root.value["apiVersion"], root.value["agents"]
    entries = tuple(
        AgentEntry(pattern, node.named_at, node) for pattern, node in agents.value.items()
    )
    return AgentsFile(source, version, agents.named_at, entries)


def policy_for(agent: str, file: AgentsFile) -> Policy:
    """Return the policy that the agent of this name runs under.

    An entry of exactly this name comes first, then the globs in the order written. Raises
    `PolicyError` when no entry fits, and for every mistake in what the entry says; what is wrong
    with the policies of other entries is not looked at.
    """
    if (entry := entry_of(agent, file)) is None:
        raise _no_entry(agent, file)
    return entry_policy(entry, file, agent=agent)


def entry_of(agent: str, file: AgentsFile) -> AgentEntry | None:
    """Return the entry for an agent as `policy_for` chooses it, None if none fits."""
    exact = [entry for entry in file.entries if entry.pattern == agent]
    globs = (entry for entry in file.entries if agent and fnmatchcase(agent, entry.pattern))
    return next(iter((*exact, *globs)), None)


def entry_policy(entry: AgentEntry, file: AgentsFile, *, agent: str) -> Policy:
    """Read what the entry says; a policy written in it gets the agent's name.

    Paths are relative to the folder of the `policyctx.yaml`. Raises `PolicyError` listing every
    mistake with its place.
    """
    if not entry.says.is_map:
        return _policy_named_by(entry, file)
    # The agent's name is a name: it is set once variables have been looked for.
    head = {"apiVersion": file.version, "name": Node("agent", entry.place, entry.place)}
    own = entry.says._replace(value={**head, **entry.says.value})
    try:
        tree = loading.completed(loading.with_bases(own, file.source, environment()))
        named = {**tree.value, "name": Node(agent, entry.place, entry.place)}
        return loading.validated(tree._replace(value=named))
    except PolicyError as error:
        found = loading.at_causes(error.diagnostics, file.source, environment(), own)
        raise PolicyError(found) from None


def _policy_named_by(entry: AgentEntry, file: AgentsFile) -> Policy:
    node = loading.substituted(entry.says, environment())
    if problems := loading.unset(node):
        raise PolicyError(problems)
    name = str(node.value) if node.raw is None else node.raw
    try:
        return loading.parsed_policy(policy_source(name, beside=file.source))
    except UnknownPolicyError as error:
        [unknown] = error.diagnostics
        sentence = f"no policy {word(node)}: it is neither a file nor a preset"
        raise PolicyError([replace(unknown, place=node.place, sentence=sentence)]) from None
    except PolicyError as error:
        raise PolicyError([loading.refused(error, node)]) from None


def _wrong_keys(root: Node) -> Iterator[Diagnostic]:
    for key, node in root.value.items():
        if key not in _KEYS:
            yield Diagnostic(node.named_at, "PC101", f"unknown key {key!r}", hint(key, _KEYS))
    for key in _KEYS:
        if root.child(key) is None:
            yield Diagnostic(root.place, "PC102", f"the key {key!r} is missing")
    version = root.child("apiVersion")
    if version is not None and version.value not in VERSIONS:
        yield not_one_of(version, list(VERSIONS))


def _wrong_entries(agents: Node | None) -> Iterator[Diagnostic]:
    if agents is None:
        return
    if not agents.is_map:
        sentence = f"expected a map of agents, got {shown(agents.value)}"
        yield Diagnostic(agents.place, "PC103", sentence)
        return
    for pattern, node in agents.value.items():
        if not pattern:
            sentence = "expected an agent's name or a glob, got ''"
            yield Diagnostic(node.named_at, "PC106", sentence)
        yield from _wrong_entry(node)


def _wrong_entry(node: Node) -> Iterator[Diagnostic]:
    if not node.is_map and not isinstance(node.value, str):
        sentence = f"expected a preset's name, a file's path or a policy, got {shown(node.value)}"
        yield Diagnostic(node.place, "PC103", sentence)
    for key, sentence in _NOT_IN_AN_ENTRY.items():
        if child := node.child(key):
            yield Diagnostic(child.named_at, "PC107", sentence)


def _no_entry(agent: str, file: AgentsFile) -> PolicyError:
    known = [entry.pattern for entry in file.entries]
    names = f"its entries are {', '.join(known)}" if known else "it has no entries"
    likely = hint(agent, known)
    said = f"{likely} {names[0].upper()}{names[1:]}" if likely else names
    return PolicyError([Diagnostic(file.place, "PC206", f"no entry for the agent {agent!r}", said)])


def agents_schema() -> dict[str, Any]:
    """Return the JSON Schema (draft 2020-12) of a `policyctx.yaml`, as plain values.

    It accepts what `read_agents` and `entry_policy` accept, as far as one file shows.
    """
    policy = policy_schema()
    version = policy["properties"]["apiVersion"]
    definitions = policy["$defs"]
    entry = {
        key: value
        for key, value in policy.items()
        if key not in {"$schema", "$id", "title", "$defs", "required"}
    }
    entry["description"] = "A policy of the agent's own."
    entry["properties"] = {
        name: part for name, part in policy["properties"].items() if name not in _NOT_IN_AN_ENTRY
    }
    agents = {
        "description": (
            "Each agent's policy by its name or a glob. The exact name comes first, then the globs"
            " in the order written."
        ),
        "type": "object",
        "propertyNames": {"minLength": 1},
        "additionalProperties": {"anyOf": [_NAMED, {"$ref": "#/$defs/Entry"}]},
        "examples": [{"coder": "coding-agent", "*": "./policies/others.yaml"}],
    }
    return {
        "$schema": DIALECT,
        "$id": schema_id("agents"),
        "title": "Agents and their policies",
        "description": "Which agent runs under which policy.",
        "type": "object",
        "required": ["apiVersion", "agents"],
        "properties": {"apiVersion": version, "agents": agents},
        "additionalProperties": False,
        "$defs": {"Entry": entry, **definitions},
    }
