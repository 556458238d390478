from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx
from tests.drawing import IS_LONG
from tests.policies import KEEP_FIVE
from tests.replay.test_registered import register_reader
from tests.replay.test_running import claude_code

pytestmark = pytest.mark.slow

TEXTS = [f"line {i} of some output\n" * 300 for i in range(8)]

COMMANDS = [("replay", "small-context"), ("diff", "small-context", "context-offload")]


@pytest.fixture
def keep_five(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("policy") / "keep-five.yaml"
    path.write_text(KEEP_FIVE, encoding="utf-8")
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "sessions"
    folder.mkdir()
    claude_code(folder / "long.jsonl", *TEXTS)
    claude_code(folder / "short.jsonl", "done")
    return folder


def test_output_has_one_line_per_session_and_a_total(folder: Path, keep_five: Path) -> None:
    run = policyctx("replay", keep_five, folder)
    lines = [line.split() for line in run.stdout.splitlines()]
    assert run.returncode == 0
    assert run.stderr == ""
    assert [line[:2] for line in lines[3:6]] == [
        ["long.jsonl", "8"],
        ["short.jsonl", "1"],
        ["total", "9"],
    ]
    assert "step      retire-old-results removed 2 items before 2 calls" in run.stdout
    assert "regret    needed again: 0 of 2 removed items" in run.stdout


def _errors(stderr: str) -> list[str]:
    """Return the lines without those of progress, which a slow machine prints."""
    return [line for line in stderr.splitlines() if line.startswith("error: ")]


def test_lines_keep_the_order_of_the_files_with_several_processes(folder: Path) -> None:
    (folder / "broken.jsonl").write_text('[{"role": "user", "content": 5}]', encoding="utf-8")
    one = policyctx("replay", "small-context", folder, "--csv")
    two = policyctx("replay", "small-context", folder, "--csv", "--jobs", "2")
    names = [[row["name"] for row in csv.DictReader(io.StringIO(run.stdout))] for run in (one, two)]
    assert names == [["long.jsonl", "short.jsonl"]] * 2
    error = f"error: {folder / 'broken.jsonl'}: no message is in it"
    assert _errors(one.stderr) == _errors(two.stderr) == [error]


def test_an_unreadable_file_is_not_counted_as_replayed(folder: Path) -> None:
    (folder / "broken.jsonl").write_text('[{"role": "user", "content": 5}]', encoding="utf-8")
    run = policyctx("replay", "small-context", folder / "broken.jsonl", folder / "short.jsonl")
    assert "replayed  1 session of 1 file: 1 model call" in run.stdout


@pytest.mark.parametrize(
    ("command", "jobs"), [*((command, "1") for command in COMMANDS), (COMMANDS[0], "2")]
)
def test_a_path_that_is_not_a_regular_file_is_reported_and_the_rest_replayed(
    command: tuple[str, ...], jobs: str, folder: Path
) -> None:
    (folder / "broken.jsonl").symlink_to(folder / "nowhere")
    (folder / "zero.jsonl").symlink_to("/dev/zero")
    run = policyctx(*command, folder, "--jobs", jobs)
    assert run.returncode == 1
    assert sorted(_errors(run.stderr)) == [
        f"error: {folder / 'broken.jsonl'}: No such file or directory",
        f"error: {folder / 'zero.jsonl'}: not a regular file: it is a device",
    ]


@pytest.mark.parametrize("command", COMMANDS)
def test_recordings_without_a_call_are_an_error(command: tuple[str, ...], tmp_path: Path) -> None:
    record = {
        "type": "user", "uuid": "1", "parentUuid": None, "sessionId": "s",
        "message": {"role": "user", "content": "x"},
    }  # fmt: skip
    path = tmp_path / "s.jsonl"
    path.write_text(json.dumps(record) + "\n", encoding="utf-8")
    run = policyctx(*command, path)
    assert run.returncode == 1
    assert run.stderr == "error: no recording has a call of a model\n"


def test_nothing_is_written(folder: Path, tmp_path: Path) -> None:
    policyctx("replay", "small-context", folder, cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "long.jsonl",
        "sessions",
        "short.jsonl",
    ]


def test_the_json_option_prints_json(folder: Path, keep_five: Path) -> None:
    report = json.loads(policyctx("replay", keep_five, folder, "--json").stdout)
    long, short = report["sessions"]
    assert (long["name"], long["format"], long["calls"]) == ("long.jsonl", "claude-code", 8)
    assert long["steps"] == {
        "retire-old-results": {"calls": 2, "items": 2},
        "make-it-fit": {"calls": 0, "items": 0},
        "summarise": {"calls": 0, "items": 0},
    }
    assert short["tokens_with"] == short["tokens_without"]
    assert report["total"]["calls"] == 9
    assert report["total"]["tokens_without"] == long["tokens_without"] + short["tokens_without"]
    assert report["total"]["cost_with"]["dollars"] is None
    assert report["failures"] == []


def test_the_csv_option_prints_csv(folder: Path, keep_five: Path) -> None:
    run = policyctx("replay", keep_five, folder, "--csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert [row["name"] for row in rows] == ["long.jsonl", "short.jsonl"]
    assert int(rows[0]["tokens_with"]) < int(rows[0]["tokens_without"])


def test_csv_has_sessions_with_and_without_prices(folder: Path) -> None:
    priced_session(folder / "a.jsonl")
    run = policyctx("replay", "small-context", folder, "--csv")
    rows = list(csv.DictReader(io.StringIO(run.stdout)))
    assert [row["billed_dollars"] for row in rows] == ["6.0", "", ""]


def test_a_policy_that_would_set_no_cache_markers_says_why(tmp_path: Path) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "sh", "arguments": "{}"}}
    chat = [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": "done"},
        {"role": "assistant", "content": "done"},
    ]
    path, page = tmp_path / "chat.json", tmp_path / "page.html"
    path.write_text(json.dumps(chat), encoding="utf-8")
    run = policyctx("replay", "coding-agent", path, "--report", page)
    of_system = "the list begins with the system prompt, as only OpenAI's lists do"
    of_chat = "a message is of an API that takes none"
    for why in (of_chat, of_system):
        assert f"unmarked  1 call: {why}\n" in run.stdout
        assert f"No cache marker would be set once: {why}" in page.read_text(encoding="utf-8")
    run = policyctx("replay", "coding-agent", path, "--json")
    assert json.loads(run.stdout)["total"]["calls_without_markers"] == {of_chat: 1, of_system: 1}
    assert "unmarked" not in policyctx("replay", "context-offload", path).stdout


def test_json_and_csv_exclude_each_other(folder: Path) -> None:
    assert policyctx("replay", "small-context", folder, "--csv", "--json").returncode == 2


def test_dollars_need_a_price(folder: Path, tmp_path: Path) -> None:
    priced = priced_policy(tmp_path / "priced.yaml")
    shown = policyctx("replay", "small-context", folder, "--details").stdout
    assert "prompts   cost unknown: no session has prices" in shown
    assert "a model that the recording does not name" in shown
    shown = policyctx("replay", priced, folder, "--details").stdout
    assert "prompts   cost $0." in shown
    assert "prices    model.price of the policy" in shown


PRICE = "{input: 3, cache_write: 3.75, cache_read: 0.3, output: 15}"


def priced_policy(path: Path) -> Path:
    path.write_text(
        KEEP_FIVE.replace("keep-five", "priced") + f"model: {{price: {PRICE}}}\n",
        encoding="utf-8",
    )
    return path


def test_the_net_cost_stands_beside_the_baselines(tmp_path: Path) -> None:
    priced, path = priced_policy(tmp_path / "priced.yaml"), tickets(tmp_path / "s.jsonl")
    run = policyctx("replay", priced, path, "--json")
    [session] = json.loads(run.stdout)["sessions"]
    net, alone = session["net"], session["baselines"]["summarise-only"]
    lines = [net[name] for name in ("with", "summaries", "re_reads")]
    assert net["re_reads"]["calls"] == 1
    assert net["summaries"]["calls"] == 0
    assert net["dollars"] == pytest.approx(
        sum(one["dollars"] + one["output_dollars"] for one in lines) - net["without"]["dollars"],
        abs=1e-5,
    )
    assert net["output_dollars"] == net["re_reads"]["output_dollars"] > 0
    assert alone["net"]["dollars"] == alone["regretted_tokens"] == 0
    assert session["worst_session"]["net_dollars"] == net["dollars"]
    [row] = csv.DictReader(policyctx("replay", priced, path, "--csv").stdout.splitlines())
    assert float(row["net_dollars"]) == net["dollars"]
    assert float(row["summarise_only_net_dollars"]) == 0


def test_the_net_cost_has_a_column_a_table_and_the_sessions_that_it_makes_dearer(
    tmp_path: Path,
) -> None:
    priced, folder = priced_policy(tmp_path / "priced.yaml"), tmp_path / "sessions"
    folder.mkdir()
    claude_code(folder / "long.jsonl", *TEXTS)
    claude_code(folder / "short.jsonl", "done")
    shown = policyctx("replay", priced, folder, "--details").stdout
    _, _, head, _, short, *_ = shown.splitlines()
    assert head.split()[-1] == "$"
    assert short.split()[-1] == "0.00"
    assert " of 2 sessions with prices; the policy never acted in 1 of the 2" in shown
    assert "untouched 1 session: no tool result is sent to a model" in shown
    assert "summarise-only: the policy's own step that summarises, and no other step" in shown
    for line in ("without a policy ", "with this policy ", "summary calls ", "net cost "):
        assert f"\n{line}" in shown


def priced_session(path: Path) -> None:
    """Write a session of one call that wrote 300,000 tokens for an hour on 2026-03-01."""
    usage = {
        "input_tokens": 0,
        "cache_creation_input_tokens": 300_000,
        "cache_creation": {"ephemeral_1h_input_tokens": 300_000, "ephemeral_5m_input_tokens": 0},
        "output_tokens": 0,
    }
    reply = {
        "id": "m",
        "role": "assistant",
        "model": "claude-opus-4-6",
        "content": [{"type": "text", "text": "done"}],
        "usage": usage,
    }
    records: list[dict[str, Any]] = [
        {
            "type": "user",
            "uuid": "u",
            "parentUuid": None,
            "message": {"role": "user", "content": "go"},
        },
        {"type": "assistant", "uuid": "a", "parentUuid": "u", "message": reply},
    ]
    lines = [
        json.dumps({**one, "sessionId": "s", "timestamp": "2026-03-01T00:00:00Z"})
        for one in records
    ]
    path.write_text("\n".join(lines), encoding="utf-8")


def test_each_call_has_the_price_of_its_model_on_its_day(tmp_path: Path) -> None:
    path = tmp_path / "s.jsonl"
    priced_session(path)
    then = policyctx("replay", "small-context", path, "--details").stdout
    # Above 200,000 tokens a write for an hour cost $20 per million until 13 March 2026, then $10.
    assert "prompts   cost $6.00 → $6.00 (0 %)" in then
    assert "prices    those of the recorded models on the day of each call" in then
    assert "output    of the recorded calls cost $0.00," in then
    assert "1 → 1 prompts exceed the context window of their model (200,000)" in then
    now = policyctx("replay", "small-context", path, "--prices", "today", "--details").stdout
    assert "prompts   cost $3.00 → $3.00 (0 %)" in now
    assert "0 → 0 prompts exceed the context window of their model (1,000,000)" in now
    [row] = csv.DictReader(policyctx("replay", "small-context", path, "--csv").stdout.splitlines())
    assert float(row["billed_dollars"]) == pytest.approx(6)
    assert float(row["cost_without_dollars"]) == pytest.approx(6)
    report = json.loads(policyctx("replay", "small-context", path, "--json").stdout)
    assert report["total"]["context_windows"] == [200_000]
    assert report["total"]["calls_without_prices"] == {}


def test_a_broken_file_is_reported_at_the_end_and_the_rest_replayed(folder: Path) -> None:
    broken = folder / "broken.json"
    broken.write_bytes(b'{"a": ')
    run = policyctx("replay", "small-context", broken, folder / "long.jsonl")
    assert run.returncode == 1
    assert run.stdout.splitlines()[3].startswith("long.jsonl")
    assert run.stderr.startswith(f"error: {broken}: ")


def test_a_lone_surrogate_in_the_arguments_of_a_call_is_replayed(tmp_path: Path) -> None:
    function = {"name": "cat", "arguments": '{"path": "\ud800"}'}
    messages: list[dict[str, object]] = [{"role": "user", "content": "go"}]
    for i in range(3):
        call = {"id": f"c{i}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{i}", "content": f"{i} line\n" * 99})
    path = tmp_path / "s.json"
    path.write_text(json.dumps([*messages, {"role": "assistant", "content": "ok"}]))
    run = policyctx("replay", "context-offload", path)
    assert (run.returncode, run.stderr) == (0, "")
    assert "regret    needed again: 0 of 3 removed items" in run.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_in_a_folder_that_is_not_a_recording_is_listed(
    folder: Path, command: tuple[str, ...]
) -> None:
    other = folder / "README.md"
    other.write_text("read me", encoding="utf-8")
    run = policyctx(*command, folder)
    assert run.returncode == 0
    assert run.stderr == f"skipped: {other}: not a recording of a known format\n"
    assert json.loads(policyctx(*command, folder, "--json").stdout)["passed_over"] == [str(other)]


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("names", [(), ("README.md",)])
def test_nothing_to_replay_is_an_error(
    tmp_path: Path, command: tuple[str, ...], names: tuple[str, ...]
) -> None:
    for name in names:
        (tmp_path / name).write_text("read me", encoding="utf-8")
    run = policyctx(*command, tmp_path, "--json")
    assert run.returncode == 1
    assert run.stderr.endswith("error: no recording was found\n")
    assert len(json.loads(run.stdout)["passed_over"]) == len(names)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", ["read me", "", '{"pages": []}'])
def test_a_named_file_that_is_not_a_recording_is_an_error(
    folder: Path, command: tuple[str, ...], content: str
) -> None:
    other = folder.parent / "other"
    other.write_text(content, encoding="utf-8")
    run = policyctx(*command, other, folder, "--json")
    assert run.returncode == 1
    assert run.stderr.startswith(f"error: {other}: ")
    (failure,) = json.loads(run.stdout)["failures"]
    assert failure["path"] == str(other)


def test_a_recognised_file_in_a_folder_that_has_no_message_is_an_error(folder: Path) -> None:
    (folder / "torn.jsonl").write_text('{"role": "user", "content": 5}', encoding="utf-8")
    run = policyctx("replay", "small-context", folder)
    assert run.returncode == 1
    assert run.stderr == f"error: {folder / 'torn.jsonl'}: no message is in it\n"


def test_a_long_list_of_skipped_files_is_shortened_except_in_json(folder: Path) -> None:
    for number in range(25):
        (folder / f"{number}.md").write_text("read me", encoding="utf-8")
    run = policyctx("replay", "small-context", folder, "--json")
    assert run.stderr.count("\n") == 21
    assert run.stderr.endswith("skipped: 5 more files; --json lists all\n")
    assert len(json.loads(run.stdout)["passed_over"]) == 25


def tickets(path: Path) -> Path:
    """A session whose last answer needs what its first result alone held."""
    texts = [f"ticket QX-{48_000 + i}-B\n" + TEXTS[i] for i in range(8)]
    claude_code(path, *texts)
    answer = {"role": "assistant", "content": "closing QX-48000-B"}
    record = {"type": "assistant", "uuid": "end", "parentUuid": "u16", "sessionId": "s"}
    with path.open("a", encoding="utf-8") as file:
        file.write("\n" + json.dumps(record | {"message": answer}))
    return path


def test_regretted_items_are_shown_with_their_evidence(tmp_path: Path, keep_five: Path) -> None:
    run = policyctx("replay", keep_five, tickets(tmp_path / "s.jsonl"), "--regret-details")
    assert "regret    needed again: 1 of 3 removed items, 7 of " in run.stdout
    assert "s.jsonl: c0 (Bash, " in run.stdout
    assert "call 9, msg_018: used, line 1 (7 tokens): QX-48000-B" in run.stdout


def test_control_characters_of_a_session_are_escaped(tmp_path: Path, keep_five: Path) -> None:
    path = tickets(tmp_path / "s.jsonl")
    text = path.read_text(encoding="utf-8").replace('"Bash"', r'"\u001b[2JBash"')
    path.write_text(text, encoding="utf-8")
    run = policyctx("replay", keep_five, path, "--regret-details")
    assert r"s.jsonl: c0 (\x1b[2JBash, " in run.stdout
    assert "\x1b" not in run.stdout


def test_control_characters_of_a_file_name_are_escaped(tmp_path: Path) -> None:
    run = policyctx("replay", "small-context", claude_code(tmp_path / "\x1b[2J.jsonl", "done"))
    assert "\\x1b[2J.jsonl" in run.stdout
    assert "\x1b" not in run.stdout


def test_an_unknown_policy_is_reported_before_anything_is_read(folder: Path) -> None:
    run = policyctx("replay", "coding-agnt", folder)
    assert run.returncode == 1
    assert "did you mean 'coding-agent'" in run.stderr


INTERRUPTS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize(
    ("command", "number"),
    [
        (command, number)
        for i, command in enumerate(COMMANDS)
        for j, number in enumerate(INTERRUPTS)
        if IS_LONG or (i + j) % 2 == 0
    ],
)
def test_an_interrupt_shows_the_finished_files(
    command: tuple[str, ...], number: signal.Signals, tmp_path: Path
) -> None:
    done = claude_code(tmp_path / "a.jsonl", *TEXTS)
    run, out, err = interrupted(done, tmp_path / "b.jsonl", command=command, number=number)
    assert run == 130
    assert out
    assert "interrupted: 1 of 2 files are done" in err


def test_an_interrupt_ends_every_process(tmp_path: Path) -> None:
    run, _, err = interrupted(tmp_path / "a.jsonl", tmp_path / "b.jsonl", "--jobs", "2")
    assert run == 130
    assert "interrupted: 0 of 2 files are done" in err


WAITING_READER = """
from pathlib import Path

FORMAT = "waiting"

def recognises(record):
    return isinstance(record, dict) and "waits_for" in record

def recordings(source):
    for record in source.objects():
        Path(record["waits_for"]).read_bytes()
    yield from ()
"""


def interrupted(
    *arguments: Path | str,
    command: Sequence[str] = ("replay", "small-context"),
    number: signal.Signals = signal.SIGINT,
) -> tuple[int, str, str]:
    """Interrupt a command whose reader waits for ever at each path that is not there yet."""
    missing = [path for path in arguments if not isinstance(path, str) and not path.exists()]
    pipes = [path.with_suffix(".pipe") for path in missing]
    for path, pipe in zip(missing, pipes, strict=True):
        os.mkfifo(pipe)
        path.write_text(json.dumps({"waits_for": str(pipe)}), encoding="utf-8")
    site = missing[0].with_name("site")
    site.mkdir()
    register_reader(site, WAITING_READER)
    run = subprocess.Popen(
        [
            *(sys.executable, "-c", "from policyctx.cli import main; main()"),
            *(*command, *arguments),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUTF8": "1", "PYTHONPATH": str(site)},
        # The tests may run where the signal is ignored, as under `nohup`.
        preexec_fn=partial(signal.signal, number, signal.SIG_DFL),  # noqa: PLW1509 - one thread
    )
    # Opening a pipe waits for its reader, who comes when what is before it is done.
    writers = [pipe.open("wb") for pipe in pipes]
    run.send_signal(number)
    out, err = run.communicate(timeout=60)
    for writer in writers:
        writer.close()
    return run.returncode, out.decode(), err.decode()


@pytest.mark.parametrize("command", COMMANDS)
def test_a_named_pipe_without_a_writer_is_an_error(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    run = policyctx(*command, pipe)
    assert run.returncode == 1
    assert run.stderr == (
        f"error: {pipe}: it is a pipe, which can be read only once; save it as a file\n"
    )


@pytest.mark.parametrize("command", COMMANDS)
def test_a_policy_in_a_pipe_is_an_error(
    command: tuple[str, ...], folder: Path, tmp_path: Path
) -> None:
    os.mkfifo(pipe := tmp_path / "pipe")
    run = policyctx(*command[:-1], pipe, folder)
    assert run.returncode == 1
    assert run.stderr == (
        f"{pipe}: PC001: cannot be read: it is a pipe, which can be read only once;"
        " save it as a file\n"
    )


@pytest.mark.skipif(sys.platform != "linux", reason="paths of open files are others there")
@pytest.mark.parametrize("command", COMMANDS)
def test_standard_input_from_a_file_is_read_and_from_a_pipe_is_an_error(
    command: tuple[str, ...], folder: Path
) -> None:
    content = (folder / "long.jsonl").read_bytes()
    assert policyctx(*command, "/dev/stdin", stdin=content).returncode == 0
    run = subprocess.run(
        [sys.executable, "-m", "policyctx", *command, "/dev/stdin"],
        input="",
        capture_output=True,
        encoding="utf-8",
        timeout=60,
        check=False,
    )
    assert run.returncode == 1
    assert "/dev/stdin: it is a pipe, which can be read only once" in run.stderr
