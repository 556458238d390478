"""The contract of stores, in a folder and as objects in a folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.store.contract import StoreContract


class TestFolder(StoreContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return str(tmp_path / "root")


class TestObjects(StoreContract):
    @pytest.fixture
    def root(self, tmp_path: Path) -> str:
        return f"file://{tmp_path}/root"
