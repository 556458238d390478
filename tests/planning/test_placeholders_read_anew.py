"""What a placeholder counts as in a list that comes back and is read anew."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pytest

from policyctx.definitions.actions import Action
from policyctx.planning.ledger import Ledger, LedgerEntry
from policyctx.planning.planner import Planner
from tests.conversations import Message, calls, picture, results, user
from tests.messages.edits import edited
from tests.planning.plans import FACTS, adopt, planner

DATA = {"type": "base64", "media_type": "application/pdf", "data": "JVBERi0="}
PICTURE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
ITEMS = """\
    image: {offload: true}
    document: {offload: true}
    user_message: {offload: true}
    skill_prompt:
      match: {type: user_message, text: {startswith: "Base directory"}}
    chart:
      match: {type: image, media_type: image/png}
"""
TAKE = "steps: [{name: take, do: DO, must_shrink: false, select: {types: [TYPES]}}]\n"


def taking(types: str, action: Action = Action.OFFLOAD) -> str:
    """Return a policy that takes all of these types."""
    step = TAKE.replace("TYPES", types).replace("DO", action)
    return f'items:\n{ITEMS}placeholder: "[old]"\n{step}'


def shown(*blocks: dict[str, Any]) -> Message:
    return {"role": "user", "content": list(blocks)}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def read_anew(
    policy: str, messages: Sequence[Message], *more: Message, under: str | None = None
) -> Planner:
    """Carry a plan out, and read what it left, and more behind it, as after a restart."""
    before = planner(policy, messages)
    found = adopt(before)
    records = json.loads(
        json.dumps([each.record() for each in before.conversation.ledger.entries.values()])
    )
    entries = (LedgerEntry.of(record) for record in records)
    ledger = Ledger(entry for entry in entries if entry is not None)
    left = [*edited(messages, found.edits), *more]
    return planner(under or policy, left, ledger=ledger)


@pytest.mark.parametrize("action", ["offload", "clear"])
@pytest.mark.parametrize(
    ("block", "item_type"),
    [
        (picture(), "chart"),
        (PICTURE_URL, "chart"),
        ({"type": "image", "source": {"type": "url", "url": "https://x.test/a"}}, "image"),
        ({"type": "document", "source": DATA}, "document"),
        ({"type": "input_file", "file_data": "data:application/pdf;base64,JVBERi0="}, "document"),
        (text("Base directory for this skill: /skills"), "skill_prompt"),
    ],
)
def test_the_placeholder_of_a_block_keeps_the_type_of_the_block(
    block: dict[str, Any], item_type: str, action: Action
) -> None:
    messages = [shown(text("look"), block), user("go on")]
    again = read_anew(taking(item_type, action), messages)
    assert [item.type for item in again.conversation.items] == [
        "user_message",
        item_type,
        "user_message",
    ]
    assert again.conversation.fates[1].action == action
    assert again.plan(FACTS).new == ()


def test_the_placeholder_of_a_block_keeps_its_kind_and_key() -> None:
    messages = [shown(text("look"), picture()), user("go on")]
    again = read_anew(taking("image"), messages)
    [entry] = again.conversation.ledger.entries.values()
    assert again.conversation.items[1].kind == entry.key.kind == "image"
    assert again.conversation.entries() == {1: entry}


def test_the_placeholder_in_an_assistant_message_keeps_its_type() -> None:
    messages = [user("draw"), {"role": "assistant", "content": [picture()]}, user("go on")]
    again = read_anew(taking("image"), messages)
    assert [item.type for item in again.conversation.items] == [
        "user_message",
        "chart",
        "user_message",
    ]


def test_words_that_repeat_the_placeholder_of_an_image_in_another_role_are_words() -> None:
    echo = {"role": "assistant", "content": "[old]"}
    again = read_anew(taking("image"), [shown(picture()), user("go on")], echo)
    assert [item.type for item in again.conversation.items] == [
        "chart",
        "user_message",
        "assistant_message",
    ]


def test_an_image_equal_to_a_replaced_one_in_a_result_is_distinguished() -> None:
    again = read_anew(
        taking("image"),
        [results(("again", [text("a"), picture()]))],
        results(("again", [picture()])),
    )
    assert [item.kind for item in again.conversation.items] == [
        "tool_result",
        "tool_result",
        "image",
    ]
    assert again.conversation.fates == {}


def test_equal_placeholders_in_one_message_keep_the_types_of_their_items() -> None:
    blocks = [text("Base directory: /a"), picture(), {"type": "document", "source": DATA}]
    messages = [shown(*blocks), user("go on")]
    again = read_anew(taking("image, document, skill_prompt"), messages)
    types = ["skill_prompt", "chart", "document", "user_message"]
    assert [item.type for item in again.conversation.items] == types
    assert [entry.item_type for entry in again.conversation.entries().values()] == types[:3]


def test_a_repeated_placeholder_text_is_not_a_new_item() -> None:
    again = read_anew(taking("image"), [shown(picture()), user("go on")], user("[old]"))
    assert again.plan(FACTS).new == ()


def test_the_placeholder_of_an_image_is_not_the_newest_message_of_the_user() -> None:
    again = read_anew(taking("image, user_message"), [user("the task"), shown(picture())])
    assert [item.type for item in again.conversation.items] == ["user_message", "chart"]
    assert again.plan(FACTS).new == ()


def test_the_placeholder_of_an_image_is_not_counted_among_the_messages_that_stay() -> None:
    forget = f"""\
items:
{ITEMS}
placeholder: "[old]"
steps:
  - {{name: take, do: offload, must_shrink: false, select: {{types: [image]}}}}
  - {{name: forget, do: drop, select: {{types: [user_message], keep_recent: 2}}}}
"""
    messages = [user("one"), user("two"), shown(text("three"), picture())]
    again = read_anew(forget, messages)
    assert len(again.conversation.roles) == 2
    assert again.plan(FACTS).new == ()


def test_a_type_unknown_to_a_later_policy_falls_back_to_the_built_in_type() -> None:
    later = "items: {image: {offload: true}}\nsteps: []"
    again = read_anew(taking("chart"), [shown(picture()), user("go on")], under=later)
    assert [item.type for item in again.conversation.items] == ["image", "user_message"]


def test_an_item_is_remembered_as_it_was_when_its_placeholder_is_dropped() -> None:
    drop = f"items:\n{ITEMS}steps: [{{name: go, do: drop, select: {{types: [image]}}}}]"
    again = read_anew(taking("image"), [shown(text("look"), picture()), user("go on")], under=drop)
    [before] = again.conversation.ledger.entries.values()
    adopt(again)
    [after] = again.conversation.ledger.entries.values()
    assert (before.action, after.action) == ("offload", "drop")
    assert (after.chars, after.item_id, after.item_type) == (
        before.chars,
        before.item_id,
        before.item_type,
    )


def test_the_newest_by_tokens_are_counted_by_their_original_sizes() -> None:
    by_tokens = """\
items: {tool_result: {offload: true}, image: {}}
placeholder: "[old]"
steps:
  - {name: b, do: offload, select: {types: [tool_result], tools: [B], keep_recent: 0}}
  - {name: a, do: offload, select: {types: [tool_result], keep_recent: {tokens: 105, per: all}}}
"""
    messages = [
        user(),
        *[calls(("a", "A")), results(("a", "x" * 400))],
        *[calls(("b", "B")), results(("b", "y" * 400))],
    ]
    again = read_anew(by_tokens, messages, calls(("c", "A")), results(("c", "z" * 40)))
    assert [d.item.tool_use_id for d in again.plan(FACTS).new] == ["a"]
