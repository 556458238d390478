"""What a compaction takes in memory beside the messages."""

from __future__ import annotations

import base64
import random
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from policyctx import Session
from tests.conversations import Message, session_of
from tests.policies import policy

LOG = [f"line {i} of a long log\n" * 2_000 for i in range(200)]


@pytest.fixture
def _traced() -> Iterator[None]:
    tracemalloc.start()
    yield
    tracemalloc.stop()


def session(root: Path, store: str = "") -> Session:
    text = f"""\
        model: {{tokenizer: approximate}}
        store: {{sync: never, state: none, {store}}}
        compaction: {{}}
        steps: [{{name: summarise, do: compact, when: {{messages: {{over: 1}}}}}}]
        """
    return Session(policy(text), root=root, session_id="s", summarizer=lambda _: "short")


def by_chance(number: int) -> list[str]:
    """Texts of 40,000 of 64 characters, which no compression brings below three quarters."""
    chance = random.Random(1)  # noqa: S311 - no secret
    return [base64.b64encode(chance.randbytes(30_000)).decode() for _ in range(number)]


def times_of(session: Session, messages: Sequence[Message], texts: Sequence[str]) -> float:
    """The peak of memory in a compaction, in times of the texts' characters, which are ASCII."""
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    assert len(session.apply(messages).messages) < len(messages)
    return (tracemalloc.get_traced_memory()[1] - before) / sum(map(len, texts))


@pytest.fixture
def _warm(tmp_path: Path) -> None:
    """What is imported and built once is no part of a compaction."""
    session(tmp_path / "warm").apply(session_of("x"))


@pytest.mark.usefixtures("_warm", "_traced")
def test_archiving_a_log_takes_a_tenth_of_the_memory_of_the_messages(tmp_path: Path) -> None:
    assert times_of(session(tmp_path), session_of(*LOG), LOG) < 0.1


@pytest.mark.usefixtures("_warm", "_traced")
def test_archiving_incompressible_text_takes_less_memory_than_the_messages(tmp_path: Path) -> None:
    texts = by_chance(200)
    assert times_of(session(tmp_path), session_of(*texts), texts) < 1


@pytest.mark.slow
@pytest.mark.usefixtures("_warm", "_traced")
@pytest.mark.parametrize("on_conflict", ["suffix", "overwrite"])
def test_an_existing_archive_is_not_read_whole(tmp_path: Path, on_conflict: str) -> None:
    rules = f"on_conflict: {on_conflict}"
    texts = by_chance(400)
    session(tmp_path, rules).apply(session_of(*texts[:-1]))
    assert times_of(session(tmp_path, rules), session_of(*texts), texts) < 1


@pytest.mark.usefixtures("_warm", "_traced")
def test_without_compression_the_archive_is_in_memory_once(tmp_path: Path) -> None:
    assert times_of(session(tmp_path, "compress: none"), session_of(*LOG), LOG) < 1.5
