"""`Failures`: what is sent when a turn fails.

It is the list with what earlier turns decided. If there is nothing such and the session's store
failed, it is the body as it came.
"""

import logging
import traceback
from collections.abc import Sequence
from pathlib import Path

from policyctx.definitions.items import Message
from policyctx.errors import MessagesError, ShapeError, StoreError
from policyctx.messages.sources import Sources, joined
from policyctx.proxy.bodies import Body, spliced
from policyctx.proxy.conversations import ProxyConversation, SentBody
from policyctx.proxy.metrics import Counts

_log = logging.getLogger(__name__)

NO_LIST = "its list is not one of messages of the API"


class Failures:
    """Counts and logs what fails in turns, and makes what is sent in place of their results."""

    def __init__(self, counts: Counts, *, dry_run: bool) -> None:
        self._counts, self._dry_run = counts, dry_run

    def note(self, error: Exception, what: str) -> None:
        """Log an internal error without any text of a message, which its own text may have."""
        self._counts.error(type(error).__name__)
        _log.error("an internal error, and %s: %s", what, at(error))

    def body_after(
        self, error: Exception, conversation: ProxyConversation, body: Body, last: SentBody | None
    ) -> bytes | None:
        """Return the body to send after an error, with the earlier decisions; None without any.

        After an error of the session's store, which is logged once, it is the one that came.
        """
        is_told = self.has_stopped(conversation, error)
        again = None if self._dry_run else _again(last, body)
        if last is None or again is None:
            raw = body.raw
        else:
            raw = spliced(body, *again, fields=last.fields, writer=conversation.writer)
        if body.changed(raw) is None:
            if not is_told:
                return None
            self._counts.request("failed_open")
            return raw
        what = "earlier decisions were applied again"
        if is_of_the_client(error):
            _log.warning("%s, and %s", NO_LIST, what)
        elif not is_told:
            self.note(error, what)
        self._counts.request("reapplied")
        return raw

    def has_stopped(self, conversation: ProxyConversation, error: Exception) -> bool:
        """Whether a turn failed because of the session's store, which is logged once."""
        session = conversation.session
        if session is None or not isinstance(error, StoreError) or not session.writes.problem:
            return False
        self._counts.error(type(error).__name__)
        for warning in session.writes.news():
            _log.warning("session %s: %s", conversation.name, warning)
        return True


def is_of_the_client(error: Exception) -> bool:
    """Return whether a list is none of the API's; its text may have a part of the request."""
    return isinstance(error, MessagesError) and not isinstance(error, ShapeError)


def at(error: Exception) -> str:
    """Return the class of an error and where it was raised, without its text."""
    frames = traceback.extract_tb(error.__traceback__)
    place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
    return type(error).__name__ + place


def _again(last: SentBody | None, body: Body) -> tuple[Sequence[Message], Sources] | None:
    """Return a list as earlier turns sent it, and behind it what is new since then.

    Returns None if that cannot be told: the list does not continue the last one, and a summary
    stands where the two part.
    """
    if last is None:
        return None
    shared = min(body.known, len(last.body.messages))
    if not shared or last.body.messages[shared - 1] is not body.messages[shared - 1]:
        return None
    if shared < len(last.body.messages) and None in last.sources:
        return None
    kept = [one if one is None else range(one.start, min(one.stop, shared)) for one in last.sources]
    sources = joined(kept)
    count = sum(1 if one is None else len(one) for one in sources)
    messages = [*last.messages[:count], *body.messages[shared:]]
    return messages, joined([*sources, range(shared, len(body.messages))])
