"""Identity: what names a conversation, in which order, and who may share it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from policyctx.messages.asked import api_of, upstream_of
from policyctx.proxy.conversations import (
    Identity,
    beginning_of,
    credential_of,
    identity_of,
    scope_of,
    session_name,
)

CLAUDE = {"x-claude-code-session-id": "c1"}
CODEX = {"session-id": "s1", "thread-id": "s1"}
USER_ID = {"metadata": {"user_id": json.dumps({"device_id": "d", "session_id": "u1"})}}
KEY = {"prompt_cache_key": "k1"}


@pytest.mark.parametrize(
    ("headers", "fields", "client"),
    [
        ({**CLAUDE, **CODEX}, {**KEY, **USER_ID}, "claude-code"),
        ({**CODEX, "x-litellm-session-id": "l"}, {**KEY, **USER_ID}, "codex"),
        ({"session_id": "s"}, {}, "codex"),
        ({"x-litellm-session-id": "l"}, {**KEY, **USER_ID}, "cache-key"),
        ({"x-litellm-session-id": "l"}, USER_ID, "user-id"),
        ({}, {"metadata": {"user_id": "user_1_account__session_0123-4567-89ab"}}, "user-id"),
        ({"x-litellm-session-id": "l"}, {"conversation_id": "c"}, "session"),
        ({"x-session-id": "l"}, {}, "session"),
        ({}, {"metadata": {"conversation_id": "c"}}, "conversation"),
        ({}, {"metadata": {"user_id": "somebody"}}, None),
        ({}, {"metadata": {"user_id": '{"a":'}}, None),
        ({}, {"metadata": {"user_id": "[" * 3000}}, None),
        ({}, {"metadata": "text", "prompt_cache_key": 7}, None),
        ({"x-request-id": "r"}, {}, None),
        ({"x-claude-code-session-id": ""}, {}, None),
    ],
)
def test_a_conversation_is_named_by_the_first_of_the_names(
    headers: Any, fields: Any, client: str | None
) -> None:
    found = identity_of(headers, fields)
    assert (found and found.client) == client


def test_a_sub_agent_is_a_conversation_of_its_own() -> None:
    agent = {"x-claude-code-agent-id": "a"}
    parent = {"x-claude-code-parent-agent-id": "p"}
    names = [identity_of(CLAUDE | more, {}) for more in ({}, agent, parent, agent | parent)]
    assert len({session_name("s", name) for name in names if name}) == 4
    threads = [identity_of(CODEX | {"thread-id": thread}, {}) for thread in ("s1", "t2")]
    assert threads[0] != threads[1]


PARTS = st.lists(st.text(max_size=5), min_size=1, max_size=3).map(tuple)


@given(PARTS, PARTS, st.text(max_size=5), st.text(max_size=5))
def test_different_names_or_scopes_have_different_sessions(
    one: tuple[str, ...], other: tuple[str, ...], scope: str, other_scope: str
) -> None:
    names = session_name(scope, Identity("a", one)), session_name(other_scope, Identity("a", other))
    assert (names[0] == names[1]) == ((scope, one) == (other_scope, other))
    assert all(set(name) <= set(SAFE) and len(name) < 100 for name in names)


SAFE = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"


@pytest.mark.parametrize(
    "other",
    [
        (b"key", "https://b", {"x-api-key": "k"}),
        (b"kez", "https://a", {"x-api-key": "k"}),
        (b"key", "https://a", {"x-api-key": "l"}),
        (b"key", "https://a", {"authorization": "k"}),
        (b"key", "https://a", {"x-api-key": "k", "authorization": "k"}),
        (b"key", "https://a", {}),
    ],
)
def test_a_scope_is_of_one_key_upstream_and_credential(
    other: tuple[bytes, str, dict[str, str]],
) -> None:
    key, upstream, headers = other
    own = scope_of(b"key", "https://a", credential_of({"x-api-key": "k", "accept": "x"}))
    assert own == scope_of(b"key", "https://a", credential_of({"x-api-key": "k"}))
    assert own != scope_of(key, upstream, credential_of(headers))


def test_a_beginning_ends_with_the_first_message_of_the_user_and_has_no_markers() -> None:
    marked = {"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}
    lists: list[list[dict[str, Any]]] = [
        [{"role": "user", "content": "hi"}],
        [{"role": "user", "content": [marked]}, {"role": "assistant", "content": "a"}],
        [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}],
        [{"role": "user", "content": "ho"}],
    ]
    found = [beginning_of(messages) for messages in lists]
    assert found[0] == found[1]
    assert len({*found}) == 3


@pytest.mark.parametrize(
    ("path", "headers", "upstream", "is_edited"),
    [
        ("/v1/messages", {}, "anthropic", True),
        ("/v1/messages/count_tokens", {}, "anthropic", True),
        ("/v1/messages/batches", {}, "anthropic", False),
        ("/messages", {}, "anthropic", True),
        ("/v1/chat/completions", {"x-api-key": "k"}, "openai", True),
        ("/v1/responses", {}, "openai", True),
        ("/v1/responses/compact", {}, "openai", False),
        ("/v1/models", {}, "openai", False),
        ("/v1/models", {"anthropic-version": "1"}, "anthropic", False),
    ],
)
def test_a_path_has_an_upstream_and_perhaps_a_list(
    path: str, headers: dict[str, str], upstream: str, *, is_edited: bool
) -> None:
    assert upstream_of(path, headers) == upstream
    api = api_of(path)
    assert (api is not None) == is_edited
    assert api is None or api.upstream == upstream
