"""`Session`: one agent's context under one policy, from messages to new messages plus files."""

from __future__ import annotations

import asyncio
import os
import re
import secrets
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from operator import is_
from threading import Lock
from typing import Any, Literal, NoReturn, Self, TypeVar

from policyctx.compaction.restoration import FileReader
from policyctx.compaction.summarizers import Summarize, Summarizer, summarizer_for, summarizer_of
from policyctx.definitions.fields import SESSION_FIELDS
from policyctx.definitions.items import FileLines, Message, SessionOption
from policyctx.definitions.names import EXTRACTIVE, NONE, READ_TOOL, recall_tool
from policyctx.errors import InputError, PolicyctxError, StoreError, present
from policyctx.messages.reading import listed
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Shape
from policyctx.planning.anchors import Breakpoint
from policyctx.planning.compact import Replacing
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import Added, Attempt, Facts, KnownParts
from policyctx.planning.ledger import ItemKey, Ledger
from policyctx.planning.plan import Plan
from policyctx.planning.planner import BOTH, Moment
from policyctx.planning.reapplying import taken_out
from policyctx.policy.agent_options import AgentOptions, checks_options
from policyctx.policy.models import Policy
from policyctx.policy.templates import parsed_template
from policyctx.store.opening import session_store
from policyctx.store.read import FoundLine, lines_of
from policyctx.tokens.counter import MemoStats, TokenCounter, counter_for, counter_of
from policyctx.tokens.sizes import tool_names
from policyctx.tokens.usage import Correction, Usage, usage_of
from policyctx.turns.before_compaction import BeforeCompaction
from policyctx.turns.breakpoints import Placing
from policyctx.turns.compacting import Compacting, NotCompacted
from policyctx.turns.driving import LockedStore, Steps, in_steps, run, run_async
from policyctx.turns.effects import Recall, SessionStore, Turn
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory, Totals
from policyctx.turns.reporting import Notices, Reporting, Writes, blindness, note
from policyctx.turns.request import MovedToRequest, Request
from policyctx.turns.result import ContextItem, Result, carry_out, context_items

T = TypeVar("T")
_RANDOM = "abcdefghijklmnopqrstuvwxyz0123456789"
_CHILD_NAME = re.compile("[A-Za-z0-9_-]+")


class Session:
    """One conversation of one agent: its policy, its folder, and what was decided so far.

    `policy` is the name of a preset, the path of a file, or a policy that was read before. `root`
    replaces the policy's `store.root`: with `{session_id}` in it the session has a folder of its
    own, without it sessions share the folder. A `store` replaces it and has a root of its own. If
    the files are at a URL, the agent needs the tool `read_offloaded`: without it `apply` and
    `on_tool_result` raise `InputError`.
    `tools` are the tools of the agent: those that `tool` says are ephemeral keep so many results.
    `hints` are such rules by tool name, `{"browser": {"keep_recent": 3}}`, and override the tools;
    the policy's own rules for a tool or an item type override both. `options` change the policy by
    the settings of the requirements documents; see `AgentOptions`.

    `on_invalid` says what happens when a provider would reject the edited list: `raise` an
    `InvalidResultError`, or `keep` the list without this turn's decisions and warn. `clock` returns
    the time in seconds. `summarizer` replaces the one that the policy names, and `reader` reads the
    files that are restored after a compaction. `before_compaction` is called with a
    `CompactionAhead` before a summary is asked for, and may decline it; see `BeforeCompaction`.
    `shapes` read and edit the message objects of a framework, before the shapes of the providers'
    APIs; see `Shape`. A value among them that is not a shape raises `ShapeError`. `expects_usage`
    says whether to warn when gates compare tokens and no usage is observed.

    Raises `UnknownSummarizerError` if the policy has a `compact` step whose `summary.by` names no
    built-in or registered summarizer, and `MissingExtraError` if that summarizer needs a package
    that is not installed. Neither is raised if `summarizer` is given. Raises
    `UnknownTokenizerError` if `model.tokenizer` names no built-in or registered tokenizer; not if
    `counter` is given, which replaces it: a `TokenCounter`, or a function from a text to its
    number of tokens.

    `with Session(…) as session` and `async with` close the session at the end. Do not use one
    session in two threads at once. A session cannot be copied or pickled: make another one with the
    same `session_id` and root. Policies, plans and results can be copied and pickled.
    """

    context_window, called_model = MovedToRequest("window"), MovedToRequest("model")
    takes_markers, reads_once = MovedToRequest("takes_markers"), MovedToRequest("reads_once")

    @checks_options
    def __init__(
        self,
        policy: str | os.PathLike[str] | Policy | OffloadPolicy,
        *,
        root: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
        store: SessionStore | None = None,
        hints: Mapping[str, Mapping[str, Any]] | None = None,
        tools: Iterable[object] = (),
        options: AgentOptions | None = None,
        on_invalid: Literal["raise", "keep"] = "raise",
        clock: Callable[[], float] = time.time,
        summarizer: Summarizer | Summarize | None = None,
        counter: TokenCounter | Callable[[str], int] | None = None,
        reader: FileReader | None = None,
        before_compaction: BeforeCompaction | None = None,
        shapes: Iterable[Shape] | Shapes = (),
        expects_usage: bool = True,
    ) -> None:
        self.policy = OffloadPolicy.of(policy, hints=hints, tools=tools, options=options)
        settings = self.policy.store
        self.session_id = _new_session_id(settings.session_id) if session_id is None else session_id
        self.shares: tuple[Session, ...] = ()
        """The sessions whose files the model of this one may read too; see `child`."""
        self._root = root if store is None else None
        self._has_own_store = store is not None
        self._clock = clock
        self.cwd = _working_directory()
        """The folder from which placeholders name files in `{cwd_path}`; empty if unknown."""
        if store is None:
            seconds = settings.timeout.seconds
            store = session_store(
                settings, self.session_id, root=root, timeout=seconds, clock=clock
            )
        self.store: SessionStore = store
        model = self.policy.model
        self._given_counter = counter
        self._counter = (
            counter_for(model.tokenizer, language_model=model.name)
            if counter is None
            else counter_of(counter)
        )
        self._keeps_state = self.policy.store.keeps_state
        self._summarizer = _summarizer(self.policy, summarizer)
        """None for that of the policy, which is found when it is first needed."""
        self._reader = reader
        self._before_compaction = before_compaction
        self._shapes = shapes if isinstance(shapes, Shapes) else Shapes(shapes)
        self._on_invalid = on_invalid
        self._known = Request()
        """What requests do not say: the model of the last one that named it."""
        self._expects_usage = expects_usage
        self._notices = Notices(store)
        self._reporting = Reporting(self.session_id, self.policy.name)
        self._memory: Memory | None = None
        self._stands_alone = not (
            self._keeps_state
            or self.policy.places_breakpoints
            or self.policy.compacting_step is not None
        )
        """Whether nothing of a call matters to the next one."""
        self._read_before: KnownList | None = None
        """The list that the last call read, if each call stands alone."""
        self._announced_tool = ""
        self._read_tools: tuple[tuple[str, ...], str] = (), self.policy.read_tool()
        """The tools of the last request, and which of them reads files of the store."""
        self._tools: tuple[object, ...] = ()
        """The tools of the last request."""
        self._parts = KnownParts()
        self._effects = Lock()

    def __reduce__(self) -> NoReturn:
        """Raise `TypeError`: a copy would make its own decisions in the same folder."""
        raise TypeError(
            "a Session cannot be copied or pickled; make a new Session with the same policy, root"
            " and session_id, which goes on where this one was"
        )

    def child(
        self,
        name: str,
        policy: str | os.PathLike[str] | Policy | OffloadPolicy | None = None,
        *,
        share: bool = False,
        **options: SessionOption,
    ) -> Session:
        """Return the session of an agent that works for this one, under the same root.

        Its id is `PARENT.name`, so the same name goes on with the same session after a restart. It
        has a policy of its own, by default that of this session, its own decisions and its own
        files: neither agent reads those of the other with `ReadBackTools`. With `share` the child's
        tools may read this session's files, and those that this session shares. `options` are
        those of `Session` but `root` and `session_id`. By default the child has the clock, the
        shapes and the `counter` that this session was given.

        Raises `InputError` for a name with other characters than letters, digits, `-` and `_`, and
        if this session has a `store` of the caller's and the child is not given one.
        """
        if not _CHILD_NAME.fullmatch(name):
            raise InputError(f"expected a name of letters, digits, - and _, got {name!r}")
        if self._has_own_store and options.get("store") is None:
            raise InputError("this session has a store of its own; give the child one: store=…")
        if self._root is None and options.get("store") is None:
            below = {"offload_root_path": self.policy.store.root}
            options["options"] = below | dict(options.get("options") or {})
        given = {
            "clock": self._clock,
            "shapes": self._shapes,
            "counter": self._given_counter,
            "root": self._root,
            **options,
        }
        session_id = f"{self.session_id}.{name}"
        made = Session(policy or self.policy, session_id=session_id, **given)
        made.shares = (self, *self.shares) if share else ()
        return made

    @property
    def ledger(self) -> Ledger:
        """The decisions so far, also those that this session saved before a restart."""
        return self._run(self._recall()).ledger

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items of the list that `apply` was given last, and the state of each.

        Before them come the items that left the session and are no longer in the list; after a
        restart, and before the first `apply`, there are only these. With `state: none` the tuple is
        empty. Visits every item, but counts no tokens and reads no file.
        """
        memory = self._run(self._recall())
        conversation = memory.known.conversation if memory.known else None
        return context_items(conversation, memory.ledger, str(self.store.root))

    def plan(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Plan:
        """Return what `apply` would do; nothing is written and nothing is decided."""
        request = self._request(system, tools, request)
        self._note(request)
        memory = self._run(self._recall())
        known, _ = self._list_of(messages, memory)
        facts = self._facts(memory, request)
        return known.planner.plan(facts, comes_back=known.comes_back)

    def breakpoints(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> tuple[Breakpoint, ...]:
        """Return the cache breakpoints that `apply` would set; nothing is written or decided.

        Those in the messages name the item that they follow. Empty if the policy does not
        place breakpoints, and for an API without `cache_control`. A compaction that is due is not
        made.
        """
        if not self.policy.places_breakpoints:
            return ()
        request = self._request(system, tools, request)
        self._note(request)
        memory = self._run(self._recall())
        known, _ = self._list_of(messages, memory)
        if not request.may_have_markers(known):
            return ()
        planned = known.planner.plan(self._facts(memory, request))
        placed = _placing(known, memory).placed(
            request, memory.anchors, planned.new, write_ttl=memory.write_ttl
        )
        return placed.breakpoints

    def preview(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Sequence[Message]:
        """Return the list that `apply` would return; nothing is written and nothing is decided.

        A compaction that is due is not made, since it needs a summary. A path in a new placeholder
        is the one that the file would get. Markers are those of `messages`.
        """
        return self._run(self._preview(messages, self._request(system, tools, request)))

    async def preview_async(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Sequence[Message]:
        """Return the list that `preview` returns, with the store read in a thread."""
        return await self._run_async(self._preview(messages, self._request(system, tools, request)))

    def apply(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
        changed: bool = False,
    ) -> Result:
        """Edit a message list before it is sent to a model.

        `messages` is the whole list, as the caller kept it or as an earlier `apply` returned it,
        with new messages at its end. The form may change from turn to turn, and the list may be
        truncated: an earlier removal that would make it invalid is withheld. A message may be the
        object that a provider's SDK returned, such as OpenAI's `response.choices[0].message`; if it
        is edited, a dict that can be sent replaces it. A message that is the same object as in the
        previous turn is not read again, and so is a tool or a block of the system prompt: pass
        `changed=True` if one was changed in place. `request` says what is true of this call, such
        as the model that is called; `system` and `tools` make a `Request` of these two. Raises
        `InputError` for both forms at once.

        Each list begins with the bytes of the one before, up to the first new decision and without
        `cache_control` markers. The markers of the output are those of `messages`, on all that is
        left of them; they may move from turn to turn, also in new message objects with equal
        values. `Result.sources` leads from each message of the output to the one that was given.

        With `breakpoints: auto` in the policy the markers are the policy's, never more than four:
        send `Result.system` and `Result.tools` with the messages then. Of the caller's markers the
        one on the last block stays, and those in the system prompt as far as there is room.

        Raises `MessagesError` for a value that is not a message list, `ShapeError` for a mistake of
        one of the `shapes`, `StoreError` under `on_failure: raise`, and `InvalidResultError`; after
        one of these the session is unchanged.
        After any other exception, such as an interrupt, the next turn reads from the store which
        decisions were made.
        """
        turn = self._apply(messages, self._request(system, tools, request), changed=changed)
        return self._run(self._reporting.turn("apply", turn))

    async def apply_async(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
        changed: bool = False,
    ) -> Result:
        """Edit a message list as `apply` does, with the files written in a thread."""
        turn = self._apply(messages, self._request(system, tools, request), changed=changed)
        return await self._run_async(self._reporting.turn("apply", turn))

    def apply_in_steps(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Steps[Result]:
        """Edit a message list as `apply` does, by a generator that returns the result.

        It stops before each part that may block, such as a write to the disk. A server takes the
        first step in its event loop, and those that are left, if there are any, in a thread.
        """
        if self._reporting.is_traced:
            yield  # a span ends in the thread where it began
        turn = self._apply(messages, self._request(system, tools, request), changed=False)
        return (yield from self._in_steps(self._reporting.turn("apply", turn)))

    def on_tool_result(
        self,
        message: Message,
        *,
        call: Message | None = None,
        sources: Mapping[str, FileLines] | None = None,
    ) -> Result:
        """Run the `arrival` steps on a message with new results, before a model has seen them.

        `call` is the assistant message that made the calls; if it is given, `Result.messages`
        begins with it. Without it the session looks for the call in the list that `apply` was given
        or has returned last, with what was appended to that list since. A call that it finds is
        message 0 of `Result.plan`, and not in `Result.messages`. If there is none, the tools and
        their inputs are unknown: rules for tools do not apply, and a result that was read back from
        the store is offloaded again. `sources` are the files that the results were read
        from, by tool-use id; a placeholder may name them.
        """
        turn = self._apply_on_arrival(message, call, sources)
        return self._run(self._reporting.turn("on_tool_result", turn))

    async def on_tool_result_async(
        self,
        message: Message,
        *,
        call: Message | None = None,
        sources: Mapping[str, FileLines] | None = None,
    ) -> Result:
        """Run the `arrival` steps as `on_tool_result` does, with the files written in a thread."""
        turn = self._apply_on_arrival(message, call, sources)
        return await self._run_async(self._reporting.turn("on_tool_result", turn))

    def observe(self, usage: object) -> None:
        """Learn from the `usage` of the response to the list that `apply` returned last.

        `usage` is the map or the SDK's object of either API, cached tokens included. From then on
        gates and `until` compare the totals that the provider would bill; the size of an item never
        changes. A second call, or a call without `apply` before it, has no effect. Raises
        `UsageError` for a value that is not a usage.
        """
        return self._run(self._observe(usage_of(usage)))

    def observe_in_steps(self, usage: object) -> Steps[None]:
        """Learn from a `usage` as `observe` does, in the steps of `apply_in_steps`."""
        return self._in_steps(self._observe(usage_of(usage)))

    async def observe_async(self, usage: object) -> None:
        """Learn from a `usage` as `observe` does, with the store written in a thread."""
        return await self._run_async(self._observe(usage_of(usage)))

    def take_over(self, correction: Correction) -> None:
        """Take over the correction that an earlier session learnt, such as one of a recording.

        It replaces the correction of this session. With `state: none` it has no effect, like
        `observe`.
        """
        self._run(self._recall()).correction = correction

    def totals(self) -> Totals:
        """Return what the session has sent, spared and stored so far.

        Tokens are those of the calls whose usage was observed. With `state: none` all are 0 but
        `failed_writes`.
        """
        memory = self._run(self._recall())
        made, failed = len(memory.replacements.made), self.writes.failed
        return replace(memory.tallied.totals(memory.ledger, made), failed_writes=failed)

    @property
    def writes(self) -> Writes:
        """How the writes to the store end: `failed` counts them, and `problem` is the last error.

        `problem` is empty while writes succeed; otherwise it says why offloading has stopped.
        """
        return self._notices.writes

    @property
    def tokens_spared(self) -> int:
        """The `tokens_spared` of `totals`, which need not count the decisions for it."""
        return self._run(self._recall()).tallied.spared

    @property
    def stats(self) -> MemoStats:
        """Statistics of the token counter, which the sessions of a process share."""
        return self._counter.stats

    def read(
        self, path: str | os.PathLike[str], *, offset: int = 1, limit: int | None = None
    ) -> str:
        """Return the text of an offloaded item by the path in its placeholder, or by its id.

        With `offset` and `limit` it is that many lines from this line on, counted from 1. Raises
        `StoreError` and `CorruptContentError`.
        """
        text = self.store.read(path)
        if offset <= 1 and limit is None:
            return text
        return lines_of(text, offset, None if limit is None else offset + limit - 1)

    def search(self, query: str, *, ignore_case: bool = False) -> Iterator[FoundLine]:
        """Yield each line of an offloaded text that contains the query, oldest content first.

        Raises `StoreError`, for an empty query too, and for a store that cannot search.
        """
        search = getattr(self.store, "search", None)
        if search is None:
            raise StoreError("this store cannot search", path=str(self.store.root))
        found: Iterator[FoundLine] = search(query, ignore_case=ignore_case)
        return found

    @property
    def _read_tool(self) -> str:
        """The tool that reads files of the store; a tool that opens paths cannot open a URL."""
        tool = self._announced_tool or self._read_tools[1]
        is_remote = bool(getattr(self.store, "is_remote", False))
        return tool if not is_remote or recall_tool(tool) == READ_TOOL else ""

    def _check_door(self) -> None:
        """Raise `InputError` if the agent could not read what is about to leave its context."""
        if getattr(self.store, "is_remote", False) and not self._read_tool:
            raise InputError(
                f"the files of this session go to {self.store.root}, where the agent cannot open"
                f" them, and it has no tool {READ_TOOL!r}: make ReadBackTools(session) and give its"
                " tools to the agent, or serve them with `policyctx mcp` and pass apply(tools=…)"
            )

    def announce_tool(self, name: str) -> None:
        """Let new placeholders in the default wording name this tool, which reads their files."""
        self._announced_tool = name

    def close(self) -> None:
        """Update the store's `index.json`, so that it lists every item.

        If nothing was ever decided, nothing is written. A closed session can be used and closed
        again. A store that the caller passed is closed if it has a `close` method. Raises
        `StoreError` if the index cannot be written; nothing is lost then.
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
        try:
            return run(turn, self._locked_store())
        except BaseException as error:
            self._forget_after(error)
            raise

    def _in_steps(self, turn: Turn[T]) -> Steps[T]:
        try:
            return (yield from in_steps(turn, self._locked_store()))
        except BaseException as error:
            self._forget_after(error)
            raise

    async def _run_async(self, turn: Turn[T]) -> T:
        try:
            return await run_async(turn, self._locked_store())
        except BaseException as error:
            self._forget_after(error)
            raise

    def _locked_store(self) -> LockedStore:
        return LockedStore(self.store, self._effects, self.writes)

    def _forget_after(self, error: BaseException) -> None:
        """Forget the memory of the session when a turn was interrupted.

        The interrupt may have come before or after the journal was written, so the next turn reads
        the journal.
        """
        if not isinstance(error, PolicyctxError):
            self._memory = self._read_before = None

    def _note(self, request: Request) -> None:
        """Remember the model, and the tool that reads offloaded files if there are tools."""
        if request.model != self._known.model:
            self._known = replace(self._known, model=request.model)
        tools = request.tools
        given = tuple(tools) if isinstance(tools, list | tuple) else (tools,) if tools else ()
        if len(given) == len(self._tools) and all(map(is_, given, self._tools)):
            return
        self._tools, names = given, tool_names(tools)
        if names and names != self._read_tools[0]:
            self._read_tools = names, self.policy.read_tool(names)

    def _apply_on_arrival(
        self,
        message: Message,
        call: Message | None,
        sources: Mapping[str, FileLines] | None,
    ) -> Turn[Result]:
        self._check_door()
        memory = yield from self._recall()
        found = memory.call_of(message, self._shapes) if call is None else None
        messages = [one for one in (call, found, message) if one is not None]
        facts = self._facts(memory, sources=sources)
        known = self._new_list(memory, facts=facts)
        known.read(listed(messages))
        warnings = yield from self._notices.of_root(memory.known, memory)
        result = yield from self._decide(known, messages, ("arrival",), facts)
        known.conversation.report()
        if result.plan.to_save and not self._keeps_state:
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

    def _preview(self, messages: Sequence[Message], request: Request) -> Turn[Sequence[Message]]:
        self._note(request)
        memory = yield from self._recall()
        known, seen = self._list_of(messages, memory)
        planned = known.planner.plan(self._facts(memory, request), comes_back=known.comes_back)
        return known.previewed(seen, planned)

    def _apply(
        self,
        messages: Sequence[Message],
        request: Request,
        *,
        changed: bool,
    ) -> Turn[Result]:
        if changed:
            self._tools = ()
            self._parts.forget()
        self._note(request)
        self._check_door()
        memory = yield from self._recall()
        if self._stands_alone and request.reads_once:
            known, seen = self._list_alone(messages, memory, changed=changed), messages
        else:
            known, seen = self._list_of(messages, memory, changed=changed)
        warnings = yield from self._notices.of_root(known, memory)
        facts = self._facts(memory, request)
        result = yield from self._decide(known, seen, BOTH, facts)
        if (replacing := result.plan.compaction) is not None:
            known, result = yield from self._compact(
                known, result, replacing, messages, memory, request=request
            )
        elif memory.replacements.made:
            sources = memory.replacements.sources_of(result.source_ranges)
            result = replace(result, source_ranges=sources)
        if result.plan.to_save or result.compacted:
            yield from self._notices.find_root(() if self._keeps_state else result.files)
        result = replace(result, system=request.system, tools=request.tools)
        if self.policy.places_breakpoints and request.may_have_markers(known):
            result = yield from self._marked(result, known, request, memory)
        warnings = (*warnings, *self._notices.fullness(known, result.plan))
        warnings = (*warnings, *self._notices.in_vain(result.plan))
        warnings = (*warnings, *self._notices.lone_answers(known, memory))
        if known.forgets:
            return (yield from self._with_warnings(result, warnings, memory))
        memory.known = known
        lists = (messages,) if result.messages is messages else (messages, result.messages)
        memory.lists = tuple((one, len(one)) for one in lists)
        known.output = None if result.messages is messages else result.messages
        known.conversation.sent = known.conversation.reading.message_count
        memory.called_at = self._clock()
        memory.sent = known.conversation, facts
        memory.calls += 1
        if self._keeps_state and self.policy.asks_for_time and memory.has_decided:
            # A session that has decided nothing leaves nothing on the disk.
            yield from note(memory.call_record())
        if self._expects_usage and self._keeps_state:
            warnings = (*warnings, *blindness(memory, self.policy, self.session_id))
        return (yield from self._with_warnings(result, warnings, memory))

    def _marked(
        self, result: Result, known: KnownList, request: Request, memory: Memory
    ) -> Turn[Result]:
        """Set the cache breakpoints of the request, and remember where they are."""
        placing = _placing(known, memory)
        placed = placing.placed(request, memory.anchors, write_ttl=memory.write_ttl)
        memory.placing, memory.anchors = placing, placed.sent
        if self._keeps_state:
            yield from note(placed.sent.record())
        system, tools = placed.beside(request)
        return replace(
            result,
            messages=placing.marked(result.messages, placed),
            system=system,
            tools=tools,
            breakpoints=placed.breakpoints,
        )

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
            settings=self.policy.policy,
            summarizer=self._summarizer or _summarizer_of(self.policy),
            reader=self._reader,
            request=request,
            hook=self._before_compaction,
            writes_fail=bool(self.writes.problem),
        )
        made = yield from self._reporting.compaction(replacing, compacting.run())
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
        sources = replacements.sources_of(made.replaced.sources)
        replacements.add(made.replacement, messages, made.replaced)
        yield from self._note_attempt(replacing, made.added, memory)
        after = self._new_list(memory)
        after.read(made.messages)
        marks = after.conversation.marks.at_end(replacing.step)
        after.conversation.marks.adopt(marks)
        for mark in marks:
            yield from note(mark.record())
        return after, replace(
            result,
            messages=made.messages,
            warnings=warnings,
            compaction=made,
            summary_usage=made.stats.summary,
            source_ranges=sources,
        )

    def _note_attempt(
        self, replacing: Replacing, added: Added, memory: Memory, *, refused: bool = False
    ) -> Turn[None]:
        """Remember a compaction that did not help, so that it is not repeated for nothing."""
        memory.attempt = None
        if refused or replacing.left.still_open(added):
            made = len(memory.replacements.made)
            step, digest = replacing.step, self.policy.digest
            memory.attempt = Attempt(step, digest, made, added, refused)
            if self._keeps_state:
                yield from note(memory.attempt.record())

    def _observe(self, usage: Usage) -> Turn[None]:
        memory = yield from self._recall()
        self._reporting.usage(usage)
        memory.observe(usage)
        if self._keeps_state and memory.has_decided:
            yield from note(memory.usage_record())

    def _decide(
        self,
        known: KnownList,
        messages: Sequence[Message],
        moments: tuple[Moment, ...],
        facts: Facts,
    ) -> Turn[Result]:
        """Plan the steps of these moments, and carry the plan out."""
        planned = known.planner.plan(facts, moments=moments, comes_back=known.comes_back)
        return carry_out(
            planned,
            known,
            messages,
            on_invalid=self._on_invalid,
            settings=self.policy.store,
        )

    def _recall(self) -> Turn[Memory]:
        """Return the memory of this session, read from the store if needed.

        With `state: none` it is a new one at every call.
        """
        if not self._keeps_state:
            return Memory.of((), self._shapes)
        if self._memory is None:
            self._memory = Memory.of((yield from Recall().ask()), self._shapes)
        return self._memory

    def _list_alone(
        self, messages: Sequence[Message], memory: Memory, *, changed: bool
    ) -> KnownList:
        """Return the list for a call that stands alone: nothing decided, but read only once."""
        messages, facts, known = listed(messages), self._facts(memory), self._read_before
        is_known = known is not None and not changed and known.conversation.facts == facts
        if known is None or not is_known or not known.continue_with(messages):
            known = KnownList(
                Conversation(self.policy, memory.ledger, facts, memory.judged, shapes=self._shapes),
                forgets=True,
            )
        self._read_before = None  # it is of no use after an error
        known.read(messages)
        self._read_before = known
        return known

    def _list_of(
        self, messages: Sequence[Message], memory: Memory, *, changed: bool = False
    ) -> tuple[KnownList, Sequence[Message]]:
        """Return the known list if `messages` continue it, else a new one, and what it read.

        That is the list with the compactions applied to it, which is `messages` without any.
        """
        if changed:
            memory.replacements.forget()
        messages = memory.replacements.seen(listed(messages))
        known = memory.known
        if known is None or changed or not known.continue_with(messages):
            known = self._read_anew(messages, memory)
        known.read(messages)
        return known, messages

    def _read_anew(self, messages: Sequence[Message], memory: Memory) -> KnownList:
        """Return a new list that knows what earlier turns took out of these messages."""
        earlier = memory.known
        found = None if earlier is None else earlier.gone_from(messages)
        summarised, may_follow = memory.replacements.gone_from(messages, memory.ledger)
        if found is None:
            as_json = self.policy.policy.store.blocks == "json"
            gone = taken_out(messages, memory.ledger, summarised, self._shapes, as_json=as_json)
            found = gone, memory.ledger.has_drops
        gone, is_guess = found
        known = self._new_list(memory, gone | summarised, is_guess=is_guess or may_follow)
        if earlier is not None:
            earlier.conversation.report()
            known.conversation.sent = earlier.sent_of(messages)
        return known

    def _new_list(
        self,
        memory: Memory,
        gone: frozenset[ItemKey] | None = None,
        *,
        is_guess: bool = False,
        facts: Facts | None = None,
    ) -> KnownList:
        return KnownList(
            Conversation(
                self.policy,
                memory.ledger,
                facts or self._facts(memory),
                memory.judged,
                gone=memory.replacements.gone if gone is None else gone,
                written=memory.replacements.written,
                shapes=self._shapes,
            ),
            is_guess=is_guess,
        )

    def _request(
        self, system: object = None, tools: object = None, given: Request | None = None
    ) -> Request:
        """Return the request of a call, with what is known of the session where it says nothing."""
        if given is None:
            given = Request(system, tools)
        elif system is not None or tools is not None:
            raise InputError("a request has its own system and tools: pass them in the Request")
        return given.over(self._known)

    def _facts(
        self,
        memory: Memory,
        request: Request | None = None,
        sources: Mapping[str, FileLines] | None = None,
    ) -> Facts:
        model, called_at = self.policy.model, memory.called_at
        request = request or self._request()
        return Facts(
            session_id=self.session_id,
            root=str(self.store.root),
            counter=self._counter,
            beside=request.beside,
            token_scale=model.token_scale,
            language_model=model.name,
            correction=memory.correction,
            idle=None if called_at is None else max(0.0, self._clock() - called_at),
            cwd=self.cwd,
            read_tool=self._read_tool,
            sources=sources or {},
            attempt=memory.attempt,
            parts=self._parts,
            context_window=request.window,
            called_model=request.model,
            cache_ttl=memory.write_ttl,
        )


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


def _placing(known: KnownList, memory: Memory) -> Placing:
    """Return what places the breakpoints of a list: that of the last turn if it continues."""
    if memory.placing is not None and memory.placing.known is known:
        return memory.placing
    return Placing(known)


def _working_directory() -> str:
    """Return the absolute path of the working directory, empty if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - a path is rendered as text
    except FileNotFoundError:
        return ""


def _new_session_id(form: str) -> str:
    now = datetime.now(UTC)
    values = {
        "date": f"{now:%Y%m%d}",
        "time": f"{now:%H%M%S}",
        "random": "".join(secrets.choice(_RANDOM) for _ in range(6)),
    }
    return parsed_template(form, SESSION_FIELDS).render(values)
