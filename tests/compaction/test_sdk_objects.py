"""Lists that hold an SDK's objects, as agents append its replies: treated as plain values are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anthropic.types import TextBlock, ThinkingBlock, ToolUseBlock

from policyctx import Session
from policyctx.compaction.summarizers import ExtractiveSummarizer
from policyctx.messages.json_text import compact_json
from policyctx.policy.sources import preset_names
from tests.compaction.compacting import conversation, session
from tests.conversations import Message, results, user


def sdk_reply(i: int) -> Message:
    blocks = [
        ThinkingBlock(type="thinking", thinking="Which one?", signature=f"sig{i}"),
        TextBlock(type="text", text=f"I look at {i}."),
        ToolUseBlock(type="tool_use", id=f"t{i}", name="Read", input={"file_path": f"/{i}.py"}),
    ]
    return {"role": "assistant", "content": blocks}


def sdk_conversation(turns: int) -> list[Message]:
    found = [user("Find the slow one.")]
    for i in range(turns):
        found += [sdk_reply(i), results((f"t{i}", f"line {i}\n" * 1_500))]
    return found


def as_plain(messages: object) -> list[Message]:
    plain: list[Message] = json.loads(compact_json(messages))
    return plain


def test_their_archive_holds_plain_values(tmp_path: Path) -> None:
    used = session(tmp_path)
    messages = [*conversation(), *sdk_conversation(2)]
    result = used.apply(messages)
    assert result.compacted
    assert json.loads(used.read("compaction-001"))["messages"] == as_plain(messages[1:])
    later = session(tmp_path).apply([*messages, sdk_reply(9), results(("t9", "short"))])
    assert list(later.messages[:3]) == list(result.messages)


@pytest.mark.parametrize("preset", preset_names())
def test_every_preset_treats_them_as_plain_values(preset: str, tmp_path: Path) -> None:
    handed_out = []
    for name in ("objects", "plain"):
        used = Session(
            preset,
            root=tmp_path / name,
            session_id="s",
            on_invalid="keep",
            summarizer=ExtractiveSummarizer(),
        )
        turns = [sdk_conversation(turns) for turns in (3, 12, 60)]
        given = turns if name == "objects" else map(as_plain, turns)
        left = [as_plain(list(used.apply(messages).messages)) for messages in given]
        handed_out.append(json.dumps(left).replace(str(tmp_path / name), "/root"))
    assert handed_out[0] == handed_out[1]
