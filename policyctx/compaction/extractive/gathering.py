"""From a history to everything that its summary can hold, earlier summaries merged in."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.calls import calls_in, counted
from policyctx.compaction.extractive.digest import Digest, Statement
from policyctx.compaction.extractive.failures import failures_of
from policyctx.compaction.extractive.files import files_of
from policyctx.compaction.extractive.findings import findings_of
from policyctx.compaction.extractive.grammar import read_summary
from policyctx.compaction.extractive.revisions import Told, revised
from policyctx.compaction.extractive.sentences import sentences_in
from policyctx.compaction.extractive.statements import AGENT, USER, said_in
from policyctx.compaction.extractive.tasks import status_of
from policyctx.compaction.extractive.values import values_in
from policyctx.messages.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said
    from policyctx.compaction.history import History

# The agent's sentences that are told of: of this weight or more, and the heaviest only.
_LEAST_WEIGHT, _MOST_SENTENCES = 1.0, 80


class Gathered(NamedTuple):
    """What was found in a history."""

    digest: Digest
    new_chars: int
    """Characters that no earlier compaction has written."""


def gathered(history: History, cues: Cues) -> Gathered:
    """Return all that a history holds; raises `MessagesError` for what is no message list."""
    reading = Reading()
    reading.extend(history.messages)
    skipped = frozenset(history.earlier) | history.written
    items = [item for item in reading.items if item.message not in skipped]
    calls = list(calls_in(reading, skipped, cues))
    said = list(said_in(items, cues))
    read = {i: read_summary(text) for i, text in sorted(history.earlier.items())}
    before = _joined([found.digest for found in read.values()])
    left_over = [
        Statement(sentence.text)
        for found in read.values()
        for sentence in sentences_in(found.left_over)
    ]
    status = status_of(before, items, said, calls, cues)
    standing = revised(_told({i: found.digest for i, found in read.items()}, said), cues)
    results = [item for item in items if item.kind == "tool_result"]
    digest = Digest(
        told=tuple(one.statement for one in standing if one.user),
        pasted=_once([*before.pasted, *(one.statement for one in said if one.pasted)]),
        agent=tuple(one.statement for one in standing if not one.user),
        found=_once([*before.found, *findings_of(results, said, calls, cues)]),
        carried=_once([*before.carried, *left_over]),
        files=files_of(before.files, calls, history.reads_file),
        tools=counted(before.tools, calls),
        done=status.done,
        next=status.next,
        open=status.open,
        failures=failures_of(before.failures, calls, said, cues),
    )
    return Gathered(digest, sum(len(item.counted) for item in items))


def _joined(digests: Sequence[Digest]) -> Digest:
    """Return several digests as one; where the work stands is what the last of them says."""
    if len(digests) <= 1:
        return digests[0] if digests else Digest()
    return Digest(
        pasted=tuple(one for digest in digests for one in digest.pasted),
        found=tuple(one for digest in digests for one in digest.found),
        carried=tuple(one for digest in digests for one in digest.carried),
        files=tuple(one for digest in reversed(digests) for one in digest.files),
        tools=tuple(one for digest in digests for one in digest.tools),
        done=digests[-1].done,
        next=digests[-1].next,
        open=tuple(one for digest in digests for one in digest.open),
        failures=tuple(one for digest in digests for one in digest.failures),
    )


def _told(earlier: Mapping[int, Digest], said: Sequence[Said]) -> list[Told]:
    """Return what user and agent said, in order; what an earlier summary holds is at its place."""
    placed = [
        (place, Told(statement, -1, user, values_in(statement.text)))
        for place, digest in earlier.items()
        for user, statements in ((True, digest.told), (False, digest.agent))
        for statement in statements
    ]
    weights = ((one.weight, one) for one in said if one.speaker == AGENT)
    heavy = [pair for pair in weights if pair[0] >= _LEAST_WEIGHT]
    heaviest = sorted(heavy, key=lambda pair: -pair[0])[:_MOST_SENTENCES]
    worth = {id(one) for _, one in heaviest}
    placed += [
        (one.message, Told(one.statement, one.message, one.speaker == USER, one.values))
        for one in said
        if (one.speaker == USER and not one.pasted) or id(one) in worth
    ]
    return [told for _, told in sorted(placed, key=lambda pair: pair[0])]


def _once(statements: Iterable[Statement]) -> tuple[Statement, ...]:
    """Return the statements, those with one text once, where it stands last."""
    latest: dict[str, Statement] = {}
    for statement in statements:
        latest.pop(statement.text, None)
        latest[statement.text] = statement
    return tuple(latest.values())
