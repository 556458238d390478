from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import StoreError
from policyctx.policy.models.steps import Store
from policyctx.replay.unwritten_store import UnwrittenStore
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem

CONTENTS = [
    Content("a/one.md", "first"),
    Content("a/one.md", "second"),
    Content("a/one.md", "first"),
    Content("b/two.md", "一二三"),
    Content("a/one-1.md", "third"),
]


def unwritten(root: Path, **settings: Any) -> UnwrittenStore:
    return UnwrittenStore(root, Store(**settings))


@pytest.mark.parametrize("on_conflict", ["suffix", "overwrite"])
def test_paths_are_those_that_a_real_store_gives(tmp_path: Path, on_conflict: Any) -> None:
    real = ContextFileSystem(tmp_path, on_conflict=on_conflict, sync="never")
    store = unwritten(tmp_path, on_conflict=on_conflict)
    given = [store.save([content])[0] for content in CONTENTS]
    assert given == [real.save([content])[0] for content in CONTENTS]


def test_a_taken_name_is_an_error_where_the_policy_says_so(tmp_path: Path) -> None:
    store = unwritten(tmp_path, on_conflict="error")
    store.save(CONTENTS[:1])
    with pytest.raises(StoreError, match="taken"):
        store.save(CONTENTS[1:2])


def test_the_same_content_again_is_the_same_file(tmp_path: Path) -> None:
    store = unwritten(tmp_path)
    store.save([CONTENTS[0], CONTENTS[2]])
    assert (store.files, store.bytes) == (1, len("first"))


def test_sizes_are_bytes(tmp_path: Path) -> None:
    store = unwritten(tmp_path)
    store.save(CONTENTS[3:4])
    assert store.size("b/two.md") == 9
    assert store.size("b/other.md") == 0


def test_nothing_can_be_read_back(tmp_path: Path) -> None:
    store = unwritten(tmp_path)
    [file] = store.save(CONTENTS[:1])
    with pytest.raises(StoreError, match="keeps no files"):
        store.read(file.path)
    assert list(tmp_path.iterdir()) == []
