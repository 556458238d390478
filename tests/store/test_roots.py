"""The folder of a session: what `Session(root=…)`, the option and the policy make of a root."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.errors import InputError, PolicyctxError
from policyctx.planning.compiled import OffloadPolicy
from tests.conversations import session_of
from tests.policies import policy

TEXT = "word " * 200
HOSTILE = ["../../etc", "a/b", "..", "", "x" * 400, "\n", "é", "a\0b", "{session_id}", "~", "a{b"]


def offloading(root: str = "unused") -> OffloadPolicy:
    return policy(
        f'store: {{sync: never, root: "{root}"}}\n'
        "items: {tool_result: {offload: true, min_chars: 100, keep_recent: 0}}\n"
        "steps: [{name: s, do: offload, select: {types: [tool_result]}}]"
    )


def by_argument(root: str, session_id: str) -> Session:
    return Session(offloading(), root=root, session_id=session_id)


def by_path(root: str, session_id: str) -> Session:
    return Session(offloading(), root=Path(root), session_id=session_id)


def by_option(root: str, session_id: str) -> Session:
    options: Any = {"offload_root_path": root}
    return Session(offloading(), session_id=session_id, options=options)


def by_policy(root: str, session_id: str) -> Session:
    return Session(offloading(root), session_id=session_id)


WAYS = [by_argument, by_path, by_option, by_policy]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("below", "folder"),
    [
        ("{session_id}", "task-1"),
        ("a/{session_id}/b", "a/task-1/b"),
        ("x-{session_id}-{session_id}", "x-task-1-task-1"),
        ("{{{session_id}}}", "{task-1}"),
        ("{{session_id}}", "{session_id}"),
        ("plain", "plain"),
    ],
)
def test_a_root_expands_alike_wherever_it_is_given(
    tmp_path: Path, way: Callable[[str, str], Session], below: str, folder: str
) -> None:
    session = way(f"{tmp_path}/{below}", "task-1")
    [file] = session.apply(session_of(TEXT)).files
    assert Path(file).is_relative_to(tmp_path / folder)
    assert session.store.root == tmp_path / folder
    is_shared = "task-1" not in folder
    journal = ".policyctx/task-1/journal.jsonl" if is_shared else ".policyctx/journal.jsonl"
    assert (tmp_path / folder / journal).exists()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("session_id", HOSTILE)
def test_no_session_id_leads_out_of_the_root(
    tmp_path: Path, way: Callable[[str, str], Session], session_id: str
) -> None:
    session = way(f"{tmp_path}/in/{{session_id}}", session_id)
    [file] = session.apply(session_of(TEXT)).files
    assert Path(file).resolve().is_relative_to(tmp_path / "in")
    assert [path.name for path in tmp_path.iterdir()] == ["in"]
    assert len(list((tmp_path / "in").iterdir())) == 1
    again = way(f"{tmp_path}/in/{{session_id}}", session_id)
    assert again.read(file) == TEXT


def test_sessions_with_a_folder_each_do_not_see_each_other(tmp_path: Path) -> None:
    root = f"{tmp_path}/{{session_id}}"
    for name in ("one", "two"):
        by_argument(root, name).apply(session_of(f"{name} {TEXT}"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "two"]
    assert by_argument(root, "two").read("c0").startswith("two ")


def test_a_child_has_a_folder_beside_that_of_its_parent(tmp_path: Path) -> None:
    session = by_argument(f"{tmp_path}/{{session_id}}", "task")
    assert session.child("helper").store.root == tmp_path / "task.helper"


def test_other_braces_in_a_given_root_stay(tmp_path: Path) -> None:
    session = by_argument(f"{tmp_path}/a{{b}}{{", "s")
    assert session.store.root == tmp_path / "a{b}{"


@pytest.mark.parametrize("below", ["{date}/{session_id}", "{session_id}{"])
def test_a_wrong_field_beside_the_session_id_is_an_error(tmp_path: Path, below: str) -> None:
    with pytest.raises(InputError, match=r"the root .*(date|brace)"):
        by_argument(f"{tmp_path}/{below}", "s")


@pytest.mark.parametrize("field", ["{sesion_id}", "{session-id}", "{SESSION_ID}"])
def test_a_misspelt_field_makes_no_folder_for_all_sessions(field: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"did you mean \{session_id\}"):
        Session(offloading(), root=tmp_path / field)
    with pytest.raises(InputError, match=r"did you mean \{session_id\}"):
        Session(offloading(), root=tmp_path, record=tmp_path / f"{field}.jsonl")


@pytest.mark.parametrize("field", ["{version_id}", "{session}", "{process_id}", "{{session}}"])
def test_another_word_in_braces_is_a_folder_of_this_name(field: str, tmp_path: Path) -> None:
    session = Session(offloading(), root=tmp_path / field)
    session.apply(session_of(TEXT))
    assert (tmp_path / field).is_dir()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("field", ["{session_id:>3}", "{session_id!r}", "{ session_id }"])
def test_a_formatted_session_id_is_an_error_wherever_it_is_given(
    tmp_path: Path, way: Callable[[str, str], Session], field: str
) -> None:
    with pytest.raises(PolicyctxError, match=r"more than a field; write \{session_id\}"):
        way(f"{tmp_path}/{field}", "s").apply(session_of(TEXT))
    assert not list(tmp_path.iterdir())


def test_a_formatted_session_id_in_the_path_of_a_recording_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"more than a field; write \{session_id\}"):
        Session(offloading(), root=tmp_path, record=tmp_path / "{session_id:>3}.jsonl")
