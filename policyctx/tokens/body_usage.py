"""`BodyUsage`: the usage in the body of a response, found while its pieces pass by."""

from __future__ import annotations

import json

from policyctx.errors import UsageError
from policyctx.tokens.usage import Usage, usage_of

_NAME = b'"usage"'
# Of a body, or of one event, that is read.
_MOST_BYTES = 2**23


class BodyUsage:
    """The usage in one body, JSON or server-sent events, whose pieces are added in order."""

    def __init__(self, content_type: str) -> None:
        self._has_events = "text/event-stream" in content_type
        self._is_found = False
        self._left = bytearray()
        """What was not read yet: all of a JSON body, or the end of the events."""

    def after(self, piece: str | bytes) -> Usage | None:
        """Return the usage if the body shows it with this piece, None otherwise."""
        if self._is_found:
            return None
        raw = piece.encode() if isinstance(piece, str) else piece
        is_over = len(self._left) + len(raw) > _MOST_BYTES
        if is_over and not self._has_events:
            self._is_found = True  # nothing is kept of what is too large
            self._left.clear()
            return None
        if is_over:
            self._left.clear()
            raw = raw.partition(b"\n")[2][-_MOST_BYTES:]
        self._left += raw
        if not self._has_events or b"\n" not in raw:
            return None
        *lines, self._left = self._left.split(b"\n")
        events = (
            line.removeprefix(b"data:")
            for line in lines
            if line.startswith(b"data:") and _NAME in line
        )
        return next(filter(None, map(self._usage, events)), None)

    def at_end(self) -> Usage | None:
        """Return the usage if only the end of the body shows it, None otherwise."""
        return None if self._has_events or self._is_found else self._usage(self._left)

    def _usage(self, text: bytearray) -> Usage | None:
        """Return the usage of a prompt in a response, or in an event that has one inside."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(value, dict):
            return None
        for holder in (value, value.get("message"), value.get("response")):
            found = _of_prompt(holder.get("usage")) if isinstance(holder, dict) else None
            if found is not None:
                self._is_found = True
                return found
        return None


def _of_prompt(usage: object) -> Usage | None:
    """Return the usage of a prompt, None without one: the first events of a stream have none."""
    if not isinstance(usage, dict):
        return None
    try:
        found = usage_of(usage)
    except UsageError:
        return None
    return found if found.prompt > 0 else None
