"""An app of ADK whose model and tools say what they said in a recording."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.agents import LlmAgent
from google.adk.apps import App
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.base_tool import BaseTool
from google.genai import types
from pydantic import PrivateAttr

SUMMARY = "What was done so far."
APPS: list[InApp] = []
"""The apps of a test, which closes them."""


class Summariser(BaseLlm):  # type: ignore[misc]
    """Answers each request for a summary with the same text."""

    model: str = "summariser"
    chars: int = 0
    """Of the texts that it was given."""

    async def generate_content_async(
        self,
        llm_request: Any,
        stream: bool = False,  # noqa: ARG002, FBT002 - the library's interface
    ) -> AsyncGenerator[LlmResponse, None]:
        given = [part.text or "" for one in llm_request.contents for part in one.parts]
        self.chars += sum(map(len, given))
        part = types.Part(text=SUMMARY)
        yield LlmResponse(content=types.Content(role="model", parts=[part]))


class _Recorded(BaseLlm):  # type: ignore[misc]
    """Notes what it is asked, and answers when the recorded reply comes."""

    model: str = "recorded"
    _asked: Any = PrivateAttr(default_factory=asyncio.Queue)
    _replies: Any = PrivateAttr(default_factory=asyncio.Queue)

    async def generate_content_async(
        self,
        llm_request: Any,
        stream: bool = False,  # noqa: ARG002, FBT002 - the library's interface
    ) -> AsyncGenerator[LlmResponse, None]:
        await self._asked.put(list(llm_request.contents))
        yield LlmResponse(content=await self._replies.get())

    async def asked(self) -> list[Any]:
        """Return the contents of the next request."""
        found: list[Any] = await self._asked.get()
        return found

    async def reply(self, content: Any) -> None:
        """Let the request that waits be answered."""
        await self._replies.put(content)


class _Tool(BaseTool):  # type: ignore[misc]
    """Returns what the tool returned then, by the id of the call."""

    def __init__(self, name: str, results: dict[str, Any]) -> None:
        super().__init__(name=name, description="")
        self._results = results

    def _get_declaration(self) -> Any:
        return types.FunctionDeclaration(name=self.name)

    async def run_async(self, *, args: dict[str, Any], tool_context: Any) -> Any:  # noqa: ARG002 - the library's interface
        return self._results[tool_context.function_call_id]


class InApp:
    """An app that runs a conversation; each message of the user is an invocation."""

    def __init__(self, tools: set[str], **options: Any) -> None:
        APPS.append(self)
        self._loop = asyncio.new_event_loop()
        self._results: dict[str, Any] = {}
        self._model = _Recorded()
        agent = LlmAgent(
            name="agent",
            model=self._model,
            tools=[_Tool(name, self._results) for name in tools],
        )
        app = App(name="app", root_agent=agent, **options)
        sessions = InMemorySessionService()
        self._runner = Runner(app=app, session_service=sessions)
        made = sessions.create_session(app_name="app", user_id="user")
        self._session: str = self._loop.run_until_complete(made).id
        self._turn: asyncio.Task[None] | None = None
        self._waits = False  # the model was asked, and its reply has not come

    def sent(self, new: list[Any]) -> list[Any]:
        return self._loop.run_until_complete(self._sent(new))

    def close(self) -> None:
        """Answer the last request of a recording, which has no reply, and end the loop."""
        self._loop.run_until_complete(self._end())
        self._loop.close()

    async def _end(self) -> None:
        if self._turn is not None and self._waits:
            await self._model.reply(types.Content(role="model", parts=[types.Part(text="…")]))
            await self._turn

    async def _sent(self, new: list[Any]) -> list[Any]:
        for content in new:
            answers = [part.function_response for part in content.parts]
            self._results.update({one.id: one.response for one in answers if one})
        for content in new:
            if content.role == "model":
                if not self._waits:
                    await self._asked()
                self._waits = False
                await self._model.reply(content)
                if self._turn and not any(part.function_call for part in content.parts):
                    await self._turn
            elif content.parts[0].text is not None:
                self._turn = asyncio.create_task(self._run(content))
        self._waits = True
        return await self._asked()

    async def _asked(self) -> list[Any]:
        """Return what the model is asked next; raises what ended the turn instead."""
        asked = asyncio.create_task(self._model.asked())
        assert self._turn is not None
        await asyncio.wait({asked, self._turn}, return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            asked.cancel()
            self._turn.result()
            raise AssertionError("the turn ended without a request")
        return asked.result()

    async def _run(self, content: Any) -> None:
        run = self._runner.run_async(user_id="user", session_id=self._session, new_message=content)
        async for _ in run:
            pass
