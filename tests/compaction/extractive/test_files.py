"""The files that calls worked on: the edited first, each once, with what happened last."""

from __future__ import annotations

import json

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import Group, extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.summaries import edited, group, later, ran, summary_of
from tests.conversations import Message, call, chat_calls, chat_result, results, user


def files(*messages: Message) -> list[str]:
    return [line[2:] for line in group(summary_of(user("Go."), *messages), Group.FILES)]


def read(call_id: str, path: str) -> list[Message]:
    return [call(call_id, "Read", {"file_path": path}), results((call_id, "one\ntwo"))]


def test_edited_files_come_before_a_file_that_was_deleted_often() -> None:
    removed = [one for i in range(9) for one in ran("rm -f coverage.out", "", f"r{i}")]
    found = files(*edited("c1", "src/a.py"), *edited("c2", "src/b.py"), *removed)
    assert found == ["src/b.py: edited 1", "src/a.py: edited 1", "coverage.out: deleted 9"]


def test_edited_files_are_kept_where_others_do_not_fit() -> None:
    messages = [user("Go."), *edited("c0", "src/a.py")]
    messages += [one for i in range(30) for one in read(f"c{i + 1}", f"src/other_{i}.py")]
    lines = group(summary_of(*messages, max_words=40), Group.FILES)
    assert lines[0] == "- src/a.py: edited 1"
    assert len(lines) < 20


def test_a_file_has_its_counts_and_what_happened_last() -> None:
    new = call("c4", "Write", {"file_path": "src/new.py", "content": "x = 1\ny = 2\n"})
    assert files(
        *read("c1", "src/loader.py"),
        *edited("c2", "src/loader.py"),
        *edited("c3", "src/loader.py"),
        new,
        results(("c4", "created")),
    ) == ["src/new.py: written 1", "src/loader.py: read 1, edited 2; last edited"]


def test_counts_of_earlier_rounds_add_up() -> None:
    first = summary_of(user("Go."), *edited("c1", "src/a.py"))
    third = later(later(first, *edited("c2", "src/a.py")), *read("c3", "src/a.py"))
    assert group(third, Group.FILES) == ["- src/a.py: edited 2, read 1; last read"]


def test_an_edit_that_failed_is_not_counted() -> None:
    failed = [call("c2", "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"})]
    failed.append(results(("c2", "no match"), error=True))
    assert files(*read("c1", "a.py"), *failed) == ["a.py: read 1; last edited failed"]


def test_a_file_that_was_written_before_a_failing_check_is_written() -> None:
    command = "cat > tests/test_a.py <<'END'\nassert 0\nEND\npytest -q tests"
    assert files(*ran(command, "FAILED tests/test_a.py\n1 failed")) == [
        "tests/test_a.py: written 1"
    ]


def test_tools_that_a_policy_declares_as_file_readers_are_counted() -> None:
    messages = [call("c1", "fetch_doc", {"doc": "plans/q3.md"}), results(("c1", "text"))]
    history = History(messages, reads_file={"fetch_doc": "doc"})
    found = group(extractive_summary(history, Summary()), Group.FILES)
    assert found == ["- plans/q3.md: read 1"]


def test_files_of_shell_commands_and_patches_are_listed() -> None:
    patch = "*** Begin Patch\n*** Update File: lib/a.py\n@@\n*** Add File: lib/b.py\n+x"
    write = "cat > conf/app.toml <<'END'\nport = 1\nrm build/old.txt\nEND"
    found = files(
        chat_calls(("c1", "shell", json.dumps({"command": ["bash", "-lc", write]}))),
        chat_result("c1", ""),
        chat_calls(("c2", "exec", '{"cmd": "sed -i s/1/2/ conf/app.toml && rm old/app.ini"}')),
        chat_result("c2", ""),
        chat_calls(("c3", "apply_patch", patch)),
        chat_result("c3", "Done!"),
    )
    assert found == [
        "lib/b.py: written 1",
        "lib/a.py: edited 1",
        "conf/app.toml: written 1, edited 1; last edited",
        "old/app.ini: deleted 1",
    ]


def test_text_of_several_lines_in_quotes_names_no_files() -> None:
    assert files(*ran('git commit -m "Fix\n\ncat a/b.txt > c/d.txt no more"', "ok")) == []


def test_a_profile_is_no_file() -> None:
    assert files(call("c1", "deploy", {"profile": "dev/eu"}), results(("c1", "ok"))) == []


@pytest.mark.parametrize("path", ["src/loader.py", "./src/loader.py", "/home/u/app/src/loader.py"])
def test_a_relative_and_an_absolute_path_are_one_file(path: str) -> None:
    found = files(*read("c1", "/home/u/app/src/loader.py"), *edited("c2", path))
    assert len(found) == 1
    assert found[0].endswith("src/loader.py: read 1, edited 1; last edited")


def test_a_path_that_two_absolute_paths_end_with_stays_by_itself() -> None:
    paths = ("/a/src/x.py", "/b/src/x.py", "src/x.py")
    assert len(files(*(one for i, path in enumerate(paths) for one in edited(f"c{i}", path)))) == 3


def test_the_lines_behind_a_path_are_not_part_of_it() -> None:
    messages = [call("c1", "view", {"path": "src/a.ts:10-80"}), results(("c1", "x"))]
    assert files(*messages) == ["src/a.ts: read 1"]


def test_an_option_named_like_a_program_reads_no_file() -> None:
    opened = ran("gh pr create --base dev --head feat/new-column --title x", "done")
    assert group(summary_of(user("Go."), *opened), Group.FILES) == []


def test_a_folder_that_a_call_only_names_is_not_listed() -> None:
    messages = [call("c1", "survey", {"path": "/srv/app/lib"}), results(("c1", "found"))]
    assert group(summary_of(user("Go."), *messages), Group.FILES) == []


@pytest.mark.parametrize(
    "said",
    [
        "cat: src/gone.py: No such file or directory",
        "sed: can't read src/gone.py: No such file or directory",
    ],
)
def test_a_file_that_one_of_several_commands_did_not_find_is_not_read(said: str) -> None:
    shown = ran("cat src/there.py; cat src/gone.py; cat src/last.py", f"x = 1\n{said}\ny = 2", "c1")
    assert files(*shown) == ["src/last.py: read 1", "src/there.py: read 1"]
