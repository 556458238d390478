"""Keys of a store that say nothing where it is."""

from __future__ import annotations

from collections.abc import Iterator

from policyctx.definitions.store_urls import is_url
from policyctx.errors import Diagnostic
from policyctx.policy.reach import Checked

_OF_FOLDERS = {
    "sync": "an object is durable when the service says so",
    "mode": "the service decides who may read an object",
}


def keys_of_another_root(checked: Checked) -> Iterator[Diagnostic]:
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


def useless_spilling(checked: Checked) -> Iterator[Diagnostic]:
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
