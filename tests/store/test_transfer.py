from __future__ import annotations

import os
from pathlib import Path

import pytest

from policyctx.errors import CorruptContentError, StoreError
from policyctx.store.content import Content
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import names_below, result


def test_a_session_goes_into_one_file_and_comes_back(
    any_store: ContextFileSystem, tmp_path: Path, form: Format
) -> None:
    contents = [result("call_1", "same\ud800"), result("call_2", "same\ud800"), result("3", "")]
    files = any_store.save([*contents, Content("archive.json", "y" * 5_000, packed=True)])
    any_store.remember([{"kind": "decided"}])
    assert any_store.export(tmp_path / "session.tar.zst") == 4
    assert (tmp_path / "session.tar.zst").stat().st_mode & 0o777 == 0o600

    other = ContextFileSystem(tmp_path / "other", sync="never", format=form)
    assert other.import_from(tmp_path / "session.tar.zst") == 4
    again = ContextFileSystem(tmp_path / "other", format=form)
    assert [again.read(file.path) for file in files] == [
        any_store.read(file.path) for file in files
    ]
    assert again.list() == any_store.list()
    assert again.records() == any_store.records()
    assert again.restore("call_2") == any_store.restore("call_2")
    assert again.verify().is_clean


def test_a_damaged_content_is_not_exported(any_store: ContextFileSystem, tmp_path: Path) -> None:
    [file] = any_store.save([result("call_1", "one")])
    Path(file.path).write_bytes(Path(file.path).read_bytes().replace(b"one", b"two"))
    with pytest.raises(CorruptContentError):
        any_store.export(tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["root"]


def test_a_session_is_not_imported_into_a_store_with_contents(
    any_store: ContextFileSystem, tmp_path: Path
) -> None:
    any_store.save([result("call_1", "one")])
    any_store.export(tmp_path / "out")
    with pytest.raises(StoreError, match="holds a session already"):
        any_store.import_from(tmp_path / "out")


@pytest.mark.parametrize("cut", [0, 1, 100, -1, -200])
def test_half_an_export_is_rejected_and_leaves_nothing(
    any_store: ContextFileSystem, tmp_path: Path, cut: int
) -> None:
    any_store.save([result(f"call_{i}", os.urandom(5_000).hex()) for i in range(5)])
    any_store.export(tmp_path / "out")
    (tmp_path / "out").write_bytes((tmp_path / "out").read_bytes()[:cut])
    other = ContextFileSystem(tmp_path / "other", sync="never")
    with pytest.raises(StoreError, match="cannot be imported"):
        other.import_from(tmp_path / "out")
    assert names_below(tmp_path / "other") == set()
    assert other.list() == ()
