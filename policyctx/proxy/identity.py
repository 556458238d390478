"""Identity: which conversation a request belongs to, by what the client says about it.

Pure: values in, values out. A client names a conversation in a header or in a field of the body.
The key of a session is made of that name, the upstream, and a keyed hash of the credential, so that
two users with the same name never share a session.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from policyctx.messages.markers import bare

# Headers that say who pays.
CREDENTIALS = ("authorization", "x-api-key", "api-key", "x-goog-api-key")
_SESSION_HEADER = re.compile(r"x-(?:[a-z0-9]+-)*session-id")
# Earlier versions of Claude Code wrote their ids as one text.
_USER_ID = re.compile(r"_session_([0-9a-fA-F-]{8,64})$")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_SHOWN = 40
_MOST_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Identity:
    """A conversation as the client names it.

    `is_strong` says that the client gives each conversation a name of its own. A weak name, such as
    the key of a prompt cache, may stand for several.
    """

    client: str
    """The client or the field that gave the name."""
    parts: tuple[str, ...]
    is_strong: bool = True


def identity_of(headers: Mapping[str, str], fields: Mapping[str, Any]) -> Identity | None:
    """Return the conversation that a request names, None if it names none.

    `headers` have names in lower case, `fields` are those of the body. Headers come first.
    """
    return _in_headers(headers) or _in_fields(fields) or _in_others(headers, fields)


def header_identity(headers: Mapping[str, str]) -> Identity | None:
    """Return the conversation that headers name before any field can; None if they do not."""
    return _in_headers(headers)


def scope_of(key: bytes, upstream: str, credential: Iterable[tuple[str, str]]) -> str:
    """Return a keyed hash of the upstream and the credential, in hex.

    `credential` are the headers that have one, in the order of `CREDENTIALS`.
    """
    return _digest(key, (upstream, *(f"{name}={value}" for name, value in credential)))


def credential_of(headers: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """Return the headers that have a credential; names are in lower case."""
    return tuple((name, headers[name]) for name in CREDENTIALS if name in headers)


def session_name(scope: str, identity: Identity) -> str:
    """Return the id of the session of a conversation, which names its folder too."""
    shown = _UNSAFE.sub("-", identity.parts[0]).strip(".-")[:_LONGEST_SHOWN]
    parts = (identity.client, *identity.parts)
    found = _digest(scope.encode()[:64], parts)
    return "-".join(filter(None, (identity.client, shown, found[:16])))


def beginning_of(messages: Iterable[Mapping[str, Any]], count: int = 2) -> str:
    """Return a hash of how a list begins: its first messages up to the first that is the user's."""
    first = []
    for message in messages:
        first.append(json.dumps(bare(message), sort_keys=True, default=str))
        if message.get("role") == "user" or len(first) == count:
            break
    return hashlib.blake2b("\n".join(first).encode("utf-8", "replace"), digest_size=16).hexdigest()


def _digest(key: bytes, parts: Iterable[str]) -> str:
    found = hashlib.blake2b(key=key, digest_size=16)
    for part in parts:
        text = part.encode("utf-8", "surrogatepass")
        found.update(b"%d:%b" % (len(text), text))
    return found.hexdigest()


def _in_headers(headers: Mapping[str, str]) -> Identity | None:
    if session := _given(headers.get("x-claude-code-session-id")):
        names = ("x-claude-code-agent-id", "x-claude-code-parent-agent-id")
        return Identity("claude-code", (session, *(headers.get(name, "") for name in names)))
    for of_session, of_thread in (("session-id", "thread-id"), ("session_id", "conversation_id")):
        session, thread = _given(headers.get(of_session)), _given(headers.get(of_thread))
        if session or thread:
            # The root agent's thread has the name of the session.
            return Identity("codex", (thread or session, session or thread))
    return None


def _in_fields(fields: Mapping[str, Any]) -> Identity | None:
    if name := _given(fields.get("prompt_cache_key")):
        return Identity("cache-key", (name,), is_strong=False)
    if name := _in_user_id(_metadata(fields).get("user_id")):
        return Identity("user-id", (name,))
    return None


def _in_others(headers: Mapping[str, str], fields: Mapping[str, Any]) -> Identity | None:
    for name in sorted(headers):
        if _SESSION_HEADER.fullmatch(name) and (value := _given(headers[name])):
            return Identity("session", (value, name))
    for holder in (fields, _metadata(fields)):
        if value := _given(holder.get("conversation_id")):
            return Identity("conversation", (value,))
    return None


def _metadata(fields: Mapping[str, Any]) -> Mapping[str, Any]:
    found = fields.get("metadata")
    return found if isinstance(found, dict) else {}


def _in_user_id(user_id: object) -> str:
    """Return the session in Anthropic's `metadata.user_id`, which may be a JSON text."""
    text = _given(user_id)
    if found := _USER_ID.search(text):
        return found.group(1)
    if not text.startswith("{"):
        return ""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return _given(value.get("session_id")) if isinstance(value, dict) else ""


def _given(value: object) -> str:
    """Return a name that a client gave, empty for none and for what is too long for one."""
    return value if isinstance(value, str) and len(value) <= _MOST_CHARS else ""
