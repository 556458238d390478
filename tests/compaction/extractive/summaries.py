"""Summaries of short histories, and the lines of their groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import Group, extractive_summary
from policyctx.compaction.extractive.writing import SAID
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models.compaction import CompactionWording, Summary
from tests.conversations import Message, call, results

WORDING = CompactionWording()


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def ran(command: str, output: str, call_id: str = "c1", **fields: Any) -> list[Message]:
    """A call of a shell and its result."""
    run = call(call_id, "Bash", {"command": command, **fields})
    return [run, results((call_id, output))]


def edited(call_id: str, path: str) -> list[Message]:
    given = {"file_path": path, "old_string": "b\nc", "new_string": "c\nb"}
    return [call(call_id, "Edit", given), results((call_id, "ok"))]


def summary_of(*messages: Message, policy: OffloadPolicy | None = None, **settings: Any) -> str:
    history = History(messages)
    if policy is not None:
        history = History(messages, author_of=policy.author_by_text)
    return extractive_summary(history, Summary.model_validate(settings))


def after(summary: str, new: Sequence[Message] = ()) -> History:
    """What is there to be compacted next: a summary in its wording, the reply, new turns."""
    told = {"role": "user", "content": WORDING.summary.format(summary=summary)}
    return History([told, said(WORDING.summary_reply), *new], {0: summary}, frozenset((1,)))


def later(summary: str, *new: Message, **settings: Any) -> str:
    """The summary of a summary and new messages."""
    return extractive_summary(after(summary, new), Summary.model_validate(settings))


def group(summary: str, label: Group) -> list[str]:
    """Return the lines of a group with their notes, those of the agent without its mark."""
    lines = summary.split("\n")
    if label.label not in lines:
        return []
    rest = lines[lines.index(label.label) + 1 :]
    end = next((i for i, line in enumerate(rest) if not line.startswith(("- ", " "))), len(rest))
    found: list[str] = []
    speaks = label
    for line in rest[:end]:
        bare = re.sub(r"^- \[agent(?:, ([^]]*))?\]", _without, line)
        if line.startswith("- ") and label in SAID:
            speaks = Group.USER if bare == line else Group.AGENT
        found += [bare] * (speaks is label)
    return found


def _without(mark: re.Match[str]) -> str:
    return f"- [{mark[1]}]" if mark[1] else "-"


def told(*messages: Message) -> list[str]:
    return group(summary_of(*messages), Group.USER)
