"""What a session that compacts still knows after a restart."""

from __future__ import annotations

from pathlib import Path

from policyctx import Session
from policyctx.messages.json_text import compact_json
from tests.compaction.compacting import Failing, conversation, said, session
from tests.conversations import calls, results, user
from tests.policies import policy


def test_a_full_list_gets_the_same_beginning_and_no_model_is_asked(tmp_path: Path) -> None:
    messages = conversation()
    first = session(tmp_path).apply(messages).messages
    asked = Failing(9)
    later = session(tmp_path, summary=asked).apply([*messages, user("and now")])
    assert compact_json(later.messages) == compact_json([*first, user("and now")])
    assert asked.asked == 0


def test_messages_dropped_before_a_compaction_stay_dropped_after_a_restart(tmp_path: Path) -> None:
    text = """\
        store: {sync: never}
        items: {tool_result: {offload: true}}
        compaction: {keep_first: 2}
        steps:
          - {name: d, do: drop, select: {keep_recent: {items: 1, per: all}}}
          - {name: summarise, do: compact, when: {messages: {over: 4}}}
        """

    def used() -> Session:
        return Session(policy(text), root=tmp_path, session_id="s", summarizer=lambda _: "short")

    full = [
        *(user("one"), calls(("a", "Read")), results(("a", "x")), said()),
        *(user("two"), calls(("b", "Read")), results(("b", "y")), said()),
        *(user("three"), calls(("c", "Read")), results(("c", "z")), said()),
    ]
    result = used().apply(full)
    assert result.compacted
    assert [m["content"] for m in result.messages[:2]] == ["one", "done"]
    assert used().apply(full).messages == result.messages


def test_the_usage_correction_survives_a_restart_after_a_compaction(tmp_path: Path) -> None:
    used = session(tmp_path)
    used.apply(conversation())
    used.observe({"input_tokens": 5_000, "output_tokens": 1})
    again = session(tmp_path).plan(conversation()).facts.correction
    assert again.corrected(20) > 4_000
