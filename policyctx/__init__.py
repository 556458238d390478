"""policyctx decides what stays in an agent's context window, by a policy written in YAML."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyctx.agents import for_agent
    from policyctx.compaction.assembly import CompactStats, SummaryRequest, SummaryUsage
    from policyctx.compaction.restoration import FileReader
    from policyctx.compaction.summarizers import Summarizer, register_summarizer
    from policyctx.definitions.items import Item, Medium, written_by
    from policyctx.errors import (
        AmbiguousSessionError,
        BrokenMessagesError,
        CorruptContentError,
        InvalidResultError,
        MessagesError,
        MissingExtraError,
        PolicyctxError,
        PolicyError,
        ShapeError,
        StoreError,
        SummaryError,
        UnknownOptionError,
        UnknownPolicyError,
        UnknownSummarizerError,
        UnknownTokenizerError,
        UnrestorableFileError,
        UsageError,
        VocabularyError,
    )
    from policyctx.messages.shapes.shape import Part, Shape
    from policyctx.planning.compiled import OffloadPolicy
    from policyctx.planning.decisions import Decision, Reason
    from policyctx.planning.plan import Plan
    from policyctx.policy.agent_options import AgentOptions
    from policyctx.policy.loading import load_policy
    from policyctx.policy.tools import tool
    from policyctx.recipes import (
        CompactOptions,
        CompactResult,
        OffloadResult,
        OffloadResults,
        compact_messages,
        compact_messages_async,
        offload_tool_result,
        offload_tool_result_async,
        offload_tool_results,
        offload_tool_results_async,
    )
    from policyctx.session import Session
    from policyctx.store.content import AsyncFileWriter, FileWriter, WriterStore
    from policyctx.store.filesystem import ContextFileSystem
    from policyctx.tokens.counter import register_tokenizer
    from policyctx.turns.effects import BeforeCompaction, CompactionAhead
    from policyctx.turns.request import Request
    from policyctx.turns.result import ContextItem, Result

__version__ = "0.2.0"

# Where each public name lives. Nothing is imported before it is asked for.
_HOMES = {
    "AgentOptions": "policyctx.policy.agent_options",
    "AmbiguousSessionError": "policyctx.errors",
    "AsyncFileWriter": "policyctx.store.content",
    "BeforeCompaction": "policyctx.turns.effects",
    "BrokenMessagesError": "policyctx.errors",
    "CompactOptions": "policyctx.recipes",
    "CompactResult": "policyctx.recipes",
    "CompactStats": "policyctx.compaction.assembly",
    "CompactionAhead": "policyctx.turns.effects",
    "ContextFileSystem": "policyctx.store.filesystem",
    "ContextItem": "policyctx.turns.result",
    "CorruptContentError": "policyctx.errors",
    "Decision": "policyctx.planning.decisions",
    "FileReader": "policyctx.compaction.restoration",
    "FileWriter": "policyctx.store.content",
    "InvalidResultError": "policyctx.errors",
    "Item": "policyctx.definitions.items",
    "Medium": "policyctx.definitions.items",
    "MessagesError": "policyctx.errors",
    "MissingExtraError": "policyctx.errors",
    "OffloadPolicy": "policyctx.planning.compiled",
    "OffloadResult": "policyctx.recipes",
    "OffloadResults": "policyctx.recipes",
    "Part": "policyctx.messages.shapes.shape",
    "Plan": "policyctx.planning.plan",
    "PolicyError": "policyctx.errors",
    "PolicyctxError": "policyctx.errors",
    "Reason": "policyctx.planning.decisions",
    "Request": "policyctx.turns.request",
    "Result": "policyctx.turns.result",
    "Session": "policyctx.session",
    "Shape": "policyctx.messages.shapes.shape",
    "ShapeError": "policyctx.errors",
    "StoreError": "policyctx.errors",
    "Summarizer": "policyctx.compaction.summarizers",
    "SummaryError": "policyctx.errors",
    "SummaryRequest": "policyctx.compaction.assembly",
    "SummaryUsage": "policyctx.compaction.assembly",
    "UnknownOptionError": "policyctx.errors",
    "UnknownPolicyError": "policyctx.errors",
    "UnknownSummarizerError": "policyctx.errors",
    "UnknownTokenizerError": "policyctx.errors",
    "UnrestorableFileError": "policyctx.errors",
    "UsageError": "policyctx.errors",
    "VocabularyError": "policyctx.errors",
    "WriterStore": "policyctx.store.content",
    "compact_messages": "policyctx.recipes",
    "compact_messages_async": "policyctx.recipes",
    "for_agent": "policyctx.agents",
    "load_policy": "policyctx.policy.loading",
    "offload_tool_result": "policyctx.recipes",
    "offload_tool_result_async": "policyctx.recipes",
    "offload_tool_results": "policyctx.recipes",
    "offload_tool_results_async": "policyctx.recipes",
    "register_summarizer": "policyctx.compaction.summarizers",
    "register_tokenizer": "policyctx.tokens.counter",
    "tool": "policyctx.policy.tools",
    "written_by": "policyctx.definitions.items",
}

__all__ = [
    "AgentOptions",
    "AmbiguousSessionError",
    "AsyncFileWriter",
    "BeforeCompaction",
    "BrokenMessagesError",
    "CompactOptions",
    "CompactResult",
    "CompactStats",
    "CompactionAhead",
    "ContextFileSystem",
    "ContextItem",
    "CorruptContentError",
    "Decision",
    "FileReader",
    "FileWriter",
    "InvalidResultError",
    "Item",
    "Medium",
    "MessagesError",
    "MissingExtraError",
    "OffloadPolicy",
    "OffloadResult",
    "OffloadResults",
    "Part",
    "Plan",
    "PolicyError",
    "PolicyctxError",
    "Reason",
    "Request",
    "Result",
    "Session",
    "Shape",
    "ShapeError",
    "StoreError",
    "Summarizer",
    "SummaryError",
    "SummaryRequest",
    "SummaryUsage",
    "UnknownOptionError",
    "UnknownPolicyError",
    "UnknownSummarizerError",
    "UnknownTokenizerError",
    "UnrestorableFileError",
    "UsageError",
    "VocabularyError",
    "WriterStore",
    "compact_messages",
    "compact_messages_async",
    "for_agent",
    "load_policy",
    "offload_tool_result",
    "offload_tool_result_async",
    "offload_tool_results",
    "offload_tool_results_async",
    "register_summarizer",
    "register_tokenizer",
    "tool",
    "written_by",
]


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: a module's names have every type
    if name not in _HOMES:
        raise AttributeError(f"module 'policyctx' has no attribute {name!r}")
    found = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
