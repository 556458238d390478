"""Sessions for property tests, each in a folder of its own, and what is compared of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory

from policyctx.definitions.items import Message
from policyctx.planning.compiled import OffloadPolicy
from policyctx.session import Session
from tests.policy_strategies import stored


def tool_message(call_id: str, text: str) -> Message:
    return {"role": "tool", "tool_call_id": call_id, "content": text}


@contextmanager
def session_under(policy: OffloadPolicy, *, remembers: bool = False) -> Iterator[Session]:
    """Yield a new session in a folder of its own, at a time that stands still.

    What one turn owes to the one before is owed where the session `remembers` it.
    """
    with TemporaryDirectory() as folder:
        under = stored(policy, state="kept") if remembers else policy
        yield Session(under, root=folder, session_id="s", clock=lambda: 0.0)
