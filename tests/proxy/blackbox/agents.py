"""Agents of a few lines over the providers' own libraries, which only know a base URL."""

from __future__ import annotations

import json
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import anthropic
import openai

Message = Any
TASK = "Compile all modules, and look at what each command prints."
_SCHEMA = {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]}


@dataclass
class Agent(ABC):
    """A loop that runs the commands that the model asks for, until it asks for none.

    Every other answer is streamed. `outputs` are what the commands printed.
    """

    url: str
    key: str = "sk-scripted-0000"
    task: str = TASK
    headers: dict[str, str] = field(default_factory=dict)
    messages: list[Message] = field(default_factory=list)
    outputs: list[str] = field(default_factory=list)
    answers: int = 0

    path = ""

    def __post_init__(self) -> None:
        self.messages.append({"role": "user", "content": self.task})
        self.headers.setdefault("x-scripted-conversation", uuid4().hex)

    def run(self, answers: int | None = None) -> str:
        """Go on until the model asks for nothing, or for so many answers; return its last text."""
        text, calls = "", True
        last = None if answers is None else self.answers + answers
        while calls and self.answers != last:
            text, asked = self.ask(streamed=self.answers % 2 == 0)
            self.answers += 1
            calls = bool(asked)
            self.report([(id_, self._output(command)) for id_, command in asked])
        return text

    def _output(self, command: str) -> str:
        run = subprocess.run(  # noqa: S602 - the test's own command
            command, shell=True, capture_output=True, text=True, check=True
        )
        self.outputs.append(run.stdout)
        return run.stdout

    @abstractmethod
    def ask(self, *, streamed: bool) -> tuple[str, list[tuple[str, str]]]:
        """Let the model answer, keep its answer; return its text, and calls as (id, command)."""

    @abstractmethod
    def report(self, outputs: Sequence[tuple[str, str]]) -> None:
        """Keep the outputs of (id, text) for the next request."""

    @abstractmethod
    def close(self) -> None:
        """Close the client's connections."""


@dataclass
class AnthropicAgent(Agent):
    """Over the Anthropic SDK."""

    more: dict[str, Any] = field(default_factory=dict)
    """Further arguments of each call."""

    path = "/v1/messages"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client = anthropic.Anthropic(
            base_url=self.url, api_key=self.key, default_headers=self.headers, max_retries=3
        )

    def ask(self, *, streamed: bool) -> tuple[str, list[tuple[str, str]]]:
        arguments: dict[str, Any] = {
            "model": "claude-some",
            "max_tokens": 1_000,
            "tools": [{"name": "bash", "description": "Run.", "input_schema": _SCHEMA}],
            "messages": self.messages,
            **self.more,
        }
        if streamed:
            with self._client.messages.stream(**arguments) as stream:
                answer = stream.get_final_message()
        else:
            answer = self._client.messages.create(**arguments)
        content = [block.model_dump(mode="json", exclude_unset=True) for block in answer.content]
        for block in content:
            # The library's own field of a stream.
            block.pop("parsed_output", None)
        self.messages.append({"role": "assistant", "content": content})
        texts = [block.text for block in answer.content if block.type == "text"]
        calls = [block for block in answer.content if block.type == "tool_use"]
        return "".join(texts), [(call.id, str(call.input["command"])) for call in calls]

    def report(self, outputs: Sequence[tuple[str, str]]) -> None:
        results = [
            {"type": "tool_result", "tool_use_id": id_, "content": text} for id_, text in outputs
        ]
        if results:
            self.messages.append({"role": "user", "content": results})

    def close(self) -> None:
        self._client.close()


@dataclass
class ClaudeCodeLike(AnthropicAgent):
    """Sends what Claude Code sends: its headers, `metadata.user_id`, betas and cache markers."""

    session: str = field(default_factory=lambda: str(uuid4()))
    agent: str | None = None

    def __post_init__(self) -> None:
        self.headers["x-claude-code-session-id"] = self.session
        if self.agent is not None:
            self.headers["x-claude-code-agent-id"] = self.agent
        self.headers["anthropic-beta"] = (
            "claude-code-20250219,interleaved-thinking-2025-05-14,context-management-2025-06-27"
        )
        who = {"device_id": "d1", "account_uuid": "", "session_id": self.session}
        marker = {"type": "ephemeral"}
        edit = {"type": "clear_thinking_20251015", "keep": "all"}
        self.more = {
            "system": [
                {"type": "text", "text": "You are an agent.", "cache_control": marker},
                {"type": "text", "text": "You run commands.", "cache_control": marker},
            ],
            "metadata": {"user_id": json.dumps(who)},
            "extra_query": {"beta": "true"},
            "extra_body": {"context_management": {"edits": [edit]}},
        }
        super().__post_init__()

    def ask(self, *, streamed: bool) -> tuple[str, list[tuple[str, str]]]:
        """Put the third marker on the newest message, and take it off after the call."""
        newest = self.messages[-1]
        if isinstance(newest["content"], str):
            newest["content"] = [{"type": "text", "text": newest["content"]}]
        newest["content"][-1]["cache_control"] = {"type": "ephemeral"}
        answer = super().ask(streamed=streamed)
        del newest["content"][-1]["cache_control"]
        return answer


@dataclass
class ChatAgent(Agent):
    """Over the OpenAI SDK, Chat Completions."""

    path = "/v1/chat/completions"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client = _openai(self)

    def ask(self, *, streamed: bool) -> tuple[str, list[tuple[str, str]]]:
        function = {"name": "bash", "description": "Run.", "parameters": _SCHEMA}
        arguments: dict[str, Any] = {
            "model": "gpt-some",
            "tools": [{"type": "function", "function": function}],
            "messages": self.messages,
        }
        if streamed:
            usage: Any = {"include_usage": True}
            with self._client.chat.completions.stream(**arguments, stream_options=usage) as stream:
                completion: Any = stream.get_final_completion()
        else:
            completion = self._client.chat.completions.create(**arguments)
        said = completion.choices[0].message
        calls = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.function.name, "arguments": call.function.arguments},
            }
            for call in said.tool_calls or ()
        ]
        kept = {"role": "assistant", "content": said.content}
        self.messages.append({**kept, "tool_calls": calls} if calls else kept)
        return said.content or "", [(call["id"], _command(call["function"])) for call in calls]

    def report(self, outputs: Sequence[tuple[str, str]]) -> None:
        for id_, text in outputs:
            self.messages.append({"role": "tool", "tool_call_id": id_, "content": text})

    def close(self) -> None:
        self._client.close()


@dataclass
class ResponsesAgent(Agent):
    """Over the OpenAI SDK, Responses, with the whole list in each request."""

    path = "/v1/responses"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._client = _openai(self)

    def ask(self, *, streamed: bool) -> tuple[str, list[tuple[str, str]]]:
        tool = {"type": "function", "name": "bash", "description": "Run.", "parameters": _SCHEMA}
        arguments: dict[str, Any] = {
            "model": "gpt-some",
            "store": False,
            "include": ["reasoning.encrypted_content"],
            "tools": [{**tool, "strict": False}],
            "input": self.messages,
        }
        if streamed:
            with self._client.responses.stream(**arguments) as stream:
                response: Any = stream.get_final_response()
        else:
            response = self._client.responses.create(**arguments)
        output = [item.model_dump(mode="json", exclude_unset=True) for item in response.output]
        for item in output:
            item.pop("parsed_arguments", None)
            for part in item.get("content") or ():
                part.pop("parsed", None)
        self.messages += output
        calls = [item for item in output if item["type"] == "function_call"]
        return response.output_text, [(call["call_id"], _command(call)) for call in calls]

    def report(self, outputs: Sequence[tuple[str, str]]) -> None:
        for id_, text in outputs:
            item = {"type": "function_call_output", "call_id": id_, "output": text}
            self.messages.append(item)

    def close(self) -> None:
        self._client.close()


def _openai(agent: Agent) -> openai.OpenAI:
    return openai.OpenAI(
        base_url=f"{agent.url}/v1",
        api_key=agent.key,
        default_headers=agent.headers,
        max_retries=3,
    )


def _command(call: dict[str, Any]) -> str:
    return str(json.loads(call["arguments"])["command"])


AGENTS: tuple[type[Agent], ...] = (AnthropicAgent, ClaudeCodeLike, ChatAgent, ResponsesAgent)
