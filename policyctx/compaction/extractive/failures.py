"""What went wrong, and how it was resolved."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from policyctx.compaction.extractive.calls import error_in
from policyctx.compaction.extractive.digest import Failure
from policyctx.compaction.extractive.files import CHANGED, files_of
from policyctx.compaction.extractive.statements import AGENT

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from policyctx.compaction.extractive.calls import Call
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.statements import Said

# Files that a resolution names.
_MOST_FILES = 3
# Calls before the one that succeeded that are looked through for changes.
_MOST_LOOKED_AT = 40
_LONGEST_REASON = 240


def failures_of(
    earlier: Iterable[Failure], calls: Sequence[Call], said: Sequence[Said], cues: Cues
) -> tuple[Failure, ...]:
    """Return the failures, those of earlier summaries first; one call with one error is one.

    A failure is resolved when the same call, by its name, succeeded later. How is told by what was
    changed in between and by what the agent `said` then; an error that comes back is open again.
    """
    failures = {(failure.call, failure.error): failure for failure in earlier}
    open_ones: dict[str, list[tuple[str, str]]] = {}
    for key, failure in failures.items():
        if not failure.resolved:
            open_ones.setdefault(failure.call, []).append(key)
    failed_at: dict[str, int] = {}
    for i, call in enumerate(calls):
        if call.failed:
            key = (call.name, error_in(call.result or "", cues))
            before = failures.pop(key, Failure(*key, times=0))
            failures[key] = before._replace(times=before.times + 1, resolved="")
            open_ones.setdefault(call.name, []).append(key)
            failed_at[call.name] = i
        elif call.result is not None and call.name in open_ones:
            how = _resolution(calls, failed_at.pop(call.name, 0), i, said)
            for key in open_ones.pop(call.name):
                failures[key] = failures[key]._replace(resolved=how)
    return tuple(failures.values())


def _resolution(calls: Sequence[Call], start: int, end: int, said: Sequence[Said]) -> str:
    """Say how what failed with call `start` came to succeed with call `end`."""
    between = calls[max(start, end - _MOST_LOOKED_AT) : end]
    changed = [file.path for file in files_of((), between, {}) if file.last in CHANGED]
    after = f", after a change of {', '.join(changed[:_MOST_FILES])}" if changed else ""
    how = f"succeeded later{after}"
    reason = _reason(said, calls[start].message, calls[end].message)
    return f"{how}. {reason}" if reason else how


def _reason(said: Sequence[Said], first: int, last: int) -> str:
    """Return what the agent said last between two messages that tells a choice or a finding."""
    start = bisect_right(said, first, key=_message)
    for one in reversed(said[start : bisect_right(said, last, key=_message)]):
        if one.speaker == AGENT and one.tells and len(one.text) <= _LONGEST_REASON:
            return one.text
    return ""


def _message(said: Said) -> int:
    return said.message
