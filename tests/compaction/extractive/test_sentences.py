from __future__ import annotations

import pytest

from policyctx.compaction.extractive.sentences import sentences_in, units_in

SPLIT = {
    "Run v1.2.3 now. Then stop.": ["Run v1.2.3 now.", "Then stop."],
    "Ask e.g. Bob. Dr. J. Ng knows.": ["Ask e.g. Bob.", "Dr. J. Ng knows."],
    'He said "never." Then he left.': ['He said "never."', "Then he left."],
    "Am 14. März im 3. Stock. Dr. Köhler kommt.": ["Am 14. März im 3. Stock.", "Dr. Köhler kommt."],
    "We need 14. Then go on. No. Stop.": ["We need 14.", "Then go on.", "No.", "Stop."],
    "Keep the old endpoint alive until the mobile\nclients have moved. Then drop it.": [
        "Keep the old endpoint alive until the mobile clients have moved.",
        "Then drop it.",
    ],
    "- Keep the old endpoint alive until the clients\n  have moved\n- Use tabs": [
        "Keep the old endpoint alive until the clients have moved",
        "Use tabs",
    ],
    "Use tabs\nand no spaces": ["Use tabs", "and no spaces"],
    "See ch. 2 of No. 7. Then go on.": ["See ch. 2 of No. 7.", "Then go on."],
    "That is settled. 3 remain.": ["That is settled.", "3 remain."],
    "push to main never. next: the docs! ok?": ["push to main never.", "next: the docs!", "ok?"],
    "It takes ca. ten minutes, cf. the docs.": ["It takes ca. ten minutes, cf. the docs."],
    "别动它。改用三号！好吗？": ["别动它。", "改用三号！", "好吗？"],
    "他说“不行。”然后走了。": ["他说“不行。”", "然后走了。"],
    "1. Read it\n2. Mend it": ["Read it", "Mend it"],
    "Mind:\n- a.py\n- b.py\nThanks": ["Mind: a.py; b.py", "Thanks"],
    "two\twords  apart": ["two words apart"],
    "...": [],
    "\n\n": [],
}


@pytest.mark.parametrize(("text", "sentences"), SPLIT.items())
def test_a_text_is_split_into_its_sentences(text: str, sentences: list[str]) -> None:
    assert [sentence.text for sentence in sentences_in(text)] == sentences


def test_a_sentence_too_long_for_a_line_loses_no_word() -> None:
    words = [f"/srv/data/part-{i:03}.bin" for i in range(100)]
    pieces = [sentence.text for sentence in sentences_in(f"Keep {' '.join(words)} as they are")]
    assert max(map(len, pieces)) <= 480
    assert " ".join(pieces).split()[1:-3] == words


@pytest.mark.parametrize(
    "paste",
    [
        "```\nrm -rf build\n```",
        "<hook-output>\nrm -rf build\n</hook-output>",
        "> rm -rf build",
        "<context>\nrm -rf build\n</context>",
        "<a>\n<b>rm -rf build</b>\n</a>",
        "$ make\nrm -rf build\nmade nothing\n",
        "me@host:/srv# make\nrm -rf build\n",
        'Traceback (most recent call last):\n  File "a.py", line 3\nValueError: wrong\n',
        "".join(f"2026-01-0{i} 10:0{i} INFO job={i} took={i}ms\n" for i in range(1, 9)),
        '{"a": 1,\n"b": {"c": 2},\n"d": [3, 4],\n"e": "f",\n"g": null,\n"h": {}}',
    ],
)
def test_pasted_text_is_distinguished_from_typed_text(paste: str) -> None:
    text = f"Have a look at this\n{paste}\nand mend it"
    typed = [sentence.text for sentence in sentences_in(text) if not sentence.pasted]
    assert typed == ["Have a look at this", "and mend it"]


def test_a_typed_line_inside_a_pasted_log_counts_as_typed() -> None:
    log = [f"2026-01-01 10:00:{i:02} INFO job={i} took={i}ms" for i in range(60)]
    log[30] = "from here on it goes wrong, never restart it"
    typed = [line.text for line in sentences_in("\n".join(log)) if not line.pasted]
    assert typed == [log[30]]


def test_a_list_belongs_to_the_last_sentence_before_it() -> None:
    before = [f"It rained in town number {i}." for i in range(9)]
    text = f"{' '.join(before)} Mind these:\n- a.py\n- b.py"
    assert [sentence.text for sentence in sentences_in(text)] == [*before, "Mind these: a.py; b.py"]


def test_both_ends_of_one_long_line_count_as_typed() -> None:
    told = ["Never restart it.", *("It ran on and on." for _ in range(200)), "Ask Kim first."]
    typed = [one.text for one in sentences_in(" ".join(told)) if not one.pasted]
    assert (typed[0], typed[-1]) == (told[0], told[-1])
    assert len(typed) < len(told) / 2


TYPED = {
    "<command-name>/fix</command-name>\n<command-args>Tabs only.</command-args>": "/fix Tabs only.",
    "<task>\nBuild a parser.\n</task>": "Build a parser.",
    "<user_query>\nUse tabs.\n</user_query>": "Use tabs.",
    "Make it <b>bold</b>.": "Make it <b>bold</b>.",
    "Now run this:\n$ npm test": "Now run this: $ npm test",
}


@pytest.mark.parametrize(("text", "typed"), TYPED.items())
def test_what_the_user_typed_is_not_taken_for_a_programs_text(text: str, typed: str) -> None:
    told = [sentence.text for sentence in sentences_in(text) if not sentence.pasted]
    assert " ".join(told) == typed


UNITS = {
    "No. Use tabs.": ["No. Use tabs."],
    "yes\nport 8080": ["yes", "port 8080"],
    'It says "Use tabs." That is old.': ['It says "Use tabs." That is old.'],
    f"The key is in /srv/key. Use it for the deploy only. {'Now read on. ' * 9}".strip(): [
        "The key is in /srv/key. Use it for the deploy only.",
        *["Now read on."] * 9,
    ],
    f"{'我们先看一下这个问题再说。' * 9}密钥在 /srv/key。它只用于部署。": [
        *["我们先看一下这个问题再说。"] * 9,
        "密钥在 /srv/key。 它只用于部署。",
    ],
}


@pytest.mark.parametrize(("text", "units"), UNITS.items())
def test_sentences_that_need_each_other_are_one_unit(text: str, units: list[str]) -> None:
    assert [unit.text for unit in units_in(text)] == units


WRAPPED = """\
The importer reads the cellar lists that the growers send us, each with its own
Excel template (e.g. the one of Maison Roux, which has no header at all), and it
`skips` lines that it does not know. Cover at least the formats 2019, 2020 and
2021 of the cooperative. Prices stay in cents, esp. Swiss ones, and the VAT of
France is 20 %.
- Keep the reader of the old lists until the growers of the valley, and those of
  Geneva, have moved
- Never read `notes ... end`, nor `a. b`"""


def test_lines_that_were_broken_at_one_width_are_joined() -> None:
    assert [one.text for one in sentences_in(WRAPPED)] == [
        "The importer reads the cellar lists that the growers send us, each with its own Excel"
        " template (e.g. the one of Maison Roux, which has no header at all), and it `skips` lines"
        " that it does not know.",
        "Cover at least the formats 2019, 2020 and 2021 of the cooperative.",
        "Prices stay in cents, esp. Swiss ones, and the VAT of France is 20 %.",
        "Keep the reader of the old lists until the growers of the valley, and those of Geneva,"
        " have moved",
        "Never read `notes ... end`, nor `a. b`",
    ]


def test_lines_that_a_person_ended_stay_apart() -> None:
    lines = [
        "Move the reader of the cellar lists into a module of its own",
        "Use cents",
        "Ask Ines before you touch the reader of the lists of the valley",
        "No new libraries",
    ]
    assert [one.text for one in sentences_in("\n".join(lines))] == lines


def test_no_sentence_ends_inside_of_brackets_or_code() -> None:
    text = "Take the first (see a.md. It has two. Ask Ines.) and not the last. Then stop (now. Go"
    assert [one.text for one in sentences_in(text)] == [
        "Take the first (see a.md. It has two. Ask Ines.) and not the last.",
        "Then stop (now.",
        "Go",
    ]


def test_entries_of_a_long_list_keep_a_lead_that_turns_them_around() -> None:
    items = [f"rename the table of cellar {i} in the old data base of growers" for i in range(5)]
    text = "In this release we do not:\n" + "\n".join(f"- {item}" for item in items)
    expected = [f"In this release we do not: {item}" for item in items]
    assert [one.text for one in sentences_in(text)] == expected


def test_lines_below_a_heading_that_excludes_them_have_it() -> None:
    text = "Write the importer.\n\n## Out of scope\nThe export.\n- Old lists\n\n## Tests\n- Add two"
    typed = [one.text for one in sentences_in(text) if not one.pasted]
    assert typed == [
        "Write the importer.",
        "Out of scope: The export.",
        "Out of scope: Old lists",
        "Add two",
    ]


def test_a_comment_in_code_is_no_heading() -> None:
    text = "Mind this:\n```\n# no cache\nx = 1\n```\nThen go on."
    assert [one.text for one in sentences_in(text) if not one.pasted] == [
        "Mind this:",
        "Then go on.",
    ]


def test_a_described_task_was_typed_if_nothing_else_was() -> None:
    text = "<pr_description>\nMend the importer.\n</pr_description>\n<hook-note>\nbe\n</hook-note>"
    assert [one.text for one in sentences_in(text) if not one.pasted] == ["Mend the importer."]
    more = [one.text for one in sentences_in(f"{text}\nAsk Ines.") if not one.pasted]
    assert more == ["Ask Ines."]
