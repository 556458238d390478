"""Errors that no single key shows: keys that exclude each other, names that must exist, wordings.

The checks read the tree, not the models, so that all errors of a file are reported together.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from itertools import islice

from policyctx.definitions.actions import Action
from policyctx.definitions.items import BUILT_IN_TYPES
from policyctx.definitions.names import (
    EXTENT_FIELDS,
    FILE_FIELDS,
    MODEL_SUMMARIZERS,
    NONE,
    ORIGINAL_FIELDS,
    PLACEHOLDER_FIELDS,
    SAVED_FIELDS,
    SUMMARY_FIELDS,
    is_url,
)
from policyctx.errors import Diagnostic
from policyctx.policy import reach
from policyctx.policy.diagnosing import called_alike, hint, not_one_of, places_in, word
from policyctx.policy.lookup import RulePath
from policyctx.policy.models import ItemRule, Policy, Section, Step
from policyctx.policy.models.compaction import Summary
from policyctx.policy.models.rules import KeepRecent, Placeholder
from policyctx.policy.nodes import Node, action_of, elements_of, pairs_of, sections, steps_of
from policyctx.policy.values import parsed_template

_OF_THE_FILE = frozenset(SAVED_FIELDS)
_NO_PATH = "`clear` saves nothing, so there is no file to name"
_OF_THE_TEXT = frozenset(ORIGINAL_FIELDS)
_NO_TEXT = "`placeholders: true` takes what a placeholder is left of, so there is no text to show"
_NO_NAME = "`placeholders: true` leaves the name of the file; add `{path}`"
_NEVER_SPLIT = "calls leave with their results, so parallel ones stay together"
# Each costs a look for the nearest word; a file with more unknown types is mended in two rounds.
MOST_TOLD = 100
_TYPE_NAME = re.compile(r"[a-z][a-z0-9_]{0,59}")
# Keys of a selection that look at the whole list, which an item that arrives is not seen in.
_ON_ARRIVAL = (
    "keep_recent", "keep_first", "order", "until", "ephemeral", "superseded", "unit",
    "placeholders",
)  # fmt: skip


def shown_without_extent(placeholder: Node | None) -> Iterator[Diagnostic]:
    """Yield an error for each field, such as `{head}`, without the key that says what it shows.

    That has no default, and is not taken from another map.
    """
    text = _text(placeholder)
    if placeholder is None or text is None:
        return
    for key in sorted(_fields(text.value).intersection({*EXTENT_FIELDS, "gap"})):
        given = placeholder.child(key)
        if given is None or given.value is None:
            sentence = f"`{{{key}}}` shows nothing without `{key}`"
            value = {"gap": '"…"', "outline": "{tokens: 400}"}.get(key, "{lines: 10}")
            help_ = f"give `{key}` beside the text: `{{text: …, {key}: {value}}}`"
            place = places_in(text).get(f"{{{key}}}", text.place)
            yield Diagnostic(place, "PC107", sentence, help_)


def path_in_cleared(placeholder: Node | None) -> Iterator[Diagnostic]:
    """Yield an error for a step's own wording that names the file of a cleared item."""
    text = _text(placeholder)
    if text is not None and (fields := _fields(text.value) & _OF_THE_FILE):
        places = (at for found, at in places_in(text).items() if found.strip("{}") in fields)
        yield Diagnostic(next(places, text.place), "PC107", _NO_PATH)
    elif placeholder is not None and placeholder.is_map and not placeholder.child("text"):
        place = placeholder.named_at
        yield Diagnostic(place, "PC107", _NO_PATH, "give a `text`: the default one names the path")


def wordings_without_source(checked: reach.Checked) -> Iterator[Diagnostic]:
    """Yield an error for each wording that shows what its step has not.

    That is the file of what is cleared, and the text of what a placeholder is left of. Which
    wording a step leaves takes the whole policy, so it has to be right in all else. A policy far
    larger than a person writes is looked at in part.
    """
    for path, step in checked.steps:
        if step.select.placeholders and step.placeholder is not None:
            if why := _why_not_smaller(step.placeholder):
                _, node = checked.root.deepest((*path, "placeholder"))
                yield Diagnostic((_text(node) or node).at, "PC107", why)
        elif step.placeholder is None and (step.select.placeholders or _names_no_file(step.action)):
            why_not = _why_not_smaller if step.select.placeholders else _why_not_cleared
            with suppress(reach.TooLargeError):
                yield from _inherited(checked, step, why_not)


def _why_not_smaller(wording: Placeholder) -> str:
    """Return why a wording cannot take the place of a placeholder; empty where it can."""
    fields = _fields(wording.text)
    if fields & _OF_THE_TEXT:
        return _NO_TEXT
    return "" if fields.intersection(FILE_FIELDS) else _NO_NAME


def _why_not_cleared(wording: Placeholder) -> str:
    return _NO_PATH if _fields(wording.text) & _OF_THE_FILE else ""


def _inherited(
    checked: reach.Checked, step: Step, why_not: Callable[[Placeholder], str]
) -> Iterator[Diagnostic]:
    for path, wording in dict(_wordings_left(checked, step)).items():
        if checked.is_written(path) and (why := why_not(wording)):
            _, node = checked.root.deepest(path)
            place = (_text(node) or node).at
            sentence = f"step {step.name!r} would leave this wording; {why}"
            sentence = checked.without_values(sentence)
            help_ = checked.without_values(f"give {step.name!r} a `placeholder`")
            yield Diagnostic(place, "PC107", sentence, help_)


def _wordings_left(checked: reach.Checked, step: Step) -> Iterator[tuple[RulePath, Placeholder]]:
    """Yield each wording that a step without one may leave, with the key that gives it."""
    calls = [t for t in checked.types if checked.kind(t) == "tool_call"]
    for item_type in reach.taken_types(checked, step):
        tools = reach.tools_left(checked, step, item_type)
        yield from reach.rules_that_speak(checked, item_type, tools, "placeholder")
        inputs = step.select.with_input
        leaves_wording = inputs is not None and inputs.leave != "empty" and bool(inputs.tools)
        if checked.kind(item_type) == "tool_result" and inputs is not None and leaves_wording:
            wanted = tools.wanted if "*" in inputs.tools else (*tools.wanted, inputs.tools)
            for call in calls:
                along = reach.ToolsLeft(wanted, tools.unwanted)
                yield from reach.rules_that_speak(checked, call, along, "placeholder")


def _text(placeholder: Node | None) -> Node | None:
    """The text of a placeholder in either of its forms, None where it has none of its own."""
    text = placeholder.child("text") or placeholder if placeholder else None
    return text if text and isinstance(text.value, str) else None


def _fields(text: str) -> frozenset[str]:
    """The fields of a wording; empty if it does not parse, which is reported elsewhere."""
    try:
        return parsed_template(text, PLACEHOLDER_FIELDS).fields
    except ValueError:
        return frozenset()


def inconsistencies(root: Node) -> Iterator[Diagnostic]:
    """Yield an error for everything that does not fit together."""
    for _, model, node in sections(root):
        yield from _wrong_combination(model, node)
        if "placeholder" in model.model_fields:
            yield from shown_without_extent(node.child("placeholder"))
    items = dict(pairs_of(root.child("items")))
    own = {name for name, rule in items.items() if rule.child("match")}
    yield from _wrong_item_types(items)
    known = [*BUILT_IN_TYPES, *sorted(own - set(BUILT_IN_TYPES)), "*"]
    types = {*known, *items}
    named = (node for node in _type_lists(root) if isinstance(node.value, str))
    unknown = (node for node in named if node.value not in types)
    for node in islice(unknown, MOST_TOLD):
        yield not_one_of(node, known)
    yield from _wrong_steps(steps_of(root))
    yield from _wrong_tails(root)
    yield from _overwriting_objects(root)
    yield from _placeholders_without_state(root)
    yield from _secrets_without_journal(root)


def _overwriting_objects(root: Node) -> Iterator[Diagnostic]:
    """Yield an error for a store at a URL that is to overwrite, since objects are only created."""
    given, place = root.child("store", "on_conflict"), root.said("store", "root")
    if given and given.value == "overwrite" and isinstance(place, str) and is_url(place):
        sentence = "`overwrite` is for folders; an object at a URL is created once"
        yield Diagnostic(given.place, "PC107", sentence, "use `suffix` or `error`")


def _placeholders_without_state(root: Node) -> Iterator[Diagnostic]:
    """Yield an error for a step that replaces placeholders, of which nothing is remembered."""
    if root.said("store", "state") != "none":
        return
    for step in steps_of(root):
        given = step.child("select", "placeholders")
        if given is not None and given.value is True:
            sentence = "with `state: none` no call knows the placeholders of the calls before it"
            yield Diagnostic(given.place, "PC107", sentence, "write `store: {state: kept}`")


def _secrets_without_journal(root: Node) -> Iterator[Diagnostic]:
    """Yield an error for each `keep` without a journal, and with one that a tool could read."""
    if root.said("store", "state") == "none":
        sentence, help_ = "with `state: none` nothing is kept", "write `store: {state: kept}`"
    elif root.said("store", "format") == "envelope":
        sentence = "with `format: envelope` the index in the folder of the texts would have it"
        help_ = "write `store: {format: text}`"
    else:
        return
    for _, secret in pairs_of(root.child("redact")):
        given = secret.child("keep")
        if given is not None and given.value is True:
            yield Diagnostic(given.place, "PC107", sentence, help_)


def _wrong_combination(model: type[Section], node: Node) -> Iterator[Diagnostic]:
    for rule in ("exactly_one", "at_most_one", "at_least_one"):
        keys = model.keys_of_rule(rule)
        given = [key for key in keys if key in node.value and node.value[key].value is not None]
        if len(given) > 1 and rule != "at_least_one":
            second = node.value[given[1]]
            sentence = f"{' and '.join(given)} exclude one another; give one"
            place = second.named_at
            first = node.value[given[0]].key or node.place
            help_ = "" if first.line == place.line else f"{given[0]} is at {first.seen_from(place)}"
            yield Diagnostic(place, "PC107", sentence, help_)
        # A misspelt key is told as such, and is likely the one that is missing.
        is_misspelt = not model.model_fields.keys() >= node.value.keys()
        if keys and not given and not is_misspelt and rule != "at_most_one":
            yield Diagnostic(node.at, "PC102", f"expected one of {', '.join(keys)}")


def _wrong_item_types(items: dict[str, Node]) -> Iterator[Diagnostic]:
    for name, rule in items.items():
        has_match = rule.said("match") is not None
        place = rule.named_at
        if name in BUILT_IN_TYPES:
            if has_match:
                sentence = f"{name!r} is a built-in type; a type with a match needs another name"
                yield Diagnostic(place, "PC107", sentence)
        elif not has_match:
            likely = hint(name, BUILT_IN_TYPES)
            is_key = name in ItemRule.model_fields
            help_ = "it is a key of an item type" if is_key else likely
            help_ = help_ or "a type of your own needs a `match`"
            yield Diagnostic(place, "PC111", f"unknown item type {name!r}", help_)
        elif not _TYPE_NAME.fullmatch(name):
            sentence = f"expected a name of a-z, 0-9 and _ that begins with a letter, got {name!r}"
            yield Diagnostic(place, "PC106", sentence)


def _type_lists(root: Node) -> Iterator[Node]:
    """Every list of item types in the steps: of a selection, and of the gate `items`."""
    for step in steps_of(root):
        lists = [step.child("select", "types")]
        lists += [gates.child("items", "types") for gates in elements_of(step.child("when"))]
        yield from (node for types in lists if types is not None for node in types.elements)


def _wrong_steps(steps: list[Node]) -> Iterator[Diagnostic]:
    seen: dict[object, Node] = {}
    for i, step in enumerate(steps):
        name, action = step.said("name"), action_of(step)
        if isinstance(name, str) and name in seen:
            yield called_alike(step.value["name"], seen[name])
        elif isinstance(name, str):
            seen[name] = step.value["name"]
        if action is not None:
            behind = (later for later in steps[i + 1 :] if not any(_waited_for(later)))
            is_last = all(_moment(later) != _moment(step) for later in behind)
            yield from _out_of_place_by_action(step, action, is_last=is_last)
        if step.said("on") == "arrival":
            yield from _out_of_place_on_arrival(step, action)
        if action is not None and _names_no_file(action):
            yield from path_in_cleared(step.child("placeholder"))
        yield from _by_no_types(step)
        yield from _wrong_failures(step, steps[:i], steps[i:])
    for step in steps:
        for key in ("before", "remove"):
            if node := step.child(key):
                sentence = f"`{key}` is for a policy that extends another"
                yield Diagnostic(node.named_at, "PC107", sentence)


def _waited_for(step: Node) -> list[Node | None]:
    return [gates.child("failed") for gates in elements_of(step.child("when"))]


def _wrong_failures(
    step: Node, before: Sequence[Node], behind: Sequence[Node]
) -> Iterator[Diagnostic]:
    """Yield an error for each `failed` that no summary before this step can open."""
    found = _waited_for(step)
    if not any(found):
        return
    if None in found:
        sentence = "`failed` is in one alternative and not in another"
        yield Diagnostic(step.value["when"].at, "PC107", sentence, "write two steps")
    if step.said("do") == "compact":
        sentence = "`failed` is not for `do: compact`; a summary without a model takes its place by"
        at = next(node for node in found if node is not None)
        sentence += " `summary: {on_failure: extractive}`"
        yield Diagnostic(at.named_at, "PC107", sentence)
    for node in found:
        if node is not None and isinstance(node.value, str):
            yield from _not_compacting(node, step, before, behind)


def _not_compacting(
    node: Node, step: Node, before: Sequence[Node], behind: Sequence[Node]
) -> Iterator[Diagnostic]:
    named = next((s for s in (*before, *behind) if s.said("name") == node.value), None)
    if named is None:
        found = (s.said("name") for s in before if s.said("do") == "compact")
        names = [name for name in found if isinstance(name, str)]
        known = f"; those before this one are {', '.join(names)}" if names else ""
        sentence = f"there is no `compact` step {word(node)}{known}"
        yield Diagnostic(node.place, "PC107", sentence, hint(node.value, names))
    elif named.said("do") != "compact":
        sentence = f"{word(node)} is no `compact` step, so it makes no summary that could fail"
        yield Diagnostic(node.place, "PC107", sentence)
    elif named in behind:
        sentence = f"{word(node)} comes behind this step; move this one behind it"
        yield Diagnostic(node.place, "PC107", sentence)
    elif _moment(step) not in {moment := _moment(named), "arrival"}:
        sentence = f"{word(node)} runs on {moment}, and this step does not"
        yield Diagnostic(node.place, "PC107", sentence, f"write `on: {moment}`")


def _moment(step: Node) -> str:
    on = step.said("on")
    return on if isinstance(on, str) else "model_call"


def _out_of_place_by_action(step: Node, action: Action, *, is_last: bool) -> Iterator[Diagnostic]:
    if action.takes_messages and not is_last:
        yield Diagnostic(step.value["do"].place, "PC107", f"`{action.do}` must be the last step")
    wrong = [(step.child(key), key, "") for key in action.keys_without_use]
    selection = action.selection_without_use.items()
    wrong += [(step.child("select", key), key, f"; {why}") for key, why in selection]
    if action.leaves_placeholder:
        unit, ends = step.child("select", "unit"), elements_of(step.child("select", "until"))
        wrong.append((unit, "unit", "; each item leaves a placeholder of its own"))
        why = "; a message with a placeholder stays"
        wrong += [(end.child("messages"), "messages", why) for end in ends]
    for node, key, why in wrong:
        if node is not None:
            yield Diagnostic(node.named_at, "PC107", f"{key} is not for `do: {action.do}`{why}")
    if action.leaves_nothing:
        yield from _split_batches(step.child("select", "keep_recent"), f"`do: {action.do}`")


def _wrong_tails(root: Node) -> Iterator[Diagnostic]:
    """Yield an error for each key of the tail of a compaction that only fits items."""
    for path, model, node in sections(root):
        if model is KeepRecent and path[-2:-1] == ("compaction",):
            yield from _split_batches(node, "`compact`")
            of = node.child("of")
            if of is not None and of.value == "candidates":
                sentence = "`of: candidates` is not for `compact`, which takes whole messages"
                yield Diagnostic(of.place, "PC107", sentence, "remove it: all of them count")


def _split_batches(recency: Node | None, by: str) -> Iterator[Diagnostic]:
    batches = recency.child("batches") if recency is not None else None
    if batches is not None and batches.value == "split":
        sentence = f"`batches: split` is not for {by}; {_NEVER_SPLIT}"
        yield Diagnostic(batches.place, "PC107", sentence, "remove it, or write `batches: whole`")


def split_where_dropped(checked: reach.Checked) -> Iterator[Diagnostic]:
    """Yield an error for each rule with `batches: split` that counts for a `drop` step.

    Which rules those are takes the whole policy, as in `wordings_without_source`.
    """
    found: dict[RulePath, Step] = {}
    for _, step in checked.steps:
        if step.action.leaves_nothing and step.select.keep_recent is None:
            with suppress(reach.TooLargeError):
                for item_type in reach.taken_types(checked, step):
                    tools = reach.tools_left(checked, step, item_type)
                    given = reach.rules_that_speak(checked, item_type, tools, "keep_recent")
                    found |= {p: step for p, keep in given if keep and keep.batches == "split"}
    for path, step in found.items():
        if checked.is_written(path):
            by = f"the step {step.name!r}, which drops"
            yield from _split_batches(checked.root.deepest(path)[1], by)


def summaries_without_model(checked: reach.Checked) -> Iterator[Diagnostic]:
    """Yield an error for each summary whose keys need a model, and that names none."""
    for step, _, settings in checked.compactions:
        if needs := _why_model_is_needed(settings.summary, checked.policy):
            key, sentence, help_ = needs
            path = checked.compaction_key(step, "summary", key) or ()
            yield Diagnostic(checked.place(path), "PC102", sentence, help_)


def wordings_of_no_summary(checked: reach.Checked) -> Iterator[Diagnostic]:
    """Yield an error for a compaction without a summary whose wording shows one, or is empty."""
    for step, _, settings in checked.compactions:
        if settings.summary.by != NONE:
            continue
        text = settings.wording.summary
        is_shown = "summary" in parsed_template(text, SUMMARY_FIELDS).fields
        if not is_shown and text.strip():
            continue
        path = checked.compaction_key(step, "wording", "summary")
        path = path or checked.compaction_key(step, "summary", "by") or ()
        what = "the wording shows one" if is_shown else "the wording is empty"
        sentence = f"`by: none` makes no summary, and {what}"
        help_ = "give a text: `wording: {summary: '[Earlier messages: {archive_path}]'}`"
        yield Diagnostic(checked.place(path), "PC107", sentence, help_)


def _why_model_is_needed(summary: Summary, policy: Policy) -> tuple[str, str, str] | None:
    """Return the key that needs a model, what is wrong, and what to write."""
    if summary.reuse_cache and summary.by not in MODEL_SUMMARIZERS:
        names = " or ".join(f"`by: {name}`" for name in MODEL_SUMMARIZERS)
        return "reuse_cache", f"`reuse_cache` needs a summarizer that asks a model: {names}", ""
    if "model" in summary.model_fields_set or (summary.reuse_cache and policy.model.name):
        return None
    if summary.reuse_cache:
        help_ = "give the session's own model: `model: {name: …}`"
        return "reuse_cache", "`reuse_cache` needs `model.name`", help_
    if summary.by == "openai":
        return "by", "`by: openai` needs `summary.model`", "name a model of the endpoint"
    return None


def _names_no_file(action: Action) -> bool:
    return action.leaves_placeholder and not action.saves


def _by_no_types(step: Node) -> Iterator[Diagnostic]:
    order = step.child("select", "order")
    if order and order.value == "by_type" and step.said("select", "types") is None:
        sentence = "`by_type` is the order of `types`, and there are none"
        yield Diagnostic(order.place, "PC107", sentence, "name the types in their order")


def _out_of_place_on_arrival(step: Node, action: Action | None) -> Iterator[Diagnostic]:
    for node in [*(step.child("select", key) for key in _ON_ARRIVAL), step.child("when")]:
        if node is not None:
            sentence = "items arrive one by one; what looks at the whole list is not for arrival"
            yield Diagnostic(node.named_at, "PC107", sentence)
    if action is not None and action.takes_messages:
        yield Diagnostic(step.value["do"].place, "PC107", f"`{action.do}` is not for arrival")
