"""Instruction files, which `restore.always` brings back after every summary."""

from __future__ import annotations

from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.errors import UnrestorableFileError
from policyctx.turns.result import Result
from tests.conversations import call, results, user
from tests.policies import policy

RULES = "Run make check before a commit."


def compacted(
    root: Path, restore: str, *, reads: tuple[str, ...] = (), when: str = "", keep: int = 0
) -> Result:
    under = policy(f"""\
        model: {{context_window: 2000}}
        store: {{sync: never}}
        tools: {{Read: {{reads_file: path}}}}
        compaction:
          keep_recent: {{messages: {keep}}}
          restore: {{work_dir: '{root}', {restore}}}
        steps: [{{name: summarise, do: compact, when: {when or "{messages: {over: 0}}"}}}]
        """)
    messages: list[Message] = [user("Refactor the modules.")]
    for number, path in enumerate(reads):
        content = (root / path).read_text(encoding="utf-8")
        messages += [call(f"c{number}", "Read", {"path": path}), results((f"c{number}", content))]
    used = Session(
        under,
        root=root / "out",
        summarizer=lambda _: "the summary",
        counter=lambda text: len(text.split()),
        expects_usage=False,
    )
    return used.apply(messages)


def restored(result: Result) -> list[str]:
    assert result.compaction is not None
    return [one.path for one in result.compaction.replacement.written if one.path]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    (tmp_path / "AGENTS.md").write_text(RULES, encoding="utf-8")
    for name in "abcdef":
        (tmp_path / f"{name}.py").write_text(f"print('{name}')", encoding="utf-8")
    return tmp_path


def test_it_comes_back_before_other_files_and_needs_no_call(work: Path) -> None:
    result = compacted(work, "always: [AGENTS.md]", reads=("a.py", "b.py"))
    assert restored(result) == ["AGENTS.md", "b.py", "a.py"]
    assert any(RULES in str(message) for message in result.messages)


def test_it_takes_the_place_of_no_other_file(work: Path) -> None:
    reads = ("AGENTS.md", "a.py", "b.py")
    assert restored(compacted(work, "always: [AGENTS.md], max_files: 2", reads=reads)) == [
        "AGENTS.md", "b.py", "a.py",
    ]  # fmt: skip
    assert restored(compacted(work, "always: [AGENTS.md], max_files: 0")) == ["AGENTS.md"]


def test_a_name_without_a_file_is_no_warning(work: Path) -> None:
    result = compacted(work, "always: [CLAUDE.md, docs/RULES.md, AGENTS.md]")
    assert restored(result) == ["AGENTS.md"]
    assert result.warnings == ()


def test_a_link_to_another_of_them_comes_back_once(work: Path) -> None:
    (work / "CLAUDE.md").symlink_to("AGENTS.md")
    assert restored(compacted(work, "always: [AGENTS.md, CLAUDE.md]")) == ["AGENTS.md"]


def test_what_the_kept_messages_show_stays_where_it_is(work: Path) -> None:
    result = compacted(work, "always: [AGENTS.md]", reads=("a.py", "AGENTS.md"), keep=2)
    assert restored(result) == ["a.py"]


def test_a_file_outside_of_the_folder_or_too_large_is_a_warning(work: Path) -> None:
    (work / "CLAUDE.md").write_text("rule " * 50, encoding="utf-8")
    restore = "always: [../AGENTS.md, CLAUDE.md], max_tokens_per_file: 40"
    result = compacted(work, restore)
    assert restored(result) == []
    assert [warning.partition(" is not")[0] for warning in result.warnings] == [
        "'../AGENTS.md'",
        "'CLAUDE.md'",
    ]


def test_it_never_opens_the_gate_again(work: Path) -> None:
    (work / "AGENTS.md").write_text("rule " * 600, encoding="utf-8")
    (work / "a.py").write_text("code " * 600, encoding="utf-8")
    reads = ("a.py",)
    fitting = compacted(work, "always: [AGENTS.md]", reads=reads, when="{tokens: {over: 600}}")
    assert restored(fitting) == []
    assert all("do not fit under the gate" in warning for warning in fitting.warnings)
    assert len(fitting.warnings) == 2
    one = compacted(
        work, "always: [AGENTS.md]", reads=(*reads, "a.py"), when="{tokens: {over: 900}}"
    )
    assert restored(one) == ["AGENTS.md"]


def test_a_second_summary_reads_it_again(work: Path) -> None:
    under = policy(
        f"compaction: {{restore: {{work_dir: '{work}', always: [AGENTS.md]}}}}\nsteps: []"
    )
    used = Session(under, root=work / "out", session_id="s", summarizer=lambda _: "the summary")
    first = used.compact([user("go"), {"role": "assistant", "content": "yes"}]).messages
    (work / "AGENTS.md").write_text("Never push.", encoding="utf-8")
    second = used.compact([*first, user("and now")])
    assert restored(second) == ["AGENTS.md"]
    shown = str(second.messages)
    assert "Never push." in shown
    assert RULES not in shown


class Refusing:
    """A reader of the caller's that finds one file only."""

    def resolve(self, path: str, work_dir: str) -> str:
        return f"{work_dir}/{path}"

    def read(self, resolved: str, most_bytes: int) -> str:
        del most_bytes
        if resolved.endswith("AGENTS.md"):
            return RULES
        if resolved.endswith("CLAUDE.md"):
            raise FileNotFoundError(resolved)
        raise UnrestorableFileError(resolved, "it is secret")


def test_a_reader_of_the_caller_says_what_is_there(tmp_path: Path) -> None:
    under = policy("compaction: {restore: {always: [CLAUDE.md, secret.md, AGENTS.md]}}\nsteps: []")
    used = Session(under, root=tmp_path, summarizer=lambda _: "s", reader=Refusing())
    result = used.compact([user("go"), {"role": "assistant", "content": "yes"}])
    assert restored(result) == ["AGENTS.md"]
    assert result.warnings == ("'secret.md' is not restored: it is secret",)
