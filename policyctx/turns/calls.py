"""`Calls`: what the calls of a session do, each as a turn: plan, save, render, check, commit.

A plan is carried out in this order: edit the list, save the contents that leave it, then move the
ledger on. A placeholder is handed out only after the file that it names is saved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from policyctx.compaction.restoration import FileReader
from policyctx.compaction.summarizers import Summarize, Summarizer, summarizer_for, summarizer_of
from policyctx.definitions.items import FileLines, Message
from policyctx.definitions.names import EXTRACTIVE, NONE
from policyctx.errors import InvalidResultError, StoreError, present
from policyctx.messages.reading import listed
from policyctx.planning.anchors import Breakpoints
from policyctx.planning.compact import Replacing
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Added, Attempt
from policyctx.planning.plan import Plan
from policyctx.policy.models.steps import Store
from policyctx.tokens.usage import Usage
from policyctx.turns.breakpoints import Placing
from policyctx.turns.compacting import Compacting, NotCompacted
from policyctx.turns.effects import BeforeCompaction, Holds, Remember, Save, Turn
from policyctx.turns.knowledge import Knowledge
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory
from policyctx.turns.reporting import Notices, Reporting, blindness, note
from policyctx.turns.request import Request
from policyctx.turns.result import Result


class Calls:
    """The calls of one session; `Session` says what each of them does for its caller."""

    def __init__(
        self,
        knowledge: Knowledge,
        *,
        on_invalid: Literal["raise", "keep"],
        summarizer: Summarizer | Summarize | None,
        reader: FileReader | None,
        before_compaction: BeforeCompaction | None,
        expects_usage: bool,
    ) -> None:
        self._knowledge, self._policy = knowledge, knowledge.policy
        self._on_invalid = on_invalid
        self._summarizer = _summarizer(self._policy, summarizer)
        """None for that of the policy, which is found when it is first needed."""
        self._reader, self._before_compaction = reader, before_compaction
        self._expects_usage = expects_usage and knowledge.keeps_state
        self._notices = Notices(knowledge.store)
        self.reporting = Reporting(knowledge.session_id, self._policy.name)
        self.writes = self._notices.writes

    def plan(self, messages: Sequence[Message], request: Request) -> Turn[Plan]:
        """Return the plan of `apply`."""
        _, planned, _ = yield from self._planned(messages, request)
        return planned

    def preview(self, messages: Sequence[Message], request: Request) -> Turn[Sequence[Message]]:
        """Return the list of `apply`."""
        known, planned, _ = yield from self._planned(messages, request)
        return known.previewed(planned)

    def breakpoints(self, messages: Sequence[Message], request: Request) -> Turn[Breakpoints]:
        """Return the breakpoints of `apply`."""
        if not self._policy.places_breakpoints:
            return Breakpoints()
        known, planned, memory = yield from self._planned(messages, request)
        placing = memory.placing_of(known, request)
        if isinstance(placing, Breakpoints):
            return placing
        return placing.placed(request, memory.write_ttl, planned.new)

    def observe(self, usage: Usage) -> Turn[None]:
        """Learn from the usage of a model call, and report it."""
        memory = yield from self._knowledge.recall()
        self.reporting.usage(usage)
        memory.observe(usage)
        if self._knowledge.keeps_state and memory.has_decided:
            yield from note(memory.usage_record())

    def _planned(
        self, messages: Sequence[Message], request: Request
    ) -> Turn[tuple[KnownList, Plan, Memory]]:
        self._knowledge.note(request)
        messages = self._knowledge.door.let_in(messages)
        memory = yield from self._knowledge.recall()
        known = self._knowledge.list_of(messages, memory)
        facts = self._knowledge.facts(memory, request)
        return known, known.planner.plan(facts, comes_back=known.comes_back), memory

    def arrive(
        self,
        message: Message,
        call: Message | None,
        sources: Mapping[str, FileLines] | None,
    ) -> Turn[Result]:
        """Edit a message with new results."""
        self._knowledge.check_door()
        memory = yield from self._knowledge.recall()
        found = memory.call_of(message, self._knowledge.shapes) if call is None else None
        given = (one for one in (call, found, message) if one is not None)
        messages = [self._knowledge.door.redacted(one) for one in given]
        facts = self._knowledge.facts(memory, sources=sources)
        known = self._knowledge.new_list(memory, facts=facts)
        known.read(listed(messages))
        warnings = yield from self._notices.of_root(memory.known, memory)
        planned = known.planner.plan(facts, moments=("arrival",))
        result = yield from _carried_out(planned, known, on_invalid=self._on_invalid)
        known.conversation.report()
        if memory.known is not None:
            memory.known.note_arrival(result.plan.new)
        if result.plan.to_save and not self._knowledge.keeps_state:
            yield from self._notices.find_root(result.files)
        result = result if found is None else result.without_first()
        return (yield from self._with_warnings(result, warnings, memory))

    def _with_warnings(
        self, result: Result, warnings: tuple[str, ...], memory: Memory
    ) -> Turn[Result]:
        """Add warnings to those of a result, and the notices since the last one."""
        notices = yield from self._notices.after(memory)
        every = (*notices, *warnings, *result.warnings, *self.writes.news())
        return replace(result, warnings=every) if every else result

    def apply(
        self, messages: Sequence[Message], request: Request, *, changed: bool
    ) -> Turn[Result]:
        """Edit a whole list."""
        self._knowledge.note(request, changed=changed)
        self._knowledge.check_door()
        given, messages = messages, self._knowledge.door.let_in(messages, changed=changed)
        memory = yield from self._knowledge.recall()
        if self._knowledge.stands_alone and request.reads_once:
            known = self._knowledge.list_alone(messages, memory, changed=changed)
        else:
            known = self._knowledge.list_of(messages, memory, changed=changed)
        warnings = yield from self._notices.of_root(known, memory)
        facts = self._knowledge.facts(memory, request)
        planned = known.planner.plan(facts, comes_back=known.comes_back)
        placing = memory.placing_of(known, request)
        result = yield from _carried_out(planned, known, on_invalid=self._on_invalid)
        if (replacing := result.plan.compaction) is not None:
            known, result = yield from self._compact(
                known, result, replacing, messages, memory, request=request
            )
        else:
            sources = memory.replacements.sources_of(result.source_ranges)
            result = replace(result, source_ranges=sources)
        if result.plan.to_save or result.compaction:
            yield from self._notices.find_root(() if self._knowledge.keeps_state else result.files)
        placed = placing if isinstance(placing, Breakpoints) else Breakpoints()
        result = replace(result, system=request.system, tools=request.tools, breakpoints=placed)
        if isinstance(placing, Placing):
            placing = memory.placing = (
                placing if placing.known is known else Placing(known, placing)
            )
            result = placing.marked(result, request, memory.write_ttl)
            if self._knowledge.keeps_state and not memory.has_begun:
                memory.has_begun = True
                yield from note({"record": "sent"})
        warnings = (*warnings, *self._notices.fullness(known, result.plan))
        warnings = (*warnings, *self._notices.in_vain(result.plan))
        warnings = (*warnings, *self._notices.lone_answers(known, memory))
        if known.forgets:
            return (yield from self._with_warnings(result, warnings, memory))
        memory.known = known
        lists = (given,) if result.messages is given else (given, result.messages)
        memory.lists = tuple((one, len(one)) for one in lists)
        known.output = None if result.messages is messages else result.messages
        known.conversation.sent = known.conversation.reading.message_count
        memory.called_at = self._knowledge.clock()
        memory.sent = known.conversation, facts
        memory.calls += 1
        if self._knowledge.keeps_state and self._policy.asks_for_time and memory.has_decided:
            # A session that has decided nothing leaves nothing on the disk.
            yield from note(memory.call_record())
        if self._expects_usage:
            warnings = (*warnings, *blindness(memory, self._policy, self._knowledge.session_id))
        return (yield from self._with_warnings(result, warnings, memory))

    def _compact(
        self,
        known: KnownList,
        result: Result,
        replacing: Replacing,
        messages: Sequence[Message],
        memory: Memory,
        *,
        request: Request,
    ) -> Turn[tuple[KnownList, Result]]:
        """Replace history by a summary, after the turn's other decisions were carried out."""
        compacting = Compacting(
            known,
            replacing,
            result.plan.facts,
            memory.replacements,
            settings=self._policy.policy,
            summarizer=self._summarizer or _summarizer_of(self._policy),
            reader=self._reader,
            door=self._knowledge.door,
            request=request,
            hook=self._before_compaction,
            writes_fail=bool(self.writes.problem),
        )
        made = yield from self.reporting.compaction(replacing, compacting.run())
        warnings = (*result.warnings, *made.warnings)
        replacements = memory.replacements
        if isinstance(made, NotCompacted):
            if made.refused:
                yield from self._note_attempt(replacing, Added(made.refused), memory, refused=True)
            planned = result.plan.unsummarised(made.reason)
            return known, replace(
                result,
                plan=planned,
                warnings=warnings,
                summary_usage=made.usage,
                source_ranges=replacements.sources_of(result.source_ranges),
            )
        known.conversation.report()
        stats = made.stats
        memory.tallied.compacted += stats.original_token_count - stats.compacted_token_count
        seen = replacements.add(made.replacement, messages, made.replaced)
        yield from self._note_attempt(replacing, made.added, memory)
        gone = (replacements.gone - replacements.back) | known.conversation.gone
        after = self._knowledge.new_list(memory, gone)
        after.read(seen.messages)
        marks = after.conversation.marks.at_end(replacing.step)
        after.conversation.marks.adopt(marks)
        for mark in marks:
            yield from note(mark.record())
        return after, replace(
            result,
            messages=seen.messages,
            warnings=warnings,
            compaction=made,
            summary_usage=made.stats.summary,
            source_ranges=seen.sources,
        )

    def _note_attempt(
        self, replacing: Replacing, added: Added, memory: Memory, *, refused: bool = False
    ) -> Turn[None]:
        """Remember a compaction that did not help, so that it is not repeated for nothing."""
        memory.attempt = None
        if refused or replacing.left.still_open(added):
            made = len(memory.replacements.made)
            step, digest = replacing.step, self._policy.digest
            memory.attempt = Attempt(step, digest, made, added, refused)
            if self._knowledge.keeps_state:
                yield from note(memory.attempt.record())


# Summarizers that need no package and no settings.
_NEVER_REFUSED = (EXTRACTIVE, NONE)


def _summarizer(policy: OffloadPolicy, given: Summarizer | Summarize | None) -> Summarizer | None:
    """Return the summarizer that was given, else that of the policy if it may be refused."""
    step = policy.compacting_step
    if step is None or (given is None and policy.compaction(step).summary.by in _NEVER_REFUSED):
        return None
    return _summarizer_of(policy) if given is None else summarizer_of(given)


def _summarizer_of(policy: OffloadPolicy) -> Summarizer:
    """Return the summarizer that the `compact` step of a policy names."""
    step = policy.compacting_step
    step = present(step)
    return summarizer_for(policy.compaction(step).summary.by)


def _carried_out(
    planned: Plan, known: KnownList, *, on_invalid: Literal["raise", "keep"]
) -> Turn[Result]:
    """Carry out a plan for the known list, and return the result for the list that was read last.

    Raises `InvalidResultError` under `on_invalid` of `raise`, and `StoreError` under
    `on_failure: raise` of the store's settings; nothing is decided then.
    """
    warnings: list[str] = []
    settings = known.conversation.policy.store
    if planned.new:
        planned = yield from _without_lost_sources(planned)
    # The edits are made and checked first: a plan that fails here has written nothing.
    try:
        changes = known.edited(planned)
    except InvalidResultError as error:
        if on_invalid == "raise":
            raise
        planned, changes = planned.without_decisions(str(error)), {}
        warnings.append(str(error))
    if planned.new and planned.to_save:
        try:
            written = yield from _save(planned, known, settings)
        except StoreError as error:
            written = _unsaved(planned, error, settings)
        if written.new != planned.new:
            changes = known.edited(written)
        planned = written
    if known.forgets:
        output, sources = known.applied(changes)
        return Result(output, planned, tuple(warnings), source_ranges=sources)
    if planned.new or planned.judged:
        planned, changes = yield from _adopted(planned, known, changes, settings)
    return Result(known.apply(changes), planned, tuple(warnings), source_ranges=known.sources)


def _adopted(
    planned: Plan, known: KnownList, changes: Mapping[int, Message | None], settings: Store
) -> Turn[tuple[Plan, Mapping[int, Message | None]]]:
    """Keep the decisions of a plan in the store, and move the ledger on."""
    entries = known.entries(planned, changes)
    if planned.new and settings.keeps_state:
        try:
            marks = known.conversation.marks.after(planned.new)
            records = [entry.record() for entry in entries] + [mark.record() for mark in marks]
            yield from Remember(tuple(records)).ask()
        except StoreError as error:
            planned = _unsaved(planned, error, settings)
            changes = known.edited(planned)
            entries = known.entries(planned, changes)
    known.conversation.adopt(planned.new, judged=planned.judged, entries=entries)
    return planned, changes


def _without_lost_sources(planned: Plan) -> Turn[Plan]:
    """Return the plan with every item saved that was read back from a file that is lost by now."""
    lost = []
    for decision in planned.new:
        if decision.is_read_back and decision.file is not None:
            is_there = yield from Holds(decision.file.path).ask()
            if not is_there:
                lost.append(decision.position)
    return planned.saved_anew(lost) if lost else planned


def _save(planned: Plan, known: KnownList, settings: Store) -> Turn[Plan]:
    """Save the contents that leave the list, and return the plan with their files."""
    contents = tuple(known.content(decision) for decision in planned.to_save)
    files = yield from Save(contents, recorded=settings.keeps_state).ask()
    return planned.settled(files)


def _unsaved(planned: Plan, error: StoreError, settings: Store) -> Plan:
    """Return the plan without what was not saved; raises the error if the policy says so.

    `Notices` warns of it.
    """
    if settings.on_failure == "raise":
        raise error
    return planned.unsaved(str(error))
