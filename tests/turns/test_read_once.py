"""A message is seldom read twice in a turn, and not built again where nothing of it is left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from policyctx import Part, Session
from policyctx.definitions.items import Path as PartPath
from tests.conversations import session_of, user
from tests.hosts.test_boxed_messages import Box, BoxShape
from tests.policies import policy


class Counting(BoxShape):
    """Counts how often each message is read, and the edits."""

    def __init__(self) -> None:
        self.read: Counter[int] = Counter()
        self.edits = 0

    def parts(self, message: Box) -> Iterable[Part]:
        self.read[id(message)] += 1
        return super().parts(message)

    def replaced(self, message: Box, texts: Mapping[PartPath, str | None]) -> Box | None:
        self.edits += 1
        return super().replaced(message, texts)


def started(root: Path, steps: str, **options: Any) -> tuple[Session, Counting]:
    shape = Counting()
    return Session(policy(steps), root=root, session_id="s", shapes=[shape], **options), shape


def boxed(*texts: str) -> list[Any]:
    return [*map(Box, session_of(*texts))]


DROP = "steps: [{name: d, do: drop, select: {types: [tool_result], keep_recent: 1}}]"


def test_a_message_of_which_all_leaves_is_not_edited(tmp_path: Path) -> None:
    session, shape = started(tmp_path, DROP)
    given = boxed("one", "two", "three")
    left = session.apply(given).messages
    assert [*left] == [given[0], *given[-2:]]
    assert shape.edits == 0


def test_a_new_message_is_read_three_times_at_most_after_a_drop(tmp_path: Path) -> None:
    session, shape = started(tmp_path, DROP)
    given = boxed("one", "two", "three")
    session.apply(given)
    new = Box(user("go on"))
    session.apply([*given, new])
    assert shape.read[id(new)] <= 3


def test_a_turn_with_a_compaction_reads_what_it_keeps_four_times_at_most(tmp_path: Path) -> None:
    session, shape = started(
        tmp_path,
        "    compaction: {keep_recent: {messages: 2}, min_new: 0, archive: false}\n"
        "    steps: [{name: c, do: compact, when: {messages: {at_least: 6}}}]",
        summarizer=lambda _: "What was done.",
    )
    given = boxed("one", "two", "three")
    assert session.apply(given).compaction is not None
    assert shape.read[id(given[-1])] <= 4
