"""The summary of another writer, such as the one that a client's own compaction left.

It may be all that is left of the conversation before it. Its sections are known by their headings:
what repeats the user's words is the user's, what is still to do is open, and the rest are
statements, each in its own words.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.digest import Digest, Statement
from policyctx.compaction.extractive.lines import BULLET
from policyctx.compaction.extractive.sentences import one_line, sentences_in, shortened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.compaction.extractive.cues import Cues

_HEADING = re.compile(
    r"\s*(?:#{1,6}\s+(?P<marked>\S[^\n]{0,100})|(?:\d{1,2}[.)]\s+)?\*\*(?P<bold>[^*\n]{2,80})\*\*"
    r"[:：]?|(?P<number>\d{1,2}[.)]\s+[^\n.!?。]{2,70}[:：]))\s*"
)
_FENCE = re.compile(r"^\s*(?:```|~~~).*?^\s*(?:```|~~~)\s*$", re.MULTILINE | re.DOTALL)
# What its writer thought before it wrote.
_THOUGHT = re.compile(
    r"<analysis>.*?</analysis>|\A.*?^\s*(?:<summary>|#{0,6}\s*Summary:?)\s*$",
    re.DOTALL | re.MULTILINE,
)
_NUMBER = re.compile(r"^\d{1,2}[.)]\s+")
_QUOTES = "\"'“”「」"
_LONGEST = 480
# Words of an entry that says little without the heading above it.
_SHORT = 5
# Words of the name of a section.
_LONGEST_NAME = 5


class _Section(NamedTuple):
    heading: str
    text: str


def read_foreign(text: str, cues: Cues) -> Digest:
    """Return what the summary of another writer holds."""
    told: list[Statement] = []
    ahead: list[Statement] = []
    carried: list[Statement] = []
    for heading, body in _sections(_THOUGHT.sub("", text)):
        if cues.users.found_in(heading):
            told += map(Statement, _entries(body))
        elif _is_ahead(heading, cues):
            tasks = sentences_in(_outer(_FENCE.sub("", body)))
            ahead += (
                Statement(one.text)
                for one in tasks
                if not (cues.finished.found_in(one.text) or cues.continuations.found_in(one.text))
            )
        else:
            for one in sentences_in(_FENCE.sub("", body)):
                is_short = heading and len(one.text.split()) < _SHORT
                carried.append(Statement(f"{heading}: {one.text}" if is_short else one.text))
    return Digest(told=tuple(told), carried=tuple(carried), open=tuple(ahead))


def _is_ahead(heading: str, cues: Cues) -> bool:
    """Whether a section is named for what is still to do."""
    is_short = len(heading.split()) <= _LONGEST_NAME
    return is_short and (cues.plans.found_in(heading) or cues.unfinished.found_in(heading))


def _outer(body: str) -> str:
    """Return the entries that are indented least: what is below them explains them.

    Beside a list, other lines are what its writer says around it.
    """
    lines = [line for line in body.split("\n") if line.strip()]
    lines = [line for line in lines if BULLET.match(line)] or lines
    least = min((len(line) - len(line.lstrip()) for line in lines), default=0)
    return "\n".join(line for line in lines if len(line) - len(line.lstrip()) == least)


def _sections(text: str) -> Iterator[_Section]:
    heading, lines = "", list[str]()
    fenced = False
    for line in text.split("\n"):
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        found = None if fenced else _HEADING.fullmatch(line)
        if found is None:
            lines.append(line)
            continue
        yield _Section(heading, "\n".join(lines))
        name = next(group for group in found.groups() if group is not None)
        heading, lines = one_line(_NUMBER.sub("", name).strip(" *:：#")), []
    yield _Section(heading, "\n".join(lines))


def _entries(body: str) -> Iterator[str]:
    """Yield the messages in a list of the user's messages, each without its quotation marks."""
    for line in body.split("\n"):
        bullet = BULLET.match(line)
        words = (line[bullet.end() :] if bullet else line).strip().strip(_QUOTES).strip()
        if words:
            yield shortened(one_line(words), _LONGEST)
