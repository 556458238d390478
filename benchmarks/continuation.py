"""A turn whose list comes as new objects, against one comparison of the two lists.

Callers that build their list anew for each call pass equal messages that are other objects, and
move a `cache_control` marker in them. To find out that nothing else changed each message has to be
compared once, so a turn is held against a bare `==` of the two lists. Measured are the list as the
caller keeps it, with the results in it, also after a compaction, and the list that was returned.
"""

from __future__ import annotations

import atexit
import copy
from collections.abc import Callable, Sequence
from itertools import cycle
from shutil import rmtree
from tempfile import mkdtemp
from typing import Literal, TypeAlias

from benchmarks.planning import conversation, unflushed
from benchmarks.runner import Ratio
from policyctx.definitions.items import Message
from policyctx.session import Session

Form: TypeAlias = Literal["given", "given and compacted", "returned"]
FORMS: tuple[Form, ...] = ("given", "given and compacted", "returned")
LENGTHS = (1_000, 10_000)
# So many times one comparison may a turn take.
TIMES = 3


def ratios() -> list[Ratio]:
    """The figures of this module; of ten messages up to three are offloaded results."""
    return [
        _ratio(length, form, moves=moves)
        for length in LENGTHS
        for form in FORMS
        for moves in (False, True)
    ]


def _ratio(length: int, form: Form, *, moves: bool) -> Ratio:
    messages = conversation(length)
    session = _session(compacts=form == "given and compacted")
    output = session.apply(messages).messages
    known = output if form == "returned" else messages
    one, other = fresh(known), fresh(known)
    lists = cycle([marked(one), marked(other, back=2)] if moves else [one, other])
    session.apply(next(lists))

    def turn() -> object:
        return session.apply(next(lists))

    what = "the marker moved" if moves else "equal"
    return Ratio(
        f"{length:,} new messages as {form}, {what} / ==",
        ours=turn,
        baseline=compared(known),
        bound=TIMES,
    )


def compared(messages: Sequence[Message]) -> Callable[[], object]:
    """Return a call that compares a list with an equal one of other objects."""
    one, other = fresh(messages), fresh(messages)
    return lambda: one == other


def fresh(messages: Sequence[Message]) -> list[Message]:
    """Return an equal list of new objects, in which the texts are new as well."""
    return [_fresh(message) for message in messages]


def marked(messages: list[Message], *, back: int = 0) -> list[Message]:
    """Return the list with a marker on the last block of one message, counted from the end."""
    places = [i for i, m in enumerate(messages) if isinstance(m["content"], list)]
    place = places[-1 - back]
    *blocks, last = messages[place]["content"]
    marker = {"cache_control": {"type": "ephemeral"}}
    message = {**messages[place], "content": [*blocks, {**last, **marker}]}
    return [*messages[:place], message, *messages[place + 1 :]]


def _session(*, compacts: bool) -> Session:
    folder = mkdtemp()
    atexit.register(rmtree, folder)
    policy = unflushed("coding-agent")
    steps = tuple(step for step in policy.steps if compacts or step.do != "compact")
    return Session(policy.model_copy(update={"steps": steps}), root=folder)


def _fresh(message: Message) -> Message:
    return {key: _copied(value) for key, value in message.items()}


def _copied(value: object) -> object:
    if isinstance(value, str):
        return value.encode().decode()
    if isinstance(value, dict):
        return {key: _copied(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_copied(one) for one in value]
    return copy.copy(value)
