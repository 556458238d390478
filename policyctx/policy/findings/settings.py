"""The model and the store: names that nobody knows, keys without effect, files that are shared."""

from collections.abc import Iterator

from policyctx.definitions.items import MEDIA_TYPES, WITH_TOOL, WITHOUT_TOOL
from policyctx.definitions.names import PATH_FIELDS, is_url
from policyctx.definitions.tokenizers import TOKENIZERS
from policyctx.errors import Diagnostic
from policyctx.policy import reach
from policyctx.policy.diagnosing import hint
from policyctx.policy.values import parsed_template

_WITHOUT_OWN_CALL = WITHOUT_TOOL | MEDIA_TYPES
_OF_FOLDERS = {
    "sync": "an object is durable when the service says so",
    "mode": "the service decides who may read an object",
}


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
        overwritten = (
            "different items share a file, and `on_conflict: overwrite` keeps only the last"
        )
        hint = f"put `{{{missing}}}` into the path, or use `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "path"), f"{overwritten}: {which}", hint)
    elif store.escape == "_" and _saved_types(checked):
        sentence = "ids that differ in other signs alone share a file, and `on_conflict: overwrite`"
        hint = "use `escape: percent` or `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "escape"), f"{sentence} keeps only the last", hint)


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
        if step.action.saves:
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
