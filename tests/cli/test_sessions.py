"""`policyctx sessions` finds the sessions of the agents, and says what they were billed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx

pytestmark = pytest.mark.slow

Record = dict[str, Any]
DAY = 86_400.0
VARIABLES = (
    *("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"),
    *("PI_CODING_AGENT_DIR", "GEMINI_CLI_HOME", "COPILOT_HOME", "APPDATA"),
)


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty home, in which no variable of an agent is set."""
    made = tmp_path / "home"
    made.mkdir()
    monkeypatch.setenv("HOME", str(made))
    monkeypatch.setenv("COLUMNS", "160")
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    yield made
    # pytest goes down into folders by calls, and some are deeper than these can be.
    subprocess.run(["/bin/rm", "-rf", made], check=True)


def iso(at: float) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def claude(
    path: Path,
    *,
    calls: int = 2,
    days: float = 1,
    cwd: str = "/srv/app",
    ids: str = "",
    size: int = 9,
) -> Path:
    """Write a session of Claude Code whose last call was made some days ago."""
    path.parent.mkdir(parents=True, exist_ok=True)
    links: Record = {"sessionId": path.stem, "cwd": cwd}
    records: list[Record] = []
    for i in range(calls):
        at = iso(time.time() - days * DAY - (calls - i))
        call_id = f"{ids or path.stem}-{i}"
        read = 900 + i * (size // 100) * 100
        usage = {"input_tokens": 100, "cache_read_input_tokens": read, "output_tokens": 10}
        asked: Record = {"role": "user", "content": f"go {i}"}
        if i:
            result = {"type": "tool_result", "tool_use_id": f"t{i - 1}", "content": "x " * size}
            asked = {"role": "user", "content": [result]}
        said = {"type": "tool_use", "id": f"t{i}", "name": "Read", "input": {"file_path": f"{i}"}}
        message = {
            "id": f"msg_{call_id}", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [said], "usage": usage,
        }  # fmt: skip
        parent = records[-1]["uuid"] if records else None
        names = f"{path.stem}-q{i}", f"{path.stem}-a{i}"
        links["timestamp"] = at
        records += [
            {"type": "user", "uuid": names[0], "parentUuid": parent, "message": asked, **links},
            {"type": "assistant", "uuid": names[1], "parentUuid": names[0], "message": message,
             "requestId": f"req_{call_id}", **links},
        ]  # fmt: skip
    path.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def codex(path: Path, *, days: float = 2, cwd: str = "/srv/lib") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    at, used = iso(time.time() - days * DAY), {"input_tokens": 500, "output_tokens": 20}
    info = {"total_token_usage": used, "last_token_usage": {**used, "cached_input_tokens": 400}}
    payloads: list[tuple[str, Record]] = [
        ("session_meta", {"id": "s", "cwd": cwd}),
        ("turn_context", {"model": "gpt-5.1-codex"}),
        ("response_item", {"type": "message", "role": "user", "content": "go"}),
        ("response_item", {"type": "message", "id": "m1", "role": "assistant", "content": "so"}),
        ("event_msg", {"type": "token_count", "info": info}),
    ]
    lines = [{"timestamp": at, "type": kind, "payload": of} for kind, of in payloads]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def nested(folder: Path, name: str, depth: int) -> None:
    """Nest folders, deeper than a path can name."""
    deep = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=deep)
        below = os.open(name, os.O_RDONLY, dir_fd=deep)
        os.close(deep)
        deep = below
    os.close(deep)


def report(*options: str) -> Record:
    run = policyctx("sessions", "--json", "--jobs", "1", *options)
    assert run.returncode == 0, run.stderr
    found: Record = json.loads(run.stdout)
    return found


def test_the_table_has_a_row_for_each_agent_and_project_the_newest_first(home: Path) -> None:
    claude(home / ".claude/projects/-srv-app/a.jsonl", days=3)
    claude(home / ".claude/projects/-srv-app/b.jsonl", days=1)
    claude(home / ".claude/projects/-srv-old/c.jsonl", days=9, cwd=f"{home}/old")
    codex(home / ".codex/sessions/2026/11/01/rollout-1.jsonl", days=2)
    run = policyctx("sessions", "--no-replay", "--jobs", "1")
    assert (run.returncode, run.stderr) == (0, "")
    lines = run.stdout.splitlines()
    size = sum(one.stat().st_size for one in (home / ".claude").rglob("*.jsonl"))
    assert lines[0].split()[:4] == ["claude-code", "3", "files,", f"{size / 1000:.3g}kB"]
    start = next(i for i, line in enumerate(lines) if line.startswith("agent "))
    rows = [line.split() for line in lines[start + 1 : start + 5]]
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() - DAY))
    assert rows[0] == ["claude-code", "/srv/app", day, "2", "4", "4.04k", "90", "%", "0.00", "0"]
    assert [row[:2] for row in rows[1:3]] == [["codex", "/srv/lib"], ["claude-code", "~/old"]]
    assert rows[3][:3] == ["all", "4", "7"]


@pytest.mark.parametrize("width", [80, 120])
def test_each_project_has_one_line_with_its_last_part_and_its_day(
    home: Path, monkeypatch: pytest.MonkeyPatch, width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    for name in ("first-service", "second-service"):
        cwd = f"/Users/somebody/Developer/company/repositories/{name}"
        claude(home / f".claude/projects/p/{name}.jsonl", cwd=cwd)
    run = policyctx("sessions", "--jobs", "1")
    lines = run.stdout.splitlines()
    assert max(map(len, lines[2:])) <= width
    start = next(i for i, line in enumerate(lines) if line.startswith("agent "))
    day = time.strftime("%Y-%m-%d", time.localtime(time.time() - DAY))
    for row in lines[start + 1 : start + 3]:
        project = row.split()[1]
        assert project.startswith("…/")
        assert project.endswith("-service")
        assert row.split()[2] == day
    assert lines[start + 3].startswith("all ")


@pytest.mark.parametrize(("width", "is_wide"), [(40, False), (70, False), (120, True)])
def test_a_column_is_explained_where_it_is_shown(
    home: Path, monkeypatch: pytest.MonkeyPatch, width: int, is_wide: bool
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    claude(home / ".claude/projects/p/a.jsonl", cwd="/srv/" + "long-name-of-a-service/" * 3)
    run = policyctx("sessions", "--no-replay", "--jobs", "1")
    assert run.returncode == 0
    [head] = [line.split() for line in run.stdout.splitlines() if line.startswith("agent ")]
    assert ("cached" in head) == is_wide
    below = run.stdout.partition("\nall ")[2]
    for column in ("tokens", "cached", "$"):
        assert (f"{column}:" in below) == (column in head)


def test_paths_are_read_in_place_of_the_agents_folders(home: Path, tmp_path: Path) -> None:
    claude(home / ".claude/projects/p/own.jsonl")
    elsewhere = tmp_path / "elsewhere"
    claude(elsewhere / "a.jsonl", calls=2, ids="s", days=2)
    claude(elsewhere / "b.jsonl", calls=3, ids="s", days=1)
    codex(elsewhere / "1.jsonl", days=9)
    (elsewhere / "readme.md").write_text("no recording")
    run = policyctx("sessions", elsewhere, "--json", "--jobs", "1")
    found = json.loads(run.stdout)
    assert (run.returncode, found["passed_over"]) == (0, [str(elsewhere / "readme.md")])
    assert [one["agent"] for one in found["projects"]] == ["claude-code", "codex"]
    assert found["total"]["calls"] == found["replay"]["total"]["calls"] == 4
    kept = json.loads(policyctx("sessions", elsewhere, "--since", "5d", "--json").stdout)
    assert kept["total"]["calls"] == 3
    assert policyctx("sessions", elsewhere, "--agent", "codex").returncode == 2
    missing = policyctx("sessions", tmp_path / "missing")
    assert missing.returncode == 1
    assert "missing: No such file" in missing.stderr


def test_the_dollars_of_the_table_are_those_of_prompts_and_output(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl", calls=9, size=9_000)
    lines = policyctx("sessions", "--jobs", "1").stdout.splitlines()
    answer = next(i for i, line in enumerate(lines) if line.startswith("coding-agent would have "))
    billed = next(line for line in lines if line.startswith("all ")).split()[-2]
    assert lines[answer + 1] == f"the ${billed} in the table also include output"


def test_the_report_as_json_has_the_same_figures(home: Path) -> None:
    claude(home / ".claude/projects/-srv-app/a.jsonl", calls=3)
    found = report("--no-replay")
    [project] = found["projects"]
    assert (project["agent"], project["project"], project["calls"]) == (
        "claude-code",
        "/srv/app",
        3,
    )
    assert (project["usage"]["input"], project["usage"]["cache_read"]) == (300, 2_700)
    # $3, $0.30 and $15 for a million tokens of input, read from the cache, and of output.
    assert project["dollars"] == pytest.approx((300 * 3 + 2_700 * 0.3 + 30 * 15) / 1e6)
    assert found["total"]["calls"] == 3
    assert found["replay"] is None


def test_a_model_without_a_price_is_in_the_report(home: Path) -> None:
    path = claude(home / ".claude/projects/p/a.jsonl", calls=3)
    path.write_text(path.read_text().replace("claude-sonnet-4-5", "my-local-model"))
    found = report()
    assert found["total"]["without_price"] == {"my-local-model": 3}
    assert found["sessions"][0]["without_price"] == {"my-local-model": 3}


def test_a_call_that_one_session_has_twice_counts_once(home: Path) -> None:
    path = codex(home / ".codex/sessions/1.jsonl")
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines, *lines[-3:]]).replace("500", "501", 1))
    found = report()
    assert found["total"]["calls"] == found["replay"]["total"]["calls"]


def test_folders_nested_without_end_hide_no_session(home: Path) -> None:
    codex(home / ".codex/sessions/1.jsonl")
    nested(home / ".codex/sessions", "d", 1_100)
    run = policyctx("sessions", "--no-replay", "--json", "--jobs", "1")
    assert (run.returncode, json.loads(run.stdout)["total"]["calls"]) == (0, 1), run.stderr
    run = policyctx("replay", "coding-agent", home / ".codex", "--json")
    assert json.loads(run.stdout)["total"]["calls"] == 1, run.stderr


@pytest.mark.parametrize(
    "command", [["sessions"], ["replay", "coding-agent"], ["diff", *["coding-agent"] * 2], ["tune"]]
)
def test_a_folder_that_cannot_be_listed_is_an_error_of_each_command(
    home: Path, command: list[str]
) -> None:
    codex(home / ".codex/sessions/1.jsonl")
    nested(home / ".codex/sessions", "d" * 250, 17)  # too long a path, for root as well
    run = policyctx(*command, "--agent", "codex", "--jobs", "1")
    assert run.returncode == 1
    assert run.stderr.count("d: File name too long\n") == 1, run.stderr


def test_a_row_is_a_line_whatever_the_project_is_called(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl", cwd="/srv/one\ntwo")
    shown = policyctx("sessions", "--no-replay", "--jobs", "1").stdout
    assert "/srv/one\\ntwo " in shown


@pytest.mark.parametrize("zone", ["UTC+12", "UTC-12"])
def test_the_newest_day_is_the_one_of_the_users_zone(
    home: Path, monkeypatch: pytest.MonkeyPatch, zone: str
) -> None:
    codex(home / ".codex/sessions/1.jsonl")
    at = time.time() - 2 * DAY + (12 if zone == "UTC-12" else -12) * 3_600
    monkeypatch.setenv("TZ", zone)  # read at the start of a process
    run = policyctx("sessions", "--no-replay", "--json", "--jobs", "1")
    [project] = json.loads(run.stdout)["projects"]
    assert project["newest"] == iso(at)[:10]


def test_calls_that_a_resumed_session_repeats_count_once(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl", calls=2, ids="s", days=2)
    claude(home / ".claude/projects/p/b.jsonl", calls=3, ids="s", days=1)
    found = report("--no-replay")
    parent = str(home / ".claude/projects/p/a.jsonl")
    assert (found["total"]["calls"], found["repeated_calls"]) == (3, {parent: 2})
    assert report()["replay"]["total"]["calls"] == 3
    told = policyctx("sessions", "--jobs", "1").stderr
    again = "2 calls in 1 file repeat calls of the same or another file"
    assert told == f"note: {again}, and are counted once\n"


@pytest.mark.parametrize("when", ["5d", "120h", iso(time.time() - 5 * DAY)[:10]])
def test_since_leaves_older_sessions_out(home: Path, when: str) -> None:
    claude(home / ".claude/projects/p/new.jsonl", days=1)
    claude(home / ".claude/projects/p/old.jsonl", days=9)
    copied = claude(home / ".claude/projects/p/copied.jsonl", days=9)
    os.utime(copied)  # written now, and used long ago
    assert [one["name"] for one in report("--no-replay", "--since", when)["sessions"]] == [
        "new.jsonl"
    ]


def test_a_wrong_time_and_an_unknown_agent_are_told() -> None:
    run = policyctx("sessions", "--since", "yesterday")
    assert run.returncode == 2
    assert "30d, 12h or 2w" in " ".join(run.stderr.split())
    run = policyctx("sessions", "--agent", "clod")
    assert run.returncode == 1
    assert "unknown agent 'clod'; known are claude-code, cline, codex, " in run.stderr
    run = policyctx("sessions", "--agent", "claude")
    assert "unknown agent 'claude'; did you mean 'claude-code'? known are " in run.stderr


COMMANDS = [["sessions"], ["audit"]]
WITH_AGENT = [["replay", "small-context"], ["diff", *["small-context"] * 2], ["tune"], ["init"]]


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_home_leads_on_in_three_lines(home: Path, command: list[str]) -> None:
    run = policyctx(*command)
    assert (run.returncode, run.stdout) == (1, "")
    said = run.stderr.splitlines()
    assert len(said) <= 3
    assert said[0].startswith("error: no session was found in the folders of claude-code, cline, ")
    assert "`policyctx demo`" in run.stderr
    assert "PATHS after the command" in run.stderr
    folder = home / ".claude/projects"
    run = policyctx(*command, "--agent", "claude-code")
    assert f"  claude-code: {folder}: not there; CLAUDE_CONFIG_DIR moves it\n" in run.stderr
    (home / ".codex/sessions").mkdir(parents=True)
    said = policyctx(*command, "--agent", "codex").stderr.splitlines()
    assert f"  codex: {home / '.codex/sessions'}: nothing there; CODEX_HOME moves it" in said


@pytest.mark.parametrize("command", [*COMMANDS, *WITH_AGENT])
@pytest.mark.parametrize("is_copied", [False, True])
def test_since_that_leaves_out_all_says_how_old_the_newest_is(
    home: Path, tmp_path: Path, command: list[str], *, is_copied: bool
) -> None:
    for days in (9, 12):
        path = claude(home / f".claude/projects/p/{days}.jsonl", days=days)
        at = time.time() - (0 if is_copied else days * DAY)
        os.utime(path, (at, at))
    run = policyctx(*command, "--agent", "claude-code", "--since", "5d", cwd=tmp_path)
    assert run.returncode == 1
    newest = time.strftime("%Y-%m-%d", time.localtime(time.time() - 9 * DAY))
    older = "2 sessions are older" if is_copied else "2 files are older"
    assert f"{older}, the newest of {newest} " in run.stderr
    assert run.stderr.count("error: ") == 1


def test_editors_without_sessions_are_one_line_of_an_agent(home: Path) -> None:
    (home / ".config/Cursor/User/globalStorage/kilocode.kilo-code/tasks").mkdir(parents=True)
    said = policyctx("sessions", "--agent", "kilo-code").stderr.splitlines()[1:]
    tasks = home / ".config/*/User/globalStorage/kilocode.kilo-code/tasks"
    assert said == [
        f"  kilo-code: {tasks}: not there; XDG_CONFIG_HOME moves it",
        f"  kilo-code: {tasks}: nothing there; XDG_CONFIG_HOME moves it",
        f"  kilo-code: {home / '.local/share/kilo'}: not there; XDG_DATA_HOME moves it",
    ]


def test_the_agents_own_variable_moves_its_folder(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude(home / ".claude/projects/p/a.jsonl")
    claude(tmp_path / "moved/projects/p/b.jsonl")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "moved"))
    found = report("--no-replay", "--agent", "claude-code")
    assert [one["name"] for one in found["sessions"]] == ["b.jsonl"]
    assert [one["folder"] for one in found["looked_in"]] == [str(tmp_path / "moved/projects")]


def test_a_link_is_not_followed_and_told(home: Path, tmp_path: Path) -> None:
    claude(tmp_path / "elsewhere/b.jsonl")
    claude(home / ".claude/projects/p/a.jsonl")
    (home / ".claude/projects/q").symlink_to(tmp_path / "elsewhere")
    (home / ".claude/projects/p/c.jsonl").symlink_to(tmp_path / "elsewhere/b.jsonl")
    run = policyctx("sessions", "--no-replay", "--json", "--jobs", "1")
    assert [one["name"] for one in json.loads(run.stdout)["sessions"]] == ["a.jsonl"]
    assert run.stderr == f"skipped: 2 links in {home}/.claude/projects, never followed or read\n"


def test_what_cannot_be_read_is_told_and_the_rest_is_shown(home: Path) -> None:
    whole = claude(home / ".claude/projects/p/a.jsonl")
    torn = claude(home / ".claude/projects/p/torn.jsonl", calls=3)
    text = torn.read_text()
    torn.write_text(text[:-200])  # its last line is still being written
    database = home / ".local/share/opencode/opencode.db"
    database.parent.mkdir(parents=True)
    database.write_bytes(b"SQLite format 3\0" + b"x" * 5_000)
    run = policyctx("sessions", "--no-replay", "--json", "--jobs", "1")
    found = json.loads(run.stdout)
    assert run.returncode == 1
    assert {one["name"]: one["calls"] for one in found["sessions"]} == {
        whole.name: 2,
        torn.name: 2,
    }
    told = " ".join(run.stderr.split())  # where it is wrapped depends on the length of the path
    assert f"note: {torn}: not understood: 1 × line that is not JSON" in told
    assert f"error: {database}: " in told
    assert [one["path"] for one in found["failures"]] == [str(database)]


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads every file")
def test_a_file_of_another_user_is_told(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl")
    claude(home / ".claude/projects/p/b.jsonl").chmod(0)
    run = policyctx("sessions", "--no-replay", "--jobs", "1")
    assert run.returncode == 1
    assert f"error: {home}/.claude/projects/p/b.jsonl: Permission denied\n" in run.stderr


def test_a_hostile_project_is_shown_and_not_sent(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl", cwd="/srv/\x1b[31mred\u202egnp")
    for options in ([], ["--json"]):
        shown = policyctx("sessions", "--no-replay", "--jobs", "1", *options).stdout
        assert "\x1b" not in shown
        assert "\u202e" not in shown
        assert "red" in shown


def test_the_newest_sessions_are_replayed_and_a_sentence_says_what_was_saved(home: Path) -> None:
    claude(home / ".claude/projects/p/long.jsonl", calls=12, size=9_000)
    claude(home / ".claude/projects/p/short.jsonl", calls=2, days=2)
    run = policyctx("sessions", "--jobs", "1")
    assert run.returncode == 0, run.stderr
    lines = run.stdout.splitlines()
    answer = next(line for line in lines if line.startswith("coding-agent would have "))
    assert "in the 2 newest sessions; it acted in 1" in answer
    assert lines[-3].startswith("long.jsonl ")
    assert lines[-1].startswith("regret: removed items that were needed again; $: ")
    found = report()["replay"]
    assert found["answer"] == answer
    assert [one["name"] for one in found["acted_in"]] == ["long.jsonl"]
    assert found["total"]["sessions"] == 2


def test_what_was_skipped_comes_after_the_answer(home: Path, tmp_path: Path) -> None:
    path = claude(home / ".claude/projects/p/a.jsonl", calls=12, size=9_000)
    with path.open("a", encoding="utf-8") as file:
        file.write("no JSON\n")
    (home / ".claude/projects/q").symlink_to(tmp_path)
    command = [sys.executable, "-m", "policyctx", "sessions", "--jobs", "1"]
    shown = subprocess.check_output(command, stderr=subprocess.STDOUT, text=True)
    answer = shown.index("coding-agent would have ")
    assert answer < shown.index("skipped: 1 link ") < shown.index(": not understood: ")


def test_files_without_a_session_of_their_own_are_counted(home: Path) -> None:
    first = claude(home / ".claude/projects/p/a.jsonl")
    (first.parent / "b.jsonl").write_bytes(first.read_bytes())
    (first.parent / "c.jsonl").write_text("")
    shown = policyctx("sessions", "--no-replay", "--jobs", "1").stdout
    assert (
        "\n1 session in 1 of 3 files; the others are not read, or have no calls, or only " in shown
    )


def test_the_answer_says_how_many_sessions_are_left_out(home: Path) -> None:
    for i in range(22):
        claude(home / f".claude/projects/p/{i:02}.jsonl", calls=9, size=9_000, days=i + 1)
    shown = policyctx("sessions").stdout
    assert "also include output and 2 older sessions; --all replays them too" in shown


def test_the_sentence_counts_the_sessions_of_sub_agents_apart(home: Path) -> None:
    claude(home / ".claude/projects/p/short.jsonl", calls=2, days=2)
    path = claude(home / ".claude/projects/p/main.jsonl", calls=12, size=9_000)
    of_agent = claude(home / "agent.jsonl", calls=12, size=9_000)
    lines = map(json.loads, of_agent.read_text(encoding="utf-8").splitlines())
    more = [{**one, "sessionId": "main", "isSidechain": True, "agentId": "a1"} for one in lines]
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(one) + "\n" for one in more)
    answer = report()["replay"]["answer"]
    assert "in the 2 newest sessions and 1 more in their files, such as sub-agents'" in answer
    assert "; it acted in 2" in answer


def test_a_policy_that_does_nothing_says_so(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl")
    shown = policyctx("sessions", "--jobs", "1").stdout
    assert "coding-agent would have changed nothing in the 1 newest session\n" in shown


def test_all_replays_more_than_the_newest_sessions(home: Path) -> None:
    for i in range(22):
        claude(home / f".claude/projects/p/{i:02}.jsonl", calls=1, days=i + 1)
    assert report()["replay"]["total"]["sessions"] == 20
    assert report("--all")["replay"]["total"]["sessions"] == 22


@pytest.mark.parametrize("command", [["replay", "small-context"], ["diff", *["small-context"] * 2]])
def test_replay_and_diff_take_an_agent_in_place_of_paths(home: Path, command: list[str]) -> None:
    claude(home / ".claude/projects/p/new.jsonl")
    claude(home / ".claude/projects/p/old.jsonl", days=9)
    codex(home / ".codex/sessions/1.jsonl")
    run = policyctx(*command, "--agent", "claude-code", "--since", "5d", "--json")
    found = json.loads(run.stdout)
    assert (found["files"], run.returncode) == (1, 0)
    run = policyctx(*command, "--agent", "claude-code", "--agent", "codex", "--json")
    assert json.loads(run.stdout)["files"] == 3
    run = policyctx(*command, home, "--since", "5d", "--json")
    whole = json.loads(run.stdout)
    totals = whole["total"] if "total" in whole else whole["totals"][0]
    assert totals["sessions"] == 2


def test_paths_and_an_agent_exclude_each_other(home: Path) -> None:
    for given in ([str(home), "--agent", "codex"], []):
        for command in (["replay", "coding-agent"], ["tune"]):
            run = policyctx(*command, *given)
            assert run.returncode == 2
            assert "expected PATHS, or --agent in place of them" in " ".join(run.stderr.split())
    run = policyctx("replay", "coding-agent", "--agent", "codex", "--since", "2026-01-01")
    assert run.returncode == 1
    assert "error: no session was found in the folders of codex\n  codex: " in run.stderr


WATCH = """
import os, sys
folder, allowed = sys.argv[1:3]
def hook(event, args):
    if event.startswith("socket.") and event != "socket.gethostname":
        print("NETWORK", event, args, file=sys.stderr)
    if event == "open" and isinstance(args[0], (str, bytes)):
        path = os.path.abspath(os.fsdecode(args[0]))
        writes = isinstance(args[1], str) and set(args[1]) & set("wax+")
        flags = args[2] or 0
        writes = writes or flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
        if path.startswith(folder) and (writes or not path.startswith(allowed)):
            print("OPENED", path, args[1:], file=sys.stderr)
sys.addaudithook(hook)
sys.argv = ["policyctx", "sessions", "--jobs", "1"]
from policyctx.cli import main
main()
"""


def test_nothing_is_sent_and_nothing_else_is_read_or_written(home: Path) -> None:
    claude(home / ".claude/projects/p/a.jsonl", calls=12, size=9_000)
    for name in (".claude/settings.json", ".claude/.credentials.json", "notes.jsonl"):
        (home / name).write_text("{}")
    before = {one: one.stat().st_mtime_ns for one in home.rglob("*")}
    command = [sys.executable, "-c", WATCH, str(home), str(home / ".claude/projects")]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "it acted in 1" in run.stdout
    assert {one: one.stat().st_mtime_ns for one in home.rglob("*")} == before
