"""What a collection looks at, and what it reports."""

from typing import NamedTuple

from policyctx.store.index import IndexEntry


class StoredFile(NamedTuple):
    """A file, with every entry of every session that names it, the newest last."""

    path: str
    entries: tuple[IndexEntry, ...]
    size: int
    """Bytes on the disk; files with the same `number` share them."""
    number: tuple[int, int]
    is_live: bool
    """Whether a placeholder names it, or may name it since it is new."""
    is_packed: bool

    @property
    def saved_at(self) -> float:
        """When it was saved last."""
        return max(entry.saved_at for entry in self.entries)

    @property
    def is_adopted(self) -> bool:
        """Whether it was found on the disk; it may be anyone's and is left alone."""
        return any(entry.adopted for entry in self.entries)


class CollectionReport(NamedTuple):
    """What `collect` did, or would do in a dry run.

    What a list held beside its texts counts in the bytes, but is no content of its own.
    """

    removed: tuple[tuple[IndexEntry, str], ...]
    """Removed contents, each with the rule that removed it."""
    packed: tuple[IndexEntry, ...]
    size_before: int
    """Bytes of all contents on the disk."""
    size_after: int
    is_dry_run: bool
    contents_before: int
    """The number of contents on the disk."""
