"""What a list of blocks held beside its texts belongs to its content, and is none of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.integrations.tools import ReadBackTools
from policyctx.store.collector import RetentionLimits
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.retention import collect_below
from tests.conversations import picture, results, session_of
from tests.policies import policy
from tests.store.bucket import BUCKET, serving

POLICY = """
    model: {tokenizer: approximate}
    min_chars: 40
    items: {tool_result: {offload: true}}
    store: {sync: never, format: FORMAT}
    steps:
      - {name: retire, do: offload, select: {types: [tool_result]}}
"""
LOG = "\n".join(f"line {n}" for n in range(200))
LIST = [{"type": "text", "text": LOG}, picture("A" * 9000)]
# Blocks without media of which each has another title, so the description of them is long.
MANY = [{"type": "text", "text": f"line {n}", "title": "t" * (n % 7)} for n in range(300)]

Place = Callable[[str], str]


@pytest.fixture(params=["folder", "file url", "bucket"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    """Return where a store of this name is."""
    if request.param != "bucket":
        start = "file://" if request.param == "file url" else ""
        yield lambda name: f"{start}{tmp_path}/{name}"
        return
    with serving():
        yield lambda name: f"s3://{BUCKET}/{name}"


@pytest.fixture(params=["text", "envelope"])
def filled(request: pytest.FixtureRequest, place: Place) -> str:
    """Return the root of a session with two contents, each of which has a rest."""
    root = place("from")
    _fill(root, "s", request.param)
    return root


def _fill(root: str, session_id: str, form: str = "text") -> None:
    rules = policy(POLICY.replace("FORMAT", form))
    with Session(rules, root=root, session_id=session_id) as session:
        ReadBackTools(session)
        session.apply(session_of(LIST, MANY))


def _files(store: ContextFileSystem) -> set[str]:
    return {entry.path.rpartition("/")[2] for entry in store.list()}


def test_each_content_has_a_rest(filled: str) -> None:
    store = ContextFileSystem(filled, session="s")
    assert sum(entry.rest is not None for entry in store.list()) == 2
    assert store.restore("c1") == results(("c1", MANY))["content"][0]


def test_verify_counts_contents(filled: str) -> None:
    assert ContextFileSystem(filled, session="s").verify().checked == 2


def test_a_copy_counts_contents_and_has_the_rests(filled: str, place: Place) -> None:
    store = ContextFileSystem(filled, session="s")
    into = ContextFileSystem(place("to"))
    assert into.import_from(store) == 2
    assert into.restore("c0") == store.restore("c0")
    assert into.verify().checked == 2


def test_an_export_and_an_import_count_contents(filled: str, place: Place, tmp_path: Path) -> None:
    store = ContextFileSystem(filled, session="s")
    assert store.export(tmp_path / "s.tar.zst") == 2
    into = ContextFileSystem(place("to"))
    assert into.import_from(tmp_path / "s.tar.zst") == 2
    assert into.restore("c1") == store.restore("c1")


def test_a_rebuild_counts_contents(filled: str) -> None:
    store = ContextFileSystem(filled, session="s")
    done = store.rebuild()
    assert (done.entries, done.found, done.gone) == (2, (), ())
    assert store.restore("c0") == results(("c0", LIST))["content"][0]


def test_the_history_has_a_line_for_each_content(filled: str) -> None:
    store = ContextFileSystem(filled, session="s", clock=lambda: 4e9)
    assert [event.item_id for event in store.history()] == ["c0", "c1"]
    store.collect(max_contents=0, ended=True)
    assert {event.item_id for event in store.history()} <= {"c0", "c1"}


def test_a_collection_counts_contents_and_removes_their_rests(filled: str) -> None:
    store = ContextFileSystem(filled, session="s", clock=lambda: 4e9)
    for dry_run in (True, False):
        done = store.collect(max_contents=1, ended=True, dry_run=dry_run)
        assert (len(done.removed), done.contents_before) == (1, 2)
        assert done.size_after < done.size_before - 9000
    assert store.restore("c1") == results(("c1", MANY))["content"][0]
    assert store.collect(max_contents=0, ended=True).size_after == 0


def test_a_collection_counts_the_contents_that_it_compresses(filled: str) -> None:
    store = ContextFileSystem(filled, session="s", clock=lambda: 4e9)
    assert {entry.item_id for entry in store.collect(ended=True).packed} == {"c0", "c1"}


def test_a_collection_of_all_stores_counts_contents(place: Place) -> None:
    for name in ("a", "b"):
        _fill(place(f"all/{name}"), name)
    done = collect_below(
        place("all"), RetentionLimits(max_contents=1), ended=True, clock=lambda: 4e9
    )
    reports = [one.report for one in done if one.report is not None]
    assert sum(len(report.removed) for report in reports) == 3
    assert sum(report.contents_before for report in reports) == 4


def test_sessions_that_share_a_rest_count_their_contents(tmp_path: Path) -> None:
    for name in ("A", "B"):
        _fill(str(tmp_path), name)
    stores = [ContextFileSystem(tmp_path, session=name) for name in ("A", "B")]
    assert [store.verify().checked for store in stores] == [2, 2]
    assert [len(store.list()) for store in stores] == [2, 2]


def test_a_rebuild_without_a_journal_takes_no_rest_for_a_content(tmp_path: Path) -> None:
    _fill(str(tmp_path), "s")
    for path in sorted((tmp_path / ".policyctx").rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    (tmp_path / "tool_result/Bash/mine.blocks.json").write_text('{"block": 1, "mine": 2}')
    store = ContextFileSystem(tmp_path, session="s")
    done = store.rebuild()
    assert {entry.path.rpartition("/")[2] for entry in done.found} == _files(store)
    assert _files(store) == {"c0.md", "c1.md", "mine.blocks.json"}
    assert (done.entries, store.verify().checked) == (3, 3)
    assert len([*tmp_path.rglob("*.md.blocks.json")]) == 2  # they stay


def test_a_rebuild_says_that_a_rest_is_gone_while_its_text_is_there(tmp_path: Path) -> None:
    _fill(str(tmp_path), "s")
    folder = tmp_path / "tool_result/Bash"
    (folder / "c0.md.blocks.json").unlink()
    for path in folder.glob("c1*"):
        path.unlink()
    done = ContextFileSystem(tmp_path, session="s").rebuild()
    gone = sorted(entry.path.rpartition("/")[2] for entry in done.gone)
    assert (done.entries, gone) == (1, ["c0.md.blocks.json", "c1.md"])


def test_a_damaged_rest_is_reported(tmp_path: Path) -> None:
    _fill(str(tmp_path), "s")
    rest = tmp_path / "tool_result/Bash/c0.md.blocks.json"
    rest.write_text(rest.read_text().replace("AAAA", "BBBB"))
    found = ContextFileSystem(tmp_path, session="s").verify()
    assert [harm.entry.path for harm in found.harmed] == ["tool_result/Bash/c0.md.blocks.json"]
    assert found.checked == 2
