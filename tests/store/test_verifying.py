from __future__ import annotations

from pathlib import Path

from policyctx.store.files import Format
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import DAY, HOUR, Clock, ids, result


def test_an_unchanged_store_is_clean(any_store: ContextFileSystem) -> None:
    any_store.save([result("call_1", "one\ud800\0\r\n"), result("call_2", "two")])
    found = any_store.verify()
    assert (found.checked, found.is_clean) == (2, True)


def test_verify_names_exactly_the_altered_and_missing_files(any_store: ContextFileSystem) -> None:
    files = any_store.save([result(f"call_{i}", f"text {i}") for i in range(4)])
    altered, gone, half = (Path(file.path) for file in files[:3])
    altered.write_bytes(altered.read_bytes().replace(b"text 0", b"text x"))
    gone.unlink()
    half.write_bytes(half.read_bytes()[:-4])
    harmed = {harm.entry.item_id: harm.kind for harm in any_store.verify().harmed}
    assert harmed == {"call_0": "altered", "call_1": "missing", "call_2": "altered"}


def test_a_rebuild_removes_missing_files_and_adopts_found_files(
    any_store: ContextFileSystem, form: Format
) -> None:
    files = any_store.save([result("call_1", "one"), result("call_2", "two")])
    Path(files[0].path).unlink()
    copy = Path(files[1].path).with_stem("call_9")
    copy.write_bytes(Path(files[1].path).read_bytes())
    done = any_store.rebuild()
    assert ids(done.gone) == ["call_1"]
    assert [entry.path for entry in done.found] == [f"tool_result/Bash/{copy.name}"]
    assert done.entries == 2
    assert any_store.read(copy) == "two"
    assert any_store.restore("call_2") == {
        "type": "tool_result",
        "tool_use_id": "call_2",
        "content": "two",
    }
    assert ContextFileSystem(any_store.root, format=form).verify().is_clean


def test_history_lists_every_event(any_store: ContextFileSystem, clock: Clock) -> None:
    any_store.save([result("call_1", "one"), result("call_2", "x" * 5_000)])
    clock.now += DAY
    any_store.collect()
    any_store.collect(max_age=HOUR)
    told = [(event.what, event.item_id, event.why) for event in any_store.history()]
    assert told == [
        ("saved", "call_1", ""),
        ("saved", "call_2", ""),
        ("packed", "call_2", ""),
        ("removed", "call_1", "max_age"),
        ("removed", "call_2", "max_age"),
    ]


def test_progress_is_reported(any_store: ContextFileSystem, clock: Clock, tmp_path: Path) -> None:
    any_store.save([result(f"call_{i}", f"{i}" * 5_000) for i in range(3)])
    clock.now += DAY
    steps: list[tuple[int, int]] = []
    any_store.verify(progress=lambda done, of: steps.append((done, of)))
    assert steps[-1] == (3, 3)
    any_store.export(tmp_path / "out", progress=lambda done, of: steps.append((done, of)))
    any_store.collect(progress=lambda done, of: steps.append((done, of)))
    assert steps[-1] == (3, 3)
