"""The hook of Claude Code around a compaction that Claude Code makes by itself."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from pathlib import Path

import pytest

from tests.cli.running import policyctx
from tests.integrations.claude_code import Session, bash, event, hook, started

pytestmark = pytest.mark.slow

ORDER, VALUE, LATER = "Never push to main.", "The staging port is 8081.", "Go on with the parser."


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("CLAUDE_PROJECT_DIR", raising=False)
    made = Session(tmp_path)
    made.say(ORDER, VALUE)
    made.edit("src/limits.py")
    made.say(LATER)
    return made


def test_the_instructions_of_a_summary_quote_orders_and_values(session: Session) -> None:
    assert session.hook("PreCompact", trigger="auto").split("\n")[1:] == [
        f"- order: {ORDER}",
        f"- exact value: {VALUE}",
    ]


def test_right_after_it_come_prohibitions_the_newest_message_and_the_path(session: Session) -> None:
    assert session.context("SessionStart", source="compact").split("\n")[1:] == [
        f"- order: {ORDER}",
        f"The user's newest message: {LATER}",
        f"The whole conversation is in {session.path}",
    ]


def test_the_next_result_delivers_what_the_summary_lacks_once(session: Session) -> None:
    session.compact("The parser was begun.")
    assert session.tool().split("\n")[1:-1] == [
        f"- exact value: {VALUE} [line 3]",
        "- edited file: src/limits.py (edited) [line 5]",
    ]
    assert not kept()
    assert session.tool() == ""


def test_the_next_prompt_delivers_it_as_well(session: Session) -> None:
    session.compact("The parser was begun in limits.py.")
    assert VALUE in session.context("UserPromptSubmit", prompt="Go on.")
    assert session.context("UserPromptSubmit", prompt="Go on.") == ""


def test_what_the_prompt_itself_says_is_not_delivered(session: Session) -> None:
    session.compact("The parser was begun in limits.py.")
    assert session.context("UserPromptSubmit", prompt="Use port 8081.") == ""


def test_nothing_is_added_where_nothing_is_missing(session: Session) -> None:
    session.compact("limits.py was edited for port 8081. Pushing to main is never allowed.")
    assert session.tool() == ""
    assert not marks()


def test_nothing_is_added_without_a_compaction(session: Session) -> None:
    assert session.tool() == session.context("UserPromptSubmit", prompt="Go on.") == ""
    assert session.context("SessionStart", source="startup") == ""
    assert session.context("SessionStart", source="resume") == ""


def test_a_resumed_session_is_reminded_of_what_a_summary_replaced(session: Session) -> None:
    session.summarise("The parser was begun.")
    assert ORDER in session.context("SessionStart", source="resume")
    assert session.tool() == ""


def test_a_summary_that_is_not_written_yet_is_waited_for(session: Session) -> None:
    session.context("SessionStart", source="compact")
    assert session.tool() == ""
    session.summarise("The parser was begun.")
    assert VALUE in session.tool()


def test_what_an_earlier_compaction_replaced_is_compared_again(session: Session) -> None:
    session.compact("The parser was begun.")
    session.tool()
    session.say("Use at most 3 retries.", "Go on with the lexer.")
    session.compact("The lexer was begun.")
    text = session.tool()
    assert VALUE in text
    assert "- order: Use at most 3 retries. [line " in text


def test_words_that_were_taken_back_are_not_quoted(session: Session) -> None:
    kept = session.add("user", "Write the docs.")
    session.say("Never touch the tables.")
    session.rewind(kept)
    session.say("Write them in English.")
    assert "tables" not in session.hook("PreCompact", trigger="manual")


def test_a_large_result_and_what_is_missing_come_together(session: Session) -> None:
    session.compact("The parser was begun.")
    large = "\n".join(f"line {number} of the output" for number in range(2_000))
    run = hook(event("Bash", bash(large), cwd=session.folder, transcript_path=str(session.path)))
    said = json.loads(run.stdout)["hookSpecificOutput"]
    assert VALUE in said["additionalContext"]
    assert "2000 lines" in said["updatedToolOutput"]["stdout"]


def test_a_sub_agent_and_another_session_get_nothing(session: Session) -> None:
    session.compact("The parser was begun.")
    assert session.tool(agent_id="a1") == ""
    other = Session(session.folder, "s2")
    other.say(ORDER)
    assert other.tool() == ""
    assert VALUE in session.tool()


def test_a_policy_without_carry_adds_nothing(session: Session, tmp_path: Path) -> None:
    policy = tmp_path / "mine.yaml"
    policy.write_text("apiVersion: policyctx/v1\nname: mine\n")
    option = f"--policy={policy}"
    assert session.hook("PreCompact", option, trigger="auto") == ""
    assert session.context("SessionStart", option, source="compact") == ""


@pytest.mark.parametrize("name", ["PreCompact", "SessionStart"])
def test_a_transcript_that_cannot_be_read_fails_nothing(session: Session, name: str) -> None:
    given = session.event(name, source="compact") | {"transcript_path": "/nowhere/t.jsonl"}
    run = hook(given)
    assert (run.returncode, run.stdout) == (0, "")
    assert "nothing is added" in run.stderr


def test_lines_that_are_no_records_are_skipped(session: Session) -> None:
    with session.path.open("a", encoding="utf-8") as file:
        file.write('[1]\nnull\n{"type": "user", "message": 3}\n{"type": "user", "mess')
    assert ORDER in session.hook("PreCompact", trigger="auto")


def test_what_is_before_a_line_that_is_no_record_is_known(session: Session) -> None:
    uuid = session.add("user", "Use tabs.")
    lines = session.path.read_text(encoding="utf-8").splitlines(keepends=True)
    session.path.write_text("".join(lines[:-1]) + f"{lines[-1][:40]}\n", encoding="utf-8")
    session.rewind(uuid)
    session.say("Go on.")
    assert ORDER in session.hook("PreCompact", trigger="auto")


def test_what_the_user_says_beside_a_large_picture_is_quoted(session: Session) -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * (5 << 20)}}
    session.add("user", [{"type": "text", "text": "Always use 3 colours."}, picture])
    session.say("Go on.")
    text = session.hook("PreCompact", trigger="auto")
    assert ORDER in text
    assert "Always use 3 colours." in text


def test_what_a_compaction_keeps_behind_its_summary_is_not_missing(session: Session) -> None:
    kept = session.add("user", "The database listens on port 5433.")
    session.say(LATER)
    session.context("SessionStart", source="compact")
    session.summarise("The parser was begun.", kept=[kept])
    text = session.tool()
    assert VALUE in text
    assert "5433" not in text


def test_a_summary_that_was_written_before_the_session_began_anew_is_compared(
    session: Session,
) -> None:
    session.summarise("The parser was begun.")
    session.context("SessionStart", source="compact")
    session.add("assistant", [{"type": "text", "text": "Going on."}])
    assert VALUE in session.tool()
    assert session.tool() == ""


def test_a_summary_that_never_comes_is_not_waited_for(session: Session) -> None:
    session.context("SessionStart", source="compact")
    session.say("Go on.")
    assert session.tool() == ""
    assert not marks()


@pytest.mark.parametrize("content", ["", "12x", "\udc80"])
def test_a_mark_that_a_killed_process_left_broken_delivers_once(
    session: Session, content: str
) -> None:
    session.compact("The parser was begun.")
    [mark] = marks()
    mark.write_bytes(content.encode("utf-8", "surrogateescape"))
    assert VALUE in session.tool()
    assert session.tool() == ""


def test_a_session_without_an_id_leaves_no_mark(session: Session) -> None:
    given = session.event("SessionStart", source="compact") | {"session_id": None}
    run = hook(given)
    assert ORDER in run.stdout
    assert "the event has no session_id" in run.stderr
    assert not marks()


def test_a_transcript_that_is_a_pipe_is_not_waited_for(session: Session, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    run = hook(session.event("PreCompact") | {"transcript_path": str(tmp_path / "pipe")})
    assert (run.returncode, run.stdout) == (0, "")
    assert "is no file" in run.stderr


def test_a_folder_that_takes_no_mark_loses_the_delivery_alone(
    session: Session, tmp_path: Path
) -> None:
    (tmp_path / "home").write_text("no folder")
    run = hook(session.event("SessionStart", source="compact"))
    assert run.returncode == 0
    assert ORDER in run.stdout
    assert "what the summary lacks is not added" in run.stderr


def test_of_many_hooks_at_once_one_delivers(session: Session) -> None:
    session.compact("The parser was begun.")
    given = session.event(
        "PostToolUse", tool_name="Bash", tool_input={}, tool_response=bash("ok"), tool_use_id="t9"
    )
    processes = [started(given) for _ in range(4)]
    printed = [process.communicate()[0] for process in processes]
    assert sum(VALUE.encode() in one for one in printed) == 1


def marks() -> list[Path]:
    """Return the files by which compactions are remembered."""
    return [path for path in kept() if path.suffix == ".compacted"]


def kept() -> list[Path]:
    """Return the files of compactions, also of hooks that were killed."""
    return [*(Path.home() / ".cache/policyctx/arrival").glob("*.compacted*")]


def full_pipe() -> tuple[int, int]:
    """Return the ends of a pipe to which nothing more can be written."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(writing, bytes(4_096))
    os.set_blocking(writing, True)
    return reading, writing


def is_locked(path: Path) -> bool:
    with path.open("rb+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def test_what_a_killed_hook_did_not_deliver_the_next_one_does(session: Session) -> None:
    session.compact("The parser was begun.")
    given = session.event(
        "PostToolUse", tool_name="Bash", tool_input={}, tool_response=bash("ok"), tool_use_id="t9"
    )
    ends = full_pipe()
    process = started(given, stdout=ends[1])
    [mark] = marks()
    while not is_locked(mark):
        time.sleep(0.01)
    assert session.tool() == ""
    process.kill()
    process.communicate()
    for end in ends:
        os.close(end)
    assert VALUE in session.tool()
    assert session.tool() == ""


def test_what_could_not_be_printed_is_delivered_with_the_next_result(session: Session) -> None:
    session.compact("The parser was begun.")
    given = session.event("UserPromptSubmit", prompt="Go on.")
    with Path("/dev/full").open("wb") as full:
        assert b"No space left" in started(given, stdout=full.fileno()).communicate()[1]
    assert VALUE in session.tool()


def test_uninstalling_leaves_nothing(session: Session, tmp_path: Path) -> None:
    settings = tmp_path / "home/.claude/settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text("{}\n")
    settings.chmod(0o644)  # the hook makes one that nobody else may read, and removes that
    policyctx("hook", "claude-code", "--install", "--yes")
    hooks = json.loads(settings.read_text())["hooks"]
    assert set(hooks) == {"PostToolUse", "PreCompact", "SessionStart", "UserPromptSubmit"}
    assert hooks["SessionStart"][0]["matcher"] == "compact|resume"
    session.context("SessionStart", source="compact")
    [mark] = marks()
    mark.with_name(f"{mark.name}.123").touch()  # of a process that was killed
    policyctx("hook", "claude-code", "--uninstall", "--yes")
    assert settings.read_text() == "{}\n"
    assert not kept()


def test_the_hook_may_be_installed_for_results_alone(session: Session, tmp_path: Path) -> None:
    settings = tmp_path / "home/.claude/settings.json"
    policyctx("hook", "claude-code", "--install", "--yes")
    session.compact("The parser was begun.")
    policyctx("hook", "claude-code", "--install", "--yes", "--without", "compaction")
    assert session.tool() == ""
    assert [*json.loads(settings.read_text())["hooks"]] == ["PostToolUse"]
