"""The roles that words have in a statement, looked up in the tables of the languages.

A table of cues says whether a text has a word of one sort. To see which thing a statement is about,
which value it gives, and whether it allows or forbids, each word needs its role. One word may have
several: `改成` is a word of revision and stands before the new value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.compaction.extractive.cues import Language


class Role:
    """What a word does in a statement, as bits; a word in no table is 0 and part of the content."""

    PARTICLE = 1
    SETTER = 2
    """It stands before a value that something is given."""
    TARGET = 4
    PLACE = 8
    ACTION = 16
    NEGATION = 32
    DENIAL = 64
    REVISION = 128
    CORRECTION = 256
    UPDATE = 512
    ADDITION = 1024
    EXCEPTION = 2048
    QUESTION = 4096
    MAKER = 8192
    ARTICLE = 16384
    JOIN = 32768
    REQUEST = 131072
    MEANING = 65536
    """It has an entry among the words of one meaning."""


_TABLES = {
    "particles": Role.PARTICLE,
    "asides": Role.PARTICLE,
    "settings": Role.SETTER,
    "targets": Role.TARGET,
    "places": Role.PLACE,
    "actions": Role.ACTION,
    "negations": Role.NEGATION,
    "denials": Role.DENIAL,
    "revisions": Role.REVISION,
    "corrections": Role.CORRECTION,
    "updates": Role.UPDATE,
    "additions": Role.ADDITION,
    "exceptions": Role.EXCEPTION,
    "questions": Role.QUESTION,
    "requests": Role.REQUEST,
    "makers": Role.MAKER,
    "articles": Role.ARTICLE,
    "conjunctions": Role.JOIN,
}
_CJK = "\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"
_PIECE = re.compile(
    rf"(?P<word>[A-Za-z](?:[A-Za-z'\u2019-]*[A-Za-z])?)|(?P<run>[{_CJK}]+)"
    r"|(?P<stop>[,;，；、。！!?？()（）]|(?<!\b[A-Z])(?<!\b[A-Z][a-z])(?<!\b[A-Z][a-z]{2})\.(?=\s)|(?<=\S)\s[—–-]+\s)|(?P<colon>[:：=]|->|→|=>)"  # noqa: RUF001
)
_VOWEL = re.compile("[aeiouy]")
_LONGEST_PHRASE = 5
_SHORTEST_STEM = 4
_MOST_CACHED = 20_000


class Word(NamedTuple):
    """A word or phrase in its place."""

    name: str
    """Its meaning, or its stem; of CJK without an entry one character."""
    roles: int
    start: int
    end: int
    text: str

    @property
    def is_content(self) -> bool:
        """Whether it says what the statement is about."""
        return self.roles in {0, Role.MEANING}


# What an inflected form of a word keeps of its roles.
_INFLECTED = Role.ACTION | Role.MEANING | Role.REVISION
_CONTENT = Role.ACTION | Role.MEANING
COLON, STOP = ":", ","


def stem(word: str) -> str:
    """Return an English word without the endings that change with the grammar."""
    word = word.removesuffix("'s").removesuffix("\u2019s")
    if len(word) > 4 and word.endswith("ies"):  # noqa: PLR2004
        return f"{word[:-3]}y"
    for ending in ("ings", "ing", "ed", "es", "s"):
        rest = word.removesuffix(ending)
        if rest != word and len(rest) > 2 and _VOWEL.search(rest) and not rest.endswith("s"):  # noqa: PLR2004
            doubled = rest[-1] == rest[-2] and rest[-1] not in "lse"
            return (rest[:-1] if doubled else rest).removesuffix("e")
    return word.removesuffix("e") if len(word) > 3 else word  # noqa: PLR2004


class Lexicon:
    """The tables of some languages, by word."""

    def __init__(self, languages: tuple[Language, ...]) -> None:
        roles: dict[str, int] = {}
        self._names: dict[str, str] = {}
        for language in languages:
            for group in language.meanings:
                for word in group:
                    roles[word] = roles.get(word, 0) | Role.MEANING
                    self._names[word] = group[0]
            for field, role in _TABLES.items():
                for cue in getattr(language, field):
                    key = cue.casefold()
                    roles[key] = roles.get(key, 0) | role
        self._roles = roles
        self.surnames = frozenset(name for language in languages for name in language.surnames)
        self._by_stem = {
            stem(word): word
            for word in sorted(roles, reverse=True)
            if word.isascii()
            and " " not in word
            and roles[word] & (Role.ACTION | Role.MEANING)
            # "Wedding" is no form of "wed".
            and (roles[word] & Role.ACTION or len(word) >= _SHORTEST_STEM)
        }
        phrases = [word.split(" ") for word in roles if word.isascii() and " " in word]
        self._phrase_starts = {phrase[0] for phrase in phrases}
        self._read = lru_cache(maxsize=_MOST_CACHED)(self._read_word)
        self._longest_run = max((len(word) for word in roles if not word.isascii()), default=1)

    def meaning_of(self, word: str) -> str:
        """Return the name of a word's meaning; the word itself if it is in no table."""
        return self._names.get(word, word)

    def words_in(self, text: str) -> Iterator[Word]:
        """Yield the words of a text and, as `,` and `:`, the signs between its clauses."""
        found = list(_PIECE.finditer(text))
        skip = 0
        for i, piece in enumerate(found):
            if skip:
                skip -= 1
                continue
            start, end = piece.span()
            kind = piece.lastgroup
            if kind == "word":
                raw = piece[0]
                name, roles, may_begin_phrase = self._read(raw)
                if may_begin_phrase and (last := self._end_of_phrase(text, found, i)) > i:
                    skip, end = last - i, found[last].end()
                    raw = text[start:end]
                    name, roles, _ = self._read(raw)
                elif raw == "A" and not start:
                    name, roles, _ = self._read("a")
                yield Word(name, roles, start, end, raw)
            elif kind == "run":
                yield from self._run(text, start, end)
            elif kind == "colon":
                yield Word(COLON, Role.SETTER | Role.PARTICLE, start, end, piece[0])
            else:
                yield Word(STOP, Role.PARTICLE, start, end, piece[0])

    def _end_of_phrase(self, text: str, found: list[re.Match[str]], i: int) -> int:
        """Return the position of the last word of the longest phrase that begins at `i`."""
        for last in range(min(i + _LONGEST_PHRASE, len(found)) - 1, i, -1):
            if found[last].lastgroup == "word":
                phrase = " ".join(text[found[i].start() : found[last].end()].casefold().split())
                if phrase in self._roles or phrase.removesuffix("s") in self._roles:
                    return last
        return i

    def _read_word(self, raw: str) -> tuple[str, int, bool]:
        """Return the name and the roles of a word or phrase; whether a phrase may begin with it."""
        key = " ".join(raw.casefold().replace("\u2019", "'").split())
        if len(raw) == 1 and raw.isupper() and raw != "I":
            return key, 0, False
        if " " in key and key not in self._roles:
            key = key.removesuffix("s")
        may_begin_phrase = key in self._phrase_starts
        roles = self._roles.get(key)
        if roles is None and (known := self._by_stem.get(stem(key))) is not None:
            # "The updated file" says nothing of an update.
            kept = _CONTENT if key.endswith("ed") else _INFLECTED
            key, roles = known, self._roles[known] & kept
        return self._names.get(key) or stem(key), roles or 0, may_begin_phrase

    def _run(self, text: str, start: int, end: int) -> Iterator[Word]:
        """Yield the longest known words of consecutive CJK characters, and the rest one by one.

        A character that could be a word of content counts as one only between known words, since
        in most places it is a part of another word.
        """
        pieces: list[tuple[str, int]] = []
        at = start
        while at < end:
            for length in range(min(self._longest_run, end - at), 0, -1):
                key = text[at : at + length]
                if length == 1 or key in self._roles:
                    pieces.append((key, self._roles.get(key, 0)))
                    at += length
                    break
        at = start
        for i, (key, roles) in enumerate(pieces):
            known = len(key) > 1 or not roles & _CONTENT
            if not known:
                beside = (*pieces[max(0, i - 1) : i], *pieces[i + 1 : i + 2])
                known = all(
                    len(word) > 1 or (role and not role & _CONTENT) for word, role in beside
                )
            name = self._names.get(key) if known else None
            yield Word(name or key, roles if known else 0, at, at + len(key), key)
            at += len(key)


@lru_cache(maxsize=16)
def lexicon_of(languages: tuple[Language, ...]) -> Lexicon:
    """Return the roles of the words of these languages."""
    return Lexicon(languages)
