"""One line for each finished task: what was asked, and what came of it."""

from __future__ import annotations

from typing import Any

from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_authors import group
from tests.compaction.extractive.test_contents import edited, said, summary_of
from tests.compaction.extractive.test_survival import after
from tests.conversations import user

Message = dict[str, Any]

FINISHED = "Finished, newest first:"
STOUT = "Brew the stout at 66 degrees.", "I looked at it. The stout is done: 41 litres in tank 3."
LABEL = "Print a label for it.", "Fixed the printer; 90 labels in `out/stout.pdf`. Anything else?"
STOUT_LINE = "- Brew the stout at 66 degrees. => The stout is done: 41 litres in tank 3."
LABEL_LINE = "- Print a label for it. => Fixed the printer; 90 labels in `out/stout.pdf`."


def task(number: int, asked: str, closed: str) -> list[Message]:
    return [user(asked), *edited(f"c{number}", f"src/part_{number}.py"), said(closed)]


LAST = [user("Why is the kettle cold?"), said("A fuse has blown.")]


def test_each_finished_task_is_one_line_the_newest_first() -> None:
    summary = summary_of(*task(1, *STOUT), *task(2, *LABEL), *LAST)
    assert group(summary, FINISHED) == [LABEL_LINE, STOUT_LINE]


def test_finished_tasks_are_carried_over_with_the_one_that_was_last() -> None:
    summary = summary_of(*task(1, *STOUT))
    assert group(summary, FINISHED) == []
    summary = extractive_summary(after(summary, task(2, *LABEL)), Summary())
    assert group(summary, FINISHED) == [STOUT_LINE]
    for _ in range(2):
        summary = extractive_summary(after(summary, LAST), Summary())
        assert group(summary, FINISHED) == [LABEL_LINE, STOUT_LINE]


def test_a_report_that_is_too_old_leaves_a_line() -> None:
    reports = [
        f"The import of hall {i} is done.\n"
        + "\n".join(f"- tank {n} of {i} " * 9 for n in range(9))
        for i in range(6)
    ]
    messages = [one for i, text in enumerate(reports) for one in task(i, f"Import hall {i}.", text)]
    summary = summary_of(*messages, max_words=9000)
    assert group(summary, FINISHED) == [
        f"- Import hall {i}. => The import of hall {i} is done." for i in (1, 0)
    ]


def test_a_short_reply_stands_with_what_it_agrees_to() -> None:
    offer = [user("What is left?"), said("The label. Shall I print the label of the stout?")]
    done = [*edited("c1", "src/label.py"), said("Done: 90 labels in `out/stout.pdf`.")]
    [line] = group(summary_of(*offer, user("yes"), *done, *LAST), FINISHED)
    assert line.startswith("- Shall I print the label of the stout? => Done: 90 labels")


def test_talk_without_work_is_no_task() -> None:
    assert group(summary_of(*LAST, user("Why 20 amps?"), said("It was 16."), *LAST), FINISHED) == []
