from __future__ import annotations

import json

import pytest

from policyctx.replay.reading import recordings_of
from policyctx.replay.recording import Recording
from policyctx.tuning.evaluating import ProjectBy, project_of
from tests.conversations import session_of
from tests.replay.sessions import recording, turn_by_turn
from tests.replay.synthetic import line_records


def read(format_: str, **more: str) -> Recording:
    """Return the made-up session of a format, with more fields in each record."""
    records = [json.dumps({**record, **more}) for record in line_records()[format_]]
    return next(iter(recordings_of("\n".join(records).encode(), "s.jsonl")))


def test_the_working_directory_of_claude_code_is_the_project() -> None:
    assert project_of(read("claude-code", cwd="/srv/shop"), "x/s.jsonl") == "/srv/shop"


def test_the_working_directory_of_pi_is_the_project() -> None:
    assert project_of(read("pi"), "x/s.jsonl") == "/srv"


def test_the_working_directory_of_codex_is_the_project() -> None:
    records = list(line_records()["codex"])
    records[0]["payload"]["cwd"] = "/srv/shop"
    text = "\n".join(map(json.dumps, records))
    [found] = recordings_of(text.encode(), "s.jsonl")
    assert project_of(found, "x/s.jsonl") == "/srv/shop"


@pytest.mark.parametrize(
    ("path", "project"),
    [("a/shop__1.json", "a/shop"), ("a/shop.json", "a"), ("a/__1.json", "a"), ("shop.json", ".")],
)
def test_without_a_working_directory_the_file_says_the_project(path: str, project: str) -> None:
    assert project_of(turn_by_turn(session_of("x")), path) == project


def test_the_project_may_be_the_folder_or_the_file() -> None:
    found = recording([{"role": "user", "content": "x"}], project="/srv")
    assert project_of(found, "a/b__c.json", ProjectBy.FOLDER) == "a"
    assert project_of(found, "a/b__c.json", ProjectBy.FILE) == "a/b__c.json"
