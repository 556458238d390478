"""Facts in the results of tools: the lines whose exact values were spoken of afterwards.

Most of a result is never spoken of again. A value in it that the user, the agent or a later call
names was of use, and the line that it stands in says what it is. A value in many results, and a
path, name no fact: paths are told of as files.
"""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.calls import words_of
from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.references import references_to
from policyctx.compaction.extractive.sentences import one_line
from policyctx.compaction.extractive.statements import USER
from policyctx.compaction.extractive.values import PATH, values_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policyctx.compaction.extractive.calls import Call
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.extractive.values import Value
    from policyctx.messages.items import Item

_TOKEN = re.compile(r"[A-Za-z0-9_#$€£¥][A-Za-z0-9_.:@$%,#+-]*[A-Za-z0-9_%]")
# How a line of code ends, or what only code holds: a file's lines can be read again.
_CODE = re.compile(r"[;{(]\s*$|\)\s*:?$|\w\(\w*\)|->|::|/\*|^\s*\d+\s*[→|:]")
_LIKE_CODE = 2.0
# What a line weighs by who spoke of its value.
_BY_USER, _BY_AGENT, _BY_CALL = 3.0, 2.0, 1.0
_SHORTEST = 3
# A value in more results than this is no single fact.
_MOST_RESULTS = 3
# Characters around a value where its line is longer than both together.
_BEFORE, _AFTER = 90, 110
_MOST_FOUND = 40
# Of a result only so much at each end is looked through: enough for any that a model was shown.
_MOST_READ = 1_000_000


def findings_of(
    results: Sequence[Item], said: Sequence[Said], calls: Iterable[Call], cues: Cues
) -> list[Statement]:
    """Return the lines of results that matter, the oldest first, those of most weight only."""
    mentions = _mentions(said, calls)
    found: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for item in results:
        text = words_of(item.text)[:_MOST_READ]
        for token in mentions.keys() & set(_TOKEN.findall(text)):
            if mentions[token][0] > item.message:
                places = found[token]
                if len(places) <= _MOST_RESULTS:
                    places.append((item.message, _line_with(text, token)))
    weights: dict[tuple[int, str], float] = defaultdict(float)
    for token, places in found.items():
        if len(places) <= _MOST_RESULTS:
            weights[places[-1]] += mentions[token][1]
    for reference in references_to(results, said, cues):
        weight = _BY_USER if reference.by_user else _BY_AGENT
        weights[reference.message, reference.line] += weight / 2
    for place in weights:
        weights[place] -= _LIKE_CODE if _CODE.search(place[1]) else 0
    worth = (place for place in weights if weights[place] > 0)
    heaviest = sorted(worth, key=lambda place: (-weights[place], -place[0], place[1]))[:_MOST_FOUND]
    return [Statement(line) for _, line in sorted(heaviest)]


def _mentions(said: Sequence[Said], calls: Iterable[Call]) -> Mapping[str, tuple[int, float]]:
    """Return by value the last message that names it, and its weight: more by the user's words."""
    mentions: dict[str, tuple[int, float]] = {}

    def mention(values: Iterable[Value], message: int, weight: float) -> None:
        for value in values:
            word = value.text
            if value.kind != PATH and len(word) >= _SHORTEST and any(map(str.isdigit, word)):
                _, before = mentions.get(word, (0, 0.0))
                mentions[word] = (message, max(weight, before))

    for one in said:
        mention(one.values, one.message, _BY_USER if one.speaker == USER else _BY_AGENT)
    longest = 80
    for call in calls:
        for given in call.fields.values():
            if isinstance(given, str) and len(given) <= longest:
                mention(values_in(given), call.message, _BY_CALL)
    return mentions


def _line_with(text: str, token: str) -> str:
    """Return the line that a value stands in; of a long one what is around the value."""
    at = text.find(token)
    start = max(text.rfind("\n", 0, at) + 1, at - _BEFORE)
    end = text.find("\n", at)
    end = min(len(text) if end < 0 else end, at + len(token) + _AFTER)
    return one_line(text[start:end])
