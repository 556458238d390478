"""Strict YAML: what a policy file may contain, and where in the file each value stands.

Scalars are typed by the YAML 1.2 core schema, so `on`, `no`, `1:30` and `1_000` are strings.
Anchors, aliases, tags, merge keys, duplicate keys and keys that are no string are refused.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import yaml

from policyctx.errors import PolicyError

if TYPE_CHECKING:
    from policyctx.policy.sources import Source

MAX_DEPTH = 32

Path: TypeAlias = tuple[str | int, ...]
Mark: TypeAlias = tuple[int, int]

# A number of more digits than any key could mean stays a string, and is refused as one.
_INT = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {
    word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")
}


@dataclass(frozen=True, slots=True)
class YamlDocument:
    """A parsed policy: plain values, and a 1-based (line, column) for every key and value.

    `marks` is keyed by the path to a value; `key_marks` holds the place of the key before it.
    """

    source: Source
    value: Any
    marks: dict[Path, Mark]
    key_marks: dict[Path, Mark]

    def problem(self, path: Path, sentence: str, *, at_key: bool = False) -> str:
        """Return `file:line:column: sentence` for the value at `path`, or the nearest above it."""
        marks = self.key_marks if at_key and path in self.key_marks else self.marks
        while path and path not in marks:
            path = path[:-1]
        line, column = marks.get(path, (1, 1))
        return f"{self.source.name}:{line}:{column}: {sentence}"


def read_yaml(source: Source) -> YamlDocument:
    """Parse the text of a policy; raises `PolicyError` with the place of the first mistake."""
    reader = _Reader(source)
    try:
        root = yaml.compose(source.text, Loader=_Composer)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{mark.line + 1}:{mark.column + 1}" if mark else "1:1"
        raise PolicyError([f"{source.name}:{where}: not YAML: {error.problem}"]) from None
    except yaml.reader.ReaderError as error:
        raise PolicyError(
            [f"{source.name}: character {error.position} is not allowed in YAML"]
        ) from None
    value = reader.value(root, ()) if root is not None else None
    return YamlDocument(source, value, reader.marks, reader.key_marks)


class _Composer(yaml.SafeLoader):
    """Composes nodes only, and stops at what a policy may not contain before it can expand."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:  # noqa: ANN401 - PyYAML's own signature
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None) is not None:
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases are not allowed; write the value out",
                problem_mark=event.start_mark,
            )
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(
                problem="tags are not allowed", problem_mark=event.start_mark
            )
        if self.depth >= MAX_DEPTH:
            raise yaml.MarkedYAMLError(
                problem=f"nested deeper than {MAX_DEPTH} levels", problem_mark=event.start_mark
            )
        self.depth += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.depth -= 1


class _Reader:
    """Turns nodes into plain values and notes where each stood."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.marks: dict[Path, Mark] = {}
        self.key_marks: dict[Path, Mark] = {}

    def value(self, node: yaml.Node, path: Path) -> Any:  # noqa: ANN401 - YAML holds any value
        self.marks[path] = _mark(node)
        if isinstance(node, yaml.MappingNode):
            return self._map(node, path)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(child, (*path, i)) for i, child in enumerate(node.value)]
        return node.value if _is_quoted(node) else _typed(node.value)

    def _map(self, node: yaml.MappingNode, path: Path) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key_node, child in node.value:
            key = key_node.value
            if not isinstance(key_node, yaml.ScalarNode) or (
                not _is_quoted(key_node) and not isinstance(_typed(key), str)
            ):
                self._refuse(key_node, "a key must be a string")
            if key == "<<":
                self._refuse(key_node, "merge keys are not allowed")
            if key in found:
                self._refuse(key_node, f"the key {key!r} stands twice")
            self.key_marks[(*path, key)] = _mark(key_node)
            found[key] = self.value(child, (*path, key))
        return found

    def _refuse(self, node: yaml.Node, sentence: str) -> None:
        line, column = _mark(node)
        raise PolicyError([f"{self.source.name}:{line}:{column}: {sentence}"])


def _is_quoted(node: yaml.Node) -> bool:
    return bool(getattr(node, "style", None))


def _mark(node: yaml.Node) -> Mark:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _typed(text: str) -> Any:  # noqa: ANN401 - the core schema's scalars
    """Type a plain scalar by the YAML 1.2 core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    if _INFINITE.fullmatch(text):
        return float(text.replace(".", ""))
    return text
