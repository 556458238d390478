"""What user and agent said, sentence by sentence, and how much each sentence weighs.

The weights rank what is kept when there is not room for all:

- The user is above the agent: what a user asked, forbade or limited can be asked for by no one
  else again, while the agent's own words follow from it.
- An order, by its words, is above other sentences: it binds all later work. A table of words only
  adds weight; without one the user's sentence still stands above the agent's.
- Exact values add weight: they cannot be guessed.
- The first message holds the task and the newest what it has become; the last words of a turn are
  what the agent answered, those before are mostly narration.
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

_ORDER, _CHOICE, _VALUE, _MOST_VALUES, _LAST_WORDS, _ENDS = 4.0, 3.0, 1.0, 3, 2.0, 3.0
_PLAN, _QUESTION, _HARDLY_ANYTHING = -2.0, -2.0, -4.0

# An answer of at most so many characters is understood by its question alone.
_SHORT_ANSWER = 24
_LONGEST_QUESTION = 300
_QUESTION_MARK = ("?", "？")
_OPTION = re.compile(r"^\W{0,6}(\w{1,2})\W{0,3}[.):、：]\W*\s*(\S[^\n]*)", re.MULTILINE)
_LETTERS = re.compile(r"\w+")
_SMALL = 2


class Said(NamedTuple):
    """A sentence of a conversation."""

    statement: Statement
    message: int
    speaker: str
    pasted: bool
    weight: float
    tells: bool
    """Whether it has the words of a decision or a finding."""
    plans: bool
    """Whether it announces what comes next."""
    values: tuple[Value, ...]

    @property
    def text(self) -> str:
        """Its words."""
        return self.statement.text


def said_in(items: Iterable[Item], cues: Cues) -> Iterator[Said]:
    """Yield the sentences of user and agent, in order; one said again counts where it is last."""
    texts = [item for item in items if item.kind in ("user_message", "assistant_message")]
    users = [item.message for item in texts if item.kind == "user_message"]
    ends = {users[0], users[-1]} if users else set()
    question = ""
    for item, after in zip_longest(texts, texts[1:]):
        if item.kind == "assistant_message":
            question = item.text
            last = after is None or after.kind == "user_message"
            for sentence in sentences_in(item.text):
                if not sentence.pasted:
                    yield _said(Statement(sentence.text), item.message, AGENT, cues, last=last)
            continue
        for sentence in sentences_in(item.text):
            statement = Statement(sentence.text)
            if question and not sentence.pasted:
                statement = _answering(statement, question)
            yield _said(
                statement, item.message, USER, cues,
                pasted=sentence.pasted, last=item.message in ends,
            )  # fmt: skip
            if not sentence.pasted:
                question = ""


def _said(
    statement: Statement,
    message: int,
    speaker: str,
    cues: Cues,
    *,
    pasted: bool = False,
    last: bool = False,
) -> Said:
    values = values_in(statement.text)
    tells = cues.choices.search(statement.text) is not None
    plans = speaker == AGENT and cues.plans.search(statement.text) is not None
    weight = weight_of(statement, cues, values, agent=speaker == AGENT)
    if last:
        weight += _LAST_WORDS if speaker == AGENT else _ENDS
    return Said(statement, message, speaker, pasted, weight, tells, plans, values)


def weight_of(
    statement: Statement, cues: Cues, values: Sequence[Value], *, agent: bool = False
) -> float:
    """Return how much a sentence weighs by its words, among those of its group."""
    text = statement.text
    weight = _VALUE * min(len(values), _MOST_VALUES)
    if agent:
        weight += _CHOICE if cues.choices.search(text) else 0
        weight += _PLAN if cues.plans.search(text) else 0
    elif cues.orders.search(text) or statement.replaces:
        weight += _ORDER
    elif not values and not statement.answers and _says_little(text):
        weight += _HARDLY_ANYTHING
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
