"""Another library and a policy over the same conversations: how many model calls are equal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from policyctx import Session
from policyctx.messages.shapes.shape import Shape
from policyctx.policy.loading import load_policy, parsed_policy
from policyctx.policy.models import Policy
from policyctx.policy.sources import PolicySource, policy_source
from tests.peers.said import Conversation, Plain, Said

Messages: TypeAlias = list[Any]


class Side(Protocol):
    """One of the two that edit a conversation, in the library's form of messages."""

    def sent(self, new: Messages) -> Messages:
        """Return what a model gets after these messages have come to the conversation."""


class Form(Protocol):
    """A library's form of messages: a module of this package."""

    def written(self, said: Sequence[Said]) -> Messages:
        """Return a conversation in this form."""

    def plain(self, messages: Messages) -> list[Plain]:
        """Return messages of this form as they are compared."""


@dataclass(slots=True)
class Tally:
    """How many model calls got the same list from both sides."""

    calls: int = 0
    equal: int = 0
    edited: int = 0
    """The calls whose list the library changed at all."""
    first: str = ""
    """Where the sides differ first."""
    by_conversation: dict[str, int] = field(default_factory=dict)
    """How many calls differ, by the name of the conversation."""

    @property
    def different(self) -> int:
        """How many calls differ."""
        return self.calls - self.equal


def tally(
    conversations: Iterable[Conversation],
    form: Form,
    library: Callable[[], Side],
    ours: Callable[[int], Side],
) -> Tally:
    """Run both sides over each conversation, call by call, and compare what they send.

    `ours` gets the number of the conversation.
    """
    found = Tally()
    for number, conversation in enumerate(conversations):
        theirs, own = library(), ours(number)
        unedited: list[Plain] = []
        for call, (start, end) in enumerate(conversation.calls()):
            new = conversation.messages[start:end]
            wanted = form.plain(theirs.sent(form.written(new)))
            got = form.plain(own.sent(form.written(new)))
            unedited += form.plain(form.written(new))
            found.calls += 1
            found.edited += wanted != unedited
            if wanted == got:
                found.equal += 1
                continue
            found.by_conversation.setdefault(conversation.name, 0)
            found.by_conversation[conversation.name] += 1
            found.first = found.first or f"{conversation.name}, call {call}: {_where(wanted, got)}"
    return found


def _where(wanted: list[Plain], got: list[Plain]) -> str:
    for i, (one, other) in enumerate(zip(wanted, got, strict=False)):
        if one != other:
            return f"message {i}: {str(one)[:600]} against {str(other)[:600]}"
    return f"{len(wanted)} messages against {len(got)}"


class Ours:
    """A session of a policy that gets the whole conversation before each call."""

    def __init__(
        self,
        policy: str | Policy,
        root: Path,
        *,
        shape: Shape | None = None,
        **options: Any,
    ) -> None:
        shapes = [shape] if shape else []
        # Nothing outlives a comparison, so that no file need be flushed.
        given = load_policy(policy) if isinstance(policy, str) else policy
        policy = given.model_copy(
            update={"store": given.store.model_copy(update={"sync": "never"})}
        )
        self._session = Session(
            policy, root=root, session_id="s", shapes=shapes, expects_usage=False, **options
        )
        self._messages: Messages = []

    def sent(self, new: Messages) -> Messages:
        """Return what the policy makes of the conversation with these messages."""
        self._messages += new
        return list(self._session.apply(self._messages).messages)


def changed(name: str, passages: Mapping[str, str]) -> Policy:
    """Return a shipped policy in which other passages take the place of some of its own."""
    source = policy_source(name)
    text = source.text
    for passage, other in passages.items():
        assert text.count(passage) == 1, passage
        text = text.replace(passage, other)
    return parsed_policy(PolicySource(source.name, text))
