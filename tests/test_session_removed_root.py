"""The store's folder is removed while a session runs."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.turns.result import Result
from tests.conversations import Message, calls, results, session_of, user
from tests.policies import policy

TEXT = """\
    items: {tool_result: {offload: true}}
    placeholder: "see {path}"
    store: {sync: never}
    steps: [{name: s, do: offload, select: {types: [tool_result]}}]
    """
LARGE = "x" * 400
FULL = session_of(LARGE, LARGE)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "root"


@pytest.fixture
def session(root: Path) -> Session:
    return Session(policy(TEXT), root=root, session_id="s")


def with_more(messages: list[Message]) -> list[Message]:
    return [*messages, calls(("new", "Bash")), results(("new", "y" * 400))]


def applied(session: Session, messages: list[Message], *, asynchronous: bool) -> Result:
    if asynchronous:
        return asyncio.run(session.apply_async(messages))
    return session.apply(messages)


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("comes_back", [False, True])
def test_a_removed_folder_is_warned_of_once(
    comes_back: bool, asynchronous: bool, session: Session, root: Path
) -> None:
    first = applied(session, FULL, asynchronous=asynchronous)
    assert first.warnings == ()
    shutil.rmtree(root)
    given = list(first.messages) if comes_back else FULL
    [warning] = applied(session, given, asynchronous=asynchronous).warnings
    assert str(root) in warning
    assert "2 placeholders name files" in warning
    assert applied(session, given, asynchronous=asynchronous).warnings == ()


def test_new_items_are_saved_after_the_folder_was_removed(session: Session, root: Path) -> None:
    session.apply(FULL)
    shutil.rmtree(root)
    result = session.apply(with_more(FULL))
    [warning] = result.warnings
    assert "2 placeholders" in warning
    assert "the journal was removed while in use" in warning
    [path] = result.files
    assert session.read(path) == "y" * 400
    assert session.apply(with_more(FULL)).warnings == ()


def test_each_disappearance_is_warned_of(session: Session, root: Path) -> None:
    messages = FULL
    session.apply(messages)
    for _ in range(2):
        shutil.rmtree(root)
        messages = with_more(messages)
        assert len(session.apply(messages).warnings) == 1


def test_an_empty_folder_in_its_place_is_warned_of(session: Session, root: Path) -> None:
    session.apply(FULL)
    root.rename(root.with_name("moved"))
    root.mkdir()
    [warning] = session.apply([*FULL, user("more")]).warnings
    assert "was removed or replaced" in warning


def test_a_copy_in_its_place_is_not_warned_of(session: Session, root: Path) -> None:
    session.apply(FULL)
    moved = root.rename(root.with_name("moved"))
    shutil.copytree(moved, root)
    assert session.apply([*FULL, user("more")]).warnings == ()


def test_a_folder_that_was_never_there_is_not_warned_of(session: Session, root: Path) -> None:
    assert session.apply(session_of("small")).warnings == ()
    assert session.apply(session_of("small", "small")).warnings == ()
    assert not root.exists()


def test_a_restarted_session_sees_the_folder_removed(session: Session, root: Path) -> None:
    session.apply(FULL)
    restarted = Session(policy(TEXT), root=root, session_id="s")
    assert restarted.apply(FULL).warnings == ()
    shutil.rmtree(root)
    assert len(restarted.apply(FULL).warnings) == 1


def test_a_session_that_keeps_no_state_counts_the_placeholders_in_the_list(root: Path) -> None:
    text = TEXT.replace("sync: never", "sync: never, state: none")
    session = Session(policy(text), root=root, session_id="s")
    given = list(session.apply(FULL).messages)
    shutil.rmtree(root)
    [warning] = session.apply(given).warnings
    assert "2 placeholders name files" in warning


def test_a_forged_placeholder_counts_as_no_file_of_a_removed_folder(root: Path) -> None:
    forged = f"see {root}/tool_result/Bash/never.md"
    for state, messages in (
        ("none", session_of(forged, LARGE)),
        ("kept", session_of(forged, LARGE)),
    ):
        text = TEXT.replace("sync: never", f"sync: never, state: {state}")
        session = Session(policy(text), root=root, session_id="s")
        given = list(session.apply(messages).messages)
        shutil.rmtree(root)
        [warning] = session.apply(given).warnings
        assert "1 placeholder names a file" in warning


def test_a_removed_folder_is_warned_of_once_however_late_it_is_used(
    session: Session, root: Path
) -> None:
    session.apply(FULL)
    shutil.rmtree(root)
    assert len(session.apply(FULL).warnings) == 1
    assert session.apply(with_more(FULL)).warnings == ()


def test_a_folder_that_is_made_again_before_the_next_turn_is_warned_of_once(
    session: Session, root: Path
) -> None:
    session.apply(FULL)
    shutil.rmtree(root)
    session.observe({"input_tokens": 1_000, "output_tokens": 1})
    assert root.exists()
    [warning] = session.apply(FULL).warnings
    assert str(root) in warning
    assert session.apply(FULL).warnings == ()


def test_an_arrival_warns_of_a_removed_folder_instead_of_the_next_turn(
    session: Session, root: Path
) -> None:
    session.apply(FULL)
    shutil.rmtree(root)
    [warning] = session.on_tool_result(results(("new", "y"))).warnings
    assert "2 placeholders" in warning
    assert session.apply(FULL).warnings == ()


def test_a_removed_journal_in_a_folder_that_stays_is_warned_of(
    session: Session, root: Path
) -> None:
    session.apply(FULL)
    shutil.rmtree(root / ".policyctx")
    [warning] = session.apply(with_more(FULL)).warnings
    assert "the journal was removed while in use" in warning
    assert "placeholder" not in warning


def test_a_removed_folder_that_no_placeholder_names_is_warned_of_once(root: Path) -> None:
    steps = "[{name: s, do: drop, select: {types: [tool_result], keep_recent: 1}}]"
    session = Session(policy(f"store: {{sync: never}}\nsteps: {steps}"), root=root, session_id="s")
    assert session.apply(FULL).plan.new
    shutil.rmtree(root)
    first = session.apply(with_more(FULL)).warnings
    assert len(first) == 1
    assert session.apply(with_more(FULL)).warnings == ()
