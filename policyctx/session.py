"""`Session`: one agent's context under one policy, from messages to new messages plus files."""

from __future__ import annotations

import asyncio
import os
import secrets
import time
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TypeVar, cast

from policyctx.definitions.fields import ROOT_FIELDS, SESSION_FIELDS
from policyctx.errors import PolicyctxError, StoreError
from policyctx.messages.reading import listed
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import Facts
from policyctx.planning.ledger import taken_out
from policyctx.planning.paths import safe_part
from policyctx.planning.planner import BOTH
from policyctx.policy.models import Policy
from policyctx.policy.options import checks_options
from policyctx.policy.template import parsed_template
from policyctx.store.filesystem import ContextFileSystem
from policyctx.tokens.counter import counter_for
from policyctx.tokens.usage import usage_of
from policyctx.turns.carrying_out import carried_out
from policyctx.turns.context_items import context_items
from policyctx.turns.driving import FindRoot, OneByOne, Recall, Remember, run, run_async
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from policyctx.compaction.restoration import FileReader
    from policyctx.compaction.summarizers import Summarize, Summarizer
    from policyctx.messages.items import Message
    from policyctx.planning.compact import Replacing
    from policyctx.planning.ledger import ItemKey, Ledger
    from policyctx.planning.plan import Plan
    from policyctx.planning.planner import Moment
    from policyctx.tokens.counter import MemoStats
    from policyctx.tokens.usage import Correction, Usage
    from policyctx.turns.context_items import ContextItem
    from policyctx.turns.driving import Store, Turn
    from policyctx.turns.result import Result

T = TypeVar("T")
_RANDOM = "abcdefghijklmnopqrstuvwxyz0123456789"


class Session:
    """One conversation of one agent: its policy, its folder, and what was decided so far.

    `policy` is a preset's name, a file's path, or a policy already read. `root` replaces the
    policy's `store.root` whole; a `store` of the caller's takes the folder's place, with the root
    that it has itself. `hints` are rules by tool name that code gives, such as
    `{"browser": {"keep_recent": 3}}`; the policy's own are nearer. `on_invalid` says what happens
    when a provider would refuse the edited list: `raise` an `InvalidResultError`, or `keep` the
    list without this turn's decisions, with a warning. `clock` gives the time in seconds.
    `summarizer` makes the summaries instead of the one that the policy names, and `reader` reads
    the files that come back after a compaction.

    Raises `UnknownSummarizerError` if the policy has a `compact` step whose `summary.by` names no
    built-in or registered summarizer, and `MissingExtraError` if that summarizer needs a package
    that is not installed. Neither is raised if `summarizer` is given.

    `with Session(…) as session` closes it at the end, and so does `async with`. A session is not to
    be used by two threads at once, and cannot be copied or pickled: make another one with the same
    `session_id` and root. Policies, plans and results can.
    """

    @checks_options
    def __init__(
        self,
        policy: str | os.PathLike[str] | Policy | OffloadPolicy,
        *,
        root: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        store: Store | None = None,
        hints: Mapping[str, Mapping[str, Any]] | None = None,
        on_invalid: Literal["raise", "keep"] = "raise",
        clock: Callable[[], float] = time.time,
        summarizer: Summarizer | Summarize | None = None,
        reader: FileReader | None = None,
    ) -> None:
        if isinstance(policy, Policy):
            policy = OffloadPolicy(policy, hints=hints)
        elif not isinstance(policy, OffloadPolicy):
            policy = OffloadPolicy.load(policy, hints=hints)
        self.policy = policy
        settings = self.policy.store
        self.session_id = _new_session_id(settings.session_id) if session_id is None else session_id
        self._clock = clock
        self._cwd = _working_directory()
        self.store: Store = self._folder(root) if store is None else store
        model = self.policy.model
        self._counter = counter_for(model.tokenizer, language_model=model.name)
        self._keeps_state = settings.state == "kept"
        self._summarizer = _summarizer(self.policy, summarizer)
        self._reader = reader
        self._on_invalid = on_invalid
        self._notices_given = 0
        self._memory: Memory | None = None
        self._effects = Lock()
        self._root: tuple[int, int] | None = None
        """What the store's folder was when it was seen last, None before and once it is gone."""

    def __reduce__(self) -> NoReturn:
        """Raise `TypeError`: a copy would decide beside this session in the same folder."""
        raise TypeError(
            "a Session cannot be copied or pickled; make a new Session with the same policy, root"
            " and session_id, which goes on where this one was"
        )

    @property
    def ledger(self) -> Ledger:
        """What was decided so far; read from the store's folder where the session was before."""
        return self._run(self._remembered()).ledger

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items of the list that `apply` was given last, and what became of each.

        Before them come those that left the session and are no longer in the list; after a
        restart, and before the first `apply`, there are only these. With `state: none` there are
        none. Costs a look at every item; nothing is counted and no file is read.
        """
        memory = self._run(self._remembered())
        conversation = memory.known.conversation if memory.known else None
        return context_items(conversation, memory.ledger, str(self.store.root))

    def plan(
        self, messages: Sequence[Message], *, system: object = None, tools: object = None
    ) -> Plan:
        """Return what `apply` would do; nothing is written and nothing is decided."""
        memory = self._run(self._remembered())
        known = self._list_of(messages, memory)
        facts = self._facts(memory, system, tools)
        return known.planner.plan(facts, comes_back=known.comes_back)

    def apply(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        changed: bool = False,
    ) -> Result:
        """Edit a message list before it is sent to a model.

        `messages` is the whole list, as the caller has kept it or as an earlier `apply` returned
        it, with what is new at its end. The form may change from turn to turn, and the list may be
        cut off: an earlier removal that would make it invalid is held back. A message may be the
        object that a provider's SDK returned, such as OpenAI's `response.choices[0].message`; where
        it is edited, a dict that can be sent takes its place. A message that is the same object as
        in the turn before is not read again: say `changed=True` when one was changed in place.
        `system` and `tools` are the request's own and only count towards its size.

        Raises `MessagesError` for what is no message list, `StoreError` under `on_failure: raise`,
        and `InvalidResultError`; after one of these the session is as it was. After any other, such
        as an interrupt, the next turn reads from the store what was decided.
        """
        turn = self._turn(messages, (system, tools), changed=changed)
        return self._run(turn)

    async def apply_async(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        changed: bool = False,
    ) -> Result:
        """`apply`, with the files written in a thread."""
        turn = self._turn(messages, (system, tools), changed=changed)
        return await self._run_async(turn)

    def on_tool_result(self, message: Message, *, call: Message | None = None) -> Result:
        """Run the `arrival` steps on a message with new results, before a model has seen them.

        `call` is the assistant message that made the calls; without it the tools are not known,
        and rules for tools do not apply. `Result.messages` begins with it where it was given.
        """
        return self._run(self._arrival(message, call))

    async def on_tool_result_async(
        self, message: Message, *, call: Message | None = None
    ) -> Result:
        """`on_tool_result`, with the files written in a thread."""
        return await self._run_async(self._arrival(message, call))

    def observe(self, usage: object) -> None:
        """Learn from the `usage` of the response to the list that `apply` returned last.

        Takes the map or the SDK's object of either API, cached tokens included. From then on the
        totals that gates and `until` compare are what the provider would bill; an item's size never
        changes. Observed twice, or for a call without `apply`, it teaches nothing. Raises
        `UsageError` for what is no usage.
        """
        return self._run(self._observed(usage_of(usage)))

    def take_over(self, correction: Correction) -> None:
        """Take over what usage has taught before this session, such as in a recording.

        It replaces what this session has observed so far. With `state: none` each call stands
        alone, so it has no effect there, as `observe` has none.
        """
        self._run(self._remembered()).correction = correction

    @property
    def stats(self) -> MemoStats:
        """What was counted, and what is held in memory for it; shared by a process's sessions."""
        return self._counter.stats

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return the text of an offloaded item by the path in its placeholder."""
        return self.store.read(path)

    def close(self) -> None:
        """Bring the store's `index.json` up to date, so that it lists every item.

        Where nothing was ever decided, nothing is written. A closed session can be used and closed
        again. A store that the caller passed is closed if it has a `close` method. Raises
        `StoreError` when the index cannot be written; nothing is lost then.
        """
        close = getattr(self.store, "close", None)
        if close is not None:
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.close)

    def _run(self, turn: Turn[T]) -> T:
        with self._unless_interrupted():
            return run(turn, OneByOne(self.store, self._effects))

    async def _run_async(self, turn: Turn[T]) -> T:
        with self._unless_interrupted():
            return await run_async(turn, OneByOne(self.store, self._effects))

    @contextmanager
    def _unless_interrupted(self) -> Iterator[None]:
        """Forget what the session knows when a turn ends in a way that is not known.

        An interrupt may come before or after the journal was written; the next turn reads it.
        """
        try:
            yield
        except PolicyctxError:
            raise
        except BaseException:
            self._memory = None
            raise

    def _folder(self, root: str | os.PathLike[str] | None) -> ContextFileSystem:
        settings = self.policy.store
        shared = root is not None or "{session_id}" not in settings.root
        return ContextFileSystem(
            _root(settings.root, self.session_id) if root is None else root,
            on_conflict=settings.on_conflict,
            sync=settings.sync,
            mode=settings.mode,
            state=settings.state,
            session=self.session_id if shared else None,
            format=settings.format,
            compress=settings.compress,
            clock=self._clock,
        )

    def _arrival(self, message: Message, call: Message | None) -> Turn[Result]:
        messages = [message] if call is None else [call, message]
        memory = yield from self._remembered()
        known = self._new_list(memory)
        known.read(listed(messages))
        warnings = yield from self._missing_files(memory.known, memory)
        facts = self._facts(memory)
        result = yield from self._carried_out(known, messages, ("arrival",), facts)
        known.conversation.report()
        result = replace(result, warnings=(*warnings, *result.warnings)) if warnings else result
        return (yield from self._with_notices(result, memory))

    def _turn(
        self,
        messages: Sequence[Message],
        beside: tuple[object, ...],
        *,
        changed: bool,
    ) -> Turn[Result]:
        memory = yield from self._remembered()
        known = self._list_of(messages, memory, changed=changed)
        warnings = yield from self._missing_files(known, memory)
        facts = self._facts(memory, *beside)
        seen = memory.replacements.seen(messages)
        result = yield from self._carried_out(known, seen, BOTH, facts)
        if (replacing := result.plan.compaction) is not None:
            known, result = yield from self._compacted(known, result, replacing, messages, memory)
        if self._root is None and (result.plan.to_save or result.compacted):
            self._root = yield FindRoot()
        memory.known = known
        known.conversation.sent = known.conversation.reading.message_count
        memory.called_at = self._clock()
        memory.sent = known.conversation, facts
        if self._keeps_state and self.policy.asks_for_time and memory.has_decided:
            # A session that has decided nothing leaves nothing on the disk.
            yield Remember((memory.call_record(),), important=False)
        result = replace(result, warnings=(*warnings, *result.warnings)) if warnings else result
        return (yield from self._with_notices(result, memory))

    def _with_notices(self, result: Result, memory: Memory) -> Turn[Result]:
        """Add to the warnings what was found damaged since the last result, each time once."""
        new = self._new_notices()
        if count := len(memory.unreadable):
            noun = "record" if count == 1 else "records"
            new.append(
                f"{count} {noun} of the session could not be read; the session decides anew what"
                f" {'it' if count == 1 else 'they'} said"
            )
            yield Remember((memory.settling_record(),), important=False)
            memory.unreadable = ()
        return replace(result, warnings=(*new, *result.warnings)) if new else result

    def _new_notices(self) -> list[str]:
        """Return what the store found damaged since this was called last."""
        every: tuple[str, ...] = getattr(self.store, "notices", ())
        given, self._notices_given = self._notices_given, len(every)
        return [*every[given:]]

    def _missing_files(self, known: KnownList | None, memory: Memory) -> Turn[tuple[str, ...]]:
        """Return a warning when the store's folder has been removed since the last turn.

        It holds what the store itself has to say of that, which is looked at again for it.
        """
        if known is None:
            return ()
        before, self._root = self._root, (yield FindRoot())
        if before in {None, self._root}:
            return ()
        file = memory.ledger.newest_path
        if file and (yield FindRoot(file)) is not None:
            return ()  # it was moved away and put back, or copied
        if not (count := known.placeholders(str(self.store.root))):
            return ()
        yield Recall()
        names = "1 placeholder names a file" if count == 1 else f"{count:,} placeholders name files"
        warning = (
            f"the folder {self.store.root} was removed or replaced while the session ran: {names}"
            " in it that can no longer be read"
        )
        notices = self._new_notices()
        return (f"{warning} ({'; '.join(notices)})" if notices else warning,)

    def _compacted(
        self,
        known: KnownList,
        result: Result,
        replacing: Replacing,
        messages: Sequence[Message],
        memory: Memory,
    ) -> Turn[tuple[KnownList, Result]]:
        """Replace history by a summary, in the list as the turn's other decisions left it."""
        from policyctx.turns.compacting import (  # noqa: PLC0415 - seldom needed
            Compacting,
            NotCompacted,
        )

        compacting = Compacting(
            known,
            replacing,
            result.plan.facts,
            memory.replacements,
            summarizer=cast("Summarizer", self._summarizer),
            reader=self._reader,
            keeps_state=self._keeps_state,
        )
        made = yield from compacting.run()
        warnings = (*result.warnings, *made.warnings)
        if isinstance(made, NotCompacted):
            planned = result.plan.unsummarised()
            after_all = replace(result, plan=planned, warnings=warnings, summary_usage=made.usage)
            return known, after_all
        known.conversation.report()
        memory.replacements.add(made.replacement, messages, made.messages)
        after = self._new_list(memory)
        after.read(made.messages)
        return after, replace(
            result,
            messages=made.messages,
            warnings=warnings,
            compaction=made,
            summary_usage=made.stats.summary,
        )

    def _observed(self, usage: Usage) -> Turn[None]:
        memory = yield from self._remembered()
        memory.observe(usage)
        if self._keeps_state and memory.has_decided:
            yield Remember((memory.usage_record(),), important=False)

    def _carried_out(
        self,
        known: KnownList,
        messages: Sequence[Message],
        moments: tuple[Moment, ...],
        facts: Facts,
    ) -> Turn[Result]:
        planned = known.planner.plan(facts, moments=moments, comes_back=known.comes_back)
        return carried_out(
            planned,
            known,
            messages,
            on_invalid=self._on_invalid,
            keeps_state=self._keeps_state,
        )

    def _remembered(self) -> Turn[Memory]:
        """What this session knows from before; nothing where each call stands alone."""
        if not self._keeps_state:
            return Memory()
        if self._memory is None:
            records = yield Recall()
            if isinstance(records, StoreError):
                raise records
            self._memory = Memory.of(records)
        return self._memory

    def _list_of(
        self, messages: Sequence[Message], memory: Memory, *, changed: bool = False
    ) -> KnownList:
        """The known list, when `messages` continue it, else a new one; all of them are read."""
        if changed:
            memory.replacements.forget()
        messages = memory.replacements.seen(listed(messages))
        known = memory.known
        if known is None or changed or not known.continued_by(messages):
            known = self._read_anew(messages, memory)
        known.read(messages)
        return known

    def _read_anew(self, messages: Sequence[Message], memory: Memory) -> KnownList:
        """Return a new list, with what was taken out of these messages before they came."""
        earlier = memory.known
        gone = None if earlier is None else earlier.gone_from(messages)
        is_guess = gone is None or (earlier is not None and earlier.is_guess)
        if gone is None:
            gone = taken_out(messages, memory.ledger, memory.replacements.gone)
        known = self._new_list(memory, gone, is_guess=is_guess)
        if earlier is not None:
            earlier.conversation.report()
            known.conversation.sent = earlier.sent_of(messages)
        return known

    def _new_list(
        self, memory: Memory, gone: frozenset[ItemKey] = frozenset(), *, is_guess: bool = False
    ) -> KnownList:
        return KnownList(
            Conversation(
                self.policy,
                memory.ledger,
                self._facts(memory),
                memory.judged,
                gone=gone | memory.replacements.gone,
                written=memory.replacements.written,
            ),
            is_guess=is_guess,
        )

    def _facts(self, memory: Memory, *beside: object) -> Facts:
        model, called_at = self.policy.model, memory.called_at
        return Facts(
            session_id=self.session_id,
            root=str(self.store.root),
            counter=self._counter,
            beside=tuple(part for part in beside if part),
            token_scale=model.token_scale,
            language_model=model.name,
            correction=memory.correction,
            idle=None if called_at is None else max(0.0, self._clock() - called_at),
            cwd=self._cwd,
        )


def _summarizer(policy: OffloadPolicy, given: Summarizer | Summarize | None) -> Summarizer | None:
    """Return the summarizer of the policy's `compact` step; None if it has no such step."""
    step = policy.compacting_step
    if step is None:
        return None
    from policyctx.compaction.summarizers import (  # noqa: PLC0415 - most policies need none
        summarizer_for,
        summarizer_of,
    )

    if given is not None:
        return summarizer_of(given)
    return summarizer_for(policy.compaction(step).summary.by)


def _working_directory() -> str:
    """Return the absolute path of the working directory, empty where it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - a path is rendered as text
    except FileNotFoundError:
        return ""


def _root(template: str, session_id: str) -> str:
    values = {"session_id": safe_part(session_id)}
    return parsed_template(template, ROOT_FIELDS).render(values)


def _new_session_id(form: str) -> str:
    now = datetime.now(UTC)
    values = {
        "date": f"{now:%Y%m%d}",
        "time": f"{now:%H%M%S}",
        "random": "".join(secrets.choice(_RANDOM) for _ in range(6)),
    }
    return parsed_template(form, SESSION_FIELDS).render(values)
