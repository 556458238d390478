"""Shapes that a host supplies, with their answers checked.

A host's shape is code that the package does not know. Each answer is checked where it is given, so
that a mistake becomes an error that names the shape instead of a list that a provider rejects. The
cost is that of the messages that are read and edited; lists of the built-in shapes pay nothing.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from operator import attrgetter
from types import GeneratorType

from policyctx.definitions.items import UNKNOWN, HostObject, Medium, Message, Path, Ttl
from policyctx.errors import ShapeError
from policyctx.messages.json_text import JSON, Form, Text, json_pieces
from policyctx.messages.shapes.block_texts import BlockList
from policyctx.messages.shapes.shape import RESULT_ROLES, SYSTEM_ROLES, Part, Shape

# The kinds of parts that a message of each role may have.
_MEDIA = frozenset({"image", "document"})
_ANYWHERE = {*_MEDIA, UNKNOWN}
_KINDS = {
    **dict.fromkeys(SYSTEM_ROLES, frozenset({"system_prompt", *_ANYWHERE})),
    "user": frozenset({"user_message", "system_prompt", "tool_result", *_ANYWHERE}),
    "assistant": frozenset({"assistant_message", "thinking", "tool_call", *_ANYWHERE}),
    **dict.fromkeys(RESULT_ROLES, frozenset({"tool_result", *_ANYWHERE})),
}
_SIMPLE_KINDS = {role: kinds - _MEDIA for role, kinds in _KINDS.items()}
_ALL_KINDS = frozenset().union(*_KINDS.values())
_WORD = (str, type(None))
_ITERABLES = (GeneratorType, list)
_STEPS = frozenset({str, int})
_METHODS = (
    "recognises", "role", "parts", "replaced", "written", "plain", "block", "problem", "is_empty",
    "stays",
)  # fmt: skip
_SHOWN_CHARS = 60
_STRICT = Form(json.JSONEncoder().encode)


def host_shapes(shapes: Iterable[Shape]) -> tuple["HostShape", ...]:
    """Return the shapes, checked; raises `ShapeError` for a value that is not a shape."""
    if isinstance(shapes, type) or not isinstance(shapes, Iterable):
        raise ShapeError(_name(shapes), "`shapes` is a list of shapes, not one shape")
    return tuple(map(HostShape, shapes))


def _name(shape: object) -> str:
    return shape.__name__ if isinstance(shape, type) else type(shape).__name__


class HostShape(Shape):
    """A host's shape that raises `ShapeError` for every answer that breaks the contract.

    So does the constructor for a value that has not all methods.
    """

    def __init__(self, shape: Shape) -> None:
        self._shape, self._name = shape, _name(shape)
        if isinstance(shape, type):
            raise self._error("`shapes` holds instances, and this is a class")
        for method in _METHODS:
            if not callable(getattr(shape, method, None)):
                raise self._error(f"it has no method `{method}`; derive it from `Shape`")
        self.splits_replies = bool(getattr(shape, "splits_replies", False))
        self.alternates = bool(getattr(shape, "alternates", False))
        self.takes_markers = bool(getattr(shape, "takes_markers", False))
        self._has_blocks = getattr(type(shape), "block", None) is not Shape.block

    def recognises(self, message: object) -> bool:
        """Return whether the host's shape recognises the value."""
        try:
            return bool(self._shape.recognises(message))
        except Exception as error:
            raise self._failed("recognises", error) from error

    def problem(self, message: Message) -> str | None:
        """Return what is wrong with a message."""
        found: str | None = self._ask("problem", message)
        if found is not None and not isinstance(found, _WORD):
            raise self._error(f"`problem` returned {_shown(found)} instead of a string or None")
        return found

    def role(self, message: Message) -> str:
        """Return the role."""
        try:
            role: object = self._shape.role(message)
        except Exception as error:
            raise self._failed("role", error) from error
        if not isinstance(role, str) or role not in _KINDS:
            names = ", ".join(_KINDS)
            raise self._error(f"`role` returned {_shown(role)}; the roles are {names}")
        return role

    def parts(self, message: Message) -> list[Part]:
        """Return the parts as a list."""
        return self._parts(message, self.role(message))

    def _parts(self, message: Message, role: str) -> list[Part]:
        try:
            found = self._shape.parts(message)
            is_iterable = type(found) in _ITERABLES or _is_list(found)
            parts = list(found) if is_iterable else []
        except Exception as error:
            raise self._failed("parts", error) from error
        if not is_iterable:
            raise self._error(f"`parts` returned {_shown(found)} instead of a list of parts")
        if not _are_simple(parts, role) and (wrong := _wrong_with_parts(parts, role)):
            raise self._error(f"`parts` returned {wrong}")
        if len(parts) > 1 and not self._has_blocks and any(p.kind == "thinking" for p in parts):
            raise self._error("it yields `thinking` beside other parts, but has no `block`")
        return parts

    def replaced(self, message: Message, texts: Mapping[Path, str | None]) -> Message | None:
        """Return a new message, of which the parts are read back as they should be."""
        role = self.role(message)
        before = self._parts(message, role)
        new: Message | None = self._ask("replaced", message, dict(texts))
        if new is message:
            raise self._error("`replaced` returned the message that it was given")
        if self._parts(message, role) != before:
            raise self._error("`replaced` changed the message that it was given")
        if new is not None:
            if not self.recognises(new):
                raise self._error(f"`replaced` returned {_shown(new)}, which it does not recognise")
            if (other := self.role(new)) != role:
                raise self._error(f"`replaced` changed the role from {role} to {other}")
        after = [] if new is None else self._parts(new, role)
        if wrong := _wrong_with_edit(before, after, texts):
            raise self._error(f"after `replaced`, {wrong}")
        return new

    def written(self, role: str, text: str) -> Message:
        """Return a message that is read back as this one text of this role."""
        new = self._ask("written", role, text)
        if not self.recognises(new):
            raise self._error(f"`written` returned {_shown(new)}, which it does not recognise")
        kind = "user_message" if role == "user" else "assistant_message"
        found = [(part.kind, part.text) for part in self.parts(new)]
        if self.role(new) != role or found != [(kind, text)]:
            raise self._error(f"`written` returned a message that is not one text of the {role}")
        if self.plain(self._ask("written", role, text)) != self.plain(new):
            raise self._error("`written` returned two messages that differ for the same text")
        return new

    def written_with(self, text: str, message: Message, path: Path) -> Message | None:
        """Return a message of the user that this shape recognises, or None."""
        if not hasattr(self._shape, "written_with"):
            return None
        new: Message | None = self._ask("written_with", text, message, path)
        if new is not None and not (self.recognises(new) and self.role(new) == "user"):
            raise self._error(f"`written_with` returned {_shown(new)}, which is none of the user")
        return new

    def plain(self, message: Message) -> JSON:
        """Return the JSON values of the message."""
        return self._json("plain", message)

    def block(self, message: Message, path: Path) -> JSON:
        """Return the JSON values of what holds the part."""
        return self._json("block", message, path) if self._has_blocks else self.plain(message)

    def marked(self, message: Message, ttls: Mapping[Path, Ttl]) -> Message:
        """Return a message with these markers, of which the parts read as before."""
        before = [(part.kind, part.text) for part in self.parts(message)]
        new: Message = self._ask("marked", message, dict(ttls))
        if not self.recognises(new):
            raise self._error(f"`marked` returned {_shown(new)}, which it does not recognise")
        for one in (message, new):
            if [(part.kind, part.text) for part in self.parts(one)] != before:
                raise self._error("`marked` changed the parts of the message")
        return new

    def ttls(self, message: Message) -> Mapping[Path, Ttl]:
        """Return the lifetimes of the markers by path."""
        found: Mapping[Path, Ttl] = self._ask("ttls", message)
        if not isinstance(found, Mapping):
            raise self._error(f"`ttls` returned {_shown(found)} instead of a map")
        return found

    def is_empty(self, message: Message) -> bool:
        """Return whether the message says nothing."""
        return bool(self._ask("is_empty", message))

    def stays(self, message: Message) -> bool:
        """Return whether the message must survive a compaction."""
        return bool(self._ask("stays", message))

    def _ask(self, method: str, *arguments: object) -> HostObject:
        try:
            return getattr(self._shape, method)(*arguments)
        except Exception as error:
            raise self._failed(method, error) from error

    def _json(self, method: str, *arguments: object) -> JSON:
        found: JSON = self._ask(method, *arguments)
        try:
            for _ in json_pieces(found, _STRICT):
                pass
        except (RecursionError, TypeError, ValueError) as error:
            raise self._error(f"`{method}` returned what is not JSON: {error}") from error
        return found

    def _failed(self, method: str, error: Exception) -> ShapeError:
        hint = "; if the message is at fault, `problem` has to say so" if method == "parts" else ""
        return self._error(f"`{method}` raised {type(error).__name__}: {error}{hint}")

    def _error(self, mistake: str) -> ShapeError:
        return ShapeError(self._name, mistake)


def _is_list(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str | Mapping | Part)


def _are_simple(parts: Iterable[object], role: str) -> bool:
    """Whether a quick test shows correct parts without media, as it does for most messages."""
    paths, kinds = set[object](), _SIMPLE_KINDS[role]
    for part in parts:
        if type(part) is not Part:
            return False
        path, kind, text, counted, media, tool, call_id, _, media_type, number, *_ = part
        blocks = part.blocks
        if not (
            (type(kind) is str and kind in kinds and type(text) is str and type(path) is tuple)
            and (counted is None or type(counted) is str)
            and (tool is None or type(tool) is str)
            and (call_id is None or type(call_id) is str)
            and blocks is None
            and (media == () and media_type is None and type(number) is int and number == 0)
            and _STEPS.issuperset(map(type, path))
            and path not in paths
        ):
            return False
        paths.add(path)
    return True


def _wrong_with_parts(parts: Iterable[Part], role: str) -> str | None:
    paths, number, may_hold = set[tuple[object, ...]](), 0, False
    for part in parts:
        if wrong := _wrong_with_part(part, role):
            return wrong
        if part.path in paths:
            return f"two parts with the path {part.path!r}"
        paths.add(part.path)
        number = number + 1 if part.number else 0
        if part.number != number or (number and not may_hold):
            inside = "the numbers inside a result count from 1, right after it"
            return f"{part.kind} number {part.number}; {inside}"
        may_hold = part.kind == "tool_result" or number > 0
    return None


def _wrong_with_part(part: object, role: str) -> str | None:
    if not isinstance(part, Part):
        return f"{_shown(part)} instead of a `Part`"
    kind: object = part.kind
    if not isinstance(kind, str) or kind not in _ALL_KINDS:
        return f"the unknown kind {_shown(part.kind)}"
    if part.kind not in _KINDS[role]:
        return f"a part of the kind {part.kind} in a message of the role {role}"
    if part.kind in _MEDIA and role in RESULT_ROLES and not part.number:
        return f"a part of the kind {part.kind} without a number in a message of the role {role}"
    path: object = part.path
    if not isinstance(path, tuple) or not all(isinstance(step, str | int) for step in path):
        return f"the path {_shown(path)}, which is not a tuple of strings and numbers"
    return next((f"{what} of a part" for what in _wrong_fields(part)), None)


def _wrong_fields(part: Part) -> Iterable[str]:
    if not isinstance(part.text, Text):
        yield f"{_shown(part.text)} as the `text`"
    if not isinstance(part.counted, Text | None):
        yield f"{_shown(part.counted)} as the `counted`"
    for field in ("tool", "call_id", "media_type"):
        if not isinstance(value := getattr(part, field), _WORD):
            yield f"{_shown(value)} as the `{field}`"
    media: object = part.media
    if not isinstance(media, tuple) or not all(isinstance(one, Medium) for one in media):
        yield f"{_shown(media)} as the `media`"
    if not isinstance(blocks := part.blocks, BlockList | None):
        yield f"{_shown(blocks)} as the `blocks`"
    number: object = part.number
    if not isinstance(number, int) or (number and part.kind not in _MEDIA):
        yield f"{_shown(number)} as the `number`"


def _wrong_with_edit(
    before: list[Part], after: list[Part], texts: Mapping[Path, str | None]
) -> str | None:
    """Return why the parts after an edit are not those before it with these texts.

    What is inside a result is compared as a part of its text, which cannot be foreseen if something
    inside is edited. A part that was given the empty text may be missing.
    """
    found = [part for part in after if not part.number]
    for part, is_open in _outer(before, texts):
        text = texts.get(part.path, str(part.text))
        if text is None:
            continue
        wrong = _difference(part, found[0] if found else None, text, texts, is_open=is_open)
        if wrong is None:
            del found[0]
        elif text or part.path not in texts:
            return wrong
    return f"there is a new part with the path {found[0].path!r}" if found else None


def _outer(parts: list[Part], texts: Mapping[Path, str | None]) -> Iterator[tuple[Part, bool]]:
    """Yield the parts outside results, and whether something inside of it is edited."""
    for i, part in enumerate(parts):
        if not part.number:
            inside = takewhile(attrgetter("number"), parts[i + 1 :])
            yield part, any(one.path in texts for one in inside)


def _difference(
    part: Part, other: Part | None, text: str, texts: Mapping[Path, str | None], *, is_open: bool
) -> str | None:
    if other is None:
        return f"the part with the path {part.path!r} is missing"
    becomes_text = part.kind in _MEDIA and part.path in texts
    kind = other.kind if becomes_text else part.kind
    if (other.kind, other.call_id, other.tool) != (kind, part.call_id, part.tool):
        return f"the part with the path {part.path!r} is another one"
    read = str(other.text)
    if is_open or read == text or (part.kind == "tool_call" and _is_same(read, text)):
        return None
    return f"the part with the path {part.path!r} reads {_shown(read)}, not {_shown(text)}"


def _is_same(one: str, other: str) -> bool:
    try:
        return bool(json.loads(one) == json.loads(other))
    except ValueError:
        return False


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - it is only shown
        text = ""
    is_short = 0 < len(text) <= _SHOWN_CHARS
    return text if is_short else f"a value of the type {type(value).__name__}"
