"""Findings on gates, compactions, the model and the store.

Gates that never open, ends that never come; compactions that repeat or restore nothing; names that
nobody knows, keys without effect, files that are shared.
"""

from collections.abc import Iterator
from fractions import Fraction
from math import ceil, floor
from typing import Any, NamedTuple

from policyctx.definitions.items import MEDIA_TYPES, WITH_TOOL, WITHOUT_TOOL, PlainValue
from policyctx.definitions.names import (
    BUILT_IN_SUMMARIZERS,
    MODEL_SUMMARIZERS,
    PATH_FIELDS,
    PROMPT_FIELDS,
    is_url,
)
from policyctx.definitions.tokenizers import TOKENIZERS
from policyctx.errors import Diagnostic
from policyctx.policy import reach
from policyctx.policy.diagnosing import hint
from policyctx.policy.models import Step
from policyctx.policy.models.compaction import Restore
from policyctx.policy.models.gates import (
    COMPARISONS,
    GATES,
    CountGate,
    ItemsGate,
    Limits,
    TokensGate,
    Until,
    gates_in,
)
from policyctx.policy.nodes import Path
from policyctx.policy.reach import Checked
from policyctx.policy.values import Duration, parsed_template

_WITHOUT_OWN_CALL = WITHOUT_TOOL | MEDIA_TYPES
_LAST = "`on_conflict: overwrite` keeps only the last"
_OF_FOLDERS = {
    "sync": "an object is durable when the service says so",
    "mode": "the service decides who may read an object",
}


class Bound(NamedTuple):
    """One comparison: its key, the limit as written, and the number that this means."""

    key: str
    written: Any
    number: Fraction
    is_lower: bool
    is_open: bool


def gates_that_never_open(checked: Checked) -> Iterator[Diagnostic]:
    """PC308, for each comparison that no number can pass."""
    for i, step in enumerate(checked.policy.steps):
        for j, gates in enumerate(step.when):
            for name, gate, _ in gates_in(gates):
                if why := _never(checked, name, gate):
                    sentence = f"the gate `{name}` can never open: {why}"
                    path: Path = ("steps", i, "when", j, *name.split("."))
                    hint = "change the numbers, or remove the gate"
                    yield checked.warning("PC308", path, sentence, hint)


def _never(checked: Checked, name: str, gate: PlainValue) -> str | None:
    bounds = _bounds(checked, gate)
    if GATES[name].kind == "calls" and len({type(bound.written) for bound in bounds}) > 1:
        return None  # a number of calls and a share of those that were made
    least = [b for b in bounds if b.is_lower]
    most = [b for b in bounds if not b.is_lower]
    if too_high := next(filter(None, (_too_high(checked, name, gate, b) for b in least)), None):
        return too_high
    if high := next((b for b in most if b.is_open and b.number == 0), None):
        return f"nothing is under {high.written}"
    if (why := GATES[name].why_never_zero) and any(b.number == 0 for b in most):
        return why
    pair = next(((a, b) for a in least for b in most if _is_empty(name, a, b)), None)
    if pair is None:
        return None
    shown = " and ".join(f"{b.key} {_written(checked, name, b)}" for b in pair)
    return f"no number is {shown}"


def _bounds(checked: Checked, gate: PlainValue) -> list[Bound]:
    return [
        Bound(key, value, _number(checked, value), comparison.is_lower, comparison.is_open)
        for key, comparison in (COMPARISONS if isinstance(gate, Limits) else {}).items()
        if (value := getattr(gate, key)) is not None
    ]


def _number(checked: Checked, value: PlainValue) -> Fraction:
    if value == "cache_ttl":
        return checked.exact(checked.policy.model.cache.seconds())
    if isinstance(value, Duration):
        value = value.seconds
    return checked.exact(value)


def _too_high(checked: Checked, name: str, gate: PlainValue, low: Bound) -> str | None:
    """Return why no number passes a lower bound, None if one may."""
    gate_definition, window = GATES[name], checked.policy.model.context_window
    if isinstance(gate, ItemsGate) and not gate.types and (low.is_open or low.number > 0):
        return "it counts items of no type"
    if (highest := gate_definition.highest) is not None and (
        low.number > highest or (low.is_open and low.number == highest)
    ):
        return gate_definition.why_highest
    if gate_definition.kind == "tokens" and low.number > window:
        return f"{low.key} {low.written} is more than the context window of {window} tokens"
    return None


def _is_empty(name: str, low: Bound, high: Bound) -> bool:
    """Is there no number between the two; what is counted is whole."""
    if GATES[name].kind in {"tokens", "count", "calls"}:
        most = ceil(high.number) - 1 if high.is_open else high.number
        return _least(low) > most
    if low.number == high.number:
        return low.is_open or high.is_open
    return low.number > high.number


def _least(low: Bound) -> int:
    """Return the least whole number that passes a lower bound."""
    return floor(low.number) + 1 if low.is_open else ceil(low.number)


def _written(checked: Checked, name: str, bound: Bound) -> str:
    if GATES[name].kind == "tokens":
        return checked.shown(bound.written)
    if isinstance(bound.written, Fraction):
        return f"{float(bound.written):g}"
    return str(bound.written)


def counts_that_forget(checked: Checked) -> Iterator[Diagnostic]:
    """PC341, for a `since_last` in a session that keeps no state."""
    if checked.policy.store.keeps_state:
        return
    for i, step in enumerate(checked.policy.steps):
        for j, gates in enumerate(step.when):
            if gates.since_last is not None:
                sentence = (
                    "`since_last` counts from the beginning of the list at every call: with "
                    "`state: none` the session does not remember what a step took"
                )
                hint = "write `store: {state: kept}`, or count `messages`, `turns` or `tokens`"
                path: Path = ("steps", i, "when", j, "since_last")
                yield checked.warning("PC341", path, sentence, hint)


def ends_before_beginning(checked: Checked) -> Iterator[Diagnostic]:
    """PC305, for an `until` that may hold already when the step begins."""
    for path, step in checked.steps:
        for i, until in enumerate(step.select.until or ()):
            if why := _holds_at_once(checked, step, until):
                at = (*path, "select", "until", i)
                compared = "messages" if until.messages else "tokens" if until.tokens else ""
                at = (*at, compared) if compared else at
                yield checked.warning("PC305", at, *why)


def ends_that_never_come(checked: Checked) -> Iterator[Diagnostic]:
    """PC317, for an `until` that no list can fulfil."""
    window = checked.policy.model.context_window
    for path, step in checked.steps:
        for i, until in enumerate(step.select.until or ()):
            hint = "change the number, or remove `until`: the step takes all that it selects"
            at = (*path, "select", "until", i)
            if until.tokens is not None and checked.exact(until.tokens.under) == 0:
                sentence = f"`until` can never hold: nothing is under {until.tokens.under}"
                yield checked.warning("PC317", (*at, "tokens"), sentence, hint)
            if until.messages is not None and until.messages.under == 0:
                sentence = "`until` can never hold: nothing is under 0"
                yield checked.warning("PC317", (*at, "messages"), sentence, hint)
            if until.frees is not None and checked.exact(until.frees.at_least) > window:
                sentence = (
                    f"`until` can never hold: at_least {until.frees.at_least} is more than the "
                    f"context window of {window} tokens"
                )
                yield checked.warning("PC317", (*at, "frees"), sentence, hint)


def _holds_at_once(checked: Checked, step: Step, until: Until) -> tuple[str, str] | None:
    if until.frees is not None and checked.tokens(until.frees.at_least) > 0:
        return None
    below = until.messages or until.tokens
    if below is None:
        return "`until` holds before anything is freed", "wait for at least 1 token"
    end, unit = checked.tokens(below.under), "messages" if until.messages else "tokens"
    for gates in step.when:
        opening = lowest(checked, getattr(gates, unit))
        if opening is not None and opening[0] < end:
            start = f"{opening[0]} messages" if until.messages else opening[1]
            sentence = (
                f"`until` is not below `when`: the gate opens from {start} on, where "
                f"`under {checked.shown(below.under)}` holds already"
            )
            return sentence, f"use {opening[0]} {unit} or less"
    if until.messages or until.tokens is None:
        return None
    window = checked.policy.model.context_window
    if end > window and not any(lowest(checked, gates.tokens) for gates in step.when):
        sentence = (
            f"`until` holds already: every list that fits the context window of {window} tokens "
            f"is `under {checked.shown(until.tokens.under)}`"
        )
        return sentence, "use a smaller number, such as `under: 60%`"
    return None


def lowest(checked: Checked, gate: TokensGate | CountGate | None) -> tuple[int, str] | None:
    """Return the least number at which a gate opens, and in words; None without a lower bound."""
    if gate is None:
        return None
    bounds = [
        (_least(bound), f"{bound.key} {checked.shown(bound.written)}".replace("_", " "))
        for bound in _bounds(checked, gate)
        if bound.is_lower
    ]
    return max(bounds, default=None)


def compactions_that_repeat(checked: Checked) -> Iterator[Diagnostic]:
    """PC304, for a `compact` whose result can be large enough to open its own gate.

    Only what is limited in tokens is added up: a tail given in tokens, and the restored files.
    The summary, the system prompt and the pins come on top.
    """
    for path, step, settings in checked.compactions:
        tail = settings.keep_recent.kept_tokens
        kept = 0 if tail is None else checked.tokens(tail)
        restore = settings.restore
        files = len(restore.always) + restore.max_files * _uses_files(checked, restore)
        restored = min(restore.max_tokens_total, files * restore.max_tokens_per_file)
        # A tail as large as the window is reported as PC324.
        fits = kept < checked.policy.model.context_window
        for i, given in enumerate(step.when if fits and step.on != "overflow" else ()):
            opening = lowest(checked, given.tokens)
            is_alone = given.model_fields_set == {"tokens"}
            if is_alone and opening is not None and kept + restored >= opening[0]:
                sentence = (
                    f"`compact` may leave {kept} tokens that it keeps and {restored} that it "
                    f"restores, {kept + restored} with no word of the summary, and runs again from "
                    f"{opening[0]} on"
                )
                hint = "raise the gate, or lower `keep_recent` or `restore`"
                yield checked.warning("PC304", (*path, "when", i, "tokens"), sentence, hint)


def compactions_without_gate(checked: Checked) -> Iterator[Diagnostic]:
    """PC327, for a `compact` without `when`, which summarises however short the list is.

    One that runs on overflow waits for a refused prompt.
    """
    for path, step, settings in checked.compactions:
        if not step.when and step.on != "overflow":
            share = float(100 * settings.min_new)
            new = f"when {share:g}% of what it replaces is new"
            sentence = (
                "`compact` has no gate: it summarises before the first model call, and again "
                f"{new if share else 'at every one after it'}"
            )
            hint = "add a gate, such as `when: {tokens: {at_least: 80%}}`"
            yield checked.warning("PC327", (*path, "do"), sentence, hint)


# What a tool does to a file of each of `restore.sources`; its key has the same verb.
_VERBS = {"read": "reads", "edited": "edits", "written": "writes"}


def restorations_from_nowhere(checked: Checked) -> Iterator[Diagnostic]:
    """PC307, for a `restore` that was written although no tool works on files."""
    for path, _, settings in checked.compactions:
        restore, written = settings.restore, checked.compaction_key(path, "restore")
        brings_any = restore.always or not restore.max_files or _uses_files(checked, restore)
        if written is not None and not brings_any:
            verb = next((v for source, v in _VERBS.items() if source in restore.sources), "reads")
            sentence = (
                f"up to {restore.max_files} files are to be restored, but no tool says which file "
                f"it {verb}"
            )
            key = f"`{verb}_file: <input field>`"
            hint = f"give the tool that {verb} files {key}, or `max_files: 0`"
            yield checked.warning("PC307", written, sentence, hint)


def unknown_summarizers(checked: Checked) -> Iterator[Diagnostic]:
    """PC330, for a `summary.by` that names no built-in summarizer; code may register one."""
    for path, _, settings in checked.compactions:
        by, written = settings.summary.by, checked.compaction_key(path, "summary", "by")
        if by not in BUILT_IN_SUMMARIZERS and written is not None:
            sentence = (
                f"no built-in summarizer is named {by!r}; without "
                f"`policyctx.register_summarizer({by!r}, …)` no session can be made"
            )
            built_in = f"built in: {', '.join(BUILT_IN_SUMMARIZERS)}"
            likely = hint(by, BUILT_IN_SUMMARIZERS) or built_in
            yield checked.warning("PC330", written, sentence, likely)


def prompts_without_use(checked: Checked) -> Iterator[Diagnostic]:
    """PC332, for a `prompt` that no model reads, and for `rules` that are not in the prompt."""
    for path, _, settings in checked.compactions:
        summary = settings.summary
        if summary.prompt is None:
            continue
        key, sentence, hint_ = "prompt", "", ""
        if summary.by == "extractive":
            sentence = "`prompt` does nothing: the summary is extractive, and no model is asked"
            hint_ = f"name a summarizer that asks one, such as `by: {MODEL_SUMMARIZERS[0]}`"
        elif summary.rules and "rules" not in parsed_template(summary.prompt, PROMPT_FIELDS).fields:
            key, sentence = "rules", "`rules` do nothing: the `prompt` has no `{rules}`"
            hint_ = "put it into the prompt, or remove the key"
        written = checked.compaction_key(path, "summary", key)
        if sentence and written is not None:
            yield checked.warning("PC332", written, sentence, hint_)


def _uses_files(checked: Checked, restore: Restore) -> bool:
    """Return whether a tool accesses files in one of the ways that restoration asks for."""
    return any(
        getattr(rule, f"{_VERBS[source]}_file") is not None
        for rule in checked.policy.tools.values()
        for source in restore.sources
    )


def unknown_tokenizers(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC331, for a `model.tokenizer` that names no built-in one; code may register one."""
    name = checked.policy.model.tokenizer
    if not isinstance(name, str) or name in TOKENIZERS:
        return
    sentence = (
        f"no built-in tokenizer is named {name!r}; without "
        f"`policyctx.register_tokenizer({name!r}, …)` no session can be made"
    )
    likely = hint(name, TOKENIZERS) or f"built in: {', '.join(TOKENIZERS)}"
    yield checked.warning("PC331", ("model", "tokenizer"), sentence, likely)


def shared_files(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC311, for a `path` that does not tell items apart, where files overwrite one another."""
    store = checked.policy.store
    if store.on_conflict != "overwrite":
        return
    fields = parsed_template(store.path, PATH_FIELDS).fields
    if (shared := _shared(checked, fields)) is not None:
        which, missing = shared
        sentence = f"different items share a file, and {_LAST}: {which}"
        hint = f"put `{{{missing}}}` into the path, or use `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "path"), sentence, hint)
    elif store.escape == "_" and _saved_types(checked):
        sentence = f"ids that differ in other signs alone share a file, and {_LAST}"
        hint = "use `escape: percent` or `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "escape"), sentence, hint)


def _shared(checked: reach.Checked, fields: frozenset[str]) -> tuple[str, str] | None:
    """Say which items share a file, and name the field that would tell them apart."""
    saved = _saved_types(checked)
    if fields.isdisjoint({"item_id", "tool_use_id"}):
        types = reach.outermost(checked, saved)
        return (f"{', '.join(types)} with no id in the path", "item_id") if types else None
    if "item_id" not in fields:
        types = reach.outermost(checked, [t for t in saved if checked.kind(t) in _WITHOUT_OWN_CALL])
        if types:
            return f"{', '.join(types)} with no tool_use_id", "item_id"
    if "item_type" not in fields and WITH_TOOL.issubset(map(checked.kind, saved)):
        return "a call and its result, which have one id", "item_type"
    return None


def _saved_types(checked: reach.Checked) -> list[str]:
    """The types of which a file may be written, those that go along with others included."""
    saved: dict[str, None] = {}
    for _, step in checked.steps:
        if step.saves:
            types = reach.taken_types(checked, step)
            kinds = WITH_TOOL.intersection(map(checked.kind, types))
            saved |= dict.fromkeys(types)
            if kinds and step.action.leaves_nothing:
                saved |= dict.fromkeys(sorted(WITH_TOOL))
            inputs = step.select.with_input
            if "tool_result" in kinds and inputs is not None and inputs.tools:
                saved["tool_call"] = None
    return list(saved)


def keys_of_another_root(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC342, for keys that only folders know in a store at a URL, and the other way round."""
    if is_url(checked.policy.store.root):
        for key, why in _OF_FOLDERS.items():
            if checked.is_written(("store", key)):
                sentence = f"`{key}` has no effect in a store at a URL: {why}"
                yield checked.warning("PC342", ("store", key), sentence, "remove it")
        return
    if checked.is_written(("store", "timeout")):
        sentence = "`timeout` has no effect in a folder: it is for a store at a URL"
        yield checked.warning("PC342", ("store", "timeout"), sentence, "remove it")


def useless_spilling(checked: reach.Checked) -> Iterator[Diagnostic]:
    """PC350, for a `spill_to` that nothing uses, and PC351, for one that changes names."""
    store = checked.policy.store
    if store.spill_to is None:
        return
    if not is_url(store.root):
        sentence = "`spill_to` has no effect in a folder: it is for a store at a URL"
        yield checked.warning("PC350", ("store", "spill_to"), sentence, "remove it")
    elif store.on_conflict == "error":
        sentence = (
            "`on_conflict: error` does not hold for texts that wait in `spill_to`: each gets a name"
            " of its own, since what is taken cannot be asked"
        )
        hint = "remove `spill_to`, or let conflicts get a suffix"
        yield checked.warning("PC351", ("store", "spill_to"), sentence, hint)
