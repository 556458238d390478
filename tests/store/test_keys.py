from __future__ import annotations

from pathlib import Path

import pytest

from policyctx.errors import CorruptContentError, StoreError
from policyctx.messages.json_text import JSON, compact_json
from policyctx.messages.reading import items_of
from policyctx.store.content import Content, Origin
from policyctx.store.filesystem import ContextFileSystem
from tests.store.contents import result

TEXT = "first\nsecond\r\nthird"


@pytest.fixture
def store(tmp_path: Path) -> ContextFileSystem:
    return ContextFileSystem(tmp_path / "root", sync="never")


def test_a_content_is_read_by_every_key_that_it_has(store: ContextFileSystem) -> None:
    origin = Origin("item_1", "tool_result", tool_use_id="call_1")
    [file] = store.save([Content("a/b.md", TEXT, origin=origin)])
    for key in (file.path, Path(file.path), file.relative_path, "item_1", "call_1"):
        assert store.read(key) == TEXT


def test_keys_are_known_after_a_restart(store: ContextFileSystem) -> None:
    store.save([result("call_1", TEXT)])
    assert ContextFileSystem(store.root).read("call_1") == TEXT


def test_keys_of_another_process_are_known_at_once(store: ContextFileSystem) -> None:
    other = ContextFileSystem(store.root)
    store.save([result("call_1", "one")])
    assert other.read("call_1") == "one"
    store.save([result("call_2", "two")])
    assert other.read("call_2") == "two"


@pytest.mark.parametrize(
    ("lines", "text"),
    [((2, 2), "second\r\n"), ((2, 9), "second\r\nthird"), ((0, 1), "first\n"), ((4, 9), "")],
)
def test_lines_are_counted_from_one(
    store: ContextFileSystem, lines: tuple[int, int], text: str
) -> None:
    store.save([result("call_1", TEXT)])
    assert store.read("call_1", lines=lines) == text


@pytest.mark.parametrize("text", ["a\rb\x0bc\u2028d\x85e", "a\r\nb\n\nc", "a\n", ""])
def test_the_index_counts_the_lines_that_can_be_read(store: ContextFileSystem, text: str) -> None:
    store.save([result("call_1", text)])
    [entry] = store.list()
    lines = [store.read("call_1", lines=(n, n)) for n in range(1, entry.lines + 2)]
    assert "".join(lines) == text
    assert [line != "" for line in lines] == [True] * entry.lines + [False]


def test_a_reused_id_refers_to_the_newest(store: ContextFileSystem) -> None:
    files = store.save([result("call_1", "one"), result("call_1", "two")])
    assert store.read("call_1") == "two"
    assert [store.read(file.path) for file in files] == ["one", "two"]


def test_an_id_shared_with_a_call_refers_to_the_result(store: ContextFileSystem) -> None:
    store.save([result("call_1", "the result")])
    origin = Origin("call_1", "tool_call", "call_1", "Bash", "assistant")
    [call] = store.save([Content("tool_call/Bash/call_1.md", "{}", origin=origin)])
    assert store.read("call_1") == "the result"
    assert store.read(call.path) == "{}"


def test_an_id_that_looks_like_a_path_leads_nowhere_else(
    store: ContextFileSystem, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("x", encoding="utf-8")
    store.save([Content("a.md", "saved", origin=Origin("../secret", "tool_result"))])
    assert store.read("../secret") == "saved"


def test_an_unknown_key_is_an_error_that_names_it(store: ContextFileSystem) -> None:
    store.save([result("call_1", "one")])
    with pytest.raises(StoreError, match="call_2"):
        store.read("call_2")


def test_a_file_changed_from_outside_is_not_returned(store: ContextFileSystem) -> None:
    [file] = store.save([result("call_1", "one")])
    Path(file.path).write_text("two", encoding="utf-8")
    with pytest.raises(CorruptContentError) as raised:
        store.read("call_1")
    assert raised.value.path == file.path
    assert raised.value.expected != raised.value.found
    assert file.path in str(raised.value)


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_result", "tool_use_id": "call_1", "content": TEXT, "is_error": True},
        {"type": "tool_result", "content": [{"type": "text", "text": "a"}, {"type": "image"}]},
        {"type": "tool_use", "id": "call_1", "name": "edit", "input": {"new": "x", "old": "y"}},
        {"role": "user", "content": TEXT},
        {"type": "text", "text": "lone \ud800 surrogate"},
        {"type": "unknown", "nested": [1, {"deep": [TEXT]}]},
        {"type": "other", "data": "does not hold the text"},
        [TEXT, TEXT],
        {"type": "text", "text": ""},
    ],
)
def test_the_original_block_is_restored(store: ContextFileSystem, block: JSON) -> None:
    text = text_in(block)
    store.save([Content("a.md", text, origin=Origin("item_1", "tool_result", block=block))])
    again = ContextFileSystem(store.root)
    assert again.restore("item_1") == block
    assert again.restore("item_1") is not again.restore("item_1")


def text_in(block: JSON) -> str:
    if not isinstance(block, dict):
        return TEXT
    for name in ("content", "text", "input"):
        if name in block:
            value = block[name]
            return value if isinstance(value, str) else compact_json(value)
    return TEXT


def test_the_text_is_not_stored_a_second_time_for_its_block(store: ContextFileSystem) -> None:
    store.save([result("call_1", "x" * 50_000)])
    assert (Path(store.root) / ".policyctx/journal.jsonl").stat().st_size < 2_000


def test_a_content_without_its_block_cannot_be_restored(store: ContextFileSystem) -> None:
    store.save([Content("a.md", "x", origin=Origin("item_1", "tool_result"))])
    with pytest.raises(StoreError, match="its original block was not kept"):
        store.restore("item_1")


def test_the_index_contains_the_origin_of_a_content(store: ContextFileSystem) -> None:
    store.save([result("call_1", "a\nb\n")])
    [entry] = ContextFileSystem(store.root).list()
    assert (entry.path, entry.chars, entry.lines, entry.size) == (
        "tool_result/Bash/call_1.md",
        4,
        2,
        4,
    )
    assert entry.origin is not None
    assert (entry.origin.tool_name, entry.origin.message, entry.origin.turn) == ("Bash", 3, 1)


def test_a_moved_store_is_read_by_its_old_paths(store: ContextFileSystem, tmp_path: Path) -> None:
    [file] = store.save([result("call_1", "one")])
    Path(store.root).rename(tmp_path / "moved")
    assert ContextFileSystem(tmp_path / "moved").read(file.path) == "one"


def test_an_item_is_offloaded_to_where_a_policy_would_put_it(store: ContextFileSystem) -> None:
    call: JSON = {"type": "tool_use", "id": "call_1", "name": "Bash", "input": {}}
    block: JSON = {"type": "tool_result", "tool_use_id": "call_1", "content": TEXT}
    messages: list[dict[str, JSON]] = [
        {"role": "assistant", "content": [call]},
        {"role": "user", "content": [block]},
    ]
    [item] = [item for item in items_of(messages) if item.kind == "tool_result"]
    saved = store.offload(item, block=block)
    assert saved.file.relative_path == "tool_result/Bash/call_1.md"
    assert store.read("call_1") == TEXT
    assert store.restore("call_1") == block


def test_the_form_of_paths_is_that_of_the_language() -> None:
    from policyctx.policy.models.steps import Store  # noqa: PLC0415
    from policyctx.store.filesystem import PATH  # noqa: PLC0415

    assert Store().path == PATH
