"""A server on the loopback address that checks and answers requests as Bedrock's Converse API."""

from __future__ import annotations

import json
from contextlib import AbstractContextManager
from itertools import pairwise

from tests.integrations.scripted import Body, Reply, ScriptedAPI, billed
from tests.serving import serving


class ConverseAPI(ScriptedAPI):
    """Converse without a stream, of any model."""

    def serves(self, path: str) -> bool:
        return path.endswith("/converse")

    def refusal(self, path: str, body: Body) -> str | None:  # noqa: ARG002
        messages = body["messages"]
        roles = [message["role"] for message in messages]
        if any(one == other for one, other in pairwise(roles)):
            return "A conversation must alternate between user and assistant roles."
        if roles[0] != "user" or roles[-1] != "user":
            return "A conversation must begin and end with a user message."
        if any(not block.get("text", "some").strip() for m in messages for block in m["content"]):
            return "The text field in a ContentBlock is blank."
        asked: set[str] = set()
        for message in messages:
            blocks = message["content"]
            found = {b["toolResult"]["toolUseId"] for b in blocks if "toolResult" in b}
            if found != asked:
                return "The toolResult blocks and the toolUse blocks of the turn before differ."
            asked = {b["toolUse"]["toolUseId"] for b in blocks if "toolUse" in b}
        return None

    def tokens_of(self, body: Body) -> int:
        return billed(body.get(name) for name in ("messages", "system", "toolConfig"))

    def over(self, tokens: int) -> str:
        return f"Input is too long for requested model: {tokens} tokens."

    def failure(self, status: int, text: str) -> Body:  # noqa: ARG002
        return {"__type": "ValidationException", "message": text}

    def answer(self, path: str, body: Body, reply: Reply) -> Body:  # noqa: ARG002
        blocks: list[Body] = [{"text": reply.text}] if reply.text else []
        blocks += [
            {"toolUse": {"toolUseId": id_, "name": tool, "input": json.loads(arguments)}}
            for id_, tool, arguments in reply.calls
        ]
        prompt = self.tokens_of(body)
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": "tool_use" if reply.calls else "end_turn",
            "usage": {"inputTokens": prompt, "outputTokens": 9, "totalTokens": prompt + 9},
            "metrics": {"latencyMs": 1},
        }


def converse_api() -> AbstractContextManager[ConverseAPI]:
    """Serve the API until the block ends."""
    return serving(ConverseAPI())
