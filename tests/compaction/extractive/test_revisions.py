from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.revisions.pairs import SUPERSEDES, Outcome, Pair, judged, pairs_in
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.conversations import user

TAKEN_BACK = [
    ("The timeout is 30 seconds.", "The timeout is 45 seconds.", "30"),
    ("Limit uploads to 10 MB.", "Uploads can be 25 MB now.", "10"),
    ("Deploy to eu-west-1.", "Change of plan: deploy to eu-central-1.", "eu-west-1"),
    (
        "The report goes to /srv/out/report.csv.",
        "Put the report into /srv/out/report.parquet instead.",
        "report.csv",
    ),
    ("We meet on 2026-05-04.", "The meeting moved: we meet on 2026-05-11 now.", "2026-05-04"),
    ("超时时间为 30 秒。", "超时时间改成 60 秒。", "30"),
    ("部署到 cn-north-1 区域。", "还是部署到 cn-east-2 区域吧。", "cn-north-1"),
    ("每天 8 点跑一次任务。", "任务改到每天 9 点跑。", "8 点"),
    ("Keep 14 backups.", "No, keep 30 backups.", "14"),
    ("Batch size is 64.", "Batch size: 128, I was wrong.", "64"),
    ("Use version 2.3.1 of the client.", "Actually pin the client to version 2.4.0.", "2.3.1"),
    ("The password rotates every 90 days.", "Rather every 60 days.", "90"),
    ("每周五下午三点开评审会。", "评审会改到周四下午两点。", "周五"),
    ("总预算卡在二十六万八。", "总预算放宽到二十八万。", "二十六万八"),
    ("定金付三千就行。", "定金改成四千五。", "三千"),
    ("用 8 个线程。", "改用 4 个线程。", "8 个"),
    ("Spend at most $500 on ads.", "Ads: make it $750.", "500"),
    ("max_connections must be 50", "max_connections: 80 after all", "50"),
    ("The review is due March 3.", "The review is due March 10 instead.", "March 3."),
]

BOTH_HOLD = [
    ("Fix issue 12.", "Fix issue 13."),
    ("Use port 8080 for the web server.", "Change the admin port to 9090."),
    ("Set the limit to 10 MB.", "Now set the timeout to 5 seconds."),
    ("Never push to main.", "Now create the branch fix-12 off main."),
    ("Keep logs for 30 days.", "Change the trial period to 14 days."),
    ("Reply to ticket 4711.", "Reply to ticket 4712."),
    ("Never delete anything in /data/raw.", "Write the results to /data/clean instead."),
    ("Alice gets 3 seats.", "Bob gets 5 seats."),
    ("Read src/a.py first.", "Now read src/b.py."),
    ("接口超时 30 秒。", "任务重试改成 5 次。"),
    ("不要改 config.yaml。", "现在改 main.py。"),
    ("Use `ruff` for linting.", "Use `mypy` for types."),
    ("The build takes 5 minutes.", "Add a test that takes 2 minutes at most."),
    ("Server A runs on 10.0.0.1.", "Server B runs on 10.0.0.2."),
    ("First case: expect 200.", "Second case: expect 404."),
    (
        "Pay up to $71 by gift card, the rest by the card ending in 8023.",
        "Make the change to the later train, refund the card ending in 8023, send a $150 coupon.",
    ),
    (
        "先用 71 元的礼品卡,余款用尾号 8023 的卡支付。",
        "改成明天的航班,退款到尾号 8023 的卡,再发一张 150 元的代金券。",
    ),
]

NAMES_THE_OLD_VALUE = [
    ("Use 8080 for the preview.", "Change the port from 8080 to 8081."),
    ("The budget of the trip is $400.", "Make it $450 instead of $400 please."),
    ("Keep logs for 7 days.", "7 days is wrong, keep them 14 days instead."),
    ("Use port 8080 for the preview.", "I was wrong about the port: it is 8081, not 8080, sorry."),
    ("部署在 8080 端口。", "端口从 8080 改成 8081。"),
]

# Pairs of statements with what the later one does to the earlier one.
PAIRS = pairs_in(Path(__file__).parent / "pairs.jsonl")


@pytest.mark.parametrize(
    "pair", [one for one in PAIRS if one.label != SUPERSEDES], ids=lambda one: one.id
)
def test_a_statement_about_something_else_takes_nothing_back(pair: Pair) -> None:
    assert judged(pair).outcome is not Outcome.REPLACED


@pytest.mark.parametrize(
    "pair", [one for one in PAIRS if one.label == SUPERSEDES], ids=lambda one: one.id
)
def test_an_update_takes_the_old_value_back_or_is_marked(pair: Pair) -> None:
    assert judged(pair).outcome is not Outcome.KEPT


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("Look at part 2 and mend it.", "Now look at part 3 and mend it."),
        ("Row 4 gets clay pots.", "Row 6 gets new pots, painted white."),
        ("Can you check my booking for the ferry?", "The ferry leaves at 9:40."),
        (
            "Cut the hedge of the north garden to 80 cm.",
            "The south garden: cut its hedge to 90 cm.",
        ),
    ],
)
def test_what_names_another_thing_or_answers_a_question_has_no_mark(
    first: str, second: str
) -> None:
    assert judged(Pair("p", "en", "independent", first, second)).outcome is Outcome.KEPT


def test_without_a_word_of_revision_the_later_one_stands_behind_the_earlier() -> None:
    told = ("Dye the weft with madder red.", "We ran out of madder. Weft dark blue then.")
    lines = summary_of(*told).split("\n")
    assert lines[-2:] == [f"- {text}" for text in told]


def summary_of(*told: str) -> str:
    """The summary of a conversation in which a user says these, each in a message of its own."""
    reply = {"role": "assistant", "content": "Fine."}
    messages = [message for text in told for message in (user(text), reply)]
    return extractive_summary(History(messages), Summary())


@pytest.mark.parametrize(("earlier", "later", "gone"), TAKEN_BACK)
def test_the_later_of_two_values_replaces_the_earlier(earlier: str, later: str, gone: str) -> None:
    assert gone in earlier
    summary = summary_of(earlier, later)
    assert later in summary
    assert gone not in summary


@pytest.mark.parametrize(("earlier", "later"), BOTH_HOLD)
def test_values_of_different_subjects_do_not_replace_each_other(earlier: str, later: str) -> None:
    lines = summary_of(earlier, later).split("\n")
    assert lines.index(f"- {earlier}") < lines.index(f"- {later}")


@pytest.mark.parametrize(("earlier", "later"), NAMES_THE_OLD_VALUE)
def test_a_correction_may_name_the_value_that_it_replaces(earlier: str, later: str) -> None:
    lines = summary_of(earlier, later).split("\n")
    assert f"- {later}" in lines
    assert f"- {earlier}" not in lines


def test_the_rest_of_a_revised_sentence_is_kept() -> None:
    summary = summary_of(
        "Use port 8080 for the preview and never open it to the network.",
        "Actually the preview gets port 8081.",
    )
    assert "8080" not in summary
    assert "never open it to the network" in summary


def test_a_correction_without_a_subject_inherits_the_subject() -> None:
    summary = summary_of("日志保留 7 天。", "其实改成 3 天。")
    assert "7" not in summary
    assert summary.index("日志保留") > summary.index("3 天")


def test_a_value_that_is_corrected_twice_has_its_last_one_only() -> None:
    summary = summary_of(
        "Keep 14 backups in /srv/b.", "Rather keep 30 backups.", "Make it 21 backups."
    )
    assert "21" in summary
    assert "/srv/b" in summary
    assert not [old for old in ("14", "30") if old in summary]


def test_the_agent_cannot_revise_user_statements() -> None:
    messages = [
        user("The timeout is 30 seconds."),
        {"role": "assistant", "content": "Actually the timeout is 90 seconds in the code."},
    ]
    assert "The timeout is 30 seconds." in extractive_summary(History(messages), Summary())


def test_an_update_in_other_words_keeps_both_and_names_the_earlier_one() -> None:
    summary = summary_of("Round prices to two decimals.", "Round prices to whole euros instead.")
    assert "- Round prices to two decimals.\n" in summary
    assert "- Round prices to whole euros instead.\n  may replace: Round prices to two" in summary


def test_an_update_that_could_mean_several_takes_back_the_one_said_right_before() -> None:
    summary = summary_of("The upload limit is 10 MB.", "The log limit is 20 MB.", "Make it 5 MB.")
    assert "- The upload limit is 10 MB." in summary
    assert "20 MB" not in summary


def test_an_update_that_could_mean_several_takes_back_none_of_those_said_long_before() -> None:
    told = ["The upload limit is 10 MB.", "The log limit is 20 MB.", "Look at the parser."]
    summary = summary_of(*told, "Change the limit to 5 MB.")
    assert [one for one in told if f"- {one}" not in summary] == []


def test_many_updates_of_one_value_leave_the_last() -> None:
    summary = summary_of(*(f"The cap is {i}." for i in range(300)))
    assert "- The cap is 299." in summary
    assert "The cap is 298." not in summary
