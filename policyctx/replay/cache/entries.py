"""The entries of a prompt cache: until when each can be read, and by which requests."""

from __future__ import annotations

from typing import NamedTuple

from policyctx.replay.cache.requests import CacheRequest


class Life(NamedTuple):
    """From when, and until when, a cached prefix can be read."""

    ttl: int
    """How long it lives after its last use, in seconds."""
    since: float | None
    """When the request that wrote it was completed."""
    used: float | None

    def serves(self, request: CacheRequest) -> bool:
        """Return whether a request finds it; where a time is unknown, it does."""
        now = request.time
        if now is None or self.used is None:
            return True
        is_written = request.began is None or self.since is None or self.since <= request.began
        return is_written and now - self.used <= self.ttl

    def used_by(self, request: CacheRequest) -> Life:
        """Return its life after a request that reads it."""
        now = request.time
        return self if now is None else self._replace(used=max(now, self.used or now))


class Entry(NamedTuple):
    """A cached prefix."""

    tokens: int
    """The provider's, as they were when it was written."""
    life: Life


class Entries:
    """The entries of all language models, by the number of their prefix.

    Requests that overlap in time may write one prefix twice, so a prefix may have several.
    """

    def __init__(self) -> None:
        self._entries: dict[tuple[str | None, int], list[Entry]] = {}

    def serving(self, request: CacheRequest, block: int) -> Entry | None:
        """Return the newest entry of the prefix that ends with a block, None where none serves."""
        known = self._entries.get((request.language_model, request.keys[block]), ())
        return next((entry for entry in reversed(known) if entry.life.serves(request)), None)

    def refresh(self, request: CacheRequest, block: int) -> None:
        """Let the entries of a prefix live on, because a request reads them."""
        known = self._entries[request.language_model, request.keys[block]]
        for i, entry in enumerate(known):
            if entry.life.serves(request):
                known[i] = entry._replace(life=entry.life.used_by(request))

    def write(self, request: CacheRequest, block: int, ttl: int) -> None:
        """Write the prefix that ends with a block."""
        written = Entry(request.until(block), Life(ttl, request.ended, request.ended))
        key = request.language_model, request.keys[block]
        self._entries.setdefault(key, []).append(written)
