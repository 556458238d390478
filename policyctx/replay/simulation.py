"""The simulation: walk through a recording turn by turn, as the loop would have, under a policy.

Nothing is written. The recorded reply always follows, whatever the policy removed before it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from statistics import median
from time import perf_counter

from policyctx.compaction.prompt import instructions
from policyctx.definitions.items import Item, Message
from policyctx.definitions.names import BUILT_IN_SUMMARIZERS, NONE, is_url
from policyctx.errors import present
from policyctx.messages.markers import MarkedBlock, block_at
from policyctx.messages.sources import position_of
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import Facts, Request, assumed_window
from policyctx.planning.plan import Plan
from policyctx.policy.models import Step
from policyctx.policy.models.compaction import Compaction, Summary
from policyctx.policy.models.steps import Store
from policyctx.policy.values import Share
from policyctx.pricing.dollars import CallPrices, prices_of
from policyctx.pricing.rows import row_of
from policyctx.replay.audit import audited
from policyctx.replay.cache import LAYOUTS, LayoutName
from policyctx.replay.common import Common
from policyctx.replay.cost import call_shares
from policyctx.replay.recording import MarkedPlace, ModelCall, Recording
from policyctx.replay.sent_list import SentList
from policyctx.replay.simulated import (
    Need,
    Regret,
    Removal,
    SeenItem,
    SimulatedCall,
    SimulatedSession,
    StepUse,
    SummaryCall,
    TypeTokens,
    first_words,
    why_untouched,
)
from policyctx.replay.terms import CallTerms, Contradiction, PricesOf, contradictions, terms_of
from policyctx.replay.timeline import SessionPart, Timeline, seen_items
from policyctx.replay.unwritten_store import UnwrittenStore
from policyctx.session import Session
from policyctx.store.backend import Root, store_root
from policyctx.store.opening import written_root
from policyctx.tokens.counter import counter_for
from policyctx.tokens.usage import Correction, Usage
from policyctx.turns.breakpoints import Removable, why_unmarked
from policyctx.turns.result import Result

# Makes a summary from the text alone.
OFFLINE = "extractive"
# A session of a replay needs no id that nobody else has; one as long as a real one is.
SESSION_ID = "session_00000000_000000_replay"
# Paths in placeholders count, so a replay has folders that are the same on every machine.
_HOME = Path("/home/user")
_WORKING_DIRECTORY = _HOME / "project"


class EditsToCome:
    """Follows a session; a call costs what is new in it."""

    def __init__(self) -> None:
        self._in: Conversation | None = None
        self._removable: Removable | None = None

    def first(self, result: Result) -> MarkedPlace | None:
        """Return the first block behind the newest edit that could still change, None if none."""
        plan = result.plan
        if self._removable is None or self._in is not plan.conversation:
            self._in = plan.conversation
            self._removable = Removable(plan.conversation, plan.candidates.values())
        if result.compacted or (position := self._removable.first()) is None:
            return None
        item = plan.conversation.items[position]
        place = position_of(result.source_ranges, item.message)
        if place is None:
            return None
        return MarkedPlace(place, MarkedBlock(block_at(result.messages[place], item.path)))


def summary_call(
    number: int,
    result: Result,
    *,
    policy: OffloadPolicy,
    terms: CallTerms,
    at: float | None,
    sent: int = 0,
) -> SummaryCall | None:
    """Return the call that would have written a turn's summary; None where no model is asked.

    Its prompt is the instructions and what is replaced, shortened to `max_input`. Its output is
    taken to be as large as the summary that the text alone gave. It costs `summary.price`, else
    `model.price`, else what `summary.model` costs on that day, else what the recorded model costs.

    With `reuse_cache` its prompt is the session's own: what the last call was `sent`, in tokens, is
    read from the cache unless that has expired, and the rest is written to it.
    """
    replaced, compaction, facts = result.plan.compaction, result.compaction, result.plan.facts
    if replaced is None or compaction is None:
        return None
    settings = policy.compaction(present(policy.compacting_step)).summary
    if settings.by in (OFFLINE, NONE):
        return None
    output = facts.length(compaction.summary, "tokens")
    if settings.reuse_cache:
        own = facts.tokens_beside + replaced.tokens
        has_expired = facts.idle is not None and facts.idle > terms.ttl
        read = 0 if terms.cache is None or has_expired else min(own, sent)
        written = own - read if terms.cache is not None and terms.cache.bills_writes else 0
        prompt = own + facts.length(instructions(settings, in_place=True), "tokens")
        named = row_of(settings.model, at=at) if "model" in settings.model_fields_set else None
        prices = _prices(settings, policy, terms, None if named is None else named.prices)
        return SummaryCall(number, prompt, output, prices, read=read, written=written)
    row = row_of(settings.model, at=at) if settings.by in BUILT_IN_SUMMARIZERS else None
    window = (assumed_window(settings) or terms.window) if row is None else row.context_window
    most = settings.max_input
    room = most.of(window) if isinstance(most, Share) else most
    prompt = facts.length(instructions(settings), "tokens") + min(replaced.tokens, int(room))
    prices = _prices(settings, policy, terms, None if row is None else row.prices)
    return SummaryCall(number, prompt, output, prices)


def _prices(
    settings: Summary, policy: OffloadPolicy, terms: CallTerms, of_model: CallPrices | None
) -> CallPrices | None:
    written = settings.price or policy.model.price
    if written is not None:
        return prices_of(written)
    return terms.prices if of_model is None else of_model


def online_summarizers(policy: OffloadPolicy) -> tuple[str, ...]:
    """Return who would make the policy's summaries, by name, except the text itself."""
    whole = policy.policy.compaction
    compacting = [step for step in policy.all_steps if step.action.takes_messages]
    names = {
        step.compaction.summary.by if step.compaction and _names_one(step) else whole.summary.by
        for step in compacting
    }
    return tuple(sorted(names - {OFFLINE, NONE}))


@lru_cache(maxsize=8)  # a process replays many recordings under few policies
def offline(policy: OffloadPolicy) -> OffloadPolicy:
    """Return the policy with its summaries made from the text alone, and no file brought back.

    The files on the disk are those of today. A policy that never summarises is returned as it is.
    """
    document = policy.policy
    if not any(step.action.takes_messages for step in document.steps):
        return policy
    steps = tuple(
        step.model_copy(update={"compaction": _alone(step.compaction, named=_names_one(step))})
        if step.compaction is not None
        else step
        for step in document.steps
    )
    changed = {"compaction": _alone(document.compaction, named=True), "steps": steps}
    document = document.model_copy(update=changed)
    return OffloadPolicy(document, hints=policy.hints, root=policy.tree)


def _names_one(step: Step) -> bool:
    """Does the step say by itself who makes its summary."""
    own = step.compaction
    return own is not None and "by" in own.summary.model_fields_set


def _alone(compaction: Compaction, *, named: bool) -> Compaction:
    changed: dict[str, object] = {}
    if named and compaction.summary.by != NONE:
        changed["summary"] = compaction.summary.model_copy(update={"by": OFFLINE})
    if named or "restore" in compaction.model_fields_set:
        none: dict[str, object] = {"max_files": 0, "always": ()}
        changed["restore"] = compaction.restore.model_copy(update=none)
    return compaction.model_copy(update=changed)


def replay_root(policy: OffloadPolicy) -> Root:
    """Return the root that a replay's placeholders name: of no user and of no machine.

    A policy's absolute path may be that of a variable, so the default root replaces it.
    """
    written = written_root(policy.store.root, SESSION_ID)
    if is_url(written):
        return store_root(written)
    if Path(written).is_absolute():
        written = written_root(Store().root, SESSION_ID)
    first, *rest = Path(written).parts or (".",)
    return _HOME.joinpath(*rest) if first.startswith("~") else _WORKING_DIRECTORY / written


def simulated(
    recording: Recording,
    policy: OffloadPolicy,
    *,
    path: str = "",
    excerpt: int | None = None,
    prices: PricesOf = "recorded",
    layouts: tuple[LayoutName, ...] = LAYOUTS,
    common: Common | None = None,
) -> SimulatedSession:
    """Return the figures of a recording under a policy: walk through it, call by call.

    `path` is the file that it is from. The session is told what would have been billed for its
    edited list, as far as the recording knows what was billed for the whole one. Without time
    stamps no time passes. No model is asked for a summary: the text alone makes it. With an
    `excerpt` so many characters of each item are kept in `items`; unless it is 0, the compactions
    of the recording itself are audited. Windows and `prices` that the policy does not set are those
    of the recorded language models. The session can be priced under `layouts`, beside the
    breakpoints that are sent. `common` has what other replays of the same recording found. Raises
    `MessagesError` for a recording whose messages are none, and `StoreError` as the policy's
    `on_failure` says.
    """
    terms = terms_of(recording.calls, policy.model, prices)
    common = common or Common(recording)
    simulation = _Simulation(recording, _sized(policy, terms), excerpt, layouts, common)
    simulation.walk(terms)
    return simulation.session(path, contradictions(recording.calls, terms, policy.model))


def _sized(policy: OffloadPolicy, terms: Sequence[CallTerms]) -> OffloadPolicy:
    """Return the policy for the window that most calls of a recording had.

    Rules for items may be shares of it, and an item is decided on once. Gates see the window of
    each call.
    """
    [(window, _)] = Counter(one.window for one in terms).most_common(1) or [(0, 0)]
    return with_window(policy, window) if window else policy


@lru_cache(maxsize=32)
def with_window(policy: OffloadPolicy, window: int) -> OffloadPolicy:
    """Return the policy as it would be for another context window, in tokens."""
    document = policy.policy
    if document.model.context_window == window:
        return policy
    model = document.model.model_copy(update={"context_window": window})
    document = document.model_copy(update={"model": model})
    return OffloadPolicy(document, hints=policy.hints, root=policy.tree)


class _Simulation:
    def __init__(
        self,
        recording: Recording,
        online: OffloadPolicy,
        excerpt: int | None,
        layouts: tuple[LayoutName, ...],
        common: Common,
    ) -> None:
        self._recording, self._online = recording, online
        self._policy = policy = offline(online)
        self._excerpt, self._layouts, self._common = excerpt, layouts, common
        self._items: list[SeenItem] = []
        self._clock = _Clock()
        self._store = UnwrittenStore(replay_root(policy), policy.store)
        self._session = Session(
            policy,
            session_id=SESSION_ID,
            store=self._store,
            on_invalid="keep",
            clock=self._clock,
            expects_usage=False,  # a recording may have none
        )
        self._session.cwd = str(_WORKING_DIRECTORY)
        self._blocks = common.blocks(self._facts())
        self._whole = self._edited = SentList(self._blocks)
        """One list for both until a call is sent another one than the recorded."""
        self._to_come: EditsToCome | None = None
        """What only anchors are placed by."""
        self._correction = Correction()
        self._timeline: Timeline | None = None
        self._parts = 0
        self._plans: list[Plan] = []
        """The last plan of each part."""
        self._calls: list[SimulatedCall] = []
        self._removals: list[Removal] = []
        self._removed: defaultdict[object, list[Removal]] = defaultdict(list)
        """The removals of each item, by its place, and by what it has in a list begun anew."""
        self._needs: dict[Removal, list[Need]] = {}
        """What shows that a removed item was needed, in whichever part that was."""
        self._types: dict[str, TypeTokens] = {}
        self._fired: dict[str, StepUse] = {step.name: StepUse() for step in policy.all_steps}
        self._warnings: Counter[str] = Counter()
        self._unmarked: Counter[str] = Counter()
        """Why no marker would be set, by calls."""
        self._summaries: list[SummaryCall] = []
        self._outputs: list[int] = []
        """Tokens of each reply that calls a tool."""

    def _facts(self) -> Facts:
        model = self._policy.model
        return Facts(
            session_id=self._session.session_id,
            root=str(self._store.root),
            counter=counter_for(model.tokenizer),
            token_scale=model.token_scale,
        )

    def walk(self, terms: Sequence[CallTerms]) -> None:
        """Walk through the recording; each call has its terms."""
        recording = self._recording
        anchors = self._policy.places_breakpoints or "auto" in self._layouts
        if anchors and any(one.has_breakpoints for one in terms):
            self._to_come = EditsToCome()
        shares = call_shares(recording, self._blocks, self._facts())
        calls, contexts = recording.calls, recording.contexts()
        for call in zip(calls, contexts, shares, terms, strict=True):
            self._call(*call)
        self._end_part(() if recording.after_anew else recording.after)

    def _call(
        self, call: ModelCall, context: Sequence[Message], share: Usage | None, terms: CallTerms
    ) -> None:
        """Walk one call further; `context` is the whole list as the caller would have kept it."""
        number = len(self._calls) + 1
        timeline = self._timeline
        if timeline is None or call.anew:
            self._end_part()
            timeline = self._timeline = Timeline(self._parts, number, self._store)
            self._parts += 1
        if call.at is not None:
            self._clock.now = call.at
        # Breakpoints are priced by their layout; markers would make each message another object.
        request = Request(
            call.system,
            call.tools,
            model=call.language_model,
            window=terms.window,
            takes_markers=False,
            reads_once=False,
        )
        began = perf_counter()
        results = self._results(context, request)
        result = results[-1]
        seconds = perf_counter() - began
        for one in results:
            self._warnings.update(one.warnings)
        if self._policy.places_breakpoints:
            asked = replace(request, takes_markers=None)
            conversation, is_marked = result.plan.conversation, bool(call.marks)
            if why := why_unmarked(asked, conversation, context, is_marked=is_marked):
                self._unmarked[why] += 1
        plan = replace(result.plan, new=tuple(new for one in results for new in one.plan.new))
        removals = list(timeline.note(number, plan, result.compaction))
        self._take(removals, timeline.recorded.items(result.plan.conversation))
        facts, model = result.plan.facts, call.language_model
        sent = self._calls[-1].edited.tokens if self._calls else 0
        summary = summary_call(
            number, result, policy=self._online, terms=terms, at=call.at, sent=sent
        )
        if summary is not None:
            self._summaries.append(summary)
        if self._edited is self._whole and result.messages is not context:
            self._edited = self._whole.branched()
        removable = None if self._to_come is None else self._to_come.first(result)
        unedited = edited = self._whole.sent(context, facts, marks=call.marks, removable=removable)
        if self._edited is not self._whole:
            marks = None if call.marks is None else _moved(call.marks, result)
            edited = self._edited.sent(result.messages, facts, marks=marks, removable=removable)
        simulated = SimulatedCall(
            unedited,
            edited,
            terms,
            anew=call.anew and number > 1,
            usage=call.usage,
            share=share,
            language_model=model,
            at=call.at,
            removed=len(removals),
            compacted=result.compacted,
            seconds=seconds,
            why_anew=call.why_anew,
        )
        self._observe(simulated.bill, unedited.tokens, edited.tokens)
        self._calls.append(simulated)

    def _results(self, context: Sequence[Message], request: Request) -> list[Result]:
        """Return the turn of a call, and that of a second one if its prompt is over the window."""
        first = self._session.apply(context, request=request)
        facts, window = first.plan.facts, request.window or 0
        if not self._policy.steps("overflow") or first.compacted:
            return [first]
        tokens = facts.correction.corrected(first.plan.conversation.counted(facts))
        if tokens <= window:
            return [first]
        error = f"prompt is too long: {tokens} tokens > {window} maximum"
        again = self._session.on_overflow(context, error, request=request)
        if again is None:
            return [first]
        # That each of them was too long is counted by the step.
        return [replace(first, warnings=()), replace(again, warnings=again.warnings[1:])]

    def session(self, path: str, contradictions: Mapping[Contradiction, int]) -> SimulatedSession:
        """Return what it all came to."""
        recording = self._recording
        return SimulatedSession(
            name=recording.name,
            format=recording.format,
            path=path,
            policy=self._policy.name,
            calls=tuple(self._calls),
            first_words=first_words(recording),
            is_priced_by_policy=self._policy.model.price is not None,
            contradictions=contradictions,
            removals=tuple(self._removals),
            steps=self._fired,
            types=self._types,
            regrets=tuple(Regret(gone, tuple(needs)) for gone, needs in self._needs.items()),
            bill=recording.bill,
            summaries=tuple(self._summaries),
            tool_call_output=round(median(self._outputs)) if self._outputs else 0,
            untouched="" if self._removals else why_untouched(self._plans),
            layout=recording.layout,
            sent_layout="auto" if self._policy.places_breakpoints else "recorded",
            layouts=self._layouts,
            files=self._store.files,
            bytes=self._store.bytes,
            not_asked=online_summarizers(self._online),
            compactions=sum(call.compacted for call in self._calls),
            begun_anew=sum(call.anew for call in self._calls),
            records=recording.records,
            not_prompt=recording.not_prompt,
            not_understood=recording.not_understood,
            warnings=self._warnings,
            unmarked=self._unmarked,
            items=tuple(self._items),
            audited=audited(recording, path).compactions if self._excerpt else (),
        )

    def _observe(self, usage: Usage | None, whole: int, edited: int) -> None:
        """Tell the session what would have been billed: the recorded bill less what it spared."""
        if usage is None or usage.prompt == 0:
            return
        self._correction = self._correction.observed(whole, usage)
        spared = round(self._correction.scale * (whole - edited))
        self._session.observe(_smaller(usage, max(1, usage.prompt - spared)))

    def _take(self, removals: Sequence[Removal], items: Sequence[Item]) -> None:
        if not removals:
            return
        self._removals += removals
        for removal in removals:
            self._removed[removal.part, removal.position].append(removal)
            self._removed[_sameness(items[removal.position])].append(removal)
        for step, taken in Counter(removal.step for removal in removals).items():
            self._fired[step] += StepUse(1, taken)

    def _end_part(self, after: Sequence[Message] = ()) -> None:
        """End the list that was kept so far; `after` came behind the last call."""
        if self._timeline is None:
            return
        part, plan = self._timeline.part(after), self._timeline.plan
        self._plans.append(plan)
        if self._excerpt is not None:
            recorded = self._timeline.recorded
            self._items += seen_items(self._parts - 1, part, plan, recorded, limit=self._excerpt)
        facts = plan.facts
        self._outputs += self._calling(part, facts)
        found = self._common.needs(part, facts)
        for lost, needs in sorted(found.items()):
            since = part.absences[lost.position][lost.absence].since
            removal = self._removal(lost.position, part.items[lost.position], since)
            if removal is not None:  # a step removed it, and not the recording's own doing
                self._needs.setdefault(removal, []).extend(needs)
        for name, more in self._timeline.types().items():
            self._types[name] = self._types.get(name, TypeTokens()) + more

    def _calling(self, part: SessionPart, facts: Facts) -> Iterator[int]:
        """Yield the tokens of each reply of a part that calls a tool: as billed, or as counted.

        The larger is taken: some recordings have the usage of a first piece of the reply only.
        """
        replies: defaultdict[int, list[Item]] = defaultdict(list)
        for position, call in part.replies(part.first_call):
            replies[call].append(part.items[position])
        for call, items in replies.items():
            if any(item.kind == "tool_call" for item in items):
                yield max(self._calls[call - 1].output, sum(facts.tokens_of(items)))

    def _removal(self, position: int, item: Item, since: int) -> Removal | None:
        """Return the removal that an absence of an item began with.

        A part that begins without an item goes on with the absence of an earlier part.
        """
        here = self._removed.get((self._parts - 1, position), ())
        at_once = [removal for removal in here if removal.call <= since]
        earlier = self._removed.get(_sameness(item), ())
        before = [removal for removal in earlier if removal.part < self._parts - 1]
        known = at_once or before
        return known[-1] if known else None


def _smaller(usage: Usage, prompt: int) -> Usage:
    """Return a usage with a prompt of so many tokens, and writes for the same time."""
    written, hour = min(usage.cache_write, prompt), usage.cache_write_1h
    if hour is not None and usage.cache_write:
        hour = hour * written // usage.cache_write
    return Usage(prompt - written, cache_write=written, cache_write_1h=hour)


class _Clock:
    """The time of a recording; it stands still at a call without one.

    It is NaN until a call has a time, so that no fact takes it for an hour of a day in 1970.
    """

    now = math.nan

    def __call__(self) -> float:
        return self.now


def _moved(marks: Sequence[MarkedPlace], result: Result) -> list[MarkedPlace]:
    """Return the client's markers in the list that is sent; one whose message is gone is gone."""
    places = {source: place for place, source in enumerate(result.sources) if source is not None}
    kept = (mark for mark in marks if mark.message is None or mark.message in places)
    return [
        mark if mark.message is None else mark._replace(message=places[mark.message])
        for mark in kept
    ]


def _sameness(item: Item) -> object:
    return item.kind, item.tool_use_id, item.text
