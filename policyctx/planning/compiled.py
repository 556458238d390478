"""`OffloadPolicy`: the compiled policy, with the rules looked up by item type and tool."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from policyctx.definitions.items import BUILT_IN_TYPES, READ_TOOL, Author, Item, recall_tool
from policyctx.errors import InputError, Location
from policyctx.messages.json_text import compact_json
from policyctx.paths import path_parts
from policyctx.planning.decisions import Reason
from policyctx.planning.facts import Unit
from policyctx.planning.placeholders import CompactionForms, Wording
from policyctx.policy import lookup
from policyctx.policy.agent_options import tree_of, with_options
from policyctx.policy.loading import loaded, validated
from policyctx.policy.models import KeepRecent, Policy, Step
from policyctx.policy.models.compaction import Compaction, FileSource
from policyctx.policy.models.gates import Comparison, gates_in
from policyctx.policy.models.rules import LineFields, Match, ToolRule
from policyctx.policy.nodes import Node
from policyctx.policy.sources import PolicyName, policy_source
from policyctx.policy.tools import Hint, tool_hints
from policyctx.policy.values import Share

Hints: TypeAlias = Mapping[str, Mapping[str, Any] | Hint]

_IN_GLOBS = frozenset("*?[")

# The step of a compaction on demand under a policy without a `compact` step. No step of a policy
# can have this name.
ON_DEMAND = "Session.compact"
_K = TypeVar("_K")
_V = TypeVar("_V")
_MOST_LOOKED_UP = 1 << 14


class SizeThreshold(NamedTuple):
    """The least size of an item that is taken, and the key that gives it."""

    amount: int
    unit: Unit
    rule: lookup.RulePath


class Treatment(NamedTuple):
    """How one step treats the items of one type and tool: the nearest of every key.

    `refusal` is why it takes none of them, with the key that says so; None when it may. The first
    applies: the step never takes the type, `except_tools`, `ephemeral`, `pin`, `offload: false`.
    """

    refusal: tuple[Reason, lookup.RulePath] | None
    threshold: SizeThreshold | None
    """None where no threshold binds."""
    keep_recent: KeepRecent | None
    keep_recent_rule: lookup.RulePath
    kept: int
    """The number that `keep_recent` keeps."""
    pinned: lookup.RulePath | None
    """The key that pins them, None when they are not."""
    wording: Wording
    with_input: bool
    """Whether the input of a call goes along with its result."""
    empties_input: bool
    """Whether nothing is left of such an input."""


class _ByTool(dict[_K, _V]):
    """What was looked up by the names of tools; emptied when full, as clients may invent names."""

    def __setitem__(self, key: _K, value: _V) -> None:
        if len(self) >= _MOST_LOOKED_UP:
            self.clear()
        super().__setitem__(key, value)


class OffloadPolicy:
    """A policy compiled for planning; its only state is the rules already looked up.

    `hints` are rules by tool name that code gives, such as `{"browser": {"keep_recent": 3}}`, and
    `tools` are tools that may say so themselves; see `tool`. Every rule that the policy gives for a
    tool or a type is nearer than they are.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        hints: Hints | None = None,
        tools: Iterable[object] = (),
        root: Node | None = None,
    ) -> None:
        self.policy = policy
        self.name, self.model, self.store = policy.name, policy.model, policy.store
        self.items, self.tools, self.all_steps = policy.items, policy.tools, policy.steps
        self.places_breakpoints = policy.model.cache.breakpoints == "auto"
        """Whether the policy decides where cache breakpoints go."""
        self.path_parts = path_parts(policy.store.path)
        self.types = lookup.TypeTable(policy.items)
        self.tree = root
        """The file of the policy, with the place of each value; None for a policy from code."""
        self.hints: Mapping[str, Hint] = _hints(tools, hints or {})
        self._steps = {
            moment: tuple(step for step in policy.steps if step.on == moment)
            for moment in ("arrival", "model_call", "overflow")
        }
        self._own_types = _ByTool[tuple[str, str | None], list[tuple[str, Match]]]()
        self._treatments = _ByTool[tuple[str, str, str | None], Treatment | None]()
        self._given = _ByTool[tuple[str, str | None], list[lookup.Level]]()
        self._naming = _ByTool[tuple[str | None, bool], tuple[tuple[str, str, Wording], ...]]()

    @classmethod
    def load(
        cls, name: PolicyName, *, hints: Hints | None = None, tools: Iterable[object] = ()
    ) -> OffloadPolicy:
        """Compile the preset or file called `name`; raises `PolicyError`."""
        return cls.of(name, hints=hints, tools=tools)

    @classmethod
    def of(
        cls,
        policy: PolicyName | Policy | OffloadPolicy,
        *,
        hints: Hints | None = None,
        tools: Iterable[object] = (),
        options: Mapping[str, Any] | None = None,
    ) -> OffloadPolicy:
        """Compile a policy by its name or file, or one that was read or compiled before.

        `hints` and `tools` are nearer than those that it was compiled with. `options` change the
        policy; see `AgentOptions`. Raises `PolicyError`, `UnknownOptionError` and `InputError`.
        """
        if isinstance(policy, OffloadPolicy):
            if not (hints or tools or options):
                return policy
            known, root, earlier = policy.policy, policy.tree, policy.hints
        elif isinstance(policy, str) or hasattr(policy, "__fspath__"):
            known, root, earlier = *loaded(policy_source(policy)), {}
        elif isinstance(policy, Policy):
            known, root, earlier = policy, None, {}
        else:
            raise InputError(
                "a policy is a preset's name, a path, a Policy or an OffloadPolicy, not"
                f" {type(policy).__name__}"
            )
        if options:
            known, root = _changed(known, root, options)
        return cls(known, hints={**earlier, **_hints(tools, hints or {})}, root=root)

    @cached_property
    def digest(self) -> str:
        """The name of this policy in the ledger: 16 hex digits of the hash of what it says.

        A value that is the default counts as not said.
        """
        said = self.policy.model_dump_json(exclude_defaults=True)
        return hashlib.sha256(said.encode()).hexdigest()[:16]

    @cached_property
    def asks_for_time(self) -> bool:
        """Whether a gate needs the time since the last model call."""
        gates = [gates for step in self.policy.steps for gates in step.when]
        return any(gate.idle is not None or gate.pays_back is not None for gate in gates)

    @cached_property
    def counting_since(self) -> frozenset[str]:
        """The names of the steps with a gate that counts what came since the step took something.

        A session without state remembers nothing of it.
        """
        steps = self.policy.steps if self.store.keeps_state else ()
        return frozenset(
            s.name for s in steps if any(gates.since_last is not None for gates in s.when)
        )

    @cached_property
    def asks_for_request_size(self) -> bool:
        """Whether a gate or an `until` compares the tokens of the whole request."""
        return any(
            any(gates.tokens is not None for gates in step.when)
            or any(until.tokens is not None for until in step.select.until or ())
            for step in self.policy.steps
        )

    @cached_property
    def asks_for_window(self) -> bool:
        """Whether a limit of a gate or an `until` is a share of the context window."""
        limits = (limit for step in self.policy.steps for limit in _limits_of_tokens(step))
        return any(isinstance(limit, Share) for limit in limits)

    @cached_property
    def compacting(self) -> frozenset[str]:
        """The names of the steps that take messages instead of items."""
        steps = (step.name for step in self.policy.steps if step.action.takes_messages)
        return frozenset((*steps, ON_DEMAND))

    @cached_property
    def keeps_by_tokens(self) -> bool:
        """Whether a `keep_recent` counts tokens."""
        policy = self.policy
        from_code = (hint.rule for hint in self.hints.values())
        rules = (*policy.items.values(), *policy.tools.values(), *from_code)
        kept = [rule.keep_recent for rule in rules]
        kept += [step.select.keep_recent for step in policy.steps]
        return any(keep is not None and keep.kept_tokens is not None for keep in kept)

    def steps(self, moment: str) -> tuple[Step, ...]:
        """The steps of a moment: `arrival`, `model_call` or `overflow`; in order."""
        return self._steps[moment]

    def place(self, rule: lookup.RulePath) -> Location | None:
        """Return the place of a key in the file; None for a default or a policy from code.

        Of what code says of a tool, it is the place of that code.
        """
        if rule[:1] == (lookup.HINTS,):
            return self.hints[rule[1]].place
        return self.tree.written(rule) if self.tree is not None and rule else None

    def typed(self, item: Item, built_in: str | None = None) -> Item:
        """Return the item with the type that the policy gives it: the first of its own that fits.

        A policy's own types are tried in the order written; an item that fits none is `built_in`,
        by default its kind, or what a compaction left where the policy's wording shows it.
        """
        if built_in is None:
            built_in = self.left_by_compaction(item) or item.kind
        key = built_in, item.tool
        if (own := self._own_types.get(key)) is None:
            own = self._own_types[key] = self.types.refining(*key)
        found = built_in
        if own:
            found = next((name for name, match in own if lookup.is_of(match, item)), built_in)
        return item if found == item.type else item._replace(type=found)

    def as_before(self, item: Item, kind: str, item_type: str) -> Item:
        """Return a placeholder with the kind and the type of the item that it stands for.

        A type that this policy does not know counts as the kind.
        """
        is_known = self.types.lineage(item_type)[-1] in BUILT_IN_TYPES
        return item._replace(kind=kind, type=item_type if is_known else kind)

    def left_by_compaction(self, item: Item) -> str | None:
        """Return the type of a message in a compaction's wording, else None."""
        if item.kind != "user_message":
            return None
        found = self.compaction_forms.left(item.text)
        return None if found is None else found.item_type

    @cached_property
    def compaction_forms(self) -> CompactionForms:
        """The wordings by which messages of a compaction are recognised without a record."""
        steps = (step for step in self.policy.steps if step.action.takes_messages)
        return CompactionForms(self.compaction(step).wording for step in steps)

    @property
    def compacting_step(self) -> Step | None:
        """The step that takes messages, the one before a model call if there is another."""
        steps = (step for step in self.policy.steps if step.action.takes_messages)
        return min(steps, key=lambda step: step.on == "overflow", default=None)

    def step_on_demand(self, instructions: str) -> Step:
        """Return the `compact` step without its gates, for a compaction that somebody asks for.

        It is repeated even if hardly anything is new, and its prompt carries the instructions.
        """
        step = self.compacting_step
        if step is None:
            step = Step(name="compact", do="compact").model_copy(update={"name": ON_DEMAND})
        settings = self.compaction(step)
        changes: dict[str, Any] = {"min_new": Fraction(0)}
        if instructions:
            changes["summary"] = settings.summary.with_instructions(instructions)
        own = settings.model_copy(update=changes)
        return step.model_copy(update={"when": (), "compaction": own})

    def compaction(self, step: Step) -> Compaction:
        """Return the settings of a step that takes messages."""
        return lookup.compaction_of(self.policy, step)

    def reads_file(self, tool: str) -> str | None:
        """Return the first of `path_fields`; None for a tool that reads no file."""
        return next(iter(self.path_fields(tool)), None)

    def path_fields(self, tool: str, source: FileSource = "read") -> tuple[str, ...]:
        """Return the input fields that may hold the path of the file that a tool works on.

        `source` says what the tool does to the file.
        """
        for rule in self._tool_rules(tool):
            fields = {"read": rule.reads_file, "edited": rule.edits_file}
            if (found := fields.get(source, rule.writes_file)) is not None:
                return found
        return ()

    def line_fields(self, tool: str) -> LineFields | None:
        """Return the input fields that say which lines of a file a tool reads."""
        found = (rule.reads_lines for rule in self._tool_rules(tool))
        return next((fields for fields in found if fields is not None), None)

    def author_of(self, item: Item) -> Author | Literal[""]:
        """Return who wrote an item: as the nearest rule of its type says, else as it says itself.

        It is empty where neither says it.
        """
        given = (self.policy.items.get(name) for name in self.types.lineage(item.type))
        authors = (rule.author for rule in given if rule is not None)
        return next((one for one in authors if one is not None), item.author)

    @cached_property
    def names_authors(self) -> bool:
        """Whether a rule says who wrote the items of a type."""
        return any(rule.author is not None for rule in self.policy.items.values())

    def author_by_text(self, item: Item) -> Author | Literal[""]:
        """Return who wrote an item whose type is not known yet."""
        return self.author_of(self.typed(item)) if self.names_authors else item.author

    def _tool_rules(self, tool: str) -> Iterator[ToolRule]:
        """Yield the rules for a tool, the nearest first."""
        rules = self.policy.tools
        if tool in rules:
            yield rules[tool]
        yield from (rule for glob, rule in rules.items() if lookup.matches(tool, (glob,)))

    def read_tool(self, tools: Sequence[str] = ()) -> str:
        """Return the name of a tool that reads files of the store, empty if none is known.

        That is `read_offloaded`, with or without a prefix, if it is one of these tools or the
        policy names it, or else the first of these tools that has `reads_file`.
        """
        named = (name for name in self.policy.tools if _IN_GLOBS.isdisjoint(name))
        own = (name for name in (*tools, *named) if recall_tool(name) == READ_TOOL)
        return next(own, None) or next(filter(self.reads_file, tools), "")

    def unit(self, step: Step) -> Unit:
        """Return the unit of the threshold of a step, else of the policy; tokens without one."""
        for level in (step.select, self.policy):
            if level.min_chars is not None:
                return "chars"
            if level.min_tokens is not None:
                return "tokens"
        return "tokens"

    def treatment(self, step: Step, item_type: str, tool: str | None) -> Treatment | None:
        """Look up how `step` treats items of this type and tool; None when it selects none."""
        key = (step.name, item_type, tool)
        try:
            return self._treatments[key]
        except KeyError:
            treatment = self._treatments[key] = self._looked_up(step, item_type, tool)
            return treatment

    def selects(self, step: Step, item_type: str) -> bool:
        """Return whether the step selects items of this type.

        It names the type or one that it refines, or names none and the type is offloaded.
        """
        named = step.select.types
        if named is None:
            named = tuple(t for t, rule in self.policy.items.items() if rule.offload)
        return not {"*", *self.types.lineage(item_type)}.isdisjoint(named)

    @cached_property
    def type_enabled(self) -> Mapping[str, bool]:
        """Whether a step saves items of a type, by type (PRD context-filesystem, table of types).

        A rule for a tool, and what is ephemeral, may keep some of them.
        """
        saving = [step for step in self.policy.steps if step.saves]

        def is_taken(item_type: str, step: Step) -> bool:
            given = self._levels(item_type, None)
            never = lookup.why_never(step, self.types.lineage(item_type)) or _kept_by_rule(
                step, given
            )
            return self.selects(step, item_type) and never is None

        types = dict.fromkeys((*BUILT_IN_TYPES, *self.policy.items))
        return {name: any(is_taken(name, step) for step in saving) for name in types}

    def pinned(self, item_type: str, tool: str | None) -> lookup.RulePath | None:
        """Return the key that pins items of this type and tool, None when they are not."""
        return _pinned(self._levels(item_type, tool))

    def keeping_rule(
        self, item_type: str, tool: str | None, sizes: Mapping[Unit, int]
    ) -> lookup.RulePath | None:
        """Return the key that keeps such an item from every step that offloads its type."""
        given = self._levels(item_type, tool)
        if (pinned := _pinned(given)) is not None:
            return pinned
        offload, rule = lookup.offload_given(given)
        if not offload and rule[0] == "tools":
            return rule
        threshold = self._threshold(given)
        too_small = threshold is not None and sizes[threshold.unit] < threshold.amount
        return threshold.rule if threshold is not None and too_small else None

    def goes_along(self, item_type: str, tool: str | None) -> bool:
        """Return whether an item may be replaced along with another: no pin or rule forbids it."""
        given = self._levels(item_type, tool)
        offload, rule = lookup.offload_given(given)
        return _pinned(given) is None and (offload or rule == ("offload",))

    def wording(self, step: Step, item_type: str, tool: str | None) -> Wording:
        """Return the placeholder's wording for such an item, whether or not the step selects it."""
        return self._wording(step, self._levels(item_type, tool))

    def wordings_naming_files(
        self, tool: str | None, *, of_calls: bool
    ) -> Sequence[tuple[str, str, Wording]]:
        """Return what may be left of calls or other items of this tool: how it begins, as what type
        of item, and by which wording; the beginning of what is left in a call is JSON.

        Where the type is not part of a file's path, alike wordings of several types are one.
        """
        if (known := self._naming.get((tool, of_calls))) is not None:
            return known
        has_type = any("item_type" in part.fields for part in self.path_parts)
        found: dict[tuple[str, str], tuple[str, str, Wording]] = {}
        for step in (step for step in self.policy.steps if step.saves):
            for name in (*BUILT_IN_TYPES, *self.items):
                if of_calls != (self.types.lineage(name)[-1] == "tool_call"):
                    continue
                with_result = of_calls and step.select.with_input is not None
                if with_result or self.treatment(step, name, tool) is not None:
                    left = self.wording(step, name, tool)
                    key = name if has_type else "", left.shown.text
                    if left.names_file:
                        start = left.template.pieces[0]
                        start = compact_json(start)[1:-1] if of_calls else start
                        found.setdefault(key, (start, name, left))
        self._naming[tool, of_calls] = named = tuple(found.values())
        return named

    def _looked_up(self, step: Step, item_type: str, tool: str | None) -> Treatment | None:
        select, inputs = step.select, step.select.with_input
        outside = select.tools is not None and not lookup.matches(tool, select.tools)
        if outside or not self.selects(step, item_type):
            return None
        given = self._levels(item_type, tool)
        of_step: lookup.Level = (("steps", step.name, "select"), select)
        nearer = [of_step, *given]
        # What arrives is the newest: recency is a matter of the steps before a model call.
        recency = [] if step.on == "arrival" else nearer
        keep_recent, rule = lookup.nearest_given(recency, "keep_recent")
        return Treatment(
            refusal=self._refusal(step, item_type, tool, given),
            threshold=self._threshold(nearer if step.action.is_bound_by_rules else [of_step]),
            keep_recent=keep_recent,
            keep_recent_rule=rule,
            kept=self.kept(keep_recent),
            pinned=_pinned(given),
            wording=self._wording(step, given),
            with_input=inputs is not None and lookup.matches(tool, inputs.tools),
            empties_input=inputs is not None and inputs.leave == "empty",
        )

    def _levels(self, item_type: str, tool: str | None) -> list[lookup.Level]:
        if (known := self._given.get((item_type, tool))) is not None:
            return known
        hint = None if tool is None else self.hints.get(tool)
        rule = None if hint is None else hint.rule
        found = lookup.levels(self.policy, self.types.lineage(item_type), tool, hint=rule)
        self._given[item_type, tool] = found
        return found

    def _refusal(
        self, step: Step, item_type: str, tool: str | None, given: list[lookup.Level]
    ) -> tuple[Reason, lookup.RulePath] | None:
        """Return why the step takes none of these; the first reason in the order of evaluation."""
        name = ("steps", step.name, "select")
        if (why := lookup.why_never(step, self.types.lineage(item_type))) is not None:
            return Reason("protected", {"why": why}), ()
        if lookup.matches(tool, step.select.except_tools):
            return Reason("excluded_tool", {"tool": tool or ""}), (*name, "except_tools")
        if step.select.ephemeral and lookup.nearest_given(given, "keep_recent")[0] is None:
            return Reason("not_ephemeral"), (*name, "ephemeral")
        return _kept_by_rule(step, given)

    def _threshold(self, given: list[lookup.Level]) -> SizeThreshold | None:
        for path, level in given:
            if level.min_chars is not None:
                return SizeThreshold(level.min_chars, "chars", (*path, "min_chars"))
            if level.min_tokens is not None:
                amount = self._tokens(level.min_tokens)
                return SizeThreshold(amount, "tokens", (*path, "min_tokens"))
        return None

    def _tokens(self, amount: int | Share) -> int:
        window = self.policy.model.context_window
        return amount.of(window) if isinstance(amount, Share) else amount

    def kept(self, keep: KeepRecent | None) -> int:
        """Return the number that a `keep_recent` keeps."""
        if keep is None:
            return 0
        counted = keep.items, keep.messages, keep.turns, keep.replies
        return next((n for n in counted if n is not None), self._tokens(keep.kept_tokens or 0))

    def _wording(self, step: Step, given: list[lookup.Level]) -> Wording:
        return Wording.of(lookup.wording(self.policy, step, given))


def _limits_of_tokens(step: Step) -> Iterator[object]:
    """Yield the limits in tokens of the gates of a step and of its `until`."""
    for gates in step.when:
        for _, given, gate in gates_in(gates):
            if gate.kind == "tokens":
                yield from (getattr(given, comparison) for comparison in given.noted(Comparison))
    for until in step.select.until or ():
        yield None if until.tokens is None else until.tokens.under
        yield None if until.frees is None else until.frees.at_least


def _hints(tools: Iterable[object], hints: Hints) -> Mapping[str, Hint]:
    """Return what code says of tools; most sessions have neither, and import nothing for it."""
    given = tuple(tools)
    if not given and not hints:
        return {}
    return tool_hints(given, hints)


def _changed(policy: Policy, root: Node | None, options: Mapping[str, Any]) -> tuple[Policy, Node]:
    """Return a policy and its tree with the keys that options set."""
    if root is None or Policy.model_validate(root.plain()) != policy:
        root = tree_of(policy.model_dump(mode="json", exclude_unset=True))
    root = with_options(root, options)
    return validated(root), root


def _pinned(given: list[lookup.Level]) -> lookup.RulePath | None:
    pin, rule = lookup.nearest_given(given, "pin")
    return rule if pin else None


def _kept_by_rule(step: Step, given: list[lookup.Level]) -> tuple[Reason, lookup.RulePath] | None:
    if (pinned := _pinned(given)) is not None:
        return Reason("pinned"), pinned
    offload, rule = lookup.offload_given(given)
    return None if offload or not step.action.is_bound_by_rules else (Reason("offload_off"), rule)
