"""`History`: what a compaction replaces, and what is known of who wrote which part of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, TypeAlias

    from policyctx.messages.items import Message

    PathFields: TypeAlias = str | Sequence[str]


@dataclass(frozen=True, slots=True)
class History:
    """The messages that a summary stands for, in order, in the shape of either API."""

    messages: Sequence[Message]
    earlier: Mapping[int, str] = field(default_factory=lambda: MappingProxyType({}))
    """By position in `messages`: the text of an earlier compaction's summary, without its wording.

    Such a message is known by this text alone; its own content is not read.
    """
    written: frozenset[int] = frozenset()
    """Positions of other messages that a compaction wrote: they say nothing new."""
    reads_file: Mapping[str, PathFields] = field(default_factory=lambda: MappingProxyType({}))
    """By exact name of a tool that reads a file: the field of its input that holds the path, or
    several of which the first that a call has is meant."""


def path_in(given: Mapping[str, Any], fields: PathFields | None) -> str | None:
    """Return the path that a call's input holds in the first of the fields that it has."""
    for name in (fields,) if isinstance(fields, str) else fields or ():
        if name in given:
            path = given[name]
            return path if isinstance(path, str) and path else None
    return None
