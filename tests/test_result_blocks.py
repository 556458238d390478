"""A result that is a list of blocks is saved, shown, searched and restored as the text it holds."""

from __future__ import annotations

import asyncio
import base64
import importlib
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    ToolCallPart,
    ToolReturnPart,
)

from policyctx import Session, offload_tool_result, offload_tool_results
from policyctx.definitions.items import Message
from policyctx.errors import StoreError
from policyctx.integrations.bedrock_shape import BedrockShape
from policyctx.integrations.pydantic_ai import PydanticAIShape
from policyctx.messages.json_text import compact_json
from policyctx.messages.shapes.block_texts import joined_text
from policyctx.messages.shapes.built_in import Shapes
from policyctx.store.content import WriterStore
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.hollow import Hollow, hollow
from tests.conversations import (
    call,
    calls,
    chat_calls,
    chat_result,
    picture,
    results,
    session_of,
    user,
)
from tests.fuzz.memory_store import MemoryStore
from tests.policies import policy

POLICY = """
    model: {tokenizer: approximate}
    min_chars: 40
    items: {tool_result: {offload: true}}
    store: {sync: never}
    steps:
      - name: retire
        do: offload
        select: {types: [tool_result], keep_recent: 1}
        placeholder:
          text: "{lines} lines, {chars} characters in {store_path}: {head} … {tail}"
          head: {lines: 1}
          tail: {lines: 1}
          max_line_chars: 20
"""
LOG = "\n".join(f"line {n}: 値" for n in range(1, 1001))
OLD = Path(__file__).parent / "store/written_by_0_2"
DROPPED = Path(__file__).parent / "store/dropped_by_0_2"


def text(text: str, **more: Any) -> dict[str, Any]:
    return {"type": "text", "text": text, **more}


def session(root: Path, more: str = "") -> Session:
    return Session(policy(POLICY + more), root=root, session_id="s")


def restored(one: Session, key: str) -> Any:
    """What `restore` gives in another process."""
    return ContextFileSystem(one.store.root, session="s").restore(key)


def shown(messages: Any) -> list[str]:
    """The text in the place of each result."""
    blocks = [b for m in messages if isinstance(m["content"], list) for b in m["content"]]
    return [str(b["content"]) for b in blocks if b["type"] == "tool_result"]


def test_one_block_of_an_mcp_server_is_saved_as_its_lines(tmp_path: Path) -> None:
    messages = session_of([text(LOG)], "ok")
    one = session(tmp_path)
    made = one.apply(messages)
    [path] = made.files
    assert Path(path).read_text(encoding="utf-8") == LOG
    assert shown(made.messages)[0] == (
        f"1000 lines, {len(LOG)} characters in tool_result/Bash/c0.md: line 1: 値 … line 1000: 値"
    )
    assert ContextFileSystem(tmp_path, session="s").read("c0", lines=(900, 900)) == "line 900: 値\n"
    [found] = ContextFileSystem(tmp_path, session="s").search("line 900:")
    assert (found.line, found.text) == (900, "line 900: 値")
    assert restored(one, "c0") == messages[2]["content"][0]


LISTS: dict[str, tuple[list[Any], str]] = {
    "two texts": ([text(LOG), text("end")], f"{LOG}\nend"),
    "texts that end with a newline": ([text(f"{LOG}\n"), text("end\n")], f"{LOG}\n\nend\n"),
    "an empty text between": ([text(LOG), text(""), text("end")], f"{LOG}\n\nend"),
    "other keys": (
        [text(LOG, annotations=[{"audience": ["user"]}]), {"text": "end", "type": "text", "n": 1}],
        f"{LOG}\nend",
    ),
    "blocks that differ in a flag": ([text(LOG, n=1), text("end", n=True)], f"{LOG}\nend"),
    "a lone surrogate": ([text(LOG), text("\ud800 \udc00\ud83d")], f"{LOG}\n\ud800 \udc00\ud83d"),
    "an embedded file": (
        [text("see"), {"type": "resource", "resource": {"uri": "file:///log", "text": LOG}}],
        f"see\n{LOG}",
    ),
    "a block without a text": (
        [text(LOG), {"type": "tool_reference", "tool_name": "grep"}, text("end")],
        f'{LOG}\n{{"type":"tool_reference","tool_name":"grep"}}\nend',
    ),
    "texts that are JSON": ([text('{"a":1}'), picture("a" * 60), text(f"[{LOG}]")], ""),
    "search results": (
        [
            {"type": "search_result", "source": "u", "title": "t", "content": [text(LOG)]},
            {"type": "search_result", "source": "v", "title": "w", "content": [text("x")]},
        ],
        f"t\nu\n{LOG}\nw\nv\nx",
    ),
    "a text document": (
        [text("see"), {"type": "document", "source": {"type": "text", "data": LOG}, "title": "t"}],
        f"see\n{LOG}",
    ),
    "a document of blocks": (
        [
            text("see"),
            {
                "type": "document",
                "source": {"type": "content", "content": [text(LOG), picture(), text("x")]},
            },
        ],
        f"see\n{LOG}\nx",
    ),
    "a document of one text": (
        [{"type": "document", "source": {"type": "content", "content": LOG}}, text("end")],
        f"{LOG}\nend",
    ),
    "a small image": ([text(LOG), picture(), text("end")], f"{LOG}\nend"),
    "large images": ([picture("A" * 9000), text(LOG), picture("B" * 9000)], LOG),
    "100,000 blocks": ([text(f"{n}\n") for n in range(100_000)], ""),
}


@pytest.mark.parametrize("name", LISTS)
def test_the_list_is_restored_from_its_text(tmp_path: Path, name: str) -> None:
    content, expected = LISTS[name]
    one = session(tmp_path)
    messages = session_of(content, "ok")
    one.apply(messages)
    saved = one.store.read("c0")
    assert not expected or saved == expected
    one.close()
    again = ContextFileSystem(tmp_path, session="s")
    block = again.restore("c0")
    assert json.dumps(block) == json.dumps(messages[2]["content"][0])
    assert again.verify().is_clean
    [entry] = again.list()
    assert (entry.chars, entry.size) == (len(saved), len(saved.encode("utf-8", "surrogatepass")))
    state = [path.read_bytes() for path in tmp_path.glob(".policyctx/s/*.json*")]
    assert max(map(len, state)) < 9000
    assert not any(b"line 500" in raw or b"AAAAAAAAAA" in raw for raw in state)


def test_base64_text_of_an_image_is_not_searched(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.apply(session_of([text(LOG), picture("QUJD" * 4000)], "ok"))
    assert list(ContextFileSystem(tmp_path, session="s").search("QUJD")) == []
    assert [entry.item_id for entry in ContextFileSystem(tmp_path, session="s").list()] == ["c0"]


def test_cache_markers_are_no_part_of_the_list(tmp_path: Path) -> None:
    tool = {"type": "tool_reference", "tool_name": "grep"}
    marker = {"cache_control": {"type": "ephemeral"}}
    one = session(tmp_path)
    one.apply(session_of([text(LOG, **marker), {**tool, **marker}, text("end")], "ok"))
    assert restored(one, "c0")["content"] == [text(LOG), tool, text("end")]


def test_equal_texts_of_one_id_made_of_other_blocks_are_both_restored(tmp_path: Path) -> None:
    lists = [[text(f"{LOG}\nend")], [text(LOG), text("end")], [text(f"{LOG}\nend"), picture()]]
    messages = [user("task")]
    for content in lists:
        messages += [calls(("same", "Bash")), results(("same", content))]
    one = session(tmp_path)
    made = one.apply([*messages, calls(("new", "Bash")), results(("new", "ok"))])
    assert [restored(one, path)["content"] for path in made.files] == lists


def test_a_text_that_was_read_back_is_not_saved_again(tmp_path: Path) -> None:
    one = session(tmp_path)
    messages = session_of([text(LOG)], "ok")
    made = one.apply(messages)
    path = made.files[0]
    read = [call("r", "Read", {"file_path": path}), results(("r", [text(LOG)]))]
    rest = [call("z", "Read", {"file_path": "other"}), results(("z", "ok"))]
    again = one.apply([*messages, *read, *rest])
    files = [p for p in tmp_path.rglob("*.md") if p.is_file()]
    assert [p.read_text(encoding="utf-8") for p in files] == [LOG]
    assert shown(again.messages)[2].startswith("1000 lines")


def test_what_the_retention_keeps_can_be_restored(tmp_path: Path) -> None:
    one = session(tmp_path)
    messages = session_of([text(LOG), picture("A" * 9000)], "ok")
    one.apply(messages)
    one.close()
    later = ContextFileSystem(tmp_path, session="s", clock=lambda: 4e9)
    later.collect(max_age=1)
    assert later.restore("c0") == messages[2]["content"][0]
    later.collect(max_age=1, ended=True)
    assert [p for p in tmp_path.rglob("*") if p.is_file() and ".policyctx" not in p.parts] == []


def test_a_limit_of_contents_keeps_a_text_with_its_images(tmp_path: Path) -> None:
    one = session(tmp_path)
    messages = session_of(*([text(f"{i}\n{LOG}"), picture(f"{i}" * 9000)] for i in range(4)), "ok")
    one.apply(messages)
    one.close()
    later = ContextFileSystem(tmp_path, session="s", clock=lambda: 4e9)
    assert len(later.collect(max_contents=2, ended=True).removed) == 2
    assert [later.restore(f"c{i}") for i in (2, 3)] == [messages[i]["content"][0] for i in (6, 8)]


def test_a_copy_and_an_export_restore_the_list(tmp_path: Path) -> None:
    one = session(tmp_path / "a")
    content = [text(LOG), picture("A" * 9000)]
    one.apply(session_of(content, "ok"))
    one.close()
    store = ContextFileSystem(tmp_path / "a", session="s")
    store.export(tmp_path / "s.tar.zst")
    for source in (tmp_path / "s.tar.zst", store):
        into = ContextFileSystem(tmp_path / f"to-{type(source).__name__}")
        into.import_from(source)
        assert into.restore("c0") == {
            "type": "tool_result",
            "tool_use_id": "c0",
            "content": content,
        }


def test_blocks_that_are_gone_are_an_error(tmp_path: Path) -> None:
    one = session(tmp_path)
    one.apply(session_of([text(LOG), picture("A" * 9000)], "ok"))
    [rest] = tmp_path.rglob("*.blocks.json")
    rest.unlink()
    store = ContextFileSystem(tmp_path, session="s")
    with pytest.raises(StoreError):
        store.restore("c0")
    assert store.read("c0") == LOG
    assert not store.verify().is_clean


@pytest.mark.parametrize("state", ["state: none", "format: envelope", "on_conflict: overwrite"])
def test_no_image_is_lost_whatever_the_store(tmp_path: Path, state: str) -> None:
    text_of = POLICY.replace("store: {sync: never}", f"store: {{sync: never, {state}}}")
    one = Session(policy(text_of), root=tmp_path, session_id="s")
    one.apply(session_of([text(LOG), picture("A" * 90)], "ok"))
    raws = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*") if path.is_file()]
    assert any("A" * 90 in raw for raw in raws)


def test_a_writer_gets_what_the_text_is_without(tmp_path: Path) -> None:
    written: dict[str, str] = {}

    class Writer:
        def write(self, path: str, text: str) -> None:
            written[path] = text

    store = WriterStore(tmp_path, Writer())
    Session(policy(POLICY), store=store, session_id="s").apply(
        session_of([text(LOG), picture("A" * 90)], [text(LOG)], "ok")
    )
    texts = {Path(path).name: text for path, text in written.items()}
    assert texts["c0.md"] == texts["c1.md"] == LOG
    assert "A" * 90 in texts["c0.md.blocks.json"]
    assert len(texts) == 3


FOLDER = "tool_result/Bash/"


def test_a_store_of_the_caller_that_saves_texts_gets_what_they_are_without() -> None:
    store = MemoryStore()
    content = [text(LOG), picture("A" * 90)]
    Session(policy(POLICY), store=store, session_id="s").apply(
        session_of(content, [text(LOG)], [text(LOG), picture("B" * 90)], "ok")
    )
    assert [name.removeprefix(FOLDER) for name in sorted(store.files)] == [
        "c0.md", "c0.md.blocks.json", "c1.md", "c2.md", "c2.md.blocks.json",
    ]  # fmt: skip
    rest = Hollow.of(json.loads(store.files[f"{FOLDER}c0.md.blocks.json"]))
    assert rest is not None
    assert rest.filled(store.files[f"{FOLDER}c0.md"])["content"] == content  # type: ignore[call-overload,index]


def test_an_asynchronous_turn_loses_no_image_in_a_store_of_the_caller() -> None:
    store = MemoryStore()
    given = session_of([text(LOG), picture("A" * 90)], "ok")
    asyncio.run(Session(policy(POLICY), store=store, session_id="s").apply_async(given))
    assert "A" * 90 in store.files[f"{FOLDER}c0.md.blocks.json"]


def test_a_store_that_keeps_blocks_gets_no_further_contents() -> None:
    class Keeping(MemoryStore):
        keeps_blocks = True

    store = Keeping()
    given = session_of([text(LOG), picture("A" * 90)], "ok")
    Session(policy(POLICY), store=store, session_id="s").apply(given)
    assert [*store.files] == [f"{FOLDER}c0.md"]


def test_equal_texts_of_other_blocks_lose_no_image_in_a_store_of_the_caller() -> None:
    store = MemoryStore()
    given = [
        user(),
        *session_of([text(LOG), picture("A" * 90)])[1:],
        *session_of([text(LOG), picture("B" * 90)])[1:],
        *session_of("", "ok")[3:],
    ]
    Session(policy(POLICY), store=store, session_id="s").apply(given)
    kept = "".join(store.files.values())
    assert "A" * 90 in kept
    assert "B" * 90 in kept


@pytest.mark.parametrize("restarts", [False, True])
def test_the_same_id_and_text_with_another_image_later_is_another_result(
    restarts: bool, tmp_path: Path
) -> None:
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    for image in ("A" * 90, "B" * 90, "A" * 90):
        if restarts:
            session.close()
            session = Session(policy(POLICY), root=tmp_path, session_id="s")
        session.apply(session_of([text(LOG), picture(image)], "ok"))
    store = session.store
    assert isinstance(store, ContextFileSystem)
    kept = json.dumps([store.restore(entry.path) for entry in store.list()])
    assert "A" * 90 in kept
    assert "B" * 90 in kept
    assert len(store.list()) == 2


@pytest.mark.parametrize(
    "beside",
    [
        {"items": [{"type": "data", "uri": f"data:image/png;base64,{'A' * 90}"}]},
        {"parts": [{"inline_data": {"mime_type": "image/png", "data": "A" * 90}}]},
        {"files": [{"image": {"format": "png", "source": {"bytes": "A" * 90}}}]},
    ],
)
def test_binary_content_beside_the_text_of_a_result_is_not_lost(beside: dict[str, Any]) -> None:
    assert hollow({"result": LOG, **beside}, LOG).holds_more
    assert not hollow({"result": LOG, "call_id": "c0", "items": [{"type": "x"}]}, LOG).holds_more


IN_TWO_STEPS = POLICY.replace(
    "items: {tool_result: {offload: true}}",
    "items: {tool_result: {offload: true}, image: {offload: true}}",
).replace(
    "steps:",
    """steps:
      - {name: pictures, do: DO, select: {types: [image]}PLACEHOLDER}""",
)


@pytest.mark.parametrize("do", ["offload", "drop"])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("returned", [False, True])
def test_an_image_that_left_before_its_result_is_not_lost(
    do: str, *, restarts: bool, returned: bool, tmp_path: Path
) -> None:
    placeholder = "" if do == "drop" else ', placeholder: "[picture in {relative_path}]"'
    rules = policy(IN_TWO_STEPS.replace("DO", do).replace("PLACEHOLDER", placeholder))
    content = [text(LOG), picture("A" * 900), text("the end")]
    memory, given = MemoryStore(), session_of(content)
    for store in (ContextFileSystem(tmp_path, session="s", sync="never"), memory):
        one = Session(rules, store=store, session_id="s")
        before = one.apply(given)
        assert "A" * 900 not in json.dumps(list(before.messages))
        if restarts:
            one = Session(rules, store=store, session_id="s")
        more = [calls(("c1", "Bash")), results(("c1", "ok"))]
        after = one.apply([*(before.messages if returned else given), *more])
        assert LOG not in json.dumps(list(after.messages), ensure_ascii=False)
        assert any(one.read(path).startswith(LOG) for path in after.files)
    kept = "".join(memory.files.values())
    assert "A" * 900 in kept
    assert "the end" in kept
    filed = ContextFileSystem(tmp_path, session="s")
    assert any("A" * 900 in json.dumps(filed.restore(entry.path)) for entry in filed.list())


def test_a_placeholder_in_a_result_is_saved_with_what_stands_beside_it() -> None:
    store = MemoryStore()
    shown = "[image offloaded to pictures/1.md]"
    content = [text(LOG), text(shown), picture("B" * 90)]
    Session(policy(POLICY), store=store, session_id="s").apply(session_of(content, "ok"))
    assert store.files[f"{FOLDER}c0.md"] == f"{LOG}\n{shown}"
    assert "B" * 90 in store.files[f"{FOLDER}c0.md.blocks.json"]


def test_a_policy_may_ask_for_the_json_of_the_list(tmp_path: Path) -> None:
    content = [text(LOG), picture()]
    json_policy = POLICY.replace("{sync: never}", "{sync: never, blocks: json}")
    one = Session(policy(json_policy), root=tmp_path, session_id="s")
    made = one.apply(session_of(content, "ok"))
    assert one.store.read("c0") == compact_json(content)
    assert shown(made.messages)[0].startswith(f"1 lines, {len(compact_json(content))} char")
    assert restored(one, "c0")["content"] == content


def test_the_calls_of_the_documents_write_the_json_of_a_list(tmp_path: Path) -> None:
    content = [text(f"{LOG} \ud800"), picture()]
    expected = json.dumps(content, ensure_ascii=False, separators=(",", ":"))
    expected = expected.replace("\ud800", "\\ud800")  # as `JSON.stringify` writes it
    message = results(("a", content))
    one = offload_tool_result(message, session_id="s", output_dir=tmp_path)
    many = offload_tool_results([message], output_dir=tmp_path)
    for path in (one.file, *many.files):
        assert Path(path).read_text(encoding="utf-8") == expected
    assert many.freed_chars == len(expected)


@pytest.mark.parametrize("halves", ["\ud83d\ude00", "\ud83d\ude00\ude00 😀 \\ud83d\\ude00"])
def test_two_halves_of_a_character_are_saved_as_json_in_utf_8_and_come_back(
    tmp_path: Path, halves: str
) -> None:
    content = [text(f"{LOG} {halves}"), picture("a" * 5000), {"type": "other", "name": halves}]
    json_policy = POLICY.replace("{sync: never}", "{sync: never, blocks: json}")
    one = Session(policy(json_policy), root=tmp_path, session_id="s")
    [path] = one.apply(session_of(content, "ok")).files
    assert json.loads(Path(path).read_text(encoding="utf-8"))[1] == content[1]
    assert restored(one, "c0")["content"] == content


@pytest.mark.parametrize("halves", ["\ud83d\ude00", "\ude00 \ud83d"])
def test_a_list_beside_its_text_is_saved_as_json_in_utf_8(tmp_path: Path, halves: str) -> None:
    content = [text(LOG), picture("a" * 5000) | {"title": halves}]
    one = session(tmp_path)
    one.apply(session_of(content, "ok"))
    [rest] = tmp_path.rglob("*.blocks.json")
    json.loads(rest.read_text(encoding="utf-8"))
    assert restored(one, "c0")["content"] == content


def test_decisions_of_an_earlier_version_stay(tmp_path: Path) -> None:
    given = json.loads((OLD / "messages.json").read_text(encoding="utf-8"))
    root = Path(shutil.copytree(OLD / "root", tmp_path / "root"))
    one = session(root)
    made = one.apply(given["messages"])
    assert list(made.messages) == given["returned"]
    assert made.files == ()
    first = given["messages"][2]["content"][0]
    assert one.store.read("c0") == compact_json(first["content"])
    assert restored(one, "c0") == first
    longer = [*given["messages"], calls(("z", "Bash")), results(("z", "ok"))]
    again = one.apply(longer)
    assert list(again.messages[: len(given["returned"]) - 1]) == given["returned"][:-1]
    assert shown(again.messages)[2].startswith("1000 lines")


DROP = """
      - {name: make-room, do: drop, select: {types: [tool_result], keep_recent: 2}}
"""


def test_dropped_results_and_lone_surrogates_of_an_earlier_version_stay_decided(
    tmp_path: Path,
) -> None:
    given = json.loads((DROPPED / "messages.json").read_text(encoding="utf-8"))
    root = Path(shutil.copytree(DROPPED / "root", tmp_path / "root"))
    drops = POLICY.replace("never", 'never, path: "{item_type}/{item_id}.txt"') + DROP
    made = Session(policy(drops), root=root, session_id="s").apply(given["messages"])
    assert list(made.messages) == given["returned"]
    assert (made.plan.new, made.files) == ((), ())


@pytest.mark.parametrize("blocks", ["text", "json"])
def test_a_restarted_session_does_not_drop_results_in_blocks_again(
    tmp_path: Path, blocks: str
) -> None:
    drops = POLICY.replace("sync: never", f"sync: never, blocks: {blocks}") + DROP
    messages = session_of([text(LOG)], [text(LOG), text("end")], "ok")
    before = Session(policy(drops), root=tmp_path, session_id="s").apply(messages)
    assert before.plan.new
    again = Session(policy(drops), root=tmp_path, session_id="s").apply(messages)
    assert (again.messages, again.plan.new) == (before.messages, ())


BLOCKS = st.lists(
    st.one_of(
        st.builds(text, st.text(alphabet='ab\n{}["\ud800値', max_size=6)),
        st.builds(lambda t: text(t, n=1), st.text(alphabet="a\n{", max_size=3)),
        st.just(picture()),
        st.just({"type": "tool_reference", "tool_name": "a"}),
        st.text(alphabet="a\n", max_size=3),
        st.just({"type": "resource", "resource": {"uri": "u", "blob": "QQ=="}}),
    ),
    max_size=6,
)


@given(blocks=BLOCKS)
def test_every_list_is_restored_from_its_text(blocks: list[Any]) -> None:
    block: Any = {"type": "tool_result", "tool_use_id": "a", "content": blocks}
    joined = joined_text(blocks)
    for saved in {joined if joined is not None else "", compact_json(blocks)}:
        values = json.loads(json.dumps(hollow(block, saved).as_json()))
        described = Hollow.of(values)
        assert described is not None
        assert json.dumps(described.filled(saved)) == json.dumps(block)


CONTENT = [text(LOG), text("end")]
PARTS = [{"type": "input_text", "text": LOG}, {"type": "output_text", "text": "end"}]


def responses(kind: str, output: Any) -> list[Any]:
    call_kind = kind.removesuffix("_output")
    field = "input" if call_kind == "custom_tool_call" else "arguments"
    return [
        {"type": "message", "role": "user", "content": "task"},
        {"type": call_kind, "call_id": "a", "name": "Bash", field: "{}"},
        {"type": kind, "call_id": "a", "output": output},
        {"type": call_kind, "call_id": "b", "name": "Bash", field: "{}"},
        {"type": kind, "call_id": "b", "output": "ok"},
    ]


def chat(content: Any) -> list[Any]:
    def called(id_: str) -> dict[str, Any]:
        function = {"name": "Bash", "arguments": "{}"}
        made = [{"id": id_, "type": "function", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": made}

    return [
        user("task"),
        called("a"),
        {"role": "tool", "tool_call_id": "a", "content": content},
        called("b"),
        {"role": "tool", "tool_call_id": "b", "content": "ok"},
    ]


def converse(content: Any) -> list[Any]:
    def pair(id_: str, content: Any) -> list[Any]:
        called = {"toolUse": {"toolUseId": id_, "name": "Bash", "input": {}}}
        result = {"toolResult": {"toolUseId": id_, "content": content, "status": "success"}}
        return [
            {"role": "assistant", "content": [called]},
            {"role": "user", "content": [result]},
        ]

    task = {"role": "user", "content": [{"text": "task"}]}
    return [task, *pair("a", content), *pair("b", [{"text": "ok"}])]


def google(response: Any) -> list[Any]:
    types = pytest.importorskip("google.genai.types")

    def pair(id_: str, response: Any) -> list[Any]:
        called = types.FunctionCall(id=id_, name="Bash", args={})
        made = types.FunctionResponse(id=id_, name="Bash", response=response)
        return [
            types.Content(role="model", parts=[types.Part(function_call=called)]),
            types.Content(role="user", parts=[types.Part(function_response=made)]),
        ]

    task = types.Content(role="user", parts=[types.Part(text="task")])
    return [task, *pair("a", response), *pair("b", {"output": "ok"})]


def langchain(content: Any) -> list[Any]:
    found = pytest.importorskip("langchain_core.messages")

    def pair(id_: str, content: Any) -> list[Any]:
        called = {"id": id_, "name": "Bash", "args": {}}
        return [
            found.AIMessage("", tool_calls=[called]),
            found.ToolMessage(content, tool_call_id=id_),
        ]

    return [found.HumanMessage("task"), *pair("a", content), *pair("b", "ok")]


def pydantic(content: Any) -> list[Any]:
    found = pytest.importorskip("pydantic_ai.messages")

    def pair(id_: str, content: Any) -> list[Any]:
        called = found.ToolCallPart("Bash", {}, tool_call_id=id_)
        return [
            found.ModelResponse([called]),
            found.ModelRequest([found.ToolReturnPart("Bash", content, tool_call_id=id_)]),
        ]

    task = found.ModelRequest([found.UserPromptPart("task")])
    return [task, *pair("a", content), *pair("b", "ok")]


def shapes_of(host: str) -> list[Any]:
    module, name = {
        "converse": ("bedrock_shape", "BedrockShape"),
        "google": ("google_contents", "GoogleShape"),
        "langchain": ("langchain", "LangChainShape"),
        "pydantic": ("pydantic_ai", "PydanticAIShape"),
    }.get(host, ("", ""))
    if not name:
        return []
    return [getattr(importlib.import_module(f"policyctx.integrations.{module}"), name)()]


MCP = {"content": CONTENT, "isError": False}
HOSTS: dict[str, tuple[Any, Any]] = {
    "anthropic": (lambda c: session_of(c, "ok"), CONTENT),
    "chat": (chat, CONTENT),
    "function_call_output": (lambda c: responses("function_call_output", c), PARTS),
    "custom_tool_call_output": (lambda c: responses("custom_tool_call_output", c), PARTS),
    "converse": (converse, [{"text": LOG}, {"text": "end"}]),
    "google": (google, MCP),
    "google in a result": (google, {"result": CONTENT}),
    "google of an MCP server": (google, {"result": {**MCP, "resultType": "complete"}}),
    "langchain": (langchain, CONTENT),
    "pydantic": (pydantic, [LOG, "end"]),
}


@pytest.mark.parametrize("host", HOSTS)
def test_every_shape_saves_the_texts(tmp_path: Path, host: str) -> None:
    made, content = HOSTS[host]
    messages = made(content)
    shapes = shapes_of(host.partition(" ")[0])
    one = Session(policy(POLICY), root=tmp_path, session_id="s", shapes=shapes)
    applied = one.apply(messages)
    [path] = applied.files
    assert Path(path).read_text(encoding="utf-8") == f"{LOG}\nend"
    assert "1001 lines" in str(applied.messages[2])
    assert one.apply(messages).messages == applied.messages
    store = ContextFileSystem(tmp_path, session="s")
    block = store.restore(path)
    assert contains(block, content)
    assert len(json.dumps(store.find(path).as_json())) < 1500  # type: ignore[union-attr]
    again = Session(policy(POLICY), root=tmp_path, session_id="s", shapes=shapes)
    assert again.apply(messages).messages == applied.messages


def test_the_result_object_of_an_mcp_session_is_read_as_its_texts(tmp_path: Path) -> None:
    mcp = pytest.importorskip("mcp.types")
    found = mcp.CallToolResult(content=CONTENT)
    one = Session(policy(POLICY), root=tmp_path, session_id="s", shapes=shapes_of("google"))
    messages = google({"result": found})
    applied = one.apply(messages)
    [path] = applied.files
    assert Path(path).read_text(encoding="utf-8") == f"{LOG}\nend"
    assert applied.messages[2].parts[0].function_response.response.keys() == {"result"}
    assert contains(restored(one, path), CONTENT[0]["text"])
    assert messages[2].parts[0].function_response.response == {"result": found}


def contains(block: Any, content: Any) -> bool:
    inner = block.values() if isinstance(block, dict) else block if isinstance(block, list) else ()
    return bool(block == content) or any(contains(one, content) for one in inner)


def test_an_image_beside_texts_leaves_in_converse_and_mcp(tmp_path: Path) -> None:
    image = {"image": {"format": "png", "source": {"bytes": b"x" * 9000}}}
    mcp = {"type": "image", "data": "QUJD" * 3000, "mimeType": "image/png"}
    for host, messages in (
        ("converse", converse([{"text": LOG}, image, {"json": {"a": 1}}])),
        ("google", google({"content": [text(LOG), mcp]})),
    ):
        root = tmp_path / host
        one = Session(policy(POLICY), root=root, session_id="s", shapes=shapes_of(host))
        [path] = one.apply(messages).files
        end = '\n{"json":{"a":1}}' if host == "converse" else ""
        assert Path(path).read_text(encoding="utf-8") == LOG + end
        assert "QUJD" * 9 in str(restored(one, path)) or host == "converse"
        assert "eHh4eHh4" in str(restored(one, path)) or host == "google"


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_bytes_in_a_content_of_gemini_are_saved_as_base64(tmp_path: Path, kind: type) -> None:
    types = pytest.importorskip("google.genai.types")
    shot = {"inline_data": {"mime_type": "image/png", "data": kind(b"\xfb\xef\xff\x89PNG" * 99)}}
    response = {"content": [text(LOG)]}
    answer = {"function_response": {"name": "f", "response": response, "parts": [shot]}}
    messages = [
        {"role": "user", "parts": [{"text": "go"}, shot]},
        {"role": "model", "parts": [{"function_call": {"name": "f", "args": {}}}]},
        {"role": "user", "parts": [answer]},
    ]
    compiled = policy("""
        items: {tool_result: {offload: true}, image: {offload: true}}
        steps: [{name: all, do: offload, must_shrink: false, select: {keep_recent: 0}}]
    """)
    one = Session(compiled, root=tmp_path, session_id="s")
    saved = one.apply([*messages, {"role": "user", "parts": [{"text": "on"}]}]).files
    back = [types.Part.model_validate(restored(one, path)) for path in saved]
    assert back[0].inline_data.data == bytes(shot["inline_data"]["data"])
    assert back[1].function_response.parts[0].inline_data.data == back[0].inline_data.data


OF_HOSTS = {"bedrock": (BedrockShape(),), "pydantic_ai": (PydanticAIShape(),)}
PNG = "iVBORw0KGgo="


def asked(where: str, id_: str) -> Message:
    """A call of a tool that takes pictures."""
    if where == "bedrock":
        use = {"toolUseId": id_, "name": "shot", "input": {}}
        return {"role": "assistant", "content": [{"toolUse": use}]}
    return {
        "anthropic": calls((id_, "shot")),
        "chat": chat_calls((id_, "shot", "{}")),
        "responses": {"type": "function_call", "call_id": id_, "name": "shot", "arguments": "{}"},
        "pydantic_ai": ModelResponse([ToolCallPart("shot", {}, id_)]),
    }[where]


def answered(where: str, id_: str, *words: str) -> Message:
    """Its result: words, and always the same picture."""
    url = f"data:image/png;base64,{PNG}"
    content: list[Any] = [text(one) for one in words]
    if where == "anthropic":
        return results((id_, [*content, picture(PNG)]))
    if where == "chat":
        return chat_result(id_, [*content, {"type": "image_url", "image_url": {"url": url}}])
    if where == "responses":
        content = [{"type": "input_text", "text": one} for one in words]
        output = [*content, {"type": "input_image", "image_url": url}]
        return {"type": "function_call_output", "call_id": id_, "output": output}
    if where == "bedrock":
        content = [{"text": one} for one in words]
        shown = {"image": {"format": "png", "source": {"bytes": PNG}}}
        result = {"toolUseId": id_, "content": [*content, shown], "status": "success"}
        return {"role": "user", "content": [{"toolResult": result}]}
    shot = BinaryContent(data=b"\x89PNG", media_type="image/png")
    return ModelRequest([ToolReturnPart("shot", [*words, shot], id_)])


@pytest.mark.parametrize("words", [(), ("one",), ("one\ntwo", "[seen]")])
@pytest.mark.parametrize("more", ["", "blocks: json"])
@pytest.mark.parametrize("where", ["anthropic", "chat", "responses", *OF_HOSTS])
def test_a_picture_that_comes_again_is_new_after_a_restart(
    where: str, more: str, words: tuple[str, ...]
) -> None:
    """A call is answered twice, and a placeholder stands for the picture in the first answer."""
    compiled = policy(f"""\
        items: {{image: {{offload: true}}}}
        store: {{sync: never, {more}}}
        steps:
          - name: old
            do: clear
            must_shrink: false
            select: {{types: [image], keep_recent: 1}}
            placeholder: "[old]"
        """)
    shapes, store = OF_HOSTS.get(where, ()), MemoryStore()
    live = Session(compiled, store=store, session_id="s", shapes=shapes)
    pairs = [(asked(where, one), answered(where, one, *words)) for one in ("a", "b")]
    back = live.apply([user(), *pairs[0], *pairs[1]]).messages
    given = [*back, user(), answered(where, "a", "again")]
    restarted = Session(compiled, store=store.copy(), session_id="s", shapes=shapes)
    left = [
        [*map(Shapes(shapes).comparable, one.apply(given).messages)] for one in (live, restarted)
    ]
    assert str(left[0]).count("[old]") == 2
    assert left[0] == left[1]


DATA = "QUJD" * 3000
BINARY: list[tuple[str, Any]] = [
    ("anthropic", {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
    ("chat", {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
    ("chat", {"type": "video_url", "video_url": {"url": f"data:video/mp4;base64,{DATA}"}}),
    ("converse", {"video": {"format": "mp4", "source": {"bytes": base64.b64decode(DATA)}}}),
    ("google", {"type": "audio", "data": DATA, "mimeType": "audio/wav"}),
    ("langchain", {"type": "audio", "base64": DATA, "mime_type": "audio/wav"}),
    ("langchain", {"type": "video", "base64": DATA, "mime_type": "video/mp4"}),
    ("langchain", {"type": "text-plain", "base64": DATA, "mime_type": "text/plain"}),
    ("pydantic", "video/mp4"),
    ("pydantic", "audio/wav"),
]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "audio", "title": "Track", "duration": 3},
        {"type": "video", "id": "v1", "name": "Intro"},
    ],
)
def test_a_list_of_sounds_by_name_is_a_text(block: dict[str, Any]) -> None:
    assert joined_text([text("a"), block]) == f"a\n{compact_json(block)}"


@pytest.mark.parametrize("kind", ["image", "video", "audio", "document"])
def test_a_medium_of_bedrock_is_in_no_text(kind: str) -> None:
    block = {kind: {"format": "x", "source": {"bytes": DATA}}}
    assert joined_text([{"text": "a"}, block, {"text": "b"}]) == "a\nb"


@pytest.mark.parametrize(("host", "block"), BINARY)
def test_sounds_and_videos_are_not_in_the_text(tmp_path: Path, host: str, block: Any) -> None:
    made, content = HOSTS[host]
    if host == "pydantic":
        found = pytest.importorskip("pydantic_ai.messages")
        block = found.BinaryContent(base64.b64decode(DATA), media_type=block)
    listed = [LOG, block, "end"] if host == "pydantic" else [*CONTENT[:1], block, *CONTENT[1:]]
    if host == "converse":
        listed = [content[0], block, content[1]]
    messages = made({"content": listed} if host == "google" else listed)
    shapes = shapes_of(host)
    one = Session(policy(POLICY), root=tmp_path, session_id="s", shapes=shapes)
    [item] = (
        i
        for i in one.plan(messages).conversation.items
        if i.tool_use_id in {"a", "c0"} and i.kind == "tool_result"
    )
    [path] = one.apply(messages).files
    assert Path(path).read_text(encoding="utf-8") == f"{LOG}\nend"
    assert DATA in json.dumps(restored(one, path))
    assert DATA not in item.counted


DOCUMENT = {"format": "txt", "name": "notes"}
SEARCH = {"title": "a page", "source": "https://a.example", "citations": {"enabled": True}}


@pytest.mark.parametrize(
    ("host", "blocks", "expected"),
    [
        ("converse", [{"document": {**DOCUMENT, "source": {"text": LOG}}}, {"text": "end"}], LOG),
        (
            "converse",
            [{"document": {**DOCUMENT, "source": {"content": [{"text": LOG}]}}}, {"text": "end"}],
            LOG,
        ),
        (
            "converse",
            [{"searchResult": {**SEARCH, "content": [{"text": LOG}]}}, {"text": "end"}],
            f"a page\nhttps://a.example\n{LOG}",
        ),
        ("langchain", [{"type": "text-plain", "text": LOG}, text("end")], LOG),
    ],
)
def test_documents_and_search_results_are_lines_of_the_text(
    tmp_path: Path, host: str, blocks: Any, expected: str
) -> None:
    made, _ = HOSTS[host]
    one = Session(policy(POLICY), root=tmp_path, session_id="s", shapes=shapes_of(host))
    [path] = one.apply(made(blocks)).files
    assert Path(path).read_text(encoding="utf-8") == f"{expected}\nend"
    assert contains(restored(one, path), blocks)


def test_a_document_leaves_with_the_text_that_is_its_own_placeholder(tmp_path: Path) -> None:
    data = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
    content = [text("ok"), {"type": "document", "source": data}]
    compiled = policy("""\
        min_chars: 0
        items: {tool_result: {offload: true}}
        store: {sync: never}
        steps:
          - name: old
            do: offload
            select: {types: [tool_result]}
            placeholder: {text: "{head}", head: {chars: 4}}
        """)
    one = Session(compiled, root=tmp_path, session_id="s")
    messages = session_of(content)
    assert one.apply(messages).messages == session_of("ok")
    assert restored(one, "c0")["content"] == content


def test_a_later_result_with_the_id_and_words_of_a_placeholder_is_no_placeholder_if_it_has_media(
    tmp_path: Path,
) -> None:
    compiled = policy("""\
        min_chars: 0
        items: {tool_result: {offload: true}, image: {offload: true}}
        store: {sync: never}
        steps:
          - name: old
            do: offload
            must_shrink: false
            select: {types: [tool_result]}
            placeholder: {text: "{head}", head: {chars: 4}}
        """)
    one = Session(compiled, root=tmp_path, session_id="s")
    one.apply([user(), call("again", "read", {}), results(("again", "ok")), user()])
    content = [picture("QUJD"), text("ok")]
    later = [user("Next."), call("again", "read", {}), results(("again", content)), user()]
    [path] = one.apply(later).files
    assert contains(restored(one, path), content)


def test_a_message_whose_text_is_its_own_placeholder_stays_the_same_object(tmp_path: Path) -> None:
    compiled = policy("""\
        min_chars: 0
        items: {tool_call: {offload: true}, assistant_message: {offload: true}}
        store: {sync: never}
        steps:
          - name: words
            do: clear
            must_shrink: false
            select: {types: [assistant_message], keep_recent: 1}
            placeholder: {text: "{head}", head: {chars: 4}}
          - {name: calls, do: clear, select: {types: [tool_call]}, placeholder: "-"}
        """)
    one = Session(compiled, root=tmp_path, session_id="s")
    said = {
        "role": "assistant",
        "content": [text("I do"), *call("a", "Bash", {"command": LOG})["content"]],
    }
    back = one.apply([user(), said, results(("a", "done")), user()]).messages
    assert back[1] != said
    more = [{"role": "assistant", "content": "and so on"}, user()]
    again = one.apply([*back, *more])
    assert [d.item.text for d in again.plan.new] == ["I do"]
    assert again.messages[1] is back[1]


@pytest.mark.parametrize("leaves", ["tool_result", "image"])
@pytest.mark.parametrize("is_listed", [False, True])
def test_a_file_in_a_result_of_pydantic_ai_is_saved_once(
    leaves: str, is_listed: bool, tmp_path: Path
) -> None:
    rules = policy(
        f"""
        min_chars: 0
        items: {{tool_result: {{offload: true}}, image: {{offload: true}}}}
        store: {{sync: never}}
        steps: [{{name: a, do: offload, select: {{types: [{leaves}]}}}}]
        """
    )
    shape = PydanticAIShape()
    shot = BinaryContent(data=b"picture" * 900, media_type="image/png")
    part = ToolReturnPart("shot", [shot] if is_listed else shot, "c0")
    given = [ModelResponse([ToolCallPart("shot", {}, "c0")]), ModelRequest([part])]
    with Session(rules, root=tmp_path, session_id="s", shapes=[shape]) as session:
        [new] = session.apply(given).plan.new
    assert new.file is not None
    path = (0, 0) if leaves == "image" else (0,)
    store = ContextFileSystem(tmp_path, session="s")
    assert store.restore(new.file.path) == shape.block(given[1], path)
    shown = base64.b64encode(shot.data)
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert sum(file.read_bytes().count(shown) for file in files) == 1


@pytest.mark.parametrize("form", [{}, {"indent": 1}, {"separators": (",", ":")}])
@pytest.mark.parametrize("value", [{"a": [1, "é", None]}, ["\ud800", {"b": 1.0}], [], [True]])
def test_a_block_has_no_copy_of_what_is_in_its_text_as_json(value: Any, form: Any) -> None:
    for is_ascii in (False, True):
        shown = json.dumps(value, ensure_ascii=is_ascii, **form)
        bare = hollow({"id": "c0", "content": value}, shown)
        assert (bare.block, bare.kind) == ({"id": "c0", "content": None}, "json")
        assert bare.filled(shown) == {"id": "c0", "content": value}
