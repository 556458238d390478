"""A statement as it is compared with others: its clauses, words, values and cues.

Built once for each statement, so that comparing two of them is a matter of a few sets.
"""

from __future__ import annotations

from functools import cached_property
from itertools import islice, pairwise
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.clauses import ClauseReader
from policyctx.compaction.extractive.lexicon import Role
from policyctx.compaction.extractive.meanings import KINDS
from policyctx.compaction.extractive.statements import NUMBER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from policyctx.compaction.extractive.clauses import Clause, Token
    from policyctx.compaction.extractive.lexicon import Lexicon
    from policyctx.compaction.extractive.statements import Value

# Clauses of a statement that are looked at.
_MOST_CLAUSES = 6
_QUESTION_MARKS = ("?", "\uff1f")
# The end of a slot, where the value begins.
BORDER = "|"
# The strengths of cues: a word of revision, and the admission of a mistake.
CLEAR, ADMITTED = 2, 3


class _Read(NamedTuple):
    """What is read of each statement."""

    clauses: tuple[Clause, ...]
    tokens: tuple[Token, ...]
    words: frozenset[str]
    """All words and values, except those named as what no longer holds."""
    denied: frozenset[str]
    """Those named as what no longer holds."""
    keys: frozenset[str]
    """The words, and the kinds of its values, that similar statements are looked up by."""
    cue: int
    """How clearly it says that something changed: 0 (not at all) to 3 (an own mistake)."""
    excepts: bool
    """Whether it limits or suspends what holds, or only asks."""
    requests: bool
    """Whether it is a request in the form of a question."""


class Frame(_Read):
    """A statement as it is compared with others.

    Most statements are never so similar to another one that their neighbouring words matter.
    """

    @cached_property
    def content(self) -> frozenset[str]:
        """The words outside of its values that tell it apart from others."""
        return frozenset(
            [
                one.word
                for one in self.tokens
                if one.tells_apart and not one.denied and not one.in_value and one.kind != NUMBER
            ]
        )

    @cached_property
    def about(self) -> frozenset[str]:
        """All words that may show what it is about, in its values too."""
        return frozenset(
            [one.word for one in self.tokens if one.tells_topic and one.kind != NUMBER]
        )

    @cached_property
    def named(self) -> frozenset[str]:
        """The names, values and members of kinds in its slots."""
        return frozenset().union(*[one.named for one in self.clauses])

    @cached_property
    def named_beside_values(self) -> frozenset[str]:
        """Those in clauses that give a value, or forbid."""
        return frozenset().union(*[one.named for one in self.clauses if one.sets or one.negative])

    @cached_property
    def befores(self) -> tuple[tuple[str, str], ...]:
        """The pairs of words that stand side by side in a slot."""
        return tuple(_befores(self.clauses))

    @cached_property
    def betweens(self) -> tuple[tuple[str, str, str], ...]:
        """The words in a slot, each with its neighbours; the last may be `BORDER`."""
        return tuple(_betweens(self.clauses))


def frame_of(
    text: str, values: Sequence[Value], lexicon: Lexicon, *, corrects: bool = False
) -> Frame:
    """Return the frame of a statement with these exact values.

    `corrects` says that its writer admitted a mistake right before.
    """
    reader = ClauseReader(text, values, lexicon)
    clauses = tuple(islice(reader.clauses(), _MOST_CLAUSES))
    asks = text.rstrip().endswith(_QUESTION_MARKS) or bool(reader.roles & Role.QUESTION)
    tokens = tuple([one for clause in clauses for one in clause.tokens])
    denied = frozenset([one.word for one in tokens if one.denied])
    words = frozenset([one.word for one in tokens])
    kinds = [
        f"{one.kind}:"
        for clause in clauses
        if clause.gives_member
        for one in clause.special
        if one.kind in KINDS
    ]
    return Frame(
        clauses=clauses,
        tokens=tokens,
        words=frozenset([one.word for one in tokens if not one.denied]) if denied else words,
        denied=denied,
        keys=words.union(kinds) if kinds else words,
        cue=max(_cue_of(reader.roles), CLEAR if corrects else 0),
        excepts=asks or bool(reader.roles & Role.EXCEPTION),
        requests=bool(asks and reader.roles & Role.REQUEST and not reader.roles & Role.EXCEPTION),
    )


def _cue_of(roles: int) -> int:
    for strength, role in ((ADMITTED, Role.CORRECTION), (CLEAR, Role.REVISION), (1, Role.UPDATE)):
        if roles & role:
            return strength
    return 0


def _befores(clauses: Iterable[Clause]) -> Iterator[tuple[str, str]]:
    for clause in clauses:
        for one, after in pairwise(clause.tokens):
            if (
                after.joined
                and one.tells_apart
                and after.tells_apart
                and not one.in_value
                and not after.in_value
            ):
                yield one.word, after.word


def _betweens(clauses: Iterable[Clause]) -> Iterator[tuple[str, str, str]]:
    for clause in clauses:
        tokens = [one for one in clause.tokens if not one.denied]
        for i, (first, middle) in enumerate(pairwise(tokens)):
            if first.in_value or middle.in_value or not middle.tells_apart:
                continue
            last = tokens[i + 2] if i + 2 < len(tokens) else None
            if last is not None and not last.in_value:
                yield first.word, middle.word, last.word
            elif clause.sets:
                yield first.word, middle.word, BORDER
