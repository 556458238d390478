"""Compactions that repeat, restore nothing, or ask nobody."""

from collections.abc import Iterator

from policyctx.definitions.names import BUILT_IN_SUMMARIZERS, MODEL_SUMMARIZERS, PROMPT_FIELDS
from policyctx.errors import Diagnostic
from policyctx.policy.diagnosing import hint
from policyctx.policy.findings import gates
from policyctx.policy.lookup import compaction_of
from policyctx.policy.models import Step
from policyctx.policy.models.compaction import Restore
from policyctx.policy.reach import Checked
from policyctx.policy.templates import parsed_template


def compactions_that_repeat(checked: Checked) -> Iterator[Diagnostic]:
    """PC304, for a `compact` whose result can be large enough to open its own gate.

    Only what is limited in tokens is added up: a tail given in tokens, and the restored files.
    The summary, the system prompt and the pins come on top.
    """
    if checked.compact is None:
        return
    path, step = checked.compact
    kept, restored = _tail(checked, step), _restored(checked, step)
    if kept >= checked.policy.model.context_window:
        return  # reported as PC324
    for i, given in enumerate(step.when):
        opening = gates.lowest(checked, given.tokens)
        is_alone = given.model_fields_set == {"tokens"}
        if is_alone and opening is not None and kept + restored >= opening[0]:
            sentence = (
                f"`compact` may leave {kept} tokens that it keeps and {restored} that it restores, "
                f"{kept + restored} with no word of the summary, and runs again from "
                f"{opening[0]} on"
            )
            hint = "raise the gate, or lower `keep_recent` or `restore`"
            yield checked.warning("PC304", (*path, "when", i, "tokens"), sentence, hint)


def compactions_without_gate(checked: Checked) -> Iterator[Diagnostic]:
    """PC327, for a `compact` without `when`, which summarises however short the list is."""
    if checked.compact is None or checked.compact[1].when:
        return
    path, step = checked.compact
    share = float(100 * compaction_of(checked.policy, step).min_new)
    again = f"when {share:g}% of what it replaces is new" if share else "at every one after it"
    sentence = (
        f"`compact` has no gate: it summarises before the first model call, and again {again}"
    )
    hint = "add a gate, such as `when: {tokens: {at_least: 80%}}`"
    yield checked.warning("PC327", (*path, "do"), sentence, hint)


def restorations_from_nowhere(checked: Checked) -> Iterator[Diagnostic]:
    """PC307, for a `restore` that was written although no tool works on files."""
    if checked.compact is None:
        return
    path, step = checked.compact
    restore = compaction_of(checked.policy, step).restore
    if _uses_files(checked, restore):
        return
    for written in ((*path, "compaction", "restore"), ("compaction", "restore")):
        if checked.is_written(written) and restore.max_files > 0:
            sentence = (
                f"up to {restore.max_files} files are to be restored, but no tool says which file "
                "it reads"
            )
            hint = "give the tool that reads files `reads_file: <input field>`, or `max_files: 0`"
            yield checked.warning("PC307", written, sentence, hint)
            return


def unknown_summarizers(checked: Checked) -> Iterator[Diagnostic]:
    """PC330, for a `summary.by` that names no built-in summarizer; code may register one."""
    if checked.compact is None:
        return
    path, step = checked.compact
    by = compaction_of(checked.policy, step).summary.by
    if by in BUILT_IN_SUMMARIZERS:
        return
    keys = ("compaction", "summary", "by")
    written = next(found for found in ((*path, *keys), keys) if checked.is_written(found))
    sentence = (
        f"no built-in summarizer is named {by!r}; without "
        f"`policyctx.register_summarizer({by!r}, …)` no session can be made"
    )
    likely = hint(by, BUILT_IN_SUMMARIZERS) or f"built in: {', '.join(BUILT_IN_SUMMARIZERS)}"
    yield checked.warning("PC330", written, sentence, likely)


def prompts_without_use(checked: Checked) -> Iterator[Diagnostic]:
    """PC332, for a `prompt` that no model reads, and for `rules` that are not in the prompt."""
    if checked.compact is None:
        return
    path, step = checked.compact
    summary = compaction_of(checked.policy, step).summary
    if summary.prompt is None:
        return
    key, sentence, hint_ = "prompt", "", ""
    if summary.by == "extractive":
        sentence = "`prompt` does nothing: the summary is extractive, and no model is asked"
        hint_ = f"name a summarizer that asks one, such as `by: {MODEL_SUMMARIZERS[0]}`"
    elif summary.rules and "rules" not in parsed_template(summary.prompt, PROMPT_FIELDS).fields:
        key, sentence = "rules", "`rules` do nothing: the `prompt` has no `{rules}`"
        hint_ = "put it into the prompt, or remove the key"
    keys = ("compaction", "summary", key)
    written = [found for found in ((*path, *keys), keys) if checked.is_written(found)]
    if sentence and written:
        yield checked.warning("PC332", written[0], sentence, hint_)


def _uses_files(checked: Checked, restore: Restore) -> bool:
    """Return whether a tool accesses files in one of the ways that restoration asks for."""
    return any(
        fields is not None and source in restore.sources
        for rule in checked.policy.tools.values()
        for source, fields in (
            ("read", rule.reads_file),
            ("edited", rule.edits_file),
            ("written", rule.writes_file),
        )
    )


def _tail(checked: Checked, step: Step) -> int:
    tokens = compaction_of(checked.policy, step).keep_recent.tokens
    return 0 if tokens is None else checked.tokens(tokens)


def _restored(checked: Checked, step: Step) -> int:
    restore = compaction_of(checked.policy, step).restore
    if not _uses_files(checked, restore):
        return 0
    return min(restore.max_tokens_total, restore.max_files * restore.max_tokens_per_file)
