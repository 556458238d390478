"""What reads a file of the store back is `recalled`: it stays for a while."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from policyctx import Session
from policyctx.definitions.actions import Action
from policyctx.planning.ledger import ItemKey, Ledger, LedgerEntry
from tests.conversations import Message, call, chat_calls, chat_result, results, session_of, user
from tests.policies import policy

LARGE = "x" * 400
OFFLOAD = """\
    items: {tool_result: {offload: true}}
    store: {sync: never}
    placeholder: "12345678 {path}"
    steps:
      - {name: a, on: arrival, do: offload, select: {types: [tool_result], min_chars: 300}}
      - {name: b, do: offload, select: {types: [tool_result]}}
    """


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(OFFLOAD), root=tmp_path / "my files", session_id="s")


def type_of_last(session: Session, messages: list[Message]) -> str:
    return session.plan(messages).items[-1].type


def read_with(session: Session, tool: str, arguments: Any) -> list[Message]:
    """A session in which the first result was offloaded, and a call that reads it back."""
    messages = session_of(LARGE)
    session.apply(messages)
    return [*messages, call("r", tool, arguments), results(("r", LARGE))]


def path_of(session: Session) -> str:
    return f"{session.store.root}/tool_result/Bash/c0.md"


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "ABSOLUTE"},
        {"file_path": "tool_result/Bash/c0.md"},
        {"file_path": "./tool_result/Bash/c0.md", "limit": 20},
        {"files": [{"path": "ABSOLUTE"}]},
        {"command": "cat ABSOLUTE"},
        {"command": "cat 'ABSOLUTE' | head -n 20 > /dev/null"},
        {"command": "grep -n x<ABSOLUTE; ls"},
        {"command": "echo $(cat ABSOLUTE)"},
        {"command": "cd /tmp\ncat ABSOLUTE\nls"},
        {"command": "cat\tABSOLUTE"},
        {"command": 'cat "ABSOLUTE"'},
        {"command": "sed -n 1,20p tool_result/Bash/c0.md"},
    ],
)
def test_a_call_that_names_the_file_reads_it_back(arguments: Any, session: Session) -> None:
    given = json.loads(json.dumps(arguments).replace("ABSOLUTE", path_of_json(session)))
    assert type_of_last(session, read_with(session, "Bash", given)) == "recalled"


def path_of_json(session: Session) -> str:
    return json.dumps(path_of(session))[1:-1]


@pytest.mark.parametrize(
    "arguments",
    [
        {"file_path": "c0.md"},
        {"file_path": "/elsewhere/c0.md"},
        {"file_path": "tool_result/Bash/c1.md"},
        {"file_path": "other_tool_result/Bash/c0.md"},
        {"command": "ls tool_result/Bash"},
        {},
    ],
)
def test_a_call_that_names_another_does_not(arguments: Any, session: Session) -> None:
    assert type_of_last(session, read_with(session, "Read", arguments)) == "tool_result"


@pytest.mark.parametrize("ascii_only", [True, False])
def test_the_arguments_of_a_chat_call_are_read_too(ascii_only: bool, tmp_path: Path) -> None:
    session = Session(policy(OFFLOAD), root=tmp_path / "文件", session_id="s")
    messages = session_of(LARGE)
    session.apply(messages)
    arguments = json.dumps({"file_path": path_of(session)}, ensure_ascii=ascii_only)
    messages += [chat_calls(("r", "Read", arguments)), chat_result("r", LARGE)]
    assert type_of_last(session, messages) == "recalled"


def test_a_path_with_spaces_is_found(tmp_path: Path) -> None:
    text = OFFLOAD.replace("sync: never", "sync: never, path: 'my results/{item_id}.{ext}'")
    session = Session(policy(text), root=tmp_path, session_id="s")
    messages = session_of(LARGE)
    [path] = session.apply(messages).files
    messages += [call("r", "Read", {"file_path": path}), results(("r", LARGE))]
    assert type_of_last(session, messages) == "recalled"


def test_before_anything_was_offloaded_nothing_is_recalled(session: Session) -> None:
    reading = [user(), call("r", "Read", {"file_path": path_of(session)}), results(("r", LARGE))]
    assert type_of_last(session, reading) == "tool_result"


def test_it_is_not_taken_as_it_arrives(session: Session) -> None:
    messages = read_with(session, "Read", {"file_path": path_of(session)})
    planned = session.plan(messages)
    verdict, _ = planned.verdicts(len(planned.items) - 1)
    assert (verdict.taken, verdict.reason.code) == (False, "protected")
    assert planned.new == ()


def test_three_recalled_results_stay_and_older_ones_are_offloaded_again(session: Session) -> None:
    messages = read_with(session, "Read", {"file_path": path_of(session)})
    assert session.apply(messages).offloaded_count == 0
    for i in range(3):
        again = call(f"s{i}", "Read", {"file_path": path_of(session)})
        messages += [again, results((f"s{i}", "y" * 400))]
        last = session.apply(messages)
    assert [d.item.tool_use_id for d in last.plan.new] == ["r"]
    assert last.plan.new[0].file is not None
    assert last.plan.new[0].file.relative_path == "tool_result/Bash/c0.md"


def test_a_policy_sets_how_many_are_kept(tmp_path: Path) -> None:
    text = OFFLOAD.replace("items: {", "items: {recalled: {keep_recent: 0}, ")
    session = Session(policy(text), root=tmp_path / "my files", session_id="s")
    messages = read_with(session, "Read", {"file_path": path_of(session)})
    assert [d.step for d in session.apply(messages).plan.new] == ["b"]


def test_a_read_of_an_old_file_is_recalled_after_a_restart(tmp_path: Path) -> None:
    """The list as it was handed out says nothing of the ledger; the ledger does."""
    first = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    messages = session_of(LARGE)
    left = list(first.apply(messages).messages)
    second = Session(policy(OFFLOAD), root=tmp_path, session_id="s")
    second.ledger.add(first.ledger.entries.values())
    reading = [call("r", "Read", {"file_path": path_of(first)}), results(("r", LARGE))]
    assert type_of_last(second, [*left, *reading]) == "recalled"


def test_a_recalled_result_stays_recalled_after_its_call_input_is_replaced(
    tmp_path: Path,
) -> None:
    shortening = OFFLOAD.replace("items: {", "items: {tool_call: {offload: true}, ").replace(
        "steps:",
        "steps:\n      - {name: i, do: clear, placeholder: gone, select: {types: [tool_call]}}",
    )
    first = Session(policy(shortening), root=tmp_path, session_id="s")
    left = first.apply(read_with(first, "Read", {"file_path": path_of(first)})).messages
    assert left[-2]["content"][0]["input"] == {"file_path": "gone"}
    for session in (Session(policy(shortening), root=tmp_path, session_id="s"), first):
        result = session.apply(left, changed=True)
        assert result.plan.items[-1].type == "recalled"
        assert result.messages is left


@pytest.mark.parametrize(
    "given",
    [
        '{"command":"cat a\\nb.md"}',
        '{"command":"cat c:\\\\x\\\\b.md"}',
        '{"command":"\\u8bfb\\u53d6b.md"}',
        '{"paths":["/root/b.md","c.md"]}',
        "b.md",
    ],
)
def test_a_file_name_is_found_in_json_text_after_any_separator(given: str) -> None:
    ledger = Ledger([_entry("b.md")])
    assert ledger.may_name_file(given)
    assert not ledger.may_name_file(given.replace("b.md", "ab.md"))


class Searched(str):
    """A text that counts how often something is looked for in it."""

    __slots__ = ()
    times = 0

    def __contains__(self, one: object) -> bool:
        Searched.times += 1
        return str.__contains__(self, str(one))


def test_a_call_costs_the_same_however_many_files_without_an_ending_there_are() -> None:
    ledger = Ledger([_entry(f"results/call_{i}") for i in range(100)])
    assert ledger.may_name_file("cat results/call_7")
    Searched.times = 0
    assert not ledger.may_name_file(Searched("cat results/call_700"))
    assert Searched.times <= 1


def test_a_name_with_spaces_may_always_be_meant() -> None:
    assert Ledger([_entry("result of a.md")]).may_name_file("cat 'result of a.md'")


def _entry(path: str) -> LedgerEntry:
    key = ItemKey("tool_result", "t", "0" * 64, 0)
    return LedgerEntry(
        key, 1, "t", "tool_result", Action.OFFLOAD, "step", "policy", relative_path=path
    )


RETIRE = """\
    items: {tool_result: {offload: true}, recalled: {keep_recent: 0}}
    store: {sync: never}
    tools: {view: {reads_file: file}}
    steps: [{name: b, do: %s, select: {types: [tool_result], min_chars: 300}}]
    """
FOUND = f"tool_result/Bash/c0.md:1: {LARGE}"
NUMBERED = "\n".join(f"{i:>6}\t{'x' * 40}" for i in range(10))


def retiring(root: Path, text: str = RETIRE % "offload") -> Session:
    return Session(policy(text), root=root, session_id="s")


def reading(tool: str, given: Any, answer: str = NUMBERED, *, chat: bool = False) -> list[Message]:
    """A call that reads the file of the first result back, its result, and a newer message."""
    if chat:
        return [chat_calls(("r", tool, json.dumps(given))), chat_result("r", answer), user()]
    return [call("r", tool, given), results(("r", answer)), user()]


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("read_offloaded", {"path": "ROOT/tool_result/Bash/c0.md", "offset": 3}, NUMBERED),
        ("mcp__policyctx__read_offloaded", {"path": "tool_result/Bash/c0.md"}, NUMBERED),
        ("read_offloaded", {"path": "c0", "limit": 9}, NUMBERED),
        ("view", {"file": "ROOT/tool_result/Bash/c0.md", "view_range": [1, 9]}, NUMBERED),
        ("Bash", {"command": "cat ROOT/tool_result/Bash/c0.md"}, LARGE),
    ],
)
def test_what_was_read_back_leaves_the_name_of_the_original_file(
    tool: str, given: Any, answer: str, *, edited: bool, restarts: bool, chat: bool, tmp_path: Path
) -> None:
    session, own = retiring(tmp_path), session_of(LARGE)
    left = list(session.apply(own).messages)
    given = json.loads(json.dumps(given).replace("ROOT", str(tmp_path)))
    messages = [*(left if edited else own), *reading(tool, given, answer, chat=chat)]
    session = retiring(tmp_path) if restarts else session
    result = session.apply(messages)
    [decision] = result.plan.new
    assert (decision.is_read_back, decision.saves, result.files) == (True, False, ())
    assert decision.placeholder == f"[Content offloaded]\nPath: {tmp_path}/tool_result/Bash/c0.md"
    assert not (tmp_path / "recalled").exists()
    again = retiring(tmp_path).apply([*result.messages, user()])
    assert again.plan.new == ()
    assert session.read("r") == LARGE


@pytest.mark.parametrize(
    ("tool", "given", "answer"),
    [
        ("Bash", {"command": "cat ROOT/tool_result/Bash/c0.md; make"}, LARGE + "more"),
        ("Read", {"file_path": "ROOT/tool_result/Bash/c0.md"}, NUMBERED),
        ("view", {"file": "/elsewhere/tool_result/Bash/c0.md"}, NUMBERED),
    ],
)
def test_what_may_hold_more_than_the_file_is_saved(
    tool: str, given: Any, answer: str, tmp_path: Path
) -> None:
    session, messages = retiring(tmp_path), session_of(LARGE)
    session.apply(messages)
    given = json.loads(json.dumps(given).replace("ROOT", str(tmp_path)))
    result = session.apply([*messages, *reading(tool, given, answer)])
    assert result.files == (f"{tmp_path}/recalled/{tool}/r.md",)


@pytest.mark.parametrize("do", ["offload", "drop"])
def test_a_search_makes_no_file(do: str, tmp_path: Path) -> None:
    session, messages = retiring(tmp_path), session_of(LARGE)
    session.apply(messages)
    session = retiring(tmp_path, RETIRE % do)
    messages += reading("search_offloaded", {"query": "x"}, FOUND)
    result = session.apply(messages)
    assert not (tmp_path / "recalled").exists()
    assert result.plan.new[-1].file is None
    if do == "offload":
        [decision] = result.plan.new
        assert decision.action is Action.CLEAR
        assert "make the call again" in str(decision.placeholder)


@pytest.mark.parametrize("where", ["another session", "a file", "here and elsewhere"])
@pytest.mark.parametrize("tool", ["search_offloaded", "mcp__files__search_offloaded"])
def test_what_a_search_of_another_store_found_is_saved(
    tool: str, where: str, tmp_path: Path
) -> None:
    found = {"another session": f"/old/{FOUND}", "a file": LARGE}.get(where, f"{FOUND}\nb:1: y")
    session, messages = retiring(tmp_path), session_of(LARGE)
    session.apply(messages)
    result = session.apply([*messages, *reading(tool, {"query": "x"}, found)])
    assert result.files == (f"{tmp_path}/recalled/{tool}/r.md",)
    assert session.read("r") == found


@pytest.mark.parametrize(
    "found",
    ["ROOT/archive/compaction-001.json:1: " + LARGE, f"[nothing offloaded contains {LARGE!r}]"],
)
def test_what_a_search_of_the_archive_or_in_vain_found_makes_no_file(
    found: str, tmp_path: Path
) -> None:
    text = found.replace("ROOT", str(tmp_path))
    messages = reading("search_offloaded", {"query": "x"}, text)
    [decision] = retiring(tmp_path).apply([user(), *messages]).plan.new
    assert decision.action is Action.CLEAR
    archive = f"{tmp_path}/archive/compaction-001.json"
    [decision] = (
        retiring(tmp_path).apply([user(), *reading("read_offloaded", {"path": archive})]).plan.new
    )
    assert (decision.action, decision.file) == (Action.CLEAR, None)


def test_what_another_session_saved_in_the_same_folder_is_saved(tmp_path: Path) -> None:
    other = f"{tmp_path}/tool_result/Bash/c9.md"
    for tool, given, text in (
        ("read_offloaded", {"path": other}, NUMBERED),
        ("search_offloaded", {"query": "x"}, f"{other}:1: {LARGE}"),
    ):
        result = retiring(tmp_path / tool).apply([user(), *reading(tool, given, text)])
        assert result.files == (f"{tmp_path}/{tool}/recalled/{tool}/r.md",)
        shared = Session(policy(RETIRE % "offload"), root=tmp_path, session_id=tool)
        assert len(shared.apply([user(), *reading(tool, given, text)]).files) == 1


@pytest.mark.parametrize("path", ["c7", "/old/tool_result/Bash/c0.md", "../c0.md", None, 7])
def test_what_was_read_in_another_store_is_saved(path: object, tmp_path: Path) -> None:
    session, messages = retiring(tmp_path), session_of("small")
    result = session.apply([*messages, *reading("read_offloaded", {"path": path})])
    assert result.files == (f"{tmp_path}/recalled/read_offloaded/r.md",)
    assert session.read("r") == NUMBERED


def test_a_drop_of_what_was_read_back_makes_no_copy(tmp_path: Path) -> None:
    retiring(tmp_path).apply(session_of(LARGE))
    session = retiring(tmp_path, RETIRE % "drop")
    messages = [*session_of(LARGE), *reading("read_offloaded", {"path": "c0"})]
    session.apply(messages)
    assert not (tmp_path / "recalled").exists()


def test_what_was_read_from_a_file_that_is_gone_is_saved(tmp_path: Path) -> None:
    session, messages = retiring(tmp_path), session_of(LARGE)
    [path] = session.apply(messages).files
    Path(path).write_text("altered", encoding="utf-8")
    result = session.apply([*messages, *reading("read_offloaded", {"path": "c0"})])
    [decision] = result.plan.new
    assert decision.placeholder == f"[Content offloaded]\nPath: {result.files[0]}"
    assert result.files == (f"{tmp_path}/recalled/read_offloaded/r.md",)
    assert session.read("r") == NUMBERED


def test_a_file_that_may_be_overwritten_is_no_source(tmp_path: Path) -> None:
    text = (RETIRE % "offload").replace("never", "never, on_conflict: overwrite")
    session, messages = retiring(tmp_path, text), session_of(LARGE)
    session.apply(messages)
    result = session.apply([*messages, *reading("read_offloaded", {"path": "c0"})])
    assert result.files == (f"{tmp_path}/recalled/read_offloaded/r.md",)


@pytest.mark.parametrize("gives_call", [True, False])
def test_a_reported_result_is_known_as_read_back_by_its_call(
    session: Session, gives_call: bool
) -> None:
    session.apply(session_of(LARGE))
    asked, answer = call("r", "read_offloaded", {"path": "c0"}), results(("r", LARGE))
    reported = session.on_tool_result(answer, call=asked if gives_call else None)
    assert reported.offloaded_count == (0 if gives_call else 1)
    assert reported.messages == [asked, answer] or not gives_call


async def _applied(session: Session, messages: list[Message]) -> int:
    return (await session.apply_async(messages)).offloaded_count


def test_it_is_the_same_without_blocking(tmp_path: Path) -> None:
    session, messages = retiring(tmp_path), session_of(LARGE)
    assert asyncio.run(_applied(session, messages)) == 1
    messages += reading("read_offloaded", {"path": "c0"})
    assert asyncio.run(_applied(session, messages)) == 0
    assert not (tmp_path / "recalled").exists()


def test_it_is_the_same_in_the_responses_shape(tmp_path: Path) -> None:
    session = retiring(tmp_path)
    messages: list[Message] = [user()]
    for call_id, tool, given, answer in (
        ("c0", "Bash", {}, LARGE),
        ("r", "read_offloaded", {"path": "c0"}, NUMBERED),
        ("s", "search_offloaded", {"query": "x"}, FOUND),
    ):
        asked = {"call_id": call_id, "name": tool, "arguments": json.dumps(given)}
        messages += [
            {"type": "function_call", **asked},
            {"type": "function_call_output", "call_id": call_id, "output": answer},
        ]
        left = session.apply([*messages, user()]).messages
    placeholder = f"[Content offloaded]\nPath: {tmp_path}/tool_result/Bash/c0.md"
    assert [left[2]["output"], left[4]["output"]] == [placeholder, placeholder]
    assert "make the call again" in left[6]["output"]
    assert not (tmp_path / "recalled").exists()
