"""A disk that fails: what failed is said once, again when it changes, and is counted."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from policyctx import Session
from policyctx.errors import StoreError
from policyctx.integrations.host_sessions import Turn, at_once
from policyctx.messages.asked import Asked
from policyctx.store.filesystem import ContextFileSystem
from policyctx.testing.faults import refusing_writes
from policyctx.turns.result import Result
from tests.conversations import session_of, user
from tests.policies import policy

RETIRING = """\
    min_tokens: 0
    store: {sync: never}
    items: {tool_result: {offload: true}}
    steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}]
    """
COMPACTING = """\
    store: {sync: never}
    compaction: {keep_recent: {messages: 1}}
    steps: [{name: compact, do: compact, when: {messages: {over: 4}}}]
    """
Fault: TypeAlias = Callable[[Path], AbstractContextManager[None]]
STATE = ".policyctx/*"
TEXTS = [f"result {i} " * 400 for i in range(12)]
NOBODY = 65534


@contextmanager
def limited(root: Path, *, what: int, most: int) -> Iterator[None]:
    """Lower a limit of the process, whatever the root is."""
    del root
    before = resource.getrlimit(what)
    resource.setrlimit(what, (most, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(what, before)


files_too_large = partial(limited, what=resource.RLIMIT_FSIZE, most=0)
no_descriptors = partial(limited, what=resource.RLIMIT_NOFILE, most=3)


@contextmanager
def without_permission(root: Path, *, left: int = 0o555) -> Iterator[None]:
    """Take the permission to write away, also from the superuser, who is another user meanwhile.

    `left` are the permissions that are left.
    """
    folders = [root, *(path for path in root.rglob("*") if path.is_dir())]
    for folder in reversed(folders):
        folder.chmod(left)
    is_superuser = os.geteuid() == 0
    if is_superuser:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        if is_superuser:
            os.seteuid(0)
        for folder in folders:
            folder.chmod(0o700)


@contextmanager
def a_file_in_its_place(root: Path) -> Iterator[None]:
    """Remove the folder, and put a file in its place."""
    shutil.rmtree(root)
    root.write_text("no folder", encoding="utf-8")
    try:
        yield
    finally:
        root.unlink()


def in_the_place_of(pattern: str, made: Callable[[Path], object]) -> Fault:
    """Have what `made` makes in the place of a file or folder of the root, and put it back."""

    @contextmanager
    def replaced(root: Path) -> Iterator[None]:
        [path] = [root] if pattern == "." else root.glob(pattern)
        kept = path.rename(root.parent / "kept")
        made(path)
        try:
            yield
        finally:
            path.rmdir() if path.is_dir() else path.unlink()
            kept.rename(path)

    return replaced


def loop(path: Path) -> None:
    """Make a link to itself."""
    path.symlink_to(path.name)


def refusing(number: int) -> Fault:
    return lambda root: refusing_writes(root, number)


FAULTS: dict[str, tuple[str, Fault]] = {
    "ENOSPC": ("No space left on device", refusing(errno.ENOSPC)),
    "EIO": ("Input/output error", refusing(errno.EIO)),
    "EROFS": ("Read-only file system", refusing(errno.EROFS)),
    "EFBIG": ("File too large", files_too_large),
    "EACCES": ("Permission denied", without_permission),
    "EMFILE": ("Too many open files", no_descriptors),
    "ENOTDIR": ("Not a directory", a_file_in_its_place),
    "ENOTDIR, state": ("Not a directory", in_the_place_of(STATE, Path.touch)),
    "ENOTDIR, texts": ("Not a directory", in_the_place_of("tool_result", Path.touch)),
    "EISDIR, lock": ("Is a directory", in_the_place_of(f"{STATE}/lock", Path.mkdir)),
    "EISDIR, journal": ("Is a directory", in_the_place_of(f"{STATE}/journal.jsonl", Path.mkdir)),
    "ELOOP, root": ("Too many levels of symbolic links", in_the_place_of(".", loop)),
    "ELOOP, state": ("leads back to itself", in_the_place_of(".policyctx", loop)),
    "ELOOP, texts": ("leads back to itself", in_the_place_of("tool_result", loop)),
}
UNREADABLE: dict[str, tuple[str, Fault]] = {
    "EACCES": ("Permission denied", partial(without_permission, left=0)),
    "EMFILE": FAULTS["EMFILE"],
    "ELOOP, root": FAULTS["ELOOP, root"],
    "ELOOP, state": FAULTS["ELOOP, state"],
}
"""The faults because of which a session cannot read its records after a restart."""


def about_writing(result: Result) -> list[str]:
    return [warning for warning in result.warnings if warning.startswith("offloading ")]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a root below folders that every user may enter."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(folder.stat().st_mode | 0o011)
    return tmp_path / "root"


@pytest.mark.parametrize(("words", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_write_that_fails_is_reported_once_and_again_when_writes_work(
    root: Path, words: str, fault: Fault
) -> None:
    session = Session(policy(RETIRING), root=root, session_id="s")
    assert about_writing(session.apply(session_of(*TEXTS[:3]))) == []
    with fault(root):
        first, *later = [session.apply(session_of(*TEXTS[:n])) for n in range(4, 8)]
    [warning] = about_writing(first)
    assert warning.startswith("offloading has stopped: ")
    assert f"{words}; nothing more leaves the list" in warning
    assert [result.warnings for result in later] == [(), (), ()]
    assert session.totals().failed_writes == 4
    assert session.writes.problem
    again = session.apply(session_of(*TEXTS[:8]))
    assert about_writing(again) == ["offloading works again: a write to the store has succeeded"]
    assert again.offloaded_count == 5
    assert session.writes.problem == ""
    assert about_writing(session.apply(session_of(*TEXTS[:9]))) == []
    assert session.totals().failed_writes == 4


def without_index(root: Path) -> None:
    """Remove the index, so that a session that is closed writes it."""
    [index] = root.rglob("index.json")
    index.unlink()


@pytest.mark.parametrize("fault", ["ENOSPC", "EROFS", "EACCES", "EIO"])
@pytest.mark.parametrize("is_known", [False, True])
def test_a_session_that_is_closed_on_a_failing_disk_reports_it_in_the_log_once(
    root: Path, is_known: bool, fault: str, caplog: pytest.LogCaptureFixture
) -> None:
    words, failing = FAULTS[fault]
    with Session(policy(RETIRING), root=root, session_id="s") as session:
        session.apply(session_of(*TEXTS[:3]))
        without_index(root)
        with failing(root):
            if is_known:
                assert about_writing(session.apply(session_of(*TEXTS[:8])))
            session.close()
            session.close()
    assert len(caplog.messages) == (not is_known)
    assert all(f"offloading has stopped: {root}" in one and words in one for one in caplog.messages)
    assert session.totals().failed_writes == 2 + is_known
    assert len(about_writing(session.apply(session_of(*TEXTS[:9])))) == 1


def test_a_session_that_has_to_raise_raises_when_it_is_closed(root: Path) -> None:
    strict = policy(RETIRING.replace("never", "never, on_failure: raise"))
    session = Session(strict, root=root, session_id="s")
    session.apply(session_of(*TEXTS[:3]))
    without_index(root)
    with refusing_writes(root, errno.ENOSPC), pytest.raises(StoreError, match="No space left"):
        session.close()
    session.close()


def test_another_error_is_reported_again_and_another_file_is_not(root: Path) -> None:
    session = Session(policy(RETIRING), root=root, session_id="s")
    session.apply(session_of(*TEXTS[:3]))
    with refusing_writes(root, errno.ENOSPC):
        first = session.apply(session_of(*TEXTS[:4]))
        arrived = session.apply(session_of(*TEXTS[2:7]))
    with refusing_writes(root, errno.EROFS):
        other = session.apply(session_of(*TEXTS[:8]))
    assert len(about_writing(first)) == 1
    assert about_writing(arrived) == []
    assert "Read-only file system" in about_writing(other)[0]


def test_a_session_that_has_to_raise_raises_at_each_call_and_counts(root: Path) -> None:
    strict = policy(RETIRING.replace("never", "never, on_failure: raise"))
    session = Session(strict, root=root, session_id="s")
    with refusing_writes(root, errno.ENOSPC):
        for _ in range(2):
            with pytest.raises(StoreError, match="No space left"):
                session.apply(session_of(*TEXTS[:4]))
    assert session.totals().failed_writes == 2
    assert about_writing(session.apply(session_of(*TEXTS[:4]))) == []


def test_an_asynchronous_session_reports_alike(root: Path) -> None:
    session = Session(policy(RETIRING), root=root, session_id="s")
    with refusing_writes(root, errno.EIO):
        found = [asyncio.run(session.apply_async(session_of(*TEXTS[:n]))) for n in (3, 4)]
    assert [len(about_writing(result)) for result in found] == [1, 0]


@pytest.mark.parametrize("archive", ["true", "false"])
def test_no_summary_is_asked_for_at_every_call_while_writes_fail(root: Path, archive: str) -> None:
    asked: list[object] = []

    def summarise(request: Any) -> str:
        asked.append(request)
        return "## Task\nIt goes on.\n" * 20

    text = COMPACTING.replace("messages: 1}", f"messages: 1}}, archive: {archive}")
    session = Session(policy(text), root=root, session_id="s", summarizer=summarise)
    messages = [*session_of(*TEXTS[:3]), user("go on")]
    with refusing_writes(root, errno.ENOSPC):
        found = [session.apply(messages) for _ in range(4)]
    assert [len(about_writing(result)) for result in found] == [1, 0, 0, 0]
    assert [len(result.warnings) for result in found[1:]] == [0, 0, 0]
    asked_while_full = len(asked)
    again = session.apply(messages)
    assert again.compacted
    assert len(about_writing(again)) == 1
    assert asked_while_full < len(asked) == 2 * asked_while_full


def test_the_log_of_an_sdk_has_each_change_once(
    root: Path, caplog: pytest.LogCaptureFixture
) -> None:
    session = Session(policy(RETIRING), root=root, session_id="s")
    with caplog.at_level(logging.WARNING), refusing_writes(root, errno.ENOSPC):
        for n in range(3, 7):
            turn = Turn(session, Asked(str(n), session_of(*TEXTS[:n])), blocks=True)
            at_once(turn.apply())
    stopped = [one for one in caplog.messages if "offloading has stopped" in one]
    assert len(stopped) == 1
    assert stopped[0].startswith("session s: ")


@pytest.mark.parametrize(("words", "fault"), UNREADABLE.values(), ids=UNREADABLE)
def test_records_that_cannot_be_read_are_an_error_after_a_restart(
    root: Path, words: str, fault: Fault
) -> None:
    Session(policy(RETIRING), root=root, session_id="s").apply(session_of(*TEXTS[:3]))
    again = Session(policy(RETIRING), root=root, session_id="s")
    with fault(root):
        for _ in range(2):
            with pytest.raises(StoreError, match=words):
                again.apply(session_of(*TEXTS[:4]))
        assert words in again.writes.problem
    found = again.apply(session_of(*TEXTS[:4]))
    assert (found.offloaded_count, found.warnings, again.writes.problem) == (1, (), "")
    assert again.totals().failed_writes == 0


@pytest.mark.parametrize(("words", "fault"), FAULTS.values(), ids=FAULTS)
def test_a_restarted_session_reports_a_write_that_fails_once(
    root: Path, words: str, fault: Fault
) -> None:
    Session(policy(RETIRING), root=root, session_id="s").apply(session_of(*TEXTS[:3]))
    session, found = Session(policy(RETIRING), root=root, session_id="s"), []
    with fault(root):
        for n in range(4, 8):
            with suppress(StoreError):  # its records cannot be read: see above
                found.append(session.apply(session_of(*TEXTS[:n])))
    assert words in session.writes.problem or not found
    assert [len(about_writing(result)) for result in found[:1]] == [1] * bool(found)
    assert [result.warnings for result in found[1:]] == [()] * len(found[1:])
    assert session.apply(session_of(*TEXTS[:8])).offloaded_count >= 5


def test_a_torn_journal_on_a_full_disk_is_reported_once(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = policy(RETIRING.replace("never", "always"))
    with Session(rules, root=root, session_id="s") as session:
        session.apply(session_of(*TEXTS[:3]))
    [journal] = root.rglob("journal.jsonl")
    journal.write_bytes(journal.read_bytes()[:-5])
    session = Session(rules, root=root, session_id="s")
    with monkeypatch.context() as full:
        full.setattr(os, "fsync", no_space)
        found = [session.apply(session_of(*TEXTS[:n])).warnings for n in (4, 5, 6)]
    assert sum("torn by a crash" in warning for warning in found[0]) == 1
    assert found[1:] == [(), ()]
    healed = session.apply(session_of(*TEXTS[:7]))
    assert not [warning for warning in healed.warnings if "torn" in warning]


def no_space(_: int) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


LATE: dict[str, tuple[str, Callable[[Session], object]]] = {
    "collect": ("store.collector", lambda session: store_of(session).collect()),
    "stored_files": ("store.collector", lambda session: store_of(session).stored_files()),
    "search": ("store.excerpts", lambda session: list(session.search("result"))),
    "a URL": ("store.remote.state", lambda _: ContextFileSystem("s3://bucket/prefix")),
}
"""What imports a module when it is first used."""


def store_of(session: Session) -> ContextFileSystem:
    assert isinstance(session.store, ContextFileSystem)
    return session.store


@pytest.mark.parametrize(("module", "use"), LATE.values(), ids=LATE)
def test_a_first_use_without_a_free_descriptor_fails_as_the_store_does(
    root: Path, monkeypatch: pytest.MonkeyPatch, module: str, use: Callable[[Session], object]
) -> None:
    session = Session(policy(RETIRING), root=root, session_id="s")
    session.apply(session_of(*TEXTS[:3]))
    monkeypatch.delitem(sys.modules, f"policyctx.{module}", raising=False)
    with no_descriptors(root), pytest.raises(StoreError, match="Too many open files"):
        use(session)
    use(session)


@pytest.mark.parametrize("model", ["", "model: {name: claude-sonnet-4-5}"])
def test_an_answer_is_observed_without_a_free_descriptor(
    root: Path, monkeypatch: pytest.MonkeyPatch, model: str
) -> None:
    session = Session(policy(f"steps: []\n{model}"), root=root, session_id="s")
    session.apply(session_of(*TEXTS[:3]))
    monkeypatch.delitem(sys.modules, "policyctx.pricing.rows", raising=False)
    with no_descriptors(root):
        session.observe({"input_tokens": 5, "output_tokens": 1})
    assert session.totals().calls == 1
