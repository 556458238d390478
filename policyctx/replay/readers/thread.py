"""`Thread`: the requests of one conversation, of which each repeats what was said before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.replay.readers.building import RecordingBuilder

if TYPE_CHECKING:
    from policyctx.messages.items import Message
    from policyctx.replay.readers.exchange import Exchange


class Thread:
    """A conversation that is being read from its requests."""

    def __init__(self) -> None:
        self.builder = RecordingBuilder()
        self._prints: list[str] = []
        self._messages: list[Message] = []
        self._reply: Message | None = None

    def _shared_with(self, exchange: Exchange) -> int:
        """Return how many messages at the beginning are the same."""
        pairs = zip(self._prints, exchange.prints, strict=False)
        shorter = min(len(self._prints), len(exchange.prints))
        return next((i for i, (a, b) in enumerate(pairs) if a != b), shorter)

    def read(self, exchange: Exchange) -> None:
        """Take a request: what is new in it joins the context, what differs begins it anew."""
        self.builder.records += 1
        shared = self._shared_with(exchange)
        new = exchange.messages[shared:]
        if shared < len(self._prints):
            self.builder.begin_anew([*self._messages[:shared], *new])
        else:
            for message in new:
                self.builder.add(message)
        self.builder.called(
            exchange.usage,
            exchange.language_model,
            exchange.at,
            exchange.system,
            exchange.tools,
        )
        self._prints = exchange.prints
        self._messages = [*self._messages[:shared], *new]
        self._reply = exchange.reply

    def end(self) -> None:
        """Add the last reply; those before it stand in the requests that followed."""
        if self._reply is not None:
            self.builder.add(self._reply)
