"""Sentences that point back, and texts that are cut: nothing is quoted that says something else."""

from __future__ import annotations

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import ranked_units
from policyctx.compaction.extractive.texts import shortened
from tests.compaction.extractive.summaries import later, ran, said, summary_of
from tests.conversations import user

PAIRS = (
    ("The pump `p4` draws air from the hall.", "That is usual for this kind of pump."),
    ("Three seals are worn: `s1`, `s2` and `s3`.", "The rest are new."),
    ("The seal `s1` leaks.", "Everything else in the hall is dry."),
    ("The seal `s1` leaks.", "Apart from that, the hall is dry."),
    ("The lid `l1` needs oil.", "Otherwise the pump stops in winter."),
    ("阀门 `v4` 接在冷水管上。", "这是故意的。"),
    ("Das Ventil `v4` hängt am Kaltwasser.", "Dies ist so gewollt."),
    ("La vanne `v4` est sur l'eau froide.", "C'est voulu."),
)


@pytest.mark.parametrize(("before", "after"), PAIRS)
def test_a_sentence_that_points_back_comes_with_the_one_before_it(before: str, after: str) -> None:
    filler = " ".join(f"Part {i} of hall 4 was looked at today." for i in range(12))
    report = said(f"{filler} {before} {after} {filler.replace('hall 4', 'hall 5')}")
    found = 0
    for words in range(10, 260, 7):
        for new in ([], [user("Go on.")]):
            text = summary_of(user("Look."), report, *new, max_words=words)
            assert before in text or after not in text
            again = later(text, user("More."), max_words=words)
            assert before in again or after not in again
            found += after in text
    assert found


def test_a_sentence_behind_a_list_of_the_agent_comes_with_all_its_entries() -> None:
    entries = [f"{i}. **Mend pump{i}**, which leaks at its lid in hall 4." for i in range(1, 6)]
    reason = "\n   The lid is of tin, and tin bends in the cold of a winter.\n"
    parts = "\n".join(f"- Part {i} of hall 4 was looked at today." for i in range(40))
    report = f"## Found\n{parts}\n## TL;DR\nMend these first:\n{reason.join(entries)}\n"
    report += "\nEverything else is polish.\nThe hall is in a good state."
    found = 0
    for words in range(10, 420, 7):
        for new in ([], [user("Go on.")]):
            text = summary_of(user("Look."), said(report), *new, max_words=words)
            has_all = all(one in text for one in ("Mend these first:", *entries))
            assert has_all or "Everything else" not in text
            found += "Everything else" in text
    assert found


def test_a_sentence_of_the_agent_is_left_out_where_the_one_before_it_is_missing() -> None:
    parts = [f"Part {i} of hall 4 is dry." for i in range(300)]
    parts[-125] = "That is the seal's fault."
    report = said("\n\n".join(parts))
    units = [one.text for one in ranked_units(History([user("Look."), report, user("Go on.")]))]
    assert any(parts[-124] in one for one in units)
    assert not any(parts[-125] in one for one in units)


def test_a_list_of_pairs_is_cut_between_pairs() -> None:
    pairs = [f"pump {i} has {20 + i} bar" for i in range(40)]
    for joint in (" · ", ", ", "; ", " | "):
        text = joint.join(pairs)
        for most in range(120, 400, 7):
            left = shortened(text, most).replace(" … ", " ").split(joint)
            assert set(left) <= set(pairs)
            assert len(shortened(text, most)) <= most


def test_a_result_that_is_cut_to_its_end_says_how_many_lines_are_missing() -> None:
    printed = "".join(f"M\tpumps/p{i}.py\n" for i in range(229)) + "Your branch is up to date."
    summary = summary_of(user("Go on."), *ran("git checkout hall-4", printed))
    assert "=> … 228 lines … M pumps/p228.py / Your branch is up to date." in summary
    assert "228 lines … M pumps/p228.py" in later(summary, user("Go on."))


@pytest.mark.parametrize(
    "mark", ["[...]", "… 900 tokens truncated …", "[... omitted 9 of 90 lines ...]"]
)
def test_no_number_of_lines_is_said_where_the_client_cut_lines_out(mark: str) -> None:
    lines = [f"M\tpumps/p{i}.py" for i in range(400)]
    printed = "\n".join((*lines[:200], mark, *lines[200:], "Your branch is up to date."))
    summary = summary_of(user("Go on."), *ran("git checkout hall-4", printed))
    assert "=> … M pumps/p399.py / Your branch is up to date." in summary
