from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from policyctx.cli.conversation import read_messages
from policyctx.cli.output import json_text
from policyctx.cli.plans import breakpoints_report, plan_report
from policyctx.definitions.items import Item, Message
from policyctx.messages.json_text import compact_json
from policyctx.messages.reading import items_of
from policyctx.messages.validity import new_problems
from policyctx.replay.reading import recordings_in
from policyctx.session import Session
from tests.cli import running
from tests.drawing import IS_LONG
from tests.recordings import each_recording

Place: TypeAlias = tuple[int, tuple[str | int, ...]]
# The third one leaves the cache markers as they are, so that what it does not replace stays equal.
PRESETS = (
    "context-offload",
    "tool-direct-offload",
    str(Path(__file__).with_name("small_context_without_markers.yaml")),
)


def presets_for(path: Path, test: int) -> Sequence[str]:
    """Return the presets that a test applies to a recording; in CI one, in each test another."""
    place = sorted(path.parent.iterdir()).index(path) + test
    return PRESETS if IS_LONG else PRESETS[place % 3 :][:1]


def policyctx(*arguments: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the command in `cwd`, which is also its home; it succeeds."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("HOME", str(cwd))
        run = running.policyctx(*arguments, cwd=cwd)
    assert run.returncode == 0, run.stderr
    return run


def place_of(item: Item) -> Place:
    return item.message, item.path


def text_at(message: Message, item: Item) -> Any:
    found: Any = message
    for part in item.path:
        found = found[part]
    return found


def assert_only_replaced(
    before: Sequence[Message], after: Sequence[Message], placeholders: Mapping[Place, str]
) -> None:
    """Check that each item reads as its placeholder and that all else is as it was."""
    assert len(after) == len(before)
    touched = {message for message, _ in placeholders}
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        assert new == old or i in touched
    # What is inside of a result goes with it.
    old_items = [item for item in items_of(before) if item.inside is None]
    new_items = [item for item in items_of(after) if item.inside is None]
    for old_item, new_item in zip(old_items, new_items, strict=True):
        expected = placeholders.get(place_of(old_item), old_item.text)
        assert new_item.text == expected
        assert (new_item.type, new_item.tool_use_id) == (old_item.type, old_item.tool_use_id)


@each_recording("claude-code", "openai-chat")
def test_a_session_replaces_items_by_the_files_that_hold_them(path: Path, tmp_path: Path) -> None:
    messages = read_messages(str(path)).request.messages
    for preset in presets_for(path, 0):
        session = Session(preset, root=tmp_path / Path(preset).stem, session_id="s")
        result = session.apply(messages)
        placeholders: dict[Place, str] = {}
        for decision in result.plan.to_save:
            assert decision.file is not None
            placeholder = text_at(result.messages[decision.item.message], decision.item)
            assert Path(decision.file.path).name in placeholder
            assert Path(decision.file.path).read_bytes().decode() == decision.item.text
            placeholders[place_of(decision.item)] = placeholder
        assert_only_replaced(messages, result.messages, placeholders)


@each_recording("claude-code", "openai-chat")
def test_untouched_messages_are_the_same_objects(path: Path, tmp_path: Path) -> None:
    messages = read_messages(str(path)).request.messages
    for preset in presets_for(path, 1):
        result = Session(preset, root=tmp_path / Path(preset).stem).apply(messages)
        touched = {decision.item.message for decision in result.plan.to_save}
        for i, (old, new) in enumerate(zip(messages, result.messages, strict=True)):
            assert (new is old) == (i not in touched)


@each_recording("claude-code", "openai-chat")
def test_turn_by_turn_pairs_stay_and_so_does_the_prefix_up_to_the_first_new_decision(
    path: Path, tmp_path: Path
) -> None:
    messages = read_messages(str(path)).request.messages
    for preset in presets_for(path, 2):
        session = Session(preset, root=tmp_path / Path(preset).stem)
        last: Sequence[Message] = []
        for end in range(1, len(messages) + 1, 3):
            turn = messages[:end]
            result = session.apply(turn)
            assert new_problems(turn, result.messages) == []
            shared = min([len(last), *(d.item.message for d in result.plan.to_save)])
            assert compact_json(result.messages[:shared]) == compact_json(last[:shared])
            last = result.messages


@each_recording("claude-code", "openai-chat")
def test_the_plan_command_agrees_with_a_session_and_writes_nothing(
    path: Path, tmp_path: Path
) -> None:
    for preset in presets_for(path, 0):
        common = ("--json", "--session-id", "s", "--root", tmp_path / Path(preset).stem)
        ran = policyctx("plan", preset, path, *common, cwd=tmp_path)
        assert json.loads(ran.stdout) == report_of(path, preset, tmp_path / Path(preset).stem)
    assert list(tmp_path.iterdir()) == []


@each_recording("claude-code", "openai-chat")
def test_the_apply_command_carries_out_the_plan(path: Path, tmp_path: Path) -> None:
    messages = read_messages(str(path)).request.messages
    by_place = {(item.message, item.item_id): item for item in items_of(messages)}
    for preset in presets_for(path, 1):
        common = ("--json", "--session-id", "s", "--root", tmp_path / Path(preset).stem)
        planned = report_of(path, preset, tmp_path / Path(preset).stem)
        ran = policyctx("apply", preset, path, *common, cwd=tmp_path)
        new = json.loads(ran.stdout)
        new = new["messages"] if isinstance(new, dict) else new  # the body names the model
        placeholders: dict[Place, str] = {}
        report = json.loads(ran.stderr)
        assert {key: report[key] for key in planned} == planned
        if (made := report["compacted"]) is not None:
            # What was billed opens the gate; a summary takes the place of the history.
            assert made["compacted_token_count"] < made["original_token_count"]
            assert len(new) < len(messages)
            continue
        for decision in report["decisions"]:
            if decision["decision"] == "offload":
                item = by_place[decision["message"], decision["item_id"]]
                placeholder = placeholders[place_of(item)] = text_at(new[item.message], item)
                assert Path(decision["path"]).name in placeholder
                saved = Path(decision["path"]).read_bytes().decode()
                assert saved in {item.text, item.whole}
        assert {key: report[key] for key in planned} == planned
        if planned["compaction"] is None:
            assert_only_replaced(messages, new, placeholders)
        else:
            assert new_problems(messages, new) == []


def report_of(path: Path, preset: str, root: Path) -> dict[str, Any]:
    """What the commands report, had in this process."""
    given = read_messages(str(path))
    session = Session(preset, root=root, session_id="s")
    request = given.teach(session, quiet=True)
    planned = session.plan(given.messages, request=request)
    placed = session.breakpoints(given.messages, request=request)
    told = (
        plan_report(planned) | given.report(session) | breakpoints_report(placed) | {"repaired": []}
    )
    report: dict[str, Any] = json.loads(json_text(told))
    return report


@each_recording("claude-code")
def test_a_call_lacks_its_result_only_where_the_recording_does(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").split("\n")
    recording = next(recordings_in(path))
    assert recording.not_understood == {}
    items = items_of(recording.messages())
    answered = {(i.tool_use_id, i.call_message) for i in items if i.type == "tool_result"}
    for item in items:
        if item.type == "tool_call" and (item.tool_use_id, item.message) not in answered:
            assert not any(f'"tool_use_id":"{item.tool_use_id}"' in line for line in lines)


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85"])
def test_a_line_separator_in_a_text_does_not_end_a_line(separator: str, tmp_path: Path) -> None:
    words = f"one{separator}two"
    links = {"type": "user", "parentUuid": None, "sessionId": "s"}
    records = [
        {**links, "uuid": "1", "message": {"role": "user", "content": words}},
        {**links, "uuid": "2", "parentUuid": "1", "message": {"role": "user", "content": "go"}},
    ]
    path = tmp_path / "session.jsonl"
    lines = (json.dumps(record, ensure_ascii=False) for record in records)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    assert [m["content"] for m in read_messages(str(path)).request.messages] == [words, "go"]
