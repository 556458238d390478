"""The files that calls worked on: the edited first, each once, with what happened last."""

from __future__ import annotations

import json
import re
from functools import partial
from typing import Any

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import Group, extractive_summary
from policyctx.compaction.extractive.files import RAISED, command_parts
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.summaries import edited, group, later, ran, summary_of
from tests.conversations import Message, call, chat_calls, chat_result, results, user
from tests.growing import grows_at_most


def files(*messages: Message, **settings: Any) -> list[str]:
    lines = group(summary_of(user("Go."), *messages, **settings), Group.FILES)
    return [line[2:] for line in lines]


def read(call_id: str, path: str) -> list[Message]:
    return [call(call_id, "Read", {"file_path": path}), results((call_id, "one\ntwo"))]


def test_deleted_files_are_not_listed() -> None:
    removed = [one for i in range(9) for one in ran("rm -f coverage.out", "", f"r{i}")]
    found = files(*edited("c1", "src/a.py"), *edited("c2", "src/b.py"), *removed)
    assert found == ["src/b.py: edited", "src/a.py: edited"]


def test_edited_files_are_kept_where_others_do_not_fit() -> None:
    messages = [user("Go."), *edited("c0", "src/a.py")]
    messages += [one for i in range(30) for one in read(f"c{i + 1}", f"src/other_{i}.py")]
    lines = group(summary_of(*messages, max_words=40), Group.FILES)
    assert lines[0] == "- src/a.py: edited"
    assert len(lines) < 20


def test_a_file_has_what_changed_it_last() -> None:
    new = call("c4", "Write", {"file_path": "src/new.py", "content": "x = 1\ny = 2\n"})
    assert files(
        *read("c1", "src/loader.py"),
        *edited("c2", "src/loader.py"),
        *edited("c3", "src/loader.py"),
        new,
        results(("c4", "created")),
    ) == ["src/new.py: written", "src/loader.py: edited"]


def test_a_file_that_was_edited_in_an_earlier_round_stays_edited() -> None:
    first = summary_of(user("Go."), *edited("c1", "src/a.py"))
    third = later(later(first, *edited("c2", "src/a.py")), *read("c3", "src/a.py"))
    assert group(third, Group.FILES) == ["- src/a.py: edited"]


def test_an_edit_that_failed_is_not_listed() -> None:
    failed = [call("c2", "Edit", {"file_path": "a.py", "old_string": "x", "new_string": "y"})]
    failed.append(results(("c2", "no match"), error=True))
    assert files(*read("c1", "a.py"), *failed) == ["a.py: read"]


def test_a_file_that_was_written_before_a_failing_check_is_written() -> None:
    command = "cat > tests/test_a.py <<'END'\nassert 0\nEND\npytest -q tests"
    assert files(*ran(command, "FAILED tests/test_a.py\n1 failed")) == ["tests/test_a.py: written"]


def test_tools_that_a_policy_declares_as_file_readers_are_listed() -> None:
    messages = [call("c1", "fetch_doc", {"doc": "plans/q3.md"}), results(("c1", "text"))]
    history = History(messages, reads_file={"fetch_doc": "doc"})
    found = group(extractive_summary(history, Summary()), Group.FILES)
    assert found == ["- plans/q3.md: read"]


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
        "lib/b.py: written",
        "lib/a.py: edited",
        "conf/app.toml: written",
    ]


def test_text_of_several_lines_in_quotes_names_no_files() -> None:
    assert files(*ran('git commit -m "Fix\n\ncat a/b.txt > c/d.txt no more"', "ok")) == []


def test_a_profile_is_no_file() -> None:
    assert files(call("c1", "deploy", {"profile": "dev/eu"}), results(("c1", "ok"))) == []


@pytest.mark.parametrize("path", ["src/loader.py", "./src/loader.py", "/home/u/app/src/loader.py"])
def test_a_relative_and_an_absolute_path_are_one_file(path: str) -> None:
    found = files(*read("c1", "/home/u/app/src/loader.py"), *edited("c2", path))
    assert len(found) == 1
    assert found[0].endswith("src/loader.py: edited")


def test_a_path_that_two_absolute_paths_end_with_stays_by_itself() -> None:
    paths = ("/a/src/x.py", "/b/src/x.py", "src/x.py")
    assert len(files(*(one for i, path in enumerate(paths) for one in edited(f"c{i}", path)))) == 3


def test_the_lines_behind_a_path_are_not_part_of_it() -> None:
    messages = [call("c1", "view", {"path": "src/a.ts:10-80"}), results(("c1", "x"))]
    assert files(*messages) == ["src/a.ts: read"]


def test_an_option_named_like_a_program_reads_no_file() -> None:
    opened = ran("gh pr create --base dev --head feat/new-column --title x", "done")
    assert group(summary_of(user("Go."), *opened), Group.FILES) == []


def test_a_folder_that_a_call_only_names_is_not_listed() -> None:
    messages = [call("c1", "survey", {"path": "/srv/app/lib"}), results(("c1", "found"))]
    assert group(summary_of(user("Go."), *messages), Group.FILES) == []


def test_a_patch_that_did_not_apply_is_not_listed() -> None:
    patch = "*** Begin Patch\n*** Update File: lib/a.py\n@@\n-x\n+y\n*** End Patch"
    refused = "apply_patch verification failed: Failed to find expected lines in lib/a.py"
    assert files(*ran(f"apply_patch <<'EOF'\n{patch}\nEOF", refused)) == []
    assert files(chat_calls(("c1", "apply_patch", patch)), chat_result("c1", refused)) == []


def test_no_file_has_a_count_that_another_writers_summary_would_make_false() -> None:
    foreign = "This conversation was summarised. The valve was rebuilt in src/valve.py, twice."
    found = group(later(foreign, *edited("c1", "src/valve.py")), Group.FILES)
    assert found == ["- src/valve.py: edited"]


def test_files_that_a_difference_prints_are_no_changes() -> None:
    printed = " src/pump.py | 12 ++++++------\n docs/图.md  |  2 +-\n 2 files changed"
    assert files(*ran("git diff --stat", printed)) == []


# Longer than what is read of a command.
LONG = "\n".join(f"Line {i} of the text." for i in range(400))


@pytest.mark.parametrize(
    ("command", "found"),
    [
        ("rm -f src/a.py 'b c' old/d.txt", []),
        ("cp src/a.py src/b.py", ["src/b.py: written"]),
        ("cp -r src/a.py src/b.py lib/", ["lib/b.py: written", "lib/a.py: written"]),
        ("cp conf/a.toml build/out", ["build/out/a.toml: written"]),
        ("sed -i 's/a/b/' src/a.py src/b.py", ["src/b.py: edited", "src/a.py: edited"]),
        ("git rm lib/x.py && touch lib/y.py", ["lib/y.py: written"]),
        ("git checkout main -- src/a.py", []),
        ("git checkout feat/valve.new", []),
        ("git show HEAD~1:src/a.py > src/a.py", []),
        ("cat > conf/b.toml <<'E'\nx\nE", ["conf/b.toml: written"]),
        ("make 2>&1 | tee out/log.txt", ["out/log.txt: written"]),
        (f"cat <<'E' > doc/a.md\n{LONG}\nE", ["doc/a.md: written"]),
        (f"cat <<'E' | tee doc/a.md\n{LONG}\nE", ["doc/a.md: written"]),
        (f"cat > doc/a.md <<'E'\n{LONG}\nE", ["doc/a.md: written"]),
        ("cat > \"doc/a.md\" <<'E'\nx\nE", ["doc/a.md: written"]),
        ("echo 1 >> 'doc/a.md'", ["doc/a.md: edited"]),
        ("cat > Makefile <<'E'\nx\nE", ["Makefile: written"]),
        ("echo 1 | tee -a doc/a.md", ["doc/a.md: edited"]),
        ("sed -i -e 's/a/b/' -e s/x/y/ src/a.py", ["src/a.py: edited"]),
        ("sed -i '' s/x/y/ src/a.py", ["src/a.py: edited"]),
        ("perl -pi -e 's/\\r$//' src/a.sh", ["src/a.sh: edited"]),
        ("perl -ne 'print if /x/' src/a.sh", []),
        ("perl -Ilib -e 'print 1' src/a.sh", []),
        ("sed -i -e /foo/d src/a.sh", ["src/a.sh: edited"]),
        ("sed -i.bak 's/a/b/' src/a.py", ["src/a.py: edited"]),
        ("perl -pi.orig -e 's/a/b/' lib/b.txt", ["lib/b.txt: edited"]),
        ("sed -i s/a/x.y conf/c.ini", ["conf/c.ini: edited"]),
        ("sed -i 's/8080/8081/' docker/Dockerfile", ["docker/Dockerfile: edited"]),
        ("sed -i 5d deploy/.env", ["deploy/.env: edited"]),
        ("sed -i '/pump/d' /etc/hosts", ["/etc/hosts: edited"]),
        ("test $a -gt 3 > /dev/null && echo 'a > B' -> Cellar", []),
    ],
)
def test_each_file_that_a_shell_command_changes_is_listed(command: str, found: list[str]) -> None:
    assert files(*ran(command, "")) == found


def test_a_command_in_a_program_that_a_call_holds_is_read() -> None:
    code = 'await tools.exec_command({ cmd: "git commit -m \\"Mend it\\" && touch b.py" });'
    said = json.dumps({"exit_code": 0, "output": "[main 27da664] Mend it\n 1 file changed"})
    made = [chat_calls(("c1", "exec", code)), chat_result("c1", f"Output:\n{said}")]
    summary = summary_of(user("Go."), *made)
    assert group(summary, Group.FILES) == ["- b.py: written"]
    assert group(summary, Group.STEPS) == [
        '- git commit -m "Mend it" && touch b.py => exit code 0: [main 27da664] Mend it'
    ]


@pytest.mark.parametrize(
    "command",
    [
        "git checkout -- src/a.py",
        "git restore src/a.py",
        "git checkout src/a.py",
        "git checkout HEAD a.py",
        "git reset --hard",
        "git checkout .",
    ],
)
def test_a_file_that_was_put_back_is_not_listed_unless_it_was_committed(command: str) -> None:
    back = ran(command, "", "c3")
    assert files(*edited("c1", "src/a.py"), *back) == []
    commit = ran("git commit -qam Mend", "", "c2")
    committed = [f"{BEFORE_COMMIT}src/a.py"]
    assert files(*edited("c1", "src/a.py"), *commit, *back) == committed
    first = summary_of(user("Go."), *edited("c1", "src/a.py"), *commit)
    assert group(later(first, *back), Group.FILES) == [f"- {committed[0]}"]
    first = summary_of(user("Go."), *edited("c1", "src/a.py"))
    assert group(later(first, *back), Group.FILES) == []


BEFORE_COMMIT = "Edited before the last commit: "
COMMITTED = [
    *edited("c1", "src/a.py"),
    *edited("c2", "src/b.py"),
    *ran("git commit -am Mend", "[main 1a2b3c4] Mend", "c3"),
]


def test_files_that_were_edited_before_the_last_commit_stand_in_one_line_behind_the_others() -> (
    None
):
    before = f"{BEFORE_COMMIT}src/b.py, src/a.py"
    assert files(*COMMITTED) == [before]
    assert files(*COMMITTED, *read("c4", "src/b.py")) == [before]
    again = files(*COMMITTED, *edited("c4", "src/c.py"), *edited("c5", "src/b.py"))
    assert again == ["src/b.py: edited", "src/c.py: edited", f"{BEFORE_COMMIT}src/a.py"]


@pytest.mark.parametrize("command", ["git restore src/", "git checkout -- src/b.py src/a.py"])
def test_to_put_a_file_back_takes_only_the_edits_since_the_last_commit_away(command: str) -> None:
    again = [*edited("c4", "src/a.py"), *edited("c5", "src/c.py")]
    back = ran(command, "", "c6")
    gone = [] if command.endswith("src/") else ["src/c.py: edited"]
    left = [*gone, f"{BEFORE_COMMIT}src/a.py, src/b.py"]
    assert files(*COMMITTED, *again, *back) == left
    first = summary_of(user("Go."), *COMMITTED)
    second = later(first, *again)
    assert later(second) == second
    assert group(later(first, *again, *back), Group.FILES) == [f"- {one}" for one in left]
    # An earlier summary does not say that a file in the work was committed before.
    left[-1] = f"{BEFORE_COMMIT}src/b.py"
    assert group(later(second, *back), Group.FILES) == [f"- {one}" for one in left]


def test_a_file_that_is_only_unstaged_is_listed() -> None:
    made = edited("c1", "src/a.py")
    assert files(*made, *ran("git restore --staged src/a.py", "", "c2")) == ["src/a.py: edited"]


def test_a_file_that_only_git_was_told_of_is_listed_as_staged() -> None:
    made = [*ran("make test", "9 passed", "c1"), *edited("c2", "/w/src/a.py")]
    staged = ran("git add src/a.py src/old.py lib/new", "", "c3")
    commit = ran("git commit -qm x", "[main 1a2b3c4] x", "c4")
    first = summary_of(user("Go."), *made, *staged)
    listed = ["/w/src/a.py: edited", "lib/new: staged", "src/old.py: staged"]
    assert sorted(files(*made, *staged)) == listed
    assert "9 passed; changed since: a.py\n" in first
    assert later(first) == first
    for summary in (summary_of(user("Go."), *made, *staged, *commit), later(first, *commit)):
        (line,) = group(summary, Group.FILES)
        paths = line.removeprefix(f"- {BEFORE_COMMIT}").split(", ")
        assert sorted(paths) == ["/w/src/a.py", "lib/new", "src/old.py"]
        new = group(later(summary, *ran("git add src/c.py", "", "c5")), Group.FILES)
        assert new[0] == "- src/c.py: staged"


@pytest.mark.parametrize("command", ["git restore --staged src/a.py", "git reset src/a.py"])
def test_a_file_that_was_staged_and_taken_out_again_is_not_listed(command: str) -> None:
    assert files(*ran("git add src/a.py", "", "c1"), *ran(command, "", "c2")) == []


@pytest.mark.parametrize("command", ["git reset -q", "git reset HEAD"])
def test_a_reset_without_paths_takes_all_staged_files_out(command: str) -> None:
    made = [*edited("c1", "src/a.py"), *ran("git add src/b.py src/c.py", "", "c2")]
    assert files(*made, *ran(command, "", "c3")) == ["src/a.py: edited"]


@pytest.mark.parametrize("command", ["git add .", "git add -n src/a.py"])
def test_an_add_that_stages_no_named_file_is_not_listed(command: str) -> None:
    assert files(*ran(command, "")) == []


@pytest.mark.parametrize(
    "commands",
    [
        ["git add src/a.py src/b.py && git commit -m x"],
        ["git add src/a.py; git add src/b.py; git commit -m x; git push"],
        ["git add src/a.py src/b.py", "git rebase --continue"],
        ["git add src/a.py src/b.py", "git merge --continue"],
    ],
)
def test_a_file_that_was_staged_and_committed_is_committed(commands: list[str]) -> None:
    made = [one for i, given in enumerate(commands) for one in ran(given, "[main 1a2b] x", f"s{i}")]
    assert sorted(files(*made)) == [f"{BEFORE_COMMIT}src/b.py, src/a.py"]
    assert files(*edited("e0", "src/b.py"), *made, *edited("e1", "src/c.py")) == [
        "src/c.py: edited",
        f"{BEFORE_COMMIT}src/a.py, src/b.py",
    ]


def test_a_committed_file_that_was_deleted_is_not_listed() -> None:
    looked = [*ran("rm src/a.py", "", "c4"), *edited("c5", "c.py"), *read("c6", "src/a.py")]
    assert files(*COMMITTED, *looked) == ["c.py: edited", f"{BEFORE_COMMIT}src/b.py"]


def test_what_was_edited_before_the_last_commit_is_known_in_the_next_rounds() -> None:
    first = summary_of(user("Go."), *COMMITTED, *edited("c4", "src/c.py"))
    assert later(first) == first
    second = later(first, *edited("c5", "src/a.py"))
    assert group(second, Group.FILES) == [
        "- src/a.py: edited",
        "- src/c.py: edited",
        f"- {BEFORE_COMMIT}src/b.py",
    ]
    third = later(second, *ran("git commit -qam More", "", "c6"))
    assert group(third, Group.FILES) == [f"- {BEFORE_COMMIT}src/a.py, src/c.py, src/b.py"]


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("git commit -m x | tail -3", "no changes added to commit"),
        ("git commit -m x | tail -3", "lint.....Failed\n- hook id: lint"),
        ("git commit -m x", "lint failed\nexit code 1"),
    ],
)
def test_a_commit_that_was_not_made_moves_no_file(command: str, printed: str) -> None:
    assert files(*edited("c1", "a.py"), *ran(command, printed, "c2")) == ["a.py: edited"]
    assert files(*edited("c1", "a.py"), call("c2", "Bash", {"command": command})) == [
        "a.py: edited"
    ]


def test_of_many_files_before_the_last_commit_the_newest_twelve_stand() -> None:
    many = [one for i in range(20) for one in edited(f"c{i}", f"src/part_{i}.py")]
    first = summary_of(user("Go."), *many, *ran("git commit -qam Mend", "", "d1"))
    names = ", ".join(f"src/part_{i}.py" for i in range(19, 7, -1))
    assert group(first, Group.FILES) == [f"- {BEFORE_COMMIT}{names}, …"]
    assert later(first) == first


def test_a_file_that_was_written_and_deleted_is_not_listed() -> None:
    probe = ran("cat > src/probe.py <<'E'\nx\nE", "", "c2")
    gone = ran("rm src/probe.py", "", "c3")
    assert files(*edited("c1", "src/a.py"), *probe, *gone) == ["src/a.py: edited"]
    assert files(*edited("c1", "src/a.py"), *gone) == ["src/a.py: edited"]
    assert files(*probe, *gone, *probe) == ["src/probe.py: written"]


def test_a_moved_file_and_a_file_that_git_moved_stand_where_they_are() -> None:
    assert files(*ran("git mv src/a.py lib/a.py", "")) == ["lib/a.py: written"]


def test_scratch_files_are_not_listed() -> None:
    work, scratch = edited("c1", "src/a.py"), edited("c2", "/private/tmp/notes/x.py")
    assert files(*work, *scratch) == ["src/a.py: edited"]
    assert files(*scratch, *read("c3", "/private/tmp/tasks/b1.output")) == []
    skill = "/home/u/.claude/skills/pump/SKILL.md"
    assert files(*edited("c1", skill)) == [f"{skill}: edited"]


def test_a_folder_that_files_are_moved_into_is_no_file() -> None:
    found = files(*ran("mv src/a.py lib/parts/", ""))
    assert found == ["lib/parts/a.py: written"]


def test_of_the_files_that_were_only_read_the_newest_are_listed() -> None:
    found = files(*(one for i in range(40) for one in read(f"c{i}", f"src/part_{i}.py")))
    names = ", ".join(f"src/part_{i}.py" for i in range(39, 27, -1))
    assert found == [f"{names}, …: read"]


def test_files_that_were_only_read_stand_where_none_was_changed() -> None:
    looks = [message for i in range(2) for message in read(f"r{i}", f"src/r{i}.py")]
    assert files(*looks) == ["src/r1.py, src/r0.py: read"]
    first = summary_of(user("Go."), *looks)
    assert later(first) == first
    assert files(*edited("c1", "src/a.py"), *looks, max_words=2400) == ["src/a.py: edited"]


@pytest.mark.parametrize(
    "command",
    [
        "cd /private/tmp/x/probe && cp /srv/app/a.cs ./a.cs",
        "mkdir -p $D/probe && cd $D/probe && ./dump > out.ndjson",
        'cd "$(mktemp -d)"; touch b.txt',
    ],
)
def test_a_file_of_another_folder_is_not_listed_as_one_of_the_work(command: str) -> None:
    assert files(*edited("c1", "src/a.py"), *ran(command, "", "c2")) == ["src/a.py: edited"]


def test_a_path_behind_a_cd_is_that_of_its_folder() -> None:
    found = files(*ran("cd /srv/other && sed -i s/1/2/ src/a.py && cd ../lib && touch b.py", ""))
    assert found == ["/srv/lib/b.py: written", "/srv/other/src/a.py: edited"]
    both = files(*edited("c1", "/home/u/app/src/a.py"), *ran("cd ~/app; rm src/a.py", "", "c2"))
    assert both == []


def test_files_of_a_folder_that_was_deleted_later_are_not_listed() -> None:
    made = ran("mkdir -p cmd/probe && cat > cmd/probe/main.go <<'E'\nx\nE", "", "c2")
    gone = ran("rm -rf cmd/probe/", "", "c4")
    assert files(*edited("c1", "src/a.go"), *made, *gone) == ["src/a.go: edited"]
    old = edited("c3", "/srv/app/cmd/probe/old.go")
    assert files(*made, *old, *gone) == []
    assert files(*gone, *made) == ["cmd/probe/main.go: written"]


def test_a_file_that_was_made_and_moved_stands_where_it_is() -> None:
    found = files(*ran("touch a/x.go", "", "c1"), *ran("mv a/x.go b/x.go", "", "c2"))
    assert found == ["b/x.go: written"]


def test_a_file_that_was_added_to_is_edited() -> None:
    assert files(*ran("cat >> tests/x.py <<'E'\nx\nE", "")) == ["tests/x.py: edited"]


def test_of_many_changed_files_the_newest_twelve_stand() -> None:
    many = [one for i in range(20) for one in edited(f"c{i}", f"src/part_{i}.py")]
    assert files(*many) == [f"src/part_{i}.py: edited" for i in range(19, 7, -1)]


@pytest.mark.parametrize("command", ["cp a.json b.json $S/tree/", 'mv a.json b.json "$DIR"'])
def test_a_source_of_a_copy_to_a_folder_that_only_the_shell_knows_is_not_written(
    command: str,
) -> None:
    assert group(summary_of(user("Copy."), *ran(command, "ok")), Group.FILES) == []


def test_a_file_is_not_read_by_a_call_without_a_result() -> None:
    read = call("c1", "Read", {"file_path": "/w/gone.py"})
    assert group(summary_of(user("Look."), read), Group.FILES) == []


@pytest.mark.parametrize("chain", ["sed -n 1,9p parse.go && ls", "nl -ba parse.go | sed -n 1,9p"])
def test_a_file_that_a_command_did_not_find_is_not_listed_as_read(chain: str) -> None:
    printed = "parse.go: No such file or directory"
    failed = ran(chain, f"Exit code 1\n{printed}" if "&&" in chain else printed)
    read = ran("cat parser.go", "package sem", "c2")
    assert group(summary_of(user("Look."), *read, *failed), Group.FILES) == ["- parser.go: read"]


@pytest.mark.parametrize("unit", ["0AF", "AError", "a.Error", "A.", "AError \t"])
def test_an_exception_is_looked_for_in_linear_time(unit: str) -> None:
    search = re.compile(RAISED, re.MULTILINE).search
    assert search(unit * 4_000 + "x") is None
    assert grows_at_most(lambda size: partial(search, unit * (size // len(unit)) + "x"), 4_000)


@pytest.mark.parametrize("line", ["\n", " \n"])
def test_a_here_document_without_its_end_is_read_in_linear_time(line: str) -> None:
    command = "git status; cat <<END\n"
    assert command_parts(command + line) == ["git status", "cat <<END …"]
    assert grows_at_most(lambda size: partial(command_parts, command + line * size), 1_000)
