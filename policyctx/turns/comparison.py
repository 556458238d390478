"""Comparison of message lists without their `cache_control` markers.

A caller may pass new objects with equal values in every turn, and move its markers in them. To find
out costs about as much as comparing the two lists once.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from itertools import compress, count
from operator import ne
from typing import Any

from policyctx.definitions.items import Message, Path
from policyctx.messages.markers import bare, is_plain, unmarked, with_markers
from policyctx.messages.shapes.built_in import Shapes

# Lists are compared in slices: a difference costs a visit to the messages of its slice alone.
_SLICE = 128


def differences(
    messages: Sequence[Message], others: Sequence[Message | None], shapes: Shapes
) -> list[int] | None:
    """Return the positions at which two lists of one length differ though the messages are alike.

    Returns None if the messages at some position are not alike, see `are_alike`.
    """
    if messages and messages[-1] is others[-1] and messages == others:
        return []  # most likely the same objects, which are compared quickest all at once
    found: list[int] = []
    for first in range(0, len(messages), _SLICE):
        some, there = messages[first : first + _SLICE], others[first : first + _SLICE]
        if some == there:
            continue
        for i in compress(count(first), map(ne, some, there)):
            if not are_alike(messages[i], others[i], shapes):
                return None
            found.append(i)
    return found


def are_alike(one: Message, other: Message | None, shapes: Shapes) -> bool:
    """Whether two messages are equal without their markers.

    An SDK's object equals the dict that was saved of it, and a lone text block a text.
    """
    if one == other:
        return True
    if other is None:
        return False
    if is_plain(one) and is_plain(other):
        return bool(bare(one) == bare(other))
    return _comparable(one, shapes) == _comparable(other, shapes)


def moved(
    message: Message, markers: Mapping[Path, Any], places: Mapping[Path, Path], shapes: Shapes
) -> Message:
    """Return a message with copies of these markers, each at its place in this message."""
    found = {places[path]: marker for path, marker in markers.items() if path in places}
    return with_markers(shapes.shaped(message).message, copy.deepcopy(found))


def without_markers(message: Message, shapes: Shapes) -> Message:
    """Return a message, which may be an SDK's object, as a dict without its markers."""
    return unmarked(shapes.shaped(message).message)


def _comparable(message: Message, shapes: Shapes) -> object:
    return bare(shapes.comparable(without_markers(message, shapes)))
