from __future__ import annotations

import pytest

from benchmarks.inputs import tool_outputs
from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_survival import after
from tests.conversations import call, results, user

SPOKEN_OF = [
    (
        "plan: gold\nrenewal date: 2026-11-05\nseats: 38",
        "Keep the renewal date in mind.",
        "2026-11-05",
    ),
    (
        '{"order_id":"A-99812","status":"packed","carrier":"DHL","tracking_number":"JD0146"}',
        "We will need the tracking number at the end.",
        "JD0146",
    ),
    ("CPU   41%\nheap size     812 MB\nthreads 96", "Heap size looks too high to me.", "812 MB"),
    ("姓名: 张伟\n客户编号: 88213\n城市: 成都", "记住这个客户编号。", "88213"),
    (
        "total invoices 14\nunpaid invoices 3\noldest due 2025-12-01",
        "Chase the unpaid invoices first.",
        "unpaid invoices 3",
    ),
    (
        "HTTP 503 from payments gateway after 30021 ms\nretry scheduled",
        "The payments gateway is what worries me.",
        "30021",
    ),
]


def summary_of(shown: str, said: str, *, by: str = "user") -> str:
    """Summarise a session in which a result among others shows something, and then one speaks."""
    noise = tool_outputs([1_500] * 6, seed=3)
    outputs = [noise[0], noise[1], f"{noise[2]}\n{shown}\n{noise[3]}", noise[4]]
    messages = [user("Look it up.")]
    for i, output in enumerate(outputs):
        messages += [call(f"c{i}", "get", {"q": "x"}), results((f"c{i}", output))]
    answer = said if by == "assistant" else "Here it is."
    messages.append({"role": "assistant", "content": answer})
    if by == "user":
        messages += [user(said), {"role": "assistant", "content": "All right."}]
    return extractive_summary(History(messages), Summary())


@pytest.mark.parametrize(("shown", "said", "value"), SPOKEN_OF)
def test_a_line_that_the_user_mentions_is_kept(shown: str, said: str, value: str) -> None:
    assert value in summary_of(shown, said)


def test_a_line_with_a_value_that_the_agent_names_is_kept_whole() -> None:
    shown = "voucher=VCH-00931 amount=120.00 holder=OKONKWO"
    summary = summary_of(shown, "I can use VCH-00931 for that.", by="assistant")
    assert shown in summary


def test_a_line_with_a_value_that_a_later_call_uses_is_kept() -> None:
    messages = [
        user("Cancel it."),
        call("c1", "find", {"name": "Ito"}),
        results(("c1", "name: Ito\nbooking: QX7T2P in May\nseat: none")),
        call("c2", "cancel", {"booking": "QX7T2P"}),
        results(("c2", "ok")),
    ]
    summary = extractive_summary(History(messages), Summary())
    assert "booking: QX7T2P in May" in summary
    later = extractive_summary(after(summary, [user("Thanks.")]), Summary())
    assert "booking: QX7T2P in May" in later


def test_unmentioned_lines_are_left_out() -> None:
    assert "VCH-00931" not in summary_of("voucher VCH-00931", "Something else, please.")


def test_a_value_that_occurs_in_many_results_is_not_a_finding() -> None:
    messages = [user("Look at build 4711.")]
    for i in range(8):
        messages += [call(f"c{i}", "get", {}), results((f"c{i}", f"line {i} of 4711 is fine"))]
    messages.append({"role": "assistant", "content": "Build 4711 is fine."})
    assert "of 4711 is fine" not in extractive_summary(History(messages), Summary())


@pytest.mark.parametrize(
    "line",
    [
        "Offers are accepted until 27 February, after that by lot.",
        "Abgabe der Unterlagen bis 13. Februar, danach 35 % Aufschlag",
        "供应商须在11月22日之前提交样品",
    ],
)
def test_a_date_in_a_short_document_is_kept(line: str) -> None:
    messages = [
        user("Read the terms."),
        call("c1", "open", {"page": "terms"}),
        results(("c1", f"Terms\n{line}\nNo smoking in the halls.")),
        {"role": "assistant", "content": "I have read them."},
    ]
    summary = extractive_summary(History(messages), Summary())
    assert line in summary
    assert "No smoking" not in summary


def test_the_time_of_a_log_line_is_not_a_date_of_a_document() -> None:
    messages = [
        user("List it."),
        call("c1", "list", {"folder": "x"}),
        results(
            ("c1", "-rw-r--r-- 1 svc svc 415671 Oct 12 22:40 pager.py\n2026-03-04 10:11:12 up")
        ),
        {"role": "assistant", "content": "Listed."},
    ]
    assert "In results:" not in extractive_summary(History(messages), Summary())
