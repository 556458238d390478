"""Labelled pairs of statements, and what becomes of each pair in a summary.

A file has one JSON object a line:

    {"id": "p1", "language": "en", "label": "supersedes",
     "speaker_first": "user", "speaker_second": "user",
     "first": "The port is 80.", "second": "Make it 81.",
     "stale": "80", "must_keep": ["81"]}

`label` is `supersedes` (the second takes the first back), `independent` (they are about different
things) or `both_hold` (they are about one thing and agree). `stale` is what no longer holds,
`must_keep` what must not be lost. Other keys are ignored.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from policyctx.compaction.extractive.languages import cues_of
from policyctx.compaction.extractive.said import Quote
from policyctx.compaction.extractive.texts import pieces_of
from policyctx.compaction.extractive.updates import told_once

SUPERSEDES, INDEPENDENT, BOTH_HOLD = LABELS = ("supersedes", "independent", "both_hold")
_USER = "user"
_ROLES = {"user": "user", "agent": "assistant", "assistant": "assistant"}


class Outcome(StrEnum):
    """What becomes of the earlier statement."""

    REPLACED = "replaced"
    KEPT = "kept"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements, in order, and their label."""

    id: str
    language: str
    label: str
    first: str
    second: str
    speakers: tuple[str, str] = ("user", "user")
    stale: str = ""
    must_keep: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair, what became of it, and which of the three measures hold."""

    pair: Pair
    outcome: Outcome
    lost: bool
    """Whether the first is gone though it holds, or something that must be kept is nowhere."""
    stale: bool
    """Whether what no longer holds stands without a mark."""

    @property
    def correct(self) -> bool:
        """Whether the first is replaced if it is superseded, and stands without a mark if not."""
        wanted = Outcome.REPLACED if self.pair.label == SUPERSEDES else Outcome.KEPT
        return self.outcome is wanted and not self.lost


def pairs_in(path: Path) -> list[Pair]:
    """Read the pairs of a file; raises `ValueError` with the number of a wrong line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_pair(line, number) for number, line in enumerate(lines, 1) if line.strip()]


def _pair(line: str, number: int) -> Pair:
    try:
        record: dict[str, Any] = json.loads(line)
        pair = Pair(
            id=str(record["id"]),
            language=str(record["language"]),
            label=record["label"],
            first=record["first"],
            second=record["second"],
            speakers=(record.get("speaker_first", _USER), record.get("speaker_second", _USER)),
            stale=record.get("stale", ""),
            must_keep=tuple(record.get("must_keep", ())),
        )
    except (ValueError, KeyError, TypeError) as error:
        message = f"line {number}: no pair: {error}"
        raise ValueError(message) from error
    if pair.label not in LABELS or not set(pair.speakers) <= _ROLES.keys():
        message = f"line {number}: label is one of {', '.join(LABELS)}, speakers are user or agent"
        raise ValueError(message)
    return pair


def judged(pair: Pair) -> Judged:
    """Return what becomes of a pair, said in two messages one right after the other."""
    quotes = [
        Quote(piece.text, message, user=speaker == _USER)
        for message, (speaker, text) in enumerate(
            zip(pair.speakers, (pair.first, pair.second), strict=True)
        )
        for piece in pieces_of(text)
    ]
    left = told_once(quotes, cues_of())
    gone = len([one for one in left if one.message == 0]) < len(
        [one for one in quotes if one.message == 0]
    )
    standing = "\n".join(one.text for one in left)
    stands = any(pair.stale in one.text for one in left if one.message == 0)
    return Judged(
        pair,
        Outcome.REPLACED if gone else Outcome.KEPT,
        lost=(gone and pair.label == INDEPENDENT)
        or any(part not in standing for part in pair.must_keep),
        stale=pair.label == SUPERSEDES and bool(pair.stale) and stands,
    )
