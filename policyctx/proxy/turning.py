"""`Turning`: from the body of a request to the body that is sent, by a turn of a session.

It never fails a request. If a turn raises, what earlier turns decided is applied again from memory;
if that is not possible either, the body is sent as it came.
"""

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import policyctx.turns.compacting
import policyctx.turns.recorder  # noqa: F401 - a proxy is upgraded while it runs
from policyctx.compaction.summarizers import summarizer_for
from policyctx.definitions.tokenizers import is_remote
from policyctx.errors import UsageError
from policyctx.messages.asked import HELD, Api, model_name
from policyctx.messages.markers import MARKER
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Request
from policyctx.pricing.rows import row_of
from policyctx.proxy.bodies import (
    REMOVED,
    Body,
    ListWriter,
    read_body,
    shared_bytes,
    shared_messages,
    spliced,
)
from policyctx.proxy.conversations import (
    ProxyConversation,
    Registry,
    SentBody,
    header_identity,
    identity_of,
)
from policyctx.proxy.failures import NO_LIST, Failures, is_of_the_client
from policyctx.proxy.history import end_record, last_call, owner_of, owner_record, turn_record
from policyctx.proxy.limits import ProxyLimits
from policyctx.proxy.metrics import Counts
from policyctx.proxy.policies import Policies
from policyctx.proxy.scanning import UntouchableError
from policyctx.replay.unwritten_store import UnwrittenRecords
from policyctx.session import Session
from policyctx.tokens.usage import usage_of
from policyctx.turns.driving import Steps
from policyctx.turns.result import Result

_log = logging.getLogger(__name__)

_CALL = {"id": "c", "type": "tool_use", "name": "read", "input": {}}
_WARM_UP = (
    {"role": "user", "content": "Read it."},
    {"role": "assistant", "content": [_CALL]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content": "text"}]},
)

# The models without a price that the log names, and how much of a name.
_MOST_NAMED, _NAME_CHARS = 64, 80
# Bytes of a body, and of what is new in it, above which the first step of a turn would be long.
LARGE, _MUCH_NEW = 2**20, 2**14
_LIMITS = ProxyLimits()


@dataclass(frozen=True, slots=True)
class ListRequest:
    """A request with a list of messages: its API, the headers in lower case, the decoded body."""

    api: Api
    scope: str
    headers: Mapping[str, str]
    raw: bytes


@dataclass(frozen=True, slots=True)
class Turned:
    """What to send for a request."""

    raw: bytes | None = None
    """The new body; None for the one that came."""
    conversation: ProxyConversation | None = None
    """The one whose session learns from the response; None if none does."""
    turn: int = 0


class Turning:
    """Applies policies to requests. Any thread may use it."""

    def __init__(
        self,
        registry: Registry,
        policies: Policies,
        root: Path,
        *,
        dry_run: bool = False,
        record: Path | None = None,
        limits: ProxyLimits = _LIMITS,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.registry, self.policies, self.root, self.dry_run = registry, policies, root, dry_run
        self._limits, self._clock = limits, clock
        self._record_path = record
        self._unpriced: set[tuple[str, str]] = set()
        """The models, with their service tier, without a price that the log has named."""
        self.counts = Counts()
        self._count = self.counts.request
        self._failures = Failures(self.counts, dry_run=dry_run)

    def warm_up(self) -> None:
        """Load what the first turn needs, such as a vocabulary; decides and writes nothing."""
        row_of("none")  # reads the prices
        policy = self.policies.general
        session = Session(policy, root=self.root / "warm-up", session_id="warm-up")
        try:
            plan = session.plan(_WARM_UP)
            if not is_remote(policy.model.tokenizer):
                _log.debug("warmed up by a list of %d tokens", plan.tokens_before)
        except Exception as error:  # noqa: BLE001 - a turn reports what fails in it
            self._failures.note(error, "the proxy was not warmed up")

    def in_steps(self, request: ListRequest) -> Steps[Turned]:
        """Return what to send for a request, in steps; raises nothing.

        The first step is short, and waits for nothing: an event loop may take it.
        """
        try:
            return (yield from self._turned(request))
        except UntouchableError as error:
            return self.left_alone(error)
        except Exception as error:  # noqa: BLE001 - the client gets its answer whatever happens
            if is_of_the_client(error):
                return self.left_alone(UntouchableError(NO_LIST))
            self._failures.note(error, "sent unchanged")
            self._count("failed_open")
        return Turned()

    def left_alone(self, error: UntouchableError) -> Turned:
        """Count a request that is sent as it came, since it cannot be edited safely."""
        self._count("untouchable")
        self._warn_of_unchanged(f"a request was sent unchanged: {error}")
        return Turned()

    def warn_of_unread(self, which: str) -> None:
        """Warn of a request that the proxy does not read, if a policy redacts."""
        if self.policies.redacts:
            self._warn_of_unchanged(f"a request {which} was sent unchanged")

    def _warn_of_unchanged(self, text: str) -> None:
        _log.warning("%s%s", text, "; nothing in it is redacted" if self.policies.redacts else "")

    def again_in_steps(self, turned: Turned, api: Api, error: bytes) -> Steps[bytes | None]:
        """Return the body to send once more for a request that was refused; raises nothing.

        None if it was not refused as too long, and under a policy that has no steps for it.
        """
        one = turned.conversation
        if one is None or self.dry_run or one.session is None:
            return None
        if not one.session.policy.steps("overflow"):
            return None
        yield
        try:
            yield from _locked(one)
            try:
                if one.turn == turned.turn and one.sent is not None:
                    return (yield from self._shortened(one, one.session, api, one.sent.body, error))
            finally:
                one.lock.release()
        except Exception as failure:  # noqa: BLE001 - the client gets the refusal
            self._failures.note(failure, "a refused request was not sent again")
        return None

    def _shortened(
        self, conversation: ProxyConversation, session: Session, api: Api, body: Body, error: bytes
    ) -> Steps[bytes | None]:
        result = session.on_overflow(body.messages, error, request=_request(api, body))
        if result is None:
            return None
        self._count("sent_again")
        yield from self._taken(conversation, session, body, result)
        return self._put(conversation, api, body, result)

    def observe_in_steps(self, turned: Turned, usage: object) -> Steps[None]:
        """Learn from the usage of a response, unless another turn has begun; raises nothing.

        The first step is short.
        """
        one = turned.conversation
        if one is None:
            return
        try:
            yield from _locked(one)
            try:
                if one.turn == turned.turn and one.session is not None:
                    yield from self._learn(one, one.session, usage)
            finally:
                one.lock.release()
        except UsageError:
            self._count("unreadable_usage")
        except Exception as error:  # noqa: BLE001 - the response is on its way
            self._failures.note(error, "its usage was not observed")

    def _learn(
        self, conversation: ProxyConversation, session: Session, usage: object
    ) -> Steps[None]:
        if is_remote(session.policy.model.tokenizer):
            yield
        read = usage_of(usage)
        spared = 0
        if not self.dry_run:  # the prompt was not the one that the session has made
            spared = yield from session.observe_in_steps(read)
        model, at = conversation.model, self._clock()
        spent = conversation.meter.observe(read, spared=spared, model=model, at=at)
        self.counts.spend(spent)
        if spent.tiered or not spent.priced:
            self._name_unpriced(model, read.tier if spent.priced else "")

    def _name_unpriced(self, model: str, tier: str) -> None:
        """Log once that a model has no price, or none for a service tier."""
        if (model, tier) in self._unpriced or len(self._unpriced) >= _MOST_NAMED:
            return
        self._unpriced.add((model, tier))
        name = f"model {model[:_NAME_CHARS]!r}" if model else "a request without a model"
        if tier:
            tier = tier[:_NAME_CHARS]
            _log.warning("%s at the service tier %r: the dollars are standard prices", name, tier)
            return
        _log.warning("%s has no known price: its calls are left out of the dollars", name)

    def _turned(self, request: ListRequest) -> Steps[Turned]:
        api, raw = request.api, request.raw
        if len(raw) > LARGE:
            yield
        named = header_identity(request.headers)
        likely = self.registry.likely(request.scope, named, raw)
        if len(raw) > _MUCH_NEW and len(raw) - shared_bytes(raw, likely) > _MUCH_NEW:
            yield
        body = read_body(raw, api.messages, likely, self._limits)
        if (held := api.held_by(body.fields)) is not None:
            self._count("held")
            self._warn_of_unchanged(HELD % held)
            return Turned()
        if not body.messages:
            self._count("unchanged")
            self.warn_of_unread(f"without a list in {api.messages!r}")
            return Turned()
        identity = named or identity_of(request.headers, body.fields)
        agent = self.policies.agent_of(request.headers, identity)
        conversation = yield from self.registry.enter(
            request.scope, identity, api, body, agent=agent
        )
        try:
            turned = yield from self._in(conversation, api, body)
        finally:
            self.registry.leave(conversation)
        if self.registry.is_full:
            yield
            self.registry.forget_idle()
        return turned

    def _in(self, conversation: ProxyConversation, api: Api, body: Body) -> Steps[Turned]:
        last = conversation.sent
        if last is not None and last.body.raw == body.raw and api.decides:
            self._count("repeated")
            return Turned(body.changed(last.raw), conversation, conversation.turn)
        if last is not None and not _is_read_after(body, last.body):
            body = read_body(body.raw, api.messages, last.body, self._limits)
        try:
            is_new = conversation.session is None or not conversation.calls
            if is_new or self.dry_run or not api.decides:
                yield  # a new session reads its journal
            policy = self.policies.policy_of(conversation.agent)
            session = conversation.session
            if (session and session.policy is not policy) or is_remote(policy.model.tokenizer):
                yield
            session = self._session(conversation, policy)
            if self.dry_run and not api.decides:
                self._count("counted")
                return Turned()
            if not api.decides:
                return self._counted(session, api, body)
            return (yield from self._applied(conversation, session, api, body))
        except Exception as error:
            if (raw := self._failures.body_after(error, conversation, body, last)) is None:
                raise
            return Turned(body.changed(raw))

    def _applied(
        self, conversation: ProxyConversation, session: Session, api: Api, body: Body
    ) -> Steps[Turned]:
        request = _request(api, body)
        conversation.turn += 1
        try:
            result = yield from session.apply_in_steps(body.messages, request=request)
        finally:
            failed = session.writes.failed
            self.counts.fail_writes(failed - conversation.failed_writes)
            conversation.failed_writes = failed
        yield from self._taken(conversation, session, body, result)
        conversation.is_established = (
            conversation.is_established or api.asked(body.fields, body.messages).has_reply()
        )
        if self.dry_run:
            conversation.sent = SentBody(body, body.messages, (), {}, body.raw)
            self._count("previewed")
            return Turned(None, conversation, conversation.turn)
        new = body.changed(self._put(conversation, api, body, result))
        self._count("unchanged" if new is None else "edited")
        return Turned(new, conversation, conversation.turn)

    def _taken(
        self, conversation: ProxyConversation, session: Session, body: Body, result: Result
    ) -> Steps[None]:
        """Log and record what a turn did."""
        conversation.unmarked = result.breakpoints.why_none
        for warning in result.warnings:
            _log.warning("session %s: %s", conversation.name, warning)
        yield from self._record(conversation, session, body, result)

    def _put(self, conversation: ProxyConversation, api: Api, body: Body, result: Result) -> bytes:
        """Return the body of a request with the list of a result, and remember it."""
        fields = _fields(api, result)
        raw = spliced(
            body, result.messages, result.source_ranges, fields=fields, writer=conversation.writer
        )
        conversation.sent = SentBody(body, result.messages, result.source_ranges, fields, raw)
        return raw

    def _record(
        self, conversation: ProxyConversation, session: Session, body: Body, result: Result
    ) -> Steps[None]:
        """Keep what a turn decided, with reasons; raises nothing, since the turn was made."""
        conversation.model = model_name(body.fields.get("model")) or ""
        conversation.at, conversation.calls = self._clock(), conversation.calls + 1
        plan = result.plan
        records: list[dict[str, Any]] = []
        try:
            if plan.new or result.compacted:
                counts = not is_remote(session.policy.model.tokenizer)
                made = turn_record(conversation.calls, conversation.at, plan, counts=counts)
                records.append(made)
                each = [one["freed_tokens"] or 0 for one in made["decisions"]]
                self.counts.decided(plan, each)
                freed = sum(each)
                conversation.freed += freed
                if self.dry_run:
                    text = "session %s: %d items would leave the context, %d tokens"
                    _log.info(text, conversation.name, len(plan.new), freed)
            if result.summary_usage.attempts:
                self.counts.spend(conversation.meter.summarised(result.summary_usage))
            if not conversation.is_named and session.policy.store.keeps_state:
                end = conversation.hash.end(body.messages)
                if len(session.ledger) or session.totals().compactions:
                    records.append(end_record(end))
            if records:
                yield
                if not conversation.is_owned:
                    records.append(owner_record(conversation.scope))
                session.store.remember(records, flush=False)
                conversation.is_owned = True
        except Exception as error:  # noqa: BLE001 - the request has to be sent
            if not self._failures.has_stopped(conversation, error):
                self._failures.note(error, "what a turn decided was not recorded")

    def _counted(self, session: Session, api: Api, body: Body) -> Turned:
        """Return a request that counts tokens with the list that would be sent."""
        messages = session.preview(body.messages, request=_request(api, body))
        self._count("counted")
        if messages is body.messages:
            return Turned()
        given = {id(message): i for i, message in enumerate(body.messages)}
        found = (given.get(id(message)) for message in messages)
        sources = [None if i is None else range(i, i + 1) for i in found]
        new = spliced(body, messages, tuple(sources), fields={}, writer=ListWriter())
        return Turned(body.changed(new))

    def _session(self, conversation: ProxyConversation, policy: OffloadPolicy) -> Session:
        """Return the session of a conversation, under the policy that its agent has now."""
        session = conversation.session
        if session is None or session.policy is not policy:
            if session is not None:
                session.close()
            session = conversation.session = self._new_session(policy, conversation.name)
            conversation.failed_writes = 0
        if not conversation.calls:
            with session.writes.watched(reads=True):
                records = session.store.records()
            conversation.calls = last_call(records)
            conversation.is_owned = owner_of(records) == conversation.scope
        return session

    def _new_session(self, policy: OffloadPolicy, name: str) -> Session:
        """Return a session; in a dry run it writes no file and asks no model for a summary."""
        root, record = self.root / name, self._record_path
        if not self.dry_run:
            return Session(policy, root=root, session_id=name, on_invalid="keep", record=record)
        store = UnwrittenRecords(root, policy.store)
        by = None if policy.compacting_step is None else summarizer_for("extractive")
        return Session(
            policy,
            session_id=name,
            store=store,
            on_invalid="keep",
            summarizer=by,
            expects_usage=False,
        )


def _locked(conversation: ProxyConversation) -> Steps[None]:
    """Take the lock of a conversation; waits for it in a later step."""
    if not conversation.lock.acquire(blocking=False):
        yield
        conversation.lock.acquire()


def _is_read_after(body: Body, last: Body) -> bool:
    """Whether a body has the objects of the last one where its list begins with their bytes."""
    if not last.messages or body.messages[0] is last.messages[0]:
        return True
    return shared_messages(body.raw, last) == 0


def _request(api: Api, body: Body) -> Request:
    """Return what a request says beside its messages."""
    asked = api.asked(body.fields, body.messages)
    return Request(asked.system, asked.tools, asked.model, takes_markers=asked.takes_markers)


def _fields(api: Api, result: Result) -> dict[str, object]:
    """Return the fields beside the list that a turn sets: those with cache breakpoints."""
    if not result.breakpoints:
        return {}
    found = {api.system: result.system, "tools": result.tools}
    # A marker of the whole request would be one breakpoint more.
    return {MARKER: REMOVED} | {n: value for n, value in found.items() if n and value is not None}
