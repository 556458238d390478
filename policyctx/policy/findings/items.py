"""Findings about item types and tools: rules that have no effect or contradict each other."""

import re
from collections.abc import Callable, Iterator
from itertools import combinations, islice

from policyctx.definitions import tokenizers
from policyctx.definitions.items import NEVER_REPLACED, NEVER_TAKEN, WITHOUT_TOOL
from policyctx.definitions.names import FIELDS, PLACEHOLDER_FIELDS
from policyctx.errors import Diagnostic
from policyctx.policy import reach
from policyctx.policy.lookup import parent, widest_wording
from policyctx.policy.models import KeepRecent, Section, Step, Threshold, ToolRule
from policyctx.policy.models.compaction import Summary
from policyctx.policy.models.gates import COMPARISONS, BelowTokens, TokensGate
from policyctx.policy.models.rules import Globs, Match, Placeholder, TextMatch
from policyctx.policy.nodes import Node, Path, sections
from policyctx.policy.values import Share, amount, parsed_template

# `offload` is not among them: `false` wins wherever it stands.
_KEYS = (
    "min_tokens", "min_chars", "keep_recent", "pin", "placeholder", "reads_file", "reads_lines",
    "edits_file", "writes_file",
)  # fmt: skip
_THRESHOLDS = frozenset({"min_tokens", "min_chars"})
_MAX_CHARS = 200
# In the name of no tool that an API takes; a dot may be.
_REGEX = re.compile(r"[\\^$|()]|\.\+|(?<![A-Za-z0-9])\.\*")
_HINT = "select it in a step that runs before a model call and has no such key, or remove the key"
# Keys that are mostly given as a share. A small `min_tokens`, `frees` or `since_last` makes sense.
_OFTEN_SHARES: dict[type[Section], tuple[str, ...]] = {
    TokensGate: tuple(COMPARISONS),
    BelowTokens: ("under",),
    KeepRecent: ("tokens", "max_tokens"),
    Summary: ("max_input",),
}
_MOST_PERCENT = 100


def caught_types(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC302, for a type that matches nothing but what one tried before it matches."""
    own = [(name, match) for name, rule in checked.policy.items.items() if (match := rule.match)]
    for i, (name, match) in enumerate(own[: reach.MOST_COMPARED]):
        for earlier, wider in own[:i]:
            if wider.type == match.type and _implies(match, wider):
                sentence = (
                    f"no item is ever of type {name!r}: {earlier!r} is tried first and matches all "
                    "that it matches"
                )
                hint = f"write {name!r} before {earlier!r}, or narrow the match of {earlier!r}"
                yield checked.warning("PC302", ("items", name), sentence, hint)
                break


def _implies(narrow: Match, wide: Match) -> bool:
    """Does all that `narrow` matches match `wide` as well."""
    return (
        wide.role in (None, narrow.role)
        and wide.error in (None, narrow.error)
        and _globs_imply(narrow.tool, wide.tool)
        and _globs_imply(_one(narrow.media_type), _one(wide.media_type))
        and (wide.text is None or _text_implies(narrow.text, wide.text))
    )


def _one(glob: str | None) -> Globs | None:
    return None if glob is None else (glob,)


def _globs_imply(narrow: Globs | None, wide: Globs | None) -> bool:
    return wide is None or (narrow is not None and not reach.is_name_left((narrow,), wide))


def _text_implies(narrow: TextMatch | None, wide: TextMatch) -> bool:
    starts = (narrow and narrow.startswith) or ()
    ends = (narrow and narrow.endswith) or ()
    parts = (narrow and narrow.contains) or ()
    wanted = wide.contains
    return (
        (wide.startswith is None or _all_have(starts, wide.startswith, str.startswith))
        and (wide.endswith is None or _all_have(ends, wide.endswith, str.endswith))
        and (
            wanted is None
            or any(_all_have(texts, wanted, str.__contains__) for texts in (starts, ends, parts))
        )
    )


def _all_have(given: Globs, wanted: Globs, has: Callable[[str, str], bool]) -> bool:
    """Has each of the strings of which a text has one, one of those wanted."""
    if "" in wanted:
        return True
    return bool(given) and all(any(has(text, part) for part in wanted) for text in given)


def types_never_offloaded(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC312, for `offload: true` on what no step can offload or clear."""
    by_default = (step for _, step in checked.steps if step.select.types is None)
    default_drop = any(not step.action.is_bound_by_rules for step in by_default)
    never = NEVER_TAKEN if default_drop else NEVER_REPLACED
    for name, rule in checked.policy.items.items():
        kind = checked.kind(name)
        if rule.offload and kind in never:
            which = repr(name) if name == kind else f"{name!r} ({kind})"
            sentence = f"`offload: true` does nothing: no step offloads or clears {which}"
            can_go = kind not in NEVER_TAKEN
            hint = "remove the key" + ("; `do: drop` can name the type" if can_go else "")
            yield checked.warning("PC312", ("items", name, "offload"), sentence, hint)


def unused_types(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC313, for types of the policy's own that make no difference to any step."""
    for name in checked.own_types:
        if is_unused(checked, name):
            sentence = f"item type {name!r} is never used: no step selects it"
            hint = "name it in the `types` of a step, or remove it"
            yield checked.warning("PC313", ("items", name), sentence, hint)


def is_unused(checked: reach.Checked, name: str) -> bool:
    """Does a type of the policy's own make no difference.

    One that no step selects still matters when a later type would get its items, when it is
    pinned, and when compaction counts by type.
    """
    own, items = checked.own_types, checked.policy.items
    later = own[own.index(name) + 1 :]
    if (
        any(checked.compactions)
        or items[name].pin
        or parent(name, items) in (parent(other, items) for other in later)
    ):
        return False
    if any(name in reach.selected_types(checked, step) for _, step in checked.steps):
        return False
    gates = (g.items for s in checked.policy.steps for g in s.when)
    return not any(name in reach.names_among(checked, gate.types) for gate in gates if gate)


def disagreeing_globs(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC309, for two globs that match a tool in common and give one key two values.

    A glob after one that is part of it is the rule after its exception, and means what it says.
    """
    globs = [g for g in checked.policy.tools if not reach.is_exact(g) and len(g) <= _MAX_CHARS]
    for first, second in combinations(globs[: reach.MOST_COMPARED], 2):
        one, other = checked.policy.tools[first], checked.policy.tools[second]
        keys = _disagreements(one, other)
        if (
            not keys
            or not reach.globs_overlap(first, second)
            or not reach.is_name_left(((first,),), (second,))
        ):
            continue
        for mine, theirs in keys:
            sentence = (
                f"{first!r} and {second!r} match tools in common but disagree on "
                f"{_compared(one, theirs, other, mine)}; the one written first wins"
            )
            hint = "write the narrower glob first, or give both the same value"
            yield checked.warning("PC309", ("tools", second, mine), sentence, hint)


def offload_without_effect(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC325, for `offload: true` on a glob whose every tool is refused or pinned by another rule.

    `offload: false` on any rule that matches a tool is absolute; of `pin`, the nearest rule counts.
    """
    refusing = [glob for glob, value in reach.ranked(checked, "offload") if value is False]
    for glob, rule in islice(checked.policy.tools.items(), reach.MOST_COMPARED):
        if not rule.offload:
            continue
        if refusing and not _is_left(checked, glob, refusing):
            by = " and ".join(repr(other) for other in refusing if reach.globs_overlap(glob, other))
            sentence = (
                f"`offload: true` for {glob!r} has no effect: `offload: false` for {by} covers the "
                "same tools and overrides every `offload: true`"
            )
            hint = (
                f"remove `offload: false` from {by}: a tool is not offloaded by default, only with "
                "`offload: true` for the tool or its item type"
            )
        elif (by_pin := _pinned_by(checked, glob)) is not None:
            sentence = (
                f"`offload: true` for {glob!r} has no effect: `pin: true` for {by_pin!r} pins the "
                "same tools, and no step takes a pinned item"
            )
            before = f", or add `pin: false` to {glob!r} and write it before {by_pin!r}"
            hint = f"remove `offload: true` or `pin: true`{'' if by_pin == glob else before}"
        else:
            continue
        yield checked.warning("PC325", ("tools", glob, "offload"), sentence, hint)


def _pinned_by(checked: reach.Checked, glob: str) -> str | None:
    """The first rule that pins tools of the glob, where each tool of the glob is pinned."""
    unwanted: list[str] = []
    pinning = None
    for other, is_pinned in reach.ranked(checked, "pin"):
        both = ((glob,), (other,))
        if reach.globs_overlap(glob, other) and reach.is_name_left(both, tuple(unwanted)):
            if not is_pinned:
                return None
            pinning = pinning or other
        unwanted.append(other)
    return None if _is_left(checked, glob, unwanted) else pinning


def _is_left(checked: reach.Checked, glob: str, unwanted: list[str]) -> bool:
    key = ("outside", glob, *unwanted)
    return checked.answered(key, lambda: reach.is_name_left(((glob,),), tuple(unwanted)))


def regular_expressions(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC343, for a glob with signs of a regular expression."""
    for path, glob in _globs(checked):
        if _REGEX.search(glob):
            sentence = f"{glob!r} looks like a regular expression, and tools are named by globs"
            hint = "write `*` for any characters, and a list for alternatives: `[web_*, fetch]`"
            yield checked.warning("PC343", path, sentence, hint)


def _globs(checked: reach.Checked) -> Iterator[tuple[Path, str]]:
    """Yield all globs of tools with their places."""
    lists: list[tuple[Path, Globs]] = []
    for path, step in checked.steps:
        inputs = step.select.with_input
        lists += [
            ((*path, "select", "tools"), step.select.tools or ()),
            ((*path, "select", "except_tools"), step.select.except_tools),
            ((*path, "select", "with_input", "tools"), inputs.tools if inputs else ()),
        ]
    for name, rule in checked.policy.items.items():
        lists.append((("items", name, "match", "tool"), (rule.match and rule.match.tool) or ()))
    yield from (((*path, i), glob) for path, globs in lists for i, glob in enumerate(globs))
    yield from ((("tools", glob), glob) for glob in checked.policy.tools)


def _disagreements(one: ToolRule, other: ToolRule) -> list[tuple[str, str]]:
    """The keys of `other` that `one` gives another value, with the key that `one` has for it."""
    given = {key: value for key in _KEYS if (value := getattr(one, key)) is not None}
    found = []
    for key in _KEYS:
        theirs = next(iter(_THRESHOLDS & set(given)), key) if key in _THRESHOLDS else key
        value = getattr(other, key)
        if value is not None and theirs in given and (theirs, value) != (key, given[theirs]):
            found.append((key, theirs))
    return found


def _compared(one: ToolRule, theirs: str, other: ToolRule, mine: str) -> str:
    if mine in {"keep_recent", "placeholder"}:
        return f"`{mine}`"
    return f"`{theirs}: {_shown(one, theirs)}` and `{mine}: {_shown(other, mine)}`"


def _shown(rule: ToolRule, key: str) -> str:
    value = getattr(rule, key)
    if isinstance(value, tuple):
        return value[0] if len(value) == 1 else f"[{', '.join(value)}]"
    return str(value).lower() if isinstance(value, bool) else str(value)


def thresholds_too_low(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC303, for a threshold at which every wording is as long as the item, or longer.

    Silent where a step has `must_shrink: false`, and at 0, which is to say that there is no
    threshold.
    """
    for path, level, steps, wordings in _uses(checked):
        unit = "chars" if level.min_chars is not None else "tokens"
        threshold = level.min_chars if level.min_chars is not None else level.min_tokens
        amount = checked.tokens(threshold or 0)
        if not amount or not steps or not all(step.must_shrink for step in steps):
            continue
        least = min(_shortest(checked, step, wordings, unit) for step in steps)
        if amount <= least:
            word = ("character" if unit == "chars" else "token") + "s" * (amount > 1)
            sentence = (
                f"an item of {amount} {word} is no larger than its placeholder, which has at "
                f"least {least}, so `must_shrink` leaves it alone"
            )
            hint = f"use {least + 1} or more, or shorten the placeholder"
            yield checked.warning("PC303", (*path, f"min_{unit}"), sentence, hint)


def _uses(
    checked: reach.Checked,
) -> Iterator[tuple[Path, Threshold, list[Step], list[Placeholder]]]:
    """Yield each map that may give a threshold, the steps that it may bind, and the wordings."""
    steps = [(p, s) for p, s in checked.steps if s.action.leaves_placeholder]
    steps = [(p, s) for p, s in steps if reach.taken_types(checked, s)]
    bound = [s for _, s in steps if s.select.min_chars is None and s.select.min_tokens is None]
    taken = [t for step in bound for t in reach.taken_types(checked, step)]
    yield (), checked.policy, bound, [*_of_types(checked, taken), *_of_tools(checked)]
    for name, item in checked.policy.items.items():
        family = [t for t in checked.types if name in checked.lineage(t)]
        taking = [s for s in bound if set(family) & set(reach.taken_types(checked, s))]
        of_tools = [] if checked.kind(name) in WITHOUT_TOOL else _of_tools(checked)
        yield ("items", name), item, taking, [*_of_types(checked, family), *of_tools]
    for glob, tool in checked.policy.tools.items():
        of_types = [] if tool.placeholder else _of_types(checked, taken)
        meeting = [s for s in bound if _may_take(checked, s, glob)]
        yield ("tools", glob), tool, meeting, [*of_types, *_of_tools(checked, glob)]
    for path, step in steps:
        of_types = _of_types(checked, reach.taken_types(checked, step))
        yield (*path, "select"), step.select, [step], [*of_types, *_of_tools(checked)]


def _may_take(checked: reach.Checked, step: Step, glob: str) -> bool:
    return any(reach.may_meet(checked, step, t, glob) for t in reach.taken_types(checked, step))


def _of_types(checked: reach.Checked, types: list[str]) -> list[Placeholder]:
    return [reach.nearest(checked, t, "placeholder") or checked.policy.placeholder for t in types]


def _of_tools(checked: reach.Checked, glob: str | None = None) -> list[Placeholder]:
    """The wordings of tools, or of those that have a name in common with `glob`."""
    return [
        rule.placeholder
        for other, rule in checked.policy.tools.items()
        if rule.placeholder and (glob is None or _overlap(checked, glob, other))
    ]


def _overlap(checked: reach.Checked, one: str, other: str) -> bool:
    return checked.answered(("overlap", one, other), lambda: reach.globs_overlap(one, other))


def _shortest(checked: reach.Checked, step: Step, wordings: list[Placeholder], unit: str) -> int:
    """Return a size that no placeholder of this step is below."""
    top = checked.policy.placeholder
    left = [widest_wording(checked.policy, step) if w is top else w for w in wordings]
    if step.placeholder is not None:
        left = [step.placeholder]
    chars = min(map(_fewest_chars, left), default=0)
    return chars if unit == "chars" else fewest_tokens(checked, chars)


def _fewest_chars(wording: Placeholder) -> int:
    pieces = parsed_template(wording.text, PLACEHOLDER_FIELDS).pieces
    return sum(map(len, pieces[::2])) + sum(FIELDS[field].least_chars for field in pieces[1::2])


def fewest_tokens(checked: reach.Checked, chars: int) -> int:
    """Return the fewest tokens that so many characters can be, without a vocabulary to ask."""
    model = checked.policy.model
    return 0 if model.token_scale != 1 else tokenizers.fewest_tokens(model.tokenizer, chars)


def shares_without_sign(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC322, for a number from 2 to 100 that is under 1 % of the window, where a share may stand.

    1 is not reported: it says that any amount will do.
    """
    window = checked.policy.model.context_window
    for path, model, node in sections(checked.root):
        is_amount = "since_last" in path or path[-1:] == ("frees",)
        keys = () if is_amount else _OFTEN_SHARES.get(model, ())
        for key in keys:
            number = node.said(key)
            if type(number) is int and 1 < number <= _MOST_PERCENT and number * 100 < window:
                sentence = (
                    f"`{key}: {number}` means {number} tokens, less than 1% of the context window "
                    f"of {window}"
                )
                hint = f"did you mean `{key}: {number}%`?"
                yield checked.warning("PC322", (*path, key), sentence, hint)


def thresholds_too_high(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC323, for a threshold as large as the context window."""
    for path, level in _thresholds(checked):
        chars, tokens = level.min_chars, level.min_tokens
        least = fewest_tokens(checked, chars or 0) if tokens is None else checked.exact(tokens)
        key, written = ("min_chars", chars) if tokens is None else ("min_tokens", tokens)
        if written is not None and least >= checked.policy.model.context_window:
            sentence = (
                f"`{key}: {checked.shown(written)}` is as large as the context window of "
                f"{checked.policy.model.context_window} tokens, or larger: an item of this size "
                "leaves no room for other messages, so almost no item is taken"
            )
            hint = (
                "lower the threshold, such as `min_tokens: 10%`; to take no item, write "
                "`offload: false`"
            )
            yield checked.warning("PC323", (*path, key), sentence, hint)


def recency_without_end(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC324, for a `keep_recent` of as many tokens as the context window has."""
    window = checked.policy.model.context_window
    for path, node in _recencies(checked):
        key = next((key for key in ("tokens", "max_tokens") if node.said(key) is not None), None)
        if key is None:
            continue
        kept = amount(node.said(key))
        if checked.exact(kept) >= window:
            unit = "" if isinstance(kept, Share) else " tokens"
            sentence = (
                f"`keep_recent` of {checked.shown(kept)}{unit} is not below the context "
                f"window of {window} tokens: all that fits is recent, so nothing is taken"
            )
            hint = f"use a smaller number, such as `{key}: 10%`"
            yield checked.warning("PC324", (*path, key), sentence, hint)


def _recencies(checked: reach.Checked) -> Iterator[tuple[Path, Node]]:
    return ((path, node) for path, model, node in sections(checked.root) if model is KeepRecent)


def _thresholds(checked: reach.Checked) -> Iterator[tuple[Path, Threshold]]:
    policy = checked.policy
    yield (), policy
    yield from ((("items", name), rule) for name, rule in policy.items.items())
    yield from ((("tools", glob), rule) for glob, rule in policy.tools.items())
    yield from (((*path, "select"), step.select) for path, step in checked.steps)


def unused_keep_recent(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC310, for a `keep_recent` on a type or tool that no step before a model call selects.

    A step with a `keep_recent` of its own overrides it, unless it selects by it (`ephemeral`).
    """
    steps = [step for _, step in checked.steps if _honours(step)]
    for name, rule in checked.policy.items.items():
        known = rule.match is None or not is_unused(checked, name)
        if rule.keep_recent and known and not _selects_type(checked, steps, name):
            yield checked.warning("PC310", ("items", name, "keep_recent"), _sentence(name), _HINT)
    for glob, tool in checked.policy.tools.items():
        if tool.keep_recent and not _selects_tool(checked, steps, glob):
            yield checked.warning("PC310", ("tools", glob, "keep_recent"), _sentence(glob), _HINT)


def groups_without_effect(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC319, for a `per` or an `of` that is for other numbers than the one given."""
    for path, node in _recencies(checked):
        given = {key for key in KeepRecent.model_fields if node.said(key) is not None}
        shape = next(iter(given & {"messages", "turns", "replies"}), None)
        if "of" in given and not given & {"turns", "replies"}:
            sentence = "`of` does nothing: only turns and replies may be those of the candidates"
            hint = "count `turns` or `replies`, or remove it"
            yield checked.warning("PC319", (*path, "of"), sentence, hint)
        is_grouped = shape in {"turns", "replies"} and node.said("of") == "candidates"
        if shape is not None and not is_grouped and "per" in given:
            sentence = f"`per` does nothing: the {shape} counted are those of the whole list"
            hint = "count `items` or `tokens`, or remove it"
            yield checked.warning("PC319", (*path, "per"), sentence, hint)


def batches_without_effect(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC340, for a `batches` where nothing is recent, or nothing belongs to a call."""
    for path, node in _recencies(checked):
        if node.said("batches") is not None:
            types = _types_counted(checked, path)
            if any(node.said(key) in (0, "0%") for key in KeepRecent.exactly_one):
                why = "nothing is recent"
            elif types and all(checked.kind(item_type) in WITHOUT_TOOL for item_type in types):
                why = f"no {', '.join(reach.outermost(checked, types))} belongs to a call"
            else:
                continue
            sentence, hint = f"`batches` does nothing: {why}", "remove it"
            yield checked.warning("PC340", (*path, "batches"), sentence, hint)


def _types_counted(checked: reach.Checked, path: Path) -> list[str]:
    """Return the types of which a `keep_recent` at this path counts items, if that is known."""
    match path:
        case ("items", str(name), *_):
            return [t for t in checked.types if name in checked.lineage(t)]
        case ("steps", int(index), "select", *_):
            return reach.selected_types(checked, checked.policy.steps[index])
    return []


def _honours(step: Step) -> bool:
    own = step.select.keep_recent is not None and not step.select.ephemeral
    return step.on != "arrival" and not own


def _sentence(name: str) -> str:
    return f"no step uses the `keep_recent` of {name!r}"


def _selects_type(checked: reach.Checked, steps: list[Step], name: str) -> bool:
    family = [t for t in checked.types if name in checked.lineage(t)]
    return any(
        item_type in reach.selected_types(checked, step)
        and reach.may_meet(checked, step, item_type)
        for item_type in family
        for step in steps
    )


def _selects_tool(checked: reach.Checked, steps: list[Step], glob: str) -> bool:
    return any(
        reach.may_meet(checked, step, item_type, glob)
        for step in steps
        for item_type in reach.selected_types(checked, step)
    )
