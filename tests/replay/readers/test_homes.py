"""The folders of agents: where they are, and which files of them are sessions."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from policyctx.replay.readers.home import Home, files_of
from policyctx.replay.readers.registered import homes, readers

ROOT = Path(__file__).parents[3]
HOME = Home("~/.lyre/sessions", "*/chats/**/*.json*", "LYRE_HOME", "~/.lyre")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "sessions/a/chats/deep/er").mkdir(parents=True)
    (tmp_path / "sessions/b/logs").mkdir(parents=True)
    for name in (
        "a/chats/1.json",
        "a/chats/deep/er/2.jsonl",
        "a/3.json",
        "b/logs/4.json",
        "5.json",
    ):
        (tmp_path / "sessions" / name).write_text("{}")
    (tmp_path / "sessions/a/chats/note.txt").write_text("")
    return tmp_path


def names(home: Path) -> list[str]:
    return [one.path.name for one in files_of(HOME, {"LYRE_HOME": str(home)}).files]


def test_the_files_of_a_pattern_are_found_at_every_depth(home: Path) -> None:
    assert names(home) == ["1.json", "2.jsonl"]


def test_a_folder_that_is_not_there_says_so(tmp_path: Path) -> None:
    found = files_of(HOME, {"LYRE_HOME": str(tmp_path / "none")})
    assert (found.files, found.is_there) == ([], False)


def test_the_agents_own_variable_moves_the_folder(tmp_path: Path) -> None:
    assert HOME.path({"LYRE_HOME": str(tmp_path)}) == tmp_path / "sessions"
    for unset in ({}, {"LYRE_HOME": ""}):
        assert HOME.path(unset) == Path.home() / ".lyre/sessions"


def test_links_and_pipes_below_the_folder_are_left_out_and_counted(
    home: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "chats").mkdir()
    (outside / "chats/6.json").write_text("{}")
    (home / "sessions/c").symlink_to(outside)
    (home / "sessions/a/chats/7.json").symlink_to(outside / "chats/6.json")
    os.mkfifo(home / "sessions/a/chats/8.json")
    found = files_of(HOME, {"LYRE_HOME": str(home)})
    assert [one.path.name for one in found.files] == ["1.json", "2.jsonl"]
    assert found.left_out == {"link": 2, "pipe, socket or device": 1}


def test_the_folder_itself_may_be_a_link(home: Path, tmp_path: Path) -> None:
    (tmp_path / "moved").symlink_to(home)
    assert names(tmp_path / "moved") == ["1.json", "2.jsonl"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root lists every folder")
def test_a_folder_that_cannot_be_listed_is_told(home: Path) -> None:
    (home / "sessions/a/chats").chmod(0)
    found = files_of(HOME, {"LYRE_HOME": str(home)})
    assert found.unreadable == {home / "sessions/a/chats": "Permission denied"}
    (home / "sessions/a/chats").chmod(0o700)


def test_a_journal_beside_a_database_says_when_it_was_written(tmp_path: Path) -> None:
    for name, at in (("a.db", 1_000), ("a.db-wal", 2_000)):
        (tmp_path / name).write_text("")
        os.utime(tmp_path / name, (at, at))
    [file] = files_of(Home(str(tmp_path), "*.db")).files
    assert (file.path.name, file.changed) == ("a.db", 2_000)


@pytest.mark.parametrize("reader", readers(), ids=lambda one: str(one.FORMAT))
def test_each_home_of_a_reader_is_moved_by_its_variable(reader: object) -> None:
    for of_agent in homes(reader).values():  # type: ignore[arg-type]
        for home in of_agent:
            assert home.folder.startswith("~/")
            assert home.folder.startswith(home.moved)
            moved = home.path({home.variable: "/moved"}) if home.variable else home.path({})
            assert str(moved).startswith("/moved" if home.variable else str(Path.home()))


def test_the_page_lists_each_agent_with_a_folder_and_its_variable() -> None:
    page = (ROOT / "docs/recordings.md").read_text(encoding="utf-8")
    table = page.partition("| agent | folder | moved by |")[2].partition("\n\n")[0]
    for agent, of in (each for reader in readers() for each in homes(reader).items()):
        assert f"`{agent}`" in table
        assert all(f"`{home.variable}`" in table for home in of if home.variable)
