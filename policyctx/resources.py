"""Where the folders that ship with the library are: the presets and the features."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent


def shipped_folder(name: str) -> Path:
    """Return the folder `policies` or `features`, as installed or as checked out.

    A wheel carries both inside the package; in a checkout, and so in an editable install, they
    stand beside it.
    """
    installed = _PACKAGE / "shipped" / name
    return installed if installed.is_dir() else _PACKAGE.parent / name
