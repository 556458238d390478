"""Many agents at once, each a coroutine with a few hundred bytes of state and no library."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from io import BytesIO
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import aiohttp

_TOOL = {"name": "bash", "description": "Run.", "input_schema": {"type": "object"}}


@dataclass
class LightAgent:
    """An agent over Anthropic's Messages API; what a command prints is made up here.

    With a `session` it says so as Claude Code does. The outputs of two agents with another `name`
    differ, and their first messages do not; the first `alike` outputs of all agents are the same.
    """

    url: str
    name: str
    key: str = "sk-scripted-0000"
    session: str | None = None
    lines: int = 100
    alike: int = 0
    messages: list[dict[str, Any]] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.messages.append({"role": "user", "content": "Compile all modules."})

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each request."""
        own = {"x-claude-code-session-id": self.session} if self.session else {}
        return {
            "x-api-key": self.key,
            "anthropic-version": "2023-06-01",
            "content-type": "application/json",
            "x-scripted-conversation": self.name,
            **own,
        }

    async def turn(self, client: aiohttp.ClientSession) -> bool:
        """Ask once, and run what the model asks for; return whether it asked for anything."""
        body = {
            "model": "m",
            "max_tokens": 1_000,
            "tools": [_TOOL],
            "messages": self.messages,
        }
        raw = json.dumps(body).encode()
        url = f"{self.url}/v1/messages"
        async with client.post(url, data=BytesIO(raw), headers=self.headers) as answer:
            content = await answer.read()
            if answer.status != 200:
                raise AssertionError(answer.status, content[:500])
        said = json.loads(content)["content"]
        self.messages.append({"role": "assistant", "content": said})
        results = [self._result(block["id"]) for block in said if block["type"] == "tool_use"]
        if results:
            self.messages.append({"role": "user", "content": results})
        return bool(results)

    async def run(self, client: aiohttp.ClientSession) -> None:
        """Go on until the model asks for nothing."""
        while await self.turn(client):
            pass

    def _result(self, call: str) -> dict[str, Any]:
        number = len(self.outputs)
        name = "any" if number < self.alike else self.name
        printed = f"{name} {number}: a line of a log that nobody reads to its end\n"
        self.outputs.append(printed * self.lines)
        return {"type": "tool_result", "tool_use_id": call, "content": self.outputs[-1]}
