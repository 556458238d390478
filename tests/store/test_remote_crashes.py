"""Crashes and errors at any request to a store at a URL; see `test_crashes` for folders.

To a service, a process that was killed is one whose requests end at some point. So each test lets
so many requests pass, drops the store at the first error, and opens it anew.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from policyctx.errors import StoreError
from policyctx.store.content import STATE_FOLDER
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from tests.drawing import IS_LONG
from tests.store.bucket import BUCKET, Bucket, serving
from tests.store.contents import DAY, Clock
from tests.store.contract import offloaded

NUMBERS = itertools.count()
# The long profile tries each number of requests, until all of them pass, and both formats.
PASSED = range(60) if IS_LONG else range(2, 8, 3)
each_form = pytest.mark.parametrize("form", ["text", "envelope"] if IS_LONG else ["text"])


@pytest.fixture(scope="module")
def bucket() -> Iterator[Bucket]:
    with serving() as found:
        yield found


def contents_in(bucket: Bucket, url: str) -> set[str]:
    """Return the paths of the contents that are at the service."""
    prefix = url.removeprefix(f"s3://{BUCKET}/") + "/"
    below = {key.removeprefix(prefix) for key in bucket.objects if key.startswith(prefix)}
    return {path for path in below if not path.startswith(STATE_FOLDER)}


@contextmanager
def cut_off(bucket: Bucket, passed: int) -> Iterator[None]:
    """Let so many requests pass, and leave the block with the first one after them."""
    bucket.refuses_after = passed
    try:
        with suppress(StoreError):
            yield
    finally:
        bucket.refuses_after = None


@each_form
def test_what_was_handed_out_survives_a_crash_at_any_request(bucket: Bucket, form: Format) -> None:
    told = {}
    for passed in PASSED:
        url = f"s3://{BUCKET}/handed_{next(NUMBERS)}"
        store = ContextFileSystem(url, format=form)
        told = {file.path: "before" for file in offloaded(store, ("before", "before"))}
        with cut_off(bucket, passed):
            for turn in range(3):
                texts = [(f"call_{turn}_{i}", f"{turn} {i}") for i in range(turn + 1)]
                files = offloaded(store, *texts)
                told |= {file.path: text for file, (_, text) in zip(files, texts, strict=True)}
        with ContextFileSystem(url, format=form) as again:
            assert {path: again.read(path) for path in told} == told
            assert len(again.records()) >= len(told)
            assert again.verify().is_clean
            offloaded(again, ("call_2_0", "another"), ("call_2_1", "2 1"))
            assert [again.read(key) for key in ("call_2_0", "call_2_1")] == ["another", "2 1"]
            assert again.notices == ()
        if len(told) == 7:
            break
    assert (len(told) == 7) == IS_LONG


@each_form
def test_a_collection_that_was_cut_off_at_any_request_is_finished_by_the_next(
    bucket: Bucket, form: Format
) -> None:
    is_whole = False
    for passed in PASSED:
        url, clock = f"s3://{BUCKET}/collected_{next(NUMBERS)}", Clock()
        with ContextFileSystem(url, format=form, clock=clock) as store:
            names = [f"gone_{i}" for i in range(2)]
            offloaded(store, ("kept", "kept"), *((name, f"{name} " * 20) for name in names))
            store.remember(
                [
                    {"item_id": one.item_id, "path": one.path, "state": "dropped"}
                    for one in store.list()
                    if one.item_id != "kept"
                ]
            )
        clock.now += 365 * 5 * DAY  # later than what the service says of its objects
        with cut_off(bucket, passed):
            ContextFileSystem(url, format=form, clock=clock).collect(max_age=60)
            is_whole = True
        with ContextFileSystem(url, format=form, clock=clock) as again:
            again.collect(max_age=60)
            assert [entry.item_id for entry in again.list()] == ["kept"]
            assert again.read("kept") == "kept"
            assert again.notices == ()
        assert contents_in(bucket, url) == {"tool_result/Bash/kept.md"}, passed
        if is_whole:
            break
    assert is_whole == IS_LONG


def test_an_upload_survives_a_crash_at_any_request(bucket: Bucket, tmp_path: Path) -> None:
    is_whole = False
    for passed in PASSED:
        url, folder = f"s3://{BUCKET}/waiting_{next(NUMBERS)}", tmp_path / str(passed)
        store = ContextFileSystem(url, spill_to=folder)
        offloaded(store, ("before", "before"))
        assert store._remote is not None
        store._remote.begin_spilling()
        files = [file for i in range(5) for file in offloaded(store, (f"call_{i}", f"{i}"))]
        with cut_off(bucket, passed):
            store.upload()
            is_whole = True
        with ContextFileSystem(url, spill_to=folder) as again:
            assert [again.read(file.path) for file in files] == ["0", "1", "2", "3", "4"]
            assert len(again.records()) == 6
            assert again.verify().is_clean
        if is_whole:
            break
    assert is_whole == IS_LONG
