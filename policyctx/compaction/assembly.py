"""The messages that stand in the place of a history (PRD context-compact F-006)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.policy.models.compaction import RESTORED_FIELDS, SUMMARY_FIELDS
from policyctx.policy.template import parsed_template

if TYPE_CHECKING:
    from collections.abc import Sequence

    from policyctx.compaction.restoration import RestoredFile
    from policyctx.messages.items import Message
    from policyctx.policy.models.compaction import CompactionWording


@dataclass(frozen=True, slots=True)
class Written:
    """One message that a compaction wrote, with its item type; a mere reply has none."""

    message: Message
    item_type: str = ""
    path: str = ""
    """Of the file that it brings back."""


def assembled(
    summary: str,
    files: Sequence[RestoredFile],
    wording: CompactionWording,
    *,
    archive_path: str = "",
    before_assistant: bool = False,
) -> list[Written]:
    """Return the summary and the files that came back, each with the assistant's reply to it.

    `before_assistant` says that an assistant's message follows: the last reply is left out then,
    so that the roles go on taking turns.
    """
    text = parsed_template(wording.summary, SUMMARY_FIELDS)
    content = text.render({"summary": summary, "archive_path": archive_path})
    found = [Written({"role": "user", "content": content}, "compaction_summary")]
    found += _reply(wording.summary_reply)
    restored = parsed_template(wording.restored, RESTORED_FIELDS)
    for file in files:
        content = restored.render({"path": file.path, "content": file.content})
        found.append(Written({"role": "user", "content": content}, "restored_file", file.path))
        found += _reply(wording.restored_reply)
    if before_assistant and found[-1].message["role"] == "assistant":
        found.pop()
    return found


def _reply(text: str) -> list[Written]:
    return [Written({"role": "assistant", "content": text})] if text else []
