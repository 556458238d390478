"""A request that is larger than the window: the warning, and what the presets do."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from policyctx import Request, Session
from policyctx.turns.reporting import fullness_ahead
from tests.conversations import (
    Message,
    call,
    calls,
    chat_calls,
    chat_result,
    results,
    session_of,
    user,
)
from tests.policies import policy

LARGE = "".join(f"line {i} of a log\n" for i in range(60_000))  # about 300,000 tokens
QUIET = """\
    model: {tokenizer: approximate}
    steps: [{name: retire, do: offload, select: {keep_recent: 3}}]
    """


def session(root: Path, by: Any = None) -> Session:
    return Session(policy(QUIET) if by is None else by, root=root, session_id="s")


def test_a_newest_result_larger_than_the_window_gives_one_warning(tmp_path: Path) -> None:
    running, messages = session(tmp_path), session_of(LARGE)
    (warning,) = running.apply(messages).warnings
    assert "more than the context window of 200,000" in warning
    assert "tool_result c0 Bash in message 2" in warning
    assert "{on: arrival, do: offload, select: {types: [tool_result]}}" in warning
    assert running.apply([*messages, user("go on")]).warnings == ()


def test_the_step_that_the_warning_names_takes_the_result(tmp_path: Path) -> None:
    named = policy(
        """\
        model: {tokenizer: approximate}
        items: {tool_result: {offload: true}}
        steps: [{name: arrived, on: arrival, do: offload, select: {types: [tool_result]}}]
        """
    )
    result = session(tmp_path, named).apply(session_of(LARGE))
    assert result.warnings == ()
    assert result.offloaded_count == 1


ON_ARRIVAL = "steps: [{name: a, on: arrival, do: offload, select: {types: [tool_result]}}]"


@pytest.mark.parametrize("steps", [ON_ARRIVAL, "steps: []"])
@pytest.mark.parametrize(
    "shown", ["head: {lines: 20}", "tail: {lines: 1}", "head: {chars: 2000000}"]
)
def test_a_step_is_not_named_whose_placeholder_would_be_no_shorter(
    shown: str, steps: str, tmp_path: Path
) -> None:
    key = shown.partition(":")[0]
    placeholder = f"placeholder: {{text: '{{path}} {{{key}}}', LIMIT{shown}}}"
    rules = f"items: {{tool_result: {{offload: true}}}}\n{placeholder}\n{steps}\n"
    messages = session_of("x y z " * 200_000)
    by = policy(rules.replace("LIMIT", ""))
    (warning,) = session(tmp_path / "a", by).apply(messages).warnings
    assert "its placeholder would be no shorter" in warning
    assert "do: offload" not in warning
    if "lines" in shown:  # what the warning advises helps
        limited = rules.replace("LIMIT", "max_line_chars: 200, ").replace("steps: []", ON_ARRIVAL)
        assert session(tmp_path / "b", policy(limited)).apply(messages).warnings == ()


ONE_CALL = call("c0", "Write", {"content": LARGE})
READ_BACK = call("c0", "read_offloaded", {"path": "a.md"})
THINKING = {"type": "thinking", "thinking": LARGE, "signature": "s"}
TOOL_USE = {"type": "tool_use", "id": "c0", "name": "Bash", "input": {}}
DOCUMENT = {"type": "text", "media_type": "text/plain", "data": LARGE}
ATTACHED = {"role": "user", "content": [{"type": "document", "source": DOCUMENT}]}


@pytest.mark.parametrize(
    "messages",
    [
        session_of(LARGE),
        [user(), ONE_CALL, results(("c0", "done"))],
        [user(), READ_BACK, results(("c0", LARGE))],
        [user(LARGE), {"role": "assistant", "content": "?"}, user()],
        [user(), {"role": "assistant", "content": LARGE}, user()],
        [ATTACHED],
    ],
    ids=["result", "call", "read back", "older user message", "reply", "document"],
)
def test_what_the_warning_advises_helps(messages: list[Message], tmp_path: Path) -> None:
    model = "model: {tokenizer: approximate}\n"
    (warning,) = session(tmp_path / "a", policy(model)).apply(messages).warnings
    found = re.search("with `(items: .*)`, the step `{(.*)}` takes it", warning)
    assert found
    advised = policy(f"{model}{found[1]}\nsteps: [{{name: advised, {found[2]}}}]")
    running = session(tmp_path / "b", advised)
    for end in range(1, len(messages) + 1):
        running.apply(messages[:end])
    assert not fullness_ahead(running.plan(messages))


NEWEST_CALL = [user(), ONE_CALL, results(("c0", "done"))]


@pytest.mark.parametrize(
    "messages",
    [NEWEST_CALL, [user(LARGE), {"role": "assistant", "content": "?"}, user()], [ATTACHED]],
    ids=["call", "older user message", "document"],
)
@pytest.mark.parametrize(
    "rules",
    [
        'tools: {"*": {keep_recent: 1}}',
        "tools: {Write: {keep_recent: {turns: 3}}}",
        "items: {tool_call: {keep_recent: 2}, user_message: {keep_recent: 2}}",
        "items: {document: {keep_recent: 2}}",
    ],
)
def test_what_the_warning_advises_helps_where_a_rule_keeps_the_newest(
    messages: list[Message], rules: str, tmp_path: Path
) -> None:
    given = f"model: {{tokenizer: approximate}}\n{rules}\n"
    (warning,) = session(tmp_path / "a", policy(given)).apply(messages).warnings
    found = re.search("with `items: {([a-z_]+): .*`, the step `{(.*)}` takes it", warning)
    assert found
    advised = f"{given}steps: [{{name: advised, {found[2]}}}]\n"
    if f"{found[1]}: {{keep" in rules:
        advised = advised.replace(f"{found[1]}: {{keep", f"{found[1]}: {{offload: true, keep")
    elif rules.startswith("items"):
        advised = advised.replace("items: {", f"items: {{{found[1]}: {{offload: true}}, ")
    else:
        advised += f"items: {{{found[1]}: {{offload: true}}}}\n"
    assert session(tmp_path / "b", policy(advised)).apply(messages).warnings == ()


@pytest.mark.parametrize("messages", [NEWEST_CALL, session_of(LARGE)], ids=["call", "result"])
@pytest.mark.parametrize("on", ["", "on: overflow, "])
def test_the_warning_names_the_compaction_before_which_the_step_has_its_place(
    messages: list[Message], on: str, tmp_path: Path
) -> None:
    model = "model: {tokenizer: approximate}\n"
    last = f"{{name: summarise, {on}do: compact, when: {{turns: {{over: 9}}}}}}"
    (warning,) = session(tmp_path, policy(f"{model}steps: [{last}]")).apply(messages).warnings
    found = re.search(
        "with `(items: .*)`, the step `({.*)}` takes it, written before 'summarise'$", warning
    )
    assert found
    advised = policy(f"{model}{found[1]}\nsteps: [{found[2]}, name: advised}}, {last}]")
    assert session(tmp_path / "b", advised).apply(messages).warnings == ()


@pytest.mark.parametrize(
    "given",
    [
        {"rows": [*range(2_000)]},
        {"edits": [{"old": f"{i}", "new": "x"} for i in range(600)]},
        {LARGE: 1},
    ],
    ids=["numbers", "short strings", "a key"],
)
@pytest.mark.parametrize("rules", ["", 'tools: {"*": {keep_recent: 1}}'])
def test_a_drop_is_advised_for_a_call_without_a_long_string(
    given: dict[str, Any], rules: str, tmp_path: Path
) -> None:
    messages = [user(), call("c0", "Write", given), results(("c0", "done"))]
    named = f"model: {{tokenizer: approximate, context_window: 2000}}\n{rules}\n"
    (warning,) = session(tmp_path / "a", policy(named)).apply(messages).warnings
    assert "no string in its input is longer than its placeholder" in warning
    found = re.search("such as the step `{(.*)}`", warning)
    assert found
    advised = policy(f"{named}steps: [{{name: advised, {found[1]}}}]")
    assert session(tmp_path / "b", advised).apply(messages).warnings == ()


def test_the_drop_that_the_warning_names_takes_a_screenshot(tmp_path: Path) -> None:
    image = {"type": "computer_screenshot", "image_url": f"data:image/png;base64,{LARGE}"}
    messages: list[Message] = [
        user(),
        {"type": "computer_call", "call_id": "a", "action": {"type": "screenshot"}},
        {"type": "computer_call_output", "call_id": "a", "output": image},
    ]
    model = "model: {tokenizer: approximate, context_window: 200}\n"
    (warning,) = session(tmp_path / "a", policy(model)).apply(messages).warnings
    assert "only a compaction takes it" in warning
    found = re.search("such as the step `{(.*)}`", warning)
    assert found
    advised = policy(f"{model}steps: [{{name: advised, {found[1]}}}]")
    result = session(tmp_path / "b", advised).apply(messages)
    assert result.warnings == ()
    assert result.messages == messages[:1]


FULL = """\
    model: {tokenizer: approximate, context_window: 1000}
    steps: [{name: summarise, do: compact, when: {tokens: {over: 50%}}}]
    """


@pytest.mark.parametrize("end", [[], [{"role": "assistant", "content": "?"}, user()]])
def test_a_summary_that_stays_is_made_shorter_by_the_setting_that_the_warning_names(
    end: list[Message], tmp_path: Path
) -> None:
    messages = [user(), {"role": "assistant", "content": LARGE[:20_000]}, user(), *end]
    (warning,) = session(tmp_path / "a", policy(FULL)).apply(messages).warnings
    assert "the largest item that stays is compaction_summary" in warning
    setting = "`compaction.summary.max_tokens`"
    advice = f"the summary stays until the next compaction; ask for a shorter one with {setting}"
    assert warning.endswith(advice)
    shorter = policy(f"{FULL}compaction: {{summary: {{max_tokens: 300}}}}\n")
    result = session(tmp_path / "b", shorter).apply(messages)
    assert result.compacted
    assert result.warnings == ()


@pytest.mark.parametrize("step", ["drop", "compact"])
def test_what_the_warning_advises_against_thinking_helps(step: str, tmp_path: Path) -> None:
    messages = [user(), {"role": "assistant", "content": [THINKING]}, user()]
    (warning,) = session(tmp_path / "a").apply(messages).warnings
    found = re.search(
        "only a compaction takes it, or, once its turn is over, the step `{(.*)}`", warning
    )
    assert found
    advised = found[1] if step == "drop" else "do: compact, when: {tokens: {over: 50%}}"
    named = policy(f"model: {{tokenizer: approximate}}\nsteps: [{{name: advised, {advised}}}]")
    assert session(tmp_path / "b", named).apply(messages).warnings == ()


@pytest.mark.parametrize("calls_made", [1, 3])
def test_a_drop_takes_a_screenshot_of_the_current_turn_with_its_reasoning(
    calls_made: int, tmp_path: Path
) -> None:
    picture = {"type": "computer_screenshot", "image_url": "data:image/png;base64,iVBORw0KGgo="}
    messages: list[Message] = [user()]
    for i in range(calls_made + 1):
        messages += [
            {"type": "reasoning", "id": f"r{i}", "summary": [], "encrypted_content": "gAAA"},
            {"type": "computer_call", "call_id": f"c{i}", "action": {"type": "screenshot"}},
            {"type": "computer_call_output", "call_id": f"c{i}", "output": picture},
        ]
    named = policy("steps: [{name: s, do: drop, select: {types: [tool_result], keep_recent: 1}}]")
    assert session(tmp_path, named).apply(messages).messages == [messages[0], *messages[-3:]]


@pytest.mark.parametrize(
    "rule", ["pin: true", "offload: false", "min_tokens: 900000", "min_chars: 9000000"]
)
def test_no_step_is_named_where_a_rule_of_the_tool_keeps_the_result(
    rule: str, tmp_path: Path
) -> None:
    ruled = policy(f"{QUIET}tools: {{Bash: {{{rule}}}}}\n")
    (warning,) = session(tmp_path, ruled).apply(session_of(LARGE)).warnings
    assert warning.endswith(f"; `tools.Bash.{rule.partition(':')[0]}` of the policy keeps it")


@pytest.mark.parametrize(
    "further",
    [
        [{"role": "assistant", "content": "?"}, user(LARGE + "again")],
        [call("c1", "Bash", {}), results(("c1", LARGE + "again"))],
        [calls(("c1", "Bash"), ("c2", "Bash")), results(("c1", LARGE[:600_000]), ("c2", LARGE))],
        [call("c1", "Write", {"content": LARGE}), results(("c1", "done"))],
        [{"role": "assistant", "content": LARGE}, user()],
        [{"role": "assistant", "content": "?"}, ATTACHED],
    ],
    ids=["user message", "result", "parallel results", "call", "reply", "document"],
)
@pytest.mark.parametrize("first", [[user(LARGE)], session_of(LARGE)], ids=["user", "result"])
@pytest.mark.parametrize("state", ["", "store: {state: none}"])
def test_each_message_larger_than_the_window_gives_one_warning(
    first: list[Message], further: list[Message], state: str, tmp_path: Path
) -> None:
    running = session(tmp_path, policy(f"{QUIET}{state}\n"))
    second = [*first, *further]
    third = [*second, {"role": "assistant", "content": "?"}, user("a small one")]
    given = [len(running.apply(turn).warnings) for turn in (first, first, second, second, third)]
    assert given == [1, 0, 1, 0, 0]


def test_a_session_without_state_warns_once_too(tmp_path: Path) -> None:
    running = session(tmp_path, policy(f"{QUIET}store: {{state: none}}\n"))
    messages = session_of(LARGE)
    assert running.apply(messages).warnings
    assert not running.apply([*messages, user("go on")]).warnings


def test_the_warning_comes_again_after_a_request_that_fitted(tmp_path: Path) -> None:
    running = session(tmp_path)
    assert running.apply(session_of(LARGE)).warnings
    assert not running.apply(session_of("short")).warnings
    assert running.apply([user(LARGE)]).warnings


@pytest.mark.parametrize(
    ("messages", "named"),
    [
        ([user(LARGE)], "no step takes the newest user message"),
        (
            [{"role": "system", "content": LARGE}, user()],
            "the system prompt stays; write a shorter one",
        ),
        ([user(LARGE), {"role": "assistant", "content": "?"}, user()], "user_message msg_001"),
        (
            [user(), calls(("a", "Read"), ("b", "Read")), results(("a", LARGE), ("b", LARGE))],
            "tool_result a Read",
        ),
        (
            [user(), {"role": "assistant", "content": [THINKING, TOOL_USE]}, results(("c0", "ok"))],
            "tokens; the bytes of thinking are signed",
        ),
        (
            [user(), {"role": "assistant", "content": [{"type": "odd", "odd": LARGE}]}, user()],
            "tokens; a block of a kind not known here stays; only a compaction takes it",
        ),
    ],
)
def test_the_largest_item_that_stays_is_named(
    messages: list[Message], named: str, tmp_path: Path
) -> None:
    (warning,) = session(tmp_path).apply(messages).warnings
    assert named in warning


@pytest.mark.parametrize(
    "beside",
    [
        {"system": LARGE},
        {"system": [{"type": "text", "text": LARGE}]},
        {"tools": [{"name": "query", "description": LARGE, "input_schema": {}}]},
    ],
    ids=["system", "system in blocks", "tools"],
)
def test_a_system_prompt_larger_than_the_window_gives_a_warning(
    beside: dict[str, Any], tmp_path: Path
) -> None:
    (warning,) = session(tmp_path).apply([user()], **beside).warnings
    assert "the system prompt and the tool schemas have" in warning


@pytest.mark.parametrize("shown", [1000, 20_000])
def test_a_list_that_its_placeholders_fill_is_not_blamed_on_an_item(
    shown: int, tmp_path: Path
) -> None:
    text = f"""\
    model: {{tokenizer: approximate, context_window: 1500}}
    items: {{tool_result: {{offload: true}}}}
    placeholder: {{text: "{{head}}", head: {{chars: {shown}}}}}
    steps: [{{name: retire, do: offload}}]
    """
    messages = [user(), calls(*[(f"c{i}", "Bash") for i in range(8)])]
    messages.append(results(*[(f"c{i}", LARGE[:30_000]) for i in range(8)]))
    running = session(tmp_path, policy(text))
    (warning,) = running.apply(messages).warnings
    assert "the placeholders of 8 items have" in warning
    assert "user_message" not in warning
    assert fullness_ahead(session(tmp_path / "b", policy(text)).plan(messages)) == warning


def test_a_list_of_many_small_items_is_not_blamed_on_one_of_them(tmp_path: Path) -> None:
    text = """\
    model: {tokenizer: approximate, context_window: 500}
    items: {assistant_message: {offload: true}}
    min_chars: 1000
    steps: [{name: retire, do: offload}]
    """
    messages = [
        one
        for i in range(60)
        for one in (user(f"question {i}"), {"role": "assistant", "content": f"reply {i}"})
    ]
    (warning,) = session(tmp_path, policy(text)).apply([*messages, user()] * 3).warnings
    assert "a drop or a compaction takes many small ones" in warning
    assert "min_chars" not in warning


def test_a_drop_takes_many_small_results(tmp_path: Path) -> None:
    """As the warning says; before, it said that only a compaction takes them."""
    text = """\
    model: {{tokenizer: approximate, context_window: 2000}}
    items: {{tool_result: {{offload: true}}}}
    min_tokens: 200
    steps: [{{name: one, do: {action}, select: {{types: [tool_result], keep_recent: 0}}}}]
    """
    ids = [f"c{i}" for i in range(100)]
    messages = [user(), calls(*[(one, "Bash") for one in ids])]
    messages.append(results(*[(one, LARGE[:400]) for one in ids]))
    (warning,) = session(tmp_path, policy(text.format(action="offload"))).apply(messages).warnings
    assert "a drop or a compaction takes many small ones" in warning
    result = session(tmp_path / "b", policy(text.format(action="drop"))).apply(messages)
    assert result.warnings == ()
    assert result.plan.tokens_after < 2000


def test_a_plan_gives_the_same_warning(tmp_path: Path) -> None:
    messages = session_of(LARGE)
    planned = session(tmp_path / "a").plan(messages)
    assert (fullness_ahead(planned),) == session(tmp_path / "b").apply(messages).warnings


def test_the_window_is_that_of_the_called_model(tmp_path: Path) -> None:
    running = session(tmp_path)
    called = Request(model="gpt-4.1")
    assert running.apply(session_of(LARGE), request=called).warnings == ()


PRESETS = pytest.mark.parametrize("name", ["coding-agent", "small-context", "few-re-reads"])


@PRESETS
@pytest.mark.parametrize("parallel", [1, 3, 100])
def test_presets_offload_newest_results_that_cannot_fit(
    name: str, parallel: int, tmp_path: Path
) -> None:
    ids = [f"c{i}" for i in range(parallel)]
    one = "first\n" + LARGE[: 2 * len(LARGE) // (parallel + 1)] + "\nlast"
    messages = [
        user("read"),
        calls(*((i, "Read") for i in ids)),
        results(*((i, one) for i in ids)),
    ]
    running = session(tmp_path, name)
    result = running.apply(messages)
    assert result.warnings == ()
    assert result.messages[:2] == messages[:2]
    shown = [block["content"] for block in result.messages[2]["content"]]
    placeholders = [text for text in shown if text != one]
    assert len(placeholders) == result.offloaded_count >= 1
    for text in placeholders:
        assert text.startswith("[Too large for the context: Read result, ")
        assert "first\nline 0 of a log\n" in text
        assert text.endswith("\nlast")
        assert len(text) < 1900
    assert [Path(file).read_text("utf-8") for file in result.files] == [one] * len(placeholders)


@PRESETS
@pytest.mark.parametrize("tool", ["Read", "read_offloaded", "search_offloaded", "Bash"])
def test_presets_offload_what_was_read_back_and_cannot_fit(
    name: str, tool: str, tmp_path: Path
) -> None:
    running, messages = session(tmp_path, name), session_of(LARGE)
    (file,) = running.apply(messages).files
    asked, found = {"path": str(file)}, LARGE
    if tool == "search_offloaded":
        asked = {"query": "log"}
        found = "\n".join(f"{file}:{i}: {line}" for i, line in enumerate(LARGE.split("\n"), 1))
    for again in ("r1", "r2"):
        messages += [call(again, tool, asked), results((again, found))]
        result = running.apply(messages)
        assert result.warnings == ()
        assert (result.offloaded_count, len(result.files)) == (0, 0)
        shown = result.messages[-1]["content"][0]["content"]
        if tool == "search_offloaded":
            assert shown.startswith("[Old tool result cleared; make the call again")
        else:
            assert shown.startswith(f"[Too large for the context: {tool} result, ")
            assert f"\nPath: {file}\n" in shown
    assert len(list(tmp_path.rglob("*.md"))) == 1


@PRESETS
def test_a_rule_of_a_tool_keeps_no_result_that_cannot_fit(name: str, tmp_path: Path) -> None:
    own = policy(f"extends: {name}\ntools: {{Bash: {{keep_recent: 3}}}}\n")
    result = session(tmp_path, own).apply(session_of(LARGE))
    assert (result.warnings, result.offloaded_count) == ((), 1)


@PRESETS
def test_presets_leave_a_large_result_that_fits(name: str, tmp_path: Path) -> None:
    messages = session_of(LARGE[: len(LARGE) // 3])
    assert session(tmp_path, name).apply(messages).offloaded_count == 0


@PRESETS
def test_a_result_of_one_line_is_shown_by_its_head_and_tail(name: str, tmp_path: Path) -> None:
    text = json.dumps({"rows": [*range(300_000)], "total": "the end"})
    shown = session(tmp_path, name).apply(session_of(text)).messages[2]["content"][0]["content"]
    assert '{"rows": [0, 1, 2, ' in shown
    assert shown.endswith('"total": "the end"}')


@PRESETS
@pytest.mark.parametrize(
    "messages",
    [
        [user(), chat_calls(("a", "Read", "{}")), chat_result("a", LARGE)],
        [
            user(),
            {"type": "function_call", "call_id": "a", "name": "Read", "arguments": "{}"},
            {"type": "function_call_output", "call_id": "a", "output": LARGE},
        ],
    ],
    ids=["chat", "responses"],
)
def test_presets_do_so_in_every_shape(name: str, messages: list[Message], tmp_path: Path) -> None:
    result = session(tmp_path, name).apply(messages)
    assert (result.warnings, result.offloaded_count) == ((), 1)
    shown = json.dumps(result.messages[2])
    assert "line 0 of a log" in shown
    assert "line 59999 of a log" in shown


@PRESETS
def test_the_window_of_the_called_model_decides_what_cannot_fit(name: str, tmp_path: Path) -> None:
    messages = session_of(LARGE[: len(LARGE) // 3])
    running = session(tmp_path, name)
    result = running.apply(messages, request=Request(model="gpt-4o"))  # 128,000 tokens
    assert (result.warnings, result.offloaded_count) == ((), 1)


@PRESETS
def test_what_could_not_fit_stays_out_after_a_restart(name: str, tmp_path: Path) -> None:
    messages = session_of(LARGE)
    sent = session(tmp_path, name).apply(messages).messages
    later = [*messages, {"role": "assistant", "content": "done"}, user()]
    result = session(tmp_path, name).apply(later)
    assert result.messages[: len(sent)] == sent
    assert result.warnings == ()


def test_a_result_that_stays_is_explained_by_the_step_that_says_why(tmp_path: Path) -> None:
    planned = session(tmp_path, "coding-agent").plan(session_of("x " * 3000))
    (decision,) = (d for d in planned.decisions if d.item.type == "tool_result")
    assert (decision.step, decision.reason.code) == ("retire-old-results", "recent")


def test_of_closed_gates_the_first_explains_why_an_item_stays(tmp_path: Path) -> None:
    planned = session(tmp_path, "coding-agent").plan(session_of(*["x " * 3000] * 5))
    oldest = next(d for d in planned.decisions if d.item.type == "tool_result")
    assert (oldest.step, oldest.reason.code) == ("retire-old-results", "gate_closed")


@PRESETS
def test_no_compaction_is_made_beside_a_user_message_that_cannot_fit(
    name: str, tmp_path: Path
) -> None:
    messages = [user(), {"role": "assistant", "content": "What is in it?"}, user(LARGE)]
    running = session(tmp_path, name)
    planned = running.plan(messages)
    assert planned.compaction is None
    assert planned.outcomes[-1].stopped is not None
    assert planned.outcomes[-1].stopped.code == "stays_too_large"
    result = running.apply(messages)
    assert result.messages[:2] == messages[:2]
    assert len(result.warnings) == 1


def test_a_compaction_is_made_where_most_of_the_list_can_be_replaced(tmp_path: Path) -> None:
    messages = [user(LARGE), {"role": "assistant", "content": "Done."}, user(LARGE[:-100_000])]
    assert session(tmp_path, "coding-agent").plan(messages).compaction is not None


SUMMARY = """\
    model: {{tokenizer: approximate}}
    compaction: {{summary: {{{summary}}}}}
    steps: [{{name: summarise, do: compact, when: {{tokens: {{over: 900000}}}}}}]
    """


@pytest.mark.parametrize(
    ("summary", "warned"),
    [
        ("by: openai, model: unheard-of", "128,000"),
        ("by: anthropic, model: unheard-of", "200,000"),
        ("by: openai, model: unheard-of, max_input: 150000", "128,000"),
        ("by: openai, model: unheard-of, max_input: 100000", ""),
        ("by: openai, model: gpt-5.5", ""),
        ("by: anthropic, model: claude-unheard-of", ""),
        ("by: extractive", ""),
    ],
)
def test_the_model_of_a_summary_whose_window_is_not_known_gives_one_warning(
    tmp_path: Path, summary: str, warned: str
) -> None:
    running, messages = (
        session(tmp_path, policy(SUMMARY.format(summary=summary))),
        session_of("short"),
    )
    warnings = running.apply(messages).warnings
    assert warnings == (
        (
            f"the context window of summary.model 'unheard-of' is not known: {warned} tokens are"
            " assumed; write summary.max_input in tokens",
        )
        if warned
        else ()
    )
    assert running.apply([*messages, user("go on")], request=NAMED).warnings == ()


SHARES = """\
    model: {tokenizer: approximate}
    steps: [{name: retire, do: offload, when: {tokens: {over: 80%}}, select: {keep_recent: 3}}]
    """
NAMED = Request(model="unheard-of")


def test_a_model_of_an_unknown_window_gives_one_warning_if_a_limit_is_a_share(
    tmp_path: Path,
) -> None:
    running, messages = session(tmp_path, policy(SHARES)), session_of("short")
    (warning,) = running.apply(messages, request=NAMED).warnings
    assert warning == (
        "the context window of the model 'unheard-of' is not known: 200,000 tokens are assumed;"
        " write model.context_window in the policy"
    )
    assert running.apply([*messages, user("go on")], request=NAMED).warnings == ()


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        pytest.param(SHARES, Request(), id="no-model-is-named"),
        pytest.param(SHARES, Request(model="claude-opus-4-8"), id="known"),
        pytest.param(SHARES, Request(model="unheard-of", window=9_000), id="the-call-says-it"),
        pytest.param(
            SHARES.replace("{tokenizer", "{context_window: 9000, tokenizer"), NAMED, id="written"
        ),
        pytest.param(QUIET, NAMED, id="no-share"),
        pytest.param(
            SHARES.replace("{tokens: {over: 80%}}", "{pays_back: {at_most: 25%}}"),
            NAMED,
            id="a-share-of-the-calls",
        ),
    ],
)
def test_no_window_that_is_told_or_not_asked_for_gives_a_warning(
    text: str, request_: Request, tmp_path: Path
) -> None:
    running = session(tmp_path, policy(text))
    assert running.apply(session_of("short"), request=request_).warnings == ()


def test_the_model_that_the_policy_names_is_one_of_them(tmp_path: Path) -> None:
    named = policy(SHARES.replace("{tokenizer", "{name: unheard-of, tokenizer"))
    (warning,) = session(tmp_path, named).apply(session_of("short")).warnings
    assert "'unheard-of'" in warning
