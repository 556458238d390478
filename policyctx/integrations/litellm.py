"""`PolicyHook`: sessions in the requests that pass through the proxy of LiteLLM.

    # policy_hook.py, beside the proxy's config.yaml with `callbacks: policy_hook.policy`
    policy = PolicyHook("coding-agent")

The proxy calls the hook before it sends a request to `/v1/messages`, `/v1/chat/completions` or
`/v1/responses` on. The client keeps its own list.

Importing this module raises `MissingExtraError` without LiteLLM, and `InstallationError` with a
version that has no such hook.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias

from policyctx.definitions.items import HostObject, SessionOption
from policyctx.errors import required
from policyctx.integrations.host_sessions import HostSessions, PolicyLike, Recent, Turn
from policyctx.messages.asked import CHAT, MESSAGES, RESPONSES
from policyctx.session import Session

with required(
    "the hook for LiteLLM's proxy", "litellm", needs="litellm[proxy]>=1.100", extra="litellm"
):
    from litellm.integrations.custom_logger import CustomLogger

SessionOf: TypeAlias = Callable[[Any, Mapping[str, Any]], Session | None]

# The sessions that are kept between calls; the store has what is needed to go on with another one.
_MOST_SESSIONS = 256
# The model calls whose usage is awaited at the same time.
_MOST_CALLS = 1024
# Headers that name a session, the most particular first; then those of any client.
_HEADERS = ("x-claude-code-session-id", "session-id", "thread-id", "x-litellm-session-id")
_AGENT_HEADER = "x-claude-code-agent-id"
_APIS = {
    **dict.fromkeys(("completion", "acompletion"), CHAT),
    **dict.fromkeys(("anthropic_messages", "aanthropic_messages"), MESSAGES),
    **dict.fromkeys(("responses", "aresponses"), RESPONSES),
}


class PolicyHook(CustomLogger):  # type: ignore[misc]
    """Applies a policy to the requests of a proxy, and observes their usage.

    With a policy there is one session for each `session_id` of a request and credential; `options`
    are those of `Session`. A request that names no session passes unchanged, with one warning in
    the log, and so does one of another conversation in the same session: see `AgentLoop.is_own`.
    With a function from LiteLLM's `UserAPIKeyAuth` and the request to a session or None, its answer
    holds, and None means unchanged.

    A request whose history is held by the server passes unchanged. The warnings of turns are
    logged. The proxy answers with status 500 if `Session.apply` raises an error.
    """

    def __init__(self, session: SessionOf | PolicyLike, **options: SessionOption) -> None:
        super().__init__()
        self._sessions = HostSessions(session, options=options, most=_MOST_SESSIONS)
        self._turns: Recent[str, Turn] = Recent(_MOST_CALLS)

    def session_of(self, session_id: str, user_api_key_dict: HostObject) -> Session:
        """Return the session of this id for a credential; no two credentials share one.

        Its own id is `CREDENTIAL/session_id`, where CREDENTIAL is a digest of the hashed key, the
        user and the team.
        """
        return self._sessions.of_id(f"{_credential(user_api_key_dict)}/{session_id}")

    async def async_pre_call_hook(
        self,
        user_api_key_dict: HostObject,
        cache: HostObject,  # noqa: ARG002 - as the proxy calls it
        data: dict[str, Any],
        call_type: str,
    ) -> dict[str, Any]:
        """Return the request with the edited list."""
        api = _APIS.get(call_type)
        messages = data.get(api.messages) if api else None
        if api is None or not (messages and isinstance(messages, list)):
            return data
        if MESSAGES.held_by(data) or RESPONSES.held_by(data):
            return data
        named = partial(self._session_id, user_api_key_dict, data)
        session = self._sessions.chosen(user_api_key_dict, data, session_id=named)
        # The proxy repeats an attempt without coming here.
        asked = api.asked(data, messages)
        if (turn := self._sessions.turn(session, asked)) is None:
            return data
        sent = await turn.apply()
        if (call_id := data.get("litellm_call_id")) is not None:
            self._turns.put(str(call_id), turn)
        new = sent.fields(data, api)
        data.clear()  # the same dict, since the proxy has it in other places too
        data.update(new)
        return data

    async def async_log_success_event(
        self,
        kwargs: dict[str, Any],
        response_obj: HostObject,
        start_time: HostObject,  # noqa: ARG002
        end_time: HostObject,  # noqa: ARG002
    ) -> None:
        """Observe the usage of a response, which the proxy reports when it has ended."""
        turn = self._turns.pop(str(kwargs.get("litellm_call_id")), None)
        if turn is not None:
            await turn.observe(_usage(response_obj))

    def _session_id(self, user: HostObject, data: Mapping[str, Any]) -> str | None:
        if (session_id := session_id_of(data)) is not None:
            return f"{_credential(user)}/{session_id}"
        self._sessions.warn(
            "a request was sent unchanged, since it names no session: a client can do so by the"
            " header x-litellm-session-id"
        )
        return None


def session_id_of(data: Mapping[str, Any]) -> str | None:
    """Return the session that a request names in its headers or its body, None if it names none.

    A sub-agent of Claude Code has a session of its own.
    """
    request = data.get("proxy_server_request") or {}
    headers = {str(name).lower(): text for name, text in (request.get("headers") or {}).items()}
    agent = headers.get(_AGENT_HEADER)
    for name in _named_ids(data, headers):
        if name and isinstance(name, str):
            return f"{name}/{agent}" if agent else name
    return None


def _named_ids(data: Mapping[str, Any], headers: Mapping[str, Any]) -> Iterator[object]:
    yield from map(headers.get, _HEADERS)
    yield data.get("prompt_cache_key")
    for name in ("metadata", "litellm_metadata"):
        metadata = data.get(name)
        if isinstance(metadata, dict):
            yield _session_in(metadata.get("user_id"))
            yield metadata.get("session_id")
    yield data.get("litellm_session_id")
    for header in sorted(headers):
        if header.startswith("x-") and header.endswith("-session-id"):
            yield headers[header]


def _session_in(user_id: object) -> object:
    """Return the session in the user id of Claude Code, which is JSON."""
    try:
        found = json.loads(user_id) if isinstance(user_id, str) else None
    except ValueError:
        return None
    return found.get("session_id") if isinstance(found, dict) else None


def _credential(user: HostObject) -> str:
    """Return a digest of who asks; the key is hashed by LiteLLM already."""
    names = ("api_key", "user_id", "team_id")
    who = json.dumps([getattr(user, name, None) for name in names], default=str)
    return hashlib.sha256(who.encode()).hexdigest()[:16]


def _usage(response: HostObject) -> object:
    """Return the usage of a response of any endpoint as a dict, None if it has none."""
    is_dict = isinstance(response, dict)
    usage = response.get("usage") if is_dict else getattr(response, "usage", None)
    if callable(dump := getattr(usage, "model_dump", None)):
        usage = dump()
    return usage if isinstance(usage, dict) and any(usage.values()) else None
