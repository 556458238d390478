from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.reading import recordings_in
from policyctx.replay.simulation import simulated
from tests.cli.running import policyctx
from tests.replay.readers.test_codex import TURN, beside, counted

pytestmark = pytest.mark.slow


def test_the_first_of_several_recordings_is_taken_and_named(tmp_path: Path) -> None:
    traj = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "so"}]
    path = tmp_path / "results.json"
    path.write_text(json.dumps([{"task_id": n, "traj": traj} for n in (1, 2)]), encoding="utf-8")
    run = policyctx("explain", "small-context", path)
    assert run.returncode == 0
    assert "holds several recordings; this is the first, results.json#1" in run.stderr


def billed_session(path: Path, *sizes: int) -> Path:
    """A session of mini-swe-agent with a call for each size that was billed."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "go"}]
    for number, size in enumerate(sizes):
        usage = {"prompt_tokens": size, "completion_tokens": 5}
        function = {"name": "sh", "arguments": "{}"}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "assistant", "content": "so", "tool_calls": [call],
             "extra": {"response": {"usage": usage}}},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"{number} and so on " * 500},
        ]  # fmt: skip
    document = {"trajectory_format": "mini-swe-agent-1", "messages": messages}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


IDLE = """\
apiVersion: policyctx/v1
name: idle
min_chars: 100
items: {tool_result: {offload: true}}
steps: [{name: s, do: offload, when: {idle: {over: 250s}}, select: {types: [tool_result]}}]
"""
SIZES = (100_000, 130_000, 158_000, 159_900, 162_000, 210_000)


def gate_of(policy: str, path: Path, *more: str) -> dict[str, Any]:
    """The gate of the step that summarises, as `explain` reports it."""
    run = policyctx("explain", policy, path, "--json", *more)
    assert run.returncode == 0, run.stderr
    *_, gate = json.loads(run.stdout)["gates"]
    assert isinstance(gate, dict)
    return gate


def test_gates_compare_billed_tokens_and_agree_with_the_replay(tmp_path: Path) -> None:
    path = billed_session(tmp_path / "s.json", *SIZES)
    opens = [gate_of("small-context", path, "--call", str(n + 1))["opens"] for n in range(6)]
    (recording,) = recordings_in(path)
    replayed = simulated(recording, OffloadPolicy.load("small-context"))
    compacted = [call.compacted for call in replayed.calls]
    assert opens.index(True) == compacted.index(True) == 3
    assert gate_of("small-context", path)["number"] > 160_000


def test_gates_use_the_share_of_a_call_where_only_a_sum_was_billed(tmp_path: Path) -> None:
    session = json.loads(billed_session(tmp_path / "s.json", *SIZES).read_text(encoding="utf-8"))
    history = [{**message, "agent": "main"} for message in session["messages"]]
    for message in history:
        message.pop("extra", None)
    stats = {"model_stats": {"tokens_sent": 60_000, "tokens_received": 90, "api_calls": 6}}
    config = json.dumps({"agent": {"model": {"name": "gpt-x"}}})
    document = {"trajectory": [], "history": history, "info": stats, "replay_config": config}
    path = tmp_path / "s.traj"
    path.write_text(json.dumps(document), encoding="utf-8")
    (recording,) = recordings_in(path)
    replayed = simulated(recording, OffloadPolicy.load("small-context"))
    last = replayed.calls[-1].share
    assert last is not None
    assert gate_of("small-context", path, "--call", "6")["number"] == pytest.approx(
        last.prompt, rel=0.05
    )
    report = json.loads(policyctx("plan", "small-context", path, "--json").stdout)
    assert report["recording"]["calls_with_summed_usage"] == 6


@pytest.mark.parametrize("command", ["plan", "explain", "apply"])
def test_calls_above_the_context_window_are_reported(tmp_path: Path, command: str) -> None:
    path = billed_session(tmp_path / "s.json", *SIZES)
    run = policyctx(command, "context-offload", path, "--root", tmp_path / "root")
    note = (
        "note: 1 recorded call was billed more than model.context_window, 200,000 tokens;"
        " the largest 210,000\n"
    )
    assert note in run.stderr
    run = policyctx(command, "context-offload", path, "--json", "--root", tmp_path / "root")
    report = json.loads(run.stderr if command == "apply" else run.stdout)
    assert report["recording"] == {
        "name": "s.json", "format": "mini-swe-agent", "model": None,
        "calls": 6, "calls_with_usage": 6, "calls_with_summed_usage": 0,
        "largest_billed": 210_000, "context_window": 200_000, "calls_over_window": 1,
        "not_understood": {},
    }  # fmt: skip


def test_the_pause_before_a_recorded_call_counts_as_in_a_replay(tmp_path: Path) -> None:
    path = billed_session(tmp_path / "s.json", *SIZES)
    document = json.loads(path.read_text(encoding="utf-8"))
    times = iter([0, 100, 200, 500, 600, 700])
    for message in document["messages"]:
        if message["role"] == "assistant":
            message["extra"]["timestamp"] = 1_750_000_000 + next(times)
    path.write_text(json.dumps(document), encoding="utf-8")
    policy = tmp_path / "p.yaml"
    policy.write_text(IDLE, encoding="utf-8")
    calls = [(), *(("--call", str(n + 1)) for n in range(6))]
    gates = [gate_of(str(policy), path, *call) for call in calls]
    assert [gate.get("number") for gate in gates] == [None, None, 100, 100, 300, 100, 100]
    assert [gate["opens"] for gate in gates].index(True) == 4
    (recording,) = recordings_in(path)
    replayed = simulated(recording, OffloadPolicy.load(policy))
    assert [call.removed > 0 for call in replayed.calls].index(True) == 3


def test_shares_are_of_the_window_of_the_recorded_model_as_in_a_replay(tmp_path: Path) -> None:
    path = billed_session(tmp_path / "s.json", *SIZES)
    document = json.loads(path.read_text(encoding="utf-8"))
    document["info"] = {"config": {"model": {"model_name": "gpt-4o"}}}
    path.write_text(json.dumps(document), encoding="utf-8")
    (recording,) = recordings_in(path)
    replayed = simulated(recording, OffloadPolicy.load("small-context"))
    first = [call.compacted for call in replayed.calls].index(True)
    run = policyctx("explain", "small-context", path, "--call", str(first + 1), "--json")
    *_, gate = json.loads(run.stdout)["gates"]
    assert (gate["opens"], gate["limit"]) == (True, 102_400)
    assert json.loads(run.stdout)["recording"]["context_window"] == 128_000
    assert (
        "note: gates see the window of gpt-4o, 128,000 tokens; model.context_window in the"
        " policy would replace it\n"
    ) in run.stderr


def test_shares_are_of_the_window_of_the_model_in_a_request_body() -> None:
    body = json.dumps({"model": "gpt-4o", "messages": []}).encode()
    run = policyctx("explain", "small-context", "-", "--json", stdin=body)
    assert json.loads(run.stdout)["gates"][-1]["limit"] == 102_400
    assert "gates see the window of gpt-4o, 128,000 tokens" in run.stderr
    assert "window" not in policyctx("plan", "context-offload", "-", stdin=body).stderr


def test_the_report_of_a_plain_list_has_no_recording() -> None:
    run = policyctx("plan", "context-offload", "-", "--json", stdin=b"[]")
    assert json.loads(run.stdout)["recording"] is None


def test_a_chosen_call_is_planned_with_the_list_that_it_sent(tmp_path: Path) -> None:
    path = billed_session(tmp_path / "s.json", *SIZES)
    run = policyctx("apply", "context-filesystem", path, "--call", "3", "--root", tmp_path / "r")
    roles = [message["role"] for message in json.loads(run.stdout)]
    assert roles == ["user", "assistant", "tool", "assistant", "tool"]
    report = json.loads(policyctx("tokens", path, "--call", "3", "--json").stdout)
    assert [call["billed"] for call in report["billed"]["calls"]] == [*SIZES[:3]]


@pytest.mark.parametrize("call", ["7", "99"])
def test_a_missing_call_is_an_error(tmp_path: Path, call: str) -> None:
    path = billed_session(tmp_path / "s.json", *SIZES)
    run = policyctx("plan", "small-context", path, "--call", call)
    assert run.returncode == 1
    assert run.stderr == f"error: {path}: s.json has 6 calls; there is no {call}\n"


def test_a_call_of_a_list_without_calls_is_an_error() -> None:
    stdin = b'[{"role": "user", "content": "go"}]'
    run = policyctx("plan", "small-context", "-", "--call", "1", stdin=stdin)
    assert run.returncode == 1
    assert run.stderr == "error: stdin: --call needs a recording with calls of a model\n"


def several(path: Path) -> Path:
    tasks = []
    for number in (7, 8):
        said = {"role": "assistant", "content": f"task {number}"}
        traj = [{"role": "user", "content": "go"}, said]
        tasks.append({"task_id": number, "trial": 0, "traj": traj})
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


@pytest.mark.parametrize("session", ["results.json#8-0", "8-0", "2"])
@pytest.mark.parametrize("command", ["plan", "explain", "apply", "tokens"])
def test_a_session_is_chosen_by_name_or_number(tmp_path: Path, command: str, session: str) -> None:
    path = several(tmp_path / "results.json")
    policy = () if command == "tokens" else ("small-context",)
    run = policyctx(command, *policy, path, "--session", session)
    assert (run.returncode, "several" in run.stderr) == (0, False)
    if command == "apply":
        assert json.loads(run.stdout)[1]["content"] == "task 8"


@pytest.mark.parametrize(("session", "start"), [("nope", "no session 'nope'; "), ("?", "")])
def test_the_sessions_of_a_file_are_listed(tmp_path: Path, session: str, start: str) -> None:
    path = several(tmp_path / "results.json")
    run = policyctx("plan", "small-context", path, "--session", session)
    assert run.returncode == 1
    assert run.stderr == (
        f"error: {path}: {start}its sessions are results.json#7-0 (1 call),"
        " results.json#8-0 (1 call)\n"
    )


def test_the_session_option_requires_a_recording() -> None:
    run = policyctx("plan", "small-context", "-", "--session", "x", stdin=b'{"pages": 1}')
    assert run.returncode == 1
    assert run.stderr == "error: stdin: --session needs a recording\n"


def test_billed_tokens_are_shown_for_every_format_with_usage(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    head = beside("session_meta", base_instructions={"text": "You are. " * 100})
    lines = [head, *TURN, counted(900, 900, cached=100)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    report = json.loads(policyctx("tokens", path, "--json").stdout)
    assert [call["billed"] for call in report["billed"]["calls"]] == [900]
    # The system prompt that the recording has is a part of the request.
    assert report["request_tokens"] > report["item_tokens"] + 300


def test_a_line_that_is_not_utf_8_is_told_and_the_others_are_shown(tmp_path: Path) -> None:
    lines = [json.dumps({"role": "user", "content": f"{i}"}).encode() for i in range(20)]
    path = tmp_path / "chat.jsonl"
    path.write_bytes(b"\n".join([*lines, b'{"role": "user", "content": "caf\xe9"}']))
    run = policyctx("explain", "small-context", path)
    assert run.returncode == 0
    assert "1 × line that is not JSON" in run.stderr


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ('{"pages": []}', "a JSON document with the key pages; none of the known formats: claude-"),
        ("dear diary", "a text; neither JSON nor JSON lines; docs/recordings.md"),
    ],
)
def test_an_unknown_document_is_an_error_with_what_it_looks_like(
    tmp_path: Path, content: str, why: str
) -> None:
    path = tmp_path / "diary"
    path.write_text(content, encoding="utf-8")
    run = policyctx("explain", "small-context", path)
    assert (run.returncode, run.stdout) == (1, "")
    assert f"; nor is it a known recording: {why}" in run.stderr


def with_model(path: Path, name: str) -> Path:
    document = json.loads(billed_session(path, *SIZES).read_text(encoding="utf-8"))
    document["info"] = {"config": {"model": {"model_name": name}}}
    path.write_text(json.dumps(document), encoding="utf-8")
    return path


def test_the_output_of_apply_names_the_recorded_model(tmp_path: Path) -> None:
    path, new = with_model(tmp_path / "s.json", "gpt-4o"), tmp_path / "new.json"
    run = policyctx("apply", "small-context", path, "-o", new, "--root", tmp_path / "r")
    assert run.returncode == 0, run.stderr
    assert json.loads(new.read_text(encoding="utf-8"))["model"] == "gpt-4o"
    again = policyctx("plan", "small-context", new)
    assert "gates see the window of gpt-4o, 128,000 tokens" in again.stderr


def test_the_output_of_apply_is_a_body_of_the_responses_api_for_its_items(tmp_path: Path) -> None:
    path = tmp_path / "rollout.jsonl"
    lines = [beside("turn_context", model="gpt-5"), *TURN, counted(9, 900)]
    path.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    body = json.loads(policyctx("apply", "context-offload", path, cwd=tmp_path).stdout)
    assert (body["model"], len(body["input"])) == ("gpt-5", len(TURN))


CALL = {"id": "c1", "type": "function", "function": {"name": "sh", "arguments": "{}"}}


@pytest.mark.parametrize(
    ("messages", "note"),
    [
        (
            [{"role": "tool", "tool_call_id": "c1", "content": "done"}],
            "note: no call for 1 result of a tool in the list\n",
        ),
        (
            [{"role": "assistant", "content": "", "tool_calls": [CALL]}],
            "note: no result for 1 call of a tool in the list\n",
        ),
        (
            [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c", "content":
            "x"}, {"type": "text", "text": "y"}]}],
            "note: no call for 1 result of a tool in the list\n",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("command", ["plan", "explain", "apply", "tokens"])
def test_a_half_of_a_pair_is_reported(
    command: str, messages: list[dict[str, Any]], note: str, tmp_path: Path
) -> None:
    given = [{"role": "user", "content": "go"}, *messages, {"role": "assistant", "content": "so"}]
    policy = () if command == "tokens" else ("context-offload",)
    run = policyctx(command, *policy, "-", stdin=json.dumps(given).encode(), cwd=tmp_path)
    assert (run.returncode, note in run.stderr) == (0, True), run.stderr


def test_a_call_that_still_runs_is_no_half_of_a_pair(tmp_path: Path) -> None:
    given = [{"role": "user", "content": "go"}, {"role": "assistant", "tool_calls": [CALL]}]
    run = policyctx("plan", "context-offload", "-", stdin=json.dumps(given).encode(), cwd=tmp_path)
    assert "note" not in run.stderr
