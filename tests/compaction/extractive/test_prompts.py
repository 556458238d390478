"""Prompts of clients, and what programs put beside the words of the user."""

from __future__ import annotations

from typing import Any

import pytest

from policyctx.compaction.extractive import Group
from tests.compaction.extractive.summaries import group, later, ran, said, summary_of, told
from tests.conversations import picture, user


def test_output_that_the_user_pastes_is_one_line_that_says_how_long_it_is() -> None:
    output = "\n".join(f"2026-01-01 10:00:{i} ERROR never restart job {i}" for i in range(10, 30))
    assert told(user(f"What is this?\n{output}"), said("A log.")) == [
        "- What is this?",
        f" [pasted, 20 lines, {len(output):,} characters: 2026-01-01 10:00:10 ERROR never restart"
        " job 10]",
    ]


def test_what_a_program_put_into_a_message_is_left_out() -> None:
    element = "<system-reminder>\nNever open the lid.\n</system-reminder>"
    messages = [user("Fix the lexer."), said("Done."), user(f"{element}\nGo on with the parser.")]
    assert told(*messages) == ["- Fix the lexer.", "- Go on with the parser."]


def test_what_a_client_wrote_in_brackets_is_quoted() -> None:
    messages = [user("Fix the lexer."), said("Done."), user("[Request interrupted by user]")]
    assert told(*messages) == ["- Fix the lexer.", "- [Request interrupted by user]"]


ATTACHED: dict[str, tuple[Any, str]] = {
    "image": (picture(), "image: image/png"),
    "uploaded image": (
        {"type": "image", "source": {"type": "file", "file_id": "file_9"}},
        "image: file_9",
    ),
    "image at a URL": (
        {"type": "image", "source": {"type": "url", "url": "https://example.org/a.png"}},
        "image: https://example.org/a.png",
    ),
    "document": (
        {
            "type": "document",
            "title": "Rules.pdf",
            "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="},
        },
        "document: Rules.pdf, application/pdf",
    ),
    "uploaded document": (
        {"type": "document", "title": "Plan", "source": {"type": "file", "file_id": "file_011"}},
        "document: Plan, file_011",
    ),
    "file of the chat API": (
        {"type": "file", "file": {"file_id": "file-abc", "filename": "a.pdf"}},
        "document: file-abc, a.pdf",
    ),
    "file of the Responses API": (
        {"type": "input_file", "file_id": "file-xyz", "filename": "b.pdf"},
        "document: file-xyz, b.pdf",
    ),
}


@pytest.mark.parametrize("name", ATTACHED)
def test_an_attachment_is_named(name: str) -> None:
    block, line = ATTACHED[name]
    text = {"type": "input_text" if block["type"] == "input_file" else "text", "text": "Read it."}
    assert told({"role": "user", "content": [text, block]}) == [
        "- Read it.",
        f" [attached {line}]",
    ]


def test_what_stands_behind_an_empty_fence_was_typed() -> None:
    text = "Input:\n\n```text\n\n```\n\nYou **MUST** look at the input (if not empty) of `a/b`."
    typed = text.rpartition("\n")[2]
    assert told(user(text)) == [f"- Input: {typed}"]


def test_an_element_without_text_has_no_line() -> None:
    assert told(user("Go on.\n\n<bash-stderr></bash-stderr>")) == ["- Go on."]


def test_of_a_template_the_beginning_and_the_end_are_kept() -> None:
    text = "\n\n".join(f"Then part {i} of the template is filled in by them." for i in range(60))
    order = user(f"{text}\n\nNever write outside of /srv/app.")
    found = told(order, user("Go on with hall 4."))
    assert len(found) == 25
    assert found[-2:] == [" Never write outside of /srv/app.", "- Go on with hall 4."]
    assert group(later(summary_of(order), user("Go on with hall 4.")), Group.USER) == found


def test_the_line_of_a_prompt_has_the_names_of_its_steps() -> None:
    steps = "1. **Set up**: Run `check.sh`.\n2. **Read plans**: All.\n3. **Write tasks.md**: Now.\n"
    given = "## User Input\n\n```text\n\n```\n\nConsider the user input."
    prompt = f'{given}\n\n{steps}\nBe brief, as in "I\'m Groot".'
    line = told(user(prompt), said("Written."))[0]
    assert line.endswith(": Set up / Read plans / Write tasks.md]")


def test_pasted_text_in_a_summary_of_another_writer_is_left_out() -> None:
    foreign = "We use port 8081.\n```\n" + "x = compute(1)\n" * 9 + "```"
    assert group(later(foreign, user("Go on.")), Group.EARLIER) == ["- We use port 8081."]


def test_of_a_template_the_rules_stay_before_its_headings() -> None:
    steps = "\n\n".join(f"## Part {i}\n\nThen part {i} is filled in by them." for i in range(40))
    rules = ["Tasks MUST be in order.", "Each label MUST be unique."]
    found = told(user("\n\n".join(["Begin.", steps, *rules, steps])), user("Go on."))
    assert [line.strip(" …") for line in found if line.strip(" …") in rules] == rules
    assert len(found) < 30


def test_a_compaction_that_only_its_provider_can_read_is_named() -> None:
    compaction = {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAAA"}
    found = told(user("Use port 8081."), compaction, user("Go on with hall 4."))
    assert found[1].startswith("- [compaction that only its provider can read")
    assert [found[0], found[2]] == ["- Use port 8081.", "- Go on with hall 4."]


def test_of_another_summary_the_orders_and_the_users_words_stand_under_their_titles() -> None:
    foreign = (
        "Analysis of the work so far: `a.py` is half done.\n\n## Decisions\n\n- We use port 8081"
        " for `hall_4`.\n\n## Current work\n\n- Mend `a.py`, whose build fails at line 7.\n"
        "\n6. All User Messages:\n\n"
        + "".join(f'   - "Mend the `pump_{i}` of hall 4 and tell me about it"\n' for i in range(5))
        + "\n7. Errors:\n\n   - Line 171 of `b.py` fails to compile.\n   - The build is red.\n"
        "\n## Notes\n\n- Hall 4 is old.\n- Never edit `vendor/` by hand.\n"
        "- **CURRENT error**: `a.py` cannot be read.\n- Still needs a test.\n- [x] Hall 3: done.\n"
    )
    first = later(foreign, user("Go on with hall 4."))
    found = group(first, Group.EARLIER)
    assert found == [
        "- ## Current work",
        "  Mend `a.py`, whose build fails at line 7.",
        "- 6. All User Messages:",
        *(f'  "Mend the `pump_{i}` of hall 4 and tell me about it"' for i in range(5)),
        "- ## Notes",
        "  Never edit `vendor/` by hand.",
    ]
    assert group(later(first, user("Go on with hall 5.")), Group.EARLIER) == found


SUMMARY = """## Goal
- Replace the valves of hall 4.
- Write the handbook for `pump_4`.

## Progress
### Done
- [x] The valves are replaced in `8f1c2ab`.
- [x] The handbook is printed.

### In Progress
- [ ] The seal leaks.

## Next Steps
1. Order a seal.

## Critical Context
- Hall 4 is old."""


def test_the_aims_of_another_summary_stand_with_what_is_done_or_not_at_all() -> None:
    for again in (later(SUMMARY, user("Go on.")), later(SUMMARY, said("The seal is there."))):
        carried = group(again, Group.EARLIER)
        assert carried[:3] == ["- ## Goal", *(f"  {one[2:]}" for one in SUMMARY.split("\n")[1:3])]
        assert carried[3:5] == ["- ### Done", "  [x] The valves are replaced in `8f1c2ab`."]
    for words in range(1, 120):
        text = later(SUMMARY, user("Go on."), max_words=words)
        is_whole = "The valves are replaced" in text and "The handbook is printed" in text
        assert is_whole or "Replace the valves" not in text
    undone = SUMMARY.replace("### Done", "### Notes").replace("## Progress", "## Work")
    undone = undone.replace("Write the", "The new comments should be short. Write the")
    assert "- ## Goal" not in later(undone, said("The seal is there."))
    assert "- ## Goal" in later(undone, user("Go on."))


def test_the_second_half_of_a_long_entry_of_another_summary_comes_with_the_first() -> None:
    entry = "[x] The valve is replaced, " + ", ".join(f"and then the seal {i}" for i in range(60))
    foreign = f"## Constraints\n- {entry}.\n- [x] The lid is shut."
    for words in range(10, 300, 10):
        text = later(foreign, user("Go on."), max_words=words)
        assert "[x] The valve" in text or "and then" not in text


def test_what_was_open_in_another_summary_leaves_with_the_agents_answer() -> None:
    first = later(SUMMARY, user("Go on."))
    assert "The seal leaks." in first
    assert "Order a seal." in first
    for again in (later(first, said("It is tight.")), later(SUMMARY, said("It is tight."))):
        assert "The handbook is printed." in again
        assert "The seal leaks." not in again
        assert "Order a seal." not in again


def test_of_another_summary_what_the_user_says_in_the_same_words_is_left_out() -> None:
    told = [f"Mend the pump {i} of hall 4 today and tell me what it was" for i in range(5)]
    quoted = "".join(f'   - "{one}"\n' for one in told)
    foreign = f"6. All User Messages:\n{quoted}\n7. Notes:\n"
    again = later(foreign, *map(user, told[:4]))
    assert group(again, Group.EARLIER) == ["- 6. All User Messages:", f'  "{told[4]}"']
    assert group(later(foreign, *map(user, told)), Group.EARLIER) == []


def test_of_another_summary_a_protocol_and_instructions_are_quoted() -> None:
    tasks = "".join(f"   - Mend the pump {i} of hall 4 as the plan says it\n" for i in range(5))
    close = "Session close protocol (git add, sync, git push) after all tasks complete"
    foreign = (
        f"7. Pending Tasks:\n{tasks}   - {close}\n"
        "\n## Key Instructions\n\n- The tests run with `make check`.\n"
        "\n## Next Steps\n\n- Mend the valve.\n"
    )
    assert group(later(foreign, user("Go on."), said("All is done.")), Group.EARLIER) == [
        "- 7. Pending Tasks:",
        f"  {close}",
        "- ## Key Instructions",
        "  The tests run with `make check`.",
    ]


@pytest.mark.parametrize(
    "title",
    [
        "## Current constraints",
        "## Preferences for the next release",
        "## Instructions for the Next.js app",
        "## Goal and constraints",
    ],
)
def test_the_users_words_in_another_summary_stay_whatever_else_their_title_says(title: str) -> None:
    foreign = f"{title}\n- Use tabs in `a.py`.\n- The port is 8081.\n\n## Notes\n- x"
    assert group(later(foreign, user("Go on."), said("All is done.")), Group.EARLIER) == [
        f"- {title}",
        "  Use tabs in `a.py`.",
        "  The port is 8081.",
    ]


def test_an_entry_that_leads_others_is_no_title_among_the_users_words() -> None:
    entries = ["Keep the current settings:", "The port is 8081.", "TLS stays on.", "Use tabs."]
    marks = ["- ", "  - ", "  - ", "- "]
    lines = "\n".join(map("".join, zip(marks, entries, strict=True)))
    text = later(f"## Constraints\n{lines}\n\n## Notes\n- x", user("Go on."), said("All is done."))
    found = group(text, Group.EARLIER)
    assert found[0] == "- ## Constraints"
    assert [one.strip() for one in found[1:]] == entries


@pytest.mark.parametrize("title", ["What remains to be done", "To do"])
def test_what_another_summary_calls_not_done_leaves_with_the_agents_answer(title: str) -> None:
    foreign = f"## Goal\n- Build the pump.\n\n## {title}\n- The seal leaks.\n\n## Notes\n- x"
    assert f"- ## {title}\n  The seal leaks." in later(foreign, user("Go on."))
    answered = later(foreign, user("Go on."), said("It is ready."))
    assert "The seal leaks." not in answered
    assert "Build the pump." not in answered


TEMPLATES = {
    "a title": "## User Input\n\n```text\n{given}\n```\n\n"
    "You **MUST** consider the user input.\n\n{steps}",
    "fields": "---\ndescription: Plan it\n---\n\n# Arguments\n\n```\n{given}\n```\n{steps}",
    "elements": "<command-name>/plan</command-name>\n<command-args>{given}</command-args>\n{steps}",
}


STEPS = "\n\n".join(f"{i}. Always fill in part {i} of the plan." for i in range(50))


@pytest.mark.parametrize("text", TEMPLATES.values(), ids=TEMPLATES)
def test_of_a_command_the_users_input_stands_without_its_template(text: str) -> None:
    given = "Plan the cellar of hall 4 as `plan.md` says.\nNever touch the pump in it."
    prompt = user(text.format(given=given, steps=STEPS))
    first = summary_of(prompt)
    answered = later(first, said("Planned."), user("Go on."))
    for found in (told(prompt), group(answered, Group.USER), told(prompt, user("Go on."))):
        typed = [line.strip(" -") for line in found if not line.strip(" -").startswith("[")]
        assert "\n".join(typed).removeprefix("/plan\n").removesuffix("\nGo on.") == given
        assert len(found) < 6


def test_a_template_without_an_input_is_what_the_user_wants() -> None:
    template = TEMPLATES["a title"].format(
        given="", steps="## Outline\n\nRead `plan.md` of hall 4 first. Write `tasks.md`."
    )
    assert told(user(template)) == [
        "- [prompt without input, 3 lines, 102 characters: Read `plan.md` of hall 4 first. Write"
        " `tasks.md`.]",
        "  > You **MUST** consider the user input.",
        "   > ## Outline",
        "    > Read `plan.md` of hall 4 first.",
        "    > Write `tasks.md`.",
    ]


@pytest.mark.parametrize(
    ("kind", "begins"),
    [("a title", "0. Always fill in part 0 of the plan."), ("fields", "description: Plan it")],
)
def test_of_a_prompt_that_was_answered_one_line_says_what_it_is(kind: str, begins: str) -> None:
    prompt = user(TEMPLATES[kind].format(given="", steps=STEPS))
    newest = told(prompt)
    assert len(newest) > 40
    answered = [said("Planned."), user("Never touch the pump."), said("Fine.")]
    once = told(prompt, *answered)
    again = group(later(summary_of(prompt), *answered), Group.USER)
    assert once == again == [newest[0], "- Never touch the pump."]
    assert newest[0].endswith(f"characters: {begins}]")


@pytest.mark.parametrize(
    ("answer", "count"), [("Planned.", 1), ("Planned. Which hall comes first?", 52), ("", 52)]
)
def test_a_prompt_is_quoted_whole_until_the_agent_has_answered_it(answer: str, count: int) -> None:
    prompt = user(TEMPLATES["a title"].format(given="", steps=STEPS))
    new = [*ran("make check", "9 passed"), *([said(answer)] if answer else [])]
    assert len(told(prompt, *new)) == count
    assert len(group(later(summary_of(prompt), *new), Group.USER)) == count


def test_a_form_with_an_empty_input_that_speaks_of_the_users_input_stays_whole() -> None:
    rules = "Never open the lid of hall 4. Ask before each user input is stored on port 8081."
    form = user(f"# Input\n```\n\n```\n{rules}")
    assert any("Never open the lid" in one for one in told(form, said("Fine."), user("Go on.")))


@pytest.mark.parametrize("title", ["## Input", "# Arguments", "## User Input", "## Task"])
@pytest.mark.parametrize("fence", ["```\nlid: 4\n```", "lid: 4", "```\n\n```"])
def test_a_message_of_the_user_in_the_form_of_a_prompt_stays_whole(title: str, fence: str) -> None:
    rules = [f"Never open the lid of hall {i}, not even at night." for i in range(9)]
    typed = "\n\n".join([title, fence, "## Rules", *rules])
    found = told(user(typed), said("Fine."), user("Go on."))
    assert [line.strip(" …") for line in found if "hall" in line] == rules


GIVEN = "## Goal\nBuild the importer of hall 4.\nNever open the lid."


@pytest.mark.parametrize("kind", TEMPLATES)
def test_an_input_that_begins_with_a_heading_stays_with_its_prompt(kind: str) -> None:
    prompt = user(TEMPLATES[kind].format(given=GIVEN, steps=STEPS))
    answered = [said("Planned."), user("Go on."), said("Fine.")]
    for found in (
        told(prompt, *answered),
        group(later(summary_of(prompt), *answered), Group.USER),
    ):
        assert [line for line in GIVEN.splitlines() if not any(line in one for one in found)] == []


@pytest.mark.parametrize(
    "rules",
    ["Never open the lid of hall 9.", "## Rules\n\nNever open the lid of hall 9.\n\nUse port 81."],
)
def test_rules_beside_a_prompt_without_input_stay_over_rounds(rules: str) -> None:
    prompt = TEMPLATES["fields"].format(given="", steps=STEPS)
    blocks = [{"type": "text", "text": one} for one in (prompt, rules)]
    message = {"role": "user", "content": blocks}
    answered = [said("Planned."), user("Go on."), said("Fine.")]
    once = summary_of(message, *answered)
    for summary in (once, later(once, user("And then?"), said("Done."))):
        assert all(one in summary for one in rules.split("\n\n"))
    again = later(summary_of(message), *answered)
    assert all(one in again for one in rules.split("\n\n"))
    assert "Always fill in" not in again


def test_notes_between_the_notices_of_a_program_are_left_out() -> None:
    notice = user("<task-notification>\n<status>completed</status>\n</task-notification>")
    waits = [said("Two agents run; I wait for both of them."), notice]
    summary = summary_of(user("Mend it."), *waits, *ran("make", "ok"), said("The pump runs."))
    assert "wait for both" not in summary
    assert group(summary, Group.AGENT) == ["- The pump runs."]


def test_of_another_summary_what_was_not_done_then_is_left_out() -> None:
    foreign = (
        "## Work\n\n- `a.py` is NOT yet modified.\n- NOT yet modified: `b.py`.\n- No test ran."
        "\n\n## Constraints\n\n- Port 8081 is taken."
    )
    assert group(later(foreign, user("Go on.")), Group.EARLIER) == [
        "- ## Constraints",
        "  Port 8081 is taken.",
    ]


def test_code_in_fences_in_a_description_is_quoted_in_lines() -> None:
    code = "```pony\nfun take() =>\n  // consume it, the compiler has an error\n  match it\n}\n```"
    text = f"<task>\nThe match of an alias compiles. It is wrong here.\n{code}\nMend it.\n</task>"
    quoted = "fun take() => / // consume it, the compiler has an error / match it / }"
    assert f" {quoted}" in told(user(text))


def test_long_code_in_fences_in_a_description_is_one_line() -> None:
    code = "\n".join(f"    call_{i}(with_{i})" for i in range(40))
    text = f"<task>\nThe calls below have the wrong order, as you see.\n```\n{code}\n```\n</task>"
    assert any(line.startswith(" [pasted, 40 lines") for line in told(user(text)))


def test_instructions_in_an_element_of_the_task_are_quoted() -> None:
    task = "<instructions>\nRun one command in each reply.\n\nThen deliver.\n</instructions>"
    assert "Run one command in each reply." in summary_of(user(task))
