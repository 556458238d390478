"""The simplest detector of regret: rare strings that only a removed item held.

It is the ruler for `policyctx/replay/regret`: what the rules there are worth shows against this. A
reply needs the newest removed item that has a string of it which nothing in view has: a name or a
path with a mark or a digit in it, or a line. A path is also in view if all its parts are.
Calls that ask again and cited lines are those of the detector.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache

from policyctx.replay.regret.strings import plain
from policyctx.replay.simulated import Absence, SeenItem, SimulatedSession

_TOKEN = re.compile(r"\w[\w./@:-]{3,}\w")
_PARTS = re.compile(r"[/.:@]+")
_MARK = re.compile(r"[_/.@\d]|[a-z][A-Z]")
_YEAR = re.compile(r"(?:19|20)\d\d")
_LONG, _SHORT, _DIGITS, _LINE = 8, 5, 3, 30
_BEFORE_LINE = re.compile(r"\s*(?:[\w./-]+[:-])?\d+[\t\u2192:|-]")
# A test is named after what it tests.
_ENDING = re.compile(r"(?:_test|\.spec|\.test|Test)?(?:\.\w{1,5})?$")
_CITED = re.compile(r"[\w.-]+\.[A-Za-z]\w*:\d+")

Needs = frozenset[tuple[int, int, int]]
"""By part, position and call."""


def simple_needs(session: SimulatedSession, beside: Iterable[str] = ()) -> Needs:
    """Return what was needed of a session whose items have whole texts.

    `beside` is what was sent along with the messages, such as schemas of tools.
    """
    parts: dict[int, list[SeenItem]] = defaultdict(list)
    for item in session.items:
        parts[item.part].append(item)
    found = {
        (number, position, call)
        for number, items in parts.items()
        for position, call in _of_part(items, tuple(beside))
    }
    for regret in session.regrets:
        place = regret.removal.part, regret.removal.position
        for need in regret.needs:
            if need.kind == "asked again" or any(map(_CITED.fullmatch, need.found)):
                found.add((*place, need.call))
    return frozenset(found)


def _of_part(items: Sequence[SeenItem], beside: Sequence[str]) -> Iterator[tuple[int, int]]:
    since = min((one.since for item in items for one in item.absences), default=math.inf)
    replies: dict[int, list[SeenItem]] = defaultdict(list)
    for item in items:
        if item.role == "assistant" and since <= item.arrived - 1:
            replies[item.arrived - 1].append(item)
    for call, said in replies.items():
        had = [(item, _absence(item, call)) for item in items if item.arrived <= call]
        in_view = [*beside, *(item.text if out is None else out.left for item, out in had)]
        gone = [item for item, out in had if out is not None and item.item_type != "tool_call"]
        known = frozenset().union(*map(_strings, in_view))
        bare = "\n".join(map(_bare, in_view))
        for reply in said:
            keys = reply.item_type != "tool_call"
            left = {k: v for k, v in _strings(reply.text, keys=keys).items() if k not in known}
            for item in reversed(gone):
                held = [(key, left.pop(key)) for key in left.keys() & _strings(item.text).keys()]
                if any(not _is_joined(text, bare) for _, text in held):
                    yield item.position, call


def _absence(item: SeenItem, call: int) -> Absence | None:
    return next((one for one in item.absences if one.since <= call < one.until), None)


@cache
def _strings(text: str, *, keys: bool = True) -> Mapping[str, str]:
    """Return the telling strings of a text, by what they are without marks and case."""
    read = plain(text, keys=keys)
    tokens = _TOKEN.findall(read)
    found = {
        _bare(one): one
        for token in tokens
        for one in (token, *_PARTS.split(token))
        if _is_telling(one)
    }
    for line in read.split("\n"):
        said = _BEFORE_LINE.sub("", line, count=1).strip()
        if len(said) >= _LINE:
            found[_bare(said) + " "] = said
    return found


def _is_telling(token: str) -> bool:
    if len(token) >= _LONG and _MARK.search(token) is not None:
        return True
    digits = sum(map(str.isdigit, token))
    return len(token) >= _SHORT and digits >= _DIGITS and _YEAR.fullmatch(token) is None


def _is_joined(text: str, bare: str) -> bool:
    """Whether a path is in view by its parts."""
    parts = [_bare(part) for part in _PARTS.split(_ENDING.sub("", text))]
    telling = [part for part in parts if len(part) > 1]
    return " " not in text and len(telling) > 1 and all(part in bare for part in telling)


@cache
def _bare(text: str) -> str:
    return re.sub(r"[\W_]+", "", text.lower())
