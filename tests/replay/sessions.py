"""Recordings for tests, put together call by call."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from policyctx.definitions.items import Message
from policyctx.replay.recording import ModelCall, Recording
from policyctx.tokens.usage import Usage


def recording(
    *groups: Sequence[Message],
    after: Sequence[Message] = (),
    usages: Iterable[Usage | None] = (),
    times: Iterable[float | None] = (),
    anew: Iterable[int] = (),
    name: str = "session",
    **fields: Any,
) -> Recording:
    """A recording with a call of a model after each group of messages.

    `anew` are the numbers, from 0 on, of groups that are the whole context.
    """
    bills, ats, begun = list(usages), list(times), {0, *anew}
    calls = tuple(
        ModelCall(
            tuple(group),
            anew=i in begun,
            usage=bills[i] if i < len(bills) else None,
            at=ats[i] if i < len(ats) else None,
        )
        for i, group in enumerate(groups)
    )
    return Recording(name, "test", calls, tuple(after), **fields)


def turn_by_turn(messages: Sequence[Message], **fields: Any) -> Recording:
    """A recording of a list in which each assistant message is the reply to a call."""
    groups: list[list[Message]] = [[]]
    for message in messages:
        if message["role"] == "assistant":
            groups.append([])
        groups[-1].append(message)
    # The reply to the last call, and what follows it, came after that call.
    return recording(*groups[:-1], after=groups[-1], **fields)
