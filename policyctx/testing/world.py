"""`World`: what a scenario has said so far, and what came of it."""

import copy
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir, contextmanager, suppress
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from policyctx.definitions.actions import BY_STATE
from policyctx.definitions.items import Path as ItemPath
from policyctx.definitions.items import PlainValue
from policyctx.errors import PolicyctxError, PolicyError, present
from policyctx.messages.markers import unmarked
from policyctx.messages.shapes.blocks import at
from policyctx.paths import File
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.plan import Plan
from policyctx.policy.sources import PolicySource
from policyctx.policy.tools import tool
from policyctx.session import Session
from policyctx.store.content import WriterStore
from policyctx.store.filesystem import ContextFileSystem
from policyctx.testing import faults
from policyctx.testing.contents import Message, MessageBuilder, Pieces, parts_of
from policyctx.testing.failures import OutcomeError, WordingError
from policyctx.testing.policies import compiled
from policyctx.testing.selecting import Fate, Returned, Selection, TurnEvent, selection
from policyctx.turns.result import Result

_NOTHING_YET = "nothing has happened yet; a When comes before a Then"
# The store's own files, which hold no item.
_STATE_FOLDER, _INDEX = ".policyctx", "index.json"


class World:
    """The state of one scenario: the policy, the context, and each event with its outcome.

    `root` is the folder for offloaded content, `folders` are where files that a scenario names
    may be. `observe` is given every event together with its policy and what that was read from.
    """

    def __init__(
        self,
        root: Path,
        *,
        folders: Sequence[Path],
        observe: Callable[[TurnEvent, OffloadPolicy, PolicySource], object] = lambda *_: None,
    ) -> None:
        self.root = root
        self.home = root.parent
        self.work = root.parent / "work"
        """The agent's working directory."""
        self.summarizer: faults.ScriptedSummarizer | None = None
        """What the scenario says of summaries; None for the policy's own summarizer."""
        self.folders = tuple(folders)
        self.session_id: str | None = "session"
        """None until the session has named itself."""
        self.variables: dict[str, str | None] = {}
        """Those of the environment; None for one that is taken away."""
        self.options: Mapping[str, Any] = {}
        """Those of the session."""
        self.has_own_root = False
        """Whether the policy says where to save, below the scenario's own home directory."""
        self.has_writer = False
        """Whether the session saves through a writer of the caller's."""
        self.system: str | None = None
        self.conversation = MessageBuilder()
        self.messages: Sequence[Message] = []
        """What the caller holds: the next list that the policy is given."""
        self.passes_edited_back = False
        self.began = time.time()
        self.seconds_passed = 0.0
        self.host_summary: str | None = None
        """The summary of a compaction that the host made by itself."""
        self.sent_again = False
        self.waits: list[float] = []
        """The seconds of each pause that the last event made."""
        self.refusal: int | None = None
        """The number of the error with which writing fails, such as `errno.ENOSPC`."""
        self.paths_of_writer: list[str] = []
        """What a function wrote with the writer of a step, in order."""
        self.turns: list[TurnEvent] = []
        self.error_is_known = False
        self._observe = observe
        self._source: PolicySource | None = None
        self._tools: dict[str, object] = {}
        self._session: Session | None = None
        self._files_before: frozenset[str] | None = None
        self.seen_files: set[str] = set()

    def use_policy(self, source: PolicySource) -> None:
        """Run under this policy from the next event on; the session goes on in its folder."""
        self._source = source
        self._session = None
        with suppress(PolicyError):  # raised where the policy is used
            self.conversation.measures_json = self.policy.policy.store.blocks == "json"

    def add_tool(self, name: str, ephemeral: int) -> None:
        """Give the session a tool that says how many of its results stay."""

        def function() -> None:
            """Return a result."""

        function.__name__ = name
        self._tools[name] = tool(ephemeral=ephemeral)(function)
        self._session = None

    def script_summarizer(
        self, kind: type[faults.ScriptedSummarizer] = faults.ScriptedSummarizer
    ) -> faults.ScriptedSummarizer:
        """Have a summarizer of the scenario's own; return it."""
        if not isinstance(self.summarizer, kind):
            self.summarizer = kind()
            self._session = None
        return self.summarizer

    def restart(self) -> None:
        """Forget what only the process knew; what is on disk stays, for a new session."""
        self._session = None

    def add(self, messages: Sequence[Message]) -> None:
        """Put messages at the end of the context; nothing is decided yet."""
        self.messages = [*self.messages, *messages]

    @property
    def policy(self) -> OffloadPolicy:
        """The compiled policy; raises `PolicyError`."""
        if self._source is None:
            raise WordingError('no policy is given; write `Given the policy "coding-agent"`')
        given = {**os.environ, **self.variables}
        known = {name: value for name, value in given.items() if value is not None}
        found = compiled(self._source, known)
        return OffloadPolicy.of(found, tools=self._tools.values(), options=self.options)

    @property
    def session(self) -> Session:
        """The session, made when it is first needed; raises `PolicyError`."""
        if self._session is None:
            self._session = self._new_session()
            self.session_id = self._session.session_id
        return self._session

    @property
    def store(self) -> ContextFileSystem:
        """The session's folder."""
        store = self.session.store
        assert isinstance(store, ContextFileSystem)  # noqa: S101 - no other is ever given
        return store

    def _new_session(self) -> Session:
        make = partial(
            Session,
            self.policy,
            session_id=self.session_id,
            clock=self._now,
            summarizer=self.summarizer,
            reader=faults.FilesBelow(self.work),
        )
        if not self.has_own_root:
            if not self.has_writer:
                return make(root=self.root)
            writer = faults.DiskWriter(self.paths_of_writer)
            conflict = self.policy.policy.store.on_conflict
            return make(store=WriterStore(self.root, writer, on_conflict=conflict))
        with chdir(self.home), faults.home_directory(self.home):
            made = make()
        self.root = Path(made.store.root)
        return made

    def _now(self) -> float:
        return time.time() + self.seconds_passed

    def apply(self) -> None:
        """Let the policy edit the context, as before a model call."""
        self._turn("model call", lambda s, given: s.apply(given, system=self.system))

    def plan(self) -> None:
        """Have the policy plan and do nothing."""
        self._turn("plan", lambda s, given: s.plan(given, system=self.system))

    def refuse(self, error: str) -> None:
        """Have the provider refuse the newest prompt as too long."""
        again: list[Result | None] = []

        def act(session: Session, given: Sequence[Message]) -> Result | Plan:
            again.append(session.on_overflow(given, error, system=self.system))
            return again[0] or session.plan(given, system=self.system)

        self._turn("model call", act)
        self.sent_again = again[:1] != [None]

    def compact(self, instructions: str) -> None:
        """Have the history replaced by a summary now."""
        compact = partial(Session.compact, instructions=instructions, system=self.system)
        self._turn("compaction", compact)

    def arrive(self, calls: Sequence[Message], answers: Sequence[Message]) -> None:
        """Report new results before a model has seen them, then put them into the context."""
        # Each item of the Responses API makes one call.
        makers = calls if len(calls) == len(answers) else calls[:1]
        for message, call in zip_longest(answers, makers):
            turn = self._turn("arrival", _arrive, [message] if call is None else [call, message])
            self.add(turn.messages)

    def continue_for(self, turns: int, pieces: Pieces | None) -> None:
        """Let whole turns pass: a prompt, the results, an answer; the policy runs in between."""
        for _ in range(turns):
            self.add([self.conversation.message("user", "go on")])
            self.apply()
            if pieces is not None:
                self.add(self.conversation.messages(pieces))
                self.apply()
            self.add([self.conversation.message("assistant", "done")])

    def _turn(
        self,
        kind: Literal["arrival", "model call", "plan", "compaction"],
        act: Callable[[Session, Sequence[Message]], Result | Plan],
        arrived: Sequence[Message] = (),
    ) -> TurnEvent:
        """Carry out one event: the one place where policies run, and every plan is seen."""
        given = arrived or self.messages
        before = copy.deepcopy(given)
        try:
            with self.event():
                done = act(self.session, given)
        except PolicyctxError as error:
            turn = TurnEvent(kind, given, before, error=error)
            self.error_is_known = False
        else:
            result = done if isinstance(done, Result) else None
            plan = done.plan if isinstance(done, Result) else done
            turn = TurnEvent(kind, given, before, plan, result)
        self.turns.append(turn)
        if self._session is not None and self._source is not None:
            self._observe(turn, self._session.policy, self._source)
        if self.passes_edited_back and kind in {"model call", "compaction"}:
            self.messages = turn.messages
        return turn

    @contextmanager
    def event(self) -> Iterator[None]:
        """Let something happen, on the scenario's disk and by its clock."""
        self.require_no_error()
        self.begin()
        self.waits = []
        self.tries_before = 0 if self.summarizer is None else len(self.summarizer.requests)
        with ExitStack() as stack:
            if self.refusal is not None:
                stack.enter_context(faults.refusing_writes(self.root.absolute(), self.refusal))
            stack.enter_context(faults.passing_time(self._let_pass))
            yield

    def begin(self) -> None:
        """Note that something happens, and which files were there before anything did."""
        if self._files_before is None:
            self._files_before = frozenset(self.all_files())
        self.seen_files.update(self.all_written)

    def _let_pass(self, seconds: float) -> None:
        self.seconds_passed += seconds
        self.waits.append(seconds)

    def require_no_error(self) -> None:
        """Raise `OutcomeError` when the last event failed and no step has said that it does."""
        error = self.turns[-1].error if self.turns else None
        if error is not None and not self.error_is_known:
            raise OutcomeError("no error", f"{type(error).__name__}: {error}")

    def require_event(self) -> None:
        """Raise `OutcomeError` when the last event failed, `WordingError` when there was none.

        What a scenario says before anything happens holds whatever the engine does.
        """
        if self._files_before is None:
            raise WordingError(_NOTHING_YET)
        self.require_no_error()

    @property
    def last(self) -> TurnEvent:
        """The last event; raises `OutcomeError` when it failed unexpectedly, or there is none."""
        if not self.turns:
            raise WordingError(_NOTHING_YET)
        self.require_no_error()
        return self.turns[-1]

    @property
    def result(self) -> Result:
        """What the last event came to; raises `OutcomeError` when there is no such thing."""
        result = self.last.result
        if self.last.returned is not None:
            value = type(self.last.returned.value).__name__
            raise OutcomeError("a result with a plan", f"a function returned {value}, and no plan")
        if result is None:
            raise OutcomeError("a result", self.last.error or "only a plan")
        return result

    @property
    def outcome(self) -> Result | Returned:
        """`result`, or what a public function returned."""
        return self.last.returned or self.result

    @property
    def now(self) -> tuple[TurnEvent, ...]:
        """The last model call, plan or function, and what arrived after it."""
        newest = self.last
        if newest.kind == "function":
            return (newest,)
        turns = [turn for turn in self.turns if turn.plan is not None] or [newest]
        start = max((i for i, turn in enumerate(turns) if turn.kind != "arrival"), default=0)
        return tuple(turns[start:])

    @property
    def fates(self) -> tuple[Fate, ...]:
        """What became of each item of the context, as of now."""
        return tuple(fate for turn in self.now for fate in turn.fates)

    def select(self, phrase: str) -> Selection:
        """Read which items a phrase means.

        Raises `WordingError` when it has no meaning, and `OutcomeError` when it names a tool that
        no event has had in its context.
        """
        types = () if self._source is None else self.session.policy.items
        meant = selection(phrase, types)
        if meant.tool is not None and self.turns:
            tools = {fate.item.tool for turn in self.turns for fate in turn.fates}
            meant.require_tool({tool for tool in tools if tool is not None})
        return meant

    def fates_of(self, phrase: str) -> list[Fate]:
        """Return the items that a phrase speaks of; raises `OutcomeError` when there are none."""
        return self.select(phrase).among(self.fates)

    def saved_of(self, phrase: str) -> Iterator[tuple[Fate, Fate, File]]:
        """Yield each item of a phrase, the item as it was offloaded, and its file; see `saved`."""
        return ((fate, *self.saved(fate)) for fate in self.fates_of(phrase))

    def text_now(self, fate: Fate) -> object:
        """Return what a model is sent in the item's place: a text, or blocks."""
        turn, here = fate.turn, fate.turn.place_of(fate.item.message)
        if here is None:
            raise OutcomeError("the item in the messages", "its message has left", [fate])
        seen = at(turn.messages[here], _path_now(fate))
        if fate.item.kind == "tool_call" or seen == fate.original or not isinstance(seen, Mapping):
            return seen
        # A text block replaces an image or a document.
        return seen["text"] if isinstance(seen.get("text"), str) else seen

    def is_seen(self, fate: Fate) -> bool:
        """Return whether a model is sent an item that an action took from the list."""
        turn, place = fate.turn, fate.item.message
        here = turn.place_of(place)
        if here is None:
            return any(message is turn.given[place] for message in turn.messages)
        before, now = unmarked(turn.before[place]), unmarked(turn.messages[here])
        taken = [
            _whole(before, other)
            for other in turn.fates
            if other.item.message == place and not BY_STATE[other.state].keeps_place
        ]
        whole = _whole(before, fate)
        staying = list(parts_of(before)).count(whole) - taken.count(whole)
        return list(parts_of(now)).count(whole) > staying

    def saved(self, fate: Fate) -> tuple[Fate, File]:
        """Return the item as it was offloaded, in this turn or in one before it, and its file.

        Raises `OutcomeError` when it was not.
        """
        if fate.is_new and fate.decision is not None and fate.decision.saves:
            return fate, present(fate.decision.file)
        left = fate.item.text if fate.code == "placeholder" else None
        if fate.decision is not None:
            left = fate.decision.placeholder or left
        for turn in reversed(self.turns):
            for other in turn.fates:
                decision = other.decision
                if not decision or not decision.file or not other.is_new:
                    continue
                # What left nothing in its place is known by its own text.
                is_same = left is not None or other.item.text == fate.item.text
                if decision.placeholder == left and is_same:
                    return other, decision.file
        raise OutcomeError("a file", "none: it was not offloaded", [fate])

    def all_files(self) -> list[str]:
        """Return the paths of all files below the root, in order."""
        found = (path for path in self.root.rglob("*") if path.is_file())
        return sorted(path.relative_to(self.root).as_posix() for path in found)

    @property
    def all_written(self) -> list[str]:
        """The files that the scenario's events have made, the store's own among them."""
        return [path for path in self.all_files() if path not in (self._files_before or ())]

    @property
    def written(self) -> list[str]:
        """The files of items that the scenario's events have made."""
        return [
            path
            for path in self.all_written
            if path != _INDEX and not path.startswith(f"{_STATE_FOLDER}/")
        ]


def _arrive(session: Session, given: Sequence[Message]) -> Result:
    *call, message = given
    return session.on_tool_result(message, call=call[0] if call else None)


def _path_now(fate: Fate) -> ItemPath:
    """Return the item's path in its edited message, from which blocks before it were dropped."""
    path = list(fate.item.path)
    dropped = {
        _block(other.item.path)
        for other in fate.turn.fates
        if other.item.message == fate.item.message and not BY_STATE[other.state].keeps_place
    }
    for *above, number in dropped:
        place = len(above)
        if fate.item.path[:place] == tuple(above) and number in _before(fate.item.path, place):
            path[place] = int(path[place]) - 1
    return tuple(path)


def _before(path: ItemPath, place: int) -> range:
    """Return the numbers of the blocks before the one that is in this place of a path."""
    part = path[place] if place < len(path) else 0
    return range(part if isinstance(part, int) else 0)


def _block(path: ItemPath) -> ItemPath:
    return path[: max((i for i, part in enumerate(path, 1) if isinstance(part, int)), default=0)]


def _whole(message: Message, fate: Fate) -> PlainValue:
    return at(message, _block(fate.item.path) or fate.item.path)
