"""Files outside of the folders of the work, and files that no check reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_authors import group, summary_of, user

if TYPE_CHECKING:
    from policyctx.definitions.items import Message

FILES, CHECKS = "Files, last used first:", "Checks, last run:"


def call(number: int, tool: str, result: str = "ok", **given: str) -> list[Message]:
    name = f"call_{number}"
    asked = {"type": "tool_use", "id": name, "name": tool, "input": given}
    answer = {"type": "tool_result", "tool_use_id": name, "content": result}
    return [{"role": "assistant", "content": [asked]}, {"role": "user", "content": [answer]}]


def edit(number: int, path: str) -> list[Message]:
    return call(number, "Edit", file_path=path, old_string="a", new_string="b")


TESTED = call(1, "Bash", "12 passed", command="cd /srv/brew/log && pytest -q")


def checks(*later: Message) -> list[str]:
    return group(summary_of(user("Test it."), *TESTED, *later), CHECKS)


def test_an_edit_of_a_source_file_makes_a_check_outdated() -> None:
    assert checks(*edit(2, "/srv/brew/log/tank.py"))[0].endswith("(before the last edit)")


def test_an_edit_of_a_document_or_of_a_scratch_file_does_not() -> None:
    for path in ("/srv/brew/log/README.md", "/private/tmp/try.py", "/home/ann/other/tank.py"):
        assert checks(*edit(2, path)) == ["- pytest -q => 12 passed"], path


def test_files_of_the_work_come_before_scratch_files() -> None:
    work = [one for i in range(2, 5) for one in edit(i, f"/srv/brew/log/tank{i}.py")]
    scratch = [one for i in range(5, 8) for one in edit(i, f"/private/tmp/try{i}.py")]
    history = History([user("Test it."), *TESTED, *work, *scratch])
    kept = group(extractive_summary(history, Summary(max_words=70)), FILES)
    assert any("tank2.py" in line for line in kept)
    assert not any("/private/tmp/" in line for line in kept)


def test_work_in_a_temporary_folder_is_work() -> None:
    ran = call(1, "Bash", "12 passed", command="cd /private/tmp/brew && pytest -q")
    summary = summary_of(user("Test it."), *ran, *edit(2, "/private/tmp/brew/tank.py"))
    assert group(summary, CHECKS)[0].endswith("(before the last edit)")


def test_scratch_files_have_no_last_edit() -> None:
    summary = summary_of(user("Test it."), *TESTED, *edit(2, "/private/tmp/try.py"))
    assert "Last edits:" not in summary
    assert "- /private/tmp/try.py: edited 1" in summary
