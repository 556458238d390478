"""`Session`: one agent's context under one policy, from messages to new messages plus files."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from policyctx.errors import InvalidResultError, MessagesError, StoreError
from policyctx.messages.editing import Edit, edited
from policyctx.messages.items import compact_json
from policyctx.messages.reading import items_of
from policyctx.messages.validity import new_problems
from policyctx.planning.facts import Facts
from policyctx.planning.ledger import Ledger
from policyctx.planning.offload_policy import OffloadPolicy
from policyctx.planning.paths import File, safe_part
from policyctx.planning.planner import plan
from policyctx.policy.models import Policy
from policyctx.policy.template import parsed_template
from policyctx.policy.values import ROOT_FIELDS, SESSION_FIELDS
from policyctx.store.filesystem import Content, ContextFileSystem
from policyctx.tokens.counter import counter_for

if TYPE_CHECKING:
    import os

    from policyctx.messages.items import Message
    from policyctx.planning.decisions import Plan
    from policyctx.planning.planner import Moment

T = TypeVar("T")

_RANDOM = "abcdefghijklmnopqrstuvwxyz0123456789"


@dataclass(frozen=True, slots=True)
class Save:
    """What the core asks of a driver: to save these contents and answer with their files."""

    contents: tuple[Content, ...]


Steps: TypeAlias = Generator[Save, list[File] | StoreError, T]


@dataclass(frozen=True, slots=True)
class Result:
    """What a turn came to: the messages to send, and the plan that was carried out.

    `messages` is the very list that was given when nothing changed. `warnings` says what could
    not be saved and was therefore kept.
    """

    messages: Sequence[Message]
    plan: Plan
    warnings: tuple[str, ...] = ()

    @property
    def offloaded_count(self) -> int:
        """How many items were newly offloaded."""
        return len(self.plan.to_save)

    @property
    def freed_chars(self) -> int:
        """Characters of what was newly offloaded, placeholders not deducted."""
        return self.plan.freed_chars

    @property
    def files(self) -> tuple[str, ...]:
        """Absolute paths of what was newly offloaded, in the order of the items."""
        return tuple(d.file.path for d in self.plan.to_save if d.file)


class Session:
    """One conversation of one agent: its policy, its folder, and what was decided so far.

    `policy` is a preset's name, a file's path, or a policy already read. `root` replaces the
    policy's `store.root` whole. A session is not to be used by two threads at once.
    """

    def __init__(
        self,
        policy: str | os.PathLike[str] | Policy | OffloadPolicy,
        *,
        root: str | os.PathLike[str] | None = None,
        session_id: str | None = None,
    ) -> None:
        if isinstance(policy, Policy):
            policy = OffloadPolicy(policy)
        self.policy = policy if isinstance(policy, OffloadPolicy) else OffloadPolicy.load(policy)
        settings = self.policy.policy.store
        self.session_id = _new_session_id(settings.session_id) if session_id is None else session_id
        if root is None:
            values = {"session_id": safe_part(self.session_id)}
            root = parsed_template(settings.root, ROOT_FIELDS).render(values)
        self.store = ContextFileSystem(
            root, on_conflict=settings.on_conflict, sync=settings.sync, mode=settings.mode
        )
        self.ledger = Ledger()

    def plan(
        self, messages: Sequence[Message], *, system: object = None, tools: object = None
    ) -> Plan:
        """Return what `apply` would do; nothing is written and nothing is remembered."""
        return self._plan(messages, system, tools, ("arrival", "model_call"))

    def apply(
        self, messages: Sequence[Message], *, system: object = None, tools: object = None
    ) -> Result:
        """Edit a message list before it is sent to a model.

        `system` and `tools` are the request's own and only count towards its size. Raises
        `MessagesError` for what is no message list, `StoreError` under `on_failure: raise`, and
        `InvalidResultError`; after an error the session is as it was.
        """
        return _run(self._turn(messages, system, tools, ("arrival", "model_call")), self.store)

    async def apply_async(
        self, messages: Sequence[Message], *, system: object = None, tools: object = None
    ) -> Result:
        """`apply`, with the files written in a thread."""
        turn = self._turn(messages, system, tools, ("arrival", "model_call"))
        return await _run_async(turn, self.store)

    def on_tool_result(self, message: Message, *, call: Message | None = None) -> Result:
        """Run the `arrival` steps on a message with new results, before a model has seen them.

        `call` is the assistant message that made the calls; without it the tools are not known,
        and rules for tools do not apply. `Result.messages` begins with it where it was given.
        """
        messages = [message] if call is None else [call, message]
        return _run(self._turn(messages, None, None, ("arrival",)), self.store)

    def read(self, path: str | os.PathLike[str]) -> str:
        """Return the text of an offloaded item by the path in its placeholder."""
        return self.store.read(path)

    def _plan(
        self,
        messages: Sequence[Message],
        system: object,
        tools: object,
        moments: tuple[Moment, ...],
    ) -> Plan:
        facts = Facts(
            session_id=self.session_id,
            root=str(self.store.root),
            counter=counter_for(self.policy.policy.model.tokenizer),
            beside=tuple(_text(part) for part in (system, tools) if part),
        )
        return plan(items_of(messages), self.policy, self.ledger, facts, moments=moments)

    def _turn(
        self,
        messages: Sequence[Message],
        system: object,
        tools: object,
        moments: tuple[Moment, ...],
    ) -> Steps[Result]:
        planned = self._plan(messages, system, tools, moments)
        # Edited and checked as expected first: what fails here has written nothing.
        new = _checked_edit(messages, planned)
        warnings: tuple[str, ...] = ()
        if planned.to_save:
            outcome = yield Save(tuple(_content(planned)))
            if not isinstance(outcome, StoreError):
                written = planned.settled(outcome)
            elif self.policy.policy.store.on_failure == "raise":
                raise outcome
            else:
                written, warnings = planned.unsaved(str(outcome)), (str(outcome),)
            if written.texts != planned.texts:
                new = _checked_edit(messages, written)
            planned = written
        self.ledger = planned.ledger_after
        return Result(new, planned, warnings)


def _checked_edit(messages: Sequence[Message], planned: Plan) -> Sequence[Message]:
    new = edited(messages, [Edit(item, text) for item, text in planned.texts])
    if new is not messages:
        problems = new_problems(messages, new, items=planned.items)
        if problems:
            raise InvalidResultError(problems)
    return new


def _content(planned: Plan) -> Generator[Content, None, None]:
    for decision in planned.to_save:
        if decision.file is not None:
            file = decision.file
            yield Content(file.relative_path, decision.item.text, decision.wanted_path)


def _run(steps: Steps[T], store: ContextFileSystem) -> T:
    """Carry out what the core asks for, in this thread."""
    try:
        request = next(steps)
        while True:
            request = steps.send(_outcome(store, request))
    except StopIteration as stop:
        result: T = stop.value
        return result


async def _run_async(steps: Steps[T], store: ContextFileSystem) -> T:
    """Carry out what the core asks for, without blocking the event loop."""
    try:
        request = next(steps)
        while True:
            request = steps.send(await asyncio.to_thread(_outcome, store, request))
    except StopIteration as stop:
        result: T = stop.value
        return result


def _outcome(store: ContextFileSystem, request: Save) -> list[File] | StoreError:
    try:
        return store.save(request.contents)
    except StoreError as error:
        return error


def _new_session_id(form: str) -> str:
    now = datetime.now(UTC)
    values = {
        "date": f"{now:%Y%m%d}",
        "time": f"{now:%H%M%S}",
        "random": "".join(secrets.choice(_RANDOM) for _ in range(6)),
    }
    return parsed_template(form, SESSION_FIELDS).render(values)


def _text(part: object) -> str:
    """The text of what is sent beside the messages: a system prompt, tool schemas."""
    try:
        return part if isinstance(part, str) else compact_json(part)
    except (RecursionError, TypeError, ValueError) as error:
        raise MessagesError(f"system or tools: not JSON: {error}") from error
