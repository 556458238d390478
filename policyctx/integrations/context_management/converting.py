"""From a policy to the edits of Anthropic's server and back, and what stays behind each way."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from policyctx.errors import Diagnostic, Location, PolicyError, present
from policyctx.integrations.context_management.edits import (
    COMPACTION_TRIGGER,
    LEAST_COMPACTION_TRIGGER,
    TOOL_NAME,
    AllThinking,
    ClearThinking,
    ClearToolUses,
    Compact,
    Edit,
    InputTokens,
    ThinkingTurns,
    ToolUses,
)
from policyctx.policy.loading import parsed_policy
from policyctx.policy.lookup import RulePath, compaction_of
from policyctx.policy.models import VERSIONS, ItemRule, KeepRecent, Model, Policy, Step, Threshold
from policyctx.policy.models.compaction import Compaction
from policyctx.policy.models.gates import Gates, Limits
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicySource
from policyctx.policy.values import Share
from policyctx.policy.writing import document_yaml

_RESULT, _THINKING = "tool_result", "thinking"
_NO_SAVE = "the server saves nothing"
_ANY_SIZE = "the server clears results of any size"


@dataclass(frozen=True, slots=True)
class LeftBehind:
    """A step or key that has no counterpart on the other side."""

    key: str
    """Dotted, a step by its name: `steps.retire.select.until`."""
    reason: str
    place: Location | None = None
    """Where it is written; None for what holds by default."""


class Exported(NamedTuple):
    """The edits for a policy, in the order that the server asks for, and what stays behind."""

    edits: tuple[Edit, ...]
    left: tuple[LeftBehind, ...]


class _StaysBehindError(Exception):
    """A step cannot be expressed; the text says why."""


def exported(policy: Policy, root: Node) -> Exported:
    """Return the edits that say what a policy says; `root` is its resolved tree.

    A step is translated if the server knows its kind, its gates and what it keeps. Other keys of a
    translated step that the server does not know are left behind, and so is a second step of a kind
    that the server takes once.
    """
    edits: dict[type[Edit], Edit] = {}
    left: list[tuple[RulePath, str]] = []
    for step in policy.steps:
        exporting = _Exporting(policy, step)
        try:
            edit = exporting.edit()
            if type(edit) in edits:
                raise _StaysBehindError("an earlier step is exported as the edit of this kind")  # noqa: TRY301
        except _StaysBehindError as error:
            left.append((("steps", step.name), str(error)))
        else:
            edits[type(edit)] = edit
            left += exporting.left
    left += _beside_the_steps(policy)
    order = (ClearThinking, ClearToolUses, Compact)
    return Exported(
        tuple(edits[kind] for kind in order if kind in edits),
        tuple(
            LeftBehind(".".join(path), why, root.written(path)) for path, why in dict.fromkeys(left)
        ),
    )


def _beside_the_steps(policy: Policy) -> Iterator[tuple[RulePath, str]]:
    for key in sorted(policy.store.model_fields_set):
        yield ("store", key), _NO_SAVE
    if policy.model.cache.breakpoints == "auto":
        yield (
            ("model", "cache", "breakpoints"),
            "the server sets no cache breakpoints; set `cache_control` in the request",
        )


class _Exporting:
    """The export of one step."""

    def __init__(self, policy: Policy, step: Step) -> None:
        self._policy, self._step = policy, step
        self._here = ("steps", step.name)
        self.left: list[tuple[RulePath, str]] = []

    def edit(self) -> Edit:
        """Return the edit for the step; raises `_StaysBehindError` if there is none."""
        step = self._step
        if step.on == "arrival":
            raise _StaysBehindError("the server edits before a call, not as a result arrives")
        if step.action.takes_messages:
            return self._compact()
        types = set(self._types())
        if types == {_THINKING}:
            return self._thinking()
        if not types & {_RESULT, "*"}:
            raise _StaysBehindError("the server clears nothing but tool results and thinking")
        return self._tool_uses(types)

    def _types(self) -> tuple[str, ...]:
        if self._step.select.types is not None:
            return self._step.select.types
        return tuple(name for name, rule in self._policy.items.items() if rule.offload)

    def _tool_uses(self, types: set[str]) -> ClearToolUses:
        step, select = self._step, self._step.select
        rule = self._policy.items.get(_RESULT, ItemRule())
        if select.tools is not None:
            raise _StaysBehindError("the server can exclude tools, and cannot choose them")
        if select.superseded:
            raise _StaysBehindError("the server knows no superseded results")
        if select.ephemeral:
            raise _StaysBehindError("the server knows no ephemeral items")
        if rule.pin or (step.action.is_bound_by_rules and not rule.offload):
            raise _StaysBehindError("the rules of the policy let it take no tool results")
        keep = self._kept_tool_uses(types)
        trigger, at_least = self._trigger(keep)
        self._note_action()
        self._note_types(types)
        self._note_sizes(rule)
        self._note_wording(rule)
        if not select.errors:
            self._leave("select", "errors", why="the server clears failed results as well")
        if select.keep_first is not None:
            self._leave("select", "keep_first", why="the server clears from the beginning on")
        if select.placeholders:
            self._leave("select", "placeholders", why="the server leaves one text for each result")
        if select.order != "oldest":
            self._leave("select", "order", why="the server clears the oldest first")
        if select.until:
            self._leave("select", "until", why="the server clears all but what `keep` says")
        return ClearToolUses(
            type="clear_tool_uses_20250919",
            trigger=trigger,
            keep=ToolUses(type="tool_uses", value=keep),
            clear_at_least=at_least,
            clear_tool_inputs=self._inputs(),
            exclude_tools=self._excluded() or None,
        )

    def _keep_recent(self, item_type: str) -> KeepRecent | None:
        rule = self._policy.items.get(item_type)
        given = self._step.select.keep_recent
        return given if given is not None or rule is None else rule.keep_recent

    def _kept_tool_uses(self, types: set[str]) -> int:
        keep = self._keep_recent(_RESULT)
        if keep is None:
            return 0
        own = any(rule.match is not None for rule in self._policy.items.values())
        together = keep.per == "all" or (keep.per == "type" and types == {_RESULT} and not own)
        if keep.items is None or not together:
            raise _StaysBehindError("the server keeps a number of tool uses, of all tools together")
        return keep.items

    def _gates(self) -> Gates | None:
        when = self._step.when
        if len(when) > 1:
            raise _StaysBehindError("an edit has one trigger, and no alternatives")
        return when[0] if when else None

    def _trigger(self, keep: int) -> tuple[InputTokens | ToolUses, InputTokens | None]:
        """Return the trigger and `clear_at_least`; without gates, a step always runs."""
        gates = self._gates()
        if gates is None:
            return ToolUses(type="tool_uses", value=keep), None
        self._refuse_gates(gates, {"tokens", "items", "frees"})
        if gates.tokens is not None and gates.items is not None:
            raise _StaysBehindError("an edit has one trigger, either tokens or tool uses")
        at_least = None
        if gates.frees is not None:
            at_least = InputTokens(type="input_tokens", value=self._over(gates.frees, "frees") + 1)
        if gates.items is not None:
            if set(gates.items.types) not in ({"tool_call"}, {_RESULT}):
                raise _StaysBehindError("a trigger counts tool uses, and no other items")
            return ToolUses(type="tool_uses", value=self._over(gates.items, "items")), at_least
        if gates.tokens is None:
            return ToolUses(type="tool_uses", value=keep), at_least
        return InputTokens(type="input_tokens", value=self._over(gates.tokens, "tokens")), at_least

    @staticmethod
    def _refuse_gates(gates: Gates, known: set[str]) -> None:
        given = {name for name in gates.model_fields_set if getattr(gates, name) is not None}
        if unknown := sorted(given - known):
            raise _StaysBehindError(f"the server has no trigger like `{unknown[0]}`")

    def _over(self, limits: Limits[Any], gate: str) -> int:
        """Return the whole number that a gate's number must be over."""
        if limits.under is not None or limits.at_most is not None:
            raise _StaysBehindError(f"a trigger has no upper limit of `{gate}`")
        over = [] if limits.over is None else [self._exact(limits.over).__floor__()]
        at_least = [] if limits.at_least is None else [self._exact(limits.at_least).__ceil__() - 1]
        return max(0, *over, *at_least)

    def _exact(self, amount: int | Share) -> Fraction:
        if isinstance(amount, Share):
            return amount.percent * self._policy.model.context_window / 100
        return Fraction(amount)

    def _inputs(self) -> bool | tuple[str, ...] | None:
        given = self._step.select.with_input
        if given is None:
            return None
        if "*" in given.tools:
            return True
        return self._exact_names(given.tools, (*self._here, "select", "with_input")) or None

    def _excluded(self) -> tuple[str, ...]:
        names = list(
            self._exact_names(
                self._step.select.except_tools, (*self._here, "select", "except_tools")
            )
        )
        bound = self._step.action.is_bound_by_rules
        for tool, rule in self._policy.tools.items():
            if rule.pin or (bound and rule.offload is False):
                key = "pin" if rule.pin else "offload"
                names += self._exact_names((tool,), ("tools", tool, key))
                continue
            for key in ("keep_recent", "min_tokens", "min_chars", "placeholder"):
                if getattr(rule, key) is not None and (bound or key == "keep_recent"):
                    self.left.append((("tools", tool, key), "the server has no rules for a tool"))
        return tuple(dict.fromkeys(names))

    def _exact_names(self, globs: Iterable[str], path: RulePath) -> tuple[str, ...]:
        names: list[str] = []
        others: list[str] = []
        for glob in globs:
            (names if TOOL_NAME.fullmatch(glob) else others).append(glob)
        if others:
            self.left.append((path, f"the server takes names, and no globs: {', '.join(others)}"))
        return tuple(names)

    def _note_action(self) -> None:
        if self._step.action.leaves_nothing:
            self._leave("do", why="the server leaves a text in the place of a result")
        elif self._step.action.saves:
            self._leave("do", why=f"{_NO_SAVE}, so what it clears cannot be read again")

    def _note_types(self, types: set[str]) -> None:
        others = sorted(types - {_RESULT, "recalled"})
        why = "the server clears tool results alone"
        if others and self._step.select.types is not None:
            self._leave("select", "types", why=f"{why}, and not {', '.join(others)}")
        elif others:
            self.left += [(("items", name, "offload"), why) for name in others]
        for name, rule in self._policy.items.items():
            if rule.match is not None or name == "recalled":
                self.left.append((("items", name), "the server has no item types"))

    def _note_sizes(self, rule: ItemRule) -> None:
        levels: list[tuple[RulePath, Threshold]] = [((*self._here, "select"), self._step.select)]
        if self._step.action.is_bound_by_rules:
            levels += [(("items", _RESULT), rule), ((), self._policy)]
        for path, level in levels:
            found = {key: getattr(level, key) for key in ("min_tokens", "min_chars")}
            given = {key: amount for key, amount in found.items() if amount is not None}
            if given:
                # The nearest level decides, with one of the two.
                self.left += [
                    ((*path, key), _ANY_SIZE) for key, n in given.items() if self._exact(n)
                ]
                break
        if "must_shrink" in self._step.model_fields_set and self._step.must_shrink:
            self._leave("must_shrink", why=_ANY_SIZE)

    def _note_wording(self, rule: ItemRule) -> None:
        why = "the server has a wording of its own"
        if self._step.action.leaves_nothing:
            return
        if self._step.placeholder is not None:
            self._leave("placeholder", why=why)
        elif rule.placeholder is not None:
            self.left.append((("items", _RESULT, "placeholder"), why))
        elif "placeholder" in self._policy.model_fields_set:
            self.left.append((("placeholder",), why))

    def _thinking(self) -> ClearThinking:
        if self._step.when:
            raise _StaysBehindError("the server has no trigger for thinking")
        if self._policy.items.get(_THINKING, ItemRule()).pin:
            raise _StaysBehindError("the rules of the policy let it take no thinking")
        keep = self._keep_recent(_THINKING)
        if keep is not None and keep.turns is None:
            raise _StaysBehindError("the server keeps the thinking of a number of turns")
        for key in ("until", "min_tokens", "min_chars"):
            if getattr(self._step.select, key):
                self._leave("select", key, why="the server clears all thinking but what it keeps")
        # No step takes the thinking of the current turn.
        turns = max(1, 0 if keep is None else keep.turns or 0)
        return ClearThinking(
            type="clear_thinking_20251015", keep=ThinkingTurns(type="thinking_turns", value=turns)
        )

    def _compact(self) -> Compact:
        gates = self._gates()
        if gates is None:
            raise _StaysBehindError("a compaction of the server has a trigger in input tokens")
        self._refuse_gates(gates, {"tokens"})
        trigger = self._over(present(gates.tokens), "tokens")
        if trigger < LEAST_COMPACTION_TRIGGER:
            least = f"{LEAST_COMPACTION_TRIGGER:,}"
            raise _StaysBehindError(f"the server takes no trigger below {least} input tokens")
        settings = compaction_of(self._policy, self._step)
        self._note_compaction(settings)
        return Compact(
            type="compact_20260112",
            trigger=InputTokens(type="input_tokens", value=trigger),
            instructions="\n".join(settings.summary.rules) or None,
        )

    def _note_compaction(self, settings: Compaction) -> None:
        kept, keeps = settings.keep_recent, "the server keeps nothing beside the summary"
        decides = "the server decides this"
        is_left: dict[tuple[str, ...], tuple[bool, str]] = {
            ("keep_first",): (bool(settings.keep_first), keeps),
            ("summary", "prompt"): (
                settings.summary.prompt is not None,
                "only `rules` become the server's instructions",
            ),
            ("keep_recent",): (any(getattr(kept, key) for key in KeepRecent.exactly_one), keeps),
            ("keep_newest_user_message",): (settings.keep_newest_user_message, keeps),
            ("min_new",): ("min_new" in self._written_settings(), decides),
            ("restore",): (bool(settings.restore.max_files), "the server reads no files again"),
            ("archive",): (settings.archive, _NO_SAVE),
            ("wording",): ("wording" in self._written_settings(), decides),
            ("summary", "by"): (
                settings.summary.by != "anthropic",
                "the model that is called writes the summary",
            ),
            **{
                ("summary", key): (True, decides)
                for key in sorted(settings.summary.model_fields_set - {"by", "rules"})
            },
        }
        for keys, (stays, why) in is_left.items():
            if stays:
                self._leave_setting(*keys, why=why)

    def _written_settings(self) -> set[str]:
        own = self._step.compaction
        found = set(self._policy.compaction.model_fields_set)
        return found if own is None else found | own.model_fields_set

    def _leave_setting(self, *keys: str, why: str) -> None:
        own = self._step.compaction
        is_own = own is not None and keys[0] in own.model_fields_set
        here = (*self._here, "compaction") if is_own else ("compaction",)
        self.left.append(((*here, *keys), why))

    def _leave(self, *keys: str, why: str) -> None:
        self.left.append(((*self._here, *keys), why))


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
