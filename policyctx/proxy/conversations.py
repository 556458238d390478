"""`Registry`: the conversations that are in memory, and which of them a request continues.

A conversation has one session and one lock. Conversations that nobody used for a while leave
memory; the next request makes a session with the same id, which goes on from the store.
"""

import hashlib
import json
import logging
import re
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Any

from policyctx.definitions.items import Message
from policyctx.errors import PolicyctxError
from policyctx.messages.asked import Api, is_alike
from policyctx.messages.markers import bare
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.messages.sources import Sources, are_alike, comparable
from policyctx.proxy.bodies import Body, ListWriter, same_beginning, shared_messages
from policyctx.proxy.history import End, ListHash, SavedLists, numbered_names
from policyctx.session import Session
from policyctx.turns.driving import Steps
from policyctx.turns.money import Meter

# Headers that say who pays.
CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_SESSION_HEADER = re.compile(r"x-(?:[a-z0-9]+-)*session-id")
# Earlier versions of Claude Code wrote their ids as one text.
_USER_ID = re.compile(r"_session_([0-9a-fA-F-]{8,64})$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SHOWN = 40
_MOST_CHARS = 4096
_log = logging.getLogger(__name__)

# The conversations of one scope whose last bodies are compared with a body that names none.
_MOST_COMPARED = 16
# About what a session takes in memory, and what a value and a message add to the bytes of a body.
_BYTES_KEPT, _BYTES_OF_VALUE, _BYTES_OF_MESSAGE = 2**15, 160, 300
# In place of the client, for those that no request names.
_BEGINNING = "beginning"
# The beginnings of which the lists in the store stay known.
_MOST_BEGINNINGS = 64
_OUTLINE_CHARS, _OUTLINE_DEPTH = 64, 8
# The conversations that share one name.
_MOST_BRANCHES = 16


@dataclass(frozen=True, slots=True)
class Identity:
    """A conversation as the client names it.

    `is_strong` says that the client gives each conversation a name of its own. A weak name, such as
    the key of a prompt cache, may stand for several.
    """

    client: str
    """The client or the field that gave the name."""
    parts: tuple[str, ...]
    is_strong: bool = True


def identity_of(headers: Mapping[str, str], fields: Mapping[str, Any]) -> Identity | None:
    """Return the conversation that a request names, None if it names none.

    `headers` have names in lower case, `fields` are those of the body. Headers come first.
    """
    return header_identity(headers) or _other_identity(headers, fields)


def scope_of(key: bytes, upstream: str, credential: Iterable[tuple[str, str]]) -> str:
    """Return a keyed hash of the upstream and the credential, in hex.

    `credential` are the headers that have one, in the order of `CREDENTIALS`.
    """
    return _digest(key, (upstream, *(f"{name}={value}" for name, value in credential)))


def credential_of(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers that have a credential; names are in lower case."""
    return tuple((name, headers[name]) for name in CREDENTIALS if name in headers)


def session_name(scope: str, identity: Identity) -> str:
    """Return the id of the session of a conversation, which names its folder too."""
    shown = _UNSAFE.sub("-", identity.parts[0]).strip(".-")[:_LONGEST_SHOWN]
    found = _digest(scope.encode()[:64], (identity.client, *identity.parts))
    return "-".join(filter(None, (identity.client, shown, found[:16])))


def beginning_of(messages: Iterable[Mapping[str, Any]], count: int = 2) -> str:
    """Return a hash of how a list begins: its first messages up to the first that is the user's."""
    first = []
    for message in messages:
        first.append(json.dumps(bare(message), sort_keys=True, default=str))
        if message.get("role") == "user" or len(first) == count:
            break
    return hashlib.blake2b("\n".join(first).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _digest(key: bytes, parts: Iterable[str]) -> str:
    found = hashlib.blake2b(key=key, digest_size=16)
    for part in parts:
        text = part.encode("utf-8", "surrogatepass")
        found.update(b"%d:%b" % (len(text), text))
    return found.hexdigest()


def header_identity(headers: Mapping[str, str]) -> Identity | None:
    """Return the conversation that headers name before any field can; None if they do not."""
    if session := _given(headers.get("x-claude-code-session-id")):
        names = ("x-claude-code-agent-id", "x-claude-code-parent-agent-id")
        return Identity("claude-code", (session, *(headers.get(name, "") for name in names)))
    for of_session, of_thread in (("session-id", "thread-id"), ("session_id", "conversation_id")):
        session, thread = _given(headers.get(of_session)), _given(headers.get(of_thread))
        if session or thread:
            # The root agent's thread has the name of the session.
            return Identity("codex", (thread or session, session or thread))
    return None


def _other_identity(headers: Mapping[str, str], fields: Mapping[str, Any]) -> Identity | None:
    if name := _given(fields.get("prompt_cache_key")):
        return Identity("cache-key", (name,), is_strong=False)
    if name := _in_user_id(_metadata(fields).get("user_id")):
        return Identity("user-id", (name,))
    for name in sorted(headers):
        if _SESSION_HEADER.fullmatch(name) and (value := _given(headers[name])):
            return Identity("session", (value, name))
    for holder in (fields, _metadata(fields)):
        if value := _given(holder.get("conversation_id")):
            return Identity("conversation", (value,))
    return None


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    found = fields.get("metadata")
    return found if isinstance(found, dict) else {}


def _in_user_id(user_id: object) -> str:
    """Return the session in Anthropic's `metadata.user_id`, which may be a JSON text."""
    text = _given(user_id)
    if found := _USER_ID.search(text):
        return found.group(1)
    if not text.startswith("{"):
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return _given(value.get("session_id")) if isinstance(value, dict) else ""


def _given(value: object) -> str:
    """Return a name that a client gave, empty for none and for what is too long for one."""
    return value if isinstance(value, str) and len(value) <= _MOST_CHARS else ""


@dataclass(slots=True)
class SentBody:
    """What was sent in the last turn of a conversation."""

    body: Body
    messages: Sequence[Message]
    sources: Sources
    fields: dict[str, object]
    raw: bytes


@dataclass(slots=True, eq=False)
class ProxyConversation:
    """One conversation: its session, and what was sent last. Use it under its lock."""

    name: str
    """The session's id."""
    agent: str
    scope: str = ""
    """The upstream and the credential that it belongs to."""
    is_owned: bool = False
    """Whether a record of the session tells its scope."""
    is_named: bool = True
    """Whether the client names it; otherwise only its lists tell which it is."""
    lock: Lock = field(default_factory=Lock)
    session: Session | None = None
    sent: SentBody | None = None
    writer: ListWriter = field(default_factory=ListWriter)
    turn: int = 0
    used_at: float = 0.0
    is_established: bool = False
    """Whether a request with a reply in it has come."""
    users: int = 0
    """Threads that have found it and not left it yet."""
    hash: ListHash = field(default_factory=ListHash)
    meter: Meter = field(default_factory=Meter)
    calls: int = 0
    """Requests to a model, counted on from those that the session's records tell of."""
    failed_writes: int = 0
    """The session's number of failed writes after the last turn."""
    unmarked: str = ""
    """Why the policy set no cache markers in the last turn; empty if it did, or sets none."""
    at: float = 0.0
    """The time of the last request, in seconds since 1970."""
    model: str = ""
    """The language model of the last request."""
    freed: int = 0
    """Tokens that left the list in a dry run."""

    @property
    def body(self) -> Body | None:
        """The last body, None before the first turn."""
        return None if self.sent is None else self.sent.body

    @property
    def bytes_kept(self) -> int:
        """About how many bytes the last turn keeps in memory."""
        if self.sent is None:
            return _BYTES_KEPT
        # Decoded, a body takes what its text needs, and its values and messages.
        body, sent = self.sent.body, self.sent.raw
        decoded = body.text_bytes + _BYTES_OF_VALUE * body.values
        decoded += _BYTES_OF_MESSAGE * len(body.messages)
        return _BYTES_KEPT + len(body.raw) + decoded + len(sent)

    def continued_by(self, body: Body) -> bool:
        """Whether a list begins with all messages of the last one, but for their markers."""
        last = self.body
        if last is None or last.list_key != body.list_key:
            return False
        messages, others = body.messages, last.messages
        if len(messages) < len(others):
            return False
        shared = same_beginning(messages, others)
        return all(are_alike(messages[i], others[i], BUILT_IN) for i in range(shared, len(others)))


class _Ends:
    """Conversations by the last message of their last lists, so that a list is compared with few.

    Those that are in use, or have no list yet, are compared with every list.
    """

    def __init__(self) -> None:
        self._by_length: dict[int, dict[Hashable, list[ProxyConversation]]] = {}
        self._ends: dict[ProxyConversation, tuple[int, Hashable]] = {}
        self._others: dict[ProxyConversation, None] = {}

    def note(self, one: ProxyConversation) -> None:
        """Note where the last list of a conversation ends now."""
        self.forget(one)
        if one.users or one.body is None or not one.body.messages:
            self._others[one] = None
            return
        messages = one.body.messages
        length, last = self._ends[one] = len(messages), _outline_of(messages[-1])
        self._by_length.setdefault(length, {}).setdefault(last, []).append(one)

    def forget(self, one: ProxyConversation) -> None:
        """Forget a conversation, if it is known."""
        self._others.pop(one, None)
        if (end := self._ends.pop(one, None)) is not None:
            length, last = end
            of_length = self._by_length[length]
            of_length[last].remove(one)
            if not of_length[last]:
                del of_length[last]
            if not of_length:
                del self._by_length[length]

    def possible(self, messages: Sequence[Message]) -> list[ProxyConversation]:
        """Return the conversations that a list may continue."""
        found = [*self._others]
        for length, of_length in self._by_length.items():
            if length <= len(messages):
                found += of_length.get(_outline_of(messages[length - 1]), ())
        return found


def _outline_of(message: Message) -> Hashable:
    """Return a value that is equal for messages that are alike; of long texts it has the ends."""
    try:
        return _outline(comparable(message, BUILT_IN), _OUTLINE_DEPTH)
    except RecursionError:
        return ()


def _outline(value: object, depth: int) -> Hashable:
    if isinstance(value, str):
        return len(value), value[:_OUTLINE_CHARS], value[-_OUTLINE_CHARS:]
    if not depth or not isinstance(value, dict | list):
        return value if isinstance(value, int | float) else None
    if isinstance(value, list):
        return tuple(_outline(one, depth - 1) for one in value)
    return tuple(sorted((key, _outline(one, depth - 1)) for key, one in value.items()))


class Registry:
    """The conversations in memory, by scope and name. Any thread may use it.

    A scope stands for an upstream and a credential; nothing is shared between two of them.
    """

    def __init__(
        self,
        *,
        memory_bytes: int,
        idle_seconds: float,
        is_saved: Callable[[str], bool],
        end_of: Callable[[str], End | None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._memory_bytes, self._idle_seconds = memory_bytes, idle_seconds
        self._is_saved = is_saved
        """Whether the store has something of the session of this name."""
        self._end_of = end_of
        """The end of the last list of a saved session, None if it is not known."""
        self._clock = clock
        self._guard = Lock()
        """Held for a short time, and never while the disk is read."""
        self._named: dict[tuple[str, ...], list[ProxyConversation]] = {}
        self._ends: dict[tuple[str, ...], _Ends] = {}
        """Of the conversations without a name."""
        self._saved: OrderedDict[tuple[str, ...], SavedLists] = OrderedDict()
        """Those of them in the store, for the beginnings that came last."""
        self._keys: OrderedDict[ProxyConversation, tuple[str, ...]] = OrderedDict()
        """In the order of their last use."""
        self._bytes: dict[ProxyConversation, int] = {}
        self._kept = 0
        """The sum of these bytes."""

    def __len__(self) -> int:
        return len(self._keys)

    def live(self) -> list[ProxyConversation]:
        """Return the conversations in memory, those used last first."""
        with self._guard:
            return [*reversed(self._keys)]

    def likely(self, scope: str, identity: Identity | None, raw: bytes) -> Body | None:
        """Return the last body that most of a request's list is known from, None for none."""
        with self._guard:
            if identity is None:
                own = (c for c, key in reversed(self._keys.items()) if key[0] == scope)
                found = [*islice(own, _MOST_COMPARED)]
            else:
                found = self._named.get(_key(scope, identity), [])
            bodies = [one.body for one in found]
        known = [body for body in bodies if body is not None]
        if len(known) == 1 and identity is not None:
            return known[0]
        return max(known, key=lambda body: shared_messages(raw, body), default=None)

    def enter(
        self, scope: str, identity: Identity | None, api: Api, body: Body, *, agent: str
    ) -> Steps[ProxyConversation]:
        """Find or make the conversation that a request belongs to, and take its lock.

        With a name from the client it is the one of this name that the list continues; then the
        one that it is alike; then a new one beside them. Without a name it is one whose last list
        this one continues; otherwise a new one. Several are equal up to where they part, so what
        one has decided and saved is right for all.

        It stays in memory until `leave`. The first step waits for nothing.
        """
        while True:
            found = self._in_memory(scope, identity, api, body, agent)
            if found is None:
                yield  # the store tells which one it is
                found = self._in_store(scope, api, body, agent)
            try:
                if not found.lock.acquire(blocking=False):
                    yield
                    found.lock.acquire()
            except BaseException:
                self._left(found)
                raise
            if identity is not None or found.body is None or found.continued_by(body):
                return found
            self.leave(found)  # a request that came just before has parted from this one

    def leave(self, one: ProxyConversation) -> None:
        """Release the lock of a conversation, and let it leave memory when nobody uses it."""
        one.lock.release()
        self._left(one)

    def _left(self, one: ProxyConversation) -> None:
        with self._guard:
            one.users -= 1
            one.used_at = self._clock()
            self._keys.move_to_end(one)
            kept = one.bytes_kept
            self._kept += kept - self._bytes.get(one, 0)
            self._bytes[one] = kept
            if not one.is_named:
                self._ends[self._keys[one]].note(one)

    @property
    def is_full(self) -> bool:
        """Whether memory is short, so that `forget_idle` has something to do."""
        return self._kept > self._memory_bytes

    def forget_idle(self) -> None:
        """Let idle conversations leave memory, and where it is short those used longest ago."""
        leaving = []
        with self._guard:
            now = self._clock()
            for one in list(self._keys):
                is_idle = now - one.used_at > self._idle_seconds
                if not is_idle and not self.is_full:
                    break
                if one.users:
                    continue
                self._remove(one)
                leaving.append(one)
        for one in leaving:
            _close(one)

    def close(self) -> None:
        """Let all conversations leave memory."""
        with self._guard:
            leaving = list(self._keys)
            for one in leaving:
                self._remove(one)
        for one in leaving:
            _close(one)

    def _remove(self, one: ProxyConversation) -> None:
        key = self._keys.pop(one)
        self._kept -= self._bytes.pop(one, 0)
        branches = self._named[key]
        branches.remove(one)
        if not one.is_named:
            self._ends[key].forget(one)
            if key in self._saved:
                self._saved[key].put_back(one.name)
        if not branches:
            del self._named[key]
            self._ends.pop(key, None)

    def _in_memory(
        self, scope: str, identity: Identity | None, api: Api, body: Body, agent: str
    ) -> ProxyConversation | None:
        """Return the conversation of a request; None if only the store tells which one it is."""
        with self._guard:
            if identity is None:
                found = self._continued(_key(scope, _beginning(api, body)), body)
                if found is None:
                    return None
            else:
                found = self._named_by(_key(scope, identity), identity, api, body, agent)
            return self._used(found)

    def _used(self, one: ProxyConversation) -> ProxyConversation:
        """Return a conversation that a thread uses from now on."""
        one.users += 1
        if not one.is_named:
            self._ends[self._keys[one]].note(one)
        return one

    def _in_store(self, scope: str, api: Api, body: Body, agent: str) -> ProxyConversation:
        """Return the conversation of a request that names none, by the folders of the store."""
        identity = _beginning(api, body)
        key = _key(scope, identity)
        with self._guard:
            saved = self._saved.setdefault(key, SavedLists(session_name(scope, identity)))
            self._saved.move_to_end(key)
            while len(self._saved) > _MOST_BEGINNINGS:
                self._saved.popitem(last=False)
        # Of two requests with one list the second has to find what the first has made. Lists that
        # begin otherwise do not wait.
        with saved.guard:
            with self._guard:
                found = self._continued(key, body)
                if found is not None:
                    return self._used(found)
                taken = {one.name for one in self._named.get(key, ())}
            messages = body.messages if api.asked(body.fields, body.messages).has_reply() else ()
            name = saved.session(messages, taken, self._is_saved, self._end_of)
            with self._guard:
                return self._used(self._made(key, name, agent, is_named=False))

    def _continued(self, key: tuple[str, ...], body: Body) -> ProxyConversation | None:
        """Return the conversation without a name that a list continues, None without one."""
        ends = self._ends.get(key)
        branches = [] if ends is None else ends.possible(body.messages)
        # One that has only counted tokens so far has no list yet.
        empty = (one for one in branches if one.body is None and not one.users)
        found = [one for one in branches if one.continued_by(body)]
        same = [one for one in found if _length(one) == len(body.messages)]
        longest = max((one for one in found if one not in same), key=_length, default=None)
        # The same list again comes from the same client, or from one that is as far as another was.
        likely = same if longest is None else [longest, *same]
        return max(likely, key=lambda one: one.used_at, default=None) or next(empty, None)

    def _named_by(
        self, key: tuple[str, ...], identity: Identity, api: Api, body: Body, agent: str
    ) -> ProxyConversation:
        """Return the conversation of a name, a new one if there is none for this list."""
        branches = self._named.get(key, ())
        if (own := _own(branches, identity, api, body)) is not None:
            return own
        taken = {one.name for one in branches}
        name = session_name(key[0], identity)
        if name in taken:
            # The beginning tells the conversations of one name apart, also after a restart.
            names = numbered_names(f"{name}-{beginning_of(body.messages)[:8]}")
            name = next(one for one in names if one not in taken)
        return self._made(key, name, agent, is_named=True)

    def _made(
        self, key: tuple[str, ...], name: str, agent: str, *, is_named: bool
    ) -> ProxyConversation:
        made = ProxyConversation(
            name, agent, scope=key[0], is_named=is_named, used_at=self._clock()
        )
        self._named.setdefault(key, []).append(made)
        self._keys[made] = key
        if not is_named:
            self._ends.setdefault(key, _Ends())
        return made


def _own(
    branches: Sequence[ProxyConversation], identity: Identity, api: Api, body: Body
) -> ProxyConversation | None:
    """Return the conversation of a name that a request belongs to, None if it begins another."""
    if continued := [one for one in branches if one.continued_by(body)]:
        return max(continued, key=_length)
    asked = api.asked(body.fields, body.messages)
    for one in branches:
        if one.body is None or not one.is_established:
            return one
        if identity.is_strong:
            if is_alike(api.asked(one.body.fields, one.body.messages), asked):
                return one
        elif beginning_of(one.body.messages) == beginning_of(body.messages):
            return one
    # Too many: the newest one takes what nobody knows.
    return branches[-1] if len(branches) >= _MOST_BRANCHES else None


def _length(one: ProxyConversation) -> int:
    return len(one.body.messages) if one.body else 0


def _beginning(api: Api, body: Body) -> Identity:
    return Identity(_BEGINNING, (beginning_of(body.messages), api.messages), is_strong=False)


def _key(scope: str, identity: Identity) -> tuple[str, ...]:
    return scope, identity.client, *identity.parts


def _close(one: ProxyConversation) -> None:
    """Close the session of a conversation that has left memory; it learns nothing any more."""
    with one.lock:
        session, one.session = one.session, None
        if session is None:
            return
        try:
            session.close()
        except PolicyctxError as error:
            _log.warning("session %s: no index was written: %s", one.name, error)
