from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from policyctx.errors import visible
from tests.compaction.extractive.summaries import said
from tests.conversations import user
from tests.policies import policy
from tests.replay.report.sessions import HOSTILE, PRICED, as_replayed, replayed, report
from tests.replay.test_audit import ORDER, SEALED, compacted, summary

# Elements and attributes by which a page would fetch something.
LOADING = {"src", "srcset", "href", "action", "data", "poster", "background", "formaction", "ping"}


def parted(
    decisions: list[dict[str, Any]],
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """What was removed, and what stayed."""
    kept = [one for one in decisions if one["action"] == "keep"]
    return [one for one in decisions if one not in kept], kept


class Parsed(HTMLParser):
    """A page, as far as the tests ask: its elements, and what is in its scripts."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.in_script = False
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.in_script = tag == "script"
        if self.in_script:
            self.scripts.append((dict(attrs), ""))

    def handle_endtag(self, tag: str) -> None:
        self.in_script = self.in_script and tag != "script"

    def handle_data(self, data: str) -> None:
        if self.in_script:
            attrs, before = self.scripts[-1]
            self.scripts[-1] = attrs, before + data

    @property
    def security(self) -> str:
        [found] = [a["content"] for _, a in self.elements if a.get("http-equiv")]
        return found or ""

    def values(self, element_id: str) -> Any:
        return json.loads(self.text(element_id))

    def rows(self, element_id: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = json.loads(self.packed(element_id))
        return rows

    def packed(self, element_id: str) -> str:
        return gzip.decompress(base64.b64decode(self.text(element_id))).decode()

    def text(self, element_id: str) -> str:
        [text] = [text for attrs, text in self.scripts if attrs.get("id") == element_id]
        return text


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Parsed:
    path = tmp_path_factory.mktemp("hostile") / "out.html"
    session = replayed(6, task=HOSTILE, text=HOSTILE, tool="<b>Tool", name=f"{HOSTILE[:40]}.jsonl")
    return Parsed(report(path, session))


def test_nothing_in_the_page_is_fetched(hostile: Parsed) -> None:
    loading = [
        value for _, attrs in hostile.elements for name, value in attrs.items() if name in LOADING
    ]
    assert loading == ["#main"]
    assert {tag for tag, _ in hostile.elements} & {
        "link",
        "iframe",
        "img",
        "object",
        "base",
    } == set()


def test_only_the_pages_own_scripts_may_run(hostile: Parsed) -> None:
    rules = dict(rule.split(" ", 1) for rule in hostile.security.split("; "))
    [own] = (text for attrs, text in hostile.scripts if "type" not in attrs)
    digest = base64.b64encode(hashlib.sha256(own.encode()).digest()).decode()
    assert rules["default-src"] == "'none'"
    assert rules["script-src"] == f"'sha256-{digest}'"


def test_session_contents_are_not_markup(hostile: Parsed) -> None:
    said = hostile.rows("said-0")
    assert said[0]["text"] == visible(HOSTILE[:400])
    assert len(hostile.scripts) == 5
    assert [tag for tag, _ in hostile.elements].count("b") == 0


def test_every_call_decision_and_need_is_in_it(tmp_path: Path) -> None:
    session = replayed()
    parsed = Parsed(report(tmp_path / "out.html", session))
    assert len(parsed.rows("calls-0")) == len(session.calls) == 13
    removed, kept = parted(parsed.rows("decisions-0"))
    assert [one["item_id"] for one in removed] == [f"c{i}" for i in range(10)]
    assert [(one["item_id"], one["call"], one["reason"]) for one in kept] == [
        ("c10", 13, "recent: 2nd newest of Read, 2 kept"),
        ("c11", 13, "recent: 1st newest of Read, 2 kept"),
    ]
    [needed] = [one for one in removed if one["needs"]]
    assert needed["item_id"] == "c0"
    assert needed["needs"][0]["kind"] == "asked again"


def test_a_removal_has_the_reason_that_explain_gives_with_its_code(tmp_path: Path) -> None:
    removed, _ = parted(Parsed(report(tmp_path / "out.html", replayed())).rows("decisions-0"))
    assert removed[0]["reason"] == "old: 3rd newest of Read, 2 kept"
    assert removed[0]["rule"] == "steps.retire.select.keep_recent"


def test_an_item_that_was_needed_in_several_lists_has_all_of_its_needs(tmp_path: Path) -> None:
    session = replayed()
    again = replace(session, regrets=session.regrets * 2)
    removed, _ = parted(Parsed(report(tmp_path / "out.html", again)).rows("decisions-0"))
    [needed] = [one["needs"] for one in removed if one["needs"]]
    assert len(needed) == 2 * len(session.regrets[0].needs)


def test_with_prices_the_cost_is_reported_in_dollars_by_kind(tmp_path: Path) -> None:
    path = report(tmp_path / "out.html", replayed(under=PRICED))
    total = Parsed(path).values("overview")["total"]
    cost = total["cost_without"]
    assert cost["output"] == 13 * 20
    assert cost["dollars_output"] == pytest.approx(13 * 20 * 15 / 1_000_000)


def test_the_net_cost_is_reported_line_by_line(tmp_path: Path) -> None:
    session = replayed(under=PRICED)
    net = Parsed(report(tmp_path / "out.html", session)).values("overview")["total"]["net"]
    kinds = ("dollars", "output_dollars")
    parts = [net[name][kind] for name in ("with", "summaries", "re_reads") for kind in kinds]
    assert net["dollars"] == pytest.approx(sum(parts) - net["without"]["dollars"], abs=1e-5)
    assert net["without"]["calls"] == net["with"]["calls"] == 13


def test_the_figures_of_many_sessions_are_summed_up(tmp_path: Path) -> None:
    sessions = [replayed(turns) for turns in (4, 7)]
    overview = Parsed(report(tmp_path / "out.html", *sessions)).values("overview")
    assert [one["calls"] for one in overview["sessions"]] == [5, 8]
    assert overview["total"]["calls"] == 13


def test_it_states_that_no_model_was_asked_for_a_summary(tmp_path: Path) -> None:
    under = policy("""
        steps: [{name: shorten, do: compact, when: {messages: {at_least: 4}}}]
        compaction: {summary: {by: anthropic}}
    """)
    path = report(tmp_path / "out.html", replayed(under=under))
    [session] = Parsed(path).values("overview")["sessions"]
    assert "Summaries are made from the text alone, not by anthropic." in session["told"]


def test_the_same_sessions_give_the_same_page(tmp_path: Path) -> None:
    session = replayed()
    one, other = (report(tmp_path / name, session) for name in ("one.html", "other.html"))
    assert one.read_bytes() == other.read_bytes()


def test_a_page_takes_little_more_room_than_its_session(tmp_path: Path) -> None:
    assert report(tmp_path / "out.html").stat().st_size < 100_000


def test_sessions_have_their_first_words_and_their_day(tmp_path: Path) -> None:
    sessions = [replayed(4, task="Fix it", began=86_400.0), replayed(4, task="", name="b.jsonl")]
    overview = Parsed(report(tmp_path / "out.html", *sessions)).values("overview")
    assert [(one["title"], one["day"]) for one in overview["sessions"]] == [
        ("Fix it", "1970-01-02"),
        ("b.jsonl", None),
    ]


def test_a_new_list_of_the_recording_has_its_reason(tmp_path: Path) -> None:
    session = replayed(4)
    calls = (session.calls[0], session.calls[1]._replace(why_anew="rewind", anew=True))
    parsed = Parsed(report(tmp_path / "out.html", replace(session, calls=calls)))
    assert [one["anew"] for one in parsed.rows("calls-0")] == [None, "rewind"]


def test_what_a_compaction_of_the_recording_lost_has_its_place_and_later_turns(
    tmp_path: Path,
) -> None:
    again = "I said that main must never be pushed to!"
    made = compacted(
        [user(ORDER)], [summary()], [said("Pushed."), user(again)], times=[10.0, 20.0, 30.0]
    )
    path = report(tmp_path / "out.html", as_replayed(made), replayed(4))
    one, other = Parsed(path).values("overview")["sessions"]
    assert other["audited"] == []
    [found] = one["audited"]
    assert (found["call"], found["at"], found["replaced"], found["missed"]) == (2, 20.0, 1, 1)
    assert (found["points"], found["missing"]) == ({"order": 1}, {"order": 1})
    [finding] = found["findings"]
    assert (finding["kind"], finding["text"], finding["call"]) == ("order", ORDER, 1)
    assert finding["later"] == [{"how": "said again", "call": 3, "text": again}]


def test_an_encrypted_summary_is_unreadable_in_the_report(tmp_path: Path) -> None:
    path = report(tmp_path / "out.html", as_replayed(compacted(*SEALED)))
    [[found]] = [one["audited"] for one in Parsed(path).values("overview")["sessions"]]
    assert (found["is_unreadable"], found["beside"], found["findings"]) == (True, 1, [])


def test_a_report_without_texts_quotes_nothing_that_a_compaction_lost(tmp_path: Path) -> None:
    made = compacted([user(ORDER)], [summary()])
    path = report(tmp_path / "out.html", as_replayed(made, excerpt=0))
    [session] = Parsed(path).values("overview")["sessions"]
    assert session["audited"] == []
