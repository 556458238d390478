from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import StoreError
from policyctx.store.content import Content
from policyctx.store.filesystem import ContextFileSystem
from tests.drawing import IS_LONG
from tests.store import killing
from tests.store.contents import names_below, result

pytestmark = pytest.mark.slow

# `POLICYCTX_KILLS=2000` and the long profile look longer.
RUNS = int(os.environ.get("POLICYCTX_KILLS", "2000" if IS_LONG else "15"))


def python(script: str, *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", script, *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def kill_loop(folder: Path, runs: int, longest: float = 0.03) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tests.store.killing", str(folder), str(runs), "1", str(longest)],
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.timeout(3_600)
def test_returned_files_survive_kills_at_random_moments(tmp_path: Path) -> None:
    run = kill_loop(tmp_path, RUNS)
    *wrong, summary = run.stdout.splitlines() or [""]
    if wrong or run.returncode or run.stderr:  # whole: an assertion would cut it off
        pytest.fail(f"exit code {run.returncode}\n{run.stdout}\n{run.stderr}", pytrace=False)
    done = json.loads(summary)
    assert done["killed"] == RUNS * killing.WRITERS
    assert done["looked_at"] > RUNS


def test_the_kill_loop_reports_a_lost_file_with_its_journal(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never")
    [file] = store.save([result("call_1", "one")], recorded=True)
    store.remember([{"item_id": "call_1", "path": file.relative_path, "state": "offloaded"}])
    told = [[file.path, "call_1", "one"]]
    assert killing.wrongs_or_traceback(tmp_path, told, "text") == []
    Path(file.path).unlink()
    first, *_ = killing.wrongs_or_traceback(tmp_path, told, "text")
    assert f"{file.path} does not read back: FileNotFoundError" in first
    assert '{"record":{"item_id":"call_1"' in first


def test_the_kill_loop_reports_an_exception_of_a_writer(tmp_path: Path) -> None:
    (tmp_path / "0").write_text("a file in the place of the store")
    run = kill_loop(tmp_path, 1, longest=1)  # enough on a busy machine
    assert run.returncode == 0
    assert f"run 0 of seed 1, store in {tmp_path / '0'}: writer " in run.stdout
    assert "StoreError" in run.stdout
    assert (tmp_path / "0").exists()


LOCK_HOLDER = """
import sys, time
from policyctx.store.filesystem import ContextFileSystem
store = ContextFileSystem(sys.argv[1])
with store._backend("written", making=True) as backend, store._state.writing(backend):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_crashed_lock_holder_blocks_no_other_process(tmp_path: Path) -> None:
    holder = python(LOCK_HOLDER, tmp_path)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    waiting = python(
        "import sys; from policyctx.store.filesystem import *\n"
        "store = ContextFileSystem(sys.argv[1], sync='never'); print('ready', flush=True)\n"
        "store.save([Content('a.md', 'x')]); print('saved', flush=True)",
        tmp_path,
    )
    assert waiting.stdout is not None
    assert waiting.stdout.readline() == "ready\n"
    holder.kill()
    holder.wait()
    killed = time.monotonic()
    assert waiting.stdout.readline() == "saved\n"
    assert time.monotonic() - killed < 10
    for process in (holder, waiting):
        process.communicate()


WRITER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from policyctx.store.filesystem import Content, ContextFileSystem
from tests.store.contents import result
store = ContextFileSystem(sys.argv[1], sync="never")
def save(i):
    [file] = store.save([result(f"same_{i % 5}", f"{sys.argv[2]} {i}")], recorded=True)
    store.remember([{"by": sys.argv[2], "i": i, "path": file.path}])
    return file.path
sys.stdin.readline()
with ThreadPoolExecutor(4) as threads:
    for path in threads.map(save, range(50)):
        print(path)
"""


def test_several_processes_and_threads_lose_nothing(tmp_path: Path) -> None:
    writers = [python(WRITER, tmp_path, str(number)) for number in range(4)]
    outputs = [writer.communicate("go\n")[0].split() for writer in writers]
    store = ContextFileSystem(tmp_path)
    texts = [[store.read(path) for path in paths] for paths in outputs]
    assert texts == [[f"{number} {i}" for i in range(50)] for number in range(4)]
    assert len(names_below(tmp_path)) == len(store.list()) == 200
    assert {(r["by"], r["i"]) for r in store.records()} == {
        (str(number), i) for number in range(4) for i in range(50)
    }
    assert store.verify().is_clean
    assert store.notices == ()


FULL_DISK = """
import resource, signal, sys
from policyctx.errors import StoreError
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import result
root, limit = sys.argv[1], int(sys.argv[2])
store = ContextFileSystem(root, sync="never")
store.save([result("before", "before")])
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
failed = 0
for i in range(60):
    try:
        contents = [result(f"call_{i}_{n}", f"{i} {n} " * (i + 1)) for n in range(2)]
        saved = store.save(contents, recorded=True)
        store.remember([{"path": one.path, "n": i} for one in saved])
    except StoreError as error:
        failed += 1
        assert "File too large" in str(error) and root in str(error), error
    else:
        print(*(one.path for one in saved), i)
assert failed, "the limit was never reached"
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
[one] = store.save([result("after", "after")])
assert store.read("after") == "after"
"""


@pytest.mark.parametrize("limit", [150, 400, 1_000, 5_000, 9_000])
def test_a_full_disk_damages_no_saved_file(tmp_path: Path, limit: int) -> None:
    # A limit on the size of a file is a disk that is full after so many bytes: for a content, for
    # the journal or for its snapshot, whichever grows there first.
    run = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "root"), str(limit)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    store = ContextFileSystem(tmp_path / "root")
    for line in run.stdout.splitlines():
        one, two, i = line.split()
        assert [store.read(one), store.read(two)] == [f"{i} {n} " * (int(i) + 1) for n in range(2)]
    assert store.read("before") == "before"
    assert store.verify().is_clean
    assert not list(tmp_path.rglob("*.tmp"))
    store.collect(max_age=1)
    assert not list(tmp_path.rglob("writing-*"))


class Faults:
    """Lets the calls to the system pass up to a number, and fail from there on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...]) -> None:
        self.left = 10**9
        for name in names:
            monkeypatch.setattr(os, name, self._counted(getattr(os, name)))

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*arguments: object, **keywords: object) -> object:
            self.left -= 1
            if self.left < 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return call(*arguments, **keywords)

        return counted


WRITING = ("open", "write", "fsync", "link", "rename", "mkdir", "ftruncate")


def test_a_disk_error_at_any_call_damages_no_saved_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(monkeypatch, WRITING)
    refused = 0
    for passed in range(60):
        faults.left = 10**9
        root = tmp_path / str(passed)
        store = ContextFileSystem(root, mode="0600")
        [before] = store.save([result("before", "before")], recorded=True)
        store.remember([{"path": before.relative_path, "state": "offloaded"}])
        faults.left = passed
        done = []
        try:
            done = store.save([result("one", "one"), result("two", "two")], recorded=True)
            store.remember([{"path": one.relative_path, "state": "offloaded"} for one in done])
        except StoreError:
            refused += 1
        faults.left = 10**9
        again = ContextFileSystem(root, sync="never", clock=lambda: 4e9)
        again.collect(max_age=1)
        assert again.read(before.path) == "before"
        assert [again.read(one.path) for one in done] == ["one", "two"][: len(done)]
        assert again.verify().is_clean
        [file] = store.save([result("after", "after")], recorded=True)
        store.remember([{"path": file.relative_path, "state": "offloaded"}])
        store.close()
        assert ContextFileSystem(root).read("after") == "after"
        assert not [*root.rglob("*.tmp"), *root.rglob("writing-*")]
    assert 10 < refused < 60


def test_an_error_while_files_are_written_leaves_none_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(monkeypatch, ("fsync",))
    store = ContextFileSystem(tmp_path)
    store.save([result("before", "before")])
    faults.left = 1
    with pytest.raises(StoreError):
        store.save([result("one", "one"), result("two", "two")])
    assert names_below(tmp_path) == {"tool_result/Bash/before.md"}


def test_an_error_between_two_names_leaves_the_named_file_for_the_next_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    faults = Faults(monkeypatch, ("link", "rename"))
    store = ContextFileSystem(tmp_path, sync="never")
    store.save([result("before", "before")])
    faults.left = 1
    contents = [result("one", "one"), result("two", "two")]
    with pytest.raises(StoreError):
        store.save(contents)
    assert names_below(tmp_path) == {"tool_result/Bash/before.md", "tool_result/Bash/one.md"}
    inode = (tmp_path / "tool_result/Bash/one.md").stat().st_ino
    faults.left = 10**9
    assert [one.reused for one in store.saved(contents)] == [True, False]
    assert (tmp_path / "tool_result/Bash/one.md").stat().st_ino == inode


def test_files_that_were_saved_are_used_again(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path, sync="never", on_conflict="error")
    store.save([Content("taken.md", "x")])
    contents = [Content("a.md", "a"), Content("b.md", "b")]
    files = store.save(contents)
    assert store.save(contents) == files
