"""Prompts that are sent twice, and messages of a client that look like the user's."""

from __future__ import annotations

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import group, later, ran, said, summary_of
from tests.conversations import Message, user

PROMPT = (
    "prompt: Read the plan in docs/halls.md, write a valve for each hall of it, test each valve"
    " with water and with air, write what you find into docs/found.md, have it read by another"
    " one, and push along the way."
)
IDS = ("cde5d8b348d8: ", "344d73e0a85b: ", "019e7da4-83bc-7dc1-a7f2-4c41ad1f7b16 ")


def test_a_prompt_under_two_ids_stands_once() -> None:
    told = "Review the branch.\nPrompts of its commits:\n" + "".join(
        f"- {i}{PROMPT}\n" for i in IDS
    )
    lines = group(summary_of(user(f"{told}\nChange nothing.")), Group.USER)
    assert lines == [
        "- Review the branch.",
        " Prompts of its commits:",
        f"  {IDS[0]}{PROMPT}",
        " … Change nothing.",
    ]


def test_a_prompt_that_is_sent_again_under_another_id_stands_once() -> None:
    messages = [user(IDS[0] + PROMPT), said("It is done."), user(IDS[1] + PROMPT), said("Done.")]
    first = summary_of(*messages)
    for summary in (first, later(first, user(IDS[2] + PROMPT))):
        assert group(summary, Group.USER) == [f"- {IDS[0]}{PROMPT}"]


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ("3c7913e: revert it, since its test fails.", "b9ee088: revert it, since its test fails."),
        (IDS[0] + PROMPT, f"{IDS[1]}{PROMPT} Not hall 4."),
        (f"Mend 3c7913e of this {PROMPT}", f"Mend b9ee088 of this {PROMPT}"),
        (f"feed4: {PROMPT}", f"feed5: {PROMPT}"),
    ],
)
def test_other_words_and_short_orders_stay_under_each_id(one: str, two: str) -> None:
    text = summary_of(user(f"Do this:\n- {one}\n- {two}"))
    assert one in text
    assert two in text


LOG = "/home/ann/tasks/b76.output"
NOTICE = (
    f"<task-notification>\n<task-id>b76</task-id>\n<output-file>{LOG}</output-file>\n"
    '<status>{}</status>\n<summary>Background command "Test it" {} (exit code {})</summary>\n'
    "</task-notification>"
)
ENDED = NOTICE.format("completed", "completed", 0)
READ = f"\nRead the output file to retrieve the result: {LOG}"
GO = user("Mend the lids.")
REPORT = said(
    "All lids of the two halls are mended:\n- lid 4, which was of tin\n- lid 5, which was loose"
)


@pytest.mark.parametrize("behind", ["", READ])
def test_a_notice_that_a_task_has_ended_is_not_the_users(behind: str) -> None:
    summary = summary_of(GO, REPORT, user(ENDED + behind))
    assert group(summary, Group.USER) == ["- Mend the lids."]
    assert "Read the output" not in summary
    assert group(summary, Group.AGENT)[0] == "- All lids of the two halls are mended:"


def test_what_the_user_types_behind_a_notice_is_the_users() -> None:
    summary = summary_of(GO, REPORT, user(f"{ENDED}\nRead the list of lids again."))
    assert "Read the list of lids again." in summary


@pytest.mark.parametrize("reply", ["The task has ended; it was from before.", "Fine."])
def test_the_short_reply_to_such_a_notice_is_not_the_agents_state(reply: str) -> None:
    summary = summary_of(GO, REPORT, user(ENDED + READ), said(reply))
    assert reply not in summary
    assert group(summary, Group.AGENT)[0] == "- All lids of the two halls are mended:"


@pytest.mark.parametrize(
    "told",
    [
        [user(NOTICE.format("failed", "failed", 2)), said("Lid 4 leaks still.")],
        [user(ENDED), said(" ".join(f"Lid {i} leaks still, as its log says." for i in range(6)))],
        [user(ENDED), *ran("cat log", "lid 4 leaks"), said("Lid 4 leaks still.")],
        [user(ENDED), said("Well."), user("Does one leak?"), said("Lid 4 leaks still.")],
    ],
)
def test_a_reply_to_a_failure_a_long_one_and_what_follows_stay(told: list[Message]) -> None:
    assert "leaks still" in summary_of(GO, REPORT, *told)
