"""The files that items are named for: the path of an item's own, and those that texts name."""

import re
from collections.abc import Iterable, Iterator

from policyctx.definitions.items import Item
from policyctx.messages.editing import strings_in
from policyctx.paths import File, item_path
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.facts import Facts
from policyctx.planning.placeholders import named_path, with_text

# What separates the words of a command; a quoted path may contain these.
_BETWEEN_WORDS = re.compile(r"""[\s"'`,;=()<>|&]+""")
_QUOTES = re.compile("[\"'`]")


def words_of(call: Item) -> Iterator[str]:
    """Yield what may be a path in a call's input: strings, quoted parts of them, and words."""
    for value in strings_in(call):
        yield value
        yield from _QUOTES.split(value)
        yield from _BETWEEN_WORDS.split(value)


def own_path(item: Item, policy: OffloadPolicy, facts: Facts) -> str:
    """Return the path of an item's file below the root, whether or not the name is free."""
    return item_path(
        item,
        policy.path_parts,
        session_id=facts.session_id,
        file_format=policy.store.format,
        escape=policy.store.escape,
    )


def named_paths(items: Iterable[Item], policy: OffloadPolicy, facts: Facts) -> Iterator[str]:
    """Yield the files that texts name as placeholders, or the strings of a call's input."""
    for item in items:
        if type(item.texts) is tuple and len(item.texts) > 1:
            continue
        is_call = item.kind == "tool_call"
        whole = item.texts if type(item.texts) is str else item.text
        for start, item_type, wording in policy.wordings_naming_files(item.tool, of_calls=is_call):
            if start in whole if is_call else whole.startswith(start):
                typed = item._replace(type=item_type)
                path = own_path(typed, policy, facts)
                file = File(path, f"{facts.root}/{path}")
                for text in strings_in(item) if is_call else (whole,):
                    found = named_path(wording, with_text(typed, text), file, facts)
                    if found is not None:
                        yield found
