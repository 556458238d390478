"""A prompt that an upstream refuses as too long is sent once more if the policy has such a step."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import pytest
from aiohttp import web

from tests.conversations import session_of, user
from tests.integrations.anthropic_api import AnthropicAPI, anthropic_api
from tests.proxy.running import OFFLOADS_OLD, Upstream, posted, proxy, upstream

pytestmark = pytest.mark.slow
POLICY = """\
apiVersion: policyctx/v1
name: overflow
model: {tokenizer: {chars_per_token: 3}}
steps:
  - name: too-long
    on: overflow
    do: drop
    select: {unit: group, types: ["*"], until: {tokens: {under: 60%}}}
"""
WINDOW = 10_000
LONG = "word " * 1_500
HISTORY = [*session_of(*[LONG] * 6), user("and now")]
ASKED: Any = {"model": "claude-some", "max_tokens": 99, "messages": HISTORY}


@pytest.fixture
def api() -> Iterator[AnthropicAPI]:
    with anthropic_api() as server:
        server.window = WINDOW
        yield server


def client_of(url: str) -> anthropic.Anthropic:
    headers = {"x-claude-code-session-id": "s"}
    return anthropic.Anthropic(base_url=url, api_key="k", default_headers=headers, max_retries=0)


@pytest.mark.parametrize("streams", [False, True])
def test_the_request_is_sent_once_more(api: AnthropicAPI, tmp_path: Path, *, streams: bool) -> None:
    with proxy(tmp_path, api.url, policy=POLICY) as running:
        client = client_of(running.url)
        if streams:
            with client.messages.stream(**ASKED) as stream:
                assert stream.get_final_text() == "Done."
        else:
            assert client.messages.create(**ASKED).usage.input_tokens < WINDOW
        first, second = api.bodies
        assert len(second["messages"]) < len(first["messages"])
        # The next request is shortened before it is sent.
        longer = [*HISTORY, {"role": "assistant", "content": "Done."}, user("on")]
        client.messages.create(**{**ASKED, "messages": longer})
        assert len(api.bodies) == 3
        log = running.log.read_text()
    assert "refused a prompt of about" in log


def test_a_second_refusal_reaches_the_client(api: AnthropicAPI, tmp_path: Path) -> None:
    api.window = 400
    asked = {**ASKED, "messages": [*HISTORY, user(LONG)]}
    with (
        proxy(tmp_path, api.url, policy=POLICY) as running,
        pytest.raises(anthropic.BadRequestError, match="prompt is too long"),
    ):
        client_of(running.url).messages.create(**asked)
    assert len(api.bodies) == 2


def test_without_such_a_step_the_client_gets_the_refusal(api: AnthropicAPI, tmp_path: Path) -> None:
    api.window = 400
    with (
        proxy(tmp_path, api.url, policy=OFFLOADS_OLD) as running,
        pytest.raises(anthropic.BadRequestError, match="prompt is too long"),
    ):
        client_of(running.url).messages.create(**ASKED)
    assert len(api.bodies) == 1


@pytest.fixture
def scripted() -> Iterator[Upstream]:
    with upstream() as made:
        yield made


TOO_LONG = b'{"error": {"message": "prompt is too long: 15000 tokens > 10000 maximum"}}'


@pytest.mark.parametrize("encoding", ["", "gzip"])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_refusal_is_read_in_any_encoding_and_passed_byte_for_byte(
    scripted: Upstream, tmp_path: Path, encoding: str, *, is_known: bool
) -> None:
    said = (
        TOO_LONG if is_known else b'{"error": {"message": "' + b"no such model " * 20_000 + b'"}}'
    )
    raw = gzip.compress(said) if encoding else said

    async def refused(_: web.Request) -> web.Response:
        headers = {"content-encoding": encoding} if encoding else {}
        return web.Response(status=400, body=raw, headers=headers)

    scripted.answer = refused
    with proxy(tmp_path, scripted.url, policy=POLICY) as running:
        url = f"{running.url}/v1/messages"
        status, body = posted(url, ASKED, x_claude_code_session_id="s", accept_encoding="gzip")
    assert (status, body) == (400, raw)
    sent = [len(json.loads(one.raw)["messages"]) for one in scripted.seen]
    assert len(sent) == (2 if is_known else 1)
    assert sent == sorted(sent, reverse=True)
