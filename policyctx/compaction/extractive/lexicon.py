"""The roles that words have in a statement, looked up in the tables of the languages.

A table of cues says whether a text has a word of one sort. To see which thing a statement is about,
which value it gives, and whether it allows or forbids, each word needs its role. One word may have
several: `改成` is a word of revision and comes before the new value.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.compaction.extractive.languages import Language


class Role:
    """What a word does in a statement, as bits; a word in no table is 0 and part of the content."""

    PARTICLE = 1
    SETTER = 2
    """It comes before a value that something is given."""
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
_SHORTEST_STEM = 4
_MOST_CACHED = 20_000


# A word or phrase in its place: its meaning or its stem (of CJK without an entry one character),
# its roles, where it begins and ends, and its text. A plain tuple, since each word of a history is
# read.
Word: TypeAlias = tuple[str, int, int, int, str]


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
        # For each first word of a phrase, the most words that such a phrase has.
        self._phrase_words: dict[str, int] = {}
        for word in roles:
            if word.isascii() and " " in word:
                first, words = word.split(" ", 1)[0], len(_PIECE.findall(word))
                self._phrase_words[first] = max(words, self._phrase_words.get(first, 0))
        self._read = lru_cache(maxsize=_MOST_CACHED)(self._read_word)
        # For each first character the lengths of the entries that are not ASCII, longest first.
        lengths: dict[str, set[int]] = {}
        for word in roles:
            if len(word) > 1 and not word.isascii():
                lengths.setdefault(word[0], set()).add(len(word))
        self._lengths = {first: sorted(all_, reverse=True) for first, all_ in lengths.items()}

    def meaning_of(self, word: str) -> str:
        """Return the name of a word's meaning; the word itself if it is in no table."""
        return self._names.get(word, word)

    def words_in(self, text: str) -> Iterator[Word]:
        """Yield the words of a text and, as `,` and `:`, the signs between its clauses."""
        found = list(_PIECE.finditer(text))
        read, skip = self._read, 0
        for i, piece in enumerate(found):
            if skip:
                skip -= 1
                continue
            start, end = piece.span()
            kind = piece.lastgroup
            if kind == "word":
                raw = piece[0]
                name, roles, most = read(raw)
                if most and (last := self._end_of_phrase(text, found, i, most)) > i:
                    skip, end = last - i, found[last].end()
                    raw = text[start:end]
                    name, roles, _ = self._read(raw)
                elif raw == "A" and not start:
                    name, roles, _ = self._read("a")
                yield (name, roles, start, end, raw)
            elif kind == "run":
                yield from self._run(text, start, end)
            elif kind == "colon":
                yield (COLON, Role.SETTER | Role.PARTICLE, start, end, piece[0])
            else:
                yield (STOP, Role.PARTICLE, start, end, piece[0])

    def _end_of_phrase(self, text: str, found: list[re.Match[str]], i: int, most: int) -> int:
        """Return the position of the last of the at most so many words of a phrase from `i`."""
        for last in range(min(i + most, len(found)) - 1, i, -1):
            if found[last].lastgroup == "word":
                phrase = " ".join(text[found[i].start() : found[last].end()].casefold().split())
                if phrase in self._roles or phrase.removesuffix("s") in self._roles:
                    return last
        return i

    def _read_word(self, raw: str) -> tuple[str, int, int]:
        """Return the name and the roles of a word or phrase.

        The third is how many words a phrase may have that begins with it, 0 if none does.
        """
        key = " ".join(raw.casefold().replace("\u2019", "'").split())
        if len(raw) == 1 and raw.isupper() and raw != "I":
            return key, 0, 0
        if " " in key and key not in self._roles:
            key = key.removesuffix("s")
        most = self._phrase_words.get(key, 0)
        roles = self._roles.get(key)
        if roles is None and (known := self._by_stem.get(stem(key))) is not None:
            # "The updated file" says nothing of an update.
            kept = _CONTENT if key.endswith("ed") else _INFLECTED
            key, roles = known, self._roles[known] & kept
        return self._names.get(key) or stem(key), roles or 0, most

    def _run(self, text: str, start: int, end: int) -> Iterator[Word]:
        """Yield the longest known words of consecutive CJK characters, and the rest one by one.

        A character that could be a word of content counts as one only between known words, since
        in most places it is a part of another word.
        """
        roles_of, lengths_of = self._roles, self._lengths
        pieces: list[tuple[str, int]] = []
        at = start
        while at < end:
            key = text[at]
            for length in lengths_of.get(key, ()):
                if at + length <= end and text[at : at + length] in roles_of:
                    key = text[at : at + length]
                    break
            pieces.append((key, roles_of.get(key, 0)))
            at += len(key)
        at = start
        for i, (key, roles) in enumerate(pieces):
            known = not roles & _CONTENT or len(key) > 1
            if not known:
                beside = (*pieces[max(0, i - 1) : i], *pieces[i + 1 : i + 2])
                known = all(
                    len(word) > 1 or (role and not role & _CONTENT) for word, role in beside
                )
            if roles and known:
                yield (self._names.get(key) or key, roles, at, at + len(key), key)
            else:
                yield (key, 0, at, at + len(key), key)
            at += len(key)


@lru_cache(maxsize=16)
def lexicon_of(languages: tuple[Language, ...]) -> Lexicon:
    """Return the roles of the words of these languages."""
    return Lexicon(languages)
