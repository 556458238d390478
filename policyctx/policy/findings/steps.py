"""Steps that do nothing or come too late, and placeholders that show nothing."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import product
from typing import Literal

from policyctx.definitions.items import MEDIA_TYPES, WITHOUT_TOOL
from policyctx.definitions.names import EXTENT_FIELDS, PLACEHOLDER_FIELDS
from policyctx.errors import Diagnostic
from policyctx.policy import reach
from policyctx.policy.models import Step, Threshold
from policyctx.policy.models.rules import Extent, KeepRecent, Placeholder
from policyctx.policy.nodes import Path, sections
from policyctx.policy.values import Share, parsed_template

_SHOWN = 4
_SAID_IN_THE_CHAT = frozenset({"user_message", "assistant_message"})
# The fields of which a wording needs one for the key to do something.
_SHOWN_BY = {
    "head": ("head",),
    "tail": ("tail",),
    "outline": ("outline",),
    "max_line_chars": ("head", "tail"),
    "cut_mark": ("head", "tail"),
    "gap": ("gap",),
    "line_numbers": ("head", "tail"),
}


def no_steps_at_all(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC315, for rules that say what to offload where no step does it."""
    meant = [
        (kind, name)
        for kind in ("items", "tools")
        for name, rule in getattr(checked.policy, kind).items()
        if rule.offload
    ]
    if meant and not checked.policy.steps:
        kind, name = meant[0]
        sentence = f"{name!r} is to be offloaded, but the policy has no steps, so nothing ever is"
        hint = "add a step such as `- {name: retire, do: offload}`, or extend a policy that has one"
        yield checked.warning("PC315", (kind, name, "offload"), sentence, hint)


def steps_that_never_fire(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC301, for steps of which the selection is empty whatever the messages."""
    for path, step in checked.steps:
        if reach.taken_types(checked, step):
            continue
        types = reach.selected_types(checked, step)
        why = _why_not(checked, step, types) if types else _nothing_selected(step)
        only_offload = {reach.refusal(checked, step, t) for t in types} <= {reach.NOT_OFFLOADED}
        is_empty = step.select.types == ()
        hint = (
            "give a type `offload: true` under `items`"
            if only_offload and not is_empty
            else "select what it can take, or remove the step"
        )
        at = (*path, "select", "types") if step.select.types is not None else (*path, "name")
        sentence = f"step {step.name!r} can never take anything: {why}"
        yield checked.warning("PC301", at, sentence, hint)


def types_that_are_never_taken(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC328, for an element of `types` of which the step takes nothing, though it takes others."""
    return _never_taken(checked, "types")


def tools_that_are_never_taken(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC328, for an element of `tools` of which the step takes nothing, though it takes others."""
    return _never_taken(checked, "tools")


def _never_taken(checked: reach.Checked, key: Literal["types", "tools"]) -> Iterator[Diagnostic]:
    """Leave out what an inherited step names: a policy that extends another makes exceptions."""
    for path, step, earlier in _with_earlier(checked):
        taken = reach.taken_types(checked, step)
        if not taken or any({*taken} <= _always_taken(checked, o, step) for o in earlier):
            continue
        for i, name in enumerate(getattr(step.select, key) or ()):
            at, part = (*path, "select", key, i), reach.part(step, key, i)
            if checked.root.deepest(at)[1].place.file != checked.root.place.file:
                continue
            left = {*reach.taken_types(checked, part)}
            by = next((o for o in earlier if left <= _always_taken(checked, o, part, step)), None)
            if not left:
                types = reach.names_among(checked, (name,)) if key == "types" else taken
                why = _why_not(checked, part, types)
            elif by is None:
                continue
            elif by.action.leaves_nothing:
                yield _left_by_a_drop(checked, at, step, by, name)
                continue
            else:
                why = f"{by.name!r}, before it and without a gate, takes all of it"
                why = f"{name} ({why})" if key == "types" else why
            of = "" if key == "types" else f"anything of {name!r}: "
            sentence = f"step {step.name!r} can never take {of}{why}"
            hint = f"take it out of `{key}`, or change what keeps the step from it"
            yield checked.warning("PC328", at, sentence, hint)


def steps_that_lose_keys(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC329, for a step that replaces an inherited one and drops what that selects, or its gate."""
    for i, step in enumerate(checked.policy.steps):
        useless = {
            *step.action.keys_without_use,
            *(["when"] if step.on in {"arrival", "overflow"} else ()),
        }
        lost = [k for k in checked.root.deepest(("steps", i))[1].lost if k not in useless]
        if "select" in lost or "when" in lost:
            keys = ", ".join(f"`{key}`" for key in lost)
            sentence = f"step {step.name!r} replaces an inherited step and lacks its {keys}"
            hint = "repeat what is to stay here; `policyctx show` prints what the policy extends"
            yield checked.warning("PC329", ("steps", i, "name"), sentence, hint)


def _nothing_selected(step: Step) -> str:
    if step.select.types is None:
        return "it names no types, and no type has `offload: true`"
    return "`types` is empty"


def _why_not(checked: reach.Checked, step: Step, types: Iterable[str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for item_type in types:
        reason = reach.refusal(checked, step, item_type) or ""
        by_reason.setdefault(reason, []).append(item_type)
    told = {reason: _listed(reach.outermost(checked, names)) for reason, names in by_reason.items()}
    return ", ".join(f"{names} ({reason})" for reason, names in told.items())


def _listed(names: list[str]) -> str:
    more = len(names) - _SHOWN
    return ", ".join(names[:_SHOWN]) + (f" and {more} more" if more > 0 else "")


def edits_without_gate(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC334, for a step without `when` that takes items after the model was sent them.

    Without a `keep_recent` an item leaves before it is sent, so nothing is cached behind it.
    """
    for path, step in checked.steps:
        is_each_turn = step.on == "model_call" and not step.when and not step.action.takes_messages
        names = {name for t in reach.taken_types(checked, step) for name in checked.lineage(t)}
        written = {k: r for k, r in checked.policy.items.items() if k in names}
        tools = checked.policy.tools if "tool_result" in names else {}
        rules = [*written.values(), *tools.values()]
        select, own = step.select, step.select.keep_recent
        keeps = [own] if own else [rule.keep_recent for rule in rules if rule.keep_recent]
        is_late = select.superseded or select.ephemeral or any(map(_keeps_any, keeps))
        if is_each_turn and names and is_late:
            sentence = (
                f"step {step.name!r} has no gate: each item that becomes old changes the list, and "
                "the prompt cache behind it is written again"
            )
            hint = "take many at once, for example with `when: {frees: {at_least: 20000}}`"
            found = checked.warning("PC334", (*path, "name"), sentence, hint)
            yield replace(found, severity="notice")


def cleared_for_good(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC306, for types that a `clear` may take and that no call brings back."""
    for path, step in checked.steps:
        # A `drop` with `save: false` says itself that nothing is saved.
        lost = [] if step.action.saves else reach.taken_types(checked, step)
        for item_type in lost:
            if checked.kind(item_type) in _SAID_IN_THE_CHAT:
                sentence = (
                    f"step {step.name!r} clears {item_type}: nothing is saved, and no tool call "
                    "brings it back"
                )
                at = _where_selected(checked, path, step, item_type)
                yield checked.warning("PC306", at, sentence, "use `do: offload`, or select less")


def _where_selected(checked: reach.Checked, path: Path, step: Step, item_type: str) -> Path:
    """The element of `types` that selects this type, else the step's `do`."""
    named = step.select.types or ()
    for name in (*checked.lineage(item_type), "*"):
        if name in named:
            return (*path, "select", "types", named.index(name))
    return (*path, "do")


def superseded_steps(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC301 and PC333, for a step after one that always takes as much or more."""
    for path, step, earlier in _with_earlier(checked):
        taken = set(reach.taken_types(checked, step))
        for one in earlier if taken else ():
            if not taken <= _always_taken(checked, one, step):
                continue
            if one.action.leaves_nothing:
                yield _left_by_a_drop(checked, (*path, "name"), step, one)
            else:
                sentence = (
                    f"step {step.name!r} can never take anything: {one.name!r}, before it and "
                    "without a gate, takes all that it selects"
                )
                hint = f"put it before {one.name!r}, or remove it"
                yield checked.warning("PC301", (*path, "name"), sentence, hint)
            break


def _left_by_a_drop(
    checked: reach.Checked, at: Path, step: Step, earlier: Step, name: str = ""
) -> Diagnostic:
    """Return PC333; `name` is the element of `types` that it is about, if it is not the step."""
    sentence = (
        f"nothing {f'of {name} ' if name else ''}is left to step {step.name!r}: {earlier.name!r}, "
        f"before it and without a gate, drops {'it' if name else 'what it selects'}, except what "
        "the list needs"
    )
    hint = f"put it before {earlier.name!r}, or let {earlier.name!r} take less"
    return checked.warning("PC333", at, sentence, hint)


def _with_earlier(checked: reach.Checked) -> Iterator[tuple[Path, Step, list[Step]]]:
    """Yield the steps, each with those before it that may leave nothing to it.

    A `drop` takes what a placeholder stands for, so only another `drop` leaves nothing to it. So
    does a step that replaces `placeholders`.
    """
    earlier: list[Step] = []
    for path, step in checked.steps:
        is_compared = not step.action.takes_messages and len(earlier) < reach.MOST_COMPARED
        takes_whole = step.action.leaves_placeholder and not step.select.placeholders
        before = [one for one in earlier if one.action.leaves_nothing or takes_whole]
        yield path, step, before if is_compared else []
        if is_compared:
            earlier.append(step)


def _always_taken(
    checked: reach.Checked, earlier: Step, step: Step, whole: Step | None = None
) -> set[str]:
    """Return the types of which the earlier step leaves nothing to the later one.

    `whole` is the step of which `step` is a part; its `keep_recent` counts all that it selects.
    """
    one, other = earlier.select, step.select
    types = {*reach.taken_types(checked, step)}.intersection(reach.taken_types(checked, earlier))
    is_all = (
        (earlier.action.leaves_placeholder or _drops_each(checked, earlier))
        and earlier.on == step.on
        and not earlier.when
        and not one.until
        and one.errors >= other.errors
        and one.ephemeral <= other.ephemeral
        and one.superseded <= other.superseded
        and _first(earlier) <= _first(step)
        and _takes_as_many_tools(earlier, step)
        and _keeps_no_more(checked, earlier, whole or step)
        and _is_as_low(checked, earlier, step)
        and _shrinks_as_often(checked, earlier, step, types)
    )
    return types if is_all else set()


def _first(step: Step) -> int:
    return 0 if step.select.keep_first is None else step.select.keep_first.messages


def _drops_each(checked: reach.Checked, step: Step) -> bool:
    """Does nothing but the form of the list keep a `drop` from an item that it selects."""
    rules = (*checked.policy.items.values(), *checked.policy.tools.values())
    return step.select.unit == "item" and not any(rule.pin for rule in rules)


def _takes_as_many_tools(earlier: Step, step: Step) -> bool:
    one, other = earlier.select, step.select
    within = () if other.tools is None else (other.tools,)
    if one.tools is not None and (not within or reach.is_name_left(within, one.tools)):
        return False
    return not reach.is_name_left((*within, one.except_tools), other.except_tools)


def _keeps_no_more(checked: reach.Checked, earlier: Step, step: Step) -> bool:
    """Does `keep_recent` leave nothing to the later step."""
    if step.on == "arrival" or not any(map(_keeps_any, _recencies(checked, earlier))):
        return True
    one, other = earlier.select, step.select
    return _counts_no_others(checked, earlier, step) and (
        one.keep_recent == other.keep_recent or _is_less_recent(one.keep_recent, other.keep_recent)
    )


def _counts_no_others(checked: reach.Checked, earlier: Step, step: Step) -> bool:
    """Is each candidate of the earlier step one of the later, and counted among the same.

    A candidate that only the earlier step has would hold what was called together with it.
    """
    one, other = earlier.select, step.select
    return (
        _counted_types(checked, earlier) == _counted_types(checked, step)
        and one.ephemeral == other.ephemeral
        and _takes_as_many_tools(step, earlier)
        and (
            (one.tools, one.except_tools) == (other.tools, other.except_tools)
            or all(keep.per == "tool" for keep in _recencies(checked, earlier))
        )
    )


def _counted_types(checked: reach.Checked, step: Step) -> set[str]:
    """Return the types of which a `keep_recent` may count candidates of the step."""
    types = reach.selected_types(checked, step)
    if step.select.keep_recent is not None:
        return {*types}
    counts_tools = any(tool.keep_recent is not None for tool in checked.policy.tools.values())
    return {
        t
        for t in types
        if (counts_tools and checked.kind(t) not in WITHOUT_TOOL)
        or reach.nearest(checked, t, "keep_recent") is not None
    }


def _is_less_recent(one: KeepRecent | None, other: KeepRecent | None) -> bool:
    """Does the first keep no more of the same items than the second."""
    if one is None or other is None or one.kept_tokens is not None:
        return False
    (shape,) = one.model_fields_set & {*KeepRecent.exactly_one}
    least, most = getattr(one, shape), getattr(other, shape)
    return most is not None and least <= most and one == other.model_copy(update={shape: least})


def _recencies(checked: reach.Checked, step: Step) -> Iterator[KeepRecent]:
    """Every `keep_recent` that may hold for a candidate of the step."""
    if (own := step.select.keep_recent) is not None:
        yield own
        return
    types = reach.selected_types(checked, step)
    of_types = (reach.nearest(checked, t, "keep_recent") for t in types)
    of_tools = (tool.keep_recent for tool in checked.policy.tools.values())
    yield from (keep for keep in (*of_types, *of_tools) if keep is not None)


def _keeps_any(keep: KeepRecent) -> bool:
    return any(getattr(keep, shape) for shape in KeepRecent.exactly_one)


def _is_as_low(checked: reach.Checked, earlier: Step, step: Step) -> bool:
    """Is every threshold of the earlier step as low as any of the later one."""
    is_bound = earlier.action.is_bound_by_rules >= step.action.is_bound_by_rules
    if is_bound and _amount(earlier.select) is None and _amount(step.select) is None:
        return True
    pairs = product(_thresholds(checked, earlier), _thresholds(checked, step))
    return all(
        low == 0 or (unit == other_unit and checked.tokens(low) <= checked.tokens(high))
        for (low, unit), (high, other_unit) in pairs
    )


def _thresholds(checked: reach.Checked, step: Step) -> list[tuple[int | Share, str]]:
    own = _amount(step.select)
    if own is not None or not step.action.is_bound_by_rules:
        return [own or (0, "tokens")]
    policy = checked.policy
    rules = map(_amount, (*policy.items.values(), *policy.tools.values()))
    return [*filter(None, rules), _amount(policy) or (0, "tokens")]


def _amount(level: Threshold) -> tuple[int | Share, str] | None:
    if level.min_chars is not None:
        return level.min_chars, "chars"
    return None if level.min_tokens is None else (level.min_tokens, "tokens")


def _shrinks_as_often(checked: reach.Checked, earlier: Step, step: Step, types: set[str]) -> bool:
    """Does the size of placeholders leave nothing to the later step.

    Of a call only what is longer than the placeholder gives way, whether or not the step must
    shrink. Where sizes matter, both have the same wording, in the same unit.
    """
    if earlier.action.leaves_nothing:
        return True
    if not earlier.must_shrink and "tool_call" not in map(checked.kind, types):
        return True
    units = [amount and amount[1] for amount in (_amount(earlier.select), _amount(step.select))]
    return (
        step.must_shrink >= earlier.must_shrink
        and earlier.do == step.do
        and earlier.placeholder == step.placeholder
        and units[0] == units[1]
    )


def placeholders_without_effect(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC344, for a `placeholders` where no other step offloads what the step selects."""
    for path, step in checked.steps:
        if not step.select.placeholders:
            continue
        types = {*reach.taken_types(checked, step)}
        others = (o for _, o in checked.steps if o.do == step.do and o.name != step.name)
        if types and not any(types.intersection(reach.taken_types(checked, o)) for o in others):
            sentence = "`placeholders` does nothing: no other step offloads what this one selects"
            at = (*path, "select", "placeholders")
            yield checked.warning("PC344", at, sentence, "remove it, or add the step before it")


def exceptions_without_effect(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC314, for each glob of `except_tools` that matches no tool of what the step selects."""
    for path, step in checked.steps:
        types, tools = reach.selected_types(checked, step), step.select.tools
        for i, glob in enumerate(step.select.except_tools if types else ()):
            if not any(reach.may_meet(checked, step, item_type, glob) for item_type in types):
                is_beside = tools and not any(reach.globs_overlap(glob, tool) for tool in tools)
                why = "tool that `tools` selects matches it"
                why = why if is_beside else "item that the step selects is of such a tool"
                sentence, at = f"{glob!r} excepts nothing: no {why}", (*path, "select")
                at = (*at, "except_tools", i)
                yield checked.warning("PC314", at, sentence, "remove it, or mend the glob")


def orders_without_effect(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC318, for an `order` in which the step comes to the same as in any other."""
    for path, step in checked.steps:
        if step.select.order == "oldest" or not reach.taken_types(checked, step):
            continue
        unordered = list(_unordered(checked, step)) if step.select.order == "by_type" else []
        for key, sentence, hint in unordered:
            yield checked.warning("PC318", (*path, "select", *key), sentence, hint)
        if not unordered and not step.select.until and _takes_all_in_any_order(checked, step):
            sentence = f"`order: {step.select.order}` does nothing: the step takes all it selects"
            hint = "say when it has done enough with `until`, or remove it"
            yield checked.warning("PC318", (*path, "select", "order"), sentence, hint)


def _unordered(checked: reach.Checked, step: Step) -> Iterator[tuple[Path, str, str]]:
    """Say why `by_type` is no order: one type is alone, or comes after what it refines."""
    named = step.select.types or ()
    if len(set(named)) == 1:
        sentence = f"`order: by_type` does nothing: {named[0]!r} is all that `types` names"
        yield ("order",), sentence, "name the types in their order, or remove it"
    for i, name in enumerate(named):
        wider = [t for t in checked.lineage(name)[1:] if t in named[:i]]
        if wider:
            sentence = f"{name!r} has no place of its own in the order: {wider[0]!r} holds it"
            yield ("types", i), sentence, f"write {name!r} before {wider[0]!r}"


def _takes_all_in_any_order(checked: reach.Checked, step: Step) -> bool:
    """Is nothing left because of what went before, and nothing inside of another item."""
    kinds = set(map(checked.kind, reach.taken_types(checked, step)))
    return step.action.leaves_placeholder and kinds.isdisjoint(MEDIA_TYPES)


def inputs_of_no_result(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC320, for a `with_input` where the step takes no result of those tools."""
    for path, step in checked.steps:
        results = [t for t in reach.taken_types(checked, step) if checked.kind(t) == "tool_result"]
        inputs, at = step.select.with_input, (*path, "select", "with_input")
        all_tools = inputs is not None and inputs.tools == ("*",)
        if all_tools and not results and (types := reach.taken_types(checked, step)):
            taken = ", ".join(reach.outermost(checked, types))
            sentence = f"`with_input` does nothing: the step takes no results, only {taken}"
            yield checked.warning("PC320", at, sentence, "select results, or remove it")
        for i, glob in enumerate(() if inputs is None or all_tools else inputs.tools):
            if not any(_takes_of(checked, step, t, glob) for t in results):
                sentence = f"{glob!r} does nothing: the step takes no result of such a tool"
                place = (*at, "tools", i)
                yield checked.warning("PC320", place, sentence, "remove it, or mend the glob")


def _takes_of(checked: reach.Checked, step: Step, item_type: str, glob: str) -> bool:
    wanted, unwanted = reach.tools_left(checked, step, item_type)
    groups = (*wanted, (glob,))
    return checked.answered(("of", groups, unwanted), lambda: reach.is_name_left(groups, unwanted))


def excerpts_of_long_lines(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC326, for a `head` or `tail` in lines that has no limit on the length of a line."""
    must_shrink = any(s.must_shrink for _, s in checked.steps if s.action.leaves_placeholder)
    effect = (
        "is no smaller than the item, and `must_shrink` leaves the item"
        if must_shrink
        else "is larger than the item"
    )
    for path, model, node in sections(checked.root):
        wording = Placeholder.model_validate(node.plain()) if model is Placeholder else None
        if wording is None or wording.max_line_chars is not None:
            continue
        used = parsed_template(wording.text, PLACEHOLDER_FIELDS).fields
        for key in EXTENT_FIELDS:
            extent = getattr(wording, key)
            if isinstance(extent, Extent) and extent.lines and key in used:
                sentence = (
                    f"`{key}: {{lines: {extent.lines}}}` shows a line of any length: of a text on "
                    f"one line, such as JSON, the placeholder {effect}"
                )
                hint = f"add `max_line_chars: 200`, or give `{key}` in `chars` or `tokens`"
                yield checked.warning("PC326", (*path, key), sentence, hint)


def unused_excerpts(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC316, for an excerpt that the text beside it does not show; silent without such a text."""
    for path, model, node in sections(checked.root):
        if model is Placeholder and "text" in node.value:
            wording = Placeholder.model_validate(node.plain())
            used = parsed_template(wording.text, PLACEHOLDER_FIELDS).fields
            for key, fields in _SHOWN_BY.items():
                if key in node.value and getattr(wording, key) and used.isdisjoint(fields):
                    missing = " or ".join(f"`{{{field}}}`" for field in fields)
                    sentence = f"`{key}` does nothing: the text has no {missing}"
                    hint = "put it into the text, or remove the key"
                    yield checked.warning("PC316", (*path, key), sentence, hint)
                elif key == "cut_mark" and key in node.value and not wording.max_line_chars:
                    sentence = "`cut_mark` does nothing: no line is cut"
                    hint = "say where with `max_line_chars`, or remove it"
                    yield checked.warning("PC316", (*path, key), sentence, hint)
