"""An agent with the interface of the requirements document "context filesystem".

ANTHROPIC_API_KEY=… python examples/agent.py FOLDER

`Agent` calls a model and its tools until the model answers; a `Session` decides before each call
what stays in the context. The folder contains file1.txt to file4.txt.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anthropic import AsyncAnthropic

from policyctx import ContextItem, Session, tool


class ChatAnthropic(AsyncAnthropic):
    """A client with the model that it asks."""

    model = "claude-sonnet-5"


@dataclass(frozen=True)
class AgentConfig:
    """The tools, and options of policyctx; None leaves what the policy says."""

    tools: Sequence[Any] = ()
    offload_enabled: bool = True
    offload_token_threshold: int = 2000
    offload_root_path: str | os.PathLike[str] | None = None
    ephemeral_keep_recent: int | None = None


class Conversation:
    """The messages of an agent, whole, and the items of its context."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.messages: list[Any] = []

    @property
    def items(self) -> tuple[ContextItem, ...]:
        """The items, each with `offloaded` and `offload_path`."""
        return self.session.items


@dataclass(frozen=True)
class Context:
    """The context of an agent."""

    conversation: Conversation


class Agent:
    """A model with tools; `query` asks it, and the conversation goes on from query to query."""

    def __init__(self, llm: ChatAnthropic, config: AgentConfig) -> None:
        options: Any = dict(vars(config))
        self._llm = llm
        self._tools = {each.name: each for each in options.pop("tools")}
        session = Session("context-filesystem", tools=config.tools, options=options)
        self._context = Context(Conversation(session))

    async def query(self, text: str) -> str:
        """Return the answer of the model, after all calls that it makes on the way."""
        session, messages = self._context.conversation.session, self._context.conversation.messages
        tools: Any = [
            {"name": t.name, "description": t.description, "input_schema": t.input_schema}
            for t in self._tools.values()
        ]
        messages.append({"role": "user", "content": text})
        while True:
            edited: Any = (await session.apply_async(messages, tools=tools)).messages
            answer = await self._llm.messages.create(
                model=self._llm.model, max_tokens=2000, tools=tools, messages=edited
            )
            await session.observe_async(answer.usage)
            messages.append({"role": "assistant", "content": answer.content})
            results = [await self._result(b) for b in answer.content if b.type == "tool_use"]
            if not results:
                return "".join(block.text for block in answer.content if block.type == "text")
            messages.append({"role": "user", "content": results})

    async def _result(self, call: Any) -> dict[str, Any]:  # noqa: ANN401 - an SDK's object
        try:
            returned = self._tools[call.name](**call.input)
            returned = await returned if inspect.isawaitable(returned) else returned
        except Exception as error:  # noqa: BLE001 - the model may correct it
            returned, failed = f"{type(error).__name__}: {error}", True
        else:
            failed = False
        content = {"tool_use_id": call.id, "content": str(returned), "is_error": failed}
        return {"type": "tool_result", **content}


@tool("Read a file", ephemeral=2)
async def read_file(path: str) -> str:
    """Return the text of a file of the folder, or of one that a placeholder names."""
    return await asyncio.to_thread((Path(sys.argv[1]) / path).read_text, encoding="utf-8")


async def main() -> None:
    """Let the agent read four files, one with each query."""
    agent = Agent(
        llm=ChatAnthropic(),
        config=AgentConfig(tools=[read_file], offload_enabled=True, offload_token_threshold=1000),
    )
    for number in range(1, 5):
        await agent.query(f"Read file{number}.txt")
        for item in agent._context.conversation.items:  # noqa: SLF001 - as in the document
            if item.offloaded:
                print(f"{number}: Offloaded: {item.offload_path}")


if __name__ == "__main__":
    if not sys.argv[1:]:
        sys.exit(__doc__)
    asyncio.run(main())
