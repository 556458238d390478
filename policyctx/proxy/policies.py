"""`Policies`: the policy of each agent, read when the proxy starts and when it is asked to."""

import logging
import os
from collections.abc import Mapping
from pathlib import Path
from threading import Lock

from policyctx.errors import InputError, PolicyError
from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.agents import entry_of, entry_policy, policy_for, read_agents
from policyctx.policy.sources import read_source
from policyctx.proxy.clients import for_elsewhere
from policyctx.proxy.conversations import Identity

_log = logging.getLogger(__name__)

AGENT_HEADER = "x-policyctx-agent"
_CLIENTS = frozenset({"claude-code", "codex"})


class Policies:
    """One policy for all agents, or those that a `policyctx.yaml` assigns to them by name.

    Every policy of the file is read at once. Raises `PolicyError` if one of them is wrong, and
    `InputError` if the clients are `elsewhere` and its placeholders would be of no use to them.
    Then the proxy does not start. With `over_mcp` placeholders name the tool of its MCP server.
    """

    def __init__(
        self,
        policy: str | os.PathLike[str],
        agents: Path | None = None,
        *,
        elsewhere: bool = False,
        over_mcp: bool = False,
    ) -> None:
        self._name, self._agents = policy, agents
        self._elsewhere, self._over_mcp = elsewhere, over_mcp
        self._guard = Lock()
        self.reloads = 0
        """How often the policies were read again, or were tried to."""
        self.redacts = False
        """Whether one of the policies redacts."""
        self._read()

    def reload(self) -> None:
        """Read all policies again. If one of them is wrong, all stay as they are."""
        try:
            self._read()
        except (PolicyError, InputError) as error:
            _log.error("the policy was not read again, and the old one stays: %s", error)
        self.reloads += 1

    def _read(self) -> None:
        policy = self._used(OffloadPolicy.load(self._name))
        file, redacts = None, bool(policy.policy.redact)
        if self._agents is not None:
            file = read_agents(read_source(self._agents, str(self._agents)))
            for entry in file.entries:
                made = self._used(OffloadPolicy(entry_policy(entry, file, agent=entry.pattern)))
                redacts = redacts or bool(made.policy.redact)
        with self._guard:
            self._policy, self._file, self.redacts = policy, file, redacts
            self._known: dict[str, OffloadPolicy] = {}

    def agent_of(self, headers: Mapping[str, str], identity: Identity | None) -> str:
        """Return the name of the agent that sent a request, for the entries of the file.

        It is the header `X-Policyctx-Agent`, then the client that the session's headers show, then
        the product in `User-Agent`.
        """
        if self._file is None:
            return ""
        if name := headers.get(AGENT_HEADER, "").strip():
            return name
        if identity is not None and identity.client in _CLIENTS:
            return identity.client
        return headers.get("user-agent", "").partition("/")[0].strip().lower()

    def policy_of(self, agent: str) -> OffloadPolicy:
        """Return the policy of an agent, which is the general one without an entry for it."""
        with self._guard:
            file, known = self._file, self._known
            if file is None or entry_of(agent, file) is None:
                return self._policy
            if (found := known.get(agent)) is not None:
                return found
        made = self._used(OffloadPolicy(policy_for(agent, file)))
        with self._guard:
            return known.setdefault(agent, made)

    @property
    def general(self) -> OffloadPolicy:
        """The policy of agents without an entry."""
        with self._guard:
            return self._policy

    def _used(self, policy: OffloadPolicy) -> OffloadPolicy:
        if not (self._elsewhere or self._over_mcp):
            return policy
        return for_elsewhere(policy, over_mcp=self._over_mcp)
