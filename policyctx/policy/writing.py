"""A policy as YAML, as a person writes it: the whole document, or a value in one line."""

import json
import re
from typing import Any

import yaml

from policyctx.definitions.items import PlainValue
from policyctx.errors import Location, present
from policyctx.policy.models import Policy
from policyctx.policy.nodes import Node, Path, typed

# A text that needs no quotes.
_PLAIN = re.compile(r"[^\s,\[\]{}#&*!|>'\"%@`:?-][^\n,\[\]{}#:]*(?<! )")
# What names a policy leads it; the rest follows in the order of the reference.
_FIRST = ("apiVersion", "name", "description")


def resolved_yaml(root: Node) -> str:
    """Return the tree as YAML, the top level in the order of the reference.

    A value from the environment is shown as its expression, such as `${NAME}`.
    """
    return document_yaml(root.as_written())


def document_yaml(plain: dict[str, Any]) -> str:
    """Return the plain values of a policy as YAML, the top level in the order of the reference."""
    text: str = yaml.dump(
        _Root((key, plain[key]) for key in (*_FIRST, *Policy.model_fields) if key in plain),
        Dumper=_Dumper,
        sort_keys=False,
        allow_unicode=True,
        default_flow_style=False,
        width=100,
    )
    return text


def inline(value: PlainValue) -> str:
    """Return a value as YAML in one line, as a person writes it."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{inline(k)}: {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(inline, value)) + "]"
    if isinstance(value, str) and isinstance(typed(value), str) and _PLAIN.fullmatch(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def origins(root: Node) -> list[tuple[str, object, Location]]:
    """Return every value of the tree: its dotted path, itself, and where it was written.

    A step is named by its name, any other element of a list by its index. A value from the
    environment is shown as its expression.
    """
    return [(_dotted(root, path), node.as_written(), node.place) for path, node in root.leaves()]


def _dotted(root: Node, path: Path) -> str:
    node = root
    parts: list[str] = []
    for part in path:
        child = present(node.child(part))
        name = child.child("name") if path[:1] == ("steps",) and isinstance(part, int) else None
        parts.append(str(name.as_written()) if name and len(parts) == 1 else str(part))
        node = child
    return ".".join(parts)


class _Dumper(yaml.SafeDumper):
    """Writes the core schema of YAML 1.2, so that `on` needs no quotes; knows no aliases."""

    yaml_implicit_resolvers: dict[str | None, Any] = {}  # noqa: RUF012 - as PyYAML has it

    def ignore_aliases(self, data: PlainValue) -> bool:  # noqa: ARG002 - PyYAML's signature
        return True


class _Root(dict[str, Any]):
    """The outermost map."""


class _CoreScalar:
    """Matches the plain scalars of one type, as PyYAML asks a resolver's pattern."""

    def __init__(self, kind: type) -> None:
        self._kind = kind

    def match(self, text: str) -> bool:
        return type(typed(text)) is self._kind


def _string(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None
    if "\n" in text:
        style = "|" if _fits_a_block(text) else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


def _fits_a_block(text: str) -> bool:
    """Can the text stand as a block without a change: no odd spaces, nothing unprintable."""
    lines = text.split("\n")
    plain = all(line.isprintable() and line == line.rstrip() for line in lines)
    return plain and not text.startswith((" ", "\n"))


def _float(dumper: yaml.SafeDumper, number: float) -> yaml.ScalarNode:
    text = repr(number).replace("inf", ".inf").replace("nan", ".nan")
    return dumper.represent_scalar("tag:yaml.org,2002:float", text)


def _map(dumper: yaml.SafeDumper, value: dict[str, Any]) -> yaml.MappingNode:
    """Innermost maps go on one line; the policy itself never does."""
    is_inner = not any(isinstance(part, dict | list) for part in value.values())
    flow = is_inner and not isinstance(value, _Root)
    return dumper.represent_mapping("tag:yaml.org,2002:map", value, flow_style=flow)


def _list(dumper: yaml.SafeDumper, value: list[Any]) -> yaml.SequenceNode:
    flow = not any(isinstance(part, dict | list) for part in value)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", value, flow_style=flow)


_Dumper.add_representer(str, _string)
_Dumper.add_representer(float, _float)
_Dumper.add_representer(dict, _map)
_Dumper.add_representer(_Root, _map)
_Dumper.add_representer(list, _list)
for _tag, _kind in {"int": int, "float": float, "bool": bool, "null": type(None)}.items():
    _Dumper.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", _CoreScalar(_kind), None)
