"""`Policies`: the policy of each agent, read when the proxy starts."""

from __future__ import annotations

from fnmatch import fnmatchcase
from threading import Lock
from typing import TYPE_CHECKING

from policyctx.planning.compiled import OffloadPolicy
from policyctx.policy.agents import entry_policy, policy_for, read_agents

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from policyctx.policy.agents import AgentsFile
    from policyctx.policy.sources import PolicySource
    from policyctx.proxy.identity import Identity

AGENT_HEADER = "x-policyctx-agent"
_CLIENTS = frozenset({"claude-code", "codex"})


class Policies:
    """One policy for all agents, or those that a `policyctx.yaml` assigns to them by name.

    Every policy of the file is read at once. Raises `PolicyError` if one of them is wrong, and then
    the proxy does not start.
    """

    def __init__(self, policy: str | os.PathLike[str], agents: PolicySource | None = None) -> None:
        self._policy = OffloadPolicy.load(policy)
        self._file: AgentsFile | None = None
        self._known: dict[str, OffloadPolicy] = {}
        self._guard = Lock()
        if agents is not None:
            self._file = read_agents(agents)
            for entry in self._file.entries:
                entry_policy(entry, self._file, agent=entry.pattern)

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
        file = self._file
        if file is None or not agent or not _has_entry(agent, file):
            return self._policy
        with self._guard:
            if agent not in self._known:
                self._known[agent] = OffloadPolicy(policy_for(agent, file))
            return self._known[agent]


def _has_entry(agent: str, file: AgentsFile) -> bool:
    patterns = (entry.pattern for entry in file.entries)
    return any(pattern == agent or fnmatchcase(agent, pattern) for pattern in patterns)
