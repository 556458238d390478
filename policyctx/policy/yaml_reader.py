"""Strict YAML: from a policy's text to a tree of nodes.

Scalars are typed by the YAML 1.2 core schema, so `on`, `no`, `1:30` and `1_000` are strings.
Anchors, aliases, tags, merge keys, duplicate keys and keys that are no string are refused. Nothing
is expanded, so no text costs more than reading it.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NoReturn

import yaml

from policyctx.errors import Diagnostic, Place, PolicyError
from policyctx.policy.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.policy.sources import Source

MAX_DEPTH = 32

# A number of more digits than any key could mean stays a string, and is refused as one.
_INT = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {word: word[0] in "tT" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}

# libyaml reads ten times faster; a build of PyYAML without it gives the same events.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(source: Source) -> Node:
    """Parse the text of a policy; an empty text is a node of None.

    Raises `PolicyError` with the place of the first mistake.
    """
    return _Reader(source).document()


class _Reader:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.lines = source.text.splitlines()
        self.events: Iterator[Any] = yaml.parse(source.text, Loader=_Loader)

    def document(self) -> Node:
        try:
            return self._only_document()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._refuse("PC002", f"not YAML: {error.problem}", mark)
        except yaml.reader.ReaderError as error:
            line = self.source.text.count("\n", 0, error.position) + 1
            column = error.position - self.source.text.rfind("\n", 0, error.position)
            place = Place(self.source.name, line, column, self._line(line))
            code = error.character if isinstance(error.character, int) else ord(error.character)
            sentence = f"the character U+{code:04X} is not allowed in YAML"
            raise PolicyError([Diagnostic(place, "PC002", sentence)]) from None

    def _only_document(self) -> Node:
        found: Node | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    self._refuse("PC002", "a policy is one document", event.start_mark)
                found = self._node(next(self.events), depth=1)
        return found or Node(None, Place(self.source.name, 1, 1, self._line(1)))

    def _node(self, event: Any, depth: int, key: Place | None = None) -> Node:  # noqa: ANN401
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self._refuse("PC003", "anchors and aliases are not allowed", event.start_mark)
        if event.tag is not None:
            self._refuse("PC003", "tags are not allowed", event.start_mark)
        if depth > MAX_DEPTH:
            self._refuse("PC006", f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
        place = self._place(event.start_mark)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(self._map(depth), place, key)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._list(depth), place, key)
        return Node(event.value if event.style else typed(event.value), place, key)

    def _list(self, depth: int) -> list[Node]:
        found: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            found.append(self._node(event, depth + 1))
        return found

    def _map(self, depth: int) -> dict[str, Node]:
        found: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            if not isinstance(key.value, str):
                self._refuse("PC005", "a key must be a string", event.start_mark)
            if key.value == "<<":
                self._refuse("PC003", "merge keys are not allowed", event.start_mark)
            if key.value in found:
                self._refuse("PC004", f"the key {key.value!r} stands twice", event.start_mark)
            found[key.value] = self._node(next(self.events), depth + 1, key.place)
        return found

    def _place(self, mark: Any) -> Place:  # noqa: ANN401 - PyYAML's marks have no type
        line = mark.line + 1
        return Place(self.source.name, line, mark.column + 1, self._line(line))

    def _line(self, line: int) -> str:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def _refuse(self, code: str, sentence: str, mark: Any) -> NoReturn:  # noqa: ANN401
        place = self._place(mark) if mark else Place(self.source.name, 1, 1, self._line(1))
        raise PolicyError([Diagnostic(place, code, sentence)]) from None


def typed(text: str) -> Any:  # noqa: ANN401 - the core schema's scalars
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
