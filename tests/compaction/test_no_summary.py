"""Compaction without a summary: `summary: {by: none}`."""

from __future__ import annotations

from pathlib import Path

from policyctx import Session
from policyctx.compaction.assembly import SummaryRequest
from policyctx.planning.compiled import OffloadPolicy
from policyctx.replay.simulation import offline, online_summarizers
from tests.conversations import Message, user
from tests.policies import policy
from tests.policy_strategies import stored

LONG: list[Message] = [
    user(f"task {i}") if i % 2 == 0 else {"role": "assistant", "content": f"done {i}"}
    for i in range(13)
]


def trimming(more: str = "", *, state: str = "kept") -> OffloadPolicy:
    text = f"""\
        model: {{tokenizer: approximate}}
        items: {{user_message: {{pin: false}}, rule: {{match: {{type: user_message,
          text: {{startswith: "Rule:"}}}}, pin: true}}}}
        compaction:
          summary: {{by: none}}
          keep_recent: {{messages: 3}}
          min_new: 0
          wording: {{summary: "[Earlier messages were removed]"{more}}}
        steps: [{{name: trim, do: compact, when: {{messages: {{at_least: 8}}}}}}]
        """
    return stored(policy(text), sync="never", state=state)


def texts(messages: list[Message] | object) -> list[str]:
    assert isinstance(messages, list)
    return [message["content"] for message in messages]


def test_nobody_is_asked_for_a_summary(tmp_path: Path) -> None:
    def summarize(_: SummaryRequest) -> str:
        raise AssertionError

    with Session(trimming(), root=tmp_path, session_id="s", summarizer=summarize) as session:
        result = session.apply(LONG[:9])
    first, *rest = texts(result.messages)
    assert first == "[Earlier messages were removed]"
    assert rest[-3:] == texts(LONG[6:9])
    assert (result.warnings, result.summary_usage.attempts) == ((), 0)


def test_pins_stand_behind_the_text_from_round_to_round(tmp_path: Path) -> None:
    rule = user("Rule: never push")
    with Session(trimming(), root=tmp_path, session_id="s") as session:
        for count in range(1, len(LONG) + 1):
            found = texts(session.apply([rule, *LONG[:count]]).messages)
    assert found[0].startswith("[Earlier messages were removed]\n\n")
    assert found[0].count("Rule: never push") == 1
    assert len(found) < 8


def test_a_restart_gives_the_same_bytes(tmp_path: Path) -> None:
    for count in range(1, len(LONG) + 1):
        session = Session(trimming(), root=tmp_path, session_id="s")
        first = texts(session.apply(LONG[:count]).messages)
        again = Session(trimming(), root=tmp_path, session_id="s").apply(LONG[:count])
        assert texts(list(again.messages)) == first


def test_the_text_is_known_by_its_wording_where_nothing_is_remembered(tmp_path: Path) -> None:
    session = Session(trimming(state="none"), root=tmp_path, session_id="s")
    left = session.apply(LONG[:9]).messages
    plan = session.plan([*left, *LONG[9:10]])
    assert plan.items[0].type == "compaction_summary"


def test_a_replay_asks_nobody_and_makes_no_summary() -> None:
    assert online_summarizers(trimming()) == ()
    assert offline(trimming()).policy.compaction.summary.by == "none"
