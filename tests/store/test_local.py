"""The local folder as a place for a store."""

from __future__ import annotations

import subprocess
import sys

OTHER_SYSTEM = """
import os
os.supports_dir_fd = set()
import policyctx.store.filesystem
"""


def test_import_fails_on_a_system_without_folder_descriptors() -> None:
    run = subprocess.run(
        [sys.executable, "-c", OTHER_SYSTEM], capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    assert "ImportError: policyctx.store needs a POSIX system" in run.stderr
