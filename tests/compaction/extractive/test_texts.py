"""The pieces of a text: sentences, lists with their lead, and lines for what was pasted."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

from policyctx.compaction.extractive.texts import pieces_of, shortened
from tests.growing import grows_at_most

TALK = "We look at the old tank of the brewery in hall A on the first floor first."


def typed(text: str) -> list[str]:
    return [piece.text for piece in pieces_of(text) if not piece.pasted]


SPLIT = {
    "Run v1.2.3 now. Then stop.": ["Run v1.2.3 now.", "Then stop."],
    "Ask e.g. Bob. Dr. J. Ng knows.": ["Ask e.g. Bob.", "Dr. J. Ng knows."],
    'Kim said "never." Then he left.': ['Kim said "never."', "Then he left."],
    'Print "Wait..." Then go on.': ['Print "Wait..." Then go on.'],
    "Am 14. März im 3. Stock. Dr. Köhler kommt.": ["Am 14. März im 3. Stock.", "Dr. Köhler kommt."],
    "See ch. 2 of No. 7 first. Then go on.": ["See ch. 2 of No. 7 first.", "Then go on."],
    "The key is in /srv/key. Use it for the deploy.": [
        "The key is in /srv/key.",
        "Use it for the deploy.",
    ],
    "别动这个配置文件。改用三号！": ["别动这个配置文件。", "改用三号！"],
    "Mind:\n- a.py\n- b.py\nThanks": ["Mind:", "a.py", "b.py", "Thanks"],
    "Keep the old endpoint alive until the mobile\nclients have moved.": [
        "Keep the old endpoint alive until the mobile clients have moved."
    ],
    "## Out of scope\nThe export.\n- Old lists\n\n## Tests\nAdd two.": [
        "Out of scope: The export.",
        "Out of scope: Old lists",
        "## Tests",
        "Add two.",
    ],
    "...": [],
}


@pytest.mark.parametrize(("text", "pieces"), SPLIT.items())
def test_a_long_message_is_split_into_its_sentences(text: str, pieces: list[str]) -> None:
    assert [one for one in typed(f"{TALK}\n\n{text}") if one != TALK] == pieces


def test_a_short_message_is_one_piece() -> None:
    assert typed("No. Use tabs.\nThen stop!") == ["No. Use tabs. Then stop!"]


def test_a_sentence_too_long_for_a_line_loses_no_word() -> None:
    words = [f"/srv/data/part-{i:03}.bin" for i in range(100)]
    pieces = typed(f"Keep {' '.join(words)} as they are")
    assert max(map(len, pieces)) <= 480
    assert " ".join(pieces).split()[1:-3] == words


def test_entries_of_a_long_list_keep_a_lead_that_turns_them_around() -> None:
    items = [f"rename the table of cellar {i} in the old data base of growers" for i in range(5)]
    text = "In this release we do not:\n" + "\n".join(f"- {item}" for item in items)
    assert typed(text) == [f"In this release we do not: {item}" for item in items]


PASTED = {
    "fence": "```\nrm -rf build\n```",
    "element": "<hook-output>\nrm -rf build\n</hook-output>",
    "nested elements": "<a>\n<b>rm -rf build</b>\n</a>",
    "quotation": "> rm -rf build",
    "shell": "$ make\nrm -rf build\nmade nothing\n",
    "shell of root": "me@host:/srv# make\nrm -rf build\n",
    "traceback": 'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: no\n',
    "diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1 +1 @@\n-never\n+always",
    "JSON": '{"a": 1,\n"b": {"c": 2},\n"d": [3, 4],\n"e": "f",\n"g": null,\n"h": {}}',
}


@pytest.mark.parametrize("paste", PASTED)
def test_what_a_program_printed_is_one_line_between_what_was_typed(paste: str) -> None:
    pieces = list(pieces_of(f"Look at this:\n{PASTED[paste]}\n\nand mend it today"))
    assert [(one.text if not one.pasted else "") for one in pieces] == [
        "Look at this:",
        "",
        "and mend it today",
    ]
    assert " lines, " in pieces[1].text


def test_a_typed_line_inside_a_pasted_log_counts_as_typed() -> None:
    log = [f"2026-01-01 10:00:{i:02} INFO job={i} took={i}ms" for i in range(60)]
    log[30] = "from here on it goes wrong, never restart it"
    assert typed("\n".join(log)) == [log[30]]


TYPED = {
    "<command-name>/fix</command-name>\n<command-args>Tabs only.</command-args>": "/fix Tabs only.",
    "<user_query>\nUse tabs.\n</user_query>": "Use tabs.",
    "<rules>\nOn Tuesdays only.\n</rules>\n<task>\nShip it.\n</task>": "On Tuesdays only. Ship it.",
    "<pr_description>\nMend it.\n</pr_description>\n<hook-note>\nbe\n</hook-note>": "Mend it.",
    "Make it <b>bold</b>.": "Make it <b>bold</b>.",
    "Now run this:\n$ npm test": "Now run this: $ npm test",
    "❯ is this right? https://example.org/a#1": "❯ is this right? https://example.org/a#1",
    "Ports:\n- web: 8080\n- api: 8081\nKeep them": "Ports: web: 8080 api: 8081 Keep them",
    "A=1\nB=2\nand go": "A=1 B=2 and go",
}


@pytest.mark.parametrize(("text", "expected"), TYPED.items())
def test_what_the_user_typed_is_not_taken_for_a_programs_text(text: str, expected: str) -> None:
    assert " ".join(typed(text)) == expected


def test_entries_of_a_long_list_are_under_what_leads_to_it() -> None:
    items = [f"describe the cellar number {i} and all of its barrels in detail" for i in range(5)]
    text = "Read these before:\n" + "\n".join(f"- {item}" for item in items)
    found = [(one.text, one.depth) for one in pieces_of(f"{text}\nThen go on.")]
    assert found == [("Read these before:", 0), *((item, 1) for item in items), ("Then go on.", 0)]


def test_a_listing_of_versions_is_one_line() -> None:
    text = "Look at it.\n" + "\n".join(f"module{i} : {'None' if i % 2 else i}" for i in range(9))
    first, second = pieces_of(text)
    assert (first.text, first.pasted, second.pasted) == ("Look at it.", False, True)


def test_a_long_title_with_a_negation_stands_once() -> None:
    text = "# Fix: the grammar can't parse our migrations of last year\n\nIt fails.\n- on blocks"
    assert [(one.text, one.depth) for one in pieces_of(f"{text}\n\nMend it today, please.")] == [
        ("# Fix: the grammar can't parse our migrations of last year", 0),
        ("It fails.", 1),
        ("on blocks", 1),
        ("Mend it today, please.", 1),
    ]


def test_an_indented_title_is_a_title() -> None:
    text = f"{TALK}\n  It fails on these kinds of blocks in the files, and on others:\n"
    items = "".join(f"  - the block number {i} of the migration, as it was\n" for i in range(9))
    found = [(one.text, one.depth) for one in pieces_of(f"{text}{items}\n  ## Goal\n  None fails.")]
    assert found[-2:] == [("## Goal", 1), ("None fails.", 2)]


def test_a_lead_that_forbids_is_not_repeated_before_the_sentences_behind_it() -> None:
    lines = [
        f"Pump {i} drains hall {i} and the valve of hall {i} is open all day." for i in range(5)
    ]
    text = "\n".join(["Silence is not an answer:", *lines])
    assert [one.text for one in pieces_of(text)] == ["Silence is not an answer:", *lines]


@pytest.mark.parametrize("text", ["阀门" * 100 + "。", "pump" * 80 + ", ", "hall" * 80 + "; "])
def test_of_a_long_text_that_ends_in_a_mark_the_end_stays(text: str) -> None:
    begin, end = shortened(text, 80).split(" … ")
    assert text.startswith(begin)
    assert end
    assert text.endswith(end)


@pytest.mark.parametrize(
    "made",
    [
        lambda size: "x" + " " * size + "y",
        lambda size: "[" + "\t" * size + "\nword\n]",
        lambda size: "ab \n" * (size // 4),
    ],
    ids=["spaces", "tabs", "lines"],
)
def test_white_space_takes_linear_time(made: Callable[[int], str]) -> None:
    assert list(pieces_of(made(25_000)))
    assert grows_at_most(lambda size: partial(list, pieces_of(made(size))), 25_000)
