"""The points of a history that a summary should hold, and which of them a text lacks."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.points import PointKind, Seen, carried, points_of
from policyctx.definitions.items import written_by
from policyctx.policy.models.compaction import Carry
from tests.compaction.extractive.summaries import edited
from tests.conversations import Message, call, results, user

TODO = {
    "todos": [
        {"content": "Write the migration of orders", "status": "in_progress"},
        {"content": "Read the ledger", "status": "completed"},
    ]
}


def found(*messages: Message) -> list[tuple[PointKind, str]]:
    return [(point.kind, point.text) for point in points_of(History(messages))]


def lacked(text: str, *messages: Message) -> list[str]:
    return [point.text for point in points_of(History(messages)) if Seen(text).lacks(point)]


@pytest.mark.parametrize(
    "order",
    [
        "Never push to main.",
        "Only answer in full sentences.",
        "Every time a test fails, show its name.",
        "Each module must have a docstring.",
        "At least two people must review it.",
        "All errors should be logged.",
        "The only problem is the name: never change it.",
        "Don't show keys.",
        "Leave schema.sql alone, the team owns it.",
        "Use at most 3 retries.",
        "From now on write the tests first.",
        "Comments should link to an issue.",
        "不要修改支付模块的配置。",
        "Die Tabelle darf nie umbenannt werden.",
        "Il faut garder les anciens noms.",
    ],
)
def test_an_order_that_holds_for_later_work_is_a_point(order: str) -> None:
    assert found(user(order)) == [(PointKind.ORDER, order)]


@pytest.mark.parametrize(
    "remark",
    [
        "Please run the tests.",
        "I don't know why it fails.",
        "It always fails.",
        "Every time I start it the window stays empty.",
        "It must have been a race.",
        "At least it compiles now.",
        "The old tests don't exist any more.",
        "This should work now.",
        "You should be able to open the page.",
        "The user should be able to log in.",
        "I have never seen that.",
        "The only problem is the name of the class.",
        "This only happens on my machine.",
        "They always answer late.",
        "Should we never push to main?",
        "What a day!",
        "/compact",
    ],
)
def test_an_errand_a_remark_and_a_question_are_none(remark: str) -> None:
    assert found(user(remark)) == []


def test_exact_values_open_tasks_and_changed_files_are_points() -> None:
    assert found(
        user("The port is 8081."),
        *edited("c1", "src/limits.py"),
        call("c2", "TodoWrite", TODO),
        results(("c2", "ok")),
    ) == [
        (PointKind.VALUE, "The port is 8081."),
        (PointKind.FILE, "src/limits.py"),
        (PointKind.TASK, "Write the migration of orders"),
    ]


def test_what_a_program_or_an_earlier_summary_says_is_none() -> None:
    order = "Never push to main."
    assert found(written_by("program", user(order)), written_by("summary", user(order))) == []


def test_a_file_that_is_gone_is_none() -> None:
    moved = call("c1", "Bash", {"command": "git mv src/a.py src/b.py"})
    assert found(moved, results(("c1", ""))) == [(PointKind.FILE, "src/b.py")]


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("Never push to main.", "- Pushing to main is never allowed"),
        ("Never push to main.", "The user forbade pushes to main: do not do it."),
        ("I would only want e2e tests, anything else is bad.", "Tests: e2e tests only, no units"),
        ("Always run `npm test` before a commit.", "Run npm test before each commit"),
        ("Edits of @src/limits.py should be small.", "Edits of limits.py: small ones"),
        (
            "The renderer should be interactive-mode.ts, with rpc-mode.ts and print-mode.ts.",
            "Done: interactive-mode.ts\nNext:\n- rpc-mode.ts\n- print-mode.ts",
        ),
    ],
)
def test_a_text_says_an_order_in_other_words(order: str, text: str) -> None:
    assert lacked(text, user(order)) == []


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("Never push to main.", "Push to main when done."),
        ("Never push to main.", "The work is done on a branch."),
        ("Use at most 3 retries.", "Use at most 5 retries."),
        ("The port is 8081.", "The port is 18081."),
        ("Always run `npm test` before a commit.", "Commits are small."),
    ],
)
def test_an_order_or_a_value_that_a_text_lacks_is_missing(order: str, text: str) -> None:
    assert lacked(text, user(order)) == [order]


def test_the_last_name_of_a_path_is_enough() -> None:
    assert lacked("Changed limits.py.", *edited("c1", "/work/src/limits.py")) == []
    assert lacked("Changed my_limits.py.", *edited("c1", "/work/src/limits.py")) != []


@pytest.mark.parametrize(
    "order", ["Only use the key in .env.test, never another.", "并发最多开4个，再多会超时"]
)
def test_a_value_behind_a_dot_or_a_cjk_character_is_found(order: str) -> None:
    assert lacked(f"- {order}", user(order)) == []


def test_a_compound_name_is_enough_without_its_suffix() -> None:
    assert lacked("Made rate_limits.h and .c.", *edited("c1", "src/rate_limits.c")) == []
    assert lacked("Changed the limits.", *edited("c1", "src/limits.c")) == ["src/limits.c"]


def test_a_file_name_with_a_hyphen_is_an_exact_value() -> None:
    [point] = points_of(History([user("Keep rpc-mode.ts as it is, never split it.")]))
    assert point.values == ("rpc-mode.ts",)


def test_what_is_carried_has_at_most_its_tokens() -> None:
    points = points_of(History([user("Never push to main."), user("Never delete a tag.")]))
    both = sum(len(f"- order: {point.text}\n") for point in points)

    def texts(most: int) -> list[str]:
        return [one.text for one in carried(points, "", Carry(max_tokens=most), len)]

    assert texts(both) == ["Never push to main.", "Never delete a tag."]
    assert texts(both - 1) == ["Never delete a tag."]


def test_an_open_task_that_a_text_lacks_is_missing() -> None:
    history = [call("c1", "TodoWrite", TODO), results(("c1", "ok"))]
    assert lacked("To do: write the migration of the orders.", *history) == []
    assert lacked("To do: look at the orders.", *history) == ["Write the migration of orders"]
    assert lacked("", *history) == ["Write the migration of orders"]
