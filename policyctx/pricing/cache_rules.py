"""`CacheRules`: how the prompt cache of one language model works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

CacheKind: TypeAlias = Literal["anthropic", "breakpoints", "prefix"]


@dataclass(frozen=True, slots=True)
class CacheRules:
    """The rules of a prompt cache; sizes in tokens of the provider, times in seconds."""

    kind: CacheKind
    """`anthropic`: an entry for each breakpoint of a completed request, found by walking back from
    the breakpoints of a later one. `breakpoints`: a prefix matches at breakpoints only. `prefix`:
    the longest common prefix in whole steps, without breakpoints."""
    min_tokens: int
    """A shorter prefix is not cached."""
    ttl: int = 300
    """How long an entry lives after its last use, where a request says nothing else."""
    step: int = 1
    """`prefix` only: a match is a multiple of this."""
    lookback: int = 20
    """`anthropic` only: the positions that a read tries at each breakpoint, itself included. A run
    of `tool_use` blocks or of `tool_result` blocks is one position."""
    most_breakpoints: int = 4
    """A request may have no more."""
    bills_writes: bool = True
    """Whether a write has a price of its own; otherwise it is billed as input."""
