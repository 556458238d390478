"""What a session writes to the log."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING

from policyctx import Session
from tests.compaction.compacting import compacting, conversation
from tests.conversations import Message, calls, results, session_of, user
from tests.policies import policy

if TYPE_CHECKING:
    import pytest

POLICY = """\
    model: {tokenizer: approximate}
    items: {tool_result: {offload: true, min_tokens: 100}}
    steps:
    - {name: early, on: arrival, do: offload, select: {types: [tool_result], min_tokens: 5000}}
    - {name: retire, do: offload, select: {types: [tool_result], keep_recent: 1}}
    - {name: room, do: drop, when: {tokens: {at_least: 90%}}, select: {types: [tool_result]}}
    """
TEXT = "what the user wrote "


def lines(caplog: pytest.LogCaptureFixture, level: int) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelno == level]


def messages() -> list[Message]:
    return session_of(TEXT * 40, "short", TEXT * 50)


def test_each_step_of_a_turn_is_logged_at_info(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "policyctx")
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    session.apply(messages())
    found = lines(caplog, logging.INFO)
    assert found[0] == "session s: step early: nothing taken"
    assert found[1].startswith("session s: step retire: 1 offloaded, ")
    assert found[1].endswith(" tokens freed")
    assert found[2].startswith("session s: step room: nothing taken; gate closed: tokens: ")
    assert len(found) == 3
    assert lines(caplog, logging.DEBUG) == []


def test_each_item_that_leaves_is_logged_at_debug(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "policyctx")
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    result = session.apply(messages())
    [decision] = result.plan.new
    assert lines(caplog, logging.DEBUG) == [
        f"session s: step retire: offloaded tool_result {decision.item.item_id} of Bash:"
        f" {decision.reason}"
    ]
    caplog.clear()
    session.apply(messages())
    assert lines(caplog, logging.DEBUG) == []


def test_an_arriving_result_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policyctx")
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    session.on_tool_result(results(("a", TEXT * 2000)), call=calls(("a", "Bash")))
    [line] = lines(caplog, logging.INFO)
    assert line.startswith("session s: step early: 1 offloaded, ")


def test_a_compaction_is_logged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "policyctx")
    session = Session(
        compacting(), root=tmp_path, session_id="s", summarizer=lambda _: "the summary"
    )
    session.apply(conversation())
    [line] = lines(caplog, logging.INFO)
    assert line.startswith("session s: step summarise: 6 messages replaced by a summary, 14 → ")


def test_a_compaction_that_is_not_made_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "policyctx")
    session = Session(
        compacting(), root=tmp_path, session_id="s", before_compaction=lambda _: "not now"
    )
    session.apply(conversation())
    why = "declined: the hook before a compaction declined it: not now"
    assert lines(caplog, logging.INFO) == [f"session s: step summarise: nothing taken; {why}"]


def test_no_record_contains_the_text_of_a_message(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "policyctx")
    text = f"{POLICY}- {{name: sum, do: compact, when: {{messages: {{over: 2}}}}}}\n"
    session = Session(policy(text), root=tmp_path, session_id="s", summarizer=lambda _: TEXT)
    session.apply([user(TEXT), *messages()], system=TEXT, tools=[{"name": "Bash"}])
    assert len(caplog.records) > 3
    assert not [r for r in caplog.records if "what the user" in r.getMessage()]


def test_nothing_is_logged_for_what_decides_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "policyctx")
    session = Session(policy(POLICY), root=tmp_path, session_id="s")
    session.plan(messages())
    session.preview(messages())
    assert caplog.records == []
