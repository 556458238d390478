"""Who wrote a text, where the role of its message does not say it.

A client puts texts of its own into the user's messages: the text of a skill, a command's template,
a reminder, the summary of its own compaction. Only the client knows it for certain, so readers of
recordings and hosts mark such a message, or a block of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, get_args

Author: TypeAlias = Literal["user", "program", "summary"]
"""`user`: the user's own words. `program`: put there by a program, such as a skill. `summary`: what
another writer's compaction left of the conversation before."""
AUTHORS: tuple[Author, ...] = get_args(Author)


class Authored(dict[str, Any]):
    """A message or a block that says who wrote it; it equals the dict without the mark."""

    __slots__ = ("author",)

    author: Author | Literal[""]

    def __init__(self, fields: Mapping[str, Any] = {}, author: Author | Literal[""] = "") -> None:
        super().__init__(fields)
        self.author = author

    def __copy__(self) -> Authored:
        return Authored(self, self.author)


def written_by(author: Author, message: Mapping[str, Any]) -> Authored:
    """Return a message, or a block of one, marked with who wrote it.

    The mark is for summaries, which keep the user's words longest. A provider is sent the same
    fields as before. Raises `ValueError` for an unknown author.
    """
    if author not in AUTHORS:
        raise ValueError(f"expected one of {', '.join(AUTHORS)}, got {author!r}")
    return Authored(message, author)


def author_of(message: object) -> Author | Literal[""]:
    """Return who wrote a message or block, empty if it does not say."""
    return message.author if isinstance(message, Authored) else ""
