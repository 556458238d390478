"""The tables of cues of some languages as one, ready to search a text with.

The tables only rank. What a user says in a language without one is kept all the same, since who
said it, and which exact values are in it, weigh more than any word.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.compaction.extractive.languages import Language

_NOTHING = "(?!)"


class Presence(NamedTuple):
    """Cues of which it only matters whether a text has one of them."""

    words: re.Pattern[str]
    """Those in ASCII, for a folded text: two searches are faster than one for all."""
    parts: re.Pattern[str]
    """The others: none is in a text in ASCII."""

    def found_in(self, text: str) -> bool:
        """Whether the text has any of them."""
        folded = text.casefold()
        if self.words.search(folded):
            return True
        return not folded.isascii() and self.parts.search(folded) is not None

    def count_in(self, text: str) -> int:
        """Return how many different cues the text has."""
        folded = text.casefold()
        found = set(self.words.findall(folded))
        return len(found if folded.isascii() else found | set(self.parts.findall(folded)))


class Picks(NamedTuple):
    """How entries of a list are pointed to."""

    numbers: Mapping[str, int]
    """What each word for a number means; digits mean themselves."""
    first: re.Pattern[str]
    """`first two`: the first of its groups that is not None is the number."""
    last: re.Pattern[str]
    """`last two` or `last one`, likewise."""
    ordinals: Mapping[str, int]
    """What each word for first, second and so on means."""
    ordinal: re.Pattern[str]
    """Any of these words."""
    whole: Presence


@dataclass(frozen=True, slots=True)
class Cues:
    """The tables of some languages, ready to search with; each field as in `Language`."""

    orders: Presence
    choices: Presence
    revisions: Presence
    settings: Presence
    plans: Presence
    finished: Presence
    active: Presence
    setbacks: Presence
    remedies: Presence
    unfinished: Presence
    proposals: Presence
    agreements: Presence
    objections: re.Pattern[str]
    refusals: re.Pattern[str]
    continuations: Presence
    task_lists: Presence
    wanted_failures: Presence
    all_tasks: Presence
    nothing_open: re.Pattern[str]
    withdrawals: Presence
    negations: Presence
    acknowledged: re.Pattern[str]
    errands: Presence
    wishes: Presence
    roles: Presence
    aims: Presence
    states: Presence
    users: Presence
    picks: Picks
    failures: re.Pattern[str]
    goals: re.Pattern[str]
    files: re.Pattern[str]
    tools: re.Pattern[str]
    status: re.Pattern[str]
    errors: re.Pattern[str]
    subjectless: re.Pattern[str]
    """What of a sentence, once folded, says nothing of what it is about."""
    languages: tuple[Language, ...]
    """Those whose tables these are."""


@lru_cache(maxsize=16)
def cues_of(languages: tuple[Language, ...]) -> Cues:
    """Return the tables of the languages as one."""

    def cues(*names: str) -> list[str]:
        found = [cue for name in names for one in languages for cue in getattr(one, name)]
        # The longest first, so that a phrase is found before a word in it.
        return sorted(dict.fromkeys(found), key=len, reverse=True)

    return Cues(
        orders=_presence_of(cues("orders")),
        choices=_presence_of(cues("choices")),
        revisions=_presence_of(cues("revisions")),
        settings=_presence_of(cues("settings")),
        plans=_presence_of(cues("plans")),
        finished=_presence_of(cues("finished")),
        active=_presence_of(cues("active")),
        setbacks=_presence_of(cues("setbacks")),
        remedies=_presence_of(cues("remedies")),
        unfinished=_presence_of(cues("unfinished")),
        proposals=_presence_of(cues("proposals")),
        agreements=_presence_of(cues("agreements")),
        objections=_any_folded(cues("objections")),
        refusals=_any_folded(cues("refusals")),
        continuations=_presence_of(cues("continuations")),
        task_lists=_presence_of(cues("task_lists")),
        wanted_failures=_presence_of(cues("wanted_failures")),
        all_tasks=_presence_of(cues("all_tasks")),
        nothing_open=_any_folded(cues("nothing_open")),
        withdrawals=_presence_of(cues("withdrawals")),
        negations=_presence_of(cues("negations")),
        acknowledged=_any_folded(cues("acknowledged")),
        errands=_presence_of(cues("errands")),
        wishes=_presence_of(cues("wishes")),
        roles=_presence_of(cues("roles")),
        aims=_presence_of(cues("aims")),
        states=_presence_of(cues("states")),
        users=_presence_of(cues("users")),
        picks=_picks_of(languages),
        failures=_any_of(cues("failures")),
        goals=_any_of(cues("goals")),
        files=_any_of(cues("files")),
        tools=_any_of(cues("tools")),
        status=_any_of(cues("status")),
        errors=_any_of(cues("errors")),
        subjectless=_any_folded(cues("particles", "settings", "revisions", "plans")),
        languages=languages,
    )


def _picks_of(languages: Sequence[Language]) -> Picks:
    numbers = {word: n for one in languages for n, word in enumerate(one.numbers, 1)}
    ordinals = {word: n for one in languages for n, word in enumerate(one.ordinals, 1)}
    firsts = [word for one in languages for word in one.firsts]
    lasts = [word for one in languages for word in one.lasts]
    whole = [word for one in languages for word in one.whole]
    return Picks(
        numbers, _counted(firsts, numbers), _counted(lasts, numbers), ordinals,
        _any_folded(list(ordinals)), _presence_of(whole),
    )  # fmt: skip


def _counted(before: Sequence[str], numbers: Mapping[str, int]) -> re.Pattern[str]:
    """Return the pattern of one of the words with a number behind it."""
    count = "|".join([r"\d", *map(re.escape, numbers)])
    return re.compile(rf"(?:{_any_folded([*before]).pattern})\s*({count})(?![A-Za-z0-9])")


def _presence_of(cues: list[str]) -> Presence:
    folded = [cue.casefold() for cue in cues]
    return Presence(re.compile(_words(folded)), re.compile(_parts(folded)))


def _any_of(cues: list[str]) -> re.Pattern[str]:
    return re.compile(f"{_words(cues)}|{_parts(cues)}", re.IGNORECASE)


def _any_folded(cues: list[str]) -> re.Pattern[str]:
    folded = [cue.casefold() for cue in cues]
    return re.compile(f"{_words(folded)}|{_parts(folded)}")


def _words(cues: list[str]) -> str:
    """Return the pattern of the cues in ASCII; where the next character is not, it fails fast."""
    words = "|".join(re.escape(cue) for cue in cues if cue.isascii())
    found = rf"(?<![A-Za-z0-9_])(?=[\x00-\x7f])(?:{words})(?![A-Za-z0-9_])"
    return found if words else _NOTHING


def _parts(cues: list[str]) -> str:
    """Return the pattern of the other cues."""
    return "|".join(re.escape(cue) for cue in cues if not cue.isascii()) or _NOTHING
