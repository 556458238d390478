"""`Said`: what a text says of orders, exact values and tasks.

An order is said in the same words, and forbidden or not as in the order. An order and a text are
read sentence by sentence, and a sentence by its clauses, each with whether something in it is
negated. One sentence must have most words of the order, in any order, or at least half of the words
of both must be common to both, so that a sentence on something else does not count. A prohibition
needs a negated clause on what is forbidden, an order a clause that is not negated, and a limit its
numbers beside words that do not lift it. Another sentence never counts. So a text that says
the order in quite other words is held to lack it; one that says the opposite does as well.

An exact value has to be there to the letter. A task is there if two sentences in a row have most of
its words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from policyctx.compaction.extractive.languages import cues_of
from policyctx.tokens.encoders import CJK

# The share of an order's words that a text must have, or the share of the words of both that they
# have in common.
_ENOUGH, _ALIKE = 0.6, 0.5
# Sentences with a smaller share are not read for what they order.
_LEAST = 0.25
# Letters of a word that are compared, and those that an abbreviation has at least.
_BEGINNING, _SHORT = 6, 4
_WORD = re.compile(r"[^\W\d_]\w+")
_ENDING = re.compile(
    r"(?<=[a-z]{4})(?:ly|ions?|ments?|(?<!s)s)$|(?<=[a-zäöü]{3})(?:ing|ed|es|e|e[nr]s?)$"
)
# A letter or a digit; a CJK character is a word of its own.
_LETTER = r"[^\W\u1100-\uffef]"
_BEGINS = re.compile(rf"(?<!{_LETTER})(?<!{_LETTER}\.)")
_ENDS = re.compile(rf"(?!{_LETTER})")
_NUMBER = re.compile(r"(?<![a-z0-9_./-])\d(?:[\d.,:]*\d)?(?![a-z0-9_/-])")
_SENTENCE = re.compile(r"(?<=[.!?])\s+|(?<=[。！？])")
_CLAUSE = re.compile(
    r"[,;] |[，；、]| [-\u2013\u2014] |(?=而是|但)"
    r"|\s(?=(?:but|instead of|rather than|statt|anstatt|sondern)\b)"
)
_MORE = (
    r"(?:more|longer|larger|bigger|greater|higher)(?: than)?|over|above|exceeds?|beyond|mehr als"
    r"|länger als|größer als|über|überschreiten|plus de|dépasser?"
)
_CJK_MORE = "超过|大于|多于|高于|超出"
_EXCEEDS = re.compile(rf"\b(?:{_MORE})\b|{_CJK_MORE}")
_NOT_MORE = re.compile(
    r"\b(?!no (?:longer|more)(?! than))"
    r"(?:no|not|never|don't|shouldn't|mustn't|can't|cannot|nie|nicht|ne)"
    r"(?: (?:be|go|get|run|use|take|have|to|any|allowed|darf|werden))*"
    rf" (?:{_MORE})\b|(?:不能|不得|不可|不应|不要|不|勿)(?:{_CJK_MORE})"
)
_AT_LEAST = re.compile(
    r"\b(?:at least|no less than|no fewer than|minimum|mindestens)\b|至少|不少于|不低于"
)
_LESS = re.compile(r"\b(?:below|under|less than|fewer than|weniger als|unter)\b|低于|少于")
_ONLY = re.compile(r"\b(?:only|nur|uniquement)\b|只|仅")
_EXCEPTED = re.compile(r"\b(?:without|unless|except|until|ohne|außer|sans|sauf)\b|除非|除了|未经")
_ONLY_IF = re.compile(r"\b(?:only|nur) (?:after|if|mit|nach|on|once|when|with|wenn)\b")
_SIGNS = re.compile(r"[。，：；！？、\uff08\uff09“”「」]")
_LEAD = re.compile(r"\s*#+ |.*[:：]\s*(?:\*\*)?$")
_ITEM = re.compile(r"^\s*(?:[-*+•]|\d+[.)])\s+")

_ONES, _TENS = range(2, 13), range(20, 101, 10)
_NUMBERS = {
    name: str(number)
    for names, numbers in (
        ("two three four five six seven eight nine ten eleven twelve", _ONES),
        ("zwei drei vier fünf sechs sieben acht neun zehn elf zwölf", _ONES),
        ("deux trois quatre cinq six sept huit neuf dix onze douze", _ONES),
        ("twenty thirty forty fifty sixty seventy eighty ninety hundred", _TENS),
        ("zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig hundert", _TENS),
    )
    for name, number in zip(names.split(), numbers, strict=True)
}
_SPELLED = re.compile(rf"\b(?:{'|'.join(sorted(_NUMBERS, key=len, reverse=True))})\b")
_CJK_DIGITS = "零一二三四五六七八九十"
_CJK_SPELLED = re.compile(r"[一二两三四五六七八九十](?=[个次分秒小天行条名点位倍元页人块种毫])")
_UNITS = {
    name: f" {unit}"
    for unit, names in (
        ("ms", "milliseconds millisecond msec millisekunden millisecondes 毫秒"),
        ("s", "seconds second secs sec sekunden sekunde secondes seconde 秒"),
        ("min", "minutes minute mins minuten 分钟"),
    )
    for name in names.split()
}
_UNIT = re.compile(rf"(?<=\d)[ -]?({'|'.join(_UNITS)})(?![a-z])")
_SIZE = re.compile(r"(?<=\d)(?=(?:%|[kmgt]i?b|m?s|min|px)(?![a-z0-9_]))")


def plain(text: str) -> str:
    """Return the text without case, Markdown and runs of blanks, with its numbers in digits."""
    bare = re.sub(r"[`*\"“”]", "", text.casefold().replace("\u2019", "'"))
    bare = re.sub(r"(?<=\d),(?=\d{3})", "", bare)
    bare = _SPELLED.sub(lambda found: _NUMBERS[found[0]], bare)
    bare = _CJK_SPELLED.sub(lambda found: str(_CJK_DIGITS.find(found[0].replace("两", "二"))), bare)
    bare = re.sub(r"(?<=\d) ?(?:percent|per cent|prozent)\b", "%", bare)
    bare = _UNIT.sub(lambda found: _UNITS[found[1]], bare)
    return " ".join(_SIZE.sub(" ", bare).split())


@lru_cache(maxsize=32)
def stems_of(text: str) -> frozenset[str]:
    """Return what a text is about: the beginnings of its words, and CJK characters."""
    cues = cues_of()
    bare = plain(text)
    for idle in (cues.approvals, cues.negations, cues.revisions, cues.orders):
        bare = idle.removed_from(bare)
    words = {_stem(word) for word in _WORD.findall(re.sub(CJK, " ", bare))}
    return frozenset(words.union(re.findall(CJK, _SIGNS.sub(" ", bare))))


# One value is looked for in many texts.
_wanted = lru_cache(maxsize=32)(plain)


def _stem(word: str) -> str:
    return _ENDING.sub("", word)[:_BEGINNING]


@dataclass(frozen=True, slots=True)
class _Clause:
    text: str
    words: frozenset[str]
    forbids: bool
    """Whether it says that something must not be."""
    allows: bool
    """Whether it lifts an order, or allows something."""
    binds: bool
    """Whether it orders or forbids; the others give a reason or an example."""


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence, read for what it orders."""

    text: str
    words: frozenset[str]
    numbers: frozenset[str]
    clauses: Sequence[_Clause]
    is_limit: bool
    """Whether it sets an upper limit."""
    asks: bool
    """Whether something needs the user's word."""

    @classmethod
    def of(cls, text: str) -> Statement:
        """Return what a sentence orders."""
        cues = cues_of()
        bounded = _NOT_MORE.sub(" at most ", plain(text))
        is_limit = cues.bounds.found_in(bounded)
        clauses = [*map(_clause, filter(None, _CLAUSE.split(bounded)))]
        words = frozenset(word for one in clauses for word in one.words)
        allowed = any(one.allows for one in clauses)
        before = _EXCEPTED.split(bounded)[0]
        asks = cues.approvals.found_in(before) or _ONLY_IF.search(before) is not None
        numbers = frozenset(_NUMBER.findall(bounded))
        return cls(plain(text), words, numbers, clauses, is_limit, asks and not allowed)

    @property
    def _forbidden(self) -> frozenset[str]:
        return frozenset(word for one in self.clauses if one.forbids for word in one.words)

    @property
    def _ordered(self) -> frozenset[str]:
        return frozenset(word for one in self.clauses if not one.forbids for word in one.words)

    def says(self, order: Statement) -> bool:
        """Return whether it says what an order says."""
        if not order.words:
            return order.text in self.text
        # What is to be done instead of what is forbidden belongs to the order.
        has_rest = not order._ordered or _common(self.words, order._ordered) > 0
        binding = frozenset(word for one in order.clauses if one.binds for word in one.words)
        is_on_it = _is_same(self.words, order.words) or _is_same(self.words, binding)
        # "No files changed" shares one word with many orders, and says none.
        is_order = self.asks or cues_of().standing.found_in(self.text)
        least = 1 if is_order else min(2, len(order.words))
        has_words = has_rest and is_on_it and _common(self.words, order.words) >= least
        if not has_words or not order.numbers <= self.numbers:
            return False
        if order.numbers and (order.is_limit or _AT_LEAST.search(order.text)):
            return not self._lifts(order)
        forbidden = order._forbidden
        if forbidden or order.asks:
            is_conditional = order.asks or _EXCEPTED.search(order.text) is not None
            return (is_conditional and self.asks) or self._holds(forbidden or order.words)
        if _ONLY.search(order.text) and _ONLY.search(self.text):
            return not cues_of().lifts.found_in(self.text)
        lifted = any(one.allows and order.words & one.words for one in self.clauses)
        is_turned = len(order.words & self._forbidden) * 2 >= len(order.words & self.words)
        return not (is_turned or lifted)

    def _lifts(self, order: Statement) -> bool:
        """Return whether it allows what is beyond a limit."""
        if _AT_LEAST.search(order.text):
            return _LESS.search(self.text) is not None and not self._forbidden
        if any(one.allows and _EXCEEDS.search(one.text) for one in self.clauses):
            return True
        lifts = _EXCEEDS.search(self.text) or any(one.allows for one in self.clauses)
        return not self.is_limit and bool(lifts)

    def _holds(self, forbidden: frozenset[str]) -> bool:
        """Return whether a clause forbids this."""
        return any(
            _is_same(one.words, forbidden)
            or (_common(one.words, forbidden) > 0 and _is_same(self.words, forbidden))
            for one in self.clauses
            if one.forbids
        )


def _clause(text: str) -> _Clause:
    cues = cues_of()
    lifted = cues.lifts.found_in(text)
    # What happened forbids nothing.
    bare = cues.reports.removed_from(cues.lifts.removed_from(text))
    strong = cues.negations.found_in(_EXCEPTED.sub(" ", bare))
    weak = not strong and cues.negations.found_in(bare)
    permitted = cues.permissions.found_outside(cues.approvals, text)
    excepted = _EXCEPTED.search(text)
    if weak and excepted and cues.approvals.found_in(text[excepted.start() :]):
        # Without being asked.
        permitted = True
    forbids = strong or (weak and not permitted)
    binds = forbids or cues.standing.found_outside(cues.remarks, text)
    return _Clause(text, stems_of(text), forbids, lifted or (permitted and not strong), binds)


def _common(have: frozenset[str], wanted: frozenset[str]) -> int:
    """Return how many words are there; of a long one a beginning of four letters is enough."""
    return sum(
        word in have or (len(word) >= _SHORT and any(_is_beginning(one, word) for one in have))
        for word in wanted
    )


def _is_beginning(one: str, other: str) -> bool:
    return len(one) >= _SHORT and (one.startswith(other) or other.startswith(one))


def _beginnings(words: frozenset[str]) -> frozenset[str]:
    return frozenset(word[:_SHORT] for word in words)


def _is_same(have: frozenset[str], wanted: frozenset[str]) -> bool:
    """Return whether words are on what is wanted, and on little else."""
    common = _common(have, wanted)
    is_most = common >= _ENOUGH * len(wanted)
    return common > 0 and (is_most or 2 * common >= _ALIKE * (len(have) + len(wanted)))


def sentences_in(text: str) -> Iterator[str]:
    """Yield the sentences of a text; an entry of a list comes with its lead if that forbids it."""
    cues, lead = cues_of(), ""
    for line in text.split("\n"):
        if not line.strip():
            continue
        is_item = _ITEM.match(line) is not None
        if _LEAD.match(line) and not is_item:
            forbids = cues.negations.found_in(line) and cues.standing.found_in(line)
            lead = line.strip(" #*:：") if forbids else ""
        elif not is_item:
            lead = ""
        for one in filter(None, _SENTENCE.split(_ITEM.sub("", line, count=1))):
            yield f"{lead} {one}" if lead and is_item else one


def forbidden_in(text: str) -> tuple[str, ...]:
    """Return the clauses of a text that forbid something, without case and Markdown."""
    clauses = (clause for one in sentences_in(text) for clause in Statement.of(one).clauses)
    return tuple(clause.text for clause in clauses if clause.forbids)


class Said:
    """What a text says."""

    def __init__(self, text: str) -> None:
        self._folded = plain(text)
        self._sentences = [(one, stems_of(one)) for one in sentences_in(text)]
        self._beginnings = [_beginnings(words) for _, words in self._sentences]
        self._read: dict[int, Statement] = {}

    def has(self, value: str) -> bool:
        """Return whether the text has a value to the letter, in any case and without Markdown."""
        wanted, text = _wanted(value), self._folded
        at = text.find(wanted)
        while at >= 0 and not (_BEGINS.match(text, at) and _ENDS.match(text, at + len(wanted))):
            at = text.find(wanted, at + 1)
        return at >= 0

    def says(self, text: str) -> bool:
        """Return whether it says all that a text orders, each in one sentence."""
        cues, sentences = cues_of(), [*sentences_in(text)]
        binding = [one for one in sentences if cues.standing.found_outside(cues.remarks, one)]
        return all(self._says(Statement.of(one)) for one in binding or sentences)

    def _says(self, order: Statement) -> bool:
        wanted, least = _beginnings(order.words), _LEAST * len(order.words)
        near = (i for i, one in enumerate(self._beginnings) if len(one & wanted) >= least)
        return any(self._statement(number).says(order) for number in near)

    def _statement(self, number: int) -> Statement:
        if number not in self._read:
            self._read[number] = Statement.of(self._sentences[number][0])
        return self._read[number]

    def is_about(self, text: str, enough: float) -> bool:
        """Return whether two sentences in a row have this share of the words of a text."""
        words = stems_of(text)
        if not words:
            return plain(text) in self._folded
        found = [one for _, one in self._sentences]
        runs = (one | after for one, after in pairwise([*found, frozenset()]))
        return any(len(words & run) >= enough * len(words) for run in runs)
