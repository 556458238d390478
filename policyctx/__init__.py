"""policyctx decides what stays in an agent's context window, by a policy written in YAML."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from policyctx.agents import for_agent
    from policyctx.compaction.assembly import (
        CompactStats,
        FileReader,
        SummaryRequest,
        SummaryUsage,
    )
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
    from policyctx.planning.facts import Request
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
    from policyctx.turns.result import ContextItem, Result

__version__ = "0.2.0"

# The public names, by the module of each. Nothing is imported before it is asked for.
_NAMES = {
    "agents": "for_agent",
    "compaction.assembly": "CompactStats FileReader SummaryRequest SummaryUsage",
    "compaction.summarizers": "Summarizer register_summarizer",
    "definitions.items": "Item Medium written_by",
    "errors": "AmbiguousSessionError BrokenMessagesError CorruptContentError InvalidResultError "
    "MessagesError MissingExtraError PolicyError PolicyctxError ShapeError StoreError "
    "SummaryError UnknownOptionError UnknownPolicyError UnknownSummarizerError "
    "UnknownTokenizerError UnrestorableFileError UsageError VocabularyError",
    "messages.shapes.shape": "Part Shape",
    "planning.compiled": "OffloadPolicy",
    "planning.decisions": "Decision Reason",
    "planning.facts": "Request",
    "planning.plan": "Plan",
    "policy.agent_options": "AgentOptions",
    "policy.loading": "load_policy",
    "policy.tools": "tool",
    "recipes": "CompactOptions CompactResult OffloadResult OffloadResults compact_messages "
    "compact_messages_async offload_tool_result offload_tool_result_async "
    "offload_tool_results offload_tool_results_async",
    "session": "Session",
    "store.content": "AsyncFileWriter FileWriter WriterStore",
    "store.filesystem": "ContextFileSystem",
    "tokens.counter": "register_tokenizer",
    "turns.effects": "BeforeCompaction CompactionAhead",
    "turns.result": "ContextItem Result",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "AgentOptions", "AmbiguousSessionError", "AsyncFileWriter", "BeforeCompaction",
    "BrokenMessagesError", "CompactOptions", "CompactResult", "CompactStats", "CompactionAhead",
    "ContextFileSystem", "ContextItem", "CorruptContentError", "Decision", "FileReader",
    "FileWriter", "InvalidResultError", "Item", "Medium", "MessagesError", "MissingExtraError",
    "OffloadPolicy", "OffloadResult", "OffloadResults", "Part", "Plan", "PolicyError",
    "PolicyctxError", "Reason", "Request", "Result", "Session", "Shape", "ShapeError", "StoreError",
    "Summarizer", "SummaryError", "SummaryRequest", "SummaryUsage", "UnknownOptionError",
    "UnknownPolicyError", "UnknownSummarizerError", "UnknownTokenizerError",
    "UnrestorableFileError", "UsageError", "VocabularyError", "WriterStore", "compact_messages",
    "compact_messages_async", "for_agent", "load_policy", "offload_tool_result",
    "offload_tool_result_async", "offload_tool_results", "offload_tool_results_async",
    "register_summarizer", "register_tokenizer", "tool", "written_by",
]  # fmt: skip


def __getattr__(name: str) -> Any:  # noqa: ANN401 - PEP 562: a module's names have every type
    if name not in _HOMES:
        raise AttributeError(f"module 'policyctx' has no attribute {name!r}")
    found = getattr(importlib.import_module(f"policyctx.{_HOMES[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
