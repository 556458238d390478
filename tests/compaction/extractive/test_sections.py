"""The sections of a policy, and the tables of languages."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import ENGLISH, Language, extractive_summary, ranked_units
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.sessions import turns
from tests.compaction.extractive.summaries import after, edited, ran, said
from tests.conversations import call, user


def settings(**keys: Any) -> Summary:
    return Summary.model_validate(keys)


def headings(summary: str) -> list[str]:
    return [line[3:] for line in summary.split("\n") if line.startswith("## ")]


def test_sections_are_those_of_the_policy_in_its_order() -> None:
    names = ["Progress so far", "用户要求", "Touched files", "What broke", "Errors"]
    todo = {"todos": [{"content": "Write it", "status": "pending"}]}
    messages = [
        user("Use tabs."),
        *ran("make test", "error: x"),
        *edited("c2", "a.py"),
        call("c3", "TodoWrite", todo),
    ]
    summary = extractive_summary(History(messages), settings(sections=names))
    assert headings(summary) == names[:3]
    of = dict(zip(headings(summary), summary.split("## ")[1:], strict=True))
    assert "Use tabs." in of["用户要求"]
    assert "[pending] Write it" in of["Progress so far"]
    assert "a.py: edited" in of["Touched files"]
    assert "make test => failed: error: x" in of["Progress so far"]


def test_a_section_that_holds_nothing_is_not_written() -> None:
    summary = extractive_summary(History([user("Use tabs.")]), Summary())
    assert summary == "## Goals & Decisions\nUser and [agent], in order:\n- Use tabs."


def test_a_section_of_another_name_is_not_written_beside_those_that_hold_the_content() -> None:
    sections = ["Goals", {"name": "Database", "ask": "Everything on schema and indexes."}]
    told = [user("Use tabs."), user("Never drop a schema.")]
    summary = extractive_summary(History(told), settings(sections=sections))
    assert headings(summary) == ["Goals"]
    assert "- Never drop a schema." in summary


def test_a_single_section_of_any_name_gets_everything() -> None:
    history = History([user("Use tabs."), *edited("c2", "a.py"), said("It is done.")])
    summary = extractive_summary(history, settings(sections=["Handover"]))
    assert headings(summary) == ["Handover"]
    assert [
        part for part in ("Use tabs.", "It is done.", "a.py: edited") if part not in summary
    ] == []


def test_a_policy_may_change_its_sections_between_two_rounds() -> None:
    first = extractive_summary(History([user("Use tabs."), user("Port 7071.")]), Summary())
    second = extractive_summary(after(first, []), settings(sections=["Notes", "Files"]))
    assert headings(second) == ["Notes"]
    assert extractive_summary(after(second, []), Summary()) == first


def test_a_language_can_be_added() -> None:
    finnish = Language(name="Finnish", orders=("älä", "aina"), revisions=("sittenkin",))
    told = [
        user("Raja on 30 euroa."),
        user("Raja on sittenkin 45 euroa."),
        user("Älä poista sitä."),
    ]
    units = ranked_units(History(told), (ENGLISH, finnish))
    assert [unit.text for unit in units if unit.hard] == ["- Älä poista sitä."]


@pytest.mark.parametrize(
    "languages", [(), (Language(name="German", orders=("niemals",)),)], ids=["none", "German"]
)
def test_a_summary_needs_no_shipped_language(languages: tuple[Language, ...]) -> None:
    history = History([user("Niemals Port 4711 nehmen."), *turns((), count=1, seed=1, chars=300)])
    summary = extractive_summary(history, Summary(), languages)
    assert "Niemals Port 4711 nehmen." in summary
    assert extractive_summary(after(summary, []), Summary(), languages) == summary


def test_a_models_summary_is_kept_beside_much_that_is_new() -> None:
    rules = [f"The user forbids any change of table t_{i}_{i * 31}." for i in range(20)]
    told = " ".join(["The work so far went well.", *rules])
    new = [user(f"Now look at part {i} and mend what is wrong in it.") for i in range(150)]
    summary = extractive_summary(History([user(told), *new], {0: told}), Summary())
    assert [rule for rule in rules if rule not in summary] == []
