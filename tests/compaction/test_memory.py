"""What a compaction takes in memory beside the messages."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING

from policyctx import compact_messages
from tests.conversations import session_of

if TYPE_CHECKING:
    from pathlib import Path


# The archive is one text, and the same in UTF-8, before it is written: the goal is 1.
MOST_TIMES = 3.5


def test_it_takes_no_more_than_the_archive_needs(tmp_path: Path) -> None:
    texts = [f"line {i} of a long log\n" * 2_000 for i in range(200)]
    messages = session_of(*texts)
    size = sum(len(text) for text in texts)
    options = {"threshold": 1, "summarizer": lambda _: "short", "output_dir": tmp_path}
    compact_messages(messages[:3], **options)  # type: ignore[arg-type]
    tracemalloc.start()
    try:
        assert compact_messages(messages, **options).compacted  # type: ignore[arg-type]
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < MOST_TIMES * size
