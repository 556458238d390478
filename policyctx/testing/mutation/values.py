"""The values next to a value: the smallest steps away from what a policy says."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from policyctx.policy import values

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.testing.mutation.changes import Scalar

_POINT = Fraction(1, 100)
_FIELD = re.compile(r"\{\{|\}\}|\{[^{}]*\}")
_UNITS = (
    (values.SHARE_PATTERN, lambda text: values.share(text).percent, "%"),
    (values.DURATION_PATTERN, lambda text: values.duration(text).seconds, "s"),
    (values.BYTES_PATTERN, lambda text: values.byte_size(text).bytes, "B"),
)


def neighbours(value: Scalar, annotation: Any) -> Iterator[Scalar]:  # noqa: ANN401 - a type
    """Yield the values nearest to one; `annotation` is the type that the key has in its model.

    A flag is turned, a count goes up and down by 1, a share or ratio by a point of a hundred, a
    duration by a second; of words that exclude one another each other one stands in; of any other
    text one character is another. None for what only names something.
    """
    words = [word for part in alternatives(annotation) for word in _words(part)]
    if isinstance(value, bool):
        yield not value
    elif isinstance(value, int):
        yield from (value + 1, value - 1)
    elif isinstance(value, float):
        exact = Fraction(str(value))
        yield from (float(exact + _POINT), float(exact - _POINT))
    elif value in words:
        yield from (word for word in words if word != value)
    elif isinstance(value, str):
        yield from _of_text(value, is_plain=str in alternatives(annotation))


def _of_text(text: str, *, is_plain: bool) -> Iterator[str]:
    for pattern, number_of, unit in () if is_plain else _UNITS:
        if re.fullmatch(pattern, text):
            number = number_of(text)
            yield from (f"{float(number + step):g}{unit}" for step in (1, -1))
            return
    yield changed_text(text)


def changed_text(text: str) -> str:
    """Return the text with one character changed: the first letter or digit outside of a field."""
    fields = [span for match in _FIELD.finditer(text) for span in range(*match.span())]
    free = [i for i in range(len(text)) if i not in fields and not text[i].isspace()]
    at = next((i for i in free if text[i].isalnum()), free[0] if free else len(text))
    other = "x" if text[at : at + 1] != "x" else "y"
    return f"{text[:at]}{other}{text[at + 1 :]}"


def alternatives(annotation: Any) -> list[Any]:  # noqa: ANN401 - a type
    """Return the types that an annotation allows, each by itself."""
    if get_origin(annotation) is Annotated:
        return alternatives(get_args(annotation)[0])
    if get_origin(annotation) in {Union, type(int | str)}:
        return [one for part in get_args(annotation) for one in alternatives(part)]
    return [annotation]


def annotation_below(annotation: Any, part: str | int) -> Any:  # noqa: ANN401 - a type
    """Return the type of what stands under a key, or at an index, of a value of this type."""
    for one in alternatives(annotation):
        if get_origin(one) is dict:
            return get_args(one)[1]
        if get_origin(one) is tuple:
            element = get_args(one)[0]
            # A map where a list is meant is a list of one.
            return element if isinstance(part, int) else annotation_below(element, part)
        if isinstance(one, type) and issubclass(one, BaseModel) and part in one.model_fields:
            return one.model_fields[str(part)].annotation
    return None


def _words(annotation: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a type
    if get_origin(annotation) is tuple:
        return ()
    return get_args(annotation) if get_origin(annotation) is Literal else ()
