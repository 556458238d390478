"""What is timed of each library: both sides with the same options, over the same session.

Neither side waits for the disk.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from policyctx.policy.models import Policy
from tests.peers.comparing import Form, Ours, Side, changed

ALWAYS = {"tokens: {over: 100000}": "tokens: {over: 0}"}


@dataclass(frozen=True, slots=True)
class Case:
    """One library with its options, and the policy that is equal to it."""

    name: str
    form: Form
    library: Callable[[Path], Side]
    """Makes a new side, with a folder of its own."""
    ours: Callable[[Path], Side]


def cases(library: str) -> list[Case]:
    """Return the cases of a library, which must be installed."""
    return _CASES[library]()


def _module(name: str) -> Any:  # noqa: ANN401 - they are typed where they are installed
    return importlib.import_module(name)


def _ours(
    name: str,
    passages: Mapping[str, str],
    shape: str = "",
    **options: Any,  # noqa: ANN401 - of the session
) -> Callable[[Path], Side]:
    policy: Policy = changed(f"peers/{name}", passages)

    def made(root: Path) -> Side:
        module, _, kind = shape.rpartition(".")
        reader = getattr(_module(f"policyctx.integrations.{module}"), kind)() if kind else None
        return Ours(policy, root, shape=reader, **options)

    return made


def _langchain() -> list[Case]:
    form, side = _module("tests.peers.langchain_messages"), _module("tests.peers.langchain_side")
    shape = "langchain.LangChainShape"
    summary = {"summarizer": lambda _: side.SUMMARY}
    by_messages = {"tokens: {at_least: 80%}": "messages: {at_least: 50}"}
    return [
        Case(
            "ClearToolUsesEdit(trigger=0)",
            form,
            lambda _: side.Clearing(trigger=0),
            _ours("langchain-clear-tool-uses", ALWAYS, shape),
        ),
        Case(
            "SummarizationMiddleware, 50 messages",
            form,
            lambda _: side.Summarising(trigger=("messages", 50), keep=("messages", 20)),
            _ours("langchain-summarization", by_messages, shape, **summary),
        ),
    ]


def _deepagents() -> list[Case]:
    form, side = _module("tests.peers.langchain_messages"), _module("tests.peers.deepagents_side")
    large = {"min_chars: 80001": "min_chars: 2001"}
    return [
        Case(
            "FilesystemMiddleware, 500 tokens",
            form,
            lambda root: side.Evicting(root, limit=500),
            _ours("deepagents", large, "langchain.LangChainShape"),
        )
    ]


def _openai_agents() -> list[Case]:
    form, side = _module("tests.peers.openai_items"), _module("tests.peers.openai_side")
    return [
        Case(
            "ToolOutputTrimmer()",
            form,
            lambda _: side.Trimming(),
            _ours("openai-agents-trimmer", {}),
        )
    ]


def _pydantic_ai() -> list[Case]:
    form, side = _module("tests.peers.pydantic_messages"), _module("tests.peers.pydantic_side")
    harness = _module("pydantic_ai_harness.compaction")
    return [
        Case(
            "ClearToolResults(max_tokens=1), an agent's run around it",
            form,
            lambda _: side.InAgent(harness.ClearToolResults(max_tokens=1)),
            _ours("pydantic-ai-clear-tool-results", ALWAYS, "pydantic_ai.PydanticAIShape"),
        )
    ]


def _windows(
    form: Form, side: Callable[[Path], Side], policy: str, shape: str, name: str, *selects: str
) -> list[Case]:
    """Return a sliding window twice: ours saves, or does not save.

    `selects` are the ends of the lines behind which the policy says that it does not save.
    """
    saving = {f"{end}\n    save: false\n": f"{end}\n" for end in selects}
    return [
        Case(name, form, side, _ours(policy, saving, shape)),
        Case("the same; ours without saving", form, side, _ours(policy, {}, shape)),
    ]


def _agent_framework() -> list[Case]:
    form, side = _module("tests.peers.framework_messages"), _module("tests.peers.framework_side")
    window = _module("agent_framework").SlidingWindowStrategy
    return _windows(
        form,
        lambda _: side.Compacting(window(keep_last_groups=10)),
        "agent-framework-sliding-window",
        "agent_framework.AgentFrameworkShape",
        "SlidingWindowStrategy(keep_last_groups=10)",
        "replies: 9}}",
    )


def _strands() -> list[Case]:
    form, side = _module("tests.peers.converse_messages"), _module("tests.peers.strands_side")
    return _windows(
        form,
        lambda _: side.Sliding(),
        "strands-sliding-window",
        "strands.BedrockShape",
        "SlidingWindowConversationManager()",
        "under: 41}}}",
        "messages: 40}}",
    )


_CASES: dict[str, Callable[[], list[Case]]] = {
    "langchain": _langchain,
    "deepagents": _deepagents,
    "openai-agents": _openai_agents,
    "pydantic-ai": _pydantic_ai,
    "agent-framework": _agent_framework,
    "strands": _strands,
}
LIBRARIES = tuple(_CASES)
