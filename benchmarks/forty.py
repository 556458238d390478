"""The baseline of the extractive summary: forty lines that do the same job.

    python -m benchmarks.survival SET… --baseline

They quote the user's messages, the newest first until half of the room is used, then the files with
edits first, then the agent's last messages, and read nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import Group, SummaryLine, Unit
from policyctx.compaction.extractive.files import calls_in, files_of
from policyctx.compaction.extractive.languages import cues_of
from policyctx.compaction.extractive.summary import limits_of
from policyctx.messages.reading import Reading
from policyctx.policy.models.compaction import Summary
from policyctx.tokens.counter import TokenCounter

_OF_USER, _OF_AGENT = 700, 900


def forty_lines(
    history: History,
    settings: Summary,
    *,
    counter: TokenCounter | None = None,
) -> list[SummaryLine]:
    """Return the lines of the baseline: `> ` before the user's, `< ` the agent's, `* ` a file."""
    limits = limits_of(history, settings, counter)
    reading = Reading(history.shapes)
    reading.extend(history.messages)
    before = "\n".join(history.earlier.values())
    user = re.findall(r"^> (.*)$", before, re.MULTILINE)
    agent = re.findall(r"^< (.*)$", before, re.MULTILINE)
    paths = re.findall(r"^\* (.*)$", before, re.MULTILINE)
    for item in reading.items:
        if item.message not in history.earlier and item.text.strip():
            line = " ".join(item.text.split())
            user += [line[:_OF_USER]] if item.kind == "user_message" else []
            agent += [line[:_OF_AGENT]] if item.kind == "assistant_message" else []
    calls = calls_in(reading, frozenset(history.earlier), cues_of())
    paths = [one.path for one in files_of((), calls, history.reads_file)] + paths

    def fits(lines: Sequence[str], share: float) -> bool:
        return all(limit.size("\n".join(lines)) <= limit.most * share for limit in limits)

    def taken(texts: Sequence[str], mark: str, kept: list[str], share: float) -> list[str]:
        found: list[str] = []
        for text in texts:
            if not fits([*kept, f"{mark} {text}", *found], share):
                break
            found.append(f"{mark} {text}")
        return found

    said = taken(user[::-1], ">", [], 0.5)[::-1]
    files = taken(list(dict.fromkeys(paths)), "*", said, 0.7)
    last = taken(agent[::-1], "<", [*said, *files], 1)[::-1]
    groups = {">": Group.USER, "*": Group.FILES, "<": Group.AGENT}
    return [
        SummaryLine(
            line,
            Unit(line, groups[line[0]], -1, hard=False, weight=0, place=i),
        )
        for i, line in enumerate([*said, *files, *last])
    ]
