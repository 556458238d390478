"""From the edits of Anthropic's server to a policy, and what stays behind."""

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from policyctx.errors import Diagnostic, PolicyError
from policyctx.integrations.context_management.edits import (
    COMPACTION_TRIGGER,
    AllThinking,
    ClearThinking,
    ClearToolUses,
    Compact,
    Edit,
    InputTokens,
    ThinkingTurns,
)
from policyctx.integrations.context_management.exporting import LeftBehind
from policyctx.policy.loading import parsed_policy
from policyctx.policy.models import VERSIONS, Model
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicySource
from policyctx.policy.suggestions import document_yaml

# Such a text would be read as a variable of the environment.
_VARIABLE = re.compile(r"\$\{.*\}", re.DOTALL)
_LARGE_WINDOW = 1_000_000


class Imported(NamedTuple):
    """A policy that says what edits say, as its plain document, and what stays behind."""

    document: dict[str, Any]
    left: tuple[LeftBehind, ...]

    @property
    def text(self) -> str:
        """The policy as YAML."""
        return document_yaml(self.document)


def imported(edits: Sequence[tuple[Edit, Node]], name: str) -> Imported:
    """Return the policy of this name that says what the edits say, each with its place.

    Raises `PolicyError` if a kind of edit occurs twice, or for a name that no policy can have.
    """
    importing = _Importing()
    kinds: set[type[Edit]] = set()
    problems = []
    for edit, node in edits:
        if type(edit) in kinds:
            sentence = f"a second edit of the type {edit.type!r} cannot be imported"
            problems.append(Diagnostic(node.place, "PC106", sentence))
        kinds.add(type(edit))
        importing.add(edit, node)
    if problems:
        raise PolicyError(problems)
    made = Imported(importing.document(name), tuple(importing.left))
    parsed_policy(PolicySource("the imported policy", made.text), variables={})
    return made


class _Importing:
    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._compact: list[dict[str, Any]] = []
        self._sections: dict[str, Any] = {}
        self._tokens = 0
        self.left: list[LeftBehind] = []

    def add(self, edit: Edit, node: Node) -> None:
        """Add the step for an edit."""
        if isinstance(edit, ClearToolUses):
            self._clear_tool_uses(edit)
        elif isinstance(edit, ClearThinking):
            self._clear_thinking(edit, node)
        else:
            self._compaction(edit, node)

    def document(self, name: str) -> dict[str, Any]:
        """Return the policy; its window is large enough for every trigger."""
        found: dict[str, Any] = {"apiVersion": VERSIONS[-1], "name": name}
        if self._tokens >= Model().context_window:
            found["model"] = {"context_window": max(_LARGE_WINDOW, self._tokens + 1)}
        return {**found, **self._sections, "steps": [*self._steps, *self._compact]}

    def _clear_tool_uses(self, edit: ClearToolUses) -> None:
        select: dict[str, Any] = {"types": ["tool_result"]}
        if edit.keep.value:
            # The server counts pairs of a use and its result, of parallel uses too.
            select["keep_recent"] = {"items": edit.keep.value, "per": "all", "batches": "split"}
        if edit.exclude_tools:
            select["except_tools"] = list(edit.exclude_tools)
        if edit.clear_tool_inputs:
            given = edit.clear_tool_inputs
            tools = "*" if isinstance(given, bool) else list(given)
            select["with_input"] = {"tools": tools, "leave": "empty"}
        over = {"over": edit.trigger.value}
        if isinstance(edit.trigger, InputTokens):
            self._tokens = max(self._tokens, edit.trigger.value)
            when: dict[str, Any] = {"tokens": over}
        else:
            when = {"items": {**over, "types": ["tool_call"]}}
        if edit.clear_at_least is not None:
            self._tokens = max(self._tokens, edit.clear_at_least.value)
            when["frees"] = {"at_least": edit.clear_at_least.value}
        self._sections["items"] = {"tool_result": {"offload": True}}
        self._steps.append(
            {"name": "clear-tool-uses", "do": "clear", "select": select, "when": when}
        )

    def _clear_thinking(self, edit: ClearThinking, node: Node) -> None:
        if edit.keep == "all" or isinstance(edit.keep, AllThinking):
            return  # a policy removes no thinking unless a step does
        turns = edit.keep.value if isinstance(edit.keep, ThinkingTurns) else 1
        if edit.keep is None:
            why = "without it the model decides; the policy keeps the thinking of one turn"
            self._leave(edit, "keep", node, why)
        select = {"types": ["thinking"], "keep_recent": {"turns": turns}}
        self._steps.append({"name": "clear-thinking", "do": "drop", "select": select})

    def _compaction(self, edit: Compact, node: Node) -> None:
        trigger = COMPACTION_TRIGGER if edit.trigger is None else edit.trigger.value
        self._tokens = max(self._tokens, trigger)
        summary: dict[str, Any] = {"by": "anthropic"}
        instructions = edit.instructions or ""
        if _VARIABLE.fullmatch(instructions):
            why = "a policy would read it as a variable of the environment"
            self._leave(edit, "instructions", node, why)
        elif instructions.strip():
            summary["rules"] = [instructions]
        if edit.pause_after_compaction:
            why = "a session does not pause; `before_compaction` of `Session` is called before one"
            self._leave(edit, "pause_after_compaction", node, why)
        self._sections["compaction"] = {
            "summary": summary,
            "restore": {"max_files": 0},
            "archive": False,
        }
        gate = {"tokens": {"over": trigger}}
        self._compact.append({"name": "compact", "do": "compact", "when": gate})

    def _leave(self, edit: Edit, key: str, node: Node, why: str) -> None:
        found = node.child(key)
        place = node.place if found is None else found.key or found.place
        self.left.append(LeftBehind(f"{edit.type}.{key}", why, place))
