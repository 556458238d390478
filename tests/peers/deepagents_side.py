"""The middleware of Deep Agents around each call of a tool."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from deepagents.backends import FilesystemBackend
from deepagents.middleware.filesystem import FilesystemMiddleware
from langchain_core.messages import ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest


class Evicting:
    """The middleware; what it returns goes into the agent's state."""

    def __init__(self, root: Path, limit: int) -> None:
        self._middleware = FilesystemMiddleware(
            backend=FilesystemBackend(root_dir=root, virtual_mode=True),
            tool_token_limit_before_evict=limit,
        )
        self._messages: list[Any] = []

    def sent(self, new: list[Any]) -> list[Any]:
        self._messages += [
            self._evicted(message) if isinstance(message, ToolMessage) else message
            for message in new
        ]
        return self._messages

    def _evicted(self, result: ToolMessage) -> Any:
        call: Any = {"name": result.name, "args": {}, "id": result.tool_call_id}
        state: dict[str, Any] = {"messages": []}
        request = ToolCallRequest(tool_call=call, tool=None, state=state, runtime=None)
        return self._middleware.wrap_tool_call(request, lambda _: result)
