"""policyctx decides what stays in an agent's context window, by a policy written in YAML."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyctx.agents import for_agent
    from policyctx.errors import (
        InvalidResultError,
        MessagesError,
        PolicyctxError,
        PolicyError,
        StoreError,
        UnknownPolicyError,
        VocabularyError,
    )
    from policyctx.messages.items import Item
    from policyctx.planning.decisions import Decision, Plan, Reason
    from policyctx.planning.offload_policy import OffloadPolicy
    from policyctx.policy.loading import load_policy
    from policyctx.session import Result, Session
    from policyctx.store.filesystem import ContextFileSystem

__version__ = "0.1.0"

# Where each public name lives. Nothing is imported before it is asked for.
_HOMES = {
    "ContextFileSystem": "policyctx.store.filesystem",
    "Decision": "policyctx.planning.decisions",
    "InvalidResultError": "policyctx.errors",
    "Item": "policyctx.messages.items",
    "MessagesError": "policyctx.errors",
    "OffloadPolicy": "policyctx.planning.offload_policy",
    "Plan": "policyctx.planning.decisions",
    "PolicyError": "policyctx.errors",
    "PolicyctxError": "policyctx.errors",
    "Reason": "policyctx.planning.decisions",
    "Result": "policyctx.session",
    "Session": "policyctx.session",
    "StoreError": "policyctx.errors",
    "UnknownPolicyError": "policyctx.errors",
    "VocabularyError": "policyctx.errors",
    "for_agent": "policyctx.agents",
    "load_policy": "policyctx.policy.loading",
}

__all__ = [
    "ContextFileSystem",
    "Decision",
    "InvalidResultError",
    "Item",
    "MessagesError",
    "OffloadPolicy",
    "Plan",
    "PolicyError",
    "PolicyctxError",
    "Reason",
    "Result",
    "Session",
    "StoreError",
    "UnknownPolicyError",
    "VocabularyError",
    "for_agent",
    "load_policy",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: a module's names have every type
    if name not in _HOMES:
        raise AttributeError(f"module 'policyctx' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
