"""Paths under which one item's file takes the place of another's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.policy.findings.reach import WITHOUT_TOOL, taken_types
from policyctx.policy.template import parsed_template
from policyctx.policy.values import PATH_FIELDS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from policyctx.errors import Diagnostic
    from policyctx.policy.findings.checked import Checked


def shared_files(checked: Checked) -> Iterator[Diagnostic]:
    """PC311, for a `path` without an item's id in it, where a new file overwrites an old one."""
    store = checked.policy.store
    fields = parsed_template(store.path, PATH_FIELDS).fields
    if store.on_conflict != "overwrite" or "item_id" in fields:
        return
    saved = dict.fromkeys(
        item_type
        for _, step in checked.steps
        if step.do in {"offload", "drop"}
        for item_type in taken_types(checked, step)
    )
    if "tool_use_id" in fields:
        saved = {t: None for t in saved if checked.parent(t) in WITHOUT_TOOL}
    if saved:
        missing = "no tool_use_id" if "tool_use_id" in fields else "no id in the path"
        sentence = (
            f"different items share a file, and `on_conflict: overwrite` keeps only the last: "
            f"{', '.join(saved)} with {missing}"
        )
        hint = "put `{item_id}` into the path, or use `on_conflict: suffix`"
        yield checked.warning("PC311", ("store", "path"), sentence, hint)
