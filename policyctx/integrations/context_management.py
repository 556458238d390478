"""From a policy to the edits of Anthropic's server and back, and what stays behind each way."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, NamedTuple

from policyctx.errors import Diagnostic, Location, PolicyError, present
from policyctx.integrations.context_edits import (
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
# Such a text would be read as a variable of the environment.
_VARIABLE = re.compile(r"\$\{.*\}", re.DOTALL)
_LARGE_WINDOW = 1_000_000


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


def _refuse(is_so: object, why: str) -> None:
    if is_so:
        raise _StaysBehindError(why)


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
            _refuse(type(edit) in edits, "an earlier step is exported as the edit of this kind")
        except _StaysBehindError as error:
            left.append((("steps", step.name), str(error)))
        else:
            edits[type(edit)] = edit
            left += exporting.left
    left += [(("store", key), _NO_SAVE) for key in sorted(policy.store.model_fields_set)]
    if policy.model.cache.breakpoints == "auto":
        why = "the server sets no cache breakpoints; set `cache_control` in the request"
        left.append((("model", "cache", "breakpoints"), why))
    order = (ClearThinking, ClearToolUses, Compact)
    return Exported(
        tuple(edits[kind] for kind in order if kind in edits),
        tuple(
            LeftBehind(".".join(path), why, root.written(path)) for path, why in dict.fromkeys(left)
        ),
    )


class _Exporting:
    """The export of one step."""

    def __init__(self, policy: Policy, step: Step) -> None:
        self._policy, self._step, self._select = policy, step, step.select
        self.left: list[tuple[RulePath, str]] = []

    def edit(self) -> Edit:
        """Return the edit for the step; raises `_StaysBehindError` if there is none."""
        step, types = self._step, self._select.types
        _refuse(step.on == "arrival", "the server edits before a call, not as a result arrives")
        _refuse(step.on == "overflow", "the server edits before a call, not after a refusal")
        if step.action.takes_messages:
            return self._compact()
        if types is None:
            types = tuple(name for name, rule in self._policy.items.items() if rule.offload)
        if set(types) == {_THINKING}:
            return self._thinking()
        is_clearing = _RESULT in types or "*" in types
        _refuse(not is_clearing, "the server clears nothing but tool results and thinking")
        return self._tool_uses(set(types))

    def _leave(self, is_set: object, why: str, *keys: str) -> None:
        """Leave a key of the step behind, if it is set."""
        if is_set:
            self.left.append((("steps", self._step.name, *keys), why))

    def _tool_uses(self, types: set[str]) -> ClearToolUses:
        step, select, rule = self._step, self._select, self._rule(_RESULT)
        _refuse(select.tools is not None, "the server can exclude tools, and cannot choose them")
        _refuse(select.superseded, "the server knows no superseded results")
        _refuse(select.ephemeral, "the server knows no ephemeral items")
        takes_none = rule.pin or (step.action.is_bound_by_rules and not rule.offload)
        _refuse(takes_none, "the rules of the policy let it take no tool results")
        keep = self._kept_tool_uses(types)
        trigger, at_least = self._trigger(keep)
        why = f"{_NO_SAVE}, so what it clears cannot be read again"
        if step.action.leaves_nothing:
            why = "the server leaves a text in the place of a result"
        self._leave(step.action.saves or step.action.leaves_nothing, why, "do")
        self._note_types(types)
        self._note_sizes(rule)
        self._note_wording(rule)
        for key, is_set, why in (
            ("errors", not select.errors, "the server clears failed results as well"),
            (
                "keep_first",
                select.keep_first is not None,
                "the server clears from the beginning on",
            ),
            ("placeholders", select.placeholders, "the server leaves one text for each result"),
            ("order", select.order != "oldest", "the server clears the oldest first"),
            ("until", select.until, "the server clears all but what `keep` says"),
        ):
            self._leave(is_set, why, "select", key)
        return ClearToolUses(
            type="clear_tool_uses_20250919",
            trigger=trigger,
            keep=ToolUses(type="tool_uses", value=keep),
            clear_at_least=at_least,
            clear_tool_inputs=self._inputs(),
            exclude_tools=self._excluded() or None,
        )

    def _rule(self, item_type: str) -> ItemRule:
        return self._policy.items.get(item_type, ItemRule())

    def _keep_recent(self, item_type: str) -> KeepRecent | None:
        given = self._select.keep_recent
        return self._rule(item_type).keep_recent if given is None else given

    def _kept_tool_uses(self, types: set[str]) -> int:
        keep = self._keep_recent(_RESULT)
        if keep is None or keep.items == 0:
            return 0
        own = any(rule.match is not None for rule in self._policy.items.values())
        together = keep.per == "all" or (keep.per == "type" and types == {_RESULT} and not own)
        if keep.items is None or not together:
            raise _StaysBehindError("the server keeps a number of tool uses, of all tools together")
        return keep.items

    def _gates(self, *known: str) -> Gates:
        """Return the gates of the step; refuses those that are not known, and alternatives."""
        when = self._step.when
        _refuse(len(when) > 1, "an edit has one trigger, and no alternatives")
        gates = when[0] if when else Gates()
        given = {name for name in gates.model_fields_set if getattr(gates, name) is not None}
        unknown = sorted(given.difference(known))
        _refuse(unknown, f"the server has no trigger like `{''.join(unknown[:1])}`")
        return gates

    def _trigger(self, keep: int) -> tuple[InputTokens | ToolUses, InputTokens | None]:
        """Return the trigger and `clear_at_least`; without gates, a step always runs."""
        gates = self._gates("tokens", "items", "frees")
        tokens, items, frees = gates.tokens, gates.items, gates.frees
        _refuse(tokens and items, "an edit has one trigger, either tokens or tool uses")
        at_least = None
        if frees is not None:
            at_least = InputTokens(type="input_tokens", value=self._over(frees, "frees") + 1)
        if tokens is not None:
            return InputTokens(type="input_tokens", value=self._over(tokens, "tokens")), at_least
        if items is not None:
            is_of_uses = set(items.types) in ({"tool_call"}, {_RESULT})
            _refuse(not is_of_uses, "a trigger counts tool uses, and no other items")
            keep = self._over(items, "items")
        return ToolUses(type="tool_uses", value=keep), at_least

    def _over(self, limits: Limits[Any], gate: str) -> int:
        """Return the whole number that a gate's number must be over."""
        is_upper = limits.under is not None or limits.at_most is not None
        _refuse(is_upper, f"a trigger has no upper limit of `{gate}`")
        over = [] if limits.over is None else [self._exact(limits.over).__floor__()]
        at_least = [] if limits.at_least is None else [self._exact(limits.at_least).__ceil__() - 1]
        return max(0, *over, *at_least)

    def _exact(self, amount: int | Share) -> Fraction:
        if isinstance(amount, Share):
            return amount.percent * self._policy.model.context_window / 100
        return Fraction(amount)

    def _inputs(self) -> bool | tuple[str, ...] | None:
        given = self._select.with_input
        if given is None or "*" in given.tools:
            return None if given is None else True
        path = ("steps", self._step.name, "select", "with_input")
        return tuple(self._exact_names(given.tools, path)) or None

    def _excluded(self) -> tuple[str, ...]:
        path = ("steps", self._step.name, "select", "except_tools")
        names = self._exact_names(self._select.except_tools, path)
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

    def _exact_names(self, globs: Iterable[str], path: RulePath) -> list[str]:
        others = [glob for glob in globs if not TOOL_NAME.fullmatch(glob)]
        if others:
            self.left.append((path, f"the server takes names, and no globs: {', '.join(others)}"))
        return [glob for glob in globs if glob not in others]

    def _note_types(self, types: set[str]) -> None:
        others = sorted(types - {_RESULT, "recalled"})
        why = "the server clears tool results alone"
        if self._select.types is not None:
            self._leave(others, f"{why}, and not {', '.join(others)}", "select", "types")
        else:
            self.left += [(("items", name, "offload"), why) for name in others]
        for name, rule in self._policy.items.items():
            if rule.match is not None or name == "recalled":
                self.left.append((("items", name), "the server has no item types"))

    def _note_sizes(self, rule: ItemRule) -> None:
        step = self._step
        levels: list[tuple[RulePath, Threshold]] = [(("steps", step.name, "select"), step.select)]
        if step.action.is_bound_by_rules:
            levels += [(("items", _RESULT), rule), ((), self._policy)]
        for path, level in levels:
            found = {key: getattr(level, key) for key in ("min_tokens", "min_chars")}
            given = {key: amount for key, amount in found.items() if amount is not None}
            if given:  # the nearest level decides, with one of the two
                self.left += [
                    ((*path, key), _ANY_SIZE) for key, n in given.items() if self._exact(n)
                ]
                break
        is_set = "must_shrink" in step.model_fields_set and step.must_shrink
        self._leave(is_set, _ANY_SIZE, "must_shrink")

    def _note_wording(self, rule: ItemRule) -> None:
        levels: tuple[tuple[RulePath, object], ...] = (
            (("steps", self._step.name), self._step.placeholder),
            (("items", _RESULT), rule.placeholder),
            ((), "placeholder" in self._policy.model_fields_set),
        )
        nearest = next((path for path, is_set in levels if is_set), None)
        if nearest is not None and not self._step.action.leaves_nothing:
            self.left.append(((*nearest, "placeholder"), "the server has a wording of its own"))

    def _thinking(self) -> ClearThinking:
        _refuse(self._step.when, "the server has no trigger for thinking")
        _refuse(self._rule(_THINKING).pin, "the rules of the policy let it take no thinking")
        keep = self._keep_recent(_THINKING)
        is_other = keep is not None and keep.turns is None
        _refuse(is_other, "the server keeps the thinking of a number of turns")
        for key in ("until", "min_tokens", "min_chars"):
            why = "the server clears all thinking but what it keeps"
            self._leave(getattr(self._select, key), why, "select", key)
        # No step takes the thinking of the current turn.
        turns = max(1, 0 if keep is None else keep.turns or 0)
        return ClearThinking(
            type="clear_thinking_20251015", keep=ThinkingTurns(type="thinking_turns", value=turns)
        )

    def _compact(self) -> Compact:
        _refuse(not self._step.when, "a compaction of the server has a trigger in input tokens")
        trigger = self._over(present(self._gates("tokens").tokens), "tokens")
        least = f"{LEAST_COMPACTION_TRIGGER:,}"
        is_small = trigger < LEAST_COMPACTION_TRIGGER
        _refuse(is_small, f"the server takes no trigger below {least} input tokens")
        settings = compaction_of(self._policy, self._step)
        self._note_compaction(settings)
        return Compact(
            type="compact_20260112",
            trigger=InputTokens(type="input_tokens", value=trigger),
            instructions="\n".join(settings.summary.rules) or None,
        )

    def _note_compaction(self, settings: Compaction) -> None:
        own = self._step.compaction
        of_step = set() if own is None else own.model_fields_set
        written = of_step | self._policy.compaction.model_fields_set
        summary, keeps = settings.summary, "the server keeps nothing beside the summary"
        keeps_recent = any(getattr(settings.keep_recent, k) for k in KeepRecent.exactly_one)
        decides, of_model = "the server decides this", "the model that is called writes the summary"
        rules_alone = "only `rules` become the server's instructions"
        others = sorted(summary.model_fields_set - {"by", "rules", "prompt"})
        for keys, is_set, why in (
            (("keep_first",), settings.keep_first, keeps),
            (("summary", "prompt"), summary.prompt is not None, rules_alone),
            (("keep_recent",), keeps_recent, keeps),
            (("keep_newest_user_message",), settings.keep_newest_user_message, keeps),
            (("min_new",), "min_new" in written, decides),
            (("restore",), settings.restore.max_files, "the server reads no files again"),
            (("archive",), settings.archive, _NO_SAVE),
            (("wording",), "wording" in written, decides),
            (("summary", "by"), summary.by != "anthropic", of_model),
            *((("summary", key), True, decides) for key in others),
        ):
            if keys[0] in of_step:
                self._leave(is_set, why, "compaction", *keys)
            elif is_set:
                self.left.append((("compaction", *keys), why))


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
    kinds = [type(edit) for edit, _ in edits]
    problems = [
        Diagnostic(
            node.place, "PC106", f"a second edit of the type {edit.type!r} cannot be imported"
        )
        for i, (edit, node) in enumerate(edits)
        if type(edit) in kinds[:i]
    ]
    if problems:
        raise PolicyError(problems)
    importing = _Importing()
    # A compaction ends a pipeline.
    for edit, node in sorted(edits, key=lambda one: isinstance(one[0], Compact)):
        importing.add(edit, node)
    made = Imported(importing.document(name), tuple(importing.left))
    parsed_policy(PolicySource("the imported policy", made.text), variables={})
    return made


class _Importing:
    def __init__(self) -> None:
        self._steps: list[dict[str, Any]] = []
        self._sections: dict[str, Any] = {}
        self._most_tokens = 0
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
        if self._most_tokens >= Model().context_window:
            found["model"] = {"context_window": max(_LARGE_WINDOW, self._most_tokens + 1)}
        return {**found, **self._sections, "steps": self._steps}

    def _tokens(self, amount: int) -> int:
        self._most_tokens = max(self._most_tokens, amount)
        return amount

    def _clear_tool_uses(self, edit: ClearToolUses) -> None:
        select: dict[str, Any] = {"types": ["tool_result"]}
        if edit.keep.value:
            # The server counts pairs of a use and its result, of parallel uses too.
            select["keep_recent"] = {"items": edit.keep.value, "per": "all", "batches": "split"}
        if edit.exclude_tools:
            select["except_tools"] = list(edit.exclude_tools)
        if given := edit.clear_tool_inputs:
            tools = "*" if isinstance(given, bool) else list(given)
            select["with_input"] = {"tools": tools, "leave": "empty"}
        over = edit.trigger.value
        when: dict[str, Any] = {"items": {"over": over, "types": ["tool_call"]}}
        if isinstance(edit.trigger, InputTokens):
            when = {"tokens": {"over": self._tokens(over)}}
        if edit.clear_at_least is not None:
            when["frees"] = {"at_least": self._tokens(edit.clear_at_least.value)}
        self._sections["items"] = {"tool_result": {"offload": True}}
        self._steps.append(
            {"name": "clear-tool-uses", "do": "clear", "select": select, "when": when}
        )

    def _clear_thinking(self, edit: ClearThinking, node: Node) -> None:
        if edit.keep == "all" or isinstance(edit.keep, AllThinking):
            return  # a policy removes no thinking unless a step does
        if edit.keep is None:
            why = "without it the model decides; the policy keeps the thinking of one turn"
            self._leave(edit, "keep", node, why)
        turns = 1 if edit.keep is None else edit.keep.value
        select = {"types": ["thinking"], "keep_recent": {"turns": turns}}
        self._steps.append({"name": "clear-thinking", "do": "drop", "select": select})

    def _compaction(self, edit: Compact, node: Node) -> None:
        trigger = COMPACTION_TRIGGER if edit.trigger is None else edit.trigger.value
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
        restore = {"max_files": 0}
        self._sections["compaction"] = {"summary": summary, "restore": restore, "archive": False}
        gate = {"tokens": {"over": self._tokens(trigger)}}
        self._steps.append({"name": "compact", "do": "compact", "when": gate})

    def _leave(self, edit: Edit, key: str, node: Node, why: str) -> None:
        found = node.child(key)
        place = node.place if found is None else found.key or found.place
        self.left.append(LeftBehind(f"{edit.type}.{key}", why, place))
