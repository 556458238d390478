from __future__ import annotations

import json
from pathlib import Path

import pytest

from policyctx.paths import path_parts, relative_path
from policyctx.store.content import Content, Origin
from policyctx.store.files import Format
from policyctx.store.filesystem import PATH, ContextFileSystem
from tests.store.contents import result

IDS = [
    "",
    "x" * 4096,
    "..",
    ".",
    "...",
    "a/b",
    "/etc/passwd",
    "../../escape",
    "C:\\x",
    "C:x",
    "nul\0id",
    "new\nline",
    "\u202eright-to-left\u200f",
    "emoji 🙂",
    "Case",
    "case",
    "CON",
    "index.json",
    ".policyctx",
    "-rf",
    "%2e%2e",
    "lone \ud800",
    "id.md",
    "~",
]


def test_every_odd_id_has_a_file_of_its_own_below_the_root(tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", sync="never")
    saved = {}
    for item_id in IDS:
        values = {"item_id": item_id, "item_type": "tool_result", "tool_name": item_id or None}
        values |= {"tool_use_id": item_id, "session_id": item_id, "ext": "md"}
        text = f"text of {item_id!r}"
        origin = Origin(item_id, "tool_result", tool_use_id=item_id, tool_name=item_id)
        path = relative_path(path_parts(PATH), values, text)
        [file] = store.save([Content(path, text, origin=origin)])
        saved[item_id] = file.path
    again = ContextFileSystem(tmp_path / "root")
    for item_id, path in saved.items():
        assert Path(path).resolve().is_relative_to(tmp_path / "root")
        assert again.read(path) == again.read(item_id) == f"text of {item_id!r}"
    assert len(set(saved.values())) == len(IDS)
    assert again.verify().is_clean
    assert {path.name for path in tmp_path.iterdir()} == {"root"}


TEXTS = ["", "\0" * 10, "a\r\nb\rc\n", "\ufeffmark", "\ud800\udc00 \udfff", "🙂" * 10, "\x85\u2028"]


@pytest.mark.parametrize("form", ["text", "envelope"])
@pytest.mark.parametrize("text", TEXTS)
def test_every_odd_text_reads_back_exactly(tmp_path: Path, form: Format, text: str) -> None:
    store = ContextFileSystem(tmp_path, sync="never", format=form)
    [file] = store.save([result("call_1", text)])
    again = ContextFileSystem(tmp_path, format=form)
    assert again.read(file.path) == again.read("call_1") == text
    assert again.verify().is_clean


@pytest.mark.slow
def test_a_hundred_megabytes_read_back_exactly(tmp_path: Path, form: Format) -> None:
    text = "0123456789abcdef" * (100 * 1_000_000 // 16)
    store = ContextFileSystem(tmp_path, sync="never", format=form)
    [file] = store.save([result("call_1", text)])
    assert Path(file.path).stat().st_size >= 100_000_000
    assert ContextFileSystem(tmp_path, format=form).read("call_1") == text


@pytest.mark.parametrize(
    "text",
    [
        "lone \ud800",
        "\udfff",
        "\ud800\ud800 \udc00",
        "읽 \udead",
        "two halves \ud83d\ude00 are not \U0001f600",
        "\ud83d\ude00\ud83d\ude00\ude00",
        "\\ud83d\\ude00 \\\ud83d\ude00 \\u\ud83d\ude00",
        "\ud83d\ude00" * 100_000,
    ],
)
def test_the_index_is_read_by_programs_that_take_only_utf_8(text: str, tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path)
    origin = result(f"call {text}", "text").origin
    store.save([Content("tool_result/1.md", "text", origin=origin)])
    store.remember([{"record": "note", "text": text}])
    store.close()
    index = json.loads((tmp_path / ".policyctx/index.json").read_text("utf-8"))
    assert index["items"][0]["path"] == "tool_result/1.md"
    assert len(index["records"]) == 1
    again = ContextFileSystem(tmp_path)
    assert again.records() == [{"record": "note", "text": text}]
    again.save([Content("tool_result/2.md", "text", origin=result("call_2", "text").origin)])
    again.close()
    (tmp_path / ".policyctx/index.json").read_text("utf-8")
    assert ContextFileSystem(tmp_path).read(f"call {text}") == "text"
    assert ContextFileSystem(tmp_path).records() == [{"record": "note", "text": text}]
