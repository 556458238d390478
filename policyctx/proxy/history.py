"""What a session decided, with reasons: read from its journal, where each turn leaves a record.

The decisions themselves are records of the session. The record of a turn follows them, and has what
they lack: the number of the call, the time, the rule, the reason, and its numbers.
"""

import hashlib
import json
import math
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from itertools import chain, count
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from policyctx.definitions.items import Message
from policyctx.errors import StoreError
from policyctx.messages.markers import bare
from policyctx.planning.plan import Plan
from policyctx.proxy.bodies import same_beginning
from policyctx.store.backend import failing_as
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import newest_record, stores_in

TURN, END, OWNER = "proxy_turn", "proxy_end", "proxy_owner"


class End(NamedTuple):
    """Where a list ended: how many messages it had, and a hash of them."""

    messages: int
    sha256: str


class ListHash:
    """Hashes the lists of one conversation; of a list that grows, only what is new."""

    def __init__(self) -> None:
        self._messages: list[Message] = []
        self._hash = hashlib.sha256()

    def end(self, messages: Sequence[Message]) -> End:
        """Return the end of a list, which is the same whatever its cache markers."""
        known = len(self._messages)
        if same_beginning(messages, self._messages) < known:
            self._messages, self._hash, known = [], hashlib.sha256(), 0
        for message in messages[known:]:
            text = json.dumps(bare(message), sort_keys=True, default=str)
            self._hash.update(text.encode("utf-8", "surrogatepass") + b"\n")
        self._messages += messages[known:]
        return End(len(messages), self._hash.hexdigest())


class SavedLists:
    """The sessions in the store whose lists begin alike, by where the last list of each ended.

    Their names are numbered without a gap. Each is read once, and again after it was in memory.
    """

    def __init__(self, name: str) -> None:
        self.guard = Lock()
        """Held while a session is looked for."""
        self._names = numbered_names(name)
        self._unread: deque[str] = deque()
        """What may be saved or free; `_names` are those that come behind it."""
        self._by_end: dict[End, list[str]] = {}

    def put_back(self, name: str) -> None:
        """Note that a session has left memory, whose last list may be another one now."""
        self._unread.append(name)

    def session(
        self,
        messages: Sequence[Message],
        taken: Collection[str],
        is_saved: Callable[[str], bool],
        end_of: Callable[[str], End | None],
    ) -> str:
        """Return the session for a list that continues none in memory; the names there are `taken`.

        It is the one whose last list these messages continue, that with the longest. Without
        messages none is continued, and the name is the first that is free.
        """
        unread = [self._unread.popleft() for _ in range(len(self._unread))]
        free = ""
        names = chain(sorted(unread, key=lambda one: (len(one), one)), self._names)
        for position, name in enumerate(names):
            if name not in taken:
                if not is_saved(name):
                    free = free or name
                    self._unread.append(name)
                elif not messages:
                    self._unread.append(name)
                elif (end := end_of(name)) is not None:
                    self._by_end.setdefault(end, []).append(name)
            if free and position + 1 >= len(unread):
                break
        return self._continued(messages) or free

    def _continued(self, messages: Sequence[Message]) -> str:
        """Return the session that these messages continue, which is known no more; "" for none."""
        hashed, found = ListHash(), None
        for length in sorted({end.messages for end in self._by_end}):
            if length <= len(messages) and (end := hashed.end(messages[:length])) in self._by_end:
                found = end
        if found is None:
            return ""
        names = self._by_end[found]
        name = names.pop(0)
        if not names:
            del self._by_end[found]
        return name


@dataclass(frozen=True, slots=True)
class Decided:
    """A decision of a session. What no record says is empty, None or 0."""

    session: str
    call: int
    """The number of the model call before which it was made, from 1 on."""
    at: float | None
    """Seconds since 1970."""
    item: str
    tool_use_id: str | None
    tool: str | None
    type: str
    action: str
    """In the past tense: `offloaded`."""
    step: str
    rule: str
    """The key of the policy that decided."""
    code: str
    reason: str
    """A sentence for people."""
    numbers: Mapping[str, int | float] = field(default_factory=dict)
    """What the reason compares."""
    chars: int = 0
    """Of the item."""
    freed_tokens: int | None = None
    """Of the item, less those of its placeholder."""
    path: str | None = None
    """Of its file, below the session's folder."""
    placeholder: str | None = None

    def values(self, *, with_content: bool) -> dict[str, Any]:
        """Return it as plain values for JSON; a placeholder may show a part of the item's text."""
        found = asdict(self)
        if not with_content:
            del found["placeholder"]
        return found


def turn_record(call: int, at: float, plan: Plan, *, counts: bool = True) -> dict[str, Any]:
    """Return the record of a turn that decided something, at a time in seconds since 1970.

    `counts` says whether tokens may be counted, which is a request with some tokenizers.
    """
    new = {decision.position for decision in plan.new}
    made = []
    for one in plan.new:
        freed: int | None = None
        if counts:
            # What is in a result that leaves too is counted with it.
            left = plan.facts.length(one.placeholder or "", "tokens")
            freed = 0 if one.item.inside in new else plan.facts.tokens(one.item) - left
        made.append(
            {
                "item_id": one.item.item_id,
                "rule": one.rule,
                "code": one.reason.code,
                "reason": one.reason.sentence,
                "numbers": _numbers(one.reason.values),
                "freed_tokens": freed,
            }
        )
    return {"record": TURN, "call": call, "at": at, "decisions": made}


def numbered_names(name: str) -> Iterator[str]:
    """Yield a name, then it with each number from 2 on."""
    yield name
    yield from (f"{name}~{number}" for number in count(2))


def end_record(end: End) -> dict[str, Any]:
    """Return the record of where the last list of a session without a name ended."""
    return {"record": END, **end._asdict()}


def owner_record(scope: str) -> dict[str, Any]:
    """Return the record of the scope whose clients may read what a session has offloaded."""
    return {"record": OWNER, "scope": scope}


def owner_of(records: Iterable[Mapping[str, Any]]) -> str:
    """Return the scope to which a session belongs, empty if no record says so."""
    scopes = [one.get("scope") for one in records if one.get("record") == OWNER]
    return _text(scopes[-1]) if scopes else ""


def saved_records(root: Path, session: str) -> list[dict[str, Any]]:
    """Return the records of a session from its folder below the root, none without a folder.

    Raises `StoreError` if they cannot be read.
    """
    folder = root / session
    if session not in ContextFileSystem.sessions(folder):
        return []
    return [*stores_in(folder, session=session)[session].records()]


def saved_end(root: Path, session: str) -> End | None:
    """Return where the last list of a saved session ended, None if that cannot be told."""
    try:
        end = newest_record(root / session, session, END)
    except StoreError:
        return None
    length, sha256 = (None if end is None else end.get(name) for name in End._fields)
    return End(length, sha256) if isinstance(length, int) and isinstance(sha256, str) else None


def saved_sessions(root: Path) -> dict[str, float]:
    """Return the sessions with a folder below the root, and when each changed; none without it.

    Raises `StoreError` if the root cannot be read.
    """
    with failing_as("read", root), suppress(FileNotFoundError):
        return {one.name: one.stat().st_mtime for one in root.iterdir() if one.is_dir()}
    return {}


def last_call(records: Iterable[Mapping[str, Any]]) -> int:
    """Return the number of the last call of which the records tell, 0 for none."""
    calls = (one.get("call") for one in records if one.get("record") == TURN)
    return max((call for call in calls if isinstance(call, int)), default=0)


def decisions_of(session: str, records: Iterable[Mapping[str, Any]]) -> list[Decided]:
    """Return what the records of a session say, oldest first.

    The records come from a file that others may have changed; what is not as it should be is left
    out.
    """
    found: list[Decided] = []
    decided: list[Mapping[str, Any]] = []
    compactions: list[Mapping[str, Any]] = []
    for record in records:
        kind = record.get("record")
        if kind == "decision" and "rewritten" not in record:
            decided.append(record)
        elif kind == "compaction":
            compactions.append(record)
        elif kind == TURN:
            found += _described(session, decided, record)
            found += [_compaction(session, one, record) for one in compactions]
            decided, compactions = [], []
    found += [_decided(session, one, {}, {}) for one in decided]
    return found + [_compaction(session, one, {}) for one in compactions]


def _described(
    session: str, decided: list[Mapping[str, Any]], turn: Mapping[str, Any]
) -> Iterator[Decided]:
    """Yield decisions with what the record of their turn says; it names the last of them."""
    given = turn.get("decisions")
    notes: list[dict[str, Any]] = [{}] * len(decided)
    if isinstance(given, list):
        notes += [one if isinstance(one, dict) else {} for one in given]
    for record, note in zip(decided, notes[len(notes) - len(decided) :], strict=True):
        is_its = note.get("item_id") == record.get("item_id")
        yield _decided(session, record, turn if is_its else {}, note if is_its else {})


def _decided(
    session: str, record: Mapping[str, Any], turn: Mapping[str, Any], note: Mapping[str, Any]
) -> Decided:
    numbers = note.get("numbers")
    return Decided(
        session=session,
        call=_whole(turn.get("call")) or 0,
        at=_time(turn.get("at")),
        item=_text(record.get("item_id")),
        tool_use_id=_text(record.get("tool_use_id")) or None,
        tool=_text(record.get("tool")) or None,
        type=_text(record.get("item_type")),
        action=_text(record.get("state")),
        step=_text(record.get("step")),
        rule=_text(note.get("rule")),
        code=_text(note.get("code")),
        reason=_text(note.get("reason")),
        numbers=_numbers(numbers if isinstance(numbers, dict) else {}),
        chars=_whole(record.get("chars")) or 0,
        freed_tokens=_whole(note.get("freed_tokens")),
        path=_text(record.get("path")) or None,
        placeholder=_text(record.get("placeholder")) or None,
    )


def _compaction(session: str, record: Mapping[str, Any], turn: Mapping[str, Any]) -> Decided:
    first, count = _whole(record.get("skipped")) or 0, _whole(record.get("count")) or 0
    return Decided(
        session=session,
        call=_whole(turn.get("call")) or 0,
        at=_time(turn.get("at")),
        item=f"messages {first} to {first + count - 1}",
        tool_use_id=None,
        tool=None,
        type="messages",
        action="summarised",
        step=_text(record.get("step")),
        rule="",
        code="summarised",
        reason="a summary stands for them",
        numbers={"messages": count, "summary_chars": len(_text(record.get("summary")))},
        path=_text(record.get("archive")) or None,
        placeholder=_text(record.get("summary")) or None,
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _time(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) and math.isfinite(value) else None


def _numbers(values: Mapping[str, object]) -> dict[str, int | float]:
    """Return those of the values that are finite numbers."""
    return {
        name: value
        for name, value in values.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
