"""Which tools are known to read files, and what is said if none is."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from policyctx import (
    PolicyError,
    Session,
    UnknownPolicyError,
    compact_messages,
    compact_messages_async,
    load_policy,
)
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive.summary import extractive_summary
from policyctx.policy.models.compaction import Summary
from policyctx.policy.sources import fragment_names, preset_names
from policyctx.recipes import CompactResult
from tests.cli.running import policyctx
from tests.conversations import Message, call, results, user
from tests.policies import policy

SAID: Message = {"role": "assistant", "content": "I move it next."}
KNOWN = [
    ("Read", "file_path"),
    ("read", "path"),
    ("read", "filePath"),
    ("read_file", "path"),
    ("read_file", "file_path"),
    ("read_file", "absolute_path"),
    ("read_file", "target_file"),
    ("read_file", "filePath"),
    ("str_replace_based_edit_tool", "path"),
    ("str_replace_editor", "path"),
    ("file_editor", "path"),
]


def reading(tool: str, given: dict[str, Any]) -> list[Message]:
    return [user("Move the port."), call("a", tool, given), results(("a", "PORT = 1\n")), SAID]


@pytest.fixture
def work_dir(tmp_path: Path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "port.py").write_text("PORT = 8081\n", encoding="utf-8")
    return folder


def compacted(messages: list[Message], work_dir: Path, **options: Any) -> CompactResult:
    out = work_dir.parent / "out"
    return compact_messages(messages, threshold=1, work_dir=work_dir, output_dir=out, **options)


@pytest.mark.parametrize(("tool", "field"), KNOWN)
def test_a_file_read_by_a_known_reader_is_restored_under_coding_agent(
    tool: str, field: str, work_dir: Path
) -> None:
    changed = policy(f"""\
        extends: coding-agent
        store: {{sync: never}}
        compaction: {{restore: {{work_dir: '{work_dir}'}}}}
        steps: [{{name: summarise, do: compact}}]
        """)
    messages = [*reading(tool, {field: "port.py", "view_range": [1, 2]}), user("Go on.")]
    result = Session(changed, root=work_dir.parent / "out").apply(messages)
    restored = [m["content"] for m in result.messages if "Restored" in str(m["content"])]
    assert restored == ["[Restored after compact] port.py:\nPORT = 8081\n"]
    assert result.warnings == ()


@pytest.mark.parametrize("fields", ["file_path", ["path", "file_path"], ("path", "file_path")])
def test_a_caller_can_say_which_tool_reads_files(fields: Any, work_dir: Path) -> None:
    messages = reading("Read", {"file_path": "port.py"})
    result = compacted(messages, work_dir, reads_file={"Read": fields})
    assert (result.stats.restored_file_count, result.warnings) == (1, ())


def test_read_file_stays_known_to_compact_messages(work_dir: Path) -> None:
    messages = reading("read_file", {"path": "port.py"})
    result = compacted(messages, work_dir, reads_file={"Read": "file_path"})
    assert result.stats.restored_file_count == 1


@pytest.mark.parametrize("wrong", [{"Read": 7}, {"Read": ""}, {"Read": []}, {"Read": [1]}])
def test_a_wrong_field_is_an_error(wrong: Any, work_dir: Path) -> None:
    with pytest.raises(PolicyError):
        compacted(reading("Read", {}), work_dir, reads_file=wrong)


@pytest.mark.parametrize(
    ("tool", "field", "path"),
    [
        ("Read", "file_path", "port.py"),
        ("read", "path", "/repo/src/port.py"),
        ("fetch_document", "filename", "my notes.md"),
        ("Edit", "filePath", "port.py"),
    ],
)
def test_an_unknown_reader_is_named_with_the_option(
    tool: str, field: str, path: str, work_dir: Path
) -> None:
    result = compacted(reading(tool, {field: path, "limit": 5}), work_dir)
    assert result.compacted
    [warning] = result.warnings
    assert warning.startswith("no file is restored")
    assert f'reads_file={{"{tool}": "{field}"}}' in warning
    assert f"`tools: {{{tool}: {{reads_file: {field}}}}}`" in warning


def test_a_tool_named_like_a_reader_is_suggested_first(work_dir: Path) -> None:
    messages = [
        *reading("Edit", {"file_path": "a.py"}),
        *reading("Read", {"file_path": "a.py"})[1:],
    ]
    assert '{"Read": "file_path"}' in compacted(messages, work_dir).warnings[0]


@pytest.mark.parametrize(
    "given",
    [
        {"command": "cat port.py"},
        {"path": "src"},
        {"path": "/"},
        {"path": ["port.py"]},
        {"path": "https://example.org/port.html"},
        {"pattern": "port.py"},
        {},
    ],
)
def test_a_call_without_a_path_to_a_file_needs_no_warning(
    given: dict[str, Any], work_dir: Path
) -> None:
    assert compacted(reading("Find", given), work_dir).warnings == ()


@pytest.mark.parametrize("kind", ["update_file", "create_file", "delete_file"])
def test_the_patches_of_openais_own_tool_are_not_taken_for_reading(
    kind: str, work_dir: Path
) -> None:
    operation = {"type": kind, "path": "port.py", "diff": "@@\n-PORT = 1\n+PORT = 2\n"}
    items: list[Message] = [
        user("Move the port."),
        {"type": "apply_patch_call", "call_id": "a", "operation": operation, "status": "completed"},
        {"type": "apply_patch_call_output", "call_id": "a", "status": "completed"},
        SAID,
    ]
    result = compacted(items, work_dir)
    assert result.compacted
    assert result.warnings == ()


@pytest.mark.parametrize("tool", ["Edit", "Write"])
def test_a_tool_that_is_known_to_edit_or_write_is_not_taken_for_reading(
    tool: str, work_dir: Path
) -> None:
    made = policy(f"""\
        extends: file-readers
        store: {{sync: never}}
        compaction: {{restore: {{work_dir: '{work_dir}'}}}}
        steps: [{{name: summarise, do: compact}}]
        """)
    result = Session(made, root=work_dir.parent / "out").apply(
        [*reading(tool, {"file_path": "port.py"}), user("Go on.")]
    )
    assert result.compacted
    assert result.warnings == ()


def test_no_warning_is_given_if_no_file_may_be_restored(work_dir: Path) -> None:
    messages = reading("Read", {"file_path": "port.py"})
    assert compacted(messages, work_dir, max_restore_files=0).warnings == ()


@pytest.mark.parametrize(
    ("command", "verb"), [("view", "read"), ("str_replace", "edited"), ("create", "written")]
)
def test_the_command_argument_of_an_editor_determines_the_operation(
    command: str, verb: str
) -> None:
    given = {"command": command, "path": "port.py", "old_str": "1", "new_str": "2"}
    history = History(
        reading("str_replace_editor", given), reads_file={"str_replace_editor": ("path",)}
    )
    assert f"- port.py: {verb}" in extractive_summary(history, Summary())


class TestFragment:
    def test_it_is_not_among_the_presets(self) -> None:
        assert fragment_names() == ("file-readers", "question-tools", "secrets")
        assert not set(fragment_names()) & set(preset_names())

    def test_it_is_not_a_policy_by_itself(self) -> None:
        with pytest.raises(UnknownPolicyError):
            load_policy("file-readers")

    def test_any_policy_can_extend_it(self) -> None:
        rules = policy("extends: [context-compact, file-readers]").policy.tools
        assert rules["Read"].reads_file == ("file_path",)

    def test_a_policy_overrides_its_rules(self) -> None:
        made = policy("extends: file-readers\ntools: {Read: {reads_file: where}}")
        assert made.path_fields("Read") == ("where",)
        assert made.path_fields("read") == ("path", "filePath")

    def test_a_misspelt_name_gets_a_suggestion(self) -> None:
        with pytest.raises(PolicyError, match="did you mean 'file-readers'"):
            policy("extends: file-reader")

    def test_show_names_the_origin_of_the_rules(self) -> None:
        run = policyctx("show", "coding-agent", "--origins")
        assert "file-readers.yaml:" in run.stdout
        assert "reads_file" in run.stdout

    def test_coding_agent_has_no_findings(self) -> None:
        assert policyctx("check", "coding-agent", "--strict").returncode == 0


def test_a_single_field_is_read_as_before() -> None:
    made = policy("tools: {read_file: {reads_file: path}}")
    assert (made.reads_file("read_file"), made.path_fields("read_file")) == ("path", ("path",))
    assert (made.reads_file("Bash"), made.path_fields("Bash")) == (None, ())


class HangingReader:
    """Reads every file but those of a name, for which one of its methods does not return."""

    def __init__(self, hangs_at: str) -> None:
        self.hangs_at = hangs_at

    def resolve(self, path: str, work_dir: str) -> str:
        if self.hangs_at == "resolve" and "slow" in path:
            Event().wait(60)
        return f"{work_dir}/{path}"

    def read(self, resolved: str, most_bytes: int) -> str:
        if self.hangs_at == "read" and "slow" in resolved:
            Event().wait(60)
        return "PORT = 8081\n"[:most_bytes]


@pytest.mark.parametrize("hangs_at", ["resolve", "read"])
@pytest.mark.parametrize("is_async", [False, True])
def test_files_that_are_not_read_in_time_are_skipped(
    hangs_at: str, tmp_path: Path, *, is_async: bool
) -> None:
    paths = ["older.py", "slow.py", "newest.py"]
    messages = [user("Move the port.")]
    for i, path in enumerate(paths):
        messages += [call(f"r{i}", "read_file", {"path": path}), results((f"r{i}", "PORT = 1\n"))]
    given: dict[str, Any] = {
        "threshold": 1,
        "output_dir": tmp_path,
        "summarizer": lambda _: "## Goal\nMove the port.",
        "summary_timeout": "1s",
        "file_reader": HangingReader(hangs_at),
    }
    begun = time.monotonic()
    if is_async:
        result = asyncio.run(compact_messages_async([*messages, SAID], **given))
    else:
        result = compact_messages([*messages, SAID], **given)
    assert time.monotonic() - begun < 20
    assert result.compacted
    late = "is not restored: the files were not read within 2 s"
    skipped = [path for path in paths if f"{path!r} {late}" in "".join(result.warnings)]
    assert skipped == (paths[:2] if hangs_at == "read" else paths)


class NotingReader:
    """Reads every file, and notes the thread of each call, some of which fail."""

    def __init__(self) -> None:
        self.threads: list[Thread] = []

    def resolve(self, path: str, work_dir: str) -> str:
        self.threads.append(current_thread())
        return f"{work_dir}/{path}"

    def read(self, resolved: str, most_bytes: int) -> str:
        self.threads.append(current_thread())
        if "lost" in resolved:
            raise OSError(resolved)
        return "PORT = 8081\n"[:most_bytes]


@pytest.mark.parametrize("is_async", [False, True])
def test_all_files_of_a_compaction_are_read_in_one_thread_that_ends(
    work_dir: Path, *, is_async: bool
) -> None:
    """A connection that a reader opens may serve its own thread only, as one of SQLite does."""
    reader = NotingReader()
    messages = [user("Move the port.")]
    for i, path in enumerate(["older.py", "lost.py", "newest.py"]):
        messages += [call(f"r{i}", "read_file", {"path": path}), results((f"r{i}", "PORT = 1\n"))]
    given: dict[str, Any] = {"threshold": 1, "output_dir": work_dir, "file_reader": reader}
    if is_async:
        result = asyncio.run(compact_messages_async([*messages, SAID], **given))
    else:
        result = compact_messages([*messages, SAID], **given)
    assert result.compacted
    assert len(reader.threads) == 6
    [thread] = set(reader.threads)
    thread.join(10)
    assert not thread.is_alive()
