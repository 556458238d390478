"""`Session`: one agent's context under one policy, from messages to new messages plus files."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NoReturn, Self
from weakref import finalize

from policyctx import lazy
from policyctx.compaction.restoration import FileReader
from policyctx.compaction.summarizers import Summarize, Summarizer
from policyctx.definitions.items import FileLines, Message, SessionOption
from policyctx.errors import InputError, StoreError
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Shape
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Request
from policyctx.planning.ledger import Ledger
from policyctx.planning.plan import Plan
from policyctx.policy.agent_options import AgentOptions, checks_options
from policyctx.policy.models import Policy
from policyctx.store.excerpts import ranked_lines
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import new_session_id, path_of, session_store
from policyctx.store.read import FoundLine, lines_of
from policyctx.tokens.counter import MemoStats, TokenCounter, counter_for, counter_of
from policyctx.tokens.usage import Correction, usage_of
from policyctx.turns.breakpoints import Breakpoints
from policyctx.turns.calls import Calls
from policyctx.turns.driving import Driver, finished, in_async, stepwise, verb
from policyctx.turns.effects import BeforeCompaction, SessionStore, Turn, given_turn
from policyctx.turns.knowledge import Knowledge, moved_to_request
from policyctx.turns.memory import Memory, Totals
from policyctx.turns.recorder import Recorder
from policyctx.turns.result import ContextItem, Result, context_items

_CHILD_NAME = re.compile("[A-Za-z0-9_-]+")


class Session:
    """One conversation of one agent: its policy, its folder, and what was decided so far.

    `policy` is the name of a preset, the path of a file, or a policy that was read before. `root`
    replaces the policy's `store.root`: with `{session_id}` in it the session has a folder of its
    own, without it sessions share the folder. A `store` replaces it and has a root of its own. If
    the files are at a URL, the agent needs the tool `read_offloaded`: without it `apply` and
    `on_tool_result` raise `InputError`.
    `tools` are the tools of the agent, as schemas, functions or objects of an SDK: those that
    `tool` says are ephemeral keep so many results, and placeholders name one that reads files.
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
    says whether to warn when gates compare tokens and no usage is observed. `record` is a file to
    which each call is appended, as it was sent and with its usage, for `policyctx replay`; it may
    have the field `{session_id}`. Only its owner may read it. A failure to write it never fails a
    call: the next turn warns, and `Totals.unrecorded` counts it.

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

    context_window = moved_to_request("context_window", "window")
    called_model = moved_to_request("called_model", "model")
    takes_markers = moved_to_request("takes_markers", "takes_markers")
    reads_once = moved_to_request("reads_once", "reads_once")

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
        record: str | os.PathLike[str] | None = None,
    ) -> None:
        tools = tuple(tools)
        self.policy = OffloadPolicy.of(policy, hints=hints, tools=tools, options=options)
        settings, model = self.policy.store, self.policy.model
        self.session_id = new_session_id(settings.session_id) if session_id is None else session_id
        self.shares: tuple[Session, ...] = ()
        """The sessions whose files the model of this one may read too; see `child`."""
        if counter is None:
            used = counter_for(model.tokenizer, language_model=model.name)
        else:
            used = counter_of(counter)
        shapes = shapes if isinstance(shapes, Shapes) else Shapes(shapes)
        inherited = {"root": root, "clock": clock, "shapes": shapes, "counter": counter}
        inherited["record"] = record
        self._inherited: dict[str, Any] = inherited
        """The options of a child that is given none of these."""
        self._has_own_store = store is not None
        if store is None:
            store = session_store(
                settings, self.session_id, root=root, timeout=settings.timeout.seconds, clock=clock
            )
        self._knowledge = Knowledge(
            self.policy,
            self.session_id,
            store,
            counter=used,
            clock=clock,
            shapes=shapes,
            tools=tools,
        )
        self._recorder: Recorder | None = None
        if record is not None:
            path = path_of("record", record, self.session_id)
            self._recorder = Recorder(path, self.session_id, shapes, clock)
            finalize(self, self._recorder.finish)
        self._calls = Calls(
            self._knowledge,
            on_invalid=on_invalid,
            summarizer=summarizer,
            reader=reader,
            before_compaction=before_compaction,
            expects_usage=expects_usage,
        )
        self.writes = self._calls.writes
        """How the writes to the store end: `failed` counts them, and `problem` is the last error.

        `problem` is empty while writes succeed; otherwise it says why offloading has stopped.
        """
        self._driver = Driver(store, self.writes, self._knowledge.forget)

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
        shapes, the `counter` and the `record` that this session was given.

        Raises `InputError` for a name with other characters than letters, digits, `-` and `_`, and
        if this session has a `store` of the caller's and the child is not given one.
        """
        if not _CHILD_NAME.fullmatch(name):
            raise InputError(f"expected a name of letters, digits, - and _, got {name!r}")
        if options.get("store") is None:
            if self._has_own_store:
                raise InputError("this session has a store of its own; give the child one: store=…")
            if self._inherited["root"] is None:
                below = {"offload_root_path": self.policy.store.root}
                options["options"] = below | dict(options.get("options") or {})
        session_id = f"{self.session_id}.{name}"
        made = Session(policy or self.policy, session_id=session_id, **self._inherited | options)
        made.shares = (self, *self.shares) if share else ()
        return made

    @property
    def store(self) -> SessionStore:
        """Where the files and the journal of the session are."""
        return self._knowledge.store

    @store.setter
    def store(self, store: SessionStore) -> None:
        text = "setting Session.store is deprecated: make the session with Session(…, store=store)"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        self._knowledge.store = store
        self._driver = Driver(store, self.writes, self._knowledge.forget)

    @property
    def cwd(self) -> str:
        """The folder from which placeholders name files in `{cwd_path}`; empty if unknown."""
        return self._knowledge.cwd

    @cwd.setter
    def cwd(self, folder: str) -> None:
        self._knowledge.cwd = folder

    @property
    def ledger(self) -> Ledger:
        """The decisions so far, also those that this session saved before a restart."""
        return self._memory().ledger

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items of the list that `apply` was given last, and the state of each.

        Before them come the items that left the session and are no longer in the list; after a
        restart, and before the first `apply`, there are only these. With `state: none` the tuple is
        empty. Visits every item, but counts no tokens and reads no file.
        """
        memory = self._memory()
        conversation = memory.known.conversation if memory.known else None
        return context_items(conversation, memory.ledger, str(self.store.root))

    @verb
    def plan(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Turn[Plan]:
        """Return what `apply` would do; nothing is written and nothing is decided."""
        return self._calls.plan(messages, self._request(system, tools, request))

    @verb
    def breakpoints(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Turn[Breakpoints]:
        """Return the cache breakpoints that `apply` would set; nothing is written or decided.

        Those in the messages name the item that they follow. Empty if the policy does not
        place breakpoints, and for an API without `cache_control`: `why_none` then says why. A
        compaction that is due is not made.
        """
        return self._calls.breakpoints(messages, self._request(system, tools, request))

    @verb
    def preview(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Turn[Sequence[Message]]:
        """Return the list that `apply` would return; nothing is written and nothing is decided.

        A compaction that is due is not made, since it needs a summary. A path in a new placeholder
        is the one that the file would get. Markers are those of `messages`.
        """
        return self._calls.preview(messages, self._request(system, tools, request))

    preview_async = in_async(preview)
    """Return the list that `preview` returns, with the store read in a thread."""

    @verb
    def apply(
        self,
        messages: Sequence[Message],
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
        changed: bool = False,
    ) -> Turn[Result]:
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
        request = self._request(system, tools, request)
        turn = self._calls.apply(messages, request, changed=changed)
        if self._recorder is not None:
            model = request.model or self.policy.model.name
            turn = self._recorder.turn(turn, replace(request, model=model), changed=changed)
        return self._calls.reporting.turn("apply", turn)

    apply_async = in_async(apply)
    """Edit a message list as `apply` does, with the files written in a thread."""

    apply_in_steps = stepwise(apply)
    """Edit a message list as `apply` does, by a generator that returns the result.

    It stops before each part that may block, such as a write to the disk. A server takes the first
    step in its event loop, and those that are left, if there are any, in a thread.
    """

    @verb
    def on_overflow(
        self,
        messages: Sequence[Message],
        error: object,
        *,
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Turn[Result | None]:
        """Edit a list again after the provider has refused it as too long.

        `error` is what the SDK raised, or the body of the response; the other arguments are those
        of the `apply` before. The steps with `on: overflow` run. Send the result once, and let a
        second error pass. Returns None if the policy has no such step, if the error is another
        one, and if the steps took nothing. The size that was refused is the window of the called
        model from then on, in this `Session` object.
        """
        return self._again(messages, error, self._request(system, tools, request))

    def _again(
        self, messages: Sequence[Message], error: object, request: Request
    ) -> Turn[Result | None]:
        result = yield from self._calls.on_overflow(messages, error, request)
        if result is None or self._recorder is None:
            return result
        sent = replace(request, model=request.model or self.policy.model.name)
        return (yield from self._recorder.turn(given_turn(result), sent, changed=False))

    on_overflow_async = in_async(on_overflow)
    """Edit a list again as `on_overflow` does, without blocking the event loop."""

    @verb
    def compact(
        self,
        messages: Sequence[Message],
        *,
        instructions: str = "",
        system: object = None,
        tools: object = None,
        request: Request | None = None,
    ) -> Turn[Result]:
        """Replace the history by a summary now, as the `compact` step of the policy would.

        Its gates and `min_new` do not count, and no other step runs. A policy without such a step
        has the settings of its `compaction`. `instructions` are one more rule in the prompt of a
        model, such as "Keep the names of all tables."; a summary that no model makes cannot follow
        them, and a warning says so. The other arguments are those of `apply`. `Result.compaction`
        is None if no summary was made, and `warnings` says why. The next `apply` replaces the same
        history in a list that the caller kept, so the summary is made once.
        """
        made = self._calls.compact(
            messages, self._request(system, tools, request), instructions=instructions
        )
        return self._calls.reporting.turn("compact", made)

    compact_async = in_async(compact)
    """Replace the history as `compact` does, without blocking the event loop."""

    @verb
    def on_tool_result(
        self,
        message: Message,
        *,
        call: Message | None = None,
        sources: Mapping[str, FileLines] | None = None,
    ) -> Turn[Result]:
        """Run the `arrival` steps on a message with new results, before a model has seen them.

        `call` is the assistant message that made the calls; if it is given, `Result.messages`
        begins with it. Without it the session looks for the call in the list that `apply` was given
        or has returned last, with what was appended to that list since. A call that it finds is
        message 0 of `Result.plan`, and not in `Result.messages`. If there is none, the tools and
        their inputs are unknown: rules for tools do not apply, and a result that was read back from
        the store is offloaded again. `sources` are the files that the results were read
        from, by tool-use id; a placeholder may name them.
        """
        turn = self._calls.arrive(message, call, sources)
        return self._calls.reporting.turn("on_tool_result", turn)

    on_tool_result_async = in_async(on_tool_result)
    """Run the `arrival` steps as `on_tool_result` does, with the files written in a thread."""

    @verb
    def observe(self, usage: object) -> Turn[None]:
        """Learn from the `usage` of the response to the list that `apply` returned last.

        `usage` is the map or the SDK's object of either API, cached tokens included. From then on
        gates and `until` compare the totals that the provider would bill; the size of an item never
        changes. A second call, a call without `apply` before it, or a usage without tokens of a
        prompt has no effect. Raises `UsageError` for a value that is not a usage.
        """
        usage = usage_of(usage)
        turn = self._calls.observe(usage)
        if self._recorder is None or not usage.prompt:
            return turn
        return self._recorder.billed(turn, usage)

    observe_async = in_async(observe)
    """Learn from a `usage` as `observe` does, with the store written in a thread."""

    observe_in_steps = stepwise(observe)
    """Learn from a `usage` as `observe` does, in the steps of `apply_in_steps`."""

    def take_over(self, correction: Correction, *, write_ttl: int | None = None) -> None:
        """Take over what an earlier session learnt from usage, such as one of a recording.

        Its correction replaces that of this session, and if given, so does the TTL of its last
        write to the prompt cache, in seconds. With `state: none` it has no effect, like `observe`.
        """
        memory = self._memory()
        memory.correction, memory.write_ttl = correction, write_ttl or memory.write_ttl

    def totals(self) -> Totals:
        """Return what the session has sent, spared and stored so far.

        A call counts when its usage is observed, or when a later list has its reply; its tokens
        are then estimated. With `state: none` all are 0 but `failed_writes` and `unrecorded`.
        `print(session.totals())` shows them in a line.
        """
        memory = self._memory()
        found = memory.totals()
        unrecorded = self._recorder.failed if self._recorder else 0
        return replace(found, failed_writes=self.writes.failed, unrecorded=unrecorded)

    @property
    def spared_last(self) -> int:
        """What the last `observe` has added to the `tokens_spared` of `totals`."""
        return self._memory().tallied.spared_last

    @property
    def stats(self) -> MemoStats:
        """Statistics of the token counter, which the sessions of a process share."""
        return self._knowledge.counter.stats

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

    def search(
        self, query: str, *, ignore_case: bool = False, ranked: bool = False
    ) -> Iterator[FoundLine]:
        """Yield each line of an offloaded text that contains the query, oldest content first.

        With `ranked`, the lines of the content that tells most come first, in any case; if no line
        contains the query, those with most of its words. At most 50 are yielded then.

        Raises `StoreError`, for an empty query too, and for a store that cannot search.
        """
        if ranked and isinstance(self.store, ContextFileSystem):
            return iter(ranked_lines(self.store, query))
        search = getattr(self.store, "search", None)
        if search is None:
            raise StoreError("this store cannot search", path=str(self.store.root))
        found: Iterator[FoundLine] = search(query, ignore_case=ignore_case)
        return found

    def announce_tool(self, name: str) -> None:
        """Let new placeholders in the default wording name this tool, which reads their files."""
        self._knowledge.announced_tool = name

    def close(self) -> None:
        """Update the store's `index.json`, so that it lists every item.

        If nothing was ever decided, nothing is written. A closed session can be used and closed
        again. A store that the caller passed is closed if it has a `close` method. If the index
        cannot be written, nothing is lost: the log has a warning, and `totals().failed_writes`
        counts it. Raises `StoreError` then under `on_failure: raise`.
        """
        if self._recorder is not None:
            self._recorder.finish()
        close = getattr(self.store, "close", None)
        if close is None:
            return
        try:
            with self.writes.watched(completes=False):
                close()
        except StoreError:
            if self.policy.policy.store.on_failure == "raise":
                raise
            for warning in self.writes.news():
                lazy.logging.getLogger("policyctx").warning(
                    "session %s: %s", self.session_id, warning
                )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await lazy.asyncio.to_thread(self.close)

    def _memory(self) -> Memory:
        return finished(self._driver.in_steps(self._knowledge.recall()))

    def _request(
        self, system: object = None, tools: object = None, given: Request | None = None
    ) -> Request:
        """Return the request of a call, with what is known of the session where it says nothing."""
        if given is None:
            given = Request(system, tools)
        elif system is not None or tools is not None:
            raise InputError("a request has its own system and tools: pass them in the Request")
        return given.over(self._knowledge.request)
