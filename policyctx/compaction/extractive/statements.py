"""What user and agent said, sentence by sentence, and how much each sentence weighs.

The weights rank what is kept when there is not room for all:

- The user is above the agent: what a user asked, forbade or limited can be asked for by no one
  else again, while the agent's own words follow from it.
- An order, by its words, is above other sentences: it binds all later work. A table of words only
  adds weight; without one the user's sentence still stands above the agent's.
- Exact values add weight: they cannot be guessed.
- The first of the user's words hold the task, the last what it has become. The agent's last words
  in a turn are its answer; those before are mostly narration.
- A question binds nothing, and a sentence of a word or two without a value says little by itself.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.sentences import one_line, sentences_in, shortened
from policyctx.compaction.extractive.values import Value, values_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.messages.items import Item

USER, AGENT = "user", "agent"

_ORDER, _CHOICE, _VALUE, _MOST_VALUES, _LAST_WORDS = 4.0, 3.0, 1.0, 3, 2.0
_PLAN, _QUESTION, _HARDLY_ANYTHING = -2.0, -2.0, -4.0

# An answer of at most so many characters is understood by its question alone.
_SHORT_ANSWER = 24
_LONGEST_QUESTION = 300
_QUESTION_MARK = ("?", "？")
_OPTION = re.compile(r"^\W{0,6}(\w{1,2})\W{0,3}[.):、：]\W*\s*(\S[^\n]*)", re.MULTILINE)
_LETTERS = re.compile(r"\w+")
_SMALL = 2


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

    @property
    def text(self) -> str:
        """Its words."""
        return self.statement.text

    @property
    def weight(self) -> float:
        """How much it weighs among the agent's sentences."""
        weight = _agents_weight(self.text, self.values, tells=self.tells, plans=self.plans)
        return weight + (_LAST_WORDS if self.last else 0)


def said_in(items: Iterable[Item], cues: Cues) -> Iterator[Said]:
    """Yield the sentences of user and agent, in order."""
    texts = [item for item in items if item.kind in ("user_message", "assistant_message")]
    question = ""
    for item, after in zip_longest(texts, texts[1:]):
        if item.kind == "assistant_message":
            question = item.text
            last = after is None or after.kind == "user_message"
            yield from _said_by_agent(item, cues, last=last)
            continue
        for text, pasted in sentences_in(item.text):
            statement = Statement(text)
            if question and not pasted:
                statement, question = _answering(statement, question), ""
            yield Said(statement, item.message, USER, values_in(text), pasted)


def _said_by_agent(item: Item, cues: Cues, *, last: bool) -> Iterator[Said]:
    for text, pasted in sentences_in(item.text):
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
    weight = _values_weight(text, values)
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
