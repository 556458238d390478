"""`Session.child`: agents that work for another one, each with its own policy and its own files."""

from __future__ import annotations

import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.errors import InputError, UnknownOptionError
from policyctx.integrations.tools import ReadBackTools
from policyctx.store.filesystem import ContextFileSystem
from tests.conversations import session_of
from tests.policies import policy

KEEPS_ONE = """\
    items: {tool_result: {offload: true, keep_recent: 1}}
    store: {sync: never}
    steps: [{name: retire, do: offload}]
    """
KEEPS_TWO = KEEPS_ONE.replace("keep_recent: 1", "keep_recent: 2")


def texts(word: str, count: int = 3) -> list[str]:
    return [f"{word} {n} says\n" * 60 for n in range(count)]


def work(session: Session, word: str) -> list[str]:
    """Offload what the policy lets go, with the same call ids in every session."""
    session.apply(session_of(*texts(word)))
    return paths(session)


def paths(session: Session) -> list[str]:
    return [item.offload_path for item in session.items if item.offload_path]


@pytest.fixture(params=["one folder", "a folder for each session"])
def parent(request: pytest.FixtureRequest, tmp_path: Path) -> Session:
    if request.param == "one folder":
        return Session(policy(KEEPS_ONE), root=tmp_path, session_id="lead")
    rules = KEEPS_ONE.replace("sync: never", f"sync: never, root: '{tmp_path}/{{session_id}}'")
    return Session(policy(rules), session_id="lead")


def test_a_child_has_a_policy_of_its_own_below_the_same_root(
    parent: Session, tmp_path: Path
) -> None:
    child = parent.child("research", policy(KEEPS_TWO))
    assert child.session_id == "lead.research"
    assert (len(work(parent, "lead")), len(work(child, "child"))) == (2, 1)
    assert all(path.startswith(f"{tmp_path}/") for path in [*paths(parent), *paths(child)])


def test_the_same_call_ids_have_different_files(parent: Session) -> None:
    children = [parent.child(name) for name in ("one", "two")]
    written = [work(session, session.session_id) for session in (parent, *children)]
    assert len({path for found in written for path in found}) == 6
    for session, found in zip((parent, *children), written, strict=True):
        assert [session.read(path) for path in found] == texts(session.session_id)[:2]


def test_two_children_at_once(parent: Session) -> None:
    children = [parent.child(f"c{n}") for n in range(4)]
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda each: work(each, each.session_id), children))
    for child, written in zip(children, found, strict=True):
        assert [child.read(path) for path in written] == texts(child.session_id)[:2]


def test_neither_reads_the_files_of_the_other(parent: Session) -> None:
    child = parent.child("research")
    work(parent, "lead")
    work(child, "child")
    for own, other, word in ((child, parent, "lead"), (parent, child, "child")):
        tools = ReadBackTools(own)
        for path in paths(other):
            assert tools.read_offloaded(path).startswith("no offloaded content")
        assert f": {word} 0 says" not in tools.search_offloaded(f"{word} 0 says")


def test_a_child_that_shares_reads_the_files_of_its_parent_by_their_path(parent: Session) -> None:
    child = parent.child("research", share=True)
    work(parent, "lead")
    work(child, "child")
    tools = ReadBackTools(child)
    for path, text in zip(paths(parent), texts("lead"), strict=False):
        assert tools.read_offloaded(path) == text
    assert tools.read_offloaded("c0") == texts("child")[0]
    found = tools.search_offloaded("lead 1 says")
    assert found.startswith(f"{paths(parent)[1]}:1: lead 1 says")
    page = tools.read_offloaded(paths(parent)[0], limit=2)
    assert f"read_offloaded(path='{paths(parent)[0]}', offset=3)" in page
    assert ReadBackTools(parent).read_offloaded(paths(child)[0]).startswith("no offloaded content")


def test_a_search_that_shares_finds_both(parent: Session) -> None:
    child = parent.child("research", share=True)
    work(parent, "lead")
    work(child, "child")
    lines = ReadBackTools(child).search_offloaded("0 says").splitlines()
    assert sum("child 0" in line for line in lines) == sum("lead 0" in line for line in lines) > 0


def test_a_grandchild_shares_what_its_parent_shares(parent: Session) -> None:
    work(parent, "lead")
    child = parent.child("research", share=True)
    assert ReadBackTools(child.child("deep", share=True)).search_offloaded("lead 0 says")
    read = ReadBackTools(child.child("deep", share=True)).read_offloaded(paths(parent)[0])
    assert read == texts("lead")[0]
    alone = ReadBackTools(child.child("deep")).read_offloaded(paths(parent)[0])
    assert alone.startswith("no offloaded content")


def test_a_child_goes_on_after_a_restart(parent: Session) -> None:
    child = parent.child("research")
    messages = session_of(*texts("child"))
    before = child.apply(messages).messages
    again = parent.child("research").apply(messages)
    assert list(again.messages) == list(before)
    assert again.offloaded_count == 0
    assert paths(parent) == []


KILLED = """
import os, signal, sys
from policyctx import Session
from tests.conversations import session_of
from tests.policies import policy
from tests.test_session_children import KEEPS_ONE, texts
child = Session(policy(KEEPS_ONE), root=sys.argv[1], session_id="lead").child("research")
child.apply(session_of(*texts("child")))
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
def test_a_killed_child_leaves_its_parent_and_goes_on(tmp_path: Path) -> None:
    parent = Session(policy(KEEPS_ONE), root=tmp_path, session_id="lead")
    work(parent, "lead")
    run = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert run.returncode == -signal.SIGKILL
    assert [parent.read(path) for path in paths(parent)] == texts("lead")[:2]
    child = parent.child("research")
    result = child.apply(session_of(*texts("child", 4)))
    assert result.offloaded_count == 1
    assert [child.read(path) for path in paths(child)] == texts("child")[:3]
    assert len({*paths(child), *paths(parent)}) == 5


@pytest.mark.parametrize("name", ["", "a.b", "a/b", "..", "ä"])
def test_a_name_that_is_no_name_is_an_error(parent: Session, name: str) -> None:
    with pytest.raises(InputError, match="expected a name of letters"):
        parent.child(name)


def test_options_are_those_of_a_session(parent: Session) -> None:
    child = parent.child("research", "context-filesystem", hints={"Bash": {"keep_recent": 0}})
    assert child.policy.name == "context-filesystem"
    assert len(work(child, "child")) == 3
    with pytest.raises(UnknownOptionError, match="did you mean 'hints'"):
        parent.child("research", hint={})


def test_a_session_with_a_store_of_its_own_asks_for_that_of_the_child(tmp_path: Path) -> None:
    def store(name: str) -> Any:
        return ContextFileSystem(tmp_path, session=name)

    parent = Session(policy(KEEPS_ONE), session_id="lead", store=store("lead"))
    with pytest.raises(InputError, match="give the child one: store="):
        parent.child("research")
    child = parent.child("research", store=store("lead.research"))
    assert len({*work(parent, "lead"), *work(child, "child")}) == 4
