"""What the user answered to a tool that asks: each answer with its question.

The result of such a tool repeats the questions of the call, with the answers behind them, as text
or as JSON. A result that repeats none of them is one answer to all that was asked.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.digest import Statement
from policyctx.compaction.extractive.sentences import one_line, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_LONGEST_ANSWER, _LONGEST_NOTE = 480, 400
_QUESTION_MARK = ("?", "？")
# What is between a question and its answer.
_BETWEEN = re.compile(r"[\"'”\u2019\]})]*\s*(?:=>?|[:：→]|->)?\s*")
_QUOTED = re.compile(r"\"(.*?)\"(?=[\s,.;}\])]|$)|“([^”]*)”", re.DOTALL)
_BLANK_LINE = re.compile(r"\n\s*\n")


def answers_in(call: str, result: str) -> Iterator[Statement]:
    """Yield the answers in the words of a result; `call` is the input of its call as text."""
    asked = _value_in(call)
    texts = list(_texts_in(asked))
    questions = list(dict.fromkeys(one for one in texts if one.rstrip().endswith(_QUESTION_MARK)))
    told = _options_in(asked)
    pairs = list(_pairs(questions, result))
    if not pairs and result.strip():
        about = " ".join(questions) or max(texts, key=len, default="")
        pairs = [(about, result)]
    for question, answer in pairs:
        text = shortened(one_line(answer), _LONGEST_ANSWER)
        if text:
            chosen = [f"{one}: {told[one]}" for one in told if _names(text, one)]
            note = one_line(" ".join([question, *chosen]))
            yield Statement(text, answers=shortened(note, _LONGEST_NOTE))


def _value_in(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _texts_in(value: object) -> Iterator[str]:
    """Yield the texts in a value, in order."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _texts_in(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)


def _options_in(value: object) -> Mapping[str, str]:
    """Return what is said of each choice: an object with a short text and one that explains it."""
    found: dict[str, str] = {}
    if isinstance(value, dict):
        texts = [one for one in value.values() if isinstance(one, str)]
        asks = any(one.rstrip().endswith(_QUESTION_MARK) for one in texts)
        if len(texts) > 1 and not asks:
            found[min(texts, key=len)] = max(texts, key=len)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        found |= _options_in(one)
    return found


def _names(answer: str, option: str) -> bool:
    """Whether an answer is an option, or several of them with commas between."""
    return answer == option or option in [part.strip() for part in answer.split(",")]


def _pairs(questions: Sequence[str], result: str) -> Iterator[tuple[str, str]]:
    """Yield the questions that a result repeats, each with what is behind it."""
    value = _value_in(result)
    if not isinstance(value, str):
        yield from _pairs_of(value, frozenset(questions))
        return
    places = sorted((at, one) for one in questions if (at := result.find(one)) >= 0)
    ends = [*(at for at, _ in places[1:]), len(result)]
    for (at, question), end in zip(places, ends, strict=False):
        behind = result[at + len(question) : end]
        between = _BETWEEN.match(behind)
        answer = behind[between.end() :] if between else behind
        quoted = _QUOTED.match(answer)
        plain = _BLANK_LINE.split(answer.strip(), maxsplit=1)[0]
        yield question, plain if quoted is None else quoted[1] or quoted[2] or ""


def _pairs_of(value: object, questions: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the questions in JSON: as the key of an answer, or beside it in one object."""
    if isinstance(value, list):
        for one in value:
            yield from _pairs_of(one, questions)
    if not isinstance(value, dict):
        return
    beside = [one for one in value.values() if isinstance(one, str) and one in questions]
    if beside:
        others = {key: one for key, one in value.items() if one != beside[0]}
        yield beside[0], ", ".join(_texts_in(others))
        return
    for key, one in value.items():
        if key in questions:
            yield key, ", ".join(_texts_in(one))
        else:
            yield from _pairs_of(one, questions)
