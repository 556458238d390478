"""The message objects of four hosts, through a session with a shape for each."""

from __future__ import annotations

import copy
import importlib
import json
import re
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import pytest

from policyctx import MessagesError, Result, Session
from policyctx.compaction.assembly import archived_messages
from policyctx.messages.reading import items_of
from policyctx.messages.shapes.built_in import Shapes
from policyctx.replay.reading import recordings_in
from tests.hosts.bedrock import Bedrock, picture
from tests.hosts.gemini import Gemini
from tests.hosts.hosts import Host
from tests.policies import CALLS, RESULTS, STORE, policy

TEXTS = f"""\
{STORE}
min_chars: 100
items: {{assistant_message: {{offload: true}}}}
placeholder: "see {{path}}"
steps: [{{name: s, do: offload, must_shrink: false, select: {{types: [assistant_message]}}}}]
"""
PICTURES = f"""\
{STORE}
items: {{image: {{offload: true}}}}
placeholder: "see {{path}}"
steps: [{{name: s, do: offload, must_shrink: false, select: {{types: [image]}}}}]
"""
CLEAR = f"""\
{STORE}
min_chars: 10
items: {{tool_result: {{offload: true}}}}
steps:
  - {{name: s, do: clear, must_shrink: false, select: {{types: [tool_result], keep_recent: 1}}}}
"""
DROP = f"""\
{STORE}
steps: [{{name: s, do: drop, select: {{types: [tool_call], keep_recent: 1}}}}]
"""
COMPACT = f"""\
{STORE}
compaction: {{keep_recent: {{messages: 1}}}}
steps: [{{name: s, do: compact, when: {{messages: {{at_least: 6}}}}}}]
"""
EACH_POLICY = pytest.mark.parametrize(
    "text",
    [RESULTS, CALLS, TEXTS, CLEAR, DROP, COMPACT],
    ids=["offload", "calls", "texts", "clear", "drop", "compact"],
)


def hosts() -> Iterator[Any]:
    """Yield the module and the name of each host of this folder whose packages are installed."""
    own = {*sys.stdlib_module_names, "policyctx", "tests"}
    for file in sorted(Path(__file__).parent.glob("*.py")):
        source = file.read_text(encoding="utf-8")
        packages = {*re.findall(r"^(?:from|import) (\w+)", source, re.MULTILINE)} - own - {"pytest"}
        if all(map(find_spec, packages)):
            # A package takes a second to import.
            marks = pytest.mark.slow if packages else ()
            for name in re.findall(r"^class (\w+)\(.*\bHost\):", source, re.MULTILINE):
                yield pytest.param(f"{file.stem}.{name}", id=name, marks=marks)


@pytest.fixture(params=[*hosts()])
def host(request: pytest.FixtureRequest) -> Host:
    module, name = request.param.split(".")
    made: Host = getattr(importlib.import_module(f"tests.hosts.{module}"), name)()
    return made


def conversation(host: Host, *, opaque: str = "") -> list[Any]:
    """A task, three replies with a call each, and their results; the first result is long."""
    messages = [host.user("the task")]
    for name, found in (("a", "字" * 150), ("b", "y" * 20), ("c", "z" * 30)):
        call = (name, "read", {"path": f"{name}.py", "why": "w" * 200})
        messages.append(host.reply("t" * 120, [call], opaque=opaque))
        messages += host.results((name, "read", found))
    return [*messages, host.user("go on")]


def under(text: str, folder: Path, host: Host) -> Session:
    return Session(
        policy(text), root=folder, session_id="s", shapes=[host.shape], clock=lambda: 0.0
    )


def read(host: Host, messages: Any) -> list[tuple[str, str]]:
    """The kind and the text of each part, as the shape reads them."""
    return [(p.kind, str(p.text)) for message in messages for p in host.shape.parts(message)]


def plain(host: Host, messages: Any) -> Any:
    return [host.shape.plain(message) for message in messages]


def changed(result: Result, given: list[Any]) -> list[int]:
    """The positions of the messages that are other objects than those given."""
    pairs = enumerate(zip(result.messages, given, strict=True))
    return [i for i, (new, old) in pairs if new is not old]


def test_an_offloaded_result_is_a_new_object_and_all_others_are_the_same(
    host: Host, tmp_path: Path
) -> None:
    messages = conversation(host)
    before = copy.deepcopy(messages)
    session = under(RESULTS, tmp_path, host)
    assert [d.item.tool for d in session.plan(messages).new] == ["read"]
    result = session.apply(messages)
    path = tmp_path / "tool_result/read/a.md"
    assert changed(result, messages) == [2]
    assert host.shape.recognises(result.messages[2])
    assert read(host, [result.messages[2]]) == [("tool_result", f"see {path}")]
    assert path.read_text(encoding="utf-8") == session.read(path) == "字" * 150
    assert plain(host, messages) == plain(host, before)


def test_the_store_restores_the_block_of_a_host(host: Host, tmp_path: Path) -> None:
    messages = conversation(host)
    session = under(RESULTS, tmp_path, host)
    session.apply(messages)
    block = session.store.restore("a")  # type: ignore[attr-defined]
    [part] = host.shape.parts(messages[2])
    assert block == host.shape.block(messages[2], part.path)
    assert "字" * 150 in json.dumps(block, ensure_ascii=False)


def test_a_preset_offloads_a_newest_result_that_cannot_fit(host: Host, tmp_path: Path) -> None:
    large = "".join(f"line {i} of a log\n" for i in range(60_000))
    messages = [host.user("the task"), host.reply("t", [("a", "read", {})])]
    messages += host.results(("a", "read", large))
    session = Session("small-context", root=tmp_path, session_id="s", shapes=[host.shape])
    result = session.apply(messages)
    assert (result.warnings, result.offloaded_count) == ((), 1)
    shown = "".join(text for _, text in read(host, result.messages[2:]))
    assert "line 0 of a log" in shown
    assert "line 59999 of a log" in shown


def test_without_a_decision_the_list_is_the_same_object(host: Host, tmp_path: Path) -> None:
    messages = conversation(host)
    session = under(RESULTS.replace("100", "1000"), tmp_path, host)
    assert session.apply(messages).messages is messages
    assert session.apply(messages).messages is messages


def test_the_call_of_a_tool_gets_a_shorter_input(host: Host, tmp_path: Path) -> None:
    messages = conversation(host, opaque="EqoB")
    result = under(CALLS, tmp_path, host).apply(messages)
    assert changed(result, messages) == [1, 3, 5]
    [text] = [text for kind, text in read(host, [result.messages[1]]) if kind == "tool_call"]
    assert json.loads(text) == {"path": "a.py", "why": f"see {tmp_path}/tool_call/read/a.md"}
    assert host.opaque(result.messages[1]) == host.opaque(messages[1])


def test_an_edited_text_leaves_the_opaque_parts_of_the_model(host: Host, tmp_path: Path) -> None:
    messages = conversation(host, opaque="EqoB")
    result = under(TEXTS, tmp_path, host).apply(messages)
    assert changed(result, messages) == [1, 3, 5]
    texts = [text for kind, text in read(host, result.messages) if kind == "assistant_message"]
    assert [text[:4] for text in texts] == ["see "] * 3
    assert list(map(host.opaque, result.messages[1:6:2])) == [host.opaque(messages[1])] * 3


def test_a_picture_is_replaced_by_a_text_if_the_shape_knows_it(host: Host, tmp_path: Path) -> None:
    messages = [host.picture("look"), host.reply("I see."), host.user("and?")]
    kinds = [part.kind for part in host.shape.parts(messages[0])]
    result = under(PICTURES, tmp_path, host).apply(messages)
    if kinds in (["user_message"], ["user_message", "unknown"]):  # the shape does not know pictures
        assert result.messages is messages
        return
    assert changed(result, messages) == [0]
    (_, text), (kind, placeholder) = read(host, [result.messages[0]])
    assert (text, kind, placeholder[:4]) == ("look", "user_message", "see ")


def test_a_cleared_result_keeps_its_call(host: Host, tmp_path: Path) -> None:
    messages = conversation(host)
    result = under(CLEAR, tmp_path, host).apply(messages)
    assert changed(result, messages) == [2, 4]
    assert [text for kind, text in read(host, result.messages) if kind == "tool_result"][2] == (
        "z" * 30
    )
    assert "字" not in str(read(host, result.messages))


def test_a_dropped_call_leaves_with_its_result(host: Host, tmp_path: Path) -> None:
    messages = conversation(host)
    session = under(DROP, tmp_path, host)
    result = session.apply(messages)
    kinds = [kind for kind, _ in read(host, result.messages)]
    assert kinds.count("tool_call") == kinds.count("tool_result") == 1
    assert kinds.count("assistant_message") == 3
    assert [m for m in result.messages if m is messages[6]]


def test_parallel_calls_are_dropped_one_by_one(host: Host, tmp_path: Path) -> None:
    both = [("a", "read", {"path": "a"}), ("b", "read", {"path": "b"})]
    more = [host.reply("", [("c", "read", {})]), *host.results(("c", "read", "z"))]
    answers = host.results(("a", "read", "x"), ("b", "read", "y"))
    messages = [host.user("go"), host.reply("", both), *answers, *more, host.user("go on")]
    result = under(DROP, tmp_path, host).apply(messages)
    assert plain(host, result.messages) == plain(host, [messages[0], *messages[-3:]])


def test_history_is_replaced_by_a_message_of_the_host(host: Host, tmp_path: Path) -> None:
    messages = [*conversation(host)[:-1], host.picture("look"), *conversation(host)[-2:]]
    before = copy.deepcopy(messages)
    session = under(COMPACT, tmp_path, host)
    assert session.plan(messages).compaction
    result = session.apply(messages)
    assert result.compacted
    assert all(map(host.shape.recognises, result.messages))
    assert "the task" in read(host, result.messages)[0][1]
    assert result.messages[-1] is messages[-1]
    assert plain(host, messages) == plain(host, before)
    assert result.compaction is not None
    assert result.compaction.archive_path is not None
    archived = archived_messages(session.read(result.compaction.archive_path))
    assert archived == plain(host, messages[:-1])


@EACH_POLICY
def test_a_restart_gives_the_same_messages_to_loaded_objects(
    host: Host, tmp_path: Path, text: str
) -> None:
    messages = conversation(host, opaque="EqoB")
    first = under(text, tmp_path, host).apply(messages).messages
    loaded = host.loaded(messages)
    assert all(one is not other for one, other in zip(loaded, messages, strict=True))
    again = under(text, tmp_path, host).apply(loaded)
    assert plain(host, again.messages) == plain(host, first)
    assert again.files == ()
    sent = host.loaded(first)
    assert plain(host, under(text, tmp_path, host).apply(sent).messages) == plain(host, first)


@EACH_POLICY
@pytest.mark.parametrize("form", ["kept", "returned", "kept and loaded", "returned and loaded"])
def test_a_list_continues_in_each_form(host: Host, tmp_path: Path, text: str, form: str) -> None:
    messages = conversation(host, opaque="EqoB")
    session = under(text, tmp_path, host)
    first = session.apply(messages).messages
    given = list(messages if form.startswith("kept") else first)
    given = host.loaded(given) if form.endswith("loaded") else given
    more = [host.reply("fine"), host.user("and?")]
    result = session.apply([*given, *more])
    assert plain(host, result.messages) == plain(host, [*first, *more])
    assert result.files == ()
    assert result.messages[-1] is more[-1]


@EACH_POLICY
def test_explain_and_plan_tell_what_apply_does(host: Host, tmp_path: Path, text: str) -> None:
    messages = conversation(host)
    session = under(text, tmp_path, host)
    plan = session.plan(messages)
    result = session.apply(messages)
    assert [d.item.item_id for d in plan.new] == [d.item.item_id for d in result.plan.new]
    explained = [[plan.verdicts(i), plan.decision(i).reason] for i in range(len(plan.items))]
    assert explained
    assert explained == [
        [result.plan.verdicts(i), result.plan.decision(i).reason]
        for i in range(len(result.plan.items))
    ]


def test_what_a_host_writes_is_json(host: Host) -> None:
    messages = [*conversation(host, opaque="EqoB"), host.picture("look")]
    for message in messages:
        assert json.dumps(host.shape.plain(message))
        for part in host.shape.parts(message):
            assert json.dumps(host.shape.block(message, part.path))
    assert plain(host, host.loaded(messages)) == plain(host, messages)


def test_a_list_may_mix_dicts_and_objects_of_a_host(host: Host, tmp_path: Path) -> None:
    item = {"type": "function_call_output", "call_id": "b", "output": "y" * 200}
    call = {"type": "function_call", "call_id": "b", "name": "ls", "arguments": "{}"}
    messages = [*conversation(host), call, item, {"role": "user", "content": "go"}]
    result = under(RESULTS, tmp_path, host).apply(messages)
    assert changed(result, messages) == [2, len(messages) - 2]
    assert result.messages[-2]["type"] == "function_call_output"


def test_a_result_is_offloaded_on_arrival(host: Host, tmp_path: Path) -> None:
    messages = conversation(host)
    session = under(RESULTS.replace("do:", "on: arrival, do:"), tmp_path, host)
    result = session.on_tool_result(messages[2], call=messages[1])
    assert changed(result, messages[1:3]) == [1]
    assert read(host, [result.messages[1]])[0][1] == f"see {tmp_path}/tool_result/read/a.md"


def test_without_the_shape_an_object_is_no_message(host: Host, tmp_path: Path) -> None:
    if isinstance(host, Gemini):  # the shape is built in
        Session(policy(RESULTS), root=tmp_path).apply(conversation(host))
        return
    with pytest.raises(MessagesError, match="message 0: "):
        Session(policy(RESULTS), root=tmp_path).apply(conversation(host))


def test_a_picture_inside_a_result_leaves_alone(tmp_path: Path) -> None:
    host = Bedrock()
    content = [{"text": "seen"}, picture(), {"json": {"size": 2}}, picture()]
    answer = {"toolResult": {"toolUseId": "a", "content": content, "status": "error"}}
    messages = [
        host.user("look"),
        host.reply("", [("a", "shot", {})]),
        {"role": "user", "content": [answer]},
    ]
    result = under(PICTURES, tmp_path, host).apply(messages)
    assert [d.item.item_id for d in result.plan.to_save] == ["a-1", "a-2"]
    left = result.messages[2]["content"][0]["toolResult"]["content"]
    assert [list(block) for block in left] == [["text"], ["text"], ["json"], ["text"]]
    assert left[1] == {"text": f"see {tmp_path}/image/shot/a-1.md"}
    again = under(PICTURES, tmp_path, host)
    assert again.apply(messages).messages == result.messages
    assert again.apply(result.messages).messages == result.messages


def test_a_cache_point_stays_where_it_was(tmp_path: Path) -> None:
    host = Bedrock()
    messages = conversation(host)
    mark = {"cachePoint": {"type": "default"}}
    messages[2]["content"].append(mark)
    result = under(RESULTS, tmp_path, host).apply(messages)
    assert result.messages[2]["content"][1] == mark
    dropped = under(DROP, tmp_path / "b", host).apply(messages)
    assert result.messages[2] not in dropped.messages
    blocks = [block for message in dropped.messages for block in message["content"]]
    assert [one for one in blocks if "toolResult" in one] == messages[6]["content"]


@pytest.mark.slow
def test_calls_without_ids_are_paired_by_the_name_of_the_tool(tmp_path: Path) -> None:
    google = importlib.import_module("tests.hosts.google")
    host, none = google.Google(), cast("str", None)
    messages = [host.user("go")]
    for text in ("x" * 200, "y" * 150, "z"):
        messages.append(host.reply("", [(none, "read", {"n": 1}), (none, "read", {"n": 2})]))
        messages += host.results((none, "read", text), (none, "read", text + "!"))
    messages.append(host.user("go on"))
    for text in (RESULTS, DROP):
        first = under(text, tmp_path / str(len(text)), host).apply(messages)
        again = under(text, tmp_path / str(len(text)), host)
        assert plain(host, again.apply(host.loaded(messages)).messages) == plain(
            host, first.messages
        )
        assert plain(host, again.apply(first.messages).messages) == plain(host, first.messages)
    assert [kind for kind, _ in read(host, first.messages)].count("tool_call") == 2


@pytest.mark.slow
def test_the_system_prompt_of_langchain_stays_before_the_summary(tmp_path: Path) -> None:
    host = importlib.import_module("tests.hosts.langchain").LangChain()
    prompt = importlib.import_module("langchain_core.messages").SystemMessage("Be brief.")
    result = under(COMPACT, tmp_path, host).apply([prompt, *conversation(host)])
    assert result.compacted
    assert result.messages[0] is prompt
    assert read(host, result.messages)[1][0] == "user_message"


@pytest.mark.slow
def test_a_request_with_a_system_prompt_survives_a_compaction(tmp_path: Path) -> None:
    host = importlib.import_module("tests.hosts.pydantic_ai").PydanticAI()
    module = importlib.import_module("pydantic_ai.messages")
    prompt = module.SystemPromptPart("Be brief.")
    first = module.ModelRequest([prompt, module.UserPromptPart("the task")])
    messages = [first, *conversation(host)[1:]]
    result = under(COMPACT, tmp_path, host).apply(messages)
    assert result.compacted
    assert result.messages[0] is first
    again = under(COMPACT, tmp_path, host).apply(host.loaded(messages))
    assert plain(host, again.messages) == plain(host, result.messages)


@pytest.mark.slow
def test_a_large_result_of_unknown_blocks_of_langchain_is_offloaded(tmp_path: Path) -> None:
    host = importlib.import_module("tests.hosts.langchain").LangChain()
    kind = importlib.import_module("langchain_core.messages").ToolMessage
    blocks: list[Any] = [{"type": "odd", "value": "字" * 40_000}]
    messages = [host.user("go"), host.reply("", [("a", "read", {})])]
    messages += [kind(blocks, tool_call_id="a"), host.user("and?")]
    session = under(RESULTS, tmp_path, host)
    result = session.apply(messages)
    assert changed(result, messages) == [2]
    [path] = result.files
    assert json.loads(session.read(path)) == blocks


def test_a_recorded_session_reads_as_the_host_had_it(host: Host, tmp_path: Path) -> None:
    path, given = tmp_path / "own.jsonl", conversation(host)
    session = Session(
        policy(STORE), root=tmp_path, session_id="s", shapes=[host.shape], record=path
    )
    for count in (1, len(given)):
        session.apply(given[:count])
        session.observe({"input_tokens": 10 * count, "output_tokens": 1})
    [recording] = recordings_in(path)
    assert [call.usage.prompt for call in recording.calls if call.usage] == [10, 10 * len(given)]
    assert recording.not_understood == {}

    def told(items: Any) -> list[Any]:
        texts = [str(one.text).replace('": "', '":"').replace('", "', '","') for one in items]
        return [(one.kind, one.tool, text) for one, text in zip(items, texts, strict=True)]

    assert told(items_of(recording.messages())) == told(items_of(given, Shapes([host.shape])))
