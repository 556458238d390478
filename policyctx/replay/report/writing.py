"""Writing a report to its file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from policyctx.errors import ReportError
from policyctx.replay.report.page import check_drawable, page

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from policyctx.policy.models import Model
    from policyctx.replay.simulated import SimulatedSession


def check_writable(path: Path) -> None:
    """Raise `ReportError` or `MissingExtraError` before long work, as `write_report` does after."""
    check_drawable()
    folder = path.absolute().parent
    if path.is_dir():
        raise ReportError(str(path), "it is a folder")
    if not folder.is_dir():
        raise ReportError(str(path), f"there is no folder {folder}")
    if not os.access(path if path.exists() else folder, os.W_OK):
        raise ReportError(str(path), "permission denied")


def write_report(
    path: Path,
    policy: str,
    model: Model,
    sessions: Sequence[SimulatedSession],
    missing: Sequence[str] = (),
) -> int:
    """Write the page of sessions that were replayed under a policy; return its size in bytes.

    `missing` are sentences on what the page does not show. The file gets its name when it is
    complete. Raises `ReportError` and `MissingExtraError`.
    """
    unfinished = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as out:
            out.writelines(page(policy, model, sessions, missing))
        unfinished.replace(path)
    except OSError as error:
        raise ReportError(str(path), error.strerror or str(error)) from error
    finally:
        unfinished.unlink(missing_ok=True)
    return path.stat().st_size
