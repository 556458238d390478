"""What every check looks at, and what a step can reach: the item types that it may take.

`Checked` is a policy beside the tree that it was read from. Only the policy is asked; what code
adds to it at run time is not known here.
"""

import re
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatchcase
from fractions import Fraction
from math import ceil
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

from policyctx.definitions.items import (
    BUILT_IN_TYPES,
    MEDIA_TYPES,
    WITH_TOOL,
    WITHOUT_TOOL,
    PlainValue,
)
from policyctx.errors import Diagnostic, Location
from policyctx.policy import lookup
from policyctx.policy.models import Policy, Step
from policyctx.policy.models.compaction import Compaction
from policyctx.policy.models.rules import Match
from policyctx.policy.nodes import Node, Path, words
from policyctx.policy.values import Share, byte_size, duration, ratio, share

Globs: TypeAlias = tuple[str, ...]
# The group of a glob, and the pieces of it that the rest of a name has to match.
Left: TypeAlias = tuple[int, tuple[str, ...]]
State: TypeAlias = frozenset[Left]

# What is held against one another pair by pair: the first so many, more than a person writes.
MOST_COMPARED = 40
_EFFORT = 20_000
# A piece of a glob: what stands for one character, or `*`.
_PIECE = re.compile(r"\[!?+.[^\]]*\]|.", re.DOTALL)
T = TypeVar("T")

# More questions than any policy that a person wrote needs; a larger one is not looked at further.
_MOST_ASKED = 1_000
# A call and its result: what takes one out of the list takes both.
_OTHER_HALF = {"tool_call": "tool_result", "tool_result": "tool_call"}
NOT_OFFLOADED = "nothing says `offload: true`"


def is_exact(glob: str) -> bool:
    """Is it a plain name, without `*`, `?` or `[…]`."""
    return not set("*?[") & set(glob)


def globs_overlap(one: str, other: str) -> bool:
    """Is there a name that both globs match; also true when it would take too long to tell."""
    return is_name_left(((one,), (other,)))


def is_name_left(wanted: tuple[Globs, ...], unwanted: Globs = ()) -> bool:
    """Is there a name that matches a glob of each group `wanted`, and none of `unwanted`.

    Also true when it would take too long to tell. Names are read character by character, of each
    kind of character that the globs tell apart one.
    """
    lefts = [
        (group, tuple(_PIECE.findall(glob)))
        for group, globs in enumerate((*wanted, unwanted))
        for glob in globs
    ]
    start, kinds = _closed(lefts), _kinds({piece for _, left in lefts for piece in left})
    every_wanted = {*range(len(wanted))}
    todo, seen, effort = [start], {start}, 0
    while todo:
        state = todo.pop()
        effort += len(state) * len(kinds)
        if effort > _EFFORT:
            return True
        if {group for group, left in state if not left} == every_wanted:
            return True
        new = {_after(state, fitting) for fitting in kinds} - seen
        new = {found for found in new if every_wanted <= {group for group, _ in found}}
        seen |= new
        todo += new
    return False


def _closed(lefts: Iterable[Left]) -> State:
    """What is left, also where a `*` matches nothing more."""
    found: set[Left] = set()
    for group, left in lefts:
        stars = next((i for i, piece in enumerate(left) if piece != "*"), len(left))
        found.update((group, left[i:]) for i in range(stars + 1))
    return frozenset(found)


def _after(state: State, fitting: frozenset[str]) -> State:
    """What is left after a character that fits these pieces."""
    return _closed(
        (group, left if left[0] == "*" else left[1:])
        for group, left in state
        if left and left[0] in fitting
    )


def _kinds(pieces: set[str]) -> set[frozenset[str]]:
    """For each kind of character that these pieces tell apart, the pieces that it fits.

    Between two neighbours of all that the pieces mention no piece can tell any apart.
    """
    mentioned = {ord(c) for piece in pieces for c in piece} | {ord("a")}
    characters = {chr(c + d) for c in mentioned for d in (-1, 0, 1) if 0 <= c + d <= sys.maxunicode}
    return {frozenset(p for p in pieces if fnmatchcase(c, p)) for c in characters}


def _edge(character: str, *, after: bool = False) -> str:
    """A pattern for where a value ends: a number is not a part of a longer one."""
    if not re.match(r"[\w.%]", character):
        return ""
    return r"(?![\w%]|\.\d)" if after else r"(?<![\w.])"


class TooLargeError(Exception):
    """Looking at all of this policy would take too long."""


class Checked(NamedTuple):
    """A policy that was found right, and its resolved tree, which knows the lines."""

    root: Node
    policy: Policy
    answers: dict[Hashable, Any]

    def answered(self, key: Hashable, question: Callable[[], T]) -> T:
        """Return the answer to a question, asked once; raises `TooLargeError` after too many."""
        if key not in self.answers:
            if len(self.answers) >= _MOST_ASKED:
                raise TooLargeError
            self.answers[key] = question()
        found: T = self.answers[key]
        return found

    def warning(self, code: str, path: Path, sentence: str, hint: str) -> Diagnostic:
        """Warn at the key at `path`, or as deep as the tree has it.

        A value that comes from the environment is replaced by its expression.
        """
        texts = self.without_values(sentence), self.without_values(hint)
        return Diagnostic(self.place(path), code, *texts, "warning")

    def place(self, path: Path) -> Location:
        """Return where the key at `path` is, or what of it the tree has."""
        return self.root.deepest(path)[1].named_at

    def without_values(self, text: str) -> str:
        """Return a text with each value from the environment replaced by its expression."""
        if "values" not in self.answers:
            self.answers["values"] = dict(self._values())
        values: dict[str, str] = self.answers["values"]
        if not values:
            return text
        # The longest first, since one value may be part of another.
        forms = sorted(values, key=len, reverse=True)
        pattern = "|".join(f"{_edge(f[0])}{re.escape(f)}{_edge(f[-1], after=True)}" for f in forms)
        return re.sub(pattern, lambda found: values[found.group()], text)

    def _values(self) -> Iterator[tuple[str, str]]:
        """Yield the ways to write each value from the environment, with its expression.

        The words of the language and the names that the file itself has are public.
        """
        public = {*words(), *BUILT_IN_TYPES, *self.policy.items, *self.policy.tools}
        for _, node in self.root.leaves():
            if node.variable is None:
                continue
            written = {node.value} if node.raw is None else {node.value, node.raw}
            if not written & public:
                for form in self._forms(node):
                    yield form, node.variable

    def _forms(self, node: Node) -> Iterator[str]:
        raw = node.raw or ""
        yield from filter(None, (raw, str(node.value), repr(raw)[1:-1], repr(node.value)))
        for read in (share, duration, byte_size, ratio):
            with suppress(ValueError):
                value = read(node.value)
                yield f"{float(value):g}" if isinstance(value, Fraction) else str(value)
                if isinstance(value, Share):
                    yield f"{float(self.exact(value)):.10g}"
                    yield str(self.tokens(value))

    def is_written(self, path: Path) -> bool:
        """Does the file say something at `path`."""
        return self.root.deepest(path)[0] == path

    @property
    def steps(self) -> Iterator[tuple[Path, Step]]:
        """The steps with their paths, but for `compact`."""
        return (
            (("steps", i), step)
            for i, step in enumerate(self.policy.steps)
            if not step.action.takes_messages
        )

    @property
    def compactions(self) -> Iterator[tuple[Path, Step, Compaction]]:
        """The steps that compact, each with its path and its settings."""
        for i, step in enumerate(self.policy.steps):
            if step.action.takes_messages:
                yield ("steps", i), step, lookup.compaction_of(self.policy, step)

    def compaction_key(self, step: Path, *keys: str) -> Path | None:
        """Return where the file gives a key of a step's `compaction`; None if it does not."""
        paths: tuple[Path, ...] = (*step, "compaction", *keys), ("compaction", *keys)
        return next(filter(self.is_written, paths), None)

    @property
    def own_types(self) -> list[str]:
        """The types that the policy defines, in the order in which they are tried."""
        return [name for name, rule in self.policy.items.items() if rule.match]

    @property
    def types(self) -> list[str]:
        """All item types."""
        return [*BUILT_IN_TYPES, *self.own_types]

    def lineage(self, item_type: str) -> tuple[str, ...]:
        """Return the type, then the types that it refines, the nearest first."""
        return lookup.lineage(item_type, self.policy.items)

    def kind(self, item_type: str) -> str:
        """Return what items of a type are by themselves: the last of its lineage."""
        return self.lineage(item_type)[-1]

    def tokens(self, amount: int | Share) -> int:
        """Return a number of tokens, or a share of the window, as whole tokens, rounded up."""
        return ceil(self.exact(amount))

    def exact(self, amount: int | Share) -> Fraction:
        """Return a number of tokens, or a share of the window, as tokens."""
        if isinstance(amount, Share):
            return amount.percent * self.policy.model.context_window / 100
        return Fraction(amount)

    def shown(self, amount: int | Share) -> str:
        """Return an amount as it was written, and a share also in tokens."""
        if isinstance(amount, Share):
            return f"{amount} ({float(self.exact(amount)):.10g} tokens)"
        return str(amount)


class ToolsLeft(NamedTuple):
    """Tools whose names match a glob of each group `wanted`, and none of `unwanted`."""

    wanted: tuple[Globs, ...]
    unwanted: Globs


def selected_types(checked: Checked, step: Step) -> list[str]:
    """Return the item types that the step names, or that refine one that it names."""
    named = step.select.types
    if named is None:
        named = tuple(name for name, rule in checked.policy.items.items() if rule.offload)
    return names_among(checked, named)


def names_among(checked: Checked, named: tuple[str, ...]) -> list[str]:
    """Return all types that a list of types speaks of, refinements included."""
    return [t for t in checked.types if not {"*", *checked.lineage(t)}.isdisjoint(named)]


def outermost(checked: Checked, types: Collection[str]) -> list[str]:
    """Return the types without those that refine another of them, for people to read."""
    return [t for t in types if set(checked.lineage(t)).isdisjoint({*types} - {t})]


def part(step: Step, key: Literal["types", "tools"], index: int) -> Step:
    """Return a step that selects nothing but one element of its `types` or `tools`."""
    select = step.select.model_copy(update={key: (getattr(step.select, key)[index],)})
    return step.model_copy(update={"name": f"{step.name}.{key}.{index}", "select": select})


def taken_types(checked: Checked, step: Step) -> list[str]:
    """Return the item types of which the step may take one."""
    types = selected_types(checked, step)
    return checked.answered(
        ("taken", step.name), lambda: [t for t in types if refusal(checked, step, t) is None]
    )


def may_meet(checked: Checked, step: Step, item_type: str, tool: str | None = None) -> bool:
    """May an item of this type (and of a tool that matches `tool`) be a candidate of the step."""
    groups = tool_groups(checked, step, item_type)
    if tool is not None:
        groups = (*groups, (tool,))
    if not groups:
        return True
    if checked.kind(item_type) in WITHOUT_TOOL:
        return False
    return checked.answered(("left", groups), lambda: is_name_left(groups))


def tool_groups(checked: Checked, step: Step, item_type: str) -> tuple[Globs, ...]:
    """Return the groups of globs of which a candidate's tool matches one each."""
    rule = checked.policy.items.get(item_type)
    of_type = rule.match.tool if rule and rule.match else None
    return tuple(group for group in (step.select.tools, of_type) if group is not None)


def tools_left(checked: Checked, step: Step, item_type: str) -> ToolsLeft:
    """Return the tools that are left to the step once every rule on them has been heard."""
    wanted, unwanted = tool_groups(checked, step, item_type), step.select.except_tools
    if step.action.is_bound_by_rules:
        unwanted = (*unwanted, *_tools_with(checked, offload=False))
        if nearest(checked, item_type, "offload") is None:
            wanted = (*wanted, _tools_with(checked, offload=True))
    return ToolsLeft(wanted, unwanted)


def refusal(checked: Checked, step: Step, item_type: str) -> str | None:
    """Return why the step can take no item of a type that it selects, None when it can."""
    return checked.answered(
        ("refusal", step.name, item_type), lambda: _refusal(checked, step, item_type)
    )


def nearest(checked: Checked, item_type: str, key: str) -> PlainValue:
    """Return what a type, else one that it refines, gives for a key, None for nothing."""
    return lookup.nearest_given(_type_levels(checked, item_type), key)[0]


def ranked(checked: Checked, key: str) -> Iterator[tuple[str, Any]]:
    """Yield the tools that give the key, and its value: exact names first, then globs in order."""
    tools = checked.policy.tools
    for glob in sorted(tools, key=lambda glob: not is_exact(glob)):
        if (value := getattr(tools[glob], key)) is not None:
            yield glob, value


def rules_that_speak(
    checked: Checked, item_type: str, tools: ToolsLeft, key: str
) -> Iterator[tuple[lookup.RulePath, Any]]:
    """Yield each rule that is the nearest to give a key for an item of this type and such a tool.

    Each is yielded with what it gives; the value is None where no rule gives any.
    """
    wanted, unwanted = tools
    has_tool = checked.kind(item_type) in WITH_TOOL
    if checked.kind(item_type) not in WITHOUT_TOOL:
        for glob, value in ranked(checked, key):
            if is_name_left((*wanted, (glob,)), unwanted):
                yield ("tools", glob, key), value
            unwanted = (*unwanted, glob)
    if (not wanted and not has_tool) or is_name_left(wanted, unwanted):
        value, path = lookup.nearest_given(
            [*_type_levels(checked, item_type), ((), checked.policy)], key
        )
        yield path, value


def _refusal(checked: Checked, step: Step, item_type: str) -> str | None:
    rule = checked.policy.items.get(item_type)
    if (why := lookup.why_never(step, checked.lineage(item_type))) is not None:
        return why
    if rule and rule.match and (key := _unmatched(rule.match)) is not None:
        return f"no {rule.match.type} has the `{key}` that its `match` wants"
    if rule and rule.match and rule.match.error and not step.select.errors:
        return "`errors: false` leaves failed results"
    if step.select.superseded and checked.kind(item_type) != "tool_result":
        return "`superseded` selects results only"
    if not may_meet(checked, step, item_type):
        has_none = checked.kind(item_type) in WITHOUT_TOOL
        return "`tools` leaves out what has no tool" if has_none else "`match` is for other tools"
    return _refused_by_rules(checked, step, item_type)


def _unmatched(match: Match) -> str | None:
    """Return a key of a match that no item of its built-in type has a value for."""
    if match.type in WITHOUT_TOOL and (match.tool is not None or match.error):
        return "error" if match.tool is None else "tool"
    return "media_type" if match.media_type is not None and match.type not in MEDIA_TYPES else None


def _refused_by_rules(checked: Checked, step: Step, item_type: str) -> str | None:
    is_without_tool = checked.kind(item_type) in WITHOUT_TOOL
    if step.action.is_bound_by_rules:
        offload = nearest(checked, item_type, "offload")
        if offload is False:
            return "it has `offload: false`"
        if offload is None and (is_without_tool or not _tools_with(checked, offload=True)):
            return NOT_OFFLOADED
    # Code speaks of tools only; to no other item can it give a `keep_recent`.
    is_aged = nearest(checked, item_type, "keep_recent") is not None
    if step.select.ephemeral and is_without_tool and not is_aged:
        return "nothing gives it a `keep_recent`"
    tools = tools_left(checked, step, item_type)
    if checked.kind(item_type) in WITH_TOOL and (tools.unwanted or checked.policy.tools):
        tools = tools._replace(wanted=(*tools.wanted, ("*",)))
    if tools.wanted and not is_without_tool and not is_name_left(*tools):
        return _why_no_tool_is_left(checked, step, tools.wanted)
    return _why_pinned(checked, step, item_type, tools)


def _why_pinned(checked: Checked, step: Step, item_type: str, tools: ToolsLeft) -> str | None:
    """Return which pin keeps each item of this type and such a tool, None where one is free."""
    if _is_pinned(checked, item_type, tools):
        asked = ToolsLeft(tool_groups(checked, step, item_type), step.select.except_tools)
        is_all = _is_pinned(checked, item_type, asked)
        return "it is pinned" if is_all else "what of it may be offloaded is pinned"
    other = _OTHER_HALF.get(checked.kind(item_type)) if step.action.leaves_nothing else None
    if other is not None and all(
        _is_pinned(checked, name, of_tools) for name, of_tools in _types_of(checked, other, tools)
    ):
        return f"its {other.removeprefix('tool_')} is pinned, and both leave together"
    return None


def _is_pinned(checked: Checked, item_type: str, tools: ToolsLeft) -> bool:
    return all(pin for _, pin in rules_that_speak(checked, item_type, tools, "pin"))


def _types_of(checked: Checked, kind: str, tools: ToolsLeft) -> Iterator[tuple[str, ToolsLeft]]:
    """Yield each type that items of a kind and such a tool may have, with the tools of these.

    A type of which nothing but the tool is matched leaves none of its tools to those after it.
    """
    wanted = tools.wanted or (("*",),)
    for built_in in (name for name in BUILT_IN_TYPES if checked.kind(name) == kind):
        unwanted = tools.unwanted
        for name, rule in checked.policy.items.items():
            match = rule.match
            if match is not None and match.type == built_in and _unmatched(match) is None:
                globs = match.tool or ("*",)
                yield name, ToolsLeft((*wanted, globs), unwanted)
                if match.model_fields_set <= {"type", "tool"}:
                    unwanted = (*unwanted, *globs)
        yield built_in, ToolsLeft(wanted, unwanted)


def _why_no_tool_is_left(checked: Checked, step: Step, wanted: tuple[Globs, ...]) -> str:
    """Say which rule is the last one that leaves a step no tool of these."""
    excepted, refused = step.select.except_tools, _tools_with(checked, offload=False)
    named = tuple(group for group in wanted if group != _tools_with(checked, offload=True))
    if not is_name_left(named, excepted):
        return "`except_tools` leaves none of its tools"
    if not is_name_left(named, (*excepted, *refused)):
        return "`offload: false` holds for each of its tools"
    return "none of its tools has `offload: true`"


def _tools_with(checked: Checked, *, offload: bool) -> Globs:
    return tuple(glob for glob, value in ranked(checked, "offload") if value is offload)


def _type_levels(checked: Checked, item_type: str) -> list[lookup.Level]:
    return lookup.type_levels(checked.policy, checked.lineage(item_type))
