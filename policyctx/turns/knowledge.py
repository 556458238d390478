"""`Knowledge`: what a session knows of its conversation: its memory, the lists it has read, facts.

A list that continues the one before is not read again. Facts are what a plan may know of the
outside: the model that is called, the time since the last call, the tool that reads files.
"""

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from operator import is_
from typing import Any

from policyctx.definitions.items import READ_TOOL, FileLines, Message, recall_tool
from policyctx.definitions.names import names_of_tools
from policyctx.errors import InputError, MessagesError
from policyctx.messages.door import Door, Entered
from policyctx.messages.reading import listed
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.sources import indices
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.conversation import Conversation
from policyctx.planning.facts import Facts, KnownParts, Request
from policyctx.planning.ledger import ItemKey
from policyctx.planning.reapplying import taken_out
from policyctx.tokens.counter import TokenCounter
from policyctx.tokens.refusals import Refusal
from policyctx.tokens.usage import Usage
from policyctx.turns.effects import Recall, SessionStore, Turn
from policyctx.turns.known_list import KnownList
from policyctx.turns.memory import Memory

# The attributes of a session that were moved to fields of `Request`.
_MOVED = {"context_window": "window", "called_model": "model"}
_MOVED |= {name: name for name in ("takes_markers", "reads_once")}


class Knowledge:
    """What the session of a policy and a store knows."""

    def __init__(
        self,
        policy: OffloadPolicy,
        session_id: str,
        store: SessionStore,
        counter: TokenCounter,
        *,
        clock: Callable[[], float],
        shapes: Shapes,
        tools: Iterable[object] = (),
    ) -> None:
        self.policy, self.session_id, self.store = policy, session_id, store
        self.counter, self.clock, self.shapes = counter, clock, shapes
        redact = policy.policy.redact
        self.door = Door(
            {name: secret.pattern for name, secret in redact.items()},
            policy.policy.on_broken,
            shapes,
            keep=[name for name, secret in redact.items() if secret.keep],
        )
        self.cwd = _working_directory()
        self.request = Request()
        """What requests do not say: the model of the last one that named it."""
        self.announced_tool = ""
        """The tool that reads offloaded files, if the caller has named it."""
        self.keeps_state = policy.store.keeps_state
        self.stands_alone = not (
            self.keeps_state or policy.places_breakpoints or policy.compacting_step is not None
        )
        """Whether nothing of a call matters to the next one."""
        self.refused: dict[str | None, int] = {}
        """By model, the least tokens of a prompt that it refused as too long."""
        self.memory: Memory | None = None
        self._entered: Entered | None = None
        """The list of this call, if it entered."""
        self._read_before: KnownList | None = None
        """The list that the last call read, if each call stands alone."""
        self._own_tools = (*names_of_tools(tools),)
        self._read_tools = self._own_tools, policy.read_tool(self._own_tools)
        """The tools of the last request that had any, and which tool reads files of the store."""
        self._tools: tuple[object, ...] = ()
        """The tools of the last request."""
        self._parts = KnownParts()

    def recall(self) -> Turn[Memory]:
        """Return the memory of the session, read from the store if needed.

        With `state: none` it is a new one at every call.
        """
        self._entered = None
        if not self.keeps_state:
            return Memory.of((), self.shapes)
        if self.memory is None:
            self.memory = Memory.of((yield from Recall().ask()), self.shapes)
        return self.memory

    def note_refusal(
        self, refusal: Refusal, counted: int, model: str | None, memory: Memory
    ) -> str:
        """Learn from a prompt of so many counted tokens that was refused; return what to say.

        What was refused is the window of the model from here on, at most what the provider named.
        """
        tokens, size = memory.correction.corrected(counted), refusal.size
        # A bound below what is known of the prompt says nothing of its size.
        if size is not None and (refusal.is_exact or size > tokens):
            memory.correction = memory.correction.observed(
                counted, Usage(size), is_certain=refusal.is_exact
            )
            tokens = memory.correction.corrected(counted)
        limit = tokens if refusal.limit is None else min(tokens, refusal.limit)
        self.refused[model] = limit = min(limit, self.refused.get(model, limit))
        what = f"the model {model}" if model else "the model"
        return (
            f"{what} refused a prompt of about {tokens:,} tokens as too long; from here on its"
            f" window counts as {limit:,} tokens"
        )

    def forget(self) -> None:
        """Forget the memory when a turn was interrupted: the next one reads the journal.

        The interrupt may have come before or after the journal was written.
        """
        self.memory = self._read_before = None

    def note(self, request: Request, *, changed: bool = False) -> None:
        """Remember the model, and the tool that reads offloaded files if there are tools.

        With `changed` a part of the request may be another one in the same object.
        """
        if changed:
            self._tools = ()
            self._parts.forget()
        if request.model != self.request.model:
            self.request = replace(self.request, model=request.model)
        tools = request.tools
        given = tuple(tools) if isinstance(tools, list | tuple) else (tools,) if tools else ()
        if len(given) == len(self._tools) and all(map(is_, given, self._tools)):
            return
        self._tools, names = given, (*names_of_tools(given),)
        if names and names != self._read_tools[0]:
            self._read_tools = names, self.policy.read_tool((*names, *self._own_tools))

    @property
    def read_tool(self) -> str:
        """The tool that reads files of the store; a tool that opens paths cannot open a URL."""
        tool = self.announced_tool or self._read_tools[1]
        is_remote = bool(getattr(self.store, "is_remote", False))
        return tool if not is_remote or recall_tool(tool) == READ_TOOL else ""

    def check_door(self) -> None:
        """Raise `InputError` if the agent could not read what is about to leave its context."""
        if getattr(self.store, "is_remote", False) and not self.read_tool:
            raise InputError(
                f"the files of this session go to {self.store.root}, where the agent cannot open"
                f" them, and it has no tool {READ_TOOL!r}: make ReadBackTools(session) and give its"
                " tools to the agent, or serve them with `policyctx mcp` and pass apply(tools=…)"
            )

    def facts(
        self,
        memory: Memory,
        request: Request | None = None,
        sources: Mapping[str, FileLines] | None = None,
    ) -> Facts:
        """Return what a plan for this request may know."""
        model, called_at = self.policy.model, memory.called_at
        request = request or self.request
        return Facts(
            session_id=self.session_id,
            root=str(self.store.root),
            counter=self.counter,
            beside=request.beside,
            token_scale=model.token_scale,
            language_model=model.name,
            correction=memory.correction,
            # 0 also where no time is known (NaN): no time passes there.
            idle=memory.paused if called_at is None else max(0.0, self.clock() - called_at),
            cwd=self.cwd,
            read_tool=self.read_tool,
            sources=sources or {},
            attempt=memory.attempt,
            parts=self._parts,
            context_window=request.window,
            refused=self.refused.get(request.model),
            called_model=request.model,
            cache_ttl=memory.write_ttl,
        )

    def asked(
        self, system: object = None, tools: object = None, given: Request | None = None
    ) -> Request:
        """Return the request of a call, with what is known of the session where it says nothing."""
        if given is None:
            given = Request(system, tools)
        elif system is not None or tools is not None:
            raise InputError("a request has its own system and tools: pass them in the Request")
        known, takes_markers = self.request, given.takes_markers
        return replace(
            given,
            model=given.model or known.model,
            window=known.window if given.window is None else given.window,
            takes_markers=known.takes_markers if takes_markers is None else takes_markers,
            reads_once=given.reads_once and known.reads_once,
        )

    def entered(self, messages: Sequence[Message], *, changed: bool = False) -> Entered:
        """Return the list that is read: the given one unless the policy may change what enters."""
        self._entered = self.door.let_in(messages, changed=changed)
        return self._entered

    def given_place(self, message: int) -> int:
        """Return the place that a message of the list that is read has in the one that was given.

        One that the session wrote has the place in the list that is read.
        """
        found: int | None = message
        if self.memory is not None and self.memory.replaces:
            read = range(message, message + 1)
            found = next(iter(indices(self.memory.replacements.sources_of((read,)))), None)
        if found is not None and self._entered is not None and self._entered.places:
            found = self._entered.places[found]
        return message if found is None else found

    def as_given(self, error: MessagesError) -> MessagesError:
        """Return an error with the place in the list that was given.

        An error of the door has that place already.
        """
        if error.index is None or self._entered is None:
            return error
        return error.at(self.given_place(error.index))

    def list_alone(
        self, messages: Sequence[Message], memory: Memory, *, changed: bool
    ) -> KnownList:
        """Return the list for a call that stands alone: nothing decided, but read only once."""
        messages, facts, known = listed(messages), self.facts(memory), self._read_before
        is_known = known is not None and not changed and known.conversation.facts == facts
        self._read_before = None  # it is of no use after an error
        if known is None or not is_known or not known.continue_with(messages):
            known = KnownList(
                Conversation(self.policy, memory.ledger, facts, memory.judged, shapes=self.shapes),
                forgets=True,
            )
            known.read(messages)
        self._read_before = known
        return known

    def list_of(
        self,
        messages: Sequence[Message],
        memory: Memory,
        *,
        changed: bool = False,
        alike: list[Message] | None = None,
    ) -> KnownList:
        """Return the known list if `messages` continue it, else a new one.

        It reads the list with the compactions applied to it, which is `messages` without any.
        `alike` are equal messages, which may be the objects of the list before; see `Entered`.
        """
        if changed:
            memory.replacements.forget()
        messages = messages if type(messages) is list else listed(messages)
        seen, known, is_own = messages, memory.known, False
        if memory.replaces:
            seen = memory.replacements.seen(messages, memory.ledger, self.policy)
            is_own = seen is not messages and memory.replacements.is_anew
        if (
            known is None
            or changed
            or is_own
            or not known.continue_with(seen, alike if seen is messages else None)
        ):
            return self._read_anew(seen, memory, is_own=is_own)
        return known

    def _read_anew(self, messages: Sequence[Message], memory: Memory, *, is_own: bool) -> KnownList:
        """Return a new list that knows what earlier turns took out of these messages.

        With `is_own` the compactions were applied to it from the start: what was dropped since may
        be in it again, as it is for a restarted session.
        """
        earlier = memory.known
        form = None
        if not is_own and earlier is not None:
            form = earlier.form_of(messages)
        elif not is_own and memory.seen is not None:
            form = memory.seen.form_of(messages, memory.ledger, self.shapes)
        found = form and form.lacks(memory.ledger, self.shapes)
        summarised, may_follow = memory.replacements.gone_from(messages, memory.ledger)
        if found is None:
            is_unknown = not is_own and earlier is None and memory.seen is None
            gone = taken_out(
                messages, memory.ledger, self.policy, summarised, self.shapes, is_unknown=is_unknown
            )
            # What has an id is the dropped item itself, whenever it comes.
            is_sure = is_unknown and any(key.tool_use_id is None for key in gone)
            found = gone, bool(memory.ledger.drops) and not is_sure
        gone, is_guess = found
        known = self.new_list(memory, gone | summarised, is_guess=is_guess or may_follow)
        if earlier is not None:
            earlier.conversation.arrivals.report()
            known.conversation.sent = earlier.sent_of(messages)
        known.read(messages)
        if earlier is None and memory.has_begun:
            known.conversation.sent = known.conversation.reading.before_reply
        return known

    def new_list(
        self,
        memory: Memory,
        gone: frozenset[ItemKey] | None = None,
        *,
        is_guess: bool = False,
        facts: Facts | None = None,
        arrives: bool = False,
    ) -> KnownList:
        """Return a list of which nothing was read yet."""
        return KnownList(
            Conversation(
                self.policy,
                memory.ledger,
                facts or self.facts(memory),
                memory.judged,
                gone=memory.replacements.gone if gone is None else gone,
                written=memory.replacements.written,
                shapes=self.shapes,
            ),
            is_guess=is_guess,
            arrives=arrives,
        )


def _working_directory() -> str:
    """Return the absolute path of the working directory, empty if it was removed."""
    try:
        return os.getcwd()  # noqa: PTH109 - a path is rendered as text
    except FileNotFoundError:
        return ""


def moved_to_request() -> tuple[Any, ...]:
    """Return the attributes that a session had before they were fields of `Request`.

    Their use warns. What is set counts for each later request that says nothing else.
    """
    return tuple(_moved(name, field) for name, field in _MOVED.items())


def _moved(name: str, field: str) -> property:
    text = f"Session.{name} is deprecated: pass request=Request({field}=…)"

    def get(self: Any) -> Any:  # noqa: ANN401 - a session, which is not known here
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return getattr(self._knowledge.request, field)

    def put(self: Any, value: object) -> None:  # noqa: ANN401
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        self._knowledge.request = replace(self._knowledge.request, **{field: value})

    return property(get, put)
