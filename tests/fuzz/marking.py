"""Random `cache_control` markers on a list, and the checks of what an output keeps of it."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from policyctx.definitions.items import Message, Path
from policyctx.messages.json_text import compact_json
from policyctx.messages.markers import markers_of, places_of, unmarked, with_markers
from policyctx.turns.result import Result
from tests.openai_rules import role_of

_MOST = 4


class Marking:
    """Moves the markers of a list at every call; each marker differs from all others."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._marked = 0

    def moved(self, messages: Sequence[Message]) -> list[Message]:
        """Return the list with other markers than it has; other messages are the same objects."""
        found = list(map(unmarked, messages))
        near_end = self._rng.random() < 0.5
        for _ in range(self._rng.randint(0, _MOST) if found else 0):
            i = self._rng.randrange(max(0, len(found) - 3) if near_end else 0, len(found))
            self._marked += 1
            marker = {"type": "ephemeral", "number": self._marked}
            place = self._rng.choice(places_of(found[i]))
            found[i] = with_markers(found[i], {**markers_of(found[i]), place: marker})
        return found


def without_markers(messages: Sequence[Message]) -> str:
    """Return the JSON of a list without its markers."""
    return compact_json(list(map(unmarked, messages)))


def text_and_markers(messages: Sequence[Message]) -> str:
    """Return the JSON of a list without its markers, and of these beside it.

    The position of a marker among the fields of its block may differ.
    """
    markers = [[[*path], one] for m in messages for path, one in markers_of(m).items()]
    return without_markers(messages) + compact_json(markers)


def wrong_sources(given: Sequence[Message], result: Result) -> Iterator[str]:
    """Yield what is wrong with the sources of a result, and with the markers of its messages."""
    sources = result.sources
    if len(sources) != len(result.messages):
        yield "sources differ in length"
        return
    known = [source for source in sources if source is not None]
    if known != sorted(set(known)) or not set(known) <= set(range(len(given))):
        yield "sources do not ascend"
        return
    for message, source in zip(result.messages, sources, strict=True):
        if source is None:
            if markers_of(message) or role_of(message) not in {"user", "assistant"}:
                yield "inserted message is not one of a compaction"
        elif message is not given[source]:
            if role_of(message) != role_of(given[source]):
                yield "source has another role"
            if without_markers([message]) == without_markers([given[source]]):
                yield "equal message is another object"
            if not has_markers_of(message, given[source]):
                yield "markers differ"


def has_markers_of(edited: Message, given: Message) -> bool:
    """Whether an edited message has the markers of the given one on all blocks that stay."""
    ours, theirs = markers_of(edited), markers_of(given)
    if not _values(ours) <= _values(theirs) or ours.get(()) != theirs.get(()):
        return False
    places = {*places_of(edited)} & {*places_of(given)}
    alike = (path for path in places if _alike(path, edited, given))
    return all(ours.get(path) == theirs.get(path) for path in alike)


def _values(markers: Mapping[Path, Any]) -> set[int]:
    return {marker["number"] for marker in markers.values()}


def _alike(path: Path, edited: Message, given: Message) -> bool:
    """Whether no block was removed from any list on a path, so that it leads to the same block."""
    for part in path:
        if isinstance(part, int) and len(edited) != len(given):
            return False
        edited, given = edited[part], given[part]
    return True
