from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.history import History
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.words import words_in
from tests.compaction.extractive.recorded import (
    FOLDERS,
    instructions,
    pieces,
    recorded_messages,
)
from tests.compaction.extractive.test_survival import COUNTER, ROUNDS, after, tokens
from tests.recordings import each_recording

if TYPE_CHECKING:
    from pathlib import Path

    from tests.compaction.extractive.sessions import Message

# A history of fewer tokens is no one's reason to compact.
REALISTIC = 15_000


@dataclass(frozen=True)
class Round:
    """A compaction of a recording: what has been said up to there, and the summary."""

    seen: list[Message]
    summary: str


@cache
def rounds(path: Path) -> list[Round]:
    """Compact a recording five times on its way."""
    done: list[Round] = []
    for piece in pieces(recorded_messages(path), ROUNDS):
        history = after(done[-1].summary, piece) if done else History(piece)
        seen = [*(done[-1].seen if done else ()), *piece]
        done.append(Round(seen, extractive_summary(history, Summary())))
    return done


def evened(text: str) -> str:
    return re.sub(r"[\s*•❯>-]+", " ", text).strip().casefold().rstrip(".: ")


@each_recording(*FOLDERS)
def test_what_a_user_typed_is_only_lost_when_the_summary_is_full(path: Path) -> None:
    for one in rounds(path):
        held = evened(one.summary)
        lost = [text for text in instructions(one.seen) if evened(text) not in held]
        assert not lost or words_in(one.summary) > 0.95 * Summary().max_words


@each_recording(*FOLDERS)
def test_a_summary_of_a_recording_keeps_to_its_words(path: Path) -> None:
    for one in rounds(path):
        assert 0 < words_in(one.summary) <= Summary().max_words


@each_recording(*FOLDERS)
def test_a_summary_is_a_fifth_of_the_first_piece_of_a_recording_at_most(path: Path) -> None:
    compactions = rounds(path)
    first = max(tokens(compactions[0].seen), REALISTIC)
    for one in compactions:
        assert COUNTER.count(one.summary) <= first / 5


@each_recording(*FOLDERS)
def test_a_summary_alone_is_summarised_as_itself(path: Path) -> None:
    for one in rounds(path):
        assert extractive_summary(after(one.summary, []), Summary()) == one.summary
