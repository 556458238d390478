"""Sessions by the name of an agent, under the policy that `policyctx.yaml` assigns to it."""

import os
from collections.abc import Callable, Iterable

from policyctx.messages.shapes.shape import Shape
from policyctx.policy.agent_options import AgentOptions, checks_options
from policyctx.policy.agents import policy_for, read_agents
from policyctx.policy.sources import agents_source
from policyctx.session import Session
from policyctx.tokens.counter import TokenCounter
from policyctx.turns.effects import BeforeCompaction


@checks_options
def for_agent(
    agent: str,
    *,
    root: str | os.PathLike[str] | None = None,
    session_id: str | None = None,
    directory: str | os.PathLike[str] | None = None,
    tools: Iterable[object] = (),
    options: AgentOptions | None = None,
    before_compaction: BeforeCompaction | None = None,
    shapes: Iterable[Shape] = (),
    counter: TokenCounter | Callable[[str], int] | None = None,
    record: str | os.PathLike[str] | None = None,
) -> Session:
    """Return a session under the policy that `policyctx.yaml` assigns to the agent.

    The nearest file counts: first `directory` is searched, by default the working directory, then
    each folder above it. `root`, `session_id`, `tools`, `options`, `before_compaction`,
    `shapes`, `counter` and `record` are those of `Session`.

    Raises `PolicyError` if no such file exists, if it has no entry for the agent, or if the agent's
    policy is wrong.
    """
    file = read_agents(agents_source("" if directory is None else directory))
    return Session(
        policy_for(agent, file),
        root=root,
        session_id=session_id,
        tools=tools,
        options=options,
        before_compaction=before_compaction,
        shapes=shapes,
        counter=counter,
        record=record,
    )
