"""`Session(record=…)`: a program's own calls as a recording, and what goes wrong with its file."""

from __future__ import annotations

import asyncio
import json
import logging
import multiprocessing
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread
from typing import Any

import pytest

from policyctx import Request, Session
from policyctx.errors import InputError
from policyctx.messages.shapes.built_in import BUILT_IN
from policyctx.replay.reading import recordings_in
from policyctx.replay.recording import Recording
from policyctx.tokens.usage import Usage, usage_of
from tests.cli.running import policyctx
from tests.conversations import chat_calls, chat_result, session_of, user
from tests.policies import policy
from tests.test_session_failing_disk import files_too_large

NOTHING = policy("store: {sync: never}")
OLD = """\
    min_tokens: 0
    items: {tool_result: {offload: true}}
    steps: [{name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}]
    """
USAGES = [
    Usage(70, 20, 30, 9, 10, tier="priority"),
    Usage(5, 400, 0, 1),
    Usage(900, 0, 12, 4, 0),
    Usage(1_000),
]


def loop(session: Session, messages: Sequence[Any], usages: Sequence[Usage] = USAGES) -> list[Any]:
    """Call a model after each second message; return the list that each call was sent."""
    sent = []
    for call, usage in enumerate(usages):
        sent.append(session.apply(messages[: 2 * call + 1], system="Be brief.").messages)
        session.observe(usage)
    return sent


def read(path: Path) -> Recording:
    [recording] = recordings_in(path)
    return recording


def bills(recording: Recording) -> list[Usage | None]:
    return [call.usage for call in recording.calls]


def contexts(recording: Recording) -> list[list[Any]]:
    return [list(context) for context in recording.contexts()]


def recorded(path: Path, session_id: str = "s", **options: Any) -> Session:
    return Session(
        NOTHING, root=path.parent / "root", session_id=session_id, record=path, **options
    )


ANTHROPIC = session_of("x" * 50, "y", "z")
CHAT: list[Any] = [
    user("the task"),
    *[m for i in "abc" for m in (chat_calls((i, "read", "{}")), chat_result(i, i * 40))],
]
RESPONSES: list[Any] = [
    user("the task"),
    *[
        item
        for i in "abc"
        for item in (
            {"type": "function_call", "call_id": i, "name": "read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": i, "output": i * 40},
        )
    ],
]
GEMINI: list[Any] = [
    {"role": "user", "parts": [{"text": "the task"}]},
    *[
        content
        for i in "abc"
        for content in (
            {"role": "model", "parts": [{"functionCall": {"name": "read", "args": {"p": i}}}]},
            {
                "role": "user",
                "parts": [{"functionResponse": {"name": "read", "response": {"output": i * 40}}}],
            },
        )
    ],
]


@pytest.mark.parametrize(
    "messages", [ANTHROPIC, CHAT, RESPONSES, GEMINI], ids=["anthropic", "chat", "items", "gemini"]
)
def test_a_recording_has_each_call_with_its_messages_and_its_usage(
    tmp_path: Path, messages: list[Any]
) -> None:
    path = tmp_path / "own.jsonl"
    sent = loop(recorded(path, clock=lambda: 1e9), messages)
    recording = read(path)
    assert (recording.format, bills(recording)) == ("request-log", USAGES)
    assert [call.usage and call.usage.tier for call in recording.calls] == ["priority", "", "", ""]
    assert contexts(recording) == sent
    assert {(call.at, call.system) for call in recording.calls} == {(1e9, "Be brief.")}
    assert recording.not_understood == {}
    lines = path.read_text().splitlines()
    assert [len(json.loads(line)["messages"]) for line in lines] == [1, 2, 2, 2]
    assert ["Be brief" in line for line in lines] == [True, False, False, False]


def test_every_usage_is_read_back_as_it_was_observed() -> None:
    assert [usage_of(usage.as_record()) for usage in USAGES] == USAGES


def test_the_model_is_that_of_the_request_or_of_the_session(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    for number, model in enumerate(["a", None, "b"]):
        session.apply([user(str(i)) for i in range(number + 1)], request=Request(model=model))
        session.observe(USAGES[0])
    assert [call.language_model for call in read(path).calls] == ["a", "a", "b"]


def test_nothing_is_recorded_by_default(tmp_path: Path) -> None:
    session = Session(NOTHING, root=tmp_path / "root", session_id="s")
    loop(session, ANTHROPIC)
    session.close()
    assert list(tmp_path.iterdir()) == []


def test_what_the_policy_takes_out_is_not_in_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    secrets = policy("""
        min_tokens: 0
        items: {tool_result: {offload: true}}
        steps: [{name: s, do: clear, must_shrink: false, select: {tools: [vault], keep_recent: 0}}]
        """)
    session = Session(secrets, root=tmp_path / "root", session_id="s", record=path)
    loop(session, session_of("password hunter2 " * 20, "b", "c", tool="vault"))
    assert "hunter2" not in path.read_text()
    assert len(read(path).calls) == len(USAGES)


def test_a_decision_of_the_policy_begins_the_list_anew_where_it_changed(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    session = Session(policy(OLD), root=tmp_path / "root", session_id="s", record=path)
    sent = loop(session, session_of(*["a " * 200, "b " * 200, "c " * 200]))
    assert contexts(read(path)) == sent
    kept = [json.loads(line)["kept"] for line in path.read_text().splitlines()]
    assert kept == [0, 1, 2, 4]


@pytest.mark.parametrize("mode", [None, 0o644])
def test_only_the_owner_may_read_the_file(tmp_path: Path, mode: int | None) -> None:
    path = tmp_path / "below" / "own.jsonl"
    if mode is not None:
        path.parent.mkdir()
        path.touch(mode)
        path.chmod(mode)
    before = os.umask(0)
    try:
        loop(recorded(path), ANTHROPIC)
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_full_disk_never_fails_a_call_and_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    said: list[str] = []
    with caplog.at_level(logging.ERROR):
        for call, usage in enumerate(USAGES * 2):
            result = session.apply(ANTHROPIC[: call % 3 * 2 + 1])
            said += result.warnings
            if 1 <= call <= 4:
                with files_too_large(tmp_path):
                    session.observe(usage)
            else:
                session.observe(usage)
    failed = f"a call was not recorded in {path}: [Errno 27] File too large"
    assert said == [failed, f"calls are recorded in {path} again"]
    assert session.totals().unrecorded == 4
    assert bills(read(path)) == [USAGES[0], *(USAGES * 2)[5:]]


@pytest.mark.parametrize("kind", ["folder", "link", "pipe", "below a file"])
def test_what_is_no_file_is_not_written_and_no_call_fails(tmp_path: Path, kind: str) -> None:
    path, target = tmp_path / "own.jsonl", tmp_path / "other"
    if kind == "folder":
        path.mkdir()
    elif kind == "link":
        path.symlink_to(target)
    elif kind == "pipe":
        os.mkfifo(path)
    else:
        path.touch()
        path /= "own.jsonl"
    session = recorded(path, clock=lambda: 0.0)
    loop(session, ANTHROPIC)
    assert session.totals().unrecorded == len(USAGES)
    assert not target.exists()


def test_a_message_that_is_not_json_is_not_written_and_no_call_fails(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    message = session_of("x")[1]
    circle: list[Any] = []
    circle.append(circle)
    message["content"][0]["beside"] = circle
    session.apply([user(), message, *session_of("x")[2:]])
    session.observe(USAGES[0])
    assert session.totals().unrecorded == 1


def test_lone_surrogates_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    loop(recorded(path), [user("half \ud83d a face")], USAGES[:1])
    assert path.read_bytes().decode("utf-8")
    assert contexts(read(path)) == [[user("half \ud83d a face")]]


KILLED = """
import os, signal, sys
from policyctx import Session
from tests.conversations import session_of
from tests.test_session_record import recorded, loop, USAGES
from pathlib import Path
from threading import Event, Thread, current_thread, main_thread

write, left = os.write, int(sys.argv[2])
def killing(file, content):
    global left
    left -= 1
    if left:
        return write(file, content)
    write(file, bytes(content[: len(content) // 2]))
    os.kill(os.getpid(), signal.SIGKILL)
os.write = killing
loop(recorded(Path(sys.argv[1])), session_of("x" * 500, "y", "z"))
"""


def test_a_process_killed_in_the_middle_of_a_line_costs_that_line_alone(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    run = subprocess.run([sys.executable, "-c", KILLED, str(path), "3"], check=False)
    assert run.returncode == -signal.SIGKILL
    recording = read(path)
    assert bills(recording) == USAGES[:2]
    told = policyctx("tokens", path)
    assert "1 × line that is not JSON" in told.stderr
    loop(recorded(path), ANTHROPIC)
    assert bills(read(path)) == [*USAGES[:2], *USAGES]


def test_a_session_goes_on_in_the_same_recording_after_a_restart(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    loop(recorded(path), ANTHROPIC, USAGES[:2])
    session = recorded(path)
    session.apply(ANTHROPIC[:5])
    session.observe(USAGES[2])
    recording = read(path)
    assert bills(recording) == USAGES[:3]
    assert [call.anew for call in recording.calls] == [True, False, False]


def _write_calls(path: Path, name: str) -> None:
    loop(recorded(path, name), [user(name), *ANTHROPIC[1:]] * 20, USAGES * 10)


def test_sessions_of_several_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_write_calls, args=(path, f"s{i}")) for i in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = {
        recording.messages()[0]["content"]: bills(recording) for recording in recordings_in(path)
    }
    assert found == {f"s{i}": USAGES * 10 for i in range(3)}


def test_sessions_in_one_process_share_a_file_and_each_is_a_recording(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    sessions = [recorded(path, name) for name in "ab"]
    for call, usage in enumerate(USAGES):
        for session in sessions:
            session.apply(ANTHROPIC[: 2 * call + 1])
            session.observe(usage)
    assert [bills(recording) for recording in recordings_in(path)] == [USAGES, USAGES]


def test_each_session_has_a_file_of_its_own_where_the_path_names_it(tmp_path: Path) -> None:
    path = tmp_path / "{session_id}.jsonl"
    for name in ("a", "b/c"):
        loop(recorded(path, name), ANTHROPIC)
    assert {one.name for one in tmp_path.iterdir()} == {"a.jsonl", "b%2Fc.jsonl"}


@pytest.mark.parametrize("path", ["{session_id}/{date}.jsonl", "s3://bucket/own.jsonl", 7])
def test_a_path_that_names_no_file_is_refused(tmp_path: Path, path: Any) -> None:
    with pytest.raises(InputError, match="record"):
        Session(NOTHING, root=tmp_path, session_id="s", record=path)


def test_a_child_is_recorded_beside_its_parent(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    parent = recorded(path)
    loop(parent, ANTHROPIC)
    loop(parent.child("explore"), [user("look around")], USAGES[:1])
    assert [bills(recording) for recording in recordings_in(path)] == [USAGES, USAGES[:1]]


def test_a_request_without_a_usage_is_a_call_and_one_that_is_repeated_counts_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "own.jsonl"
    with recorded(path) as session:
        session.apply(ANTHROPIC[:1])
        session.apply(ANTHROPIC[:1])  # the first attempt failed
        session.observe(USAGES[0])
        session.observe(USAGES[1])  # belongs to no request
        session.apply(ANTHROPIC[:3])
        session.apply(ANTHROPIC[:5])
    assert bills(read(path)) == [USAGES[0], None, None]


@pytest.mark.parametrize("changed", [False, True])
def test_a_message_that_changes_after_the_call_is_recorded_as_it_was_sent(
    tmp_path: Path, changed: bool
) -> None:
    def asked(words: str) -> Any:
        return {"role": "user", "content": [{"type": "text", "text": words}]}

    messages = [asked("go")]
    session = recorded(tmp_path / "r.jsonl")
    for reply in ("so", "done"):
        session.apply(messages, changed=changed)
        messages[-1]["content"][0]["text"] += " at once"
        session.observe(USAGES[0])
        messages += [{"role": "assistant", "content": reply}, asked("on")]
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text().splitlines()]
    texts = [line["messages"][-1]["content"][0]["text"] for line in lines]
    assert texts == ["go", "on"]


def test_the_last_request_is_recorded_when_the_session_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    session.apply(ANTHROPIC[:1])
    del session
    assert bills(read(path)) == [None]


@pytest.mark.parametrize("change", ["removed", "emptied", "replaced"])
def test_a_file_that_somebody_takes_away_begins_anew(tmp_path: Path, change: str) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    for call, usage in enumerate(USAGES):
        session.apply(ANTHROPIC[: 2 * call + 1])
        session.observe(usage)
        if call == 1:
            if change == "emptied":
                path.write_text("")
            else:
                path.rename(tmp_path / "rotated")
            if change == "replaced":
                path.write_bytes((tmp_path / "rotated").read_bytes())
    before = USAGES[:2] if change == "replaced" else []
    assert bills(read(path)) == [*before, *USAGES[2:]]
    assert contexts(read(path))[-1] == ANTHROPIC


def test_a_forked_process_records_its_own_calls(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    loop(session, ANTHROPIC, USAGES[:2])
    session.apply(ANTHROPIC[:5])
    if (child := os.fork()) == 0:
        session.observe(USAGES[3])
        os._exit(0)
    os.waitpid(child, 0)
    session.observe(USAGES[2])
    assert bills(read(path)) == [*USAGES[:2], USAGES[3], USAGES[2]]


def test_a_line_whose_history_is_missing_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    loop(recorded(path), ANTHROPIC)
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], "{", *lines[2:]]))
    [recording] = recordings_in(path, partial=True)
    assert bills(recording) == USAGES[:1]
    run = policyctx("tokens", path)
    assert run.returncode == 1
    assert "2 × request without the line that it continues" in run.stderr


def test_asynchronous_turns_are_recorded(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"

    async def run() -> None:
        async with recorded(path) as session:
            for call, usage in enumerate(USAGES):
                await session.apply_async(ANTHROPIC[: 2 * call + 1])
                await session.observe_async(usage)

    asyncio.run(run())
    assert bills(read(path)) == USAGES


def test_markers_are_where_the_request_had_them(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    breaking = policy("model: {cache: {breakpoints: auto}}\nstore: {sync: never}")
    session = Session(breaking, root=tmp_path / "root", session_id="s", record=path)
    tools = [{"name": "Bash", "input_schema": {}}]
    marks = []
    for call, usage in enumerate(USAGES):
        result = session.apply(ANTHROPIC[: 2 * call + 1], system="Be brief.", tools=tools)
        marks.append([i for i, m in enumerate(result.messages) if "cache_control" in str(m)])
        session.observe(usage)
    found = [
        sorted({mark.message for mark in call.marks or () if mark.message is not None})
        for call in read(path).calls
    ]
    assert found == marks
    assert all(len([m for m in call.marks or () if m.message is None]) for call in read(path).calls)


def test_replay_of_a_recording_says_what_was_observed(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    session = recorded(path)
    request = Request(model="claude-sonnet-4-5")
    for call, usage in enumerate(USAGES[1:]):
        session.apply(ANTHROPIC[: 2 * call + 1], request=request)
        session.observe(usage)
    run = policyctx("replay", "coding-agent", path, "--json")
    total = json.loads(run.stdout)["total"]
    observed = USAGES[1] + USAGES[2] + USAGES[3]
    assert (total["calls"], total["calls_with_usage"]) == (3, 3)
    assert total["tokens_without"] == observed.prompt == session.totals().tokens_sent
    assert BUILT_IN.role(read(path).messages()[0]) == "user"


@pytest.mark.parametrize(
    "before", ['{"a": 1}', "{}\n", "x" * 70_000, '{"session_id":"mine","important":[1,2,3]}']
)
def test_what_a_file_had_before_stays(tmp_path: Path, before: str) -> None:
    path = tmp_path / "own.jsonl"
    path.write_text(before)
    loop(recorded(path), ANTHROPIC, USAGES[:1])
    assert path.read_text().startswith(before.strip() + '\n{"session_id":"s"')


@pytest.mark.parametrize("change", ["emptied", "removed"])
def test_a_line_never_continues_one_that_a_longer_line_has_replaced(
    tmp_path: Path, change: str
) -> None:
    path = tmp_path / "own.jsonl"
    session, other = recorded(path), recorded(path, "other")
    session.apply(ANTHROPIC[:1])
    session.observe(USAGES[0])
    if change == "emptied":
        path.write_text("")
    else:
        path.unlink()  # many file systems give its number to the next file
    loop(other, [user("long " * 500)], USAGES[:1])
    for call in (1, 2):
        session.apply(ANTHROPIC[: 2 * call + 1])
        session.observe(USAGES[call])
    found = {str(one.messages()[0])[:40]: one for one in recordings_in(path)}
    assert [bills(one) for one in found.values()] == [USAGES[:1], USAGES[1:3]]
    assert all(one.not_understood == {} for one in found.values())


def test_a_whole_line_without_a_newline_stays(tmp_path: Path) -> None:
    path = tmp_path / "own.jsonl"
    loop(recorded(path, "one"), ANTHROPIC, USAGES[:2])
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    loop(recorded(path, "two"), ANTHROPIC, USAGES[:1])
    assert [bills(recording) for recording in recordings_in(path)] == [USAGES[:2], USAGES[:1]]


def test_a_process_forked_during_a_write_is_not_held_up_for_ever(tmp_path: Path) -> None:
    path, parent = tmp_path / "own.jsonl", os.getpid()
    is_writing, goes_on = Event(), Event()

    def clock() -> float:
        if os.getpid() == parent and current_thread() is not main_thread():
            is_writing.set()
            goes_on.wait(60)
        return 0.0

    session = recorded(path, clock=clock)
    session.apply(ANTHROPIC[:1])
    writer = Thread(target=session.observe, args=(USAGES[1],))
    writer.start()
    assert is_writing.wait(60)
    if (child := os.fork()) == 0:
        signal.alarm(30)
        session.apply(ANTHROPIC[:3])
        session.observe(USAGES[0])
        os._exit(session.totals().unrecorded)
    goes_on.set()
    writer.join()
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert bills(read(path)) == [USAGES[1], USAGES[0]]
