"""One random session: its list grows, and comes in another form at every call of `apply`."""

from __future__ import annotations

import copy
import json
import marshal
import random
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from operator import is_
from pathlib import Path
from tempfile import TemporaryDirectory

from policyctx.definitions.items import Message
from policyctx.errors import PolicyctxError
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.google_contents import GoogleShape
from policyctx.messages.fillers import FILLER
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.messages.validity import new_problems
from policyctx.planning.compiled import OffloadPolicy
from policyctx.session import Session
from policyctx.store.content import PACKED, decoded
from policyctx.store.files import unpacked
from policyctx.store.filesystem import ContextFileSystem
from policyctx.turns.result import Result
from tests.fuzz.conversations import ALL_SHAPES, Shape, Writer
from tests.fuzz.marking import Marking, text_and_markers, wrong_sources
from tests.fuzz.memory_store import MemoryStore
from tests.fuzz.policies import COUNT, policy_of
from tests.fuzz.rules import Rules, role_of
from tests.openai_rules import broken_promises, calls_in, results_in

SHAPES_OF_HOSTS = {"bedrock": (BedrockShape(),), "google": (GoogleShape(),)}
_MARKER = re.compile(r"m\d+z")
# How many of the sessions move `cache_control` markers from call to call.
_MARKED = 0.5
# In how many of the sessions that report arrivals the caller keeps the original messages.
_KEPT = 0.3
_FORMS = ("full",) * 6 + ("back",) * 8 + ("stale", "cut tail", "cut tail", "cut head", "cut head")


@dataclass(slots=True)
class Report:
    """What came of the sessions so far."""

    sessions: int = 0
    applies: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    examples: dict[str, int] = field(default_factory=dict)
    """The first seed that showed each kind of failure."""

    def fail(self, kind: str, seed: int) -> None:
        """Count a failure of the session with this seed."""
        self.failures[kind] += 1
        self.examples.setdefault(kind, seed)

    def __str__(self) -> str:
        found = ", ".join(
            f"{kind}: {count} (first seed {self.examples[kind]})"
            for kind, count in sorted(self.failures.items())
        )
        return f"{self.applies:,} applies in {self.sessions:,} sessions; {found or 'no failure'}"


def run_session(
    seed: int,
    report: Report,
    shapes: tuple[Shape, ...] = ALL_SHAPES,
    *,
    hosted: bool = True,
    newest: bool = False,
) -> None:
    """Run the session with this seed in one of these shapes, and add what it came to."""
    rng = random.Random(seed)  # noqa: S311 - no secret
    policy = policy_of(rng, 2 * COUNT if hosted else COUNT, newest=newest)
    if rng.random() < 0.03:
        with TemporaryDirectory(prefix="policyctx-fuzz-") as folder:
            store = ContextFileSystem(folder, sync="never", state=policy.policy.store.state)
            History(
                seed, rng, policy, store, report, shapes=shapes, hosted=hosted, newest=newest
            ).run()
    else:
        History(
            seed, rng, policy, MemoryStore(), report, shapes=shapes, hosted=hosted, newest=newest
        ).run()
    report.sessions += 1


class History:
    """One session: the caller's list, every list that was handed out, and what was saved."""

    def __init__(
        self,
        seed: int,
        rng: random.Random,
        policy: OffloadPolicy,
        store: MemoryStore | ContextFileSystem,
        report: Report,
        *,
        shapes: tuple[Shape, ...],
        hosted: bool,
        newest: bool,
    ) -> None:
        self._seed, self._rng, self._policy, self._store = seed, rng, policy, store
        self._report = report
        self._repeats = rng.random() < 0.5
        shape = rng.choice(shapes)
        writer = Writer(rng, shape, self._repeats, hosted, files=newest)
        self._source = writer.conversation(rng.randint(*((4, 9) if newest else (1, 5))))
        self._of_host = SHAPES_OF_HOSTS.get(shape, ())
        """The shapes that the session is given; the messages of some have no markers."""
        self._shapes = Shapes(self._of_host)
        self._full: list[Message] = []
        """The caller's own list; a result that arrived may be a placeholder in it."""
        self._handed_out: list[tuple[list[Message], int]] = []
        """Each list handed out, with the length of the caller's own list at that time."""
        self._given: dict[int, tuple[Message, bytes]] = {}
        """Each message that the session was given, with its bytes at that time, by its identity."""
        self._rules = Rules()
        self._saved: dict[str, str] = {}
        self._arrives = shape != "legacy" and rng.random() < 0.3
        kept = random.Random(f"arrivals of {seed}")  # noqa: S311 - no secret, and draws of its own
        self._keeps_originals = kept.random() < _KEPT
        self._replaced: set[str] = set()
        """Texts of results that arrived and were replaced, where each text is said once."""
        self._form = ""
        does_more = any(s.do == "compact" or s.on == "arrival" for s in policy.policy.steps)
        self._saves_all = all(s.saves or s.do == "compact" for s in policy.policy.steps)
        self._is_plain = not (self._repeats or does_more)
        """Whether the seeds found first checked a restart with draws of the session."""
        self._had_no_head = False
        """Whether a list came without its beginning."""
        self._restarts = random.Random(f"restarts of {seed}")  # noqa: S311 - no secret
        own = random.Random(f"markers of {seed}")  # noqa: S311 - no secret, and draws of its own
        is_marked = own.random() < _MARKED and not (self._of_host or shape == "gemini")
        self._marking = Marking(own) if is_marked else None
        self._session = self._opened(store)

    def run(self) -> None:
        """Send the list until it is whole, and then all of it once more."""
        while len(self._full) < len(self._source):
            self._grow(self._rng.choice((1, 1, 2, 3, 4)))
            for _ in range(self._rng.choice((1, 1, 1, 2))):
                self._disturb()
                self._apply(self._in_some_form())
        result = self._apply(list(self._full))
        if result is not None:
            self._check_nothing_is_lost(result.messages)
        self._check_inputs()

    def _opened(self, store: MemoryStore | ContextFileSystem) -> Session:
        return Session(
            self._policy,
            session_id="s",
            store=store,
            clock=lambda: 0.0,
            shapes=self._of_host,
        )

    def _grow(self, count: int) -> None:
        for message in self._source[len(self._full) :][:count]:
            self._full.append(self._arrived(message) if self._arrives else message)

    def _arrived(self, message: Message) -> Message:
        """Report a message with results on arrival; the caller keeps what comes back, or not."""
        call = self._caller_of(message)
        kinds = {item.kind for item in items_of([message], self._shapes)}
        if "tool_result" not in kinds or call is None or role_of(call) != "assistant":
            return message
        result = self._session.on_tool_result(message, call=call)
        self._note_saved(result)
        if not self._repeats:
            new = (d for d in result.plan.new if not d.action.leaves_nothing)
            self._replaced.update(d.item.text for d in new if d.item.kind == "tool_result")
        if self._keeps_originals or len(result.messages) != 2:
            return message
        return result.messages[-1]

    def _caller_of(self, message: Message) -> Message | None:
        """Return the last message, or the item that an output of the Responses API answers."""
        if not (ids := results_in(message) if isinstance(message, dict) else []):
            return self._full[-1] if self._full else None
        return next((one for one in reversed(self._full) if calls_in(one) == ids), None)

    def _disturb(self) -> None:
        """Restart the session, or do something else that must not matter."""
        chance = self._rng.random()
        if chance < 0.15:
            self._session = self._opened(self._store)
        elif chance < 0.2:
            self._session.plan(self._in_some_form())
        elif chance < 0.25:
            self._session.observe({"input_tokens": self._rng.randint(1, 2000)})

    def _in_some_form(self) -> list[Message]:
        form = self._form = self._rng.choice(_FORMS)
        self._is_plain &= form != "stale"
        if form == "stale" or (form == "back" and self._handed_out):
            messages = self._returned(self._rng.randrange(len(self._handed_out) or 1), form)
        else:
            messages = list(self._full)
        if form == "cut tail":
            messages = self._returned(-1, form) if self._rng.random() < 0.4 else messages
            del messages[self._rng.randint(1, len(messages) or 1) :]
        if form == "cut head":
            messages = self._returned(-1, form) if self._rng.random() < 0.4 else messages
            messages = messages[self._prompt_in(messages) :]
        return copy.deepcopy(messages) if self._rng.random() < 0.2 else messages

    def _returned(self, index: int, form: str) -> list[Message]:
        """Return a list that was handed out, with what the caller's own list got since."""
        if not self._handed_out:
            return list(self._full)
        messages, length = self._handed_out[index if form == "stale" else -1]
        return [*messages, *self._full[length:]]

    def _prompt_in(self, messages: Sequence[Message]) -> int:
        """Return the place of some prompt, so that what begins with it is valid."""
        kinds = [{item.kind for item in items_of([m], self._shapes)} for m in messages]
        prompts = [
            i
            for i, message in enumerate(messages)
            if role_of(message) == "user" and "tool_result" not in kinds[i]
        ]
        return self._rng.choice(prompts) if prompts else 0

    def _apply(self, unmarked: list[Message]) -> Result | None:
        messages = unmarked if self._marking is None else self._marking.moved(unmarked)
        given = list(messages)
        self._note_given(given)
        expected = self._left_after_restart(messages)
        if expected is not None and expected != self._left_text(self._session, messages):
            self._fail("restarted session differs")
        try:
            result = self._session.apply(messages, changed=self._rng.random() < 0.05)
        except PolicyctxError as error:
            self._fail(f"raised {type(error).__name__}")
            return None
        self._report.applies += 1
        if not _are_same(given, messages):
            self._fail("input changed")
        output = list(result.messages)
        if self._policy.policy.redact:
            door = self._session._knowledge.door
            last = door._last
            given = [last.redacted.get(at, one) for at, one in enumerate(last.given)]
            sent = [*given, *map(_without_media, output)]
            if any(door.redacted(message) is not message for message in sent):
                self._fail("a secret is sent")
        for kind in self._wrongs(given, result, output):
            self._fail(kind)
        self._note_saved(result)
        if unmarked and (len(unmarked) >= len(self._full) or unmarked[-1] is self._full[-1]):
            self._handed_out.append((output, len(self._full)))
        return result

    def _wrongs(self, given: list[Message], result: Result, output: list[Message]) -> Iterator[str]:
        """Yield what is wrong with an output."""
        if not self._of_host:
            yield from wrong_sources(given, result)
        if not _are_same(given, output):  # a list breaks no more rules than itself
            yield from map(_kind, new_problems(given, output, shapes=self._shapes))
            yield from self._rules.broken(output) - self._rules.broken(given)
            if self._rules.lost_signatures(given, output):
                yield "call without the signature of its message"
            yield from () if self._of_host else broken_promises(given, output)
        if self._replaced and not self._replaced.isdisjoint(
            item.text for item in items_of(output, self._shapes)
        ):
            yield "replaced on arrival, and sent whole"

    def _left_after_restart(self, messages: list[Message]) -> str | None:
        """Return what earlier turns leave of the list by what the store holds alone.

        None where that may differ: words said again cannot always be told from what was dropped
        without the lists that the session has seen. Neither can words at the end of a list after
        some were dropped from the beginning of one without its head: they seem to be the first of
        the session, and to have left this list too.
        """
        self._had_no_head |= self._form == "cut head"
        is_plain = self._is_plain and self._form in {"full", "back"}
        rng = self._rng if is_plain else self._restarts
        if self._repeats or not isinstance(self._store, MemoryStore) or rng.random() >= 0.2:
            return None
        if self._had_no_head and self._form == "cut tail":
            return None
        session = self._opened(self._store.copy())
        return self._left_text(session, messages)

    def _left_text(self, session: Session, messages: list[Message]) -> str:
        left = left_by(session, messages)
        return self._json(left) if self._of_host else text_and_markers(left)

    def _json(self, messages: Sequence[Message]) -> str:
        return compact_json([self._shapes.comparable(message) for message in messages])

    def _note_given(self, messages: Sequence[Message]) -> None:
        """Note what the messages are at first, each object once."""
        for message in messages:
            if id(message) not in self._given:
                self._given[id(message)] = message, self._bytes(message)

    def _check_inputs(self) -> None:
        """Check that no message that was given to the session is another one now."""
        for message, before in self._given.values():
            if self._bytes(message) != before:
                self._fail("input changed")

    def _bytes(self, message: Message) -> bytes:
        """Return bytes that are equal for equal values alone."""
        return (
            marshal.dumps(message, 2) if type(message) is dict else self._json([message]).encode()
        )

    def _fail(self, kind: str) -> None:
        self._report.fail(kind, self._seed)

    def _note_saved(self, result: Result) -> None:
        for decision in result.plan.new:
            if decision.action in {"offload", "drop"}:
                if decision.file is None:
                    assert not self._saves_all
                    continue
                text = decision.item.text
                self._saved.setdefault(decision.file.path, text)
                if decision.saves and self._store.read(decision.file.path) != text:
                    self._fail("file differs")

    def _check_nothing_is_lost(self, output: Sequence[Message]) -> None:
        """Check that what was said is in the list or in a file, except what a step clears."""
        overwrites = self._policy.policy.store.on_conflict == "overwrite"
        texts = list(map(self._store.read, self._saved))
        if not overwrites and texts != list(self._saved.values()):
            self._fail("file changed later")
        if not self._saves_all:
            return
        kept = set(_MARKER.findall(self._json(output)))
        kept = kept.union(*map(_MARKER.findall, self._stored_texts()))
        if not kept.issuperset(_MARKER.findall(self._json(self._source))):
            self._fail("text lost")

    def _stored_texts(self) -> Iterable[str]:
        """Return the texts of all files of the store, its index among them."""
        if isinstance(self._store, MemoryStore):
            return self._store.files.values()
        files = (path for path in Path(self._store.root).rglob("*") if path.is_file())
        return (
            decoded(unpacked(raw) if path.suffix == PACKED else raw)
            for path in files
            for raw in [path.read_bytes()]
        )


def left_by(session: Session, messages: list[Message]) -> list[Message]:
    """Return what the decisions of earlier turns leave of a list, before new ones are made."""
    memory = session._memory()
    entered = session._knowledge.door.let_in(messages).messages
    left = session._knowledge.list_of(entered, memory).left
    return [message for message in left if message is not None]


def without_fillers(messages: Sequence[Message]) -> list[Message]:
    """Return a list without what a session sends between two messages of one role."""
    return [message for message in messages if FILLER not in str(message)]


def _without_media(message: Message) -> Message:
    """Return a message without the bytes of media, which a summary may quote as a text."""
    if not isinstance(message, dict):
        return message
    bare: Message = json.loads(_DATA.sub("", json.dumps(message)))
    return bare


_DATA = re.compile(r"data:[^\\\"]*")


def _are_same(some: Sequence[Message], others: Sequence[Message]) -> bool:
    """Return whether two lists have the same objects."""
    return len(some) == len(others) and all(map(is_, some, others))


def _kind(problem: str) -> str:
    """Return a problem without the id in it."""
    return re.sub(r"the (call|result) \S+ ", r"the \1 … ", problem)
