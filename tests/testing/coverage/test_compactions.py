"""Which sides of a policy's rules a compaction makes decide."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from policyctx.policy.sources import PolicySource
from policyctx.testing.contents import Message
from policyctx.testing.observing import carried_out_sides, decided_sides, rules_of
from policyctx.testing.world import World

POLICY = """
apiVersion: policyctx/v1
name: x
tools: {read_file: {reads_file: path}}
compaction: {wording: {restored: "{path}: {content}", summary_reply: ""}}
steps: [{name: s, do: compact, compaction: {archive: true}, when: {messages: {at_least: 2}}}]
"""
STEP = "steps.s"
GATE = "steps.s.when.messages.at_least"
ARCHIVE = "steps.s.compaction.archive"
READS, RESTORED = "tools.read_file.reads_file", "compaction.wording.restored"
HEAD, TASK = {"role": "system", "content": "Be brief."}, {"role": "user", "content": "Go on."}


def reading(tool: str) -> Message:
    call = {"type": "tool_use", "id": "c", "name": tool, "input": {"path": "a.py"}}
    return {"role": "assistant", "content": [call]}


RESULT = {
    "role": "user",
    "content": [{"type": "tool_result", "tool_use_id": "c", "content": "x"}],
}


def world_of(folder: Path) -> World:
    world = World(folder / "root", folders=[])
    world.use_policy(PolicySource("x.yaml", POLICY))
    world.script_summarizer()
    world.work.mkdir()
    (world.work / "a.py").write_text("a = 1")
    return world


def sides(folder: Path, messages: Sequence[Message]) -> set[tuple[str, str]]:
    world = world_of(folder)
    world.add(messages)
    world.apply()
    plan, compacted = world.last.plan, world.result.compaction
    assert plan is not None
    found = decided_sides(plan)
    if compacted is not None:
        found |= carried_out_sides(compacted, plan)
    assert world.policy.tree is not None
    known = {rule.path for rule in rules_of(world.policy.tree)}
    return {(".".join(path), side) for path, side in found if path in known}


def test_the_deciding_keys_of_a_compaction_are_rules(tmp_path: Path) -> None:
    tree = world_of(tmp_path).policy.tree
    assert tree is not None
    assert [".".join(rule.path) for rule in rules_of(tree)] == [
        READS, RESTORED, STEP, GATE, ARCHIVE,
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("messages", "seen"),
    [
        ([TASK], {(STEP, "left"), (GATE, "closed")}),
        ([TASK, TASK], {(STEP, "took"), (GATE, "opened"), (ARCHIVE, "saved")}),
        (
            [HEAD, TASK],
            {(STEP, "took"), (STEP, "left"), (GATE, "opened"), (ARCHIVE, "saved")},
        ),
        (
            [reading("read_file"), RESULT],
            {
                (STEP, "took"),
                (GATE, "opened"),
                (ARCHIVE, "saved"),
                (READS, "came back"),
                (RESTORED, "used"),
            },
        ),
        ([reading("other"), RESULT], {(STEP, "took"), (GATE, "opened"), (ARCHIVE, "saved")}),
    ],
    ids=["closed", "all replaced", "a head stays", "a file comes back", "another tool"],
)
def test_each_rule_is_seen_where_it_decides(
    tmp_path: Path, messages: list[Message], seen: set[tuple[str, str]]
) -> None:
    assert sides(tmp_path, messages) == seen
