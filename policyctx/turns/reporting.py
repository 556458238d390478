"""`Reporting`: what a session tells of its turns: warnings, the log and OpenTelemetry.

The logger is `policyctx`: each step of a turn at the level INFO, each item that leaves the list at
DEBUG. No record contains the text of a message. OpenTelemetry gets spans and metrics in a process
that has imported it; a session never imports it first.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from policyctx import lazy
from policyctx.definitions.items import NEVER_REPLACED, NEVER_TAKEN, Item, call_key
from policyctx.definitions.tokenizers import TOKENIZERS
from policyctx.errors import StoreError
from policyctx.planning.compact import Replacing
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.conversation import Conversation
from policyctx.planning.decisions import IN_VAIN, Decision
from policyctx.planning.facts import Facts, Request, Unit, assumed_window, has_unknown_window
from policyctx.planning.plan import Plan, step_reports
from policyctx.planning.take import NO_FILE, left_in_place
from policyctx.policy.lookup import RulePath
from policyctx.policy.models.steps import Step
from policyctx.tokens.usage import Usage
from policyctx.turns.effects import FindRoot, Recall, Record, Remember, SessionStore, Turn
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory
from policyctx.turns.result import Compacted, NotCompacted, Result

if TYPE_CHECKING:
    from logging import Logger

    from policyctx.turns.recorder import Recorder
    from policyctx.turns.telemetry import Telemetry

# Levels of `logging`, which is slow to import.
_INFO, _DEBUG = 20, 10
# Before that many calls a loop may not have come to a response.
_CALLS_WITHOUT_USAGE = 5


def _log_for(level: int) -> Logger | None:
    """Return the log of sessions if it takes records of this level, else None.

    A program that has not imported `logging` cannot have asked for them.
    """
    if (logging := sys.modules.get("logging")) is None:
        return None
    log: Logger = logging.getLogger("policyctx")
    return log if log.isEnabledFor(level) else None


class Reporting:
    """Reports the turns of one session under one policy, and records what is sent."""

    def __init__(self, session_id: str, policy: str, recorder: Recorder | None = None) -> None:
        self._session_id, self._policy, self.recorder = session_id, policy, recorder

    def turn(
        self,
        operation: str,
        turn: Turn[Result],
        sent: Request | None = None,
        *,
        changed: bool = False,
    ) -> Turn[Result]:
        """Return a turn that decides, reported where somebody listens.

        Its list is recorded as `sent` with a request. With `changed` a message may be another one
        in the same object.
        """
        if sent is not None and self.recorder is not None:
            turn = self.recorder.turn(turn, sent, changed=changed)
        telemetry, log = _telemetry(), _log_for(_INFO)
        if telemetry is None and log is None:
            return turn
        return self._reported(operation, turn, telemetry, log)

    def _reported(
        self,
        operation: str,
        turn: Turn[Result],
        telemetry: Telemetry | None,
        log: Logger | None,
    ) -> Turn[Result]:
        if telemetry is None:
            result = yield from turn
        else:
            with telemetry.turn(operation, self._session_id, self._policy) as span:
                result = yield from turn
                span.end(result, step_reports(result.plan))
        if log is not None:
            self._log(log, result)
        return result

    def compaction(
        self, replacing: Replacing, compacting: Turn[Compacted | NotCompacted]
    ) -> Turn[Compacted | NotCompacted]:
        """Run a compaction, and report whether it was made; the turn's report logs it."""
        telemetry = _telemetry()
        if telemetry is None:
            return (yield from compacting)
        with telemetry.compaction(replacing, self._session_id, self._policy) as span:
            made = yield from compacting
            span.end(made)
        return made

    def usage(self, usage: Usage) -> None:
        """Report the usage of a model call."""
        if (telemetry := _telemetry()) is not None:
            telemetry.usage(usage, self._session_id, self._policy)

    def finish(self) -> None:
        """End the recording."""
        if self.recorder is not None:
            self.recorder.finish()

    def warn(self, warnings: Iterable[str]) -> None:
        """Log warnings that no result has."""
        log = lazy.logging.getLogger("policyctx")
        for warning in warnings:
            log.warning("session %s: %s", self._session_id, warning)

    def _log(self, log: Logger, result: Result) -> None:
        plan = result.plan
        if log.isEnabledFor(_DEBUG):
            for decision in plan.new:
                item = decision.item
                log.debug(
                    "session %s: step %s: %s %s %s%s: %s",
                    self._session_id,
                    decision.step,
                    decision.action.past,
                    item.type,
                    item.item_id,
                    f" of {item.tool}" if item.tool else "",
                    decision.reason,
                )
        for report in step_reports(plan):
            log.info("session %s: step %s: %s", self._session_id, report.step, report)
        if result.compaction is not None:
            stats, made = result.compaction.stats, result.compaction.replacement
            log.info(
                "session %s: step %s: %s messages replaced by a summary, %s → %s tokens",
                self._session_id,
                made.step,
                f"{stats.compacted_message_count:,}",
                f"{stats.original_token_count:,}",
                f"{stats.compacted_token_count:,}",
            )


def is_traced() -> bool:
    """Return whether a turn becomes a span."""
    return _telemetry() is not None


def _telemetry() -> Telemetry | None:
    """Return what reports by OpenTelemetry; None in a process that has not imported its API.

    A program that exports spans or metrics has imported it, so nothing is imported for the others.
    """
    if "opentelemetry.trace" not in sys.modules and "opentelemetry.metrics" not in sys.modules:
        return None
    from policyctx.turns.telemetry import telemetry  # noqa: PLC0415 - an extra

    return telemetry()


def note(*records: Record) -> Turn[None]:
    """Keep records that may get lost: a failure to write them is not reported."""
    if records:
        with suppress(StoreError):
            yield from Remember(records, important=False).ask()


class Writes:
    """How a session's use of its store ends: the writes that failed, and what was said about it."""

    def __init__(self) -> None:
        self.failed = 0
        """Number of writes that failed."""
        self.problem = ""
        """The error because of which nothing is offloaded; empty if there is none."""
        self.said = ""
        """The error that was reported last, without the file; empty if writes worked then."""
        self._kind = ""
        self._is_of_reading = False
        """Whether the last error was that the records cannot be read."""

    @contextmanager
    def watched(self, *, completes: bool = True, reads: bool = False) -> Iterator[None]:
        """Note how a write ends, or a call that only `reads` the records.

        A write that `completes` what it belongs to shows that writes work.
        """
        try:
            yield
        except StoreError as error:
            self.failed += not reads
            self.problem, self._is_of_reading = str(error), reads
            self._kind = self.problem.replace(error.path, "")
            raise
        if completes and (self._is_of_reading or not reads):
            self.problem = self._kind = ""

    def news(self) -> Iterator[str]:
        """Yield a warning if the store began to fail, fails for another reason, or works again."""
        before, self.said = self.said, self._kind
        if before == self._kind:
            return
        reads = self._is_of_reading
        if not self.problem:
            what = "its records can be read" if reads else "a write to the store has succeeded"
            yield f"offloading works again: {what}"
            return
        until = "its records can be read" if reads else "a write succeeds"
        yield (
            f"offloading has stopped: {self.problem}; nothing more leaves the list until {until}"
        )


class Notices:
    """What a session has warned of so far, and the folder that its store had in the last turn."""

    def __init__(self, store: SessionStore) -> None:
        self.writes = Writes()
        self._store = store
        self.is_first = True
        """Whether no list was given yet."""
        self._given = 0
        """Number of the store's own notices that are in earlier results."""
        self._files: set[str] = set()
        """The files that placeholders may name, where no ledger knows them."""
        self._root: tuple[int, int] | None = None
        """The outcome of the last `FindRoot`."""
        self._called: str | None = ""
        """The model that was called last; a name that none has before the first call."""
        self._unknown: set[str] = set()
        """The models of unknown windows of which a warning was given."""
        self._warned_of_window: bool | None = None
        """Whether the store failed when the last request was larger than the window, of which a
        warning was given; None if it was not larger."""
        self._compared = 0
        """The number of messages when a request was compared with the window last."""
        self._is_in_vain = False
        """Whether the last plan made no summary since none helps, of which a warning was given."""
        self._lone: set[object] = set()
        """The keys of answers without a call of which a warning was given."""
        self._answers: tuple[object, int] = None, 0
        """The list whose answers were looked through last, and the number of its items."""

    def other_list(self, known: KnownList, memory: Memory) -> Iterator[str]:
        """Yield a warning if a first list has nothing of what left in a session that goes on.

        It is then likely another conversation. Dropped items are in no list that is returned, and
        a compaction may have replaced the others.
        """
        self.is_first = False
        if not memory.has_begun or memory.replacements.made or known.forgets:
            return
        left = sum(one.placeholder is not None for one in memory.ledger.entries.values())
        if left and not known.conversation.fates:
            items = "item" if left == 1 else f"{left:,} items"
            yield (
                f"this list has nothing of the {items} that left in this session before; if it is"
                " another conversation, give it a session_id of its own"
            )

    def fullness(
        self, known: KnownList, planned: Plan, place: Callable[[int], int]
    ) -> Iterator[str]:
        """Yield a warning if the request of a turn is larger than the window, once until it fits.

        A further message that is larger than the window by itself gives a warning of its own.
        `place` returns the place of a message in the list that was given.

        Nothing is counted where the characters show that the request fits, and no provider is
        asked for a count that the policy does not need.
        """
        conversation, facts = known.conversation, planned.facts
        model = conversation.policy.model
        window = facts.window(model)
        if facts.called_model != self._called:
            yield from self._unknown_windows(conversation.policy, facts)
            self._called = facts.called_model
        if not conversation.policy.asks_for_request_size:
            if isinstance(model.tokenizer, str) and model.tokenizer in _REMOTE:
                return
            if (conversation.tally("chars").total + facts.chars_beside) * _TOKENS_PER_CHAR < window:
                self._warned_of_window = None
                return
        tokens = conversation.counted(facts)
        if known.forgets:
            out = (one for one in planned.new if one.item.inside is None)
            tokens -= sum(
                facts.tokens(one.item) - facts.length(one.placeholder or "", "tokens")
                for one in out
            )
        tokens = facts.correction.corrected(tokens)
        before, count = self._compared, conversation.reading.message_count
        self._compared = count
        if tokens <= window:
            self._warned_of_window = None
            return
        fates = planned.fates if known.forgets else conversation.fates
        further = range(before if before <= count else count - 1, count)
        left = (_tokens_left(message, conversation, fates) for message in further)
        fails = bool(self.writes.problem)  # what helps differs
        if self._warned_of_window is not fails or any(one > window for one in left):
            yield _over_window(tokens, window, conversation, fates, facts, place=place, fails=fails)
        self._warned_of_window = fails

    def _unknown_windows(self, policy: OffloadPolicy, facts: Facts) -> Iterator[str]:
        """Yield a warning, once for each model, if shares are those of a window nobody knows."""
        model, step = policy.policy.model, policy.compacting_step
        summary = None if step is None else policy.compaction(step).summary
        if summary is not None and (tokens := assumed_window(summary)):
            what = f"summary.model {summary.model!r}"
            if what not in self._unknown:
                self._unknown.add(what)
                yield (
                    f"the context window of {what} is not known: {tokens:,} tokens are assumed;"
                    " write summary.max_input in tokens"
                )
        name = facts.called_model or model.name or ""
        is_told = facts.context_window is not None or name in self._unknown
        if is_told or not policy.asks_for_window or not has_unknown_window(model, name):
            return
        self._unknown.add(name)
        yield (
            f"the context window of the model {name!r} is not known: {facts.window(model):,} tokens"
            " are assumed; write model.context_window in the policy"
        )

    def in_vain(self, planned: Plan) -> Iterator[str]:
        """Yield a warning if a step makes no summary since none helps, once until one may help."""
        was_in_vain, self._is_in_vain = self._is_in_vain, False
        for outcome in planned.outcomes:
            if (reason := outcome.stopped) is not None and reason.code in IN_VAIN:
                self._is_in_vain = True
                if not was_in_vain:
                    yield f"the step {outcome.step} makes no summary now: {reason.sentence}"

    def after(self, memory: Memory) -> Turn[tuple[str, ...]]:
        """Return a warning for each damage that was found since the last result."""
        new = self._new()
        if count := len(memory.unreadable):
            noun = "record" if count == 1 else "records"
            new.append(
                f"{count} {noun} of the session could not be read; the session decides anew what"
                f" {'it' if count == 1 else 'they'} said"
            )
            yield from note(memory.settling_record())
            memory.unreadable = ()
        return tuple(new)

    def of_root(self, known: KnownList | None, memory: Memory) -> Turn[tuple[str, ...]]:
        """Return a warning if the store's folder was removed since the last turn.

        The warning includes the store's own notices, so the store reads its records again for it.
        """
        if known is None or not (memory.ledger.newest_path or self._files):
            return ()
        before, self._root = self._root, (yield from FindRoot().ask())
        if before in {None, self._root}:
            return ()
        file = memory.ledger.newest_path
        if file and (yield from FindRoot(file).ask()) is not None:
            return ()  # it was moved away and put back, or copied
        if not (count := known.placeholders(self._files)):
            return ()
        with suppress(StoreError):
            yield from Recall().ask()
        names = "1 placeholder names a file" if count == 1 else f"{count:,} placeholders name files"
        warning = (
            f"the folder {self._store.root} was removed or replaced while the session ran: {names}"
            " in it that can no longer be read"
        )
        notices = self._new()
        return (f"{warning} ({'; '.join(notices)})" if notices else warning,)

    def lone_answers(
        self, known: KnownList, memory: Memory, place: Callable[[int], int]
    ) -> Iterator[str]:
        """Yield a warning, once, for each new answer that is sent without a call, if calls left.

        A result may come late, or a second time, and the list that was returned lacks the call.
        `place` is as for `fullness`.
        """
        reading, (before, count) = known.conversation.reading, self._answers
        self._answers = reading, len(reading.items)
        if not (memory.replacements.made or memory.ledger.drops):
            return
        for position in range(count if before is reading else 0, len(reading.items)):
            item = reading.items[position]
            is_lone = item.is_answer and position not in reading.partners
            key = call_key(item) if is_lone and known.conversation.is_there(position) else None
            if key is not None and key not in self._lone:
                self._lone.add(key)
                yield (
                    f"the result {item.tool_use_id} in message {place(item.message)} has no call in"
                    " the list, and the provider may reject it; leave the result out, or pass a"
                    " list with its call"
                )

    def find_root(self, files: Iterable[str]) -> Turn[None]:
        """Look the store's folder up, if no turn has found it; a turn may just have made it.

        `files` are those that the turn has saved.
        """
        self._files.update(files)
        if self._root is None:
            self._root = yield from FindRoot().ask()

    def _new(self) -> list[str]:
        """Return the damage that the store found since the last call."""
        every: tuple[str, ...] = getattr(self._store, "notices", ())
        given, self._given = self._given, len(every)
        return [*every[given:]]


def log_blindness(memory: Memory, policy: OffloadPolicy, session_id: str) -> None:
    """Log a warning, once, if a gate compares tokens and no usage was ever observed."""
    is_due = memory.calls == _CALLS_WITHOUT_USAGE and memory.correction.last is None
    if is_due and policy.asks_for_request_size:
        warning = (
            f"the gates on tokens see estimates only: the usage of none of {memory.calls} calls"
            " was observed; a loop of your own calls session.observe(response.usage) after each"
            " model call, and a stream of OpenAI's chat has its usage with"
            " stream_options={'include_usage': True}"
        )
        lazy.logging.getLogger("policyctx").warning("session %s: %s", session_id, warning)


# No text has more tokens for each of its characters, except a few that nobody writes.
_TOKENS_PER_CHAR = 2
_REMOTE = frozenset(name for name, one in TOKENIZERS.items() if one.is_remote)
# What helps against an item in whose place no text can stand.
_INSTEAD = {
    "system_prompt": "write a shorter one",
    "compaction_summary": "ask for a shorter one with `compaction.summary.max_tokens`",
    "unknown": "only a compaction takes it",
    "thinking": (
        "only a compaction takes it, or, once its turn is over, the step"
        " `{do: drop, select: {types: [thinking], keep_recent: 0}}`"
    ),
}


def _tokens_left(message: int, conversation: Conversation, fates: Mapping[int, Decision]) -> int:
    """Return the tokens of the items of a message that no decision has taken."""
    own = ((i, conversation.items[i]) for i in conversation.items_of(message))
    left = [item for i, item in own if i not in fates and item.inside is None]
    return sum(conversation.facts.tokens_of(left))


def fullness_ahead(planned: Plan) -> str:
    """Return the warning that a turn would give for a plan; empty if the request fits.

    The length of a summary is not known, so a plan that makes one gives no warning.
    """
    facts, tokens = planned.facts, planned.facts.correction.corrected(planned.tokens_after)
    window = facts.window(planned.conversation.policy.model)
    if tokens <= window or planned.compaction is not None:
        return ""
    return _over_window(tokens, window, planned.conversation, planned.fates, facts)


def _over_window(
    tokens: int,
    window: int,
    conversation: Conversation,
    fates: Mapping[int, Decision],
    facts: Facts,
    *,
    place: Callable[[int], int] = int,
    fails: bool = False,
) -> str:
    size = (
        f"the request has about {tokens:,} tokens, more than the context window of {window:,}: the"
        " provider will reject it"
    )
    items = enumerate(conversation.items)
    left = [item for i, item in items if i not in fates and item.inside is None]
    largest = max(left, key=facts.tokens, default=None)
    most = 0 if largest is None else facts.tokens(largest)
    if largest is None or facts.tokens_beside > most:
        return (
            f"{size}; the system prompt and the tool schemas have {facts.tokens_beside:,} tokens,"
            " and no step can take them"
        )
    texts = [fate.placeholder for fate in fates.values() if fate.placeholder]
    if (out := sum(facts.length(text, "tokens") for text in texts)) > most:
        return (
            f"{size}; the placeholders of {len(texts):,} items have {out:,} tokens, more than each"
            " item that stays: only a drop or a compaction takes them"
        )
    if most < tokens - window and _keeping_rule(largest, most, conversation) is not None:
        return (
            f"{size}; {len(left):,} items stay, none with more than {most:,} tokens: a drop or a"
            " compaction takes many small ones"
        )
    name = " ".join(filter(None, (largest.type, largest.item_id, largest.tool)))
    stopped = "; nothing is offloaded while the store fails"
    return (
        f"{size}; the largest item that stays is {name} in message {place(largest.message)}, with"
        f" {most:,} tokens{stopped if fails else _advice(largest, most, conversation)}"
    )


def _keeping_rule(item: Item, tokens: int, conversation: Conversation) -> RulePath | None:
    """Return the rule of the policy that keeps an item of so many tokens, None without one."""
    sizes: dict[Unit, int] = {"tokens": tokens, "chars": item.chars}
    return conversation.policy.keeping_rule(item.type, item.tool, sizes)


def _shrinks(item: Item, tokens: int, conversation: Conversation) -> bool:
    """Return whether the placeholder that a new step would leave is shorter than the item."""
    step = Step.model_validate({"name": "new", "do": "offload"})
    wording = conversation.policy.wording(step, item.type, item.tool)
    text = left_in_place(item, wording, NO_FILE, conversation.facts, "tokens")
    return text is not None and conversation.facts.length(text, "tokens") < tokens


def _advice(largest: Item, tokens: int, conversation: Conversation) -> str:
    """Return what takes the largest item that stays, or helps, as the end of a sentence."""
    lineage = conversation.policy.types.lineage(largest.type)
    if (built_in := lineage[-1]) in NEVER_TAKEN:
        return f"; {NEVER_TAKEN[built_in]}; {_INSTEAD[built_in]}"
    if largest.kind == "user_message" and largest.message == conversation.checkpoint().newest_user:
        return (
            ": no step takes the newest user message; save its text to a file, and name the file in"
            " the message"
        )
    if (kept := _keeping_rule(largest, tokens, conversation)) is not None:
        return f"; `{'.'.join(kept)}` of the policy keeps it"
    if built_in in NEVER_REPLACED:
        instead = f"{_INSTEAD[built_in]}{_before_compaction(conversation)}"
        return f"; {NEVER_REPLACED[built_in]}; {instead}"
    return _step_that_takes(largest, tokens, conversation)


def _step_that_takes(largest: Item, tokens: int, conversation: Conversation) -> str:
    """Return what takes an item, whichever rule keeps the newest of its kind."""
    shrinks = largest.takes_text and _shrinks(largest, tokens, conversation)
    place = _before_compaction(conversation)
    if not largest.takes_text or (largest.kind == "tool_call" and not shrinks):
        of_tool = f", tools: [{json.dumps(largest.tool)}]" if largest.tool else ""
        chosen = f"types: [{largest.type}]{of_tool}, keep_recent: 0"
        why = (
            "no string in its input is longer than its placeholder"
            if largest.takes_text
            else "no text may take its place"
        )
        return (
            f"; {why}: only a compaction takes it, or a drop, such as the step"
            f" `{{do: drop, select: {{{chosen}}}}}`{place}"
        )
    if not shrinks:
        return (
            "; its placeholder would be no shorter: show less of it with `max_line_chars`, or with"
            " a `head` or `tail` in `chars`"
        )
    # Only results arrive, and what was read back is not offloaded then.
    is_recalled = "recalled" in conversation.policy.types.lineage(largest.type)
    arrives = largest.kind == "tool_result" and not is_recalled
    on, recent = ("on: arrival, ", "") if arrives else ("", ", keep_recent: 0")
    return (
        f"; with `items: {{{largest.type}: {{offload: true}}}}`, the step"
        f" `{{{on}do: offload, select: {{types: [{largest.type}]{recent}}}}}` takes it{place}"
    )


def _before_compaction(conversation: Conversation) -> str:
    """Return where a new step has its place, empty where that is the end."""
    steps = conversation.policy.policy.steps
    name = next((step.name for step in steps if step.action.takes_messages), None)
    return "" if name is None else f", written before {name!r}"
