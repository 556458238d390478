"""A step with `placeholders: true` replaces a placeholder by a smaller one for the same file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from policyctx import Session
from policyctx.definitions.items import Message
from policyctx.messages.reading import items_of
from policyctx.messages.validity import new_problems
from policyctx.planning.compiled import OffloadPolicy
from policyctx.planning.plan import step_reports
from policyctx.replay.simulation import simulated
from policyctx.store.filesystem import ContextFileSystem
from policyctx.store.restoring import restorer
from tests.conversations import call, calls, chat_calls, chat_result, picture, results, user
from tests.planning.plans import adopt, planner
from tests.policies import policy
from tests.replay.sessions import turn_by_turn

TEXT = "".join(f"line {i} of the output\n" for i in range(200))
SHOWN = '{text: "{head}\\nWhole: {path}", head: {lines: 20}}'
POLICY = f"""
store: {{sync: never}}
items: {{tool_result: {{offload: true}}, image: {{offload: true}}}}
steps:
  - {{name: preview, WHEN do: offload, placeholder: {SHOWN}}}
  - {{name: path, do: offload, placeholder: "In {{path}}",
      select: {{placeholders: true, keep_recent: {{items: 1, per: all}}}}}}
"""
ARRIVING = POLICY.replace("WHEN", "on: arrival,")
BEFORE_CALLS = POLICY.replace("WHEN", "")


def anthropic(*ids: str) -> list[Message]:
    pairs = [(calls((i, "Bash")), results((i, f"{i}\n{TEXT}"))) for i in ids]
    return [user("the task"), *(message for pair in pairs for message in pair)]


def chat(*ids: str) -> list[Message]:
    pairs = [(chat_calls((i, "Bash", "{}")), chat_result(i, f"{i}\n{TEXT}")) for i in ids]
    return [user("the task"), *(message for pair in pairs for message in pair)]


def responses(*ids: str) -> list[Message]:
    pairs = [
        (
            {"type": "function_call", "call_id": i, "name": "Bash", "arguments": "{}"},
            {"type": "function_call_output", "call_id": i, "output": f"{i}\n{TEXT}"},
        )
        for i in ids
    ]
    return [user("the task"), *(message for pair in pairs for message in pair)]


def google(*ids: str) -> list[Message]:
    named = [{"name": "Bash", "id": i} for i in ids]
    pairs = [
        (
            {"role": "model", "parts": [{"functionCall": {**one, "args": {}}}]},
            {
                "role": "user",
                "parts": [
                    {"functionResponse": {**one, "response": {"output": f"{one['id']}\n{TEXT}"}}}
                ],
            },
        )
        for one in named
    ]
    return [
        {"role": "user", "parts": [{"text": "the task"}]},
        *(message for pair in pairs for message in pair),
    ]


SHAPES = [anthropic, chat, responses, google]


def texts(messages: Sequence[Message]) -> list[str]:
    """Return the texts of the results."""
    return [item.text for item in items_of(messages) if item.kind == "tool_result"]


def session(root: Path, under: OffloadPolicy) -> Session:
    return Session(under, root=root, session_id="s")


@pytest.mark.parametrize("written", [ARRIVING, BEFORE_CALLS])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["kept", "returned"])
@pytest.mark.parametrize("restarts", [False, True])
def test_a_preview_becomes_the_bare_path_of_its_file(
    shape: Callable[..., list[Message]], form: str, restarts: bool, written: str, tmp_path: Path
) -> None:
    under = policy(written)
    full = shape("a", "b", "c")
    one = session(tmp_path, under)
    sent: Sequence[Message] = one.apply(full[:3]).messages
    for end in (5, 7):
        if restarts:
            one = session(tmp_path, under)
        given = full[:end] if form == "kept" else [*sent, *full[end - 2 : end]]
        result = one.apply(given)
        assert new_problems(given, result.messages) == []
        sent = result.messages
    root = tmp_path
    first, second, third = texts(sent)
    assert [first, second] == [f"In {root}/tool_result/Bash/{i}.md" for i in "ab"]
    assert third.startswith("c\nline 0")
    assert third.endswith(f"Whole: {root}/tool_result/Bash/c.md")
    assert sorted(p.name for p in (root / "tool_result/Bash").iterdir()) == ["a.md", "b.md", "c.md"]
    assert one.read("a") == texts(full)[0]
    # Each form of the list, mixed and after a restart, shows the newest text.
    again = session(tmp_path, under)
    for other in (full, sent, [*full[:3], *sent[3:]], [*sent[:3], *full[3:]]):
        assert texts(again.apply(other).messages) == [first, second, third]


def test_an_older_placeholder_in_a_list_is_replaced_by_the_newer_one(tmp_path: Path) -> None:
    one, full = session(tmp_path, policy(BEFORE_CALLS)), anthropic("a", "b")
    preview = one.apply(full[:3]).messages
    newer = one.apply(full).messages
    again = session(tmp_path, policy(BEFORE_CALLS))
    assert again.apply([*preview, *full[3:]]).messages == newer


def test_a_plan_that_replaces_writes_no_file_and_changes_no_other_message(tmp_path: Path) -> None:
    one, full = session(tmp_path, policy(BEFORE_CALLS)), anthropic("a", "b", "c")
    before = one.apply(full[:5]).messages
    result = one.apply(full)
    assert [(d.item.item_id, d.step) for d in result.plan.new] == [("b", "path"), ("c", "preview")]
    assert [d.item.item_id for d in result.plan.to_save] == ["c"]
    assert result.messages[:4] == before[:4]
    assert result.messages[4] != before[4]


def test_both_steps_of_one_turn_save_the_item_once(tmp_path: Path) -> None:
    result = session(tmp_path, policy(BEFORE_CALLS)).apply(anthropic("a", "b"))
    assert [(d.step, d.saves) for d in result.plan.new] == [("path", True), ("preview", True)]
    assert (tmp_path / "tool_result/Bash/a.md").read_text(encoding="utf-8") == f"a\n{TEXT}"
    assert str(result.plan.verdicts(2)[0].reason).startswith("selected")


def test_the_size_of_the_placeholder_is_compared_with_the_threshold() -> None:
    text = BEFORE_CALLS.replace("placeholders: true", "placeholders: true, min_chars: 900")
    found = planner(text, anthropic("a", "b"))
    adopt(found)
    plan = found.plan(found.conversation.facts)
    assert plan.new == ()
    [_, verdict] = plan.verdicts(2)
    assert verdict.reason.code == "below_threshold"
    assert verdict.reason.values["threshold"] == 900
    assert int(verdict.reason.values["size"]) < 900


def test_a_placeholder_that_would_not_be_smaller_stays() -> None:
    longer = BEFORE_CALLS.replace('"In {path}"', '"In {path}. ' + "Longer. " * 90 + '"')
    found = planner(longer, anthropic("a", "b"))
    assert [d.step for d in adopt(found).new] == ["preview", "preview"]
    plan = found.plan(found.conversation.facts)
    assert (plan.new, plan.verdicts(2)[1].reason.code) == ((), "would_not_shrink")
    assert plan.verdicts(4)[1].reason.code == "recent"


def test_the_tokens_that_are_freed_are_those_between_the_two_placeholders() -> None:
    gate = "when: {frees: {at_least: LEAST}}, select: {placeholders: true"
    for least, taken in ((60, ["preview", "path"]), (2_000, ["preview", "preview"])):
        text = BEFORE_CALLS.replace(
            "select: {placeholders: true", gate.replace("LEAST", str(least))
        )
        found = planner(text, anthropic("a", "b"))
        adopt(found)
        plan = adopt(found)
        steps = {i: fate.step for i, fate in found.conversation.fates.items()}
        assert sorted(steps.values()) == sorted(taken), (least, [str(g) for g in plan.gates])


def test_other_steps_leave_placeholders_alone() -> None:
    found = planner(BEFORE_CALLS.replace("placeholders: true, ", ""), anthropic("a", "b"))
    adopt(found)
    plan = found.plan(found.conversation.facts)
    assert (plan.new, plan.verdicts(2)[1].reason.code) == ((), "decided")


def test_what_was_cleared_has_no_file_and_stays() -> None:
    text = "This old result was cleared; call the tool once more to see it"
    cleared = BEFORE_CALLS.replace(
        f"do: offload, placeholder: {SHOWN}", f"do: clear, placeholder: '{text}'"
    )
    found = planner(cleared, anthropic("a", "b"))
    adopt(found)
    plan = found.plan(found.conversation.facts)
    assert (plan.new, plan.verdicts(2)[1].reason.code) == ((), "decided")


def test_the_inputs_of_calls_and_parts_of_results_have_one_placeholder(tmp_path: Path) -> None:
    text = BEFORE_CALLS.replace("items: {", "items: {tool_call: {offload: true}, ").replace(
        SHOWN, '"A long placeholder that says where the whole text is kept: {path}"'
    )
    content = [{"type": "text", "text": "seen"}, picture("A" * 400)]
    full = [
        user("the task"),
        call("w", "Write", {"content": TEXT}),
        results(("w", "ok")),
        calls(("p", "Look")),
        results(("p", content)),
        *anthropic("a", "b")[1:],
    ]
    under = policy(text.replace("select: {", "select: {types: [tool_call, image], "))
    one = session(tmp_path, under)
    sent = one.apply(full[:5]).messages
    assert one.apply([*sent, *full[5:]]).messages[:5] == sent
    again = session(tmp_path, under)
    assert again.apply(full).messages[:5] == sent


def test_an_image_of_the_user_keeps_its_type(tmp_path: Path) -> None:
    text = BEFORE_CALLS.replace(SHOWN, '"A long placeholder: the whole image is kept in {path}"')
    shown = [{"role": "user", "content": [picture("A" * 400)]}, user("and this?"), user("well")]
    under = policy(
        text.replace("select: {", "select: {types: [image], ").replace("items: 1", "items: 0")
    )
    one = session(tmp_path, under)
    first = Session(policy(text.partition("  - {name: path")[0]), root=tmp_path, session_id="s")
    sent = first.apply(shown).messages
    newer = one.apply(sent).messages
    assert "A long" in str(sent)
    assert "A long" not in str(newer)
    assert session(tmp_path, under).apply(shown).messages == newer


def test_a_dropped_item_and_a_restored_document_have_the_file_of_the_first_step(
    tmp_path: Path,
) -> None:
    one, full = session(tmp_path, policy(BEFORE_CALLS)), anthropic("a", "b", "c")
    preview = one.apply(full[:5]).messages
    newer = one.apply(full).messages
    store = ContextFileSystem(tmp_path, session="s")
    for sent in (preview, newer):
        assert texts(restorer([store]).value(list(sent))) == texts(full)[: len(texts(sent))]
    dropping = policy("""
        store: {sync: never}
        steps: [{name: old, do: drop, select: {types: [tool_result], keep_recent: 1}}]
        """)
    dropped = session(tmp_path, dropping).apply(full).plan.new
    files = [d.file for d in dropped if d.item.kind == "tool_result"]
    paths = [file and file.relative_path for file in files]
    assert paths == ["tool_result/Bash/a.md", "tool_result/Bash/b.md"]


def test_a_fork_keeps_the_newest_placeholder(tmp_path: Path) -> None:
    one, full = session(tmp_path, policy(BEFORE_CALLS)), anthropic("a", "b", "c")
    one.apply(full[:5])
    other = session(tmp_path, policy(BEFORE_CALLS))
    newer = one.apply(full).messages
    assert other.apply(full[:5]).messages[:4] == newer[:4]
    assert other.apply(full).messages == newer


def test_a_replay_counts_both_steps_and_the_text_that_is_left() -> None:
    recording = turn_by_turn(anthropic("a", "b", "c"))
    found = simulated(recording, policy(BEFORE_CALLS))
    assert [removal.step for removal in found.removals] == ["preview", "path", "preview"]
    plain = simulated(recording, policy(BEFORE_CALLS.partition("  - {name: path")[0]))
    assert found.calls[-1].edited.tokens < plain.calls[-1].edited.tokens


def test_a_turn_reports_the_tokens_between_the_two_placeholders(tmp_path: Path) -> None:
    one, full = session(tmp_path, policy(BEFORE_CALLS)), anthropic("a", "b")
    preview = one.apply(full[:3]).plan
    planned = step_reports(one.plan(full))
    newer = one.apply(full).plan
    assert step_reports(newer) == planned
    reports = {report.step: report for report in planned}
    [first] = [d for d in newer.new if d.step == "path"]
    left = newer.facts.length(first.placeholder or "", "tokens")
    shown = newer.facts.length(preview.new[0].placeholder or "", "tokens")
    assert reports["path"].freed_tokens == shown - left
