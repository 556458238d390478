"""A compaction as a part of a turn: ask for a summary, bring files back, archive, replace.

Nothing is replaced before a summary is accepted and the replaced messages are saved. Whatever goes
wrong leaves the list as it was, and says why.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from policyctx.compaction.acceptance import problem
from policyctx.compaction.archive import ITEM_TYPE, Archive, archive_name
from policyctx.compaction.assembly import assembled
from policyctx.compaction.files import WorkingFiles
from policyctx.compaction.history import History
from policyctx.compaction.pinned import with_pinned
from policyctx.compaction.restoration import accesses
from policyctx.compaction.stats import CompactStats
from policyctx.compaction.summarizers import (
    ExtractiveSummarizer,
    SummaryRequest,
    summarizer_for,
    summarizer_of,
)
from policyctx.errors import StoreError, SummaryError
from policyctx.messages.reading import items_of
from policyctx.messages.validity import new_problems
from policyctx.store.content import Content, Origin
from policyctx.turns.driving import ReadFiles, Remember, Save, Summarise, Wait
from policyctx.turns.replacements import Replacement, digest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from policyctx.compaction.assembly import Written
    from policyctx.compaction.restoration import FileReader, Restoration
    from policyctx.compaction.summarizers import Summarize, Summarizer
    from policyctx.messages.items import Message
    from policyctx.planning.compacting import Replacing
    from policyctx.planning.facts import Facts
    from policyctx.turns.driving import Turn
    from policyctx.turns.known_list import KnownList
    from policyctx.turns.replacements import Replacements

# A list that ends so is what the documents ask for where nothing behind the summary stays.
_ENDS_ON_REPLY = "the list ends with an assistant message"


@dataclass(frozen=True, slots=True)
class Compacted:
    """A compaction that was made."""

    messages: list[Message]
    replacement: Replacement
    summary: str
    stats: CompactStats
    archive_path: str | None
    """Absolute; None where nothing was archived."""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Problem:
    """What was wrong with one try at a summary."""

    sentence: str
    is_final: bool = False


class Compacting:
    """One compaction of the list of a turn, whose other decisions were carried out already."""

    def __init__(
        self,
        known: KnownList,
        replacing: Replacing,
        facts: Facts,
        earlier: Replacements,
        *,
        summarizer: Summarizer | Summarize | None,
        reader: FileReader | None,
        keeps_state: bool,
    ) -> None:
        self._known, self._replacing, self._facts = known, replacing, facts
        self._earlier, self._keeps_state = earlier, keeps_state
        self._reader = WorkingFiles() if reader is None else reader
        self._settings = replacing.settings
        by = self._settings.summary.by
        self._summarizer = summarizer_for(by) if summarizer is None else summarizer_of(summarizer)
        self._parts = replacing.parts
        # What was pinned in what an earlier summary stands for is pinned still.
        self._pinned = tuple(dict.fromkeys([*earlier.pinned, *replacing.pinned]))
        left = known.left
        self._rest = [m for i in self._parts if (m := left[i]) is not None]
        self._before = [m for m in left[: self._parts.start] if m is not None]
        carried = [] if self._parts.carried is None else [left[self._parts.carried]]
        self._behind = [m for m in [*carried, *left[self._parts.end :]] if m is not None]

    def run(self) -> Turn[Compacted | tuple[str, ...]]:
        """Return what was made, or warnings that say why nothing was."""
        summary = yield from self._summary()
        if isinstance(summary, tuple):
            return summary
        restoration: Restoration = yield self._files()
        archive = None
        if self._settings.archive:
            saved = yield Save((self._archive(),), recorded=self._keeps_state)
            if isinstance(saved, StoreError):
                return self._refused(saved)
            [archive] = saved
        written = self._written(summary, restoration, archive.path if archive else "")
        messages = [*self._before, *(one.message for one in written), *self._behind]
        if wrong := self._problems(messages):
            return (f"not compacted: the list would not be valid: {wrong}",)
        replacement = self._replacement(
            written, summary, archive.relative_path if archive else None
        )
        if self._keeps_state:
            outcome = yield Remember((replacement.record(),))
            if isinstance(outcome, StoreError):
                return self._refused(outcome)
        return Compacted(
            messages,
            replacement,
            summary,
            self._stats(messages, restoration),
            archive.path if archive else None,
            restoration.warnings,
        )

    def _summary(self) -> Turn[str | tuple[str, ...]]:
        settings = self._settings.summary
        request = SummaryRequest(self._history(), settings, self._facts.counter, self._pinned)
        problems: list[_Problem] = []
        # What needs no model says the same each time.
        is_extractive = isinstance(self._summarizer, ExtractiveSummarizer)
        attempts = 1 if is_extractive else settings.attempts
        for attempt in range(attempts):
            if attempt:
                yield Wait(settings.backoff.seconds * 2 ** (attempt - 1))
            text = yield from self._asked(self._summarizer, request, problems)
            if text is not None:
                return text
            if problems[-1].is_final:
                break
        if settings.on_failure == "extractive" and not is_extractive:
            text = yield from self._asked(ExtractiveSummarizer(), request, problems)
            if text is not None:
                return text
        attempts_made = "1 attempt" if len(problems) == 1 else f"{len(problems)} attempts"
        return (f"not compacted, after {attempts_made}: {problems[-1].sentence}",)

    def _asked(
        self, summarizer: Summarizer, request: SummaryRequest, problems: list[_Problem]
    ) -> Turn[str | None]:
        """Return an acceptable summary; else None, with what was wrong added to `problems`."""
        outcome = yield Summarise(summarizer, request)
        if isinstance(outcome, SummaryError):
            problems.append(_Problem(str(outcome), outcome.is_final))
            return None
        text = with_pinned(outcome, request.pinned)
        wrong = problem(
            text, self._replacing.tokens, request.settings, request.counter, request.pinned
        )
        if wrong is not None:
            problems.append(_Problem(wrong))
            return None
        return text

    def _history(self) -> History:
        tools = {item.tool for item in self._known.conversation.items if item.tool is not None}
        policy = self._known.conversation.policy
        summaries = {i: text for i, m in enumerate(self._rest) if (text := self._summary_in(m))}
        parts, left = self._parts, self._known.left
        there = [i for i in parts if left[i] is not None]
        written = {
            place
            for place, message in enumerate(there)
            if self._known.conversation.is_written(message)
        }
        return History(
            messages=self._rest,
            earlier=summaries,
            written=frozenset(written - summaries.keys()),
            reads_file={tool: field for tool in tools if (field := policy.reads_file(tool))},
        )

    def _summary_in(self, message: Message) -> str | None:
        """The earlier summary in a message, by its record or its wording."""
        return self._said(message, "compaction_summary", self._earlier.summaries)

    def _said(self, message: Message, item_type: str, known: Mapping[str, str]) -> str | None:
        text = message.get("content")
        if not isinstance(text, str) or message["role"] != "user":
            return None
        if text in known:
            return known[text]
        left = self._known.conversation.policy.compaction_forms.left(text)
        return left.says if left is not None and left.item_type == item_type else None

    def _files(self) -> ReadFiles:
        policy, restored = self._known.conversation.policy, self._earlier.restored

        def path_in(message: Message) -> str | None:
            return self._said(message, "restored_file", restored)

        paths = accesses([*self._before, *self._rest], policy.reads_file, path_in)
        visible = accesses(self._behind, policy.reads_file, path_in)
        return ReadFiles(
            tuple(dict.fromkeys([*visible, *paths])),
            self._settings.restore,
            self._facts.counter,
            frozenset(visible),
            self._reader,
        )

    def _archive(self) -> Content:
        """The replaced messages, whole, as the caller gave them, with one that is carried over."""
        number = len(self._earlier.made) + 1
        replaced = self._known.given[self._parts.start : self._parts.end]
        name = archive_name(number)
        path = f"{ITEM_TYPE}/{name}.json"
        origin = Origin(name, ITEM_TYPE)
        return Content(path, Archive(number, replaced), path, origin, packed=True)

    def _written(self, summary: str, restoration: Restoration, archive_path: str) -> list[Written]:
        follows = self._behind[0]["role"] == "assistant" if self._behind else False
        return assembled(
            summary,
            restoration.files,
            self._settings.wording,
            archive_path=archive_path,
            before_assistant=follows,
        )

    def _problems(self, messages: Sequence[Message]) -> str:
        before = [message for message in self._known.left if message is not None]
        found = new_problems(before, messages)
        return "; ".join(p for p in found if p != _ENDS_ON_REPLY or self._behind)

    def _replacement(
        self, written: list[Written], summary: str, archive: str | None
    ) -> Replacement:
        parts, conversation = self._parts, self._known.conversation
        replaced = self._known.given[parts.start : parts.end]
        return Replacement(
            skipped=parts.start - parts.head,
            count=len(replaced),
            sha256=digest(replaced),
            messages=tuple(one.message for one in written),
            types=tuple(one.item_type for one in written),
            paths=tuple(one.path for one in written),
            summary=summary,
            pinned=self._pinned,
            gone=conversation.known_keys(parts),
            step=self._replacing.step,
            archive=archive,
            carried=None if parts.carried is None else parts.carried - parts.start,
            ends_list=not self._behind,
        )

    def _stats(self, messages: Sequence[Message], restoration: Restoration) -> CompactStats:
        facts = self._facts
        items = items_of(messages)
        after = sum(facts.tokens(item) for item in items if item.inside is None)
        return CompactStats(
            original_token_count=self._known.conversation.tally("tokens").total,
            compacted_token_count=after,
            compacted_message_count=len(self._rest),
            retained_message_count=len(self._before) + len(self._behind),
            restored_file_count=len(restoration.files),
            restored_token_count=sum(file.tokens for file in restoration.files),
        )

    def _refused(self, error: StoreError) -> tuple[str, ...]:
        if self._known.conversation.policy.policy.store.on_failure == "raise":
            raise error
        return (f"not compacted: {error}",)
