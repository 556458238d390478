"""`policyctx audit` shows what the compactions of recorded sessions lost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import policyctx

pytestmark = pytest.mark.slow

ORDER = "Never push to main."
SEALED = {"type": "compaction", "encrypted_content": "gAAAA"}


@pytest.fixture(autouse=True)
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)


def claude(path: Path, *said: str, summary: str = "") -> Path:
    """Write a session of Claude Code in which a summary replaces what the user said."""
    records: list[dict[str, Any]] = []

    def add(kind: str, message: dict[str, Any], **fields: Any) -> None:
        number = len(records)
        parent = records[-1]["uuid"] if records else None
        records.append({
            "type": kind, "uuid": f"u{number}", "parentUuid": parent, "sessionId": path.stem,
            "cwd": "/srv/app", "timestamp": f"2026-11-01T14:{number:02}:00Z", "message": message,
            **fields,
        })  # fmt: skip

    def reply(text: str) -> None:
        usage = {"input_tokens": 100, "output_tokens": 10}
        message = {
            "id": f"m{len(records)}", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": text}], "usage": usage,
        }  # fmt: skip
        add("assistant", message)

    for text in said:
        add("user", {"role": "user", "content": text})
        reply("ok")
    if summary:
        records.append({
            "type": "system", "subtype": "compact_boundary", "uuid": "cut", "parentUuid": None,
            "sessionId": path.stem, "timestamp": "2026-11-01T14:30:00Z",
        })  # fmt: skip
        add("user", {"role": "user", "content": summary}, isCompactSummary=True)
        reply("Going on.")
        add("user", {"role": "user", "content": "I said never push to main!"})
        reply("Sorry.")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def codex(path: Path) -> Path:
    """Write a session of Codex whose summary is encrypted."""
    asked = [
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
        for text in (ORDER, "The port is 8081.")
    ]
    replied = {"type": "message", "role": "assistant", "content": []}
    kept = {"message": "", "replacement_history": [asked[1], SEALED]}
    records = [
        *({"type": "response_item", "payload": one} for one in (*asked, replied)),
        {"type": "compacted", "payload": kept},
        {"type": "response_item", "payload": replied},
    ]
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def test_the_table_the_quotations_and_the_totals(tmp_path: Path) -> None:
    file = claude(tmp_path / "a.jsonl", ORDER, "The port is 8081.", summary="The port is 8081.")
    printed = policyctx("audit", file)
    assert printed.returncode == 3
    assert printed.stdout.splitlines() == [
        "1 of 1 compaction lost something: 1 order; 1 of them came up again later",
        "",
        "Missing / all at the compaction before each call:",
        "session  call  replaced  orders  values  tasks  files  later",
        "a.jsonl     3         4     1/1     0/1    0/0    0/0      1",
        "",
        "a.jsonl in /srv/app, compaction before call 3, 2026-11-01 14:06:",
        "  order, call 1, 2026-11-01 14:01: Never push to main.",
        "    later, call 4, said again: I said never push to main!",
        "",
        "claude-code: 1 compaction; missing: 1 of 1 orders, 0 of 1 values, 0 of 0 tasks, 0 of 0"
        " files; 1 of them came up again later",
    ]


def test_the_first_line_says_what_all_sessions_lost(tmp_path: Path) -> None:
    ports = ["The port is 8081.", "The port of the tests is 9091."]
    lost = claude(tmp_path / "a.jsonl", *ports, summary="Went on.")
    kept = claude(tmp_path / "b.jsonl", ORDER, summary=ORDER)
    printed = policyctx("audit", lost, kept, codex(tmp_path / "rollout.jsonl"))
    assert printed.stdout.splitlines()[0] == (
        "1 of 2 compactions lost something: 2 exact values; none of them came up again"
        " later; 1 more cannot be read"
    )


def test_many_values_are_counted_and_none_is_cut(tmp_path: Path) -> None:
    names = [f"src/part_{number}/module_{number}.c" for number in range(1, 7)]
    file = claude(tmp_path / "a.jsonl", f"Read {' '.join(names)} please.", summary="Went on.")
    assert f"; missing: {', '.join(names[:3])} and 3 more\n" in policyctx("audit", file).stdout


def test_in_80_columns_names_lose_their_middle_and_sentences_are_wrapped_between_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    deep = f"/srv/{'deep/' * 20}limits.py"
    name = "spotter__4d5611e5-241a-462a-8d15-5122611a9569.jsonl"
    run = policyctx("audit", claude(tmp_path / name, f"Edit {deep} now.", summary="Nothing."))
    lines = run.stdout.splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("spotter__4d") and "…" in line for line in lines)
    [cut, *_] = [line for line in lines if "/limits.py" in line]
    assert cut.strip().startswith("/srv/deep/deep/")
    assert "…" in cut


def test_a_summary_that_has_everything_ends_with_0(tmp_path: Path) -> None:
    file = claude(tmp_path / "a.jsonl", ORDER, summary="Pushing to main is never allowed.")
    printed = policyctx("audit", file)
    assert (printed.returncode, printed.stderr) == (0, "")
    assert printed.stdout.splitlines()[0] == "nothing is missing after 1 compaction"
    assert "0 of 1 orders" in printed.stdout


def test_sessions_without_a_compaction_are_counted(tmp_path: Path) -> None:
    printed = policyctx("audit", claude(tmp_path / "a.jsonl", ORDER))
    said = "nothing to compare in 1 session: no call after a compaction\n"
    assert (printed.returncode, printed.stdout) == (0, said)


def test_an_encrypted_summary_is_unreadable(tmp_path: Path) -> None:
    printed = policyctx("audit", codex(tmp_path / "rollout.jsonl"))
    assert printed.returncode == 0
    assert printed.stdout.splitlines()[0] == "no summary of 1 compaction can be read"
    assert printed.stdout.splitlines()[4].split()[3:] == ["?/1", "?/1", "?/0", "?/0", "unreadable"]
    assert printed.stdout.splitlines()[-1] == (
        "codex: 1 compaction with an unreadable summary; 1 of 2 orders, values, tasks and files"
        " are in the request without it"
    )


def test_the_sessions_of_an_agent_are_found_in_its_folder(tmp_path: Path) -> None:
    claude(tmp_path / ".claude/projects/-srv-app/a.jsonl", ORDER, summary="Went on.")
    printed = policyctx("audit", "--agent", "claude-code", "--json")
    report = json.loads(printed.stdout)
    assert printed.returncode == 3
    [session] = report["sessions"]
    assert (session["project"], session["calls"]) == ("/srv/app", 3)
    [finding] = session["compactions"][0]["findings"]
    assert (finding["kind"], finding["text"], finding["missed"]) == ("order", ORDER, True)
    assert report["totals"]["claude-code"]["missing"]["order"] == 1


@pytest.mark.parametrize(("text", "code"), [("Never push to main.", 0), ("Something else.", 3)])
def test_by_a_file_measures_another_summary(tmp_path: Path, text: str, code: int) -> None:
    file = claude(tmp_path / "a.jsonl", ORDER, summary="Went on.")
    other = tmp_path / "summary.md"
    other.write_text(text)
    assert policyctx("audit", file, "--by", other).returncode == code


def test_by_extractive_needs_no_file(tmp_path: Path) -> None:
    file = claude(tmp_path / "a.jsonl", ORDER, summary="Went on.")
    assert policyctx("audit", file, "--by", "extractive").returncode == 0


def test_by_a_file_that_is_not_there_is_wrong_usage(tmp_path: Path) -> None:
    printed = policyctx("audit", claude(tmp_path / "a.jsonl", ORDER), "--by", "nowhere.md")
    assert printed.returncode == 2
    assert "expected `extractive` or a file with a summary" in " ".join(printed.stderr.split())


def test_much_that_is_missing_is_cut_unless_all_is_wanted(tmp_path: Path) -> None:
    ports = [f"The port is {number}." for number in range(8081, 8100)]
    file = claude(tmp_path / "a.jsonl", *ports, summary="Went on.")
    assert "… 7 more; --all quotes them" in policyctx("audit", file).stdout
    assert policyctx("audit", file, "--all").stdout.count("exact value, call") == len(ports)


def test_a_file_that_cannot_be_read_ends_with_1(tmp_path: Path) -> None:
    file = claude(tmp_path / "a.jsonl", ORDER, summary="Went on.")
    printed = policyctx("audit", file, tmp_path / "none.jsonl")
    assert printed.returncode == 1
    assert "none.jsonl" in printed.stderr
    assert ORDER in printed.stdout


def test_without_paths_the_sessions_of_the_agents_on_this_machine_are_audited(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    run = policyctx("audit")
    assert run.returncode == 1
    assert "no session was found in the folders of claude-code, " in run.stderr
    folder = tmp_path / ".claude" / "projects" / "work"
    folder.mkdir(parents=True)
    claude(folder / "session.jsonl", "one")
    run = policyctx("audit")
    assert run.returncode == 0, run.stderr
    assert run.stdout == "nothing to compare in 1 session: no call after a compaction\n"
