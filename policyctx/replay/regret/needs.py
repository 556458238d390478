"""What shows that an agent needed an item: it asked again, or it used what only the item held."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

from policyctx.replay.readers.source import value_of
from policyctx.replay.regret.holders import (
    COMMON,
    RARE,
    Holders,
    Replies,
    TextPlace,
    Texts,
    phrases,
)
from policyctx.replay.regret.strings import SURE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.definitions.items import Item
    from policyctx.replay.regret.strings import Distinct
    from policyctx.replay.timeline import SessionPart

Asked: TypeAlias = tuple[str | None, str]


def asked_again(
    part: SessionPart, replies: Iterable[tuple[int, int]]
) -> Iterator[tuple[int, int, int]]:
    """Yield each call of a tool that was made before: it, the model's call, the result before.

    The result is the newest one of the same tool for the same input. Numbers and switches do not
    make an input another one: they ask for another piece of the same file.
    """
    of_reply = dict(replies)
    newest: dict[Asked, int] = {}
    answers: list[tuple[Asked, int]] = []
    for position, item in enumerate(part.items):
        if item.kind != "tool_call":
            continue
        asked = _asked(item)
        call = of_reply.get(position)
        if call is not None:
            answers = _taken(answers, newest, part, call)
            if asked in newest:
                yield position, call, newest[asked]
        result = part.partners.get(position)
        if result is not None:
            answers.append((asked, result))


def _taken(
    answers: list[tuple[Asked, int]], newest: dict[Asked, int], part: SessionPart, call: int
) -> list[tuple[Asked, int]]:
    """Take over the results that a call of the model had; return those that came later."""
    waiting = []
    for asked, result in answers:
        if result < part.had(call):
            newest[asked] = result
        else:
            waiting.append((asked, result))
    return waiting


def _asked(call: Item) -> Asked:
    try:
        given = value_of(call.text)
    except ValueError:
        return call.tool, call.text
    if not isinstance(given, dict):
        return call.tool, call.text
    words = {key: value for key, value in given.items() if not isinstance(value, int | float)}
    return call.tool, _encode(words or given)


_encode = json.JSONEncoder(sort_keys=True).encode


Kind: TypeAlias = Literal["asked again", "used"]

# A string that more items hold is no more one item's own.
_RARE = 3
# So many strings are shown for one item and one call.
_SHOWN = 3


@dataclass(frozen=True, slots=True)
class Need:
    """One reply that needed an item which was out of the context."""

    kind: Kind
    """`asked again`: the same call, or the same file; `used`: what nothing else there held."""
    call: int
    """The number of the call that it replied to."""
    item_id: str
    """Of the item in which the reply shows it: a call of a tool, or a text."""
    found: tuple[str, ...]
    """The strings that show it."""


def needs_of(part: SessionPart) -> Mapping[int, Sequence[Need]]:
    """Return what was needed of a part's items while they were out, by position."""
    since = min((a.since for of_one in part.absences.values() for a in of_one), default=None)
    needs: dict[int, list[Need]] = defaultdict(list)
    if since is None:
        return needs
    replies = list(part.replies(since))
    for position, need in _asked_again(part, replies):
        needs[position].append(need)
    for position, need in _used(part, replies):
        needs[position].append(need)
    for found in needs.values():
        found.sort(key=lambda need: need.call)
    return needs


def _asked_again(
    part: SessionPart, replies: Sequence[tuple[int, int]]
) -> Iterator[tuple[int, Need]]:
    for reply, call, result in asked_again(part, replies):
        if part.absence(result, call) is not None:
            text = part.items[reply].text
            yield result, Need("asked again", call, part.items[reply].item_id, (text,))


def _used(part: SessionPart, replies: Sequence[tuple[int, int]]) -> Iterator[tuple[int, Need]]:
    """Yield the items that alone held what a reply says, each reply by itself."""
    texts = Texts(part)
    replies_of = Replies(texts.lost, rare=texts.rare(COMMON), anchors=texts.rare(RARE))
    said = {
        reply: replies_of.read(texts.at(TextPlace(reply)), call, stays=reply not in part.absences)
        for reply, call in replies
    }
    wanted = {texts.key(one.words) for of_one in said.values() for one in of_one.strings}
    wanted.update(
        word for of_one in said.values() for run in of_one.runs for _, word in run.anchors
    )
    holders = Holders(texts, frozenset(wanted))
    for reply, call in replies:
        found: dict[int, list[Distinct]] = defaultdict(list)
        strings, runs = said[reply]
        for one in (*strings, *phrases(runs, part, texts, holders, call)):
            holder = _only_holder(part, holders, one, call)
            if holder is not None:
                found[holder].append(one)
        for holder, evidence in found.items():
            if sum(one.weight for one in evidence) >= SURE:
                evidence.sort(key=lambda one: -one.weight)
                shown = tuple(one.text for one in evidence[:_SHOWN])
                yield holder, Need("used", call, part.items[reply].item_id, shown)


def _only_holder(part: SessionPart, holders: Holders, one: Distinct, call: int) -> int | None:
    """Return the newest item that held a string, when nothing that the call had did."""
    had, absences = part.had(call), part.absences
    places = [place for place in holders.of(one) if place.position < had]
    gone = [
        place
        for place in places
        if place.absence < 0 and place.position in absences and part.absence(place.position, call)
    ]
    if not gone or any(
        holders.holds(place, one) for place in reversed(places) if _is_there(place, part, call)
    ):
        return None
    held = [place.position for place in gone if holders.holds(place, one)]
    return held[-1] if 0 < len(held) <= _RARE else None


def _is_there(place: TextPlace, part: SessionPart, call: int) -> bool:
    """Did a call have what stands at a place: the item, or what was left of it."""
    position, number = place
    now = part.absence(position, call)
    return now is None if number < 0 else now is part.absences[position][number]
