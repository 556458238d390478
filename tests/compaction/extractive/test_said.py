"""What user and agent said: quotations alone, of which none is taken for something else."""

from __future__ import annotations

import re

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import Group, ranked_units
from tests.compaction.extractive.summaries import group, later, ran, said, summary_of, told
from tests.conversations import Message, results, thinking, user


def test_an_answer_of_the_agent_that_a_later_one_takes_back_does_not_stand_last() -> None:
    report = "## Report\n\nThe leak is in pump 3, because its gasket is too thin."
    corrected = "I was wrong: pump 3 is fine, the leak is in the valve of hall B."
    summary = summary_of(user("Why does it leak?"), said(report), user("Sure?"), said(corrected))
    assert group(summary, Group.AGENT) == [
        "- ## Report",
        "   The leak is in pump 3, because its gasket is too thin.",
        f"- {corrected}",
    ]
    assert "Closing report" not in summary


def test_no_order_is_said_to_be_done_because_a_command_has_its_words() -> None:
    order = user("Remove the directory build from the repository.")
    summary = summary_of(order, *ran("rm -rf build && make build", "built"), said("It builds."))
    assert group(summary, Group.USER) == ["- Remove the directory build from the repository."]
    assert "done" not in summary.casefold()


def test_nothing_that_was_announced_is_said_to_be_open() -> None:
    first = summary_of(user("Prepare it."), said("Next I'll translate the emails into Dutch."))
    summary = later(first, user("The Dutch emails are perfect, thanks."), said("Good to hear."))
    assert "open" not in summary.casefold()
    assert group(summary, Group.USER)[-1] == "- The Dutch emails are perfect, thanks."


def test_a_system_message_in_the_middle_is_quoted_with_its_role() -> None:
    rule = {"role": "developer", "content": "Writes outside of /srv/app are forbidden."}
    assert told(user("Deploy."), rule, said("I do."))[1:] == [
        "- developer: Writes outside of /srv/app are forbidden."
    ]
    long = {"role": "system", "content": "Never stop. " * 500}
    assert told(user("Deploy."), long) == ["- Deploy."]


def test_a_message_said_twice_stands_where_it_was_said_first() -> None:
    rule = "Never rename the table t_7."
    assert told(user(rule), user("Use port 8081."), user(rule)) == [
        f"- {rule}",
        "- Use port 8081.",
    ]
    first = summary_of(user(rule), user("Use port 8081."))
    assert group(later(first, user(rule)), Group.USER) == [f"- {rule}", "- Use port 8081."]


def test_a_long_answer_stands_alone() -> None:
    answer = "Drop neither of them before the auditors have been here."
    assert told(said("Drop the index?"), user(answer)) == [f"- {answer}"]


def test_a_list_keeps_the_line_that_leads_to_it() -> None:
    lead = "Leave these directories alone whatever the linter says today or tomorrow:"
    message = f"{lead}\n- vendor/zlib\n- tools/gen.py"
    assert told(user(message)) == [f"- {lead}", "  vendor/zlib", "  tools/gen.py"]


def test_orders_in_a_language_without_a_table_are_kept() -> None:
    orders = ("Älä koskaan poista varmuuskopioita.", "Käytä porttia 9200.", "ห้ามลบไฟล์สำรอง")
    assert told(*(user(order) for order in orders)) == [f"- {order}" for order in orders]


def test_thinking_is_not_quoted() -> None:
    thought = thinking("The key is 123-456, decided.")
    message = {"role": "assistant", "content": [thought, {"type": "text", "text": "Ready."}]}
    assert "123-456" not in summary_of(user("Go."), message)


def test_the_last_message_of_the_agent_stands_whole() -> None:
    long = [
        f"Sentence {i} of this message says how hall {i} is heated at night." for i in range(40)
    ]
    work = [said("All is warm."), *ran("ls", "a"), said(" ".join(long)), *ran("ls", "b", "c2")]
    summary = summary_of(user("Report."), *work)
    lines = [f"- [while working] {long[0]}", *(f" {line}" for line in long[1:])]
    assert group(summary, Group.AGENT) == lines
    assert later(summary) == summary


def test_earlier_last_messages_go_to_what_the_agent_said() -> None:
    first = summary_of(user("Why?"), said("The cause is the gasket of pump 3."))
    again = later(first, user("And now?"), *[said(f"Step {i} runs.") for i in range(5)])
    assert "- The cause is the gasket of pump 3." in group(again, Group.AGENT)
    assert group(again, Group.AGENT)[-1] == "- Step 4 runs."


def ranks(*messages: Message) -> dict[str, int]:
    """The place of each unit in the order, by its text without the marks."""
    order = ranked_units(History(list(messages)))
    return {re.sub(r"^- (\[agent\] )?", "", unit.text): i for i, unit in enumerate(order)}


@pytest.mark.parametrize(
    ("lasting", "errand"),
    [
        ("I prefer the tables without any borders.", "Please draw the tables of the last chapter."),
        ("我喜欢表格没有边框的那种样子。", "请把上一章的表格先画出来看看。"),
        ("Ich bevorzuge immer Tabellen ohne Rahmen.", "Bitte zeichne noch die letzten Tabellen."),
        ("Je préfère toujours les tableaux sans cadre.", "Peux-tu dessiner ces tableaux avant ?"),
    ],
    ids=["English", "Chinese", "German", "French"],
)
def test_a_lasting_wish_ranks_before_an_errand(lasting: str, errand: str) -> None:
    talk = [user(f"Rows {i} of the table are in the other file.") for i in range(10, 20)]
    for pair in ((lasting, errand), (errand, lasting)):
        found = ranks(*talk[:5], *(user(one) for one in pair), *talk[5:])
        assert found[lasting] < found[errand]


def test_the_newest_answer_of_the_agent_ranks_before_the_older_ones() -> None:
    order = ranks(*(m for i in range(4) for m in (user(f"Mend {i}."), said(f"Pump {i} runs."))))
    found = [text for text in sorted(order, key=lambda one: order[one]) if "runs" in text]
    assert found == [f"Pump {i} runs." for i in (3, 2, 1, 0)]


def test_of_a_long_earlier_answer_the_end_is_kept_first_with_the_title_that_it_is_under() -> None:
    parts = [f"Part {i} of the hall is heated at night since then." for i in range(60)]
    done, still = ("\n".join(f"- {one}" for one in parts[i : i + 30]) for i in (0, 30))
    report = said(f"All is warm.\n\n## Done\n\n{done}\n\n## Open\n\n{still}")
    messages = (user("Why?"), report, user("Mend it."))
    found = group(summary_of(*messages, max_words=230), Group.AGENT)
    assert found[0] == "- ## Open"
    assert found[-1] == f"   {parts[-1]}"
    assert [line for line in found if "…" in line] == [f"   … {found[1].strip('… ')}"]
    whole = group(summary_of(*messages), Group.AGENT)
    assert [line.strip() for line in whole if "Part" in line] == parts
    again = later(summary_of(*messages[:2]), *messages[2:])
    assert group(again, Group.AGENT) == whole


def test_the_newest_answer_stays_whole_before_older_ones() -> None:
    """Else an option's text may stand below the title of another."""
    option = "## Option {0}\n\n" + "\n".join(f"- Pump {i} of {{0}} is sealed." for i in range(12))
    asked = said("\n\n".join(["Which one?", option.format("A"), option.format("B")]))
    old = said("\n".join(f"Part {i} of the old report says how it was then." for i in range(90)))
    messages = (user("Why?"), old, user("And now?"), asked, user("Option A."))
    found = group(summary_of(*messages, max_words=250), Group.AGENT)
    assert sum("Pump" in line for line in found) == 24
    assert [line for line in found[found.index("- Which one?") :] if "…" in line] == []


def test_what_user_and_agent_said_is_in_the_order_of_the_conversation() -> None:
    first = summary_of(user("Mend it."), said("Shall I drop it?"), user("yes"), said("It is gone."))
    again = later(first, user("Why?"), said("Since it leaked."), user("And the valve of it?"))
    lines = again.split("\n")
    assert lines[lines.index("User and [agent], in order:") + 1 :] == [
        "- Mend it.",
        "- [agent] Shall I drop it?",
        "- yes",
        "- [agent] It is gone.",
        "- Why?",
        "- [agent] Since it leaked.",
        "- And the valve of it?",
    ]


def test_an_answer_stands_before_a_message_that_is_only_pasted() -> None:
    fenced = "```\n" + "Fill in the plan.\n" * 9 + "```"
    talk = (user("Mend it."), said("The spec is done."), user(fenced), *ran("ls", ""))
    lines = summary_of(*talk).split("\n")
    assert lines[2:4] == ["- Mend it.", "- [agent] The spec is done."]
    assert lines[4].startswith("- [pasted, ")
    assert lines[5] == ""


def test_what_the_user_interrupted_is_quoted_before_the_interruption() -> None:
    work = [said("I drop the valve now."), *ran("ls", "a")]
    summary = summary_of(user("Mend it."), *work, user("Stop, keep the valve."))
    assert said_in(summary) == [
        "- Mend it.",
        "- [agent] I drop the valve now.",
        "- Stop, keep the valve.",
    ]


def test_lines_of_a_message_come_with_the_titles_and_leads_that_they_are_under() -> None:
    form = "# Comment {0}\n\nFile: src/{0}.go\nComment:\n\nThe lookup misses import {0}. Mend it."
    text = f"{form.format(1)}\n\n{form.format(2)}\n\n# Request\nPlease never drop `cfg`."
    assert told(user(text)) == [
        "- # Comment 1",
        "  File: src/1.go",
        "  Comment:",
        "   The lookup misses import 1. Mend it.",
        " # Comment 2",
        "  File: src/2.go",
        "  Comment:",
        "   The lookup misses import 2. Mend it.",
        " # Request",
        "  Please never drop `cfg`.",
    ]
    short = group(summary_of(user(text), max_words=24), Group.USER)
    assert short == ["- # Request", "  Please never drop `cfg`."]


def test_a_title_of_the_agent_is_not_under_the_command_of_its_message() -> None:
    text = "## Found\n\nThe gasket of pump 3 is too thin, so that it leaks all night long."
    run = {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "make check"}}
    work = {"role": "assistant", "content": [{"type": "text", "text": text}, run]}
    history = History([user("Why?"), work, results(("c1", "ok"))])
    leads = [unit.text for unit in ranked_units(history) if unit.leads]
    assert leads == ["- [agent, while working] ## Found"]


def test_lines_of_one_message_that_are_equal_are_all_kept() -> None:
    text = "\n\n".join(f"Comment {i}\n- File: a.go\n- Side: right of page {i}" for i in (1, 2))
    lines = [line.strip("- ") for line in told(user(f"{text}\n\nMend both of them today, please."))]
    assert lines.count("File: a.go") == 2


def test_an_entry_of_a_list_is_one_piece() -> None:
    rule = "Write the whole progress into docs/a.md. Push along the way. Test all of it as it is."
    lead = "Prompts of older checkpoints, for the record only:"
    text = f"{lead}\n\n- 1a2b: {rule}\n- 2b3c: {rule}"
    assert told(user(text)) == [f"- {lead}", f"  1a2b: {rule}", f"  2b3c: {rule}"]


def test_where_pieces_of_the_last_answer_are_missing_is_marked() -> None:
    report = [f"Part {i} of the report says how hall {i} is heated at night." for i in range(60)]
    lines = group(summary_of(said("\n".join(report)), max_words=200), Group.AGENT)
    assert lines[-4:] == [f" … {report[56]}", *(f" {one}" for one in report[57:])]
    assert lines[0] == f"- {report[0]}"


def test_of_a_developers_messages_the_prohibitions_stay() -> None:
    team = "<mode>You are one of a team here. Do not spawn agents at all for this task.</mode>"
    skills = f"<skills>{'Never open the lid of a skill. ' * 20}</skills>"
    messages = [user("Ship."), *({"role": "developer", "content": one} for one in (team, skills))]
    assert told(*messages) == ["- Ship.", "- developer: Do not spawn agents at all for this task."]


def test_the_lead_of_a_list_of_the_agent_stands_once() -> None:
    long = "and what it took to find out why the pump of the cellar stops at night without a cause"
    text = f"Two commits, not pushed:\n- 1a2b3c4 {long}.\n- 2b3c4d5 {long}.\n- 3c4d5e6 {long}."
    lines = group(summary_of(user("Mend it."), said(text)), Group.AGENT)
    assert [line for line in lines if "not pushed" in line] == lines[:1]


def test_the_newest_message_of_the_agent_ranks_first_among_its_last() -> None:
    order = ranks(user("Go."), *(said(f"Message {i}.") for i in range(4)))
    found = [one for one in sorted(order, key=lambda text: order[text]) if one != "Go."]
    assert found == [f"Message {i}." for i in (3, 2, 1, 0)]


def test_what_the_agent_said_before_a_call_leaves_with_the_next_turn() -> None:
    work = [said("The port 8081 is taken by nginx."), *ran("ls", "a")]
    first = summary_of(user("Mend it."), *work)
    assert group(first, Group.AGENT) == ["- [while working] The port 8081 is taken by nginx."]
    told = [user("And?"), said("It runs on 8082.")]
    assert "8081" not in later(first, *told)
    assert "8081" not in summary_of(user("Go."), *work, *told)


NOTE = "Pump {} is sealed, its valve turns again, and the test of the whole hall passes. The lid"


NOTE += " of the next one is loose, so I look at it now."


def worked(*numbers: int) -> list[Message]:
    """Return notes that the agent writes before calls, a short one behind each."""
    notes = [(NOTE.format(i), f"Let me look at {i}.") for i in numbers]
    return [one for pair in notes for note in pair for one in (said(note), *ran("ls", "a"))]


def test_of_work_that_goes_on_the_long_notes_stay_until_the_user_speaks_or_it_ends() -> None:
    first = summary_of(user("Mend them."), *worked(1, 2, 8)[3:])
    assert group(first, Group.AGENT)[-1] == "- [while working] Let me look at 8."
    second = later(first, *worked(9))
    assert group(second, Group.AGENT)[-1] == "- [while working] Let me look at 9."
    assert [i for i in range(10) if f"Pump {i} is sealed" in second] == [2, 8, 9]
    assert "look at 8" not in second
    for new in (user("And?"), said("All are sealed.")):
        assert "Pump" not in later(second, new)
    told = [user("And?"), said("All are sealed."), user("Good."), *ran("ls", "a")]
    assert "Pump" not in summary_of(user("Mend them."), *worked(1, 2), *told)


def test_the_reply_to_the_users_last_message_stays_beside_the_last_note() -> None:
    asked = [user("Mend them."), *worked(1), said("All run."), user("Can it be faster?")]
    summary = summary_of(*asked, *worked(2, 3))
    assert group(summary, Group.AGENT) == [
        "- [4 calls ago] All run.",
        "- [while working, 4 calls ago] Pump 2 is sealed, its valve turns again, and the test of"
        " the whole hall passes.",
        " The lid of the next one is loose, so I look at it now.",
        "- [while working, 2 calls ago] Pump 3 is sealed, its valve turns again, and the test of"
        " the whole hall passes.",
        " The lid of the next one is loose, so I look at it now.",
        "- [while working] Let me look at 3.",
    ]


def test_how_many_calls_ago_the_agent_said_something_is_told_over_rounds() -> None:
    calls = [one for i in range(9) for one in ran("./bench", f"{i} runs", f"c{i}")]
    first = summary_of(user("Go."), said("The run goes on."), user("How long?"), *calls)
    assert group(first, Group.AGENT) == ["- [9 calls ago] The run goes on."]
    second = later(first, said("I look at it."), *calls[:6])
    assert group(second, Group.AGENT) == [
        "- [12 calls ago] The run goes on.",
        "- [while working, 3 calls ago] I look at it.",
    ]
    assert later(second) == second


def test_what_the_agent_wrote_for_its_client_alone_is_left_out() -> None:
    marks = '::git-stage{cwd="/srv"}\n::code-comment{title="Lid" body="It leaks. Seal it."}'
    answer = said(f"The pump leaks at its lid.\n\n{marks}\nShall I seal `a::b{{c}}` at once?")
    line = "- The pump leaks at its lid. Shall I seal `a::b{c}` at once?"
    assert group(summary_of(user("Look."), answer), Group.AGENT) == [line]


def test_no_note_stays_behind_an_answer() -> None:
    assert "Pump" not in summary_of(user("Mend them."), *worked(1, 2), said("All are sealed."))


def test_of_the_newest_message_the_middle_is_quoted_as_well() -> None:
    parts = [f"{i}. Then part {i} of the template is filled in by them." for i in range(60)]
    parts[20] = "20. **Stop and report**: the command ends behind this part."
    first = summary_of(user("\n".join(parts)))
    for summary in (first, later(first), later(first, *ran("ls", "a"))):
        assert "".join(group(summary, Group.USER)).count("Then part") == 59
        assert parts[20] in summary


def test_what_the_agent_announces_last_is_quoted() -> None:
    last = "The port was taken on both of the machines. Let me add a test, and commit it:"
    found = group(summary_of(user("Mend it."), said(last)), Group.AGENT)
    assert found == ["- The port was taken on both of the machines.", *found[1:]]
    assert found[1:] == [" Let me add a test, and commit it:"]


def test_what_was_announced_and_what_was_found_stand_together() -> None:
    found = "The port is 8081, because the reverse proxy of the office has the other one."
    told = said(f"{found}\nLet me read the file of the limits and of the ports.")
    more = [said(f"Step {i} of the work is done by now, and it holds.") for i in range(4)]
    assert "Let me read" in summary_of(user("Mend it."), told)
    summary = summary_of(user("Mend it."), told, *more)
    assert found in summary


def test_of_a_long_report_at_the_end_the_next_step_is_quoted() -> None:
    report = [
        f"Part {n} of the report tells what was changed in module number {n}." for n in range(30)
    ]
    last = "Shall I merge the branch now, or do you look at it first?"
    summary = summary_of(user("Go."), said("\n".join([*report, last])))
    assert group(summary, Group.AGENT)[-1] == f" {last}"


def test_what_the_agent_said_before_its_last_messages_is_marked_as_older() -> None:
    before = said("The compile error at line 171 is not fixed yet.")
    summary = summary_of(user("Go."), before, *(said(f"Step {n} is done.") for n in range(4)))
    assert "- [agent] The compile error at line 171 is not fixed yet." in summary.split("\n")


HELD_UP = "[Request interrupted by user]"


def test_what_the_user_says_beside_an_interruption_stays_when_the_draft_is_sent_again() -> None:
    words = f"{HELD_UP} Do not touch the pump."
    assert told(user("Fix the valve"), user(words), user("Fix the valve")) == [
        "- Fix the valve",
        f"- {words}",
    ]
    rules = [f"Never heat hall {i} at night." for i in range(80)]
    found = told(user("Fix the valve"), user("\n".join([HELD_UP, *rules])), user("Fix the valve"))
    assert [line.strip(" -…") for line in found if "heat" in line] == rules


def test_an_interruption_is_not_kept_before_what_the_user_said() -> None:
    rule = "Never open the lid of hall 4 without the keeper."
    found = summary_of(user(rule), said("Fine."), user(HELD_UP), max_words=16)
    assert rule in found


def test_an_order_of_one_word_between_others_is_quoted() -> None:
    assert told(user("Deploy it."), user("push."), user("Go on.")) == [
        "- Deploy it.",
        "- push.",
        "- Go on.",
    ]


PARTS = [f"Part {i} of the report says how hall {i} is heated at night." for i in range(40)]


@pytest.mark.parametrize("order", ["Do 2 and 3.", "yes, option B", "Fix them all", "第二个"])
def test_an_answer_that_the_users_order_replies_to_stays_whole(order: str) -> None:
    looks = [said("I look at the valve first."), *ran("ls", "a")]
    whole = [f"- {PARTS[0]}", *(f" {one}" for one in PARTS[1:])]
    first = summary_of(user("Report."), said("\n".join(PARTS)))
    at_once = summary_of(user("Report."), said("\n".join(PARTS)), user(order), *looks)
    for summary in (at_once, later(first, user(order), *looks)):
        assert group(summary, Group.AGENT) == [
            *whole,
            "- [while working] I look at the valve first.",
        ]
        again = later(summary, user("Then tell me about all the others."), said("They are warm."))
        assert group(again, Group.AGENT) == [*whole, "- They are warm."]


def test_the_same_short_reply_to_another_question_stays() -> None:
    first = (user("Look at hall 4."), said("Shall I open the lid?"), user("yes"))
    more = (said("The pump is old. Shall I seal it?"), user("yes"), said("It is."), user("yes"))
    expected = ["- Look at hall 4.", "- yes", "- yes"]
    assert told(*first, *more) == expected
    assert group(later(summary_of(*first), *more), Group.USER) == expected


def test_of_an_answer_of_a_thousand_sentences_the_end_stays() -> None:
    parts = [f"Part {i} of the report says how hall {i} is heated at night." for i in range(1_000)]
    talk = (user("Report."), said("\n".join(parts)), user("Go on."), said("It runs."))
    found = group(summary_of(*talk, max_words=900), Group.AGENT)
    assert found[-2:] == [f" {parts[-1]}", "- It runs."]


def test_an_option_with_a_negation_in_its_name_forbids_nothing() -> None:
    allowed = {"role": "developer", "content": "Approved: go run ./app --no-network"}
    assert told(user("Ship it."), allowed) == ["- Ship it."]
    note = {"role": "developer", "content": "Those tools cannot be called from in there."}
    assert told(user("Ship it."), note) == ["- Ship it."]


def said_in(summary: str) -> list[str]:
    return summary.partition(f"{Group.USER}\n")[2].partition("\n\n")[0].split("\n")


def test_where_lines_of_the_user_are_missing_is_marked_over_rounds() -> None:
    text = "\n\n".join(f"Part {i} of the plan says how they heat hall {i}." for i in range(60))
    first = summary_of(user(f"{text}\n\nNever write outside of /srv/app."), user("Go on."))
    assert " … Part 49 of the plan says how they heat hall 49." in group(first, Group.USER)
    assert later(first) == first


def test_an_order_in_the_middle_of_a_long_message_stays() -> None:
    order = "Never touch the tests of the old halls."
    parts = "\n\n".join(f"Then part {i} of the template is filled in by them." for i in range(30))
    found = told(user(f"{parts}\n\n{order}\n\n{parts}"), user("Go on."))
    assert f" … {order}" in found
    assert len(found) == 26


def test_brackets_on_lines_of_their_own_stay_with_the_line_before() -> None:
    code = "Why does this loop?\nwhile (lid) {\n  drain(pump)\n}\nIt should stop at once, I think."
    (line, *rest) = group(summary_of(user(code)), Group.USER)
    assert line == "- Why does this loop?"
    assert "drain(pump) / }" in "\n".join(rest)


@pytest.mark.parametrize(("opens", "closes"), ["{}", "[]", "()"])
def test_the_brackets_of_a_value_between_words_stay(opens: str, closes: str) -> None:
    said = "\n".join(told(user(f'Use this config:\n{opens}\n  "a": 1\n{closes}\nand keep it.')))
    assert opens in said
    assert closes in said


def test_a_long_line_of_code_is_not_joined_with_the_next_one() -> None:
    first = "pumps = valves_of(hall=north, lids=(open, shut)) or none"
    code = f"Look at these two lines of the plan:\n\n{first}\ndrain = pumps + 1\n\nAre they right?"
    assert f"{first} / drain = pumps + 1" in summary_of(user(code))
    wrapped = (
        "The pump in the hall of the north tower leaks when\nit rains, so mend the valve first."
    )
    assert "leaks when it rains" in summary_of(user(wrapped))


def test_behind_equal_lines_of_one_message_is_a_mark() -> None:
    lines = ["Add the first pump to the list of hall A.", "Again.", "Again.", "Then go on with B."]
    assert told(user("\n\n".join(lines)))[1:] == [" Again.", f" … {lines[-1]}"]
