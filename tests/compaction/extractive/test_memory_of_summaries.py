"""What a compaction with the extractive summary takes in memory, whatever is long in the list."""

from __future__ import annotations

import gc
import json
import random
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from policyctx import compact_messages
from tests.conversations import Message, session_of, user

END: list[Message] = [{"role": "assistant", "content": "Noted."}, user("and now?")]


def prose(chars: int, seed: int = 1) -> str:
    """Sentences of some words each, in lines of some sentences."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    words = ["parser", "the", "reads", "of", "file", "never", "small", "and", "test", "value"]
    found, length = list[str](), 0
    while length < chars:
        picked = chance.choices(words, k=chance.randint(5, 18))
        end = chance.choice((". ", "! ", "? ", ".\n"))
        found.append(" ".join((str(length), *picked)).capitalize() + end)
        length += len(found[-1])
    return "".join(found)[:chars]


LISTS: dict[str, Callable[[], list[Message]]] = {
    "a text of the user": lambda: [user(prose(300_000))],
    "a text of the agent": lambda: [user(), {"role": "assistant", "content": prose(300_000)}],
    "ten texts": lambda: [m for i in range(10) for m in (user(prose(40_000, i)), END[0])],
    "an answer before a call": lambda: [
        user(),
        {"role": "assistant", "content": [{"type": "text", "text": prose(300_000)}]},
        *session_of("ok")[1:],
    ],
    "a result": lambda: session_of(prose(300_000)),
    "lines of code": lambda: [user("x = f(1)\n" * 40_000)],
    "1,000 results": lambda: session_of(*(prose(1_000, i) for i in range(1_000))),
}


@pytest.mark.parametrize("what", LISTS)
def test_an_extractive_summary_takes_at_most_twice_the_memory_of_the_messages(
    what: str, tmp_path: Path
) -> None:
    compact_messages([user("warm"), *session_of("up")[1:]], threshold=1, output_dir=tmp_path / "w")
    written = json.dumps([*LISTS[what](), *END])
    gc.collect()
    tracemalloc.start()
    given = json.loads(written)
    size = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    # What traces memory makes a summary slow, and other work of the machine slower.
    found = compact_messages(given, threshold=1, output_dir=tmp_path / "m", summary_timeout="10m")
    assert found.compacted
    peak = tracemalloc.get_traced_memory()[1] - size
    tracemalloc.stop()
    assert peak < 2 * size
