"""What a summary leaves out since another of its lines says it."""

from __future__ import annotations

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import edited, group, later, ran, said, summary_of
from tests.conversations import Message, user

GO = user("Lower the limit of the queue.")
COMMIT = ran("git commit -am x", "[main 1a2b3c4] Lower the limit\n 1 file changed", "k1")
PUSH = ran("git push origin main", "   9f8e7d6..1a2b3c4  main -> main", "k2")
COMMIT_LINE = "- git commit -am x => [main 1a2b3c4] Lower the limit"
PUSH_LINE = "- git push origin main => 9f8e7d6..1a2b3c4 main -> main"
STATUS = ran("git status --short", " M src/a.py\n M src/b.py", "s1")
LOG = "1a2b3c4 (HEAD -> main{}) Lower the limit\n9f8e7d6 Begin the queue"


def steps(*messages: Message) -> list[str]:
    return group(summary_of(GO, *messages), Group.STEPS)


@pytest.mark.parametrize(
    "last",
    [
        ran("git log --oneline -2", LOG.format(""), "l1"),
        ran("git log -1", "commit 1a2b3c4d5e6f\nAuthor: Ann\n\n    Lower the limit", "l1"),
        [said("Committed as `1a2b3c4 Lower the limit`.")],
    ],
)
def test_a_commit_is_left_out_if_another_line_has_its_hash_and_its_subject(
    last: list[Message],
) -> None:
    assert steps(*COMMIT, *last) == []


@pytest.mark.parametrize(
    "last",
    [
        ran("git log --oneline -2", "1a2b3c4 Raise the limit", "l1"),
        ran("git log --oneline -2", "5d4c3b2 Lower the limit", "l1"),
        [said("Committed as 1a2b3c4.")],
    ],
)
def test_a_commit_stays_if_no_line_has_both(last: list[Message]) -> None:
    assert steps(*COMMIT, *last) == [COMMIT_LINE]


def test_a_commit_stays_if_files_were_changed_since() -> None:
    told = [*COMMIT, said("Committed as `1a2b3c4 Lower the limit`."), *edited("e1", "a.py")]
    assert steps(*told) == [f"{COMMIT_LINE}; changed since: a.py"]


def test_a_commit_stays_if_the_line_that_has_it_too_does_not_fit() -> None:
    log = ran("git log --oneline -90", LOG.format("") + "\nabc1234 Note" * 20, "l1")
    short = summary_of(GO, *COMMIT, *log, said("Done."), max_words=60)
    assert group(short, Group.STEPS) == [COMMIT_LINE]


def test_the_log_that_has_a_commit_stays_in_later_summaries_until_git_changes_something() -> None:
    log = ran("git log --oneline -2", LOG.format(""), "l1")
    first = summary_of(GO, *COMMIT, *log, *STATUS)
    second = later(later(first, *edited("e1", "a.py")), *ran("ls", "a.py", "r1"))
    assert "Lower the limit" in "".join(group(second, Group.RESULTS))
    assert "git status" not in second
    next_one = ran("git commit -am y", "[main 5d4c3b2] Raise the limit", "k2")
    assert "1a2b3c4" not in later(second, *next_one)


@pytest.mark.parametrize(
    ("shown", "is_told"),
    [
        (", origin/main", True),
        ("", False),
        (", origin/main-2", False),
    ],
)
def test_a_push_is_left_out_if_a_log_has_its_hash_at_the_branch_of_the_remote(
    shown: str, is_told: bool
) -> None:
    log = ran("git log --oneline -2", LOG.format(shown), "l1")
    assert steps(*PUSH, *log) == ([] if is_told else [PUSH_LINE])


def test_a_push_of_a_commit_before_the_branch_of_the_remote_is_left_out_too() -> None:
    log = "5d4c3b2 (HEAD -> main, origin/main) Test it\n1a2b3c4 Lower the limit"
    assert steps(*PUSH, *ran("git log --oneline -2", log, "l1")) == []
    ahead = "1a2b3c4 (HEAD -> main) Lower the limit\n9f8e7d6 (origin/main) Begin"
    assert steps(*PUSH, *ran("git log --oneline -2", ahead, "l1")) == [PUSH_LINE]


@pytest.mark.parametrize("lead", ["", "git add a.py && "])
def test_a_refused_commit_is_left_out_once_a_later_one_is_made(lead: str) -> None:
    text = "\"$(cat <<'EOF'\n{}\nEOF\n)\""
    refused = ran(f"{lead}git commit -m {text.format('One')}", "Exit code 1\nlint: x", "k1")
    then = ran(f"git commit -m {text.format('Two')}", "[main 1a2b3c4] Two", "k2")
    assert len(steps(*refused)) == 1
    assert steps(*refused, *then) == ['- git commit -m "$(cat <<EOF … )" => [main 1a2b3c4] Two']


NAMES = ran("git diff --name-only", "src/a.py\nsrc/b.py", "s2")
NAMES_LINE = "- git diff --name-only => src/a.py / src/b.py"


def looks(*messages: Message) -> list[str]:
    return group(summary_of(GO, *messages), Group.RESULTS)


def test_the_names_of_a_diff_are_left_out_if_a_status_has_them_all() -> None:
    assert looks(*NAMES) == [NAMES_LINE]
    assert looks(*STATUS, *NAMES) == ["- git status --short => M src/a.py / M src/b.py"]
    more = ran("git diff --name-only", "src/a.py\nsrc/b.py\nsrc/c.py", "s3")
    assert f"{NAMES_LINE} / src/c.py" in looks(*STATUS, *more)


def test_the_names_of_a_diff_are_left_out_if_the_files_have_them_all() -> None:
    changed = [*edited("e1", "src/a.py"), *edited("e2", "src/b.py")]
    assert looks(*changed, *NAMES) == []


def test_the_names_of_a_diff_between_two_commits_stay() -> None:
    between = ran("git diff --name-only main...HEAD", "src/a.py\nsrc/b.py", "s2")
    assert looks(*STATUS, *between)[-1] == NAMES_LINE.replace("only", "only main...HEAD")
