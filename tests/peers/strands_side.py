"""A conversation manager of Strands, in an agent."""

from __future__ import annotations

from typing import Any

from strands import Agent
from strands.agent.conversation_manager import SlidingWindowConversationManager


class Sliding:
    """The window over the messages of an agent, which are edited in place."""

    def __init__(self, **options: Any) -> None:
        self._manager = SlidingWindowConversationManager(per_turn=True, **options)
        self._agent = Agent(conversation_manager=self._manager, callback_handler=None)

    def sent(self, new: list[Any]) -> list[Any]:
        self._agent.messages.extend(new)
        self._manager.apply_management(self._agent)
        return list(self._agent.messages)
