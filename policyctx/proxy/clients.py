"""Where the files are for a client, and the offloaded texts that it may read.

A placeholder with a path is of use to an agent only on the machine of the proxy. On another machine
the placeholder has to name a tool that reads the file, such as that of the proxy's own MCP server.
"""

import ipaddress
import re
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Literal, Protocol

from policyctx.definitions.items import READ_TOOL, PlainValue
from policyctx.definitions.names import FILE_FIELDS
from policyctx.errors import InputError, StoreError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.models import Policy
from policyctx.policy.models.rules import Placeholder
from policyctx.proxy.history import owner_of
from policyctx.store.excerpts import Answer, read_offloaded, search_offloaded
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import stores_in

Client = Literal["same", "other"]
ReadBack = Literal["mcp", "tool"]

# Replaces `{how_to_read}`, or follows a wording that names no tool. An agent would look for an
# absolute path on its own disk.
_HOW_TO_READ = "Use {tool} tool with this path to view it."
_RELATIVE = "{relative_path}"
# The MCP server of the proxy serves all sessions of a client, so a path names its session.
_BELOW_ROOT = "{session_id}/{store_path}"
_IDS = ("{item_id}", "{tool_use_id}")
# A field of a wording, or a literal brace.
_FIELD = re.compile(r"\{\{|\}\}|\{\w+\}")
# The names of sessions, as `session_name` makes them. No folder above the root has such a name.
_SESSION = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._~-]{0,200}")
_SHOWN_CHARS = 200


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    address = address_of(host)
    mapped = getattr(address, "ipv4_mapped", None) or address
    return host == "localhost" or (mapped is not None and mapped.is_loopback)


def address_of(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a host is, None for a name."""
    try:
        return ipaddress.ip_address(host.strip("[]").partition("%")[0])
    except ValueError:
        return None


def is_elsewhere(client: Client | None, host: str) -> bool:
    """Whether clients run on another machine than the proxy, which listens on `host`.

    Without a setting they do unless only this machine can reach the proxy.
    """
    return not is_loopback(host) if client is None else client == "other"


def for_elsewhere(policy: OffloadPolicy, *, over_mcp: bool = False) -> OffloadPolicy:
    """Return a policy whose placeholders are of use to an agent on another machine.

    Paths in them are relative, and where a wording with a path does not name the tool that reads
    offloaded files, a line is added that does. Raises `InputError` if the policy has such a wording
    and no such tool. A placeholder without a path stays as it is.

    With `over_mcp` the tool is the one of the proxy's MCP server, and paths begin with the name of
    the session; so do the ids in a wording that names the tool and shows no path.
    """
    given = policy.policy
    if not any(step.action.saves and step.action.leaves_placeholder for step in given.steps):
        return policy
    if over_mcp:
        if not policy.store.keeps_state:
            raise InputError(
                f"policy {given.name!r} has `store: {{state: none}}`, so that no record says which"
                " client may read a text; keep the state, or leave --read-back out"
            )
        return OffloadPolicy(_reworded(given, policy.read_tool() or READ_TOOL, _BELOW_ROOT))
    tool = policy.read_tool()
    if not tool and any(map(_needs_tool, _wordings(given))):
        raise InputError(
            f"the placeholders of policy {given.name!r} name files on this machine, and the clients"
            " run on another one, where these files do not exist. Say --client same if they do."
            " Else say --read-back mcp: placeholders then name a tool of the proxy's MCP server,"
            " which you give to the agents (docs/proxy.md). With a server of your own, such as"
            f" `policyctx mcp`, name its tool in a policy: `extends: {given.name}` with `tools:"
            f" {{{READ_TOOL}: {{}}}}`"
        )
    if not any(map(_shows_path, _wordings(given))):
        return policy
    return OffloadPolicy(_reworded(given, tool, _RELATIVE))


def _replaced(field: str, wording: Placeholder, path: str) -> str:
    """Return what stands for a field in a wording for a client on another machine."""
    if field.strip("{}") in FILE_FIELDS:
        return path
    is_key = path == _BELOW_ROOT and field in _IDS and not _shows_path(wording)
    return "{session_id}/" + field if is_key else field


def _shows_path(wording: Placeholder) -> bool:
    return any(field.strip("{}") in FILE_FIELDS for field in _FIELD.findall(wording.text))


def _needs_tool(wording: Placeholder) -> bool:
    return _shows_path(wording) and READ_TOOL not in wording.text


def _wordings(policy: Policy) -> Iterator[Placeholder]:
    """Yield every wording that the policy gives, its top level's first."""
    yield policy.placeholder
    rules = (*policy.items.values(), *policy.tools.values())
    given = [*(rule.placeholder for rule in rules), *(step.placeholder for step in policy.steps)]
    yield from filter(None, given)


def _reworded(policy: Policy, tool: str, path: str) -> Policy:
    """Return a policy with such paths in all its wordings, which name the tool."""

    def reworded(rule: PlainValue) -> PlainValue:
        one = rule.placeholder
        if one is None or not (_shows_path(one) or READ_TOOL in one.text):
            return rule
        # One pass: what is put in has names of fields itself.
        fields = {field: _replaced(field, one, path) for field in _FIELD.findall(one.text)}
        line = ""
        if _needs_tool(one):
            sentence = _HOW_TO_READ.format(tool=tool)
            line = "" if "{how_to_read}" in fields else f"\n{sentence}"
            fields["{how_to_read}"] = sentence
        text = _FIELD.sub(lambda match: fields[match[0]], one.text) + line
        return rule.model_copy(update={"placeholder": one.model_copy(update={"text": text})})

    found: Policy = reworded(policy)
    return found.model_copy(
        update={
            "items": {name: reworded(rule) for name, rule in policy.items.items()},
            "tools": {name: reworded(rule) for name, rule in policy.tools.items()},
            "steps": tuple(reworded(step) for step in policy.steps),
        }
    )


class Endpoint(Protocol):
    """A server that is asked over HTTP, one request at a time, by whoever may read some texts."""

    def running(self) -> AbstractAsyncContextManager[None]:
        """Run what requests need, until the block ends."""

    async def answer(
        self, headers: Sequence[tuple[bytes, bytes]], body: bytes, texts: "OwnTexts"
    ) -> tuple[int, list[tuple[bytes, bytes]], bytes]:
        """Answer a POST request of a client that may read these texts.

        Returns the status, the headers and the body of the response.
        """


class OwnTexts:
    """The texts that the sessions of some scopes have offloaded below a root.

    Any thread may use it. Each method answers any input that a model may give, and raises nothing.
    """

    def __init__(self, root: Path, scopes: Collection[str]) -> None:
        self._root, self._scopes = root, frozenset(filter(None, scopes))

    def read(self, path: object, offset: object, limit: object, char: object) -> Answer:
        """Return lines of the text at a path, as `read_offloaded` does."""
        session, below = self._parts(path)
        store = self._store(session)
        if store is None or not below:
            return _unknown(path)
        return self._shown(
            read_offloaded(store, below, offset, limit, char, before=f"{session}/"), session
        )

    def search(self, query: object, path: object) -> Answer:
        """Return the lines that contain the query, in the texts of the session that a path names.

        The path may be that of the session's folder alone.
        """
        session, _ = self._parts(path)
        store = self._store(session)
        if store is None:
            return _unknown(path)
        return self._shown(search_offloaded(store, query, before=f"{session}/"), session)

    def _parts(self, path: object) -> tuple[str, str]:
        """Return the session that a path names, and the path below its folder."""
        plain = path.strip() if isinstance(path, str) else ""
        plain = plain.removeprefix(f"{self._root}/").removeprefix("./")
        session, _, below = plain.partition("/")
        return session, below

    def _store(self, session: str) -> ContextFileSystem | None:
        """Return the store of a session, None if it is not one of these scopes."""
        if _SESSION.fullmatch(session) is None:
            return None
        folder = self._root / session
        try:
            if folder.is_symlink():
                return None
            store = stores_in(folder, session=session)[session]
            return store if owner_of(store.records()) in self._scopes else None
        except (OSError, StoreError):
            return None

    def _shown(self, answer: Answer, session: str) -> Answer:
        """Return an answer whose errors do not tell where the root is."""
        if not answer.is_error:
            return answer
        return answer._replace(text=answer.text.replace(f"{self._root}/{session}", session))


def _unknown(path: object) -> Answer:
    shown = str(path)[:_SHOWN_CHARS]
    text = f"no offloaded content {shown!r}: path must be the path in a placeholder, as it is"
    return Answer(text, is_error=True)
