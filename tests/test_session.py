from __future__ import annotations

import asyncio
import copy
import json
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from policyctx import (
    ContextFileSystem,
    MessagesError,
    OffloadPolicy,
    Session,
    StoreError,
    load_policy,
)
from tests.conversations import calls, results, session_of, user
from tests.policies import policy

SMALL = """\
    min_chars: 100
    items: {tool_result: {offload: true}}
    placeholder: "see {path}"
    store: {sync: never}
    steps: [{name: s, do: offload, must_shrink: false, select: {types: [tool_result]}}]
    """


@pytest.fixture
def session(tmp_path: Path) -> Session:
    return Session(policy(SMALL), root=tmp_path / "root", session_id="s")


def test_an_offloaded_item_is_named_by_its_placeholder_and_reads_back(session: Session) -> None:
    result = session.apply(session_of("x" * 100))
    placeholder = result.messages[2]["content"][0]["content"]
    assert placeholder == f"see {Path(session.store.root) / 'tool_result/Bash/c0.md'}"
    assert session.read(placeholder.removeprefix("see ")) == "x" * 100
    assert result.files == (placeholder.removeprefix("see "),)
    assert (result.offloaded_count, result.freed_chars) == (1, 100)


def test_a_list_of_blocks_becomes_a_string_and_its_texts_the_file(session: Session) -> None:
    content = [{"type": "text", "text": "读" * 100}]
    result = session.apply(session_of(content))
    assert isinstance(result.messages[2]["content"][0]["content"], str)
    saved = session.read(result.files[0])
    assert saved == "读" * 100


def test_an_envelope_is_json_around_the_text_and_reads_back(tmp_path: Path) -> None:
    enveloped = SMALL.replace("sync: never", "sync: never, format: envelope")
    session = Session(policy(enveloped), root=tmp_path, session_id="s")
    before = int(time.time())
    result = session.apply(session_of("x" * 100))
    assert result.files == (str(tmp_path / "tool_result/Bash/c0.json"),)
    document = json.loads(Path(result.files[0]).read_text(encoding="utf-8"))
    saved_at = document.pop("offloaded_at")
    assert type(saved_at) is int
    assert before <= saved_at <= time.time()
    assert list(document.items()) == [
        ("schema_version", "1.0"),
        ("item_id", "c0"),
        ("item_type", "tool_result"),
        ("metadata", {"tool_name": "Bash"}),
        ("content", "x" * 100),
    ]
    assert session.read(result.files[0]) == "x" * 100


@pytest.mark.parametrize(
    ("threshold", "tokens"), [("min_tokens: 20", 100), ("min_chars: 100", None)]
)
def test_the_index_has_the_tokens_of_items_offloaded_by_tokens(
    tmp_path: Path, threshold: str, tokens: int | None
) -> None:
    session = Session(policy(SMALL.replace("min_chars: 100", threshold)), root=tmp_path)
    session.apply(session_of(" the" * 100))
    assert isinstance(session.store, ContextFileSystem)
    [entry] = session.store.list()
    assert entry.origin is not None
    assert (entry.origin.tokens, entry.origin.turn, entry.origin.message) == (tokens, 1, 2)


def test_only_changed_messages_are_copied_and_the_input_stays(session: Session) -> None:
    messages = session_of("x" * 100, "small")
    before = copy.deepcopy(messages)
    result = session.apply(messages)
    assert messages == before
    changed = [i for i, message in enumerate(result.messages) if message is not messages[i]]
    assert changed == [2]
    assert result.messages[2]["content"][0] is not messages[2]["content"][0]


def test_without_a_decision_the_same_list_comes_back_and_nothing_is_made(session: Session) -> None:
    messages = session_of("small")
    assert session.apply(messages).messages is messages
    assert not Path(session.store.root).exists()


def test_messages_that_stay_are_the_objects_of_the_list_given_last(tmp_path: Path) -> None:
    arrives = SMALL.replace("do: offload,", "do: offload, on: arrival,")
    session = Session(policy(arrives), root=tmp_path, session_id="s")
    *before, result = session_of("small", "x" * 100)
    session.apply(before)
    session.on_tool_result(result, call=before[-1])
    # The ends of the known list are the same objects, and a message between them is a copy.
    given = [before[0], copy.deepcopy(before[1]), *before[2:], result]
    found = session.apply(given).messages
    assert [i for i, message in enumerate(found) if message is not given[i]] == [len(given) - 1]


def test_an_empty_list_is_left_unchanged(session: Session) -> None:
    messages: list[dict[str, object]] = []
    assert session.apply(messages).messages is messages


def test_a_plan_writes_nothing_and_remembers_nothing(session: Session) -> None:
    messages = session_of("x" * 100)
    planned = session.plan(messages)
    assert len(planned.to_save) == 1
    assert not Path(session.store.root).exists()
    assert session.apply(messages).offloaded_count == 1


def test_decided_is_decided_for_callers_who_send_the_full_list(session: Session) -> None:
    messages = session_of("x" * 100)
    first = session.apply(messages)
    longer = [*messages, *session_of("y" * 100)[1:]]
    second = session.apply(longer)
    assert second.messages[: len(messages)] == first.messages
    assert second.offloaded_count == 1


def test_decided_is_decided_for_callers_who_pass_the_edited_list_back(session: Session) -> None:
    first = session.apply(session_of("x" * 200))
    assert session.apply(first.messages).messages is first.messages


def test_a_placeholder_may_name_its_file_from_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    under = policy(SMALL.replace("{path}", "{cwd_path}"))
    session = Session(under, root="root", session_id="s")
    monkeypatch.chdir("/")  # the session keeps the directory that it was made in
    messages = session_of("x" * 100)
    result = session.apply(messages)
    assert result.messages[2]["content"][0]["content"] == "see root/tool_result/Bash/c0.md"
    again = Session(under, root=tmp_path / "root", session_id="s")
    assert again.apply(messages).messages == result.messages
    assert again.read(tmp_path / "root/tool_result/Bash/c0.md") == "x" * 100


@pytest.mark.slow
def test_a_session_needs_no_working_directory(tmp_path: Path) -> None:
    program = """
import os, sys
os.mkdir("gone"); os.chdir("gone"); os.rmdir("../gone")
from policyctx import Session
print(Session("small-context", root=sys.argv[1]).apply([]).messages)
"""
    command = [sys.executable, "-c", program, str(tmp_path / "root")]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_a_name_that_is_taken_on_the_disk_shows_in_the_placeholder(tmp_path: Path) -> None:
    for text, name in (("x" * 100, "c0.md"), ("y" * 100, "c0-1.md")):
        session = Session(policy(SMALL), root=tmp_path, session_id="s")
        [path] = session.apply(session_of(text)).files
        assert Path(path).name == name
        assert session.read(path) == text


def test_a_failed_write_keeps_the_original_and_warns(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    session = Session(policy(SMALL), root=tmp_path / "file", session_id="s")
    messages = session_of("x" * 100)
    result = session.apply(messages)
    assert result.messages is messages
    assert result.offloaded_count == 0
    assert "cannot be written" in result.warnings[0]
    [decision] = result.plan.decisions
    assert decision.reason.code == "not_saved"


def test_a_failed_write_raises_where_the_policy_says_so(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    strict = policy(SMALL.replace("sync: never", "sync: never, on_failure: raise"))
    session = Session(strict, root=tmp_path / "file", session_id="s")
    with pytest.raises(StoreError):
        session.apply(session_of("x" * 100))
    assert session.ledger.entries == {}


def test_async_is_the_same(tmp_path: Path) -> None:
    messages = session_of("x" * 100)
    sync = Session(policy(SMALL), root=tmp_path, session_id="s").apply(messages)
    session = Session(policy(SMALL), root=tmp_path, session_id="s")
    assert asyncio.run(session.apply_async(messages)).messages == sync.messages


def test_a_single_result_is_offloaded_as_it_arrives(tmp_path: Path) -> None:
    session = Session("tool-direct-offload", root=tmp_path, session_id="s1")
    message = results(("toolu_x", "x" * 1000))
    result = session.on_tool_result(message)
    path = tmp_path / "s1" / "toolu_x.md"
    assert result.messages[0]["content"][0]["content"] == f"[Tool result offloaded to file: {path}]"
    assert path.read_text(encoding="utf-8") == "x" * 1000


def test_rules_for_tools_hold_on_arrival_where_the_call_is_given(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        tools: {secret: {pin: true}}
        steps: [{name: s, on: arrival, do: offload}]
        """
    call, message = calls(("a", "secret")), results(("a", "x" * 1000))
    session = Session(policy(text), root=tmp_path, session_id="s")
    assert session.on_tool_result(message, call=call).messages == [call, message]
    other = Session(policy(text), root=tmp_path, session_id="t")
    assert other.on_tool_result(message).offloaded_count == 1


def test_openai_chat_results_are_offloaded_too(session: Session) -> None:
    messages = [
        user(),
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "ls", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": "x" * 100},
    ]
    result = session.apply(messages)
    assert result.messages[2] == {
        "role": "tool",
        "tool_call_id": "a",
        "content": f"see {Path(session.store.root) / 'tool_result/ls/a.md'}",
    }


def test_reused_ids_are_paired_by_position(session: Session) -> None:
    messages = [
        user(), calls(("a", "Bash")), results(("a", "x" * 100)),
        calls(("a", "Read")), results(("a", "y" * 100)),
    ]  # fmt: skip
    result = session.apply(messages)
    assert [session.read(path) for path in result.files] == ["x" * 100, "y" * 100]
    assert [Path(path).parent.name for path in result.files] == ["Bash", "Read"]


def test_the_system_prompt_and_tools_are_counted(session: Session) -> None:
    bare = session.plan([user()]).tokens_before
    full = session.plan([user()], system="be brief", tools=[{"name": "ls"}]).tokens_before
    assert full > bare


def test_an_invalid_message_list_is_rejected(session: Session) -> None:
    with pytest.raises(MessagesError, match="message 1: expected"):
        session.apply([user(), {"content": "x"}])


def test_a_new_session_gets_an_id_in_the_form_of_the_policy(tmp_path: Path) -> None:
    assert re.fullmatch(r"session_\d{8}_\d{6}_[a-z0-9]{6}", Session(policy("")).session_id)
    named = Session(policy("store: {session_id: 'run-{date}'}"), root=tmp_path)
    assert re.fullmatch(r"run-\d{8}", named.session_id)


def test_the_root_is_the_policys_with_the_session_in_it() -> None:
    session = Session(policy("store: {root: '~/ctx/{session_id}/x'}"), session_id="../a")
    assert session.store.root == Path("~/ctx/..%2Fa/x").expanduser()


def test_a_relative_root_is_below_the_working_directory() -> None:
    assert Session(policy("store: {root: ctx}")).store.root == Path.cwd() / "ctx"


def test_a_policy_may_be_given_in_any_form(tmp_path: Path) -> None:
    path = tmp_path / "p.yaml"
    path.write_text("apiVersion: policyctx/v1\nname: mine\n", encoding="utf-8")
    for given in (path, str(path), load_policy(path), OffloadPolicy.load(path)):
        assert Session(given).policy.policy.name == "mine"


def test_an_arriving_result_is_not_protected_by_keep_recent(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true, keep_recent: 3}}
        steps: [{name: s, on: arrival, do: offload, must_shrink: false}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    assert session.on_tool_result(results(("a", "x" * 100))).offloaded_count == 1


def test_results_without_an_id_never_share_a_file(tmp_path: Path) -> None:
    session = Session("tool-direct-offload", root=tmp_path, session_id="s")
    message = results(("", "a" * 1500), ("", "b" * 1500))
    files = session.apply([user(), message, user()]).files
    assert [session.read(path) for path in files] == ["a" * 1500, "b" * 1500]


def test_a_beginning_that_is_cut_off_changes_nothing_else(session: Session) -> None:
    first = [calls(("t", "Bash")), results(("t", "x" * 100))]
    second = [calls(("t", "Bash")), results(("t", "y" * 100))]
    whole = session.apply([user(), *first, *second])
    rest = session.apply([user(), *second])
    assert rest.messages[2] == whole.messages[4]
    assert rest.offloaded_count == 0


def test_parallel_results_are_offloaded_as_they_arrive_one_by_one(tmp_path: Path) -> None:
    session = Session("tool-direct-offload", root=tmp_path, session_id="s")
    call = calls(("a", "Bash"), ("b", "Bash"))
    assert session.on_tool_result(results(("a", "x" * 1500)), call=call).offloaded_count == 1


def nested(depth: int) -> list[object]:
    found: list[object] = []
    for _ in range(depth):
        found = [found]
    return found


def test_deeply_nested_content_is_rejected_and_nothing_is_written(session: Session) -> None:
    deep = [{"type": "text", "text": "x" * 200, "more": nested(900)}]
    for messages in (session_of(deep), session_of(nested(50_000))):
        with pytest.raises(MessagesError, match="nested too deeply"):
            session.apply(messages)
    assert not Path(session.store.root).exists()
    with pytest.raises(MessagesError, match="system or tools: not JSON"):
        assert session.plan([user()], system=nested(50_000)).tokens_before


def test_content_that_is_not_json_is_rejected(session: Session) -> None:
    with pytest.raises(MessagesError, match="message 2: not JSON"):
        session.apply(session_of([{"type": "text", (1, 2): "x"}]))


ALONE = SMALL.replace("store: {", "store: {state: none, ")


def test_without_state_calls_are_independent_of_earlier_decisions(tmp_path: Path) -> None:
    session = Session(policy(ALONE), root=tmp_path, session_id="s")
    messages = session_of("x" * 100)
    first, second = session.apply(messages), session.apply(messages)
    assert (first.offloaded_count, second.offloaded_count) == (1, 1)
    assert second.messages == first.messages
    assert session.ledger.entries == {}


@pytest.mark.parametrize("ranked", [False, True])
def test_without_state_a_search_says_that_it_cannot_be_done(tmp_path: Path, ranked: bool) -> None:
    session = Session(policy(ALONE), root=tmp_path, session_id="s")
    session.apply(session_of("x" * 100))
    with pytest.raises(StoreError, match="with `state: none` no list of the texts is kept"):
        list(session.search("xx", ranked=ranked))


def test_without_state_a_result_that_arrives_twice_is_judged_twice(tmp_path: Path) -> None:
    text = """\
        items: {tool_result: {offload: true}}
        store: {state: none}
        steps: [{name: s, on: arrival, do: offload, must_shrink: false}]
        """
    session = Session(policy(text), root=tmp_path, session_id="s")
    message = results(("a", "x" * 100))
    assert session.on_tool_result(message).offloaded_count == 1
    assert session.on_tool_result(message).offloaded_count == 1
    assert session.apply([user(), message]).offloaded_count == 1


def test_without_state_no_call_was_ever_made_before(tmp_path: Path) -> None:
    text = ALONE.replace("do: offload", "do: offload, when: {idle: {over: 0s}}")
    session = Session(policy(text), root=tmp_path, session_id="s")
    session.apply(session_of("x" * 100))
    [verdict] = session.plan(session_of("x" * 100)).gates
    assert verdict.note == "no_call_yet"


@pytest.mark.parametrize("wording", ["see {path}", "{tool_use_id} is in {relative_path}"])
def test_a_placeholder_is_recognised_by_its_text_without_a_ledger(
    tmp_path: Path, wording: str
) -> None:
    text = SMALL.replace("min_chars: 100", "min_chars: 4").replace("see {path}", wording)
    text = text.replace("sync: never", "sync: never, state: none")
    messages = [user(), results(("a", "x" * 100), ("a", "y" * 100))]
    given = Session(policy(text), root=tmp_path, session_id="s").apply(messages).messages
    plan = Session(policy(text), root=tmp_path, session_id="s").plan(given)
    assert [decision.reason.code for decision in plan.decisions] == ["placeholder", "placeholder"]


def test_a_store_that_is_set_later_counts_with_a_warning(tmp_path: Path) -> None:
    session = Session(policy(SMALL), root=tmp_path / "a", session_id="s")
    with pytest.warns(DeprecationWarning, match=r"make the session with Session\(…, store=store\)"):
        session.store = ContextFileSystem(tmp_path / "b", session="s")
    [path] = session.apply(session_of("x" * 400)).files
    assert Path(path).is_relative_to(tmp_path / "b")
    assert session.read(path) == "x" * 400
