"""`Session`: one agent's context under one policy, from messages to new messages plus files."""

from __future__ import annotations

import os
import re
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NoReturn, Self
from weakref import finalize

from policyctx import lazy
from policyctx.compaction.assembly import FileReader
from policyctx.compaction.summarizers import Summarize, Summarizer
from policyctx.definitions.items import FileLines, Message, SessionOption
from policyctx.errors import InputError
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.shapes.shape import Shape
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Request
from policyctx.planning.ledger import Ledger
from policyctx.planning.plan import Plan
from policyctx.policy.agent_options import AgentOptions, checks_options
from policyctx.policy.models import Policy
from policyctx.store.backend import failing_as
from policyctx.store.opening import new_session_id, session_store
from policyctx.store.read import FoundLine, lines_of
from policyctx.tokens.counter import MemoStats, TokenCounter, counter_for, counter_of
from policyctx.tokens.usage import Correction
from policyctx.turns.breakpoints import Breakpoints
from policyctx.turns.calls import Calls
from policyctx.turns.driving import Driver, finished, in_async, stepwise, verb
from policyctx.turns.effects import BeforeCompaction, SessionStore, Turn
from policyctx.turns.knowledge import Knowledge, moved_to_request
from policyctx.turns.memory import Memory, Totals
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
    the time in seconds. `counter` replaces the policy's `model.tokenizer`: a `TokenCounter`, or a
    function from a text to its number of tokens. `summarizer` replaces the one that the policy
    names, `reader` reads the files that are restored after a compaction, and `before_compaction`
    may decline one; see `BeforeCompaction`. `shapes` read and edit the message objects of a
    framework, before the shapes of the providers' APIs; see `Shape`. `expects_usage` says whether
    to warn when gates compare tokens and no usage is observed. `record` is a file of the owner
    alone, to which each call is appended, as it was sent and with its usage, for `policyctx
    replay`; it may have the field `{session_id}`. A failure to write it only gives a warning.

    Raises `UnknownSummarizerError` and `UnknownTokenizerError` if a name in the policy is neither
    built in nor registered, and `MissingExtraError` if its summarizer needs a package that is not
    installed, unless an option replaces it; `ShapeError` for one of the `shapes` that is none.

    `with Session(…) as session` and `async with` close the session at the end. Do not use one
    session in two threads at once. A session cannot be copied or pickled: make another one with its
    id and root. Policies, plans and results can.
    """

    context_window, called_model, takes_markers, reads_once = moved_to_request()

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
        shapes = shapes if isinstance(shapes, Shapes) else Shapes(shapes)
        self._inherited: dict[str, Any] = {"root": root, "clock": clock, "shapes": shapes}
        self._inherited |= {"counter": counter, "record": record, "store": store}
        if counter is None:
            counter = counter_for(model.tokenizer, language_model=model.name)
        used = counter_of(counter)
        if store is None:
            store = session_store(settings, self.session_id, root=root, clock=clock)
        self._knowledge = Knowledge(
            self.policy, self.session_id, store, used, clock=clock, shapes=shapes, tools=tools
        )
        self._calls = Calls(
            self._knowledge,
            on_invalid=on_invalid,
            summarizer=summarizer,
            reader=reader,
            before_compaction=before_compaction,
            expects_usage=expects_usage,
            record=record,
        )
        if record is not None:
            finalize(self, self._calls.reporting.finish)
        self._request, self._report = self._knowledge.asked, self._calls.reporting.turn
        self.writes = self._calls.writes
        """How writes to the store end: how many `failed`; `problem` is empty while they succeed."""
        self._driver = Driver(store, self.writes, self._knowledge.forget, self._knowledge.as_given)

    def __reduce__(self) -> NoReturn:
        """Raise `TypeError`: a copy would make its own decisions in the same folder."""
        raise TypeError("cannot copy a Session: make a new Session with its root and session_id")

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
        tools may read what those of this session may. `options` are those of `Session` but `root`
        and `session_id`; by default the clock, shapes, `counter` and `record` of this session.

        Raises `InputError` for a name with other characters than letters, digits, `-` and `_`, and
        if this session has a `store` of the caller's and the child is not given one.
        """
        if not _CHILD_NAME.fullmatch(name):
            raise InputError(f"expected a name of letters, digits, - and _, got {name!r}")
        if options.get("store") is None:
            if self._inherited["store"] is not None:
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
        self._driver = Driver(store, self.writes, self._knowledge.forget, self._knowledge.as_given)

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
        return context_items(self._memory(), str(self.store.root))

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

        Those in the messages name the item that they follow. Empty if the policy places none, and
        for an API without `cache_control`, as `why_none` says. A due compaction is not made.
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
        object that a provider's SDK returned, such as OpenAI's `response.choices[0].message`; a
        dict that can be sent replaces it if it is edited. What is the same object as in the turn
        before, also a tool or a block of the system prompt, is not read again: pass `changed=True`
        if it was changed in place. `request` says what is true of this call, such as the model;
        `system` and `tools` make a `Request` of these two.

        Each list begins with the bytes of the one before, up to the first new decision and without
        `cache_control` markers. The markers of the output are those of `messages`, on all that is
        left of them; they may move from turn to turn, also in new message objects with equal
        values. `Result.sources` leads from each message of the output to the one that was given.

        With `breakpoints: auto` in the policy the markers are the policy's, never more than four:
        send `Result.system` and `Result.tools` with the messages then. Of the caller's markers the
        one on the last block stays, and those in the system prompt as far as there is room.

        Raises `MessagesError` for a value that is not a message list, `InputError` for a `request`
        beside `system` or `tools`, `ShapeError` for a mistake of one of the `shapes`, `StoreError`
        under `on_failure: raise`, and `InvalidResultError`; the session is unchanged then. After
        any other exception, such as an interrupt, the next turn reads its decisions anew.
        """
        request = self._request(system, tools, request)
        turn = self._calls.apply(messages, request, changed=changed)
        return self._report("apply", turn, request, changed=changed)

    apply_async = in_async(apply)
    apply_in_steps = stepwise(apply)

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
        return self._calls.on_overflow(messages, error, self._request(system, tools, request))

    on_overflow_async = in_async(on_overflow)

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
        request = self._request(system, tools, request)
        made = self._calls.compact(messages, request, instructions=instructions)
        return self._report("compact", made)

    compact_async = in_async(compact)

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
        message 0 of `Result.plan`, and not in `Result.messages`. If there is none, rules for tools
        do not apply, and a result that was read back from the store is offloaded again. `sources`
        are the files that the results are from, by tool-use id; a placeholder may name them.
        """
        return self._report("on_tool_result", self._calls.arrive(message, call, sources))

    on_tool_result_async = in_async(on_tool_result)

    @verb
    def observe(self, usage: object) -> Turn[int]:
        """Learn from the `usage` of the response to the list that `apply` returned last.

        `usage` is the map or the SDK's object of either API, cached tokens included. From then on
        gates and `until` compare the totals that the provider would bill; the size of an item never
        changes. A second call, a call without `apply` before it, or a usage without tokens of a
        prompt has no effect. Returns the tokens that the policy has spared the prompt, as `totals`
        adds them up. Raises `UsageError` for a value that is not a usage.
        """
        return self._calls.observe(usage)

    observe_async = in_async(observe)
    observe_in_steps = stepwise(observe)

    def take_over(
        self, correction: Correction | None = None, *, write_ttl: int = 0, idle: float | None = None
    ) -> None:
        """Take over what an earlier session knew, such as one of a recording, where it is given.

        The TTL of the last write to the prompt cache and `idle` since the last model call, before
        the first call of this session, are in seconds. With `state: none` it has no effect.
        """
        self._memory().take_over(correction, write_ttl, idle)

    def totals(self) -> Totals:
        """Return what the session has sent, spared and stored so far.

        A call counts when its usage is observed, or with estimated tokens when a later list has its
        reply. With `state: none` all are 0 but `failed_writes` and `unrecorded`.
        """
        return self._calls.totals(self._memory())

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
        return lines_of(self.store.read(path), offset, limit and offset + limit - 1)

    def search(
        self, query: str, *, ignore_case: bool = False, ranked: bool = False
    ) -> Iterator[FoundLine]:
        """Yield each line of an offloaded text that contains the query, oldest content first.

        With `ranked`, the lines of the content that tells most come first, in any case; if no line
        contains the query, those with most of its words. At most 50 are yielded then. Raises
        `StoreError`, for an empty query too, and for a store that cannot search.
        """
        with failing_as("searched", self.store.root):
            from policyctx.store.excerpts import found_lines

        return found_lines(self.store, query, ignore_case=ignore_case, ranked=ranked)

    def announce_tool(self, name: str) -> None:
        """Let new placeholders in the default wording name this tool, which reads their files."""
        self._knowledge.announced_tool = name

    def close(self) -> None:
        """Update the store's `index.json`, so that it lists every item.

        If nothing was ever decided, nothing is written. A closed session can be used again. A store
        that the caller passed is closed if it has a `close` method. If the index cannot be written,
        the log warns and `totals().failed_writes` counts it; `on_failure: raise` raises it.
        """
        self._calls.close()

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
