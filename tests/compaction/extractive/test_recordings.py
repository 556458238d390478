from __future__ import annotations

import re
from typing import TYPE_CHECKING

from policyctx.compaction.extractive import extractive_summary
from policyctx.compaction.extractive.budget import words_in
from policyctx.compaction.history import History
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.recorded import (
    FOLDERS,
    instructions,
    pieces,
    recorded_messages,
)
from tests.compaction.extractive.test_survival import COUNTER, ROUNDS, after, tokens
from tests.recordings import each_recording

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.compaction.extractive.sessions import Message

# A history of fewer tokens is no one's reason to compact.
REALISTIC = 15_000


def rounds(messages: list[Message]) -> Iterator[tuple[list[Message], str]]:
    """Yield what has been said up to each of five compactions of a recording, and the summary."""
    seen: list[Message] = []
    summary = None
    for piece in pieces(messages, ROUNDS):
        seen += piece
        history = History(piece) if summary is None else after(summary, piece)
        summary = extractive_summary(history, Summary())
        yield seen, summary


def evened(text: str) -> str:
    return re.sub(r"[\s*•❯>-]+", " ", text).strip().casefold().rstrip(".: ")


@each_recording(*FOLDERS)
def test_what_a_user_typed_is_only_lost_when_the_summary_is_full(path: Path) -> None:
    for seen, summary in rounds(recorded_messages(path)):
        held = evened(summary)
        lost = [text for text in instructions(seen) if evened(text) not in held]
        assert not lost or words_in(summary) > 0.95 * Summary().max_words


@each_recording(*FOLDERS)
def test_a_summary_of_a_recording_keeps_to_its_words(path: Path) -> None:
    for _, summary in rounds(recorded_messages(path)):
        assert 0 < words_in(summary) <= Summary().max_words


@each_recording(*FOLDERS)
def test_a_summary_is_a_fifth_of_the_first_piece_of_a_recording_at_most(path: Path) -> None:
    messages = recorded_messages(path)
    first = max(tokens(pieces(messages, ROUNDS)[0]), REALISTIC)
    for _, summary in rounds(messages):
        assert COUNTER.count(summary) <= first / 5


@each_recording(*FOLDERS)
def test_a_summary_alone_is_summarised_as_itself(path: Path) -> None:
    for _, summary in rounds(recorded_messages(path)):
        assert extractive_summary(after(summary, []), Summary()) == summary
