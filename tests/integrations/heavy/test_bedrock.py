"""`PolicyMiddleware` in clients for Bedrock whose requests AWS's keys sign.

The server computes the signature of each body that it receives, so an edit after the signing fails.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
from collections.abc import Iterator
from email.message import Message
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anthropic
import pytest

from policyctx import Session
from policyctx.integrations.anthropic import PolicyMiddleware
from tests.conversations import session_of
from tests.integrations.loops import BIG, OLD, SECOND
from tests.policies import policy
from tests.serving import Answer, Server, serving

SECRET = "secret"  # noqa: S105 - of no account
TOOLS: Any = [{"name": "Bash", "input_schema": {"type": "object"}}]
MESSAGES: list[Any] = [*session_of(BIG, SECOND)]


class Bedrock(Server):
    """Answers requests with a valid signature, and keeps their bodies; refuses others with 403.

    `failures` are the statuses with which it answers the next requests instead.
    """

    def __init__(self) -> None:
        super().__init__(_Answer)
        self.bodies: list[bytes] = []
        self.refused = 0
        self.failures: list[int] = []


class _Answer(Answer):
    server: Bedrock

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        raw = self.received()
        given = _fields(self.headers)["Signature"]
        if not hmac.compare_digest(given, signature(self.headers, self.path, raw)):
            self.server.refused += 1
            self.send_json(403, b'{"message": "The signature does not match."}')
            return
        self.server.bodies.append(raw)
        if self.server.failures:
            status = self.server.failures.pop(0)
            self.send_json(status, b'{"message": "scripted"}', {"retry-after-ms": "1"})
            return
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "some",
            "content": [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 500, "output_tokens": 1},
        }
        self.send_json(200, json.dumps(message).encode())


def _fields(headers: Message) -> dict[str, str]:
    """Return the fields of the `Authorization` header."""
    fields = headers["Authorization"].removeprefix("AWS4-HMAC-SHA256 ").split(",")
    return dict(field.strip().split("=", 1) for field in fields)


def signature(headers: Message, path: str, body: bytes) -> str:
    """Return the signature, version 4, of a request with these headers."""
    fields = _fields(headers)
    scope, signed = fields["Credential"].split("/")[1:], fields["SignedHeaders"].split(";")
    lines = [f"{name}:{' '.join(headers[name].split())}" for name in signed]
    digest = hashlib.sha256(body).hexdigest()
    request = ["POST", quote(path, safe="/-_.~%"), "", *lines, "", ";".join(signed), digest]
    text = [
        "AWS4-HMAC-SHA256",
        headers["X-Amz-Date"],
        "/".join(scope),
        hashlib.sha256("\n".join(request).encode()).hexdigest(),
    ]
    key = f"AWS4{SECRET}".encode()
    for part in scope:
        key = hmac.new(key, part.encode(), hashlib.sha256).digest()
    return hmac.new(key, "\n".join(text).encode(), hashlib.sha256).hexdigest()


@pytest.fixture
def bedrock() -> Iterator[Bedrock]:
    with serving(Bedrock()) as server:
        yield server


def options(server: Bedrock, session: Session) -> dict[str, Any]:
    return {
        "base_url": server.url,
        "aws_access_key": "key",
        "aws_secret_key": SECRET,
        "aws_region": "us-east-1",
        "middleware": [PolicyMiddleware(session)],
    }


def ask(server: Bedrock, session: Session, *, is_async: bool) -> None:
    """Send the messages twice through one client."""
    request: Any = {"model": "some", "max_tokens": 9, "tools": TOOLS, "messages": MESSAGES}

    async def go() -> None:
        async with anthropic.AsyncAnthropicBedrock(**options(server, session)) as client:
            for _ in range(2):
                await client.messages.create(**request)

    if is_async:
        asyncio.run(go())
        return
    with anthropic.AnthropicBedrock(**options(server, session)) as client:
        for _ in range(2):
            client.messages.create(**request)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_the_edited_body_is_signed(bedrock: Bedrock, tmp_path: Path, is_async: bool) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s")
    ask(bedrock, session, is_async=is_async)
    assert bedrock.refused == 0
    first, second = bedrock.bodies
    assert first == second
    messages = json.loads(first)["messages"]
    sent, kept = (messages[i]["content"][0]["content"] for i in (2, 4))
    assert sent.startswith("[Content offloaded]")
    assert kept == MESSAGES[4]["content"][0]["content"]
    assert session.totals().tokens_sent == 1000


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_a_retry_sends_the_same_body_with_a_valid_signature(
    bedrock: Bedrock, tmp_path: Path, is_async: bool
) -> None:
    bedrock.failures = [529, 500]
    session = Session(policy(OLD), root=tmp_path, session_id="s")
    ask(bedrock, session, is_async=is_async)
    assert bedrock.refused == 0
    assert len(bedrock.bodies) == 4
    assert len(set(bedrock.bodies)) == 1
    assert len(session.ledger) == 1


def test_the_server_refuses_the_signature_of_another_key(bedrock: Bedrock, tmp_path: Path) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s")
    given = options(bedrock, session)
    with (
        anthropic.AnthropicBedrock(**{**given, "aws_secret_key": "other"}) as client,
        pytest.raises(anthropic.PermissionDeniedError),
    ):
        client.messages.create(model="some", max_tokens=9, messages=MESSAGES, tools=TOOLS)
    assert bedrock.refused == 1
