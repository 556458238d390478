from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.encoders import words_in
from tests.compaction.extractive.recorded import (
    FOLDERS,
    evened,
    instructions,
    pieces,
    recorded_messages,
)
from tests.compaction.extractive.sessions import Message
from tests.compaction.extractive.summaries import after
from tests.compaction.extractive.test_survival import COUNTER, ROUNDS, tokens
from tests.recordings import each_recording

# A history of fewer tokens is no one's reason to compact.
REALISTIC = 15_000


@dataclass(frozen=True)
class Round:
    """A compaction of a recording: what has been said up to there, and the summary."""

    seen: list[Message]
    summary: str


@cache
def fifth(path: Path) -> int:
    """A fifth of the tokens of the first history: what each summary may have at most."""
    first = pieces(recorded_messages(path), ROUNDS)[0]
    return max(tokens(first), REALISTIC) // 5


@cache
def rounds(path: Path, max_tokens: int | None = None) -> list[Round]:
    """Compact a recording five times on its way; in so many tokens, else in the default words."""
    settings = (
        Summary() if max_tokens is None else Summary(max_words=100_000, max_tokens=max_tokens)
    )
    done: list[Round] = []
    for piece in pieces(recorded_messages(path), ROUNDS):
        history = after(done[-1].summary, piece) if done else History(piece)
        seen = [*(done[-1].seen if done else ()), *piece]
        done.append(Round(seen, extractive_summary(history, settings)))
    return done


def lost(one: Round) -> list[str]:
    """What a user typed up to there, and the summary lacks."""
    held = evened(one.summary)
    return [text for text in instructions(one.seen) if evened(text) not in held]


@each_recording(*FOLDERS)
def test_nothing_a_user_typed_is_lost_within_a_fifth_of_the_first_history(path: Path) -> None:
    for one in rounds(path, max_tokens=fifth(path)):
        assert lost(one) == []
        assert COUNTER.count(one.summary) <= fifth(path)


@each_recording(*FOLDERS)
def test_user_text_is_lost_only_if_the_summary_is_full(path: Path) -> None:
    for one in rounds(path):
        assert not lost(one) or words_in(one.summary) > 0.95 * Summary().max_words


@each_recording(*FOLDERS)
def test_a_summary_of_a_recording_keeps_to_its_words(path: Path) -> None:
    for one in rounds(path):
        assert 0 < words_in(one.summary) <= Summary().max_words


@each_recording(*FOLDERS)
def test_a_summary_alone_is_summarised_as_itself(path: Path) -> None:
    for one in rounds(path):
        assert extractive_summary(after(one.summary, []), Summary()) == one.summary
