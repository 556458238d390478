"""`Calls`: what the calls of a session do, each as a turn: plan, save, render, check, commit.

A plan is carried out in this order: edit the list, save the contents that leave it, then move the
ledger on. A placeholder is handed out only after the file that it names is saved.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from policyctx.compaction.assembly import FileReader
from policyctx.compaction.summarizers import (
    ExtractiveSummarizer,
    NoSummarizer,
    Summarize,
    Summarizer,
    summarizer_for,
    summarizer_of,
)
from policyctx.definitions.items import FileLines, Message
from policyctx.definitions.names import EXTRACTIVE, NONE
from policyctx.errors import InvalidResultError, StoreError
from policyctx.messages.door import Entered, Fault
from policyctx.messages.reading import listed
from policyctx.planning.compact import Replacing
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.decisions import FAILED
from policyctx.planning.facts import Added, Attempt, Request
from policyctx.planning.plan import Plan
from policyctx.planning.planner import BOTH, Moment
from policyctx.policy.models.steps import Store
from policyctx.store.opening import path_of
from policyctx.tokens.refusals import refusal_of
from policyctx.tokens.usage import usage_of
from policyctx.turns.breakpoints import Breakpoints, Marked, Placing
from policyctx.turns.effects import (
    BeforeCompaction,
    Holds,
    Record,
    Remember,
    Save,
    Turn,
    given_turn,
)
from policyctx.turns.knowledge import Knowledge
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory, Totals
from policyctx.turns.reporting import Notices, Reporting, log_blindness, note
from policyctx.turns.result import NotCompacted, Result

# Summarizers that need no package and no settings, and that ask nobody.
_NEVER_REFUSED = (EXTRACTIVE, NONE)
_ASKING_NOBODY = (ExtractiveSummarizer, NoSummarizer)


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
        record: str | os.PathLike[str] | None,
    ) -> None:
        self._knowledge, self._policy = knowledge, knowledge.policy
        self._on_invalid = on_invalid
        self._summarizer = None if summarizer is None else summarizer_of(summarizer)
        """The caller's, for all summaries; None for those that the policy names."""
        self._summarizers = _summarizers(self._policy) if summarizer is None else {}
        self._reader, self._before_compaction = reader, before_compaction
        self._expects_usage = expects_usage and knowledge.keeps_state
        self._repairs: set[Fault] = set()
        """Those that a warning was given of."""
        recorder = None
        if record is not None:
            from policyctx.turns.recorder import Recorder

            path = path_of("record", record, knowledge.session_id)
            about = knowledge.session_id, knowledge.shapes, knowledge.clock
            recorder = Recorder(path, *about, self._policy.model.name)
        self._notices = Notices(knowledge.store)
        self.reporting = Reporting(knowledge.session_id, self._policy.name, recorder)
        self.writes = self._notices.writes

    def plan(self, messages: Sequence[Message], request: Request) -> Turn[Plan]:
        """Return the plan of `apply`."""
        _, planned, *_ = yield from self._planned(messages, request)
        return planned

    def preview(self, messages: Sequence[Message], request: Request) -> Turn[Sequence[Message]]:
        """Return the list of `apply`."""
        known, planned, memory, entered = yield from self._planned(messages, request)
        left, sources = known.previewed(planned)
        sources = memory.replacements.sources_of(sources)
        result = Result(left, planned, source_ranges=sources)
        return self._leaving(result, messages, entered).messages

    def breakpoints(self, messages: Sequence[Message], request: Request) -> Turn[Breakpoints]:
        """Return the breakpoints of `apply`."""
        if not self._policy.places_breakpoints:
            return Breakpoints()
        known, planned, memory, _ = yield from self._planned(messages, request)
        placing = memory.placing_of(known, request)
        if isinstance(placing, Breakpoints):
            return placing
        return placing.placed(request, memory.write_ttl, planned.new)

    def observe(self, given: object) -> Turn[int]:
        """Learn from the usage of a model call; return the tokens that its prompt was spared."""
        usage, memory = usage_of(given), (yield from self._knowledge.recall())
        if usage.prompt:
            self.reporting.usage(usage)
        spared = memory.observe(usage)
        if self._knowledge.keeps_state and memory.has_decided:
            yield from note(memory.usage_record())
        if self.reporting.recorder is not None and usage.prompt:
            yield from self.reporting.recorder.billed(usage)
        return spared

    def totals(self, memory: Memory) -> Totals:
        """Return what the session has done so far."""
        recorder = self.reporting.recorder
        unrecorded = 0 if recorder is None else recorder.failed
        return replace(memory.totals(), failed_writes=self.writes.failed, unrecorded=unrecorded)

    def close(self) -> None:
        """End the recording, and close a store that can be closed; see `Session.close`."""
        self.reporting.finish()
        close = getattr(self._knowledge.store, "close", None)
        if close is None:
            return
        try:
            with self.writes.watched(completes=False):
                close()
        except StoreError:
            if self._policy.store.on_failure == "raise":
                raise
            self.reporting.warn(self.writes.news())

    def _planned(
        self, messages: Sequence[Message], request: Request
    ) -> Turn[tuple[KnownList, Plan, Memory, Entered]]:
        self._knowledge.note(request)
        memory = yield from self._knowledge.recall()
        entered = self._knowledge.entered(messages)
        known = self._knowledge.list_of(entered.messages, memory)
        facts = self._knowledge.facts(memory, request)
        return known, known.planner.plan(facts, comes_back=known.comes_back), memory, entered

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
        yield from self._keep_originals(memory)
        facts = self._knowledge.facts(memory, sources=sources)
        known = self._knowledge.new_list(memory, facts=facts, arrives=True)
        known.read(listed(messages))
        warnings = yield from self._notices.of_root(memory.known, memory)
        planned = known.planner.plan(facts, moments=("arrival",))
        result = yield from self._carried_out(planned, known, memory)
        known.conversation.arrivals.report()
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

    def on_overflow(
        self, messages: Sequence[Message], error: object, request: Request
    ) -> Turn[Result | None]:
        """Edit a list again that was refused as too long; None if no step can make it shorter."""
        steps = {step.name for step in self._policy.steps("overflow")}
        refusal = refusal_of(error) if steps else None
        if refusal is None:
            return None
        memory = yield from self._knowledge.recall()
        keeps = self._knowledge.keeps_state
        known = self._knowledge.list_of(self._knowledge.entered(messages).messages, memory)
        facts = self._knowledge.facts(memory, request)
        # A session without state has to decide again what it decided for the list that was refused.
        sent = known.planner.plan(facts, moments=() if keeps else BOTH)
        warning = self._knowledge.note_refusal(refusal, sent.tokens_after, request.model, memory)
        moments: tuple[Moment, ...] = ("overflow",) if keeps else (*BOTH, "overflow")
        result = yield from self.reporting.turn(
            "on_overflow", self.apply(messages, request, changed=False, moments=moments)
        )
        outcomes = (one for one in result.plan.outcomes if one.step in steps)
        if not any(one.took or one.replaces for one in outcomes):
            return None
        result = replace(result, warnings=(warning, *result.warnings))
        if (recorder := self.reporting.recorder) is not None:
            result = yield from recorder.turn(given_turn(result), request, changed=False)
        return result

    def apply(
        self,
        messages: Sequence[Message],
        request: Request,
        *,
        changed: bool,
        moments: tuple[Moment, ...] = BOTH,
    ) -> Turn[Result]:
        """Edit a whole list."""
        self._knowledge.note(request, changed=changed)
        self._knowledge.check_door()
        memory = yield from self._knowledge.recall()
        entered = self._knowledge.entered(messages, changed=changed)
        given, messages = messages, entered.messages
        yield from self._keep_originals(memory)
        if self._knowledge.stands_alone and request.reads_once:
            known = self._knowledge.list_alone(messages, memory, changed=changed)
        else:
            known = self._knowledge.list_of(messages, memory, changed=changed, alike=entered.alike)
        is_settled = not known.forgets and memory.settle(len(given))
        warnings = yield from self._notices.of_root(known, memory)
        is_first = self._notices.is_first
        warnings = (*warnings, *(self._notices.other_list(known, memory) if is_first else ()))
        facts = self._knowledge.facts(memory, request)
        planned = known.planner.plan(facts, moments=moments, comes_back=known.comes_back)
        placing = memory.placing_of(known, request)
        is_kept = is_settled and self._knowledge.keeps_state
        beside = [memory.usage_record()] if is_kept and planned.new else []
        result = yield from self._carried_out(planned, known, memory, beside)
        written = beside if result.plan.new else []
        known, result = yield from self._done(result, known, messages, memory, request)
        if isinstance(placing, Placing):
            placing = memory.placing = (
                placing if placing.known is known else Placing(known, placing)
            )
            result = _marked(result, placing.marked(request, memory.write_ttl))
            if self._knowledge.keeps_state and not memory.has_begun:
                memory.has_begun = True
                yield from note({"record": "sent"})
        elif placing.why_none:
            result = replace(result, breakpoints=placing)
        warnings = (
            *warnings,
            *self._notices.fullness(known, result.plan, self._knowledge.given_place),
            *self._notices.in_vain(result.plan),
            *self._notices.lone_answers(known, memory, self._knowledge.given_place),
        )
        left = result.messages
        if not self._knowledge.door.changes_nothing:
            warnings = (*warnings, *self._news_of(entered))
            result = self._leaving(result, given, entered)
        if known.forgets:
            return (yield from self._with_warnings(result, warnings, memory))
        memory.returned(known, given, result.messages, left)
        known.conversation.sent = known.conversation.reading.message_count
        memory.called_at = self._knowledge.clock()
        memory.send(known.conversation, facts)
        if self._knowledge.keeps_state and memory.has_decided:
            # A session that has decided nothing leaves nothing on the disk.
            usage = [memory.usage_record()] if is_settled else []
            notes = [] if usage == written else usage
            if self._policy.asks_for_time:
                notes.append(memory.call_record())
            notes += memory.list_records(known)
            yield from note(*notes)
        if self._expects_usage:
            log_blindness(memory, self._policy, self._knowledge.session_id)
        return (yield from self._with_warnings(result, warnings, memory))

    def compact(
        self, messages: Sequence[Message], request: Request, *, instructions: str
    ) -> Turn[Result]:
        """Replace the history of a list by a summary, whatever its gates say."""
        self._knowledge.note(request)
        self._knowledge.check_door()
        memory = yield from self._knowledge.recall()
        entered = self._knowledge.entered(messages)
        yield from self._keep_originals(memory)
        known = self._knowledge.list_of(entered.messages, memory)
        warnings = yield from self._notices.of_root(known, memory)
        warnings = (*warnings, *self._news_of(entered))
        facts = self._knowledge.facts(memory, request)
        step = self._policy.step_on_demand(instructions)
        planned = known.planner.plan(facts, moments=(), demanded=step, comes_back=known.comes_back)
        stopped = planned.outcomes[-1].stopped
        if stopped is not None:
            warnings = (*warnings, f"not compacted: {stopped.sentence}")
        elif instructions and isinstance(
            self._summarizer_for(self._policy.compaction(step).summary.by), _ASKING_NOBODY
        ):
            warnings = (*warnings, "no model makes the summary, so the instructions have no effect")
        result = yield from self._carried_out(planned, known, memory)
        known, result = yield from self._done(result, known, entered.messages, memory, request)
        if (why := result.plan.outcomes[-1].stopped) is not None and why.code == "not_saved":
            # A turn by itself tells once that nothing can be written.
            warnings = (*warnings, f"not compacted: {why.sentence}")
        left, result = result.messages, self._leaving(result, messages, entered)
        memory.returned(known, messages, result.messages, left)
        if self._knowledge.keeps_state:
            yield from note(*memory.list_records(known))
        return (yield from self._with_warnings(result, warnings, memory))

    def _leaving(self, result: Result, given: Sequence[Message], entered: Entered) -> Result:
        """Return a result with fillers, and with the sources in the list that the caller gave."""
        if entered.places:
            result = result.in_places(entered.places)
        messages, sources = self._knowledge.door.fillers.put_in(
            result.messages, result.source_ranges, given
        )
        return replace(result, messages=messages, source_ranges=sources)

    def _keep_originals(self, memory: Memory) -> Turn[None]:
        """Save the secrets that the door replaced and the policy keeps, each once.

        Whatever cannot be saved is tried again by the next call. Raises `StoreError` under
        `on_failure: raise`.
        """
        found = self._knowledge.door.originals
        if not found:
            return
        new = [one for one in found if one not in memory.originals]
        if new:
            records = ({"record": "redacted", **one._asdict()} for one in new)
            try:
                yield from Remember((*records,)).ask()
            except StoreError:
                if self._policy.store.on_failure == "raise":
                    raise
                return
            memory.originals.update(new)
        found.clear()

    def _news_of(self, entered: Entered) -> Iterator[str]:
        """Yield a warning for each repair, once."""
        for fault in entered.faults:
            if fault not in self._repairs:
                self._repairs.add(fault)
                yield f"repaired: {fault.problem}; {fault.repair}"

    def _done(
        self,
        result: Result,
        known: KnownList,
        messages: Sequence[Message],
        memory: Memory,
        request: Request,
    ) -> Turn[tuple[KnownList, Result]]:
        """Make the compaction of a plan; return the result, and the list that it leaves."""
        if (replacing := result.plan.compaction) is not None:
            known, result = yield from self._compact(
                known, result, replacing, messages, memory, request=request
            )
        elif memory.replaces:
            sources = memory.replacements.sources_of(result.source_ranges)
            result = replace(result, source_ranges=sources)
        if (result.plan.new and result.plan.to_save) or result.compaction:
            yield from self._notices.find_root(() if self._knowledge.keeps_state else result.files)
        return known, replace(result, system=request.system, tools=request.tools)

    def _carried_out(
        self, planned: Plan, known: KnownList, memory: Memory, beside: Sequence[Record] = ()
    ) -> Turn[Result]:
        """Carry out a plan for the known list; return the result for the list that was read last.

        With the plan's decisions, if it has any, the list that they leave is written, and the
        records `beside`.
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
            if self._on_invalid == "raise":
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
            planned, changes = yield from self._adopted(planned, known, changes, memory, beside)
        return Result(known.apply(changes), planned, tuple(warnings), source_ranges=known.sources)

    def _adopted(
        self,
        planned: Plan,
        known: KnownList,
        changes: Mapping[int, Message | None],
        memory: Memory,
        beside: Sequence[Record],
    ) -> Turn[tuple[Plan, Mapping[int, Message | None]]]:
        """Keep the decisions of a plan in the store, and move the ledger on."""
        settings = known.conversation.policy.store
        entries = known.entries(planned, changes)
        seen = memory.seen
        if planned.new and settings.keeps_state:
            try:
                marks = known.conversation.marks.after(planned.new)
                records = [entry.record() for entry in entries] + [mark.record() for mark in marks]
                # Before its decisions: so a turn is recognised that was not written whole.
                records[:0] = memory.list_records(known, planned.new, changes, entries)
                yield from Remember((*records, *beside)).ask()
            except StoreError as error:
                memory.sums, memory.seen = None, seen
                planned = _unsaved(planned, error, settings)
                changes = known.edited(planned)
                entries = known.entries(planned, changes)
        known.conversation.adopt(
            planned.new, judged=planned.judged, refused=planned.refused, entries=entries
        )
        return planned, changes

    def _summarizer_for(self, by: str) -> Summarizer:
        return self._summarizer or self._summarizers.get(by) or summarizer_for(by)

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
        from policyctx.turns.compacting import Compacting

        compacting = Compacting(
            known,
            replacing,
            result.plan.facts,
            memory.replacements,
            settings=self._policy.policy,
            summarizer=self._summarizer_for(replacing.settings.summary.by),
            reader=self._reader,
            door=self._knowledge.door,
            request=request,
            hook=self._before_compaction,
            writes_fail=bool(self.writes.problem),
        )
        made = yield from self.reporting.compaction(replacing, compacting.run())
        warnings = (*result.warnings, *made.warnings)
        usage = made.usage if isinstance(made, NotCompacted) else made.stats.summary
        memory.tallied.meter.summarised(usage)
        replacements = memory.replacements
        if isinstance(made, NotCompacted):
            if made.refused:
                yield from self._note_attempt(replacing, Added(made.refused), memory, refused=True)
            planned = result.plan.unsummarised(made.reason)
            result = replace(result, plan=planned, warnings=warnings, summary_usage=made.usage)
            if made.reason.code in FAILED:
                result = yield from self._instead(known, result, replacing.step, memory)
            sources = replacements.sources_of(result.source_ranges)
            return known, replace(result, source_ranges=sources)
        known.conversation.arrivals.report()
        stats = made.stats
        memory.tallied.compacted += stats.original_token_count - stats.compacted_token_count
        seen = replacements.add(made.replacement, messages, made.replaced, compacting.reading)
        yield from self._note_attempt(replacing, made.added, memory)
        gone, may_follow = replacements.gone_from(seen.messages, memory.ledger)
        gone |= known.conversation.gone
        after = self._knowledge.new_list(memory, gone, is_guess=known.is_guess or may_follow)
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

    def _instead(
        self, known: KnownList, result: Result, failed: str, memory: Memory
    ) -> Turn[Result]:
        """Carry out the steps that wait for the failure of a step that made no summary."""
        planned = known.planner.plan_instead(result.plan, failed)
        if planned is None:
            return result
        done = yield from self._carried_out(planned, known, memory)
        return replace(
            result,
            messages=done.messages,
            plan=result.plan.followed_by(done.plan),
            warnings=(*result.warnings, *done.warnings),
            source_ranges=done.source_ranges,
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


def _summarizers(policy: OffloadPolicy) -> Mapping[str, Summarizer]:
    """Return the summarizers that the `compact` steps name and that may be refused, by name."""
    steps = (step for step in policy.all_steps if step.action.takes_messages)
    names = {policy.compaction(step).summary.by for step in steps}
    return {by: summarizer_for(by) for by in names.difference(_NEVER_REFUSED)}


def _marked(result: Result, marked: Marked) -> Result:
    """Return a result with the markers that the policy places."""
    messages, (changed, system, tools, breakpoints) = result.messages, marked
    if changed:
        messages = list(messages)
        for place, message in changed.items():
            messages[place] = message
    return replace(result, messages=messages, system=system, tools=tools, breakpoints=breakpoints)


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
