"""The statements of user and agent, the exact values in them, and the weight of each.

An exact value is anything that nobody can guess: paths, ids, numbers (of one digit too), names in
code, dates, commands, quotations. The weights decide what is kept when there is not enough room:

- The user ranks above the agent. Nobody else can repeat what a user asked, forbade or limited,
  while the agent's words follow from it.
- An order, recognised by its words, ranks above other sentences because it binds all later work.
  The tables of words only add weight: without them the user still ranks above the agent.
- An exact value weighs as much as an order, and each further value adds weight.
- The user's first words hold the task, the last words its current form. The agent's last words in
  a turn are its answer; the words before them are mostly narration.
- A question binds nothing. A sentence of one or two words without a value says little by itself.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.answers import answers_in
from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.sentences import (
    one_line,
    sentences_in,
    shortened,
    units_in,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.definitions.items import Item, Path

_QUOTED = re.compile(
    r"`([^`\n]{1,200})`|\"([^\"\n]{2,120})\"|“([^”\n]{1,120})”|「([^」\n]{1,120})」"
)
# The characters that a value may end with, and those that it has before that only. Letters are
# those of ASCII, so that `用8080端口` has one.
_LAST, _INSIDE = r"A-Za-z0-9_/%*", r"~.\\@:#$€£¥+&?=-"
_CHAR = f"[{_LAST}{_INSIDE}]"
# A word like most, with what signs there are at its end.
_PLAIN = rf"[A-Za-z][a-z]*+[{_INSIDE}]*+(?![{_LAST}])"
# Consecutive such characters that are not a plain word, with commas between thousands.
_TOKEN = re.compile(rf"(?<!{_CHAR})(?!{_PLAIN}){_CHAR}*(?:(?<=\d),(?=\d{{3}}){_CHAR}*)*[{_LAST}]")
# Numbers in CJK numerals: a digit with its power of ten, and any before what they count. One alone
# is an article more often than a number.
_CJK_NUMERALS = "零二两三四五六七八九十百千万亿半"
_CJK_DIGITS = "二两三四五六七八九"
_CJK_NUMBER = re.compile(
    "(?:周|星期)[一二三四五六日天]"
    rf"|(?:[{_CJK_DIGITS}][十百千万亿]|十[一{_CJK_DIGITS}])[一{_CJK_NUMERALS}]*"
    rf"|[{_CJK_NUMERALS}][一{_CJK_NUMERALS}]*(?=[点天个小分秒米次月年号元块人页行条倍周])"
)
# A text without any of these has no value, which is true of most sentences. The look-ahead for the
# first character makes the search fast.
_HINT = re.compile(
    rf"(?=[周星{_CJK_NUMERALS}\d/\\_@`\"“「.A-Z-])"
    rf"(?:{_CJK_NUMBER.pattern}|[\d/\\_@`\"“「]|\.[A-Za-z]|(?<=[a-z])[A-Z]|--)"
)
_NUMBER = re.compile(r"[#$€£¥v+-]?\d[\d.,:/-]*(?:[A-Za-z%]{0,3})")
_INNER_DOT = re.compile(r"[A-Za-z0-9_]\.[A-Za-z0-9_]*[A-Za-z]")
_CAMEL = re.compile(r"[a-z0-9][A-Z]")
_WORD_AFTER = re.compile(r"\s?([A-Za-z]+|[\u3400-\u9fff\uac00-\ud7af\u3040-\u30ff])")
_WORD_BEFORE = re.compile(r"([A-Za-z]+|[\u3400-\u9fff\uac00-\ud7af\u3040-\u30ff])\s?$")
_SHORTEST = 4

NUMBER, PATH, NAME, QUOTED = "number", "path", "name", "quoted"


class Value(NamedTuple):
    """An exact value and its place in the text, in characters."""

    text: str
    start: int
    end: int
    kind: str
    """`number`, `path`, `name` (an identifier or an option), or `quoted`."""

    def neighbours(self, text: str) -> frozenset[str]:
        """Return the word before and the word after, in lower case: the unit of a number."""
        after = _WORD_AFTER.match(text, self.end)
        before = _WORD_BEFORE.search(text, max(0, self.start - 30), self.start)
        return frozenset(found[1].lower() for found in (before, after) if found)


def values_in(text: str) -> tuple[Value, ...]:
    """Return the exact values in the text, in order; what is quoted is one, without its quotes."""
    found: list[Value] = []
    if _HINT.search(text) is None:
        return ()
    at = 0
    for quoted in _QUOTED.finditer(text):
        found += _bare(text, at, quoted.start())
        inner = next(group for group in quoted.groups() if group is not None)
        kind = _kind_of(inner) or QUOTED
        start = quoted.start() + 1
        found.append(Value(inner, start, start + len(inner), kind))
        at = quoted.end()
    found += _bare(text, at, len(text))
    return tuple(found)


def _bare(text: str, start: int, end: int) -> Iterator[Value]:
    for number in () if text.isascii() else _CJK_NUMBER.finditer(text, start, end):
        yield Value(number[0], number.start(), number.end(), NUMBER)
    for token in _TOKEN.finditer(text, start, end):
        word = token[0]
        begin = token.start()
        bare = word.lstrip("=:?&.") if word[0] in "=:?&" else word
        begin += len(word) - len(bare)
        if kind := _kind_of(bare):
            yield Value(bare, begin, begin + len(bare), kind)


def _kind_of(word: str) -> str | None:
    """Say what kind of value a word is, None for a word like any other."""
    if " " in word:
        return None
    if _NUMBER.fullmatch(word):
        return NUMBER
    if ("/" in word or "\\" in word) and len(word) >= 2 and not _is_alternative(word):  # noqa: PLR2004
        return PATH
    if _INNER_DOT.search(word) and len(word) >= _SHORTEST:
        return PATH
    named = "_" in word.strip("_*") or "@" in word or word.startswith("--")
    if named or any(map(str.isdigit, word)) or _CAMEL.search(word):
        return NAME
    return None


def _is_alternative(word: str) -> bool:
    """Is this two words with a stroke between them, such as `and/or`."""
    first, _, second = word.partition("/")
    return first.isalpha() and second.isalpha() and len(word) < 2 * _SHORTEST


USER, AGENT, PROGRAM = "user", "agent", "program"

_ORDER, _CHOICE, _VALUE, _MOST_VALUES, _LAST_WORDS = 4.0, 3.0, 1.0, 3, 2.0
# With its weight as a value, the first that the user gives has that of an order.
_EXACT = 3.0
_PLAN, _QUESTION, _HARDLY_ANYTHING = -2.0, -2.0, -4.0

# An answer of at most so many characters is understood by its question alone.
_SHORT_ANSWER = 24
_LONGEST_QUESTION = 300
_QUESTION_MARK = ("?", "？")
_OPTION = re.compile(r"^\W{0,6}(\w{1,2})\W{0,3}[.):、：]\W*\s*(\S[^\n]*)", re.MULTILINE)
_LETTERS = re.compile(r"\w+")
_SMALL = 2


# The kinds of items that hold what somebody said.
_SPOKEN = ("user_message", "assistant_message")


class Said(NamedTuple):
    """A sentence of a conversation; of a user's, what it tells or plans is not looked at."""

    statement: Statement
    message: int
    speaker: str
    values: tuple[Value, ...]
    pasted: bool = False
    tells: bool = False
    """Whether it has the words of a decision or a finding."""
    plans: bool = False
    """Whether it announces what comes next."""
    last: bool = False
    """Whether it is of the agent's last words in a turn."""
    answered: bool = False
    """Whether it is the user's answer to a tool that asked."""

    @property
    def text(self) -> str:
        """Its words."""
        return self.statement.text

    @property
    def leads(self) -> bool:
        """Whether it only leads to what is not there, such as a call or code."""
        return self.speaker == AGENT and self.text.rstrip("*_ ").endswith((":", "："))

    @property
    def weight(self) -> float:
        """How much it weighs among the agent's sentences."""
        weight = _agents_weight(self.text, self.values, tells=self.tells, plans=self.plans)
        return weight + (_LAST_WORDS if self.last else 0)


def said_in(
    items: Iterable[Item], cues: Cues, asked: Mapping[tuple[int, Path], str] | None = None
) -> Iterator[Said]:
    """Yield the sentences of user and agent, in order, and what a program put beside them.

    The `author` of an item says whose words it has if its kind does not. `asked` has the input of
    the call that a result answers, by the message and path of the result.
    """
    texts = [item for item in items if item.kind in _SPOKEN or item.author == USER]
    question = ""
    for item, after in zip_longest(texts, texts[1:]):
        if item.kind == "assistant_message":
            question = item.text
            last = after is None or after.kind != "assistant_message"
            yield from _said_by_agent(item, cues, last=last)
            continue
        if item.kind == "tool_result":
            call = (asked or {}).get((item.message, item.path), "")
            for one in answers_in(call, words_of(item.text)):
                values = values_in(one.text)
                yield Said(one, item.message, USER, values, answered=True)
            continue
        if item.author == PROGRAM:
            for text, _ in sentences_in(item.text):
                one = Statement(text)
                yield Said(one, item.message, PROGRAM, values_in(text), pasted=True)
            continue
        for text, pasted in units_in(item.text):
            statement = Statement(text)
            if question and not pasted:
                statement, question = _answering(statement, question), ""
            yield Said(statement, item.message, USER, values_in(text), pasted)


def _said_by_agent(item: Item, cues: Cues, *, last: bool) -> Iterator[Said]:
    for text, pasted in units_in(item.text, short_as_one=False):
        if not pasted:
            yield Said(
                Statement(text), item.message, AGENT, values_in(text), last=last,
                tells=cues.choices.found_in(text), plans=cues.plans.found_in(text),
            )  # fmt: skip


def weight_of(
    statement: Statement, cues: Cues, values: Sequence[Value], *, agent: bool = False
) -> float:
    """Return how much a sentence weighs by its words, among those of its group."""
    text = statement.text
    if agent:
        tells, plans = cues.choices.found_in(text), cues.plans.found_in(text)
        return _agents_weight(text, values, tells=tells, plans=plans)
    weight = _values_weight(text, values) + (_EXACT if values else 0)
    if statement.replaces or cues.orders.found_in(text):
        return weight + _ORDER
    says_little = not values and not statement.answers and _says_little(text)
    return weight + (_HARDLY_ANYTHING if says_little else 0)


def _agents_weight(text: str, values: Sequence[Value], *, tells: bool, plans: bool) -> float:
    weight = _values_weight(text, values)
    return weight + (_CHOICE if tells else 0) + (_PLAN if plans else 0)


def _values_weight(text: str, values: Sequence[Value]) -> float:
    weight = _VALUE * min(len(values), _MOST_VALUES)
    return weight + (_QUESTION if text.endswith(_QUESTION_MARK) else 0)


def _says_little(text: str) -> bool:
    words = _LETTERS.findall(text)
    return len(words) <= _SMALL and len(text) <= _SHORT_ANSWER and text.isascii()


def _answering(statement: Statement, said: str) -> Statement:
    """Put the question before a short answer, and the option that it names."""
    if len(statement.text) > _SHORT_ANSWER or statement.text.endswith(_QUESTION_MARK):
        return statement
    sentences = [one.text for one in sentences_in(said[-4_000:])]
    questions = [text for text in sentences if text.endswith(_QUESTION_MARK)]
    if not questions:
        return statement
    picked = {word.lower() for word in _LETTERS.findall(statement.text)}
    options = [f"{name}: {text}" for name, text in _OPTION.findall(said) if name.lower() in picked]
    asked = shortened(one_line(" ".join([questions[-1], *options])), _LONGEST_QUESTION)
    return statement._replace(answers=asked)
