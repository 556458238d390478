"""Where the work stands: what was done last, what was announced next, what is still open."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.compaction.extractive.revisions import subject_words
from policyctx.compaction.extractive.sentences import one_line, shortened
from policyctx.compaction.extractive.statements import AGENT

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from policyctx.compaction.extractive.calls import Call
    from policyctx.compaction.extractive.cues import Cues
    from policyctx.compaction.extractive.digest import Digest
    from policyctx.compaction.extractive.statements import Said
    from policyctx.messages.items import Item

_LAST_CALLS, _LAST_SENTENCES, _LAST_PLANS, _MOST_OPEN = 3, 2, 3, 30
# Replies looked back at for a plan.
_LOOKED_BACK = 3
_LONGEST = 300
_CHECKBOX = re.compile(r"^\s*(?:[-*+]|\d+[.)])\s+\[([ xX~/-])\]\s+(\S.*)$", re.MULTILINE)
_SAME_TASK = 0.5


class Status(NamedTuple):
    """Where the work stands; each a list of lines."""

    done: tuple[str, ...]
    next: tuple[str, ...]
    open: tuple[str, ...]


def status_of(
    earlier: Digest, items: Sequence[Item], said: Sequence[Said], calls: Sequence[Call], cues: Cues
) -> Status:
    """Return where the work stands; as an earlier summary says it while nothing was done since.

    What an earlier summary announced and nothing since speaks of stays open.
    """
    listed = _listed(items, calls, cues)
    by_agent = [one for one in said if one.speaker == AGENT and not one.pasted]
    open_before = [*earlier.open]
    done, announced = earlier.done, earlier.next
    if by_agent or calls:
        open_before += [text for text in earlier.next if not _spoken_of(text, said, calls, cues)]
        announced = _announced(by_agent, {call.message for call in calls})
        done = _done(by_agent, calls, announced)
    still = [text for text in open_before if listed.get(text, True)]
    still += [text for text, is_open in listed.items() if is_open]
    tasks = [text for text in dict.fromkeys(still) if text not in announced]
    return Status(done, announced, tuple(tasks[-_MOST_OPEN:]))


def _announced(said: Sequence[Said], calling: Container[int]) -> tuple[str, ...]:
    """Return what the agent's last replies announce.

    What a reply before the last announces beside a call, it does with that call.
    """
    recent = sorted({one.message for one in said})[-_LOOKED_BACK:]
    for message in reversed(recent):
        plans = [one.text for one in said if one.message == message and one.plans]
        if plans and (message == recent[-1] or message not in calling):
            return tuple(plans[-_LAST_PLANS:])
    return ()


def _done(said: Sequence[Said], calls: Sequence[Call], announced: Sequence[str]) -> tuple[str, ...]:
    """Return the last calls, and the last that the agent said of what it did, in order."""
    told = [(one.message, one.text) for one in said[-20:] if one.text not in announced]
    lines = told[-_LAST_SENTENCES:]
    for call in calls[-_LAST_CALLS:]:
        how = " (failed)" if call.failed else " (no answer yet)" if call.result is None else ""
        lines.append((call.message, f"{call.name}{how}"))
    lines.sort(key=lambda line: line[0])
    return tuple(dict.fromkeys(shortened(one_line(text), _LONGEST) for _, text in lines))


def _spoken_of(text: str, said: Iterable[Said], calls: Iterable[Call], cues: Cues) -> bool:
    """Whether anything later is about the same thing: half of the words come in one place."""
    words = subject_words(text, cues)
    if not words:
        return True
    later = [one.text for one in said] + [call.name for call in calls]
    return any(len(words & subject_words(one, cues)) >= _SAME_TASK * len(words) for one in later)


def _listed(items: Iterable[Item], calls: Iterable[Call], cues: Cues) -> dict[str, bool]:
    """Return the tasks of the lists that were kept, each with whether it is open.

    A list is what a call gives as objects with a `status`, of which the newest of each tool counts,
    or lines with a box to tick.
    """
    lists: dict[str, dict[str, bool]] = {}
    for call in calls:
        if '"status"' in call.text and (tasks := _tasks_in(call.fields, cues)):
            before = lists.get(call.tool, {})
            # What the agent has taken off its list is no longer open, but closes what it was.
            lists[call.tool] = dict.fromkeys(before, False) | tasks
    listed: dict[str, bool] = {}
    for tasks in lists.values():
        listed |= tasks
    for item in items:
        if item.kind in ("user_message", "assistant_message") and "[" in item.text:
            for box, text in _CHECKBOX.findall(item.text):
                listed[shortened(one_line(text), _LONGEST)] = box in " ~/-"
    return listed


def _tasks_in(fields: Mapping[str, object], cues: Cues) -> dict[str, bool]:
    tasks: dict[str, bool] = {}
    for value in fields.values():
        for entry in value if isinstance(value, list) else ():
            status = entry.get("status") if isinstance(entry, dict) else None
            if isinstance(status, str):
                told = [v for k, v in entry.items() if isinstance(v, str) and k != "status"]
                if text := shortened(one_line(max(told, key=len, default="")), _LONGEST):
                    tasks[text] = not cues.finished.found_in(status)
    return tasks
