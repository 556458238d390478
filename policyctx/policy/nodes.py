"""The tree of a policy file, read by the strict loader: values with positions, and their models."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Any, Literal, NamedTuple, NoReturn, TypeAlias, get_args, get_origin

import yaml

from policyctx.definitions.actions import STEP_ACTIONS, Action
from policyctx.definitions.items import HostObject, PlainValue
from policyctx.errors import Diagnostic, Location, PolicyError, nearest
from policyctx.policy.models import Policy, Section
from policyctx.policy.sources import PolicySource

Path: TypeAlias = tuple[str | int, ...]
# A full-width sign stands so far above its half-width twin.
_FULL_WIDTH = {chr(ord(sign) + 0xFEE0): sign for sign in ":,{}[]"} | {"“": '"', "”": '"'}
# By what the parser says; the first that is part of it counts.
_HINTS = {
    "mapping values are not allowed": "quote a text that has a colon and a space in it",
    "expected alphabetic or numeric": "quote a text that begins with `*` or `&`",
    "could not find expected ':'": "a key ends with a colon and a space, one line above perhaps",
    "unknown escape character": "use single quotes where a backslash is meant as one",
    "did not find expected key": "quote a text that begins with `{` or `[`; indent keys of one map"
    " alike",
    "expected '-' indicator": "indent the keys of one map alike",
}


class Node(NamedTuple):
    """A map (of nodes), a list (of nodes) or a scalar.

    `key` is the place of the key that a map has it under. `raw` is the text that `${…}` stood for
    before it was typed, None for any other value. `variable` is the expression as written, such as
    `${NAME:-5}`, where the environment gave the value: such a value may be a secret, so messages
    show the expression instead. It is None where the default in the file was used. `lost` are the
    keys of an inherited step that this one replaces, and that it does not have. `written_in` are
    the lines of a scalar with braces as in the file, each with the place of its first character.
    """

    value: Any
    place: Location
    key: Location | None = None
    raw: str | None = None
    variable: str | None = None
    lost: tuple[str, ...] = ()
    written_in: tuple[tuple[Location, str], ...] = ()

    @property
    def is_map(self) -> bool:
        """Is it a map."""
        return isinstance(self.value, dict)

    @property
    def at(self) -> Location:
        """Where a person looks for it: a map or a list at its key, a scalar itself."""
        return (self.key if isinstance(self.value, dict | list) else None) or self.place

    def plain(self, *, is_shown: bool = False) -> PlainValue:
        """Return the value without its places; see `as_written` for one that is shown."""
        if isinstance(self.value, dict):
            return {key: child.plain(is_shown=is_shown) for key, child in self.value.items()}
        if isinstance(self.value, list):
            return [child.plain(is_shown=is_shown) for child in self.value]
        return self.variable if is_shown and self.variable is not None else self.value

    def as_written(self) -> PlainValue:
        """Return the value without its places; the expression where the environment gave it."""
        return self.plain(is_shown=True)

    def mapped(self, change: Callable[[Path, Node], Node], path: Path = ()) -> Node:
        """Return the tree with each scalar changed, which is given with its path."""
        if isinstance(self.value, dict):
            parts = {k: node.mapped(change, (*path, k)) for k, node in self.value.items()}
            return self._replace(value=parts)
        if isinstance(self.value, list):
            elements = [node.mapped(change, (*path, i)) for i, node in enumerate(self.value)]
            return self._replace(value=elements)
        return change(path, self)

    @property
    def named_at(self) -> Location:
        """Where its key is; the place of what has no key."""
        return self.key or self.place

    @property
    def elements(self) -> list[Node]:
        """The elements of a list; none of any other value."""
        return list(self.value) if isinstance(self.value, list) else []

    @property
    def parts(self) -> list[tuple[str | int, Node]]:
        """What a map or a list holds, by key or index; nothing of a scalar."""
        return list(self.value.items() if self.is_map else enumerate(self.elements))

    def child(self, *path: str | int) -> Node | None:
        """Return what is under a key or at an index, or at the end of a path; None for nothing."""
        node: Node | None = self
        for part in path:
            found = None
            if node is not None and isinstance(node.value, dict):
                found = node.value.get(part)
            elif node is not None and isinstance(part, int) and part < len(node.elements):
                found = node.elements[part]
            node = found
        return node

    def without(self, *keys: str) -> Node:
        """Return a map without these keys, and any other value as it is."""
        if not self.is_map:
            return self
        return self._replace(value={k: v for k, v in self.value.items() if k not in keys})

    def changed(self, path: Path, change: Callable[[Node], Node | None]) -> Node:
        """Return the tree with what is at `path` changed, or left out where the change is None.

        A tree that lacks the path comes back as it is.
        """
        first, *rest = path
        if (child := self.child(first)) is None:
            return self
        new = child.changed(tuple(rest), change) if rest else change(child)
        if self.is_map:
            parts = {key: new if key == first else old for key, old in self.value.items()}
            return self._replace(value={key: one for key, one in parts.items() if one is not None})
        elements = [new if i == first else old for i, old in enumerate(self.value)]
        return self._replace(value=[one for one in elements if one is not None])

    def said(self, *path: str | int) -> Any:  # noqa: ANN401 - what a file may say
        """Return the value at the end of a path, None for nothing."""
        child = self.child(*path)
        return None if child is None else child.value

    def deepest(self, path: Path) -> tuple[Path, Node]:
        """Follow `path` as far as the tree has it; parts that it lacks are skipped."""
        node: Node = self
        found: Path = ()
        for part in path:
            if (child := node.child(part)) is not None:
                node, found = child, (*found, part)
        return found, node

    def written(self, names: Path) -> Location | None:
        """Return where the policy says what `names` lead to, steps by their names; else None."""
        node: Node = self
        for name in names:
            child = node.child(name) if node.is_map else node.element(name)
            if child is None:
                return None
            node = child
        return node.named_at

    def named(self, name: object) -> Node | None:
        """Return the element of a list of maps that has this `name`, None when none has."""
        found = (element for element in self.elements if element.child("name") is not None)
        return next((element for element in found if element.said("name") == name), None)

    def element(self, name: str | int) -> Node | None:
        """Return what a part of a path leads to in a list: the map of this name, or at this index.

        The index of an only map is left out, such as that of an only alternative of `when`.
        """
        if (found := self.named(name)) is not None:
            return found
        if isinstance(name, str) and name.isdecimal():
            return self.child(int(name))
        only = self.child(0) if isinstance(self.value, list) and len(self.value) == 1 else None
        return None if only is None else only.child(name)

    def leaves(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Yield every scalar, empty map and empty list with its path, in order."""
        parts = self.parts
        if not parts:
            yield path, self
        for part, child in parts:
            yield from child.leaves((*path, part))


def sections(
    node: Node,
    annotation: Any = Policy,  # noqa: ANN401 - a type expression
    path: Path = (),
) -> Iterator[tuple[Path, type[Section], Node]]:
    """Yield every map that a model describes, with its path and the model; skip unknown keys."""
    if node.is_map and (model := model_in(annotation)) is not None:
        yield path, model, node
    for part, child in node.parts:
        if (inner := part_type(annotation, part)) is not None:
            yield from sections(child, inner, (*path, part))


def part_type(annotation: Any, part: str | int) -> Any:  # noqa: ANN401 - type expressions
    """Return the type of what is at `part` in a value of this type, None when none does."""
    if isinstance(part, int):
        return annotation
    if (values := value_type(annotation)) is not None:
        return values
    model = model_in(annotation)
    field = model.model_fields.get(part) if model else None
    return field and field.annotation


def type_at(path: Path) -> Any:  # noqa: ANN401 - a type expression
    """Return the type of what is at `path` in a policy, None when the path leads nowhere."""
    annotation: Any = Policy
    for part in path:
        annotation = part_type(annotation, part)
    return annotation


def value_type(annotation: Any) -> Any:  # noqa: ANN401 - type expressions
    """Return the type of the values of a map by name, such as `tools`; None for any other type."""
    return get_args(annotation)[1] if get_origin(annotation) is dict else None


def model_in(annotation: Any) -> type[Section] | None:  # noqa: ANN401 - a type expression
    """Return the model in a type such as `Rule | None` or `tuple[Step, ...]`, None for none."""
    if isinstance(annotation, type) and issubclass(annotation, Section):
        return annotation
    if get_origin(annotation) is dict:
        return None
    return next((m for a in get_args(annotation) if (m := model_in(a)) is not None), None)


@cache
def words() -> frozenset[str | bool | None]:
    """Return every word that a key of the language may take as its value."""
    found: set[str | bool | None] = {True, False, None}
    for path in keys_below(Policy):
        todo = [type_at(path)]
        while todo:
            annotation = todo.pop()
            is_words = get_origin(annotation) is Literal
            found.update(get_args(annotation) if is_words else ())
            todo += () if is_words else get_args(annotation)
    return frozenset(found)


def keys_below(model: type[Section], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the path of every key that a model and those in it have; `*` stands for a name."""
    for name, field in model.model_fields.items():
        yield (*path, name)
        values = value_type(field.annotation)
        inner = model_in(field.annotation if values is None else values)
        if inner is not None:
            yield from keys_below(inner, (*path, name) if values is None else (*path, name, "*"))


def action_of(step: Node) -> Action | None:
    """Return the action of a step, None where it has none that is known."""
    return STEP_ACTIONS.get(str(step.said("do")))


def compacts(step: Node) -> bool:
    """Return whether a step replaces messages by a summary."""
    action = action_of(step)
    return action is not None and action.takes_messages


def steps_of(root: Node) -> list[Node]:
    """Return the steps of a policy, none where there is no list of them."""
    steps = root.child("steps")
    return [] if steps is None else steps.elements


def pairs_of(node: Node | None) -> list[tuple[str, Node]]:
    """Return the keys of a map and what is under them; nothing where no map is."""
    return list(node.value.items()) if node is not None and node.is_map else []


def elements_of(node: Node | None) -> list[Node]:
    """Return the elements of a list; a single value stands for a list of one."""
    if node is None:
        return []
    return node.value if isinstance(node.value, list) else [node]


def hint_for(error: PlainValue, lines: Sequence[str]) -> str:
    """Return what to mend for an error of the parser, empty when nothing likely is known."""
    mark, context = error.problem_mark, error.context_mark
    first = (context or mark).line if context or mark else 0
    for char in "".join(lines[first : mark.line + 1 if mark else first + 1]):
        if char in _FULL_WIDTH:
            return f"{char!r} is a full-width sign; use {_FULL_WIDTH[char]!r}"
    problem = str(error.problem)
    if "cannot start any token" in problem and mark:
        char = lines[mark.line][mark.column]
        is_tab = char == "\t"
        return "indent with spaces, not with a tab" if is_tab else f"quote a text with {char!r}"
    if context and ("end of stream" in problem or "expected ',' or" in problem):
        opened = lines[context.line][context.column]
        closing = f"the {opened} at {context.line + 1}:{context.column + 1} may not be closed"
        is_text = opened in "[{" and mark is not None and mark.line == context.line
        return f"{closing}; quote a text that begins with `{opened}`" if is_text else closing
    return next((hint for said, hint in _HINTS.items() if said in problem), "")


MAX_DEPTH = 32

# What the `apiVersion` of a policy begins with, and how a text says so that need not be YAML.
_OWNER = "policyctx/"
_CLAIM = re.compile(rf"""(?m)^[\s{{]*["']?apiVersion["']?\s*:\s*["']?{_OWNER}""")

# A number of more digits than any key could mean stays a string, and is refused as one.
_INT = re.compile(r"[-+]?[0-9]{1,300}|0o[0-7]{1,300}|0x[0-9a-fA-F]{1,300}")
_FLOAT = re.compile(r"[-+]?((\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_INFINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_WORDS: dict[str, bool | None] = {"": None, "~": None, "null": None, "Null": None, "NULL": None}
_WORDS |= {word: word[0] in "tT" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}

# libyaml reads ten times faster; a build of PyYAML without it gives the same events.
_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read_yaml(source: PolicySource) -> Node:
    """Parse a text by the rules of policy files; an empty text is a node of None.

    Raises `PolicyError` with all mistakes up to where the text stops being YAML.
    """
    return _NodeReader(source).document()


def read_policy_yaml(source: PolicySource) -> Node:
    """Parse the text of a policy; an empty text is a node of None.

    Raises `PolicyError` as `read_yaml` does. Of a file that is not a policy the error says that
    alone, since its lines may be secret. One that the user names may still lack its `apiVersion`.
    """
    place, likely = Location(source.name), ""
    try:
        root = read_yaml(source)
    except PolicyError as error:
        if _CLAIM.search(source.text) or (source.path is None and not source.is_indirect):
            raise
        if not source.is_indirect:
            unquoted = partial(replace, source_line="")
            found = [replace(one, place=unquoted(one.place)) for one in error.diagnostics]
            raise PolicyError(found) from None
        why = "it is not YAML"
    else:
        version, keys = root.child("apiVersion"), root.value if root.is_map else {}
        if version is not None and _OWNER in str(version.value):
            return root
        is_known = not source.is_indirect
        odd = next((key for key in keys if key not in Policy.model_fields), None)
        texts = (node.value for node in keys.values() if isinstance(node.value, str))
        is_meant = any(text.startswith(_OWNER) for text in texts)
        if is_known and (source.path is None or is_meant or (keys and odd is None)):
            return root
        why = f"it has no `apiVersion` that begins with `{_OWNER}`"
        if is_known and odd is not None:
            place = replace(keys[odd].named_at, source_line="")
            why += f", and {odd!r} is not a key of one"
            near = nearest(odd, Policy.model_fields)
            likely = f"did you mean {near!r}?" if near else ""
    raise PolicyError([Diagnostic(place, "PC208", f"is not a policy: {why}", likely)])


class _NodeReader:
    def __init__(self, source: PolicySource) -> None:
        self.source = source
        self.lines = source.text.splitlines()
        self.events: Iterator[Any] = yaml.parse(source.text, Loader=_Loader)
        self.problems: list[Diagnostic] = []

    def document(self) -> Node:
        try:
            return self._only_document()
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            self._refuse("PC002", f"not YAML: {error.problem}", mark, hint_for(error, self.lines))
        except yaml.reader.ReaderError:
            raise PolicyError([self._forbidden_character()]) from None

    def _forbidden_character(self) -> Diagnostic:
        text = self.source.text
        found = yaml.reader.Reader.NON_PRINTABLE.search(text)
        at = found.start() if found else 0
        line, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
        place = Location(self.source.name, line, column, self._line(line))
        sentence = f"the character U+{ord(text[at]):04X} is not allowed in YAML"
        return Diagnostic(place, "PC002", sentence)

    def _only_document(self) -> Node:
        found: Node | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    self._refuse("PC002", "a policy is one document", event.start_mark)
                found = self._node(next(self.events), depth=1)
        if self.problems:
            raise PolicyError(self.problems)
        return found or Node(None, Location(self.source.name, 1, 1, self._line(1)))

    def _node(self, event: HostObject, depth: int, key: Location | None = None) -> Node:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            sentence = "anchors and aliases are not allowed"
            self._note("PC003", sentence, event, "quote a text that begins with `*` or `&`")
        if getattr(event, "tag", None) is not None:
            self._note("PC003", "tags are not allowed", event, "quote a text that begins with `!`")
        if depth > MAX_DEPTH:
            self._refuse("PC006", f"nested deeper than {MAX_DEPTH} levels", event.start_mark)
        place = self._place(event.start_mark)
        if isinstance(event, yaml.AliasEvent):
            return Node(None, place, key)
        if isinstance(event, yaml.MappingStartEvent):
            return Node(self._map(depth, place), place, key)
        if isinstance(event, yaml.SequenceStartEvent):
            return Node(self._list(depth), place, key)
        value = event.value if event.style else typed(event.value)
        has_brace = "{" in event.value or "}" in event.value
        return Node(value, place, key, written_in=self._written(event) if has_brace else ())

    def _written(self, event: HostObject) -> tuple[tuple[Location, str], ...]:
        """Return the lines of a scalar, each with the place of its first character."""
        start, end = event.start_mark, event.end_mark
        found = []
        for number in range(start.line, end.line + 1):
            line, first = self._line(number + 1), start.column if number == start.line else 0
            place = Location(self.source.name, number + 1, first + 1, line)
            found.append((place, line[first : end.column if number == end.line else None]))
        return tuple(found)

    def _list(self, depth: int) -> list[Node]:
        found: list[Node] = []
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            found.append(self._node(event, depth + 1))
        return found

    def _map(self, depth: int, place: Location) -> dict[str, Node]:
        found: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1)
            value = self._node(next(self.events), depth + 1, key.place)
            if isinstance(event, yaml.AliasEvent):
                continue  # told already
            if not isinstance(key.value, str):
                self._note("PC005", "a key must be a string", event, "quote it")
            elif key.value == "<<":
                self._note("PC003", "merge keys are not allowed", event, "use `extends`")
            elif key.value in found:
                first = found[key.value].key or place
                where = first.seen_from(self._place(event.start_mark))
                sentence = f"the key {key.value!r} stands twice"
                self._note("PC004", sentence, event, f"the first is at {where}; keep one of them")
            else:
                found[key.value] = value
        return found

    def _note(self, code: str, sentence: str, event: HostObject, hint: str) -> None:
        """Remember a mistake after which the rest can still be read."""
        self.problems.append(Diagnostic(self._place(event.start_mark), code, sentence, hint))

    def _place(self, mark: PlainValue) -> Location:
        line = mark.line + 1
        return Location(self.source.name, line, mark.column + 1, self._line(line))

    def _line(self, line: int) -> str:
        return self.lines[line - 1] if 0 < line <= len(self.lines) else ""

    def _refuse(self, code: str, sentence: str, mark: HostObject, hint: str = "") -> NoReturn:
        place = self._place(mark) if mark else Location(self.source.name, 1, 1, self._line(1))
        raise PolicyError([*self.problems, Diagnostic(place, code, sentence, hint)]) from None


def typed(text: str) -> HostObject:
    """Type a plain scalar by the YAML 1.2 core schema."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in {"0o", "0x"} else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return float(text.replace(".", "")) if _INFINITE.fullmatch(text) else text
