"""Recorded sessions under the presets: nothing is refused, nothing is lost, all is told."""

from __future__ import annotations

from pathlib import Path

from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.reading import recordings_in
from policyctx.replay.simulation import simulated
from policyctx.replay.summing import figures_of
from tests.policies import policy
from tests.recordings import each_recording

KEEPS_ALL = policy("items: {tool_result: {offload: true}}")
CLEARS_ALL = policy("""
    items: {tool_result: {offload: true}}
    steps: [{name: clear, do: clear, select: {types: [tool_result], min_tokens: 100}}]
    placeholder: "[gone]"
""")


@each_recording("claude-code", "codex", "pi", "openhands", "gemini")
def test_a_replay_sends_the_recorded_messages_and_regrets_only_removed_items(path: Path) -> None:
    for recording in recordings_in(path):
        kept, cleared = simulated(recording, KEEPS_ALL), simulated(recording, CLEARS_ALL)
        assert len(kept.calls) == len(recording.calls)
        assert (kept.removals, kept.regrets) == ((), ())
        assert all(call.unedited == call.edited for call in kept.calls)
        unedited = [[c.unedited._replace(removable=None) for c in s.calls] for s in (kept, cleared)]
        assert unedited[0] == unedited[1]
        removed = {(r.part, r.position) for r in cleared.removals}
        assert {(r.removal.part, r.removal.position) for r in cleared.regrets} <= removed
        assert not cleared.warnings


@each_recording("claude-code")
def test_clearing_every_result_is_regretted_more_than_a_preset(path: Path) -> None:
    for recording in recordings_in(path):
        found = figures_of(simulated(recording, CLEARS_ALL))
        preset = figures_of(simulated(recording, OffloadPolicy.load("small-context")))
        if found.removed > 15:
            assert 0 < found.regretted_tokens < found.regretted_item_tokens < found.removed_tokens
            assert found.regretted_tokens > preset.regretted_tokens
