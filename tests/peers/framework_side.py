"""Strategies of Agent Framework, applied as a chat client applies them."""

from __future__ import annotations

import asyncio
from typing import Any

from agent_framework import apply_compaction


class Compacting:
    """A strategy that excludes messages of a conversation that goes on from call to call."""

    def __init__(self, strategy: Any) -> None:
        self._strategy = strategy
        self._messages: list[Any] = []
        self._loop = asyncio.new_event_loop()

    def sent(self, new: list[Any]) -> list[Any]:
        self._messages += new
        sent = apply_compaction(self._messages, strategy=self._strategy)
        return self._loop.run_until_complete(sent)
