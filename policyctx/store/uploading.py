"""What waits below a folder for a store at a URL, uploaded without the session that it is of."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from policyctx.errors import StoreError
from policyctx.store.backend import absolute_root
from policyctx.store.content import URL_FILE
from policyctx.store.filesystem import ContextFileSystem


@dataclass(frozen=True, slots=True)
class Upload:
    """What was uploaded from the folder of one session."""

    folder: str
    url: str
    objects: int
    """Uploaded now; segments of the journal count too."""
    left: int
    """What still waits."""
    error: str = ""
    """Why something is left, or was set aside."""


def upload_below(folder: str | os.PathLike[str], *, timeout: float) -> Iterator[Upload]:
    """Upload what waits in a folder and in those below it, and yield what was done in each.

    The session may run meanwhile, here or in another process. `timeout` is that of a request, in
    seconds. Raises `StoreError` for a folder in which nothing ever waited.
    """
    found = [*_folders(absolute_root(folder))]
    if not found:
        raise StoreError(f"nothing ever waited in {folder}", path=os.fspath(folder))
    for place, url in found:
        store = ContextFileSystem(url, spill_to=place, state="none", timeout=timeout)
        before, error = store.waiting, ""
        try:
            store.upload()
        except StoreError as failed:
            error = str(failed)
        left = store.waiting
        yield Upload(str(place), url, max(0, before - left), left, error)


def _folders(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield each folder that has waited for a store, with the URL of that store."""
    for folder, below, _ in os.walk(root):
        below.sort()
        path = absolute_root(folder)
        try:
            url = (path / URL_FILE).read_text("utf-8")
        except (OSError, ValueError):
            continue
        below.clear()
        yield path, url
