"""Times one library and our policies of it, in its own environment; prints JSON.

python -m benchmarks.peers.timing LIBRARY ROUNDS
"""

from __future__ import annotations

import gc
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any, NamedTuple

from benchmarks.peers.cases import Case, cases
from benchmarks.peers.session import session
from tests.peers.comparing import Side
from tests.peers.said import Conversation

TURNS = {"turn by turn": True, "one call": False}


def main(library: str, rounds: int) -> None:
    """Time the cases of a library and print a list of figures, in seconds."""
    conversation = session()
    found = [
        {"case": case.name, "measured": name, **_timed(case, conversation, rounds, each=each)}
        for case in cases(library)
        for name, each in TURNS.items()
    ]
    print(json.dumps(found))


def _timed(case: Case, conversation: Conversation, rounds: int, *, each: bool) -> dict[str, Any]:
    """Return the times of both sides, which take turns; the first round is not counted."""
    theirs: list[_Time] = []
    ours: list[_Time] = []
    for _ in range(rounds + 1):
        for times, made in ((theirs, case.library), (ours, case.ours)):
            with tempfile.TemporaryDirectory() as folder:
                parts = _parts(case, conversation, each=each)
                times.append(_seconds(made, Path(folder), parts))
    pairs = list(zip(ours[1:], theirs[1:], strict=True))
    return {
        "theirs": median(one.clock for one in theirs[1:]),
        "ours": median(one.clock for one in ours[1:]),
        "ratio": median(own.clock / other.clock for own, other in pairs),
        "processor": median(own.processor / other.processor for own, other in pairs),
    }


def _parts(case: Case, conversation: Conversation, *, each: bool) -> list[list[Any]]:
    """Return the messages that come before each call; before one call, all of them."""
    if not each:
        return [case.form.written(conversation.messages)]
    bounds = conversation.calls()
    return [case.form.written(conversation.messages[start:end]) for start, end in bounds]


class _Time(NamedTuple):
    """Seconds by the clock, and of the processor."""

    clock: float
    processor: float


def _seconds(made: Callable[[Path], Side], folder: Path, parts: Sequence[list[Any]]) -> _Time:
    side = made(folder)
    gc.collect()
    began, used = perf_counter(), process_time()
    for new in parts:
        side.sent(new)
    return _Time(perf_counter() - began, process_time() - used)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
