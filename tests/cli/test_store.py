from __future__ import annotations

import json
import os
import subprocess
import sys
import tty
from functools import cache
from pathlib import Path
from subprocess import CompletedProcess
from typing import Protocol

import pytest
import typer.main

from policyctx import Session
from policyctx.cli import main
from policyctx.messages.json_text import JSON
from policyctx.store.content import Content, Origin
from policyctx.store.filesystem import ContextFileSystem
from tests.cli import running
from tests.conversations import session_of, user
from tests.policies import policy
from tests.store.bucket import BUCKET, serving
from tests.store.contents import names_below, result

# To build the tree of commands takes longer than most of them.
COMMAND = cache(typer.main.get_command)


class Command(Protocol):
    """The command, run in this process: most of these tests need no other."""

    def __call__(self, *arguments: str | Path) -> CompletedProcess[str]: ...


@pytest.fixture
def policyctx(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    monkeypatch.setattr(typer.main, "get_command", COMMAND)

    def run(*arguments: str | Path) -> CompletedProcess[str]:
        monkeypatch.setattr(sys, "argv", ["policyctx", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        out, err = capfd.readouterr()
        return CompletedProcess(arguments, int(ended.value.code or 0), out, err)

    return run


TEXT = "first\nTraceback: boom\nthird\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A store with two results, one of them live, saved long ago."""
    root = tmp_path / "root"
    store = ContextFileSystem(root, sync="never", clock=lambda: 1_700_000_000.0)
    first, _ = store.save([result("toolu_01", TEXT), result("toolu_02", "x" * 5_000, tool="Read")])
    store.remember([{"item_id": "toolu_01", "path": first.relative_path, "state": "offloaded"}])
    return root


@pytest.mark.parametrize("given", ["kept/{session_id}", "kept", "kept/a%2Fb"])
def test_a_root_may_have_the_field_of_the_session_or_be_the_folder_above(
    policyctx: Command, tmp_path: Path, given: str
) -> None:
    with ContextFileSystem(tmp_path / "kept" / "a%2Fb", sync="never") as store:
        store.save([result("toolu_01", TEXT)])
    where = (tmp_path / given, "--session", "a/b")
    assert "toolu_01" in policyctx("store", "ls", *where).stdout
    assert policyctx("store", "cat", where[0], "toolu_01", *where[1:]).stdout == TEXT
    assert policyctx("store", "verify", *where).returncode == 0
    assert policyctx("store", "search", where[0], "boom", *where[1:]).returncode == 0
    assert policyctx("store", "history", *where).returncode == 0
    assert policyctx("store", "gc", *where).returncode == 0


def test_a_root_with_the_field_of_the_session_needs_one(policyctx: Command, tmp_path: Path) -> None:
    run = policyctx("store", "ls", tmp_path / "{session_id}")
    assert run.returncode == 1
    assert run.stderr.endswith("choose a session with `session` (--session)\n")


def test_a_table_lists_the_offloaded_contents(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "ls", root)
    lines = [line.split() for line in run.stdout.splitlines()]
    assert lines[1] == [
        "toolu_01", "tool_result", "Bash", "7", "28", "2023-11-14", "22:13:20", "offloaded",
        "tool_result/Bash/toolu_01.md",
    ]  # fmt: skip
    assert run.stdout.splitlines()[-1] == f"2 contents in {root}"
    assert policyctx("store", "ls", root, "--tool", "Read").stdout.count("toolu_") == 2


def test_tokens_that_a_hook_did_not_count_are_listed(policyctx: Command, tmp_path: Path) -> None:
    output = {"stdout": "a line of output\n" * 2_000, "stderr": "", "interrupted": False}
    event = {
        "session_id": "s1", "cwd": str(tmp_path), "hook_event_name": "PostToolUse",
        "tool_name": "Bash", "tool_input": {}, "tool_response": output, "tool_use_id": "toolu_1",
    }  # fmt: skip
    command = [sys.executable, "-m", "policyctx", "hook", "claude-code"]
    given = json.dumps(event).encode()
    subprocess.run(command, input=given, cwd=tmp_path, check=True, capture_output=True)
    folder = tmp_path / ".claude/policyctx/s1"
    [listed] = json.loads(policyctx("store", "ls", folder, "--json").stdout)
    assert listed["tokens"] == 10_000
    cells = policyctx("store", "ls", folder).stdout.splitlines()[1].split()
    assert cells[2:5] == ["Bash", "10,000", "34,000"]


def test_the_json_option_prints_the_list_as_json(policyctx: Command, root: Path) -> None:
    first, second = json.loads(policyctx("store", "ls", root, "--json").stdout)
    assert first["path"] == str(root / "tool_result/Bash/toolu_01.md")
    assert (first["item_id"], first["state"], second["state"]) == ("toolu_01", "offloaded", None)


def test_the_command_runs_from_a_shell(root: Path) -> None:
    run = running.policyctx("store", "cat", root, "toolu_01")
    assert (run.stdout, run.stderr, run.returncode) == (TEXT, "", 0)


def test_a_text_is_printed_exactly(policyctx: Command, root: Path) -> None:
    assert policyctx("store", "cat", root, "toolu_01").stdout == TEXT
    path = root / "tool_result/Bash/toolu_01.md"
    assert policyctx("store", "cat", root, path, "--lines", "2-").stdout == TEXT[6:]
    report = json.loads(policyctx("store", "cat", root, "toolu_01", "--json").stdout)
    assert (report["text"], report["tool_name"]) == (TEXT, "Bash")


@pytest.mark.parametrize("command", ["restore", "restore-archive"])
def test_restored_halves_of_characters_are_escapes(
    policyctx: Command, tmp_path: Path, command: str
) -> None:
    messages = [*session_of("\ud800 値 " * 500), user("\udc00")]
    gate = "when: {tokens: {at_least: 1}}"
    step = "do: offload" if command == "restore" else f"do: compact, {gate}"
    text = f"items: {{tool_result: {{offload: true}}}}\nsteps: [{{name: s, {step}}}]"
    with Session(policy(text), root=tmp_path / "root", session_id="s") as session:
        (tmp_path / "left.json").write_text(json.dumps(session.apply(messages).messages))
    given = [tmp_path / "left.json"] if command == "restore" else []
    both: list[list[str | Path]] = [[], ["-o", tmp_path / "back.json"]]
    for more in both:
        run = policyctx("store", command, tmp_path / "root", *given, *more)
        back = (tmp_path / "back.json").read_bytes() if more else run.stdout.encode()
        found = json.loads(back.decode())
        assert found == messages[: len(found)]


def test_an_unknown_key_is_rejected_with_a_suggestion(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "cat", root, "toolu_1")
    assert run.returncode == 1
    assert run.stderr.endswith("did you mean 'toolu_01'?\n")


def test_an_invalid_line_range_is_a_usage_error(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "cat", root, "toolu_01", "--lines", "few")
    assert run.returncode == 2
    assert "expected lines such as 10-20" in run.stderr


def test_search_shows_each_match_with_its_place(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "search", root, "traceback", "-i")
    assert run.stdout == f"{root}/tool_result/Bash/toolu_01.md:2: Traceback: boom\n"
    [match] = json.loads(policyctx("store", "search", root, "Traceback", "--json").stdout)
    assert (match["item_id"], match["line"], match["text"]) == ("toolu_01", 2, "Traceback: boom")


def test_an_empty_search_result_is_reported(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "search", root, "absent", "--limit", "3")
    assert (run.stdout, run.stderr, run.returncode) == ("", "nothing found\n", 0)


def test_verify_accepts_unchanged_contents(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "verify", root)
    assert (run.stdout, run.returncode) == ("2 contents read, each what was saved\n", 0)


def test_verify_names_altered_contents_and_fails(policyctx: Command, root: Path) -> None:
    path = root / "tool_result/Bash/toolu_01.md"
    path.write_text("other", encoding="utf-8")
    run = policyctx("store", "verify", root)
    assert run.returncode == 1
    assert run.stdout.startswith(f"{path}: altered: ")
    report = json.loads(policyctx("store", "verify", root, "--json").stdout)
    assert [(one["item_id"], one["harm"]) for one in report["harmed"]] == [("toolu_01", "altered")]
    assert policyctx("store", "cat", root, "toolu_01").returncode == 1


def test_gc_lists_removals_in_a_dry_run_and_then_removes_them(
    policyctx: Command, root: Path
) -> None:
    told = policyctx("store", "gc", root, "--max-age", "30d", "--dry-run").stdout.splitlines()
    read = root / "tool_result/Read/toolu_02.md"
    assert told[0] == f"would remove {read} (max_age)"
    assert told[1].startswith("would remove 1 content and compress 0: 5.0 kB → 28 bytes")
    assert read.exists()
    done = policyctx("store", "gc", root, "--max-age", "30d", "--json")
    assert [one["item_id"] for one in json.loads(done.stdout)["removed"]] == ["toolu_02"]
    assert names_below(root) == {"tool_result/Bash/toolu_01.md"}
    assert "removed by max_age" in policyctx("store", "history", root).stdout


def test_gc_without_a_limit_only_compresses(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "gc", root)
    assert run.stdout.splitlines()[0] == f"compressed {root}/tool_result/Read/toolu_02.md"
    assert policyctx("store", "cat", root, "toolu_02").stdout == "x" * 5_000


def test_gc_takes_the_retention_of_a_policy(policyctx: Command, root: Path, tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "apiVersion: policyctx/v1\nname: p\n"
        "store: {compress: none, retention: {max_age: 30d, max_bytes: 1GB}}\n",
        encoding="utf-8",
    )
    report = json.loads(policyctx("store", "gc", root, "--policy", policy, "--json").stdout)
    assert [(one["item_id"], one["rule"]) for one in report["removed"]] == [("toolu_02", "max_age")]
    given = policyctx("store", "gc", root, "--policy", policy, "--max-age", "999999d", "--json")
    assert json.loads(given.stdout)["removed"] == json.loads(given.stdout)["packed"] == []


def test_an_invalid_age_is_a_usage_error(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "gc", root, "--max-age", "old")
    assert run.returncode == 2
    assert "expected a duration such as 90s, 5m, 3h or 30d" in run.stderr


def test_rebuild_lists_found_and_missing_files(policyctx: Command, root: Path) -> None:
    (root / "tool_result/Read/toolu_02.md").unlink()
    (root / "tool_result/Bash/toolu_03.md").write_text("found", encoding="utf-8")
    run = policyctx("store", "rebuild", root)
    assert run.stdout.splitlines() == [
        f"found {root}/tool_result/Bash/toolu_03.md",
        f"gone {root}/tool_result/Read/toolu_02.md",
        "the index lists 2 contents",
    ]
    assert policyctx("store", "cat", root, "toolu_03").stdout == "found"


def test_a_session_is_exported_and_imported(policyctx: Command, root: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "session.tar.zst", tmp_path / "other"
    assert policyctx("store", "export", root, file).stdout == f"2 contents exported to {file}\n"
    report = json.loads(policyctx("store", "import", file, other, "--json").stdout)
    assert report == {"contents": 2, "to": str(other)}
    old = root / "tool_result/Bash/toolu_01.md"
    assert policyctx("store", "cat", other, old).stdout == TEXT
    assert policyctx("store", "import", file, other).returncode == 1


@pytest.mark.parametrize("start", ["", "file://"])
def test_no_command_counts_what_a_list_held_beside_its_text(
    policyctx: Command, tmp_path: Path, start: str
) -> None:
    root, copied = f"{start}{tmp_path}/root", f"{start}{tmp_path}/copied"
    content: list[JSON] = [{"type": "text", "text": TEXT}, {"x": "x" * 9_000}]
    block: JSON = {"type": "tool_result", "content": content}
    for name in ("one", "two"):
        store = ContextFileSystem(root, session=name, clock=lambda: 1_700_000_000.0)
        origin = Origin(name, "tool_result", tool_use_id=name, block=block)
        store.save([Content(f"{name}.md", f"{name}: {TEXT}", origin=origin)])
        store.close()
    assert f"2 contents in {root}" in policyctx("store", "ls", root).stdout
    assert "2 contents read, each what was saved" in policyctx("store", "verify", root).stdout
    run = policyctx("store", "copy", root, copied, "--session", "one")
    assert run.stdout.startswith("1 content copied")
    file = tmp_path / "one.tar.zst"
    run = policyctx("store", "export", root, file, "--session", "one")
    assert run.stdout == f"1 content exported to {file}\n"
    run = policyctx("store", "import", file, f"{start}{tmp_path}/other")
    assert run.stdout.startswith("1 content imported")
    assert "lists 1 content\n" in policyctx("store", "rebuild", copied).stdout
    assert len(json.loads(policyctx("store", "history", root, "--json").stdout)) == 2
    out = policyctx("store", "gc", root, "--max-contents", "1", "--ended").stdout
    assert "removed 1 content" in out
    assert ".blocks.json" not in out


def test_sessions_that_share_a_folder_are_distinguished(policyctx: Command, tmp_path: Path) -> None:
    for name in ("one", "two/x"):
        ContextFileSystem(tmp_path, session=name).save([result(f"of_{name[:3]}", name)])
    out = policyctx("store", "ls", tmp_path).stdout
    assert [line.split()[0] for line in out.splitlines()[:3]] == ["session", "one", "two/x"]
    only = json.loads(policyctx("store", "ls", tmp_path, "--session", "two/x", "--json").stdout)
    assert [one["session"] for one in only] == ["two/x"]
    assert policyctx("store", "cat", tmp_path, "of_two").stdout == "two/x"
    run = policyctx("store", "export", tmp_path, tmp_path / "out")
    assert run.returncode == 1
    assert "choose one with `session` (--session): one, two/x" in run.stderr


@pytest.mark.parametrize("session", [None, "one"])
def test_envelopes_are_detected_without_an_option(
    policyctx: Command, tmp_path: Path, session: str | None
) -> None:
    store = ContextFileSystem(tmp_path, session=session, format="envelope")
    store.save([result("toolu_01", TEXT)])
    (tmp_path / "index.json").unlink(missing_ok=True)
    assert policyctx("store", "cat", tmp_path, "toolu_01").stdout == TEXT
    assert policyctx("store", "rebuild", tmp_path).returncode == 0
    assert (tmp_path / "index.json").exists()
    assert policyctx("store", "cat", tmp_path, "tool_result/Bash/toolu_01.md").stdout == TEXT


def test_a_folder_of_stores_is_rejected_with_a_list_of_them(policyctx: Command, root: Path) -> None:
    run = policyctx("store", "ls", root.parent)
    assert run.returncode == 1
    assert run.stderr == f"error: {root.parent} holds no store; the folders in it do: root\n"
    assert policyctx("store", "ls", root.parent / "no").returncode == 1


def test_reading_commands_change_no_file_once_the_index_is_complete(
    policyctx: Command, root: Path
) -> None:
    policyctx("store", "ls", root)
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    for command in (["ls"], ["cat", "toolu_01"], ["search", "x"], ["history"], ["verify"]):
        policyctx("store", command[0], root, *command[1:])
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before


def test_gc_of_all_sessions_shows_a_row_for_each_and_the_sum(
    policyctx: Command, root: Path
) -> None:
    tmp_path = root.parent
    other = ContextFileSystem(tmp_path / "other", sync="never", clock=lambda: 1_600_000_000.0)
    other.save([result("toolu_03", "y" * 3_000)])
    told = policyctx("store", "gc", tmp_path, "--all", "--max-contents", "2", "--dry-run")
    head, *rows, last = told.stdout.splitlines()
    assert head.split() == ["store", "contents", "size", "removed", "compressed", "size", "after"]
    assert [row.split()[0] for row in rows] == ["other", "root"]
    assert last == "would remove 1 content and compress 1: 8.0 kB → 5.0 kB in 2 stores"
    done = json.loads(
        policyctx(
            "store", "gc", tmp_path, "--all", "--max-age", "30d", "--idle", "1d", "--json"
        ).stdout
    )
    assert (done["removed"], done["bytes_after"]) == (2, len(TEXT))  # a placeholder names that
    assert [len(one["removed"]) for one in done["stores"]] == [1, 1]
    refused = policyctx("store", "gc", tmp_path, "--all", "--session", "s")
    assert (refused.returncode, "leave --session out" in refused.stderr) == (2, True)


def test_gc_keeps_the_permissions_that_the_store_has(policyctx: Command, tmp_path: Path) -> None:
    store = ContextFileSystem(tmp_path / "root", mode="0640", clock=lambda: 1_700_000_000.0)
    store.save([result("toolu_01", "x" * 5_000)])
    policyctx("store", "gc", tmp_path / "root")
    packed = tmp_path / "root/tool_result/Bash/toolu_01.md.zst"
    assert packed.stat().st_mode & 0o777 == 0o640


LOOKS = [["ls"], ["cat", "call_9"], ["search", "x"], ["history"], ["verify"], ["gc"], ["rebuild"]]


@pytest.mark.parametrize("command", LOOKS, ids=lambda command: command[0])
@pytest.mark.parametrize("session", [None, "s"])
def test_every_command_completes_the_index(
    policyctx: Command, tmp_path: Path, command: list[str], session: str | None
) -> None:
    store = ContextFileSystem(tmp_path, session=session, sync="never")
    for i in range(10):
        store.save([result(f"call_{i}", str(i))])
    run = policyctx("store", command[0], tmp_path, *command[1:], "--json")
    assert (run.returncode, run.stderr) == (0, "")
    json.loads(run.stdout)
    [path] = tmp_path.rglob("index.json")
    index = json.loads(path.read_text(encoding="utf-8"))
    assert [item["item_id"] for item in index["items"]] == [f"call_{i}" for i in range(10)]
    covered = index["journal"]
    assert covered["bytes"] == (tmp_path / covered["path"]).stat().st_size


def test_reading_commands_work_if_the_index_cannot_be_written(
    policyctx: Command, root: Path
) -> None:
    (root / ".policyctx/index.json").unlink()
    (root / ".policyctx/index.json").mkdir()
    run = policyctx("store", "cat", root, "toolu_01")
    assert (run.stdout, run.returncode) == (TEXT, 0)
    assert run.stderr.startswith("warning: ")
    assert "index.json cannot be written" in run.stderr


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder of two sessions with a result of the same id, and an archive each."""
    root = tmp_path / "shared"
    for name in ("one", "two"):
        store = ContextFileSystem(root, session=name, clock=lambda: 1_700_000_000.0)
        origin = Origin("compaction-001", "archive")
        text = json.dumps({"messages": [{"role": "user", "content": name}]})
        store.save(
            [
                result("toolu_01", f"of {name}"),
                result("equal", "the same"),
                Content("archive/compaction-001.json", text, origin=origin),
            ]
        )
    return root


def test_an_id_in_several_sessions_is_refused_with_their_list(
    policyctx: Command, shared: Path
) -> None:
    run = policyctx("store", "cat", shared, "toolu_01")
    assert (run.stdout, run.returncode) == ("", 1)
    assert run.stderr == (
        "error: the id toolu_01 exists in several sessions; choose one with `session` (--session):"
        " one, two\n"
    )
    picked = policyctx("store", "cat", shared, "toolu_01", "--session", "two")
    assert picked.stdout == "of two"
    # A path means one file, and so does an id whose file both share.
    assert policyctx("store", "cat", shared, "tool_result/Bash/toolu_01.md").stdout == "of one"
    assert policyctx("store", "cat", shared, "equal").stdout == "the same"


@pytest.mark.parametrize("key", [[], ["compaction-001"]])
def test_an_archive_in_several_sessions_is_refused_with_their_list(
    policyctx: Command, shared: Path, key: list[str]
) -> None:
    run = policyctx("store", "restore-archive", shared, *key)
    assert (run.stdout, run.returncode) == ("", 1)
    assert run.stderr.endswith("choose one with `session` (--session): one, two\n")
    run = policyctx("store", "restore-archive", shared, *key, "--session", "two")
    assert json.loads(run.stdout) == [{"role": "user", "content": "two"}]


def test_a_restored_archive_is_printed_as_json_with_its_metadata(
    policyctx: Command, shared: Path
) -> None:
    run = policyctx("store", "restore-archive", shared, "--session", "one", "--json")
    report = json.loads(run.stdout)
    assert report["messages"] == [{"role": "user", "content": "one"}]
    assert (report["session"], report["item_id"]) == ("one", "compaction-001")


def test_gc_of_one_session_keeps_the_contents_of_others(policyctx: Command, shared: Path) -> None:
    limits = ("--max-age", "30d", "--session", "two", "--json")
    report = json.loads(policyctx("store", "gc", shared, *limits).stdout)
    removed = [one["path"] for one in report["removed"]]
    assert removed == ["tool_result/Bash/toolu_01-1.md", "archive/compaction-001-1.json"]
    assert policyctx("store", "cat", shared, "toolu_01").stdout == "of one"
    assert policyctx("store", "verify", shared).returncode == 0


def test_the_history_of_several_sessions_names_each(policyctx: Command, shared: Path) -> None:
    lines = policyctx("store", "history", shared).stdout.splitlines()
    assert lines[0].split()[0] == "session"
    assert {line.split()[0] for line in lines[1:]} == {"one", "two"}


def test_upload_says_what_was_uploaded_and_what_is_left(policyctx: Command, tmp_path: Path) -> None:
    with serving() as bucket:
        url = f"s3://{BUCKET}/of_the_command"
        store = ContextFileSystem(url, spill_to=tmp_path / "waiting/s1", timeout=10)
        store.save([result("call_1", TEXT)])
        bucket.is_away = True
        store.save([result("call_2", "x")])
        away = policyctx("store", "upload", tmp_path / "waiting", "--timeout", "20s")
        assert (away.returncode, f"0 objects to {url}, 2 left: " in away.stdout) == (1, True)
        bucket.is_away = False
        done = policyctx("store", "upload", tmp_path / "waiting")
        assert (done.returncode, done.stdout) == (0, f"2 objects to {url}\n")
        [report] = json.loads(policyctx("store", "upload", tmp_path, "--json").stdout)
        assert (report["url"], report["objects"], report["left"]) == (url, 0, 0)
        assert policyctx("store", "cat", url, "call_2").stdout == "x"


def test_the_commands_take_a_url(policyctx: Command, tmp_path: Path) -> None:
    url = f"file://{tmp_path}/s1"
    store = ContextFileSystem(url)
    files = store.save([result("call_1", TEXT), result("call_2", "x")], recorded=True)
    store.remember([{"path": file.relative_path, "state": "offloaded"} for file in files])
    assert f"2 contents in {url}" in policyctx("store", "ls", url).stdout
    assert policyctx("store", "cat", url, files[0].path).stdout == TEXT
    assert f"{files[0].path}:2: Traceback" in policyctx("store", "search", url, "boom").stdout
    assert policyctx("store", "history", url).stdout.count("call_1") == 2
    assert "2 contents read" in policyctx("store", "verify", url).stdout
    assert "removed 0 contents" in policyctx("store", "gc", url, "--max-age", "1d").stdout
    assert "the index lists 2 contents" in policyctx("store", "rebuild", url).stdout
    exported = tmp_path / "session.tar.zst"
    assert policyctx("store", "export", url, exported).returncode == 0
    assert policyctx("store", "import", exported, f"{url}-back").returncode == 0
    assert policyctx("store", "cat", f"{url}-back", files[0].path).stdout == TEXT
    assert "2 contents copied to" in policyctx("store", "copy", url, tmp_path / "copy").stdout
    assert policyctx("store", "cat", tmp_path / "copy", files[0].path).stdout == TEXT
    missing = policyctx("store", "ls", f"file://{tmp_path}")
    assert "the folders in it do: copy, s1, s1-back" in missing.stderr


@pytest.mark.parametrize("lines", [(), ("--lines", "1-2")])
def test_a_text_does_not_control_the_terminal_on_which_it_is_shown(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    text = "one\ttwo\x1b[31mred\x07\nsix\u202eten\x9b2J\n"
    ContextFileSystem(tmp_path / "root").save([result("toolu_01", text)])
    arguments = ("store", "cat", "root", "toolu_01", *lines)
    terminal, end = os.openpty()
    tty.setraw(end)
    shown_on = Path(os.ttyname(end))
    assert running.policyctx(*arguments, cwd=tmp_path, stdout=shown_on).returncode == 0
    shown = os.read(terminal, 4096).decode()
    assert shown == "one\ttwo\\x1b[31mred\\x07\nsix\\u202eten\\x9b2J\n"
    assert running.policyctx(*arguments, cwd=tmp_path).stdout == text
    os.close(end)
    os.close(terminal)
