from __future__ import annotations

import json
from typing import Any

import pytest

from policyctx.compaction.assembly import History
from policyctx.compaction.extractive import extractive_summary
from policyctx.policy.models.compaction import Summary
from tests.compaction.extractive.test_survival import after
from tests.conversations import call, chat_calls, chat_result, results, user

Message = dict[str, Any]


def said(text: str) -> Message:
    return {"role": "assistant", "content": text}


def summary_of(*messages: Message, **settings: Any) -> str:
    return extractive_summary(History(messages), Summary.model_validate(settings))


def section(summary: str, name: str) -> list[str]:
    """The lines under a heading."""
    lines = summary.split("\n")
    start = lines.index(f"## {name}") + 1
    ends = [i for i, line in enumerate(lines) if i >= start and line.startswith("## ")]
    return [line for line in lines[start : (ends or [len(lines)])[0]] if line]


def edited(call_id: str, path: str) -> list[Message]:
    arguments = {"file_path": path, "old_string": "a\nb", "new_string": "b\nc"}
    return [call(call_id, "Edit", arguments), results((call_id, "ok"))]


def test_files_are_listed_with_counts_and_last_operation() -> None:
    summary = summary_of(
        user("Repair the loader."),
        call("c1", "Read", {"file_path": "src/loader.py"}),
        results(("c1", "one\ntwo\nthree\n")),
        *edited("c2", "src/loader.py"),
        *edited("c3", "src/loader.py"),
        call("c4", "Write", {"file_path": "src/new.py", "content": "x = 1\ny = 2\n"}),
        results(("c4", "created")),
    )
    files = section(summary, "File Operations")
    assert "- src/loader.py: read 1, edited 2; last edited" in files
    assert "- src/new.py: written 1; 2 lines" in files


def test_tools_that_a_policy_declares_as_file_readers_are_counted() -> None:
    messages = [
        user("Look at the plan."),
        call("c1", "fetch_doc", {"doc": "plans/q3.md", "depth": "2"}),
        results(("c1", "text")),
    ]
    history = History(messages, reads_file={"fetch_doc": "doc"})
    files = section(extractive_summary(history, Summary()), "File Operations")
    assert "- plans/q3.md: read 1" in files


def test_files_written_by_a_shell_command_are_listed() -> None:
    command = "cat > conf/app.toml <<'END'\nport = 1\nEND"
    summary = summary_of(
        user("Write the configuration."),
        chat_calls(("c1", "shell", json.dumps({"command": ["bash", "-lc", command]}))),
        chat_result("c1", ""),
        chat_calls(("c2", "exec", '{"cmd": "sed -i s/1/2/ conf/app.toml && rm old/app.ini"}')),
        chat_result("c2", ""),
    )
    files = "\n".join(section(summary, "File Operations"))
    assert "conf/app.toml: written 1, edited 1; last edited" in files
    assert "old/app.ini: deleted 1" in files


def test_files_of_a_patch_in_chat_messages_are_listed() -> None:
    patch = (
        "*** Begin Patch\n*** Update File: lib/a.py\n@@\n*** Add File: lib/b.py\n+x\n*** End Patch"
    )
    summary = summary_of(
        user("Apply it."), chat_calls(("c1", "apply_patch", patch)), chat_result("c1", "Done!")
    )
    files = section(summary, "File Operations")
    assert "- lib/a.py: edited 1" in files
    assert "- lib/b.py: written 1" in files


def test_tool_calls_are_counted_with_failed_and_unanswered_calls() -> None:
    summary = summary_of(
        user("Run the tests."),
        call("c1", "Bash", {"command": "make test"}),
        results(("c1", "boom"), error=True),
        call("c2", "Bash", {"command": "make lint"}),
        results(("c2", "fine")),
        call("c3", "Bash", {"command": "make docs"}),
    )
    assert "- Bash: 3 calls, 1 failed, 1 unanswered" in section(summary, "Tool Calls")


def test_counts_of_earlier_rounds_add_up() -> None:
    first = summary_of(
        user("Run it."), call("c1", "Bash", {"command": "make"}), results(("c1", "no"), error=True)
    )
    new = [
        *edited("c2", "src/a.py"),
        call("c3", "Bash", {"command": "make all"}),
        results(("c3", "ok")),
    ]
    second = extractive_summary(after(first, new), Summary())
    third = extractive_summary(after(second, edited("c9", "src/a.py")), Summary())
    assert "- Bash: 2 calls, 1 failed" in section(third, "Tool Calls")
    assert "- src/a.py: edited 2" in section(third, "File Operations")


@pytest.mark.parametrize(
    "text",
    [
        "Traceback (most recent call last):\n  File 'a.py'\nKeyError: 'rate_limit'",
        "KeyError: 'rate_limit'",
        "config.errors.MissingKeyError: rate_limit",
        "error: missing key rate_limit",
        '{"error": "rate_limit is missing"}',
        "Process exited with code 2\nrate_limit unset",
        "错误：缺少 rate_limit",
    ],
)
def test_a_failure_without_a_flag_is_detected_in_its_text(text: str) -> None:
    summary = summary_of(
        user("Start."), chat_calls(("c1", "run", '{"cmd": "start"}')), chat_result("c1", text)
    )
    assert "- run: 1 call, 1 failed" in section(summary, "Tool Calls")
    assert any("start" in line for line in section(summary, "Errors & Resolutions"))


@pytest.mark.parametrize(
    "text",
    ["AppError.ts:3: export class AppError", "handleError(rate_limit)", "ErrorBoundary is mounted"],
)
def test_a_result_that_mentions_an_error_is_not_a_failure(text: str) -> None:
    summary = summary_of(
        user("Start."), chat_calls(("c1", "run", '{"cmd": "start"}')), chat_result("c1", text)
    )
    assert "- run: 1 call" in section(summary, "Tool Calls")
    assert "failed" not in summary


def test_the_exception_of_a_traceback_is_listed() -> None:
    trace = "Traceback (most recent call last):\n  File 'a.py', line 3\nKeyError: 'rate_limit'\n"
    failed = [call("c1", "Bash", {"command": "start"}), results(("c1", trace), error=True)]
    errors = "\n".join(section(summary_of(*failed), "Errors & Resolutions"))
    assert "KeyError: 'rate_limit'" in errors


def test_an_error_is_listed_with_its_resolution() -> None:
    summary = summary_of(
        user("Make the tests pass."),
        call("c1", "Bash", {"command": "pytest -q"}),
        results(("c1", "E   ImportError: no module named 'yaml'"), error=True),
        *edited("c2", "requirements.txt"),
        said("The cause was a missing pin on PyYAML 6.0.2, found in requirements.txt."),
        call("c3", "Bash", {"command": "pytest -q"}),
        results(("c3", "5 passed")),
    )
    errors = "\n".join(section(summary, "Errors & Resolutions"))
    assert "pytest -q" in errors
    assert "ImportError" in errors
    resolved = errors[errors.index("resolved: ") :]
    assert "requirements.txt" in resolved
    assert "PyYAML 6.0.2" in resolved


def test_an_error_of_an_earlier_round_is_resolved_in_a_later_one() -> None:
    failed = [call("c1", "Bash", {"command": "make"}), results(("c1", "fatal: x"), error=True)]
    first = summary_of(user("Build it."), *failed)
    assert "resolved" not in first
    fixed = [call("c2", "Bash", {"command": "make"}), results(("c2", "built"))]
    assert "resolved" in extractive_summary(after(first, fixed), Summary())
    again = extractive_summary(after(first, failed), Summary())
    assert "(×2)" in again


def test_the_last_action_and_the_announced_next_action_are_listed() -> None:
    summary = summary_of(
        user("Split the module."),
        said("I moved the parser into parsing.py. Next I'll move the writer into writing.py."),
    )
    status = section(summary, "Task Status")
    assert (
        status.index("Done last:")
        < status.index("- I moved the parser into parsing.py.")
        < status.index("Next:")
        < status.index("- Next I'll move the writer into writing.py.")
    )


def test_an_unanswered_call_is_listed_as_the_current_task() -> None:
    summary = summary_of(user("Deploy."), call("c1", "Bash", {"command": "make deploy"}))
    assert "- Bash make deploy (no answer yet)" in section(summary, "Task Status")


def test_the_open_entries_of_a_task_list_are_kept_and_the_finished_are_not() -> None:
    todos = [
        {"content": "Write the migration", "status": "completed"},
        {"content": "Backfill table orders", "status": "in_progress"},
        {"content": "Drop column legacy_id", "status": "pending"},
    ]
    summary = summary_of(
        user("Do it."), call("c1", "TodoWrite", {"todos": todos}), results(("c1", "ok"))
    )
    status = section(summary, "Task Status")
    assert "- Backfill table orders (in progress)" in status
    assert "- Drop column legacy_id" in status
    assert "- Write the migration" not in status


def test_an_open_task_of_an_earlier_round_is_closed_by_a_later_list() -> None:
    def listed(call_id: str, status: str) -> list[Message]:
        todos = [{"content": "Drop column legacy_id", "status": status}]
        return [call(call_id, "TodoWrite", {"todos": todos}), results((call_id, "ok"))]

    first = summary_of(user("Do it."), *listed("c1", "pending"))
    second = extractive_summary(after(first, edited("c2", "src/a.py")), Summary())
    assert "- Drop column legacy_id" in section(second, "Task Status")
    third = extractive_summary(after(second, listed("c3", "completed")), Summary())
    assert "- Drop column legacy_id" not in third


def test_boxes_that_are_not_ticked_are_open() -> None:
    summary = summary_of(user("- [x] design the index\n- [ ] load test with 500 clients"))
    assert section(summary, "Task Status") == ["Still open:", "- load test with 500 clients"]


def test_an_announced_task_that_is_not_mentioned_again_stays_open() -> None:
    first = summary_of(
        user("Prepare the release."),
        said("The changelog is written. Next I'll translate the onboarding emails into Dutch."),
    )
    later = [user("First look at this crash."), said("The crash came from a null pointer.")]
    second = extractive_summary(after(first, later), Summary())
    assert any("onboarding emails into Dutch" in line for line in section(second, "Task Status"))


def test_a_short_answer_is_kept_with_its_question() -> None:
    summary = summary_of(
        user("Set up the queue."),
        said("Two ways:\nA) RabbitMQ with quorum queues\nB) Redis streams\nWhich one shall it be?"),
        user("B"),
    )
    goals = section(summary, "Goals & Decisions")
    answer = goals[goals.index("- B") + 1]
    assert "Which one shall it be?" in answer
    assert "Redis streams" in answer
    assert "RabbitMQ" not in answer


def test_a_list_keeps_the_line_that_leads_to_it() -> None:
    summary = summary_of(user("Leave these alone:\n- vendor/zlib\n- tools/gen.py\nThanks"))
    assert "- Leave these alone: vendor/zlib; tools/gen.py" in summary


@pytest.mark.parametrize(
    "text",
    [
        "<command-output>must never be kept: 4711</command-output>",
        "[Request interrupted by user]",
    ],
)
def test_text_that_a_program_wrote_for_the_user_is_not_a_user_order(text: str) -> None:
    summary = summary_of(user("Fix the lexer."), said("Done."), user(text))
    told, *_ = summary.partition("Agent:")[0].partition("Pasted")
    assert "Fix the lexer." in told
    assert "4711" not in told
    assert "interrupted" not in told


def test_an_order_in_an_element_that_the_user_named_is_theirs() -> None:
    summary = summary_of(
        user("<rules>\nDeploy on Tuesdays only.\n</rules>\n<task>\nShip it.\n</task>")
    )
    assert "- Deploy on Tuesdays only." in section(summary, "Goals & Decisions")


def test_orders_in_a_language_without_a_table_are_kept() -> None:
    orders = ("Älä koskaan poista varmuuskopioita.", "Käytä porttia 9200.", "ห้ามลบไฟล์สำรอง")
    summary = summary_of(*(user(order) for order in orders))
    assert [order for order in orders if order not in summary] == []


def test_thinking_is_not_a_statement() -> None:
    thought = {"type": "thinking", "thinking": "The key is 123-456, decided.", "signature": "x"}
    message = {"role": "assistant", "content": [thought, {"type": "text", "text": "Ready."}]}
    assert "123-456" not in summary_of(user("Go."), message)


def test_a_sentence_of_the_agent_stands_with_the_one_that_it_depends_on() -> None:
    words = "I chose RabbitMQ for the jobs. This is because Redis loses them. I look at it now."
    lines = summary_of(user("Set up the queue."), said(words)).split("\n")
    assert "- I chose RabbitMQ for the jobs. This is because Redis loses them." in lines


def test_a_cause_that_the_agent_found_is_kept_before_its_talk() -> None:
    talk = [f"I see what part {name} does with the jobs of the night." for name in "abcdefgh"]
    found = "The cause is a lock that nobody releases."
    messages = [user("Why does it hang?"), said(f"{found} {' '.join(talk)}"), user("Go on.")]
    summary = summary_of(*messages, call("c1", "look", {}), results(("c1", "ok")), max_words=40)
    assert f"- {found}" in summary
    assert talk[0] not in summary
