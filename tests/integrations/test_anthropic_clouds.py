"""`PolicyMiddleware` in the clients for the clouds, whose requests have paths of their own.

The clients take a key or a token, so none of their optional packages is needed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest

from policyctx import Session
from policyctx.integrations.anthropic import PolicyMiddleware
from tests.conversations import session_of
from tests.integrations.anthropic_rules import refusal
from tests.integrations.loops import BIG, OLD, SECOND
from tests.policies import policy
from tests.serving import Answer, Server, serving

TOOLS: Any = [{"name": "Bash", "input_schema": {"type": "object"}}]
MESSAGES: list[Any] = [*session_of(BIG, SECOND)]
# What a cloud's API has in the path instead of in the body.
_PATH = re.compile(r"/model/(?P<bedrock>[^/]+)/invoke|.*/models/(?P<vertex>[^:/]+):rawPredict")


class Cloud(Server):
    """Answers at the paths of the clouds, and keeps the bodies as the Messages API has them."""

    def __init__(self) -> None:
        super().__init__(_Answer)
        self.bodies: list[Any] = []
        self.paths: list[str] = []


class _Answer(Answer):
    server: Cloud

    def do_POST(self) -> None:  # noqa: N802 - the name that http.server calls
        body = json.loads(self.received())
        if found := _PATH.fullmatch(self.path):
            body.pop("anthropic_version")
            body["model"] = found["bedrock"] or found["vertex"]
        self.server.paths.append(self.path)
        self.server.bodies.append(body)
        usage = {"input_tokens": 500, "output_tokens": 1}
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [{"type": "text", "text": "Done."}],
            "stop_reason": "end_turn",
            "stop_sequence": None,
            "usage": usage,
        }
        self.send_json(200, json.dumps(message).encode())


def bedrock(url: str, session: Session) -> Any:
    return anthropic.AnthropicBedrock(
        base_url=url, api_key="k", aws_region="r", middleware=[PolicyMiddleware(session)]
    )


def vertex(url: str, session: Session) -> Any:
    return anthropic.AnthropicVertex(
        base_url=url,
        access_token="t",  # noqa: S106 - of no account
        region="r",
        project_id="p",
        middleware=[PolicyMiddleware(session)],
    )


def foundry(url: str, session: Session) -> Any:
    return anthropic.AnthropicFoundry(
        base_url=url, api_key="k", middleware=[PolicyMiddleware(session)]
    )


CLOUDS = {
    bedrock: "/model/some/invoke",
    vertex: "/projects/p/locations/r/publishers/anthropic/models/some:rawPredict",
    foundry: "/v1/messages",
}


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    with serving(Cloud()) as server:
        yield server


@pytest.mark.parametrize("client_of", CLOUDS)
def test_a_client_of_a_cloud_sends_the_edited_list_and_its_usage_is_observed(
    cloud: Cloud, tmp_path: Path, client_of: Any
) -> None:
    session = Session(policy(OLD), root=tmp_path, session_id="s")
    with client_of(cloud.url, session) as client:
        for _ in range(2):
            client.messages.create(model="some", max_tokens=99, tools=TOOLS, messages=MESSAGES)
    assert cloud.paths == [CLOUDS[client_of]] * 2
    first, second = cloud.bodies
    assert first == second
    assert refusal(first) is None
    sent, kept = (first["messages"][i]["content"][0]["content"] for i in (2, 4))
    assert sent.startswith("[Content offloaded]")
    assert kept == MESSAGES[4]["content"][0]["content"]
    assert session.totals().calls == 2
    assert session.totals().tokens_sent == 1000
