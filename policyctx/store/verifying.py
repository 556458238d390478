"""Is everything still there that the index tells of, and still what was saved."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from policyctx.store.encoding import encoded
from policyctx.store.streaming import pieces

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from policyctx.store.entries import Entry
    from policyctx.store.opening import Tree


@dataclass(frozen=True, slots=True)
class Harm:
    """A content that is not what was saved."""

    entry: Entry
    kind: Literal["missing", "altered", "unreadable"]
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What a look at every content came to; `harmed` names each that was harmed."""

    checked: int
    harmed: tuple[Harm, ...]

    @property
    def is_clean(self) -> bool:
        """Is every content there, and what was saved."""
        return not self.harmed


def verified(
    tree: Tree, entries: Sequence[Entry], progress: Callable[[int, int], object]
) -> Verification:
    """Read every content and compare its hash; `progress` gets how many of how many are done."""
    harmed = []
    for done, entry in enumerate(entries):
        progress(done, len(entries))
        harm = harm_of(tree, entry)
        if harm is not None:
            harmed.append(harm)
    progress(len(entries), len(entries))
    return Verification(len(entries), tuple(harmed))


def harm_of(tree: Tree, entry: Entry) -> Harm | None:
    """Return what is wrong with a content, None when nothing is."""
    digest = hashlib.sha256()
    try:
        for piece in pieces(tree, entry.path, entry.format):
            digest.update(encoded(piece))
    except FileNotFoundError:
        return Harm(entry, "missing", "its file is gone")
    except OSError as error:
        return Harm(entry, "unreadable", error.strerror or str(error))
    except ValueError as error:
        return Harm(entry, "altered", str(error))
    if digest.hexdigest() in {entry.sha256, entry.replaces}:
        return None
    return Harm(entry, "altered", f"its sha256 is {digest.hexdigest()}, not {entry.sha256}")
