"""Texts that wait in a folder while the service of a store at a URL is away."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.errors import StoreError
from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.opening import upload_below
from tests.conversations import session_of
from tests.drawing import in_profile
from tests.policies import policy
from tests.store.bucket import BUCKET, Bucket, serving
from tests.store.contents import names_below, result
from tests.store.contract import offloaded

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def service() -> Iterator[Bucket]:
    with serving() as bucket:
        yield bucket


@pytest.fixture
def bucket(service: Bucket) -> Bucket:
    service.objects.clear()
    service.seen.clear()
    service.is_away = service.loses_answers = False
    service.away_after = None
    return service


@pytest.fixture
def url(bucket: Bucket) -> str:
    assert not bucket.objects
    return f"s3://{BUCKET}/{next(NUMBERS)}"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "waiting"


def take_away(bucket: Bucket, store: object) -> None:
    """Let the service be away, and spare the store the time to find that out."""
    bucket.is_away = True
    assert isinstance(store, ContextFileSystem)
    assert store._remote is not None
    assert store._remote.begin_spilling()


def opened(url: str, folder: Path | None, *, form: Format = "text") -> ContextFileSystem:
    return ContextFileSystem(url, spill_to=folder, format=form)


@pytest.mark.parametrize("form", ["text", "envelope"])
def test_texts_wait_in_a_folder_and_are_uploaded_by_the_next_call_that_reaches_the_service(
    bucket: Bucket, url: str, folder: Path, form: Format
) -> None:
    store = opened(url, folder, form=form)
    [first] = offloaded(store, ("call_1", "one"))
    take_away(bucket, store)
    second, twin = offloaded(store, ("call_2", "two"), ("call_3", "two"))
    [third] = offloaded(store, ("call_1", "another one"))
    assert second.path.startswith(f"{url}/tool_result/Bash/call_2-")
    assert names_below(folder) == {f.relative_path for f in (second, twin, third)}
    assert [store.read(key) for key in (second.path, "call_3", "call_1")] == [
        "two",
        "two",
        "another one",
    ]
    assert [entry.item_id for entry in store.list()] == ["call_1", "call_2", "call_3", "call_1"]
    assert len(store.records()) == 4
    assert [notice.partition(": ")[2] for notice in store.notices] == [
        f"the service is away; texts wait in {folder}"
    ]
    bucket.is_away = False
    store.close()
    assert "5 objects that waited were uploaded" in store.notices[-1]
    assert names_below(folder) == set()
    [fourth] = offloaded(store, ("call_4", "four"))
    assert fourth.relative_path == "tool_result/Bash/call_4.md"
    elsewhere = opened(url, None, form=form)
    texts = ["one", "two", "two", "another one", "four"]
    files = (first, second, twin, third, fourth)
    assert [elsewhere.read(file.path) for file in files] == texts
    assert len(elsewhere.records()) == 5
    assert elsewhere.verify().is_clean
    assert elsewhere.notices == ()


def test_without_a_folder_a_save_fails(bucket: Bucket, url: str) -> None:
    store = ContextFileSystem(url, timeout=4)
    offloaded(store, ("call_1", "one"))
    bucket.is_away = True
    with pytest.raises(StoreError, match="cannot be written"):
        offloaded(store, ("call_2", "two"))


def test_what_was_created_before_an_error_is_used_again(bucket: Bucket, url: str) -> None:
    store = ContextFileSystem(url, timeout=4)
    offloaded(store, ("call_1", "one"))
    bucket.away_after = 1  # one content is created
    texts = ("call_2", "two"), ("call_3", "three")
    with pytest.raises(StoreError, match="cannot be written"):
        offloaded(store, *texts)
    bucket.is_away, bucket.away_after = False, None
    bucket.seen.clear()
    files = offloaded(store, *texts)
    assert [file.relative_path for file in files] == [
        f"tool_result/Bash/call_{number}.md" for number in (2, 3)
    ]
    assert [method for method, _ in bucket.seen] == ["PUT", "PUT"]  # the other one, the journal
    assert [opened(url, None).read(file.path) for file in files] == ["two", "three"]


def test_a_process_that_ended_is_followed_by_one_that_uploads(
    bucket: Bucket, url: str, folder: Path
) -> None:
    store = opened(url, folder)
    offloaded(store, ("call_1", "one"))
    take_away(bucket, store)
    [file] = offloaded(store, ("call_2", "two"))
    del store
    with pytest.raises(StoreError, match="cannot be read"):  # what was decided is not all here
        ContextFileSystem(url, spill_to=folder, timeout=0.3).records()
    bucket.is_away = False
    again = opened(url, folder)
    assert len(again.records()) == 2
    assert again.read(file.path) == "two"
    assert names_below(folder) == set()
    assert again.verify().is_clean


@pytest.mark.parametrize("answered", [1, 3, 5])
def test_an_upload_that_is_cut_off_anywhere_goes_on(
    bucket: Bucket, url: str, folder: Path, answered: int
) -> None:
    store = opened(url, folder)
    offloaded(store, ("call_0", "zero"))
    take_away(bucket, store)
    files = [
        file
        for turn in range(2)
        for file in offloaded(store, (f"a{turn}", f"a {turn}"), (f"b{turn}", f"b {turn}"))
    ]
    bucket.is_away, bucket.away_after = False, answered
    store.close()
    bucket.is_away, bucket.away_after = False, None
    again = opened(url, folder)  # as after a kill
    assert [again.read(file.path) for file in files] == ["a 0", "b 0", "a 1", "b 1"]
    assert len(again.records()) == 5
    assert again.notices[1:] == ()
    assert len(opened(url, None).records()) == 5


def test_a_write_whose_answer_was_lost_is_there_once(
    bucket: Bucket, url: str, folder: Path
) -> None:
    store = opened(url, folder)
    offloaded(store, ("call_1", "one"))
    bucket.loses_answers = True
    store.remember([{"n": 1}])
    bucket.loses_answers = False
    store.close()
    store.remember([{"n": 2}])
    found = opened(url, None)
    assert [record.get("n") for record in found.records()] == [None, 1, 2]
    assert found.notices == ()


@pytest.mark.parametrize("by", ["close", "upload", "command"])
def test_a_session_that_another_process_went_on_with_is_not_merged(
    bucket: Bucket, url: str, folder: Path, by: str
) -> None:
    store = opened(url, folder)
    offloaded(store, ("call_1", "one"))
    take_away(bucket, store)
    [waiting] = offloaded(store, ("call_2", "two"))
    bucket.is_away = False
    other = opened(url, None)
    assert len(other.records()) == 1
    offloaded(other, ("call_3", "three"))
    if by == "command":
        [done] = upload_below(folder, timeout=30)
        assert "another process went on" in done.error
    if by == "upload":
        with pytest.raises(StoreError, match="another process went on"):
            store.upload()
    store.close()
    for _ in range(2):
        with pytest.raises(StoreError, match="another process writes this session"):
            offloaded(store, ("call_4", "four"))
    assert by == "upload" or "another process went on with this session" in store.notices[-1]
    assert store.read(waiting.path) == "two"  # what a placeholder names is there
    assert len([*(folder / ".policyctx/set-aside").rglob("0000000001")]) == 1
    again = opened(url, folder)
    assert [entry.item_id for entry in again.list()] == ["call_1", "call_3"]
    offloaded(again, ("call_5", "five"))
    assert opened(url, None).notices == ()


def test_a_folder_is_uploaded_while_its_session_runs(
    bucket: Bucket, url: str, folder: Path
) -> None:
    store = opened(url, folder / "s1")
    offloaded(store, ("call_1", "one"))
    take_away(bucket, store)
    [file] = offloaded(store, ("call_2", "two"))
    [away] = upload_below(folder, timeout=30)
    assert (away.url, away.objects, away.left, bool(away.error)) == (url, 0, 2, True)
    bucket.is_away = False
    [done] = upload_below(folder, timeout=30)
    assert (done.objects, done.left, done.error) == (2, 0, "")
    assert store.read(file.path) == "two"
    offloaded(store, ("call_3", "three"))
    store.close()
    assert len(opened(url, None).records()) == 3
    assert [one.objects for one in upload_below(folder, timeout=30)] == [0]
    with pytest.raises(StoreError, match="nothing ever waited"):
        next(upload_below(folder / "other", timeout=30))


def test_a_placeholder_names_the_url_and_its_text_is_read_from_the_folder(
    bucket: Bucket, url: str, folder: Path
) -> None:
    text = f"""
min_tokens: 50
store: {{root: "{url}/{{session_id}}", spill_to: {folder}}}
items: {{tool_result: {{offload: true}}}}
steps: [{{name: retire, do: offload, select: {{types: [tool_result], keep_recent: 1}}}}]
"""
    texts = [f"result {number} " * 60 for number in range(4)]
    session = Session(policy(text), session_id="s1")
    tools = [{"name": "read_offloaded"}]
    first = session.apply(session_of(*texts[:2]), tools=tools)
    take_away(bucket, session.store)
    second = session.apply(session_of(*texts[:3]), tools=tools)
    assert any(f"texts wait in {folder}/s1" in warning for warning in second.warnings)
    [path] = second.files
    assert path.startswith(f"{url}/s1/tool_result/Bash/c1-")
    assert path in str(second.messages)
    assert session.read(path) == texts[1]
    bucket.is_away = False
    session.store.upload()  # type: ignore[attr-defined]
    third = session.apply(session_of(*texts), tools=tools)
    assert third.messages[: len(second.messages) - 1] == second.messages[:-1]
    assert [session.read(one) for one in (*first.files, path, *third.files)] == texts[:3]
    session.close()
    again = Session(policy(text), session_id="s1")
    assert again.apply(session_of(*texts), tools=tools).messages == third.messages


KILLS = in_profile(1, 25)
WRITER = """
import json, sys
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import result
store = ContextFileSystem(sys.argv[1], spill_to=sys.argv[2], timeout=3)
store.records()
for turn in range(10**9):
    ids = [f"{sys.argv[3]}_{turn}_{i}" for i in range(1 + turn % 3)]
    texts = {one: f"{one} " * 50 for one in ids}
    files = store.save([result(*one) for one in texts.items()], recorded=True)
    store.remember([{"path": file.relative_path, "state": "offloaded"} for file in files])
    for file, text in zip(files, texts.values()):
        print(json.dumps([file.path, text]), flush=True)
"""


@pytest.mark.slow
def test_what_was_handed_out_survives_kills_while_the_service_comes_and_goes(
    bucket: Bucket, url: str, folder: Path
) -> None:
    told: list[tuple[str, str]] = []
    waited = 0
    for run in range(KILLS):
        bucket.is_away = False
        arguments = [sys.executable, "-c", WRITER, url, str(folder), str(run)]
        with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as writer:
            assert writer.stdout is not None
            lines = []
            for part in range(4):
                lines += [writer.stdout.readline() for _ in range(6 + run % 5)]
                bucket.is_away = part % 2 == 0
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.readlines()
        waited += len(names_below(folder))
        told += [tuple(json.loads(line)) for line in lines]
    bucket.is_away = False
    store = opened(url, folder)
    store.upload()
    found = opened(url, None)
    assert [found.read(path) for path, _ in told] == [text for _, text in told]
    assert {f"{url}/{record['path']}" for record in found.records()} >= {path for path, _ in told}
    assert found.verify().is_clean
    assert found.notices == ()
    left = [path for path in folder.rglob("*") if path.is_file() and path.name != "url"]
    for path in left:
        assert path.suffix == ".tmp"  # cut off by the kill
        os.utime(path, (0, 0))
    store.upload()
    assert not any(path.exists() for path in left)
    assert waited or KILLS == 1


def test_a_folder_that_waits_for_another_store_is_refused(
    bucket: Bucket, url: str, folder: Path
) -> None:
    store = opened(url, folder)
    offloaded(store, ("call_1", "one"))
    take_away(bucket, store)
    offloaded(store, ("call_2", "two"))
    with pytest.raises(StoreError, match="objects that wait for another store"):
        opened(f"{url}-other", folder).list()


def test_while_the_service_is_away_a_save_does_not_wait_for_it(
    bucket: Bucket, url: str, folder: Path
) -> None:
    store = ContextFileSystem(url, spill_to=folder, timeout=6)
    offloaded(store, ("call_1", "one"))
    bucket.is_away = True
    offloaded(store, ("call_2", "two"))
    bucket.seen.clear()
    offloaded(store, ("call_3", "three"))
    assert bucket.seen == []
    with pytest.raises(StoreError, match="is away"):
        store.collect(max_age=1)
    store.save([result("call_4", "four")])
    bucket.is_away = False
    store.close()
    assert len(opened(url, None).list()) == 4
