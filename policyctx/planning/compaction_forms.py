"""What compactions leave, known by the policy's wording where no record tells of it.

So it is with a list that an earlier call or another session has compacted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from policyctx.definitions.fields import RESTORED_FIELDS, SUMMARY_FIELDS
from policyctx.policy.values import parsed_template

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policyctx.policy.models.compaction import CompactionWording


class Left(NamedTuple):
    """A text that has the form of what a compaction leaves."""

    item_type: str
    says: str
    """The summary without its wording; of a restored file the path."""


class CompactionForms:
    """The wordings of a policy's compactions. One that begins with a field shows nothing."""

    def __init__(self, wordings: Iterable[CompactionWording]) -> None:
        self._forms: list[tuple[str, str, re.Pattern[str]]] = []
        replies: set[str] = set()
        for wording in wordings:
            replies |= {wording.summary_reply, wording.restored_reply}
            self._add(wording.summary, SUMMARY_FIELDS, "compaction_summary")
            self._add(wording.restored, RESTORED_FIELDS, "restored_file")
        self._replies = replies - {""}

    def left(self, text: str) -> Left | None:
        """Return what a text of this form is, None for any other text."""
        for start, item_type, form in self._forms:
            if text.startswith(start) and (found := form.fullmatch(text)) is not None:
                return Left(item_type, found[1])
        return None

    def is_reply(self, text: str) -> bool:
        """Is this what the assistant is made to say to a summary or to a restored file."""
        return text in self._replies

    def _add(self, wording: str, fields: tuple[str, str], item_type: str) -> None:
        start, *pieces = parsed_template(wording, fields).pieces
        if not start.strip():
            return
        pattern, told = re.escape(start), fields[0]
        for field, literal in zip(pieces[::2], pieces[1::2], strict=True):
            # The end of the text is where the last field ends: the first of two ends at once.
            some = ".*" if len(pieces) == 2 or field == "content" else ".*?"  # noqa: PLR2004
            pattern += f"({some})" if field == told else some
            pattern += re.escape(literal)
            told = "" if field == told else told
        if not told:
            self._forms.append((start, item_type, re.compile(pattern, re.DOTALL)))
