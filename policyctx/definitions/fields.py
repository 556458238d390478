"""The fields of texts in a policy: of placeholders, paths, the store's root and session ids."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from policyctx.definitions.names import READ_AGAIN

# What a field shows: the item itself, its file, how to read the file, its content, an excerpt of
# its content, or the file that the agent read it from.
Source: TypeAlias = Literal["item", "file", "reading", "content", "excerpt", "origin"]


@dataclass(frozen=True, slots=True)
class PlaceholderField:
    """One field of a placeholder: where its value comes from, and its least length in characters.

    `extent` says that the field shows nothing without the key of its name beside the text.
    """

    source: Source
    least_chars: int = 0
    extent: bool = False


FIELDS: dict[str, PlaceholderField] = {
    "item_id": PlaceholderField("item"),
    "item_type": PlaceholderField("item", least_chars=1),
    "tool_name": PlaceholderField("item"),
    "tool_use_id": PlaceholderField("item"),
    "session_id": PlaceholderField("item"),
    "path": PlaceholderField("file", least_chars=2),
    "relative_path": PlaceholderField("file", least_chars=3),
    "store_path": PlaceholderField("file", least_chars=1),
    "cwd_path": PlaceholderField("file", least_chars=1),
    "how_to_read": PlaceholderField("reading", least_chars=len(READ_AGAIN)),
    "tokens": PlaceholderField("content", least_chars=1),
    "chars": PlaceholderField("content", least_chars=1),
    "lines": PlaceholderField("content", least_chars=1),
    "sha256": PlaceholderField("content", least_chars=64),
    "head": PlaceholderField("excerpt", extent=True),
    "tail": PlaceholderField("excerpt", extent=True),
    "gap": PlaceholderField("excerpt"),
    "omitted_lines": PlaceholderField("excerpt", least_chars=1),
    "omitted_chars": PlaceholderField("excerpt", least_chars=1),
    "source_path": PlaceholderField("origin"),
    "source_first_line": PlaceholderField("origin", least_chars=1),
    "source_last_line": PlaceholderField("origin", least_chars=1),
}


def _of(*sources: Source) -> tuple[str, ...]:
    return tuple(name for name, field in FIELDS.items() if field.source in sources)


PLACEHOLDER_FIELDS = tuple(FIELDS)
FILE_FIELDS = _of("file")
# What nothing can be shown for where an item has no file.
SAVED_FIELDS = _of("file", "reading")
EXCERPT_FIELDS = frozenset(_of("excerpt"))
# What tells of a text itself: in the input of a call, of each string that is replaced. A hash is
# for the file, which holds the whole input.
TEXT_FIELDS = frozenset(_of("content", "excerpt")) - {"sha256"}
# Of a text between the head and the tail.
GAP_FIELDS = ("omitted_lines", "omitted_chars", "lines", "chars")
EXTENT_FIELDS = tuple(name for name, field in FIELDS.items() if field.extent)

PATH_FIELDS = (*_of("item"), "ext")
ROOT_FIELDS = ("session_id",)
SESSION_FIELDS = ("date", "time", "random")
SUMMARY_FIELDS = ("summary", "archive_path", "how_to_search")
PROMPT_FIELDS = ("sections", "rules", "max_words", "earlier_summary")
RESTORED_FIELDS = ("path", "content")
